//! The emulated line where the kernel has fq: its rate over 100 ms, and that what waits is released in steps. Read from
//! the kernel's own trace of what the underlay devices send.

use serde_json::Value;

use crate::machine::Machine;
use crate::record::measured;
use crate::steps::Step;

pub(crate) const AT_ITS_RATE: Step = Step {
    name: "a line by fq",
    looks_at: "packets of MTU 1500 and 9000, plain and in eBPF's VXLAN, at 20 Mbit/s in steps of 10 ms: the rate within 0.5 %, \
               and packets that leave together",
    needs: &["fq", "ebpf"],
    run: at_its_rate,
};

pub(crate) const IN_A_RUN: Step = Step {
    name: "a run has its line by fq",
    looks_at: "none and VXLAN, with super-packets and without: the record says fq, and no sample is above the line",
    needs: &["fq", "ebpf", "vxlan"],
    run: in_a_run,
};

/// Seconds of a window that the rate has to be right over.
const WINDOW_S: f64 = 0.1;
/// How far it may be off.
const OFF: f64 = 0.005;
/// What a frame has on the line beside what the kernel counts: preamble 8, FCS 4, gap 12.
const UNSEEN: u64 = 24;

/// A guest that sends more than the line takes: `crates/vtep/tests/paced`.
struct Case {
    /// The test that does so.
    name: &'static str,
    rate_mbit: u64,
    release_us: u64,
}

/// A packet that a device has sent: microseconds of `CLOCK_MONOTONIC`, and bytes on the line.
type Sent = (u64, u64);

/// Both frame sizes, with and without a tunnel, at a rate that an emulated processor keeps up with.
fn at_its_rate(machine: &mut Machine) {
    for name in [
        "paced_1500_none",
        "paced_1450_vxlan",
        "paced_9000_none",
        "paced_8950_vxlan",
    ] {
        let case = Case {
            name,
            rate_mbit: 20,
            release_us: 10_000,
        };
        let found = Found::of(&sent(machine, &case), &case);
        println!("{}: {name}: {found:?}", machine.release);
        found.check();
    }
}

/// What the underlay's device sends in a case.
fn sent(machine: &mut Machine, case: &Case) -> Vec<Sent> {
    let script = format!(
        "cd /sys/kernel/tracing; [ -e trace ] || {{ mount -t tracefs tracefs . && cd /sys/kernel/tracing; }}\n\
         echo 0 >tracing_on; echo mono >trace_clock; echo 4096 >buffer_size_kb\n\
         echo 'name == \"under0\" && len > 500' >events/net/net_dev_xmit/filter\n\
         echo 1 >events/net/net_dev_xmit/enable; echo >trace; echo 1 >tracing_on\n\
         echo 4000000 >/proc/sys/net/core/wmem_default; WIRECOST_REQUIRE_ROOT=1 tunnels --test-threads 1 --nocapture {} >/tmp/shown 2>&1 || {{ cat /tmp/shown; exit 1; }}\n\
         echo 0 >tracing_on; echo 0 >events/net/net_dev_xmit/enable; echo 212992 >/proc/sys/net/core/wmem_default\n\
         sed -n 's/.* \\([0-9]*\\)\\.\\([0-9]*\\): net_dev_xmit: .* len=\\([0-9]*\\) .*/\\1\\2 \\3/p' trace",
        case.name
    );
    // `... 12.345678: net_dev_xmit: dev=under0 skbaddr=... len=1514 rc=0`
    let lines = machine.sh(120, &script).fine();
    lines
        .lines()
        .map(|line| {
            let (at, len) = line.split_once(' ').expect("two numbers");
            let number = |text: &str| text.parse::<u64>().expect("a number");
            (number(at), number(len) + UNSEEN)
        })
        .collect()
}

/// A run says that fq emulates its line, with super-packets and without, and none of its samples passes more than the
/// line carries.
fn in_a_run(machine: &mut Machine) {
    let (cells, samples) = measured(
        machine,
        "name: line\nunderlay: { mtu: 9000, rate: 100mbit, release: 500us }\nguest_mtu: [1500, max]\n\
         encapsulation: [none, vxlan]\ndatapath: kernel\noffload: [none, tunnel]\nload: { tcp-stream: { rate: 200mbit } }\n\
         repeat: { rounds: 1, seconds: 0.5, warmup: 0.2 }\n",
        240,
    );
    let head = machine.sh(10, "cat /tmp/run/run.json").fine();
    let head: Value = serde_json::from_str(&head).expect("run.json");
    let line = &head["environment"]["line"];
    assert_eq!(line["by"], "fq", "{line}");
    assert_eq!(line["step_us"], 500, "{line}");
    assert_eq!(samples.len(), cells.len());
    for sample in &samples {
        let cell = &cells[sample["cell"].as_u64().expect("cell") as usize];
        let levels = &cell["levels"];
        assert!(sample["invalid"].is_null(), "{levels}: {sample}");
        let load = &sample["loads"][0];
        let bytes = load["stream"]["bytes"].as_f64().expect("bytes");
        let gbps = bytes * 8.0 / load["seconds"].as_f64().expect("seconds") / 1e9;
        println!("{}: {levels}: {gbps:.4} Gbit/s", machine.release);
        // Of what waited unread when the window began, 60 kB and more are counted in it.
        assert!((0.001..0.105).contains(&gbps), "{levels}: {gbps}");
    }
}

/// What a trace shows.
#[derive(Debug)]
struct Found {
    /// By how much the rate is off from the first third of all packets to the last, as a fraction.
    off: f64,
    /// The same of each window, the largest last.
    windows: Vec<f64>,
    /// Share of the packets that were sent right behind another, within half of the time that a frame takes on the
    /// line: none of those that are released one by one.
    together: f64,
    /// What a frame is of a window.
    one_frame: f64,
    /// Packets in a step: the median.
    in_a_step: usize,
    /// How many have room in one.
    room: f64,
}

impl Found {
    fn of(sent: &[Sent], case: &Case) -> Self {
        let (step, steady) = (case.release_us, steady(sent));
        assert!(steady.len() > 50, "{} packets", steady.len());
        let bytes_per_us = case.rate_mbit as f64 / 8.0;
        // Windows begin half a step after a release, so that a timer that is a little late puts nothing into the next.
        let from = (steady[0].0 / step + 1) * step + step / 2;
        let length = (WINDOW_S * 1e6) as u64 / step * step;
        let number = (steady[steady.len() - 1].0 - from) / length;
        let bytes = |from: u64, to: u64| -> u64 {
            let within = steady.iter().filter(|(at, _)| (from..to).contains(at));
            within.map(|(_, bytes)| bytes).sum()
        };
        let off =
            |from: u64, to: u64| bytes(from, to) as f64 / ((to - from) as f64 * bytes_per_us) - 1.0;
        let mut windows: Vec<f64> = (0..number)
            .map(|window| off(from + window * length, from + (window + 1) * length))
            .collect();
        windows.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let mut counts: Vec<usize> = steady
            .chunk_by(|one, next| one.0 / step == next.0 / step)
            .map(<[Sent]>::len)
            .collect();
        counts.sort_unstable();
        let half_a_frame = steady[0].1 as f64 / bytes_per_us / 2.0;
        let follows = |two: &&[Sent]| ((two[1].0 - two[0].0) as f64) < half_a_frame;
        let together = steady.windows(2).filter(follows).count();
        Self {
            off: drift(steady, bytes_per_us),
            windows,
            together: together as f64 / steady.len() as f64,
            one_frame: steady[0].1 as f64 / (length as f64 * bytes_per_us),
            in_a_step: counts[counts.len() / 2],
            room: step as f64 * bytes_per_us / steady[0].1 as f64,
        }
    }

    fn check(&self) {
        assert!(self.off.abs() <= OFF, "{self:?}");
        // A frame is in a window or it is not.
        let median = self.windows[self.windows.len() / 2];
        assert!(median.abs() <= OFF.max(self.one_frame), "{self:?}");
        // All but the first of each step; some timers are late.
        let behind = (self.room - 1.0) / self.room;
        assert!(self.together > 0.6 * behind, "{self:?}");
        let whole = self.room.floor() as usize..=self.room.ceil() as usize;
        assert!(whole.contains(&self.in_a_step), "{self:?}");
    }
}

/// How far a packet is behind what the line can have sent by then grows by this, from the most punctual of the first
/// third to the most punctual of the last: late timers are not in it, since the line makes up for them.
fn drift(steady: &[Sent], bytes_per_us: f64) -> f64 {
    let mut before = 0;
    let late: Vec<(f64, f64)> = steady
        .iter()
        .map(|&(at, bytes)| {
            let late = at as f64 - f64::from(before) / bytes_per_us;
            before += bytes as u32;
            (late, at as f64)
        })
        .collect();
    let third = late.len() / 3;
    let punctual = |part: &[(f64, f64)]| {
        let least = part.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0));
        least.expect("packets")
    };
    let (first, last) = (
        punctual(&late[..third]),
        punctual(&late[late.len() - third..]),
    );
    (first.0 - last.0) / (last.1 - first.1)
}

/// The longest time in which the line never paused, less its beginning.
fn steady(sent: &[Sent]) -> &[Sent] {
    const PAUSE_US: u64 = 50_000;
    let without_pause = sent.chunk_by(|one, next| next.0 - one.0 < PAUSE_US);
    let longest = without_pause.max_by_key(|chunk| chunk.len()).unwrap_or(&[]);
    &longest[longest.len() / 8..]
}

#[test]
fn a_trace_in_steps_at_the_rate_is_told_from_one_that_is_not() {
    let case = Case {
        name: "planted",
        rate_mbit: 100,
        release_us: 1000,
    };
    // 12.304 Mbit/s times eight: each frame takes 123.04 us.
    let sent = |slower: f64, steps: bool| -> Vec<Sent> {
        let one = |n: u32| {
            let at = f64::from(n) * 123.04 * slower;
            let at = if steps {
                (at / 1000.0).ceil() * 1000.0
            } else {
                at
            };
            (at as u64, 1538)
        };
        (0..20_000).map(one).collect()
    };
    Found::of(&sent(1.0, true), &case).check();
    for (slower, steps) in [(1.01, true), (0.99, true), (1.0, false)] {
        let sent = sent(slower, steps);
        let wrong = std::panic::catch_unwind(|| Found::of(&sent, &case).check());
        assert!(wrong.is_err(), "{slower} {steps}");
    }
}
