//! Tunnels that outlive the command that makes them: made, shown, removed.

pub use wirecost_agent::tunnel::{
    TunnelEnds, TunnelSpec, TunnelState, TunnelStatus, all, check_name, down, up,
};
