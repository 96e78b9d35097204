//! Reads the hosts' devices, routes and settings.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::protocol::{PathReply, PathRequest, Reply, Request};
use wirecost_check::{AuditedHost, HostStack, NetnsEntry};
use wirecost_model::host::Location;

use super::Session;
use crate::timeouts::PROMPT;

/// Time-out of reading a host's devices, for which the agent runs other programs.
const READING: Duration = Duration::from_mins(1);

/// Starts to read a host's devices in the background; `host` is the host's name in reports.
pub(in crate::path) fn gather(
    link: &mut Link,
    host: String,
    interrupt: &AtomicBool,
) -> Result<(), LinkError> {
    link.done(
        &Request::Path(Box::new(PathRequest::Gather { host })),
        PROMPT,
        interrupt,
    )
}

impl Session<'_> {
    pub(super) fn read(&mut self) -> Result<Vec<AuditedHost>, LinkError> {
        let machines = self.machines()?;
        let requests = self.links.iter().map(|_| Some(PathRequest::Gathered));
        let replies = self.ask_each(requests.collect(), READING)?;
        let mut hosts = Vec::new();
        for (index, (reply, machine)) in replies.into_iter().zip(machines).enumerate() {
            let stack = match reply {
                Ok(PathReply::Stack(json)) => serde_json::from_str(&json)
                    .map_err(|_| self.links[index].unexpected_reply("Gathered"))?,
                Ok(_) => return Err(self.links[index].unexpected_reply("Gathered")),
                // The results of the probes hold without the audit.
                Err(LinkError::Refused { message, .. }) => HostStack::unreadable(
                    &self.ends[index].host,
                    "devices, routes and settings",
                    &message,
                ),
                Err(error) => return Err(error),
            };
            hosts.push(AuditedHost {
                stack,
                machine,
                rules: Vec::new(),
                enter: match &self.places[index] {
                    Location::Netns(name) => NetnsEntry::Named(name.clone()),
                    Location::Local | Location::Ssh(_) | Location::Exec(_) => NetnsEntry::Here,
                },
            });
        }
        Ok(hosts)
    }

    pub(super) fn machines(&mut self) -> Result<Vec<String>, LinkError> {
        let mut machines = Vec::new();
        for link in &mut self.links {
            match link.call(&Request::Machine, PROMPT, self.interrupt)? {
                Reply::Machine(id) => machines.push(id),
                _ => return Err(link.unexpected_reply("Machine")),
            }
        }
        Ok(machines)
    }
}
