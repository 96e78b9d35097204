//! Two existing hosts in place of a lab's hosts: nothing is built on them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::protocol::{HostPath, Joined, LinkSpeed, Reply, Request, Side};
use wirecost_model::cell::{Cell, Network};
use wirecost_model::plan::{Cores, HostPair, NamedPair, PairNames};
use wirecost_model::record::{ExistingHost, HostEnvironment};
use wirecost_model::sample::DeviceState;

use super::Lab;
use super::built::BuiltLab;
use crate::hosts::{AgentHost, HostsContext, HostsError, data_plane, open};
use crate::placement::Placement;
use crate::random;
use crate::timeouts::PROMPT;

/// What two existing hosts reported when they joined a run.
#[derive(Debug)]
pub(crate) struct ExistingPair {
    /// Both hosts with their names in the plan.
    pub(crate) pair: NamedPair,
    /// Data-plane addresses, host a's and host b's.
    pub(crate) addresses: [IpAddr; 2],
    /// What each host reported, host a's and host b's.
    pub(crate) joined: [Joined; 2],
    /// Whether both hosts are one machine.
    pub(crate) one_machine: bool,
    /// Whether each host is on the machine of this process, as far as its location says.
    here: [bool; 2],
}

/// Guest MTU, bytes, of cells whose guest MTU the plan leaves to the path.
const UNKNOWN: u32 = u16::MAX as u32;

impl Lab {
    /// Starts both hosts' agents and has them join. Nothing is built or changed.
    ///
    /// To be called on a thread that lives as long as the lab: the kernel ends agents of this machine with it.
    ///
    /// # Errors
    /// Where a host is not reached, or has no address towards the other.
    pub fn join(
        context: &HostsContext,
        pair: &HostPair,
        network: &Network,
        interrupt: &AtomicBool,
    ) -> Result<Self, HostsError> {
        let links = open(context, &[&pair.a, &pair.b], interrupt)?;
        let Ok(links) = <[Link; 2]>::try_from(links) else {
            unreachable!("a link for each host");
        };
        let pair = NamedPair {
            names: PairNames::default(),
            hosts: pair.clone(),
        };
        Self::joined(links, &pair, network, interrupt)
    }

    /// [`Lab::join`] with agents that are already running.
    pub(super) fn joined(
        [mut a, mut b]: [Link; 2],
        named: &NamedPair,
        network: &Network,
        interrupt: &AtomicBool,
    ) -> Result<Self, HostsError> {
        let began = Instant::now();
        let pair = &named.hosts;
        let addresses = {
            let [mut from, mut to] = [&mut a, &mut b].map(|link| AgentHost { link, interrupt });
            data_plane([&pair.a, &pair.b], &mut from, &mut to)?
        };
        let mut lab = Self::unbuilt([a, b], network);
        let secret = random::secret(&lab.a)?;
        let join = |side, address, peer| Request::Join {
            side,
            address,
            peer,
            secret,
        };
        let [a, b] = addresses;
        let [to_a, to_b] = [join(Side::A, a, b), join(Side::B, b, a)];
        let replies = lab.call_both(&to_a, &to_b, PROMPT, interrupt);
        let [Reply::Joined(of_a), Reply::Joined(of_b)] =
            replies.map_err(|error| lab.blame(error))?
        else {
            return Err(lab.a.unexpected_reply("Join").into());
        };
        let machines = lab.call_both(&Request::Machine, &Request::Machine, PROMPT, interrupt)?;
        lab.built = BuiltLab {
            responders: [vec![of_a.responder], vec![of_b.responder]],
            steered: true,
            ..BuiltLab::default()
        };
        lab.existing = Some(ExistingPair {
            pair: named.clone(),
            addresses,
            joined: [*of_a, *of_b],
            one_machine: machines[0] == machines[1],
            here: [pair.a.place.is_here(), pair.b.place.is_here()],
        });
        lab.seconds = began.elapsed().as_secs_f64();
        Ok(lab)
    }

    /// The devices that measured packets pass on host a and on host b.
    pub(crate) fn path_devices(
        &mut self,
        interrupt: &AtomicBool,
    ) -> Result<[HostPath; 2], LinkError> {
        match self.call_both(
            &Request::PathDevices,
            &Request::PathDevices,
            PROMPT,
            interrupt,
        )? {
            [Reply::PathDevices(a), Reply::PathDevices(b)] => Ok([*a, *b]),
            _ => Err(self.a.unexpected_reply("Way")),
        }
    }

    /// The data-plane devices of both hosts as they are.
    pub(super) fn devices(
        &mut self,
        interrupt: &AtomicBool,
    ) -> Result<Vec<DeviceState>, LinkError> {
        let replies = self.call_both(&Request::Device, &Request::Device, PROMPT, interrupt)?;
        let mut devices = Vec::with_capacity(2);
        for reply in replies {
            let Reply::Devices(of_host) = reply else {
                return Err(self.a.unexpected_reply("Device"));
            };
            devices.extend(of_host);
        }
        Ok(devices)
    }

    /// The packet size to prove in a cell, bytes, and whether exactly this size must pass. Between existing hosts whose
    /// plan names no MTU it is the smaller MTU of their devices, and a smaller size that is reported to pass will do.
    pub(crate) fn size(&self, cell: &Cell, devices: &[DeviceState]) -> (u32, bool) {
        if self.existing.is_none() || cell.guest_mtu != UNKNOWN {
            return (cell.guest_mtu, true);
        }
        let smallest = devices.iter().map(|device| device.mtu).min();
        (smallest.unwrap_or(UNKNOWN).min(UNKNOWN), false)
    }

    /// Takes the lab apart: what its existing hosts reported when they joined, and their agents.
    pub(crate) fn into_hosts(self) -> (ExistingPair, [Link; 2]) {
        let Some(existing) = self.existing else {
            unreachable!("its hosts have joined");
        };
        (existing, [self.a, self.b])
    }

    /// The existing hosts, where the lab has such.
    pub(crate) fn hosts(&self) -> Option<&ExistingPair> {
        self.existing.as_ref().or(self.between.as_ref())
    }

    /// Whether both hosts are on the machine of this process; always true of a lab of namespaces.
    pub(crate) fn is_here(&self) -> bool {
        self.hosts()
            .is_none_or(|existing| existing.one_machine && existing.here == [true; 2])
    }

    /// Source address of clients on a host (0: host a, 1: host b); `None` leaves it to the kernel.
    pub(crate) fn source(&self, host: usize) -> Option<IpAddr> {
        self.existing
            .as_ref()
            .map(|existing| existing.addresses[host])
    }

    /// Process ids that do not count as foreign load, by host; `None` where the host does not look for foreign load,
    /// because the other host of the same machine does.
    pub(crate) fn known_processes(&self, ours: &[u32]) -> [Option<Vec<u32>>; 2] {
        let Some(existing) = self.hosts().filter(|existing| !existing.one_machine) else {
            return [Some(ours.to_vec()), None];
        };
        let of = |host: usize| {
            let here = existing.here[host].then(std::process::id);
            Some([self.pids()[host]].into_iter().chain(here).collect())
        };
        [of(0), of(1)]
    }
}

impl ExistingPair {
    /// Each host has all cores of its machine; hosts on one machine share them.
    pub(crate) fn placement(&self) -> Placement {
        let [a, b] = self.joined.each_ref().map(|joined| joined.cpus.clone());
        Placement {
            cores: if self.one_machine {
                Cores::Shared
            } else {
                Cores::Split
            },
            a,
            b,
            line: None,
        }
    }

    /// Both hosts for the record, by their names in the plan.
    pub(crate) fn hosts(&self) -> BTreeMap<String, HostEnvironment> {
        let cores = if self.one_machine { "shared" } else { "split" };
        let names = &self.pair.names.0;
        let hosts = names.iter().zip(&self.joined).zip(self.addresses);
        hosts
            .map(|((name, joined), address)| {
                let environment = HostEnvironment {
                    cpus: joined.cpus.clone(),
                    cores: cores.to_owned(),
                    existing: Some(ExistingHost {
                        address,
                        device: joined.device.name.clone(),
                        mtu: joined.device.mtu,
                        speed: joined.speed.known(),
                        machine: joined.machine.clone(),
                    }),
                };
                (name.clone(), environment)
            })
            .collect()
    }

    /// The largest IP packet, bytes, that the hosts' devices and routes allow in both directions, and what limits it.
    pub(crate) fn underlay_mtu(&self) -> (u32, String) {
        let of = |(joined, host): (&Joined, &String)| {
            let device = &joined.device;
            if joined.route_mtu < device.mtu {
                (
                    joined.route_mtu,
                    format!("host {host}'s route to the other host"),
                )
            } else {
                (device.mtu, format!("`{}` of host {host}", device.name))
            }
        };
        let [first, second] = &self.pair.names.0;
        let [a, b] = [(&self.joined[0], first), (&self.joined[1], second)].map(of);
        if b.0 < a.0 { b } else { a }
    }

    /// Whether a UDP port was free on both hosts when they joined.
    pub(crate) fn is_free(&self, port: u16) -> bool {
        let mut hosts = self.joined.iter();
        hosts.all(|joined| !joined.udp_ports.contains(&port))
    }

    /// Link speeds of the hosts' devices, bit/s, `None` where a driver does not know it; without nominal ones.
    pub(crate) fn speeds(&self) -> Vec<Option<u64>> {
        limiting(self.joined.each_ref().map(|joined| joined.speed))
    }
}

/// Those of two speeds that are not nominal, bit/s; `None` where one is unknown.
fn limiting(speeds: [LinkSpeed; 2]) -> Vec<Option<u64>> {
    let limits = speeds
        .into_iter()
        .filter(|speed| *speed != LinkSpeed::Nominal);
    limits.map(LinkSpeed::known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nominal_speed_limits_nothing() {
        let one = LinkSpeed::Known(1_000_000_000);
        let (unknown, nominal) = (LinkSpeed::Unknown, LinkSpeed::Nominal);
        assert_eq!(limiting([one, unknown]), [Some(1_000_000_000), None]);
        assert_eq!(limiting([nominal, one]), [Some(1_000_000_000)]);
        assert_eq!(limiting([nominal, unknown]), [None]);
        assert!(limiting([nominal, nominal]).is_empty());
    }
}
