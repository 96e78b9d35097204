//! What differs in the lab and not in the network: nothing pays and nothing costs by it.

use wirecost_model::metric::Metric::{
    self, ClientCpu, Datagrams, LatencyMedian, LatencyP99, LatencyP999, ReceiverCpu, SenderCpu,
    ServerCpu, Throughput, Transactions,
};

use crate::case::{Case, Claim, Direction, Expectation, Kind, RunMethod, SecondRun};

const ALL: &[Metric] = &[];
const CPU: &[Metric] = &[SenderCpu, ReceiverCpu];
const PER_TRANSACTION: &[Metric] = &[ClientCpu, ServerCpu];
const LATENCY: &[Metric] = &[LatencyMedian, LatencyP99, LatencyP999];

/// A plan of bench/truth.
macro_rules! plan {
    ($name:literal) => {
        include_str!(concat!("../../../truth/", $name, ".yaml"))
    };
}
pub(crate) use plan;

const fn case(
    name: &'static str,
    plan: &'static str,
    way: RunMethod,
    why: &'static str,
    claims: &'static [Claim],
) -> Case {
    Case {
        name,
        kind: Kind::Artefact,
        plan,
        way,
        why,
        claims,
    }
}

const fn of(factor: &'static str, metrics: &'static [Metric], expectation: Expectation) -> Claim {
    Claim {
        factor,
        at: &[],
        metrics,
        expectation,
    }
}

pub(super) const CASES: &[Case] = &[
    case(
        "hop",
        plan!("hop"),
        RunMethod::Run,
        "behind a switch that cuts super-packets the receiver aggregates at its vxlan device and not at its veth: with \
         the same aggregation in both cells 50 bytes more a frame cannot make anything faster",
        &[of(
            "encapsulation",
            ALL,
            Expectation::Alike(Direction::Worse),
        )],
    ),
    case(
        "small-messages",
        plan!("small"),
        RunMethod::Run,
        "the same without a hop: messages of 128 bytes cross whole, and are aggregated behind the tunnel alone",
        &[of(
            "encapsulation",
            ALL,
            Expectation::Alike(Direction::Worse),
        )],
    ),
    case(
        "gro-direct",
        plan!("gro-direct"),
        RunMethod::Run,
        "between two hosts on one wire super-packets arrive whole, so that `gro: off` changes nothing: \"makes no \
         difference\" would be read as a property of GRO. The plan is refused, and says to add a hop",
        &[of("offload", ALL, Expectation::Refused("hop"))],
    ),
    case(
        "line-cpu",
        plan!("line-cpu"),
        RunMethod::Run,
        "the built-in plan's cells with everything offloaded. At the line a core wakes for every timer and hand-over, \
         some 25 us each; saturated, 8900 takes less of the sender than 1500 (4.3 and 2.6 to 2.8 % per Gbit/s were \
         measured without the line) or as much, and never more by its frames",
        &[
            Claim {
                factor: "guest_mtu",
                at: &[("guest_mtu", "8900")],
                metrics: &[SenderCpu],
                expectation: Expectation::Never(Direction::Worse),
            },
            of("encapsulation", &[SenderCpu], Expectation::Within(0.9, 2.0)),
        ],
    ),
    case(
        "line-rates",
        plan!("line-rates"),
        RunMethod::Run,
        "without the line a stream takes more of it because there is more of it, and less CPU for each bit because no \
         core waits: a line rate is the figure itself",
        &[of("underlay.rate", ALL, Expectation::Silent)],
    ),
    case(
        "line-streams",
        plan!("line-streams"),
        RunMethod::Run,
        "four streams at a line of 10 Gbit/s: receiver CPU was up to x1.75 by how the load's readers happened to wait. \
         With one way of reading vxlan takes more by its own work, and larger frames no more",
        &[
            of(
                "encapsulation",
                &[ReceiverCpu],
                Expectation::Within(0.9, 1.5),
            ),
            of("guest_mtu", &[ReceiverCpu], Expectation::Within(0.3, 1.1)),
        ],
    ),
    case(
        "mix-behind",
        plan!("mix-behind"),
        RunMethod::Run,
        "one connection asked 1000 times a second beside four streams at 1 Gbit/s, where an answer takes 4.8 ms: it \
         cannot be asked more than some 200 times, and what is measured is how far behind the load is after how long",
        &[of("bulk", LATENCY, Expectation::Silent)],
    ),
    case(
        "compare-beside-a-loop",
        plan!("same"),
        RunMethod::Compare(SecondRun::WithBusyLoop),
        "the same plan twice, the second time beside a program on the receiver's core: not a regression of the network",
        &[of("", ALL, Expectation::Silent)],
    ),
    case(
        "defaults",
        plan!("defaults"),
        RunMethod::Run,
        "128 KiB are 91 segments at 1448 bytes and 94 at 1398, which fill two super-packets and leave one segment over: \
         x0.70. By 64 KiB writes, of which no tail is left, vxlan costs x0.87",
        &[of(
            "encapsulation",
            &[Throughput],
            Expectation::Within(0.78, 1.0),
        )],
    ),
    case(
        "write-ip",
        plan!("write-ip"),
        RunMethod::Run,
        "the same of IPv6's 20 bytes more: x0.80 with 128 KiB, x0.96 with 64 KiB and by iperf3",
        &[of(
            "guest_ip",
            &[Throughput],
            Expectation::Within(0.9, 1.05),
        )],
    ),
    case(
        "write-mtu",
        plan!("write-mtu"),
        RunMethod::Run,
        "the same of guest MTU 1450 and 1500: x1.2 with 128 KiB, x1.01 with 64 KiB. Headers are 3.3 % and 3.4 % of it",
        &[of(
            "guest_mtu",
            &[Throughput],
            Expectation::Within(0.95, 1.1),
        )],
    ),
    case(
        "geneve-options",
        plan!("geneve-options"),
        RunMethod::Run,
        "an option is copied with the header: some bytes more of 1400. x0.15 from 128 bytes on was a warning that the \
         kernel made a stack trace for at each packet whose head had grown without its truesize",
        &[of(
            "encapsulation",
            &[Throughput, ReceiverCpu],
            Expectation::RefusedOrWithin(0.8, 1.25),
        )],
    ),
    case(
        "zero-copy",
        plan!("zero-copy"),
        RunMethod::Run,
        "between namespaces pages are copied when they are delivered, on the receiver's core: every completion says \
         \"copied\", so that it is no zero copy that is measured",
        &[of("zero_copy", ALL, Expectation::Silent)],
    ),
    case(
        "udp-segments",
        plan!("udp-segments"),
        RunMethod::Run,
        "datagrams paced one by one leave nothing to hand over together, and the thread that paces them spins: \"makes \
         no difference\" was its own timer. In whole super-packets segmentation takes less of the sender",
        &[Claim {
            factor: "segmentation_offload",
            at: &[("offload", "tunnel")],
            metrics: &[SenderCpu],
            expectation: Expectation::Neither(Direction::Worse),
        }],
    ),
    case(
        "udp-paced",
        plan!("udp-paced"),
        RunMethod::Run,
        "the same at two rates; and a rate that is offered is the figure itself",
        &[
            Claim {
                factor: "segmentation_offload",
                at: &[("rate", "1gbit")],
                metrics: &[SenderCpu],
                expectation: Expectation::Neither(Direction::Worse),
            },
            // Not the share delivered: an unlimited sender does lose more.
            of(
                "rate",
                &[Throughput, Datagrams, SenderCpu, ReceiverCpu],
                Expectation::Silent,
            ),
        ],
    ),
    case(
        "idle-steps",
        plan!("idle-steps"),
        RunMethod::Run,
        "100 and 300 transactions a second take 10 to 40 ms of a window of 0.41 s, of which the kernel tells in steps of \
         10 ms: 0.3 or 10.3 ms. x0.33 [0.33, 0.33] was the two rates divided. They do differ (99 to 134 us were \
         measured, by how deep a core sleeps), which is the machine's doing as well",
        &[
            of("rate", PER_TRANSACTION, Expectation::Silent),
            of("rate", &[Transactions], Expectation::Silent),
        ],
    ),
    case(
        "late-timer",
        plan!("late-timer"),
        RunMethod::Run,
        "a request that leaves late is not a path that takes long: x1.56 at 2000/s was the sending thread's timer. That \
         a core which sleeps between two requests answers later is left: up to a third in a virtual machine",
        &[
            Claim {
                factor: "rate",
                at: &[("rate", "2000")],
                metrics: &[LatencyMedian],
                expectation: Expectation::Within(0.75, 1.35),
            },
            of("rate", PER_TRANSACTION, Expectation::Silent),
            of("rate", &[Transactions], Expectation::Silent),
        ],
    ),
    case(
        "hops",
        plan!("hops-none"),
        RunMethod::Compare(SecondRun::Plan(plan!("hops-two"))),
        "a switch and a router work on the cores of the hosts beside them: x1.4 to x2 of sender CPU is theirs, and in a \
         network of machines the hosts' CPU would be the same. Throughput is less by their work, which a comparison \
         may say",
        &[of("", CPU, Expectation::SilentIfThere)],
    ),
    case(
        "congestion",
        plan!("congestion"),
        RunMethod::Run,
        "bbr paces by a round trip, which is microseconds here: x0.25 is no property of any network with a distance",
        &[of("congestion", ALL, Expectation::Silent)],
    ),
    case(
        "offered-rate",
        plan!("offered"),
        RunMethod::Run,
        "twice the offered rate is twice the throughput: the factor is the result. CPU for each bit is less because \
         cores wake as often",
        &[of("rate", ALL, Expectation::Silent)],
    ),
    case(
        "line-rate",
        plan!("line-factor"),
        RunMethod::Run,
        "eight tenths of the line are eight tenths of the throughput: the factor is the result",
        &[of("underlay.rate", ALL, Expectation::Silent)],
    ),
    case(
        "gro-by-hand",
        plan!("gro-by-hand"),
        RunMethod::Run,
        "where there is a tunnel a command switches GRO off at the underlay: the receiver aggregates in one cell only, \
         whatever the plan says",
        &[of(
            "encapsulation",
            ALL,
            Expectation::Alike(Direction::Worse),
        )],
    ),
    case(
        "gro-by-command",
        plan!("gro-by-command"),
        RunMethod::Run,
        "the same as a factor whose levels are a command: what it is about is unknown, and what it did is that the \
         receiver aggregates no more",
        &[of("tuning", ALL, Expectation::Silent)],
    ),
    case(
        "starved",
        plan!("starved"),
        RunMethod::Run,
        "where there is a tunnel three loops run on the sender's core: the generator has a quarter of it",
        &[of("encapsulation", ALL, Expectation::Silent)],
    ),
    case(
        "busy-core",
        plan!("busy-core"),
        RunMethod::Run,
        "where there is a tunnel a loop runs on the receiver's core",
        &[of("encapsulation", ALL, Expectation::Silent)],
    ),
    case(
        "backlog",
        plan!("backlog"),
        RunMethod::Run,
        "where there is a tunnel a core's backlog holds 16 packets: what it drops is lost in the lab, not in the network",
        &[of("encapsulation", ALL, Expectation::Silent)],
    ),
    case(
        "unreachable-rate",
        plan!("unreachable"),
        RunMethod::Run,
        "a million requests a second of one connection: it is behind from the first on, and latency is its own queue",
        &[of("encapsulation", LATENCY, Expectation::Mute)],
    ),
    case(
        "cores-moved",
        plan!("vxlan-plain"),
        RunMethod::CoresMoved("encapsulation", "vxlan"),
        "in the record the cores are four times as far apart where there is a tunnel: what one host hands to the other \
         goes that way",
        &[of("encapsulation", ALL, Expectation::Silent)],
    ),
    case(
        "one-core",
        plan!("vxlan-plain"),
        RunMethod::OneCore,
        "sender and receiver share one core, so that neither has a CPU figure of its own",
        &[of("encapsulation", CPU, Expectation::SilentIfThere)],
    ),
    case(
        "compare-on-one-core",
        plan!("same"),
        RunMethod::Compare(SecondRun::OneCore),
        "the same plan twice, the second time on half of the cores: not a regression of the network",
        &[of("", ALL, Expectation::SilentIfThere)],
    ),
];
