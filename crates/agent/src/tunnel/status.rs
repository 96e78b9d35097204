//! State of each tunnel: which parts exist, and the counters of its programs.

use serde::Serialize;
use wirecost_vtep::Counters;

use super::end;
use super::state::{self, NetnsLocation, TunnelState};

/// A tunnel, and which parts of it exist.
#[derive(Debug, Clone, Serialize)]
pub struct TunnelStatus {
    /// The tunnel's state file.
    #[serde(flatten)]
    pub state: TunnelState,
    /// Whether the tunnel is complete and no part is missing.
    #[serde(rename = "whole")]
    pub intact: bool,
    /// The missing parts, as text.
    pub missing: Vec<String>,
    /// The network namespace that the tunnel was made in, as text; `None`: the current one.
    pub place: Option<String>,
    /// Whether this user may look at the pinned programs, as root may.
    pub programs_seen: bool,
    /// Counters of each end that are not 0, in the order of the ends.
    pub counters: Vec<Vec<(&'static str, u64)>>,
}

/// All tunnels of this machine, sorted by name.
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
        intact: state.complete && missing.is_empty(),
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
