//! The command that will run: argument groups and variables, each with its origin.

use super::provenance::{Shadowed, Source};
use super::source::Span;

/// A flag with its values, or any words that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgGroup {
    /// The words as the program receives them; never empty.
    pub words: Vec<String>,
    /// Where each word stands in the models file; shorter than `words` where they come from elsewhere.
    pub spans: Vec<Span>,
    /// Where they come from.
    pub source: Source,
    /// What they displaced.
    pub shadowed: Vec<Shadowed>,
}

/// A variable of the child's environment that the launcher sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvVar {
    /// Name.
    pub name: String,
    /// Value as the child receives it.
    pub value: String,
    /// Where it comes from.
    pub source: Source,
    /// What it displaced (an inherited value included).
    pub shadowed: Vec<Shadowed>,
}

/// One command: program, arguments in order, variables on top of what is inherited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Program, looked up on PATH when it holds no slash.
    pub program: String,
    /// Arguments in order.
    pub args: Vec<ArgGroup>,
    /// Variables the launcher sets, sorted by name.
    pub env: Vec<EnvVar>,
}

impl ArgGroup {
    /// Words that belong together, none of them from the models file.
    pub fn new(words: Vec<String>, source: Source) -> Self {
        Self {
            words,
            spans: Vec::new(),
            source,
            shadowed: Vec::new(),
        }
    }

    /// The same with what it displaced.
    #[must_use]
    pub fn instead_of(mut self, shadowed: Vec<Shadowed>) -> Self {
        self.shadowed = shadowed;
        self
    }
}

impl Command {
    /// All words: program first.
    pub fn argv(&self) -> Vec<&str> {
        std::iter::once(self.program.as_str())
            .chain(self.words())
            .collect()
    }

    /// All words after the program.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.args
            .iter()
            .flat_map(|group| group.words.iter().map(String::as_str))
    }
}

/// Whether two spellings are the same option (`-` and `_` are one to the server's parser).
pub fn same_option(word: &str, option: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    name.len() == option.len()
        && name
            .bytes()
            .zip(option.bytes())
            .enumerate()
            .all(|(at, (a, b))| a == b || (at >= 2 && matches!((a, b), (b'-' | b'_', b'-' | b'_'))))
}

/// Value of the last occurrence of an option among groups; the inner `None` is an option without a value.
pub fn last_value<'a>(groups: &'a [ArgGroup], option: &str) -> Option<Option<&'a str>> {
    let group = groups
        .iter()
        .rev()
        .find(|group| same_option(&group.words[0], option))?;
    Some(match group.words[0].split_once('=') {
        Some((_, value)) => Some(value),
        None => group.words.get(1).map(String::as_str),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dash_and_underscore_are_one_option() {
        assert!(same_option(
            "--enable_dp-attention",
            "--enable-dp-attention"
        ));
        assert!(same_option(
            "--enable-dp-attention=1",
            "--enable-dp-attention"
        ));
        assert!(!same_option(
            "--enable-dp-attentions",
            "--enable-dp-attention"
        ));
        assert!(!same_option(
            "_-enable-dp-attention",
            "--enable-dp-attention"
        ));
    }
}
