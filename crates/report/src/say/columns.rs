//! The columns of the tables of cells, for every form of them: what stands above, what it means, and its fields.

use wirecost_model::metric::Metric;

use crate::result::document::{CellLoad, CellResult, Document};
use crate::say::digits;

/// A column: of cells, or of their loads.
#[derive(Debug)]
pub(crate) struct Column<T: 'static> {
    /// What it is, a word or two: `p99 us`.
    pub(crate) head: &'static str,
    /// The same in two lines, where it is not broken between words.
    narrow: Option<&'static str>,
    /// Whether it is printed in full alone.
    pub(crate) only_full: bool,
    /// What it shows, for the text below the table.
    pub(crate) meaning: &'static str,
    /// Its field, where there is a figure.
    pub(crate) field: fn(&T) -> Option<String>,
}

impl<T> Clone for Column<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Column<T> {}

impl<T> Column<T> {
    pub(crate) const fn new(
        head: &'static str,
        meaning: &'static str,
        field: fn(&T) -> Option<String>,
    ) -> Self {
        Self {
            head,
            narrow: None,
            only_full: false,
            meaning,
            field,
        }
    }

    /// Printed in full alone.
    pub(crate) const fn in_full(self) -> Self {
        Self {
            only_full: true,
            ..self
        }
    }

    const fn narrow(self, head: &'static str) -> Self {
        Self {
            narrow: Some(head),
            ..self
        }
    }

    /// The head in one or two lines.
    pub(crate) fn lines(&self) -> String {
        self.narrow
            .map_or_else(|| self.head.replace(' ', "\n"), str::to_owned)
    }
}

/// What columns mean, each once.
pub(crate) fn meanings<T>(columns: &[Column<T>]) -> Vec<&'static str> {
    let mut meanings: Vec<&str> = Vec::new();
    for meaning in columns.iter().map(|column| column.meaning) {
        if !meaning.is_empty() && !meanings.contains(&meaning) {
            meanings.push(meaning);
        }
    }
    meanings
}

/// One of a table of cells.
const fn cell(
    head: &'static str,
    meaning: &'static str,
    field: fn(&CellResult) -> Option<String>,
) -> Column<CellResult> {
    Column::new(head, meaning, field)
}

const GBPS: Column<CellResult> = cell(
    "Gbit/s",
    "Gbit/s: what the receiving application read, median of valid samples",
    |cell| Some(digits::gbps(cell.throughput_gbps?.median)),
);

/// The page alone has room for it.
const INTERVAL: Column<CellResult> = cell("95 % interval", "", |cell| {
    let summary = cell.throughput_gbps?;
    let (low, high) = (summary.low?, summary.high?);
    Some(format!("[{}, {}]", digits::gbps(low), digits::gbps(high)))
});

const SPREAD: Column<CellResult> = cell("±%", "±%: its relative standard deviation", |cell| {
    Some(format!("{:.1}", cell.throughput_gbps?.relative_sd? * 100.0))
});

/// Of small messages alone.
const MESSAGES: Column<CellResult> = cell(
    "k messages/s",
    "k messages/s: thousand messages a second that the receiving application read",
    |cell| match &cell.loads[..] {
        [load] => Some(digits::thousands(load.messages_per_s?.median)),
        _ => None,
    },
)
.narrow("k mes-\nsages/s");

const LIMIT: Column<CellResult> = cell(
    "line limit",
    "line limit: the TCP payload that the line carries in such frames",
    |cell| Some(digits::gbps(cell.line_limit_gbps?)),
);

/// Likewise.
const SHARE: Column<CellResult> = cell("% of limit", "", |cell| {
    let share = cell.throughput_gbps?.median / cell.line_limit_gbps?;
    Some(format!("{:.0}", share * 100.0))
});

const PUBLISHED: Column<CellResult> = cell("published", "published: see below", |cell| {
    Some(digits::gbps(cell.published_gbps?))
})
.narrow("pub-\nlished")
.in_full();

const SENDER: Column<CellResult> = cell(
    "sender CPU",
    "CPU: percent of one core per Gbit/s, all time that was not idle",
    |cell| cell.cpu(Metric::SenderCpu),
);

const RECEIVER: Column<CellResult> =
    cell("receiver CPU", "", |cell| cell.cpu(Metric::ReceiverCpu)).narrow("recei-\nver CPU");

const MACHINE: Column<CellResult> = cell(
    "CPU",
    "CPU: percent of one core of the machine per Gbit/s, everything that was not idle",
    |cell| cell.cpu(Metric::Cpu),
);

const FRAMES: Column<CellResult> = cell(
    "kframes/s",
    "kframes/s: thousand frames a second on the wire, both directions",
    |cell| Some(format!("{:.0}", cell.wire_frames_per_s?.median / 1e3)),
)
.narrow("kframes\n/s")
.in_full();

const SEGMENTS: Column<CellResult> = cell(
    "segs/packet",
    "segs/packet: segments on the wire per packet that the receiver's TCP handled",
    |cell| Some(format!("{:.1}", cell.segments_per_packet?.median)),
)
.narrow("segs/\npacket")
.in_full();

/// The columns of a table of cells: what no cell has a figure for is not one of this run.
pub(crate) fn of_cells(doc: &Document) -> Vec<Column<CellResult>> {
    told(
        doc,
        &[
            GBPS, SPREAD, MESSAGES, LIMIT, PUBLISHED, SENDER, RECEIVER, MACHINE, FRAMES, SEGMENTS,
        ],
    )
}

/// Those of the page's table, which has more of them; where it is not `plain`, loads have columns of their own, with their
/// speed and CPU.
pub(crate) fn of_page(doc: &Document, plain: bool) -> Vec<Column<CellResult>> {
    if plain {
        let all = [
            GBPS, INTERVAL, SPREAD, MESSAGES, LIMIT, SHARE, PUBLISHED, SENDER, RECEIVER, MACHINE,
            FRAMES, SEGMENTS,
        ];
        told(doc, &all)
    } else {
        told(doc, &[LIMIT, SHARE, PUBLISHED, FRAMES, SEGMENTS])
    }
}

fn told(doc: &Document, columns: &[Column<CellResult>]) -> Vec<Column<CellResult>> {
    let told =
        |column: &&Column<CellResult>| doc.cells.iter().any(|cell| (column.field)(cell).is_some());
    columns.iter().filter(told).copied().collect()
}

impl CellLoad {
    /// A figure of processors' time in digits; `<7.4` where it is below what its counter tells.
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
            _ => digits::micros(value),
        };
        let below = self.cpu_below.get(&metric);
        let told = of.map(|of| text(of.median));
        told.or_else(|| below.map(|below| format!("<{}", text(*below))))
    }

    /// Percent of the datagrams sent that did not arrive, the median of the samples.
    pub(crate) fn lost_percent(&self) -> Option<f64> {
        Some(100.0 - self.delivered_percent?.median)
    }
}

impl CellResult {
    /// CPU of its first stream in digits, see [`CellLoad::cpu`].
    pub(crate) fn cpu(&self, metric: Metric) -> Option<String> {
        let mut loads = self.loads.iter();
        loads
            .find(|load| !load.workload.is_request_response())?
            .cpu(metric)
    }
}
