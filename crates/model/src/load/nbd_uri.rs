//! URIs of NBD servers (doc/uri.md of the NBD project).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest path of a Unix socket, bytes (`sun_path` of unix(7), without the terminating zero).
const MAX_SOCKET_PATH: usize = 107;
/// The port that IANA assigned to NBD.
const PORT: u16 = 10_809;
const NOT_ENCODED: &str = "a % is followed by two hexadecimal digits, and the bytes are UTF-8";

/// The URI of an NBD server that Wirecost does not run: `nbd://HOST[:PORT]/[EXPORT]` or
/// `nbd+unix:///[EXPORT]?socket=PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NbdUri {
    /// The server's name or address, resolved on the machine where the command runs; empty for a Unix socket.
    pub host: String,
    /// The server's TCP port; 0 for a Unix socket.
    pub port: u16,
    /// The export's name; empty for the server's default export.
    pub export: String,
    /// The path of a Unix socket on the initiator's host; `None` for TCP.
    #[serde(default)]
    pub socket: Option<String>,
}

impl FromStr for NbdUri {
    type Err = String;

    /// # Errors
    /// What is wrong with the URI, and what to write instead.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "`{text}`: {why}; write nbd://HOST[:PORT]/[EXPORT] or nbd+unix:///[EXPORT]?socket=PATH, or the path of a file or device"
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("no URI"))?;
        match scheme {
            "nbd" => {}
            "nbds" | "nbds+unix" | "nbds+vsock" => return Err(wrong("TLS is not supported")),
            "nbd+unix" => return unix(rest).map_err(wrong),
            "nbd+vsock" => {
                return Err(wrong(
                    "only servers over TCP and Unix sockets are supported",
                ));
            }
            _ => return Err(wrong("not the URI of an NBD server")),
        }
        let (authority, export) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') || export.contains(['?', '#']) {
            return Err(wrong("neither users nor options are supported"));
        }
        // An IPv6 address is in brackets (RFC 3986, section 3.2.2).
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, after) = bracketed
                    .split_once(']')
                    .ok_or_else(|| wrong("a bracket is not closed"))?;
                (
                    host,
                    after.strip_prefix(':').or(after.is_empty().then_some("")),
                )
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, Some("")),
            },
        };
        let port = match port {
            Some("") => PORT,
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| wrong("no port"))?,
            None => return Err(wrong("no port")),
        };
        if host.is_empty() {
            return Err(wrong("no host"));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            export: decoded(export).ok_or_else(|| wrong(NOT_ENCODED))?,
            socket: None,
        })
    }
}

/// Parses what follows `nbd+unix://`.
fn unix(rest: &str) -> Result<NbdUri, &'static str> {
    let path = rest
        .strip_prefix('/')
        .ok_or("a Unix socket has no host: write three slashes")?;
    let (export, query) = path.split_once('?').ok_or("no socket")?;
    let socket = query.strip_prefix("socket=").ok_or("no socket")?;
    if socket.contains(['&', '#']) {
        return Err("no options but the socket are supported");
    }
    let [export, socket] = [export, socket].map(|text| decoded(text).ok_or(NOT_ENCODED));
    let socket = socket?;
    if !socket.starts_with('/') {
        return Err("the path of the socket does not begin with a slash");
    }
    // The terminating zero has to fit into `sun_path` too (unix(7)).
    if socket.len() > MAX_SOCKET_PATH || socket.contains('\0') {
        return Err("the path of a socket has at most 107 bytes and no zero byte");
    }
    Ok(NbdUri {
        host: String::new(),
        port: 0,
        export: export?,
        socket: Some(socket),
    })
}

/// Decodes percent-encoding (`%2F`); `None` where a `%` encodes nothing or the result is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let [high, low] =
                [rest.next()?, rest.next()?].map(|digit| char::from(digit).to_digit(16));
            u8::try_from(high? * 16 + low?).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Display for NbdUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            host,
            port,
            export,
            socket,
        } = self;
        if let Some(socket) = socket {
            write!(f, "nbd+unix:///{export}?socket={socket}")
        } else if host.contains(':') {
            write!(f, "nbd://[{host}]:{port}/{export}")
        } else {
            write!(f, "nbd://{host}:{port}/{export}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_host_port_and_export_or_what_is_wrong() {
        let read = |text: &str| text.parse::<NbdUri>().map(|uri| uri.to_string());
        for (text, there) in [
            ("nbd://b", "nbd://b:10809/"),
            ("nbd://b/", "nbd://b:10809/"),
            ("nbd://10.0.0.2:7/disk/1", "nbd://10.0.0.2:7/disk/1"),
            ("nbd://[fd00::2]/a%20b", "nbd://[fd00::2]:10809/a b"),
            ("nbd://[fd00::2]:80", "nbd://[fd00::2]:80/"),
            ("nbd+unix:///?socket=/run/s", "nbd+unix:///?socket=/run/s"),
            (
                "nbd+unix:///disk?socket=/a%20b",
                "nbd+unix:///disk?socket=/a b",
            ),
        ] {
            assert_eq!(read(text).as_deref(), Ok(there));
        }
        for (text, why) in [
            ("b:10809", "no URI"),
            ("nbds://b", "TLS"),
            ("nbd+vsock://1/e", "only servers over TCP"),
            ("nbd+unix://h/e?socket=/s", "three slashes"),
            ("nbd+unix:///e", "no socket"),
            ("nbd+unix:///e?tls=1", "no socket"),
            ("nbd+unix:///e?socket=s", "slash"),
            ("nbd+unix:///e?socket=/s&tls=1", "no options"),
            ("http://b", "not the URI"),
            ("nbd:///e", "no host"),
            ("nbd://b:0/e", "no port"),
            ("nbd://b:x/e", "no port"),
            ("nbd://[fd00::2/e", "bracket"),
            ("nbd://[fd00::2]x/e", "no port"),
            ("nbd://b/e?tls", "options"),
            ("nbd://b/%zz", "hexadecimal"),
            ("nbd://b/%f", "hexadecimal"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(why) && error.contains(text), "{error}");
        }
    }
}
