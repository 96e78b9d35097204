//! What right plans come to.

mod agreement;

use agreement::{AcceptedBy, agree};
use wirecost_model::cell::{Experiment, Network};
use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion::{Ipv4, Ipv6};
use wirecost_model::load::{Rate, WaitMode};
use wirecost_model::offload::{Feature, Offload, Profile};
use wirecost_model::plan::{
    AwaitedEffects, Cores, Encapsulation, GuestMtu, OuterDf, StoppingRule, Vxlan,
};
use wirecost_model::transit::Icmp;
use wirecost_model::vary::Scope;
use wirecost_plan::{BUILTIN, STUDIES, builtin, load};

use proptest::prelude::*;

fn experiment(text: &str) -> Experiment {
    assert_eq!(agree(text), AcceptedBy::ByBoth, "{text}");
    load("plan.yaml", text).unwrap_or_else(|errors| panic!("{:#?}", errors.errors()))
}

fn labels(experiment: &Experiment, factor: &str) -> Vec<String> {
    let of = |cell: &wirecost_model::cell::Cell| cell.levels[factor].clone();
    experiment.cells.iter().map(of).collect()
}

#[test]
fn the_built_in_plan_is_the_published_experiment_in_eight_cells() {
    let text = builtin("jumbo-or-not").expect("built in");
    let jumbo = experiment(text);
    assert_eq!(jumbo.plan.name, "jumbo-or-not");
    assert_eq!(jumbo.cells.len(), 8);
    let varied: Vec<&str> = jumbo.varied().map(|factor| &*factor.key).collect();
    assert_eq!(varied, ["encapsulation", "guest_mtu", "offload"]);
    let published = jumbo.plan.published.as_ref().expect("figures");
    assert_eq!(published.figures.len(), 4);
    for figure in &published.figures {
        let of = |cell: &&wirecost_model::cell::Cell| {
            figure
                .levels
                .iter()
                .all(|(key, label)| cell.levels[key] == *label)
        };
        assert_eq!(jumbo.cells.iter().filter(of).count(), 1, "{figure:?}");
    }
}

#[test]
fn every_built_in_plan_is_right_and_bears_its_own_name() {
    for (name, text) in BUILTIN.iter().chain(STUDIES) {
        assert_eq!(experiment(text).plan.name, *name);
    }
    assert_eq!(builtin("no-such-plan"), None);
}

#[test]
fn a_name_alone_is_a_plan_of_one_cell_with_every_default() {
    let plan = experiment("name: least\n");
    let [cell] = &plan.cells[..] else {
        panic!("{:?}", plan.cells)
    };
    assert_eq!((cell.network.underlay_mtu, cell.guest_mtu), (1500, 1500));
    assert_eq!(cell.network.rate, None);
    assert_eq!(cell.network.encapsulation, Encapsulation::None);
    assert_eq!(cell.network.cores, Cores::Split);
    assert_eq!(cell.offload, Offload::profile(Profile::Tunnel));
    let [stream] = &cell.loads[..] else {
        panic!("{:?}", cell.loads)
    };
    assert_eq!(stream.name, "tcp-stream");
    let load = &stream.load;
    assert_eq!((load.streams, load.request), (1, 131_072));
    assert_eq!(
        (load.congestion.as_deref(), load.socket_buffer),
        (Some("cubic"), None)
    );
    let repeat = &plan.plan.repeat;
    assert_eq!((repeat.rounds, repeat.seconds), (8, 1.0));
    assert_eq!((repeat.warmup, repeat.worth), (0.2, 0.05));
    assert_eq!(plan.factors.len(), 17);
    assert_eq!(
        cell.levels.len(),
        14,
        "nothing tunnels: no level of `underlay.ip` and `udp_checksum`"
    );
}

#[test]
fn cells_come_in_the_order_of_the_factors_with_the_last_fastest() {
    let plan = experiment(
        "name: x\nunderlay: { mtu: 9000 }\nencapsulation: [none, vxlan]\nguest_mtu: [1500, max]\nload: { tcp-stream: { streams: [1, 4] } }\n",
    );
    assert_eq!(labels(&plan, "streams"), ["1", "4"].repeat(4));
    assert_eq!(labels(&plan, "encapsulation")[..4], ["none"; 4]);
    assert_eq!(
        labels(&plan, "guest_mtu")[..4],
        ["1500", "1500", "max", "max"]
    );
    let mtus: Vec<u32> = plan.cells.iter().map(|cell| cell.guest_mtu).collect();
    assert_eq!(mtus, [1500, 1500, 9000, 9000, 1500, 1500, 8950, 8950]);
    let numbers: Vec<u32> = plan.cells.iter().map(|cell| cell.index).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn ipv6_takes_20_bytes_more_of_the_underlay_and_nothing_of_the_guests_mtu() {
    let plan = experiment(
        "name: x\nunderlay: { mtu: 9000, ip: [ipv4, ipv6] }\nguest_ip: [ipv4, ipv6]\nencapsulation: vxlan\n",
    );
    let cells: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| {
            let Network {
                underlay_ip,
                guest_ip,
                ..
            } = cell.network;
            (underlay_ip, guest_ip, cell.guest_mtu)
        })
        .collect();
    assert_eq!(
        cells,
        [
            (Ipv4, Ipv4, 8950),
            (Ipv4, Ipv6, 8950),
            (Ipv6, Ipv4, 8930),
            (Ipv6, Ipv6, 8930)
        ]
    );
    assert_eq!(plan.plan.underlay.ip, [Ipv4, Ipv6]);
    assert_eq!(plan.plan.guest_ip, [Ipv4, Ipv6]);
    assert_eq!(
        labels(&plan, "underlay.ip"),
        ["ipv4", "ipv4", "ipv6", "ipv6"]
    );
    assert_eq!(labels(&plan, "guest_ip"), ["ipv4", "ipv6", "ipv4", "ipv6"]);
}

#[test]
fn without_a_tunnel_a_cell_has_no_underlay_ip_and_is_there_once() {
    let plan = experiment(
        "name: x\nunderlay: { ip: [ipv6, ipv4] }\nguest_mtu: 1400\nencapsulation: [vxlan, none]\n",
    );
    let cells: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| {
            let underlay = cell.levels.get("underlay.ip").map(String::as_str);
            (
                &*cell.levels["encapsulation"],
                underlay,
                cell.network.underlay_ip,
            )
        })
        .collect();
    assert_eq!(
        cells,
        [
            ("vxlan", Some("ipv6"), Ipv6),
            ("none", None, Ipv4),
            ("vxlan", Some("ipv4"), Ipv4)
        ]
    );
    let numbers: Vec<u32> = plan.cells.iter().map(|cell| cell.index).collect();
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn an_exclusion_by_the_underlays_ip_leaves_the_cell_without_a_tunnel() {
    let plan = experiment(
        "name: x\nunderlay: { ip: [ipv4, ipv6] }\nguest_mtu: 1400\nencapsulation: [none, vxlan]\nexclude: [{ underlay.ip: ipv4 }]\n",
    );
    assert_eq!(labels(&plan, "encapsulation"), ["none", "vxlan"]);
    assert_eq!(plan.cells[1].levels["underlay.ip"], "ipv6");
    assert_eq!(plan.cells[0].levels.get("underlay.ip"), None);
}

#[test]
fn a_checksum_is_a_factor_of_tunnels_and_of_nothing_else() {
    let plan = experiment(
        "name: x\nunderlay: { mtu: 9000 }\nguest_mtu: 1500\nudp_checksum: [off, on]\n\
         encapsulation: [none, vlan, vxlan, { geneve: { options: ovn } }, { vxlan: { vni: 7, udp_checksum: on } }, { vxlan: { vni: 8, udp_checksum: off } }]\n",
    );
    let cells: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| {
            let level = cell.levels.get("udp_checksum").map(String::as_str);
            let tunnel = cell.network.encapsulation.udp();
            let computed = tunnel.map(|tunnel| tunnel.udp_checksum);
            (&*cell.levels["encapsulation"], level, computed)
        })
        .collect();
    assert_eq!(
        cells,
        [
            ("none", None, None),
            ("vlan", None, None),
            ("vxlan", Some("off"), Some(false)),
            ("vxlan", Some("on"), Some(true)),
            ("geneve options=ovn", Some("off"), Some(false)),
            ("geneve options=ovn", Some("on"), Some(true)),
            // What a level says itself its label tells; a label does not tell that it is off.
            ("vxlan vni=7 udp_checksum=on", None, Some(true)),
            ("vxlan vni=8", Some("off"), Some(false)),
        ]
    );
    assert_eq!(plan.plan.udp_checksum, [false, true]);
}

#[test]
fn a_datapath_that_is_not_named_is_left_to_the_run() {
    let plan = experiment("name: x\nencapsulation: [none, geneve]\n");
    assert!(plan.plan.datapath.is_empty());
    assert_eq!(labels(&plan, "datapath"), ["auto"; 2]);
    let plan = experiment("name: x\nencapsulation: none\ndatapath: [ebpf, kernel]\n");
    assert_eq!(plan.plan.datapath, [Datapath::Ebpf, Datapath::Kernel]);
    let built: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| cell.network.datapath)
        .collect();
    assert_eq!(built, plan.plan.datapath);
}

#[test]
fn every_encapsulation_takes_its_bytes_of_the_largest_guest_mtu() {
    let plan = experiment(
        "name: x\nunderlay: { mtu: 9000 }\nencapsulation: [none, vlan, vxlan, { vxlan: { inner_vlan: 7 } }, geneve, \
         { geneve: { options: ovn } }, { geneve: { options: 252, inner_vlan: 7, source_ports: 1000-2000 } }]\n",
    );
    let mtus: Vec<u32> = plan.cells.iter().map(|cell| cell.guest_mtu).collect();
    assert_eq!(mtus, [9000, 9000, 8950, 8946, 8950, 8942, 8694]);
    assert_eq!(
        labels(&plan, "encapsulation")[6],
        "geneve options=252 source_ports=1000-2000 inner_vlan=7"
    );
}

#[test]
fn tunnels_without_udp_take_their_bytes_over_either_ip_and_have_no_checksum_to_vary() {
    let plan = experiment(
        "name: x\nunderlay: { mtu: 9000, ip: [ipv4, ipv6] }\nudp_checksum: [off, on]\n\
         encapsulation: [none, vxlan, gre, { gre: { key: 0, ttl: 64 } }, gretap, { gretap: { key: 7, df: unset } }, \
         { ipip: { df: inherit } }]\nexclude: [{ encapsulation: gretap key=7 df=unset, underlay.ip: ipv6 }, \
         { encapsulation: ipip df=inherit, underlay.ip: ipv6 }]\n",
    );
    let of = |label: &str| -> Vec<(u32, Option<&str>)> {
        let cells = plan.cells.iter();
        let those = cells.filter(|cell| cell.levels["encapsulation"] == label);
        those
            .map(|cell| {
                let checksum = cell.levels.get("udp_checksum");
                (cell.guest_mtu, checksum.map(String::as_str))
            })
            .collect()
    };
    assert_eq!(of("none"), [(9000, None)]);
    assert_eq!(of("vxlan").len(), 4);
    assert_eq!(of("gre"), [(8976, None), (8956, None)]);
    assert_eq!(of("gre key=0 ttl=64"), [(8972, None), (8952, None)]);
    assert_eq!(of("gretap"), [(8962, None), (8942, None)]);
    assert_eq!(of("gretap key=7 df=unset"), [(8958, None)]);
    assert_eq!(of("ipip df=inherit"), [(8980, None)]);
}

#[test]
fn the_least_that_ipv6_allows_is_allowed() {
    let plan = experiment(
        "name: x\nunderlay: { mtu: 1350, ip: ipv6 }\nguest_mtu: 1280\nguest_ip: ipv6\nencapsulation: vxlan\n",
    );
    assert_eq!(plan.cells[0].guest_mtu, 1280);
    let plan = experiment(
        "name: x\nunderlay: { mtu: 1280, ip: ipv6 }\nguest_mtu: 1210\nencapsulation: vxlan\n",
    );
    assert_eq!(plan.cells[0].guest_mtu, 1210);
}

#[test]
fn every_way_of_writing_a_level_is_read() {
    let plan = experiment(
        "\
name: x
cores: shared
seed: 18446744073709551615
underlay: { mtu: [\"1500\", 9000], rate: [none, 2.5gbit], hops: [{ switch: { mtu: 1500 } }] }
guest_mtu: [576]
encapsulation: [{ vxlan: { vni: 7, port: 8472, df: inherit, udp_checksum: true } }]
offload: [{ gro: off }, { profile: none, checksum: software, tso: false }]
load: { tcp-stream: { message: [1000, 64KiB], socket_buffer: [auto, 4MiB], congestion: [cubic, bbr] } }
repeat: { rounds: 1, seconds: 200ms, warmup: 0, worth: 0.1 }
",
    );
    assert_eq!(plan.cells.len(), 2 * 2 * 2 * 2 * 2 * 2);
    assert_eq!(plan.plan.seed, Some(u64::MAX));
    assert_eq!(plan.plan.guest_mtu, [GuestMtu::Bytes(576)]);
    assert_eq!(
        plan.plan.encapsulation,
        [Encapsulation::Vxlan(Vxlan {
            vni: 7,
            port: 8472,
            df: OuterDf::Inherit,
            udp_checksum: true,
            ..Vxlan::default()
        })]
    );
    assert_eq!(plan.plan.offload[0].set, [(Feature::Gro, false)].into());
    let levels: Vec<&[String]> = plan
        .factors
        .iter()
        .map(|factor| &factor.levels[..])
        .collect();
    insta::assert_debug_snapshot!(levels, @r#"
    [
        [
            "1500",
            "9000",
        ],
        [
            "none",
            "2.5gbit",
        ],
        [
            "1",
        ],
        [
            "ipv4",
        ],
        [
            "vxlan vni=7 port=8472 df=inherit udp_checksum=on",
        ],
        [
            "off",
        ],
        [
            "auto",
        ],
        [
            "576",
        ],
        [
            "ipv4",
        ],
        [
            "1",
        ],
        [
            "tunnel gro=off",
            "none tso=off checksum=software",
        ],
        [
            "1",
        ],
        [
            "own",
        ],
        [
            "1",
        ],
        [
            "1000B",
            "64KiB",
        ],
        [
            "cubic",
            "bbr",
        ],
        [
            "auto",
            "4MiB",
        ],
    ]
    "#);
    assert_eq!(
        (plan.plan.repeat.seconds, plan.plan.repeat.worth),
        (0.2, 0.1)
    );
}

#[test]
fn the_load_may_be_named_alone() {
    let plan = experiment("name: x\nload: tcp-stream\n");
    assert_eq!(plan.plan.loads[0].parts[0].options["streams"], ["1"]);
}

#[test]
fn files_from_windows_and_with_a_byte_order_mark_are_read() {
    let plan = experiment("\u{feff}name: x\r\nguest_mtu: 1400\r\n");
    assert_eq!(plan.plan.name, "x");
    assert_eq!(plan.cells[0].guest_mtu, 1400);
}

#[test]
fn excluded_cells_are_left_out_and_the_rest_is_numbered_anew() {
    let plan = experiment(
        "\
name: x
underlay: { mtu: 9000 }
guest_mtu: [1500, 9000]
encapsulation: [none, vxlan]
offload: [none, plain, tunnel]
load: { tcp-stream: { message: [128KiB, 16KiB] } }
exclude:
  - { encapsulation: vxlan, guest_mtu: 9000 }
  - { encapsulation: none, offload: [plain, tunnel] }
  - { message: 16384 }
",
    );
    let cells: Vec<String> = plan
        .cells
        .iter()
        .map(|cell| {
            let of = |key: &str| cell.levels[key].clone();
            format!(
                "{} {} {} {}",
                cell.index,
                of("encapsulation"),
                of("guest_mtu"),
                of("offload")
            )
        })
        .collect();
    let expected = [
        "0 none 1500 none",
        "1 none 9000 none",
        "2 vxlan 1500 none",
        "3 vxlan 1500 plain",
        "4 vxlan 1500 tunnel",
    ];
    assert_eq!(cells, expected);
    assert_eq!(plan.plan.exclude.len(), 4);
    assert_eq!(plan.plan.exclude[3]["message"], "16KiB");
}

/// Text that is nearly a plan: lines of real plans, cut and glued together.
fn nearly_a_plan() -> impl Strategy<Value = String> {
    let (_, text) = BUILTIN[0];
    let line = prop::sample::select(text.lines().map(str::to_owned).collect::<Vec<_>>());
    let sign = prop::sample::select(vec![
        "",
        ":",
        "[",
        "]",
        "{",
        "}",
        "- ",
        "\"",
        "'",
        "&a",
        "*a",
        "!t",
        "|",
        ">",
        "\t",
        "\r",
        "---",
        "...",
        "#",
        "?",
        "%",
        "\u{feff}",
        "ß",
        "🦀",
        "-1",
        "1e999",
        "nan",
        "99999999999999999999",
    ]);
    prop::collection::vec((line, 0usize..80, sign), 0..12).prop_map(|parts| {
        let mut text = String::new();
        for (line, cut, sign) in parts {
            text.extend(line.chars().take(cut));
            text.push_str(sign);
            text.push('\n');
        }
        text
    })
}

fn never_panics(text: &str) {
    agree(text);
    if let Err(errors) = load("plan.yaml", text) {
        assert!(!errors.errors().is_empty());
        for error in errors.errors() {
            let _ = &text[error.span.clone()];
            assert!(error.line >= 1 && error.column >= 1);
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_text_is_a_plan_or_has_errors(text in any::<String>()) {
        never_panics(&text);
    }

    #[test]
    fn signs_of_yaml_in_any_order_are_a_plan_or_have_errors(text in "[-?:,\\[\\]{}#&*!|>'\"%@`a1 \t\n\r]{0,60}") {
        never_panics(&text);
    }

    #[test]
    fn text_that_is_nearly_a_plan_is_one_or_has_errors(text in nearly_a_plan()) {
        never_panics(&text);
    }
}

#[test]
fn any_key_of_an_adaptive_run_makes_it_one_with_the_defaults_of_the_others() {
    let repeat = |text: &str| {
        experiment(&format!("name: x\nrepeat: {{ {text} }}\n"))
            .plan
            .repeat
    };
    let defaults = StoppingRule {
        precision: 0.02,
        min_rounds: 6,
        budget_s: 300.0,
        ask: AwaitedEffects::All,
    };
    for text in [
        "precision: 2%",
        "budget: 5min",
        "min_rounds: 6",
        "max_rounds: 60",
        "ask: all",
    ] {
        let repeat = repeat(text);
        assert_eq!(
            (repeat.until, repeat.rounds),
            (Some(defaults), 60),
            "{text}"
        );
    }
    let own =
        repeat("precision: 1%, worth: 3%, budget: 90s, min_rounds: 4, max_rounds: 4, ask: cpu");
    assert_eq!((own.rounds, own.worth), (4, 0.03));
    let until = own.until.expect("until");
    assert_eq!((until.precision, until.min_rounds), (0.01, 4));
    assert_eq!((until.budget_s, until.ask), (90.0, AwaitedEffects::Cpu));
    assert_eq!(repeat("rounds: 8, worth: 3%").until, None);
}

#[test]
fn a_self_test_is_the_first_cell_once_more_and_no_cell_of_the_factors() {
    let with = experiment("name: x\nguest_mtu: [1400, 1500]\nself_test: on\n");
    let without = experiment("name: x\nguest_mtu: [1400, 1500]\n");
    let twin = with.twin.as_ref().expect("a twin");
    assert_eq!((with.cells.len(), twin.index), (2, 2));
    assert_eq!(
        (&twin.levels, &twin.network),
        (&with.cells[0].levels, &with.cells[0].network)
    );
    assert_eq!((with.samples_a_round(), without.samples_a_round()), (3, 2));
    assert_eq!((with.cells, without.twin), (without.cells, None));
}

#[test]
fn settings_are_levels_like_any_other() {
    let plan = experiment(
        "\
name: x
guest_mtu: [1400, 1500]
steering: { queues: [1, 2], rps: [own, 0x3] }
vary:
  tcp metrics:
    - label: kept
    - label: not kept
      on: guests
      sysctl: { net.ipv4.tcp_no_metrics_save: 1 }
    - ethtool: { underlay: { rx-gro: on } }
self_test: on
exclude:
  - { tcp metrics: [not kept, underlay rx-gro=on], guest_mtu: 1400 }
  - { steering.queues: 2, steering.rps: '0x3' }
published:
  source: somebody
  figures: [{ where: { tcp metrics: kept }, gbps: 1 }]
",
    );
    // The last factor varies fastest: settings are changed more often than labs are built.
    let last = plan.factors.last().expect("factors");
    assert_eq!(last.key, "tcp metrics");
    assert_eq!(last.levels, ["kept", "not kept", "underlay rx-gro=on"]);
    assert_eq!(plan.cells.len(), (1 + 3) * 3);
    let settings: Vec<usize> = plan.cells.iter().map(|cell| cell.settings.len()).collect();
    assert_eq!(settings[..3], [0; 3], "those with a guest MTU of 1400");
    assert_eq!(settings[3..6], [0, 1, 1]);
    let set = &plan.cells[4].settings[0];
    assert_eq!(
        (set.factor.as_str(), set.label.as_str()),
        ("tcp metrics", "not kept")
    );
    assert_eq!(set.sysctl["net.ipv4.tcp_no_metrics_save"], "1");
    assert_eq!(set.on, Scope::Guests);
    let steering: Vec<String> = plan.cells[..3]
        .iter()
        .map(|cell| {
            let steering = &cell.network.steering;
            format!("{} {}", steering.queues, steering.rps)
        })
        .collect();
    assert_eq!(steering, ["1 own", "1 0x3", "2 own"]);
    assert_eq!(plan.twin.expect("a twin").settings, []);
    let figures = &plan.plan.published.expect("figures").figures;
    assert_eq!(figures[0].levels["tcp metrics"], "kept");
}

#[test]
fn the_loads_of_a_list_are_a_factor_and_each_has_its_own_options() {
    let plan = experiment(
        "name: x\nguest_mtu: [1400, 1500]\nload:\n  - tcp-rr: { streams: [1, 64], spin: on }\n  - mix:\n      \
         bulk: { tcp-stream: { total_rate: [none, 1gbit], streams: 4 } }\n      ping: tcp-rr\n",
    );
    let names: Vec<Vec<&str>> = plan
        .cells
        .iter()
        .map(|cell| cell.loads.iter().map(|load| load.name.as_str()).collect())
        .collect();
    let of_one_mtu = [
        vec!["tcp-rr"],
        vec!["tcp-rr"],
        vec!["bulk", "ping"],
        vec!["bulk", "ping"],
    ];
    assert_eq!(names, [of_one_mtu.clone(), of_one_mtu].concat());
    let levels = |cell: usize, key: &str| plan.cells[cell].levels.get(key).map(String::as_str);
    assert_eq!(
        (levels(1, "load"), levels(1, "tcp-rr.streams")),
        (Some("tcp-rr"), Some("64"))
    );
    // What is another load's means nothing to a cell.
    assert_eq!(
        (levels(1, "bulk.streams"), levels(2, "tcp-rr.streams")),
        (None, None)
    );
    assert_eq!(
        (levels(3, "load"), levels(3, "bulk.total_rate")),
        (Some("bulk+ping"), Some("1gbit"))
    );
    let load = |cell: usize, load: usize| &plan.cells[cell].loads[load].load;
    assert_eq!(load(1, 0).waiting, WaitMode::Spin);
    // Each of four flows has a quarter.
    assert_eq!(load(3, 0).rate, Some(Rate::BitsPerSecond(250_000_000)));
    assert_eq!((load(3, 1).request, load(3, 1).rate), (1, None));
    // What the plan does not say is no factor, but for what a load is known by.
    let keys: Vec<&str> = plan
        .factors
        .iter()
        .map(|factor| factor.key.as_str())
        .collect();
    assert!(
        keys.contains(&"ping.request") && !keys.contains(&"ping.depth"),
        "{keys:?}"
    );
    assert_eq!(
        plan.plan.loads[1].parts[0].options["total_rate"],
        ["none", "1gbit"]
    );
}

#[test]
fn a_load_of_a_mix_in_a_list_with_none_is_a_factor_and_its_options_mean_nothing_without_it() {
    let plan = experiment(
        "name: x\nguest_mtu: [1400, 1500]\nload:\n  mix:\n    bulk: [none, { tcp-stream: { streams: [1, 4] } }]\n    \
         ping: tcp-rr\n",
    );
    let runs: Vec<Vec<&str>> = plan
        .cells
        .iter()
        .map(|cell| cell.loads.iter().map(|load| load.name.as_str()).collect())
        .collect();
    let of_one_mtu = [vec!["ping"], vec!["bulk", "ping"], vec!["bulk", "ping"]];
    assert_eq!(runs, [of_one_mtu.clone(), of_one_mtu].concat());
    let levels = |cell: usize, key: &str| plan.cells[cell].levels.get(key).map(String::as_str);
    assert_eq!(
        (levels(0, "bulk"), levels(0, "bulk.streams")),
        (Some("none"), None)
    );
    assert_eq!(
        (levels(2, "bulk"), levels(2, "bulk.streams")),
        (Some("tcp-stream"), Some("4"))
    );
    let bulk = plan.factors.iter().find(|factor| factor.key == "bulk");
    let bulk = bulk.expect("a factor");
    assert_eq!(bulk.levels, ["none", "tcp-stream"]);
    assert!(bulk.is_compared());
    assert_eq!(plan.plan.loads[0].parts[0].levels, ["none", "tcp-stream"]);
    assert_eq!(plan.plan.loads[0].parts[1].levels, [""; 0]);
}

#[test]
fn loads_are_measured_alone_and_together_where_each_may_be_left_out() {
    let plan = experiment(
        "name: x\nload:\n  - tcp-rr\n  - mix: { bulk: [tcp-stream, none], drip: [none, { udp-stream: { rate: 1mbit } }] }\n\
         exclude: [{ bulk: none, drip: none }]\n",
    );
    let runs: Vec<Vec<&str>> = plan
        .cells
        .iter()
        .map(|cell| cell.loads.iter().map(|load| load.name.as_str()).collect())
        .collect();
    assert_eq!(
        runs,
        [
            vec!["tcp-rr"],
            vec!["bulk"],
            vec!["bulk", "drip"],
            vec!["drip"]
        ]
    );
    // What is not of a cell's load is no level of it.
    assert!(!plan.cells[0].levels.contains_key("bulk"));
    let bulk = plan.factors.iter().find(|factor| factor.key == "bulk");
    assert_eq!(bulk.expect("a factor").levels, ["tcp-stream", "none"]);
}

#[test]
fn an_exclusion_by_a_loads_option_concerns_that_load_only() {
    let plan = experiment(
        "name: x\nload: [{ tcp-rr: { depth: [1, 8] } }, tcp-stream]\nexclude: [{ tcp-rr.depth: 1 }]\n",
    );
    let loads: Vec<&str> = plan
        .cells
        .iter()
        .map(|cell| cell.loads[0].name.as_str())
        .collect();
    assert_eq!(loads, ["tcp-rr", "tcp-stream"]);
    assert_eq!(plan.cells[0].loads[0].load.depth, 8);
}

#[test]
fn guests_are_a_factor_of_the_network() {
    let plan = experiment("name: x\nguests: [1, 16]\n");
    let guests: Vec<u32> = plan.cells.iter().map(|cell| cell.network.guests).collect();
    assert_eq!(guests, [1, 16]);
    assert_eq!(labels(&plan, "guests"), ["1", "16"]);
    assert_eq!(plan.plan.guests, [1, 16]);
}

#[test]
fn the_narrowest_place_between_the_hosts_decides_what_the_guests_may_have() {
    let plan = experiment(
        "name: x
underlay:
  mtu: 9000
  hops: [{ switch: { mtu: 9000, mtu_from_b: 8192 } }, { router: { mtu: 8950, icmp: filtered, loss: 5% } }]
  paths: [{ mtu: 9000 }, { mtu: 8000, icmp: filtered }, {}]
encapsulation: vxlan
",
    );
    let [cell] = &plan.cells[..] else {
        panic!("{:?}", plan.cells);
    };
    assert_eq!(cell.guest_mtu, 8000 - 50);
    let transit = &cell.network.transit;
    assert_eq!(
        transit.to_string(),
        "through a switch of MTU 9000 from a and 8192 from b, a router of MTU 8950 (ICMP filtered; 5 % lost) and 3 equal \
         paths (number 1 of MTU 9000; number 2 of MTU 8000, ICMP filtered)"
    );
    assert_eq!(
        (transit.hops[1].icmp, transit.hops[1].loss_ppm),
        (Icmp::Filtered, 50_000)
    );
    let mtus: Vec<_> = transit.paths.iter().map(|member| member.mtu).collect();
    assert_eq!(mtus, [Some(9000), Some(8000), None]);
    assert_eq!(plan.plan.underlay.transit, *transit);

    let plan = experiment("name: x\nunderlay: { paths: 4 }\nencapsulation: vxlan\n");
    assert_eq!(plan.cells[0].network.transit.paths.len(), 4);
}

#[test]
fn a_guest_mtu_that_a_hop_drops_is_built_where_the_plan_asks_for_it() {
    let text = |oversize| {
        format!(
            "name: x\nunderlay: {{ mtu: 9000, hops: [{{ switch: {{ mtu: 1500 }} }}], oversize: {oversize} }}\n\
             guest_mtu: [max, 9000]\n"
        )
    };
    let plan = experiment(&text("send"));
    let mtus: Vec<u32> = plan.cells.iter().map(|cell| cell.guest_mtu).collect();
    assert_eq!(mtus, [1500, 9000]);
    assert!(load("x.yaml", &text("refuse")).is_err());
}

#[test]
fn a_line_has_steps_and_no_line_has_none() {
    let release = |underlay: &str| {
        let text = format!("name: x\nunderlay: {{ {underlay} }}\n");
        let experiment = load("plan.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
        experiment.plan.underlay.release_us
    };
    assert_eq!(release("mtu: 9000"), None);
    assert_eq!(release("rate: 10gbit"), Some(100));
    assert_eq!(release("rate: [none, 1gbit], release: 50us"), Some(50));
    assert_eq!(release("rate: 1gbit, release: 0.5ms"), Some(500));
}

#[test]
fn a_logical_network_is_varied_where_ovn_builds_it_and_nowhere_else() {
    let plan = load(
        "plan.yaml",
        "name: x\nunderlay: { mtu: 9000 }\nguest_mtu: 1400\nencapsulation: vxlan\ndatapath: [ovs, ovn]\n\
         topology: [switched, routed]\nacl: [none, allow-related]\n",
    )
    .expect("a plan");
    let cells = plan.cells.iter();
    let told: Vec<String> = cells.map(|cell| cell.network.to_string()).collect();
    assert_eq!(told.len(), 1 + 4, "{told:?}");
    assert!(told[0].contains("by Open vSwitch"), "{told:?}");
    assert!(!plan.cells[0].levels.contains_key("topology"));
    assert_eq!(plan.cells[4].levels["acl"], "allow-related");
    assert!(told[4].ends_with(", routed, ACL allow-related"), "{told:?}");
}

#[test]
fn tunnels_between_hosts_have_the_factors_of_what_is_built_and_none_of_the_hosts() {
    let text = "name: x\nnetwork: tunnel\nencapsulation: [vxlan, wireguard]\nguest_mtu: [1500, max]\nmax_rate: 1gbit\n";
    let experiment = wirecost_plan::load("plan.yaml", text).expect("a plan");
    assert!(experiment.plan.hosts.is_tunnel() && experiment.plan.hosts.pair().is_none());
    let keys: Vec<&str> = experiment
        .factors
        .iter()
        .map(|factor| factor.key.as_str())
        .collect();
    assert!(
        keys.contains(&"encapsulation") && keys.contains(&"guest_mtu"),
        "{keys:?}"
    );
    assert!(
        !keys
            .iter()
            .any(|key| key.starts_with("underlay.") || key.starts_with("steering.")),
        "{keys:?}"
    );
    assert_eq!(experiment.cells[0].levels["datapath"], "kernel");
}

#[test]
fn pairs_of_hosts_are_a_factor_of_existing_networks_and_of_tunnels() {
    let hosts = "hosts: { a: \"netns:one\", b: \"netns:two\", db-3: \"ssh:db3=10.0.0.3\" }";
    let plan = experiment;
    let experiment = plan(&format!(
        "name: x\n{hosts}\npairs: [[a, b], [a, db-3]]\nload: {{ tcp-stream: {{ streams: [1, 4] }} }}\n"
    ));
    let keys: Vec<&str> = experiment
        .factors
        .iter()
        .map(|factor| &*factor.key)
        .collect();
    assert_eq!(keys[0], "pairs");
    assert_eq!(experiment.factors[0].levels, ["a and b", "a and db-3"]);
    assert_eq!(experiment.cells.len(), 4);
    let pairs = experiment.plan.host_pairs().expect("all are named");
    for cell in &experiment.cells {
        let pair = &pairs[experiment.plan.pair_of(&cell.levels)];
        assert_eq!(pair.names.to_string(), cell.levels["pairs"]);
        let second = if cell.levels["pairs"] == "a and b" {
            "netns:two"
        } else {
            "ssh:db3=10.0.0.3"
        };
        assert_eq!(pair.hosts.b.to_string(), second);
    }
    let tunnels = plan("name: x\nnetwork: tunnel\nencapsulation: vxlan\npairs: [c, a]\n");
    assert_eq!(tunnels.cells[0].levels["pairs"], "c and a");
    assert_eq!(tunnels.plan.host_pairs(), None, "until --hosts names them");
    let excluded = plan(&format!(
        "name: x\n{hosts}\npairs: [[a, b], [a, db-3]]\nguest_mtu: 1400\nload: {{ tcp-stream: {{ streams: [1, 4] }} }}\n\
         exclude: [{{ pairs: a and db-3, streams: 4 }}]\n"
    ));
    assert_eq!(excluded.cells.len(), 3);
    let without = plan("name: x\nguest_mtu: [1400, 1500]\n");
    assert!(without.factors.iter().all(|factor| factor.key != "pairs"));
}
