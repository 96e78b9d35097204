//! A blocking rtnetlink connection to one namespace: one request, one answer (netlink(7)).
//!
//! Not here: which messages to send (`netbuild`, `vtep`).

pub mod generic;
pub mod raw;

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
    NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// What a request does with an object that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Creates the object, which must not exist yet.
    Create,
    /// Creates the object, or replaces one that exists.
    Replace,
    /// Changes the object, which must exist.
    Change,
}

/// A connection to the network namespace it was opened in; it stays valid when the thread leaves that.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a connection to the calling thread's network namespace.
    ///
    /// # Errors
    /// Errors of socket(2) and bind(2).
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // A refusal then carries the kernel's message, and not our complete request (netlink(7)).
        socket.set_ext_ack(true)?;
        socket.set_cap_ack(true)?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Sends a change and waits for the acknowledgement. [`code`] has the error number of a refusal.
    pub fn apply(&mut self, message: RouteNetlinkMessage, intent: Intent) -> io::Result<()> {
        let flags = NLM_F_REQUEST
            | NLM_F_ACK
            | match intent {
                Intent::Create => NLM_F_CREATE | NLM_F_EXCL,
                Intent::Replace => NLM_F_CREATE | NLM_F_REPLACE,
                Intent::Change => 0,
            };
        self.send(message, flags)?;
        self.receive(|_| ())
    }

    /// Requests one object; `None` where the kernel answers with an acknowledgement only.
    pub fn get(&mut self, message: RouteNetlinkMessage) -> io::Result<Option<RouteNetlinkMessage>> {
        self.send(message, NLM_F_REQUEST | NLM_F_ACK)?;
        let mut found = None;
        self.receive(|answer| found = Some(answer))?;
        Ok(found)
    }

    /// Requests all objects of a kind.
    pub fn dump(&mut self, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.send(message, NLM_F_REQUEST | NLM_F_DUMP)?;
        let mut found = Vec::new();
        self.receive(|answer| found.push(answer))?;
        Ok(found)
    }

    fn send(&mut self, message: impl NetlinkSerializable, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        Ok(())
    }

    /// Reads until the acknowledgement, the refusal or the end of the dump of the last request.
    fn receive(&mut self, mut each: impl FnMut(RouteNetlinkMessage)) -> io::Result<()> {
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = datagram.as_slice();
            while rest.len() >= 16 {
                let message = parse(rest)?;
                let length = (message.header.length as usize).next_multiple_of(4);
                if message.header.sequence_number == self.sequence {
                    if let Some(end) = end_of(&message.payload) {
                        return end;
                    }
                    if let NetlinkPayload::InnerMessage(inner) = message.payload {
                        each(inner);
                    }
                }
                if length == 0 || length >= rest.len() {
                    break;
                }
                rest = &rest[length..];
            }
        }
    }
}

fn parse<T: NetlinkDeserializable>(bytes: &[u8]) -> io::Result<NetlinkMessage<T>> {
    NetlinkMessage::<T>::deserialize(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}

/// The result with which a message ends an answer; `None`: it does not. A dump that fails ends with the error number
/// (net/netlink/af_netlink.c, `netlink_dump_done`).
fn end_of<T>(payload: &NetlinkPayload<T>) -> Option<io::Result<()>> {
    let (error, attributes) = match payload {
        NetlinkPayload::Error(error) if error.code.is_none() => return Some(Ok(())),
        // The request's header comes first, then the attributes.
        NetlinkPayload::Error(error) => (error.to_io(), error.header.get(16..)),
        NetlinkPayload::Done(done) if done.code == 0 => return Some(Ok(())),
        NetlinkPayload::Done(done) => (
            io::Error::from_raw_os_error(-done.code),
            Some(&done.extended_ack[..]),
        ),
        _ => return None,
    };
    Some(Err(with_words(error, attributes.unwrap_or_default())))
}

/// Adds the message of the extended acknowledgement (NLMSGERR_ATTR_MSG) to an error, keeping its number.
fn with_words(error: io::Error, attributes: &[u8]) -> io::Error {
    const ATTR_MSG: u16 = 1;
    let mut rest = attributes;
    while let [l0, l1, k0, k1, ..] = *rest {
        let length = u16::from_ne_bytes([l0, l1]) as usize;
        if length < 4 || length > rest.len() {
            break;
        }
        if u16::from_ne_bytes([k0, k1]) == ATTR_MSG {
            let text = String::from_utf8_lossy(&rest[4..length]);
            return io::Error::new(
                error.kind(),
                Refusal {
                    code: error,
                    words: text.trim_end_matches('\0').to_owned(),
                },
            );
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    error
}

/// Error number of a refusal, with or without the kernel's message.
pub fn code(error: &io::Error) -> Option<i32> {
    let refusal = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Refusal>());
    refusal.map_or_else(
        || error.raw_os_error(),
        |refusal| refusal.code.raw_os_error(),
    )
}

#[derive(Debug, thiserror::Error)]
#[error("{words}: {code}")]
struct Refusal {
    #[source]
    code: io::Error,
    words: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_that_fails_ends_with_its_error_number() {
        // struct nlmsghdr of an NLMSG_DONE (3), and the number.
        let done = |code: i32| {
            let (length, kind) = (20u32.to_ne_bytes(), 3u16.to_ne_bytes());
            let bytes = [&length[..], &kind, &[0; 10], &code.to_ne_bytes()].concat();
            let message = parse::<RouteNetlinkMessage>(&bytes).expect("a message");
            end_of(&message.payload).expect("an end")
        };
        assert!(done(0).is_ok());
        let refused = done(-2).expect_err("ENOENT");
        assert_eq!(code(&refused), Some(2));
    }
}
