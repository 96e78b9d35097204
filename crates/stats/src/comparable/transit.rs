//! Switches and routers of the lab work on the hosts' cores.

use wirecost_model::effect::RemarkKind;

use super::{Evidence, Pair, Says, remark};

pub(super) fn check(pair: &Pair<'_>) -> Option<Says> {
    if !pair.metric.is_cpu() {
        return None;
    }
    let unknown = |cell: &Evidence<'_>| {
        let mut hosts = cell
            .samples()
            .filter_map(|sample| pair.metric.cpu_host(sample, &cell.load.name));
        !cell.cell.network.transit.hops.is_empty()
            && hosts.any(|usage| usage.transit_cores.is_none())
    };
    (unknown(pair.from) || unknown(pair.to)).then(|| {
        let text = "what the switches and routers between the hosts cost is part of the hosts' CPU"
            .to_owned();
        Says::Remarks(remark(RemarkKind::TransitCpu, text, ""))
    })
}
