//! Joins what both hosts of a lab report once they are built.

use std::net::SocketAddr;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{Reply, Stage};
use wirecost_model::line::LineRelease;
use wirecost_model::switch::OpenVswitch;

/// What the hosts of a built lab reported. Both run on one kernel as one user, so their line and their switch are of
/// the same kind.
#[derive(Debug, Default)]
pub(super) struct BuiltLab {
    /// Addresses of the guests' responders, by host and guest.
    pub(super) responders: [Vec<SocketAddr>; 2],
    /// Thread ids of threads inside the guests' namespaces, by host and guest.
    pub(super) guest_tids: [Vec<u32>; 2],
    /// The hosts' Open vSwitch, where it carries the frames.
    pub(super) open_vswitch: Option<OpenVswitch>,
    /// Process ids of the daemons of both hosts' Open vSwitch.
    pub(super) daemons: Vec<u32>,
    /// Whether both hosts could set receive steering (RPS) as their network has it.
    pub(super) steered: bool,
    /// How the hosts' rate-limited line releases packets, where the network has one.
    pub(super) line: Option<LineRelease>,
}

impl BuiltLab {
    /// Joins the replies of host a and host b. `None`: one is not a [`Reply::Built`].
    ///
    /// # Errors
    /// Where the hosts emulate their lines differently.
    pub(super) fn join(replies: [Reply; 2]) -> Option<Result<Self, LinkError>> {
        let mut built = Self {
            steered: true,
            ..Self::default()
        };
        for (index, reply) in replies.into_iter().enumerate() {
            let Reply::Built {
                responders,
                guest_tids,
                switch,
                steered,
                line,
            } = reply
            else {
                return None;
            };
            if let Some(message) = unlike(built.line.as_ref(), line.as_ref()) {
                return Some(Err(LinkError::Refused {
                    host: "b".to_owned(),
                    stage: Stage::Build,
                    message,
                }));
            }
            built.responders[index] = responders;
            built.guest_tids[index] = guest_tids;
            built.steered &= steered;
            built.line = line;
            if let Some(switch) = switch {
                built.open_vswitch = Some(switch.about);
                built.daemons.extend(switch.processes);
            }
        }
        Some(Ok(built))
    }
}

/// Why two lines must not be compared, where different mechanisms emulate them: the mechanisms would be compared too.
pub(crate) fn unlike(one: Option<&LineRelease>, other: Option<&LineRelease>) -> Option<String> {
    let (one, other) = one.zip(other)?;
    (one.by != other.by).then(|| format!("{other}, and elsewhere in this run {one}"))
}
