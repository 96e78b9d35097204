use wirecost_model::fixtures;
use wirecost_model::sample::{Flow, Socket};
use wirecost_model::usage::LinkDelta;

use super::*;

/// 10 Gbit/s over 0.1 ms, with everything to spare.
fn fine() -> Evidence {
    Evidence {
        rate: 1e10,
        speed: None,
        busiest: [0.5, 0.6],
        loss: 0.0,
        round_trip: [1e-4, 1e-4],
        buffers: [4e6, 6e6],
        flows: 1.0,
        is_generator_bound: false,
        one_machine: false,
        drops: Vec::new(),
    }
}

#[test]
fn each_limit_is_named_from_the_figures_that_show_it() {
    let cases = [
        (Limit::Unknown, fine()),
        (
            Limit::ReceiverCore,
            Evidence {
                busiest: [0.97, 0.99],
                loss: 0.01,
                ..fine()
            },
        ),
        (
            Limit::SenderCore,
            Evidence {
                busiest: [0.97, 0.5],
                ..fine()
            },
        ),
        (
            Limit::SenderCore,
            Evidence {
                busiest: [0.99, 0.83],
                ..fine()
            },
        ),
        (
            Limit::Line,
            Evidence {
                rate: 0.94e9,
                speed: Some(1e9),
                busiest: [0.1, 0.99],
                ..fine()
            },
        ),
        // A veth's speed is nominal.
        (
            Limit::ReceiverCore,
            Evidence {
                rate: 3e10,
                speed: Some(1e10),
                busiest: [0.5, 1.0],
                ..fine()
            },
        ),
        (
            Limit::Loss,
            Evidence {
                rate: 5e7,
                loss: 0.01,
                round_trip: [0.0101, 0.01],
                ..fine()
            },
        ),
        (
            Limit::Path,
            Evidence {
                rate: 1e8,
                loss: 0.002,
                round_trip: [0.02, 1e-4],
                ..fine()
            },
        ),
        (
            Limit::Window,
            Evidence {
                rate: 1.3e7,
                round_trip: [0.0201, 0.02],
                buffers: [87_000.0, 65_536.0],
                ..fine()
            },
        ),
        (
            Limit::Generator,
            Evidence {
                is_generator_bound: true,
                ..fine()
            },
        ),
    ];
    for (limit, evidence) in cases {
        let found = evidence.diagnose();
        assert_eq!(found.limit, limit, "{found:?}");
    }
    let window = Evidence {
        rate: 1.3e7,
        round_trip: [0.0201, 0.02],
        buffers: [87_000.0, 65_536.0],
        ..fine()
    };
    assert_eq!(
        window.diagnose().evidence,
        "33 kB are under way at a round trip of 20.100 ms, in a receive buffer of 66 kB"
    );
}

#[test]
fn a_full_core_of_one_machine_may_be_either_hosts() {
    let full = Evidence {
        busiest: [0.98, 0.98],
        ..fine()
    };
    let here = Evidence {
        one_machine: true,
        ..full.clone()
    };
    assert_eq!(
        [full, here].map(|evidence| evidence.diagnose().evidence),
        [
            "the kernel keeps it busy for 98 % of the time",
            "the kernel keeps it busy for 98 % of the time; both hosts are one machine, and it may be a core of either"
        ]
    );
}

/// 2 % of the segments are sent again; device and cores of the receiver dropped some of them.
fn lossy() -> Sample {
    let sender = Socket {
        data_segs_out: 10_000,
        retransmits: 200,
        rtt_us: 10_000,
        min_rtt_us: 9_900,
        ..Socket::default()
    };
    let flow = Flow {
        bytes: 1_000_000,
        back_bytes: 0,
        sender: Some(sender),
        receiver: None,
    };
    let rx_dropped = |rx_dropped| LinkDelta {
        rx_dropped,
        ..LinkDelta::default()
    };
    let links = [("eth0", 150), ("guest:eth0", 150), ("eth1", 1)];
    Sample {
        loads: vec![LoadResult {
            flows: vec![flow],
            ..fixtures::stream(1_000_000)
        }],
        sender: Some(HostUsage {
            backlog_drops: 50,
            ..fixtures::usage(1.0, 0.1)
        }),
        receiver: Some(HostUsage {
            backlog_drops: 50,
            links: links
                .map(|(name, packets)| (name.to_owned(), rx_dropped(packets)))
                .into(),
            ..fixtures::usage(1.0, 0.1)
        }),
        ..fixtures::sample(0, 0)
    }
}

#[test]
fn loss_is_told_with_where_the_packets_were_dropped() {
    let samples = [lossy(), lossy()];
    let evidence = Evidence {
        one_machine: true,
        ..Evidence::of(samples.iter(), None).expect("evidence")
    };
    let found = evidence.diagnose();
    assert_eq!(found.limit, Limit::Loss);
    assert_eq!(
        found.evidence,
        "2.00 % of segments are sent again, at a round trip of 10.000 ms that does not grow under load; dropped: 300 packets \
         by eth0 of b (rx_dropped), 100 packets in the backlog of a core of b (softnet_stat)"
    );
    let places: Vec<_> = found
        .drops
        .iter()
        .map(|drops| (drops.host, drops.device.as_deref(), drops.counter))
        .collect();
    assert_eq!(
        places,
        [('b', Some("eth0"), "rx_dropped"), ('b', None, "backlog")]
    );
}

#[test]
fn drops_without_a_segment_sent_again_are_other_traffic() {
    let mut sample = lossy();
    for flow in &mut sample.loads[0].flows {
        let sender = flow.sender.as_mut().expect("a socket");
        sender.retransmits = 0;
    }
    let evidence = Evidence::of([&sample].into_iter(), None).expect("evidence");
    assert_eq!(evidence.drops, []);
}

#[test]
fn of_two_samples_the_median_is_between_them() {
    let sample = |bytes| Sample {
        loads: vec![fixtures::stream(bytes)],
        ..fixtures::sample(0, 0)
    };
    let samples = [sample(4_000), sample(1_000), sample(2_000)];
    let rates = [1, 2, 3]
        .map(|count| Evidence::of(samples[..count].iter(), None).map(|evidence| evidence.rate));
    assert_eq!(rates, [32e3, 20e3, 16e3].map(Some));
}

#[test]
fn without_a_valid_sample_there_is_no_evidence() {
    assert_eq!(Evidence::of(std::iter::empty(), None), None);
}
