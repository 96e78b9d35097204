//! Frames as they leave a host, read by somebody else's dissectors: nothing malformed, every checksum right.

mod lab;

use std::io::Write as _;
use std::process::Command;

use lab::{Lab, NO_OFFLOADS, Place, allowed, bulk, echo, skip};
use wirecost_sys::socket::PacketCapture;
use wirecost_vtep::{Config, Format, Tunnel};
use wirecost_wire::geneve::Options;

/// What tshark is asked for; names of its display filter reference.
const FIELDS: [&str; 9] = [
    "_ws.malformed",
    "ip.checksum.status",
    "udp.checksum.status",
    "tcp.checksum.status",
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
fn captured(host: &Place, work: impl FnOnce()) -> Vec<Vec<u8>> {
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

#[test]
fn every_format_is_dissected_with_nothing_amiss() {
    if !allowed() || !tshark_is_there() {
        return;
    }
    for six in [false, true] {
        let local = move |index: usize| Lab::host(index + 1, six);
        let summed = |tunnel| Tunnel {
            udp_checksum: true,
            ..tunnel
        };
        let vxlan = move |index| Format::Vxlan(summed(Tunnel::vxlan(local(index))));
        let geneve =
            move |index, options| Format::Geneve(summed(Tunnel::geneve(local(index))), options);
        let unsummed = move |index| Format::Vxlan(Tunnel::vxlan(local(index)));
        type Make = Box<dyn Fn(usize) -> Config>;
        let plain = |format: Box<dyn Fn(usize) -> Format>| -> Make {
            Box::new(move |index| Config::new("under0", format(index)))
        };
        // The format, and a field that must have this value in every tunnelled frame.
        let cases: Vec<(Make, &str, &str)> = vec![
            (plain(Box::new(unsummed)), "vxlan.vni", "1193046"),
            (plain(Box::new(vxlan)), "vxlan.vni", "1193046"),
            (
                Box::new(move |index| Config {
                    inner_vlan: Some(77),
                    ..Config::new("under0", vxlan(index))
                }),
                "vlan.id",
                "77",
            ),
            (
                plain(Box::new(move |index| geneve(index, Options::none()))),
                "geneve.vni",
                "0x123456",
            ),
            (
                plain(Box::new(move |index| geneve(index, Options::ovn(1, 2)))),
                "geneve.option.class",
                "0x0102",
            ),
            (
                plain(Box::new(|_| Format::Vlan { id: 42 })),
                "vlan.id",
                "42",
            ),
        ];
        for (config, field, expected) in cases {
            let lab = Lab::new(1600, 1446);
            for host in &lab.hosts {
                host.features("under0", &NO_OFFLOADS);
                // Nothing is left to be filled in behind the capture.
                host.features(
                    "under0",
                    &[
                        ("tx-checksum-ip-generic", false),
                        ("tx-vlan-hw-insert", false),
                    ],
                );
            }
            let ends = [0, 1].map(|index| lab.endpoint(index, config(index)));
            let frames = captured(&lab.hosts[0], || {
                for inner_six in [false, true] {
                    let at = Lab::guest(2, inner_six);
                    assert!(echo(&lab.guests[0], &lab.guests[1], at, 301));
                    bulk(&lab.guests[0], &lab.guests[1], at, 300_000, 9_999);
                }
            });
            drop(ends);
            let rows = dissect(&frames);
            let ours: Vec<_> = rows
                .iter()
                .filter(|row| value(row, field) == expected)
                .collect();
            assert!(
                ours.len() > 100,
                "{field}: {} of {} frames",
                ours.len(),
                rows.len()
            );
            for (row, frame) in rows.iter().zip(&frames) {
                assert_eq!(value(row, "_ws.malformed"), "", "{row:?} {frame:02x?}");
                for status in [
                    "ip.checksum.status",
                    "udp.checksum.status",
                    "tcp.checksum.status",
                ] {
                    // 0 is bad; 1 good, 2 not checked, 3 not present.
                    assert!(
                        !value(row, status).split(',').any(|s| s == "0"),
                        "{row:?} {frame:02x?}"
                    );
                }
            }
            // Frames were really checked, super-packets' last segments among them.
            let checked = |row: &&&Vec<String>| value(row, "tcp.checksum.status").contains('1');
            assert!(ours.iter().filter(checked).count() > 100, "{:?}", ours[0]);
        }
    }
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
}
