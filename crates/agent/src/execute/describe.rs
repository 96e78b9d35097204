//! What an agent reports about its machine.

use std::collections::BTreeMap;

use wirecost_model::record::{Environment, WakeupCost};

use super::{Agent, Answer};
use crate::address;
use crate::error::{AgentError, Context};
use crate::protocol::{Reply, Request};

/// A random id that is generated at each boot (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl Agent {
    /// Answers the requests that only ask about this machine: its description, addresses, boot id, and source address
    /// towards a target.
    pub(super) fn execute_query(&mut self, request: &Request) -> Answer {
        match request {
            Request::Describe => self.describe(),
            Request::Addresses => address::own()
                .map(Reply::Addresses)
                .context("listing its addresses"),
            Request::Machine => std::fs::read_to_string(BOOT_ID)
                .map(|id| Reply::Machine(id.trim().to_owned()))
                .context(format!("reading {BOOT_ID}")),
            Request::SourceTowards(target) => address::towards(*target)
                .map(Reply::Source)
                .context(format!("it has no route to {target}")),
            _ => Err(AgentError::NotReady("nothing to tell")),
        }
    }

    /// Describes the machine, with the sysctls of a guest's namespace.
    fn describe(&mut self) -> Answer {
        let read = || wirecost_meter::sysctls(wirecost_meter::NETWORK_SYSCTLS);
        let sysctls = if self.existing.is_some() {
            read()
        } else {
            let mut guests = self.host()?.guests();
            let guest = guests
                .next()
                .ok_or(AgentError::NotReady("the host has no guest"))?;
            guest
                .within(read)
                .context("entering the guest's namespace")?
        };
        let machine = wirecost_meter::environment()?;
        Ok(Reply::Description(Box::new(Environment {
            kernel: machine.kernel,
            cpu_model: machine.cpu_model,
            cpus: wirecost_sys::process::allowed_cpus()?,
            memory_bytes: machine.memory_bytes,
            clock_source: machine.clock_source,
            virtual_machine: machine.virtual_machine,
            privilege: privilege().to_owned(),
            sysctls,
            hosts: BTreeMap::new(),
            wakeup_cost: wakeup_cost(),
            // Set by the controller, which knows the line of every lab.
            line: None,
        })))
    }
}

/// Cost of a wake-up on this host's first core, and between it and another core, which may be one of the other host.
fn wakeup_cost() -> Option<WakeupCost> {
    let own = *wirecost_sys::process::allowed_cpus().ok()?.first()?;
    let others = wirecost_meter::online_cpus().ok()?;
    let other = others.into_iter().find(|&cpu| cpu != own);
    let cores: Vec<u32> = [own].into_iter().chain(other).collect();
    // The other core may not be available to this process (cpuset(7)).
    wirecost_meter::wakeup_cost(&cores).or_else(|| wirecost_meter::wakeup_cost(&cores[..1]))
}

/// Whether this process is root on the machine, another user of it, or only in a user namespace (user_namespaces(7)).
fn privilege() -> &'static str {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    privilege_of(&map, nix::unistd::geteuid().is_root())
}

/// `map` is the process's /proc/PID/uid_map: in the machine's own user namespace the same for every user.
fn privilege_of(map: &str, is_root: bool) -> &'static str {
    match (&map.split_whitespace().collect::<Vec<_>>()[..], is_root) {
        (["0", "0", "4294967295"], true) => "root",
        (["0", "0", "4294967295"], false) => "user",
        _ => "user namespace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_of_the_machine_is_neither_root_nor_in_a_namespace() {
        // As /proc/self/uid_map is formatted (kernel/user_namespace.c, `uid_m_show`).
        let machine = "         0          0 4294967295\n";
        let own = "         0       1000          1\n";
        assert_eq!(privilege_of(machine, true), "root");
        assert_eq!(privilege_of(machine, false), "user");
        assert_eq!(privilege_of(own, true), "user namespace");
    }
}
