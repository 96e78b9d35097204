//! A virtual machine's source: its QEMU, which moves it, and the flow on which the destination says that it runs there.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::Socket;
use wirecost_model::load::{Fallback, MAX_SENT_FACTOR, Migration, PAGE};
use wirecost_model::moved::{HypervisorMove, MachineMove, MoveOutcome, MoveRound, predict};
use wirecost_qemu::{Line, Machine, QemuError, Said, guest};
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

/// How long QEMU may take for its own figures of a move that is over.
const RECKONED: Duration = Duration::from_secs(1);
/// How long the destination may take to say where it waits.
const WELCOME: Duration = Duration::from_secs(15);
/// How often QEMU is asked how far it is, between its events.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// How long a machine that has to wait for others looks away.
const LOOK_EVERY: u64 = 1_000_000;
/// What the destination says of a move that failed may come later than QEMU's own failure.
const REASON: Duration = Duration::from_millis(500);
/// `downtime-limit` of a machine that is stopped whatever it takes: QEMU's maximum, milliseconds.
const WHATEVER: u64 = 2_000_000;
/// `max-cpu-throttle`.
const MOST_THROTTLE: u64 = 99;

pub(crate) struct QemuSource {
    socket: Arc<Socket>,
    flow: u32,
    machine: Machine,
    migration: Migration,
    /// Where the destination's QEMU waits.
    uri: String,
    doing: Doing,
    ordered: Instant,
    writes_before: u32,
    /// QEMU's own set-up was over.
    active: Option<Instant>,
    /// The guest was stopped, with so many writes.
    stopped: Option<(Instant, u32)>,
    /// It runs at the destination.
    runs: Option<Instant>,
    /// The last answer, and when it was.
    stats: MoveStats,
    asked: Instant,
    /// When more had been sent than before.
    grew: Instant,
    /// When the round began, and what had been sent then.
    round: (Instant, [u64; 2]),
    rounds: Vec<MoveRound>,
    bandwidth: f64,
    dirty_pages_per_s: u64,
    throttle: u64,
    forced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Others move first.
    Waiting,
    Moving,
    /// Everything is sent, at that time: the destination is to say that its guest runs.
    Arriving(Instant),
    /// QEMU is giving up.
    Cancelling,
    /// The destination is to say that its machine is gone.
    Leaving,
}

fn failed(error: &QemuError) -> io::Error {
    broken(&error.to_string())
}

impl QemuSource {
    /// Agrees with the destination. Blocks until it has said where its machine waits.
    pub(crate) fn new(shared: &Shared, flow: &ClientFlow) -> io::Result<Self> {
        let machine = shared.virtuals.take(flow.index);
        let machine = machine.ok_or_else(|| io::Error::other("there is no such machine"))?;
        let migration = shared.options.load.migration;
        let migration = migration.ok_or_else(|| io::Error::other("the load moves nothing"))?;
        let socket = Arc::clone(&flow.socket);
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(WELCOME))?;
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
            doing: Doing::Waiting,
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
        })
    }

    fn command(&mut self, command: &str, arguments: &Value) -> io::Result<Value> {
        let done = self.machine.execute(command, arguments);
        done.map_err(|error| failed(&error))
    }

    /// Asks QEMU how far it is, and tells the destination.
    fn ask(&mut self, context: &Context<'_>) -> io::Result<()> {
        let now = Instant::now();
        let stats = MoveStats::of(&self.command("query-migrate", &json!({}))?);
        self.asked = now;
        if stats.transferred > self.stats.transferred {
            self.grew = now;
        }
        // After the end it says nothing of these any more.
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
        self.doing = Doing::Moving;
        Ok(())
    }

    /// A pass over the dirty pages has ended at `at`, and QEMU has looked for new ones.
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

    /// What is done with a machine that does not converge.
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
                &json!({ "downtime-limit": WHATEVER }),
            )?;
        } else {
            self.cancel()?;
        }
        Ok(())
    }

    fn cancel(&mut self) -> io::Result<()> {
        self.command("migrate_cancel", &json!({}))?;
        self.doing = Doing::Cancelling;
        self.grew = Instant::now();
        Ok(())
    }

    /// QEMU says what state its move is in.
    fn state(&mut self, context: &Context<'_>, state: &str, at: Instant) -> io::Result<()> {
        match state {
            "active" if self.active.is_none() => {
                self.active = Some(at);
                self.round.0 = at;
            }
            "completed" => {
                self.ask(context)?;
                self.end_round(at);
                Message::Over { moved: true }.send(&self.socket)?;
                self.doing = Doing::Arriving(at);
                self.grew = at;
            }
            "cancelled" => self.leave()?,
            "failed" if self.doing == Doing::Cancelling => self.leave()?,
            "failed" => return Err(self.reason(context)),
            _ => {}
        }
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        Message::Over { moved: false }.send(&self.socket)?;
        self.doing = Doing::Leaving;
        self.grew = Instant::now();
        Ok(())
    }

    /// Why the move failed: by the destination where it says so, else by QEMU here.
    fn reason(&mut self, context: &Context<'_>) -> io::Error {
        let until = Instant::now() + REASON;
        while Instant::now() < until {
            match self.machine.next(Duration::from_millis(20)) {
                Ok(Some(Said {
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

    fn hear(&mut self, context: &Context<'_>, said: Said) -> io::Result<Option<Progress>> {
        match said.line {
            Line::Event(name, data) => match name.as_str() {
                "STOP" => {
                    context.shared.virtuals.set_runs(self.flow, false);
                    if self.doing == Doing::Moving {
                        self.stopped = Some((said.at, guest::writes(self.machine.memory())));
                    }
                }
                "RESUME" => context.shared.virtuals.set_runs(self.flow, true),
                "MIGRATION" => {
                    let state = data["status"].as_str().unwrap_or_default();
                    self.state(context, state, said.at)?;
                }
                // The first one is QEMU's look before it begins.
                "MIGRATION_PASS" if self.doing == Doing::Moving && data["pass"] != 1 => {
                    self.ask(context)?;
                    self.end_round(said.at);
                    self.judge()?;
                }
                _ => {}
            },
            Line::Other(line) if line.is_empty() => return Err(gone()),
            Line::Other(line) => match Message::parse(&line)? {
                Message::Runs => self.runs = Some(said.at),
                // QEMU ends at the destination where the move is given up.
                Message::Failed { .. }
                    if matches!(self.doing, Doing::Cancelling | Doing::Leaving) => {}
                Message::Failed { words } => {
                    return Err(broken(&format!("at the destination: {words}")));
                }
                Message::Gone => return Ok(Some(self.end(context, None))),
                other => return Err(broken(&format!("the destination answered {other:?}"))),
            },
            Line::Answer(_) | Line::Ended => {}
        }
        Ok(None)
    }

    /// The machine is there, or stays.
    ///
    /// `there`: when everything was sent, and when the guest ran there, in either order.
    fn end(&mut self, context: &Context<'_>, there: Option<(Instant, Instant)>) -> Progress {
        let now = Instant::now();
        let outcome = match (there, self.forced) {
            (Some(_), false) => MoveOutcome::Moved,
            (Some(_), true) => MoveOutcome::Forced,
            (None, _) => MoveOutcome::NotConverged,
        };
        let runs = there.map_or(now, |(_, runs)| runs);
        // With post-copy the guest runs before everything is there.
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
        context.shared.virtuals.finish(self.flow, moved);
        // Others may wait for their turn.
        context.shared.flows.notify();
        Progress::Over(Outcome::Orderly)
    }
}

impl QemuEnd for QemuSource {
    fn step(&mut self, context: &Context<'_>) -> io::Result<Option<Progress>> {
        let shared = context.shared;
        if self.doing == Doing::Waiting {
            if shared.flows.stopping() {
                return Ok(Some(Progress::Over(Outcome::Orderly)));
            }
            if !shared.virtuals.may_move(self.flow, self.migration.at_once) {
                let until = shared.now() + LOOK_EVERY;
                return Ok(Some(Progress::Wait(Interest::NONE, Some(until))));
            }
            self.order()?;
        }
        if self.doing == Doing::Moving && shared.flows.stopping() {
            self.cancel()?;
        }
        if let (Doing::Arriving(sent), Some(runs)) = (self.doing, self.runs) {
            // QEMU reckons its times after it has said that the move is over (`migration_calculate_complete`).
            if self.stats.total_ms == 0 && sent.elapsed() < RECKONED {
                self.ask(context)?;
                if self.stats.total_ms == 0 {
                    let until = shared.now() + LOOK_EVERY;
                    return Ok(Some(Progress::Wait(Interest::NONE, Some(until))));
                }
            }
            return Ok(Some(self.end(context, Some((sent, runs)))));
        }
        if self.grew.elapsed() > PEER_TIMEOUT {
            let words = match self.doing {
                Doing::Arriving(_) => "the destination does not say that the machine runs",
                Doing::Leaving | Doing::Cancelling => "the move does not end that was given up",
                Doing::Moving | Doing::Waiting => "nothing more is sent",
            };
            return Err(io::Error::new(io::ErrorKind::TimedOut, words));
        }
        let said = self.machine.next(ASK_EVERY);
        if let Some(said) = said.map_err(|error| failed(&error))? {
            return self.hear(context, said);
        }
        if self.doing == Doing::Moving && self.asked.elapsed() >= ASK_EVERY {
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
