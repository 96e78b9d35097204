//! What limits a TCP stream, from what both ends and both hosts counted while it ran.

mod drops;

use wirecost_model::sample::{LoadResult, Sample};
use wirecost_model::usage::{CoreUsage, HostUsage};

pub use self::drops::Drops;

/// A core that the kernel's own work keeps busy for at least this share of a window is full: the load's own time, and
/// what the tick-based sampling of CPU classes misses, take the rest.
const FULL: f64 = 0.8;
/// Share of retransmitted segments above which loss slows a stream down on any path that is longer than a switch.
const LOSS: f64 = 5e-4;
/// A queue stands in the path where the round trip under load is this many times the shortest one, and this many
/// seconds longer.
const QUEUE: (f64, f64) = (2.0, 1e-3);
/// Range of the share of a socket buffer that data in flight fills where the buffer is the limit. The kernel keeps part
/// of the buffer for its own overhead (`tcp_adv_win_scale`, tcp_input.c), so a limiting buffer is rarely full.
const BUFFER: (f64, f64) = (0.2, 1.1);
/// Share of a device's speed from which on the line is the limit; framing and headers take the rest.
const LINE: f64 = 0.88;
/// Most places of dropped packets that the evidence names.
const PLACES: usize = 3;

/// What limits a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A core of the sending host.
    SenderCore,
    /// A core of the receiving host.
    ReceiverCore,
    /// The speed of the hosts' device.
    Line,
    /// A link or shaper between the hosts that is slower than they are: packets queue in front of it.
    Path,
    /// Lost packets.
    Loss,
    /// A socket buffer, which bounds the data in flight at this round trip.
    Window,
    /// The path MTU: full-size packets are dropped.
    Mtu,
    /// The load's own threads have no time left.
    Generator,
    /// None of the other limits.
    Unknown,
}

/// A limit with the figures that show it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Diagnosis {
    /// What limits the stream.
    pub limit: Limit,
    /// The evidence, one clause with its figures.
    pub evidence: String,
    /// Where packets were dropped, as far as the hosts count it, the most first.
    pub drops: Vec<Drops>,
}

impl Diagnosis {
    /// A limit by the path MTU, with the evidence that a check of the path found.
    pub fn of_mtu(evidence: &str) -> Self {
        Self {
            limit: Limit::Mtu,
            evidence: evidence.to_owned(),
            drops: Vec::new(),
        }
    }
}

/// What the samples of one stream load show: the median of each figure.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// Throughput, bit/s.
    pub rate: f64,
    /// Speed of the slower host's device, bit/s, where it is known.
    pub speed: Option<f64>,
    /// Busiest core of the sender and of the receiver: share of the window that the kernel's own work takes, 0 to 1.
    pub busiest: [f64; 2],
    /// Retransmitted segments as a share of all data segments sent.
    pub loss: f64,
    /// Smoothed round trip under load, mean of the flows, and the shortest round trip of any flow, seconds.
    pub round_trip: [f64; 2],
    /// `SO_SNDBUF` of the sender and `SO_RCVBUF` of the receiver, bytes, mean of the flows.
    pub buffers: [f64; 2],
    /// Number of flows.
    pub flows: f64,
    /// Whether the load's own threads had no time left, in most samples.
    pub is_generator_bound: bool,
    /// Whether both hosts are one machine, whose cores then count for each of them.
    pub one_machine: bool,
    /// Where packets were dropped, all samples together, the most first.
    pub drops: Vec<Drops>,
}

impl Evidence {
    /// The medians of the valid samples of one stream load, `speed` in bit/s; `None` without such a sample. The sender
    /// is host a; the samples do not say whether both hosts are one machine.
    pub fn of<'a>(samples: impl Iterator<Item = &'a Sample>, speed: Option<u64>) -> Option<Self> {
        let valid: Vec<&Sample> = samples.filter(|sample| sample.invalid.is_none()).collect();
        let all: Vec<Self> = valid
            .iter()
            .filter_map(|sample| Self::one(sample, speed))
            .collect();
        let median = |of: fn(&Self) -> f64| {
            let mut values: Vec<f64> = all.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            let last = values.len().checked_sub(1)?;
            Some(f64::midpoint(values[last / 2], values[last.div_ceil(2)]))
        };
        Some(Self {
            rate: median(|one| one.rate)?,
            speed: speed.map(|speed| speed as f64),
            busiest: [median(|one| one.busiest[0])?, median(|one| one.busiest[1])?],
            loss: median(|one| one.loss)?,
            round_trip: [
                median(|one| one.round_trip[0])?,
                median(|one| one.round_trip[1])?,
            ],
            buffers: [median(|one| one.buffers[0])?, median(|one| one.buffers[1])?],
            flows: median(|one| one.flows)?,
            is_generator_bound: 2 * all.iter().filter(|one| one.is_generator_bound).count()
                > all.len(),
            one_machine: false,
            drops: drops::of(&valid),
        })
    }

    fn one(sample: &Sample, speed: Option<u64>) -> Option<Self> {
        let load: &LoadResult = sample.loads.first()?;
        let stream = load.stream.as_ref()?;
        let senders = || load.flows.iter().filter_map(|flow| flow.sender.as_ref());
        let receivers = || load.flows.iter().filter_map(|flow| flow.receiver.as_ref());
        let sum = |of: fn(&wirecost_model::end_window::Socket) -> u64| {
            senders().map(of).sum::<u64>() as f64
        };
        let flows = load.flows.len().max(1) as f64;
        let mean = |values: f64| values / flows;
        // Only the kernel's own work for packets counts: other programs may fill a core as well.
        let busiest = |usage: &Option<HostUsage>| {
            let packets = |core: &CoreUsage| {
                core.busy_s * (core.shares.system + core.shares.softirq + core.shares.irq)
            };
            let cores = usage.iter().flat_map(|usage| {
                usage
                    .cores
                    .iter()
                    .map(move |core| packets(core) / usage.window_s)
            });
            cores.fold(0.0, f64::max)
        };
        Some(Self {
            rate: stream.bytes as f64 * 8.0 / load.seconds,
            speed: speed.map(|speed| speed as f64),
            busiest: [busiest(&sample.sender), busiest(&sample.receiver)],
            loss: sum(|socket| socket.retransmits) / sum(|socket| socket.data_segs_out).max(1.0),
            round_trip: [
                mean(sum(|socket| u64::from(socket.rtt_us))) / 1e6,
                senders()
                    .map(|socket| f64::from(socket.min_rtt_us))
                    .fold(f64::MAX, f64::min)
                    / 1e6,
            ],
            buffers: [
                mean(sum(|socket| u64::from(socket.sndbuf))),
                mean(receivers().map(|socket| f64::from(socket.rcvbuf)).sum()),
            ],
            flows,
            is_generator_bound: load.generator.iter().any(|end| end.bound),
            one_machine: false,
            drops: Vec::new(),
        })
    }

    /// Data in flight of each flow, bytes.
    fn in_flight(&self) -> f64 {
        self.rate / 8.0 * self.round_trip[0] / self.flows
    }

    /// The drops, without those of one machine's cores that count for both hosts.
    fn drops(&self) -> Vec<Drops> {
        let twice = |drops: &&Drops| drops.host == 'a' && drops.device.is_none();
        let all = self.drops.iter();
        all.filter(|drops| !(self.one_machine && twice(drops)))
            .cloned()
            .collect()
    }

    /// What limits the stream, with the evidence. A full line comes first, then a full core, which also makes queues
    /// and losses; then what counters show; then what is inferred.
    pub fn diagnose(&self) -> Diagnosis {
        let [loaded, shortest] = self.round_trip;
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let ms = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
        let queues = loaded > QUEUE.0 * shortest && loaded - shortest > QUEUE.1;
        let drops = self.drops();
        let places: Vec<String> = drops.iter().take(PLACES).map(Drops::words).collect();
        let dropped = if places.is_empty() {
            String::new()
        } else {
            format!("; dropped: {}", places.join(", "))
        };
        let found = |limit, evidence| Diagnosis {
            limit,
            evidence,
            drops,
        };
        if let Some(speed) = self
            .speed
            .filter(|speed| self.rate >= LINE * speed && self.rate <= *speed)
        {
            let evidence = format!(
                "{} of the {} that the device has",
                percent(self.rate / speed),
                gbit(speed)
            );
            return found(Limit::Line, evidence);
        }
        // Where both hosts have a full core, the fuller one is the limit.
        let [sender, receiver] = self.busiest;
        let (limit, busiest) = if sender > receiver {
            (Limit::SenderCore, sender)
        } else {
            (Limit::ReceiverCore, receiver)
        };
        if busiest >= FULL {
            let whose = if self.one_machine {
                "; both hosts are one machine, and it may be a core of either"
            } else {
                ""
            };
            let evidence = format!(
                "the kernel keeps it busy for {} of the time{whose}{dropped}",
                percent(busiest)
            );
            return found(limit, evidence);
        }
        if self.loss > LOSS && !queues {
            let evidence = format!(
                "{:.2} % of segments are sent again, at a round trip of {} that does not grow under load{dropped}",
                self.loss * 100.0,
                ms(loaded)
            );
            return found(Limit::Loss, evidence);
        }
        if queues {
            let evidence = format!(
                "round trips grow from {} to {} under load: packets queue in front of something that passes {}{dropped}",
                ms(shortest),
                ms(loaded),
                gbit(self.rate)
            );
            return found(Limit::Path, evidence);
        }
        let [send, receive] = self.buffers;
        let (buffer, name) = if send <= receive {
            (send, "send")
        } else {
            (receive, "receive")
        };
        let share = self.in_flight() / buffer.max(1.0);
        if (BUFFER.0..BUFFER.1).contains(&share) {
            let evidence = format!(
                "{:.0} kB are under way at a round trip of {}, in a {name} buffer of {:.0} kB",
                self.in_flight() / 1e3,
                ms(loaded),
                buffer / 1e3
            );
            return found(Limit::Window, evidence);
        }
        if self.is_generator_bound {
            return found(
                Limit::Generator,
                "the load's own threads have no time left".to_owned(),
            );
        }
        let evidence = format!(
            "no core is full (at most {}), {:.2} % of segments are sent again, round trips take {}",
            percent(self.busiest[0].max(self.busiest[1])),
            self.loss * 100.0,
            ms(loaded)
        );
        found(Limit::Unknown, evidence)
    }
}

fn gbit(rate: f64) -> String {
    if rate < 1e9 {
        format!("{:.1} Mbit/s", rate / 1e6)
    } else {
        format!("{:.1} Gbit/s", rate / 1e9)
    }
}

impl Limit {
    /// The limit's name as a noun phrase.
    pub const fn words(self) -> &'static str {
        match self {
            Self::SenderCore => "a core of the sending host",
            Self::ReceiverCore => "a core of the receiving host",
            Self::Line => "the line",
            Self::Path => "a slower link or shaper between the hosts",
            Self::Loss => "packet loss",
            Self::Window => "the window",
            Self::Mtu => "the MTU",
            Self::Generator => "the load generator",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests;
