//! JSON-RPC 1.0 over a Unix socket, as Open vSwitch's daemons use it, in the database's protocol (RFC 7047, section 4)
//! and in that of `ovs-appctl` (`lib/unixctl.c`).

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Deserializer, Value, json};

use crate::deadline::Deadline;

/// A connection; one call at a time.
#[derive(Debug)]
pub(crate) struct Rpc {
    stream: BufReader<UnixStream>,
    calls: u64,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum RpcError {
    /// The connection failed, or no answer came in time.
    Line(io::Error),
    /// The other end answered with an error.
    Answer(Value),
}

impl Rpc {
    pub(crate) fn connect(socket: &Path) -> io::Result<Self> {
        Ok(Self {
            stream: BufReader::new(UnixStream::connect(socket)?),
            calls: 0,
        })
    }

    /// Calls a method and waits for its result until the deadline; where that is over, for a moment.
    pub(crate) fn call(
        &mut self,
        method: &str,
        params: &Value,
        deadline: Deadline,
    ) -> Result<Value, RpcError> {
        let deadline = deadline.at_least_a_moment();
        self.calls += 1;
        let id = self.calls;
        self.send(
            &json!({"method": method, "params": params, "id": id}),
            deadline,
        )?;
        loop {
            let mut message = self.receive(deadline)?;
            if message["method"] == "echo" {
                // The server checks whether this client is alive (RFC 7047, section 4.1.11).
                let answer =
                    json!({"result": message["params"], "error": null, "id": message["id"]});
                self.send(&answer, deadline)?;
                continue;
            }
            if message["id"] != id {
                continue;
            }
            return match message["error"].take() {
                Value::Null => Ok(message["result"].take()),
                error => Err(RpcError::Answer(error)),
            };
        }
    }

    fn send(&mut self, message: &Value, deadline: Deadline) -> Result<(), RpcError> {
        let mut stream = self.stream.get_ref();
        stream
            .set_write_timeout(Some(deadline.timeout()))
            .and_then(|()| stream.write_all(message.to_string().as_bytes()))
            .map_err(RpcError::Line)
    }

    /// Receives one message; messages follow each other without a separator.
    fn receive(&mut self, deadline: Deadline) -> Result<Value, RpcError> {
        let stream = &mut self.stream;
        let mut messages =
            Deserializer::from_reader(UntilDeadline { stream, deadline }).into_iter();
        match messages.next() {
            Some(message) => message.map_err(|error| RpcError::Line(error.into())),
            None => Err(RpcError::Line(io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

/// Reads that together end by a deadline, however little each of them brings.
struct UntilDeadline<'a> {
    stream: &'a mut BufReader<UnixStream>,
    deadline: Deadline,
}

impl Read for UntilDeadline<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.stream.buffer().is_empty() {
            if self.deadline.is_over() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let timeout = Some(self.deadline.timeout());
            self.stream.get_ref().set_read_timeout(timeout)?;
        }
        self.stream.read(bytes)
    }
}

/// The error as text for messages.
impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(error) if is_late(error) => f.write_str("no answer in time"),
            Self::Line(error) => write!(f, "{error}"),
            Self::Answer(Value::String(text)) => f.write_str(text.trim()),
            Self::Answer(value) => match (value["error"].as_str(), value["details"].as_str()) {
                (Some(error), Some(details)) => write!(f, "{error}: {details}"),
                _ => write!(f, "{value}"),
            },
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// A server that says these things when it was asked once.
    fn said(answers: &str) -> (Rpc, thread::JoinHandle<String>, tempfile::TempDir) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("bound");
        let answers = answers.to_owned();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut buffer = [0; 4096];
            let length = stream.read(&mut buffer).expect("a request");
            // A client whose time is over has gone.
            let _ = stream.write_all(answers.as_bytes());
            let mut rest = String::from_utf8_lossy(&buffer[..length]).into_owned();
            // Until the client closes.
            let _ = stream.read_to_string(&mut rest);
            rest
        });
        (Rpc::connect(&path).expect("connected"), server, directory)
    }

    fn soon() -> Deadline {
        Deadline::within(Duration::from_secs(10))
    }

    #[test]
    fn a_server_that_asks_back_is_answered_before_the_result_is_taken() {
        let (mut rpc, server, _directory) = said(
            r#"{"method":"echo","params":[],"id":"echo"}{"id":9,"result":1,"error":null}{"id":1,"result":[7],"error":null}"#,
        );
        let result = rpc.call("transact", &json!(["x"]), soon());
        assert_eq!(result.expect("a result"), json!([7]));
        drop(rpc);
        let asked = server.join().expect("the server");
        assert!(asked.contains(r#""id":"echo""#), "{asked}");
    }

    #[test]
    fn an_error_is_told_in_the_servers_words() {
        let (mut rpc, server, _directory) = said(r#"{"id":1,"result":null,"error":"Not found\n"}"#);
        let error = rpc.call("x", &json!([]), soon()).expect_err("refused");
        assert_eq!(error.to_string(), "Not found");
        drop(rpc);
        server.join().expect("the server");
    }

    #[test]
    fn an_end_within_a_message_and_silence_are_errors() {
        let (mut rpc, server, _directory) = said(r#"{"id":1,"resu"#);
        let late = rpc.call("x", &json!([]), Deadline::within(Duration::from_millis(50)));
        assert_eq!(late.expect_err("silent").to_string(), "no answer in time");
        drop(rpc);
        server.join().expect("the server");
    }

    #[test]
    fn an_answer_that_comes_in_drops_does_not_extend_the_deadline() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("bound");
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            // Until the client closes, or for 10 s.
            let dropped = (0..1000).all(|_| {
                thread::sleep(Duration::from_millis(10));
                stream.write_all(b" ").is_ok()
            });
            dropped
                && stream
                    .write_all(br#"{"id":1,"result":1,"error":null}"#)
                    .is_ok()
        });
        let mut rpc = Rpc::connect(&path).expect("connected");
        let deadline = Deadline::within(Duration::from_millis(100));
        let late = rpc.call("x", &json!([]), deadline);
        assert_eq!(late.expect_err("late").to_string(), "no answer in time");
        drop(rpc);
        assert!(!server.join().expect("the server"), "all was read");
    }
}
