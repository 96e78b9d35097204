//! Chooses one datapath for a whole run, where its plan names none.
//!
//! Encapsulations are compared on the same code: the run uses the first datapath of [`Experiment::datapaths_to_choose`]
//! that builds every cell. To find out, it builds one lab for each way to encapsulate, as for a sample; these labs are
//! kept for the samples. Where no datapath builds every cell, the run uses the one that builds most.

use std::fs;
use std::sync::atomic::AtomicBool;

use tracing::debug;
use wirecost_agent::link::LinkError;
use wirecost_model::cell::{Cell, ChosenDatapath, Experiment, Network, UnsupportedEncapsulation};
use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion;
use wirecost_model::offload::Role;
use wirecost_model::plan::Encapsulation;

use super::labs::Labs;
use super::progress::Progress;

/// The experiment with the datapath of every cell set, and every encapsulation as that datapath puts it on the wire.
///
/// # Errors
/// An agent that ended or does not answer, or an interrupt. An encapsulation that cannot be built is not an error.
pub(crate) fn choose(
    mut experiment: Experiment,
    labs: &mut Labs,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Experiment, LinkError> {
    if experiment.plan.datapath.is_empty() {
        let mut tried = Vec::new();
        let choices = experiment.datapaths_to_choose();
        for &datapath in choices {
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
            let (chosen, datapath, _) = tried.remove(best);
            let for_ovn = *choices != Datapath::AUTO;
            let instead = if for_ovn {
                // All encapsulations are refused for the same reason, which is the datapath's.
                let mut before = Vec::new();
                for (_, datapath, refusals) in &tried[..best] {
                    before.extend(unbuilt(refusals).into_iter().take(1).map(|first| {
                        UnsupportedEncapsulation {
                            encapsulation: datapath.to_string(),
                            ..first
                        }
                    }));
                }
                before
            } else {
                let before = tried.first().filter(|_| best > 0);
                before.map_or_else(Vec::new, |(.., refusals)| unbuilt(refusals))
            };
            // The reason why a cell was not built includes why other datapaths could not build it.
            for (_, datapath, refusals) in tried {
                for (network, reason) in refusals {
                    labs.add_refusal(&network, format!("{datapath}: {reason}"));
                }
            }
            experiment = chosen;
            experiment.chosen = (datapath != choices[0]).then_some(ChosenDatapath {
                datapath,
                instead,
                for_ovn,
            });
        }
    }
    Ok(experiment.resolved())
}

fn unbuilt(refusals: &[(Network, String)]) -> Vec<UnsupportedEncapsulation> {
    let mut all = Vec::<UnsupportedEncapsulation>::new();
    for (network, reason) in refusals {
        let encapsulation = network.encapsulation.to_string();
        if all.iter().all(|one| one.encapsulation != encapsulation) {
            let reason = reason.clone();
            all.push(UnsupportedEncapsulation {
                encapsulation,
                reason,
            });
        }
    }
    all
}

/// The datapath that [`choose`] will most likely choose instead of the kernel's, and why, without building anything:
/// from what the kernel's devices cannot do, and from drivers that this kernel has neither loaded nor as a module.
/// `None` where the kernel's is expected, or the drivers are unknown.
pub(crate) fn forecast(experiment: &Experiment) -> Option<ChosenDatapath> {
    let datapath = Datapath::Ebpf;
    let chosen_here =
        experiment.plan.datapath.is_empty() && *experiment.datapaths_to_choose() == Datapath::AUTO;
    if !chosen_here {
        return None;
    }
    let drivers = Drivers::read();
    let mut refusals = Vec::new();
    for cell in &experiment.cells {
        let (network, encapsulation) = (&cell.network, &cell.network.encapsulation);
        if datapath.cannot(encapsulation).is_some() {
            // Only the kernel's datapath has this encapsulation: the run keeps the kernel's for what it can build.
            return None;
        }
        let reason = match Datapath::Kernel.cannot(encapsulation) {
            Some(reason) => Some(reason.to_owned()),
            None => drivers.lack(encapsulation),
        };
        refusals.extend(reason.map(|reason| (network.clone(), reason)));
    }
    let instead = unbuilt(&refusals);
    (!instead.is_empty()).then_some(ChosenDatapath {
        datapath,
        instead,
        for_ovn: false,
    })
}

/// Encapsulations that only the kernel's datapath has and this kernel has no driver for: their cells would be left out.
/// Empty where the drivers are unknown.
pub(crate) fn left_out(experiment: &Experiment) -> Vec<UnsupportedEncapsulation> {
    let kernels_alone = |cell: &&Cell| {
        let datapaths = cell.network.encapsulation.kind().datapaths;
        cell.network.datapath == Datapath::Kernel && !datapaths.contains(&Datapath::Ebpf)
    };
    let drivers = Drivers::read();
    let cells = experiment.cells.iter().filter(kernels_alone);
    let lacking = cells.filter_map(|cell| {
        let reason = drivers.lack(&cell.network.encapsulation)?;
        Some((cell.network.clone(), reason))
    });
    unbuilt(&lacking.collect::<Vec<_>>())
}

/// The symbols of the running kernel (/proc/kallsyms) and the files of its modules (modules.dep), as far as they can be
/// read.
pub(crate) struct Drivers {
    symbols: String,
    modules: String,
}

impl Drivers {
    pub(crate) fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let release = text("/proc/sys/kernel/osrelease");
        let modules = format!("/lib/modules/{}/modules.dep", release.trim());
        Self {
            symbols: text("/proc/kallsyms"),
            modules: text(&modules),
        }
    }

    /// Why an encapsulation cannot be built: the missing driver; `None` where the kernel has the driver or that is
    /// unknown.
    fn lack(&self, encapsulation: &Encapsulation) -> Option<String> {
        let driver = encapsulation.kind().drivers.first()?;
        let symbol = format!(" {}", driver.symbol);
        let module = format!("/{}.ko", driver.module);
        (self.has(&symbol, &module) == Some(false)).then(|| {
            format!(
                "this kernel has no {}, built in or as a module",
                driver.option
            )
        })
    }

    /// Whether the kernel has this symbol or this module's file; `None` where that is unknown.
    pub(crate) fn has(&self, symbol: &str, module: &str) -> Option<bool> {
        // Every lab needs veth: symbols without it could not be read.
        let readable = self.symbols.contains(" veth_newlink");
        let there = self.symbols.contains(symbol) || self.modules.contains(module);
        readable.then_some(there)
    }
}

/// The ways to encapsulate that cannot be built: the network of the first cell of each, and the reason.
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
            encapsulation: cell.network.datapath.resolved(encapsulation, over_ipv4),
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
    use wirecost_model::plan::Description;

    use super::*;

    #[test]
    fn a_driver_that_is_not_there_is_told_before_and_one_that_is_not() {
        let plan = "name: x\nunderlay: { mtu: 9000 }\nencapsulation: [none, geneve, vxlan]\n";
        let experiment = wirecost_plan::load("x.yaml", plan).expect("a plan");
        let [_, geneve, vxlan] = &experiment.cells[..] else {
            panic!("three cells")
        };
        let mut drivers = Drivers {
            symbols: "0 t veth_newlink\n0 t vxlan_newlink\n".into(),
            modules: String::new(),
        };
        assert_eq!(drivers.lack(&vxlan.network.encapsulation), None);
        let lack = drivers.lack(&geneve.network.encapsulation);
        assert!(lack.expect("a reason").contains("CONFIG_GENEVE"));
        let wireguard = Description::by_word("wireguard").expect("a kind");
        let lack = drivers.lack(&(wireguard.usual)()).expect("a reason");
        assert_eq!(
            lack,
            "this kernel has no CONFIG_WIREGUARD, built in or as a module"
        );
        drivers.modules =
            "kernel/drivers/net/geneve.ko: kernel/net/ipv6/ip6_udp_tunnel.ko\n".into();
        assert_eq!(drivers.lack(&geneve.network.encapsulation), None);
        let unreadable = Drivers {
            symbols: String::new(),
            modules: String::new(),
        };
        assert_eq!(unreadable.lack(&geneve.network.encapsulation), None);
        let named = plan.to_owned() + "datapath: ebpf\n";
        let named = wirecost_plan::load("x.yaml", &named).expect("a plan");
        assert_eq!(forecast(&named), None);
    }

    #[test]
    fn a_run_that_chose_names_its_datapath_everywhere() {
        let plan =
            "name: x\nunderlay: { mtu: 9000 }\nencapsulation: [none, geneve]\nself_test: on\n";
        let auto = wirecost_plan::load("x.yaml", plan).expect("a plan");
        assert!(auto.plan.datapath.is_empty());
        let chosen = auto.with_datapath(Datapath::Ebpf).resolved();
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
