//! The columns of the tables of loads.

use wirecost_model::load::Workload;
use wirecost_model::metric::Metric;
use wirecost_model::units::format_per_second;

use super::digits::{gbps, micros, micros_and_interval, thousands};
use crate::result::document::{CellLoad, Document};

/// A column of a table of loads.
pub(crate) type Column = super::column::Column<CellLoad>;

const fn column(
    head: &'static str,
    meaning: &'static str,
    field: fn(&CellLoad) -> Option<String>,
) -> Column {
    Column::new(head, meaning, field)
}

/// Whether every cell of a run has one TCP stream as its only load, for which a table of cells suffices.
pub(crate) fn plain(doc: &Document) -> bool {
    let loads = doc.cells.iter().map(|cell| &cell.loads[..]);
    loads.into_iter().all(|loads| match loads {
        [one] => one.workload == Workload::TcpStream && !doc.several_loads(),
        _ => loads.is_empty(),
    })
}

/// The columns for a workload.
pub(crate) fn columns(workload: Workload) -> &'static [Column] {
    match workload {
        Workload::Storage => &STORAGE,
        Workload::Migration => &MIGRATION,
        _ if workload.is_request_response() => &REQUESTS,
        _ if workload.is_udp() => &DATAGRAMS,
        Workload::TcpBidirectional => &BIDIRECTIONAL,
        _ => &STREAM,
    }
}

pub(crate) const THROUGHPUT: Column = column(
    "Gbit/s",
    "Gbit/s: what the receiving application read, median of valid samples",
    |load| Some(gbps(load.throughput_gbps?.median)),
);

const BOTH: Column = column(
    THROUGHPUT.head,
    "Gbit/s of tcp-bidirectional: what both applications read, the two directions together, median of valid samples",
    THROUGHPUT.field,
);

pub(crate) const SPREAD: Column = column("±%", "±%: its relative standard deviation", |load| {
    let of = load.throughput_gbps.or(load.transactions_per_s)?;
    Some(format!("{:.1}", of.relative_sd? * 100.0))
});

pub(crate) const SENDER_CPU: Column = column(
    "sender CPU",
    "CPU of a stream: percent of one core per Gbit/s, all time that was not idle",
    |load| load.cpu(Metric::SenderCpu),
);

pub(crate) const RECEIVER_CPU: Column =
    column("receiver CPU", "", |load| load.cpu(Metric::ReceiverCpu)).narrow("recei-\nver CPU");

pub(crate) const CPU: Column = column(
    "CPU",
    "CPU: percent of one core of the machine per Gbit/s",
    |load| load.cpu(Metric::Cpu),
);

/// Messages per second; only of small messages.
pub(crate) const MESSAGES: Column = column(
    "k messages/s",
    "k messages/s: thousand messages a second that the receiving application read",
    |load| Some(thousands(load.messages_per_s?.median)),
)
.narrow("k mes-\nsages/s");

const STREAM: [Column; 6] = [THROUGHPUT, SPREAD, MESSAGES, SENDER_CPU, RECEIVER_CPU, CPU];

const BIDIRECTIONAL: [Column; 6] = [BOTH, SPREAD, MESSAGES, SENDER_CPU, RECEIVER_CPU, CPU];

const DATAGRAMS: [Column; 8] = [
    THROUGHPUT,
    SPREAD,
    column(
        "k datagrams/s",
        "k datagrams/s: thousand datagrams a second that the receiving application read",
        |load| Some(thousands(load.datagrams_per_s?.median)),
    ),
    column(
        "lost %",
        "lost: of the datagrams sent, those that did not arrive",
        |load| Some(format!("{:.2}", load.lost_percent()?.max(0.0))),
    ),
    column(
        "jitter us",
        "jitter: interarrival jitter (RFC 3550)",
        |load| Some(micros(load.jitter_us?.median)),
    ),
    SENDER_CPU,
    RECEIVER_CPU,
    CPU,
];

const P50: Column = column(
    "p50 us",
    "p50, p99, p99.9, max: latencies of all valid samples together in microseconds",
    |load| Some(micros(load.latency?.p50_us)),
);

const P99: Column = column("p99 us", "", |load| Some(micros(load.latency?.p99_us)));

const P999: Column = column("p99.9 us", "", |load| Some(micros(load.latency?.p999_us?))).in_full();

const MAX: Column = column("max us", "", |load| Some(micros(load.latency?.max_us))).in_full();

const LATE: Column = column(
    "late p99 us",
    "late: time from when a request was due until it was sent; not part of its latency",
    |load| Some(micros(load.latency?.late_p99_us?)),
)
.in_full();

fn rate(load: &CellLoad) -> Option<String> {
    let behind = if load.missed_schedule > 0 { "!" } else { "" };
    let rate = format_per_second(load.transactions_per_s?.median);
    Some(format!("{rate}{behind}"))
}

const REQUESTS: [Column; 11] = [
    column(
        "transactions/s",
        "transactions/s: requests answered, median of valid samples; ! behind their schedule",
        rate,
    ),
    SPREAD,
    P50,
    P99,
    P999,
    MAX,
    LATE,
    column(
        "timed out",
        "timed out: requests given up; not part of any latency",
        |load| Some(load.latency?.requests.timeouts.to_string()).filter(|_| load.workload.is_udp()),
    ),
    column(
        "client CPU us",
        "CPU of requests: microseconds of a core per transaction, all time that was not idle",
        |load| load.cpu(Metric::ClientCpu),
    ),
    column("server CPU us", "", |load| load.cpu(Metric::ServerCpu)),
    column(
        "CPU us",
        "CPU: microseconds of a core of the machine per transaction",
        |load| load.cpu(Metric::TransactionCpu),
    ),
];

/// The columns of storage. CPU is given per I/O and per Gbit/s: small I/O is limited by the one, large I/O by the
/// other.
const STORAGE: [Column; 18] = [
    column(
        "I/O per s",
        "I/O per s: reads and writes answered, median of valid samples; ! behind their schedule",
        rate,
    ),
    column(
        "Gbit/s",
        "Gbit/s of storage: data read and written, without headers of any kind, median of valid samples",
        THROUGHPUT.field,
    ),
    SPREAD,
    P50,
    P99,
    P999,
    column("p99.99 us", "", |load| {
        Some(micros(load.latency?.p9999_us?))
    })
    .in_full(),
    MAX,
    LATE,
    column(
        "flush p99 us",
        "flush: latency of flushes, which are no I/O",
        |load| Some(micros(load.latency?.flush_p99_us?)),
    )
    .in_full(),
    column(
        "network us",
        "network us: part of the median latency that is the network's, with its 95 % interval; target us: the median with the \
         initiator on the target's host, over a Unix socket",
        |load| Some(micros_and_interval(&load.network?.network_us)),
    ),
    column("target us", "", |load| {
        Some(micros(load.network?.at_target_us.mean))
    }),
    column(
        "in 500 us %",
        "in 500 us: share of I/O that took no longer",
        |load| Some(format!("{:.1}", load.latency?.share_within_500us * 100.0)),
    ),
    column(
        "init. CPU us",
        "CPU us of storage: microseconds of a core per I/O of the initiator and the target, all time that was not idle",
        |load| load.cpu(Metric::ClientCpu),
    ),
    column("target CPU us", "", |load| load.cpu(Metric::ServerCpu)),
    column(
        "init. CPU %",
        "CPU % of storage: percent of one core per Gbit/s of the initiator and the target",
        |load| load.cpu(Metric::SenderCpu),
    )
    .in_full(),
    column("target CPU %", "", |load| load.cpu(Metric::ReceiverCpu)).in_full(),
    column(
        "CPU us",
        "CPU: microseconds of a core of the machine per I/O",
        |load| load.cpu(Metric::TransactionCpu),
    ),
];

/// The columns of a migration.
const MIGRATION: [Column; 17] = [
    column(
        "move s",
        "move s: seconds until the last machine had moved, median of valid samples in which all did",
        |load| Some(format!("{:.3}", load.moves?.move_s?.median)),
    ),
    column("±%", "±%: its relative standard deviation", |load| {
        Some(format!("{:.1}", load.moves?.move_s?.relative_sd? * 100.0))
    }),
    column(
        "downtime ms",
        "downtime ms: longest pause of a machine in milliseconds, median of the same samples",
        |load| Some(format!("{:.1}", load.moves?.downtime_ms?.median)),
    ),
    column(
        "qemu ms",
        "qemu ms: the downtime as QEMU says it, which ends when its source has sent everything; median of single machines",
        |load| Some(format!("{:.0}", load.moves?.hypervisor_downtime_ms?.median)),
    ),
    column(
        "fetched",
        "fetched: pages that a machine had to wait for at its destination (post-copy); median of single machines",
        |load| Some(format!("{:.0}", load.moves?.fetched_pages?.median)),
    ),
    column(
        "emulated",
        "emulated: machines that QEMU emulated (TCG), of all: their times are not those of hardware",
        |load| {
            let moves = load.moves?;
            (moves.emulated > 0).then(|| format!("{}/{}", moves.emulated, moves.machines))
        },
    ),
    column(
        "seen ms",
        "seen ms: the same as an observer sees it that asks each machine each millisecond, to the machine and back; medians",
        |load| {
            let moves = load.moves?;
            let (to, from) = (moves.seen_to_machine_ms?, moves.seen_from_machine_ms?);
            Some(format!("{:.1}/{:.1}", to.median, from.median))
        },
    ),
    column(
        "stayed",
        "stayed: machines whose pre-copy did not converge, of those that were to move; forced: stopped anyway",
        |load| {
            let moves = load.moves?;
            let forced = match moves.forced {
                0 => String::new(),
                forced => format!(", {forced} forced"),
            };
            Some(format!("{}/{}{forced}", moves.stayed, moves.machines))
        },
    ),
    column(
        "dirty limit Gbit/s",
        "dirty limit: the highest dirty rate that converges, in the middle between two that were tried",
        |load| Some(gbps(load.moves?.dirty_limit_gbps?.median)),
    ),
    column(
        "rounds",
        "rounds: of pre-copy, the one with the machine stopped included; median of all machines, as what follows",
        |load| Some(format!("{:.0}", load.moves?.rounds?.median)),
    ),
    column(
        "sent x",
        "sent x: bytes of pages sent over bytes of memory",
        |load| Some(format!("{:.2}", load.moves?.sent_factor?.median)),
    ),
    column(
        "wrote %",
        "wrote %: of the writes asked for, those that a machine reached while it was copied",
        |load| Some(format!("{:.0}", load.moves?.written_percent?.median)),
    )
    .in_full(),
    column(
        "model s",
        "model s: seconds that pre-copy takes by its model at the bandwidth of the first round",
        |load| Some(format!("{:.3}", load.moves?.predicted_s?.median)),
    ),
    THROUGHPUT,
    SENDER_CPU,
    RECEIVER_CPU,
    CPU,
];

/// A note on CPU where several loads ran at once.
pub(crate) fn shared(doc: &Document) -> Option<&'static str> {
    let several = doc.cells.iter().any(|cell| cell.loads.len() > 1);
    several.then_some(
        "Where several loads ran at once, CPU time cannot be attributed to one of them: there is no CPU per load.",
    )
}

impl CellLoad {
    /// A CPU figure as text; an upper bound such as `<7.4` where the busy time was too few steps of its counter.
    pub(crate) fn cpu(&self, metric: Metric) -> Option<String> {
        let of = match metric {
            Metric::SenderCpu => self.sender_cpu_percent_per_gbps,
            Metric::ReceiverCpu => self.receiver_cpu_percent_per_gbps,
            Metric::Cpu => self.cpu_percent_per_gbps,
            Metric::ClientCpu => self.client_cpu_us_per_transaction,
            Metric::ServerCpu => self.server_cpu_us_per_transaction,
            Metric::TransactionCpu => self.cpu_us_per_transaction,
            _ => None,
        };
        let text = |value: f64| match metric {
            Metric::SenderCpu | Metric::ReceiverCpu | Metric::Cpu => format!("{value:.1}"),
            _ => micros(value),
        };
        let below = self.cpu_below.get(&metric);
        let told = of.map(|of| text(of.median));
        told.or_else(|| below.map(|below| format!("<{}", text(*below))))
    }

    /// Datagrams that did not arrive, percent of those sent: the median of the samples. May be below 0.
    pub(crate) fn lost_percent(&self) -> Option<f64> {
        Some(100.0 - self.delivered_percent?.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_has_columns_of_its_own() {
        let heads = columns(Workload::Storage).iter().map(|column| column.head);
        let of_its_own: Vec<_> = heads
            .filter(|head| !REQUESTS.iter().any(|one| one.head == *head))
            .collect();
        assert!(
            of_its_own.starts_with(&["I/O per s", "Gbit/s"]),
            "{of_its_own:?}"
        );
    }
}
