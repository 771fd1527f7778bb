//! What looks at models files.

#![expect(
    rustdoc::broken_intra_doc_links,
    reason = "in help texts, brackets name the variable that stands behind an option"
)]

use clap::{Args, ValueEnum};

use super::job::ModelsFileArgs;
use super::show::TextFormat;

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CheckFormat {
    /// With the source underlined.
    #[default]
    Text,
    /// JSON.
    Json,
    /// Annotations of a pull request on GitHub.
    Github,
}

/// `atom-launch check [FILE…]`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Models files (`-` reads standard input); without one, the file that a launch would read.
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,
    /// Form of the findings.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub format: CheckFormat,
    /// Do not report this kind of finding; may be repeated.
    #[arg(long, value_name = "CODE")]
    pub allow: Vec<String>,
    /// Make warnings of this kind errors; may be repeated.
    #[arg(long, value_name = "CODE")]
    pub deny: Vec<String>,
    /// Check against the output of `python3 -m atom.entrypoints.openai_server --help` of an image (`-` reads standard input).
    #[arg(long, value_name = "FILE")]
    pub server_help: Option<String>,
    /// Check against ATOM's main branch as of a day, YYYY-MM-DD (UTC), such as an image's date.
    #[arg(long, value_name = "DATE", conflicts_with = "server_help")]
    pub atom_date: Option<String>,
    /// Say on stderr what was read [ATOM_LAUNCH_LOG].
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Explain a kind of finding, or list them all.
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "all", conflicts_with_all = ["files", "server_help", "atom_date"])]
    pub explain: Option<String>,
}

/// `atom-launch models`
#[derive(Debug, Args)]
pub struct ModelsArgs {
    /// Which file.
    #[command(flatten)]
    pub file: ModelsFileArgs,
    /// Form of the list.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub format: TextFormat,
}

/// Form of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DiffFormat {
    /// For a terminal.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For a comment on a pull request.
    Markdown,
}

/// `atom-launch diff OLD NEW`
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The file before (`-` reads standard input).
    #[arg(value_name = "OLD")]
    pub old: String,
    /// The file after (`-` reads standard input).
    #[arg(value_name = "NEW")]
    pub new: String,
    /// Form of the diff.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub format: DiffFormat,
    /// Exit with 1 when anything changes.
    #[arg(long)]
    pub exit_code: bool,
}
