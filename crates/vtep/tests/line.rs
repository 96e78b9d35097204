//! The line's program: when packets depart (`BPF_PROG_TEST_RUN`), and that it is attached and taken off. What holds
//! packets back is fq, which other kernels have (tests/kernels).

mod lab;

use lab::{Lab, allowed, echo};
use wirecost_model::ip::IpVersion::Ipv4;
use wirecost_vtep::{EdtProgram, Hook, LineRate};
use wirecost_wire::size_table::FrameSizes;

/// So slow that no call of these tests finds the line idle, however long it was kept from a core: a byte takes 0.8 ms.
const SLOW: u64 = 10_000;
const BYTE_NS: u64 = 800_000;
const SECOND_NS: u64 = 1_000_000_000;

fn pace(step_ns: u64, limit_ns: u64, frames: FrameSizes) -> LineRate {
    LineRate {
        rate: SLOW,
        step_ns,
        limit_ns,
        frames,
        links: 1,
        classes: false,
    }
}

fn line() -> EdtProgram {
    EdtProgram::load("lo").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_packet_takes_as_much_of_the_line_as_the_frames_it_becomes() {
    if !allowed() {
        return;
    }
    for frames in [
        FrameSizes::new(576, 0, Ipv4, 0),
        FrameSizes::new(576, 50, Ipv4, 0),
        FrameSizes::new(1500, 0, Ipv4, 4),
    ] {
        let pace = pace(0, 100 * SECOND_NS, frames);
        let mut line = line();
        let mut departs = |bytes: u32| {
            let run = line.dry_run(&pace, &vec![0; bytes as usize]);
            run.expect("tried").expect("it departs")
        };
        // A frame that fills its segments, one that does not, and padded ones.
        let full = frames.header + 3 * frames.payload;
        let lengths = [200, 60, 14, full, full - 1, full + 1, 1514, 3000];
        let mut expected = departs(3000) + u64::from(frames.wire_bytes(3000)) * BYTE_NS;
        for bytes in lengths.into_iter().filter(|&bytes| bytes < 3200) {
            assert_eq!(departs(bytes), expected, "{bytes} bytes of {frames:?}");
            expected += u64::from(frames.wire_bytes(bytes)) * BYTE_NS;
        }
    }
}

#[test]
fn what_waits_departs_in_steps_and_what_does_not_at_once() {
    if !allowed() {
        return;
    }
    let frames = FrameSizes::new(1500, 0, Ipv4, 0);
    // Some five frames of 100 bytes in each.
    let step_ns = 5 * 124 * BYTE_NS;
    let pace = pace(step_ns, 100 * SECOND_NS, frames);
    let mut line = line();
    let mut departs = |bytes: usize| {
        let run = line.dry_run(&pace, &vec![0; bytes]);
        run.expect("tried").expect("it departs")
    };
    // It takes the line for more than a second: the next call does not find it idle.
    let first = departs(1400);
    assert_ne!(first % step_ns, 0, "an idle line has no steps");
    let mut by_step = std::collections::BTreeMap::<u64, u32>::new();
    for nth in 1..=50 {
        let at = departs(100);
        let turn = first + (1424 + (nth - 1) * 124) * BYTE_NS;
        assert_eq!(at, turn.next_multiple_of(step_ns), "the {nth}th");
        *by_step.entry(at / step_ns).or_default() += 1;
    }
    let counts: Vec<u32> = by_step.into_values().collect();
    assert!(counts.len() >= 10, "{counts:?}");
    // All but the first and the last are whole.
    assert!(
        counts[1..counts.len() - 1].iter().all(|&n| n == 5),
        "{counts:?}"
    );
}

/// A TCP segment from 10.0.0.1 to 10.0.0.2, or between fd00::1 and fd00::2, with a tag or without.
fn segment(ipv6: bool, tagged: bool, from_port: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    if tagged {
        frame.extend([0x81, 0, 0, 7]);
    }
    if ipv6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, 6, 64]);
        for last in [1, 2] {
            frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
    } else {
        frame.extend([8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 6, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    }
    frame.extend(from_port.to_be_bytes());
    frame.extend(5001u16.to_be_bytes());
    frame.resize(frame.len() + 36, 0);
    frame
}

#[test]
fn flows_are_divided_among_links_and_each_keeps_to_its_own() {
    if !allowed() {
        return;
    }
    for (ipv6, tagged) in [(false, false), (true, false), (false, true)] {
        for links in [1u32, 2, 4, 8] {
            let pace = LineRate {
                links,
                // A segment takes 8 seconds.
                rate: 100,
                ..pace(0, 1000 * SECOND_NS, FrameSizes::new(1500, 0, Ipv4, 0))
            };
            let mut line = line();
            let mut departs = |port: u16| {
                let run = line.dry_run(&pace, &segment(ipv6, tagged, port));
                run.expect("tried").expect("it departs")
            };
            // Ports as the kernel chooses them one after the other: as many flows as links, each on another.
            let ports: Vec<u16> = (0..links as u16).map(|nth| 40_000 + 2 * nth).collect();
            let first: Vec<u64> = ports.iter().map(|port| departs(*port)).collect();
            let (earliest, latest) = (first.iter().min().unwrap(), first.iter().max().unwrap());
            assert!(
                latest - earliest < 5 * SECOND_NS,
                "{links}: one waited: {first:?}"
            );
            for (port, before) in ports.iter().zip(&first) {
                let waits = departs(*port) - before;
                assert!(
                    waits > 5 * SECOND_NS,
                    "{links} links, port {port}: {waits} ns"
                );
            }
        }
    }
}

#[test]
fn beyond_the_limit_packets_are_dropped_and_take_nothing() {
    if !allowed() {
        return;
    }
    let limit_ns = 10 * SECOND_NS;
    let pace = pace(0, limit_ns, FrameSizes::new(1500, 0, Ipv4, 0));
    let mut line = line();
    let frame = [0; 1400];
    let each = 1424 * BYTE_NS;
    let mut departed = Vec::new();
    let most = (limit_ns / each) as usize;
    for _ in 0..most + 2000 {
        departed.extend(line.dry_run(&pace, &frame).expect("tried"));
    }
    // Time goes on meanwhile, which makes room for more.
    assert!(
        (most..most + 1000).contains(&departed.len()),
        "{} of {most}",
        departed.len()
    );
    let apart: Vec<u64> = departed.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(
        apart.iter().all(|&ns| ns == each),
        "no hole where one was dropped: {apart:?}"
    );
}

#[test]
fn it_is_put_behind_a_devices_egress_and_taken_off_again() {
    if !allowed() {
        return;
    }
    let lab = Lab::new(1500, 1500);
    let reaches = || echo(&lab.hosts[0], &lab.hosts[1], Lab::host(2, false), 1000);
    // The first packet finds it idle.
    let is_full = || {
        reaches();
        !reaches()
    };
    for hook in [Hook::Best, Hook::Clsact] {
        assert!(reaches(), "{hook:?}: no line yet");
        let mut line = EdtProgram::load("under0").unwrap_or_else(|error| panic!("{error}"));
        // Nothing may wait, and a frame takes minutes.
        let none = LineRate {
            rate: 8,
            step_ns: 0,
            limit_ns: 0,
            frames: FrameSizes::new(1500, 0, Ipv4, 0),
            links: 1,
            classes: false,
        };
        let host = &lab.hosts[0];
        host.run(|| line.set(&none, hook)).expect("attached");
        assert!(is_full(), "{hook:?}: the line is set");
        host.run(|| line.lift()).expect("lifted");
        assert!(reaches(), "{hook:?}: the line was lifted");
        host.run(|| line.set(&none, hook)).expect("attached again");
        assert!(is_full(), "{hook:?}: it is there again");
        host.run(|| drop(line));
        assert!(reaches(), "{hook:?}: it went with its owner");
    }
}
