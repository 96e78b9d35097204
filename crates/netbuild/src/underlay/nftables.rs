//! Packets that a hop drops, by rules of the kernel's packet filter in its own messages (nf_tables,
//! include/uapi/linux/netfilter/nf_tables.h): a table with one chain at the ingress of each device.

use std::io;

use netlink_packet_core::{DefaultNla, Emitable};
use netlink_sys::{Socket, SocketAddr};

/// `NETLINK_NETFILTER`.
const NETFILTER: isize = 12;
/// Protocol families: rules at devices are netdev's.
const NFPROTO_NETDEV: u8 = 5;
const NFPROTO_UNSPEC: u8 = 0;
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = NFNL_SUBSYS_NFTABLES << 8;
const NEW_CHAIN: u16 = NFNL_SUBSYS_NFTABLES << 8 | 3;
const NEW_RULE: u16 = NFNL_SUBSYS_NFTABLES << 8 | 6;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_APPEND: u16 = 0x800;
const NESTED: u16 = 1 << 15;

const TABLE: &str = "faults";
/// The first of the 32-bit registers, `NFT_REG32_00`.
const REGISTER: u32 = 8;
const VERDICT: u32 = 0;
const DROP: u32 = 0;

/// Packets to drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drop {
    /// UDP packets to this destination port.
    UdpPort(u16),
    /// All ICMP and ICMPv6 packets.
    Icmp,
    /// This many of a million packets, at random.
    Share(u32),
}

/// Drops such packets where they arrive at one of the devices, in the calling thread's network namespace. All rules
/// take effect at once.
///
/// # Errors
/// `EPROTONOSUPPORT` or `EOPNOTSUPP` where the kernel has no nf_tables, `ENOENT` where it lacks a part of it.
pub(super) fn drop_at(devices: &[&str], what: &[Drop]) -> io::Result<()> {
    let mut batch = Batch::default();
    batch.message(BATCH_BEGIN, NFPROTO_UNSPEC, NFNL_SUBSYS_NFTABLES, 0, &[]);
    let table = text(1, TABLE);
    batch.message(NEW_TABLE, NFPROTO_NETDEV, 0, NLM_F_CREATE, &[table]);
    for device in devices {
        let hook = nested(4, vec![number(1, 0), number(2, 0), text(3, device)]);
        let chain = [text(1, TABLE), text(3, device), hook, text(7, "filter")];
        batch.message(NEW_CHAIN, NFPROTO_NETDEV, 0, NLM_F_CREATE, &chain);
        for expressions in what.iter().flat_map(|drop| drop.rules()) {
            let rule = [text(1, TABLE), text(2, device), nested(4, expressions)];
            let flags = NLM_F_CREATE | NLM_F_APPEND;
            batch.message(NEW_RULE, NFPROTO_NETDEV, 0, flags, &rule);
        }
    }
    batch.message(BATCH_END, NFPROTO_UNSPEC, NFNL_SUBSYS_NFTABLES, 0, &[]);
    batch.send()
}

impl Drop {
    /// Rules that drop these packets, each a list of expressions.
    fn rules(self) -> Vec<Vec<DefaultNla>> {
        /// IANA's protocol numbers (RFC 792, RFC 4443, RFC 768).
        const ICMP: u8 = 1;
        const ICMPV6: u8 = 58;
        const UDP: u8 = 17;
        match self {
            Self::UdpPort(port) => vec![vec![
                protocol(),
                compare(Order::Equal, vec![UDP]),
                destination_port(),
                compare(Order::Equal, port.to_be_bytes().to_vec()),
                drop(),
            ]],
            Self::Icmp => [ICMP, ICMPV6]
                .map(|number| vec![protocol(), compare(Order::Equal, vec![number]), drop()])
                .into(),
            Self::Share(ppm) => vec![vec![
                random_of_a_million(),
                in_network_order(),
                compare(Order::Less, ppm.to_be_bytes().to_vec()),
                drop(),
            ]],
        }
    }
}

/// `NFT_CMP_*`.
#[derive(Clone, Copy)]
enum Order {
    Equal = 0,
    Less = 2,
}

fn expression(name: &str, data: Vec<DefaultNla>) -> DefaultNla {
    nested(1, vec![text(1, name), nested(2, data)])
}

/// `meta l4proto`: protocol of the header after the IP header and its extensions.
fn protocol() -> DefaultNla {
    const META_L4PROTO: u32 = 16;
    expression("meta", vec![number(2, META_L4PROTO), number(1, REGISTER)])
}

/// Loads two bytes of the transport header, from byte 2 on.
fn destination_port() -> DefaultNla {
    const TRANSPORT_HEADER: u32 = 2;
    let (base, offset, length) = (number(2, TRANSPORT_HEADER), number(3, 2), number(4, 2));
    expression("payload", vec![number(1, REGISTER), base, offset, length])
}

fn random_of_a_million() -> DefaultNla {
    const RANDOM: u32 = 1;
    let (modulus, kind) = (number(2, 1_000_000), number(3, RANDOM));
    expression("numgen", vec![number(1, REGISTER), modulus, kind])
}

/// Converts the register to network byte order: numbers are compared as bytes, the most significant first.
fn in_network_order() -> DefaultNla {
    const HOST_TO_NETWORK: u32 = 1;
    let registers = [number(1, REGISTER), number(2, REGISTER)];
    let how = [number(3, HOST_TO_NETWORK), number(4, 4), number(5, 4)];
    expression("byteorder", registers.into_iter().chain(how).collect())
}

fn compare(order: Order, with: Vec<u8>) -> DefaultNla {
    let data = nested(3, vec![DefaultNla::new(1, with)]);
    expression(
        "cmp",
        vec![number(1, REGISTER), number(2, order as u32), data],
    )
}

fn drop() -> DefaultNla {
    let verdict = nested(2, vec![nested(2, vec![number(1, DROP)])]);
    expression("immediate", vec![number(1, VERDICT), verdict])
}

/// A number as an attribute: nf_tables has them in 32 bits, big-endian.
fn number(kind: u16, value: u32) -> DefaultNla {
    DefaultNla::new(kind, value.to_be_bytes().to_vec())
}

fn text(kind: u16, value: &str) -> DefaultNla {
    DefaultNla::new(kind, [value.as_bytes(), &[0]].concat())
}

#[expect(clippy::needless_pass_by_value, reason = "made for it in place")]
fn nested(kind: u16, attributes: Vec<DefaultNla>) -> DefaultNla {
    let mut bytes = vec![0; attributes.as_slice().buffer_len()];
    attributes.as_slice().emit(&mut bytes);
    DefaultNla::new(kind | NESTED, bytes)
}

/// Messages that take effect together or not at all.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    messages: u32,
}

impl Batch {
    /// Appends a message: `struct nlmsghdr`, `struct nfgenmsg`, attributes.
    fn message(
        &mut self,
        kind: u16,
        family: u8,
        resource: u16,
        flags: u16,
        attributes: &[DefaultNla],
    ) {
        self.messages += 1;
        let length = 16 + 4 + attributes.buffer_len();
        // The kernel acknowledges only the messages between the batch's ends.
        let answered = kind != BATCH_BEGIN && kind != BATCH_END;
        let flags = NLM_F_REQUEST | flags | if answered { NLM_F_ACK } else { 0 };
        self.bytes.extend((length as u32).to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(flags.to_ne_bytes());
        self.bytes.extend(self.messages.to_ne_bytes());
        self.bytes.extend([0; 4]);
        self.bytes.extend([family, 0]);
        self.bytes.extend(resource.to_be_bytes());
        let begin = self.bytes.len();
        self.bytes.resize(begin + attributes.buffer_len(), 0);
        attributes.emit(&mut self.bytes[begin..]);
    }

    /// Sends the batch, and waits for the acknowledgement of every message.
    fn send(self) -> io::Result<()> {
        let mut socket = Socket::new(NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.send(&self.bytes, 0)?;
        let mut left = self.messages - 2;
        while left > 0 {
            let (answer, _) = socket.recv_from_full()?;
            // struct nlmsgerr: a negative error number, or 0, after the header.
            let code = answer.get(16..20).and_then(|bytes| bytes.try_into().ok());
            match code.map(i32::from_ne_bytes) {
                Some(0) => left -= 1,
                Some(code) => return Err(io::Error::from_raw_os_error(-code)),
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_as_the_kernel_reads_it() {
        let [rule] = &Drop::UdpPort(4789).rules()[..] else {
            panic!("one rule");
        };
        let mut bytes = vec![0; rule.as_slice().buffer_len()];
        rule.as_slice().emit(&mut bytes);
        let expected: Vec<u8> = [
            &[36u8, 0, 1, 0x80, 9, 0, 1, 0][..],
            b"meta\0\0\0\0",
            &[20, 0, 2, 0x80],
            &[8, 0, 2, 0, 0, 0, 0, 16], // key: l4proto
            &[8, 0, 1, 0, 0, 0, 0, 8],  // register
            &[44, 0, 1, 0x80, 8, 0, 1, 0],
            b"cmp\0",
            &[32, 0, 2, 0x80],
            &[8, 0, 1, 0, 0, 0, 0, 8],
            &[8, 0, 2, 0, 0, 0, 0, 0],                  // equal
            &[12, 0, 3, 0x80, 5, 0, 1, 0, 17, 0, 0, 0], // UDP
            &[52, 0, 1, 0x80, 12, 0, 1, 0],
            b"payload\0",
            &[36, 0, 2, 0x80],
            &[8, 0, 1, 0, 0, 0, 0, 8],
            &[8, 0, 2, 0, 0, 0, 0, 2], // transport header
            &[8, 0, 3, 0, 0, 0, 0, 2],
            &[8, 0, 4, 0, 0, 0, 0, 2],
            &[44, 0, 1, 0x80, 8, 0, 1, 0],
            b"cmp\0",
            &[32, 0, 2, 0x80],
            &[8, 0, 1, 0, 0, 0, 0, 8],
            &[8, 0, 2, 0, 0, 0, 0, 0],
            &[12, 0, 3, 0x80, 6, 0, 1, 0, 0x12, 0xb5, 0, 0], // 4789
            &[48, 0, 1, 0x80, 14, 0, 1, 0],
            b"immediate\0\0\0",
            &[28, 0, 2, 0x80],
            &[8, 0, 1, 0, 0, 0, 0, 0],
            &[16, 0, 2, 0x80, 12, 0, 2, 0x80, 8, 0, 1, 0, 0, 0, 0, 0], // drop
        ]
        .concat();
        assert_eq!(bytes, expected);
    }
}
