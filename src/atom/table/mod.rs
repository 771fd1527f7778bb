//! Tables of ATOM's options and variables.
//!
//! The constants are generated from facts about ATOM's source (`scripts/refresh-atom-tables.py`) and cost nothing at
//! start. A [`Table`] is what a line of words is read against: the built-in options, the options as they were on a day,
//! or those that a server's own help text lists.

pub mod environment;
pub mod router;

mod date;
mod env_vars;
mod router_options;
mod server_options;

use std::borrow::Cow;

pub use date::Date;
pub use server_options::{SOURCE_COMMIT, SOURCE_DATE};

/// How an option came by a spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpellingKind {
    /// Written in ATOM's source.
    Declared,
    /// Added by its parser: dashes for underscores or the other way round.
    Twin,
    /// The `--no-` form of a boolean pair.
    Negation,
}

/// One way to write an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spelling {
    /// With its dashes: `--block-size`, `-tp`.
    pub text: Cow<'static, str>,
    /// Where it comes from.
    pub kind: SpellingKind,
    /// First day on main.
    pub since: Date,
}

/// How many values an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arity {
    /// A switch.
    None,
    /// One value or none (`nargs='?'`).
    Optional,
    /// Exactly one value.
    Required,
    /// `--x` and `--no-x`, without a value.
    BooleanPair,
    /// All words up to the next option. ATOM has none today; a help text may list one.
    Many,
}

impl Arity {
    /// Whether a value can follow.
    pub fn takes_value(self) -> bool {
        matches!(self, Self::Optional | Self::Required | Self::Many)
    }
}

/// What a value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// Any text.
    Str,
    /// Python's `int()`.
    Int,
    /// Python's `float()`.
    Float,
    /// No value: the option's presence counts.
    Bool,
    /// One of [`Form::choices`].
    Choice,
    /// Python's `json.loads()`.
    Json,
}

/// What an option accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// How many values.
    pub arity: Arity,
    /// Of which type.
    pub value_type: ValueType,
    /// The accepted values of a choice; empty for all other types.
    pub choices: Cow<'static, [Cow<'static, str>]>,
    /// For [`Arity::Optional`]: what the option means without a value, where that is known.
    pub bare: Option<Cow<'static, str>>,
    /// Default in Python's notation, except `true` and `false`; nothing for `None`.
    pub default: Option<Cow<'static, str>>,
}

impl Form {
    /// Whether a text passes the check of the choices. Everything does where there are none.
    pub fn is_choice(&self, text: &str) -> bool {
        self.choices.is_empty() || self.choices.iter().any(|choice| choice == text)
    }
}

/// What an option accepted in earlier days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierForm {
    /// First day on which the next form held.
    pub until: Date,
    /// The form before that day.
    pub form: Form,
}

/// Which part of the server owns an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// The engine.
    Engine,
    /// The HTTP front.
    Http,
    /// The argument parser itself (`--help`).
    Parser,
    /// Not known: the option was found in a help text only.
    Unknown,
}

/// One option of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionSpec {
    /// Name of the attribute that holds its value, such as `block_size`.
    pub dest: Cow<'static, str>,
    /// All spellings, in the order argparse names them in messages.
    pub spellings: Cow<'static, [Spelling]>,
    /// What it accepts.
    pub form: Form,
    /// What it accepted before, oldest first.
    pub earlier: &'static [EarlierForm],
    /// Owner.
    pub layer: Layer,
    /// Title of its group in the help text; empty for none.
    pub group: &'static str,
    /// What a text holds, such as `json object`; empty when nothing special.
    pub content: &'static str,
    /// First day on main.
    pub since: Date,
}

impl OptionSpec {
    /// The spelling to show people: the first long one.
    pub fn name(&self) -> &str {
        self.spellings
            .iter()
            .map(|spelling| spelling.text.as_ref())
            .find(|text| text.starts_with("--"))
            .or_else(|| {
                self.spellings
                    .first()
                    .map(|spelling| spelling.text.as_ref())
            })
            .unwrap_or(&self.dest)
    }

    /// The name argparse uses in messages: all spellings, joined by slashes.
    pub fn argparse_name(&self) -> String {
        let texts: Vec<&str> = self
            .spellings
            .iter()
            .map(|spelling| spelling.text.as_ref())
            .collect();
        texts.join("/")
    }

    /// Whether this is `--help`, which ends the server at once.
    pub fn is_help(&self) -> bool {
        self.dest == "help" && self.form.arity == Arity::None
    }

    /// First day on which a value was a choice of this option; nothing when it never was, or always.
    pub fn choice_since(&self, value: &str) -> Option<Date> {
        let has = |form: &Form| form.choices.iter().any(|choice| choice == value);
        if !has(&self.form) {
            return None;
        }
        self.earlier
            .iter()
            .rev()
            .find(|earlier| !has(&earlier.form))
            .map(|earlier| earlier.until)
    }

    /// The option as it was on a day: nothing when it, or every spelling of it, is younger.
    fn as_of(&self, date: Date) -> Option<Self> {
        let spellings: Vec<Spelling> = self
            .spellings
            .iter()
            .filter(|spelling| spelling.since <= date)
            .cloned()
            .collect();
        if self.since > date || spellings.is_empty() {
            return None;
        }
        let form = self
            .earlier
            .iter()
            .find(|earlier| date < earlier.until)
            .map_or(&self.form, |earlier| &earlier.form);
        Some(Self {
            spellings: spellings.into(),
            form: form.clone(),
            ..self.clone()
        })
    }
}

/// An option that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovedOption {
    /// How it was written.
    pub spelling: &'static str,
    /// First day on main.
    pub since: Date,
    /// First day without it.
    pub removed: Date,
}

/// A twin that one would expect and that ATOM refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectedTwin {
    /// What is refused.
    pub spelling: &'static str,
    /// What to write.
    pub declared: &'static str,
}

/// An option of images that were built from a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotOnMain {
    /// How it is written.
    pub spelling: &'static str,
    /// Who passes it.
    pub used_by: &'static str,
}

/// Which server a table describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The newest one that the facts know ([`SOURCE_DATE`]).
    Builtin,
    /// Main as of a day.
    AsOf(Date),
    /// The one whose help text was given.
    Help,
}

/// The options of one server, ready to be looked up.
#[derive(Debug, Clone)]
pub struct Table {
    options: Cow<'static, [OptionSpec]>,
    /// Option and spelling of each spelling, sorted by its bytes.
    index: Cow<'static, [(u16, u16)]>,
    origin: Origin,
}

impl Table {
    /// The newest options known.
    pub fn builtin() -> Self {
        Self {
            options: Cow::Borrowed(server_options::OPTIONS),
            index: Cow::Borrowed(server_options::INDEX),
            origin: Origin::Builtin,
        }
    }

    /// The options that main had at the end of a day.
    ///
    /// An image of that day may be older by hours, or come from a branch. The options that were removed in October 2025
    /// are in no table: their arity is not known, and no image has them.
    pub fn as_of(date: Date) -> Self {
        let options = server_options::OPTIONS
            .iter()
            .filter_map(|option| option.as_of(date))
            .collect();
        Self::of(options, Origin::AsOf(date))
    }

    /// A table of options in the order the parser registers them.
    pub(super) fn of(options: Vec<OptionSpec>, origin: Origin) -> Self {
        let mut index: Vec<(u16, u16)> = Vec::new();
        for (number, option) in (0_u16..).zip(&options) {
            index.extend(
                (0_u16..)
                    .zip(option.spellings.iter())
                    .map(|(place, _)| (number, place)),
            );
        }
        let text = |entry: &(u16, u16)| {
            let option = &options[usize::from(entry.0)];
            option.spellings[usize::from(entry.1)].text.as_ref()
        };
        index.sort_by(|a, b| text(a).cmp(text(b)));
        Self {
            options: options.into(),
            index: index.into(),
            origin,
        }
    }

    /// Which server this is.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// All options, in the order the parser registers them.
    pub fn options(&self) -> &[OptionSpec] {
        &self.options
    }

    /// An option by the name of its attribute.
    pub fn by_dest(&self, dest: &str) -> Option<&OptionSpec> {
        self.options.iter().find(|option| option.dest == dest)
    }

    /// An option by one of its spellings, written in full.
    pub fn by_spelling(&self, spelling: &str) -> Option<&OptionSpec> {
        self.exact(spelling).map(|entry| self.option(entry))
    }

    /// All spellings, sorted.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        self.index.iter().map(|entry| self.text(*entry))
    }

    pub(super) fn option(&self, entry: (u16, u16)) -> &OptionSpec {
        &self.options[usize::from(entry.0)]
    }

    pub(super) fn text(&self, entry: (u16, u16)) -> &str {
        &self.option(entry).spellings[usize::from(entry.1)].text
    }

    pub(super) fn exact(&self, spelling: &str) -> Option<(u16, u16)> {
        self.index
            .binary_search_by(|entry| self.text(*entry).cmp(spelling))
            .ok()
            .map(|place| self.index[place])
    }

    /// The spellings that start with a text, sorted.
    pub(super) fn starting_with(&self, prefix: &str) -> &[(u16, u16)] {
        let start = self
            .index
            .partition_point(|entry| self.text(*entry) < prefix);
        let rest = &self.index[start..];
        let count = rest.partition_point(|entry| self.text(*entry).starts_with(prefix));
        &rest[..count]
    }
}

/// When an option that is gone was removed.
pub fn removed_option(spelling: &str) -> Option<&'static RemovedOption> {
    find_sorted(server_options::REMOVED, spelling, |item| item.spelling)
}

/// What to write in place of a twin that ATOM refuses.
pub fn rejected_twin(spelling: &str) -> Option<&'static RejectedTwin> {
    find_sorted(server_options::REJECTED_TWINS, spelling, |item| {
        item.spelling
    })
}

/// Whether only images of a branch have an option.
pub fn not_on_main(spelling: &str) -> Option<&'static NotOnMain> {
    find_sorted(server_options::NOT_ON_MAIN, spelling, |item| item.spelling)
}

fn find_sorted<T>(
    items: &'static [T],
    name: &str,
    key: impl Fn(&'static T) -> &'static str,
) -> Option<&'static T> {
    items
        .binary_search_by(|item| key(item).cmp(name))
        .ok()
        .map(|place| &items[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn the_index_holds_every_spelling_in_order_and_only_once() {
        let table = Table::builtin();
        let spellings: Vec<&str> = table.spellings().collect();
        assert!(spellings.is_sorted_by(|a, b| a < b));
        let count: usize = table.options().iter().map(|o| o.spellings.len()).sum();
        assert_eq!(spellings.len(), count);
        for option in table.options() {
            for spelling in option.spellings.iter() {
                assert_eq!(table.by_spelling(&spelling.text), Some(option));
            }
            assert_eq!(table.by_dest(&option.dest), Some(option));
        }
        assert_eq!(table.by_spelling("--block"), None);
    }

    #[test]
    fn the_small_lists_are_sorted() {
        assert!(server_options::REMOVED.is_sorted_by_key(|item| item.spelling));
        assert!(server_options::REJECTED_TWINS.is_sorted_by_key(|item| item.spelling));
        assert!(server_options::NOT_ON_MAIN.is_sorted_by_key(|item| item.spelling));
        assert_eq!(
            removed_option("--log-file").unwrap().removed,
            date("2025-10-29")
        );
        assert_eq!(
            rejected_twin("--dcp_config").unwrap().declared,
            "--dcp-config"
        );
        assert!(not_on_main("--state-checkpoint-slots").is_some());
        assert!(removed_option("--model").is_none());
    }

    #[test]
    fn a_table_as_of_a_day_has_the_spellings_and_forms_of_that_day() {
        let before = Table::as_of(date("2026-05-12"));
        let caching = before.by_dest("enable_prefix_caching").unwrap();
        assert_eq!(caching.form.arity, Arity::None);
        assert_eq!(caching.form.default.as_deref(), Some("false"));
        assert_eq!(caching.argparse_name(), "--enable_prefix_caching");
        let after = Table::as_of(date("2026-05-13"));
        let caching = after.by_dest("enable_prefix_caching").unwrap();
        assert_eq!(caching.form.arity, Arity::BooleanPair);
        assert_eq!(
            caching.argparse_name(),
            "--enable_prefix_caching/--no-enable_prefix_caching"
        );
        assert_eq!(
            before.by_dest("method").unwrap().form.choices.as_ref(),
            ["mtp", "eagle3"]
        );
        assert_eq!(before.by_spelling("--kv-cache-dtype"), None);
        assert!(before.by_spelling("--kv_cache_dtype").is_some());
        assert_eq!(
            Table::as_of(SOURCE_DATE).options(),
            Table::builtin().options()
        );
        assert!(Table::as_of(date("2025-01-01")).options().is_empty());
    }

    #[test]
    fn a_young_choice_knows_its_day() {
        let table = Table::builtin();
        let method = table.by_dest("method").unwrap();
        assert_eq!(method.choice_since("dspark"), Some(date("2026-07-20")));
        assert_eq!(method.choice_since("eagle3"), Some(date("2026-05-10")));
        assert_eq!(method.choice_since("mtp"), None);
        assert_eq!(method.choice_since("medusa"), None);
    }

    #[test]
    fn options_are_named_as_people_and_as_argparse_name_them() {
        let table = Table::builtin();
        let option = table.by_spelling("-tp").unwrap();
        assert_eq!(option.name(), "--tensor-parallel-size");
        assert_eq!(
            option.argparse_name(),
            "--tensor-parallel-size/-tp/--tensor_parallel_size"
        );
        assert!(table.by_spelling("-h").unwrap().is_help());
    }
}
