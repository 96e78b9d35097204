//! A row's network made the same for all who are compared on it, described, and proven.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{Reply, Request};
use wirecost_control::Lab;
use wirecost_model::sample::ProofTime;
use wirecost_model::vary::{CommandPair, Scope, Setting};

use crate::error::BenchError;
use crate::report::Report;
use crate::row::GUEST_MTU;

/// How long a host may take to describe itself.
const PROMPT: Duration = Duration::from_secs(10);
/// What has bridges pass frames through the firewall's hooks (net/bridge/br_netfilter_hooks.c).
const HOOKS: [&str; 3] = [
    "net.bridge.bridge-nf-call-iptables",
    "net.bridge.bridge-nf-call-ip6tables",
    "net.bridge.bridge-nf-call-arptables",
];
/// Congestion control of all.
pub(crate) const CONGESTION: &str = "cubic";
/// What new network namespaces have too.
const DEFAULT_CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

pub(crate) fn describe(
    lab: &mut Lab,
    report: &mut Report,
    interrupt: &AtomicBool,
) -> Result<(), BenchError> {
    let [a, _] = lab.links();
    let during = BenchError::lab("describing it");
    match a
        .call(&Request::Describe, PROMPT, interrupt)
        .map_err(&during)?
    {
        Reply::Description(environment) => {
            report.kernel = environment.kernel;
            report.cpu_model = environment.cpu_model;
            Ok(())
        }
        _ => Err(during(a.unexpected_reply("Describe"))),
    }
}

/// Has bridges pass frames without the firewall's hooks, where this machine would have them walk there: the network is
/// to cost as little as it can, so that the generators' own cost shows. `false` where a plain user's lab has to keep
/// them.
pub(crate) fn unhook(lab: &mut Lab, interrupt: &AtomicBool) -> Result<bool, BenchError> {
    if !Path::new("/proc/sys/net/bridge").exists() {
        return Ok(true);
    }
    let setting = Setting {
        factor: "bridge".to_owned(),
        label: "unhooked".to_owned(),
        sysctl: HOOKS.map(|key| (key.to_owned(), "0".to_owned())).into(),
        ethtool: BTreeMap::new(),
        device: [].into(),
        device_name: None,
        command: None,
        on: Scope::Hosts,
    };
    match lab.apply(&[setting], interrupt) {
        Ok(_) => Ok(true),
        Err(LinkError::Refused { .. }) => Ok(false),
        Err(error) => Err(BenchError::lab("setting its bridges")(error)),
    }
}

/// A path that drops full frames would have both measure something else.
pub(crate) fn prove(lab: &mut Lab, interrupt: &AtomicBool) -> Result<(), BenchError> {
    let proofs = lab
        .prove(ProofTime::Before, GUEST_MTU, interrupt)
        .map_err(BenchError::lab("proving the path"))?;
    match proofs.into_iter().find(|proof| !proof.proven) {
        None => Ok(()),
        Some(proof) => Err(BenchError::Path {
            size: proof.size,
            reason: proof.reason.unwrap_or_else(|| "no reason given".to_owned()),
        }),
    }
}

/// Has connections in the guests begin with [`CONGESTION`] where the machine's default is another one: some peers have
/// no option for it. By the routes, since a namespace's sysctl takes only what every user may have
/// (`tcp_allowed_congestion_control`).
pub(crate) fn one_congestion_control(
    lab: &mut Lab,
    interrupt: &AtomicBool,
) -> Result<(), BenchError> {
    let default = fs::read_to_string(DEFAULT_CONGESTION)
        .map_err(BenchError::machine("reading the congestion control"))?;
    if default.trim() == CONGESTION {
        return Ok(());
    }
    let before = format!(
        "ip -4 route show proto kernel | \
         while read -r route; do ip route replace $route proto kernel congctl {CONGESTION} || exit 1; done"
    );
    let setting = Setting {
        factor: "congestion control".to_owned(),
        label: CONGESTION.to_owned(),
        sysctl: BTreeMap::new(),
        ethtool: BTreeMap::new(),
        // The routes end with their namespaces.
        device: [].into(),
        device_name: None,
        command: Some(CommandPair {
            before,
            after: ":".to_owned(),
        }),
        on: Scope::Guests,
    };
    lab.apply(&[setting], interrupt)
        .map(drop)
        .map_err(BenchError::lab("setting its congestion control"))
}
