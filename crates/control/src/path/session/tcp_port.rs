//! What TCP to an open port of the other end shows.

use std::time::Duration;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{PathReply, PathRequest, TcpOrder};
use wirecost_check::TcpReport;

use super::Session;

/// Longer than it takes: connections and segments each have their own end.
const CONNECTING: Duration = Duration::from_mins(2);

impl Session<'_> {
    /// From the first host to the port of the other; no agent is needed there.
    pub(super) fn tcp_port(&mut self, port: u16) -> Result<TcpReport, LinkError> {
        let order = PathRequest::Tcp(TcpOrder {
            from: self.ends[0].clone(),
            to: self.ends[1].clone(),
            port,
            expect: self.asked.expect,
            bytes_per_second: self.asked.bytes_per_s,
        });
        for reply in self.ask_some(vec![Some(order)], CONNECTING)? {
            if let PathReply::Tcp(report) = reply {
                return Ok(report);
            }
        }
        Err(self.links[0].unexpected_reply("Tcp"))
    }
}
