//! The README keeps its word: every command in it is run, and what it prints is what the README shows; the table of
//! docs/options.md is made from the program. `UPDATE_GOLDEN=1` rewrites both.

use std::fs;
use std::path::Path;
use std::process::Command;

use atom_launch::cli::Cli;
use clap::CommandFactory as _;

use crate::common::{BINARY, project};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Replace what stands between two lines; both lines stay.
fn between(text: &str, start: &str, end: &str, new: &str) -> String {
    let from = text
        .find(start)
        .unwrap_or_else(|| panic!("no {start:?} in the page"))
        + start.len();
    let to = from
        + text[from..]
            .find(end)
            .unwrap_or_else(|| panic!("no {end:?} after {start:?}"));
    format!("{}{new}{}", &text[..from], &text[to..])
}

/// Options by heading: name, variables and default from the brackets of the help text, meaning.
fn options() -> String {
    let command = Cli::command();
    let node = command.find_subcommand("node").unwrap();
    let mut headings: Vec<&str> = Vec::new();
    for arg in node.get_arguments() {
        if let Some(heading) = arg.get_help_heading()
            && !headings.contains(&heading)
        {
            headings.push(heading);
        }
    }
    let mut table = String::from("\n| option | variable, else | meaning |\n|---|---|---|\n");
    for heading in headings {
        for arg in node
            .get_arguments()
            .filter(|arg| arg.get_help_heading() == Some(heading))
        {
            let Some(long) = arg.get_long() else { continue };
            let help = arg.get_help().unwrap().to_string();
            let (meaning, brackets) = match help.rsplit_once('[') {
                Some((meaning, rest)) if rest.contains(']') => (
                    meaning.trim_end_matches([' ', '\\']),
                    rest.split(']').next().unwrap().trim_end_matches('\\'),
                ),
                _ => (help.as_str(), ""),
            };
            table.push_str(&format!(
                "| `--{long}` | {} | {} |\n",
                brackets.replace('|', "\\|"),
                meaning.replace('|', "\\|")
            ));
        }
    }
    table
}

/// Run a README command as a reader would see it: both streams in one.
fn run(line: &str, folder: &Path) -> String {
    let line = line.replace("cargo run --release --", "atom-launch");
    let bin = Path::new(BINARY).parent().unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    let out = Command::new("bash")
        .args(["-c", &format!("exec 2>&1; {line}")])
        .current_dir(folder)
        .env_clear()
        .envs([("PATH", path.as_str()), ("HOME", "/nonexistent")])
        .output()
        .unwrap();
    // A node with ROCm or RDMA devices adds variables of its own.
    let own = ["  LD_LIBRARY_PATH=", "  IBDEVICES="];
    let text = String::from_utf8(out.stdout).unwrap();
    text.split_inclusive('\n')
        .filter(|line| !own.iter().any(|own| line.starts_with(own)))
        .collect()
}

#[test]
fn the_readme_shows_what_the_program_prints() {
    let file = root().join("README.md");
    let text = fs::read_to_string(&file).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // Files that the examples use stand in the README as well: ```yaml broken.yaml
    for block in text.split("```yaml ").skip(1) {
        let (name, rest) = block.split_once('\n').unwrap();
        fs::write(folder.path().join(name), rest.split("```").next().unwrap()).unwrap();
    }
    let mut fresh = text.clone();
    let mut checked = 0;
    for block in text.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let command = block.lines().next().unwrap();
        let line = command.strip_prefix("$ ").unwrap();
        // The test command cannot run itself, a build is no example, and times of a whole job differ from run to run.
        if line.starts_with("scripts/") || line.contains("rehearse") {
            continue;
        }
        let shown = format!("```console\n{command}\n");
        fresh = between(&fresh, &shown, "```", &run(line, folder.path()));
        checked += 1;
    }
    assert!(checked >= 3, "the README must have examples");
    is_current(&file, &text, &fresh);
}

/// `UPDATE_GOLDEN=1` rewrites a page that is not.
fn is_current(file: &Path, text: &str, fresh: &str) {
    if fresh != text {
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(file, fresh).unwrap();
        }
        let difference = fresh
            .lines()
            .zip(text.lines())
            .find(|(now, shown)| now != shown);
        panic!(
            "{} is not current (UPDATE_GOLDEN=1 rewrites it); first difference, program then page: {difference:#?}",
            file.display()
        );
    }
}

#[test]
fn the_table_of_options_is_current() {
    let file = root().join("docs/options.md");
    let text = fs::read_to_string(&file).unwrap();
    let fresh = between(
        &text,
        "<!-- options: made from the program -->\n",
        "<!-- end of options -->",
        &options(),
    );
    is_current(&file, &text, &fresh);
}

#[test]
fn every_file_that_a_page_names_is_there() {
    let docs = fs::read_dir(root().join("docs")).unwrap();
    let pages = docs.map(|entry| entry.unwrap().path());
    let mut checked = 0;
    for page in pages.chain([root().join("README.md")]) {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap();
            if !target.is_empty() && !target.starts_with("http") {
                let path = page.parent().unwrap().join(target);
                assert!(path.exists(), "{}: {target}", page.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 15, "{checked}");
}

/// A page that nobody is sent to is not found.
#[test]
fn the_readme_lists_every_page() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let row = format!("\n| [docs/{name}](docs/{name}) | ");
        assert!(text.contains(&row), "{name}");
    }
}

/// Which options each command has is said in one sentence, and the program keeps it.
#[test]
fn every_option_is_where_the_docs_say() {
    let mut command = Cli::command();
    command.build();
    let options = |name: &str| -> Vec<String> {
        let command = if name.is_empty() {
            &command
        } else {
            command.find_subcommand(name).unwrap()
        };
        let named = command.get_arguments().filter_map(|arg| arg.get_long());
        named.map(|long| format!("`--{long}`")).collect()
    };
    let has = |name: &str, option: &String| options(name).contains(option);
    let (of_jobs, of_ranks): (Vec<_>, Vec<_>) = options("node")
        .into_iter()
        .filter(|option| option != "`--help`" && option != "`--dry-run`")
        .partition(|option| has("plan", option));
    for name in ["", "explain", "rehearse", "sbatch"] {
        for option in &of_jobs {
            assert!(has(name, option), "{name} lacks {option}");
        }
        let lives = ["rehearse", "sbatch"].contains(&name);
        for option in &of_ranks {
            assert_eq!(has(name, option), lives, "{name} {option}");
        }
    }
    let text = fs::read_to_string(project("docs/options.md")).unwrap();
    let text = text.replace('\n', " ");
    let (_, rest) = text
        .split_once("Every option works in every command")
        .unwrap();
    let (_, rest) = rest
        .split_once("`node`, `rehearse` and `sbatch` have: ")
        .unwrap();
    let (list, rest) = rest.split_once("; and ").unwrap();
    let mut said: Vec<&str> = list.split(", ").collect();
    let mut are: Vec<&str> = of_ranks.iter().map(String::as_str).collect();
    said.sort_unstable();
    are.sort_unstable();
    assert_eq!(said, are);
    assert!(rest.starts_with("`--dry-run`, which only the plain launch and `node` have."));
    let dry = "`--dry-run`".to_owned();
    let with: Vec<&str> = ["", "node", "plan", "explain", "rehearse", "sbatch"]
        .into_iter()
        .filter(|name| has(name, &dry))
        .collect();
    assert_eq!(with, ["", "node"]);
}
