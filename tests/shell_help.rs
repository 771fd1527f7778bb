//! Completions as bash uses them, and manual pages as groff reads them.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::Write as _;
use std::process::{Command, Stdio};

#[path = "common/ran.rs"]
mod ran;

fn program(args: &[&str]) -> String {
    let ran = ran::run(".", args.iter().copied(), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout
}

/// What bash offers for the last of the words, through the function that `complete` registers.
fn offered(lines: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("completions.bash");
    std::fs::write(&script, program(&["completions", "bash"])).unwrap();
    let mut bash = String::from(
        "source \"$1\"\nspec=$(complete -p atom-launch); spec=${spec#*-F }; name=${spec%% *}\n\
         offer() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); \
         \"$name\" atom-launch \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; echo \"${COMPREPLY[*]}\"; }\n",
    );
    for line in lines {
        bash.push_str(&format!("offer {line}\n"));
    }
    let output = Command::new("bash")
        .args(["--norc", "-c", &bash, "bash"])
        .arg(&script)
        .env_clear()
        .output()
        .unwrap();
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn bash_completes_models_subcommands_options_and_their_values() {
    let lines = [
        ("atom-launch --model Kim", "Kimi-K2.5-MXFP4"),
        (
            "atom-launch --model MiniMax-M3-MXFP",
            "MiniMax-M3-MXFP4 MiniMax-M3-MXFP8",
        ),
        ("atom-launch plan --model Deep", "DeepSeek-V4-Pro"),
        ("atom-launch explain --model Kim", "Kimi-K2.5-MXFP4"),
        ("atom-launch ch", "check"),
        ("atom-launch --mode ''", "tp tp-dp ep-dp"),
        (
            "atom-launch plan --layout ''",
            "spread prefill-packed decode-packed packed",
        ),
        ("atom-launch plan --env-f", "--env-file"),
        ("atom-launch check --format ''", "text json github"),
        ("atom-launch check --server", "--server-help"),
        ("atom-launch diff --exit", "--exit-code"),
        ("atom-launch completions z", "zsh"),
    ];
    let words: Vec<&str> = lines.iter().map(|(words, _)| *words).collect();
    let expected: Vec<&str> = lines.iter().map(|(_, offered)| *offered).collect();
    assert_eq!(offered(&words), expected);
}

#[test]
fn completions_exist_for_other_shells_and_name_the_models() {
    for shell in ["zsh", "fish"] {
        let script = program(&["completions", shell]);
        for model in ["DeepSeek-V4-Pro", "Kimi-K2.5-MXFP4"] {
            assert!(script.contains(model), "{shell} lacks {model}");
        }
        let checked = Command::new(shell)
            .arg("-n")
            .arg("/dev/stdin")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .and_then(|mut child| {
                child.stdin.take().unwrap().write_all(script.as_bytes())?;
                child.wait_with_output()
            });
        // Not every machine has every shell.
        if let Ok(output) = checked {
            assert!(
                output.status.success(),
                "{shell}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

#[test]
fn fish_completes_the_model_of_a_plain_launch() {
    let script = program(&["completions", "fish"]);
    assert!(script.contains("-- $cmd[1..-2] 2>/dev/null"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("atom-launch.fish");
    std::fs::write(&path, script).unwrap();
    for (line, offered) in [
        ("atom-launch --model Kim", "Kimi-K2.5-MXFP4\n"),
        ("atom-launch plan --model Kim", "Kimi-K2.5-MXFP4\n"),
        ("atom-launch --quiet --model Deep", "DeepSeek-V4-Pro\n"),
    ] {
        let source = format!("source {}; complete -C '{line}'", path.display());
        // Not every machine has fish.
        if let Ok(output) = Command::new("fish")
            .args(["--no-config", "-c", &source])
            .env("HOME", folder.path())
            .output()
        {
            assert_eq!(String::from_utf8_lossy(&output.stdout), offered, "{line}");
        }
    }
}

#[test]
fn manual_pages_render_without_a_warning() {
    let pages = [
        "",
        "plan",
        "explain",
        "check",
        "models",
        "diff",
        "schema",
        "completions",
        "man",
        "node",
        "wait",
        "report",
        "sbatch",
        "rehearse",
    ];
    let readme = include_str!("../README.md");
    for (codes, _) in atom_launch::exit::MEANINGS {
        assert!(readme.contains(&format!("\n| {codes} | ")), "{codes}");
    }
    for page in pages {
        let text = if page.is_empty() {
            program(&["man"])
        } else {
            program(&["man", page])
        };
        let name = if page.is_empty() {
            "atom-launch".to_owned()
        } else {
            format!("atom-launch-{page}")
        };
        assert!(text.contains(&format!(".TH {name} 1")), "{page}");
        for section in [
            "SYNOPSIS\n.nf\n\\&atom\\-launch",
            "EXAMPLES\n.nf\n\\&  ",
            "\"EXIT STATUS\"\n.TP\n\\&0\n",
        ] {
            assert!(
                text.contains(&format!(".SH {section}")),
                "{page}: {section}"
            );
        }
        assert_eq!(
            text.contains(".SH \"ENVIRONMENT\""),
            page.is_empty(),
            "{page}"
        );
        // As `man` does: the page is UTF-8, which only a preprocessor understands.
        let rendered = Command::new("groff")
            .args(["-k", "-man", "-Tutf8", "-ww", "-z"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .and_then(|mut child| {
                child.stdin.take().unwrap().write_all(text.as_bytes())?;
                child.wait_with_output()
            });
        if let Ok(output) = rendered {
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{page}");
        }
    }
    let unknown = ran::run(".", ["man", "plans"], &[]);
    assert_eq!(unknown.code, Some(2));
    assert_eq!(
        unknown.stderr,
        "error: no subcommand `plans`\n  = help: did you mean `plan`?\n"
    );
}
