//! Errors of an agent, with the stage: by the stage a controller distinguishes a network that cannot be built from a
//! load that failed, without parsing the message.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use super::Request;

/// Part of an agent's work that a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Making the network of a lab, or joining an existing host to a run.
    Build,
    /// Setting MTU, offloads and line for a cell.
    Adapt,
    /// Applying or undoing the settings of a level.
    Setting,
    /// Proving that the path carries the guest's MTU.
    Proof,
    /// Opening, running, counting or ending loads.
    Load,
    /// Describing the host.
    Describe,
    /// Checking a path between hosts that are used as they are.
    Path,
}

/// Why a request failed. The agent goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The stage of the request.
    pub stage: Stage,
    /// Message for the user, with the step and what to do.
    pub message: String,
}

impl Refusal {
    /// The error of a request of this stage.
    pub(crate) fn new(stage: Stage, error: &impl Display) -> Self {
        Self {
            stage,
            message: error.to_string(),
        }
    }
}

impl Request {
    /// The stage that the request belongs to.
    pub const fn stage(&self) -> Stage {
        match self {
            Self::Hello { .. }
            | Self::Prepare(_)
            | Self::Wire { .. }
            | Self::Build { .. }
            | Self::RemoveTunnel
            | Self::Join { .. } => Stage::Build,
            Self::Device
            | Self::PathDevices
            | Self::Adapt { .. }
            | Self::LiftLine
            | Self::SetLine => Stage::Adapt,
            Self::ApplySettings(_) | Self::Undo | Self::UndoLeft => Stage::Setting,
            Self::StartCapture | Self::ReadCapture { .. } | Self::Prove { .. } => Stage::Proof,
            Self::OpenServers(_)
            | Self::OpenClients(_)
            | Self::Start
            | Self::Begin(_)
            | Self::Part { .. }
            | Self::Total
            | Self::StopClients
            | Self::StopServers => Stage::Load,
            Self::Describe | Self::Addresses | Self::SourceTowards(_) | Self::Machine => {
                Stage::Describe
            }
            Self::Path(_) | Self::Transfer(_) => Stage::Path,
        }
    }
}
