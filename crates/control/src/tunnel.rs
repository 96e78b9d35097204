//! Tunnels that outlive the command that makes them: made, shown, removed.

pub use wirecost_agent::tunnel::{Between, Note, Shown, Wanted, all, check_name, down, up};
