//! A device's root qdisc: set, read back, removed.

use std::io;

use netlink_packet_core::{Nla, NlasIterator};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

use crate::netlink::{Intent, Netlink};

/// Makes a qdisc of a kind the device's root qdisc, in place of the one that is there.
///
/// # Errors
/// `ENOENT` where the kernel has no such kind.
pub(crate) fn set(
    netlink: &mut Netlink,
    index: u32,
    kind: &str,
    more: impl IntoIterator<Item = TcAttribute>,
) -> io::Result<()> {
    set_numbered(netlink, index, TcHandle::UNSPEC, kind, more)
}

/// As [`set`], with a handle; `TcHandle::UNSPEC`: the kernel chooses one.
pub(crate) fn set_numbered(
    netlink: &mut Netlink,
    index: u32,
    handle: TcHandle,
    kind: &str,
    more: impl IntoIterator<Item = TcAttribute>,
) -> io::Result<()> {
    let mut message = root(index);
    message.header.handle = handle;
    message.attributes = vec![TcAttribute::Kind(kind.to_owned())];
    message.attributes.extend(more);
    netlink.apply(
        RouteNetlinkMessage::NewQueueDiscipline(message),
        Intent::Replace,
    )
}

/// Attributes of a device's root qdisc; `None` where it has none.
pub(crate) fn read(netlink: &mut Netlink, index: u32) -> io::Result<Option<Vec<TcAttribute>>> {
    let all = read_all(netlink, index)?.into_iter();
    let mut roots = all.filter(|tc| tc.header.parent == TcHandle::ROOT);
    Ok(roots.next().map(|tc| tc.attributes))
}

/// Every qdisc of a device.
pub(crate) fn read_all(netlink: &mut Netlink, index: u32) -> io::Result<Vec<TcMessage>> {
    let dump = netlink.dump(RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default()))?;
    let of_device = dump.into_iter().filter_map(|message| match message {
        RouteNetlinkMessage::NewQueueDiscipline(tc) if tc.header.index == index as i32 => Some(tc),
        _ => None,
    });
    Ok(of_device.collect())
}

/// Restores the default qdisc of a device; packets that wait are dropped.
pub(crate) fn remove(netlink: &mut Netlink, index: u32) -> io::Result<()> {
    netlink.apply(
        RouteNetlinkMessage::DelQueueDiscipline(root(index)),
        Intent::Change,
    )
}

fn root(index: u32) -> TcMessage {
    let mut message = TcMessage::with_index(index as i32);
    message.header.parent = TcHandle::ROOT;
    message
}

/// Rate in bit/s of a qdisc or class of that kind; `None` where it is of another kind. `parms` and `rate64` are the
/// options with the kind's parameters, in which a struct tc_ratespec comes first, and with a rate beyond 32 bits.
pub(crate) fn rate(attributes: &[TcAttribute], kind: &str, parms: u16, rate64: u16) -> Option<u64> {
    let find = |wanted| option(attributes, kind, wanted);
    if let Some(wide) = find(rate64) {
        return Some(u64::from_ne_bytes(wide.get(..8)?.try_into().ok()?) * 8);
    }
    // The rate is the last member of struct tc_ratespec, at offset 8.
    let parms = find(parms)?;
    Some(u64::from(u32::from_ne_bytes(parms.get(8..12)?.try_into().ok()?)) * 8)
}

/// Bytes of one option of a qdisc of that kind; `None` where it is of another kind or has no such option.
pub(crate) fn option(attributes: &[TcAttribute], kind: &str, wanted: u16) -> Option<Vec<u8>> {
    let is_it = attributes
        .iter()
        .any(|a| matches!(a, TcAttribute::Kind(found) if found == kind));
    // The library decodes neither tbf nor fq: all options come as one opaque attribute.
    let nested = attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Options(options) if is_it => match options.as_slice() {
            [TcOption::Other(whole)] => {
                let mut bytes = vec![0; whole.value_len()];
                whole.emit_value(&mut bytes);
                Some(bytes)
            }
            _ => None,
        },
        _ => None,
    })?;
    NlasIterator::new(nested.as_slice())
        .filter_map(Result::ok)
        .find(|nla| nla.kind() == wanted)
        .map(|nla| nla.value().to_vec())
}

/// Attributes as the kernel hands them out: all in one.
#[cfg(test)]
pub(crate) fn as_read(kind: &str, options: &[TcOption]) -> [TcAttribute; 2] {
    use netlink_packet_core::{DefaultNla, Emitable};

    let mut bytes = vec![0; options.buffer_len()];
    options.emit(&mut bytes);
    let whole = TcOption::Other(DefaultNla::new(2, bytes));
    [
        TcAttribute::Kind(kind.to_owned()),
        TcAttribute::Options(vec![whole]),
    ]
}
