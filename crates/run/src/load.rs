//! A load over a lab, counted on both hosts over one window: opened, begun, counted, closed.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{LoadOptions, Measured, Reply, Request, Window};

use crate::lab::{Lab, PROMPT};

/// When to count, and what belongs to the run.
#[derive(Debug, Clone, Copy)]
pub struct Counting<'a> {
    /// Seconds from now to the window's start.
    pub warmup_s: f64,
    /// Length of the window in seconds.
    pub seconds: f64,
    /// Length of the intervals within it, in seconds.
    pub interval_s: f64,
    /// Processes that are not foreign: the controller, every agent, the tools it started.
    pub ours: &'a [u32],
}

impl Lab {
    /// Opens a TCP stream from a's guest to b's, counts it and closes it. Host a's counts come first.
    pub fn load(
        &mut self,
        options: LoadOptions,
        counting: Counting<'_>,
        interrupt: &AtomicBool,
    ) -> Result<[Measured; 2], LinkError> {
        let sink = Request::OpenSink(options.clone());
        let Reply::Listening(target) = self.b.call(&sink, PROMPT, interrupt)? else {
            return Err(self.b.confused("OpenSink"));
        };
        for request in [Request::OpenSource { target, options }, Request::Start] {
            self.a.done(&request, PROMPT, interrupt)?;
        }
        let measured = self.count(counting, interrupt)?;
        // The source first: the sink reads to the end of what was sent.
        for link in self.links() {
            link.done(&Request::CloseLoad, PROMPT, interrupt)?;
        }
        Ok(measured)
    }

    /// Counts on both hosts at once, whatever loads them. Host a, whose machine b's is too, looks for
    /// foreign load.
    pub fn count(
        &mut self,
        counting: Counting<'_>,
        interrupt: &AtomicBool,
    ) -> Result<[Measured; 2], LinkError> {
        let window = |foreign_to| {
            Request::Measure(Window {
                warmup_s: counting.warmup_s,
                seconds: counting.seconds,
                interval_s: counting.interval_s,
                foreign_to,
            })
        };
        let within = Duration::from_secs_f64(counting.warmup_s + counting.seconds) + PROMPT;
        let (a, b) = (window(Some(counting.ours.to_vec())), window(None));
        match self.both(&a, &b, within, interrupt)? {
            [Reply::Measured(sent), Reply::Measured(received)] => Ok([*sent, *received]),
            _ => Err(self.a.confused("Measure")),
        }
    }
}
