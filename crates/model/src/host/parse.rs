//! Parses the text of a host's address.

use std::net::IpAddr;
use std::str::FromStr;

use super::{
    CommandLine, HostAddress, HostAddressError, Location, Problem, SshHost, UnclosedQuote,
    split_words,
};

/// The words that places begin with, and what people write instead of each.
const KINDS: &[(&str, &[&str])] = &[
    (
        "local",
        &["localhost", "here", "self", "lo", "loca", "locale"],
    ),
    ("netns:", &["ns", "netn", "nets", "net", "namespace"]),
    ("ssh:", &["shh", "ssh2", "sh"]),
    ("exec:", &["cmd", "command", "run", "exe"]),
];

impl HostAddress {
    /// Parses as [`str::parse`] does; an IPv6 address behind the `=` may also be link-local with its device:
    /// `local=fe80::1%eth0`.
    ///
    /// # Errors
    /// Those of [`str::parse`]; a link-local address without a device, or any other address with one.
    pub fn with_device(text: &str) -> Result<Self, HostAddressError> {
        let Some((host, address)) = text.rsplit_once('=') else {
            return text.parse();
        };
        let Some((address, device)) = address.split_once('%') else {
            return text.parse();
        };
        let at = host.chars().count() + 2;
        let Some(address) = ip(address) else {
            return text.parse();
        };
        // IFNAMSIZ, and the characters that no device name has (net/core/dev.c, `dev_valid_name`).
        let wrong = |c: char| c == '/' || c == ':' || c.is_whitespace();
        let is_named = (1..16).contains(&device.len()) && !device.contains(wrong);
        let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        if !is_link_local || !is_named {
            return Err(HostAddressError {
                at,
                problem: Problem::Device(format!("{address}%{device}")),
            });
        }
        Ok(Self {
            data: Some(address),
            device: Some(device.to_owned()),
            ..host.parse::<Self>()?
        })
    }
}

/// A parsed value, or a problem with the byte of the text at which it is.
type Found<T> = Result<T, (usize, Problem)>;

impl FromStr for HostAddress {
    type Err = HostAddressError;

    fn from_str(text: &str) -> Result<Self, HostAddressError> {
        parse(text).map_err(|(byte, problem)| HostAddressError {
            at: text[..byte].chars().count() + 1,
            problem,
        })
    }
}

fn parse(text: &str) -> Found<HostAddress> {
    if text.trim().is_empty() {
        return Err((0, Problem::Empty));
    }
    if let Some(command) = text.strip_prefix("exec:") {
        return exec(command, "exec:".len());
    }
    let (place, data) = match text.split_once('=') {
        None => (text, None),
        Some((place, address)) => (place, Some(own_address(address, place.len() + 1)?)),
    };
    let place = if let Some(name) = place.strip_prefix("netns:") {
        netns(name, "netns:".len())?
    } else if let Some(host) = place.strip_prefix("ssh:") {
        Location::Ssh(ssh(host, "ssh:".len())?)
    } else if place == "local" {
        Location::Local
    } else {
        return Err(unknown(place));
    };
    Ok(HostAddress {
        place,
        data,
        device: None,
    })
}

fn unknown(place: &str) -> (usize, Problem) {
    if place.starts_with("local:") {
        return ("local".len(), Problem::LocalTakesNothing);
    }
    if place.parse::<IpAddr>().is_ok() {
        return (0, Problem::NoPlace);
    }
    let found = match place.split_once(':') {
        Some((kind, _)) => format!("{kind}:"),
        None => place.to_owned(),
    };
    let bare = found.trim_end_matches(':').to_ascii_lowercase();
    let meant = KINDS
        .iter()
        .find(|(kind, others)| {
            kind.trim_end_matches(':') == bare || others.contains(&bare.as_str())
        })
        .map(|(kind, _)| *kind);
    (0, Problem::UnknownPlace { found, meant })
}

/// Parses the address behind the `=`, which begins at byte `at` of the whole text.
fn own_address(text: &str, at: usize) -> Found<IpAddr> {
    let Some(address) = ip(text) else {
        return Err((at, Problem::NoAddress(text.to_owned())));
    };
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let nobodys = address.is_unspecified()
        || address.is_multicast()
        || matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    if nobodys {
        Err((at, Problem::NotAHosts(address)))
    } else if link_local {
        Err((at, Problem::LinkLocal(address)))
    } else {
        Ok(address)
    }
}

/// Parses an IP address, IPv6 with or without brackets. An IPv4-mapped IPv6 address becomes the IPv4 address.
fn ip(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address = match bare {
        Some(inside) => IpAddr::V6(inside.parse().ok()?),
        None => text.parse().ok()?,
    };
    Some(address.to_canonical())
}

fn netns(name: &str, at: usize) -> Found<Location> {
    if name.is_empty() {
        return Err((at, Problem::NoNetnsName));
    }
    // ip-netns(8) keeps namespaces as files of one directory.
    let wrong = |c: char| c == '/' || c.is_whitespace() || c.is_control();
    if name == "." || name == ".." {
        return Err((at, Problem::NetnsName));
    }
    match name.find(wrong) {
        Some(byte) => Err((at + byte, Problem::NetnsName)),
        None => Ok(Location::Netns(name.to_owned())),
    }
}

fn ssh(text: &str, at: usize) -> Found<SshHost> {
    let (user, host, at) = match text.rsplit_once('@') {
        None => (None, text, at),
        Some(("", _)) => return Err((at, Problem::NoSshUser)),
        Some((user, host)) => (Some(user), host, at + user.len() + 1),
    };
    if let Some(user) = user {
        named(user, at - user.len() - 1)?;
    }
    let (host, port, port_at) = if let Some(inside) = host.strip_prefix('[') {
        let Some((address, rest)) = inside.split_once(']') else {
            return Err((at, Problem::SshBracket));
        };
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return Err((at + 1, Problem::SshBracket));
        }
        let behind = at + address.len() + 2;
        match rest.strip_prefix(':') {
            Some(port) => (address, Some(port), behind + 1),
            None if rest.is_empty() => (address, None, behind),
            None => return Err((behind, Problem::SshAfterBracket)),
        }
    } else {
        match host.split_once(':') {
            None => (host, None, at),
            Some((_, port)) if port.contains(':') => return Err((at, Problem::SshColons)),
            Some((host, port)) => (host, Some(port), at + host.len() + 1),
        }
    };
    if host.is_empty() {
        return Err((at, Problem::NoSshHost));
    }
    if !host.contains(':') {
        named(host, at)?;
    }
    let port = port.map(|text| match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err((port_at, Problem::SshPort(text.to_owned()))),
    });
    Ok(SshHost {
        user: user.map(str::to_owned),
        host: host.to_owned(),
        port: port.transpose()?,
    })
}

/// Checks a host's or user's name: it reaches the command line of ssh, and perhaps a shell of the user's
/// `ProxyCommand`, so that only characters of names are allowed.
fn named(name: &str, at: usize) -> Found<()> {
    if name.starts_with('-') {
        return Err((at, Problem::SshCharacter('-')));
    }
    let plain = |c: char| c.is_alphanumeric() || "._-%+~@".contains(c);
    match name.char_indices().find(|(_, c)| !plain(*c)) {
        Some((byte, found)) => Err((at + byte, Problem::SshCharacter(found))),
        None => Ok(()),
    }
}

/// Parses what follows `exec:`. The command may hold any number of `=`: the address stands behind the last one, where
/// that is an address.
fn exec(text: &str, at: usize) -> Found<HostAddress> {
    let (command, data) = match text.rsplit_once('=') {
        Some((command, address)) if ip(address).is_some() => {
            let data = own_address(address, at + command.len() + 1)?;
            (command, Some(data))
        }
        _ => (text, None),
    };
    let words = split_words(command).map_err(|unclosed| match unclosed {
        UnclosedQuote::Quote(quote, byte) => (at + byte, Problem::UnclosedQuote(quote)),
        UnclosedQuote::Backslash(byte) => (at + byte, Problem::TrailingBackslash),
    })?;
    if words.first().is_none_or(String::is_empty) {
        return Err((at, Problem::NoCommand));
    }
    let text = command.trim_start().to_owned();
    Ok(HostAddress {
        place: Location::Exec(CommandLine { text, words }),
        data,
        device: None,
    })
}
