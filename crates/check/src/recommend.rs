//! The MTU to set: the largest guest MTU that fits every path, and what limits it.

use std::collections::BTreeMap;

use serde::Serialize;
use wirecost_pmtu::Limit;
use wirecost_wire::overhead::Stack;

use crate::audited::AuditedHost;
use crate::encapsulation::guests_of;
use crate::report::{FlowKind, PathReport, RequiredMtu};

/// The largest guest MTUs, and the paths that limit them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recommendation {
    /// One entry for each encapsulation: `none`, the one that was named, and those of the hosts' own tunnels between
    /// these addresses.
    pub guests: Vec<GuestMtu>,
    /// The paths with the smallest path MTU, and what limits them.
    pub limits: Vec<PathLimit>,
}

/// The largest guest MTU behind an encapsulation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuestMtu {
    /// The encapsulation, as `wirecost overhead` writes it.
    pub encapsulation: String,
    /// The largest guest MTU, bytes; `None`: none fits, or the MTU of a path is unknown.
    pub mtu: Option<u32>,
    /// The hosts' tunnels with this encapsulation between these addresses, each as `DEVICE on HOST`.
    pub used_by: Vec<String>,
    /// Overhead of the encapsulation, bytes.
    #[serde(skip)]
    overhead: Option<u32>,
}

/// A path with the smallest path MTU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathLimit {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// MTU that hosts should use on the path, bytes; `None`: unknown.
    pub mtu: Option<u32>,
    /// What limits the path, in words.
    pub why: String,
}

/// Recommends guest MTUs for the paths that were probed; `named`: an encapsulation to include.
pub fn recommend(
    paths: &[&PathReport],
    hosts: &[AuditedHost],
    named: Option<&Stack>,
) -> Option<Recommendation> {
    let address = paths.first()?.from.address;
    let back = |path: &PathReport| {
        let mut others = paths.iter().copied();
        others.find(|back| back.from == path.to && back.to == path.from)
    };
    let carried: Vec<(&PathReport, Option<u32>)> = paths
        .iter()
        .map(|path| (*path, path.advised(back(path))))
        .collect();
    let every: Option<Vec<u32>> = carried.iter().map(|(_, mtu)| *mtu).collect();
    let least = every.and_then(|mtus| mtus.into_iter().min());
    let mut used: BTreeMap<String, Vec<String>> = BTreeMap::new();
    used.extend(named.map(|stack| (stack.to_string(), Vec::new())));
    for (host, device, stack) in paths.iter().flat_map(|path| tunnels(path, hosts)) {
        let by = used.entry(stack).or_default();
        let name = format!("{device} on {host}");
        if !by.contains(&name) {
            by.push(name);
        }
    }
    used.remove("none");
    let plain = GuestMtu {
        encapsulation: "none".to_owned(),
        mtu: least,
        used_by: Vec::new(),
        overhead: Some(0),
    };
    let behind = used.into_iter().map(|(encapsulation, used_by)| {
        let stack = encapsulation.parse::<Stack>().ok();
        let fits = |mtu| guests_of(stack.as_ref()?, address, mtu);
        let mtu = least.and_then(fits);
        GuestMtu {
            overhead: least.zip(mtu).map(|(least, mtu)| least - mtu),
            mtu,
            encapsulation,
            used_by,
        }
    });
    let narrow = carried
        .iter()
        .filter(|(_, mtu)| *mtu == least || mtu.is_none());
    Some(Recommendation {
        guests: std::iter::once(plain).chain(behind).collect(),
        limits: narrow
            .map(|(path, mtu)| PathLimit {
                from: path.from.host.clone(),
                to: path.to.host.clone(),
                mtu: *mtu,
                why: why(path),
            })
            .collect(),
    })
}

/// Joins the recommendations of two pairs of hosts: the smaller MTU for each encapsulation.
pub(crate) fn join(
    one: Option<Recommendation>,
    other: Option<Recommendation>,
) -> Option<Recommendation> {
    let (Some(mut one), Some(other)) = (one.clone(), other.clone()) else {
        return one.or(other);
    };
    let plain = |of: &Recommendation| of.guests.first().and_then(|it| it.mtu);
    let (narrow, wide) = (plain(&one), plain(&other));
    for theirs in other.guests {
        let same = one
            .guests
            .iter_mut()
            .find(|it| it.encapsulation == theirs.encapsulation);
        match same {
            Some(ours) => {
                // The overhead is larger over IPv6.
                ours.overhead = ours.overhead.max(theirs.overhead);
                ours.used_by.extend(theirs.used_by);
            }
            None => one.guests.push(theirs),
        }
    }
    // An encapsulation that only one pair uses must fit the paths of the others as well. Where the MTU of a path is
    // unknown, there is nothing to recommend.
    let least = narrow.zip(wide).map(|(a, b)| a.min(b));
    for guest in &mut one.guests {
        let fits = least.zip(guest.overhead);
        guest.mtu = fits.and_then(|(least, overhead)| least.checked_sub(overhead));
    }
    match (narrow, wide) {
        (Some(a), Some(b)) if a < b => {}
        (Some(a), Some(b)) if b < a => one.limits = other.limits,
        _ => one.limits.extend(other.limits),
    }
    Some(one)
}

/// The tunnels of a path's sender that lead to its other end: host, device, format.
fn tunnels(path: &PathReport, hosts: &[AuditedHost]) -> Vec<(String, String, String)> {
    let own = hosts.iter().find(|host| host.stack.host == path.from.host);
    let Some(host) = own else { return Vec::new() };
    let devices = host.stack.namespaces.iter().flat_map(|it| &it.devices);
    let leads = |remotes: &[wirecost_audit::snapshot::Remote]| {
        remotes.iter().any(|it| it.address == path.to.address)
    };
    devices
        .filter_map(|device| Some((device, device.tunnel.as_ref()?)))
        .filter(|(_, tunnel)| !tunnel.stack.is_empty() && leads(&tunnel.remotes))
        .map(|(device, tunnel)| {
            let name = host.stack.host.clone();
            (name, device.name.clone(), tunnel.stack.clone())
        })
        .collect()
}

fn why(path: &PathReport) -> String {
    let narrowest = path
        .flows
        .iter()
        .min_by_key(|flow| (flow.kind.is_known(), flow.mtu));
    let device = path.leaving.as_ref().map(|way| way.device.clone());
    let device = device.unwrap_or_else(|| "its device".to_owned());
    let from = &path.from.host;
    match (narrowest.map(|flow| flow.kind), path.required) {
        (Some(FlowKind::Known(Limit::Signalled { by, mtu })), _) => {
            format!("{by} reports an MTU of {mtu}")
        }
        (Some(FlowKind::Known(Limit::Fragmented { largest })), _) => {
            format!("larger packets arrive in fragments of at most {largest}")
        }
        (Some(FlowKind::BLACK_HOLE), _) => {
            let place = crate::judge::place(path.loss_location.as_ref());
            format!("larger packets are dropped without ICMP{place}")
        }
        (Some(FlowKind::Known(Limit::Device { mtu })), _) => {
            format!("{device} of {from} has an MTU of {mtu}")
        }
        (Some(FlowKind::Known(Limit::NotSought)), RequiredMtu::Route(mtu)) => {
            format!("a route of {from} has an MTU of {mtu}; the path may carry more")
        }
        (Some(FlowKind::Known(Limit::NotSought)), _) => "no larger size was asked for".to_owned(),
        (Some(FlowKind::Dead), _) => "nothing passes".to_owned(),
        (Some(FlowKind::Undecided) | None, _) => "the probes did not determine it".to_owned(),
    }
}
