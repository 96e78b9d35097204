//! One datapath for a whole run, where its plan leaves the choice to it.
//!
//! Encapsulations are compared on the same code: the first datapath of [`Datapath::AUTO`] that builds every cell has
//! them all. Whether it does is found out by building, with what a sample is built with, one lab for each way to
//! encapsulate; they are kept for the samples. Where no datapath builds every cell, the one that builds most has them.

use std::sync::atomic::AtomicBool;

use tracing::debug;
use wirecost_agent::link::LinkError;
use wirecost_model::cell::{Cell, Experiment, Network};
use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion;
use wirecost_model::offload::Role;

use crate::labs::Labs;
use crate::progress::Progress;

/// The experiment with every cell's datapath known, and every encapsulation as that puts it on the wire.
///
/// # Errors
/// An agent that ended or does not answer, or an interrupt. What merely cannot be built is none.
pub(crate) fn settle(
    mut experiment: Experiment,
    labs: &mut Labs,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Experiment, LinkError> {
    if experiment.plan.datapath.is_empty() {
        let mut tried = Vec::new();
        for datapath in Datapath::AUTO {
            let all = experiment.clone().with_datapath(datapath);
            let refusals = refusals(&all, labs, interrupt, progress)?;
            debug!("{datapath} cannot build {}", refusals.len());
            let done = refusals.is_empty();
            tried.push((all, datapath, refusals));
            if done {
                break;
            }
        }
        let least = tried.iter().map(|(.., refusals)| refusals.len()).min();
        let best = tried
            .iter()
            .position(|(.., refusals)| Some(refusals.len()) == least);
        if let Some(best) = best {
            let (chosen, _, _) = tried.swap_remove(best);
            // Who reads why a cell was not built is also told why nobody else built it.
            for (_, datapath, refusals) in tried {
                for (network, reason) in refusals {
                    labs.also_refused(&network, format!("{datapath}: {reason}"));
                }
            }
            experiment = chosen;
        }
    }
    Ok(experiment.settled())
}

/// The ways to encapsulate that cannot be built, by the first cell's network of each, and why.
fn refusals(
    experiment: &Experiment,
    labs: &mut Labs,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<(Network, String)>, LinkError> {
    let mut ways: Vec<&Cell> = Vec::new();
    for cell in &experiment.cells {
        let way = |known: &&Cell| {
            known.network.encapsulation == cell.network.encapsulation
                && known.network.underlay_ip == cell.network.underlay_ip
        };
        if !ways.iter().any(way) {
            ways.push(cell);
        }
    }
    let mut refusals = Vec::new();
    for cell in ways {
        let over_ipv4 = cell.network.underlay_ip == IpVersion::Ipv4;
        let encapsulation = cell.network.encapsulation.clone();
        let network = Network {
            encapsulation: cell.network.datapath.settled(encapsulation, over_ipv4),
            ..cell.network.clone()
        };
        if let Err(reason) = labs.get(&network, interrupt, progress)? {
            refusals.push((cell.network.clone(), reason));
        }
    }
    let of_devices = experiment.cells.iter().find(|cell| {
        let sets =
            |setting: &wirecost_model::vary::Setting| setting.ethtool.contains_key(&Role::Tunnel);
        cell.network.datapath == Datapath::Ebpf && cell.settings.iter().any(sets)
    });
    refusals.extend(of_devices.map(|cell| {
        let reason = "it has no device for the tunnel, which the plan sets".to_owned();
        (cell.network.clone(), reason)
    }));
    Ok(refusals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_chose_names_its_datapath_everywhere() {
        let plan =
            "name: x\nunderlay: { mtu: 9000 }\nencapsulation: [none, geneve]\nself_test: on\n";
        let auto = wirecost_plan::load("x.yaml", plan).expect("a plan");
        assert!(auto.plan.datapath.is_empty());
        let chosen = auto.with_datapath(Datapath::Ebpf).settled();
        assert_eq!(chosen.plan.datapath, [Datapath::Ebpf]);
        let factor = chosen
            .factors
            .iter()
            .find(|factor| factor.key == "datapath");
        assert_eq!(factor.expect("a factor").levels, ["ebpf"]);
        for cell in chosen.measured() {
            assert_eq!(cell.levels["datapath"], "ebpf");
            assert_eq!(cell.network.datapath, Datapath::Ebpf);
            let udp = cell.network.encapsulation.udp();
            assert!(udp.is_none_or(|udp| udp.df.key() == "set"));
        }
    }
}
