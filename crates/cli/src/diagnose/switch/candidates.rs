//! The changes to try between two hosts, and their order.

use wirecost_control::experiment::{HostPath, InspectedHosts};

use super::feature::{
    Feature, JOINING, OF_TUNNELS, RECEIVING, SENDING, SENDING_IN_TUNNEL, SENDING_IPV6,
    SENDING_IPV6_IN_TUNNEL,
};
use super::{HostDevice, MASK_BITS, Switch};

/// The changes to try between these hosts, the most promising first. Settings of the hosts are included only where
/// `changes` allows it.
pub(in crate::diagnose) fn all(inspected: &InspectedHosts, changes: bool) -> Vec<Switch> {
    let mut all = vec![Switch::FourStreams, Switch::LargeBuffers];
    let others = inspected.path(0).congestion.iter().cloned();
    all.extend(others.map(Switch::Congestion));
    all.extend([Switch::OtherDirection, Switch::SmallMessages]);
    if !changes {
        return all;
    }
    all.extend(mtu(inspected).map(Switch::Mtu));
    let devices = devices(inspected);
    // The features that matter most first, then the others.
    for rare in [false, true] {
        for at in &devices {
            let features = features(at, inspected.is_ipv6(), rare).iter();
            all.extend(features.filter_map(|feature| {
                let now = *at.device.toggles.get(feature.kernel)?;
                Some(Switch::Offload {
                    at: at.clone(),
                    feature: *feature,
                    on: !now,
                })
            }));
        }
        if !rare {
            all.extend(spread(inspected, &devices));
        }
    }
    all
}

/// The features of a device to try: those that matter most, or the `rare` others.
fn features(at: &HostDevice, is_ipv6: bool, rare: bool) -> &'static [Feature] {
    let sends = (at.host == 'a') != at.device.faces_guest;
    match (sends, rare) {
        // The checksum of a tunnel's packets is a matter of the outer IP version.
        (true, false) if at.device.beneath_tunnel && is_ipv6 => &SENDING_IPV6_IN_TUNNEL,
        (true, false) if at.device.beneath_tunnel => &SENDING_IN_TUNNEL,
        (true, false) if is_ipv6 => &SENDING_IPV6,
        (true, false) => &SENDING,
        (true, true) if at.device.beneath_tunnel => &OF_TUNNELS,
        (true, true) => &[],
        (false, false) => &RECEIVING,
        (false, true) => &JOINING,
    }
}

/// The devices that packets pass on both hosts. A device on both, such as a bridge between containers of one machine,
/// counts as host b's.
fn devices(inspected: &InspectedHosts) -> Vec<HostDevice> {
    let of = |host: usize, letter: char| {
        let devices = inspected.path(host).devices.iter().enumerate();
        devices.map(move |(number, device)| HostDevice {
            host: letter,
            measured: number == 0,
            device: device.clone(),
        })
    };
    let b: Vec<HostDevice> = of(1, 'b').collect();
    let is_on_both = |at: &HostDevice| {
        let named = |other: &&HostDevice| {
            other.device.name == at.device.name && at.name() != at.device.name
        };
        inspected.is_one_machine() && b.iter().any(|other| named(&other))
    };
    let a: Vec<HostDevice> = of(0, 'a').filter(|at| !is_on_both(at)).collect();
    a.into_iter().chain(b).collect()
}

/// The largest MTU, bytes, that both hosts' devices can have; `None` where it is unknown or both have it already.
fn mtu(inspected: &InspectedHosts) -> Option<u32> {
    let [a, b] = [0, 1].map(|host| inspected.path(host));
    let largest = a.largest_mtu?.min(b.largest_mtu?);
    let differs = |path: &HostPath| {
        path.devices
            .first()
            .is_some_and(|device| device.mtu != largest)
    };
    (differs(a) || differs(b)).then_some(largest)
}

/// Changes that spread the work of receiving over cores of host b.
fn spread(inspected: &InspectedHosts, devices: &[HostDevice]) -> Vec<Switch> {
    let cores = inspected.cores(1);
    let mut all = Vec::new();
    // A single core leaves nothing to spread.
    if cores.len() < 2 {
        return all;
    }
    let here =
        |at: &&HostDevice| at.host == 'b' && !at.device.faces_guest && at.name() == at.device.name;
    for at in devices.iter().filter(here) {
        if cores.iter().all(|core| *core < MASK_BITS) {
            let (at, cores) = (at.clone(), cores.to_vec());
            all.push(Switch::Steered { at, cores });
        }
        let queues = at.device.queues;
        let number = queues.map(|(now, most)| (now, most.min(cores.len() as u32)));
        if let Some((now, number)) = number
            && number > now
        {
            let at = at.clone();
            all.push(Switch::Queues { at, number });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::tests::at;
    use super::*;

    #[test]
    fn over_ipv6_its_own_segmentation_is_tried() {
        let sender = at("eth0", true);
        let tried = |is_ipv6| {
            let features = features(&sender, is_ipv6, false).iter();
            let names = features.map(|feature| feature.kernel);
            names.filter(|name| name.starts_with("tx-tcp")).collect()
        };
        let [over_ipv4, over_ipv6]: [Vec<&str>; 2] = [false, true].map(tried);
        assert_eq!(over_ipv4, ["tx-tcp-segmentation"]);
        assert_eq!(over_ipv6, ["tx-tcp6-segmentation"]);
    }
}
