//! The whole program, as it is called: in network namespaces, behind every kind of host, killed at any time. One test
//! binary, so that it is linked once and its tests run side by side; those that judge figures run alone
//! (`common::lock_exclusive`).

#[path = "../crates/report/tests/fixture/mod.rs"]
mod fixture;

mod browser;
mod common;
mod daemons;
mod direct_lab;
mod pair;

mod adaptive;
mod agents;
mod binary;
mod check;
mod clean;
mod cli;
mod compare;
mod containers;
mod diagnose;
mod doctor;
mod existing;
mod guests;
mod hosts;
mod html;
mod ipv6;
mod kill;
mod lab;
mod line;
mod load_command;
mod loads;
mod manual;
mod many_hosts;
mod max_rate;
mod new_user;
mod offloads;
mod over_hosts;
mod overhead;
mod overlays;
mod ovn;
mod ovn_check;
mod ovs;
mod own_bridge;
mod package;
mod pairs;
mod phases;
mod plans;
mod programs;
mod runs;
mod screen;
mod simulate;
mod sudo;
mod transit;
mod truth;
mod tunnel;
mod vary;
mod vtep_gateway;
