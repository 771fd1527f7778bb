//! Examples at the end of each subcommand's help and manual page.

pub(super) const NODE: &str = "Examples:
  atom-launch node -- ./bench.sh                          a rank of the job whose variables are exported
  atom-launch node --dry-run                              what this rank would run
  srun --kill-on-bad-exit=1 atom-launch node --model DeepSeek-V4-Pro --model-dir /models \\
      --prefill-workers 1 --decode-workers 1 --smoke -- ./bench.sh      one rank on each node of a SLURM job";

pub(super) const PLAN: &str = "Examples:
  atom-launch plan --model DeepSeek-V4-Pro --model-dir /models --prefill-workers 1 --decode-workers 2
  atom-launch plan --env-file job.sh --rank 2             one rank of the job that a script describes
  atom-launch plan --env-file job.sh --format shell       its commands for bash";

pub(super) const EXPLAIN: &str = "Examples:
  atom-launch explain --model DeepSeek-V4-Pro             every argument and variable of the server
  atom-launch explain --model DeepSeek-V4-Pro --block-size    one argument
  atom-launch explain --model DeepSeek-V4-Pro --block-size 64 --format json";

pub(super) const CHECK: &str = "Examples:
  atom-launch check models_atom.yaml
  atom-launch check --format github --deny tbo-on-decode models_atom.yaml    for a workflow
  atom-launch check --explain tbo-on-decode               what a kind of finding means
  atom-launch check --explain                             all kinds";

pub(super) const MODELS: &str = "Examples:
  atom-launch models                                      those of the file that a launch would read
  atom-launch models --models-file models_atom.yaml --format json";

pub(super) const DIFF: &str = "Examples:
  atom-launch diff old.yaml models_atom.yaml
  git show main:models_atom.yaml | atom-launch diff - models_atom.yaml
  atom-launch diff --exit-code old.yaml models_atom.yaml  exit 1 when a command changes";

pub(super) const WAIT: &str = "Examples:
  atom-launch wait http://10.0.0.2:8010/health http://10.0.0.3:8020/health
  atom-launch wait http://127.0.0.1:8000/health --timeout 600 && ./bench.sh";

pub(super) const REPORT: &str = "Examples:
  atom-launch report /run_logs/slurm_job-4711             who did what, and who failed first
  atom-launch report --format html logs > report.html     the same with the timeline drawn
  atom-launch report --exit-code logs                     at the end of a job script";

pub(super) const SBATCH: &str = "Examples:
  atom-launch sbatch --model DeepSeek-V4-Pro --model-dir /models --mode ep-dp \\
      --prefill-workers 1 --decode-workers 1 --time 02:00:00 -- ./bench.sh > job.sbatch
  atom-launch sbatch --model DeepSeek-V4-Pro --model-dir /models \\
      --container-image rocm/atom:latest -- ./bench.sh > job.sbatch
  atom-launch sbatch --model DeepSeek-V4-Pro --model-dir /models \\
      --gres gpu:8 --sbatch-option=--qos=high -- ./bench.sh > job.sbatch";

pub(super) const REHEARSE: &str = "Examples:
  atom-launch rehearse --model DeepSeek-V4-Pro            one prefill and one decode worker
  atom-launch rehearse --env-file job.sh -- ./bench.sh    the job of a script with its own workload
  atom-launch rehearse --model DeepSeek-V4-Pro --fault 'rank=1 kind=crash:3 at=1s'
  atom-launch rehearse --model DeepSeek-V4-Pro --keep     and look at the logs";

pub(super) const SCHEMA: &str = "Examples:
  atom-launch schema > models_atom.schema.json            for an editor";

pub(super) const COMPLETIONS: &str = "Examples:
  source <(atom-launch completions bash)                  in this shell
  atom-launch completions fish > ~/.config/fish/completions/atom-launch.fish";

pub(super) const MAN: &str = "Examples:
  atom-launch man | man -l -                              the program's page
  atom-launch man sbatch | man -l -                       that of a subcommand";

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use clap::CommandFactory as _;
    use std::ffi::OsString;

    /// The words of a program in a line as a shell has it, up to what stands behind a pipe or a redirection.
    fn words(line: &str) -> Vec<OsString> {
        let start = line.find("atom-launch ").unwrap();
        // Two blanks separate the explanation.
        let line = line[start..].split("  ").next().unwrap();
        let line = line.trim_end_matches(')');
        let words = shell_words::split(line).unwrap().into_iter();
        words
            .take_while(|word| !["|", ">", "&&"].contains(&word.as_str()) && !word.ends_with(')'))
            .map(OsString::from)
            .collect()
    }

    #[test]
    fn every_subcommand_has_examples_that_can_be_typed() {
        for command in Cli::command().get_subcommands() {
            let text = command.get_after_help().unwrap().to_string();
            let text = text.replace("\\\n      ", "");
            let mut lines = text.lines();
            assert_eq!(lines.next(), Some("Examples:"));
            let lines: Vec<&str> = lines.collect();
            assert!((1..=4).contains(&lines.len()), "{text}");
            for line in lines {
                let words = words(line);
                assert_eq!(words[1], command.get_name(), "{line}");
                if let Err(error) = Cli::read(&words) {
                    panic!("{line}: {error}");
                }
            }
        }
    }
}
