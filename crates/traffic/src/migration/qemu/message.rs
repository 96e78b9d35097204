//! The messages between the two ends of a virtual machine's move, on its flow: one line of JSON each.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use socket2::Socket;
use wirecost_model::machine_move::Accelerator;
use wirecost_qemu::{Line, TimedLine};

/// Longest line that is accepted, bytes.
const MAX_LINE_BYTES: usize = 4096;
/// Longest reason that is sent, characters: the rest is cut off.
const REASON: usize = 1000;

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "says", rename_all = "kebab-case")]
pub(crate) enum Message {
    /// From the source, before the load starts: its version of QEMU, and its accelerator.
    Hello {
        version: String,
        accelerator: Accelerator,
    },
    /// From the destination, the answer to `Hello`: the port on which its QEMU listens.
    Ready { port: u16 },
    /// From the source, while the move goes on: bytes of page content and number of pages sent so far.
    Sent { bytes: u64, pages: u64 },
    /// From the source: QEMU has sent everything, or the move was given up.
    Over { moved: bool },
    /// From the destination: its guest runs.
    Runs,
    /// From the destination: it has noted that the move was given up.
    Gone,
    /// From the source, after the window: asks whether the guest's memory is as it must be.
    Verify,
    /// From the destination: the memory is as it must be, after this number of writes of the guest.
    Same { writes: u32 },
    /// From the destination: how the memory differs.
    Differs { words: String },
    /// From the destination: why it cannot go on.
    Failed { words: String },
}

impl Message {
    /// The message that an end cannot go on, its reason cut to [`REASON`] characters.
    pub(crate) fn failed(reason: &str) -> Self {
        Self::Failed {
            words: reason.chars().take(REASON).collect(),
        }
    }

    pub(crate) fn send(&self, mut socket: &Socket) -> io::Result<()> {
        let line = serde_json::to_string(self)?;
        socket.write_all(format!("{line}\n").as_bytes())
    }

    pub(crate) fn parse(line: &str) -> io::Result<Self> {
        serde_json::from_str(line).map_err(|error| {
            let words = format!("a message that is not understood: {error}");
            io::Error::new(ErrorKind::InvalidData, words)
        })
    }

    /// Whether this is the last line that a source hears before it asks again. `Failed` is not: after it a
    /// destination still answers a source that is giving up.
    fn is_last(line: &str) -> bool {
        matches!(Self::parse(line), Ok(Self::Runs | Self::Gone) | Err(_))
    }
}

/// Reads the next line; `None`: the connection has ended.
///
/// # Errors
/// Errors of the socket, a timeout included; `UnexpectedEof`: it ended within a line; `InvalidData`: a line is too
/// long.
pub(crate) fn read_line(mut socket: &Socket) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut byte = [0];
    // Byte by byte: lines are few and short, and what follows a line must stay in the socket.
    loop {
        match socket.read(&mut byte) {
            Ok(0) if line.is_empty() => return Ok(None),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) if byte == *b"\n" => {
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            Ok(_) if line.len() >= MAX_LINE_BYTES => {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "a message without an end",
                ));
            }
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Starts a thread that puts the lines of a flow into a machine's queue, and an empty line when the connection has
/// ended. `until_last`: at a source, the thread ends with the last line of the move. It ends with the connection at
/// the latest.
///
/// # Errors
/// The thread cannot be created.
pub(crate) fn listen(
    socket: &Arc<Socket>,
    queue: Sender<TimedLine>,
    until_last: bool,
) -> io::Result<()> {
    let socket = Arc::clone(socket);
    let run = move || {
        loop {
            let line = match read_line(&socket) {
                Ok(line) => line.unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(_) => String::new(),
            };
            let last = line.is_empty() || (until_last && Message::is_last(&line));
            let timed = TimedLine {
                at: Instant::now(),
                line: Line::Other(line),
            };
            if queue.send(timed).is_err() || last {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("move-peer".to_owned())
        .stack_size(128 << 10)
        .spawn(run)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;
    use socket2::{Domain, Type};

    use super::*;

    #[test]
    fn messages_cross_a_connection_and_nothing_unbounded_does() {
        let (here, there) = Socket::pair(Domain::UNIX, Type::STREAM, None).expect("a pair");
        let sent = [
            Message::Ready { port: 4444 },
            Message::failed(&"x\n".repeat(2000)),
            Message::Verify,
        ];
        for message in &sent {
            message.send(&here).expect("sent");
            let line = read_line(&there).expect("read").expect("a line");
            assert_eq!(&Message::parse(&line).expect("a message"), message);
        }
        (&here)
            .write_all(&[b'x'; MAX_LINE_BYTES + 1])
            .expect("written");
        let error = read_line(&there).expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        drop(here);
        let (here, there) = Socket::pair(Domain::UNIX, Type::STREAM, None).expect("a pair");
        drop(here);
        assert_eq!(read_line(&there).expect("the end"), None);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_judged_without_a_panic(line: String) {
            let _ = Message::parse(&line);
        }
    }
}
