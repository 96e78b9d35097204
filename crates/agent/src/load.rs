//! One side of a TCP stream load in the guest, and the window over which it is counted.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use wirecost_meter::{ForeignSnapshot, Meter};
use wirecost_model::sample::Interval;
use wirecost_sys::namespace::Netns;
use wirecost_traffic::{Client, Options, Server, Snapshot, Workload, flow_deltas};

use crate::protocol::{LoadOptions, Measured, Window};

/// How long connections may take to open, or to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long before the window the processes are looked through.
const SCAN_LEAD: Duration = Duration::from_millis(25);

/// The side of a load that this host has.
#[derive(Debug)]
pub(crate) enum Load {
    Sink(Server),
    Source(Client),
}

fn options(load: &LoadOptions) -> Options {
    Options {
        streams: load.stream.streams,
        request: load.stream.message,
        congestion: Some(load.stream.congestion.clone()),
        socket_buffer: load.stream.socket_buffer,
        ..Options::new(Workload::TcpStream, load.secret)
    }
}

impl Load {
    pub(crate) fn sink(
        guest: &Netns,
        bind: SocketAddr,
        load: &LoadOptions,
    ) -> Result<(Self, SocketAddr), String> {
        let sink = guest
            .within(|| Server::listen(bind, &options(load)))
            .map_err(|error| format!("entering the guest's namespace: {error}"))?
            .map_err(|error| error.to_string())?;
        let address = sink.address();
        Ok((Self::Sink(sink), address))
    }

    pub(crate) fn source(
        guest: &Netns,
        target: SocketAddr,
        load: &LoadOptions,
    ) -> Result<Self, String> {
        guest
            .within(|| Client::connect(target, &options(load), PATIENCE))
            .map_err(|error| format!("entering the guest's namespace: {error}"))?
            .map(Self::Source)
            .map_err(|error| error.to_string())
    }

    pub(crate) fn start(&self) -> Result<(), String> {
        match self {
            Self::Source(source) => source.start().map(drop).map_err(|error| error.to_string()),
            Self::Sink(_) => Err("a sink cannot be started: it listens already".into()),
        }
    }

    pub(crate) fn close(self) -> Result<(), String> {
        match self {
            Self::Sink(sink) => sink
                .finish(PATIENCE)
                .map(drop)
                .map_err(|error| error.to_string()),
            Self::Source(source) => source
                .stop(PATIENCE)
                .map(drop)
                .map_err(|error| error.to_string()),
        }
    }

    fn snapshot(&self) -> Result<Snapshot, String> {
        match self {
            Self::Sink(sink) => sink.snapshot(),
            Self::Source(source) => source.snapshot(),
        }
        .map_err(|error| error.to_string())
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Sink(sink) => sink.bytes(),
            Self::Source(source) => source.bytes(),
        }
    }
}

/// Counts over one window that begins `warmup_s` from now. Without a load the host alone is counted.
pub(crate) fn measure(
    meter: &mut Meter,
    load: Option<&Load>,
    window: &Window,
) -> Result<Measured, String> {
    let warmup = Duration::from_secs_f64(window.warmup_s);
    let scan_at = Instant::now() + warmup.saturating_sub(SCAN_LEAD);
    let begin_at = scan_at + warmup.min(SCAN_LEAD);
    let length = Duration::from_secs_f64(window.seconds);
    let words = |error: wirecost_meter::MeterError| error.to_string();
    // Looking through all processes takes milliseconds: before and after the window, never within.
    // A kernel that keeps no run times leaves the figure out.
    let scan = || -> Option<ForeignSnapshot> {
        wirecost_meter::foreign_snapshot(window.foreign_to.as_ref()?).ok()
    };
    sleep_until(scan_at);
    let foreign_before = scan();
    sleep_until(begin_at);
    let load_before = load.map(Load::snapshot).transpose()?;
    let before = meter.snapshot().map_err(words)?;
    let began = Instant::now();

    let mut intervals = Vec::new();
    let mut last = load.map_or(0, Load::bytes);
    let interval = window.interval_s.max(1e-3);
    let count = (window.seconds / interval).round().max(1.0) as u32;
    for index in 1..=count {
        sleep_until(began + length * index / count);
        if let Some(load) = load {
            let bytes = load.bytes();
            let end_s = began.elapsed().as_secs_f64();
            intervals.push(Interval {
                end_s,
                bytes: bytes - last,
            });
            last = bytes;
        }
    }
    let load_after = load.map(Load::snapshot).transpose()?;
    let after = meter.snapshot().map_err(words)?;
    let foreign_after = scan();

    let mut usage = wirecost_meter::delta(&before, &after);
    usage.foreign_cores = foreign_before
        .zip(foreign_after)
        .map(|(before, after)| wirecost_meter::foreign_cores(&before, &after));
    let (flows, seconds) = match (load_before, load_after) {
        (Some(before), Some(after)) => {
            let flows = flow_deltas(&before, &after).map_err(|error| error.to_string())?;
            (flows, after.since(&before).as_secs_f64())
        }
        _ => (Vec::new(), usage.window_s),
    };
    Ok(Measured {
        usage,
        flows,
        seconds,
        intervals,
    })
}

fn sleep_until(moment: Instant) {
    sleep(moment.saturating_duration_since(Instant::now()));
}
