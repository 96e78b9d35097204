//! The agents of a check, and what they are asked.

mod simulate;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::protocol::{
    Limits, LocateOrder, OneSidedOrder, PathReply, PathRequest, Reply, Request, Responding, Secret,
    SurveyOrder, Way,
};
use wirecost_check::{
    Audited, End, Enter, FlowReport, Hint, HostStack, Kind, OneSidedReport, PathReport, Simulated,
    Stream,
};
use wirecost_model::host::{HostAddress, Place};

use super::{Check, Far, MOST, Step};
use crate::lab::PROMPT;

/// How long reading a host's devices may take: some programs are started for it.
const READING: Duration = Duration::from_mins(1);
/// How long looking for the place of a loss may take.
const LOCATING: Duration = Duration::from_secs(30);

/// Datagrams of a search, and of each flow that is compared with it, where much is lost; and their mean size.
const USUAL: u32 = 400;
const USUAL_EACH: u32 = 60;
const USUAL_BYTES: f64 = 4500.0;
/// However slow: an hour.
const LONGEST: Duration = Duration::from_hours(1);

/// An IP packet that passes wherever anything does, bytes; large enough for a probe over either version.
const SMALL: u32 = 128;

/// What was found out.
#[derive(Debug)]
pub(super) struct Made {
    /// Both ends: name, address, whether an agent is there.
    pub(super) ends: [(End, bool); 2],
    /// Both directions.
    pub(super) paths: Vec<PathReport>,
    pub(super) one_sided: Option<OneSidedReport>,
    pub(super) hosts: Vec<Audited>,
    pub(super) simulations: Vec<Simulated>,
    /// How long these took.
    pub(super) simulating: Duration,
    /// Hosts where something else has the port that was asked for, and probes are heard beside it,
    pub(super) beside: Vec<String>,
    /// and where they cannot be, with the reason.
    pub(super) taken: Vec<(String, String)>,
}

/// Begins to read a host's devices.
pub(super) fn gather(
    link: &mut Link,
    place: &Place,
    interrupt: &AtomicBool,
) -> Result<(), LinkError> {
    let host = place.to_string();
    link.done(
        &Request::Path(Box::new(PathRequest::Gather { host })),
        PROMPT,
        interrupt,
    )
}

pub(super) struct Session<'a> {
    asked: &'a Check,
    /// The places of the hosts with agents.
    places: Vec<Place>,
    links: Vec<Link>,
    ends: [End; 2],
    interrupt: &'a AtomicBool,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        asked: &'a Check,
        hosts: &[&HostAddress],
        links: Vec<Link>,
        addresses: [IpAddr; 2],
        interrupt: &'a AtomicBool,
    ) -> Self {
        let name = |index: usize| match (hosts.get(index), &asked.to) {
            (Some(host), _) => host.place.to_string(),
            (None, Far::Address(address)) => address.to_string(),
            (None, Far::Host(host)) => host.place.to_string(),
        };
        let end = |index: usize| End {
            // A host that is checked with itself.
            host: match (index, name(index)) {
                (1, same) if same == name(0) => format!("{same} (2)"),
                (_, name) => name,
            },
            address: addresses[index],
        };
        Self {
            asked,
            places: hosts.iter().map(|host| host.place.clone()).collect(),
            links,
            ends: [end(0), end(1)],
            interrupt,
        }
    }

    /// The agent that has ended, where there is one, rather than what the other refused therefore.
    pub(super) fn blame(&mut self, error: LinkError) -> LinkError {
        let mut links: Vec<&mut Link> = self.links.iter_mut().collect();
        crate::lab::blame(error, &mut links)
    }

    /// Everything that is asked of the agents.
    pub(super) fn made(&mut self, told: &mut dyn FnMut(Step)) -> Result<Made, LinkError> {
        told(Step::Probing);
        let mut made = Made {
            ends: [(self.ends[0].clone(), true), (self.ends[1].clone(), false)],
            paths: Vec::new(),
            one_sided: None,
            hosts: Vec::new(),
            simulations: Vec::new(),
            simulating: Duration::ZERO,
            beside: Vec::new(),
            taken: Vec::new(),
        };
        if self.links.len() == 2 {
            made.ends[1].1 = true;
            self.both_ways(&mut made, told)?;
        } else {
            let order = OneSidedOrder {
                from: self.ends[0].clone(),
                to: self.ends[1].clone(),
                expect: self.asked.expect,
                limits: self.limits(),
            };
            let replies = self.ask(vec![PathRequest::OneSided(order)], self.most() + PROMPT)?;
            for reply in replies {
                let PathReply::OneSided(report) = reply else {
                    return Err(self.links[0].confused("OneSided"));
                };
                made.one_sided = Some(report);
            }
        }
        told(Step::Reading);
        made.hosts = self.read()?;
        if let (Some(wanted), 2) = (self.asked.simulate, self.links.len()) {
            told(Step::Simulating);
            let began = Instant::now();
            made.simulations = self.simulate(wanted)?;
            made.simulating = began.elapsed();
        }
        Ok(made)
    }

    fn both_ways(&mut self, made: &mut Made, told: &mut dyn FnMut(Step)) -> Result<(), LinkError> {
        let secret = secret(&self.links[0])?;
        let responders = self.responders(secret, made)?;
        let way = |from: usize, to: usize| Way {
            from: self.ends[from].clone(),
            to: self.ends[to].clone(),
            port: responders[to].port(),
            secret,
        };
        let ways = [way(0, 1), way(1, 0)];
        let order = |way: &Way| {
            PathRequest::Survey(SurveyOrder {
                way: way.clone(),
                expect: self.asked.expect,
                flows: self.asked.flows,
                limits: self.limits(),
            })
        };
        let orders = ways.iter().map(order).collect();
        for reply in self.ask(orders, self.most() + PROMPT)? {
            let PathReply::Path(report) = reply else {
                return Err(self.links[0].confused("Survey"));
            };
            made.paths.push(report);
        }
        self.stream(&ways, &mut made.paths)?;
        self.count_bad_checksums(&mut made.paths)?;
        self.look_beside(&ways, &mut made.paths)?;
        self.locate(&ways, &mut made.paths, told)
    }

    /// Where every size passes: whether TCP's small and full segments arrive as they are sent.
    fn stream(&mut self, ways: &[Way; 2], paths: &mut [PathReport]) -> Result<(), LinkError> {
        let passes = |path: &PathReport| {
            path.flows.iter().all(|flow| flow.kind.is_told()) && path.failing().next().is_none()
        };
        // The listening host of a direction is the other one, and answers come in the order of the hosts.
        let listen = |host: usize| {
            passes(&paths[1 - host]).then(|| PathRequest::Listen {
                address: self.ends[host].address,
                secret: ways[0].secret,
            })
        };
        let requests = vec![listen(0), listen(1)];
        let wanted: Vec<usize> = (0..2).filter(|host| requests[*host].is_some()).collect();
        let mut orders = vec![None, None];
        for (host, reply) in wanted.iter().zip(self.ask_some(requests, PROMPT)?) {
            let PathReply::Listening(address) = reply else {
                return Err(self.links[*host].confused("Listen"));
            };
            let index = 1 - host;
            orders[index] = Some(PathRequest::Stream {
                way: Way {
                    port: address.port(),
                    ..ways[index].clone()
                },
                size: paths[index].wanted.bytes(),
                bytes_per_second: self.asked.bytes_per_s,
            });
        }
        let asked: Vec<usize> = (0..2).filter(|index| orders[*index].is_some()).collect();
        for (index, reply) in asked.into_iter().zip(self.ask_some(orders, PROMPT)?) {
            let PathReply::Streamed(streamed) = reply else {
                return Err(self.links[index].confused("Stream"));
            };
            paths[index].stream = Some(streamed);
        }
        Ok(())
    }

    /// Where packets are lost without a word, or a stream was not right: whether they arrived, and the receiving host
    /// dropped them.
    fn count_bad_checksums(&mut self, paths: &mut [PathReport]) -> Result<(), LinkError> {
        let lossy = |path: &PathReport| {
            let stalled = matches!(
                path.stream,
                Some(Stream::SmallStalled | Stream::FullStalled | Stream::Changed)
            );
            stalled || path.failing().any(|flow| flow.kind == Kind::Silent)
        };
        let lossy: Vec<usize> = (0..paths.len())
            .filter(|index| lossy(&paths[*index]))
            .collect();
        // As above.
        let requests = (0..2)
            .map(|host| {
                lossy
                    .contains(&(1 - host))
                    .then_some(PathRequest::BadChecksums)
            })
            .collect();
        for (index, reply) in lossy.iter().rev().zip(self.ask_some(requests, PROMPT)?) {
            let PathReply::BadChecksums { udp, tcp } = reply else {
                return Err(self.links[1 - index].confused("BadChecksums"));
            };
            paths[*index].bad_checksums = udp;
            paths[*index].bad_segments = tcp;
        }
        Ok(())
    }

    /// Where nothing passes: whether another port does where one was asked for, or else echo requests.
    fn look_beside(&mut self, ways: &[Way; 2], paths: &mut [PathReport]) -> Result<(), LinkError> {
        let mut dead: Vec<usize> = (0..paths.len())
            .filter(|index| paths[*index].is_dead() && paths[*index].hint.is_none())
            .collect();
        let asked_for = |index: &usize| Some(ways[*index].port) == self.asked.port;
        if dead.iter().any(asked_for) {
            let others = self.other_ports(ways, &dead)?;
            for (index, port) in others {
                paths[index].hint = Some(Hint::OtherPort(port));
            }
            dead.retain(|index| paths[*index].hint.is_none());
        }
        let mut orders = vec![None, None];
        for index in &dead {
            orders[*index] = Some(PathRequest::OneSided(OneSidedOrder {
                from: ways[*index].from.clone(),
                to: ways[*index].to.clone(),
                expect: Some(SMALL),
                limits: self.limits(),
            }));
        }
        let replies = match self.ask_some(orders, self.most() + PROMPT) {
            // Not allowed to, perhaps: it would have said more, and what was found stands without it.
            Err(LinkError::Refused { .. }) => return Ok(()),
            replies => replies?,
        };
        for (index, reply) in dead.into_iter().zip(replies) {
            if let PathReply::OneSided(report) = reply
                && report.path.mtu().is_some()
            {
                paths[index].hint = Some(Hint::Echo);
            }
        }
        Ok(())
    }

    /// Those of the dead directions that another port is answered in, and which.
    fn other_ports(
        &mut self,
        ways: &[Way; 2],
        dead: &[usize],
    ) -> Result<Vec<(usize, u16)>, LinkError> {
        // The responder of a direction is at the other host.
        let mut requests = vec![None, None];
        for index in dead {
            let way = &ways[*index];
            requests[1 - index] = Some(PathRequest::Respond {
                address: SocketAddr::new(way.to.address, 0),
                secret: way.secret,
            });
        }
        let mut moved = self.ask_some(requests, PROMPT)?.into_iter();
        let mut orders = vec![None, None];
        let mut ports = [0; 2];
        // Answers come in the order of the hosts, which is the reverse of the directions'.
        for host in 0..2 {
            let index = 1 - host;
            if !dead.contains(&index) {
                continue;
            }
            let Some(PathReply::Responding(Responding::At(address))) = moved.next() else {
                return Err(self.links[host].confused("Respond"));
            };
            ports[index] = address.port();
            orders[index] = Some(PathRequest::Survey(SurveyOrder {
                way: Way {
                    port: address.port(),
                    ..ways[index].clone()
                },
                expect: Some(SMALL),
                flows: 1,
                limits: self.limits(),
            }));
        }
        let mut asked: Vec<usize> = dead.to_vec();
        asked.sort_unstable();
        let replies = self.ask_some(orders, self.most() + PROMPT)?;
        let answered = asked.into_iter().zip(replies).filter_map(|(index, reply)| {
            matches!(reply, PathReply::Path(report) if report.mtu().is_some())
                .then_some((index, ports[index]))
        });
        Ok(answered.collect())
    }

    /// A responder on each host, on the port that was asked for where that is free.
    fn responders(
        &mut self,
        secret: Secret,
        Made { beside, taken, .. }: &mut Made,
    ) -> Result<[SocketAddr; 2], LinkError> {
        let mut ports = [self.asked.port.unwrap_or(0); 2];
        loop {
            let respond = |index: usize| PathRequest::Respond {
                address: SocketAddr::new(self.ends[index].address, ports[index]),
                secret,
            };
            let requests = vec![respond(0), respond(1)];
            let mut answering = Vec::new();
            for (index, reply) in self.ask(requests, PROMPT)?.into_iter().enumerate() {
                let PathReply::Responding(responding) = reply else {
                    return Err(self.links[index].confused("Respond"));
                };
                let host = &self.ends[index].host;
                match responding {
                    Responding::At(address) => answering.push(address),
                    Responding::Beside(address) => {
                        answering.push(address);
                        if !beside.contains(host) {
                            beside.push(host.clone());
                        }
                    }
                    Responding::Taken(_) if ports[index] == 0 => {
                        return Err(self.links[index].confused("Respond"));
                    }
                    Responding::Taken(why) => {
                        taken.push((host.clone(), why));
                        ports[index] = 0;
                    }
                }
            }
            if let Ok(answering) = <[SocketAddr; 2]>::try_from(answering) {
                return Ok(answering);
            }
        }
    }

    /// Where sizes are lost that the sender's device takes and nobody reports.
    fn locate(
        &mut self,
        ways: &[Way; 2],
        paths: &mut [PathReport],
        told: &mut dyn FnMut(Step),
    ) -> Result<(), LinkError> {
        let orders: Vec<Option<PathRequest>> = ways
            .iter()
            .zip(&*paths)
            .map(|(way, path)| {
                let wanted = path.wanted.bytes();
                let fails = |flow: &FlowReport| {
                    flow.kind == Kind::Silent && flow.mtu.is_none_or(|mtu| mtu < wanted)
                };
                let flow = path.flows.iter().position(fails)?;
                let silent = path.flows[flow];
                // Of what is lost the smallest: a larger one may be lost elsewhere as well.
                let failing = silent.mtu.map_or(wanted, |carried| carried + 1);
                Some(PathRequest::Locate(LocateOrder {
                    way: way.clone(),
                    flow: flow as u32,
                    failing,
                }))
            })
            .collect();
        if orders.iter().all(Option::is_none) {
            return Ok(());
        }
        told(Step::Locating);
        let asked: Vec<usize> = (0..orders.len())
            .filter(|index| orders[*index].is_some())
            .collect();
        let replies = match self.ask_some(orders, LOCATING) {
            Err(LinkError::Refused { .. }) => return Ok(()),
            replies => replies?,
        };
        for (index, reply) in asked.iter().zip(replies) {
            let PathReply::Located(located) = reply else {
                return Err(self.links[0].confused("Locate"));
            };
            // Not found, or it arrived after all: the path's line stands without a place.
            paths[*index].stretch = located.ok();
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<Audited>, LinkError> {
        let machines = self.machines()?;
        let requests = self.links.iter().map(|_| Some(PathRequest::Gathered));
        let replies = self.ask_each(requests.collect(), READING)?;
        let mut hosts = Vec::new();
        for (index, (reply, machine)) in replies.into_iter().zip(machines).enumerate() {
            let stack = match reply {
                Ok(PathReply::Stack(json)) => serde_json::from_str(&json)
                    .map_err(|_| self.links[index].confused("Gathered"))?,
                Ok(_) => return Err(self.links[index].confused("Gathered")),
                // What the packets showed stands without it.
                Err(LinkError::Refused { message, .. }) => HostStack::unread(
                    &self.places[index].to_string(),
                    "devices, routes and settings",
                    &message,
                ),
                Err(error) => return Err(error),
            };
            hosts.push(Audited {
                stack,
                machine,
                enter: match &self.places[index] {
                    Place::Netns(name) => Enter::Named(name.clone()),
                    Place::Local | Place::Ssh(_) | Place::Exec(_) => Enter::Here,
                },
            });
        }
        Ok(hosts)
    }

    fn machines(&mut self) -> Result<Vec<String>, LinkError> {
        let mut machines = Vec::new();
        for link in &mut self.links {
            match link.call(&Request::Machine, PROMPT, self.interrupt)? {
                Reply::Machine(id) => machines.push(id),
                _ => return Err(link.confused("Machine")),
            }
        }
        Ok(machines)
    }

    fn limits(&self) -> Limits {
        Limits {
            datagrams_per_second: self.asked.datagrams_per_s,
            bytes_per_second: self.asked.bytes_per_s,
            most: self.most(),
        }
    }

    /// What a direction's probes may take before what is still open gets no answer: more where they are to be slow.
    fn most(&self) -> Duration {
        let datagrams = f64::from(USUAL + USUAL_EACH * self.asked.flows);
        let slow = (datagrams / self.asked.datagrams_per_s)
            .max(datagrams * USUAL_BYTES / self.asked.bytes_per_s);
        let slow = Duration::try_from_secs_f64(2.0 * slow).unwrap_or(LONGEST);
        slow.clamp(MOST, LONGEST)
    }

    /// One request to each host, at the same time.
    fn ask(
        &mut self,
        requests: Vec<PathRequest>,
        within: Duration,
    ) -> Result<Vec<PathReply>, LinkError> {
        self.ask_some(requests.into_iter().map(Some).collect(), within)
    }

    /// The same of those that have one.
    fn ask_some(
        &mut self,
        requests: Vec<Option<PathRequest>>,
        within: Duration,
    ) -> Result<Vec<PathReply>, LinkError> {
        self.ask_each(requests, within)?.into_iter().collect()
    }

    /// The same, each with its own answer or refusal; every one is taken off its line, whatever it is.
    fn ask_each(
        &mut self,
        requests: Vec<Option<PathRequest>>,
        within: Duration,
    ) -> Result<Vec<Result<PathReply, LinkError>>, LinkError> {
        let mut asked = Vec::new();
        for (link, request) in self.links.iter_mut().zip(requests) {
            if let Some(request) = request {
                link.send(&Request::Path(Box::new(request)))?;
                asked.push(link);
            }
        }
        let mut replies = Vec::new();
        for link in asked {
            let reply = link.receive(within, self.interrupt);
            if matches!(reply, Err(LinkError::Interrupted)) {
                return Err(LinkError::Interrupted);
            }
            replies.push(match reply {
                Ok(Reply::Path(reply)) => Ok(*reply),
                Ok(_) => Err(link.confused("Path")),
                Err(error) => Err(error),
            });
        }
        Ok(replies)
    }
}

/// Random, made anew for each check or lab.
pub(crate) fn secret(link: &Link) -> Result<Secret, LinkError> {
    let random = || {
        crate::rounds::random_bytes().map_err(|source| LinkError::Start {
            host: link.host().to_owned(),
            source: std::io::Error::other(source),
        })
    };
    let (probe, other) = (random()?, random()?);
    let mut acknowledgement = [0; 8];
    acknowledgement.copy_from_slice(&other[..8]);
    Ok(Secret {
        probe,
        acknowledgement,
    })
}
