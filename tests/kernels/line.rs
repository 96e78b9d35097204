//! The emulated line where the kernel has fq: its rate over 100 ms, and that what waits is released in steps. Read from the
//! kernel's own trace of what the underlay devices send.

use serde_json::Value;

use crate::machine::Machine;

/// Seconds of a window that the rate has to be right over.
const WINDOW_S: f64 = 0.1;
/// How far it may be off.
const OFF: f64 = 0.005;
/// What a frame has on the line beside what the kernel counts: preamble 8, FCS 4, gap 12.
const UNSEEN: u64 = 24;

/// A cell of a plan, in a run of its own.
struct Case {
    guest_mtu: u32,
    encapsulation: &'static str,
    rate_mbit: u64,
    release_us: u64,
}

/// A packet that a device has sent: microseconds of `CLOCK_MONOTONIC`, and bytes on the line.
type Sent = (u64, u64);

pub(crate) fn by_fq(machine: &mut Machine) {
    let cases = [
        (1500, "none"),
        (1450, "vxlan"),
        (9000, "none"),
        (8950, "vxlan"),
    ];
    for (guest_mtu, encapsulation) in cases {
        let case = Case {
            guest_mtu,
            encapsulation,
            rate_mbit: 100,
            release_us: 1000,
        };
        let sent = sent(machine, &case);
        let found = Found::of(&sent, &case);
        println!(
            "{}: guest MTU {guest_mtu}, {encapsulation}: {found:?}",
            machine.release
        );
        found.check();
    }
}

/// What the underlay's devices send in a run of the case, which its line limits all the time.
fn sent(machine: &mut Machine, case: &Case) -> Vec<Sent> {
    let Case {
        guest_mtu,
        encapsulation,
        rate_mbit,
        release_us,
    } = case;
    let plan = format!(
        "name: line\nunderlay: {{ mtu: 9000, rate: {rate_mbit}mbit, release: {release_us}us }}\nguest_mtu: {guest_mtu}\n\
         encapsulation: {encapsulation}\noffload: none\nload: {{ tcp-stream: {{ rate: {}mbit }} }}\n\
         repeat: {{ rounds: 1, seconds: 1.5, warmup: 1 }}\n",
        2 * rate_mbit
    );
    let script = format!(
        "rm -rf /tmp/run; cat >/tmp/plan.yaml <<'END'\n{plan}END\n\
         cd /sys/kernel/tracing; [ -e trace ] || {{ mount -t tracefs tracefs . && cd /sys/kernel/tracing; }}\n\
         echo 0 >tracing_on; echo mono >trace_clock; echo 8192 >buffer_size_kb\n\
         echo 'name == \"underlay\" && len > 500' >events/net/net_dev_xmit/filter\n\
         echo 1 >events/net/net_dev_xmit/enable; echo >trace; echo 1 >tracing_on\n\
         wirecost run /tmp/plan.yaml --out /tmp/run >/tmp/shown || {{ tail -n 40 /tmp/shown; exit 1; }}\n\
         echo 0 >tracing_on; cat /tmp/run/run.json"
    );
    let head = machine.sh(120, &script).fine();
    let head: Value = serde_json::from_str(&head).expect("run.json");
    let line = &head["environment"]["line"];
    assert_eq!(line["by"], "fq", "{line}");
    assert_eq!(line["step_us"], *release_us, "{line}");
    // `... 12.345678: net_dev_xmit: dev=underlay skbaddr=... len=1514 rc=0`
    let lines = machine
        .sh(
            60,
            "sed -n 's/.* \\([0-9]*\\)\\.\\([0-9]*\\): net_dev_xmit: .* len=\\([0-9]*\\) .*/\\1\\2 \\3/p' \
             /sys/kernel/tracing/trace",
        )
        .fine();
    lines
        .lines()
        .map(|line| {
            let (at, len) = line.split_once(' ').expect("two numbers");
            let number = |text: &str| text.parse::<u64>().expect("a number");
            (number(at), number(len) + UNSEEN)
        })
        .collect()
}

/// What a trace shows.
#[derive(Debug)]
struct Found {
    /// By how much the rate is off over all of the load, as a fraction.
    off: f64,
    /// The same of each window, the largest last.
    windows: Vec<f64>,
    /// Share of the packets that were sent in the first half of a step; of those that are sent one by one it is a half.
    first_half: f64,
    /// Packets in a step: the median.
    in_a_step: usize,
    /// How many have room in one.
    room: f64,
}

impl Found {
    fn of(sent: &[Sent], case: &Case) -> Self {
        let (step, steady) = (case.release_us, steady(sent));
        assert!(steady.len() > 200, "{} packets", steady.len());
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
        let early = steady.iter().filter(|(at, _)| at % step < step / 2).count();
        Self {
            off: off(from, from + number * length),
            windows,
            first_half: early as f64 / steady.len() as f64,
            in_a_step: counts[counts.len() / 2],
            room: step as f64 * bytes_per_us / steady[0].1 as f64,
        }
    }

    fn check(&self) {
        assert!(self.off.abs() <= OFF, "{self:?}");
        let median = self.windows[self.windows.len() / 2];
        assert!(median.abs() <= OFF, "{self:?}");
        assert!(self.first_half > 0.8, "{self:?}");
        let whole = self.room.floor() as usize..=self.room.ceil() as usize;
        assert!(whole.contains(&self.in_a_step), "{self:?}");
    }
}

/// The longest time in which the line never paused, less its first half, in which TCP finds the rate.
fn steady(sent: &[Sent]) -> &[Sent] {
    const PAUSE_US: u64 = 50_000;
    let without_pause = sent.chunk_by(|one, next| next.0 - one.0 < PAUSE_US);
    let longest = without_pause.max_by_key(|chunk| chunk.len()).unwrap_or(&[]);
    &longest[longest.len() / 2..]
}

#[test]
fn a_trace_in_steps_at_the_rate_is_told_from_one_that_is_not() {
    let case = Case {
        guest_mtu: 1500,
        encapsulation: "none",
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
