//! Checks that guest MTUs fit their tunnels and underlays (also over IPv6), and that no two cells are the same.

mod report;

use std::collections::{BTreeMap, BTreeSet};

use wirecost_model::cell::Network;
use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion;

use crate::transit::TransitSection;

/// The range of guest MTUs that fit a network, bytes, and the levels that limit it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuestMtuRange {
    /// Largest guest MTU whose packets get from host to host.
    pub(crate) largest: u32,
    /// Largest guest MTU whose packets the hosts' own devices send.
    sendable: u32,
    /// The underlay's MTU, or that of the narrowest hop or path if smaller.
    path_mtu: u32,
    /// Smallest guest MTU that the guests' IP version allows.
    least: u32,
    guest_ip: IpVersion,
    underlay_ip: IpVersion,
    underlay: usize,
    encapsulation: usize,
}

impl GuestMtuRange {
    /// The range for a network; `underlay` and `encapsulation` are level numbers.
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

    /// Why this is the smallest MTU, for a message after the number.
    const fn why_least(self) -> &'static str {
        match self.guest_ip {
            IpVersion::Ipv4 => "the smallest",
            IpVersion::Ipv6 => "the smallest that IPv6 allows (RFC 8200, section 5)",
        }
    }
}

/// Combinations that do not fit, by the number of the level at fault: one fault per level is enough.
#[derive(Debug, Default)]
pub(crate) struct FitCheck {
    /// By level of `underlay.mtu`: too small to carry IPv6.
    small_underlays: BTreeMap<usize, GuestMtuRange>,
    /// By level of `encapsulation`: guests' frames that a router cannot forward.
    unrouted: BTreeMap<usize, GuestMtuRange>,
    /// By level of `encapsulation` and datapath: why the datapath cannot build it.
    beyond_datapaths: BTreeMap<(usize, Datapath), &'static str>,
    /// By level of `offload`: why one of its switches changes nothing in some cell.
    idle_offloads: BTreeMap<usize, &'static str>,
    /// Levels of `offload` that change something in some cell.
    working_offloads: BTreeSet<usize>,
    /// Whether some cell can be built by the datapath that the plan names.
    can_be_built: bool,
    /// A hop or path between the hosts is too small to carry IPv6.
    small_path: Option<GuestMtuRange>,
    /// By level of `encapsulation`: a `df` option over IPv6, which has none.
    without_df: BTreeMap<usize, GuestMtuRange>,
    /// By level of `guest_mtu`: the smallest range that it does not fit.
    misfits: BTreeMap<usize, GuestMtuRange>,
    /// By level of `guest_mtu`: below the smallest MTU of the guests' IP version.
    small_guests: BTreeMap<usize, GuestMtuRange>,
    /// Every cell with its guest MTU in bytes, and the level of `guest_mtu` that gave it.
    resolved: BTreeMap<Vec<usize>, usize>,
    /// By level of `guest_mtu` that gives a cell again: the earlier level, the range, and the bytes of both.
    same: BTreeMap<usize, (usize, GuestMtuRange, u32)>,
}

impl FitCheck {
    /// Whether the underlay can carry the network; notes why not.
    pub(crate) fn check_underlay(
        &mut self,
        network: &Network,
        range: GuestMtuRange,
        between: &TransitSection,
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

    /// Notes whether the datapath that the plan names can build the network, and why not. Such a
    /// cell remains part of the plan; a run skips and reports it. It is a fault only if no cell can
    /// be built.
    pub(crate) fn note_datapath(&mut self, network: &Network, range: GuestMtuRange) {
        match network.cannot() {
            Some(reason) => {
                let place = (range.encapsulation, network.datapath);
                self.beyond_datapaths.insert(place, reason);
            }
            None => self.can_be_built = true,
        }
    }

    /// Notes whether a cell's level of `offload` changes something in that cell, and why not. A run
    /// skips the cell if not; a level that changes nothing in any cell is a fault.
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

    /// Whether guests with that MTU, from that level of `guest_mtu`, fit; notes why not.
    pub(crate) fn check_guest(
        &mut self,
        level: usize,
        mtu: u32,
        range: GuestMtuRange,
        between: &TransitSection,
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

    /// Notes a cell, to find one that is the same by another level of `guest_mtu`.
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
