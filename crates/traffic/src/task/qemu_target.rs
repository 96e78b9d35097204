//! The destination of a virtual machine's move: the QEMU that receives it, and the flow on which the source says how
//! far it is.

use std::io;
use std::net::{IpAddr, Shutdown};
use std::sync::Arc;

use serde_json::{Value, json};
use socket2::Socket;
use wirecost_model::machine_move::Accelerator;
use wirecost_qemu::{Line, Machine, QemuError};

use super::qemu_end::QemuEnd;
use super::{Context, Progress};
use crate::flow::Outcome;
use crate::migration::qemu::broken;
use crate::migration::qemu::message::{Message, listen};
use crate::shared::Shared;
use crate::timeouts::POLL_INTERVAL;

pub(crate) struct QemuTarget {
    socket: Arc<Socket>,
    flow: u32,
    machine: Machine,
    /// Why QEMU has ended by itself; `None`: it has not.
    died: Option<String>,
    /// The source has given the move up: an end of QEMU is expected and not reported.
    given_up: bool,
}

impl QemuTarget {
    pub(crate) fn new(shared: &Shared, socket: Arc<Socket>, flow: u32) -> io::Result<Self> {
        let machine = shared.qemu_machines.take(flow);
        let machine = machine.ok_or_else(|| io::Error::other("there is no such machine"))?;
        listen(&socket, machine.queue(), false)?;
        Ok(Self {
            socket,
            flow,
            machine,
            died: None,
            given_up: false,
        })
    }

    /// Makes QEMU listen for the machine, on the flow's local address. Returns the port.
    fn await_machine(&mut self) -> Result<u16, QemuError> {
        let own = self
            .socket
            .local_addr()
            .ok()
            .and_then(|own| own.as_socket());
        let at = match own.map(|own| own.ip()) {
            Some(IpAddr::V6(ip)) => format!("[{ip}]"),
            Some(IpAddr::V4(ip)) => ip.to_string(),
            None => "0.0.0.0".to_owned(),
        };
        let arguments = json!({ "uri": format!("tcp:{at}:0") });
        self.machine.execute("migrate-incoming", &arguments)?;
        let state = self.machine.execute("query-migrate", &json!({}))?;
        let port = state["socket-address"][0]["port"].as_str();
        port.and_then(|port| port.parse().ok()).ok_or_else(|| {
            QemuError::Unusable(format!("QEMU does not say where it listens: {state}"))
        })
    }

    fn welcome(&mut self, version: &str, accelerator: Accelerator) -> Message {
        let here = self.machine.version().to_string();
        let own = self.machine.spec().accelerator;
        if here != version || own != accelerator {
            return Message::failed(&format!(
                "the source has QEMU {version} ({}), and here it is {here} ({}): both must be the same",
                accelerator.name(),
                own.name()
            ));
        }
        match self.await_machine() {
            Ok(port) => Message::Ready { port },
            Err(error) => Message::failed(&error.to_string()),
        }
    }

    /// Stops the guest and compares its memory with what its writes must have made of it.
    fn verify(&mut self) -> Message {
        if let Err(error) = self.machine.execute("stop", &json!({})) {
            return Message::failed(&error.to_string());
        }
        match self.machine.spec().program.check(self.machine.memory()) {
            Ok(writes) => Message::Same { writes },
            Err(wrong) => Message::Differs {
                words: wrong.to_string(),
            },
        }
    }

    fn hear(&mut self, context: &Context<'_>, line: &str) -> io::Result<Option<Progress>> {
        if line.is_empty() {
            if let (Some(words), false) = (&self.died, self.given_up) {
                return Err(broken(words));
            }
            self.socket.set_linger(None)?;
            let _ = self.socket.shutdown(Shutdown::Write);
            return Ok(Some(Progress::Over(Outcome::Orderly)));
        }
        match Message::parse(line)? {
            Message::Hello {
                version,
                accelerator,
            } => self.welcome(&version, accelerator).send(&self.socket)?,
            Message::Sent { bytes, pages } => {
                let rx = &context.flow(self.flow).rx;
                rx.bytes.publish(bytes);
                rx.messages.publish(pages);
            }
            Message::Over { moved: false } => {
                self.given_up = true;
                Message::Gone.send(&self.socket)?;
            }
            Message::Over { moved: true } => {}
            Message::Verify => self.verify().send(&self.socket)?,
            _ => {
                let words = "a message that only a destination sends";
                return Err(io::Error::new(io::ErrorKind::InvalidData, words));
            }
        }
        Ok(None)
    }
}

impl QemuEnd for QemuTarget {
    fn step(&mut self, context: &Context<'_>) -> io::Result<Option<Progress>> {
        let timed = match self.machine.next(POLL_INTERVAL) {
            Ok(None) => return Ok(Some(Progress::READ)),
            Ok(Some(timed)) => timed,
            Err(error) => {
                // The source may just have given the move up, which ends QEMU here: then a message of the source or
                // its FIN follows.
                let words = error.to_string();
                if !self.given_up {
                    Message::failed(&words).send(&self.socket)?;
                }
                self.died = Some(words);
                return Ok(None);
            }
        };
        match timed.line {
            Line::Other(line) => return self.hear(context, &line),
            Line::Event(name, Value::Null) if name == "RESUME" => {
                context.shared.qemu_machines.set_runs(self.flow, true);
                Message::Runs.send(&self.socket)?;
            }
            _ => {}
        }
        Ok(None)
    }

    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn machine(&self) -> u32 {
        self.flow
    }
}
