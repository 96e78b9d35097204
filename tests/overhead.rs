//! `wirecost overhead`: what it prints, its errors, and the kernel's own devices beside it.

use std::process::{Command, Stdio};

use crate::common::{lab_can_be_built, lacks, run, wirecost};

#[test]
fn help_says_in_which_order_a_stack_is_written() {
    let ended = run(&mut wirecost(["overhead", "--help"]));
    ended.expect_code(0);
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn one_encapsulation_is_shown_part_by_part_outermost_first() {
    let ended = run(&mut wirecost([
        "overhead",
        "vxlan+vlan",
        "--rate",
        "10gbit",
    ]));
    ended.expect_code(0);
    assert_eq!(ended.stderr, "");
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn without_an_encapsulation_there_is_a_table_for_each_underlay_mtu() {
    let ended = run(&mut wirecost([
        "overhead",
        "--underlay-mtu",
        "1500,9000",
        "--rate",
        "100gbit",
    ]));
    ended.expect_code(0);
    insta::assert_snapshot!(ended.stdout);
}

#[test]
#[expect(clippy::too_many_lines, reason = "the lines are what is printed")]
fn json_is_one_document_with_every_part_and_figure() {
    let ended = run(&mut wirecost([
        "overhead",
        "esp",
        "--underlay-mtu",
        "1501",
        "--rate",
        "10gbit",
        "--json",
    ]));
    ended.expect_code(0);
    insta::assert_json_snapshot!(ended.document(), @r#"
    {
      "encapsulations": [
        {
          "description": "ESP in tunnel mode",
          "name": "esp",
          "needs": [
            {
              "guest_mtu": 1500,
              "underlay_mtu": 1556
            },
            {
              "guest_mtu": 9000,
              "underlay_mtu": 9056
            }
          ],
          "notes": [
            "ESP with AES-GCM and a 16-byte integrity check. Its padding makes the guest MTU a step function of the underlay's: up to 3 bytes stay unused."
          ],
          "sizes": [
            {
              "frame_bytes": 1518,
              "frames_per_s": 812743.823146944,
              "guest_mtu": 1446,
              "line_bytes": 1538,
              "overhead_bytes": 54,
              "parts": [
                {
                  "bytes": 8,
                  "counts": "line",
                  "depth": 0,
                  "name": "preamble and start delimiter",
                  "source": "IEEE 802.3, 3.1.1, 3.2.1"
                },
                {
                  "bytes": 14,
                  "counts": "line",
                  "depth": 0,
                  "name": "Ethernet header",
                  "source": "IEEE 802.3, 3.1.1"
                },
                {
                  "bytes": 20,
                  "counts": "underlay",
                  "depth": 1,
                  "name": "IPv4 header",
                  "source": "RFC 791, 3.1"
                },
                {
                  "bytes": 8,
                  "counts": "underlay",
                  "depth": 1,
                  "name": "ESP header (SPI, sequence)",
                  "source": "RFC 4303, 2"
                },
                {
                  "bytes": 8,
                  "counts": "underlay",
                  "depth": 1,
                  "name": "AES-GCM IV",
                  "source": "RFC 4106, 3.1"
                },
                {
                  "bytes": 1446,
                  "counts": "guest",
                  "depth": 2,
                  "name": "guest's IP packet",
                  "source": ""
                },
                {
                  "bytes": 0,
                  "counts": "underlay",
                  "depth": 1,
                  "name": "ESP padding",
                  "source": "RFC 4303, 2.4"
                },
                {
                  "bytes": 2,
                  "counts": "underlay",
                  "depth": 1,
                  "name": "ESP pad length and next header",
                  "source": "RFC 4303, 2"
                },
                {
                  "bytes": 16,
                  "counts": "underlay",
                  "depth": 1,
                  "name": "AES-GCM integrity check",
                  "source": "RFC 4106, 6"
                },
                {
                  "bytes": 4,
                  "counts": "line",
                  "depth": 0,
                  "name": "frame check sequence",
                  "source": "IEEE 802.3, 3.2.9"
                },
                {
                  "bytes": 12,
                  "counts": "line",
                  "depth": 0,
                  "name": "interframe gap",
                  "source": "IEEE 802.3, 4.4.2"
                }
              ],
              "short": {
                "frames_per_s": 9057971.014492754,
                "guest_bytes": 46,
                "line_bytes": 138
              },
              "tcp_goodput_bps": 9063719115.73472,
              "tcp_goodput_share": 0.9063719115734721,
              "underlay_mtu": 1501,
              "unused_bytes": 1
            }
          ]
        }
      ],
      "given": "underlay",
      "guest_ip": "ipv4",
      "rate_bps": 10000000000,
      "underlay_ip": "ipv4"
    }
    "#);
}

#[test]
fn json_of_all_has_the_same_form_and_says_why_something_does_not_fit() {
    let ended = run(&mut wirecost([
        "overhead",
        "--underlay-mtu",
        "1500,100",
        "--json",
    ]));
    ended.expect_code(0);
    let document = ended.document();
    let all = document["encapsulations"].as_array().expect("a list");
    let vxlan = all
        .iter()
        .find(|one| one["name"] == "vxlan")
        .expect("vxlan");
    assert_eq!(vxlan["sizes"][0]["guest_mtu"], 1450);
    assert_eq!(
        vxlan["sizes"][0]["tcp_goodput_bps"],
        serde_json::Value::Null
    );
    assert_eq!(vxlan["needs"][1]["underlay_mtu"], 9050);
    assert_eq!(vxlan["sizes"][1]["underlay_mtu"], 100);
    assert_eq!(
        vxlan["sizes"][1]["error"],
        "an underlay MTU of 100 is too small for `vxlan`: 50 bytes are left, and an IPv4 guest needs 68 (RFC 791); \
         the underlay needs at least 118"
    );
}

#[test]
fn a_mistake_is_named_with_what_to_write_instead_and_nothing_is_printed() {
    let said = |arguments: &[&str]| {
        let ended = run(&mut wirecost(["overhead"].iter().chain(arguments).copied()));
        ended.expect_code(2);
        assert_eq!(ended.stdout.is_empty(), !arguments.contains(&"--json"));
        format!("{}: {}", arguments.join(" "), ended.stderr.trim_end())
    };
    insta::assert_snapshot!(
        [
            &["vxln"][..],
            &["vlan+vxlan"],
            &["geneve:7", "--json"],
            &["gre:encaplimit"],
            &["vxlan", "--underlay-mtu", "100"],
            &["vxlan", "--underlay-mtu", "67"],
            &["--underlay-mtu", "1279", "--ipv6"],
            &["esp", "--guest-mtu", "65500"],
            &["esp", "--underlay-mtu", "1300", "--guest-ipv6"],
            &["esp", "--rate", "10"],
            &["esp", "--underlay-mtu", "9k"],
            &["esp", "--underlay-mtu", "1500", "--guest-mtu", "1500"],
        ]
        .map(said)
        .join("\n\n"),
        @"
    vxln: wirecost: encapsulation `vxln`: there is no `vxln`; did you mean `vxlan`? known are none, vlan, qinq, outer-vlan, outer-qinq, vxlan, vxlan-gpe, geneve, gre, gretap, nvgre, ipip, wireguard, esp, esp-transport, stt, mpls, pppoe, macsec

    vlan+vxlan: wirecost: encapsulation `vlan+vxlan`: `vlan` at the beginning can be read two ways, as a tag of the guest's frame and as one of the frame on the line; write `vxlan+vlan` for a tag inside a tunnel that carries Ethernet, which takes from the MTU, and `vxlan+outer-vlan` for one on the line, which does not

    geneve:7 --json: wirecost: encapsulation `geneve:7`: `geneve` cannot have 7 option bytes; write a whole number of option bytes from 0 to 252, a multiple of 4, such as `geneve:4`, or `geneve:ovn` (8)

    gre:encaplimit: wirecost: encapsulation `gre:encaplimit`: `gre:encaplimit` is an IPv6 option (RFC 2473), and the underlay speaks IPv4; leave it out, or ask for an IPv6 underlay (--ipv6)

    vxlan --underlay-mtu 100: wirecost: an underlay MTU of 100 is too small for `vxlan`: 50 bytes are left, and an IPv4 guest needs 68 (RFC 791); the underlay needs at least 118

    vxlan --underlay-mtu 67: wirecost: an IPv4 underlay cannot have an MTU of 67: it lies between 68 (RFC 791) and 65535

    --underlay-mtu 1279 --ipv6: wirecost: an IPv6 underlay cannot have an MTU of 1279: it lies between 1280 (RFC 8200) and 65535

    esp --guest-mtu 65500: wirecost: no underlay carries a guest MTU of 65500 in `esp`: it would need an MTU of 65556, and 65535 is the largest

    esp --underlay-mtu 1300 --guest-ipv6: wirecost: an underlay MTU of 1300 is too small for `esp`: 1246 bytes are left, and an IPv6 guest needs 1280 (RFC 8200); the underlay needs at least 1336

    esp --rate 10: error: invalid value '10' for '--rate <RATE>': `10` is not a rate: write a number and kbit, mbit or gbit, such as 10gbit

    For more information, try '--help'.

    esp --underlay-mtu 9k: error: invalid value '9k' for '--underlay-mtu <BYTES>': invalid digit found in string

    For more information, try '--help'.

    esp --underlay-mtu 1500 --guest-mtu 1500: error: the argument '--underlay-mtu <BYTES>' cannot be used with '--guest-mtu <BYTES>'

    Usage: wirecost overhead --underlay-mtu <BYTES> <ENCAPSULATION>

    For more information, try '--help'.
    "
    );
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = wirecost(["overhead", "--underlay-mtu", "1500,9000", "--json"])
        .stdin(Stdio::null())
        .stdout(writer)
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Devices as Linux makes them over an Ethernet device of 1500 bytes, and the stack that each is.
const DEVICES: &[(&str, &[&str], &str)] = &[
    (
        "vxlan",
        &[],
        "type vxlan id 1 dev under remote 192.0.2.2 dstport 4789",
    ),
    (
        "vxlan",
        &["--ipv6"],
        "type vxlan id 1 dev under remote 2001:db8::2 dstport 4789",
    ),
    (
        "gre",
        &[],
        "type gre local 192.0.2.1 remote 192.0.2.2 dev under",
    ),
    (
        "gre:key",
        &[],
        "type gre local 192.0.2.1 remote 192.0.2.2 key 1 dev under",
    ),
    (
        "gre:key,csum,seq",
        &[],
        "type gre local 192.0.2.1 remote 192.0.2.2 key 1 csum seq dev under",
    ),
    (
        "gretap",
        &[],
        "type gretap local 192.0.2.1 remote 192.0.2.2 dev under",
    ),
    (
        "nvgre",
        &[],
        "type gretap local 192.0.2.1 remote 192.0.2.2 key 1 dev under",
    ),
    (
        "gre:encaplimit",
        &["--ipv6"],
        "type ip6gre local 2001:db8::1 remote 2001:db8::2 dev under",
    ),
    (
        "gre",
        &["--ipv6"],
        "type ip6gre local 2001:db8::1 remote 2001:db8::2 encaplimit none dev under",
    ),
    (
        "gretap:encaplimit",
        &["--ipv6"],
        "type ip6gretap local 2001:db8::1 remote 2001:db8::2 dev under",
    ),
    (
        "gretap",
        &["--ipv6"],
        "type ip6gretap local 2001:db8::1 remote 2001:db8::2 encaplimit none dev under",
    ),
    (
        "ipip",
        &[],
        "type ipip local 192.0.2.1 remote 192.0.2.2 dev under",
    ),
    (
        "ipip:encaplimit",
        &["--ipv6"],
        "type ip6tnl local 2001:db8::1 remote 2001:db8::2 dev under",
    ),
    (
        "ipip",
        &["--ipv6"],
        "type ip6tnl local 2001:db8::1 remote 2001:db8::2 encaplimit none dev under",
    ),
    // WireGuard's default leaves room for an IPv6 underlay.
    ("wireguard", &["--ipv6"], "type wireguard"),
    ("macsec", &[], "link under type macsec"),
    ("vlan", &[], "link under type vlan id 5"),
];

/// What this kernel cannot make is left out, and said.
#[test]
fn the_kernels_own_devices_have_the_guest_mtu_that_is_computed() {
    if !lab_can_be_built() {
        return;
    }
    let mut compared = 0;
    for (stack, options, device) in DEVICES {
        let Some(kernel) = mtu_of_device(device) else {
            let kind = device.split_once("type ").map_or(*device, |(_, kind)| kind);
            let kind = kind.split(' ').next().unwrap_or_default();
            lacks(format!("this kernel has no {kind} device"));
            continue;
        };
        let ended = run(wirecost(["overhead", "--json", stack]).args(*options));
        ended.expect_code(0);
        let ours = &ended.document()["encapsulations"][0]["sizes"][0]["guest_mtu"];
        assert_eq!(*ours, kernel, "{stack} {options:?}: {device}");
        compared += 1;
    }
    // The lab itself needs vxlan.
    assert!(compared >= 2, "not even vxlan was compared");
}

/// The MTU that the kernel gives a new device over an Ethernet device of 1500 bytes, in a namespace that goes with the
/// commands; `None` where it knows no such device.
fn mtu_of_device(device: &str) -> Option<u32> {
    let script = format!(
        "set -e
         ip link add under type veth peer name other
         ip link set under mtu 1500 up; ip link set other up
         ip addr add 192.0.2.1/24 dev under; ip addr add 2001:db8::1/64 dev under nodad
         ip link add over {device} || exit 7
         ip -oneline link show over"
    );
    // Root has no need of a user namespace, and may be forbidden one.
    let user: &[&str] = if nix::unistd::geteuid().is_root() {
        &[]
    } else {
        &["--user", "--map-root-user"]
    };
    let output = Command::new("unshare")
        .args(user)
        .args(["--net", "sh", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .expect("unshare");
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if output.status.code() == Some(7) {
        let unknown = ["Unknown device type", "Operation not supported"];
        assert!(
            unknown.iter().any(|why| error.contains(why)),
            "{device}: {error}"
        );
        return None;
    }
    assert!(output.status.success(), "{device}: {error}");
    let mut words = out.split_whitespace().skip_while(|word| *word != "mtu");
    words.nth(1)?.parse().ok()
}
