//! Whether receive work kept to its host's cores, without which sender and receiver CPU are not apart.

use wirecost_model::plan::Cores;
use wirecost_model::record::RunHead;

/// Says that a kernel did not let this user steer.
pub(crate) fn not_steered(any: bool) -> Option<String> {
    any.then(|| {
        "what a host receives is not steered to its own cores, for before Linux 6.3 (net.core.rps_default_mask) only root \
         may: some of it is handled on the other host's cores, so that sender CPU and receiver CPU are not what each host \
         used; their sum is. Run as root, on a later kernel, or with `cores: shared`"
            .to_owned()
    })
}

/// Says which steering let receive work run on the other host's cores.
pub(crate) fn off_own_cores(head: &RunHead) -> Option<String> {
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
