//! Two hosts and a guest behind each, in namespaces held by threads: nothing to clean up.

#![allow(dead_code, reason = "each test program uses its part")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration;

pub(crate) use wirecost_skips::skip;
use wirecost_sys::bpf::PassingClassifier;
use wirecost_sys::namespace::{HeldNetns, Netns};
use wirecost_vtep::{Config, FdbDestination, Vtep};

/// MACs and addresses of the two guests.
pub(crate) const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 7, 1], [2, 0, 0, 0, 7, 2]];
pub(crate) const VNI: u32 = 0x12_3456;
/// Longest wait for anything on the network.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Whether the tests can run here; says why not, or fails where they must.
pub(crate) fn allowed() -> bool {
    let reason = match PassingClassifier::load() {
        Ok(_) => return true,
        Err(error) => format!("eBPF programs cannot be loaded here: {error}"),
    };
    skip(reason)
}

/// A namespace with a shell's view of it.
pub(crate) struct TestNetns {
    held: HeldNetns,
}

impl TestNetns {
    pub(crate) fn new() -> Self {
        let held = HeldNetns::create("vtep-test").expect("a namespace");
        let netns = Self { held };
        // Addresses are usable at once.
        netns.run(|| {
            for key in ["accept_dad", "router_solicitations"] {
                let path = format!("/proc/sys/net/ipv6/conf/default/{key}");
                std::fs::write(path, "0").expect("a setting of our own namespace");
            }
            // Ports that no protocol has, so that tshark takes no payload for one (44818 is EtherNet/IP's).
            let ports = "/proc/sys/net/ipv4/ip_local_port_range";
            std::fs::write(ports, "61000 64999").expect("a setting of our own namespace");
        });
        netns.ip("link set lo up");
        netns
    }

    pub(crate) fn netns(&self) -> &Netns {
        self.held.netns()
    }

    pub(crate) fn id(&self) -> u32 {
        self.held.tid()
    }

    /// Runs `work` in this namespace.
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        self.netns().within(work).expect("the namespace")
    }

    pub(crate) fn command(&self, program: &str, arguments: &str) -> String {
        let output = self.run(|| {
            Command::new(program)
                .args(arguments.split_whitespace())
                .output()
        });
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{program} {arguments}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn ip(&self, arguments: &str) -> String {
        self.command("ip", arguments)
    }

    /// Device features by the kernel's names.
    pub(crate) fn features(&self, device: &str, wanted: &[(&str, bool)]) {
        self.run(|| {
            let ethtool = wirecost_sys::ethtool::Ethtool::open().expect("a socket");
            let wanted = wanted.iter().map(|&(n, on)| (n.to_owned(), on)).collect();
            ethtool.set_features(device, &wanted).expect("features");
        });
    }
}

/// What the guest's device at the host, `guest0`, must not have, so that veth joins segments for the guest.
pub(crate) const NO_TSO: [(&str, bool); 4] = [
    ("tx-tcp-segmentation", false),
    ("tx-tcp-ecn-segmentation", false),
    ("tx-tcp-mangleid-segmentation", false),
    ("tx-tcp6-segmentation", false),
];

/// Everything a device can leave to another one.
pub(crate) const NO_OFFLOADS: [(&str, bool); 8] = [
    ("tx-tcp-segmentation", false),
    ("tx-tcp-ecn-segmentation", false),
    ("tx-tcp-mangleid-segmentation", false),
    ("tx-tcp6-segmentation", false),
    ("tx-generic-segmentation", false),
    ("tx-udp-segmentation", false),
    ("tx-udp_tnl-segmentation", false),
    ("tx-udp_tnl-csum-segmentation", false),
];

/// Two hosts joined by an underlay (`under0`: 10.9.0.1, 10.9.0.2, fd09::1, fd09::2), a guest behind each
/// (`eth0`: 10.7.0.1, 10.7.0.2, fd07::1, fd07::2; its host's end is `guest0`).
pub(crate) struct Lab {
    pub(crate) hosts: [TestNetns; 2],
    pub(crate) guests: [TestNetns; 2],
}

impl Lab {
    pub(crate) fn new(underlay_mtu: u32, guest_mtu: u32) -> Self {
        let lab = Self {
            hosts: [TestNetns::new(), TestNetns::new()],
            guests: [TestNetns::new(), TestNetns::new()],
        };
        let peer = lab.hosts[1].id();
        lab.hosts[0].ip(&format!(
            "link add under0 mtu {underlay_mtu} type veth peer name under0 mtu {underlay_mtu} netns {peer}"
        ));
        for (index, (host, guest)) in lab.hosts.iter().zip(&lab.guests).enumerate() {
            let number = index + 1;
            let mac = mac_text(MACS[index]);
            let id = guest.id();
            host.ip(&format!(
                "link add guest0 mtu 9000 type veth peer name eth0 mtu {guest_mtu} address {mac} netns {id}"
            ));
            for (netns, device, net) in [(host, "under0", 9), (guest, "eth0", 7)] {
                netns.ip(&format!("address add 10.{net}.0.{number}/24 dev {device}"));
                netns.ip(&format!(
                    "address add fd0{net}::{number}/64 dev {device} nodad"
                ));
                netns.ip(&format!("link set {device} up"));
            }
            host.ip("link set guest0 up");
            host.features("guest0", &NO_TSO);
            guest.features("eth0", &[("rx-gro", true)]);
        }
        lab
    }

    /// The underlay's address of a host, of the family of `like`.
    pub(crate) fn host(number: usize, six: bool) -> IpAddr {
        address(9, number, six)
    }

    /// A guest's address.
    pub(crate) fn guest(number: usize, six: bool) -> IpAddr {
        address(7, number, six)
    }

    /// An endpoint at a host, its guest and the other host known.
    pub(crate) fn endpoint(&self, index: usize, config: Config) -> Vtep {
        let six = config.format.tunnel().is_some_and(|t| t.local.is_ipv6());
        let tunnel = config.format.tunnel().is_some();
        let vni = if tunnel { VNI } else { 0 };
        self.hosts[index].run(|| {
            let mut vtep = Vtep::attach(config).unwrap_or_else(|error| panic!("{error}"));
            if tunnel {
                let other = Self::host(2 - index, six);
                vtep.flood_to(vni, other).expect("a remote");
                vtep.set_fdb_entry(vni, MACS[1 - index], FdbDestination::Remote(other))
                    .expect("an entry");
            }
            vtep.add_guest("guest0", vni).expect("a guest");
            let here = FdbDestination::Guest("guest0".to_owned());
            vtep.set_fdb_entry(vni, MACS[index], here)
                .expect("an entry");
            vtep
        })
    }
}

fn address(net: u8, number: usize, six: bool) -> IpAddr {
    let text = if six {
        format!("fd0{net}::{number}")
    } else {
        format!("10.{net}.0.{number}")
    };
    text.parse().expect("an address")
}

pub(crate) fn mac_text(mac: [u8; 6]) -> String {
    let parts: Vec<String> = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    parts.join(":")
}

/// Sends `bytes` from one guest to the other in writes of `write` bytes; what arrives is compared byte for byte.
pub(crate) fn bulk(from: &TestNetns, to: &TestNetns, address: IpAddr, bytes: usize, write: usize) {
    let listener = to.run(|| TcpListener::bind((address, 0)).expect("a listener"));
    let at = listener.local_addr().expect("its address");
    let receiving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut buffer = vec![0; PERIOD];
        let expected = pattern(2 * PERIOD);
        let mut got = 0;
        loop {
            match stream.read(&mut buffer).expect("data before patience ends") {
                0 => break,
                n => {
                    let start = got % PERIOD;
                    assert!(
                        buffer[..n] == expected[start..start + n],
                        "bytes from {got} on are others"
                    );
                    got += n;
                }
            }
        }
        stream.write_all(&[7]).expect("an answer");
        got
    });
    let mut stream = from
        .run(|| TcpStream::connect_timeout(&at, PATIENCE))
        .expect("a connection");
    stream.set_write_timeout(Some(PATIENCE)).expect("timeout");
    stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
    let data = pattern(bytes);
    for chunk in data.chunks(write) {
        stream.write_all(chunk).expect("sent before patience ends");
    }
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("the end of it");
    stream.read_exact(&mut [0]).expect("an answer");
    assert_eq!(receiving.join().expect("the receiver"), bytes);
}

/// No multiple of any segment's length, so that one segment in another's place shows.
const PERIOD: usize = 65_521;

fn pattern(bytes: usize) -> Vec<u8> {
    let one: Vec<u8> = (0..PERIOD).map(|i| (i ^ i >> 8) as u8).collect();
    // Byte by byte it would take most of the time in an emulated machine.
    let mut all = one.repeat(bytes.div_ceil(PERIOD));
    all.truncate(bytes);
    all
}

/// A datagram of this payload there and back; `false` where none comes.
pub(crate) fn echo(from: &TestNetns, to: &TestNetns, address: IpAddr, bytes: usize) -> bool {
    let server = to.run(|| UdpSocket::bind((address, 0)).expect("a socket"));
    let at = server.local_addr().expect("its address");
    let any: SocketAddr = if address.is_ipv4() {
        "0.0.0.0:0".parse().expect("address")
    } else {
        "[::]:0".parse().expect("address")
    };
    let client = from.run(|| UdpSocket::bind(any).expect("a socket"));
    let short = Some(Duration::from_millis(500));
    client.set_read_timeout(short).expect("a timeout");
    server.set_read_timeout(short).expect("a timeout");
    let sent = vec![0x5a; bytes];
    let mut buffer = vec![0; 1 << 16];
    for _ in 0..6 {
        if client.send_to(&sent, at).is_err() {
            continue; // the path's MTU has just been learned
        }
        let Ok((n, back)) = server.recv_from(&mut buffer) else {
            continue;
        };
        assert_eq!(&buffer[..n], &sent[..]);
        if server.send_to(&sent[..1], back).is_err() {
            continue;
        }
        if client.recv_from(&mut buffer).is_ok() {
            return true;
        }
    }
    false
}
