//! TCP transfers over a path between hosts of a lab: how an application's data fares.

use std::fs;
use std::path::Path;

use wirecost_model::vary::{Scope, Setting};
use wirecost_probe::transfer::{HEARTBEATS, Receiver, TransferSize, transfer};

use crate::error::{AgentError, Context, Result};
use crate::guard::{SettingsGuard, SettingsTarget};
use crate::protocol::{
    Reply, TransferOrder, TransferReceived, TransferReply, TransferRequest, TransferSent,
};

/// The running program, even after its file was replaced or removed.
const SELF: &str = "/proc/self/exe";
/// TCP has no socket option for MTU probing, and reads the sysctl at every timeout (net/ipv4/tcp_timer.c,
/// `tcp_mtu_probing`), so it must be set in the namespace during the whole transfer.
const PROBING: &str = "net.ipv4.tcp_mtu_probing";
const PROBING_FILE: &str = "/proc/sys/net/ipv4/tcp_mtu_probing";

/// State of the transfers on this host.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    receiver: Option<Receiver>,
}

impl Transfers {
    /// `owner` is the controller, as [`crate::orphan::Owner::argument`] writes it.
    pub(crate) fn execute(&mut self, request: TransferRequest, owner: &str) -> Result<Reply> {
        let reply = match request {
            TransferRequest::Receive { address, secret } => {
                self.receiver = None;
                let receiver = Receiver::start(address, secret)?;
                let listening = receiver.address();
                self.receiver = Some(receiver);
                TransferReply::Listening(listening)
            }
            TransferRequest::Send(order) => TransferReply::Sent(send(&order, owner)?),
            TransferRequest::Received => {
                let receiver = self
                    .receiver
                    .take()
                    .ok_or(AgentError::NotReady("nothing is being received"))?;
                let arrived = receiver.finish();
                TransferReply::Received(TransferReceived {
                    bytes: arrived.bytes,
                    took: arrived.took,
                    stalled: arrived.stalled,
                    flows_since: arrived.flows_since,
                    ended: arrived.ended,
                })
            }
        };
        Ok(Reply::Transfer(Box::new(reply)))
    }
}

fn send(order: &TransferOrder, owner: &str) -> Result<TransferSent> {
    let guard = set_probing(order.tcp_mtu_probing, owner)?;
    let amount = TransferSize {
        bytes: order.bytes,
        limit: order.limit,
    };
    let sent = transfer(order.from, order.to, amount, &order.secret);
    if let Some(mut guard) = guard {
        guard.undo()?;
    }
    let sent = sent?;
    Ok(TransferSent {
        heartbeats: sent.heartbeats,
        of_heartbeats: HEARTBEATS,
        mss_before: sent.mss_before,
        mss_after: sent.mss_after,
        retransmits: sent.retransmits,
        congestion_control: sent.congestion_control,
    })
}

/// Sets the sysctl where its value differs, through a settings guard that restores it even if this process dies.
fn set_probing(probing: u8, owner: &str) -> Result<Option<SettingsGuard>> {
    let found = fs::read_to_string(PROBING_FILE).context(format!("reading {PROBING_FILE}"))?;
    let wanted = probing.to_string();
    if found.trim() == wanted {
        return Ok(None);
    }
    let mut guard =
        SettingsGuard::start(Path::new(SELF), owner, "this host", &SettingsTarget::Lab)?;
    guard.apply(&Setting {
        factor: "simulation".into(),
        label: format!("tcp_mtu_probing {probing}"),
        sysctl: [(PROBING.to_owned(), wanted)].into(),
        ethtool: [].into(),
        device: [].into(),
        device_name: None,
        command: None,
        on: Scope::Hosts,
    })?;
    Ok(Some(guard))
}
