//! Text → value for each kind of setting. An error continues the sentence "… must be …"; none of these knows where its text is from.

use std::net::IpAddr;

use crate::domain::json;
use crate::domain::topology::whole_number;
use crate::domain::visible::visible;
use crate::input::{hostlist, words};

/// A text as it is.
#[expect(clippy::unnecessary_wraps, reason = "one shape for all parsers")]
pub(super) fn text(value: &str) -> Result<String, String> {
    Ok(value.to_owned())
}

pub(super) fn count(value: &str) -> Result<u32, String> {
    match whole_number(value)? {
        number @ 1..=100_000 => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        _ => Err("must be from 1 to 100000".into()),
    }
}

/// GPUs of a node.
pub(super) fn gpus(value: &str) -> Result<u32, String> {
    match whole_number(value)? {
        number @ 1..=256 => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        _ => Err("must be from 1 to 256".into()),
    }
}

/// Workers of a role. No cluster has more nodes; a slip of the keyboard must not fill the memory with plans.
pub(super) fn workers(value: &str) -> Result<u32, String> {
    match whole_number(value)? {
        number @ 1..=4096 => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        _ => Err("must be from 1 to 4096".into()),
    }
}

pub(super) fn index(value: &str) -> Result<u32, String> {
    match whole_number(value)? {
        number @ 0..=100_000 => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        _ => Err("must be from 0 to 100000".into()),
    }
}

pub(super) fn seconds(value: &str) -> Result<u64, String> {
    match whole_number(value)? {
        number @ 1..=31_536_000 => Ok(number),
        _ => Err("must be a number of seconds from 1 to 31536000 (a year)".into()),
    }
}

/// A time in seconds, a tenth or more where it must pass.
fn time(value: &str, least: f64) -> Result<f64, String> {
    let plain = value
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    match value.parse::<f64>() {
        Ok(seconds) if plain && seconds >= least && seconds <= 31_536_000.0 => Ok(seconds),
        _ => Err(format!(
            "must be a number of seconds from {least} to 31536000 (a year)"
        )),
    }
}

pub(super) fn pause(value: &str) -> Result<f64, String> {
    time(value, 0.0)
}

pub(super) fn interval(value: &str) -> Result<f64, String> {
    time(value, 0.05)
}

pub(super) fn boolean(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("must be true/false, 1/0, yes/no or on/off".into()),
    }
}

pub(super) fn concurrency(value: &str) -> Result<Vec<u64>, String> {
    let levels: Result<Vec<u64>, String> = value
        .split(['x', ','])
        .map(|level| match whole_number(level.trim()) {
            Ok(number @ 1..=10_000_000) => Ok(number),
            _ => Err("must be whole numbers from 1, joined by `x` or commas: `8x16x32`".to_owned()),
        })
        .collect();
    levels
}

pub(super) fn word_list(value: &str) -> Result<Vec<String>, String> {
    words::split(value)
        .map(|found| found.into_iter().map(|(word, _)| word).collect())
        .map_err(|fault| format!("{} ({})", fault.sentence(), fault.help()))
}

pub(super) fn json_object(value: &str) -> Result<String, String> {
    json::check_object(value)
        .map(|()| value.to_owned())
        .map_err(|fault| match fault.help {
            Some(help) => format!("{} ({help})", fault.message),
            None => fault.message,
        })
}

pub(super) fn size_list(value: &str) -> Result<Vec<u64>, String> {
    let inner = value.trim();
    let inner = inner
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(inner);
    inner
        .split(',')
        .map(|size| match whole_number(size.trim()) {
            Ok(number @ 1..=1_000_000) => Ok(number),
            _ => Err("must be a list of whole numbers from 1: `[1,2,4,8]`".to_owned()),
        })
        .collect()
}

/// One address or host name.
pub(super) fn address(value: &str) -> Result<String, String> {
    let value = value.trim();
    let bare = value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(value);
    if bare.parse::<IpAddr>().is_ok() {
        return Ok(bare.to_owned());
    }
    let name = !value.is_empty()
        && value.len() <= 253
        && !value.starts_with(['-', '.'])
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    let numeric = value
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if name && !numeric {
        Ok(value.to_owned())
    } else {
        Err(format!(
            "has `{}`, which is no address and no host name",
            visible(value)
        ))
    }
}

/// A comma list of addresses, or a SLURM host list.
pub(super) fn node_list(value: &str) -> Result<Vec<String>, String> {
    let mut nodes = Vec::new();
    for item in hostlist::split_items(value)? {
        if item.is_empty() {
            return Err("has an empty entry".into());
        }
        match address(item) {
            Ok(node) => nodes.push(node),
            Err(_) if item.contains(['[', ']']) => {
                for host in hostlist::expand(item)? {
                    nodes.push(address(&host)?);
                }
            }
            Err(reason) => return Err(reason),
        }
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_one_by_one() {
        assert_eq!(
            node_list("10.0.0.1, fd00::1 ,[fd00::2],n-1.x").unwrap(),
            ["10.0.0.1", "fd00::1", "fd00::2", "n-1.x"]
        );
        for bad in [
            "srun: job 7 queued\n10.0.0.1,10.0.0.2",
            "10.0.0.1,,10.0.0.2",
            "300.0.0.1",
            "http://a",
            "a b",
            "-x",
        ] {
            assert!(node_list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn concurrency_takes_both_separators_and_nothing_else() {
        assert_eq!(concurrency("8x16,32").unwrap(), [8, 16, 32]);
        assert_eq!(concurrency("8x 64").unwrap(), [8, 64]);
        for bad in ["8X16", "abc", "x", "1e3x8", "8 16", "0", "08"] {
            assert!(concurrency(bad).is_err(), "{bad}");
        }
    }
}
