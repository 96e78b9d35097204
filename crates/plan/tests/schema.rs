//! The schema: sound, in agreement with the parser, and a contract.

mod agreement;

use agreement::{AcceptedBy, SCHEMA, agree, instance};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::{Union, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::Value;
use std::ops::Bound;
use wirecost_plan::{BUILTIN, Key, Kind, Presence, STUDIES, keys, load, schema};

#[test]
fn the_schema_is_one_by_the_rules_of_its_draft() {
    let document = serde_json::to_value(schema()).expect("JSON");
    let judged = jsonschema::draft202012::meta::validate(&document);
    assert!(judged.is_ok(), "{judged:?}");
}

#[test]
fn the_schema_is_part_of_the_contract() {
    let text = serde_json::to_string_pretty(&schema()).expect("JSON");
    insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn every_plan_that_is_shipped_is_taken_by_schema_and_parser() {
    let plans = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    for (directory, all) in [(plans.clone(), BUILTIN), (plans.join("studies"), STUDIES)] {
        let mut shipped = 0;
        for entry in std::fs::read_dir(directory).expect("plans") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("text");
            assert_eq!(agree(&text), AcceptedBy::ByBoth, "{}", path.display());
            let built_in = all.iter().any(|(_, known)| *known == text);
            assert!(built_in, "{} is not built in", path.display());
            shipped += 1;
        }
        assert_eq!(shipped, all.len());
    }
}

#[test]
fn an_editor_learns_of_every_key_what_it_is_and_what_it_takes() {
    let document = serde_json::to_value(schema()).expect("JSON");
    for key in keys() {
        let property = property_of(&document, key);
        let text = |name: &str| property[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(text("title"), key.path);
        assert!(text("description").starts_with(key.doc), "{}", key.path);
        assert!(!property["examples"][0].is_null(), "{}", key.path);
        let default = matches!(key.presence, Presence::Default(_));
        assert_eq!(property.get("default").is_some(), default, "{}", key.path);
    }
}

/// Where a key's property stands: through lists, through `anyOf` and `$defs`.
fn property_of<'d>(document: &'d Value, key: &Key) -> &'d Value {
    fn named<'d>(document: &'d Value, at: &'d Value, name: &str) -> Option<&'d Value> {
        if name == "*"
            && let Some(each) = at
                .get("additionalProperties")
                .filter(|each| each.is_object())
        {
            return Some(each);
        }
        if let Some(found) = at.get("properties").and_then(|all| all.get(name)) {
            return Some(found);
        }
        let reference = at.get("$ref").and_then(Value::as_str);
        let defined = reference.and_then(|name| document.pointer(name.strip_prefix('#')?));
        let any = at.get("anyOf").and_then(Value::as_array);
        let below = defined.into_iter().chain(at.get("items"));
        below
            .chain(any.into_iter().flatten())
            .find_map(|next| named(document, next, name))
    }
    key.path.split('.').fold(document, |at, name| {
        named(document, at, name).unwrap_or_else(|| panic!("{} is not there", key.path))
    })
}

/// Values that some key may take, and others must not.
const STRANGE: &[&str] = &[
    "",
    "~",
    "null",
    "''",
    "' '",
    "x y",
    "none",
    "max",
    "auto",
    "on",
    "off",
    "true",
    "False",
    "'true'",
    "yes",
    "vxlan",
    "lab",
    "tcp-stream",
    "tunel",
    "..",
    ".hidden",
    "-1",
    "-0",
    "0",
    "1",
    "2",
    "1.5",
    "576",
    "1500.0",
    "1e3",
    "0x10",
    "'1500'",
    "'+5'",
    "007",
    "+5",
    "5.",
    ".5",
    "5%",
    "'0.05'",
    "200ms",
    "2min",
    "2h",
    "-1s",
    "-0s",
    "1 s",
    "10gbit",
    "10 GBIT/s",
    "10gbit/s/s",
    "10",
    "128KiB",
    "' 128KiB '",
    "1.5KiB",
    "0.3KiB",
    "64kb",
    "1.2.3",
    "9999999999",
    "1e999",
    "18446744073709551615",
    "18446744073709551616",
    "nan",
    "inf",
    "ß",
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    "[1500, 1500]",
    "[1500, '1500']",
    "[none, none]",
    "[max]",
    "[on]",
    "[1, x]",
    "{ x: 1 }",
    "{ vxlan: }",
    "{ vxlan: { vni: 7 } }",
    "{ vxlan: [] }",
    "{ gro: on }",
    "{ profile: plain, x: 1 }",
    "{ tcp-stream: {} }",
    "{ guest_mtu: max }",
    "{ guest_mtu: [max] }",
    "[{ guest_mtu: [max], streams: 1 }]",
    "[{ guest_mtu: [] }]",
    "[{ encapsulation: vxlan vni=7 }]",
    "[{ offload: { profile: tunnel } }]",
    "[{ streams: }]",
    "[{ where: { guest_mtu: max }, gbps: 1 }]",
    "[{ gbps: 1 }]",
    "abcdefghijklmno",
    "abcdefghijklmnop",
    "9bbr",
    "a_b-c",
];

#[test]
fn schema_and_parser_take_the_same_for_every_key() {
    let mut both = 0;
    for key in keys() {
        let ends = [key.range.0, key.range.1]
            .into_iter()
            .flat_map(|end| match end {
                Bound::Included(end) | Bound::Excluded(end) => [-1.0, -0.01, 0.0, 0.01, 1.0]
                    .map(|by| (end + by).to_string())
                    .to_vec(),
                Bound::Unbounded => vec![],
            });
        let words = key.words.iter().map(|word| (*word).to_owned());
        let values = STRANGE
            .iter()
            .map(|text| (*text).to_owned())
            .chain(words)
            .chain(ends);
        for value in values {
            both += usize::from(agree(&plan_with(key, &value)) == AcceptedBy::ByBoth);
        }
    }
    assert!(both > 5 * keys().len(), "only {both} were taken at all");
}

#[test]
fn examples_and_defaults_are_what_schema_and_parser_take() {
    for key in keys() {
        let default = match key.presence {
            Presence::Default(text) | Presence::Adaptive(text) => Some(text),
            Presence::Required | Presence::Optional => None,
        };
        for value in default.into_iter().chain([key.example]) {
            let text = plan_with(key, value);
            let taken = agree(&text);
            // The levels that the example of `exclude` names are not this plan's.
            let expected = match key.kind {
                Kind::LevelSets => AcceptedBy::BySchemaOnly,
                // The plan around it has keys of a lab.
                _ if OF_EXISTING.contains(&key.path) && value != "lab" => AcceptedBy::BySchemaOnly,
                // A lab has nothing of others that could be lost.
                _ if key.path == "load.storage.destructive" && value == "on" => {
                    AcceptedBy::BySchemaOnly
                }
                _ if key.path == "load.storage.overwrite" && value != "none" => {
                    AcceptedBy::BySchemaOnly
                }
                // The plan around it has no existing hosts, whose device it would be.
                _ if key.path == "vary.*.device" => AcceptedBy::BySchemaOnly,
                // Of `engine: qemu` alone, which is not the default.
                _ if key.path == "load.migration.switchover_bandwidth" && value == key.example => {
                    AcceptedBy::BySchemaOnly
                }
                _ => AcceptedBy::ByBoth,
            };
            assert_eq!(taken, expected, "{text}");
        }
    }
}

#[test]
fn a_key_that_no_table_has_is_refused_wherever_it_stands() {
    for key in keys() {
        // Of one's own names none is unknown.
        let lists = matches!(key.kind, Kind::Maps | Kind::Choices | Kind::Members);
        if lists || matches!(key.kind, Kind::Map | Kind::Choice) {
            let unknown = match key.kind {
                _ if lists => "[{ no_such_key: 1 }]",
                _ => "{ no_such_key: 1 }",
            };
            assert_eq!(
                agree(&plan_with(key, unknown)),
                AcceptedBy::ByNeither,
                "{}",
                key.path
            );
        }
    }
    assert_eq!(agree("name: x\nno_such_key: 1\n"), AcceptedBy::ByNeither);
}

#[test]
fn a_level_twice_is_seen_by_the_schema_where_it_is_written_the_same() {
    assert_eq!(
        agree("name: x\nguest_mtu: [1400, 1400]\n"),
        AcceptedBy::ByNeither
    );
    assert_eq!(
        agree("name: x\noffload: [{ gro: off }, { gro: off }]\n"),
        AcceptedBy::ByNeither
    );
    assert_eq!(
        agree("name: x\nguest_mtu: [1400, '1400']\n"),
        AcceptedBy::BySchemaOnly
    );
    let rates = "name: x\nunderlay: { rate: [10gbit, 10000mbit] }\n";
    assert_eq!(agree(rates), AcceptedBy::BySchemaOnly);
}

#[test]
fn selections_may_name_levels_as_the_plan_does_or_by_their_labels() {
    let text = "\
name: x
encapsulation: [none, { vxlan: { vni: 7, udp_checksum: on } }]
offload: [tunnel, { profile: tunnel, tso: off }]
underlay: { rate: [none, 10gbit] }
exclude:
  - { encapsulation: vxlan vni=7 udp_checksum=on, offload: [tunnel, tunnel tso=off] }
  - { encapsulation: { vxlan: { vni: 7, udp_checksum: on } }, underlay.rate: 10000mbit }
";
    assert_eq!(agree(text), AcceptedBy::ByBoth);
}

/// The smallest plan in which `key` has `value`, everything else being right.
fn plan_with(key: &Key, value: &str) -> String {
    // What has no name of its own is given one.
    let name = |key: &Key| if key.name() == "*" { "own" } else { key.name() };
    let mut inner = format!("{}: {value}", name(key));
    let mut child = key;
    loop {
        let parent = keys().iter().find(|other| other.path == child.parent());
        let siblings = keys().iter().filter(|other| {
            other.parent() == child.parent()
                && other.path != child.path
                && (other.presence == Presence::Required
                    // Room for the examples.
                    || other.path == "underlay"
                    || (other.path == "guest_mtu" && key.path.starts_with("published"))
                    || (other.path == "encapsulation" && key.path.starts_with("underlay."))
                    || (other.path == "encapsulation" && key.path.ends_with(".tunnel"))
                    || (other.path == "encapsulation" && key.path == "udp_checksum")
                    || (other.path == "datapath" && matches!(key.path, "topology" | "acl"))
                    // Neither stands alone.
                    || (other.path == "underlay.rate"
                        && matches!(child.path, "underlay.release" | "underlay.links"))
                    || (other.path == "load.storage.pattern"
                        && key.path == "load.storage.flush_every")
                    || (other.path == "vary.*.before" && child.path == "vary.*.after")
                    || (other.path == "vary.*.after" && child.path == "vary.*.before")
                    || (other.path == "vary.*.sysctl" && child.path == "vary.*.on"))
        });
        for sibling in siblings {
            let value = match sibling.path {
                "guest_mtu" => "[1500, max]",
                "underlay" => "{ mtu: 9000 }",
                "encapsulation" => "vxlan",
                "datapath" => "ovn",
                _ => sibling.example,
            };
            inner = format!("{}: {value}, {inner}", name(sibling));
        }
        let Some(parent) = parent else {
            return format!("{{ {inner} }}\n");
        };
        inner = match parent.kind {
            Kind::Maps | Kind::Choices => format!("{}: [{{ {inner} }}]", name(parent)),
            Kind::Members => format!("{}: [{{ {inner} }}, {{ {inner} }}]", name(parent)),
            _ => format!("{}: {{ {inner} }}", name(parent)),
        };
        child = parent;
    }
}

/// A plan as it is written: scalars are text.
#[derive(Debug, Clone)]
enum Tree {
    Scalar(String),
    List(Vec<Self>),
    Map(Vec<(&'static str, Self)>),
}

impl Tree {
    fn write(&self) -> String {
        let joined = |parts: Vec<String>| parts.join(", ");
        match self {
            Self::Scalar(text) => text.clone(),
            Self::List(items) => format!("[{}]", joined(items.iter().map(Self::write).collect())),
            Self::Map(pairs) => {
                let pair = |(key, value): &(&str, Self)| format!("{key}: {}", value.write());
                format!("{{ {} }}", joined(pairs.iter().map(pair).collect()))
            }
        }
    }

    /// The subtree of that number, counted from the root.
    fn place(&mut self, number: &mut usize) -> Option<&mut Self> {
        if *number == 0 {
            return Some(self);
        }
        *number -= 1;
        match self {
            Self::Scalar(_) => None,
            Self::List(items) => items.iter_mut().find_map(|item| item.place(number)),
            Self::Map(pairs) => pairs.iter_mut().find_map(|(_, value)| value.place(number)),
        }
    }

    fn size(&self) -> usize {
        1 + match self {
            Self::Scalar(_) => 0,
            Self::List(items) => items.iter().map(Self::size).sum(),
            Self::Map(pairs) => pairs.iter().map(|(_, value)| value.size()).sum(),
        }
    }
}

/// Scalars of a kind, right ones for the most part.
fn scalars(key: &'static Key) -> BoxedStrategy<String> {
    let within = |bound: Bound<f64>, otherwise: f64| match bound {
        Bound::Included(end) | Bound::Excluded(end) => end,
        Bound::Unbounded => otherwise,
    };
    let (low, high) = (within(key.range.0, 0.0), within(key.range.1, 1e9));
    let whole = move || (low as u64..=high as u64).prop_map(|number| number.to_string());
    let decimal = move |scale: f64, unit: &'static str| {
        (1u32..=1000).prop_map(move |part| {
            let number = low + (high - low) * f64::from(part) / 1000.0;
            format!("{:.3}{unit}", number / scale)
        })
    };
    let quoted = move || whole().prop_map(|number| format!("'{number}'"));
    match key.kind {
        _ if key.name() == "threads" => Just("1".to_owned()).boxed(),
        // Such that the guest fits, mostly.
        _ if key.name() == "guest_mtu" => prop_oneof![
            Just("max".to_owned()),
            (576u32..=1400).prop_map(|mtu| mtu.to_string())
        ]
        .boxed(),
        _ if key.name() == "options" => {
            (0u32..=63).prop_map(|words| (4 * words).to_string()).boxed()
        }
        Kind::Ports => (1u32..=30000, 30000u32..=65535)
            .prop_map(|(first, last)| format!("{first}-{last}"))
            .boxed(),
        _ if key.path == "underlay.mtu" => {
            (1500u32..=65535).prop_map(|mtu| mtu.to_string()).boxed()
        }
        Kind::Text => select(vec!["text", "7", "true", "'a, b'"]).prop_map_into().boxed(),
        Kind::Target => select(vec![
            "'nbd://b/disk'",
            "'nbd+unix:///?socket=/s'",
            "'nbds://b'",
            "/dev/sdz",
            "srv",
        ])
        .prop_map_into()
        .boxed(),
        Kind::Path => select(vec!["/dev/sdz", "'/a b'", "sdz"]).prop_map_into().boxed(),
        Kind::Name => "[a-zA-Z0-9_][a-zA-Z0-9._-]{0,63}".boxed(),
        Kind::Congestion => "[a-zA-Z][a-zA-Z0-9_]{0,14}".boxed(),
        Kind::Whole | Kind::Members => prop_oneof![8 => whole(), 1 => quoted()].boxed(),
        Kind::Size => prop_oneof![4 => whole(), 4 => (4u32..=1024).prop_map(|kib| format!("{kib}KiB")), 1 => quoted()].boxed(),
        Kind::Rate => decimal(1e9, "gbit").boxed(),
        Kind::Seconds => prop_oneof![decimal(1.0, ""), decimal(1.0, "s"), decimal(60.0, "min")].boxed(),
        Kind::Share => prop_oneof![decimal(1.0, ""), decimal(0.01, "%")].boxed(),
        Kind::Gbps | Kind::PerSecond | Kind::Number => decimal(1.0, "").boxed(),
        Kind::Pair => decimal(1.0, "").prop_map(|one| format!("[{one}, 1]")).boxed(),
        Kind::Mask => "0x[0-9a-f]{0,3}[1-9a-f]".boxed(),
        Kind::Label => "[a-z][a-z ]{0,8}[a-z]".boxed(),
        Kind::Command => select(vec!["'true'", "ip link", "7"]).prop_map_into().boxed(),
        _ => Just(String::new()).boxed(),
    }
}

fn with_words(key: &'static Key) -> BoxedStrategy<Tree> {
    let mut words: Vec<String> = key.words.iter().map(|word| (*word).to_owned()).collect();
    if words.first().is_some_and(|word| word == "on") {
        words.extend(["true".to_owned(), "false".to_owned()]);
    }
    let others = match key.kind {
        Kind::Word => None,
        Kind::Map | Kind::Choice => Some(mapping(key.path, key.kind == Kind::Choice)),
        Kind::Maps => {
            let items = prop::collection::vec(mapping(key.path, false), 1..3);
            Some(items.prop_map(Tree::List).boxed())
        }
        Kind::Named => {
            let factor = levels(each_of(key));
            Some(
                factor
                    .prop_map(|levels| Tree::Map(vec![("own", levels)]))
                    .boxed(),
            )
        }
        Kind::Sysctls => {
            let names = select(vec![
                "net.ipv4.tcp_sack",
                "net/ipv4/tcp_sack",
                "sack",
                "vm.swappiness",
            ]);
            let values = select(vec!["1", "'4096 87380'", "on"]);
            Some(pair_of(names, values))
        }
        Kind::Features => {
            let names = select(vec!["rx-gro", "tx-tcp-segmentation", "gro", "rx gro"]);
            Some(pair_of(names, select(vec!["on", "off", "true", "1"])))
        }
        Kind::Mix => {
            let load = || select(vec!["tcp-stream", "tcp-rr", "udp-rr"]);
            let two = (load(), load()).prop_map(|(one, other)| {
                let load = |name: &str| Tree::Scalar(name.to_owned());
                Tree::Map(vec![("bulk", load(one)), ("ping", load(other))])
            });
            Some(two.boxed())
        }
        Kind::Choices => {
            let items = prop::collection::vec(mapping(key.path, true), 1..3);
            Some(items.prop_map(Tree::List).boxed())
        }
        Kind::Members => {
            let items = prop::collection::vec(mapping(key.path, false), 1..4);
            let list = items.prop_map(Tree::List);
            Some(prop_oneof![scalars(key).prop_map(Tree::Scalar), list].boxed())
        }
        Kind::Levels => Some(selection(false)),
        Kind::LevelSets => {
            let items = prop::collection::vec(selection(true), 1..3);
            Some(items.prop_map(Tree::List).boxed())
        }
        _ => Some(scalars(key).prop_map(Tree::Scalar).boxed()),
    };
    let words = (!words.is_empty()).then(|| select(words).prop_map(Tree::Scalar).boxed());
    Union::new(others.into_iter().chain(words)).boxed()
}

/// What each name of a mapping of one's own names takes.
fn each_of(key: &Key) -> &'static Key {
    let path = format!("{}.*", key.path);
    let each = keys().iter().find(|key| key.path == path);
    each.expect("a key with a star")
}

fn pair_of(
    names: impl Strategy<Value = &'static str> + 'static,
    values: impl Strategy<Value = &'static str> + 'static,
) -> BoxedStrategy<Tree> {
    (names, values)
        .prop_map(|(name, value)| Tree::Map(vec![(name, Tree::Scalar(value.to_owned()))]))
        .boxed()
}

fn levels(key: &'static Key) -> BoxedStrategy<Tree> {
    let one = with_words(key);
    if !key.factor {
        return one;
    }
    // Two loads of one name would be a mistake more often than not.
    let most = if key.path == "load" { 2 } else { 3 };
    let list = prop::collection::vec(one.clone(), 1..most).prop_map(Tree::List);
    prop_oneof![one, list].boxed()
}

/// Keys of existing hosts.
const OF_EXISTING: [&str; 14] = [
    "hosts",
    "hosts.a",
    "hosts.b",
    "hosts.*",
    "pairs",
    "network",
    "allow_host_changes",
    "max_rate",
    "vary.*.mtu",
    "vary.*.rx_ring",
    "vary.*.tx_ring",
    "vary.*.queues",
    "vary.*.rps",
    "vary.*.qdisc",
];

/// A mapping of the keys below `parent`: all that are required, some of the others.
fn mapping(parent: &'static str, one_only: bool) -> BoxedStrategy<Tree> {
    let below: Vec<&'static Key> = keys()
        .iter()
        .copied()
        .filter(|key| key.parent() == parent)
        .collect();
    let pair = |key: &'static Key| levels(key).prop_map(|value| (key.name(), value));
    if one_only {
        let one = Union::new(below.into_iter().map(pair));
        return one.prop_map(|pair| Tree::Map(vec![pair])).boxed();
    }
    let pairs: Vec<_> = below
        .into_iter()
        .map(|key| {
            let share = match key.presence {
                Presence::Required => 1.0,
                // Selections need levels that exist, and guests must fit, which few do here.
                _ if matches!(
                    key.path,
                    "exclude"
                        | "published"
                        | "vary"
                        | "underlay.hops"
                        | "underlay.paths"
                        | "guests"
                        | "load.tcp-stream.streams_per_guest"
                        | "load.storage.size"
                ) =>
                {
                    0.1
                }
                // Beside keys of a lab they are wrong.
                _ if OF_EXISTING.contains(&key.path) => 0.02,
                // Few cells have a tunnel that leaves it open, or are OVN's; `auto` stands alone.
                _ if matches!(key.path, "udp_checksum" | "datapath" | "topology" | "acl") => 0.03,
                // There are many, and some exclude each other.
                _ if key.is_option() => 0.05,
                _ => 0.35,
            };
            (prop::bool::weighted(share), pair(key))
        })
        .collect();
    let chosen = pairs.prop_map(|pairs| {
        let kept = pairs.into_iter().filter(|(kept, _)| *kept);
        Tree::Map(kept.map(|(_, pair)| pair).collect())
    });
    chosen.boxed()
}

fn selection(lists: bool) -> BoxedStrategy<Tree> {
    let factors: Vec<_> = keys().iter().copied().filter(|key| key.factor).collect();
    let pair = select(factors).prop_flat_map(move |key| {
        let level = if lists { levels(key) } else { with_words(key) };
        (Just(key.factor_name().expect("a factor")), level)
    });
    pair.prop_map(|pair| Tree::Map(vec![pair])).boxed()
}

/// What is put in the place of something right.
fn spoilt() -> impl Strategy<Value = Tree> {
    let scalar = |text: &str| Tree::Scalar(text.to_owned());
    select(vec![
        scalar("~"),
        scalar("''"),
        scalar("none"),
        scalar("tunel"),
        scalar("on"),
        scalar("-1"),
        scalar("0"),
        scalar("1.5"),
        scalar("1048577"),
        scalar("5%"),
        scalar("200ms"),
        scalar("10gbit"),
        scalar("1GiB"),
        scalar("x y"),
        Tree::List(vec![]),
        Tree::List(vec![scalar("1"), scalar("1")]),
        Tree::List(vec![Tree::List(vec![scalar("none")])]),
        Tree::Map(vec![]),
        Tree::Map(vec![("no_such_key", scalar("1"))]),
        Tree::Map(vec![("name", scalar("x")), ("mtu", scalar("1500"))]),
    ])
}

/// Plans of which some are right and some have one thing wrong.
fn plans() -> impl Strategy<Value = String> {
    let slip = prop::option::weighted(0.5, (any::<Index>(), spoilt()));
    (mapping("", false), slip).prop_map(|(mut tree, slip)| {
        if let Some((index, value)) = slip {
            let mut number = index.index(tree.size());
            if let Some(place) = tree.place(&mut number) {
                *place = value;
            }
        }
        tree.write()
    })
}

proptest! {
    #[test]
    fn plans_of_the_table_are_taken_by_both_or_by_neither(text in plans()) {
        agree(&text);
    }
}

#[test]
fn the_plans_that_are_tried_are_right_and_wrong_in_fair_shares() {
    let mut runner = TestRunner::deterministic();
    let mut counts = [0; 2];
    for _ in 0..200 {
        let text = plans().new_tree(&mut runner).expect("a plan").current();
        counts[0] += usize::from(load("plan.yaml", &text).is_ok());
        let taken = instance(&text).is_some_and(|plan| SCHEMA.is_valid(&plan));
        counts[1] += usize::from(!taken);
    }
    // An eighth: each key that is added can be wrong in ways of its own.
    assert!(counts.iter().all(|count| *count >= 25), "{counts:?}");
}
