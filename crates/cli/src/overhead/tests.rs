use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    overhead: Overhead,
}

/// What a terminal of this width shows.
fn shown(width: usize, arguments: &str) -> String {
    let words = ["overhead"].into_iter().chain(arguments.split_whitespace());
    let arguments = Line::try_parse_from(words).expect("arguments").overhead;
    let question = arguments.question();
    let document = match &arguments.encapsulation {
        Some(stack) => Document::of_one(&stack.parse().expect("a stack"), &question),
        None => Document::of_all(&question).map_err(Into::into),
    };
    text(&document.expect("an answer"), width)
}

fn widest(text: &str) -> usize {
    text.lines()
        .map(textwrap::core::display_width)
        .max()
        .unwrap_or(0)
}

#[test]
fn sixty_columns_are_enough_for_the_table() {
    let text = shown(60, "--rate 10gbit --ipv6");
    assert!(widest(&text) <= 60, "{text}");
    insta::assert_snapshot!(text, @"
    Underlay MTU 1500 (IPv6), guests IPv4, line of 10gbit

    encapsulation             over-  guest  goodput  goodput
                               head    MTU        %   Gbit/s
    ─────────────────────────────────────────────────────────
    none                          0   1500     94.1     9.41
    vlan                          0   1500     93.9     9.39
    qinq                          0   1500     93.7     9.37
    pppoe                         8   1492     93.6     9.36
    mpls                          4   1496     93.9     9.39
    mpls:2                        8   1492     93.6     9.36
    macsec                       32   1468     92.1     9.21
    vxlan                        70   1430     89.6     8.96
    vxlan+vlan                   74   1426     89.3     8.93
    vxlan-gpe:ip                 56   1444     90.5     9.05
    vxlan-gpe:ethernet           70   1430     89.6     8.96
    geneve                       70   1430     89.6     8.96
    geneve:ovn                   78   1422     89.1     8.91
    nvgre                        62   1438     90.1     9.01
    gretap                       58   1442     90.4     9.04
    gretap:encaplimit            66   1434     89.9     8.99
    gre                          44   1456     91.3     9.13
    gre:key                      48   1452     91.0     9.10
    gre:encaplimit               52   1448     90.8     9.08
    ipip                         40   1460     91.5     9.15
    ipip:encaplimit              48   1452     91.0     9.10
    stt                          92   1408     88.2     8.82
    wireguard                    80   1420     88.9     8.89
    esp                          74   1426     89.3     8.93
    esp:natt                     82   1418     88.8     8.88
    geneve:ovn+esp              152   1348     84.3     8.43
    geneve:ovn+esp-transport    112   1388     86.9     8.69

    overhead: bytes of the underlay's MTU; guest MTU: the
    largest guest packet that fits; goodput: TCP payload with
    timestamps, of the line's rate.
    For a wider terminal: frames/s, on the line, what it is.
    Part by part: `wirecost overhead vxlan`; stacks and options:
    `wirecost overhead --help`.
    ");
}

#[test]
fn sixty_columns_are_enough_for_one_encapsulation() {
    let text = shown(60, "geneve:ovn+vlan+esp --rate 25gbit --underlay-mtu 1600");
    assert!(widest(&text) <= 60, "{text}");
    insta::assert_snapshot!(text, @"
    geneve:ovn+vlan+esp: Geneve with 8 option bytes and with a
      VLAN tag inside, in ESP in tunnel mode

    Underlay MTU 1600 (IPv4), guest MTU 1484 (IPv4): the frame,
    outermost part first.

    bytes  part                              defined in
    ────────────────────────────────────────────────────────────
        8  preamble and start delimiter      IEEE 802.3, 3.1.1,
                                             3.2.1
       14  Ethernet header                   IEEE 802.3, 3.1.1
       20    IPv4 header                     RFC 791, 3.1
        8    ESP header (SPI, sequence)      RFC 4303, 2
        8    AES-GCM IV                      RFC 4106, 3.1
       20      IPv4 header                   RFC 791, 3.1
        8      UDP header                    RFC 768
        8      Geneve header                 RFC 8926, 3.4
        8      Geneve options                RFC 8926, 3.5
       14      inner Ethernet header         IEEE 802.3, 3.1.1
        4      VLAN tag                      IEEE 802.1Q, 9
     1484        guest's IP packet
        0    ESP padding                     RFC 4303, 2.4
        2    ESP pad length and next header  RFC 4303, 2
       16    AES-GCM integrity check         RFC 4106, 6
        4  frame check sequence              IEEE 802.3, 3.2.9
       12  interframe gap                    IEEE 802.3, 4.4.2
     1638  on the line

    overhead      116 of 1600 bytes of the underlay's MTU (7.2%)
    guest MTU     1484
    frame         1618 bytes from header to FCS, 1638 on the
                  line
    TCP goodput   21.9 Gbit/s of 25gbit, 87.4% of the line, with
                  timestamps
    frames        1,907,814/s full-size; 15,470,297/s with guest
                  packets of 46 bytes
    needs         underlay MTU 1616 for guest MTU 1500, 9116 for
                  guest MTU 9000

    ESP with AES-GCM and a 16-byte integrity check. Its padding
    makes the guest MTU a step function of the underlay's: up to
    3 bytes stay unused.

    `esp` is tunnel mode, with an IP header of its own. Where
    the tunnel's own ends encrypt, as OVN's do
    (ovs-monitor-ipsec sets type=transport), write
    `esp-transport`: one IP header less.
    ");
}

#[test]
fn no_width_from_56_on_is_too_small() {
    for width in 56..130 {
        for arguments in [
            "",
            "--guest-mtu 1500,9000 --guest-ipv6",
            "geneve:ovn+vlan+esp-transport:natt",
            "vxlan-gpe:ethernet+qinq+gre:encaplimit,key+outer-vlan --ipv6 --rate 400gbit",
        ] {
            let text = shown(width, arguments);
            assert!(widest(&text) <= width, "{width}: {arguments}\n{text}");
        }
    }
}

#[test]
fn what_is_left_out_is_named() {
    let narrow = shown(60, "--rate 10gbit");
    assert!(narrow.contains("For a wider terminal: "), "{narrow}");
    let wide = shown(200, "--rate 10gbit");
    assert!(!wide.contains("For a wider terminal"), "{wide}");
}

#[test]
fn a_guest_mtu_asks_for_the_underlays() {
    insta::assert_snapshot!(shown(100, "esp --guest-mtu 1500"), @"
    esp: ESP in tunnel mode

    Underlay MTU 1556 (IPv4), guest MTU 1500 (IPv4): the frame, outermost part first.

    bytes  part                              defined in
    ──────────────────────────────────────────────────────────────────
        8  preamble and start delimiter      IEEE 802.3, 3.1.1, 3.2.1
       14  Ethernet header                   IEEE 802.3, 3.1.1
       20    IPv4 header                     RFC 791, 3.1
        8    ESP header (SPI, sequence)      RFC 4303, 2
        8    AES-GCM IV                      RFC 4106, 3.1
     1500      guest's IP packet
        2    ESP padding                     RFC 4303, 2.4
        2    ESP pad length and next header  RFC 4303, 2
       16    AES-GCM integrity check         RFC 4106, 6
        4  frame check sequence              IEEE 802.3, 3.2.9
       12  interframe gap                    IEEE 802.3, 4.4.2
     1594  on the line

    overhead      56 of 1556 bytes of the underlay's MTU (3.6%)
    guest MTU     1500
    frame         1574 bytes from header to FCS, 1594 on the line
    TCP goodput   90.8% of the line, with timestamps

    ESP with AES-GCM and a 16-byte integrity check. Its padding makes the guest MTU a step function of
    the underlay's: up to 3 bytes stay unused.
    ");
    insta::assert_snapshot!(shown(120, "--guest-mtu 65500"), @"
    Underlay IPv4, guests MTU 65500 (IPv4)

    encapsulation             over-  underlay  on the  goodput  what it is
                               head       MTU    line        %
    ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    none                          0     65500   65538     99.9  no encapsulation
    vlan                          0     65500   65542     99.9  a VLAN tag on the line
    qinq                          0     65500   65546     99.9  two VLAN tags on the line
    pppoe                         8     65508   65546     99.9  PPPoE
    mpls                          4     65504   65542     99.9  MPLS with 1 label
    mpls:2                        8     65508   65546     99.9  MPLS with 2 labels
    macsec                       32     65532   65570     99.8  MACsec
    vxlan                         -         -       -        -  VXLAN
    vxlan+vlan                    -         -       -        -  VXLAN with a VLAN tag inside
    vxlan-gpe:ip                  -         -       -        -  VXLAN-GPE with IP inside
    vxlan-gpe:ethernet            -         -       -        -  VXLAN-GPE with Ethernet inside
    geneve                        -         -       -        -  Geneve
    geneve:ovn                    -         -       -        -  Geneve with 8 option bytes
    nvgre                         -         -       -        -  NVGRE
    gretap                        -         -       -        -  Ethernet in GRE
    gre                          24     65524   65562     99.8  GRE
    gre:key                      28     65528   65566     99.8  GRE with a key
    ipip                         20     65520   65558     99.8  IP in IP
    stt                           -         -       -        -  STT
    wireguard                     -         -       -        -  WireGuard
    esp                           -         -       -        -  ESP in tunnel mode
    esp:natt                      -         -       -        -  ESP in tunnel mode in UDP (NAT traversal)
    geneve:ovn+esp                -         -       -        -  Geneve with 8 option bytes, in ESP in tunnel mode
    geneve:ovn+esp-transport      -         -       -        -  Geneve with 8 option bytes, in ESP in transport mode

    overhead: bytes of the underlay's MTU; underlay MTU: the smallest that carries the guests' packets; on the line: bytes
    of a full frame, preamble and gap included; goodput: TCP payload with timestamps, of the line's rate.
    - : impossible; `wirecost overhead ENCAPSULATION` with the same options says why.
    Part by part: `wirecost overhead vxlan`; stacks and options: `wirecost overhead --help`.
    ");
}

#[test]
fn a_small_underlay_says_what_cannot_be_over_it() {
    let text = shown(120, "--underlay-mtu 1300 --guest-ipv6");
    assert!(
        text.contains("\nvxlan                         -      -"),
        "{text}"
    );
    assert!(text.contains("- : impossible"), "{text}");
    let text = shown(120, "esp --underlay-mtu 1300");
    assert!(text.contains("1246, too small for IPv6"), "{text}");
}
