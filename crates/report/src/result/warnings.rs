//! Warnings about what affects the figures of a whole run, in a sentence each.

use std::collections::BTreeSet;

use wirecost_model::cell::Cell;
use wirecost_model::datapath::Datapath;
use wirecost_model::plan::{Description, PayloadKind};
use wirecost_model::record::RunHead;
use wirecost_model::sample::MissedSchedule;
use wirecost_model::usage::{ENOUGH_FOR_CPU_S, LEAST_FOR_CPU_S};

use crate::result::document::{CellLoad, CellResult};
use crate::result::gathered::Gathered;
use crate::result::steered;
use wirecost_answer::names as words;

/// All warnings that apply to a run, in the order in which they are reported.
pub(crate) fn of(
    head: &RunHead,
    gathered: &Gathered,
    cells: &[CellResult],
) -> impl Iterator<Item = String> + use<> {
    [
        chosen(head),
        netfilter(head),
        frame_by_frame(gathered),
        routed(head),
        short_window(head, gathered),
        soon_over(gathered),
        steered::steered_to_other_host(head),
        steered::not_steered(gathered.is_not_steered),
        beyond_the_line(cells),
        strays(cells),
        paths(cells),
        missed_schedule(cells),
    ]
    .into_iter()
    .flatten()
}

/// The datapath, where the run chose it.
fn chosen(head: &RunHead) -> Option<String> {
    head.experiment.chosen.as_ref().map(ToString::to_string)
}

/// br_netfilter, which container engines load: its hooks cost every bridged frame
/// (net/bridge/br_netfilter_hooks.c). The lab leaves it as the machine has it.
fn netfilter(head: &RunHead) -> Option<String> {
    let hooked = |key: &str| {
        head.environment
            .sysctls
            .get(key)
            .is_some_and(|value| value == "1")
    };
    // Cells by eBPF or Open vSwitch have no bridge of the kernel, and neither have cells whose hosts route.
    let cells = &head.experiment.cells;
    let bridged = |cell: &&Cell| {
        let network = &cell.network;
        network.datapath == Datapath::Kernel && !network.encapsulation.is_routed()
    };
    let number = cells.iter().filter(bridged).count();
    let (which, then) = if number == cells.len() {
        (
            "in every cell",
            "which narrows the differences between cells",
        )
    } else {
        (
            "where the kernel bridges",
            "a cost that other cells do not have",
        )
    };
    let on = hooked("net.bridge.bridge-nf-call-iptables") && number > 0;
    on.then(|| {
        format!(
            "br_netfilter is on in this machine's configuration: every bridged frame, {which}, also passes the \
             netfilter hooks, {then} (sysctl net.bridge.bridge-nf-call-iptables)"
        )
    })
}

/// A userspace switch: offloads are off at its ports, whatever level of `offload` the plan names.
fn frame_by_frame(gathered: &Gathered) -> Option<String> {
    let switch = gathered.userspace.as_ref()?;
    Some(format!(
        "{switch}, handles frames one by one on packet sockets: segmentation, aggregation and checksum offloads are off at \
         its ports whatever `offload` says, as the devices of each sample show"
    ))
}

/// Cells whose encapsulation carries packets route where other cells bridge: more than a header differs.
fn routed(head: &RunHead) -> Option<String> {
    let cells = &head.experiment.cells;
    let routes = |cell: &&Cell| cell.network.encapsulation.is_routed();
    let some = cells.iter().any(|cell| routes(&cell));
    let all = cells.iter().all(|cell| routes(&cell));
    (some && !all).then(|| {
        let kinds = Description::ALL.iter();
        let of_packets = kinds.filter(|kind| kind.carries == PayloadKind::Packets);
        let words: Vec<&str> = of_packets.map(|kind| kind.word).collect();
        format!(
            "{} carry IP packets, so their hosts route for the guests, while hosts of other cells bridge: the effect of \
             `encapsulation` between the two includes both",
            words::list(&words)
        )
    })
}

/// Windows too short for CPU time: where the kernel counts idle time in steps of 10 ms, few of them fit into a
/// short window, and an interval from few rounds does not show that.
fn short_window(head: &RunHead, gathered: &Gathered) -> Option<String> {
    let experiment = &head.experiment;
    let windows = if gathered.has_two_windows { 2.0 } else { 1.0 };
    let seconds = experiment.plan.repeat.seconds / windows;
    let by_time = experiment.cells.iter().any(|cell| !is_limited(cell));
    let enough_s = gathered.enough_s.unwrap_or(ENOUGH_FOR_CPU_S);
    let why = if enough_s < ENOUGH_FOR_CPU_S {
        "are short for CPU time".to_owned()
    } else {
        let steps = seconds / 0.01;
        format!("hold {steps:.0} of the 10 ms steps that CPU time is read in")
    };
    let shared = if gathered.has_two_windows {
        format!(" (two share `seconds`: {})", enough_s * windows)
    } else {
        String::new()
    };
    (by_time && seconds < enough_s).then(|| {
        format!(
            "windows of {seconds} s {why}: do not rely on CPU verdicts, measure {enough_s} s or longer for these{shared}"
        )
    })
}

/// Whether a load of the cell ends by itself, so that its limit and not the plan's time sets the window's length.
fn is_limited(cell: &Cell) -> bool {
    cell.loads.iter().any(|named| named.load.ends_by_itself())
}

/// Windows too short for CPU time, of loads that end by themselves.
fn soon_over(gathered: &Gathered) -> Option<String> {
    let shortest = gathered.shortest_limited_s?;
    let enough_s = gathered.enough_s.unwrap_or(ENOUGH_FOR_CPU_S);
    if enough_s < ENOUGH_FOR_CPU_S {
        return (shortest < enough_s).then(|| {
            format!(
                "a load that ends by itself was over within {shortest:.3} s: do not rely on CPU verdicts from windows below \
                 {enough_s} s: raise the limit for these"
            )
        });
    }
    (shortest < ENOUGH_FOR_CPU_S).then(|| {
        format!(
            "a load that ends by itself was over within {shortest:.3} s, and CPU time is read in steps of 10 ms: windows below \
             {LEAST_FOR_CPU_S} s have no figure of it, and do not rely on verdicts from those below {ENOUGH_FOR_CPU_S} s: \
             raise the limit for these"
        )
    })
}

/// Throughput above the line's limit: an error of the rate limiter or of a clock.
fn beyond_the_line(cells: &[CellResult]) -> Option<String> {
    // Allows for the token bucket's 1 ms, and for what lay in the receive buffer when the window began.
    const SLACK: f64 = 1.02;
    let over = |cell: &CellResult| Some(cell.throughput_gbps?.median / cell.line_limit_gbps?);
    let beyond: Vec<f64> = cells
        .iter()
        .filter_map(over)
        .filter(|&share| share > SLACK)
        .collect();
    let most = beyond.iter().copied().reduce(f64::max)?;
    Some(format!(
        "{} of {} cells measured more than their line can carry, up to {:.0}% of it: the rate limiter \
         or the clock does not keep time here; do not rely on the figures of these cells",
        beyond.len(),
        cells.len(),
        most * 100.0
    ))
}

/// Traffic of other senders that reached the ports of a load.
fn strays(cells: &[CellResult]) -> Option<String> {
    let loads = cells.iter().flat_map(|cell| &cell.loads);
    let strays: u64 = loads.map(|load| load.strays).sum();
    (strays > 0).then(|| {
        format!(
            "{strays} connections or datagrams from other senders reached the ports of loads and were dropped: only \
             CPU figures include them"
        )
    })
}

/// The first load at a path whose I/O was buffered, or had to do without io_uring.
fn paths(cells: &[CellResult]) -> Option<String> {
    let mut loads = cells.iter().flat_map(|cell| &cell.loads);
    loads.find_map(|load| {
        let path = load.path.as_ref()?;
        let other = path.buffered.is_some() || path.no_ring.is_some();
        let cached = if path.buffered.is_some() {
            "; reads that the page cache answers, and writes that it takes, say nothing of network and disk"
        } else {
            ""
        };
        other.then(|| format!("{} was at a {}{cached}", load.name, path.words()))
    })
}

/// Loads that did not keep their rate, since the path or the peer takes less than was asked for.
fn missed_schedule(cells: &[CellResult]) -> Option<String> {
    fn behind(cell: &CellResult) -> impl Iterator<Item = &CellLoad> {
        cell.loads.iter().filter(|load| load.missed_schedule > 0)
    }
    let number = cells.iter().filter(|cell| behind(cell).count() > 0).count();
    let of = |what: &str, asks: bool| {
        let loads = cells.iter().flat_map(behind);
        let these = loads.filter(|load| load.workload.is_request_response() == asks);
        let names: BTreeSet<&str> = these.map(|load| load.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{what} of {}", Vec::from_iter(names).join(" and ")))
    };
    let all: Vec<_> = [of("requests", true), of("messages", false)]
        .into_iter()
        .flatten()
        .collect();
    (number > 0).then(|| {
        format!(
            "{} did not keep their rate in {number} of {} cells: {}; {}",
            all.join(" and "),
            cells.len(),
            MissedSchedule::WHY,
            MissedSchedule::ADVICE
        )
    })
}
