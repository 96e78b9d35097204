//! Reports what does not fit: the place in the plan, and what to write instead.

use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion;
use wirecost_model::plan::{Encapsulation, GuestMtu};

use super::{FitCheck, GuestMtuRange};
use crate::factors::Factors;
use crate::node::Span;
use crate::read::{Level, Reader};
use crate::transit::TransitSection;

impl FitCheck {
    pub(crate) fn report(self, reader: &mut Reader, factors: &Factors, between: &TransitSection) {
        let nothing_left = !self.can_be_built;
        for (place, reason) in self.beyond_datapaths.into_iter().filter(|_| nothing_left) {
            report_beyond_datapath(reader, factors, place, reason);
        }
        for (level, reason) in self.idle_offloads {
            let Some(level) = factors
                .offload
                .get(level)
                .filter(|_| !self.working_offloads.contains(&level))
            else {
                continue;
            };
            let message = format!(
                "the level `{}` of `offload` changes nothing: {reason}",
                level.label
            );
            let help = "leave the level out, or change what is around it: share/doc/wirecost/offloads.md has what each switch does and where";
            reader.fault(
                level.span.clone(),
                &level.path,
                message,
                "changes nothing in any cell",
                help,
            );
        }
        for (_, range) in self.unrouted {
            report_unrouted(reader, factors, range, between);
        }
        if let Some(range) = self.small_path {
            report_small_path(reader, range, between);
        }
        for (_, range) in self.small_underlays {
            report_small_underlay(reader, factors, range);
        }
        for (_, range) in self.without_df {
            report_without_df(reader, factors, range);
        }
        for (guest, range) in self.misfits {
            report_misfit(reader, factors, guest, range, between);
        }
        for (guest, range) in self.small_guests {
            report_small_guest(reader, factors, guest, range);
        }
        for (guest, (first, range, bytes)) in self.same {
            let (Some(level), Some(first)) =
                (factors.guest_mtu.get(guest), factors.guest_mtu.get(first))
            else {
                continue;
            };
            let Some(path) = describe(factors, range) else {
                continue;
            };
            let message = format!(
                "the levels `{}` and `{}` of `guest_mtu` are both {bytes} bytes {path}",
                first.label, level.label
            );
            let help = "remove one of them, or `exclude` one of the two there: \
                        the same cell would be measured twice";
            let span = level.span.clone();
            reader.fault(span, &level.path, message, "the same cell again", help);
        }
    }
}

fn report_beyond_datapath(
    reader: &mut Reader,
    factors: &Factors,
    (encapsulation, datapath): (usize, Datapath),
    reason: &str,
) {
    let Some(level) = factors.encapsulation.get(encapsulation) else {
        return;
    };
    let (label, key) = (&level.label, datapath.key());
    let message = format!("`{label}` cannot be built by `datapath: {key}`: {reason}");
    let other = Datapath::ALL
        .into_iter()
        .find(|other| other.cannot(&level.value.encapsulation).is_none());
    let ask = other.map_or_else(String::new, |other| {
        format!(
            "write `datapath: {}`, or leave the key out for the run to choose, or ",
            other.key()
        )
    });
    let help =
        format!("{ask}`exclude` the combination: `{{ encapsulation: {label}, datapath: {key} }}`");
    let span = level.span.clone();
    reader.fault(
        span,
        &level.path,
        message,
        format!("not by {datapath}"),
        help,
    );
}

fn report_small_underlay(reader: &mut Reader, factors: &Factors, range: GuestMtuRange) {
    let (Some(mtu), Some(ip)) = (
        factors.underlay_mtu.get(range.underlay),
        factors
            .underlay_ip
            .levels
            .iter()
            .find(|level| level.value == range.underlay_ip),
    ) else {
        return;
    };
    let least = range.underlay_ip.min_mtu();
    let message = format!(
        "an underlay MTU of {} is too small for tunnels over IPv6",
        mtu.value
    );
    let help = format!(
        "every link that carries IPv6 takes {least} bytes (RFC 8200, section 5): write an \
         `underlay.mtu` of {least} or more, or `exclude` the combination with `underlay.ip: ipv6`"
    );
    let (span, path) = written((mtu.written, &mtu.span, &mtu.path), (&ip.span, &ip.path));
    reader.fault(span, &path, message, format!("below {least}"), help);
}

fn report_without_df(reader: &mut Reader, factors: &Factors, range: GuestMtuRange) {
    let Some(level) = factors.encapsulation.get(range.encapsulation) else {
        return;
    };
    let message = format!("`{}` cannot run over IPv6", level.label);
    let help = "an IPv6 header has no don't-fragment bit, and no router fragments it (RFC 8200, \
                section 5): leave `df` out, or `exclude` the combination with `underlay.ip: ipv6`";
    let span = level.span.clone();
    reader.fault(span, &level.path, message, "`df` is IPv4's", help);
}

fn report_unrouted(
    reader: &mut Reader,
    factors: &Factors,
    range: GuestMtuRange,
    between: &TransitSection,
) {
    let (Some(level), Some((span, path))) = (
        factors.encapsulation.get(range.encapsulation),
        between.routed(),
    ) else {
        return;
    };
    let message = format!(
        "guests without a tunnel, `encapsulation: {}`, cannot cross a router",
        level.label
    );
    let help = "their frames are bridged as they are, and a router forwards only packets sent to its own MAC address: \
                write an `encapsulation` such as `vxlan`, or `exclude` this one, or put switches here only";
    reader.fault(span.clone(), path, message, "routed from here on", help);
}

fn report_small_path(reader: &mut Reader, range: GuestMtuRange, between: &TransitSection) {
    let Some((mtu, span, path)) = between.narrowest() else {
        return;
    };
    let least = range.underlay_ip.min_mtu();
    let message = format!("an MTU of {mtu} is too small for tunnels over IPv6");
    let help = format!(
        "every link that carries IPv6 takes {least} bytes (RFC 8200, section 5): write {least} or more, or \
         `exclude` the combination with `underlay.ip: ipv6`"
    );
    reader.fault(span.clone(), path, message, format!("below {least}"), help);
}

fn report_misfit(
    reader: &mut Reader,
    factors: &Factors,
    guest: usize,
    range: GuestMtuRange,
    between: &TransitSection,
) {
    let (Some(level), Some(underlay), Some(encapsulation), Some(path)) = (
        factors.guest_mtu.get(guest),
        factors.underlay_mtu.get(range.underlay),
        factors.encapsulation.get(range.encapsulation),
        describe(factors, range),
    ) else {
        return;
    };
    let overhead = encapsulation
        .value
        .encapsulation
        .overhead_bytes(range.underlay_ip);
    let largest = range.largest;
    let narrow = range.path_mtu < underlay.value;
    let ask = if narrow && !between.takes_oversize {
        ", or `underlay.oversize: send` to see what becomes of it"
    } else {
        ""
    };
    let help = if largest < range.least {
        let place = if narrow {
            "the path's"
        } else {
            "the underlay's"
        };
        format!(
            "{place} MTU must be at least {} for a guest MTU of {}, {}",
            range.least + overhead,
            range.least,
            range.why_least()
        )
    } else if overhead > 0 {
        format!(
            "the largest that fits is {largest} ({} less {overhead} of overhead): write {largest}, \
             or `max`, or `exclude` the combination{ask}",
            range.path_mtu
        )
    } else {
        format!(
            "the largest that fits is {largest}: write {largest}, or `max`, or `exclude` the \
             combination{ask}"
        )
    };
    let (message, label) = match level.value {
        GuestMtu::Max => (
            format!("the guest MTU `max` is {largest} {path}"),
            format!("below {}", range.least),
        ),
        GuestMtu::Bytes(bytes) if bytes > largest => (
            format!("a guest MTU of {bytes} does not fit {path}"),
            format!("{} too large", bytes - largest),
        ),
        GuestMtu::Bytes(bytes) => (
            format!(
                "a guest MTU of {bytes} is too small for {} guests",
                range.guest_ip
            ),
            format!("below {}", range.least),
        ),
    };
    // Point at a level that the plan writes, not at a default.
    let (span, path) = if level.written {
        (level.span.clone(), level.path.clone())
    } else {
        written(
            (underlay.written, &underlay.span, &underlay.path),
            (&encapsulation.span, &encapsulation.path),
        )
    };
    reader.fault(span, &path, message, label, help);
}

fn report_small_guest(reader: &mut Reader, factors: &Factors, guest: usize, range: GuestMtuRange) {
    let Some(level) = factors.guest_mtu.get(guest) else {
        return;
    };
    let message = format!(
        "a guest MTU of {} is too small for {} guests",
        level.label, range.guest_ip
    );
    let help = format!(
        "write {}, {}, or more, or `exclude` the combination with `guest_ip: {}`",
        range.least,
        range.why_least(),
        range.guest_ip.key()
    );
    let label = format!("below {}", range.least);
    reader.fault(level.span.clone(), &level.path, message, label, help);
}

/// The first of two places, or the second if the first is of a default.
fn written(
    (is_written, span, path): (bool, &Span, &str),
    (other_span, other_path): (&Span, &str),
) -> (Span, String) {
    if is_written {
        (span.clone(), path.to_owned())
    } else {
        (other_span.clone(), other_path.to_owned())
    }
}

/// Describes a path: `in vxlan over an IPv6 underlay of 9000`. IPv4 is not mentioned.
fn describe(factors: &Factors, range: GuestMtuRange) -> Option<String> {
    let underlay: &Level<u32> = factors.underlay_mtu.get(range.underlay)?;
    let encapsulation = factors.encapsulation.get(range.encapsulation)?;
    let mut over = match range.underlay_ip {
        IpVersion::Ipv4 => format!("over an underlay of {}", underlay.value),
        IpVersion::Ipv6 => format!("over an IPv6 underlay of {}", underlay.value),
    };
    if range.path_mtu < underlay.value {
        over = format!("{over} that carries {} from host to host", range.path_mtu);
    }
    Some(match encapsulation.value.encapsulation {
        Encapsulation::None => over,
        _ => format!("in {} {over}", encapsulation.label),
    })
}
