//! The load of a cell in records of version 1 or 2: a TCP stream with four options.

use serde::{Deserialize, Deserializer};

use super::{Load, NamedLoad, Workload};

#[derive(Deserialize)]
struct TcpStream {
    streams: u32,
    message: u32,
    congestion: String,
    socket_buffer: Option<u32>,
}

/// Reads the loads of a cell from a record of any version.
pub(crate) fn of_any_version<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<NamedLoad>, D::Error> {
    crate::older::list::<D, NamedLoad, TcpStream>(from)
}

impl From<TcpStream> for NamedLoad {
    fn from(old: TcpStream) -> Self {
        Self::alone(Load {
            streams: old.streams,
            request: old.message,
            congestion: Some(old.congestion),
            socket_buffer: old.socket_buffer,
            ..Load::new(Workload::TcpStream)
        })
    }
}
