//! Builds the orders to each host's agent about the ends of loads.

use std::net::IpAddr;

use wirecost_agent::protocol::{HostNetns, LoadEnd};
use wirecost_model::end_window::End;
use wirecost_model::load::Address;

use super::clients::Clients;
use super::guests::GuestLoad;

/// The given end of every load, by host. `place` gets guest and host and returns the namespace of the end, and the
/// source address of a client where it is to be set. `address` gets the load's index, the host's, and the load's
/// secret.
pub(super) fn ends(
    from: Clients<'_>,
    loads: &[GuestLoad],
    secret: [u8; 16],
    end: End,
    place: impl Fn(u32, usize) -> (HostNetns, Option<IpAddr>),
    address: impl Fn(usize, usize, &[u8; 16]) -> Address,
) -> [Vec<LoadEnd>; 2] {
    let mut ends = [Vec::new(), Vec::new()];
    for (index, GuestLoad { guest, named }) in loads.iter().enumerate() {
        if end == End::Server && !named.load.has_server() {
            continue;
        }
        let host = from.host_of(named, end);
        // A secret for each load and guest: no load or guest accepts the flows of another.
        let mut secret = secret;
        for (byte, number) in secret[12..].iter_mut().zip((index as u32).to_be_bytes()) {
            *byte ^= number;
        }
        let (place, source) = place(*guest, host);
        ends[host].push(LoadEnd {
            name: named.name.clone(),
            place,
            address: address(index, host, &secret),
            source: source.filter(|_| end == End::Client),
            cpus: from.cpus(named, end),
            load: named.load.clone(),
            secret,
        });
    }
    ends
}

/// The name of an abstract Unix socket, unique to a load.
pub(super) fn socket_name(secret: &[u8; 16]) -> String {
    // Every user can read the name (/proc/net/unix): it holds only the last four bytes of the secret.
    let digits = secret[12..].iter().map(|byte| format!("{byte:02x}"));
    format!("wirecost-{}", digits.collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::SocketAddr;

    use wirecost_model::load::{Load, NamedLoad, Workload};

    use super::super::guests::divide_among_guests;
    use super::*;

    #[test]
    fn no_two_ends_have_the_same_secret() {
        let load = NamedLoad::alone(Load::new(Workload::TcpStream));
        let parts = divide_among_guests(&[load.clone(), load], 64);
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let guest = |guest, _| (HostNetns::Guest(guest), None);
        let across = Clients::Across;
        let [_, servers] = ends(across, &parts, [7; 16], End::Server, guest, |_, _, _| {
            here.into()
        });
        let secrets: BTreeSet<_> = servers.iter().map(|end| end.secret).collect();
        assert_eq!(secrets.len(), 128);
    }
}
