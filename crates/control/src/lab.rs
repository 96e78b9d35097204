//! A lab: two hosts, their agents, and the network between them, kept while cells share it.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wirecost_agent::link::{LabAgent, Link, LinkError};
use wirecost_agent::orphan::Owner;
use wirecost_agent::protocol::{EndSecret, HostSpec, ProofResult, Reply, Request, Side, Stage};
use wirecost_model::cell::Network;
use wirecost_model::line::LineRelease;
use wirecost_model::offload::Offload;
use wirecost_model::plan::Cores;
use wirecost_model::sample::{DeviceState, Proof, ProofTime, SeenFrame};
use wirecost_model::steering::Rps;
use wirecost_model::switch::OpenVswitch;

use crate::calls::PROMPT;
use crate::placement::Placement;
use crate::random;

/// What every lab of a run shares.
#[derive(Debug, Clone)]
pub struct LabContext {
    /// The `wirecost` program, started as the hosts' agents.
    pub program: PathBuf,
    /// This process.
    pub owner: Owner,
    /// Who runs where.
    pub placement: Placement,
    /// How much the agents tell on standard error: 0 nothing, 1 their steps, 2 everything.
    pub verbose: u8,
    /// Microseconds between two releases of a line.
    pub release_us: u32,
}

/// Two hosts with everything built, ready for cells of one network. Dropping it removes it.
#[derive(Debug)]
pub struct Lab {
    pub(crate) a: Link,
    pub(crate) b: Link,
    network: Network,
    /// By host and guest.
    responders: [Vec<SocketAddr>; 2],
    guest_tids: [Vec<u32>; 2],
    /// What both hosts have, and its processes.
    open_vswitch: Option<OpenVswitch>,
    /// Whether both hosts steer what they receive as their network has it.
    steered: bool,
    /// How both hosts' lines let packets out, where the network has one.
    line: Option<LineRelease>,
    daemons: Vec<u32>,
    /// Whether settings are applied that have to be undone.
    pub(crate) applied: bool,
    /// Guest MTUs whose datagrams were looked for on the underlay.
    seen: BTreeSet<u32>,
    seconds: f64,
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
            program: context.program.clone(),
            host: host.to_owned(),
            owner: context.owner,
            user_namespace_of,
            cpus: cpus.to_vec(),
            verbose: context.verbose,
        };
        let mut a = Link::start(&agent("a", &context.placement.a, None), interrupt)?;
        // Without root, b must live in a's user namespace, or a could not wire it.
        let b = Link::start(&agent("b", &context.placement.b, Some(a.pid())), interrupt)
            .map_err(|error| blame(error, &mut [&mut a]))?;
        let mut lab = Self {
            a,
            b,
            network: network.clone(),
            responders: [const { Vec::new() }; 2],
            guest_tids: [const { Vec::new() }; 2],
            open_vswitch: None,
            steered: true,
            line: None,
            daemons: Vec::new(),
            applied: false,
            seen: BTreeSet::new(),
            seconds: 0.0,
        };
        match lab.build(context, interrupt) {
            Ok(()) => {}
            Err(error) => return Err(lab.blame(error)),
        }
        lab.seconds = began.elapsed().as_secs_f64();
        Ok(lab)
    }

    fn build(&mut self, context: &LabContext, interrupt: &AtomicBool) -> Result<(), LinkError> {
        let mut secrets = [EndSecret([0; 32]), EndSecret([0; 32])];
        for EndSecret(bytes) in &mut secrets {
            bytes[..16].copy_from_slice(&random::bytes_for(&self.a)?);
            bytes[16..].copy_from_slice(&random::bytes_for(&self.a)?);
        }
        let spec = |side| host_spec(side, &self.network, context, &secrets);
        self.both_done(
            &Request::Prepare(spec(Side::A)),
            &Request::Prepare(spec(Side::B)),
            interrupt,
        )?;
        let wire = Request::Wire { peer: self.b.pid() };
        self.a.done(&wire, PROMPT, interrupt)?;
        let build = Request::Build {
            secret: random::secret(&self.a)?,
        };
        let replies = self.both(&build, &build, PROMPT, interrupt)?;
        for (index, reply) in replies.into_iter().enumerate() {
            let Reply::Built {
                responders,
                guest_tids,
                switch,
                steered,
                line,
            } = reply
            else {
                return Err(self.a.unexpected_reply("Build"));
            };
            self.responders[index] = responders;
            self.guest_tids[index] = guest_tids;
            self.steered &= steered;
            // Of one kernel and one user, and so the same on both.
            let line_of_a = std::mem::replace(&mut self.line, line);
            if let (1, Some(message)) = (index, unlike(line_of_a.as_ref(), self.line.as_ref())) {
                let (host, stage) = ("b".to_owned(), Stage::Build);
                return Err(LinkError::Refused {
                    host,
                    stage,
                    message,
                });
            }
            if let Some(switch) = switch {
                // Of one machine, and so the same on both.
                self.open_vswitch = Some(switch.about);
                self.daemons.extend(switch.processes);
            }
        }
        Ok(())
    }

    /// The agent that has ended, where there is one, rather than what the other refused therefore.
    pub(crate) fn blame(&mut self, error: LinkError) -> LinkError {
        blame(error, &mut self.links())
    }

    /// What it was built for.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Seconds it took to build.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Process ids of its agents.
    pub fn pids(&self) -> [u32; 2] {
        [self.a.pid(), self.b.pid()]
    }

    /// Process ids of daemons that its agents started.
    pub fn daemons(&self) -> &[u32] {
        &self.daemons
    }

    /// The Open vSwitch of its hosts, where it is what carries frames.
    pub fn open_vswitch(&self) -> Option<&OpenVswitch> {
        self.open_vswitch.as_ref()
    }

    /// False where a host's receive steering could not be set.
    pub const fn is_steered(&self) -> bool {
        self.steered
    }

    /// How its line lets packets out, where it has one.
    pub fn line(&self) -> Option<&LineRelease> {
        self.line.as_ref()
    }

    /// Thread ids, on this machine, of threads inside the guests' namespaces: a's guests and b's.
    pub fn guest_tids(&self) -> &[Vec<u32>; 2] {
        &self.guest_tids
    }

    /// Addresses of the guests: a's and b's.
    pub fn guest_addresses(&self) -> [Vec<IpAddr>; 2] {
        let addresses = |host: &Vec<SocketAddr>| host.iter().map(SocketAddr::ip).collect();
        self.responders.each_ref().map(addresses)
    }

    /// The agents' lines, a's and b's.
    pub fn links(&mut self) -> [&mut Link; 2] {
        [&mut self.a, &mut self.b]
    }

    /// Sets guest MTU and offloads on both hosts and returns every device as read back.
    pub fn adapt(
        &mut self,
        guest_mtu: u32,
        offload: &Offload,
        interrupt: &AtomicBool,
    ) -> Result<Vec<DeviceState>, LinkError> {
        let request = Request::Adapt {
            guest_mtu,
            offload: offload.clone(),
        };
        let mut devices = Vec::new();
        for reply in self.both(&request, &request, PROMPT, interrupt)? {
            let Reply::Devices(of_host) = reply else {
                return Err(self.a.unexpected_reply("Adapt"));
            };
            devices.extend(of_host);
        }
        Ok(devices)
    }

    /// Has both hosts send as fast as they can; see [`Request::LiftLine`].
    pub(crate) fn lift_line(&mut self, interrupt: &AtomicBool) -> Result<(), LinkError> {
        self.both_done(&Request::LiftLine, &Request::LiftLine, interrupt)
    }

    /// Puts the line back on both hosts.
    pub(crate) fn set_line(&mut self, interrupt: &AtomicBool) -> Result<(), LinkError> {
        self.both_done(&Request::SetLine, &Request::SetLine, interrupt)
    }

    /// Proves between every pair of guests, in both directions, that the path carries datagrams of exactly `size`; the first time
    /// for a size also that the underlay shows them as single frames of the right length.
    pub fn prove(
        &mut self,
        when: ProofTime,
        size: u32,
        interrupt: &AtomicBool,
    ) -> Result<Vec<Proof>, LinkError> {
        let watch = when == ProofTime::Before && self.seen.insert(size);
        if watch {
            self.both_done(&Request::Watch, &Request::Watch, interrupt)?;
        }
        let prove = |targets: &[SocketAddr]| Request::Prove {
            targets: targets.to_vec(),
            size,
        };
        let [to_a, to_b] = self.responders.each_ref().map(|targets| prove(targets));
        let replies = self.both(&to_b, &to_a, PROMPT, interrupt)?;
        let seen = if watch {
            let request = Request::Watched { size };
            let [at_a, at_b] = self.both(&request, &request, PROMPT, interrupt)?;
            // What a's guest sent is seen by b, and the other way round.
            [Some(at_b), Some(at_a)]
        } else {
            [None, None]
        };
        let mut proofs = Vec::with_capacity(2);
        for ((reply, seen), from) in replies.into_iter().zip(seen).zip(["a", "b"]) {
            let Reply::Proof(result) = reply else {
                return Err(self.a.unexpected_reply("Prove"));
            };
            let mut proof = proof(when, from, size, result);
            match seen {
                None => {}
                Some(Reply::Seen(frame)) => judge_seen(&mut proof, frame),
                Some(_) => return Err(self.a.unexpected_reply("Watched")),
            }
            proofs.push(proof);
        }
        if proofs.iter().any(|proof| !proof.proven) {
            // Look again next time.
            self.seen.remove(&size);
        }
        Ok(proofs)
    }

    /// Asks both hosts at the same time. Both answers are taken off the line, whatever they are.
    pub(crate) fn both(
        &mut self,
        a: &Request,
        b: &Request,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<[Reply; 2], LinkError> {
        self.a.send(a)?;
        self.b.send(b)?;
        let a = self.a.receive(within, interrupt);
        if let Err(LinkError::Interrupted) = a {
            return Err(LinkError::Interrupted);
        }
        let b = self.b.receive(within, interrupt);
        Ok([a?, b?])
    }

    pub(crate) fn both_done(
        &mut self,
        a: &Request,
        b: &Request,
        interrupt: &AtomicBool,
    ) -> Result<(), LinkError> {
        self.both_done_within([a.clone(), b.clone()], PROMPT, interrupt)
    }

    /// Has host a and host b do something at the same time.
    pub(crate) fn both_done_within(
        &mut self,
        [a, b]: [Request; 2],
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<(), LinkError> {
        match self.both(&a, &b, within, interrupt)? {
            [Reply::Done, Reply::Done] => Ok(()),
            _ => Err(self.a.unexpected_reply("a step")),
        }
    }
}

pub(crate) fn blame(error: LinkError, links: &mut [&mut Link]) -> LinkError {
    if !matches!(error, LinkError::Refused { .. }) {
        return error;
    }
    let ended = links
        .iter_mut()
        .find_map(|link| link.still_there("the other host worked").err());
    ended.unwrap_or(error)
}

/// Why two lines must not be compared: what emulates them would be.
pub(crate) fn unlike(one: Option<&LineRelease>, other: Option<&LineRelease>) -> Option<String> {
    let (one, other) = one.zip(other)?;
    (one.by != other.by).then(|| format!("{other}, and elsewhere in this run {one}"))
}

fn host_spec(
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
        secrets: secrets.clone(),
    }
}

fn proof(when: ProofTime, from: &str, size: u32, result: ProofResult) -> Proof {
    Proof {
        when,
        from: from.to_owned(),
        size,
        proven: result.proven,
        reason: result.reason,
        probes: result.probes,
        seconds: result.seconds,
        seen: None,
    }
}

/// An acknowledged datagram that crossed the underlay in pieces, or in another shape, is no proof.
fn judge_seen(proof: &mut Proof, frame: Option<SeenFrame>) {
    let problem = match &frame {
        _ if !proof.proven => None,
        None => Some("it was acknowledged, but not seen on the underlay".to_owned()),
        Some(frame) if frame.fragment => Some("it crossed the underlay in fragments".to_owned()),
        Some(frame) if frame.outer_ip_bytes != frame.expected_outer_ip_bytes => Some(format!(
            "it crossed the underlay as {} bytes of IP, not {}",
            frame.outer_ip_bytes, frame.expected_outer_ip_bytes
        )),
        Some(SeenFrame {
            frame_bytes,
            expected_frame_bytes: Some(expected),
            ..
        }) if frame_bytes != expected => Some(format!(
            "it crossed the underlay in a frame of {frame_bytes} bytes, not {expected}"
        )),
        Some(_) => None,
    };
    if let Some(problem) = problem {
        proof.proven = false;
        proof.reason = Some(problem);
    }
    proof.seen = frame;
}
