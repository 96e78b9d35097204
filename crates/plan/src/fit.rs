//! Checks that guest MTUs fit their tunnels and underlays (IPv6 included), and that no cell comes twice.

mod report;

use std::collections::{BTreeMap, BTreeSet};

use wirecost_model::cell::Network;
use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion;

use crate::transit::Written;

/// The range of guest MTUs that fit, and the levels that limit it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuestMtuRange {
    /// Most bytes that get from host to host.
    pub(crate) largest: u32,
    /// Most bytes that the hosts' own devices take.
    sendable: u32,
    /// The underlay's MTU, or that of the narrowest hop or path below it.
    path_mtu: u32,
    /// Least bytes: what the guests' IP asks of a link.
    least: u32,
    guest_ip: IpVersion,
    underlay_ip: IpVersion,
    underlay: usize,
    encapsulation: usize,
}

impl GuestMtuRange {
    /// `underlay` and `encapsulation` are the numbers of the levels.
    pub(crate) fn of(network: &Network, underlay: usize, encapsulation: usize) -> Self {
        Self {
            largest: network.path_mtu().saturating_sub(network.overhead_bytes()),
            sendable: network
                .underlay_mtu
                .saturating_sub(network.overhead_bytes()),
            path_mtu: network.path_mtu(),
            least: network.guest_ip.min_mtu(),
            guest_ip: network.guest_ip,
            underlay_ip: network.underlay_ip,
            underlay,
            encapsulation,
        }
    }

    /// What is special about the least, behind the number.
    const fn why_least(self) -> &'static str {
        match self.guest_ip {
            IpVersion::Ipv4 => "the smallest",
            IpVersion::Ipv6 => "the smallest that IPv6 allows (RFC 8200, section 5)",
        }
    }
}

/// What does not work out, by the number of the level at fault: one fault each is enough.
#[derive(Debug, Default)]
pub(crate) struct Fit {
    /// By level of `underlay.mtu`: too small to carry IPv6.
    small_underlays: BTreeMap<usize, GuestMtuRange>,
    /// By level of `encapsulation`: what a router cannot pass on.
    unrouted: BTreeMap<usize, GuestMtuRange>,
    /// By level of `encapsulation` and datapath: why it cannot be built.
    beyond_datapaths: BTreeMap<(usize, Datapath), &'static str>,
    /// By level of `offload`: why a switch of it changes nothing in some cell.
    idle_offloads: BTreeMap<usize, &'static str>,
    /// Levels of `offload` that some cell has of which they change something.
    working_offloads: BTreeSet<usize>,
    /// Some cell can be built by the datapath that the plan names for it.
    can_be_built: bool,
    /// What is between the hosts is too small to carry IPv6.
    small_path: Option<GuestMtuRange>,
    /// By level of `encapsulation`: options that IPv6 does not have.
    without_df: BTreeMap<usize, GuestMtuRange>,
    /// By level of `guest_mtu`: the tightest room that it does not fit.
    misfits: BTreeMap<usize, GuestMtuRange>,
    /// By level of `guest_mtu`: below what the guests' IP asks for.
    small_guests: BTreeMap<usize, GuestMtuRange>,
    /// Every cell with its guest MTU in bytes, and the level that gave it.
    resolved: BTreeMap<Vec<usize>, usize>,
    /// A level of `guest_mtu` that comes to the same number of bytes as an earlier one, and where.
    same: BTreeMap<usize, (usize, GuestMtuRange, u32)>,
}

impl Fit {
    /// Whether the underlay can carry the network's tunnels; notes why not.
    pub(crate) fn takes_underlay(
        &mut self,
        network: &Network,
        range: GuestMtuRange,
        between: &Written,
    ) -> bool {
        if !network.encapsulation.is_tunnel() {
            let bridged = between.routed().is_none();
            if !bridged {
                self.unrouted.entry(range.encapsulation).or_insert(range);
            }
            return bridged;
        }
        if network.underlay_ip == IpVersion::Ipv6 && network.encapsulation.asks_for_df() {
            self.without_df.entry(range.encapsulation).or_insert(range);
            return false;
        }
        let large_enough = network.underlay_mtu >= network.underlay_ip.min_mtu();
        if !large_enough {
            self.small_underlays.entry(range.underlay).or_insert(range);
        } else if network.path_mtu() < network.underlay_ip.min_mtu() {
            self.small_path.get_or_insert(range);
            return false;
        }
        large_enough
    }

    /// Notes whether the datapath that the plan names can build the network, and why not. Such a cell is one of the
    /// plan's all the same, which a run skips and tells of, unless nothing else is left to measure.
    pub(crate) fn note_datapath(&mut self, network: &Network, range: GuestMtuRange) {
        match network.cannot() {
            Some(reason) => {
                let place = (range.encapsulation, network.datapath);
                self.beyond_datapaths.insert(place, reason);
            }
            None => self.can_be_built = true,
        }
    }

    /// Notes whether a cell's level of `offload` changes something there, and why not. A run skips such a cell; a level
    /// of which nothing is left is a fault.
    pub(crate) fn note_offload(&mut self, level: usize, idle: Option<&'static str>) {
        match idle {
            Some(reason) => {
                self.idle_offloads.entry(level).or_insert(reason);
            }
            None => {
                self.working_offloads.insert(level);
            }
        }
    }

    /// Whether guests of that MTU, by that level, fit; notes why not.
    pub(crate) fn takes_guest(
        &mut self,
        level: usize,
        mtu: u32,
        range: GuestMtuRange,
        between: &Written,
    ) -> bool {
        let most = if between.takes_oversize {
            range.sendable
        } else {
            range.largest
        };
        if mtu > most || range.largest < range.least {
            let tightest = self.misfits.entry(level).or_insert(range);
            if range.largest < tightest.largest {
                *tightest = range;
            }
            return false;
        }
        if mtu < range.least {
            self.small_guests.entry(level).or_insert(range);
            return false;
        }
        true
    }

    /// Notes a cell, so that the same one by another level of `guest_mtu` is found.
    pub(crate) fn note_cell(
        &mut self,
        resolved: Vec<usize>,
        level: usize,
        range: GuestMtuRange,
        mtu: u32,
    ) {
        if let Some(first) = self.resolved.insert(resolved, level) {
            self.same.entry(level).or_insert((first, range, mtu));
        }
    }
}
