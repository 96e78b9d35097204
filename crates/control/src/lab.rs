//! A lab: two hosts, their agents, and the network between them. Cells of one network share it.

mod built;
mod existing;
mod host_pool;
mod over_hosts;
mod prove;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use wirecost_agent::link::{LabAgent, Link, LinkError};
use wirecost_agent::protocol::{EndSecret, HostSpec, Reply, Request, Side};
use wirecost_model::cell::Network;
use wirecost_model::line::LineRelease;
use wirecost_model::offload::Offload;
use wirecost_model::plan::Cores;
use wirecost_model::sample::DeviceState;
use wirecost_model::steering::Rps;
use wirecost_model::switch::OpenVswitch;

use self::built::BuiltLab;
use crate::concurrent::call_both;
use crate::hosts::HostsContext;
use crate::placement::Placement;
use crate::random;
use crate::timeouts::PROMPT;

pub(crate) use self::built::unlike;
pub(crate) use self::existing::ExistingPair;
pub(crate) use self::host_pool::HostPool;

/// How long the connection to a killed agent may stay open after the agent's data connections closed: the kernel closes
/// the files of a process one after the other (kernel/exit.c).
const LINE_CLOSES: Duration = Duration::from_millis(300);
/// How often the connections to the agents are polled within [`LINE_CLOSES`].
const LINE_LOOK: Duration = Duration::from_millis(5);
/// What every lab of a run shares.
#[derive(Debug, Clone)]
pub struct LabContext {
    /// What the hosts' agents are started with.
    pub agents: HostsContext,
    /// Which host runs on which cores.
    pub placement: Placement,
    /// Microseconds between two releases of a line.
    pub release_us: u32,
    /// Whether any network of the run has several links: then every line is emulated in the same way.
    pub several_links: bool,
}

/// Two hosts with their network, ready for cells of that network. Dropping a lab removes it.
#[derive(Debug)]
pub struct Lab {
    pub(crate) a: Link,
    pub(crate) b: Link,
    network: Network,
    built: BuiltLab,
    /// Whether settings are applied that have to be undone.
    pub(crate) applied: bool,
    /// Guest MTUs, bytes, whose full-size datagrams were already seen on the underlay.
    seen: BTreeSet<u32>,
    /// How long building took, seconds.
    seconds: f64,
    /// The existing hosts of a lab that builds nothing.
    pub(crate) existing: Option<ExistingPair>,
    /// The existing hosts on which guests, bridge and tunnel were built.
    between: Option<ExistingPair>,
}

impl Lab {
    /// Starts both agents and builds the network.
    pub fn up(
        context: &LabContext,
        network: &Network,
        interrupt: &AtomicBool,
    ) -> Result<Self, LinkError> {
        let began = Instant::now();
        let agent = |host: &str, cpus: &[u32], user_namespace_of| LabAgent {
            program: context.agents.program.clone(),
            host: host.to_owned(),
            owner: context.agents.owner,
            user_namespace_of,
            cpus: cpus.to_vec(),
            verbose: context.agents.verbose,
        };
        let mut a = Link::start(&agent("a", &context.placement.a, None), interrupt)?;
        // Without root, b must live in a's user namespace, or a could not wire it.
        let b = Link::start(&agent("b", &context.placement.b, Some(a.pid())), interrupt)
            .map_err(|error| blame(error, &mut [&mut a]))?;
        let mut lab = Self::unbuilt([a, b], network);
        lab.built = match lab.build(context, interrupt) {
            Ok(built) => built,
            Err(error) => return Err(lab.blame(error)),
        };
        lab.seconds = began.elapsed().as_secs_f64();
        Ok(lab)
    }

    fn unbuilt([a, b]: [Link; 2], network: &Network) -> Self {
        Self {
            a,
            b,
            network: network.clone(),
            built: BuiltLab::default(),
            applied: false,
            seen: BTreeSet::new(),
            seconds: 0.0,
            existing: None,
            between: None,
        }
    }

    fn build(
        &mut self,
        context: &LabContext,
        interrupt: &AtomicBool,
    ) -> Result<BuiltLab, LinkError> {
        let mut secrets = [EndSecret([0; 32]), EndSecret([0; 32])];
        for EndSecret(bytes) in &mut secrets {
            bytes[..16].copy_from_slice(&random::bytes_for(&self.a)?);
            bytes[16..].copy_from_slice(&random::bytes_for(&self.a)?);
        }
        let existing_underlay = self.between.as_ref().map(|hosts| hosts.addresses);
        let [a, b] = [Side::A, Side::B].map(|side| {
            let spec = host_spec(side, &self.network, context, &secrets);
            let receive_cpus = spec.receive_cpus.filter(|_| existing_underlay.is_none());
            Request::Prepare(Box::new(HostSpec {
                existing_underlay,
                receive_cpus,
                ..spec
            }))
        });
        let [_, Reply::Prepared { joined_at: peer }] = self.call_both(&a, &b, PROMPT, interrupt)?
        else {
            return Err(self.b.unexpected_reply("Prepare"));
        };
        let ovn = if existing_underlay.is_none() {
            self.a.send(&Request::Wire { peer })?;
            let Reply::Wired { ovn } = self.a.receive(PROMPT, interrupt)? else {
                return Err(self.a.unexpected_reply("Wire"));
            };
            ovn
        } else {
            None
        };
        let build = Request::Build {
            secret: random::secret(&self.a)?,
            ovn,
        };
        let replies = self.call_both(&build, &build, PROMPT, interrupt)?;
        BuiltLab::join(replies).unwrap_or_else(|| Err(self.a.unexpected_reply("Build")))
    }

    /// The end of an agent, where one has ended, instead of the refusal that it caused at the other host.
    pub(crate) fn blame(&mut self, error: LinkError) -> LinkError {
        blame(error, &mut self.links())
    }

    /// The network that the lab was built for.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// How long building took, seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Process ids of the agents, host a's and host b's.
    pub fn pids(&self) -> [u32; 2] {
        [self.a.pid(), self.b.pid()]
    }

    /// Process ids of the daemons that the agents started.
    pub fn daemons(&self) -> &[u32] {
        &self.built.daemons
    }

    /// The hosts' Open vSwitch, where it carries the frames.
    pub fn open_vswitch(&self) -> Option<&OpenVswitch> {
        self.built.open_vswitch.as_ref()
    }

    /// Whether both hosts' receive steering (RPS) could be set.
    pub const fn is_steered(&self) -> bool {
        self.built.steered
    }

    /// How the rate-limited line releases packets, where the network has one.
    pub fn line(&self) -> Option<&LineRelease> {
        self.built.line.as_ref()
    }

    /// Thread ids, on this machine, of threads inside the guests' namespaces: a's guests and b's.
    pub fn guest_tids(&self) -> &[Vec<u32>; 2] {
        &self.built.guest_tids
    }

    /// Addresses of the guests: a's and b's.
    pub fn guest_addresses(&self) -> [Vec<IpAddr>; 2] {
        let addresses = |host: &Vec<SocketAddr>| host.iter().map(SocketAddr::ip).collect();
        self.built.responders.each_ref().map(addresses)
    }

    /// The connections to the agents, host a's and host b's.
    pub fn links(&mut self) -> [&mut Link; 2] {
        [&mut self.a, &mut self.b]
    }

    /// Sets the guest MTU (bytes) and the offloads on both hosts and returns every device as read back. Existing hosts
    /// are only read.
    pub fn adapt(
        &mut self,
        guest_mtu: u32,
        offload: &Offload,
        interrupt: &AtomicBool,
    ) -> Result<Vec<DeviceState>, LinkError> {
        if self.existing.is_some() {
            return self.devices(interrupt);
        }
        let request = Request::Adapt {
            guest_mtu,
            offload: offload.clone(),
        };
        let mut devices = Vec::new();
        for reply in self.call_both(&request, &request, PROMPT, interrupt)? {
            let Reply::Devices(of_host) = reply else {
                return Err(self.a.unexpected_reply("Adapt"));
            };
            devices.extend(of_host);
        }
        Ok(devices)
    }

    /// Lifts the rate limit of the line on both hosts; see [`Request::LiftLine`].
    pub(crate) fn lift_line(&mut self, interrupt: &AtomicBool) -> Result<(), LinkError> {
        self.both_done(&Request::LiftLine, &Request::LiftLine, interrupt)
    }

    /// Sets the rate limit of the line again on both hosts.
    pub(crate) fn set_line(&mut self, interrupt: &AtomicBool) -> Result<(), LinkError> {
        self.both_done(&Request::SetLine, &Request::SetLine, interrupt)
    }

    /// Sends each host its request and waits for both answers; see [`call_both`].
    pub(crate) fn call_both(
        &mut self,
        a: &Request,
        b: &Request,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<[Reply; 2], LinkError> {
        let links = [&mut self.a, &mut self.b];
        match call_both(links, [Some(a), Some(b)], within, interrupt)? {
            [Some(from_a), Some(from_b)] => Ok([from_a, from_b]),
            _ => Err(self.a.unexpected_reply(a.doing())),
        }
    }

    pub(crate) fn both_done(
        &mut self,
        a: &Request,
        b: &Request,
        interrupt: &AtomicBool,
    ) -> Result<(), LinkError> {
        self.both_done_within([a.clone(), b.clone()], PROMPT, interrupt)
    }

    /// Has both hosts execute a request at the same time; each must answer [`Reply::Done`] within `within`.
    pub(crate) fn both_done_within(
        &mut self,
        [a, b]: [Request; 2],
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<(), LinkError> {
        match self.call_both(&a, &b, within, interrupt)? {
            [Reply::Done, Reply::Done] => Ok(()),
            _ => Err(self.a.unexpected_reply("a step")),
        }
    }
}

/// The cause of an error: where a host refused a request because the agent of another has ended, that agent's end.
pub(crate) fn blame(error: LinkError, links: &mut [&mut Link]) -> LinkError {
    if !matches!(error, LinkError::Refused { .. }) {
        return error;
    }
    let deadline = Instant::now() + LINE_CLOSES;
    loop {
        let mut links = links.iter_mut();
        let ended = links.find_map(|link| link.check_running("the other host worked").err());
        if let Some(ended) = ended {
            return ended;
        }
        if Instant::now() >= deadline {
            return error;
        }
        sleep(LINE_LOOK);
    }
}

pub(crate) fn host_spec(
    side: Side,
    network: &Network,
    context: &LabContext,
    secrets: &[EndSecret; 2],
) -> HostSpec {
    let placement = &context.placement;
    let cpus = match side {
        Side::A => &placement.a,
        Side::B => &placement.b,
    };
    HostSpec {
        side,
        network: network.clone(),
        receive_cpus: match &network.steering.rps {
            Rps::Own => (placement.cores == Cores::Split).then(|| cpus.clone()),
            Rps::Off => None,
            Rps::All => Some(placement.all()),
            Rps::Cores(cores) => Some(cores.clone()),
        },
        release_us: context.release_us,
        several_links: context.several_links,
        line_core: placement.line,
        secrets: secrets.clone(),
        existing_underlay: None,
    }
}
