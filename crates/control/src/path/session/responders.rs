//! Starts the responders that acknowledge probes.

use std::net::SocketAddr;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{PathReply, PathRequest, Responding, Secret};

use super::{CheckResults, Session};
use crate::timeouts::PROMPT;

impl Session<'_> {
    /// Starts a responder on each host, on the port that was asked for where that is free. Hosts where it is not are
    /// added to `tapped` or `untestable`.
    pub(super) fn responders(
        &mut self,
        secret: Secret,
        CheckResults {
            tapped, untestable, ..
        }: &mut CheckResults,
    ) -> Result<[SocketAddr; 2], LinkError> {
        let mut ports = [self.asked.port.unwrap_or(0); 2];
        loop {
            let respond = |index: usize| PathRequest::Respond {
                address: SocketAddr::new(self.ends[index].address, ports[index]),
                secret,
            };
            let requests = vec![respond(0), respond(1)];
            let mut answering = Vec::new();
            for (index, reply) in self.ask(requests, PROMPT)?.into_iter().enumerate() {
                let PathReply::Responding(responding) = reply else {
                    return Err(self.links[index].unexpected_reply("Respond"));
                };
                let host = &self.ends[index].host;
                match responding {
                    Responding::At(address) => answering.push(address),
                    Responding::Tapped(address) => {
                        answering.push(address);
                        if !tapped.contains(host) {
                            tapped.push(host.clone());
                        }
                    }
                    Responding::Taken(_) if ports[index] == 0 => {
                        return Err(self.links[index].unexpected_reply("Respond"));
                    }
                    Responding::Taken(why) => {
                        if !untestable.iter().any(|(known, _)| known == host) {
                            untestable.push((host.clone(), why));
                        }
                        ports[index] = 0;
                    }
                }
            }
            if let Ok(answering) = <[SocketAddr; 2]>::try_from(answering) {
                return Ok(answering);
            }
        }
    }
}
