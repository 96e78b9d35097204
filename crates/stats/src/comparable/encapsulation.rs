//! Properties of an encapsulation that hold in the lab and elsewhere.

use wirecost_model::effect::RemarkKind;
use wirecost_model::encapsulation::Description;
use wirecost_model::metric::Metric;
use wirecost_model::plan::Cores;

use super::{Evidence, Objection, Pair, remark};

fn kind(cell: &Evidence<'_>) -> &'static Description {
    cell.cell.network.encapsulation.kind()
}

/// Why only one of the two cells receives single frames: a tunnel that cuts super-packets into
/// frames itself does so with any offloads and on any network. `None` where both encapsulations
/// cut, or neither.
pub(super) fn cuts(pair: &Pair<'_>) -> Option<String> {
    let one = [pair.from, pair.to].map(kind);
    let [from, to] = one.map(|kind| kind.cuts);
    let word = one.iter().find(|kind| kind.cuts)?.word;
    (from != to).then(|| format!("; {word} cuts super-packets into frames before it sends them"))
}

/// Bars a verdict on one host's CPU where the kernel encapsulates on all cores, which in a lab
/// include the other host's.
pub(super) fn on_all_cores(pair: &Pair<'_>) -> Option<Objection> {
    let of_one_host =
        pair.metric.is_cpu() && !matches!(pair.metric, Metric::Cpu | Metric::TransactionCpu);
    let everywhere =
        |cell: &Evidence<'_>| kind(cell).on_all_cores && cell.cell.network.cores == Cores::Split;
    let (from, to) = (everywhere(pair.from), everywhere(pair.to));
    if !of_one_host || !(from || to) {
        return None;
    }
    let word = if from { kind(pair.from) } else { kind(pair.to) }.word;
    let text = format!(
        "the kernel does {word}'s work on all cores of the machine, so that in a lab a part of each host's CPU is counted at the other \
         host"
    );
    let advice = "compare throughput or latency, or both hosts' CPU together (cores: shared); with hosts on two machines it is each host's own";
    let said = remark(RemarkKind::AllCores, text, advice);
    Some(Objection::unless(from == to, said))
}
