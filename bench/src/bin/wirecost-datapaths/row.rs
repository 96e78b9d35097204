//! What is compared: cells of one plan, and what has to hold between them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use wirecost_model::offload::{Feature, Role};
use wirecost_model::sample::DeviceState;

/// MTU of the underlay in bytes: room for a guest MTU of 8900 in any of the tunnels.
const UNDERLAY_MTU: u32 = 9000;

/// One side of a comparison: a cell of the row's plan, by the plan's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Side {
    pub(crate) encapsulation: &'static str,
    pub(crate) datapath: &'static str,
}

/// `vxlan by ebpf`.
impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.encapsulation, self.datapath)
    }
}

const fn side(encapsulation: &'static str, datapath: &'static str) -> Side {
    Side {
        encapsulation,
        datapath,
    }
}

const KERNEL_VXLAN: Side = side("vxlan", "kernel");
const EBPF_VXLAN: Side = side("vxlan", "ebpf");
const EBPF_GENEVE: Side = side("geneve", "ebpf");

/// The features of a switch by the kernel's names, but for the one of connections with AccECN: no load here has any,
/// and kernels before 6.18 do not know it.
fn features(of: Feature) -> impl Iterator<Item = &'static str> {
    let names = of.ethtool().iter().copied();
    names.filter(|name| *name != "tx-tcp-accecn-segmentation")
}

/// Which devices segment and aggregate, on both sides alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offloads {
    /// The underlay neither segments nor joins; frames are joined once they are out of the tunnel.
    JoinedAfter,
    /// Nobody segments or joins.
    Nothing,
    /// Everybody does, and super-packets cross the underlay whole.
    Everything,
}

impl Offloads {
    const fn name(self) -> &'static str {
        match self {
            Self::JoinedAfter => "GRO after decapsulation",
            Self::Nothing => "nothing aggregated",
            Self::Everything => "everything offloaded",
        }
    }

    /// Features of the underlay's devices that are off beside what `offload` says.
    fn off_on_the_underlay(self) -> Vec<&'static str> {
        let groups: &[Feature] = match self {
            Self::JoinedAfter => &[Feature::Gro, Feature::Tso, Feature::Gso],
            Self::Nothing | Self::Everything => &[],
        };
        groups.iter().flat_map(|group| features(*group)).collect()
    }

    /// The plan's words for it.
    fn plan(self) -> String {
        match self {
            Self::Nothing => "offload: none\n".to_owned(),
            Self::Everything => "offload: tunnel\n".to_owned(),
            Self::JoinedAfter => {
                let off: Vec<String> = self
                    .off_on_the_underlay()
                    .iter()
                    .map(|name| format!("{name}: off"))
                    .collect();
                format!(
                    "offload: {{ profile: tunnel, tunnel_segmentation: off }}\n\
                     vary: {{ underlay devices: [{{ label: plain, ethtool: {{ underlay: {{ {} }} }} }}] }}\n",
                    off.join(", ")
                )
            }
        }
    }

    /// What has to be read back of every device: by its place on the path. The host's end of a guest's device is not
    /// among them: where it may segment TCP is the datapath's (docs/encapsulations.md).
    fn expected(self) -> BTreeMap<Role, [(Feature, bool); 3]> {
        use Feature::{Gro, Tso, TunnelSegmentation};
        let (underlay, after) = match self {
            Self::JoinedAfter => (false, true),
            Self::Nothing => (false, false),
            Self::Everything => (true, true),
        };
        let alike = |on| [(Gro, on), (Tso, on), (TunnelSegmentation, on)];
        let after = match self {
            Self::JoinedAfter => [(Gro, true), (Tso, true), (TunnelSegmentation, false)],
            Self::Nothing | Self::Everything => alike(after),
        };
        [
            (Role::Underlay, alike(underlay)),
            (Role::Tunnel, after),
            (Role::Guest, after),
        ]
        .into()
    }

    /// Where a device was read back as something else than this says, in words. A datapath that `lacks` offloads may
    /// have off what is to be on.
    pub(crate) fn differs(self, devices: &[DeviceState], lacks: bool) -> Option<String> {
        let expected = self.expected();
        for device in devices {
            for (feature, on) in expected.get(&device.role).into_iter().flatten() {
                for name in features(*feature) {
                    // What a device does not have is off.
                    let found = device.features.get(name);
                    let excused = lacks && *on;
                    if found.is_some_and(|found| found != on) && !excused {
                        let is = if *on { "off" } else { "on" };
                        return Some(format!(
                            "{name} of {} at host {} was read back as {is}",
                            device.name, device.host
                        ));
                    }
                }
            }
        }
        None
    }
}

/// What runs between the guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// One bulk TCP connection.
    Stream,
    /// One TCP connection with one request outstanding.
    Exchange,
}

impl Load {
    /// The plan's word, which is the load's name in the record.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stream => "tcp-stream",
            Self::Exchange => "tcp-rr",
        }
    }
}

/// What has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Bound {
    /// The lower end of the ratio's 95 % interval is at least this.
    pub(crate) at_least: f64,
    /// CPU for each unit must not be above the other's beyond noise.
    pub(crate) cpu: bool,
}

impl Bound {
    const fn at_least(at_least: f64) -> Self {
        Self {
            at_least,
            cpu: false,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at least {}", self.at_least)?;
        f.write_str(if self.cpu { ", CPU not above" } else { "" })
    }
}

/// One row: a plan, and which of its cells are compared.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// As `--row` takes it.
    pub(crate) name: String,
    pub(crate) load: Load,
    pub(crate) guest_mtu: u32,
    pub(crate) offloads: Offloads,
    /// Ours and the other of each comparison.
    pub(crate) pairs: Vec<[Side; 2]>,
    /// `None`: shown and judged by nobody.
    pub(crate) bound: Option<Bound>,
}

impl Row {
    /// All of them: first what is judged.
    pub(crate) fn all() -> Vec<Self> {
        let beside_kernel = [EBPF_VXLAN, EBPF_GENEVE].map(|ours| [ours, KERNEL_VXLAN]);
        let mut rows = Vec::new();
        for (offloads, bound) in [
            (
                Offloads::JoinedAfter,
                Some(Bound {
                    at_least: 1.0,
                    cpu: true,
                }),
            ),
            (Offloads::Nothing, Some(Bound::at_least(0.95))),
            // A lab with everything offloaded has two speeds: no bound would be met twice.
            (Offloads::Everything, None),
        ] {
            for guest_mtu in [1500, 8900] {
                let name = format!("tcp-stream {guest_mtu}, {}", offloads.name());
                rows.push(Self {
                    name,
                    load: Load::Stream,
                    guest_mtu,
                    offloads,
                    pairs: beside_kernel.into(),
                    bound,
                });
            }
        }
        let offloads = Offloads::JoinedAfter;
        rows.push(Self {
            name: format!("tcp-rr 1500, {}", offloads.name()),
            load: Load::Exchange,
            guest_mtu: 1500,
            offloads,
            pairs: beside_kernel.into(),
            bound: Some(Bound::at_least(0.97)),
        });
        let alike = |of| [side(of, "ebpf"), side(of, "ovs")];
        rows.push(Self {
            name: format!("tcp-stream 1500, beside Open vSwitch, {}", offloads.name()),
            load: Load::Stream,
            guest_mtu: 1500,
            offloads,
            pairs: ["vxlan", "geneve"].map(alike).into(),
            bound: Some(Bound::at_least(4.0)),
        });
        let offloads = Offloads::Nothing;
        rows.push(Self {
            name: format!("tcp-stream 1500, VLAN beside none, {}", offloads.name()),
            load: Load::Stream,
            guest_mtu: 1500,
            offloads,
            pairs: vec![[side("vlan", "ebpf"), side("none", "ebpf")]],
            bound: None,
        });
        rows.sort_by_key(|row| row.bound.is_none());
        rows
    }

    /// The cells that are measured.
    pub(crate) fn sides(&self) -> Vec<Side> {
        let mut sides = Vec::new();
        // What is compared with is the plan's reference, and comes first.
        for side in self.pairs.iter().flat_map(|[ours, other]| [other, ours]) {
            if !sides.contains(side) {
                sides.push(*side);
            }
        }
        sides
    }

    /// Where a cell's devices were read back as something else than this row says, in words.
    pub(crate) fn differs(&self, side: Side, devices: &[DeviceState]) -> Option<String> {
        // In userspace Open vSwitch takes frames one by one, whatever `offload` says: that is part of what it costs.
        let lacks = side.datapath == "ovs";
        let guest = |device: &&DeviceState| device.role == Role::Guest;
        let other = devices
            .iter()
            .filter(guest)
            .find(|device| device.mtu != self.guest_mtu);
        other
            .map(|device| format!("the guests at host {} have MTU {}", device.host, device.mtu))
            .or_else(|| self.offloads.differs(devices, lacks))
    }

    /// The plan that measures it.
    pub(crate) fn plan(&self, pairs: u32, seconds: f64, warmup: f64) -> String {
        let sides = self.sides();
        let mut levels = [Vec::new(), Vec::new()];
        for side in &sides {
            for (known, level) in levels.iter_mut().zip([side.encapsulation, side.datapath]) {
                if !known.contains(&level) {
                    known.push(level);
                }
            }
        }
        let [encapsulations, datapaths] = &levels;
        let mut excluded = Vec::new();
        for encapsulation in encapsulations {
            for datapath in datapaths {
                if !sides.contains(&side(encapsulation, datapath)) {
                    excluded.push(format!(
                        "{{ encapsulation: {encapsulation}, datapath: {datapath} }}"
                    ));
                }
            }
        }
        let exclude = if excluded.is_empty() {
            String::new()
        } else {
            format!("exclude: [{}]\n", excluded.join(", "))
        };
        format!(
            "name: datapaths\n\
             underlay: {{ mtu: {UNDERLAY_MTU} }}\n\
             encapsulation: [{}]\n\
             datapath: [{}]\n\
             {exclude}\
             guest_mtu: {}\n\
             {}\
             load: {}\n\
             repeat: {{ rounds: {pairs}, seconds: {seconds}, warmup: {warmup} }}\n",
            encapsulations.join(", "),
            datapaths.join(", "),
            self.guest_mtu,
            self.offloads.plan(),
            self.load.name(),
        )
    }
}

#[cfg(test)]
mod tests {
    use wirecost_model::datapath::Datapath;

    use super::*;

    #[test]
    fn every_row_says_what_it_is_and_what_has_to_hold() {
        let said = |row: &Row| match row.bound {
            Some(bound) => format!("{}: {bound}", row.name),
            None => row.name.clone(),
        };
        let rows: Vec<String> = Row::all().iter().map(said).collect();
        insta::assert_snapshot!(rows.join("\n"));
    }

    #[test]
    fn names_tell_rows_apart() {
        let mut names: Vec<String> = Row::all().into_iter().map(|row| row.name).collect();
        let rows = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), rows);
    }

    #[test]
    fn plans_have_the_cells_that_are_compared_and_no_other() {
        // Of others the bench says that they cannot be built.
        let known = |side: &Side| Datapath::ALL.iter().any(|it| it.key() == side.datapath);
        for row in Row::all() {
            if !row.sides().iter().all(known) {
                continue;
            }
            let text = row.plan(25, 1.0, 0.3);
            let experiment = match wirecost_plan::load("row.yaml", &text) {
                Ok(experiment) => experiment,
                Err(error) => panic!("{}: {error}\n{text}", row.name),
            };
            let cells: Vec<[&str; 2]> = experiment
                .cells
                .iter()
                .map(|cell| ["encapsulation", "datapath"].map(|key| cell.levels[key].as_str()))
                .collect();
            let sides = row.sides();
            assert_eq!(cells.len(), sides.len(), "{text}");
            for side in sides {
                assert!(
                    cells.contains(&[side.encapsulation, side.datapath]),
                    "{text}"
                );
            }
            assert!(
                experiment
                    .cells
                    .iter()
                    .all(|cell| cell.guest_mtu == row.guest_mtu)
            );
        }
    }

    #[test]
    fn a_device_that_still_joins_is_named() {
        let device = |role, gro| DeviceState {
            host: "b".to_owned(),
            name: "underlay".to_owned(),
            role,
            mtu: 9000,
            features: [("rx-gro".to_owned(), gro)].into(),
            rps_cpus: None,
            tx_queues: None,
            rx_queues: None,
            count: 1,
        };
        let apart = [device(Role::Underlay, false), device(Role::Guest, true)];
        assert_eq!(Offloads::JoinedAfter.differs(&apart, false), None);
        let joined = [device(Role::Underlay, true)];
        insta::assert_snapshot!(Offloads::JoinedAfter.differs(&joined, true).expect("one"), @"rx-gro of underlay at host b was read back as on");
        insta::assert_snapshot!(Offloads::Nothing.differs(&apart, true).expect("one"), @"rx-gro of underlay at host b was read back as on");
        assert_eq!(Offloads::Everything.differs(&apart, true), None);
        insta::assert_snapshot!(Offloads::Everything.differs(&apart, false).expect("one"), @"rx-gro of underlay at host b was read back as off");
    }
}
