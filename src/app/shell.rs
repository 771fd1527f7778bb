//! Help for shells: `completions` and `man`.

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::exit;
use crate::input;
use crate::render;

/// `atom-launch completions SHELL`
pub(super) fn completions_command(args: &CompletionsArgs) -> anyhow::Result<u8> {
    let mut command = Cli::command();
    // A models file that cannot be read takes nothing from the rest.
    let names: Vec<String> = input::models(args.file.models_file.as_deref(), &input::environment())
        .map(|loaded| loaded.models.names().map(str::to_owned).collect())
        .unwrap_or_default();
    command = with_models(command, &names);
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "atom-launch", &mut script);
    let script = mended(args.shell, script);
    render::to_stdout(&script)?;
    Ok(exit::OK)
}

/// Put right what clap_complete 4.6 gets wrong for a program like ours.
///
/// Bash: with a dash in the program's name, the parts of a subcommand have two names, so that none is found. Fish: behind an option
/// that still lacks its value no subcommand is recognised as missing, so that files are offered instead of the option's values.
fn mended(shell: clap_complete::Shell, script: Vec<u8>) -> Vec<u8> {
    const FISH: &str = "argparse -s (__fish_atom_launch_global_optspecs) -- $cmd 2>/dev/null\n";
    match String::from_utf8(script) {
        Ok(text) if shell == clap_complete::Shell::Bash => text
            .replace("atom__subcmd__launch", "atom__launch")
            .into_bytes(),
        Ok(text) if shell == clap_complete::Shell::Fish => text
            .replace(
                FISH,
                &format!("{FISH}    or argparse -s (__fish_atom_launch_global_optspecs) -- $cmd[1..-2] 2>/dev/null\n"),
            )
            .into_bytes(),
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

/// `--model` with the known names as its values, here and in every subcommand.
fn with_models(command: clap::Command, names: &[String]) -> clap::Command {
    let has_model = command.get_arguments().any(|arg| arg.get_id() == "model");
    let command = if has_model && !names.is_empty() {
        let values = clap::builder::PossibleValuesParser::new(names.to_vec());
        command.mut_arg("model", |arg| arg.value_parser(values))
    } else {
        command
    };
    command.mut_subcommands(|subcommand| with_models(subcommand, names))
}

/// `atom-launch man`
pub(super) fn man_command(args: &ManArgs) -> anyhow::Result<u8> {
    let mut command = Cli::command();
    command.build();
    let page = match &args.subcommand {
        None => command,
        Some(name) => {
            let Some(found) = command.find_subcommand(name) else {
                let known: Vec<&str> = command
                    .get_subcommands()
                    .map(clap::Command::get_name)
                    .collect();
                render::to_stderr(&format!(
                    "error: no subcommand `{}`; there are {}\n",
                    name.escape_debug(),
                    known.join(", ")
                ));
                return Ok(exit::USAGE);
            };
            found.clone()
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut text)
        .context("cannot render the manual page")?;
    render::to_stdout(&text)?;
    Ok(exit::OK)
}
