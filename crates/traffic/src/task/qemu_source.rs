//! The source of a virtual machine's move: the QEMU that sends it, and the flow on which the destination says that
//! the machine runs there.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::Socket;
use wirecost_model::load::{Fallback, MAX_SENT_FACTOR, Migration, PAGE};
use wirecost_model::machine_move::{HypervisorMove, MachineMove, MoveOutcome, MoveRound, predict};
use wirecost_qemu::{Line, Machine, QemuError, TimedLine, guest};
use wirecost_sys::epoll::Interest;

use super::qemu_end::QemuEnd;
use super::{Context, Progress};
use crate::flow::Outcome;
use crate::migration::qemu::broken;
use crate::migration::qemu::message::{Message, listen, read_line};
use crate::migration::qemu::stats::MoveStats;
use crate::ops::ClientFlow;
use crate::shared::Shared;
use crate::timeouts::PEER_TIMEOUT;

/// How long QEMU may take to compute its own times of a completed move.
const STATS_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the destination may take to name the port on which its QEMU listens.
const PORT_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval of `query-migrate`, between QEMU's events.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// Polling interval of a machine that waits for others to move, or for QEMU's times of its move; nanoseconds.
const LOOK_EVERY: u64 = 1_000_000;
/// How long the destination's reason for a failed move is waited for: it may arrive after QEMU's failure here.
const REASON: Duration = Duration::from_millis(500);
/// `downtime-limit` of a machine that is stopped however long its downtime is: QEMU's maximum, milliseconds.
const MAX_DOWNTIME_LIMIT_MS: u64 = 2_000_000;
/// Percent of its time that QEMU slows a guest down at most: the default of `max-cpu-throttle`.
const MOST_THROTTLE: u64 = 99;

pub(crate) struct QemuSource {
    socket: Arc<Socket>,
    flow: u32,
    machine: Machine,
    migration: Migration,
    /// Where the destination's QEMU listens: `tcp:ADDRESS:PORT`.
    uri: String,
    state: SourceState,
    ordered: Instant,
    /// Writes of the guest when the move was ordered.
    writes_before: u32,
    /// When QEMU's set-up was over: its state became `active`.
    active: Option<Instant>,
    /// When the guest was stopped, and how many writes it had made.
    stopped: Option<(Instant, u32)>,
    /// When the destination said that the guest runs there.
    runs: Option<Instant>,
    /// The last answer to `query-migrate`.
    stats: MoveStats,
    /// When `query-migrate` was last executed.
    asked: Instant,
    /// When the move last made progress: more bytes sent, or another phase.
    grew: Instant,
    /// When the round began, and the pages sent until then: with their content, and as zero.
    round: (Instant, [u64; 2]),
    rounds: Vec<MoveRound>,
    /// Bytes of pages per second in the first round.
    bandwidth: f64,
    /// Highest dirty rate that QEMU has reported, pages per second.
    dirty_pages_per_s: u64,
    /// Highest throttle that QEMU has reported, percent of the guest's time.
    throttle: u64,
    /// Pre-copy did not converge, and the machine is stopped all the same.
    forced: bool,
    /// The load was stopped before the move ended, which therefore has no result.
    abandoned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceState {
    /// Waits for other machines to move first.
    Waiting,
    Moving,
    /// QEMU sent everything at this time; the destination has yet to say that its guest runs.
    Arriving(Instant),
    /// QEMU is cancelling the move.
    Cancelling,
    /// Waits for the destination to confirm that the move was given up.
    Leaving,
}

fn failed(error: &QemuError) -> io::Error {
    broken(&error.to_string())
}

impl QemuSource {
    /// Agrees with the destination on the move. Blocks until the destination has named the port on which its QEMU
    /// listens.
    pub(crate) fn new(shared: &Shared, flow: &ClientFlow) -> io::Result<Self> {
        let machine = shared.qemu_machines.take(flow.index);
        let machine = machine.ok_or_else(|| io::Error::other("there is no such machine"))?;
        let migration = shared.options.load.migration;
        let migration = migration.ok_or_else(|| io::Error::other("the load moves nothing"))?;
        let socket = Arc::clone(&flow.socket);
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(PORT_TIMEOUT))?;
        let hello = Message::Hello {
            version: machine.version().to_string(),
            accelerator: machine.spec().accelerator,
        };
        hello.send(&socket)?;
        let line = read_line(&socket).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => broken("the destination does not say where it waits"),
            _ => error,
        })?;
        let port = match Message::parse(&line.unwrap_or_default())? {
            Message::Ready { port } => port,
            Message::Failed { words } => {
                return Err(broken(&format!("at the destination: {words}")));
            }
            other => return Err(broken(&format!("the destination answered {other:?}"))),
        };
        socket.set_read_timeout(None)?;
        let peer = socket.peer_addr()?.as_socket();
        let uri = match peer.map(|peer| peer.ip()) {
            Some(IpAddr::V6(ip)) => format!("tcp:[{ip}]:{port}"),
            Some(IpAddr::V4(ip)) => format!("tcp:{ip}:{port}"),
            None => return Err(broken("a virtual machine moves over IP only")),
        };
        listen(&socket, machine.queue(), true)?;
        let now = Instant::now();
        Ok(Self {
            socket,
            flow: flow.index,
            machine,
            migration,
            uri,
            state: SourceState::Waiting,
            ordered: now,
            writes_before: 0,
            active: None,
            stopped: None,
            runs: None,
            stats: MoveStats::default(),
            asked: now,
            grew: now,
            round: (now, [0; 2]),
            rounds: Vec::new(),
            bandwidth: 0.0,
            dirty_pages_per_s: 0,
            throttle: 0,
            forced: false,
            abandoned: false,
        })
    }

    fn command(&mut self, command: &str, arguments: &Value) -> io::Result<Value> {
        let done = self.machine.execute(command, arguments);
        done.map_err(|error| failed(&error))
    }

    /// Asks QEMU for its figures, and sends the bytes and pages sent so far to the destination.
    fn ask(&mut self, context: &Context<'_>) -> io::Result<()> {
        let now = Instant::now();
        let stats = MoveStats::of(&self.command("query-migrate", &json!({}))?);
        self.asked = now;
        if stats.transferred > self.stats.transferred {
            self.grew = now;
        }
        // When the move is over QEMU no longer reports these.
        self.dirty_pages_per_s = self.dirty_pages_per_s.max(stats.dirty_pages_per_s);
        self.throttle = self.throttle.max(stats.throttle);
        let (bytes, pages) = (stats.pages * PAGE, stats.pages + stats.zero_pages);
        let tx = &context.flow(self.flow).tx;
        if bytes > tx.bytes.get() || pages > tx.messages.get() {
            tx.bytes.publish(bytes);
            tx.messages.publish(pages);
            Message::Sent { bytes, pages }.send(&self.socket)?;
        }
        self.stats = stats;
        Ok(())
    }

    fn order(&mut self) -> io::Result<()> {
        let now = Instant::now();
        (self.ordered, self.grew, self.asked) = (now, now, now);
        self.round.0 = now;
        self.writes_before = guest::writes(self.machine.memory());
        let arguments = json!({ "uri": self.uri });
        self.command("migrate", &arguments)?;
        self.state = SourceState::Moving;
        Ok(())
    }

    /// Ends a round at `at`: QEMU has passed over the dirty pages, and looked for new ones.
    fn end_round(&mut self, at: Instant) {
        let (began, before) = self.round;
        let sent = [self.stats.pages, self.stats.zero_pages];
        let seconds = at.saturating_duration_since(began).as_secs_f64();
        let [pages, zero_pages] = [0, 1].map(|kind| sent[kind] - before[kind]);
        if self.rounds.is_empty() && seconds > 0.0 {
            self.bandwidth = (pages * PAGE) as f64 / seconds;
        }
        self.rounds.push(MoveRound {
            seconds,
            pages,
            zero_pages,
            dirtied: self.stats.remaining / PAGE,
        });
        self.round = (at, sent);
    }

    /// After a round: starts post-copy, or applies the fallback where pre-copy does not converge.
    fn judge(&mut self) -> io::Result<()> {
        if self.migration.post_copy {
            if self.rounds.len() == 1 {
                self.command("migrate-start-postcopy", &json!({}))?;
            }
            return Ok(());
        }
        let slows = self.migration.fallback == Fallback::Throttle && self.throttle < MOST_THROTTLE;
        let gives_up = self.rounds.len() as u32 >= self.migration.max_rounds
            || (self.stats.pages >= MAX_SENT_FACTOR * self.migration.pages() && !slows);
        if !gives_up || self.forced || self.stopped.is_some() {
            return Ok(());
        }
        if self.migration.fallback == Fallback::Stop {
            self.forced = true;
            self.command(
                "migrate-set-parameters",
                &json!({ "downtime-limit": MAX_DOWNTIME_LIMIT_MS }),
            )?;
        } else {
            self.cancel()?;
        }
        Ok(())
    }

    fn cancel(&mut self) -> io::Result<()> {
        self.command("migrate_cancel", &json!({}))?;
        self.state = SourceState::Cancelling;
        self.grew = Instant::now();
        Ok(())
    }

    /// Handles an event of QEMU: its move has entered `state` at `at`.
    fn on_state(&mut self, context: &Context<'_>, state: &str, at: Instant) -> io::Result<()> {
        match state {
            "active" if self.active.is_none() => {
                self.active = Some(at);
                self.round.0 = at;
            }
            "completed" => {
                self.ask(context)?;
                self.end_round(at);
                Message::Over { moved: true }.send(&self.socket)?;
                self.state = SourceState::Arriving(at);
                self.grew = at;
            }
            "cancelled" => self.leave()?,
            "failed" if self.state == SourceState::Cancelling => self.leave()?,
            "failed" => return Err(self.reason(context)),
            _ => {}
        }
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        Message::Over { moved: false }.send(&self.socket)?;
        self.state = SourceState::Leaving;
        self.grew = Instant::now();
        Ok(())
    }

    /// Why the move failed: the destination's reason, where one arrives within [`REASON`], else that of the QEMU
    /// here.
    fn reason(&mut self, context: &Context<'_>) -> io::Error {
        let until = Instant::now() + REASON;
        while Instant::now() < until {
            match self.machine.next(Duration::from_millis(20)) {
                Ok(Some(TimedLine {
                    line: Line::Other(line),
                    ..
                })) => match Message::parse(&line) {
                    Ok(Message::Failed { words }) => {
                        return broken(&format!("at the destination: {words}"));
                    }
                    _ if line.is_empty() => return gone(),
                    _ => {}
                },
                Ok(_) => {}
                Err(error) => return failed(&error),
            }
        }
        let asked = self.ask(context);
        let words = self.stats.error.take();
        match (words, asked) {
            (Some(words), _) => broken(&format!("QEMU could not move the machine: {words}")),
            (None, Err(error)) => error,
            (None, Ok(())) => broken("QEMU could not move the machine, and does not say why"),
        }
    }

    fn hear(&mut self, context: &Context<'_>, timed: TimedLine) -> io::Result<Option<Progress>> {
        match timed.line {
            Line::Event(name, data) => match name.as_str() {
                "STOP" => {
                    context.shared.qemu_machines.set_runs(self.flow, false);
                    // The move may complete before QEMU handles migrate_cancel.
                    if matches!(self.state, SourceState::Moving | SourceState::Cancelling) {
                        self.stopped = Some((timed.at, guest::writes(self.machine.memory())));
                    }
                }
                "RESUME" => {
                    context.shared.qemu_machines.set_runs(self.flow, true);
                    self.stopped = None;
                }
                "MIGRATION" => {
                    let state = data["status"].as_str().unwrap_or_default();
                    self.on_state(context, state, timed.at)?;
                }
                // QEMU reports pass 1 before it sends anything.
                "MIGRATION_PASS" if self.state == SourceState::Moving && data["pass"] != 1 => {
                    self.ask(context)?;
                    self.end_round(timed.at);
                    self.judge()?;
                }
                _ => {}
            },
            Line::Other(line) if line.is_empty() => return Err(gone()),
            Line::Other(line) => match Message::parse(&line)? {
                Message::Runs => self.runs = Some(timed.at),
                // The destination's QEMU exits when the move is given up.
                Message::Failed { .. }
                    if matches!(self.state, SourceState::Cancelling | SourceState::Leaving) => {}
                Message::Failed { words } => {
                    return Err(broken(&format!("at the destination: {words}")));
                }
                Message::Gone if self.abandoned => {
                    return Ok(Some(Progress::Over(Outcome::Orderly)));
                }
                Message::Gone => return Ok(Some(self.end(context, None))),
                other => return Err(broken(&format!("the destination answered {other:?}"))),
            },
            Line::Answer(_) | Line::Ended => {}
        }
        Ok(None)
    }

    /// Records the result of the move, and ends the task.
    ///
    /// `there`: when everything was sent, and when the guest ran at the destination, in either order; `None`: the
    /// machine stays here.
    fn end(&mut self, context: &Context<'_>, there: Option<(Instant, Instant)>) -> Progress {
        let now = Instant::now();
        let outcome = match (there, self.forced) {
            (Some(_), false) => MoveOutcome::Moved,
            (Some(_), true) => MoveOutcome::Forced,
            (None, _) => MoveOutcome::NotConverged,
        };
        let runs = there.map_or(now, |(_, runs)| runs);
        // With post-copy the guest runs before everything has arrived.
        let over = there.map_or(now, |(sent, runs)| sent.max(runs));
        let stopped = self.stopped;
        let (stopped_at, writes) =
            stopped.unwrap_or_else(|| (runs, guest::writes(self.machine.memory())));
        let ran_s = stopped_at
            .saturating_duration_since(self.ordered)
            .as_secs_f64();
        let written = writes.wrapping_sub(self.writes_before);
        let seconds = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f64();
        let spec = *self.machine.spec();
        let ms = |ms: u64| Duration::from_millis(ms).as_secs_f64();
        let moved = MachineMove {
            machine: self.flow,
            outcome,
            setup_s: self.active.map_or(0.0, |at| seconds(self.ordered, at)),
            total_s: seconds(self.ordered, over),
            downtime_s: if outcome.is_there() {
                seconds(stopped_at, runs)
            } else {
                0.0
            },
            rounds: std::mem::take(&mut self.rounds),
            memory_bytes: self.migration.memory,
            sent_bytes: self.stats.pages * PAGE,
            bandwidth: self.bandwidth,
            dirty_rate: self.migration.dirty_rate as f64,
            dirty_reached: f64::from(written) * PAGE as f64 * 8.0 / ran_s.max(1e-9),
            throttle: self.throttle as u8,
            predicted: predict(&self.migration, self.bandwidth),
            limit: None,
            seen: None,
            fetched_pages: self.stats.fetched,
            hypervisor: Some(HypervisorMove {
                version: format!("QEMU {}", self.machine.version()),
                accelerator: spec.accelerator,
                total_s: ms(self.stats.total_ms),
                setup_s: ms(self.stats.setup_ms),
                downtime_s: ms(self.stats.downtime_ms),
                transferred_bytes: self.stats.transferred,
                dirty_pages_per_s: self.dirty_pages_per_s,
                fetched_pages: self.stats.fetched,
            }),
        };
        context.shared.qemu_machines.finish(self.flow, moved);
        // Other machines may wait until this one has moved.
        context.shared.flows.notify();
        Progress::Over(Outcome::Orderly)
    }
}

impl QemuEnd for QemuSource {
    fn step(&mut self, context: &Context<'_>) -> io::Result<Option<Progress>> {
        let shared = context.shared;
        if self.state == SourceState::Waiting {
            if shared.flows.stopping() {
                return Ok(Some(Progress::Over(Outcome::Orderly)));
            }
            if !shared
                .qemu_machines
                .may_move(self.flow, self.migration.at_once)
            {
                let until = shared.now() + LOOK_EVERY;
                return Ok(Some(Progress::Wait(Interest::NONE, Some(until))));
            }
            self.order()?;
        }
        // A guest that was told to go on at the destination cannot be had back.
        let is_bound = self.migration.post_copy && !self.rounds.is_empty();
        if self.state == SourceState::Moving && shared.flows.stopping() && !is_bound {
            self.abandoned = true;
            self.cancel()?;
        }
        if let (SourceState::Arriving(sent), Some(runs)) = (self.state, self.runs) {
            // QEMU computes its times after it has reported that the move is over (`migration_calculate_complete`).
            if self.stats.total_ms == 0 && sent.elapsed() < STATS_TIMEOUT {
                self.ask(context)?;
                if self.stats.total_ms == 0 {
                    let until = shared.now() + LOOK_EVERY;
                    return Ok(Some(Progress::Wait(Interest::NONE, Some(until))));
                }
            }
            return Ok(Some(self.end(context, Some((sent, runs)))));
        }
        if self.grew.elapsed() > PEER_TIMEOUT {
            let words = match self.state {
                SourceState::Arriving(_) => "the destination does not say that the machine runs",
                SourceState::Leaving | SourceState::Cancelling => {
                    "the move does not end that was given up"
                }
                SourceState::Moving | SourceState::Waiting => "nothing more is sent",
            };
            return Err(io::Error::new(io::ErrorKind::TimedOut, words));
        }
        let timed = self.machine.next(ASK_EVERY);
        if let Some(timed) = timed.map_err(|error| failed(&error))? {
            return self.hear(context, timed);
        }
        if self.state == SourceState::Moving && self.asked.elapsed() >= ASK_EVERY {
            self.ask(context)?;
        }
        Ok(Some(Progress::READ))
    }

    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn machine(&self) -> u32 {
        self.flow
    }
}

fn gone() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the destination is gone, within the move",
    )
}
