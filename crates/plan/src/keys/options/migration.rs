//! Options of migrations.

use wirecost_model::load::{
    DirtyOrder, Fallback, MAX_CHANNELS, MAX_DOWNTIME, MAX_MEMORY, MAX_PAUSE, MAX_ROUNDS,
    MAX_STREAMS, MIN_MEMORY, MoveEngine,
};

use super::super::Presence::Default;
use super::super::{BASE, Key, Kind, ON_OFF, from_to};
use super::Table;
use super::connection::{CONGESTION, DIRECTION, DSCP, SOCKET_BUFFER, SPIN, STREAMS, THREADS};
use super::pace::BIT_RATE;

table! { pub(super) MIGRATION "migration" "{ machines: 4, memory: 256MiB, dirty_rate: 400mbit }"
    "Memory of machines that go on writing to it, moved from host a to host b by pre-copy; a sample is one move of all.":
    "machines" => MACHINES,
    "machines_per_guest" => MACHINES_PER_GUEST,
    "engine" => ENGINE,
    "memory" => MEMORY,
    "dirty_rate" => DIRTY_RATE,
    "channels" => CHANNELS,
    "at_once" => AT_ONCE,
    "working_set" => WORKING_SET,
    "dirty_order" => DIRTY_ORDER,
    "zero_pages" => ZERO_PAGES,
    "max_downtime" => MAX_DOWNTIME_KEY,
    "max_rounds" => MAX_ROUNDS_KEY,
    "fallback" => FALLBACK,
    "find_limit" => FIND_LIMIT,
    "watch" => WATCH,
    "pause" => PAUSE,
    "back_and_forth" => BACK_AND_FORTH,
    "switchover_bandwidth" => SWITCHOVER_BANDWIDTH,
    "post_copy" => POST_COPY,
    "rate" => MOVE_RATE,
    "congestion" => CONGESTION,
    "socket_buffer" => SOCKET_BUFFER,
    "threads" => THREADS,
    "spin" => SPIN,
    "dscp" => DSCP,
    "direction" => DIRECTION,
}

const MACHINES: Key = Key {
    range: from_to(1.0, MAX_STREAMS as f64),
    example: "4",
    doc: "Machines that move, divided evenly among the guests.",
    ..STREAMS
};

const MACHINES_PER_GUEST: Key = Key {
    example: "2",
    doc: "Machines that move between each pair of guests: instead of `machines`. This key is the default where there \
          are several guests and neither is given.",
    ..STREAMS
};

const ENGINE: Key = Key {
    words: &MoveEngine::NAMES,
    presence: Default("memory"),
    example: "qemu",
    doc: "What moves them: memory and threads of the agent's own (`memory`, nothing to install), or virtual machines in QEMU \
          with a guest that is built in (`qemu`, by KVM where it runs one, else emulated; memory of 8MiB at least and 32 machines at most, not \
          with `find_limit`, `threads`, `spin`, `socket_buffer`, `dscp`, nor with `watch` and `post_copy` at once).",
    ..BASE
};

const SWITCHOVER_BANDWIDTH: Key = Key {
    kind: Kind::Rate,
    words: &["none"],
    range: from_to(1e3, 1e13),
    presence: Default("none"),
    example: "10gbit",
    doc: "With `engine: qemu`, what QEMU takes for the bandwidth once a machine is stopped instead of its own estimate \
          (`avail-switchover-bandwidth`, QEMU 8.2).",
    ..BASE
};

const POST_COPY: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether a machine goes on at its destination after one round: pages that it needs and that are not there \
          yet are fetched, and the rest is sent meanwhile. With `engine: qemu` one channel.",
    ..BASE
};

const MEMORY: Key = Key {
    kind: Kind::Size,
    range: from_to(MIN_MEMORY as f64, MAX_MEMORY as f64),
    presence: Default("64MiB"),
    example: "256MiB",
    doc: "Memory of each machine, a multiple of 4KiB. Each host needs it for all machines.",
    ..BASE
};

const DIRTY_RATE: Key = Key {
    kind: Kind::Rate,
    words: &["none"],
    range: from_to(1e3, 1e12),
    presence: Default("100mbit"),
    example: "1gbit",
    doc: "How fast each machine writes: bits per second of pages of 4KiB, each write a page. `none` writes nothing.",
    ..BASE
};

const CHANNELS: Key = Key {
    kind: Kind::Whole,
    range: from_to(1.0, MAX_CHANNELS as f64),
    presence: Default("1"),
    example: "4",
    doc: "Connections of each machine. A page always goes over the same one.",
    ..BASE
};

const AT_ONCE: Key = Key {
    kind: Kind::Whole,
    words: &["all"],
    range: from_to(1.0, MAX_STREAMS as f64),
    presence: Default("all"),
    example: "1",
    doc: "Machines of each pair of guests that move at the same time; the next begins when one has moved.",
    ..BASE
};

const WORKING_SET: Key = Key {
    kind: Kind::Whole,
    range: from_to(1.0, 100.0),
    presence: Default("25"),
    example: "100",
    doc: "Percent of a machine's memory that it writes to, zero pages not counted.",
    ..BASE
};

const DIRTY_ORDER: Key = Key {
    words: &DirtyOrder::NAMES,
    presence: Default("random"),
    example: "sequential",
    doc: "Order of a machine's writes within its working set.",
    ..BASE
};

const ZERO_PAGES: Key = Key {
    kind: Kind::Whole,
    range: from_to(0.0, 99.0),
    presence: Default("0"),
    example: "50",
    doc: "Percent of a machine's memory that is zero and stays zero: of these pages only the numbers are sent.",
    ..BASE
};

const MAX_DOWNTIME_KEY: Key = Key {
    kind: Kind::Seconds,
    range: from_to(1e-6, MAX_DOWNTIME.as_secs_f64()),
    presence: Default("300ms"),
    example: "50ms",
    doc: "A machine is stopped once what is left to send takes no longer at the bandwidth measured so far.",
    ..BASE
};

const MAX_ROUNDS_KEY: Key = Key {
    kind: Kind::Whole,
    range: from_to(1.0, MAX_ROUNDS as f64),
    presence: Default("30"),
    example: "10",
    doc: "Rounds after which pre-copy counts as not converging. It also does when three times the memory was sent.",
    ..BASE
};

const FALLBACK: Key = Key {
    words: &Fallback::NAMES,
    presence: Default("give-up"),
    example: "stop",
    doc: "What is done with a machine whose pre-copy does not converge: it stays at its source (`give-up`, an \
          outcome and no error), is stopped whatever the downtime (`stop`), or is slowed down step by step \
          (`throttle`, as QEMU's auto-converge).",
    ..BASE
};

const MOVE_RATE: Key = Key {
    example: "1gbit",
    doc: "How fast each machine is sent at most, all of its connections together, paced by the kernel; `none` is as \
          fast as possible.",
    ..BIT_RATE
};

const FIND_LIMIT: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether the machine is moved again at other dirty rates until the highest that converges is known to 10 %; one \
          machine, `fallback: give-up`. Time and downtime are of the first move.",
    ..BASE
};

const WATCH: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether an observer sends each machine a request every millisecond, at its source and at its destination, \
          and reports for how long none was answered; 16 machines at most, not with `find_limit`. It sends from the \
          next guest of the source's host.",
    ..BASE
};

const PAUSE: Key = Key {
    kind: Kind::Seconds,
    range: from_to(0.0, MAX_PAUSE.as_secs_f64()),
    presence: Default("0"),
    example: "2s",
    doc: "Pause before each move.",
    ..BASE
};

const BACK_AND_FORTH: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether every second round moves the machines the other way, in all of its cells.",
    ..BASE
};
