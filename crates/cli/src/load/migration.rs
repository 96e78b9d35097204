//! `wirecost load A B migration`: its options, and its result as text.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use wirecost_model::load::{DirtyOrder, Fallback, Load, MoveEngine};
use wirecost_model::machine_move::{Accelerator, MachineMove, MoveOutcome};
use wirecost_model::units::{format_rate, parse_rate};

use super::values::{duration, size, throughput, time};

/// Largest number of machines whose moves are printed.
const MAX_PRINTED_MACHINES: usize = 16;

/// Options of migrations only.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of a migration")]
pub(super) struct MigrationOptions {
    /// What moves machines: memory of the load's own, or virtual machines in QEMU [default: memory]
    #[arg(long, value_parser = MoveEngine::NAMES, value_name = "ENGINE")]
    engine: Option<String>,
    /// Memory of each machine, 1MiB to 2GiB [default: 64MiB]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    memory: Option<u64>,
    /// How fast each machine writes to its pages; 0 writes nothing [default: 100mbit]
    #[arg(long, value_name = "RATE")]
    dirty_rate: Option<String>,
    /// Connections of each machine [default: 1]
    #[arg(long, value_name = "NUMBER")]
    channels: Option<u32>,
    /// Machines that move at the same time [default: all]
    #[arg(long, value_name = "NUMBER")]
    at_once: Option<u32>,
    /// Percent of its memory that a machine writes to [default: 25]
    #[arg(long, value_name = "PERCENT")]
    working_set: Option<u8>,
    /// Order in which a machine writes to its pages [default: random]
    #[arg(long, value_parser = DirtyOrder::NAMES, value_name = "ORDER")]
    dirty_order: Option<String>,
    /// Percent of a machine's memory that is zero [default: 0]
    #[arg(long, value_name = "PERCENT")]
    zero_pages: Option<u8>,
    /// Stop a machine once sending the rest would take no longer than this [default: 300ms]
    #[arg(long, value_parser = duration, value_name = "TIME")]
    max_downtime: Option<Duration>,
    /// Rounds after which a move counts as not converging [default: 30]
    #[arg(long, value_name = "NUMBER")]
    max_rounds: Option<u32>,
    /// What to do with a move that does not converge [default: give-up]
    #[arg(long, value_parser = Fallback::NAMES, value_name = "WHAT")]
    fallback: Option<String>,
    /// Post-copy: a machine goes on at its destination after one round, and missing pages are fetched on demand
    #[arg(long)]
    post_copy: bool,
    /// Repeat the move with other dirty rates to find the highest one that converges
    #[arg(long)]
    find_limit: bool,
    /// Send each machine a request every millisecond, and say for how long none was answered
    #[arg(long)]
    watch: bool,
}

impl MigrationOptions {
    fn given(&self) -> [(&'static str, bool); 14] {
        [
            ("--engine", self.engine.is_some()),
            ("--memory", self.memory.is_some()),
            ("--dirty-rate", self.dirty_rate.is_some()),
            ("--channels", self.channels.is_some()),
            ("--at-once", self.at_once.is_some()),
            ("--working-set", self.working_set.is_some()),
            ("--dirty-order", self.dirty_order.is_some()),
            ("--zero-pages", self.zero_pages.is_some()),
            ("--max-downtime", self.max_downtime.is_some()),
            ("--max-rounds", self.max_rounds.is_some()),
            ("--fallback", self.fallback.is_some()),
            ("--post-copy", self.post_copy),
            ("--find-limit", self.find_limit),
            ("--watch", self.watch),
        ]
    }

    /// Sets the options in a load. Adds to `wrong` the options that do not apply to its workload or have a wrong value.
    pub(super) fn apply(&self, load: &mut Load, wrong: &mut Vec<String>) {
        let workload = load.workload;
        let Some(migration) = &mut load.migration else {
            let odd = self.given().into_iter().filter(|(_, given)| *given);
            wrong.extend(odd.map(|(option, _)| format!("{option}: {workload} is no migration")));
            return;
        };
        match self.dirty_rate.as_deref() {
            None => {}
            Some("0" | "none") => migration.dirty_rate = 0,
            Some(text) => match parse_rate(text) {
                Ok(bits) => migration.dirty_rate = bits,
                Err(error) => wrong.push(format!("--dirty-rate: {error}")),
            },
        }
        let engine = self.engine.as_deref().and_then(MoveEngine::by_name);
        migration.engine = engine.unwrap_or(migration.engine);
        migration.memory = self.memory.unwrap_or(migration.memory);
        migration.channels = self.channels.unwrap_or(migration.channels);
        migration.at_once = self.at_once.or(migration.at_once);
        migration.working_set = self.working_set.unwrap_or(migration.working_set);
        migration.zero_pages = self.zero_pages.unwrap_or(migration.zero_pages);
        migration.max_downtime = self.max_downtime.unwrap_or(migration.max_downtime);
        migration.max_rounds = self.max_rounds.unwrap_or(migration.max_rounds);
        let order = self.dirty_order.as_deref().and_then(DirtyOrder::by_name);
        migration.dirty_order = order.unwrap_or(migration.dirty_order);
        let fallback = self.fallback.as_deref().and_then(Fallback::by_name);
        migration.fallback = fallback.unwrap_or(migration.fallback);
        migration.post_copy = self.post_copy;
        migration.find_limit = self.find_limit;
        migration.watch = self.watch;
    }
}

/// Appends the machines' moves, one line each.
pub(super) fn lines(text: &mut String, moves: &[MachineMove]) {
    for one in moves.iter().take(MAX_PRINTED_MACHINES) {
        let _ = write!(text, "\n  machine {:<3} {}", one.machine, line(one));
    }
    if moves.len() > MAX_PRINTED_MACHINES {
        let _ = write!(
            text,
            "\n  and {} more (--json has all)",
            moves.len() - MAX_PRINTED_MACHINES
        );
    }
}

fn line(one: &MachineMove) -> String {
    let took = time(one.total_s);
    let mut line = match one.outcome {
        MoveOutcome::Moved => format!("moved in {took}, downtime {}", time(one.downtime_s)),
        MoveOutcome::Forced => format!(
            "did not converge and was stopped: moved in {took}, downtime {}",
            time(one.downtime_s)
        ),
        MoveOutcome::NotConverged => {
            let bandwidth = throughput(one.bandwidth * 8e-9);
            format!(
                "did not converge and stays at its source: given up after {took}, with {} in the first round",
                bandwidth.trim()
            )
        }
    };
    let times = one.sent_bytes as f64 / one.memory_bytes as f64;
    let _ = write!(
        line,
        "; {} rounds, {times:.2} times its memory sent, wrote {} of {}",
        one.rounds.len(),
        throughput(one.dirty_reached * 1e-9).trim(),
        format_rate(one.dirty_rate as u64)
    );
    if one.throttle > 0 {
        let _ = write!(line, ", slowed down by {} %", one.throttle);
    }
    if let Some(model) = one.predicted {
        let says = if model.converges {
            ""
        } else {
            " without converging"
        };
        let _ = write!(line, "; model {}{says}", time(model.total_s));
    }
    if one.fetched() > 0 {
        let _ = write!(line, ", {} pages fetched", one.fetched());
    }
    if let Some(seen) = one.seen {
        let _ = write!(
            line,
            "; an observer had no answer for {} to it and {} from it",
            time(seen.to_machine_s),
            time(seen.from_machine_s)
        );
    }
    if let Some(said) = &one.hypervisor {
        let how = match said.accelerator {
            Accelerator::Kvm => "by KVM",
            Accelerator::Tcg => "emulated, so its times are not those of hardware",
        };
        let _ = write!(
            line,
            "; {} ({how}) says {}, downtime {}",
            said.version,
            time(said.total_s),
            time(said.downtime_s)
        );
    }
    if let Some(limit) = one.limit {
        let gbps = |rate: f64| throughput(rate * 1e-9).trim().to_owned();
        let _ = match (limit.converges, limit.fails) {
            (Some(low), Some(high)) => write!(
                line,
                "; converges up to {} written, and not at {}",
                gbps(low),
                gbps(high)
            ),
            (Some(low), None) => {
                write!(line, "; converges at all rates up to {} written", gbps(low))
            }
            (None, Some(high)) => write!(
                line,
                "; does not converge at {} written or above",
                gbps(high)
            ),
            (None, None) => Ok(()),
        };
        let _ = write!(line, " ({} moves)", limit.moves);
    }
    line
}
