//! What differs in the network by a tenth and more: it is found.

use wirecost_model::metric::Metric::{self, LatencyMedian, ReceiverCpu, SenderCpu, Throughput};

use crate::artefacts::plan;
use crate::case::{Case, Claim, Direction, Expectation, Kind, RunMethod, SecondRun};

const BOTH_CPU: &[Metric] = &[SenderCpu, ReceiverCpu];

const fn case(
    name: &'static str,
    plan: &'static str,
    way: RunMethod,
    why: &'static str,
    claims: &'static [Claim],
) -> Case {
    Case {
        name,
        kind: Kind::Effect,
        plan,
        way,
        why,
        claims,
    }
}

const fn found(factor: &'static str, metrics: &'static [Metric], direction: Direction) -> Claim {
    Claim {
        factor,
        at: &[],
        metrics,
        expectation: Expectation::Found(direction),
    }
}

pub(super) const CASES: &[Case] = &[
    case(
        "slower-line",
        plan!("slower-line"),
        RunMethod::Run,
        "a line of 900 Mbit/s by tc(8) instead of 1000: a tenth less gets through. The program does not know that it is a \
         line",
        &[found("line", &[Throughput], Direction::Worse)],
    ),
    case(
        "firewall-rules",
        plan!("rules"),
        RunMethod::Run,
        "each bridged frame is matched against 100 rules",
        &[found("rules", &[Throughput], Direction::Worse)],
    ),
    case(
        "small-buffers",
        plan!("buffers"),
        RunMethod::Run,
        "16 KiB of socket buffer hold a few segments: sender and receiver take turns instead of working at once",
        &[found("socket_buffer", &[Throughput], Direction::Worse)],
    ),
    case(
        "mtu",
        plan!("mtu-plain"),
        RunMethod::Run,
        "nothing offloaded, a frame costs what it costs whatever is in it: 8900 takes a sixth of the frames. At a line of \
         10 Gbit/s CPU says so too, from windows without the line",
        &[
            Claim {
                factor: "guest_mtu",
                at: &[("underlay.rate", "none")],
                metrics: &[Throughput, SenderCpu, ReceiverCpu],
                expectation: Expectation::Found(Direction::Better),
            },
            Claim {
                factor: "guest_mtu",
                at: &[("underlay.rate", "10gbit")],
                metrics: BOTH_CPU,
                expectation: Expectation::Found(Direction::Better),
            },
        ],
    ),
    case(
        "vxlan",
        plan!("vxlan-plain"),
        RunMethod::Run,
        "nothing offloaded, each frame is encapsulated and looked up on its own: 0.61 to 0.84 in this lab, 0.62 in the \
         published testbed",
        &[found("encapsulation", &[Throughput], Direction::Worse)],
    ),
    case(
        "gro-behind-a-hop",
        plan!("gro-hop"),
        RunMethod::Run,
        "a switch cuts super-packets into frames, and the receiver aggregates them or does not: x0.43 was measured",
        &[found(
            "offload",
            &[Throughput, ReceiverCpu],
            Direction::Worse,
        )],
    ),
    case(
        "gro-by-setting",
        plan!("gro-by-setting"),
        RunMethod::Run,
        "the same by the device's feature, which the plan names: then it is what is asked about",
        &[found(
            "receive_gro",
            &[Throughput, ReceiverCpu],
            Direction::Worse,
        )],
    ),
    case(
        "segmentation",
        plan!("segmentation"),
        RunMethod::Run,
        "each segment through the stack on its own instead of 45 at once",
        &[found(
            "offload",
            &[Throughput, SenderCpu, ReceiverCpu],
            Direction::Worse,
        )],
    ),
    case(
        "latency-beside-bulk",
        plan!("mix-kept"),
        RunMethod::Run,
        "100 requests a second beside four streams that fill a line of 1 Gbit/s: each waits in the line's queue, \
         milliseconds instead of tens of microseconds, and the schedule is kept",
        &[found("bulk", &[LatencyMedian], Direction::Worse)],
    ),
    case(
        "compare-fewer-bytes",
        plan!("same"),
        RunMethod::Compare(SecondRun::Fewer(0.8)),
        "the second run's record has four fifths of the bytes: a regression, exit code 1",
        &[found("", &[Throughput], Direction::Worse)],
    ),
];
