//! Text → value for each kind of setting. An error continues the sentence "… must be …"; none of these knows where its text is from.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::domain::json;
use crate::domain::topology::whole_number;
use crate::domain::visible::visible;
use crate::input::{hostlist, words};

/// A text as it is. Blanks alone name nothing; in a job script they come from a variable that is not set.
pub(super) fn text(value: &str) -> Result<String, String> {
    if value.trim().is_empty() {
        return Err("is empty".into());
    }
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
    let whole = value.split('.').next().unwrap_or_default();
    if plain && whole.len() > 1 && whole.starts_with('0') {
        whole_number(whole)?;
    }
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

/// A time that must pass, in seconds.
pub fn interval(value: &str) -> Result<f64, String> {
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

/// Words as a shell splits them; none at all where a script joins variables that are all empty.
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

const OF_ONE_LINK: &str =
    "an address of one link, which no URL can carry: give one that other machines can use";

/// Why an address is none at which others could reach a machine.
fn unusable(ip: IpAddr) -> Option<&'static str> {
    match ip {
        _ if ip.is_unspecified() => {
            Some("which stands for all addresses of a machine, and is none")
        }
        IpAddr::V6(ip) if ip.is_unicast_link_local() => Some(OF_ONE_LINK),
        _ => None,
    }
}

/// One address or host name.
pub(super) fn address(value: &str) -> Result<String, String> {
    let value = value.trim();
    let bare = value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(value);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        // One spelling of each, so that an address that is there twice is seen.
        let ip = ip.to_canonical();
        return match unusable(ip) {
            Some(why) => Err(format!("has `{}`, {why}", visible(value))),
            None => Ok(ip.to_string()),
        };
    }
    if let Some((ip, _)) = bare.split_once('%')
        && ip.parse::<Ipv6Addr>().is_ok()
    {
        return Err(format!("has `{}`, {OF_ONE_LINK}", visible(value)));
    }
    if value.parse::<SocketAddr>().is_ok() {
        return Err(format!(
            "has `{}`, an address with a port: give the address alone",
            visible(value)
        ));
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
            Err(_) if item.contains(['[', ']']) && !item.contains(':') => {
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
            node_list("10.0.0.1, FD00:0::1 ,[fd00::2],n-1.x,::ffff:10.0.0.2").unwrap(),
            ["10.0.0.1", "fd00::1", "fd00::2", "n-1.x", "10.0.0.2"]
        );
        for bad in [
            "srun: job 7 queued\n10.0.0.1,10.0.0.2",
            "10.0.0.1,,10.0.0.2",
            "300.0.0.1",
            "http://a",
            "a b",
            "-x",
            "10.0.0.1:80",
            "[::1]:80",
            "fe80::1",
            "fe80::1%eth0",
            "[fe80::1%1]",
            "::",
            "0.0.0.0",
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
