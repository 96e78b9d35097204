//! `wirecost tunnel`: makes, shows and removes tunnels, which outlive the command.

pub use wirecost_agent::tunnel::{
    TunnelEnds, TunnelSpec, TunnelState, TunnelStatus, all, check_name, down, up,
};
