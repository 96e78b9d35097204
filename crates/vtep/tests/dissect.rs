//! Frames as they leave a host, read by somebody else's dissectors: nothing malformed, every checksum right.

mod lab;

use std::io::Write as _;
use std::net::IpAddr;
use std::process::Command;

use lab::{Lab, NO_OFFLOADS, TestNetns, allowed, bulk, echo, skip};
use wirecost_sys::socket::PacketCapture;
use wirecost_vtep::{Config, Format, Tunnel};
use wirecost_wire::geneve::Options;

/// What tshark is asked for; names of its display filter reference.
const FIELDS: [&str; 10] = [
    "_ws.malformed",
    "ip.checksum.status",
    "udp.checksum.status",
    "tcp.checksum.status",
    "tcp.checksum.ffff",
    "vxlan.vni",
    "geneve.vni",
    "vlan.id",
    "geneve.option.class",
    "frame.protocols",
];

fn tshark_is_there() -> bool {
    Command::new("tshark").arg("--version").output().is_ok()
        || skip("tshark is not installed: apt-get install tshark")
}

/// Every frame of `frames` as tshark sees it: one value for each of [`FIELDS`].
fn dissect(frames: &[Vec<u8>]) -> Vec<Vec<String>> {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    // pcap: magic, version 2.4, zone, accuracy, snap length, link type Ethernet.
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65535, 1u32] {
        bytes.extend(word.to_ne_bytes());
    }
    for frame in frames {
        let length = frame.len() as u32;
        for word in [0, 0, length, length] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(frame);
    }
    file.write_all(&bytes).expect("written");
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(file.path())
        .args(["-n", "-T", "fields", "-E", "separator=|"]);
    for protocol in ["ip", "udp", "tcp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).expect("text");
    let rows: Vec<Vec<String>> = text
        .lines()
        .map(|line| line.split('|').map(str::to_owned).collect())
        .collect();
    assert_eq!(rows.len(), frames.len(), "{said}");
    rows
}

/// The frames that pass a host's underlay while `work` runs.
fn captured(host: &TestNetns, work: impl FnOnce()) -> Vec<Vec<u8>> {
    let index = host.ip("-o link show under0");
    let index = index
        .split(':')
        .next()
        .expect("an index")
        .trim()
        .parse()
        .expect("a number");
    let capture = host.run(|| PacketCapture::open(index, 65535).expect("a capture"));
    work();
    let mut buffer = vec![0; 65535];
    let mut frames = Vec::new();
    while let Some((bytes, _)) = capture.recv(&mut buffer).expect("a frame") {
        frames.push(buffer[..bytes].to_vec());
    }
    frames
}

fn value<'a>(row: &'a [String], field: &str) -> &'a str {
    let at = FIELDS
        .iter()
        .position(|name| *name == field)
        .expect("a field");
    &row[at]
}

/// An endpoint's configuration from its own address, and a field that tells its frames by its value.
type Case = (
    fn(IpAddr) -> Format,
    Option<u16>,
    &'static str,
    &'static str,
);

const CASES: [Case; 6] = [
    (unsummed_vxlan, None, "vxlan.vni", "1193046"),
    (vxlan, None, "vxlan.vni", "1193046"),
    (vxlan, Some(77), "vlan.id", "77"),
    (
        |local| geneve(local, Options::none()),
        None,
        "geneve.vni",
        "0x123456",
    ),
    (
        |local| geneve(local, Options::ovn(1, 2)),
        None,
        "geneve.option.class",
        "0x0102",
    ),
    (|_| Format::Vlan { id: 42 }, None, "vlan.id", "42"),
];

fn unsummed_vxlan(local: IpAddr) -> Format {
    Format::Vxlan(Tunnel::vxlan(local))
}

fn vxlan(local: IpAddr) -> Format {
    Format::Vxlan(Tunnel {
        udp_checksum: true,
        ..Tunnel::vxlan(local)
    })
}

fn geneve(local: IpAddr, options: Options) -> Format {
    let tunnel = Tunnel {
        udp_checksum: true,
        ..Tunnel::geneve(local)
    };
    Format::Geneve(tunnel, options)
}

#[test]
fn every_format_is_dissected_with_nothing_amiss() {
    if !allowed() || !tshark_is_there() {
        return;
    }
    for six in [false, true] {
        for (format, inner_vlan, field, expected) in CASES {
            let frames = underlay_frames(|index| Config {
                inner_vlan,
                ..Config::new("under0", format(Lab::host(index + 1, six)))
            });
            expect_nothing_amiss(&frames, field, expected);
        }
    }
}

/// What passes the underlay between two endpoints while their guests talk, complete down to the last checksum.
fn underlay_frames(config: impl Fn(usize) -> Config) -> Vec<Vec<u8>> {
    let lab = Lab::new(1600, 1446);
    for host in &lab.hosts {
        host.features("under0", &NO_OFFLOADS);
        // Nothing is left to be filled in behind the capture.
        let filled_in_later = [
            ("tx-checksum-ip-generic", false),
            ("tx-vlan-hw-insert", false),
        ];
        host.features("under0", &filled_in_later);
    }
    let _ends = [0, 1].map(|index| lab.endpoint(index, config(index)));
    captured(&lab.hosts[0], || {
        for inner_six in [false, true] {
            let at = Lab::guest(2, inner_six);
            assert!(echo(&lab.guests[0], &lab.guests[1], at, 301));
            bulk(&lab.guests[0], &lab.guests[1], at, 300_000, 9_999);
        }
    })
}

fn is_bad(row: &[String], protocol: &str) -> bool {
    // Once in 65,536 frames the kernel fills in 0xffff for TCP where 0 was meant, as it has to for UDP
    // (CSUM_MANGLED_0 in skb_checksum_help(), net/core/dev.c): both sum to the same.
    if protocol == "tcp" && !value(row, "tcp.checksum.ffff").is_empty() {
        return false;
    }
    // 0 is bad; 1 good, 2 not checked, 3 not present.
    let status = value(row, &format!("{protocol}.checksum.status"));
    status.split(',').any(|status| status == "0")
}

fn expect_nothing_amiss(frames: &[Vec<u8>], field: &str, expected: &str) {
    let rows = dissect(frames);
    for (row, frame) in rows.iter().zip(frames) {
        assert_eq!(value(row, "_ws.malformed"), "", "{row:?} {frame:02x?}");
        for protocol in ["ip", "udp", "tcp"] {
            assert!(!is_bad(row, protocol), "{protocol}: {row:?} {frame:02x?}");
        }
    }
    // Frames were there and were really checked, super-packets' last segments among them.
    let ours = rows
        .iter()
        .filter(|row| value(row, field) == expected)
        .filter(|row| value(row, "tcp.checksum.status").contains('1'))
        .count();
    assert!(ours > 100, "{field}: {ours} of {} frames", rows.len());
}

#[test]
fn a_wrong_checksum_would_be_seen() {
    if !tshark_is_there() {
        return;
    }
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1, 2)
        .write(&mut frame, b"x")
        .expect("a datagram");
    let right = frame.clone();
    frame[41] ^= 1;
    let rows = dissect(&[right, frame]);
    assert_eq!(value(&rows[0], "udp.checksum.status"), "1");
    assert_eq!(value(&rows[1], "udp.checksum.status"), "0");
    assert_eq!([0, 1].map(|row| is_bad(&rows[row], "udp")), [false, true]);
}

#[test]
fn of_the_two_zeros_of_a_tcp_checksum_neither_is_wrong() {
    if !tshark_is_there() {
        return;
    }
    let segment = |payload: [u8; 2]| {
        let mut frame = Vec::new();
        etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(1, 2, 3, 4)
            .write(&mut frame, &payload)
            .expect("a segment");
        frame
    };
    // Ethernet's 14 bytes, IPv4's 20, and 16 of TCP's are before the checksum.
    let checksum = |frame: &[u8]| [frame[50], frame[51]];
    // What made the checksum what it is, added to the payload, makes it zero.
    let zero = segment(checksum(&segment([0; 2])));
    assert_eq!(checksum(&zero), [0, 0]);
    let with = |checksum: [u8; 2]| {
        let mut frame = zero.clone();
        frame[50..52].copy_from_slice(&checksum);
        frame
    };
    let rows = dissect(&[with([0, 0]), with([0xff, 0xff]), with([0xff, 0xfe])]);
    let bad: Vec<_> = rows.iter().map(|row| is_bad(row, "tcp")).collect();
    assert_eq!(bad, [false, false, true], "{rows:?}");
}
