//! The examples: built-in plans, published studies, and each shape that a result can have.

use wirecost_answer::Question;
use wirecost_model::curve::{Curve, Knee, Step};
use wirecost_model::effect::RemarkKind;
use wirecost_model::load::Workload;
use wirecost_model::metric::Metric::{
    self, ClientCpu, Cpu, Delivered, LatencyMedian, LatencyP99, ReceiverCpu, SenderCpu, ServerCpu,
    Throughput, Transactions,
};

use super::question::{At, Case};

const MTU: (&str, &[&str]) = ("guest_mtu", &["1500", "8900"]);
const VXLAN: (&str, &[&str]) = ("encapsulation", &["none", "vxlan"]);
const OFFLOAD: (&str, &[&str]) = ("offload", &["none", "tunnel"]);

pub(crate) fn all() -> Vec<(&'static str, Question)> {
    let mut cases = plans();
    cases.extend(studies());
    cases.extend(shapes());
    cases
}

/// One of two figures by a factor's level.
fn by<'a>(key: &'a str, level: &'a str, yes: f64, no: f64) -> impl Fn(At) -> f64 + use<'a> {
    move |at| if at.is(key, level) { yes } else { no }
}

/// Of one factor, one figure.
fn simple(metric: Metric, ratio: f64, width: f64) -> Case {
    Case::of(&[MTU])
        .width(width)
        .figure(metric, by("guest_mtu", "8900", 5.0 * ratio, 5.0))
}

fn built_in() -> Case {
    let figure = |none: [f64; 4], vxlan: [f64; 4]| {
        move |at: At| {
            let of = if at.is("encapsulation", "none") {
                none
            } else {
                vxlan
            };
            of[usize::from(at.is("guest_mtu", "8900")) * 2
                + usize::from(at.is("offload", "tunnel"))]
        }
    };
    Case::of(&[VXLAN, MTU, OFFLOAD])
        .line(|at| {
            let slow = at.is("guest_mtu", "1500") && at.is("offload", "none");
            if slow { 0.5 } else { 0.99 }
        })
        .width(0.002)
        .figure(
            Throughput,
            figure([5.22, 9.41, 9.90, 9.90], [3.38, 9.12, 9.83, 9.84]),
        )
        .width(0.03)
        .figure(
            SenderCpu,
            figure([13.8, 1.9, 3.4, 2.0], [21.3, 1.9, 4.6, 2.1]),
        )
        .figure(
            ReceiverCpu,
            figure([19.4, 1.7, 3.5, 1.7], [28.7, 1.7, 5.1, 1.8]),
        )
        .undecided(None, |effect| {
            let tunnel = effect
                .where_
                .get("offload")
                .is_some_and(|level| level == "tunnel");
            tunnel && effect.metric.is_cpu()
        })
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
pub(crate) fn plans() -> Vec<(&'static str, Question)> {
    let header = |at: At| -> f64 {
        match at.of("encapsulation") {
            "vlan" => 0.99,
            "vxlan" => 0.86,
            "geneve options=ovn" => 0.84,
            _ => 1.0,
        }
    };
    let checksum = |at: At| {
        if at.is("udp_checksum", "on") {
            0.9
        } else {
            1.0
        }
    };
    let stream = move |at: At| {
        let mtu = if at.is("guest_mtu", "8900") {
            9.6
        } else {
            5.0 * header(at) * checksum(at)
        };
        at.is("load", "tcp-stream").then_some(mtu)
    };
    let asked =
        move |base: f64| move |at: At| at.is("load", "tcp-rr").then_some(base * header(at).sqrt());
    let overlay = Case::of(&[
        (
            "encapsulation",
            &["none", "vlan", "vxlan", "geneve options=ovn"],
        ),
        ("udp_checksum", &["off", "on"]),
        MTU,
        ("load", &["tcp-stream", "tcp-rr"]),
    ])
    .without("udp_checksum", |at| {
        at.is("encapsulation", "none") || at.is("encapsulation", "vlan")
    })
    .load("tcp-stream", Throughput, stream)
    .load("tcp-rr", Transactions, asked(16_000.0))
    .load("tcp-rr", LatencyP99, move |at| {
        Some(1e6 / asked(9000.0)(at)?)
    });
    let latency = Case::of(&[MTU, VXLAN, ("bulk", &["none", "tcp-stream"])])
        .worth(0.1)
        .load("bulk", Throughput, |at| {
            let fast = if at.is("guest_mtu", "8900") { 9.8 } else { 5.2 };
            at.is("bulk", "tcp-stream").then_some(fast)
        })
        .load("ping", Transactions, |at| {
            Some(if at.is("bulk", "none") {
                18_000.0
            } else {
                320.0
            })
        })
        .load("ping", LatencyP99, |at| {
            let loaded = if at.is("guest_mtu", "8900") {
                4800.0
            } else {
                4500.0
            };
            Some(if at.is("bulk", "none") { 60.0 } else { loaded })
        });
    let small = Case::of(&[MTU, VXLAN])
        .figure(Throughput, |at| {
            if at.is("encapsulation", "vxlan") {
                1.1
            } else {
                1.3
            }
        })
        .figure(SenderCpu, |at| {
            if at.is("encapsulation", "vxlan") {
                80.0
            } else {
                70.0
            }
        });
    let ipv6 = Case::of(&[
        ("underlay.ip", &["ipv4", "ipv6"]),
        ("guest_ip", &["ipv4", "ipv6"]),
        VXLAN,
    ])
    .worth(0.02)
    .without("underlay.ip", |at| at.is("encapsulation", "none"))
    .width(0.004)
    .figure(Throughput, |at| {
        let outer = if at.is("underlay.ip", "ipv6") {
            0.97
        } else {
            1.0
        };
        let inner = if at.is("guest_ip", "ipv6") {
            0.985
        } else {
            1.0
        };
        let header = if at.is("encapsulation", "vxlan") {
            0.7
        } else {
            1.0
        };
        5.0 * outer * inner * header
    });
    vec![
        ("jumbo-or-not", built_in().ask()),
        ("overlay-or-not", overlay.ask()),
        ("ovn-or-not", ovn().ask()),
        ("latency-or-not", latency.ask()),
        ("many-small-sessions", small.ask()),
        ("ipv6-or-not", ipv6.ask()),
        ("storage-or-not", storage().ask()),
        ("migration-or-not", migration().ask()),
        ("mtu-scan", scan().ask()),
    ]
}

/// Frames cost so much each and so much a byte; in the tunnel there is a step behind 2000.
fn scan() -> Case {
    let per_frame = |at: At| {
        let mtu: f64 = at.of("guest_mtu").parse().unwrap_or(1500.0);
        let tunnel = at.is("encapsulation", "vxlan");
        let (each, step) = match (tunnel, mtu > 2000.0) {
            (true, true) => (6000.0, 0.8),
            (true, false) => (6000.0, 1.0),
            _ => (4000.0, 1.0),
        };
        10.0 * step / (each / mtu + 1.0)
    };
    let knee = |at, share, whole| {
        Some(Knee {
            at,
            share,
            total_gain: whole,
        })
    };
    let step = Step {
        from: 2000.0,
        to: 2200.0,
        ratio: 0.85,
    };
    Case::of(&[
        VXLAN,
        (
            "guest_mtu",
            &[
                "1500", "1800", "2000", "2200", "2500", "3000", "4000", "5000", "6000", "7000",
                "8000", "9000",
            ],
        ),
    ])
    .width(0.01)
    .figure(Throughput, per_frame)
    .curve(
        "guest_mtu",
        ("encapsulation", "none"),
        Curve {
            knee: knee(4000.0, 0.83, 2.5),
            steps: Vec::new(),
        },
    )
    .curve(
        "guest_mtu",
        ("encapsulation", "vxlan"),
        Curve {
            knee: knee(5000.0, 0.81, 2.4),
            steps: vec![step],
        },
    )
}

/// In userspace every packet costs the same, whatever its header; connection tracking costs more than a header.
fn ovn() -> Case {
    let speed = |at: At| {
        let header = if at.is("encapsulation", "none") {
            1.0
        } else {
            0.8
        };
        header * by("udp_checksum", "on", 0.97, 1.0)(at) * by("acl", "allow-related", 0.7, 1.0)(at)
    };
    Case::of(&[
        ("encapsulation", &["none", "vxlan", "geneve options=ovn"]),
        ("udp_checksum", &["off", "on"]),
        ("acl", &["none", "allow-related"]),
    ])
    .without("udp_checksum", |at| at.is("encapsulation", "none"))
    .width(0.01)
    .figure(Throughput, move |at| 1.2 * speed(at))
    .figure(SenderCpu, move |at| 90.0 / speed(at))
    .figure(ReceiverCpu, move |at| 95.0 / speed(at))
}

/// Small reads are bound by the work for each, large ones by their bytes.
fn storage() -> Case {
    let size = |at: At| match at.of("io_size") {
        "4KiB" => 4.0,
        "16KiB" => 16.0,
        "64KiB" => 64.0,
        _ => 1024.0,
    };
    // Microseconds of one read: a constant, and what its frames take.
    let read_us = move |at: At| {
        let frame = if at.is("guest_mtu", "8900") { 8.9 } else { 1.5 };
        let tunnel = at.is("encapsulation", "vxlan");
        let each = if tunnel { 1.5 } else { 1.0 };
        5.0 + f64::ceil(size(at) / frame) * each
    };
    Case::of(&[MTU, VXLAN, ("io_size", &["4KiB", "16KiB", "64KiB", "1MiB"])])
        .worth(0.1)
        .width(0.02)
        .runs("storage", Workload::Storage)
        .load("storage", Transactions, move |at| Some(1e6 / read_us(at)))
        .load("storage", LatencyP99, move |at| Some(40.0 * read_us(at)))
        .load("storage", ClientCpu, move |at| Some(read_us(at)))
        .load("storage", ServerCpu, move |at| Some(read_us(at) * 0.8))
}

fn migration() -> Case {
    let seconds = |at: At| {
        let machines: f64 = at.of("machines").parse().unwrap_or(1.0);
        let each = if at.is("guest_mtu", "9000") {
            0.139
        } else {
            0.150
        };
        machines * each
    };
    Case::of(&[
        ("guest_mtu", &["1500", "9000"]),
        ("machines", &["1", "4", "8"]),
    ])
    .width(0.02)
    .runs("migration", Workload::Migration)
    .load("migration", Metric::MoveTime, move |at| Some(seconds(at)))
    .load("migration", Metric::Downtime, move |at| {
        Some(100.0 * seconds(at))
    })
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
pub(crate) fn studies() -> Vec<(&'static str, Question)> {
    let tagged = Case::of(&[
        ("encapsulation", &["vlan", "vxlan"]),
        ("guest_mtu", &["1500", "8900"]),
        ("streams", &["1", "4"]),
    ])
    .line(|at| {
        if at.is("guest_mtu", "8900") {
            0.96
        } else {
            0.6
        }
    })
    .width(0.02)
    .figure(Throughput, |at| {
        match (at.of("encapsulation"), at.of("guest_mtu"), at.of("streams")) {
            ("vlan", "1500", "1") => 7.40,
            ("vlan", "1500", _) => 6.97,
            ("vlan", _, _) => 9.87,
            (_, "1500", "1") => 4.60,
            (_, "1500", _) => 4.37,
            (_, _, "1") => 9.33,
            _ => 9.78,
        }
    });
    let rr = |at: At| match (at.of("encapsulation"), at.of("message"), at.of("streams")) {
        ("vxlan", "1KiB", "8") => 109_000.0,
        ("vxlan", "1KiB", _) => 221_400.0,
        ("vxlan", _, "8") => 34_330.0,
        ("vxlan", _, _) => 63_400.0,
        (_, "1KiB", "8") => 135_000.0,
        (_, "1KiB", _) => 241_900.0,
        (_, _, "8") => 37_950.0,
        _ => 63_060.0,
    };
    let stream_cpu = |at: At| match (at.of("encapsulation"), at.of("message"), at.of("streams")) {
        ("vxlan", "1KiB", "8") => 37.36,
        ("vxlan", "1KiB", _) => 39.75,
        ("vxlan", _, "8") => 24.01,
        ("vxlan", _, _) => 26.92,
        (_, "1KiB", "8") => 31.50,
        (_, "1KiB", _) => 36.53,
        (_, _, "8") => 21.32,
        _ => 22.83,
    };
    let geneve = Case::of(&[
        (
            "encapsulation",
            &["vxlan", "geneve options=ovn udp_checksum=on"],
        ),
        ("message", &["1KiB", "16KiB"]),
        ("streams", &["8", "64"]),
        ("load", &["tcp-stream", "tcp-rr"]),
    ])
    .line(|_| 0.98)
    .width(0.02)
    .load("tcp-stream", Throughput, |at| {
        at.is("load", "tcp-stream").then_some(9.1)
    })
    .load("tcp-stream", Cpu, move |at| {
        at.is("load", "tcp-stream").then(|| stream_cpu(at))
    })
    .load("tcp-rr", Transactions, move |at| {
        at.is("load", "tcp-rr").then(|| rr(at))
    });
    let vsphere = Case::of(&[
        VXLAN,
        ("message", &["16KiB", "128B"]),
        ("guests", &["1", "8"]),
    ])
    .figure(Throughput, |at| {
        let guests = if at.is("guests", "8") { 8.0 } else { 1.0 };
        if at.is("message", "16KiB") {
            9.4
        } else {
            0.5 * guests
        }
    })
    .figure(SenderCpu, |at| {
        let vxlan = at.is("encapsulation", "vxlan");
        let (base, more) = if at.is("message", "16KiB") {
            (20.0, 2.0)
        } else {
            (200.0, 60.0)
        };
        if vxlan { base + more } else { base }
    })
    .figure(ReceiverCpu, |at| {
        let vxlan = at.is("encapsulation", "vxlan");
        let (base, more) = if at.is("message", "16KiB") {
            (30.0, 10.0)
        } else {
            (200.0, 60.0)
        };
        if vxlan { base + more } else { base }
    });
    let vmotion = Case::of(&[
        ("guest_mtu", &["1500", "9000"]),
        ("guests", &["1", "4", "8"]),
    ])
    .width(0.03)
    .figure(Throughput, |at| {
        let seconds = match (at.of("guest_mtu"), at.of("guests")) {
            ("1500", "1") => 30.24,
            ("1500", "4") => 89.69 / 4.0,
            ("1500", _) => 203.82 / 4.0,
            (_, "1") => 26.31,
            (_, "4") => 75.71 / 4.0,
            _ => 252.14 / 4.0,
        };
        160.0 / seconds
    });
    let storage = Case::of(&[
        ("guest_mtu", &["1500", "9000"]),
        ("message", &["4KiB", "16KiB", "64KiB"]),
    ])
    .width(0.02)
    .load("read", Transactions, |at| {
        let jumbo = at.is("guest_mtu", "9000");
        Some(match (at.of("message"), jumbo) {
            ("4KiB", false) => 50_000.0,
            ("4KiB", true) => 54_500.0,
            ("16KiB", false) => 40_000.0,
            ("16KiB", true) => 49_200.0,
            _ => 17_800.0,
        })
    })
    .load("read", LatencyP99, |at| {
        let jumbo = at.is("guest_mtu", "9000");
        Some(match (at.of("message"), jumbo) {
            ("4KiB", false) => 900.0,
            ("4KiB", true) => 820.0,
            ("16KiB", false) => 1000.0,
            ("16KiB", true) => 680.0,
            _ => 2100.0,
        })
    })
    .load("read", ClientCpu, |at| {
        Some(if at.is("guest_mtu", "9000") {
            9.9
        } else {
            13.9
        })
    });
    vec![
        (
            "study: jumbo frames and VXLAN in software at 10 Gbit/s",
            tagged.ask(),
        ),
        ("study: OVN's Geneve against VXLAN", geneve.ask()),
        (
            "study: VXLAN on a hypervisor, small and large messages",
            vsphere.ask(),
        ),
        (
            "study: jumbo frames and migrations at a time",
            vmotion.ask(),
        ),
        ("study: jumbo frames for IP storage", storage.ask()),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn shapes() -> Vec<(&'static str, Question)> {
    let everything = |_: &wirecost_model::effect::Effect| true;
    let disturbed = built_in().not_comparable(RemarkKind::Disturbed, |effect| {
        effect
            .where_
            .get("guest_mtu")
            .is_none_or(|level| level == "8900")
    });
    let reverses = Case::of(&[MTU, VXLAN]).figure(Throughput, |at| {
        let jumbo = at.is("guest_mtu", "8900");
        match (at.is("encapsulation", "vxlan"), jumbo) {
            (_, false) => 5.0,
            (true, true) => 4.0,
            (false, true) => 7.0,
        }
    });
    let encapsulations = Case::of(&[("encapsulation", &["none", "vlan", "vxlan", "geneve"]), MTU])
        .figure(Throughput, |at| {
            let wide = at.is("guest_mtu", "8900");
            match at.of("encapsulation") {
                "none" | "vlan" => 5.0,
                _ if wide => 4.9,
                "vxlan" => 3.4,
                _ => 3.3,
            }
        });
    let mtus = Case::of(&[("guest_mtu", &["1500", "4000", "8900"])]).figure(Throughput, |at| {
        match at.of("guest_mtu") {
            "1500" => 4.0,
            "4000" => 6.0,
            _ => 9.5,
        }
    });
    let full = Case::of(&[VXLAN, OFFLOAD])
        .line(|_| 0.99)
        .width(0.003)
        .figure(Throughput, |at| {
            if at.is("encapsulation", "vxlan") {
                9.12
            } else {
                9.41
            }
        })
        .figure(Cpu, |at| {
            if at.is("offload", "tunnel") {
                4.0
            } else {
                12.0
            }
        });
    let loads = Case::of(&[VXLAN, ("load", &["tcp-stream", "tcp-rr"])])
        .load("tcp-stream", Throughput, |at| {
            at.is("load", "tcp-stream")
                .then(|| by("encapsulation", "vxlan", 6.0, 9.0)(at))
        })
        .load("tcp-rr", Transactions, |at| {
            at.is("load", "tcp-rr")
                .then(|| by("encapsulation", "vxlan", 15_000.0, 16_000.0)(at))
        });
    let datagrams = Case::of(&[MTU])
        .figure(Throughput, by("guest_mtu", "8900", 4.0, 1.2))
        .figure(Delivered, by("guest_mtu", "8900", 99.9, 80.0));
    let gro = Case::of(&[("gro", &["gro on", "gro off"]), MTU]).figure(Throughput, |at| {
        match (at.of("gro"), at.of("guest_mtu")) {
            ("gro off", "1500") => 4.0,
            ("gro off", _) => 9.0,
            _ => 9.2,
        }
    });
    let paced = Case::of(&[MTU, ("rate", &["1k/s", "10k/s"])])
        .load("ping", Transactions, |at| {
            Some(if at.is("rate", "1k/s") {
                1000.0
            } else {
                10_000.0
            })
        })
        .load("ping", LatencyMedian, |at| {
            Some(if at.is("rate", "1k/s") { 50.0 } else { 80.0 })
        })
        .load("ping", LatencyP99, |at| {
            Some(if at.is("rate", "1k/s") { 90.0 } else { 900.0 })
        })
        .not_comparable(RemarkKind::FactorIsFigure, |effect| {
            effect.factor == "rate" && effect.metric == Transactions
        });
    let scattered = Case::of(&[("steering.queues", &["1", "2"]), MTU, VXLAN, OFFLOAD]).figure(
        Throughput,
        |at| {
            let odd = [
                at.is("guest_mtu", "8900"),
                at.is("encapsulation", "vxlan"),
                at.is("offload", "tunnel"),
            ];
            let odd = odd.iter().filter(|one| **one).count() % 2 == 1;
            if odd && at.is("steering.queues", "2") {
                6.0
            } else {
                5.0
            }
        },
    );
    let best_already =
        Case::of(&[VXLAN, MTU]).figure(Throughput, by("encapsulation", "vxlan", 8.0, 9.6));
    let steering = Case::of(&[("steering.rps", &["own", "off"])])
        .figure(Throughput, by("steering.rps", "off", 4.0, 8.0));
    let hosts = Case::of(&[VXLAN, MTU])
        .figure(SenderCpu, by("encapsulation", "vxlan", 10.0, 10.0))
        .figure(ReceiverCpu, by("encapsulation", "vxlan", 15.0, 10.0));
    let requests = Case::of(&[("datapath", &["kernel", "ebpf"])])
        .load("ask", Transactions, |at| {
            Some(by("datapath", "ebpf", 20_000.0, 17_000.0)(at))
        })
        .load("ask", ServerCpu, |at| {
            Some(by("datapath", "ebpf", 20.0, 24.0)(at))
        });
    let options = Case::of(&[
        VXLAN,
        ("load", &["bulk", "ask"]),
        ("bulk.streams", &["1", "8"]),
        ("bulk.message", &["1KiB", "128KiB"]),
    ])
    .without("bulk.streams", |at| at.is("load", "ask"))
    .without("bulk.message", |at| at.is("load", "ask"))
    .load("bulk", Throughput, |at| {
        let is_slow = at.is("bulk.streams", "8") && at.is("bulk.message", "1KiB");
        let value = if is_slow && at.is("encapsulation", "vxlan") {
            3.0
        } else {
            5.0
        };
        at.is("load", "bulk").then_some(value)
    })
    .load("ask", Transactions, |at| {
        at.is("load", "ask").then_some(9000.0)
    });
    let open = |why| {
        simple(Throughput, 1.2, 0.01)
            .undecided(why, everything)
            .ask()
    };
    let offloads = Case::of(&[("offload", &["none", "plain", "tunnel"]), VXLAN]).figure(
        Throughput,
        |at| match (at.of("offload"), at.of("encapsulation")) {
            ("none", "none") => 5.0,
            ("none", _) | ("plain", "vxlan") => 3.5,
            _ => 20.0,
        },
    );
    vec![
        ("half of the built-in plan disturbed", disturbed.ask()),
        ("one change pays", simple(Throughput, 1.9, 0.01).ask()),
        ("one change costs", simple(Throughput, 0.7, 0.01).ask()),
        (
            "one change makes no difference",
            simple(Throughput, 1.01, 0.01).ask(),
        ),
        (
            "one change gains, perhaps within the margin",
            simple(Throughput, 1.06, 0.03).ask(),
        ),
        (
            "one change loses, perhaps within the margin",
            simple(Throughput, 0.95, 0.03).ask(),
        ),
        ("one change is not known yet", open(None)),
        ("no pair of samples is valid", open(Some("no valid pair"))),
        (
            "one change is not comparable",
            simple(Throughput, 1.9, 0.01)
                .not_comparable(RemarkKind::Aggregation, everything)
                .ask(),
        ),
        (
            "a change pays with one level and costs with another",
            reverses.ask(),
        ),
        ("four encapsulations", encapsulations.ask()),
        ("three guest MTUs", mtus.ask()),
        ("three offload profiles", offloads.ask()),
        ("every cell fills the line", full.ask()),
        ("two loads, each by itself", loads.ask()),
        ("options of one of two loads", options.ask()),
        ("datagrams that are lost", datagrams.ask()),
        ("a factor of the plan's own", gro.ask()),
        ("a paced load", paced.ask()),
        ("effects that few words do not tell", scattered.ask()),
        ("the plan's first levels are the best", best_already.ask()),
        ("receive steering", steering.ask()),
        ("one host alone pays", hosts.ask()),
        ("requests by two datapaths", requests.ask()),
    ]
}
