//! Probes the path over TCP to an open port of the other end.

use std::time::Duration;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{PathReply, PathRequest, TcpOrder};
use wirecost_check::TcpReport;

use super::Session;

/// Time-out of the probes over TCP; longer than they take, since connections and segments have limits of their own.
const CONNECTING: Duration = Duration::from_mins(2);

impl Session<'_> {
    /// Probes from the first host to a TCP port of the other end, which needs no agent.
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
