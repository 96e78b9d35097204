//! Whether each host handled what it received on its own cores. Otherwise sender and receiver CPU cannot be separated.

use wirecost_model::plan::Cores;
use wirecost_model::record::RunHead;

/// A warning where the kernel did not let this user set up receive steering.
pub(crate) fn not_steered(any: bool) -> Option<String> {
    any.then(|| {
        "what a host receives is not steered to its own cores, which before Linux 6.3 (net.core.rps_default_mask) \
         only root may do: some of it is handled on the other host's cores. So sender CPU and receiver CPU are not \
         what each host used; their sum is right. Run as root, on a later kernel, or with `cores: shared`"
            .to_owned()
    })
}

/// A warning with the `steering.rps` levels that let receive work run on the other host's cores.
pub(crate) fn steered_to_other_host(head: &RunHead) -> Option<String> {
    let experiment = &head.experiment;
    if experiment.plan.cores != Cores::Split {
        return None;
    }
    let rps = experiment.plan.steering.rps.iter();
    let leaving: Vec<String> = rps
        .filter(|rps| {
            let mut hosts = head.environment.hosts.values();
            hosts.any(|host| rps.leaves_own_cores(&host.cpus))
        })
        .map(|rps| format!("`{rps}`"))
        .collect();
    (!leaving.is_empty()).then(|| {
        format!(
            "with steering.rps {} the other host's cores may handle what a host receives: there, only the sum of \
             sender CPU and receiver CPU is meaningful",
            leaving.join(", ")
        )
    })
}
