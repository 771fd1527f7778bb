//! Rank, role, mode and size of a job.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// Most nodes that a job can have: what SLURM takes in one list.
pub const MAX_NODES: usize = 64 * 1024;

/// What a worker does in a job (DESIGN word: role).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// KV producer.
    Prefill,
    /// KV consumer.
    Decode,
    /// No KV transfer.
    Standalone,
}

impl Role {
    /// All roles in the order of tables.
    pub const ALL: [Role; 3] = [Role::Prefill, Role::Decode, Role::Standalone];

    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Role::Prefill => "prefill",
            Role::Decode => "decode",
            Role::Standalone => "standalone",
        }
    }

    /// The option that gives this role a setting: `--prefill-tp`; a standalone worker has the plain `--tp`.
    pub fn option(self, setting: &str) -> String {
        match self {
            Role::Prefill | Role::Decode => format!("--{self}-{setting}"),
            Role::Standalone => format!("--{setting}"),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Parallel mode.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Tensor parallel.
    Tp,
    /// Tensor parallel with data-parallel attention.
    TpDp,
    /// Expert parallel with data-parallel attention.
    EpDp,
}

impl Mode {
    /// All modes in the order of tables.
    pub const ALL: [Mode; 3] = [Mode::Tp, Mode::TpDp, Mode::EpDp];

    /// Name as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Tp => "tp",
            Mode::TpDp => "tp-dp",
            Mode::EpDp => "ep-dp",
        }
    }

    /// Whether attention is data parallel.
    pub fn dp_attention(self) -> bool {
        self != Mode::Tp
    }

    /// Whether experts are sharded over ranks.
    pub fn expert_parallel(self) -> bool {
        self == Mode::EpDp
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A TCP port, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Port(u16);

impl Port {
    /// A port from a number known to be right; 0 becomes 1.
    pub const fn new(number: u16) -> Self {
        Self(if number == 0 { 1 } else { number })
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match whole_number(text)? {
            number @ 1..=65535 => Ok(Self(u16::try_from(number).unwrap_or(u16::MAX))),
            _ => Err("must be a port from 1 to 65535".into()),
        }
    }
}

/// A decimal whole number without sign, leading zero or separators.
pub fn whole_number(text: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("must be a whole decimal number".into());
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err("must not start with 0 (some readers take that for an octal number)".into());
    }
    text.parse()
        .map_err(|_| "is too large for a number".to_owned())
}

/// An address with a port as it stands in a URL: IPv6 in brackets.
pub fn host_port(host: &str, port: Port) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// All addresses of a machine, of the kind that a host's address is: what listens at all of one kind is not reached by the other.
pub fn all_addresses(host: &str) -> &'static str {
    if host.parse::<Ipv6Addr>().is_ok() {
        "::"
    } else {
        "0.0.0.0"
    }
}

/// `http://host:port`.
pub fn http_url(host: &str, port: Port) -> String {
    format!("http://{}", host_port(host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_checked_by_range_and_spelling() {
        assert_eq!("8010".parse(), Ok(Port::new(8010)));
        for bad in ["0", "70000", "80a", "", "-1", "080", "8 0"] {
            assert!(bad.parse::<Port>().is_err(), "{bad}");
        }
    }

    #[test]
    fn all_addresses_are_of_one_kind() {
        assert_eq!(all_addresses("::1"), "::");
        assert_eq!(all_addresses("10.0.0.1"), "0.0.0.0");
        assert_eq!(all_addresses("node"), "0.0.0.0");
    }

    #[test]
    fn ipv6_stands_in_brackets() {
        assert_eq!(host_port("fd00::1", Port::new(80)), "[fd00::1]:80");
        assert_eq!(host_port("n1", Port::new(80)), "n1:80");
    }
}
