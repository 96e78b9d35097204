//! Findings about loss that does not depend on the packet size.

use wirecost_audit::Finding;
use wirecost_pmtu::FailingShare;

use super::{add, device_of, ends};
use crate::report::PathReport;

/// Share of failed round trips, 0 to 1, from which a path is reported to lose packets: at least [`MIN_ROUND_TRIPS`]
/// round trips, and the lower end of the 95 % confidence interval is not below this share. Where 5 % are lost each way,
/// chance reaches it less than once in 10,000 times.
const REPORTED_LOSS: f64 = 0.2;
/// Fewest round trips from which a loss is reported.
const MIN_ROUND_TRIPS: u32 = 30;
/// Share of failed round trips, 0 to 1, from which a note is made.
const NOTED_LOSS: f64 = 0.02;

/// The share of small enough packets that were lost. Echo requests are left out: the host that answers them may limit
/// their rate.
fn share(path: &PathReport) -> Option<FailingShare> {
    FailingShare::new(path.missing, path.awaited).filter(|_| path.port != 0)
}

/// Whether the path loses so many packets that a lost TCP segment proves nothing.
pub(super) fn is_lossy(path: &PathReport) -> bool {
    share(path).is_some_and(|share| is_much(&share))
}

fn is_much(share: &FailingShare) -> bool {
    share.of >= MIN_ROUND_TRIPS && share.between.0 >= REPORTED_LOSS
}

fn words(path: &PathReport, share: &FailingShare) -> String {
    format!(
        "{}: of {} datagrams that are small enough {} were not answered ({:.0} %, 95 % interval {:.0} to {:.0}): lost there, \
         or their answers on the way back",
        ends(path),
        share.of,
        share.failing,
        share.share * 100.0,
        share.between.0 * 100.0,
        share.between.1 * 100.0
    )
}

pub(super) fn judge(path: &PathReport, found: &mut Vec<Finding>) {
    let Some(share) = share(path).filter(is_much) else {
        return;
    };
    let fix = vec![
        format!("ip -s link show dev {}", device_of(path)),
        "# the same on the other host, and the counters of every switch and router on the way (errors, drops, queues); \
         filters that limit UDP"
            .to_owned(),
    ];
    add(found, "path-loses-packets", path, words(path, &share), fix);
}

/// A note on loss that is too small for a finding of [`judge`](crate::judge()).
pub fn loss_note(path: &PathReport) -> Option<String> {
    let some = share(path).filter(|share| share.between.0 >= NOTED_LOSS && !is_much(share));
    some.map(|share| words(path, &share))
}
