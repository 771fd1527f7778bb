//! What is asked: a plain `http://` URL taken apart.

use std::net::{IpAddr, SocketAddr};

use crate::domain::topology::{Port, host_port};

/// An endpoint and the page that says how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Host name or address, IPv6 without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Page with its query.
    pub path: String,
    /// Page that is asked when that one does not exist (404).
    pub fallback: Option<String>,
    /// Whether a refused check is repeated soon: for a process on this machine that starts in moments.
    pub eager: bool,
}

impl Target {
    /// Take a URL apart. Only `http` is spoken: servers and router of a job have no certificates.
    pub fn parse(url: &str) -> Result<Self, String> {
        let bad = |why: &str| format!("`{url}` {why}");
        let rest = url
            .strip_prefix("http://")
            .ok_or_else(|| bad("does not start with http://"))?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(bad("has a user name, which a health check cannot send"));
        }
        let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
            let (host, port) = inner
                .split_once(']')
                .ok_or_else(|| bad("has no closing bracket"))?;
            (host, port.strip_prefix(':'))
        } else {
            match authority.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            }
        };
        let port = match port {
            None => 80,
            Some(text) => text
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| bad("has no valid port"))?,
        };
        if host.is_empty()
            || host.contains(|c: char| c.is_whitespace() || c.is_control() || c == ':')
                && host.parse::<IpAddr>().is_err()
        {
            return Err(bad("has no valid host"));
        }
        if path.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(bad("has blanks or control characters"));
        }
        let path = path.split('#').next().unwrap_or_default();
        Ok(Self {
            host: host.to_owned(),
            port,
            path: if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("/{path}")
            },
            fallback: None,
            eager: false,
        })
    }

    /// With a page that is asked when the first does not exist.
    #[must_use]
    pub fn or(mut self, path: &str) -> Self {
        self.fallback = Some(path.to_owned());
        self
    }

    /// Asked again soon after a refusal, then less and less often, down to the ordinary rhythm.
    #[must_use]
    pub fn eagerly(mut self) -> Self {
        self.eager = true;
        self
    }

    /// The address, when the host is one.
    pub fn literal(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.host.parse().ok()?, self.port))
    }

    /// The request as it goes over the wire.
    pub(in crate::run) fn request(&self, fallback: bool) -> Vec<u8> {
        let path = self
            .fallback
            .as_deref()
            .filter(|_| fallback)
            .unwrap_or(&self.path);
        let host = host_port(&self.host, Port::new(self.port));
        let agent = concat!("atom-launch/", env!("CARGO_PKG_VERSION"));
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\nAccept: */*\r\nConnection: close\r\n\r\n")
            .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_all_forms_are_taken_apart() {
        let parts = |url: &str| {
            let target = Target::parse(url).unwrap();
            (target.host, target.port, target.path)
        };
        assert_eq!(
            parts("http://n1:8010/health"),
            ("n1".into(), 8010, "/health".into())
        );
        assert_eq!(
            parts("http://[fd00::1]:80"),
            ("fd00::1".into(), 80, "/".into())
        );
        assert_eq!(parts("http://[::1]/x"), ("::1".into(), 80, "/x".into()));
        assert_eq!(
            parts("http://10.0.0.1?a=b"),
            ("10.0.0.1".into(), 80, "/?a=b".into())
        );
    }

    #[test]
    fn what_is_no_plain_url_is_refused() {
        for bad in [
            "https://n1/",
            "n1:80",
            "http://",
            "http://:80/",
            "http://n1:0/",
            "http://n1:x/",
            "http://[::1/",
            "http://u:p@n1/",
            "http://n1/a b",
            "http://n1/\r\nX: y",
            "http://fd00::1:80/x y",
            "http://n 1/",
        ] {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_request_names_an_ipv6_host_in_brackets() {
        let target = Target::parse("http://[::1]:8000/readiness")
            .unwrap()
            .or("/v1/models");
        let text = String::from_utf8(target.request(false)).unwrap();
        assert!(text.starts_with("GET /readiness HTTP/1.1\r\nHost: [::1]:8000\r\n"));
        assert!(target.request(true).starts_with(b"GET /v1/models "));
    }
}
