//! Underlays between two namespaces: what gets through, what is lost without a word, who says what.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use wirecost_model::ip::IpVersion;
use wirecost_model::transit::{Hop, HopKind, Icmp, Member, Mtus, Transit};
use wirecost_netbuild::underlay::{self, Underlay};
use wirecost_netbuild::{BuildError, Side};
use wirecost_sys::namespace::{HeldNetns, Netns};
use wirecost_sys::socket::{
    ErrorOrigin, QueuedError, enable_recverr, poll_readable, read_error_queue,
    set_mtu_discover_probe, set_udp_segment,
};

const UNDERLAY_MTU: u32 = 9000;
/// Within it, what is not lost has long arrived.
const WAIT: Duration = Duration::from_millis(300);

/// Two hosts and what is between them.
struct Net {
    ip: IpVersion,
    transit: Transit,
    hosts: [HeldNetns; 2],
    underlay: Underlay,
}

/// Two namespaces; `None` where this process may not make any.
fn hosts() -> Option<[HeldNetns; 2]> {
    let host = || HeldNetns::create("host");
    match host().and_then(|a| Ok([a, host()?])) {
        Ok(hosts) => Some(hosts),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            wirecost_skips::skip(format!("this needs root: {error}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// `None` where this process may not make network namespaces.
fn net(transit: &Transit, ip: IpVersion) -> Option<Net> {
    Some(lay(transit, ip, hosts()?).unwrap_or_else(|error| panic!("{error}")))
}

fn lay(transit: &Transit, ip: IpVersion, hosts: [HeldNetns; 2]) -> Result<Net, BuildError> {
    let [a, b] = hosts.each_ref().map(HeldNetns::netns);
    let inside = |netns: &Netns, side| {
        let joined = netns.within(|| underlay::join_here(transit, side, ip));
        joined.expect("the host's namespace")
    };
    let laid = a.within(|| Underlay::between(transit, UNDERLAY_MTU, ip, b));
    let mut underlay = laid.expect("host a's namespace")?;
    inside(a, Side::A)?;
    inside(b, Side::B)?;
    underlay.wait_until_ready()?;
    for (netns, side) in [(a, Side::A), (b, Side::B)] {
        let ready = netns.within(|| underlay::ready_here(transit, side, ip));
        ready.expect("the host's namespace")?;
    }
    Ok(Net {
        ip,
        transit: transit.clone(),
        hosts,
        underlay,
    })
}

/// A socket that sends what cannot be fragmented, whatever a router said before.
fn socket(netns: &Netns, address: IpAddr) -> UdpSocket {
    let socket = netns.within(|| UdpSocket::bind((address, 0)));
    let socket = socket.expect("a namespace").expect("a socket");
    set_mtu_discover_probe(&socket).expect("probing");
    enable_recverr(&socket).expect("errors");
    socket.set_nonblocking(true).expect("nonblocking");
    socket
}

impl Net {
    fn socket(&self, side: Side) -> UdpSocket {
        let host = &self.hosts[usize::from(side == Side::B)];
        let address = underlay::address(&self.transit, side, self.ip);
        socket(host.netns(), address)
    }

    fn headers(&self) -> u32 {
        self.ip.header_bytes() + 8
    }

    /// Sends datagrams of these sizes, in bytes of IP; returns the sizes that arrived at the other host.
    fn pass(&self, from: Side, sizes: &[u32]) -> BTreeSet<u32> {
        let to = if from == Side::A { Side::B } else { Side::A };
        let (sender, receiver) = (self.socket(from), self.socket(to));
        let target = receiver.local_addr().expect("bound");
        self.send(&sender, target, sizes);
        self.arrived(&receiver)
            .into_iter()
            .map(|(size, _)| size)
            .collect()
    }

    fn send(&self, sender: &UdpSocket, target: SocketAddr, sizes: &[u32]) {
        for size in sizes {
            let payload = vec![0; (size - self.headers()) as usize];
            // An ICMP message about an earlier one may be told here, once; then it is sent again.
            let sent = sender.send_to(&payload, target);
            sent.or_else(|_| sender.send_to(&payload, target))
                .unwrap_or_else(|error| panic!("{size}: {error}"));
        }
    }

    /// What arrives until nothing more does: sizes and who sent.
    fn arrived(&self, receiver: &UdpSocket) -> Vec<(u32, SocketAddr)> {
        let (mut buffer, mut all) = (vec![0; 1 << 16], Vec::new());
        loop {
            match receiver.recv_from(&mut buffer) {
                Ok((length, from)) => all.push((length as u32 + self.headers(), from)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if poll_readable(&[receiver.as_fd()], WAIT)
                        .expect("poll")
                        .is_empty()
                    {
                        return all;
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Sends one datagram that is too large and returns what somebody said about it.
    fn complaint(&self, from: Side, size: u32) -> Option<QueuedError> {
        let to = if from == Side::A { Side::B } else { Side::A };
        let (sender, receiver) = (self.socket(from), self.socket(to));
        self.send(&sender, receiver.local_addr().expect("bound"), &[size]);
        assert!(self.arrived(&receiver).is_empty(), "{size} is too large");
        read_error_queue(&sender).expect("the error queue")
    }
}

fn hops(hops: impl IntoIterator<Item = Hop>) -> Transit {
    Transit {
        hops: hops.into_iter().collect(),
        paths: Vec::new(),
    }
}

fn set(sizes: impl IntoIterator<Item = u32>) -> BTreeSet<u32> {
    sizes.into_iter().collect()
}

const BOTH: [Side; 2] = [Side::A, Side::B];

#[test]
fn one_wire_carries_its_mtu() {
    for ip in IpVersion::ALL {
        let Some(net) = net(&Transit::wire(), ip) else {
            return;
        };
        for from in BOTH {
            assert_eq!(
                net.pass(from, &[1500, UNDERLAY_MTU]),
                set([1500, UNDERLAY_MTU])
            );
        }
    }
}

#[test]
fn a_switch_drops_what_is_a_byte_too_large_and_says_nothing() {
    for ip in IpVersion::ALL {
        for mtu in [1500, 8192, 8950] {
            let Some(net) = net(&hops([Hop::new(HopKind::Switch, mtu)]), ip) else {
                return;
            };
            for from in BOTH {
                let sizes = [mtu - 1, mtu, mtu + 1, mtu + 4, mtu + 5, UNDERLAY_MTU];
                assert_eq!(net.pass(from, &sizes), set([mtu - 1, mtu]), "{ip} {mtu}");
                assert_eq!(net.complaint(from, mtu + 1), None, "{ip} {mtu}");
            }
        }
    }
}

#[test]
fn a_switch_may_be_narrower_in_one_direction() {
    let mut hop = Hop::new(HopKind::Switch, UNDERLAY_MTU);
    hop.mtu = Mtus {
        from_a: 9000,
        from_b: 1500,
    };
    let Some(net) = net(&hops([hop]), IpVersion::Ipv4) else {
        return;
    };
    let sizes = [1500, 1501, 9000];
    assert_eq!(net.pass(Side::A, &sizes), set(sizes));
    assert_eq!(net.pass(Side::B, &sizes), set([1500]));
}

#[test]
fn a_router_says_what_it_would_carry() {
    for ip in IpVersion::ALL {
        let Some(net) = net(&hops([Hop::new(HopKind::Router, 1500)]), ip) else {
            return;
        };
        for from in BOTH {
            assert_eq!(net.pass(from, &[1499, 1500]), set([1499, 1500]), "{ip}");
            let said = net.complaint(from, 1501).expect("a message");
            assert_ne!(said.origin, ErrorOrigin::Local, "{said:?}");
            assert_eq!(said.mtu, Some(1500), "{said:?}");
            let own = underlay::address(&net.transit, from, ip);
            assert!(
                said.offender.is_some_and(|router| router != own),
                "{said:?}"
            );
        }
    }
}

#[test]
fn a_router_whose_icmp_is_filtered_carries_as_much_and_says_nothing() {
    for ip in IpVersion::ALL {
        let mut hop = Hop::new(HopKind::Router, 1500);
        hop.icmp = Icmp::Filtered;
        let Some(net) = net(&hops([hop]), ip) else {
            return;
        };
        for from in BOTH {
            assert_eq!(net.pass(from, &[1500, 1501]), set([1500]), "{ip}");
            assert_eq!(net.complaint(from, 9000), None, "{ip}");
        }
    }
}

#[test]
fn a_router_may_be_narrower_in_one_direction() {
    let mut hop = Hop::new(HopKind::Router, 9000);
    hop.mtu.from_a = 8000;
    let Some(net) = net(&hops([hop]), IpVersion::Ipv6) else {
        return;
    };
    assert_eq!(net.pass(Side::B, &[8001, 9000]), set([8001, 9000]));
    assert_eq!(net.pass(Side::A, &[8000, 8001]), set([8000]));
}

#[test]
fn of_several_hops_each_does_its_part() {
    let transit = hops([
        Hop::new(HopKind::Router, 9000),
        Hop::new(HopKind::Switch, 8950),
        Hop::new(HopKind::Router, 8000),
        Hop::new(HopKind::Router, 9000),
    ]);
    for ip in IpVersion::ALL {
        let Some(net) = net(&transit, ip) else {
            return;
        };
        for from in BOTH {
            assert_eq!(net.pass(from, &[8000]), set([8000]), "{ip}");
            // From a the switch comes first, from b the router that says so.
            let said = net.complaint(from, 9000).and_then(|said| said.mtu);
            assert_eq!(said, (from == Side::B).then_some(8000), "{ip}");
            let said = net.complaint(from, 8500).and_then(|said| said.mtu);
            assert_eq!(said, Some(8000), "{ip}");
        }
    }
}

/// One bad member of n: exactly the flows that the fork gives to it are lost, the same ones each time,
/// and others in the other direction.
#[test]
fn of_equal_paths_exactly_the_bad_members_share_is_lost() {
    const FLOWS: usize = 400;
    for (ip, n) in [
        (IpVersion::Ipv4, 2),
        (IpVersion::Ipv4, 4),
        (IpVersion::Ipv4, 8),
        (IpVersion::Ipv6, 4),
    ] {
        let mut paths = vec![
            Member {
                mtu: Some(UNDERLAY_MTU),
                icmp: Icmp::Sent
            };
            n
        ];
        paths[n - 1] = Member {
            mtu: Some(1500),
            icmp: Icmp::Filtered,
        };
        let transit = Transit {
            hops: Vec::new(),
            paths,
        };
        let Some(net) = net(&transit, ip) else { return };
        for from in BOTH {
            let to = if from == Side::A { Side::B } else { Side::A };
            let receiver = net.socket(to);
            let target = receiver.local_addr().expect("bound");
            let flows: Vec<UdpSocket> = (0..FLOWS).map(|_| net.socket(from)).collect();
            let ports = |size| -> BTreeSet<u16> {
                // Few at a time: a receive buffer takes ten of the large ones.
                let batches = flows.chunks(4).flat_map(|batch| {
                    for flow in batch {
                        net.send(flow, target, &[size, SMALL]);
                    }
                    take(&net, &receiver, size, batch.len())
                });
                batches.collect()
            };
            let all = ports(1500);
            assert_eq!(all.len(), FLOWS, "{ip}: 1500 bytes go by every member");
            let large = ports(UNDERLAY_MTU);
            assert_eq!(ports(UNDERLAY_MTU), large, "a flow keeps its path");
            let lost = (FLOWS - large.len()) as f64;
            // Binomial: within 5 standard deviations of the share.
            let share = 1.0 / n as f64;
            let (mean, deviation) = (
                FLOWS as f64 * share,
                (FLOWS as f64 * share * (1.0 - share)).sqrt(),
            );
            println!("{ip}, {n} paths, from {from}: {lost} of {FLOWS} flows lost");
            assert!((lost - mean).abs() < 5.0 * deviation, "{lost} of {mean}");
        }
    }
}

/// Goes by every path, behind what is asked about: a flow's datagrams keep their order.
const SMALL: u32 = 100;

/// The ports that datagrams of one size came from, when the small ones of as many flows have come.
fn take(net: &Net, receiver: &UdpSocket, size: u32, flows: usize) -> Vec<u16> {
    let (mut buffer, mut ports, mut small) = (vec![0; 1 << 16], Vec::new(), 0);
    while small < flows {
        match receiver.recv_from(&mut buffer) {
            Ok((length, from)) if length as u32 + net.headers() == size => ports.push(from.port()),
            Ok((length, _)) => {
                assert_eq!(length as u32 + net.headers(), SMALL);
                small += 1;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let wait = Duration::from_secs(10);
                let ready = poll_readable(&[receiver.as_fd()], wait).expect("poll");
                assert!(!ready.is_empty(), "{small} of {flows} small ones came");
            }
            Err(error) => panic!("{error}"),
        }
    }
    ports
}

#[test]
fn a_switch_cuts_super_packets_and_holds_their_pieces_against_its_mtu() {
    for mtu in [1500, 8950] {
        let Some(net) = net(&hops([Hop::new(HopKind::Switch, mtu)]), IpVersion::Ipv4) else {
            return;
        };
        for (piece, passes) in [(mtu, true), (mtu + 1, false)] {
            let (sender, receiver) = (net.socket(Side::A), net.socket(Side::B));
            let payload = piece - net.headers();
            // UDP segmentation offload: one super-packet of four pieces leaves the host.
            set_udp_segment(&sender, payload as u16).expect("segmentation offload");
            let target = receiver.local_addr().expect("bound");
            let sent = sender.send_to(&vec![0; 4 * payload as usize], target);
            assert_eq!(sent.expect("sent"), 4 * payload as usize);
            let sizes: Vec<u32> = net
                .arrived(&receiver)
                .iter()
                .map(|(size, _)| *size)
                .collect();
            let expected = if passes { vec![piece; 4] } else { vec![] };
            assert_eq!(sizes, expected, "{mtu}");
        }
    }
}

/// Sends a number of datagrams that are answered by nothing, and counts those that arrive.
fn count(net: &Net, from: Side, to_port: u16, datagrams: usize) -> usize {
    let to = if from == Side::A { Side::B } else { Side::A };
    let sender = net.socket(from);
    let host = &net.hosts[usize::from(to == Side::B)];
    let address = underlay::address(&net.transit, to, net.ip);
    let target = SocketAddr::new(address, to_port);
    let receiver = host.netns().within(|| UdpSocket::bind(target));
    let receiver = receiver.expect("a namespace").expect("a socket");
    receiver.set_nonblocking(true).expect("nonblocking");
    let mut arrived = 0;
    for _ in 0..datagrams.div_ceil(50) {
        net.send(&sender, target, &[SMALL; 50]);
        let (mut buffer, quiet) = ([0; 128], Duration::from_millis(20));
        loop {
            match receiver.recv(&mut buffer) {
                Ok(_) => arrived += 1,
                Err(_)
                    if poll_readable(&[receiver.as_fd()], quiet)
                        .expect("poll")
                        .is_empty() =>
                {
                    break;
                }
                Err(_) => {}
            }
        }
    }
    arrived
}

#[test]
fn a_hop_may_lose_a_port_or_a_share() {
    for kind in [HopKind::Switch, HopKind::Router] {
        for ip in IpVersion::ALL {
            let mut hop = Hop::new(kind, 1500);
            hop.drop_udp_port = Some(4789);
            let Some(net) = net(&hops([hop]), ip) else {
                return;
            };
            for from in BOTH {
                assert_eq!(count(&net, from, 4789, 50), 0, "{kind:?} {ip}");
                assert_eq!(count(&net, from, 4788, 50), 50, "{kind:?} {ip}");
            }
        }
        let mut hop = Hop::new(kind, 1500);
        hop.loss_ppm = 200_000;
        let Some(net) = net(&hops([hop]), IpVersion::Ipv4) else {
            return;
        };
        let arrived = count(&net, Side::A, 9000, 1000);
        println!("{kind:?}: {arrived} of 1000 arrived");
        // Binomial, 800 expected, deviation 12.6: within 5 of them.
        assert!((737..=863).contains(&arrived), "{kind:?}: {arrived}");
    }
}

#[test]
fn a_switch_may_filter_the_icmp_of_routers_behind_it() {
    for ip in IpVersion::ALL {
        let mut switch = Hop::new(HopKind::Switch, 9000);
        switch.icmp = Icmp::Filtered;
        let Some(net) = net(&hops([switch, Hop::new(HopKind::Router, 1500)]), ip) else {
            return;
        };
        assert_eq!(net.pass(Side::A, &[1500, 1501]), set([1500]), "{ip}");
        assert_eq!(net.complaint(Side::A, 1501), None, "{ip}");
        assert!(
            net.complaint(Side::B, 1501).is_some(),
            "{ip}: no switch is in between"
        );
    }
}

#[test]
fn a_delay_is_one_or_the_error_says_what_the_kernel_lacks() {
    let mut hop = Hop::new(HopKind::Router, 9000);
    hop.delay_us = 20_000;
    let transit = hops([hop]);
    let Some(hosts) = hosts() else { return };
    match lay(&transit, IpVersion::Ipv4, hosts) {
        Ok(net) => {
            let began = Instant::now();
            assert_eq!(net.pass(Side::A, &[1500]), set([1500]));
            assert!(began.elapsed() >= Duration::from_millis(20));
        }
        Err(error) => {
            let words = error.to_string();
            wirecost_skips::lacks(&words);
            assert!(
                words.contains("hop 1, a router") && words.contains("CONFIG_NET_SCH_NETEM"),
                "{words}"
            );
        }
    }
}

#[test]
fn what_was_laid_is_gone_when_it_is_dropped() {
    let paths = vec![
        Member {
            mtu: None,
            icmp: Icmp::Sent
        };
        64
    ];
    let transit = Transit {
        hops: vec![Hop::new(HopKind::Switch, 9000)],
        paths,
    };
    let began = Instant::now();
    let Some(net) = net(&transit, IpVersion::Ipv4) else {
        return;
    };
    println!("64 paths in {:.3} s", began.elapsed().as_secs_f64());
    assert_eq!(net.pass(Side::A, &[9000]), set([9000]));
    let Net {
        hosts, underlay, ..
    } = net;
    drop(underlay);
    // Both hosts' devices go with what was at their other ends.
    let [a, b] = hosts.each_ref().map(HeldNetns::netns);
    for host in [a, b] {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let text = host.within(|| std::fs::read_to_string("/proc/thread-self/net/dev"));
            let text = text.expect("a namespace").expect("a file");
            if !text.contains("underlay") {
                break;
            }
            assert!(Instant::now() < deadline, "{text}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
