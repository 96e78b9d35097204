use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use wirecost_sys::namespace::{HeldNetns, Netns};
use wirecost_sys::socket::set_mtu_discover_probe;

use super::*;
use crate::adapt::set_mtu;
use crate::device::up;
use crate::device::{PeerNamespace, VethEnd};
use crate::guest::Uplink;
use crate::names::GUEST_DEVICE;
use crate::ready;

/// Stands in for a tunnel's device, which not every kernel has: IP packets that are put into it come out at the other
/// host. It has a link layer, so each end is told that all others are at the other end.
const TUNNEL: &str = "standin0";
const GUESTS: u32 = 2;
const MTU: u32 = 9000;
const TUNNEL_MACS: [[u8; 6]; 2] = [[2, 0, 0, 9, 0, 1], [2, 0, 0, 9, 0, 2]];

struct Host {
    side: Side,
    namespace: HeldNetns,
    guests: Vec<Guest>,
}

impl Host {
    fn within<T>(&self, step: impl FnOnce(&mut Netlink) -> Result<T, BuildError>) -> T {
        let inside = || {
            let mut netlink = Netlink::open().with_context(|| "opening rtnetlink".into())?;
            step(&mut netlink)
        };
        let done = self.namespace.netns().within(inside).expect("a namespace");
        done.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// `None` where this process may not make network namespaces.
fn hosts(ip: IpVersion) -> Option<[Host; 2]> {
    let host = |side: Side| -> Result<Host, std::io::Error> {
        let namespace = HeldNetns::create("host")?;
        let numbers = 0..GUESTS;
        let addresses: Vec<_> = numbers
            .map(|number| {
                let address = addresses::guest(ip, side, number);
                (address, addresses::guest_mac(side, number))
            })
            .collect();
        let made = namespace.netns().within(|| {
            ipv6::disable()?;
            Guest::all(&addresses)
        })?;
        let guests = made.unwrap_or_else(|error| panic!("{error}"));
        Ok(Host {
            side,
            namespace,
            guests,
        })
    };
    match host(Side::A).and_then(|a| Ok([a, host(Side::B)?])) {
        Ok(hosts) => Some(hosts),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            wirecost_skips::skip(format!("this needs root: {error}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn joined(ip: IpVersion) -> Option<[Host; 2]> {
    let [mut a, mut b] = hosts(ip)?;
    let peer = PeerNamespace::Fd(b.namespace.netns().as_fd());
    let end = |mac| VethEnd {
        name: TUNNEL,
        mtu: MTU,
        mac: Some(mac),
        queues: 1,
    };
    let [mac_a, mac_b] = TUNNEL_MACS.map(end);
    a.within(|netlink| {
        device::create_veth_between(netlink, (None, mac_a), (peer, mac_b))
            .with_context(|| "making the stand-in".into())
    });
    for (host, across) in [(&mut a, TUNNEL_MACS[1]), (&mut b, TUNNEL_MACS[0])] {
        route(host, ip, across);
    }
    Some([a, b])
}

fn route(host: &mut Host, ip: IpVersion, across: [u8; 6]) {
    let side = host.side;
    let mut guests = std::mem::take(&mut host.guests);
    host.within(|netlink| {
        for (number, guest) in (0..).zip(&mut guests) {
            let mac = addresses::port_mac(side, number);
            guest.connect(netlink, Uplink::Router { mac }, MTU, 1)?;
        }
        up(netlink, TUNNEL)?;
        let routing = Routing {
            side,
            ip,
            guests: &mut guests,
            tunnel: TUNNEL,
        };
        routing.set_up(netlink)?;
        let tunnel = index(netlink, TUNNEL)?;
        for number in 0..GUESTS {
            let other = addresses::guest(ip, side.other(), number);
            device::add_neighbour(netlink, tunnel, other, across)
                .with_context(|| "telling the stand-in's ends of each other".into())?;
        }
        Ok(())
    });
    host.guests = guests;
}

/// Until all of it can be used: what is sent before a link is up is lost.
fn wait(hosts: [&mut Host; 2]) {
    for host in hosts {
        let ports: Vec<String> = host.guests.iter().map(|guest| guest.port.clone()).collect();
        host.within(|netlink| {
            ready::link(netlink, TUNNEL)?;
            ports.iter().try_for_each(|port| ready::link(netlink, port))
        });
        for guest in &mut host.guests {
            guest
                .wait_until_ready()
                .unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

fn socket(netns: &Netns, address: IpAddr) -> UdpSocket {
    let bound = netns.within(|| UdpSocket::bind((address, 0)));
    let socket = bound.expect("a namespace").expect("a socket");
    set_mtu_discover_probe(&socket).expect("probing");
    let patience = Some(Duration::from_secs(5));
    socket.set_read_timeout(patience).expect("a time");
    socket
}

/// Sends a datagram of so many bytes of IP from each guest of one host to its partner, and looks for it there.
fn passes(from: &Host, to: &Host, size: u32) {
    for (sender, receiver) in from.guests.iter().zip(&to.guests) {
        let [own, partner] = [sender, receiver].map(|guest| {
            let netns = guest.namespace.netns();
            socket(netns, guest.address())
        });
        let target = partner.local_addr().expect("bound");
        let header = if target.is_ipv4() { 20 } else { 40 } + 8;
        let payload = vec![7; size as usize - header];
        own.send_to(&payload, target).expect("sent");
        let mut buffer = vec![0; 1 << 16];
        let (bytes, source) = partner.recv_from(&mut buffer).expect("it arrived");
        assert_eq!(bytes, payload.len());
        assert_eq!(
            source,
            own.local_addr().expect("bound"),
            "nobody translates"
        );
    }
}

#[test]
fn guests_of_routing_hosts_reach_each_other_with_full_size_packets_over_either_ip() {
    for ip in IpVersion::ALL {
        let Some([mut a, mut b]) = joined(ip) else {
            return;
        };
        wait([&mut a, &mut b]);
        for (from, to) in [(&a, &b), (&b, &a)] {
            for size in [1500, MTU] {
                passes(from, to, size);
            }
        }
    }
}

#[test]
fn nobody_asks_for_a_neighbour() {
    let Some([mut a, mut b]) = joined(IpVersion::Ipv4) else {
        return;
    };
    for host in [&mut a, &mut b] {
        for guest in &mut host.guests {
            set_mtu(&mut guest.netlink, GUEST_DEVICE, 1500)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    }
    wait([&mut a, &mut b]);
    passes(&a, &b, 1500);
    // What a guest's device received beside the datagram would be a question for it.
    let received = b.guests[0].namespace.netns().within(|| {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev").expect("counters");
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("eth0:"));
        let packets = line.and_then(|line| line.split_whitespace().nth(1));
        packets.and_then(|packets| packets.parse::<u32>().ok())
    });
    assert_eq!(received.expect("a namespace"), Some(1));
}
