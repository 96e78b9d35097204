//! The same level of `offload` has the same effect, judged by what happened: where super-packets are cut, by the
//! packets on the underlay, and where frames are joined, by the segments in a packet of the receiving guest, for every
//! encapsulation that this kernel can build, datapath, topology, IP version and load.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Record, cell_of, lab_can_be_built, lacks, lock_shared, measured, run, skip};
use wirecost_model::cell::Cell;
use wirecost_model::datapath::Datapath;
use wirecost_model::offload::{PathOffload, SegmentationPoint};
use wirecost_model::sample::{Invalid, Sample};
use wirecost_model::{metric::segments_per_packet, usage::HostUsage};
use wirecost_sys::bpf::PassingClassifier;

/// Segments in a packet from which on frames were joined, or super-packets not segmented.
const JOINED: f64 = 4.0;
/// Frames that arrived on the underlay for each packet that the guest's TCP got, up to which none were joined. One
/// reader reads both counters, one after the other.
const NOT_JOINED: f64 = 1.3;
/// Datagrams in one that a socket is given, from which on they are joined: a paced sender may have two at hand.
const MANY: f64 = 1.15;
/// Most by which mean sizes of frames of one path offload differ. Super-packets are as large as the congestion window
/// allows, which depends on who else uses the cores: of them each has [`JOINED`] segments at least.
const FRAMES_ALIKE: f64 = 0.15;

const WIRE: &str = "";
const SWITCH: &str = ", hops: [ { switch: { mtu: 1700 } } ]";
const ROUTER: &str = ", hops: [ { router: { mtu: 1700 } } ]";
/// What can be built by somebody, wherever; what the kernel has no driver for is skipped there.
const EVERY: &str = "[none, vlan, vxlan, geneve, gre, gretap, ipip]";
const TUNNELS: &str = "[vxlan, geneve, gre, gretap, ipip]";

/// What is varied in a plan of short windows.
struct Varied<'a> {
    between: &'a str,
    encapsulations: &'a str,
    datapaths: &'a str,
    offloads: &'a str,
    loads: &'a str,
    more: &'a str,
    rounds: u32,
}

/// Measures a plan, and returns the record with its valid samples; those that could not be built are told.
fn measure(varied: &Varied<'_>) -> Option<Record> {
    if !lab_can_be_built() {
        return None;
    }
    if let Err(error) = PassingClassifier::load() {
        skip(format!("eBPF programs cannot be loaded here: {error}"));
        return None;
    }
    let Varied {
        between,
        encapsulations,
        datapaths,
        offloads,
        loads,
        more,
        rounds,
    } = varied;
    let _lock = lock_shared();
    let (ended, record, _place) = measured(&format!(
        "name: treatment\nunderlay: {{ mtu: 1700{between} }}\nguest_mtu: 1400\nencapsulation: {encapsulations}\n\
         datapath: {datapaths}\noffload: {offloads}\nload: {loads}\n{more}\
         repeat: {{ rounds: {rounds}, seconds: 0.15, warmup: 0.05 }}\n"
    ));
    let mut lost = 0;
    let mut unbuilt = BTreeMap::new();
    for sample in &record.samples {
        match &sample.invalid {
            None => {}
            Some(Invalid::Build(reason)) => {
                let cell = cell_of(&record, sample);
                unbuilt.insert(cell.network.to_string(), reason.clone());
            }
            // A burst that overran a queue, and a retransmission that comes after the window.
            Some(Invalid::Load(reason)) if lost * 4 < record.samples.len() => {
                println!(
                    "not counted: {reason}: {:?}",
                    cell_of(&record, sample).levels
                );
                lost += 1;
            }
            other => panic!(
                "{other:?}: {:?}: {ended:#?}",
                cell_of(&record, sample).levels
            ),
        }
    }
    for (network, reason) in &unbuilt {
        println!("not built: {network}: {reason}");
    }
    let devices = unbuilt.values().filter_map(|reason| {
        let (_, device) = reason.split_once("this kernel has no ")?;
        device.split(':').next()
    });
    for device in devices.collect::<BTreeSet<_>>() {
        lacks(format!("this kernel has no {device}"));
    }
    let built = |named: &str, datapath| {
        record.samples.iter().any(|sample| {
            let cell = cell_of(&record, sample);
            let is_named = cell.levels["encapsulation"] == named;
            sample.invalid.is_none() && is_named && cell.network.datapath == datapath
        })
    };
    // What every kernel of this program has: a test that compares nothing proves nothing.
    for datapath in [Datapath::Kernel, Datapath::Ebpf] {
        assert!(built("vxlan", datapath), "{datapath}: {unbuilt:#?}");
    }
    Some(record)
}

/// The mean packet that a host's device on the underlay sent, less what the encapsulation put before each.
fn sent_bytes(cell: &Cell, usage: &HostUsage) -> f64 {
    let link = &usage.links["underlay"];
    let mean = link.tx_bytes as f64 / link.tx_packets as f64;
    mean - f64::from(cell.network.line_overhead_bytes(cell.guest_mtu))
}

/// Frames that arrived on the underlay per packet that the receiving guest's TCP got.
fn frames_per_packet(sample: &Sample) -> f64 {
    let receiver = sample.receiver.as_ref().expect("usage");
    let arrived = receiver.links["underlay"].rx_packets as f64;
    arrived / receiver.guest.tcp_in as f64
}

/// What is wrong with a cell's sample, or nothing.
type Judged = BTreeMap<u32, Result<(), String>>;

/// Measures until each cell was right once, three times at most: who is preempted between two counters, or with the
/// cores taken away, is wrong in one window of 0.15 s, and what is built wrongly in each.
fn each_cell_is_right(varied: &Varied<'_>, judge: impl Fn(&Record) -> Judged) {
    let mut wrong = BTreeMap::new();
    for turn in 0..3 {
        let Some(record) = measure(varied) else {
            return;
        };
        for (cell, judged) in judge(&record) {
            match judged {
                Ok(()) => wrong.remove(&cell),
                Err(reason) if turn == 0 || wrong.contains_key(&cell) => wrong.insert(cell, reason),
                Err(_) => None,
            };
        }
        if wrong.is_empty() {
            return;
        }
    }
    panic!("wrong in three runs: {wrong:#?}");
}

fn held(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// What the model says of a TCP sample's cell: how many segments its packets have, and where they are cut. The mean
/// bytes of a packet on the underlay.
fn treated(
    cell: &Cell,
    sample: &Sample,
    segments: f64,
    path_offload: PathOffload,
) -> Result<f64, String> {
    let what = format!("{:?} {path_offload:?}: {segments} segments", cell.levels);
    if path_offload.tcp.is_none() || path_offload.joins {
        held(segments > JOINED, || what.clone())?;
    } else {
        let frames = frames_per_packet(sample);
        held(frames < NOT_JOINED, || {
            format!("{what}: {frames} frames a packet")
        })?;
    }
    let bytes = sent_bytes(cell, sample.sender.as_ref().expect("usage"));
    let right = if cut_before_the_underlay(path_offload) {
        bytes < 1500.0
    } else {
        bytes > JOINED * f64::from(cell.guest_mtu)
    };
    held(right, || format!("{what}: {bytes} bytes on the underlay"))?;
    Ok(bytes)
}

fn cut_before_the_underlay(path_offload: PathOffload) -> bool {
    matches!(
        path_offload.tcp,
        Some(SegmentationPoint::Guest | SegmentationPoint::Underlay)
    )
}

/// Holds every sample of TCP against what the model says of its cell, and samples of one path offload against each
/// other.
fn treated_as_the_model_has_it(record: &Record) -> Judged {
    let mut judged = Judged::new();
    let mut groups: BTreeMap<String, Vec<(f64, u32)>> = BTreeMap::new();
    for sample in record.samples.iter().filter(|one| one.invalid.is_none()) {
        let cell = cell_of(record, sample);
        let Some(segments) = segments_per_packet(sample) else {
            continue;
        };
        let path_offload = PathOffload::of(&cell.offload, &cell.network);
        let right = treated(cell, sample, segments, path_offload);
        if let (Ok(bytes), true) = (&right, cut_before_the_underlay(path_offload)) {
            let ip = cell.levels.get("guest_ip").cloned().unwrap_or_default();
            let group = format!("{:?} {ip}", path_offload.tcp);
            groups.entry(group).or_default().push((*bytes, sample.cell));
        }
        judged.insert(sample.cell, right.map(|_| ()));
    }
    for (group, mut sizes) in groups {
        sizes.sort_by(|one, other| one.0.total_cmp(&other.0));
        let middle = sizes[sizes.len() / 2].0;
        for (bytes, cell) in sizes {
            let alike = (bytes / middle - 1.0).abs() < FRAMES_ALIKE;
            let what = || format!("{group}: {bytes} bytes where {middle} is usual");
            if let Err(reason) = held(alike, what) {
                judged.insert(cell, Err(reason));
            }
        }
    }
    judged
}

#[test]
fn on_a_wire_every_encapsulation_is_cut_and_joined_in_the_same_place() {
    each_cell_is_right(
        &Varied {
            between: WIRE,
            encapsulations: EVERY,
            datapaths: "[kernel, ebpf]",
            offloads: "[none, plain, tunnel, { profile: none, gro: on }, { profile: tunnel, tso: off }]",
            loads: "tcp-stream",
            more: "",
            rounds: 1,
        },
        treated_as_the_model_has_it,
    );
}

#[test]
fn behind_a_switch_every_encapsulation_is_joined_at_the_guest() {
    each_cell_is_right(
        &Varied {
            between: SWITCH,
            encapsulations: EVERY,
            datapaths: "[kernel, ebpf]",
            offloads: "[none, tunnel, { profile: tunnel, gro: off }, { profile: tunnel, checksum: software }]",
            loads: "tcp-stream",
            more: "",
            rounds: 1,
        },
        treated_as_the_model_has_it,
    );
}

#[test]
fn behind_a_router_and_over_either_ip_it_is_the_same() {
    each_cell_is_right(
        &Varied {
            between: &format!(", ip: [ipv4, ipv6]{ROUTER}"),
            encapsulations: TUNNELS,
            datapaths: "[kernel, ebpf]",
            offloads: "[tunnel, { profile: tunnel, gro: off }]",
            loads: "tcp-stream",
            more: "guest_ip: [ipv4, ipv6]\n",
            rounds: 1,
        },
        treated_as_the_model_has_it,
    );
}

#[test]
fn small_messages_are_joined_by_nobody_on_a_wire() {
    each_cell_is_right(
        &Varied {
            between: WIRE,
            encapsulations: EVERY,
            datapaths: "[kernel, ebpf]",
            offloads: "[none, tunnel]",
            loads: "{ tcp-stream: { streams: [1, 8], message: 128, nodelay: on } }",
            more: "",
            rounds: 1,
        },
        |record| {
            let valid = record.samples.iter().filter(|one| one.invalid.is_none());
            // How many of them are a packet is the sender's; on the way none is joined with the next.
            valid
                .map(|sample| {
                    let frames = frames_per_packet(sample);
                    let levels = &cell_of(record, sample).levels;
                    let what = || format!("{levels:?}: {frames} frames a packet");
                    (sample.cell, held(frames < NOT_JOINED, what))
                })
                .collect()
        },
    );
}

#[test]
fn datagrams_are_joined_where_the_same_level_joins_others() {
    for between in [WIRE, SWITCH] {
        let record = measure(&Varied {
            between,
            encapsulations: EVERY,
            datapaths: "[kernel, ebpf]",
            offloads: "tunnel",
            loads: "{ udp-stream: { segmentation_offload: [none, send, both], message: 600, rate: 500mbit } }",
            more: "",
            rounds: 3,
        });
        let Some(record) = record else { return };
        let mut joined = BTreeMap::<u32, Vec<f64>>::new();
        for sample in record.samples.iter().filter(|one| one.invalid.is_none()) {
            let cell = cell_of(&record, sample);
            let (sender, receiver) = (sample.sender.as_ref(), sample.receiver.as_ref());
            let segmentation = cell.loads[0].load.segmentation;
            let what = format!("{:?} {between}", cell.levels);
            let bytes = sent_bytes(cell, sender.expect("usage"));
            // 600 bytes and their headers, or more of them at once.
            assert_eq!(bytes > 750.0, segmentation.send, "{what}: {bytes}");
            // The load counts the ones and the kernel the others: where either is preempted, a window differs.
            let datagrams = sample.loads[0].datagrams.expect("datagrams").received as f64;
            let each = datagrams / receiver.expect("usage").guest.udp_in as f64;
            if each.is_finite() {
                joined.entry(sample.cell).or_default().push(each);
            }
        }
        for (cell, mut each) in joined {
            let cell = &record.head.experiment.cells[cell as usize];
            each.sort_by(f64::total_cmp);
            let receive = cell.loads[0].load.segmentation.receive;
            // Whoever joins does so in every round; a disturbed one looks joined, or not, by itself.
            let usual = if receive {
                each[each.len() - 1]
            } else {
                each[0]
            };
            assert_eq!(
                usual > MANY,
                receive,
                "{:?} {between}: {each:?}",
                cell.levels
            );
        }
    }
}

fn dry_run(offloads: &str) -> crate::common::Ended {
    let place = crate::common::TestDir::new();
    let plan = format!(
        "name: idle\nunderlay: {{ mtu: 1700 }}\nencapsulation: [none, vxlan]\noffload: {offloads}\n"
    );
    let file = place.plan(&plan);
    run(place
        .run_command(&file, "out")
        .args(["--dry-run", "--json"]))
}

#[test]
fn a_cell_whose_switch_changes_nothing_is_skipped_with_what_to_do() {
    let ended = dry_run("[plain, { profile: plain, gro: off }]");
    ended.expect_code(0);
    let document = ended.document();
    for cell in document["cells"].as_array().expect("cells") {
        let skipped = cell["skipped"].as_str();
        // Without a tunnel `plain` has nothing cut, and so nothing to join.
        if cell["levels"]["offload"] == "plain gro=off" && cell["levels"]["encapsulation"] == "none"
        {
            assert!(skipped.expect("why").contains("add a hop"), "{cell}");
        } else {
            assert_eq!(skipped, None, "{cell}");
        }
    }
}

#[test]
fn a_level_that_changes_nothing_anywhere_is_a_fault_of_the_plan() {
    for (level, words) in [
        ("{ profile: tunnel, gro: off }", "add a hop"),
        ("{ profile: tunnel, gso: off }", "set `tso`"),
    ] {
        let ended = dry_run(&format!("[tunnel, {level}]"));
        ended.expect_code(2);
        let told = ended
            .stderr
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(told.contains("changes nothing"), "{told}");
        assert!(words.split(' ').all(|word| told.contains(word)), "{told}");
    }
}
