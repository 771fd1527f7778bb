//! SLURM's compact node lists, `a[01-03,7],b`, expanded without `scontrol`.

use crate::domain::topology::MAX_NODES;

/// Expand a list. The error continues a sentence that names it.
///
/// ```
/// use atom_launch::input::hostlist::expand;
///
/// assert_eq!(expand("n[08-10],login").unwrap(), ["n08", "n09", "n10", "login"]);
/// assert_eq!(expand("n[3-1]").unwrap_err(), "has the range `3-1`, which runs backwards");
/// ```
pub fn expand(list: &str) -> Result<Vec<String>, String> {
    let mut hosts = Vec::new();
    for item in split_items(list)? {
        if item.is_empty() {
            return Err("has an empty entry".into());
        }
        expand_item(item, &mut hosts)?;
    }
    Ok(hosts)
}

/// Split at commas outside brackets.
pub(super) fn split_items(list: &str) -> Result<Vec<&str>, String> {
    let mut items = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    for (at, c) in list.char_indices() {
        match c {
            '[' if depth > 0 => return Err("has a bracket inside a bracket".into()),
            '[' => depth = 1,
            ']' if depth == 0 => return Err("has a `]` without `[`".into()),
            ']' => depth = 0,
            ',' if depth == 0 => {
                items.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("has a `[` that is never closed".into());
    }
    items.push(list[start..].trim());
    Ok(items)
}

/// Expand `prefix[ranges]suffix…`; several brackets multiply, the first varies slowest.
fn expand_item(item: &str, hosts: &mut Vec<String>) -> Result<(), String> {
    let mut names = vec![String::new()];
    let mut rest = item;
    while let Some(open) = rest.find('[') {
        let close = rest.find(']').unwrap_or(rest.len());
        let numbers = expand_ranges(&rest[open + 1..close])?;
        let literal = &rest[..open];
        if names.len().saturating_mul(numbers.len()) + hosts.len() > MAX_NODES {
            return Err(format!("names more than {MAX_NODES} hosts"));
        }
        names = names
            .iter()
            .flat_map(|name| {
                numbers
                    .iter()
                    .map(move |number| format!("{name}{literal}{number}"))
            })
            .collect();
        rest = rest.get(close + 1..).unwrap_or_default();
    }
    for name in names {
        hosts.push(name + rest);
    }
    Ok(())
}

/// `01-03,7` → `01 02 03 7`; leading zeros give the width.
fn expand_ranges(text: &str) -> Result<Vec<String>, String> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let parse = |text: &str| {
            let digits =
                !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
            let number = digits.then(|| text.parse::<usize>().ok()).flatten();
            number.ok_or_else(|| format!("has `{part}` in brackets, which is no range of numbers"))
        };
        let (low, high) = (parse(first)?, parse(last)?);
        if low > high {
            return Err(format!("has the range `{part}`, which runs backwards"));
        }
        if high - low >= MAX_NODES {
            return Err(format!("names more than {MAX_NODES} hosts"));
        }
        let width = first.len();
        numbers.extend((low..=high).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_expand_as_scontrol_does() {
        let good = [
            ("a[01-03,7],b", "a01 a02 a03 a7 b"),
            ("node[1-2]", "node1 node2"),
            ("mi[001,003-004],gpu7", "mi001 mi003 mi004 gpu7"),
            (
                "r[1-2]n[08-10]-ib",
                "r1n08-ib r1n09-ib r1n10-ib r2n08-ib r2n09-ib r2n10-ib",
            ),
            ("n[9-11]", "n9 n10 n11"),
            ("single", "single"),
        ];
        for (list, expected) in good {
            assert_eq!(expand(list).unwrap().join(" "), expected);
        }
    }

    #[test]
    fn broken_lists_are_named() {
        for (list, part) in [
            ("node[01-", "never closed"),
            ("node]", "without `[`"),
            ("n[[1]]", "inside"),
            ("n[a-b]", "no range"),
            ("n[3-1]", "backwards"),
            ("a,,b", "empty entry"),
            ("n[1-999999999]", "more than"),
            ("n[1-60000][1-60000]", "more than"),
            ("n[]", "no range"),
        ] {
            let error = expand(list).unwrap_err();
            assert!(error.contains(part), "{list}: {error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(list in "[a-c0-3\\[\\],-]{0,20}") {
            let _ = expand(&list);
        }
    }
}
