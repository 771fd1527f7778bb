//! `sbatch`: options → a plain SLURM job script.

use std::ffi::OsString;

use clap::{Args as _, CommandFactory as _};

use super::job::Job;
use super::print;
use crate::cli::{Cli, JobArgs, LifeArgs, SbatchArgs, SlurmArgs};
use crate::domain::codes::{CONTRADICTION, INVALID_SETTING, TOO_FEW_NODES};
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::environment::Environment;
use crate::domain::secret;
use crate::domain::slurm::{is_gres, is_one_word, is_time_limit};
use crate::domain::words;
use crate::exit;
use crate::input::settings;
use crate::plan::JobPlan;
use crate::render;
use crate::render::sbatch::{Container, Script};

/// Options that are about one rank; the script is for all of them.
const OF_ONE_RANK: [&str; 4] = ["rank", "role", "worker", "host_ip"];

/// `atom-launch sbatch`
pub(super) fn sbatch_command(args: &SbatchArgs, words: &[OsString]) -> anyhow::Result<u8> {
    // Only the options count: a script that meant something else in another shell would be no script to keep.
    let mut job = match Job::read_with(
        &args.job,
        &[],
        Environment::default(),
        Diagnostics::default(),
        "no script was printed",
    ) {
        Ok(job) => job,
        Err(code) => return Ok(code),
    };
    job.only_options = true;
    let given = Given::of(words);
    given.check(args, &mut job);
    let (_, problems) = settings::read_life(&args.life, &job.environment);
    job.findings.extend(problems);
    // It was refused; that it also lacks its rank would be no news.
    job.settings.host_ip = None;
    let (plan, _) = match job.plan() {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    job.check(&args.job, &plan, None);
    let nodes = args.slurm.nodes_count.unwrap_or(plan.ranks);
    if nodes < plan.ranks {
        job.findings.push(
            Diagnostic::error(
                TOO_FEW_NODES,
                Place::Input("--nodes-count".into()),
                format!(
                    "the job has {} ranks, but `--nodes-count` asks for {nodes}",
                    plan.ranks
                ),
            )
            .help("one node a rank; `--layout` puts several workers on one"),
        );
    }
    // The allocation is not there yet, so its addresses are no news.
    job.findings
        .0
        .retain(|finding| finding.code != crate::domain::codes::NO_ADDRESSES);
    if job.refuses() {
        return Ok(exit::USAGE);
    }
    print(&render::sbatch::text(&script(args, &given, &plan, nodes)))
}

fn script<'a>(args: &'a SbatchArgs, given: &Given, plan: &JobPlan, nodes: u32) -> Script<'a> {
    let SlurmArgs {
        job_name,
        partition,
        account,
        time,
        gres,
        sbatch_option,
        ..
    } = &args.slurm;
    let roles = |role| plan.workers.iter().filter(|one| one.role == role).count();
    let prefill = roles(crate::domain::topology::Role::Prefill);
    let decode = roles(crate::domain::topology::Role::Decode);
    let plural = |count: usize, what: &str| render::count(count, what);
    let (shape, short) = if plan.router.is_some() {
        (
            format!(
                "{} and {} of {}, with their router",
                plural(prefill, "prefill worker"),
                plural(decode, "decode worker"),
                plan.model
            ),
            format!("-{prefill}p{decode}d"),
        )
    } else {
        (format!("One server of {}", plan.model), String::new())
    };
    let mut options = vec![format!("--time={}", time.as_deref().unwrap_or("02:00:00"))];
    for (name, value) in [
        ("--partition", partition),
        ("--account", account),
        ("--gres", gres),
    ] {
        options.extend(value.iter().map(|value| format!("{name}={value}")));
    }
    options.extend(sbatch_option.iter().cloned());
    let models = args.job.model_dir.iter().chain(&args.job.model_path);
    let files = args.job.file.models_file.iter();
    let mounts = models
        .chain(files)
        .filter(|path| path.starts_with('/'))
        .chain(&args.slurm.mount);
    Script {
        printed_by: given.line(),
        title: format!("{shape}, on {} of SLURM", plural(nodes as usize, "node")),
        job_name: job_name
            .clone()
            .unwrap_or_else(|| format!("{}{short}", plan.model.replace('/', "-"))),
        nodes,
        ranks: plan.ranks,
        options,
        requeue: args.slurm.requeue,
        job: given.options(&JobArgs::augment_args(clap::Command::new("job")), &[]),
        unset: settings::of_job().collect(),
        life: given.options(
            &LifeArgs::augment_args(clap::Command::new("life")),
            &["log_dir"],
        ),
        log_base: args.life.log_dir.as_deref(),
        workload: &args.workload,
        container: match (&args.slurm.container_image, &args.slurm.docker_image) {
            (Some(image), _) => Container::Pyxis(image),
            (None, Some(image)) => Container::Docker(image),
            (None, None) => Container::None,
        },
        mounts: mounts.cloned().collect(),
    }
}

/// The command line as it was typed, read once more for its words.
struct Given {
    words: Vec<String>,
    matches: Option<clap::ArgMatches>,
}

impl Given {
    fn of(words: &[OsString]) -> Self {
        let matches = Cli::command().try_get_matches_from(words);
        let matches = matches
            .ok()
            .and_then(|all| all.subcommand_matches("sbatch").cloned());
        let text = words.iter().skip(1);
        Self {
            words: text
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            matches,
        }
    }

    /// The line that prints the same script again.
    fn line(&self) -> String {
        let one_line = |word: &String| {
            if word.contains('\n') {
                // It stands in a comment, which ends where the line does.
                let inner = word.replace('\\', r"\\").replace('\'', r"\'");
                format!("$'{}'", inner.replace('\n', r"\n"))
            } else {
                words::quote(word).into_owned()
            }
        };
        let words: Vec<String> = self.words.iter().map(one_line).collect();
        format!("atom-launch {}", words.join(" "))
    }

    fn is_given(&self, id: &str) -> bool {
        self.matches.as_ref().is_some_and(|matches| {
            matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
        })
    }

    /// The given ones among a set of options, each with its value, in the order of the help.
    fn options(&self, set: &clap::Command, except: &[&str]) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        for arg in set.get_arguments() {
            let id = arg.get_id().as_str();
            let (Some(long), Some(matches)) = (arg.get_long(), &self.matches) else {
                continue;
            };
            if except.contains(&id) || !self.is_given(id) {
                continue;
            }
            let option = format!("--{long}");
            if arg.get_action().takes_values() {
                let values = matches.get_raw(id).into_iter().flatten();
                all.extend(values.map(|value| {
                    let value = value.to_string_lossy().into_owned();
                    if value.starts_with('-') {
                        vec![format!("{option}={value}")]
                    } else {
                        vec![option.clone(), value]
                    }
                }));
            } else {
                let times = if id == "verbose" {
                    usize::from(matches.get_count(id))
                } else {
                    1
                };
                all.extend(std::iter::repeat_n(vec![option], times));
            }
        }
        all
    }

    /// What cannot stand in a script for all ranks, on any machine, for anybody to read.
    fn check(&self, args: &SbatchArgs, job: &mut Job) {
        for id in OF_ONE_RANK.into_iter().filter(|id| self.is_given(id)) {
            let option = format!("--{}", id.replace('_', "-"));
            job.findings.push(
                Diagnostic::error(
                    CONTRADICTION,
                    Place::Input(option.clone()),
                    format!("`{option}` is about one rank, and the script is for all of them"),
                )
                .help("leave it out: each task takes its own from SLURM"),
            );
        }
        for pair in &args.job.env {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if secret::is_secret_name(name) || secret::shown(name, value) != value {
                job.findings.push(
                    Diagnostic::error(
                        CONTRADICTION,
                        Place::Input("--env".into()),
                        format!("`--env {name}=…` would put a secret into a file"),
                    )
                    .help("export it in the shell that calls sbatch: the job inherits it"),
                );
            }
        }
        let slurm = &args.slurm;
        let one_word = [
            ("--job-name", &slurm.job_name),
            ("--partition", &slurm.partition),
            ("--account", &slurm.account),
            ("--time", &slurm.time),
            ("--gres", &slurm.gres),
        ];
        let given = one_word
            .into_iter()
            .flat_map(|(name, value)| value.iter().map(move |value| (name, value)));
        for (name, value) in given {
            let what = match name {
                "--time" if !is_time_limit(value) => {
                    "must be MINUTES, HOURS:MINUTES:SECONDS, DAYS-HOURS or another time of sbatch"
                }
                "--gres" if !is_gres(value) => "must be a list such as `gpu:8`",
                // It becomes part of the name of the output's file.
                "--job-name" if value.contains('/') => "must have no slash",
                _ if !is_one_word(value) => "must be one word, without quotes, backslashes and `#`",
                _ => continue,
            };
            job.findings.push(invalid(name, value, what));
        }
        for value in &slurm.sbatch_option {
            if !value.starts_with('-') || value.contains(char::is_control) {
                let what = "must be an option of sbatch such as `--qos=high`";
                job.findings.push(invalid("--sbatch-option", value, what));
            }
        }
        let own = args.job.model_dir.iter().chain(&args.job.model_path);
        let in_container = slurm.container_image.is_some() || slurm.docker_image.is_some();
        let paths = slurm.mount.iter().chain(own.filter(|_| in_container));
        for path in paths.filter(|path| path.contains(['"', '$', '`', '\\', ',', '\n'])) {
            let what =
                "cannot be mounted: it has a character that bash or SLURM would take for its own";
            job.findings.push(invalid("--mount", path, what));
        }
    }
}

fn invalid(option: &str, value: &str, what: &str) -> Diagnostic {
    Diagnostic::error(
        INVALID_SETTING,
        Place::Input(option.to_owned()),
        format!("`{option}` {what}, found `{}`", value.escape_debug()),
    )
}
