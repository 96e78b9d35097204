//! What a user sees when a plan is wrong: one test per rule, and one plan with everything wrong.

mod agreement;

use agreement::agree;
use miette::{GraphicalReportHandler, GraphicalTheme};
use wirecost_plan::load;

/// The errors as the command line shows them, without colour.
fn errors(text: &str) -> String {
    agree(text);
    let errors = load("plan.yaml", text).expect_err("the plan is wrong");
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(80)
        .with_links(false);
    let mut rendered = String::new();
    handler
        .render_report(&mut rendered, &errors)
        .expect("writing to a string");
    let lines: Vec<&str> = rendered.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// The errors in one line each, where the picture adds nothing.
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
#[expect(clippy::too_many_lines, reason = "the lines are what is shown")]
fn a_plan_full_of_mistakes_shows_all_of_them_at_once() {
    let text = "\
nmae: everything wrong
hosts: ssh:10.0.0.1
underlay: { mtu: 9000, rate: 10 }
guest_mtu: [1500, 8990, 100]
encapsulation: [none, vxlan, vxlan]
offload: [none, tunel]
load:
  tcp-stream:
    streams: []
    message: 2MiB
repeat:
  rounds: 0
  seconds: soon
exclude:
  - { encapsulation: geneve }
";
    insta::assert_snapshot!(errors(text), @r#"
      × 12 errors in plan.yaml

    Error:
      × a plan has no key `nmae`
       ╭─[plan.yaml:1:1]
     1 │ nmae: everything wrong
       · ──┬─
       ·   ╰── unknown key
     2 │ hosts: ssh:10.0.0.1
       ╰────
      help: did you mean `name`? a plan may have `name`, `description`, `hosts`,
            `pairs`, `network`, `allow_host_changes`, `max_rate`, `cores`, `seed`,
            `underlay`, `encapsulation`, `udp_checksum`, `datapath`, `topology`,
            `acl`, `guest_mtu`, `guest_ip`, `guests`, `offload`, `steering`,
            `load`, `repeat`, `self_test`, `vary`, `exclude` and `published`

    Error:
      × `hosts` cannot be `ssh:10.0.0.1`
       ╭─[plan.yaml:2:8]
     1 │ nmae: everything wrong
     2 │ hosts: ssh:10.0.0.1
       ·        ──────┬─────
       ·              ╰── neither `lab` nor hosts
     3 │ underlay: { mtu: 9000, rate: 10 }
       ╰────
      help: write `lab` or a mapping, such as `{ a: "ssh:db1=10.0.0.1", b:
            "ssh:db2=10.0.0.2" }`

    Error:
      × `underlay.rate` cannot be `10`
       ╭─[plan.yaml:3:30]
     2 │ hosts: ssh:10.0.0.1
     3 │ underlay: { mtu: 9000, rate: 10 }
       ·                              ─┬
       ·                               ╰── a rate needs its unit
     4 │ guest_mtu: [1500, 8990, 100]
       ╰────
      help: write `none` or a rate from 100mbit to 10000gbit, such as `10gbit`

    Error:
      × a guest MTU of 8990 does not fit in vxlan over an underlay of 9000
       ╭─[plan.yaml:4:19]
     3 │ underlay: { mtu: 9000, rate: 10 }
     4 │ guest_mtu: [1500, 8990, 100]
       ·                   ──┬─
       ·                     ╰── 40 too large
     5 │ encapsulation: [none, vxlan, vxlan]
       ╰────
      help: the largest that fits is 8950 (9000 less 50 of overhead): write 8950,
            or `max`, or `exclude` the combination

    Error:
      × `guest_mtu[2]` cannot be `100`
       ╭─[plan.yaml:4:25]
     3 │ underlay: { mtu: 9000, rate: 10 }
     4 │ guest_mtu: [1500, 8990, 100]
       ·                         ─┬─
       ·                          ╰── below 576
     5 │ encapsulation: [none, vxlan, vxlan]
       ╰────
      help: write `max` or a whole number from 576 to 65535, such as `8900`

    Error:
      × the level `vxlan` of `encapsulation` stands twice
       ╭─[plan.yaml:5:30]
     4 │ guest_mtu: [1500, 8990, 100]
     5 │ encapsulation: [none, vxlan, vxlan]
       ·                              ──┬──
       ·                                ╰── second time
     6 │ offload: [none, tunel]
       ╰────
      help: remove one of them: a level is one side of a comparison

    Error:
      × `offload[1]` cannot be `tunel`
       ╭─[plan.yaml:6:17]
     5 │ encapsulation: [none, vxlan, vxlan]
     6 │ offload: [none, tunel]
       ·                 ──┬──
       ·                   ╰── unknown word
     7 │ load:
       ╰────
      help: did you mean `tunnel`? write `none`, `plain`, `tunnel` or a mapping,
            such as `{ profile: tunnel, tso: off }`

    Error:
      × `load.tcp-stream.streams` is an empty list
        ╭─[plan.yaml:9:14]
      8 │   tcp-stream:
      9 │     streams: []
        ·              ─┬
        ·               ╰── empty
     10 │     message: 2MiB
        ╰────
      help: write a whole number from 1 to 1024, such as `4`, or leave the key out

    Error:
      × `load.tcp-stream.message` cannot be `2MiB`
        ╭─[plan.yaml:10:14]
      9 │     streams: []
     10 │     message: 2MiB
        ·              ──┬─
        ·                ╰── above 1MiB
     11 │ repeat:
        ╰────
      help: write a size from 1B to 1MiB, such as `128KiB`

    Error:
      × `repeat.rounds` cannot be `0`
        ╭─[plan.yaml:12:11]
     11 │ repeat:
     12 │   rounds: 0
        ·           ┬
        ·           ╰── below 1
     13 │   seconds: soon
        ╰────
      help: write a whole number from 1 to 1000, such as `8`

    Error:
      × `repeat.seconds` cannot be `soon`
        ╭─[plan.yaml:13:12]
     12 │   rounds: 0
     13 │   seconds: soon
        ·            ──┬─
        ·              ╰── not a duration
     14 │ exclude:
        ╰────
      help: write a duration from 0.05 s to 3600 s, such as `1.5`

    Error:
      × `encapsulation` has no level `geneve`
        ╭─[plan.yaml:15:22]
     14 │ exclude:
     15 │   - { encapsulation: geneve }
        ·                      ───┬──
        ·                         ╰── not a level
        ╰────
      help: its levels are `none` and `vxlan`
    "#);
}

#[test]
fn an_unknown_key_names_the_one_that_was_meant_and_those_allowed() {
    insta::assert_snapshot!(errors("name: x\nguest-mtu: 1500\n"), @r"
      × 1 error in plan.yaml

    Error:
      × a plan has no key `guest-mtu`
       ╭─[plan.yaml:2:1]
     1 │ name: x
     2 │ guest-mtu: 1500
       · ────┬────
       ·     ╰── unknown key
       ╰────
      help: did you mean `guest_mtu`? a plan may have `name`, `description`,
            `hosts`, `pairs`, `network`, `allow_host_changes`, `max_rate`,
            `cores`, `seed`, `underlay`, `encapsulation`, `udp_checksum`,
            `datapath`, `topology`, `acl`, `guest_mtu`, `guest_ip`, `guests`,
            `offload`, `steering`, `load`, `repeat`, `self_test`, `vary`,
            `exclude` and `published`
    ");
}

#[test]
fn steps_of_a_line_need_a_line_and_have_a_range() {
    let brief = |underlay: &str| brief(&format!("name: x\nunderlay: {{ {underlay} }}\n"));
    insta::assert_snapshot!(brief("release: 100us"), @"2:22 `underlay.release` applies to a line, and no cell has one | without a line | write an `underlay.rate` too, such as `rate: 10gbit`, or leave it out");
    insta::assert_snapshot!(brief("rate: none, release: 50us"), @"2:34 `underlay.release` applies to a line, and no cell has one | without a line | write an `underlay.rate` too, such as `rate: 10gbit`, or leave it out");
    insta::assert_snapshot!(brief("rate: 10gbit, release: 0"), @"2:36 `underlay.release` cannot be `0` | below 10 us | write a duration from 10 us to 1 ms, such as `100us`");
    insta::assert_snapshot!(brief("rate: 10gbit, release: off"), @"2:36 `underlay.release` cannot be `off` | not a duration | write a duration from 10 us to 1 ms, such as `100us`");
    insta::assert_snapshot!(brief("rate: 10gbit, release: 2ms"), @"2:36 `underlay.release` cannot be `2ms` | above 1 ms | write a duration from 10 us to 1 ms, such as `100us`");
}

#[test]
fn a_key_in_the_wrong_place_is_told_where_it_belongs() {
    insta::assert_snapshot!(brief("name: x\nrounds: 4\nunderlay: { guest_mtu: 1500 }\n"), @r"
    2:1 a plan has no key `rounds` | unknown key | `rounds` stands under `repeat`. a plan may have `name`, `description`, `hosts`, `pairs`, `network`, `allow_host_changes`, `max_rate`, `cores`, `seed`, `underlay`, `encapsulation`, `udp_checksum`, `datapath`, `topology`, `acl`, `guest_mtu`, `guest_ip`, `guests`, `offload`, `steering`, `load`, `repeat`, `self_test`, `vary`, `exclude` and `published`
    3:13 `underlay` has no key `guest_mtu` | unknown key | `guest_mtu` stands outside of `underlay`. `underlay` may have `mtu`, `rate`, `links`, `release`, `ip`, `hops`, `paths` and `oversize`
    ");
}

#[test]
fn a_missing_name_says_so() {
    insta::assert_snapshot!(errors("description: no name\n"), @r"
      × 1 error in plan.yaml

    Error:
      × `name` is missing
       ╭─[plan.yaml:1:1]
     1 │ description: no name
       · ──────────┬─────────
       ·           ╰── no `name` here
       ╰────
      help: write `name: ...`: letters, digits, `.`, `_` and `-`, at most 64, such
            as `jumbo-or-not`
    ");
}

#[test]
fn an_mtu_outside_of_576_to_65535_is_refused() {
    insta::assert_snapshot!(errors("name: x\nunderlay: { mtu: [575, 65536] }\nguest_mtu: -1\n"), @r"
      × 3 errors in plan.yaml

    Error:
      × `underlay.mtu[0]` cannot be `575`
       ╭─[plan.yaml:2:19]
     1 │ name: x
     2 │ underlay: { mtu: [575, 65536] }
       ·                   ─┬─
       ·                    ╰── below 576
     3 │ guest_mtu: -1
       ╰────
      help: write a whole number from 576 to 65535, such as `9000`

    Error:
      × `underlay.mtu[1]` cannot be `65536`
       ╭─[plan.yaml:2:24]
     1 │ name: x
     2 │ underlay: { mtu: [575, 65536] }
       ·                        ──┬──
       ·                          ╰── above 65535
     3 │ guest_mtu: -1
       ╰────
      help: write a whole number from 576 to 65535, such as `9000`

    Error:
      × `guest_mtu` cannot be `-1`
       ╭─[plan.yaml:3:12]
     2 │ underlay: { mtu: [575, 65536] }
     3 │ guest_mtu: -1
       ·            ─┬
       ·             ╰── below 576
       ╰────
      help: write `max` or a whole number from 576 to 65535, such as `8900`
    ");
}

#[test]
fn a_guest_mtu_that_does_not_fit_names_the_largest_that_does() {
    let text =
        "name: x\nunderlay: { mtu: 9000 }\nguest_mtu: [1500, 8951]\nencapsulation: [none, vxlan]\n";
    insta::assert_snapshot!(errors(text), @r"
      × 1 error in plan.yaml

    Error:
      × a guest MTU of 8951 does not fit in vxlan over an underlay of 9000
       ╭─[plan.yaml:3:19]
     2 │ underlay: { mtu: 9000 }
     3 │ guest_mtu: [1500, 8951]
       ·                   ──┬─
       ·                     ╰── 1 too large
     4 │ encapsulation: [none, vxlan]
       ╰────
      help: the largest that fits is 8950 (9000 less 50 of overhead): write 8950,
            or `max`, or `exclude` the combination
    ");
}

#[test]
fn a_guest_mtu_over_the_underlays_needs_no_tunnel_to_be_wrong() {
    insta::assert_snapshot!(brief("name: x\nguest_mtu: 9000\n"), @"2:12 a guest MTU of 9000 does not fit over an underlay of 1500 | 7500 too large | the largest that fits is 1500: write 1500, or `max`, or `exclude` the combination");
}

#[test]
fn max_below_the_smallest_mtu_is_pointed_at_where_the_plan_says_something() {
    let text = "name: x\nunderlay: { mtu: 600 }\nencapsulation: vxlan\n";
    insta::assert_snapshot!(errors(text), @r"
      × 1 error in plan.yaml

    Error:
      × the guest MTU `max` is 550 in vxlan over an underlay of 600
       ╭─[plan.yaml:2:18]
     1 │ name: x
     2 │ underlay: { mtu: 600 }
       ·                  ─┬─
       ·                   ╰── below 576
     3 │ encapsulation: vxlan
       ╰────
      help: the underlay's MTU must be at least 626 for a guest MTU of 576, the
            smallest
    ");
}

#[test]
fn zero_rounds_are_refused() {
    insta::assert_snapshot!(errors("name: x\nrepeat: { rounds: 0 }\n"), @r"
      × 1 error in plan.yaml

    Error:
      × `repeat.rounds` cannot be `0`
       ╭─[plan.yaml:2:19]
     1 │ name: x
     2 │ repeat: { rounds: 0 }
       ·                   ┬
       ·                   ╰── below 1
       ╰────
      help: write a whole number from 1 to 1000, such as `8`
    ");
}

#[test]
fn an_empty_list_is_no_factor() {
    insta::assert_snapshot!(errors("name: x\noffload: []\n"), @r"
      × 1 error in plan.yaml

    Error:
      × `offload` is an empty list
       ╭─[plan.yaml:2:10]
     1 │ name: x
     2 │ offload: []
       ·          ─┬
       ·           ╰── empty
       ╰────
      help: write `none`, `plain`, `tunnel` or a mapping, such as `{ profile:
            tunnel, tso: off }`, or leave the key out
    ");
}

#[test]
fn a_level_twice_is_found_however_it_is_written() {
    let text = "\
name: x
guest_mtu: [1500, \"1500\"]
underlay: { rate: [10gbit, 10000mbit] }
offload: [none, { profile: none, gro: off }]
";
    insta::assert_snapshot!(errors(text), @r#"
      × 3 errors in plan.yaml

    Error:
      × the level `1500` of `guest_mtu` stands twice
       ╭─[plan.yaml:2:19]
     1 │ name: x
     2 │ guest_mtu: [1500, "1500"]
       ·                   ───┬──
       ·                      ╰── second time
     3 │ underlay: { rate: [10gbit, 10000mbit] }
       ╰────
      help: remove one of them: a level is one side of a comparison

    Error:
      × the level `10gbit` of `underlay.rate` stands twice
       ╭─[plan.yaml:3:28]
     2 │ guest_mtu: [1500, "1500"]
     3 │ underlay: { rate: [10gbit, 10000mbit] }
       ·                            ────┬────
       ·                                ╰── second time
     4 │ offload: [none, { profile: none, gro: off }]
       ╰────
      help: remove one of them: a level is one side of a comparison

    Error:
      × the level `none gro=off` of `offload` switches the same things as `none`
       ╭─[plan.yaml:4:17]
     3 │ underlay: { rate: [10gbit, 10000mbit] }
     4 │ offload: [none, { profile: none, gro: off }]
       ·                 ─────────────┬─────────────
       ·                              ╰── second time
       ╰────
      help: remove one of them: a level is one side of a comparison
    "#);
}

#[test]
fn two_levels_that_come_to_the_same_cell_are_one_too_many() {
    let text =
        "name: x\nunderlay: { mtu: 9000 }\nguest_mtu: [max, 8950]\nencapsulation: [none, vxlan]\n";
    insta::assert_snapshot!(errors(text), @r"
      × 1 error in plan.yaml

    Error:
      × the levels `max` and `8950` of `guest_mtu` are both 8950 bytes in vxlan
      │ over an underlay of 9000
       ╭─[plan.yaml:3:18]
     2 │ underlay: { mtu: 9000 }
     3 │ guest_mtu: [max, 8950]
       ·                  ──┬─
       ·                    ╰── the same cell again
     4 │ encapsulation: [none, vxlan]
       ╰────
      help: remove one of them, or `exclude` one of the two there: the same cell
            would be measured twice
    ");
}

#[test]
fn an_mtu_below_1280_cannot_carry_ipv6() {
    let text = "\
name: x
underlay: { mtu: [1279, 9000], ip: ipv6 }
guest_mtu: [1200, 1500]
guest_ip: [ipv4, ipv6]
encapsulation: vxlan
exclude: [{ underlay.mtu: 1279, guest_mtu: 1500 }]
";
    insta::assert_snapshot!(errors(text), @r"
      × 2 errors in plan.yaml

    Error:
      × an underlay MTU of 1279 is too small for tunnels over IPv6
       ╭─[plan.yaml:2:19]
     1 │ name: x
     2 │ underlay: { mtu: [1279, 9000], ip: ipv6 }
       ·                   ──┬─
       ·                     ╰── below 1280
     3 │ guest_mtu: [1200, 1500]
       ╰────
      help: every link that carries IPv6 takes 1280 bytes (RFC 8200, section 5):
            write an `underlay.mtu` of 1280 or more, or `exclude` the combination
            with `underlay.ip: ipv6`

    Error:
      × a guest MTU of 1200 is too small for IPv6 guests
       ╭─[plan.yaml:3:13]
     2 │ underlay: { mtu: [1279, 9000], ip: ipv6 }
     3 │ guest_mtu: [1200, 1500]
       ·             ──┬─
       ·               ╰── below 1280
     4 │ guest_ip: [ipv4, ipv6]
       ╰────
      help: write 1280, the smallest that IPv6 allows (RFC 8200, section 5), or
            more, or `exclude` the combination with `guest_ip: ipv6`
    ");
}

#[test]
fn the_room_that_a_tunnel_over_ipv6_leaves_is_70_bytes_less() {
    let text = "\
name: x
underlay: { ip: [ipv4, ipv6] }
guest_mtu: 1450
encapsulation: vxlan
";
    insta::assert_snapshot!(errors(text), @r"
      × 1 error in plan.yaml

    Error:
      × a guest MTU of 1450 does not fit in vxlan over an IPv6 underlay of 1500
       ╭─[plan.yaml:3:12]
     2 │ underlay: { ip: [ipv4, ipv6] }
     3 │ guest_mtu: 1450
       ·            ──┬─
       ·              ╰── 20 too large
     4 │ encapsulation: vxlan
       ╰────
      help: the largest that fits is 1430 (1500 less 70 of overhead): write 1430,
            or `max`, or `exclude` the combination
    ");
    insta::assert_snapshot!(brief("name: x\nunderlay: { mtu: 1300 }\nguest_ip: ipv6\nencapsulation: vxlan\n"), @"2:18 the guest MTU `max` is 1250 in vxlan over an underlay of 1300 | below 1280 | the underlay's MTU must be at least 1330 for a guest MTU of 1280, the smallest that IPv6 allows (RFC 8200, section 5)");
    insta::assert_snapshot!(brief("name: x\nunderlay: { mtu: 1000 }\nguest_mtu: 1000\nguest_ip: ipv6\n"), @"3:12 a guest MTU of 1000 is too small for IPv6 guests | below 1280 | the underlay's MTU must be at least 1280 for a guest MTU of 1280, the smallest that IPv6 allows (RFC 8200, section 5)");
}

#[test]
fn an_underlay_ip_that_nothing_runs_over_is_a_slip() {
    let text = "name: x\nunderlay: { ip: [ipv4, ipv6] }\n";
    insta::assert_snapshot!(errors(text), @r"
      × 1 error in plan.yaml

    Error:
      × `underlay.ip` changes nothing: no cell has a tunnel
       ╭─[plan.yaml:2:24]
     1 │ name: x
     2 │ underlay: { ip: [ipv4, ipv6] }
       ·                        ──┬─
       ·                          ╰── carries nothing
       ╰────
      help: it is the IP that carries tunnels: add an encapsulation, such as
            `vxlan`, or leave the key out; what the guests speak is `guest_ip`
    ");
    let ipv4 = "name: x\nunderlay: { ip: ipv4 }\n";
    assert!(
        load("plan.yaml", ipv4).is_ok(),
        "what is so anyway may be said"
    );
}

#[test]
fn options_of_an_encapsulation_are_held_against_what_they_can_be() {
    let text = "\
name: x
encapsulation: [{ vlan: { id: 4095 } }, { geneve: { options: 7 } }, { geneve: { options: 256, source_ports: 9-8 } }, { vxlan: { inner_vlan: 0 }, geneve: {} }]
";
    insta::assert_snapshot!(brief(text), @"
    2:31 `encapsulation[0].vlan.id` cannot be `4095` | above 4094 | write a whole number from 1 to 4094, such as `100`
    2:62 `encapsulation[1].geneve.options` cannot be `7`, which is not a multiple of 4 | not a multiple of 4 | write `ovn` or a whole number from 0 to 252, such as `ovn`
    2:90 `encapsulation[2].geneve.options` cannot be `256` | above 252 | write `ovn` or a whole number from 0 to 252, such as `ovn`
    2:109 `encapsulation[2].geneve.source_ports` cannot be `9-8` | not a range of ports | write `auto` or a range of ports, from 1 to 65535, such as `49152-65535`
    2:118 `encapsulation[3]` cannot be a mapping | names several | write `none`, `vlan`, `vxlan`, `geneve`, `gre`, `gretap`, `ipip`, `wireguard` or a mapping, such as `{ vxlan: { udp_checksum: on } }`
    ");
}

#[test]
fn options_of_gre_and_ip_in_ip_are_held_against_what_the_kernel_does() {
    let text = "\
name: x
encapsulation: [{ gre: { key: -1 } }, { gretap: { ttl: 0 } }, { ipip: { df: unset } }, { gre: { ttl: 64, df: inherit } }, { ipip: { key: 7 } }]
";
    insta::assert_snapshot!(brief(text), @"
    2:31 `encapsulation[0].gre.key` cannot be `-1` | below 0 | write `none` or a whole number from 0 to 4294967295, such as `42`
    2:56 `encapsulation[1].gretap.ttl` cannot be `0` | below 1 | write `inherit` or a whole number from 1 to 255, such as `64`
    2:77 `encapsulation[2].ipip.df` cannot be `unset` | unknown word | did you mean `set`? write `set` or `inherit`
    2:102 a `ttl` of 64 cannot be used with `df: inherit` | sets `df` | the kernel sets the don't-fragment bit of a tunnel that has a TTL of its own: leave one of the two out, or write `df: set`
    2:133 `encapsulation[4].ipip` has no key `key` | unknown key | `key` stands under `encapsulation.gre`. `encapsulation[4].ipip` may have `ttl` and `df`
    ");
    let over_ipv6 = "name: x\nunderlay: { mtu: 1500, ip: [ipv4, ipv6] }\nencapsulation: [none, gretap, { gre: { df: set } }]\n";
    insta::assert_snapshot!(brief(over_ipv6), @"3:31 `gre df=set` cannot run over IPv6 | `df` is IPv4's | an IPv6 header has no don't-fragment bit, and no router fragments it (RFC 8200, section 5): leave `df` out, or `exclude` the combination with `underlay.ip: ipv6`");
    let by_ebpf = "name: x\nencapsulation: [gre]\ndatapath: ebpf\n";
    insta::assert_snapshot!(brief(by_ebpf), @"2:17 `gre` cannot be built by `datapath: ebpf`: GRE and IP in IP are the kernel's devices alone | not by eBPF | write `datapath: kernel`, or leave the key out for the run to choose, or `exclude` the combination: `{ encapsulation: gre, datapath: ebpf }`");
    let summed = "name: x\nencapsulation: [none, gretap, ipip]\nudp_checksum: [off, on]\n";
    insta::assert_snapshot!(brief(summed), @"3:21 `udp_checksum` changes nothing: no cell has a tunnel that leaves it open | no outer UDP header | it is about the outer UDP header of `vxlan` and `geneve`: add one without an `udp_checksum` of its own, or leave the key out");
    let large = "name: x\nencapsulation: { gre: { key: 7 } }\nguest_mtu: 1473\n";
    insta::assert_snapshot!(brief(large), @"3:12 a guest MTU of 1473 does not fit in gre key=7 over an underlay of 1500 | 1 too large | the largest that fits is 1472 (1500 less 28 of overhead): write 1472, or `max`, or `exclude` the combination");
}

#[test]
fn options_of_wireguard_are_its_port_and_nothing_of_other_tunnels() {
    let text = "\
name: x
encapsulation: [{ wireguard: { port: 0 } }, { wireguard: { udp_checksum: on } }]
";
    insta::assert_snapshot!(brief(text), @"
    2:38 `encapsulation[0].wireguard.port` cannot be `0` | below 1 | write a whole number from 1 to 65535, such as `51821`
    2:60 `encapsulation[1].wireguard` has no key `udp_checksum` | unknown key | `udp_checksum` stands under `encapsulation.vxlan`. `encapsulation[1].wireguard` may have `port`
    ");
    let by_ebpf = "name: x\nencapsulation: [wireguard]\ndatapath: ebpf\n";
    insta::assert_snapshot!(brief(by_ebpf), @"2:17 `wireguard` cannot be built by `datapath: ebpf`: WireGuard is the kernel's device alone | not by eBPF | write `datapath: kernel`, or leave the key out for the run to choose, or `exclude` the combination: `{ encapsulation: wireguard, datapath: ebpf }`");
    let summed = "name: x\nencapsulation: [none, wireguard]\nudp_checksum: [off, on]\n";
    insta::assert_snapshot!(brief(summed), @"3:21 `udp_checksum` changes nothing: no cell has a tunnel that leaves it open | no outer UDP header | it is about the outer UDP header of `vxlan` and `geneve`: add one without an `udp_checksum` of its own, or leave the key out");
    let large = "name: x\nencapsulation: { wireguard: { port: 51821 } }\nguest_mtu: 1441\n";
    insta::assert_snapshot!(brief(large), @"3:12 a guest MTU of 1441 does not fit in wireguard port=51821 over an underlay of 1500 | 1 too large | the largest that fits is 1440 (1500 less 60 of overhead): write 1440, or `max`, or `exclude` the combination");
}

#[test]
fn a_plan_of_which_the_named_datapaths_can_build_nothing_is_refused_at_its_places() {
    let text = "\
name: x
underlay: { mtu: 9000 }
encapsulation:
  - { geneve: { options: ovn } }
  - { vxlan: { df: inherit } }
datapath: [kernel, ebpf]
exclude:
  - { encapsulation: geneve options=ovn, datapath: ebpf }
  - { encapsulation: vxlan df=inherit, datapath: kernel }
";
    insta::assert_snapshot!(brief(text), @"
    4:5 `geneve options=ovn` cannot be built by `datapath: kernel`: the kernel's Geneve device sends no options of its own | not by the kernel | write `datapath: ebpf`, or leave the key out for the run to choose, or `exclude` the combination: `{ encapsulation: geneve options=ovn, datapath: kernel }`
    5:5 `vxlan df=inherit` cannot be built by `datapath: ebpf`: eBPF always sets the outer don't-fragment bit, and does not inherit it | not by eBPF | write `datapath: kernel`, or leave the key out for the run to choose, or `exclude` the combination: `{ encapsulation: vxlan df=inherit, datapath: ebpf }`
    ");
    // Where something can be built the rest is skipped; left to the run, it is for the run to say.
    for rest in [
        "datapath: [kernel, ebpf]\n",
        "datapath: kernel\n",
        "datapath: [kernel, ebpf]\nexclude: [{ datapath: kernel, encapsulation: geneve options=ovn }]\n",
        "datapath: auto\n",
        "",
    ] {
        let text = format!(
            "name: x\nunderlay: {{ mtu: 9000 }}\nencapsulation: [none, {{ geneve: {{ options: ovn }} }}]\n{rest}"
        );
        load("plan.yaml", &text).unwrap_or_else(|error| panic!("{rest}: {error}"));
    }
}

#[test]
fn what_open_vswitch_cannot_send_is_refused_at_its_place() {
    let text = "\
name: x
underlay: { mtu: 9000 }
encapsulation:
  - { geneve: { options: 252 } }
  - { vxlan: { df: inherit } }
datapath: ovs
";
    insta::assert_snapshot!(brief(text), @"
    4:5 `geneve options=252` cannot be built by `datapath: ovs`: Open vSwitch sends an option of one type once in a packet, and one has 8 to 128 bytes | not by Open vSwitch | write `datapath: ebpf`, or leave the key out for the run to choose, or `exclude` the combination: `{ encapsulation: geneve options=252, datapath: ovs }`
    5:5 `vxlan df=inherit` cannot be built by `datapath: ovs`: Open vSwitch sets the outer don't-fragment bit or leaves it, and does not inherit it | not by Open vSwitch | write `datapath: kernel`, or leave the key out for the run to choose, or `exclude` the combination: `{ encapsulation: vxlan df=inherit, datapath: ovs }`
    ");
}

#[test]
fn a_bridge_of_the_machines_own_open_vswitch_is_none_of_a_labs() {
    let text = "name: x\ndatapath: { ovs: { bridge: br0 } }\n";
    insta::assert_snapshot!(brief(text), @"2:11 `datapath` takes no options: a lab's hosts are network namespaces, each with an Open vSwitch of its own | a mapping | write `ovs`; over a bridge of this machine's own Open vSwitch `wirecost tunnel up --bridge NAME` makes a tunnel, and `wirecost load` measures between hosts as they are");
}

#[test]
fn auto_is_no_datapath_to_compare_with() {
    insta::assert_snapshot!(brief("name: x\ndatapath: [auto, ebpf]\n"), @"2:12 `auto` cannot be used with other datapaths | not a datapath of its own | it is whichever of them can build every cell: write it alone, or name those to compare");
    insta::assert_snapshot!(brief("name: x\ndatapath: dpdk\n"), @"
2:11 `datapath` cannot be `dpdk` | unknown word | write `auto`, `kernel`, `ebpf`, `ovs`, `ovs-kernel`, `ovn` or `ovn-kernel`
");
}

#[test]
fn a_checksum_without_a_tunnel_that_leaves_it_open_is_a_slip() {
    insta::assert_snapshot!(brief("name: x\nencapsulation: [none, vlan]\nudp_checksum: [off, on]\n"), @"3:21 `udp_checksum` changes nothing: no cell has a tunnel that leaves it open | no outer UDP header | it is about the outer UDP header of `vxlan` and `geneve`: add one without an `udp_checksum` of its own, or leave the key out");
    insta::assert_snapshot!(brief("name: x\nencapsulation: { vxlan: { udp_checksum: off } }\nudp_checksum: on\n"), @"3:15 `udp_checksum` changes nothing: no cell has a tunnel that leaves it open | no outer UDP header | it is about the outer UDP header of `vxlan` and `geneve`: add one without an `udp_checksum` of its own, or leave the key out");
}

#[test]
fn df_over_ipv6_is_no_option() {
    let text = "\
name: x
underlay: { ip: [ipv4, ipv6] }
encapsulation: [vxlan, { vxlan: { df: set } }]
";
    insta::assert_snapshot!(errors(text), @r"
      × 1 error in plan.yaml

    Error:
      × `vxlan df=set` cannot run over IPv6
       ╭─[plan.yaml:3:24]
     2 │ underlay: { ip: [ipv4, ipv6] }
     3 │ encapsulation: [vxlan, { vxlan: { df: set } }]
       ·                        ───────────┬──────────
       ·                                   ╰── `df` is IPv4's
       ╰────
      help: an IPv6 header has no don't-fragment bit, and no router fragments it
            (RFC 8200, section 5): leave `df` out, or `exclude` the combination
            with `underlay.ip: ipv6`
    ");
}

#[test]
fn values_of_the_wrong_type_are_told_what_to_be() {
    let text = "\
name: [x]
description: { a: b }
cores: 2
seed: -1
underlay: 9000
guest_mtu: { mtu: 1500 }
encapsulation: [[none]]
load: udp
repeat: { rounds: 2.5, seconds: 0.01, warmup: -1s, worth: 0% }
exclude: { offload: none }
published: none
";
    insta::assert_snapshot!(brief(text), @r"
    1:7 `name` cannot be a list | one value is wanted | write letters, digits, `.`, `_` and `-`, at most 64, such as `jumbo-or-not`
    2:14 `description` cannot be a mapping | a mapping | write text, such as `What jumbo frames are worth here.`
    3:8 `cores` cannot be `2` | unknown word | write `split` or `shared`
    4:7 `seed` cannot be `-1` | below 0 | write a whole number of at least 0, such as `1`
    5:11 `underlay` cannot be `9000` | not a mapping | write a mapping, such as `{ mtu: 9000, rate: 10gbit }`
    6:12 `guest_mtu` cannot be a mapping | a mapping | write `max` or a whole number from 576 to 65535, such as `8900`
    7:17 `encapsulation[0]` cannot be a list | one value is wanted | write `none`, `vlan`, `vxlan`, `geneve`, `gre`, `gretap`, `ipip`, `wireguard` or a mapping, such as `{ vxlan: { udp_checksum: on } }`
    8:7 `load` cannot be `udp` | unknown word | write `tcp-stream`, `tcp-bidirectional`, `tcp-rr`, `tcp-crr`, `udp-stream`, `udp-rr`, `storage`, `migration` or a mapping, such as `{ tcp-rr: { streams: [1, 64] } }`
    9:19 `repeat.rounds` cannot be `2.5` | not a whole number | write a whole number from 1 to 1000, such as `8`
    9:33 `repeat.seconds` cannot be `0.01` | below 0.05 s | write a duration from 0.05 s to 3600 s, such as `1.5`
    9:47 `repeat.warmup` cannot be `-1s` | below 0 s | write a duration from 0 s to 60 s, such as `200ms`
    9:59 `repeat.worth` cannot be `0%` | not above 0% | write a share above 0% and at most 100%, such as `5%`
    10:10 `exclude` cannot be a mapping | not a list | write a list of mappings, such as `[{ encapsulation: none, offload: plain }]`
    11:12 `published` cannot be `none` | not a mapping | write a mapping, such as `{ source: who, figures: [{ where: { guest_mtu: 1500 }, gbps: 7.4 }] }`
    ");
}

#[test]
fn options_are_held_against_their_ranges() {
    let text = "\
name: ../x
encapsulation: { vxlan: { vni: 16777216, port: 0, df: maybe, udp_checksum: yes } }
offload: { profile: all, gro: 1, checksum: off }
load: { tcp-stream: { streams: 1025, message: 0, congestion: 'a b', socket_buffer: 1KiB } }
repeat: { seconds: 2h, worth: 101% }
";
    insta::assert_snapshot!(brief(text), @r"
    1:7 `name` cannot be `../x` | has '/' | write letters, digits, `.`, `_` and `-`, at most 64, such as `jumbo-or-not`
    2:32 `encapsulation.vxlan.vni` cannot be `16777216` | above 16777215 | write a whole number from 0 to 16777215, such as `42`
    2:48 `encapsulation.vxlan.port` cannot be `0` | below 1 | write a whole number from 1 to 65535, such as `4789`
    2:55 `encapsulation.vxlan.df` cannot be `maybe` | unknown word | write `unset`, `set` or `inherit`
    2:76 `encapsulation.vxlan.udp_checksum` cannot be `yes` | unknown word | write `on` or `off`
    3:21 `offload.profile` cannot be `all` | unknown word | write `none`, `plain` or `tunnel`
    3:31 `offload.gro` cannot be `1` | unknown word | write `on` or `off`
    3:44 `offload.checksum` cannot be `off` | unknown word | write `software` or `hardware`
    4:32 `load.tcp-stream.streams` cannot be `1025` | above 1024 | write a whole number from 1 to 1024, such as `4`
    4:47 `load.tcp-stream.message` cannot be `0` | below 1B | write a size from 1B to 1MiB, such as `128KiB`
    4:62 `load.tcp-stream.congestion` cannot be `a b` | not such a name | write the kernel's name of a congestion control, such as `cubic`
    4:84 `load.tcp-stream.socket_buffer` cannot be `1KiB` | below 4KiB | write `auto` or a size from 4KiB to 512MiB, such as `4MiB`
    5:20 `repeat.seconds` cannot be `2h` | not a duration | write a duration from 0.05 s to 3600 s, such as `1.5`
    5:31 `repeat.worth` cannot be `101%` | above 100% | write a share above 0% and at most 100%, such as `5%`
    ");
}

#[test]
fn a_section_without_a_value_points_at_its_key() {
    insta::assert_snapshot!(brief("name:\nunderlay:\nrepeat: { rounds: }\nload: {}\nencapsulation: {}\n"), @r"
    1:1 `name` has no value | no value | write letters, digits, `.`, `_` and `-`, at most 64, such as `jumbo-or-not`
    2:1 `underlay` has no value | not a mapping | write a mapping, such as `{ mtu: 9000, rate: 10gbit }`
    3:11 `repeat.rounds` has no value | no value | write a whole number from 1 to 1000, such as `8`
    4:7 `load` cannot be a mapping | names no load | write `tcp-stream`, `tcp-bidirectional`, `tcp-rr`, `tcp-crr`, `udp-stream`, `udp-rr`, `storage`, `migration` or a mapping, such as `{ tcp-rr: { streams: [1, 64] } }`
    5:16 `encapsulation` cannot be a mapping | names no encapsulation | write `none`, `vlan`, `vxlan`, `geneve`, `gre`, `gretap`, `ipip`, `wireguard` or a mapping, such as `{ vxlan: { udp_checksum: on } }`
    ");
}

#[test]
fn exclude_knows_the_factors_and_their_levels() {
    let text = "\
name: x
guest_mtu: [1500, 1400]
exclude:
  - { guestmtu: 1500 }
  - { guest_mtu: [1400, 9000] }
  - { mtu: 1500 }
  - {}
  - vxlan
";
    insta::assert_snapshot!(brief(text), @r"
    4:7 `guestmtu` is not a factor | unknown factor | did you mean `guest_mtu`? the factors are `underlay.mtu`, `underlay.rate`, `underlay.links`, `underlay.ip`, `encapsulation`, `udp_checksum`, `datapath`, `topology`, `acl`, `guest_mtu`, `guest_ip`, `guests`, `offload`, `steering.queues`, `steering.rps`, `streams`, `message`, `congestion` and `socket_buffer`
    5:25 `guest_mtu` has no level `9000` | not a level | its levels are `1500` and `1400`
    6:7 `mtu` is not a factor | unknown factor | did you mean `underlay.mtu`? the factors are `underlay.mtu`, `underlay.rate`, `underlay.links`, `underlay.ip`, `encapsulation`, `udp_checksum`, `datapath`, `topology`, `acl`, `guest_mtu`, `guest_ip`, `guests`, `offload`, `steering.queues`, `steering.rps`, `streams`, `message`, `congestion` and `socket_buffer`
    7:5 `exclude[3]` names no factor | would drop every cell | name at least one factor and its level, such as `{ encapsulation: none }`
    8:5 `exclude[4]` cannot be `vxlan` | not a mapping | write factors and their levels, such as `{ encapsulation: none, offload: plain }`
    ");
}

#[test]
fn excluding_every_cell_leaves_nothing_to_measure() {
    insta::assert_snapshot!(errors("name: x\nexclude:\n  - { encapsulation: none }\n"), @r"
      × 1 error in plan.yaml

    Error:
      × `exclude` drops every cell
       ╭─[plan.yaml:3:3]
     2 │ exclude:
     3 │   - { encapsulation: none }
       ·   ────────────┬────────────
       ·               ╰── nothing is left
       ╰────
      help: remove an entry: at least one cell must be left to measure
    ");
}

#[test]
fn published_figures_are_checked_as_the_plan_is() {
    let text = "\
name: x
published:
  figures:
    - { where: { guest_mtu: 9000 }, gbps: 7.4 }
    - { where: {}, gbps: 0 }
    - { gbps: fast, mtu: 1500 }
    - 7.4
";
    insta::assert_snapshot!(brief(text), @r"
    3:3 `published.source` is missing | no `source` here | write `source: ...`: text, such as `who measured what on which hardware`
    4:29 `guest_mtu` has no level `9000` | not a level | its only level is `max`
    5:16 `published.figures[1].where` names no factor | would match every cell | name at least one factor and its level, such as `{ encapsulation: none }`
    5:26 `published.figures[1].gbps` cannot be `0` | not above 0 | write a number of Gbit/s above 0 and at most 100000, such as `7.4`
    6:7 `published.figures[2].where` is missing | no `where` here | write `where: ...`: a mapping of factors to levels, such as `{ guest_mtu: 1500 }`
    6:15 `published.figures[2].gbps` cannot be `fast` | not a number | write a number of Gbit/s above 0 and at most 100000, such as `7.4`
    6:21 `published.figures[2]` has no key `mtu` | unknown key | `mtu` stands under `underlay`. `published.figures[2]` may have `where`, `gbps` and `note`
    7:7 `published.figures[3]` cannot be `7.4` | not a mapping | write a mapping, such as `{ where: { guest_mtu: 1500 }, gbps: 7.4 }`
    ");
}

#[test]
fn published_comparisons_are_of_two_cells_and_a_figure_that_both_have() {
    let text = "\
name: x
guest_mtu: [1400, 1500]
load: { tcp-stream: { streams: [1, 4] } }
published:
  source: somebody
  comparisons:
    - { what: a, metric: throughput, from: { guest_mtu: 1400 }, to: { guest_mtu: 1500 }, ratio: 2 }
    - { what: b, metric: throughput, where: { streams: 2 }, from: { guest_mtu: 1400 }, to: { guest_mtu: 1500 } }
    - { what: c, metric: transactions, where: { streams: 1 }, from: { guest_mtu: 1400 }, to: { guest_mtu: 1500 } }
    - { what: d, metric: speed, from: { guest_mtu: 1400 }, values: [1, 2, 3] }
    - { what: e, metric: cpu, from: { guest_mtu: 1400 }, to: { guest_mtu: 1500 }, ratio: 2, at_most: 1 }
  charts: [{ title: t, metric: throughput, by: mtu }]
";
    insta::assert_snapshot!(brief(text), @r"
    8:56 `streams` has no level `2` | not a level | its levels are `1` and `4`
    10:7 `published.comparisons[3].to` is missing | no `to` here | write `to: ...`: a mapping of factors to levels, such as `{ guest_mtu: max }`
    10:26 `published.comparisons[3].metric` cannot be `speed` | unknown word | write `throughput`, `sender-cpu`, `receiver-cpu`, `cpu`, `transactions`, `latency-median`, `latency-p99`, `latency-p999`, `client-cpu`, `server-cpu`, `transaction-cpu`, `datagrams`, `delivered`, `move-time`, `downtime`, `dirty-limit`, `hosts-cpu`, `client-host-cpu`, `server-host-cpu`, `within-500us` or `wire-frames`
    10:68 `published.comparisons[3].values` cannot be a list | not two numbers | write a list of two numbers above 0 and at most 1000000000000, such as `[4.6, 9.33]`
    11:7 `published.comparisons[4]` has more than one of its published figures | several figures | write one of `values`, `ratio`, `difference` and `at_most`, or none where nothing was published
    12:48 `mtu` is not a factor | unknown factor | did you mean `underlay.mtu`? the factors are `underlay.mtu`, `underlay.rate`, `underlay.links`, `underlay.ip`, `encapsulation`, `udp_checksum`, `datapath`, `topology`, `acl`, `guest_mtu`, `guest_ip`, `guests`, `offload`, `steering.queues`, `steering.rps`, `streams`, `message`, `congestion` and `socket_buffer`
    ");
    let sound = |entry: &str| {
        brief(&format!(
            "name: x\nguest_mtu: [1400, 1500]\nload: {{ tcp-stream: {{ streams: [1, 4] }} }}\npublished:\n  source: y\n  comparisons: [{{ what: a, {entry} }}]\n"
        ))
    };
    insta::assert_snapshot!(sound("metric: throughput, from: { guest_mtu: 1400 }, to: { guest_mtu: 1500 }, ratio: 2"), @r"
    6:17 `published.comparisons[0].from` is not of exactly one cell: 2 cells of the plan have `{ guest_mtu: 1400 }` | not one cell | name the levels of one cell, in `where` those that both sides share; `wirecost run PLAN --dry-run` lists the cells once this entry is gone
    6:17 `published.comparisons[0].to` is not of exactly one cell: 2 cells of the plan have `{ guest_mtu: 1500 }` | not one cell | name the levels of one cell, in `where` those that both sides share; `wirecost run PLAN --dry-run` lists the cells once this entry is gone
    ");
    insta::assert_snapshot!(sound("metric: transactions, where: { streams: 1 }, from: { guest_mtu: 1400 }, to: { guest_mtu: 1500 }"), @"6:17 `published.comparisons[0]`: no load of both cells has `transactions` | no such figure | compare cells that run the same load, by a figure of that load: a stream has `throughput`, request/response and storage have `transactions`, a migration has `move-time`; with `cores: shared` CPU is `cpu` or `transaction-cpu`");
}

#[test]
fn too_many_cells_are_a_slip_of_the_pen() {
    let up_to = |last: u32| {
        (1..=last)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (streams, messages) = (up_to(64), up_to(100));
    let text = format!(
        "name: x\nload: {{ tcp-stream: {{ streams: [{streams}], message: [{messages}] }} }}\n"
    );
    insta::assert_snapshot!(brief(&text), @"1:1 the plan has 6400 cells, which is more than 4096 | this plan | vary less at once: 64 of `streams` x 100 of `message`");
}

#[test]
fn a_key_twice_is_an_error_with_both_places() {
    insta::assert_snapshot!(errors("name: x\nrepeat: { rounds: 1, rounds: 2 }\nname: y\n"), @r"
      × 2 errors in plan.yaml

    Error:
      × the key `rounds` stands twice
       ╭─[plan.yaml:2:22]
     1 │ name: x
     2 │ repeat: { rounds: 1, rounds: 2 }
       ·                      ───┬──
       ·                         ╰── second time
     3 │ name: y
       ╰────
      help: keep one of them; the first is in line 2

    Error:
      × the key `name` stands twice
       ╭─[plan.yaml:3:1]
     2 │ repeat: { rounds: 1, rounds: 2 }
     3 │ name: y
       · ──┬─
       ·   ╰── second time
       ╰────
      help: keep one of them; the first is in line 1
    ");
}

#[test]
fn what_is_not_yaml_says_where() {
    insta::assert_snapshot!(errors("name: x\nguest_mtu: [1500, 9000\nrepeat: { rounds: 8 }\n"), @r"
      × 1 error in plan.yaml

    Error:
      × this is not YAML: illegal placement of ':' indicator
       ╭─[plan.yaml:3:7]
     2 │ guest_mtu: [1500, 9000
     3 │ repeat: { rounds: 8 }
       ·       ┬
       ·       ╰── here
       ╰────
      help: check the indentation of this line and the one above, and that every
            bracket, brace and quote is closed
    ");
}

#[test]
fn tabs_are_told_to_be_spaces() {
    insta::assert_snapshot!(errors("name: x\nunderlay:\n\tmtu: 9000\n"), @r"
      × 1 error in plan.yaml

    Error:
      × this is not YAML: tabs disallowed within this context (block indentation)
       ╭─[plan.yaml:3:2]
     2 │ underlay:
     3 │     mtu: 9000
       ·     ┬
       ·     ╰── here
       ╰────
      help: indent with spaces: YAML allows no tabs there
    ");
}

#[test]
fn what_is_not_one_mapping_is_not_a_plan() {
    insta::assert_snapshot!(brief(""), @"1:1 the plan is empty | nothing here | a plan needs at least a name: write `name: my-plan`");
    insta::assert_snapshot!(brief("# only a comment\n"), @"1:1 the plan is empty | nothing here | a plan needs at least a name: write `name: my-plan`");
    insta::assert_snapshot!(brief("- name: x\n"), @"1:1 a plan is a mapping of keys to values | not a mapping | write one key per line, beginning with `name: my-plan`");
    insta::assert_snapshot!(brief("jumbo"), @"1:1 a plan is a mapping of keys to values | not a mapping | write one key per line, beginning with `name: my-plan`");
    insta::assert_snapshot!(brief("name: x\n---\nname: y\n"), @"2:1 a second document begins here | second document | keep one plan per file");
    insta::assert_snapshot!(brief(&"[".repeat(5000)), @"1:256 this is not YAML: recursion limit exceeded | here | check the indentation of this line and the one above, and that every bracket, brace and quote is closed");
    insta::assert_snapshot!(brief(&"- ".repeat(500)), @"1:33 lists and mappings are nested too deeply | too deep | a plan needs no more than five levels: check the indentation and the brackets");
}

#[test]
fn anchors_aliases_and_tags_are_refused() {
    let text = "name: &n x\ndescription: *n\nguest_mtu: !!int 1500\n? [a]\n: b\n";
    insta::assert_snapshot!(brief(text), @r"
    1:7 a plan has no anchors (`&`), aliases (`*`) or tags (`!`) | not used in plans | write the value out; put text that begins with one of these signs in quotes
    2:14 a plan has no anchors (`&`), aliases (`*`) or tags (`!`) | not used in plans | write the value out; put text that begins with one of these signs in quotes
    3:12 a plan has no anchors (`&`), aliases (`*`) or tags (`!`) | not used in plans | write the value out; put text that begins with one of these signs in quotes
    4:3 a key is missing, or is not plain text | not a key | write `key: value`
    ");
}

#[test]
fn carets_stand_under_the_right_characters_behind_wide_ones_and_in_files_from_windows() {
    insta::assert_snapshot!(errors("name: x\r\ndescription: größer 测试\r\nunderlay: { mtu: 1 }\r\n"), @r"
      × 1 error in plan.yaml

    Error:
      × `underlay.mtu` cannot be `1`
       ╭─[plan.yaml:3:18]
     2 │ description: größer 测试
     3 │ underlay: { mtu: 1 }
       ·                  ┬
       ·                  ╰── below 576
       ╰────
      help: write a whole number from 576 to 65535, such as `9000`
    ");
    insta::assert_snapshot!(errors("name: x\nexclude: [{ größe: 1, ärger: 2 }]\n"), @r"
      × 2 errors in plan.yaml

    Error:
      × `größe` is not a factor
       ╭─[plan.yaml:2:13]
     1 │ name: x
     2 │ exclude: [{ größe: 1, ärger: 2 }]
       ·             ──┬──
       ·               ╰── unknown factor
       ╰────
      help: the factors are `underlay.mtu`, `underlay.rate`, `underlay.links`,
            `underlay.ip`, `encapsulation`, `udp_checksum`, `datapath`,
            `topology`, `acl`, `guest_mtu`, `guest_ip`, `guests`, `offload`,
            `steering.queues`, `steering.rps`, `streams`, `message`, `congestion`
            and `socket_buffer`

    Error:
      × `ärger` is not a factor
       ╭─[plan.yaml:2:25]
     1 │ name: x
     2 │ exclude: [{ größe: 1, ärger: 2 }]
       ·                       ──┬──
       ·                         ╰── unknown factor
       ╰────
      help: the factors are `underlay.mtu`, `underlay.rate`, `underlay.links`,
            `underlay.ip`, `encapsulation`, `udp_checksum`, `datapath`,
            `topology`, `acl`, `guest_mtu`, `guest_ip`, `guests`, `offload`,
            `steering.queues`, `steering.rps`, `streams`, `message`, `congestion`
            and `socket_buffer`
    ");
}

#[test]
fn an_error_gives_its_place_as_numbers_too() {
    let text = "name: ünder\nrepeat: { rounds: 0 }\n";
    let errors = load("plan.yaml", text).expect_err("two errors");
    let [name, rounds] = errors.errors() else {
        panic!("{errors:?}")
    };
    assert_eq!((name.line, name.column, &*name.path), (1, 7, "name"));
    assert_eq!((rounds.line, rounds.column), (2, 19));
    assert_eq!(rounds.path, "repeat.rounds");
    assert_eq!(&text[rounds.span.clone()], "0");
    assert_eq!(errors.to_string(), "2 errors in plan.yaml");

    let marked = format!("\u{feff}{text}");
    let errors = load("plan.yaml", &marked).expect_err("two errors");
    let places = errors
        .errors()
        .iter()
        .map(|error| &marked[error.span.clone()]);
    assert_eq!(places.collect::<Vec<_>>(), ["ünder", "0"]);
}

#[test]
fn a_tab_before_a_key_is_no_indentation_even_in_the_first_line() {
    for text in [
        "\tname: x\n",
        " \tname: x\n",
        "---\n\tname: x\n",
        "\t\"name\": x\n",
        "# plan\n\n\tname: x\n",
        "name: x\nunderlay:\n \tmtu: 9000\n",
        "name: x\nexclude:\n-\tguest_mtu: 1500\n",
        "name: x\nexclude:\n  \t- guest_mtu: 1500\n",
        "name: x\nrepeat:\n  rounds: 1\n  \tseconds: 1\n",
        "name: x\nguest_mtu:\n  - \"1500\"\n  \t- \"1400\"\n",
        "name: x\n\tseed: 1\n",
        "\u{feff}\tname: x\n",
    ] {
        let errors = brief(text);
        assert!(errors.contains("this is not YAML"), "{text:?}: {errors}");
        assert!(errors.contains("tab"), "{text:?}: {errors}");
    }
    insta::assert_snapshot!(brief("\tname: x\n"), @"1:1 this is not YAML: a tab indents this line | a tab | indent with spaces: YAML allows no tabs there");
    insta::assert_snapshot!(brief("name:\tx\n"), @"1:7 this is not YAML: ':' must be followed by a valid YAML whitespace | here | write a space behind the colon, not a tab");
}

#[test]
fn tabs_are_fine_where_they_indent_nothing() {
    for text in [
        "\t{ name: x }\n",
        "\t# a comment\nname: x\n",
        "\t\n \t\nname: x\n",
        "name: x\t# a comment\n",
        "name: x\nrepeat: {\trounds: 1\t}\n",
    ] {
        assert!(load("plan.yaml", text).is_ok(), "{text:?}: {}", brief(text));
    }
}

#[test]
fn a_fixed_number_of_rounds_and_an_adaptive_run_exclude_each_other() {
    insta::assert_snapshot!(brief("name: x\nrepeat: { rounds: 8, seconds: 1, precision: 2%, budget: 5min }\n"), @"2:19 `repeat.rounds` cannot be used with `repeat.precision` | a fixed and an adaptive number of rounds | `rounds` is a fixed number of rounds, `precision` belongs to an adaptive run: leave one of them out (`max_rounds` is the most rounds of such a run)");
    insta::assert_snapshot!(brief("name: x\nrepeat: { max_rounds: 8, min_rounds: 9 }\n"), @"2:38 `repeat.min_rounds`, 9, is above `repeat.max_rounds`, 8 | above 8 | write 8 or less, or a larger `max_rounds`");
    insta::assert_snapshot!(brief("name: x\nrepeat: { max_rounds: 5 }\n"), @"2:23 `repeat.min_rounds`, 6 by default, is above `repeat.max_rounds`, 5 | below 6 | write 6 or more, or a smaller `min_rounds`");
    insta::assert_snapshot!(brief("name: x\nrepeat: { min_rounds: 3, precision: 0, ask: speed }\n"), @"
    2:23 `repeat.min_rounds` cannot be `3` | below 4 | write a whole number from 4 to 1000, such as `6`
    2:37 `repeat.precision` cannot be `0` | not above 0% | write a share above 0% and at most 100%, such as `2%`
    2:45 `repeat.ask` cannot be `speed` | unknown word | write `all`, `throughput`, `latency` or `cpu`
    ");
}

#[test]
fn every_mistake_in_a_factor_of_the_plans_own_is_named() {
    let vary = |levels: &str| brief(&format!("name: x\nvary: {{ poll: {levels} }}\n"));
    let cases = [
        "{ label: one }",
        "[]",
        "[default]",
        "[{ lable: one }]",
        "[{ label: one }, { label: one, sysctl: { net.ipv4.tcp_sack: 0 } }]",
        "[{ label: one }, { label: two }]",
        "[{ label: '' }]",
        "[{ before: ip link }]",
        "[{ after: ip link }]",
        "[{ label: one, on: guests }]",
        "[{ sysctl: { vm.swappiness: 1 } }]",
        "[{ sysctl: { net.core.busy_poll: } }]",
        "[{ sysctl: { tcp_sack: 1 } }]",
        "[{ sysctl: { net.ipv4.tcp_congestion_control: bbr } }]",
        "[{ sysctl: {} }]",
        "[{ ethtool: { underlay: { gro: off } } }]",
        "[{ ethtool: { eth0: { rx-gro: off } } }]",
        "[{ ethtool: { guest: { rx-gro: no } } }]",
        "[{ ethtool: { tunnel: { rx-gro: off } } }]",
        "[{ sysctl: { net.ipv4.tcp_sack: 1 }, on: everywhere }]",
    ];
    let told: Vec<String> = cases
        .iter()
        .map(|levels| format!("{levels}\n  {}", vary(levels)))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    { label: one }
      2:15 `vary.poll` cannot be a mapping | not a list | write a list of mappings, such as `[{ label: kept }, { sysctl: { net.ipv4.tcp_no_metrics_save: 1 } }]`
    []
      2:15 `vary.poll` is an empty list | empty | write a list of mappings, such as `[{ label: kept }, { sysctl: { net.ipv4.tcp_no_metrics_save: 1 } }]`, or leave the key out
    [default]
      2:16 `vary.poll[0]` cannot be `default` | not a mapping | write a mapping, such as `{ label: default }` or `{ sysctl: { net.ipv4.tcp_no_metrics_save: 1 } }`
    [{ lable: one }]
      2:18 `vary.poll[0]` has no key `lable` | unknown key | did you mean `label`? `vary.poll[0]` may have `label`, `sysctl`, `ethtool`, `device`, `mtu`, `rx_ring`, `tx_ring`, `queues`, `rps`, `qdisc`, `before`, `after` and `on`
    [{ label: one }, { label: one, sysctl: { net.ipv4.tcp_sack: 0 } }]
      2:32 the level `one` of `poll` stands twice | second time | remove one of them: a level is one side of a comparison
    [{ label: one }, { label: two }]
      2:32 the level `two` of `poll` changes the same things as `one` | second time | remove one of them: a level is one side of a comparison
    [{ label: '' }]
      2:25 `vary.poll[0].label` cannot be `` | blank | write 1 to 60 characters in one line, such as `not kept`
    [{ before: ip link }]
      2:26 `vary.poll[0].before` is never undone: `after` is missing | no `after` here | write `after: ...`: the command that undoes it, or `after: "true"` where there is nothing to undo
    [{ after: ip link }]
      2:25 `vary.poll[0].after` undoes nothing: `before` is missing | no `before` here | write `before: ...`: the command that `after` undoes
    [{ label: one, on: guests }]
      2:34 `vary.poll[0].on` changes nothing: the level has neither `sysctl` nor `before` | nothing to place | leave it out: devices are where they are
    [{ sysctl: { vm.swappiness: 1 } }]
      2:28 `vm.swappiness` is the machine's, not a network namespace's | outside of the lab | write `on: machine` in this level: it is then changed for everybody on this machine while a sample of the level is taken, and needs root
    [{ sysctl: { net.core.busy_poll: } }]
      2:28 `vary.poll[0].sysctl.net.core.busy_poll` cannot be empty | not a value | write the value in one line, as /proc/sys takes it, such as `1`
    [{ sysctl: { tcp_sack: 1 } }]
      2:28 `tcp_sack` is not the name of a sysctl | not such a name | write it as sysctl(8) does, such as `net.ipv4.tcp_no_metrics_save`
    [{ sysctl: { net.ipv4.tcp_congestion_control: bbr } }]
      2:28 `net.ipv4.tcp_congestion_control` would change nothing | without effect | each socket of the load is given its own: write a level of the load's `congestion`
    [{ sysctl: {} }]
      2:26 `vary.poll[0].sysctl` cannot be a mapping | empty | write a mapping of sysctls to values, such as `{ net.ipv4.tcp_no_metrics_save: 1 }`
    [{ ethtool: { underlay: { gro: off } } }]
      2:41 `gro` is ethtool's short name for one or several features | not the kernel's name | write the kernel's name, such as `rx-gro`
    [{ ethtool: { eth0: { rx-gro: off } } }]
      2:29 `vary.poll[0].ethtool` has no key `eth0` | unknown key | `vary.poll[0].ethtool` may have `underlay`, `tunnel`, `guest` and `guest_port`
    [{ ethtool: { guest: { rx-gro: no } } }]
      2:46 `vary.poll[0].ethtool.guest.rx-gro` cannot be `no` | unknown word | write `on` or `off`
    [{ ethtool: { tunnel: { rx-gro: off } } }]
      2:16 the level `tunnel rx-gro=off` of `poll` sets a tunnel, and a cell without one has it | no tunnel there | leave `tunnel` out, or `exclude` the combination: `{ encapsulation: none, poll: tunnel rx-gro=off }`
    [{ sysctl: { net.ipv4.tcp_sack: 1 }, on: everywhere }]
      2:56 `vary.poll[0].on` cannot be `everywhere` | unknown word | write `guests`, `hosts`, `both`, `a`, `b` or `machine`
    "#);
}

#[test]
fn a_factor_of_the_plans_own_has_a_name_of_its_own() {
    for name in ["streams", "guest_mtu", "mtu", "' '", "underlay.mtu"] {
        let said = brief(&format!(
            "name: x\nvary: {{ {name}: [{{ label: one }}] }}\n"
        ));
        assert!(said.contains("cannot name a factor"), "{name}: {said}");
    }
    let taken = brief("name: x\nvary: { rate: [{ label: one }] }\n");
    insta::assert_snapshot!(taken, @"2:9 `rate` cannot name a factor: `underlay.rate` is one already | taken | name it after what it changes, such as `tcp metrics`");
}

#[test]
fn two_factors_that_set_one_thing_would_undo_each_other() {
    let told = errors(
        "\
name: x
vary:
  one:
    - label: default
    - sysctl: { net.ipv4.tcp_sack: 0 }
  two:
    - label: default
    - { sysctl: { net/ipv4/tcp_sack: 1 }, on: guests }
",
    );
    insta::assert_snapshot!(told, @r"
      × 1 error in plan.yaml

    Error:
      × `one` and `two` both set `net/ipv4/tcp_sack`
       ╭─[plan.yaml:8:7]
     7 │     - label: default
     8 │     - { sysctl: { net/ipv4/tcp_sack: 1 }, on: guests }
       ·       ────────────────────────┬───────────────────────
       ·                               ╰── set twice
       ╰────
      help: make one factor of them: levels of two factors apply at the same time
    ");
}

#[test]
fn two_factors_may_set_different_devices_and_different_settings_of_one() {
    let vary = |one: &str, two: &str| {
        format!(
            "name: x\nnetwork: existing\nallow_host_changes: on\n\
             vary:\n  one: [{{ label: default }}, {one}]\n  two: [{{ label: default }}, {two}]\n"
        )
    };
    insta::assert_snapshot!(brief(&vary("{ mtu: 1500 }", "{ mtu: 9000, queues: 4 }")), @"6:29 `one` and `two` both set `mtu` | set twice | make one factor of them: levels of two factors apply at the same time");
    for (one, two) in [
        ("{ mtu: 1500 }", "{ queues: 4 }"),
        ("{ mtu: 1500 }", "{ mtu: 9000, device: eth1 }"),
        ("{ mtu: 1500, on: a }", "{ mtu: 9000, on: b }"),
    ] {
        let loaded = load("plan.yaml", &vary(one, two));
        assert!(loaded.is_ok(), "{one} {two}: {loaded:?}");
    }
}

#[test]
fn a_mask_of_cores_is_hexadecimal() {
    insta::assert_snapshot!(brief("name: x\nsteering: { rps: [3, 0xg, none], queues: 0 }\n"), @r"
    2:19 `steering.rps[0]` cannot be `3` | not a mask | write `own`, `off`, `all` or a mask of cores in hexadecimal, such as `0x3`
    2:22 `steering.rps[1]` cannot be `0xg` | not a mask | write `own`, `off`, `all` or a mask of cores in hexadecimal, such as `0x3`
    2:27 `steering.rps[2]` cannot be `none` | not a mask | write `own`, `off`, `all` or a mask of cores in hexadecimal, such as `0x3`
    2:42 `steering.queues` cannot be `0` | below 1 | write a whole number from 1 to 64, such as `2`
    ");
}

#[test]
fn what_no_load_can_have_is_said_at_once_each_at_its_place() {
    insta::assert_snapshot!(brief(
        "\
name: x
load:
  - tcp-rr: { streams: [1, 4], threads: 2, rate: 100, think_time: 1ms }
  - udp-stream: { discard_on_receive: on, segmentation_offload: [none, both] }
  - udp-rr: { rate: 10, total_rate: 20 }
"
    ));
}

#[test]
fn datagrams_that_segmentation_cannot_cut_are_refused_where_the_guest_mtu_is_too_small() {
    insta::assert_snapshot!(brief(
        "name: x\nguest_mtu: [1400, 1500]\nload: { udp-stream: { message: [1372, 1373], segmentation_offload: [none, send] } }\n"
    ), @"3:39 a datagram of 1373 bytes with its 28 of headers does not fit a guest MTU of 1400, and `segmentation_offload` cannot fragment it | too long for this | write a `message` of at most 1372, a larger `guest_mtu`, `segmentation_offload: receive`, or `exclude` the combination");
    insta::assert_snapshot!(brief(
        "name: x\nguest_ip: [ipv4, ipv6]\nguest_mtu: 1400\nload: { udp-stream: { message: 1353, segmentation_offload: both } }\n"
    ), @"4:32 a datagram of 1353 bytes with its 48 of headers does not fit a guest MTU of 1400, and `segmentation_offload` cannot fragment it | too long for this | write a `message` of at most 1352, a larger `guest_mtu`, `segmentation_offload: receive`, or `exclude` the combination");
}

#[test]
fn options_are_those_of_their_workload() {
    insta::assert_snapshot!(brief(
        "name: x\nload: { tcp-crr: { depth: 2, message: 7 } }\n"
    ));
    insta::assert_snapshot!(brief(
        "name: x\nload: { udp-rr: { request: 15, nodelay: on } }\n"
    ));
}

#[test]
fn loads_have_names_of_their_own_and_a_mix_has_several() {
    insta::assert_snapshot!(brief("name: x\nload: [tcp-rr, { tcp-rr: { depth: 2 } }]\n"));
    insta::assert_snapshot!(brief("name: x\nload: { tcp-rr: {}, udp-rr: {} }\n"));
    insta::assert_snapshot!(brief("name: x\nload: { mix: { one: tcp-rr } }\n"));
    insta::assert_snapshot!(brief(
        "name: x\nload: { mix: { a b: tcp-rr, c: { mix: { d: tcp-rr, e: udp-rr } } }, tcp-rr: {} }\n"
    ));
    insta::assert_snapshot!(brief(
        "name: x\nload: [tcp-rr, tcp-stream]\nexclude: [{ streams: 1 }]\n"
    ));
    insta::assert_snapshot!(brief("name: x\nload: { mix: { one: tcp-rr, one: udp-rr } }\n"), @"2:29 the key `one` stands twice | second time | keep one of them; the first is in line 2");
}

#[test]
fn a_load_of_a_mix_is_there_or_not_and_nothing_else() {
    insta::assert_snapshot!(brief(
        "name: x\nload: { mix: { bulk: [tcp-stream, udp-stream], ping: tcp-rr, b: [none], c: [none, none] } }\n"
    ));
    insta::assert_snapshot!(brief(
        "name: x\nload: { mix: { bulk: [none, tcp-stream], ping: [tcp-rr, none] } }\n"
    ));
    insta::assert_snapshot!(brief(
        "name: x\nload: { mix: { offload: [none, tcp-stream], m: [none, { tcp-rr: { depht: 2 } }], ping: tcp-rr } }\n\
         vary: { m: [{ label: a }, { sysctl: { net.ipv4.tcp_no_metrics_save: 1 } }] }\n"
    ));
    insta::assert_snapshot!(brief(
        "name: x\nload: { mix: { bulk: [none, tcp-stream], ping: { tcp-rr: { limit: 10 } } } }\n"
    ));
    insta::assert_snapshot!(brief("name: x\nload: { mix: { bulk: none, ping: [] } }\n"));
}

#[test]
fn a_limit_ends_all_of_a_mix_and_leaves_something_for_every_guest() {
    insta::assert_snapshot!(brief(
        "name: x\nload: { mix: { bulk: { tcp-stream: { limit: 1GB } }, ping: tcp-rr } }\n"
    ));
    insta::assert_snapshot!(brief(
        "name: x\nguests: 16\nload: { tcp-rr: { limit: [10, 16] } }\n"
    ));
}

#[test]
fn an_existing_network_takes_no_keys_of_a_lab_and_no_change_that_is_not_allowed() {
    insta::assert_snapshot!(errors(
        "name: x\nhosts: { a: \"ssh:db1=10.0.0.1\", b: \"ssh:db2\" }\nunderlay: { mtu: 9000 }\noffload: none\nguest_mtu: [1500, 9000]\n\
         vary:\n  mtu: [{ label: as it is }, { before: 'true', after: 'true', on: guests }]\n  gro:\n    - { label: as it is }\n    \
         - { ethtool: { guest: { rx-gro: off } } }\n"
    ));
    insta::assert_snapshot!(errors(
        "name: x\nnetwork: lab\nhosts: { a: local, b: nowhere }\nmax_rate: 1gbit\n"
    ));
}

#[test]
fn what_is_ovns_alone_needs_it_and_its_router_a_tunnel() {
    let without = "name: x\nencapsulation: vxlan\ntopology: routed\nacl: [none, allow-related]\n";
    insta::assert_snapshot!(brief(without));
    let bridged = "name: x\ndatapath: ovn\ntopology: routed\n";
    insta::assert_snapshot!(brief(bridged));
    let plain = "name: x\ndatapath: ovn\nencapsulation: geneve\n";
    insta::assert_snapshot!(brief(plain));
}

#[test]
fn tunnels_between_hosts_leave_the_hosts_as_they_are_and_ebpf_needs_leave_to_change_them() {
    insta::assert_snapshot!(errors(
        "name: x\nnetwork: tunnel\nencapsulation: [none, vlan, vxlan]\ndatapath: [kernel, ebpf, ovs-kernel]\n\
         underlay: { mtu: 9000 }\nvary: { mtu: [{ label: 1500 }, { label: 9000, mtu: 9000 }] }\n"
    ));
    insta::assert_snapshot!(brief("name: x\nnetwork: tunnel\n"));
    let allowed = "name: x\nnetwork: tunnel\nencapsulation: vxlan\ndatapath: [kernel, ebpf]\nallow_host_changes: on\n";
    wirecost_plan::load("x.yaml", allowed).expect("a plan");
}

#[test]
fn pairs_are_of_two_hosts_that_there_are_and_every_host_is_in_one() {
    let hosts = "name: x\nhosts: { a: local, b: \"netns:b\", c: \"netns:c\", d: \"netns:d\", e/f: local }\n";
    insta::assert_snapshot!(brief(&format!(
        "{hosts}pairs: [[a, b], [a, x], [c, c], [a], [a, b], a]\n"
    )));
    insta::assert_snapshot!(brief(
        "name: x\nhosts: { a: local, b: \"netns:b\", c: \"netns:c\" }\n"
    ));
    insta::assert_snapshot!(brief(
        "name: x\nnetwork: existing\npairs: [[a, b], [a, db3]]\n"
    ));
    insta::assert_snapshot!(brief("name: x\npairs: [[a, b], [a, c]]\n"));
    insta::assert_snapshot!(brief(
        "name: x\nnetwork: existing\nallow_host_changes: on\npairs: [[a, c], [b, c]]\n\
         vary: { mtu: [{ label: 1500 }, { mtu: 9000, on: a }] }\n"
    ));
}
