//! Where packets of a stream were dropped, as far as a host counts it.

use std::collections::BTreeMap;

use wirecost_model::sample::Sample;

/// A counter that gained at least one packet for so many retransmitted segments has a part in the loss: a packet that a
/// device drops may have been up to 64 KiB of segments.
const SEGMENTS: u64 = 100;
/// Prefix of the names under which a host's counters have its devices once more, as a guest's.
const GUEST: &str = "guest:";

/// The packets that one counter of a host gained while the stream ran, all samples together.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Drops {
    /// The host, `a` or `b`.
    pub host: char,
    /// The device; `None` for the backlogs of the host's cores.
    pub device: Option<String>,
    /// `rx_dropped` or `tx_dropped` of a device (`ip -s link`); `backlog`, the second column of `softnet_stat`.
    pub counter: &'static str,
    /// Packets that were dropped. Those that a device had not cut yet count once.
    pub packets: u64,
}

impl Drops {
    /// What was dropped where, as a noun phrase.
    pub(super) fn words(&self) -> String {
        let Self {
            host,
            device,
            counter,
            packets,
        } = self;
        match device {
            Some(device) => format!("{packets} packets by {device} of {host} ({counter})"),
            None => format!("{packets} packets in the backlog of a core of {host} (softnet_stat)"),
        }
    }
}

/// The counters with a part in the loss, the largest first; none where nothing was sent again: what they count then is
/// other traffic.
pub(super) fn of(samples: &[&Sample]) -> Vec<Drops> {
    let flows = samples
        .iter()
        .flat_map(|sample| &sample.loads)
        .flat_map(|load| &load.flows);
    let sockets = flows.filter_map(|flow| flow.sender.as_ref());
    let retransmits: u64 = sockets.map(|socket| socket.retransmits).sum();
    let mut counters: BTreeMap<(char, Option<&str>, &'static str), u64> = BTreeMap::new();
    let hosts = samples
        .iter()
        .flat_map(|sample| [('a', &sample.sender), ('b', &sample.receiver)]);
    for (host, usage) in hosts {
        let Some(usage) = usage else { continue };
        *counters.entry((host, None, "backlog")).or_default() += usage.backlog_drops;
        let links = usage.links.iter();
        for (name, link) in links.filter(|(name, _)| !name.starts_with(GUEST)) {
            for (counter, packets) in [
                ("rx_dropped", link.rx_dropped),
                ("tx_dropped", link.tx_dropped),
            ] {
                let counted = counters.entry((host, Some(name.as_str()), counter));
                *counted.or_default() += packets;
            }
        }
    }
    let mut drops: Vec<Drops> = counters
        .into_iter()
        .filter(|(_, packets)| retransmits > 0 && packets.saturating_mul(SEGMENTS) >= retransmits)
        .map(|((host, device, counter), packets)| Drops {
            host,
            device: device.map(str::to_owned),
            counter,
            packets,
        })
        .collect();
    drops.sort_by_key(|drops| std::cmp::Reverse(drops.packets));
    drops
}
