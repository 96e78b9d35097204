//! The requests of a check to its agents.

mod evidence;
mod locate;
mod loss;
mod neighbours;
mod requests;
mod responders;
mod retries;
mod segments;
mod simulate;
mod stacks;
mod tcp_port;
mod trace;

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::protocol::{
    Limits, OneSidedOrder, PathDirection, PathReply, PathRequest, Secret, SurveyOrder,
};
use wirecost_check::{
    AuditedHost, DropRule, OneSidedReport, PathEnd, PathReport, Simulated, TcpReport, TraceReport,
};
use wirecost_model::host::{HostAddress, Location};

pub(super) use stacks::gather;

use super::{Check, CheckStep, CheckTarget, DIRECTION_LIMIT};
use crate::random;
use crate::timeouts::PROMPT;

/// Datagrams of a search on a lossy path.
const USUAL: u32 = 400;
/// Datagrams of each further flow on a lossy path.
const USUAL_EACH: u32 = 60;
/// Mean size of these datagrams, bytes.
const USUAL_BYTES: f64 = 4500.0;
/// Upper bound on the time limit of slow probes.
const MAX_SLOW_LIMIT: Duration = Duration::from_hours(1);

/// The results of a check.
#[derive(Debug)]
pub(super) struct CheckResults {
    /// Both ends, and whether each has an agent.
    pub(super) ends: [(PathEnd, bool); 2],
    /// Reports of both directions; empty without two agents or over TCP.
    pub(super) paths: Vec<PathReport>,
    pub(super) one_sided: Option<OneSidedReport>,
    pub(super) tcp: Option<TcpReport>,
    pub(super) traces: Vec<TraceReport>,
    pub(super) hosts: Vec<AuditedHost>,
    /// Firewall rules of each host that drop packets; empty where they were not read.
    pub(super) rules: [Vec<DropRule>; 2],
    pub(super) simulations: Vec<Simulated>,
    /// How long the simulations took.
    pub(super) simulating: Duration,
    /// Hosts where the port is in use, and probes are received through a packet socket instead.
    pub(super) tapped: Vec<String>,
    /// Hosts where the port is in use and no packet socket is possible, with the reason: probes go to another port.
    pub(super) untestable: Vec<(String, String)>,
}

pub(super) struct Session<'a> {
    asked: &'a Check,
    /// Locations of the hosts with agents.
    places: Vec<Location>,
    links: Vec<Link>,
    ends: [PathEnd; 2],
    interrupt: &'a AtomicBool,
}

/// Names of both ends; the second is marked where a host is checked against itself.
pub(super) fn names(asked: &Check) -> [String; 2] {
    let first = asked.from.place.to_string();
    let second = match &asked.to {
        CheckTarget::Address(address) => address.to_string(),
        CheckTarget::OnLink(address, device) => format!("{address}%{device}"),
        CheckTarget::Host(host) if host.place == asked.from.place => format!("{first} (2)"),
        CheckTarget::Host(host) => host.place.to_string(),
    };
    [first, second]
}

impl<'a> Session<'a> {
    pub(super) fn new(
        asked: &'a Check,
        hosts: &[&HostAddress],
        links: Vec<Link>,
        addresses: [IpAddr; 2],
        interrupt: &'a AtomicBool,
    ) -> Self {
        let [first, second] = names(asked);
        let end = |host, address| PathEnd { host, address };
        Self {
            asked,
            places: hosts.iter().map(|host| host.place.clone()).collect(),
            links,
            ends: [end(first, addresses[0]), end(second, addresses[1])],
            interrupt,
        }
    }

    /// The end of an agent, where one has ended, instead of the refusal that it caused at the other host.
    pub(super) fn blame(&mut self, error: LinkError) -> LinkError {
        let mut links: Vec<&mut Link> = self.links.iter_mut().collect();
        crate::lab::blame(error, &mut links)
    }

    /// Makes all requests of the check and collects the answers.
    pub(super) fn results(
        &mut self,
        on_step: &mut dyn FnMut(CheckStep),
    ) -> Result<CheckResults, LinkError> {
        on_step(CheckStep::Probing);
        let mut results = CheckResults {
            ends: [(self.ends[0].clone(), true), (self.ends[1].clone(), false)],
            paths: Vec::new(),
            one_sided: None,
            tcp: None,
            traces: Vec::new(),
            hosts: Vec::new(),
            simulations: Vec::new(),
            simulating: Duration::ZERO,
            rules: [Vec::new(), Vec::new()],
            tapped: Vec::new(),
            untestable: Vec::new(),
        };
        results.ends[1].1 = self.links.len() == 2;
        if let Some(port) = self.asked.tcp {
            results.tcp = Some(self.tcp_port(port)?);
        } else if self.links.len() == 2 {
            self.both_ways(&mut results, on_step)?;
        } else {
            let limits = self.patient();
            let order = OneSidedOrder {
                from: self.ends[0].clone(),
                to: self.ends[1].clone(),
                expect: self.asked.expect,
                limits,
            };
            let within = limits.longest() + PROMPT;
            let replies = self.ask(vec![PathRequest::OneSided(order)], within)?;
            for reply in replies {
                let PathReply::OneSided(report) = reply else {
                    return Err(self.links[0].unexpected_reply("OneSided"));
                };
                results.one_sided = Some(report);
            }
            let path = results.one_sided.as_ref().map(|report| &report.path);
            results.rules = self.rules(path.map_or(&[], std::slice::from_ref))?;
        }
        if self.asked.trace && results.traces.is_empty() {
            on_step(CheckStep::Tracing);
            results.traces = self.trace_one_side(&results)?;
        }
        on_step(CheckStep::Reading);
        results.hosts = self.read()?;
        for (host, rules) in results.hosts.iter_mut().zip(&mut results.rules) {
            host.rules = std::mem::take(rules);
        }
        if let (Some(wanted), 2) = (self.asked.simulate, self.links.len()) {
            on_step(CheckStep::Simulating);
            let began = Instant::now();
            results.simulations = self.simulate(wanted)?;
            results.simulating = began.elapsed();
        }
        Ok(results)
    }

    fn both_ways(
        &mut self,
        results: &mut CheckResults,
        on_step: &mut dyn FnMut(CheckStep),
    ) -> Result<(), LinkError> {
        let secret = random::secret(&self.links[0])?;
        let mut ways = self.ways(secret, results)?;
        results.paths = self.survey(&ways, [true; 2], self.limits())?;
        self.await_neighbours(&ways, &mut results.paths)?;
        let mapped = self.arrivals(&ways, &mut results.paths)?;
        // Before the flows that created the NAT mappings are closed.
        self.ask_back(&ways, &mut results.paths, mapped)?;
        if results.paths.iter().any(|path| path.mapped.is_some()) {
            ways = self.ways(secret, results)?;
        }
        self.ask_again(&mut ways, results)?;
        self.count_loss(&ways, &mut results.paths)?;
        self.stream(&ways, &mut results.paths)?;
        self.segments(&ways, &mut results.paths)?;
        self.count_bad_checksums(&mut results.paths)?;
        results.rules = self.rules(&results.paths)?;
        self.locate(&ways, &mut results.paths, on_step)?;
        if self.asked.trace {
            on_step(CheckStep::Tracing);
            results.traces = self.trace(&ways, &results.paths)?;
        }
        Ok(())
    }

    /// Starts a responder at each end, and returns both directions.
    fn ways(
        &mut self,
        secret: Secret,
        results: &mut CheckResults,
    ) -> Result<[PathDirection; 2], LinkError> {
        let responders = self.responders(secret, results)?;
        let way = |from: usize, to: usize| PathDirection {
            from: self.ends[from].clone(),
            to: self.ends[to].clone(),
            port: responders[to].port(),
            secret,
        };
        Ok([way(0, 1), way(1, 0)])
    }

    /// Probes the wanted directions; the reports are in the order of `ways`.
    fn survey(
        &mut self,
        ways: &[PathDirection; 2],
        wanted: [bool; 2],
        limits: Limits,
    ) -> Result<Vec<PathReport>, LinkError> {
        let order = |index: usize| {
            wanted[index].then(|| {
                PathRequest::Survey(SurveyOrder {
                    way: ways[index].clone(),
                    expect: self.asked.expect,
                    flows: self.asked.flows,
                    limits,
                    count: false,
                })
            })
        };
        let orders = vec![order(0), order(1)];
        let mut reports = Vec::new();
        for reply in self.ask_some(orders, limits.longest() + PROMPT)? {
            let PathReply::Path(report) = reply else {
                return Err(self.links[0].unexpected_reply("Survey"));
            };
            reports.push(report);
        }
        Ok(reports)
    }

    fn limits(&self) -> Limits {
        Limits {
            datagrams_per_second: self.asked.datagrams_per_s,
            bytes_per_second: self.asked.bytes_per_s,
            far: false,
            most: self.most(),
        }
    }

    /// [`Self::limits`] for an end that may be far away or slow to answer.
    fn patient(&self) -> Limits {
        Limits {
            far: true,
            ..self.limits()
        }
    }

    /// Time limit of one direction's probes, [`DIRECTION_LIMIT`] to [`MAX_SLOW_LIMIT`]: twice the time that the rate
    /// limits make them take.
    fn most(&self) -> Duration {
        let datagrams = f64::from(USUAL + USUAL_EACH * self.asked.flows);
        let slow = (datagrams / self.asked.datagrams_per_s)
            .max(datagrams * USUAL_BYTES / self.asked.bytes_per_s);
        let slow = Duration::try_from_secs_f64(2.0 * slow).unwrap_or(MAX_SLOW_LIMIT);
        slow.clamp(DIRECTION_LIMIT, MAX_SLOW_LIMIT)
    }
}
