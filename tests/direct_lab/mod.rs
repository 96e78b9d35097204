//! A lab that this test process holds itself, without a run: built, and asked what a run would ask it.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirecost_agent::lab::allowed_cpus;
use wirecost_agent::orphan::Owner;
use wirecost_control::hosts::{AgentRole, Binaries, HostsContext};
use wirecost_control::{Lab, LabContext, place};
use wirecost_model::cell::Network;
use wirecost_model::plan::Cores;

use crate::common::program;

/// No interrupt.
pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

#[track_caller]
pub(crate) fn lab(network: &Network) -> Lab {
    let allowed = allowed_cpus().expect("cores");
    let context = LabContext {
        agents: HostsContext {
            program: program().to_owned(),
            binaries: Binaries::default(),
            owner: Owner::this().expect("this process"),
            role: AgentRole::Commands,
            idle: Duration::ZERO,
            verbose: 0,
        },
        placement: place(Cores::Shared, &allowed),
        release_us: wirecost_model::line::RELEASE_US,
        several_links: false,
    };
    Lab::up(&context, network, &NEVER).unwrap_or_else(|error| panic!("{network}: {error}"))
}
