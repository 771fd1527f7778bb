//! Manual pages: what clap knows of a command, and what it does not: examples, exit codes, files, variables.

use std::fmt::Write as _;
use std::io;

use clap_mangen::Man;

const FILES: &[(&str, &str)] = &[
    (
        "models_atom.yaml",
        "The models file: --models-file, else ATOM_MODELS_FILE, else $ATOM_WS_PATH/models_atom.yaml where that is there, else the one in the program.",
    ),
    (
        "LOG_DIR/ROLE-RANK.log, router-0.log, workload-0.log",
        "Everything that a process of `node` has written. LOG_DIR is --log-dir, else /run_logs/slurm_job-ID where /run_logs exists, else below atom-launch-logs.",
    ),
    (
        "LOG_DIR/launch-rankN.json",
        "The record of a rank: commands, variables, times, outcome. `report` reads it.",
    ),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "names in [brackets]",
        "An option whose text names a variable in brackets takes it from there when it is not given. An empty variable is an unset one.",
    ),
    (
        "IS_AGENTIC, SPEC_DECODING, KV_CACHE_DTYPE, HIP_VISIBLE_DEVICES",
        "Read as well, and without an option: docs/options.md says how.",
    ),
    (
        "SLURM_JOB_ID, SLURM_PROCID, SLURM_NODEID, SLURM_JOB_NODELIST, SLURM_STEP_NODELIST, SLURM_RESTART_COUNT, SLURM_JOB_END_TIME",
        "Place and time of a rank in a SLURM job.",
    ),
    ("NO_COLOR", "No colours."),
];

/// The page of a command with these exit codes; of the program itself when `of_program`, with a synopsis of every subcommand.
pub fn page(
    command: &clap::Command,
    of_program: bool,
    codes: &[(&str, &str)],
) -> io::Result<Vec<u8>> {
    let mut command = command.clone();
    let version = format!("atom-launch {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone())
        .source(version)
        .manual("atom-launch");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    out.extend(synopsis(&mut command, of_program).into_bytes());
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    let mut text = String::new();
    if of_program {
        man.render_subcommands_section(&mut out)?;
        entries("FILES", FILES, &mut text);
        entries("ENVIRONMENT", ENVIRONMENT, &mut text);
    }
    let after = command.get_after_help().map(ToString::to_string);
    let examples = after
        .as_deref()
        .and_then(|text| text.strip_prefix("Examples:\n"));
    if let Some(examples) = examples {
        let examples = examples.split("\n\n").next().unwrap_or_default();
        text.push_str(".SH EXAMPLES\n");
        as_typed(examples, &mut text);
    }
    entries("EXIT STATUS", codes, &mut text);
    if !of_program {
        text.push_str(".SH SEE ALSO\nFiles and variables: \\fBatom\\-launch\\fR(1)\n");
    }
    out.extend(text.into_bytes());
    Ok(out)
}

fn synopsis(command: &mut clap::Command, of_program: bool) -> String {
    let usage = |command: &mut clap::Command| {
        let text = command.render_usage().to_string();
        let text = text.trim_start_matches("Usage:").trim();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        lines.join("\n")
    };
    let mut lines = usage(command);
    if of_program {
        for one in command.get_subcommands_mut() {
            lines.push('\n');
            lines.push_str(&usage(one));
        }
    }
    let mut text = ".SH SYNOPSIS\n".to_owned();
    as_typed(&lines, &mut text);
    text
}

/// Lines as they stand.
fn as_typed(lines: &str, out: &mut String) {
    out.push_str(".nf\n");
    for line in lines.lines() {
        let _ = writeln!(out, "{}", escaped(line));
    }
    out.push_str(".fi\n");
}

fn entries(title: &str, rows: &[(&str, &str)], out: &mut String) {
    let _ = writeln!(out, ".SH \"{title}\"");
    for (term, meaning) in rows {
        let _ = writeln!(out, ".TP\n{}\n{}", escaped(term), escaped(meaning));
    }
}

/// Text that means nothing to roff.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let text = text.replace('\'', "\\(aq");
    format!("\\&{text}")
}
