//! What a user sees when the network between the hosts is wrong.

mod agreement;

use agreement::agree;
use wirecost_plan::load;

/// The errors in one line each.
fn brief(text: &str) -> String {
    agree(text);
    let errors = load("plan.yaml", text).expect_err("the plan is wrong");
    let lines = errors.errors().iter().map(|error| {
        format!(
            "{}:{} {} | {} | {}",
            error.line, error.column, error.message, error.label, error.help
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_guest_mtu_that_a_hop_cannot_carry_is_an_error_that_says_how_to_ask_for_it() {
    let text = "name: x\nunderlay: { mtu: 9000, hops: [{ switch: { mtu: 8950 } }] }\nguest_mtu: [1500, 8950]\nencapsulation: vxlan\n";
    insta::assert_snapshot!(brief(text), @"3:19 a guest MTU of 8950 does not fit in vxlan over an underlay of 9000 that carries 8950 from host to host | 50 too large | the largest that fits is 8900 (8950 less 50 of overhead): write 8900, or `max`, or `exclude` the combination, or `underlay.oversize: send` to see what becomes of it");
}

#[test]
fn without_a_tunnel_nothing_crosses_a_router() {
    let text = "name: x\nunderlay: { hops: [{ switch: { mtu: 1500 } }, { router: { mtu: 1500 } }] }\nencapsulation: [none, vxlan]\n";
    insta::assert_snapshot!(brief(text), @"2:47 guests without a tunnel, `encapsulation: none`, cannot cross a router | routed from here on | their frames are bridged as they are, and a router forwards only packets sent to its own MAC address: write an `encapsulation` such as `vxlan`, or `exclude` this one, or put switches here only");
    let text = "name: x\nunderlay: { paths: 4 }\n";
    insta::assert_snapshot!(brief(text), @"2:20 guests without a tunnel, `encapsulation: none`, cannot cross a router | routed from here on | their frames are bridged as they are, and a router forwards only packets sent to its own MAC address: write an `encapsulation` such as `vxlan`, or `exclude` this one, or put switches here only");
    let routed = "name: x\nunderlay: { paths: 4 }\nencapsulation: [none, vxlan]\nexclude: [{ encapsulation: none }]\n";
    assert_eq!(load("plan.yaml", routed).expect("a plan").cells.len(), 1);
}

#[test]
fn a_hop_is_one_of_two_kinds_and_has_an_mtu() {
    let text = "\
name: x
underlay:
  hops:
    - { hub: { mtu: 1500 } }
    - { switch: { mtu: 1500 }, router: { mtu: 1500 } }
    - switch: {}
    - switch
    - router: { mtu: 100, icmp: lost, loss: 101%, drop_udp_port: 0, delay: 11 }
    - {}
";
    insta::assert_snapshot!(brief(text), @r"
    4:9 `underlay.hops[0]` has no key `hub` | unknown key | `underlay.hops[0]` may have `switch` and `router`
    5:7 `underlay.hops[1]` is to be one hop | names two hops | write one of `switch` and `router` for each hop, such as `- switch: { mtu: 9000 }`
    6:15 `underlay.hops[2].switch.mtu` is missing | no `mtu` here | write `mtu: ...`: a whole number from 576 to 65535, such as `9000`
    7:7 `underlay.hops[3]` cannot be `switch` | not a mapping | write a mapping, such as `{ switch: { mtu: 9000 } }`
    8:22 `underlay.hops[4].router.mtu` cannot be `100` | below 576 | write a whole number from 576 to 65535, such as `9000`
    8:33 `underlay.hops[4].router.icmp` cannot be `lost` | unknown word | write `sent` or `filtered`
    8:45 `underlay.hops[4].router.loss` cannot be `101%` | above 100% | write a share from 0% to 100%, such as `5%`
    8:66 `underlay.hops[4].router.drop_udp_port` cannot be `0` | below 1 | write a whole number from 1 to 65535, such as `4789`
    8:76 `underlay.hops[4].router.delay` cannot be `11` | above 10 s | write a duration from 0 s to 10 s, such as `1ms`
    9:7 `underlay.hops[5]` is to be one hop | names no hop | write one of `switch` and `router` for each hop, such as `- switch: { mtu: 9000 }`
    ");
    insta::assert_snapshot!(brief("name: x\nunderlay: { hops: { switch: { mtu: 1500 } } }\n"), @"2:19 `underlay.hops` cannot be a mapping | not a list | write a list of mappings, such as `[{ switch: { mtu: 9000 } }, { router: { mtu: 8950 } }]`");
}

#[test]
fn one_path_is_no_choice_and_more_than_64_are_too_many() {
    insta::assert_snapshot!(brief("name: x\nencapsulation: vxlan\nunderlay: { paths: 1 }\n"), @"3:20 `underlay.paths` cannot be `1` | below 2 | write a whole number from 2 to 64 or a list of as many mappings, such as `4`");
    insta::assert_snapshot!(brief("name: x\nencapsulation: vxlan\nunderlay: { paths: [{ mtu: 1500 }] }\n"), @"3:20 `underlay.paths` has 1 paths | not several | write a whole number from 2 to 64 or a list of as many mappings");
    insta::assert_snapshot!(brief("name: x\nencapsulation: vxlan\nunderlay: { paths: [9000, { mtu: 1 }] }\n"), @r"
    3:21 `underlay.paths[0]` cannot be `9000` | not a mapping | write a mapping, such as `{ mtu: 9000 }`
    3:34 `underlay.paths[1].mtu` cannot be `1` | below 576 | write a whole number from 576 to 65535, such as `1500`
    ");
    let hop = "{ switch: { mtu: 1500 } }";
    let hops = [hop; 9].join(", ");
    insta::assert_snapshot!(brief(&format!("name: x\nunderlay: {{ hops: [{hops}] }}\n")), @"2:19 `underlay.hops` has 9 hops | too many | write at most 8");
}

#[test]
fn ipv6_tunnels_need_1280_bytes_on_every_hop() {
    let text = "name: x\nencapsulation: vxlan\nunderlay: { ip: ipv6, hops: [{ router: { mtu: 1279 } }] }\nguest_mtu: 1000\n";
    insta::assert_snapshot!(brief(text), @"3:30 an MTU of 1279 is too small for tunnels over IPv6 | below 1280 | every link that carries IPv6 takes 1280 bytes (RFC 8200, section 5): write 1280 or more, or `exclude` the combination with `underlay.ip: ipv6`");
}

#[test]
fn there_are_1_to_64_guests() {
    insta::assert_snapshot!(brief("name: x\nguests: [0, 65, many]\n"), @r"
    2:10 `guests[0]` cannot be `0` | below 1 | write a whole number from 1 to 64, such as `16`
    2:13 `guests[1]` cannot be `65` | above 64 | write a whole number from 1 to 64, such as `16`
    2:17 `guests[2]` cannot be `many` | not a whole number | write a whole number from 1 to 64, such as `16`
    ");
}

#[test]
fn streams_are_counted_in_all_or_for_each_pair_of_guests_and_divide_evenly() {
    let stream = |guests: &str, options: &str| {
        format!("name: x\nguests: {guests}\nload: {{ tcp-stream: {{ {options} }} }}\n")
    };
    insta::assert_snapshot!(brief(&stream("[1, 16]", "streams: [16, 24]")), @"3:37 24 `streams` cannot be divided evenly among 16 guests | not even | write a multiple of 16, or `streams_per_guest` instead, or `exclude` the combination");
    insta::assert_snapshot!(brief(&stream("16", "streams: 16, streams_per_guest: 1")), @"3:55 `streams_per_guest` cannot be used with `streams` | counted already | leave one of them out: `streams` are divided evenly among the guests, `streams_per_guest` are between each pair of them");
    insta::assert_snapshot!(brief(&stream("64", "streams_per_guest: 17")), @"3:42 64 guests with 17 `streams_per_guest` have 1088 streams | too many | a load has at most 1024: write fewer, or `exclude` the combination");
    let streams = |text: String| -> Vec<(u32, Option<String>)> {
        let plan = load("plan.yaml", &text).expect("a plan");
        let cells = plan.cells.iter();
        cells
            .map(|cell| {
                let label = cell.levels.get("streams_per_guest").cloned();
                (cell.loads[0].load.streams, label)
            })
            .collect()
    };
    let label = |text: &str| Some(text.to_owned());
    assert_eq!(
        streams(stream("[1, 16]", "streams: 16")),
        [(16, None), (16, None)]
    );
    assert_eq!(
        streams(stream("[1, 16]", "streams_per_guest: [1, 5]")),
        [
            (1, label("1")),
            (5, label("5")),
            (16, label("1")),
            (80, label("5"))
        ]
    );
    assert_eq!(
        streams(stream("[1, 16]", "")),
        [(1, label("1")), (16, label("1"))]
    );
    assert_eq!(streams(stream("1", "")), [(1, None)]);
}
