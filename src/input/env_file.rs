//! A job's variables from a file: `NAME=VALUE` and `export NAME=VALUE` lines, as in a job script or an env file.

use super::models_file::is_variable_name;
use super::words;
use crate::domain::codes::ENV_FILE;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::environment::Environment;
use crate::domain::visible::visible;

/// Lay a file's variables over the environment. Lines that assign nothing (commands, `#SBATCH`) are passed over.
pub fn overlay(name: &str, text: &str, environment: &mut Environment, found: &mut Diagnostics) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let mut line = line.trim().to_owned();
        while let Some(begun) = line.strip_suffix('\\') {
            let more = lines.next().map_or("", |(_, more)| more.trim());
            line = format!("{begun}{more}");
        }
        let assignments = line.strip_prefix("export ").unwrap_or(&line).trim_start();
        let first = assignments.split('=').next().unwrap_or_default();
        if !assignments.contains('=') || !is_variable_name(first) {
            continue;
        }
        let place = format!("{name}:{}", number + 1);
        match words::split(without_comment(assignments)) {
            Ok(found_words) => {
                for (word, range) in found_words {
                    let raw = &assignments[range];
                    assign(&word, raw, &place, environment, found);
                }
            }
            Err(fault) => {
                let message = format!("{place}: `{}` {}", visible(&line), fault.sentence());
                found.push(Diagnostic::error(
                    ENV_FILE,
                    Place::Input(name.to_owned()),
                    message,
                ));
            }
        }
    }
}

/// Cut a comment that stands behind blanks and outside quotes, as a shell would.
fn without_comment(line: &str) -> &str {
    match words::split(line) {
        Err(words::WordFault::Comment { at }) => &line[..at],
        _ => line,
    }
}

fn assign(
    word: &str,
    raw: &str,
    place: &str,
    environment: &mut Environment,
    found: &mut Diagnostics,
) {
    let Some((name, value)) = word
        .split_once('=')
        .filter(|(name, _)| is_variable_name(name))
    else {
        return;
    };
    // In single quotes a `$` is itself; elsewhere a shell would put something in its place, and we cannot.
    let literal = raw
        .split_once('=')
        .is_some_and(|(_, value)| value.starts_with('\''));
    if value.contains(['$', '`']) && !literal {
        let shown = crate::domain::secret::shown(name, value);
        found.push(
            Diagnostic::warning(
                ENV_FILE,
                Place::Input(name.to_owned()),
                format!(
                    "{place}: {name} is taken as `{}`, without what a shell would put in",
                    visible(&shown)
                ),
            )
            .help("set it in the environment of this command where it matters"),
        );
    }
    environment.insert(name, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read_and_commands_passed_over() {
        let text = "#!/bin/bash\n#SBATCH -N 2\nexport xP=1 yD='2' # workers\nIPADDRS=\"a,b\"\nsrun foo --x=1\nMODEL_DIR=$HOME/m\n\
                    if [ \"$x\" = 1 ]; then\nexport LONG=a\\\nb\n";
        let mut environment = Environment::default();
        let mut found = Diagnostics::default();
        overlay("job.sh", text, &mut environment, &mut found);
        let get = |name: &str| environment.get(name).unwrap_or_default().to_owned();
        assert_eq!(
            [get("xP"), get("yD"), get("IPADDRS"), get("LONG")],
            ["1", "2", "a,b", "ab"]
        );
        assert_eq!(get("MODEL_DIR"), "$HOME/m");
        assert_eq!(found.0.len(), 1);
        assert!(found.0[0].message.contains("job.sh:6"));
    }

    #[test]
    fn an_open_quote_is_an_error_with_its_line() {
        let mut found = Diagnostics::default();
        overlay("e", "A=1\nB='x\n", &mut Environment::default(), &mut found);
        assert!(found.0[0].message.starts_with("e:2:"), "{found:?}");
    }
}
