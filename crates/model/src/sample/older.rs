//! The load of a sample in records of version 1 or 2: a TCP stream.

use serde::{Deserialize, Deserializer};

use super::{Flow, Interval, LoadResult, Socket, StreamResult};
use crate::load::{Direction, Workload};

#[derive(Deserialize)]
struct TcpStream {
    bytes: u64,
    seconds: f64,
    sender_seconds: f64,
    intervals: Vec<Interval>,
    flows: Vec<Connection>,
}

#[derive(Deserialize)]
struct Connection {
    bytes: u64,
    sender: Socket,
    receiver: Socket,
}

pub(super) fn of_any_version<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<LoadResult>, D::Error> {
    crate::older::list::<D, LoadResult, TcpStream>(from)
}

impl From<TcpStream> for LoadResult {
    fn from(stream: TcpStream) -> Self {
        Self {
            name: Workload::TcpStream.name().to_owned(),
            workload: Workload::TcpStream,
            direction: Direction::AToB,
            seconds: stream.seconds,
            client_seconds: stream.sender_seconds,
            stream: Some(StreamResult {
                bytes: stream.bytes,
                back_bytes: 0,
                fairness: super::join::fairness(stream.flows.iter().map(|flow| flow.bytes)),
                intervals: stream.intervals,
            }),
            requests: None,
            datagrams: None,
            zero_copy: None,
            flows: stream
                .flows
                .into_iter()
                .map(|flow| Flow {
                    bytes: flow.bytes,
                    back_bytes: 0,
                    sender: Some(flow.sender),
                    receiver: Some(flow.receiver),
                })
                .collect(),
            strays: 0,
            generator: Vec::new(),
            io: Vec::new(),
            moves: Vec::new(),
            path: None,
            schedule: None,
        }
    }
}
