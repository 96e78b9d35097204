//! The root qdisc of an existing device: read, replaced, and restored as it was read.
//!
//! Its text is `HANDLE: KIND OPTIONS`: the handle's major number and the bytes of the options, both hexadecimal. A
//! qdisc that the kernel attached by itself has the handle 0; it comes back when its replacement is deleted, with
//! options of the MTU that the device then has (the quantum of fq_codel and fq).

use std::fmt::Write as _;
use std::io;

use netlink_packet_core::{DefaultNla, Emitable, Nla};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

use crate::netlink::Netlink;
use crate::qdisc;

/// Kinds that accept the options as the kernel reports them.
const KNOWN: [&str; 4] = ["pfifo", "bfifo", "fq_codel", "fq"];
/// include/uapi/linux/rtnetlink.h
const TCA_OPTIONS: u16 = 2;
/// Target, interval and threshold of ECN marks, us (`TCA_FQ_CODEL_*`, include/uapi/linux/pkt_sched.h).
const FQ_CODEL_TIMES: [u16; 3] = [1, 3, 7];

/// Text of a device's root qdisc.
///
/// # Errors
/// Fails for a qdisc that could not be restored exactly, with its kind.
pub(super) fn read(netlink: &mut Netlink, index: u32) -> io::Result<String> {
    let all = qdisc::read_all(netlink, index)?;
    let root = all.iter().find(|tc| tc.header.parent == TcHandle::ROOT);
    let root = root.ok_or_else(|| io::Error::other("it has none: it is down"))?;
    let kind = kind(root).unwrap_or_default();
    let of_user = |tc: &&TcMessage| tc.header.handle.major != 0;
    if of_user(&root) {
        if !KNOWN.contains(&kind) {
            let known = KNOWN.join(", ");
            return Err(io::Error::other(format!(
                "its root qdisc `{kind}` was configured explicitly and cannot be restored exactly ({known} can): replace it \
                 by commands (`before`, `after`)"
            )));
        }
    } else {
        // The qdiscs of clsact and ingress stay, whatever the root is.
        let below = |tc: &&TcMessage| {
            tc.header.parent != TcHandle::ROOT && tc.header.parent.major != TcHandle::ROOT.major
        };
        if let Some(own) = all.iter().filter(below).find(of_user) {
            let own = self::kind(own).unwrap_or_default();
            return Err(io::Error::other(format!(
                "a `{own}` was configured explicitly below its root qdisc `{kind}` and cannot be restored: replace it by \
                 commands (`before`, `after`)"
            )));
        }
    }
    let mut text = format!("{:x}: {kind}", root.header.handle.major);
    for (number, byte) in options(root).iter().enumerate() {
        let space = if number == 0 { " " } else { "" };
        // Writing to memory cannot fail.
        let _ = write!(text, "{space}{byte:02x}");
    }
    Ok(text)
}

/// Replaces the root qdisc by one of a kind, or restores what [`read`] returned.
///
/// # Errors
/// Fails for a kind that the kernel does not have.
pub(super) fn set(netlink: &mut Netlink, index: u32, value: &str) -> io::Result<()> {
    let Some((handle, rest)) = value.split_once(": ") else {
        // Replaced by another of its kind it would keep its options (net/sched/sch_api.c, `tc_modify_qdisc`).
        if of_user(netlink, index)?.as_deref() == Some(value) {
            qdisc::remove(netlink, index)?;
        }
        return qdisc::set(netlink, index, value, []).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                io::Error::other("this kernel has no such qdisc, built in or as a module")
            }
            _ => error,
        });
    };
    let unread = || io::Error::other(format!("`{value}` is no qdisc as it was read"));
    let major = u16::from_str_radix(handle, 16).map_err(|_| unread())?;
    if major == 0 {
        // Its removal would be refused where it is there already (net/sched/sch_api.c, `tc_get_qdisc`).
        if of_user(netlink, index)?.is_some() {
            qdisc::remove(netlink, index)?;
        }
        return Ok(());
    }
    // A process that is killed while it undoes leaves what is undone already to be undone again, and fq_codel refuses a
    // number of flows that it has (net/sched/sch_fq_codel.c, `fq_codel_change`).
    if read(netlink, index).is_ok_and(|found| found == value) {
        return Ok(());
    }
    let (kind, digits) = rest.split_once(' ').unwrap_or((rest, ""));
    let mut bytes = bytes(digits).ok_or_else(unread)?;
    if kind == "fq_codel" {
        as_requested(&mut bytes);
    }
    // With the same handle it would be changed, and one of another kind refused (net/sched/sch_api.c,
    // `tc_modify_qdisc`).
    if of_user(netlink, index)?.is_some() {
        qdisc::remove(netlink, index)?;
    }
    let options = TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, bytes));
    let handle = TcHandle { major, minor: 0 };
    qdisc::set_numbered(netlink, index, handle, kind, [options])
}

/// Makes of the options that fq_codel reports those that it reports once they were requested. It keeps times in units
/// of
/// 1.024 us and reports them in microseconds, rounded down (include/net/codel.h, `codel_time_to_us`): one more than was
/// reported is rounded down to the same unit.
fn as_requested(options: &mut [u8]) {
    // struct nlattr: length, type, value; aligned to 4 bytes.
    let mut rest = options;
    while let [l0, l1, t0, t1, ..] = *rest {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        if FQ_CODEL_TIMES.contains(&u16::from_ne_bytes([t0, t1]))
            && length == 8
            && let Some(value) = rest.get_mut(4..8)
        {
            let time = u32::from_ne_bytes([value[0], value[1], value[2], value[3]]);
            value.copy_from_slice(&time.saturating_add(1).to_ne_bytes());
        }
        rest = rest
            .get_mut(length.max(4).next_multiple_of(4)..)
            .unwrap_or_default();
    }
}

/// Kind of the root qdisc that was configured explicitly; `None`: no qdisc, or the kernel's default.
fn of_user(netlink: &mut Netlink, index: u32) -> io::Result<Option<String>> {
    let all = qdisc::read_all(netlink, index)?;
    let root = all
        .iter()
        .find(|tc| tc.header.parent == TcHandle::ROOT && tc.header.handle.major != 0);
    Ok(root.map(|root| kind(root).unwrap_or_default().to_owned()))
}

/// Kind of a qdisc in a value that is just a kind, or in what [`read`] returned.
pub(super) fn kind_of(text: &str) -> &str {
    let of_read = text.split_once(": ").map(|(_, rest)| rest);
    of_read.map_or(text, |rest| rest.split(' ').next().unwrap_or(rest))
}

/// The part of what [`read`] returned that is compared once `value` was set: the kind of a new qdisc; without the
/// options where the kernel chooses them by itself.
pub(super) fn compared<'a>(text: &'a str, value: &str) -> &'a str {
    if kind_of(value) == value {
        return kind_of(text);
    }
    let options = text.match_indices(' ').nth(1);
    match options {
        Some((at, _)) if value.starts_with("0: ") => &text[..at],
        _ => text,
    }
}

fn kind(tc: &TcMessage) -> Option<&str> {
    tc.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Kind(kind) => Some(kind.as_str()),
        _ => None,
    })
}

/// Bytes of a qdisc's options, however the library has divided them.
fn options(tc: &TcMessage) -> Vec<u8> {
    let options = tc.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Options(options) => Some(options.as_slice()),
        _ => None,
    });
    match options.unwrap_or_default() {
        [TcOption::Other(whole)] if whole.kind() == TCA_OPTIONS => {
            let mut bytes = vec![0; whole.value_len()];
            whole.emit_value(&mut bytes);
            bytes
        }
        divided => {
            let mut bytes = vec![0; divided.buffer_len()];
            divided.emit(&mut bytes);
            bytes
        }
    }
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use wirecost_sys::namespace::HeldNetns;

    use super::*;
    use crate::device;

    #[test]
    fn a_kind_is_told_from_what_was_read() {
        assert_eq!(kind_of("fq_codel"), "fq_codel");
        assert_eq!(kind_of("0: noqueue"), "noqueue");
        assert_eq!(kind_of("8001: pfifo 10270000"), "pfifo");
        assert_eq!(bytes("10ff"), Some(vec![16, 255]));
        assert_eq!(bytes("1"), Some(vec![1]));
        assert_eq!(bytes("xy"), None);
    }

    #[test]
    fn options_are_compared_where_they_are_not_the_kernels_choice() {
        let [own, of_user] = ["0: fq_codel 08ee", "8001: fq_codel 08ee"];
        assert_eq!(compared("0: fq_codel 08ff", own), compared(own, own));
        assert_ne!(compared(of_user, own), compared(own, own));
        assert_ne!(compared("0: fq 08ee", own), compared(own, own));
        assert_eq!(compared("0: noqueue", "0: noqueue"), "0: noqueue");
        assert_eq!(compared(of_user, of_user), of_user);
        assert_eq!(compared(of_user, "fq_codel"), "fq_codel");
    }

    #[test]
    fn times_of_fq_codel_are_requested_so_that_they_are_reported_as_before() {
        let reported = |requested: u32| {
            let unit = (u64::from(requested) * 1000) >> 10;
            ((unit << 10) / 1000) as u32
        };
        for was in [0, 1, 7, 4999, 5000, 99_999, 1_000_000].map(reported) {
            let attribute = |kind: u16, value: u32| {
                let [length, kind] = [8u16, kind].map(u16::to_ne_bytes);
                [&length[..], &kind, &value.to_ne_bytes()].concat()
            };
            let of = |time| {
                let all = [(1, time), (2, 10_240), (3, time), (7, time)];
                all.map(|(kind, value)| attribute(kind, value)).concat()
            };
            let mut options = of(was);
            as_requested(&mut options);
            assert_eq!(options, of(was + 1));
            assert_eq!(reported(was + 1), was);
        }
        as_requested(&mut [9, 0, 1, 0, 3]);
    }

    /// A connection to a new namespace, which must be kept, and the index of its loopback device, which is down.
    fn opened() -> Option<(HeldNetns, Netlink, u32)> {
        let held = match HeldNetns::create("held") {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                wirecost_skips::skip(format!("this needs root: {error}"));
                return None;
            }
            held => held.expect("a namespace"),
        };
        let netlink = held.netns().within(Netlink::open).expect("the namespace");
        let mut netlink = netlink.expect("rtnetlink");
        let index = device::read(&mut netlink, "lo").expect("lo").index;
        Some((held, netlink, index))
    }

    #[test]
    fn the_kernels_own_qdisc_comes_back_also_where_it_was_not_replaced() {
        let Some((_held, mut netlink, index)) = opened() else {
            return;
        };
        set(&mut netlink, index, "no-such-kind").expect_err("no such kind");
        let own = "0: noqueue";
        set(&mut netlink, index, own).expect("it is there");
        set(&mut netlink, index, "pfifo").expect("root of the namespace");
        assert!(of_user(&mut netlink, index).expect("a qdisc").is_some());
        set(&mut netlink, index, own).expect("root of the namespace");
        assert_eq!(of_user(&mut netlink, index).expect("an answer"), None);
    }

    #[test]
    fn a_qdisc_that_was_restored_already_stays() {
        let Some((_held, mut netlink, index)) = opened() else {
            return;
        };
        if let Err(error) = set(&mut netlink, index, "fq_codel") {
            wirecost_skips::lacks(format!("fq_codel: {error}"));
            return;
        }
        let of_user = read(&mut netlink, index).expect("a qdisc");
        set(&mut netlink, index, &of_user).expect("it is there");
        assert_eq!(read(&mut netlink, index).expect("a qdisc"), of_user);
        set(&mut netlink, index, "pfifo").expect("another kind");
        set(&mut netlink, index, &of_user).expect("what was there");
        assert_eq!(read(&mut netlink, index).expect("a qdisc"), of_user);
        // As an earlier version left it: with shorter times, and a number of flows that cannot be changed.
        let target = of_user.find("fq_codel 08000100").expect("its target") + 17;
        let (before, after) = (&of_user[..target], &of_user[target + 8..]);
        let shorter = format!("{before}e8030000{after}");
        set(&mut netlink, index, &shorter).expect("a shorter target");
        assert_ne!(read(&mut netlink, index).expect("a qdisc"), of_user);
        set(&mut netlink, index, &of_user).expect("what was there");
        assert_eq!(read(&mut netlink, index).expect("a qdisc"), of_user);
    }

    #[test]
    fn a_new_qdisc_of_the_kind_that_is_there_has_the_default_options() {
        let Some((_held, mut netlink, index)) = opened() else {
            return;
        };
        // struct tc_fifo_qopt: the limit.
        let of_user = "1: pfifo 0a000000";
        set(&mut netlink, index, of_user).expect("root of the namespace");
        assert_eq!(read(&mut netlink, index).expect("a qdisc"), of_user);
        set(&mut netlink, index, "pfifo").expect("root of the namespace");
        let found = read(&mut netlink, index).expect("a qdisc");
        assert_eq!(kind_of(&found), "pfifo");
        assert!(!found.ends_with(" 0a000000"), "{found}");
        set(&mut netlink, index, "1: bfifo 0a000000").expect("another kind of the same handle");
        // What was there comes back.
        set(&mut netlink, index, of_user).expect("root of the namespace");
        assert_eq!(read(&mut netlink, index).expect("a qdisc"), of_user);
    }
}
