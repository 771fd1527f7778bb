//! A SLURM job script as plain text: what `atom-launch sbatch` prints, and what the files of examples/slurm are.
//!
//! Everything is written out; when the script runs, nothing is filled in but what SLURM sets.

mod container;

use std::fmt::Write as _;

use crate::domain::words;

pub use container::Container;

/// Seconds before the time limit at which every rank is told to end. SLURM may be a minute early.
const SIGNAL_SECONDS: u32 = 120;
/// Seconds from the first rank's end to that of one that hangs.
const WAIT_SECONDS: u32 = 120;
/// Longest line of a list of names.
const WIDTH: usize = 116;

/// Everything that the script says.
#[derive(Debug, Clone)]
pub struct Script<'a> {
    /// The command line that prints it.
    pub printed_by: String,
    /// What it runs, in words.
    pub title: String,
    /// `--job-name`
    pub job_name: String,
    /// Nodes to allocate.
    pub nodes: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// Further `#SBATCH` options, the time limit among them.
    pub options: Vec<String>,
    /// Whether SLURM may start it again.
    pub requeue: bool,
    /// Variables that would count in the job where no option is given.
    pub unset: Vec<&'static str>,
    /// Options of the job, each with its value.
    pub job: Vec<Vec<String>>,
    /// Options that only `node` has.
    pub life: Vec<Vec<String>>,
    /// Parent of the log folders; below the folder of submission when there is none.
    pub log_base: Option<&'a str>,
    /// The workload.
    pub workload: &'a [String],
    /// What the ranks run in.
    pub container: Container<'a>,
    /// What a container must see besides the logs, `HOST[:INSIDE]`.
    pub mounts: Vec<String>,
}

/// The whole script.
pub fn text(script: &Script<'_>) -> String {
    let mut out = String::new();
    head(script, &mut out);
    settings(script, &mut out);
    step(script, &mut out);
    run(script, &mut out);
    out
}

fn head(script: &Script<'_>, out: &mut String) {
    let Script {
        title,
        printed_by,
        job_name,
        nodes,
        ..
    } = script;
    line(out, "#!/bin/bash");
    line(out, "#");
    line(out, &format!("# {title}."));
    line(out, "# Printed by");
    line(out, &format!("#   {printed_by}"));
    line(
        out,
        "# and plain from here on: read it, edit it, submit it with `sbatch`. The reasons at length are in docs/slurm.md.",
    );
    line(out, "#");
    line(out, &format!("#SBATCH --job-name={job_name}"));
    line(
        out,
        "# One task on each node: a rank, which starts and watches the servers of its node.",
    );
    line(out, &format!("#SBATCH --nodes={nodes}"));
    line(out, "#SBATCH --ntasks-per-node=1");
    line(
        out,
        "# Whole nodes: ports and GPUs are this job's alone, and so is the memory that the weights are read into.",
    );
    line(out, "#SBATCH --exclusive");
    line(out, "#SBATCH --mem=0");
    for option in &script.options {
        line(out, &format!("#SBATCH {option}"));
    }
    line(
        out,
        "# Every rank is told to end before the time limit, early enough to stop its servers and keep its logs. SLURM looks",
    );
    line(
        out,
        "# only now and then, so this may come up to a minute earlier. It stands here and not on srun, whose --signal counts",
    );
    line(out, "# only where srun makes the allocation itself.");
    line(out, &format!("#SBATCH --signal=TERM@{SIGNAL_SECONDS}"));
    if script.requeue {
        line(
            out,
            "# After the failure of a node the job starts again, with a log folder of its own.",
        );
        line(out, "#SBATCH --requeue");
    } else {
        line(
            out,
            "# A failed node ends the job; --requeue would start it again, with a log folder of its own.",
        );
        line(out, "#SBATCH --no-requeue");
    }
    line(
        out,
        "# One file for all ranks, each of whose lines names its rank; another attempt is added at its end.",
    );
    line(out, "#SBATCH --output=%x-%j.out");
    line(out, "#SBATCH --open-mode=append");
    line(out, "");
    line(out, "set -euo pipefail");
    line(out, "");
}

fn settings(script: &Script<'_>, out: &mut String) {
    unset(&script.unset, out);
    let build = match script.container {
        Container::None => "",
        Container::Pyxis(_) | Container::Docker(_) => {
            " The image runs it too: take the static build."
        }
    };
    line(
        out,
        &format!(
            "# One file, which every node must see under this path; `export ATOM_LAUNCH=/path` chooses another.{build}"
        ),
    );
    line(
        out,
        "atom_launch=$(command -v \"${ATOM_LAUNCH:-atom-launch}\") || { echo \"no ${ATOM_LAUNCH:-atom-launch} on this node\" >&2; exit 127; }",
    );
    line(
        out,
        "[[ $atom_launch == /* ]] || atom_launch=$PWD/$atom_launch",
    );
    line(out, "");
    line(
        out,
        "# Logs and records of all ranks, in a folder that all nodes share: then `report` sees them together.",
    );
    let base = script.log_base.map_or_else(
        || "$SLURM_SUBMIT_DIR/atom-launch-logs".to_owned(),
        |base| words::quote(base.trim_end_matches('/')).into_owned(),
    );
    line(out, &format!("log_dir={base}/slurm_job-$SLURM_JOB_ID"));
    line(
        out,
        "if ((${SLURM_RESTART_COUNT:-0} > 0)); then log_dir+=-restart$SLURM_RESTART_COUNT; fi",
    );
    line(out, "mkdir -p \"$log_dir\"");
    line(out, "");
    line(
        out,
        "# What is served: the same words for every rank; its role follows from its number.",
    );
    array("job", &script.job, out);
    if !script.life.is_empty() {
        line(out, "# How each rank lives.");
        array("life", &script.life, out);
    }
    if script.workload.is_empty() {
        line(
            out,
            "# There is no workload: the job serves until its time is over, or `scancel`.",
        );
    } else {
        line(
            out,
            "# What rank 0 runs once the router is ready: ROUTER_URL and MODEL_PATH are set, its exit code is the job's.",
        );
        let words: Vec<Vec<String>> = script
            .workload
            .iter()
            .map(|word| vec![word.clone()])
            .collect();
        array("workload", &words, out);
    }
    line(out, "");
    line(
        out,
        "# Every mistake that can be seen from here ends the job now, before a GPU is used.",
    );
    line(
        out,
        "\"$atom_launch\" plan \"${job[@]}\" | tee \"$log_dir/plan.txt\"",
    );
    line(out, "");
}

fn step(script: &Script<'_>, out: &mut String) {
    let ranks = script.ranks;
    line(out, "step=(");
    line(
        out,
        &format!("    srun --nodes={ranks} --ntasks={ranks} --ntasks-per-node=1"),
    );
    line(
        out,
        "    # The first rank that fails ends the job; else the others would hold their GPUs until the time limit.",
    );
    line(out, "    --kill-on-bad-exit=1");
    line(
        out,
        "    # All ranks end within seconds of each other; one that hangs is ended this long after the first.",
    );
    line(out, &format!("    --wait={WAIT_SECONDS}"));
    line(
        out,
        "    # Servers use many cores; a task may otherwise be bound to one.",
    );
    line(out, "    --cpu-bind=none");
    if let Container::Pyxis(image) = script.container {
        container::pyxis(image, &script.mounts, out);
    }
    line(out, ")");
    if let Container::Docker(image) = script.container {
        container::docker(image, &script.mounts, out);
    }
    line(out, "");
}

fn run(script: &Script<'_>, out: &mut String) {
    let life = if script.life.is_empty() {
        ""
    } else {
        " \"${life[@]}\""
    };
    let workload = if script.workload.is_empty() {
        ""
    } else {
        " -- \"${workload[@]}\""
    };
    for text in [
        "# `wait` is cut short by a signal and started again, so that this script outlives the ranks and can say how it went.",
        "stopped=no",
        "trap 'stopped=yes' TERM INT",
    ] {
        line(out, text);
    }
    line(
        out,
        &format!(
            "\"${{step[@]}}\" \"$atom_launch\" node \"${{job[@]}}\"{life} --log-dir \"$log_dir\"{workload} &"
        ),
    );
    for text in [
        "step_pid=$!",
        "while :; do",
        "    code=0",
        "    wait \"$step_pid\" || code=$?",
        "    [[ $stopped == yes ]] || break",
        "    stopped=no",
        "done",
        "",
    ] {
        line(out, text);
    }
    if let Container::Docker(_) = script.container {
        let ranks = script.ranks;
        line(
            out,
            "# A step that SLURM has killed at once could remove nothing.",
        );
        line(
            out,
            &format!(
                "srun --overlap --nodes={ranks} --ntasks={ranks} --ntasks-per-node=1 docker rm --force \"atom-$SLURM_JOB_ID\" >/dev/null 2>&1 || true"
            ),
        );
        line(out, "");
    }
    for text in [
        "# Who failed first, and why. srun's code is the highest of all ranks', often that of one it has killed; the job ends",
        "# with that of the first failure, or with srun's where no rank has come so far as to leave a record.",
        "first=0",
        "if compgen -G \"$log_dir/launch-rank*.json\" >/dev/null; then",
        "    \"$atom_launch\" report --exit-code \"$log_dir\" || first=$?",
        "fi",
        "exit \"$((first ? first : code))\"",
    ] {
        line(out, text);
    }
}

/// Take the variables of the submitting shell away that would change the job.
fn unset(names: &[&str], out: &mut String) {
    line(
        out,
        "# What the job is stands in this script alone: settings of the shell that submits it do not count, unless their names are",
    );
    line(
        out,
        "# taken out here. All other variables are inherited, such as secrets and the site's own ATOM_PYTHON and ATOM_ROUTER.",
    );
    let mut text = "unset -v".to_owned();
    for name in names {
        if text.len() + name.len() > WIDTH {
            line(out, &format!("{text} \\"));
            "   ".clone_into(&mut text);
        }
        text.push(' ');
        text.push_str(name);
    }
    line(out, &text);
    line(out, "");
}

/// `name=( … )`, one option with its value on a line.
fn array(name: &str, items: &[Vec<String>], out: &mut String) {
    let any = |odd: fn(&str) -> bool| items.iter().flatten().any(|word| odd(word));
    let mut doubts = Vec::new();
    if any(|word| word.contains(['$', '`'])) {
        doubts.push("SC2016");
    }
    if any(|word| word.starts_with('~')) {
        doubts.push("SC2088");
    }
    if !doubts.is_empty() {
        let doubts = doubts.join(",");
        line(
            out,
            &format!("# shellcheck disable={doubts}  # nothing is to be expanded here"),
        );
    }
    line(out, &format!("{name}=("));
    for words in items {
        line(out, &format!("    {}", words::join(words)));
    }
    line(out, ")");
}

fn line(out: &mut String, text: &str) {
    // Writing into a string cannot fail.
    let _ = writeln!(out, "{text}");
}
