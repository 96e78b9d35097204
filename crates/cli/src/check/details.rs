//! Prints the parts of a check's result other than findings: hops, and the recommended guest MTU.

use std::fmt::Write as _;

use wirecost_check::{Document, HopReport, Recommendation, TraceReport};

use crate::screen::wrap;

/// The traces of each direction, hop by hop.
pub(super) fn traces(document: &Document, width: usize) -> String {
    let mut text = String::new();
    for trace in &document.traces {
        let TraceReport { from, to, hops } = trace;
        let _ = write!(text, "\n\nhops from {from} to {to}");
        let address = |hop: &HopReport| hop.address.map_or("-".to_owned(), |it| it.to_string());
        let widest = hops.iter().map(|hop| address(hop).chars().count());
        let widest = widest.max().unwrap_or(0);
        for hop in hops {
            let rtt = hop.rtt_s.map_or("-".to_owned(), time);
            let mtu = hop.mtu.map_or("-".to_owned(), |mtu| mtu.to_string());
            let mut line = format!(
                "  {:>2}  {:widest$}  {rtt:>8}  {mtu:>5}",
                hop.ttl,
                address(hop)
            );
            if hop.destination {
                line.push_str("  destination");
            }
            if let Some(message) = &hop.message {
                let _ = write!(line, "  {message}");
            }
            if hop.address.is_none() {
                line.push_str("  no answer");
            }
            let _ = write!(text, "\n{}", wrap(&line, "      ", width));
        }
        if hops.is_empty() {
            text.push_str("\n  not traced: no probe can leave");
        }
    }
    text
}

fn time(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// The recommended guest MTUs, and the paths that limit them.
pub(super) fn recommended(document: &Document, width: usize) -> String {
    let Some(Recommendation { guests, limits }) = &document.recommendation else {
        return String::new();
    };
    let mut text = "\n\nlargest MTU of guests that fits every path".to_owned();
    for guest in guests {
        let mtu = guest.mtu.map_or("none".to_owned(), |mtu| mtu.to_string());
        let used = if guest.used_by.is_empty() {
            String::new()
        } else {
            format!("  ({})", guest.used_by.join(", "))
        };
        let name = match guest.encapsulation.as_str() {
            "none" => "without encapsulation".to_owned(),
            format => format!("behind {format}"),
        };
        let line = format!("  {mtu:>5}  {name}{used}");
        let _ = write!(text, "\n{}", wrap(&line, "         ", width));
    }
    for limit in limits {
        let mtu = limit.mtu.map_or("?".to_owned(), |mtu| mtu.to_string());
        let line = format!(
            "  limited by {} to {}, which carries {mtu}: {}",
            limit.from, limit.to, limit.why
        );
        let _ = write!(text, "\n{}", wrap(&line, "    ", width));
    }
    text
}
