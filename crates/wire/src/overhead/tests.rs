use proptest::prelude::*;
use wirecost_model::ip::IpVersion::{self, Ipv4, Ipv6};

use super::catalogue::{OptionSyntax, Role};
use super::*;
use crate::line;

fn path(stack: &str, underlay: IpVersion) -> Path {
    let stack: Stack = stack.parse().expect(stack);
    stack.over(underlay, Ipv4).expect("an underlay")
}

/// Guest MTU of an underlay MTU.
fn guest(stack: &str, underlay: IpVersion, mtu: u32) -> u32 {
    path(stack, underlay).guest_mtu(mtu).expect(stack)
}

fn refusal(stack: &str) -> String {
    stack
        .parse::<Stack>()
        .expect_err("no such stack")
        .to_string()
}

/// Bytes taken from an underlay's MTU of 1500 and of 9000, over IPv4 and over IPv6.
#[test]
fn every_encapsulation_takes_the_bytes_that_its_headers_have() {
    for (stack, over_ipv4, over_ipv6) in [
        ("none", 0, 0),
        ("vxlan", 50, 70),
        ("vxlan+vlan", 54, 74),
        ("vxlan+qinq", 58, 78),
        ("vxlan+outer-vlan", 50, 70),
        ("vxlan-gpe:ip", 36, 56),
        ("vxlan-gpe:ethernet", 50, 70),
        ("geneve", 50, 70),
        ("geneve:12", 62, 82),
        ("geneve:252", 302, 322),
        ("geneve:ovn", 58, 78),
        ("gre", 24, 44),
        ("gre:key", 28, 48),
        ("gre:csum,seq", 32, 52),
        ("gretap", 38, 58),
        ("gretap:key", 42, 62),
        ("nvgre", 42, 62),
        ("ipip", 20, 40),
        ("wireguard", 60, 80),
        ("esp", 54, 74),
        ("esp:natt", 62, 82),
        ("esp-transport", 34, 34),
        ("stt", 72, 92),
        ("mpls", 4, 4),
        ("mpls:2", 8, 8),
        ("mpls:30", 120, 120),
        ("macsec", 32, 32),
        ("macsec+vlan", 36, 36),
        ("macsec+outer-vlan", 32, 32),
        ("pppoe", 8, 8),
        ("vlan", 0, 0),
        ("qinq", 0, 0),
        ("geneve:ovn+esp", 112, 152),
        ("geneve:ovn+esp-transport", 92, 112),
        ("gre+esp-transport", 58, 78),
        ("mpls:2+gre", 32, 52),
        ("wireguard+pppoe", 68, 88),
        ("macsec+vxlan", 82, 102),
        ("vxlan+vxlan+vlan", 104, 144),
    ] {
        for (underlay, bytes) in [(Ipv4, over_ipv4), (Ipv6, over_ipv6)] {
            for mtu in [1500, 9000] {
                assert_eq!(
                    mtu - guest(stack, underlay, mtu),
                    bytes,
                    "{stack} over {underlay} of {mtu}"
                );
            }
        }
    }
}

#[test]
fn over_ipv6_linux_adds_an_encapsulation_limit_of_8_bytes() {
    for (stack, bytes) in [
        ("ipip:encaplimit", 48),
        ("gre:encaplimit", 52),
        ("gretap:encaplimit", 66),
        ("nvgre:encaplimit", 70),
    ] {
        assert_eq!(1500 - guest(stack, Ipv6, 1500), bytes, "{stack}");
    }
}

#[test]
fn an_encapsulation_limit_over_ipv4_is_refused() {
    let stack: Stack = "vxlan+gre:encaplimit,key".parse().expect("a stack");
    assert_eq!(
        stack.over(Ipv4, Ipv4).expect_err("IPv6 only").to_string(),
        "encapsulation `vxlan+gre:key,encaplimit`: `gre:encaplimit` is an IPv6 option (RFC 2473), and the underlay \
         speaks IPv4; leave it out, or ask for an IPv6 underlay (--ipv6)"
    );
}

#[test]
fn esp_takes_54_to_57_bytes_over_ipv4_and_74_to_77_over_ipv6() {
    let took = |stack, underlay| {
        let mut bytes: Vec<u32> = (1500..1508)
            .map(|mtu| mtu - guest(stack, underlay, mtu))
            .collect();
        bytes.sort_unstable();
        bytes.dedup();
        bytes
    };
    assert_eq!(took("esp", Ipv4), [54, 55, 56, 57]);
    assert_eq!(took("esp:natt", Ipv4), [62, 63, 64, 65]);
    assert_eq!(took("esp", Ipv6), [74, 75, 76, 77]);
}

/// Esp4_get_mtu and later xfrm_state_mtu of the kernel, in tunnel mode: a block of 4 bytes, an ICV of 16.
#[test]
fn the_largest_packet_in_esp_is_the_kernels() {
    for mtu in 1280..9200 {
        let kernel = |header_bytes: u32| ((mtu - header_bytes - 16) & !3) - 2;
        assert_eq!(guest("esp", Ipv4, mtu), kernel(20 + 16), "{mtu}");
        assert_eq!(guest("esp", Ipv6, mtu), kernel(40 + 16), "{mtu}");
        assert_eq!(guest("esp:natt", Ipv4, mtu), kernel(20 + 8 + 16), "{mtu}");
    }
}

/// Published: WireGuard's author (1420 and 1440 of 1500), the kernel's default MTUs for vxlan, PPPoE's 1492 (RFC 2516),
/// Neutron's 1442 for OVN.
#[test]
fn published_guest_mtus_of_a_1500_underlay_come_out() {
    assert_eq!(guest("wireguard", Ipv6, 1500), 1420);
    assert_eq!(guest("wireguard", Ipv4, 1500), 1440);
    assert_eq!(guest("vxlan", Ipv4, 1500), 1450);
    assert_eq!(guest("vxlan", Ipv6, 1500), 1430);
    assert_eq!(guest("pppoe", Ipv4, 1500), 1492);
    assert_eq!(guest("geneve:ovn", Ipv4, 1500), 1442);
    assert_eq!(guest("esp", Ipv4, 1500), 1446);
    assert_eq!(guest("macsec", Ipv4, 1500), 1468);
    assert_eq!(guest("gre", Ipv4, 1500), 1476);
    assert_eq!(guest("ipip:encaplimit", Ipv6, 1500), 1452);
}

fn goodput_percent(stack: &str, mtu: u32) -> String {
    let path = path(stack, Ipv4);
    let guest_mtu = path.guest_mtu(mtu).expect("fits");
    let share = path.frame(guest_mtu, guest_mtu).tcp_goodput_share(Ipv4);
    format!("{:.1}", share * 100.0)
}

#[test]
fn tcp_gets_94_percent_of_the_line_at_1500_and_99_at_9000_and_less_inside_vxlan() {
    assert_eq!(goodput_percent("none", 1500), "94.1");
    assert_eq!(goodput_percent("none", 9000), "99.0");
    assert_eq!(goodput_percent("vxlan", 1500), "90.9");
    assert_eq!(goodput_percent("vxlan", 9000), "98.5");
}

#[test]
fn the_guests_ip_version_changes_goodput_and_not_the_guests_mtu() {
    let stack: Stack = "vxlan".parse().expect("vxlan");
    let (v4, v6) = (
        stack.over(Ipv4, Ipv4).expect("v4"),
        stack.over(Ipv4, Ipv6).expect("v6"),
    );
    assert_eq!(v4.guest_mtu(1500), v6.guest_mtu(1500));
    let frame = v6.frame(1450, 1450);
    let payload = |guest| (frame.tcp_goodput_share(guest) * f64::from(frame.line_bytes())).round();
    assert!((payload(Ipv4) - 1398.0).abs() < 0.5);
    assert!((payload(Ipv6) - 1378.0).abs() < 0.5);
}

#[test]
fn a_frame_has_38_bytes_of_framing_and_42_with_a_tag_on_the_line() {
    let framing = |stack| {
        let path = path(stack, Ipv4);
        path.frame(1400, 1400).line_bytes() - path.frame(1400, 1400).underlay_bytes()
    };
    assert_eq!(framing("none"), line::FRAMING_BYTES);
    assert_eq!(framing("vlan"), 42);
    assert_eq!(framing("qinq"), 46);
    assert_eq!(framing("vxlan+vlan"), 38);
    assert_eq!(framing("vxlan+outer-vlan"), 42);
    assert_eq!(path("none", Ipv4).frame(1500, 1500).frame_bytes(), 1518);
    assert_eq!(path("vlan", Ipv4).frame(1500, 1500).frame_bytes(), 1522);
}

#[test]
fn a_short_packet_is_padded_to_a_frame_of_64_bytes() {
    let plain = path("none", Ipv4);
    assert_eq!(plain.frame(28, 1500).frame_bytes(), 64);
    assert_eq!(plain.frame(46, 1500).frame_bytes(), 64);
    assert_eq!(plain.frame(47, 1500).frame_bytes(), 65);
    // The tag is part of the 64.
    assert_eq!(path("vlan", Ipv4).frame(42, 1500).frame_bytes(), 64);
    let per_second = plain.frame(46, 1500).per_second(10_000_000_000);
    assert_eq!(per_second.round() as u64, 14_880_952);
}

#[test]
fn wireguard_pads_a_short_packet_and_not_a_full_one() {
    let path = path("wireguard", Ipv4);
    assert_eq!(path.frame(1439, 1439).underlay_bytes(), 1439 + 60);
    assert_eq!(path.frame(1425, 1439).underlay_bytes(), 1439 + 60);
    assert_eq!(path.frame(1000, 1439).underlay_bytes(), 1008 + 60);
}

#[test]
fn the_headers_stand_in_the_order_in_which_they_pass_the_line() {
    let names = |stack: &str, underlay| {
        let path = path(stack, underlay);
        let frame = path.frame(1000, 1000);
        let parts = frame.parts().iter();
        let of_underlay = parts.filter(|part| part.place != FrameScope::Line);
        let named = of_underlay.map(|part| {
            format!(
                "{}{} {}",
                "  ".repeat(part.depth - 1),
                part.name,
                part.bytes
            )
        });
        named.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(names("geneve:ovn+vlan+esp-transport", Ipv4), @"
    IPv4 header 20
    ESP header (SPI, sequence) 8
    AES-GCM IV 8
      UDP header 8
      Geneve header 8
      Geneve options 8
      inner Ethernet header 14
      VLAN tag 4
        guest's IP packet 1000
    ESP padding 0
    ESP pad length and next header 2
    AES-GCM integrity check 16
    ");
    insta::assert_snapshot!(names("macsec+vlan", Ipv4), @"
    SecTAG with SCI 16
    VLAN tag 4
      guest's IP packet 1000
    MACsec integrity check 16
    ");
    insta::assert_snapshot!(names("esp-transport:natt", Ipv4), @"
    IPv4 header 20
    UDP header 8
    ESP header (SPI, sequence) 8
    AES-GCM IV 8
      rest of the guest's IP packet 980
    ESP padding 2
    ESP pad length and next header 2
    AES-GCM integrity check 16
    ");
    insta::assert_snapshot!(names("vxlan+gre:encaplimit,key+wireguard", Ipv6), @"
    IPv6 header 40
    UDP header 8
    WireGuard header 16
      IPv6 header 40
      encapsulation limit option 8
      GRE header 4
      GRE key 4
        IPv6 header 40
        UDP header 8
        VXLAN header 8
        inner Ethernet header 14
          guest's IP packet 1000
    WireGuard padding 0
    Poly1305 tag 16
    ");
}

#[test]
fn a_stack_says_in_words_what_it_is() {
    let words = |stack: &str| stack.parse::<Stack>().expect(stack).describe();
    assert_eq!(words("none"), "no encapsulation");
    assert_eq!(words("vlan"), "a VLAN tag on the line");
    assert_eq!(words("vxlan+vlan"), "VXLAN with a VLAN tag inside");
    assert_eq!(
        words("geneve:ovn+esp:natt+outer-vlan"),
        "Geneve with 8 option bytes, in ESP in tunnel mode in UDP (NAT traversal), with a VLAN tag on the line"
    );
    assert_eq!(
        words("mpls:1+gretap+qinq"),
        "MPLS with 1 label, in Ethernet in GRE with two VLAN tags inside"
    );
}

#[test]
fn a_stack_is_written_back_as_it_was_read() {
    for stack in [
        "none",
        "vlan",
        "qinq",
        "vxlan+vlan",
        "vxlan+outer-qinq",
        "vxlan-gpe:ip",
        "geneve:ovn",
        "geneve:12+esp",
        "gre:key,csum",
        "mpls:2+gre",
        "macsec+vlan+outer-vlan",
    ] {
        let read: Stack = stack.parse().expect(stack);
        assert_eq!(read.to_string(), stack);
    }
    assert_eq!(
        "VXLAN-GPE + VLAN"
            .parse::<Stack>()
            .expect_err("no frame")
            .expression,
        "vxlan-gpe + vlan"
    );
    let geneve: Stack = " Geneve:8 ".parse().expect("geneve");
    assert_eq!(geneve.to_string(), "geneve:ovn");
}

#[test]
fn what_cannot_be_says_why_and_what_to_write_instead() {
    insta::assert_snapshot!([
        "", "vxlan+", "vxln", "wg", "ip6tnl", "vxlan/vlan", "ethernet-over-string", "vxlan:5", "geneve:6",
        "geneve:256", "geneve:onv", "geneve:", "geneve:-4", "mpls:0", "gre:keys", "gre:key,key", "vxlan-gpe:mac",
        "none+vxlan", "vlan+vxlan", "esp+vlan", "gre+qinq", "vxlan+vlan+vlan", "vxlan+outer-vlan+esp", "mpls+mpls",
        "macsec+mpls", "pppoe+gre", "macsec+esp", "mpls+esp-transport",
    ].map(refusal).join("\n\n"), @"
    encapsulation ``: a name is missing; known are none, vlan, qinq, outer-vlan, outer-qinq, vxlan, vxlan-gpe, geneve, gre, gretap, nvgre, ipip, wireguard, esp, esp-transport, stt, mpls, pppoe, macsec

    encapsulation `vxlan+`: a name is missing; known are none, vlan, qinq, outer-vlan, outer-qinq, vxlan, vxlan-gpe, geneve, gre, gretap, nvgre, ipip, wireguard, esp, esp-transport, stt, mpls, pppoe, macsec

    encapsulation `vxln`: there is no `vxln`; did you mean `vxlan`? known are none, vlan, qinq, outer-vlan, outer-qinq, vxlan, vxlan-gpe, geneve, gre, gretap, nvgre, ipip, wireguard, esp, esp-transport, stt, mpls, pppoe, macsec

    encapsulation `wg`: there is no `wg`; did you mean `wireguard`? known are none, vlan, qinq, outer-vlan, outer-qinq, vxlan, vxlan-gpe, geneve, gre, gretap, nvgre, ipip, wireguard, esp, esp-transport, stt, mpls, pppoe, macsec

    encapsulation `ip6tnl`: there is no `ip6tnl`; did you mean `ipip:encaplimit`? known are none, vlan, qinq, outer-vlan, outer-qinq, vxlan, vxlan-gpe, geneve, gre, gretap, nvgre, ipip, wireguard, esp, esp-transport, stt, mpls, pppoe, macsec

    encapsulation `vxlan/vlan`: there is no `vxlan/vlan`; encapsulations are joined by `+`, from the guest outwards, such as `geneve:ovn+esp`; known are none, vlan, qinq, outer-vlan, outer-qinq, vxlan, vxlan-gpe, geneve, gre, gretap, nvgre, ipip, wireguard, esp, esp-transport, stt, mpls, pppoe, macsec

    encapsulation `ethernet-over-string`: there is no `ethernet-over-string`; known are none, vlan, qinq, outer-vlan, outer-qinq, vxlan, vxlan-gpe, geneve, gre, gretap, nvgre, ipip, wireguard, esp, esp-transport, stt, mpls, pppoe, macsec

    encapsulation `vxlan:5`: `vxlan` has no option `5`; write `vxlan` alone

    encapsulation `geneve:6`: `geneve` cannot have 6 option bytes; write a whole number of option bytes from 0 to 252, a multiple of 4, such as `geneve:4`, or `geneve:ovn` (8)

    encapsulation `geneve:256`: `geneve` cannot have 256 option bytes; write a whole number of option bytes from 0 to 252, a multiple of 4, such as `geneve:4`, or `geneve:ovn` (8)

    encapsulation `geneve:onv`: `geneve` has no option `onv`; write a whole number of option bytes from 0 to 252, a multiple of 4, such as `geneve:4`, or `geneve:ovn` (8)

    encapsulation `geneve:`: `geneve` has no option ``; write a whole number of option bytes from 0 to 252, a multiple of 4, such as `geneve:4`, or `geneve:ovn` (8)

    encapsulation `geneve:-4`: `geneve` has no option `-4`; write a whole number of option bytes from 0 to 252, a multiple of 4, such as `geneve:4`, or `geneve:ovn` (8)

    encapsulation `mpls:0`: `mpls` cannot have 0 labels; write a whole number of labels from 1 to 30, such as `mpls:2`

    encapsulation `gre:keys`: `gre` has no option `keys`; did you mean `gre:key`? it takes `key`, `csum`, `seq`, `encaplimit`

    encapsulation `gre:key,key`: `gre` has `key` twice; write it once

    encapsulation `vxlan-gpe:mac`: `vxlan-gpe` has no option `mac`; it takes `ip`, `ethernet`

    encapsulation `none+vxlan`: `none` is no encapsulation, so it cannot be part of one; leave it out

    encapsulation `vlan+vxlan`: `vlan` at the beginning can be read two ways, as a tag of the guest's frame and as one of the frame on the line; write `vxlan+vlan` for a tag inside a tunnel that carries Ethernet, which takes from the MTU, and `vxlan+outer-vlan` for one on the line, which does not

    encapsulation `esp+vlan`: `vlan` tags an Ethernet frame, and there is none in `esp`; write `esp+outer-vlan` for a tag of the frame on the line, or take a tunnel that carries Ethernet

    encapsulation `gre+qinq`: `qinq` tags an Ethernet frame, and there is none in `gre`; write `gre+outer-qinq` for a tag of the frame on the line, or take a tunnel that carries Ethernet

    encapsulation `vxlan+vlan+vlan`: the frame in `vxlan` has its tags already; write `qinq` for two tags

    encapsulation `vxlan+outer-vlan+esp`: `outer-vlan` tags the frame on the line, and nothing stands outside that; write `outer-vlan` last, and once

    encapsulation `mpls+mpls`: one frame cannot have `mpls` twice; write `mpls:2` for two labels

    encapsulation `macsec+mpls`: in one frame `mpls` stands inside `macsec`, not outside; write `mpls` further to the left: what is inside comes first

    encapsulation `pppoe+gre`: `gre` carries IP packets, and `pppoe` makes Ethernet payload; write `gre+pppoe` for pppoe on the line, or take a tunnel that carries Ethernet, such as `pppoe+gretap`

    encapsulation `macsec+esp`: `esp` carries IP packets, and `macsec` makes Ethernet payload; write `esp+macsec` for macsec on the line, or take a tunnel that carries Ethernet, such as `macsec+gretap`

    encapsulation `mpls+esp-transport`: `esp-transport` carries IP packets, and `mpls` makes Ethernet payload; write `esp-transport+mpls` for mpls on the line, or take a tunnel that carries Ethernet, such as `mpls+gretap`
    ");
}

#[test]
fn a_text_without_end_is_refused_in_a_few_words() {
    for text in [
        "esp+".repeat(20_000),
        "x".repeat(100_000),
        format!("geneve:{}", "9".repeat(100_000)),
        format!("gre:{}", "é,".repeat(100_000)),
        format!("vxlan:{}", "é".repeat(100_000)),
    ] {
        let words = refusal(&text);
        assert!(words.len() < 600, "{} bytes", words.len());
    }
    assert!(["esp"; 16].join("+").parse::<Stack>().is_ok());
}

#[test]
fn an_mtu_that_cannot_be_says_what_could() {
    let vxlan = path("vxlan", Ipv4);
    let wide: Stack = "esp".parse().expect("esp");
    let wide = wide.over(Ipv6, Ipv6).expect("IPv6");
    insta::assert_snapshot!([
        vxlan.guest_mtu(67), vxlan.guest_mtu(65_536), vxlan.guest_mtu(117), path("geneve:252", Ipv4).guest_mtu(68),
        vxlan.underlay_mtu(60), vxlan.underlay_mtu(65_500), wide.guest_mtu(1279), wide.guest_mtu(1280),
    ].map(|result| result.expect_err("impossible").to_string()).join("\n\n"), @"
    an IPv4 underlay cannot have an MTU of 67: it lies between 68 (RFC 791) and 65535

    an IPv4 underlay cannot have an MTU of 65536: it lies between 68 (RFC 791) and 65535

    an underlay MTU of 117 is too small for `vxlan`: 67 bytes are left, and an IPv4 guest needs 68 (RFC 791); the underlay needs at least 118

    an underlay MTU of 68 is too small for `geneve:252`: nothing is left, and an IPv4 guest needs 68 (RFC 791); the underlay needs at least 370

    an IPv4 guest cannot have an MTU of 60: it lies between 68 (RFC 791) and 65535

    no underlay carries a guest MTU of 65500 in `vxlan`: it would need an MTU of 65550, and 65535 is the largest

    an IPv6 underlay cannot have an MTU of 1279: it lies between 1280 (RFC 8200) and 65535

    an underlay MTU of 1280 is too small for `esp`: 1206 bytes are left, and an IPv6 guest needs 1280 (RFC 8200); the underlay needs at least 1356
    ");
    assert_eq!(vxlan.guest_mtu(118), Ok(68));
    assert_eq!(vxlan.underlay_mtu(68), Ok(118));
    assert_eq!(vxlan.underlay_mtu(65_485), Ok(65_535));
    assert_eq!(path("vxlan", Ipv6).underlay_mtu(68), Ok(1280));
}

/// Tags inside, tags on the line, both or none.
const ENDS: &[&str] = &["", "+vlan", "+qinq", "+outer-vlan", "+vlan+outer-qinq"];

/// Stacks of up to three encapsulations, with every option.
fn stacks() -> impl Strategy<Value = Stack> {
    let items: Vec<String> = every()
        .iter()
        .filter(|one| matches!(one.role, Role::Tunnel | Role::Transport | Role::Shim(_)))
        .flat_map(|one| {
            let options: Vec<String> = match one.syntax {
                OptionSyntax::Nothing => Vec::new(),
                OptionSyntax::AnyOf(words) | OptionSyntax::OneOf(words) => {
                    words.iter().map(|word| word.word.to_owned()).collect()
                }
                OptionSyntax::Number(number) => {
                    [number.min, number.max].map(|n| n.to_string()).into()
                }
            };
            let with = options
                .into_iter()
                .map(|option| format!("{}:{option}", one.name));
            with.chain([one.name.to_owned()]).collect::<Vec<_>>()
        })
        .collect();
    let written = (
        proptest::collection::vec(proptest::sample::select(items), 1..4),
        proptest::sample::select(ENDS),
    );
    written.prop_filter_map("possible", |(items, end)| {
        (items.join("+") + end).parse().ok()
    })
}

fn paths() -> impl Strategy<Value = Path> {
    let ip = || proptest::sample::select(&IpVersion::ALL[..]);
    (stacks(), ip(), ip()).prop_filter_map("possible", |(stack, underlay, guest)| {
        stack.over(underlay, guest).ok()
    })
}

proptest! {
    #[test]
    fn the_guest_mtu_fits_and_one_byte_more_does_not(path in paths(), mtu in 1280u32..=65_535) {
        let Ok(guest) = path.guest_mtu(mtu) else { return Ok(()) };
        prop_assert!(path.frame(guest, guest).underlay_bytes() <= mtu);
        prop_assert!(path.frame(guest + 1, guest + 1).underlay_bytes() > mtu);
    }

    #[test]
    fn a_larger_underlay_never_carries_less(path in paths(), mtu in 1280u32..65_535) {
        if let Ok(guest) = path.guest_mtu(mtu) {
            prop_assert!(path.guest_mtu(mtu + 1).expect("larger") >= guest);
        }
    }

    #[test]
    fn the_underlay_that_a_guest_needs_carries_it_and_one_byte_less_does_not(path in paths(), guest in 1280u32..=60_000) {
        let needed = path.underlay_mtu(guest).expect("room");
        prop_assert!(path.guest_mtu(needed).expect("carries") >= guest);
        if needed > 1280 && let Ok(less) = path.guest_mtu(needed - 1) {
            prop_assert!(less < guest);
        }
    }

    #[test]
    fn a_shorter_packet_never_takes_more_than_a_full_one(path in paths(), guest in 1280u32..=9000, packet in 20u32..=9000) {
        let packet = packet.min(guest);
        let (short, full) = (path.frame(packet, guest), path.frame(guest, guest));
        prop_assert!(short.underlay_bytes() <= full.underlay_bytes());
        prop_assert!(short.frame_bytes() >= 64);
        prop_assert_eq!(short.guest_bytes(), packet);
        let of_guest = short.parts().iter().filter(|part| part.place == FrameScope::Guest);
        prop_assert_eq!(of_guest.map(|part| part.bytes).sum::<u32>(), packet);
    }

    #[test]
    fn the_line_is_full_at_the_rate_that_the_line_module_computes(path in paths(), guest in 1280u32..=9000, rate in 1u64..=400_000_000_000) {
        let frame = path.frame(guest, guest);
        prop_assume!(frame.frame_bytes() - frame.underlay_bytes() == 18); // no tags on the line
        let overhead = frame.underlay_bytes() - guest;
        prop_assert_eq!(u64::from(frame.line_bytes()), line::line_bytes(guest, overhead));
        let expected = line::frames_per_second(rate, guest, overhead);
        prop_assert!((frame.per_second(rate) / expected - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_written_reads_back(stack in stacks()) {
        prop_assert_eq!(stack.to_string().parse::<Stack>(), Ok(stack));
    }

    #[test]
    fn no_text_makes_the_parser_fail_without_a_reason(text in "[a-z0-9:+,. -]{0,40}") {
        if let Err(error) = text.parse::<Stack>() {
            prop_assert!(!error.problem.is_empty() && !error.help.is_empty());
        }
    }
}

#[test]
fn every_shown_stack_is_one_and_every_encapsulation_is_shown_or_part_of_one() {
    for underlay in IpVersion::ALL {
        for stack in shown(underlay) {
            let stack: Stack = stack.parse().expect(stack);
            stack.over(underlay, Ipv4).expect("its underlay");
        }
    }
    let all = shown(Ipv6).join("+");
    for one in every().iter().filter(|one| one.role != Role::OuterTag) {
        assert!(all.contains(one.name), "{}", one.name);
    }
}

#[test]
fn every_header_names_its_source() {
    for underlay in IpVersion::ALL {
        for stack in shown(underlay) {
            let frame = path(stack, underlay).frame(1400, 1400);
            for part in frame.parts() {
                assert_eq!(
                    part.source.is_empty(),
                    part.place == FrameScope::Guest,
                    "{part:?}"
                );
            }
        }
    }
}
