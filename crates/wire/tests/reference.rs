//! docs/overhead.md is made from the catalogue that `wirecost overhead` computes with; this test holds the two
//! together.

use std::fmt::Write as _;
use std::path::Path;

use wirecost_model::ip::IpVersion::{self, Ipv4, Ipv6};
use wirecost_wire::overhead::{FrameScope, Stack, shown};

const HEAD: &str = "\
# What encapsulations cost

`wirecost overhead` computes these figures for any MTU, rate and stack; nothing here is measured. This
page is made from the catalogue that the program computes with
(`UPDATE_DOCS=1 cargo test -p wirecost-wire` writes it).

## How a stack is written

`NAME[:OPTION[,OPTION]]`, joined by `+` from the guest outwards: each is carried by the one to its
right. `geneve:ovn+esp` is Geneve inside ESP, `mpls:2+gretap` two labels in Ethernet in GRE. The result
shows the frame part by part, outermost first, so that an order that was meant otherwise is seen.

- `vlan` or `qinq` behind an encapsulation that carries Ethernet frames tags the frame *inside* it and
  takes 4 or 8 bytes of the underlay's MTU: `vxlan+vlan`, `macsec+vlan`.
- `outer-vlan` or `outer-qinq`, written last, tags the frame on the line, which gets 4 or 8 bytes longer;
  the MTU stays: `vxlan+outer-vlan`. A single `vlan` or `qinq` is on the line, for there is no other frame.
- What reads two ways (`vlan+vxlan`) is refused, with both ways to write it; what cannot be
  (`esp+vlan`: there is no frame inside ESP) is refused with the reason.
- `esp` is tunnel mode: an IP header of its own around the packet. `esp-transport` protects the packet
  that the tunnel before it made, behind that packet's own IP header, as OVN runs it
  (`type=transport` in Open vSwitch's ovs-monitor-ipsec); alone, the guest's own packet.

`--ipv6` is about the outer header of every tunnel, `--guest-ipv6` about the guests, whose goodput it
lowers by 20 bytes a segment.

## What is counted

- *Overhead* is what stands between the underlay's IP MTU and the guest's. A full frame occupies the
  underlay's MTU + 38 bytes on the line (preamble 8, Ethernet header 14, FCS 4, gap 12; IEEE 802.3), 4
  more for each tag on the line. A frame shorter than 64 bytes is padded to that.
- *Goodput* is TCP payload of full segments with timestamps (IPv4 20 or IPv6 40, TCP 20, options 12) as a
  share of the line's rate; acknowledgements go the other way and are not counted.
- *ESP* is AES-GCM with an 8-byte IV and a 16-byte integrity check; it pads so that pad length and next
  header end on a multiple of 4 (RFC 4303, 2.4). The guest MTU is the largest packet that fits, which
  leaves 0 to 3 bytes of the underlay's MTU unused; a smaller packet takes up to 3 bytes of padding.
- *WireGuard* pads to a multiple of 16 bytes, but not beyond its device's MTU
  (drivers/net/wireguard/send.c): full packets are not padded.
- *STT* sends a frame of up to 64 KiB as segments of which only the first has the STT and inner Ethernet
  headers; the figures are for one segment a frame.
- *MACsec* has an explicit SCI, as Linux's device always leaves room for (drivers/net/macsec.c).
- Linux's ip6tnl, ip6gre and ip6gretap add an encapsulation limit of 8 bytes by default (`:encaplimit`).

";

/// `IPv4 20, UDP 8, VXLAN 8, Ethernet 14`, and trailers behind an ellipsis where the guest's packet is.
fn headers(stack: &Stack) -> String {
    let path = stack.over(Ipv6, Ipv4).expect("an IPv6 underlay");
    let frame = path.frame(1400, 1400);
    let of_stack = frame
        .parts()
        .iter()
        .filter(|part| part.place != FrameScope::Line || part.name.contains("VLAN tag"))
        // Full packets are not padded by WireGuard, ESP's padding depends on the size.
        .filter(|part| part.bytes > 0 || part.name == "ESP padding");
    let named = of_stack.map(|part| match part.place {
        FrameScope::Guest => "...".to_owned(),
        _ if part.name == "IPv6 header" => "IP".to_owned(),
        _ if part.name == "ESP padding" => "padding 0 to 3".to_owned(),
        _ => format!("{} {}", part.name, part.bytes),
    });
    named.collect::<Vec<_>>().join(", ")
}

fn overhead(stack: &Stack, underlay: IpVersion) -> Option<(u32, u32, f64)> {
    let path = stack.over(underlay, Ipv4).ok()?;
    let guest = path.guest_mtu(1500).expect("1500 is enough");
    let frame = path.frame(guest, guest);
    let share = frame.tcp_goodput_share(Ipv4);
    Some((frame.underlay_bytes() - guest, guest, share))
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("## The figures for an underlay MTU of 1500\n\n");
    page.push_str(
        "Guests use IPv4. Each pair is over IPv4 and over IPv6; *IP* is 20 or 40 bytes.\n\n",
    );
    page.push_str(
        "| encapsulation | what it is | outermost first | overhead | guest MTU | TCP goodput |\n",
    );
    page.push_str("|---|---|---|---|---|---|\n");
    for name in shown(Ipv6) {
        let stack: Stack = name.parse().expect(name);
        let (over_ipv4, over_ipv6) = (overhead(&stack, Ipv4), overhead(&stack, Ipv6));
        let pair = |figure: &dyn Fn((u32, u32, f64)) -> String| {
            let four = over_ipv4.map_or("-".to_owned(), figure);
            let six = over_ipv6.map_or("-".to_owned(), figure);
            if four == six {
                four
            } else {
                format!("{four} / {six}")
            }
        };
        writeln!(
            page,
            "| `{name}` | {} | {} | {} | {} | {} |",
            stack.describe(),
            headers(&stack),
            pair(&|(overhead, ..)| overhead.to_string()),
            pair(&|(_, guest, _)| guest.to_string()),
            pair(&|(.., share)| format!("{:.1}%", share * 100.0)),
        )
        .expect("to memory");
    }
    page.push_str("\n## Where the bytes are defined\n\n");
    page.push_str("| header or trailer | bytes | source |\n|---|---|---|\n");
    // Counts of labels and of option bytes are the user's; padding has no fixed length.
    let varies = [
        "MPLS label",
        "Geneve options",
        "ESP padding",
        "WireGuard padding",
    ];
    let mut seen = Vec::new();
    for underlay in IpVersion::ALL {
        for name in shown(underlay) {
            let stack: Stack = name.parse().expect(name);
            let path = stack.over(underlay, Ipv4).expect("its underlay");
            for part in path.frame(1400, 1400).parts() {
                let row = (part.name, part.bytes, part.source);
                let fixed = part.place != FrameScope::Guest && !varies.contains(&part.name);
                if fixed && !seen.contains(&row) {
                    seen.push(row);
                }
            }
        }
    }
    for (name, bytes, source) in seen {
        writeln!(page, "| {name} | {bytes} | {source} |").expect("to memory");
    }
    page.push_str("| MPLS label | 4 each, 1 to 30 | RFC 3032, 2.1; net/mpls/internal.h |\n");
    page.push_str("| Geneve options | a multiple of 4, at most 252; OVN's 8 | RFC 8926, 3.5; ovn-architecture(7) |\n");
    page
}

#[test]
fn the_reference_page_is_what_the_catalogue_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/overhead.md");
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("docs/overhead.md");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/overhead.md is out of date: run UPDATE_DOCS=1 cargo test -p wirecost-wire"
    );
}
