//! The layout of the programs' map values, as in `bpf/maps.h`: integers in host byte order unless stated otherwise.

use std::net::IpAddr;

pub(crate) const MAX_HEADER: usize = 328;
pub(crate) const MAX_REMOTES: usize = 64;
pub(crate) const MAX_PORTS: usize = 64;
pub(crate) const MAX_FDB_ENTRIES: usize = 4096;
pub(crate) const KNOWN_OPTIONS: usize = 64;

pub(crate) type Port = [u8; 4];
pub(crate) type FdbKey = [u8; 12];
pub(crate) type FdbEntry = [u8; 8];
pub(crate) type Remote = [u8; 392];
pub(crate) type Flood = [u8; 8 + 4 * (MAX_REMOTES + MAX_PORTS)];

/// An IP address in 16 bytes; IPv4 takes the first four.
pub(crate) fn address(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&v4.octets());
            bytes
        }
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// Packs numbers one after the other; the rest is zero.
fn numbers<const N: usize>(numbers: impl IntoIterator<Item = u32>) -> [u8; N] {
    let mut bytes = [0; N];
    for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

pub(crate) fn port(vni: u32) -> Port {
    numbers([vni])
}

pub(crate) fn fdb_key(vni: u32, mac: [u8; 6]) -> FdbKey {
    let mut bytes: FdbKey = numbers([vni]);
    bytes[4..10].copy_from_slice(&mac);
    bytes
}

/// A MAC address at the remote of this index, from 1, or at the guest device of this interface index.
pub(crate) fn fdb_entry(remote: u32, ifindex: u32) -> FdbEntry {
    numbers([remote, ifindex])
}

pub(crate) fn flood(remotes: &[u32], ports: &[u32]) -> Flood {
    let counts = [remotes.len() as u32, ports.len() as u32];
    let padded = |list: &[u32], to| {
        list.iter()
            .copied()
            .chain(std::iter::repeat(0))
            .take(to)
            .collect::<Vec<_>>()
    };
    numbers(
        counts
            .into_iter()
            .chain(padded(remotes, MAX_REMOTES))
            .chain(padded(ports, MAX_PORTS)),
    )
}

/// The members of `struct remote`.
pub(crate) struct RemoteFields<'a> {
    pub(crate) header: &'a [u8],
    pub(crate) address: [u8; 16],
    pub(crate) source: [u8; 16],
    pub(crate) udp_sum: u32,
    pub(crate) ip_sum: u32,
    pub(crate) mtu: u32,
    pub(crate) ceiling: u32,
    /// Whether the header has the right MAC addresses.
    pub(crate) resolved: bool,
}

impl RemoteFields<'_> {
    /// Encodes the struct, with `looked` 0: the programs have not looked up the remote's route yet.
    pub(crate) fn bytes(&self) -> Remote {
        let mut bytes = [0; size_of::<Remote>()];
        let mut at = 0;
        let mut put = |field: &[u8], space: usize| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += space;
        };
        put(self.header, MAX_HEADER);
        put(&self.address, 16);
        put(&self.source, 16);
        for number in [self.udp_sum, self.ip_sum, self.mtu, self.resolved.into()] {
            put(&number.to_ne_bytes(), 4);
        }
        put(&0u64.to_ne_bytes(), 8);
        put(&self.ceiling.to_ne_bytes(), 4);
        put(&1u32.to_ne_bytes(), 4);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of the tables in `bpf/maps.h`.
    #[test]
    fn the_programs_tables_have_these_limits() {
        let header = include_str!("../bpf/maps.h");
        let expected = format!(
            "enum {{ MAX_HEADER = {MAX_HEADER}, MAX_REMOTES = {MAX_REMOTES}, MAX_PORTS = {MAX_PORTS}, \
             MAX_FDB_ENTRIES = {MAX_FDB_ENTRIES}, KNOWN_OPTIONS = {KNOWN_OPTIONS} }};"
        );
        assert!(header.contains(&expected), "{expected}");
    }

    #[test]
    fn lists_stand_behind_their_counts() {
        let bytes = flood(&[7], &[8, 9]);
        let at = |index: usize| {
            u32::from_ne_bytes(bytes[index * 4..][..4].try_into().expect("four bytes"))
        };
        assert_eq!((at(0), at(1), at(2)), (1, 2, 7));
        assert_eq!(
            (
                at(2 + MAX_REMOTES),
                at(3 + MAX_REMOTES),
                at(4 + MAX_REMOTES)
            ),
            (8, 9, 0)
        );
    }
}
