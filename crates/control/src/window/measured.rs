//! Joins the counts of both hosts into results of loads.

use wirecost_agent::protocol::{EndedLoad, Measured, MeasuredEnd};
use wirecost_model::end_window::{Counts, End, EndWindow};
use wirecost_model::latency::Latency;
use wirecost_model::load::NamedLoad;
use wirecost_model::sample::LoadResult;

use super::clients::Clients;

/// Adds the datagram totals, which the ends of loads report only once they have ended.
pub(crate) fn add_datagram_totals<'a>(
    measured: impl Iterator<Item = &'a mut Measured>,
    ended: &[EndedLoad],
) {
    for one in measured.flat_map(|host| &mut host.loads) {
        let same =
            |end: &&EndedLoad| (&end.name, end.place, end.end) == (&one.name, one.place, one.end);
        one.window.datagrams = ended.iter().find(same).map(|end| end.datagrams);
    }
}

/// The result of each load, from the counts of both hosts. `None` where an end is missing from the counts.
pub fn results(loads: &[NamedLoad], measured: &[Measured; 2]) -> Option<Vec<LoadResult>> {
    results_from(Clients::Across, loads, measured)
}

/// [`results`] with the clients on the hosts that `from` says.
pub(crate) fn results_from(
    from: Clients<'_>,
    loads: &[NamedLoad],
    measured: &[Measured; 2],
) -> Option<Vec<LoadResult>> {
    let result = |named: &NamedLoad| {
        let found = |end| {
            let here = move |one: &&MeasuredEnd| one.name == named.name && one.end == end;
            measured[from.host_of(named, end)].loads.iter().filter(here)
        };
        let pair = |client: &MeasuredEnd| -> Option<(EndWindow, EndWindow)> {
            if !named.load.has_server() {
                return Some((client.window.clone(), unseen(&client.window)));
            }
            let server = found(End::Server).find(|server| server.place == client.place)?;
            Some((client.window.clone(), server.window.clone()))
        };
        let pairs: Option<Vec<_>> = found(End::Client).map(pair).collect();
        let pairs = pairs.filter(|pairs| !pairs.is_empty())?;
        Some(LoadResult::join(named, &pairs))
    };
    loads.iter().map(result).collect()
}

/// The assumed counts of a server that is not a load of this program: it read everything that the client sent.
fn unseen(client: &EndWindow) -> EndWindow {
    let mut window = client.clone();
    for flow in &mut window.flows {
        flow.counts = Counts {
            read_bytes: flow.counts.sent_bytes,
            received: flow.counts.sent,
            ..Counts::default()
        };
        flow.tcp = None;
    }
    window.threads.clear();
    window.generator_bound = false;
    window.strays = 0;
    (window.latency, window.lateness) = (Latency::default(), Latency::default());
    (window.schedule, window.io) = (None, None);
    window
}
