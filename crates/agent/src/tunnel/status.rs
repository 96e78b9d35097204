//! What is there of each tunnel, and what it has counted.

use serde::Serialize;
use wirecost_vtep::Counters;

use super::end;
use super::state::{self, NetnsLocation, TunnelState};

/// A tunnel and what became of it.
#[derive(Debug, Clone, Serialize)]
pub struct TunnelStatus {
    /// What was made.
    #[serde(flatten)]
    pub state: TunnelState,
    /// Whether all of it is there.
    pub whole: bool,
    /// What is missing, in words.
    pub missing: Vec<String>,
    /// The network namespace that it was made in, in words, where that is another than the command's.
    pub place: Option<String>,
    /// Whether its programs could be looked at: root can.
    pub programs_seen: bool,
    /// What each end has counted, by its place in the note; those that have counted something.
    pub counters: Vec<Vec<(&'static str, u64)>>,
}

/// The tunnels of this machine, sorted by name.
pub fn all() -> Vec<TunnelStatus> {
    state::all().into_iter().map(show).collect()
}

fn show(state: TunnelState) -> TunnelStatus {
    let all = 0..state.ends.len();
    let look = || {
        all.clone()
            .flat_map(|number| end::missing(&state, number))
            .collect()
    };
    let (missing, place): (Vec<String>, Option<String>) = match state.home() {
        NetnsLocation::Here => (look(), None),
        NetnsLocation::At(netns, place) => (netns.within(look).unwrap_or_default(), Some(place)),
        NetnsLocation::Gone => (
            vec!["the network namespace that it was made in".to_owned()],
            None,
        ),
    };
    let mut counters = Vec::new();
    for number in all {
        let counted = wirecost_vtep::pinned::counters(&state.pins(number));
        counters.push(
            counted
                .map(|counters| nonzero(&counters))
                .unwrap_or_default(),
        );
    }
    TunnelStatus {
        whole: state.complete && missing.is_empty(),
        missing,
        place,
        programs_seen: !end::pins_are_hidden(&state),
        counters,
        state,
    }
}

fn nonzero(counters: &Counters) -> Vec<(&'static str, u64)> {
    let all = wirecost_vtep::Counter::ALL.into_iter();
    all.map(|counter| (counter.name(), counters.get(counter)))
        .filter(|(_, count)| *count > 0)
        .collect()
}
