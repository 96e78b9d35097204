//! Both ends write and read at once on each connection. The server begins with the first byte that it reads, and ends
//! when it has read the end of the client's half: that the client reads the end of the server's is proof of both.

use std::io;
use std::sync::Arc;

use socket2::Socket;

use crate::closing;
use crate::machine::Machine;
use crate::machine::sink::{Farewell, Sink};
use crate::machine::source::{Lead, Source};
use crate::options::Options;
use crate::table::{Buffers, Machines, Opening, Serving, Table};

pub(crate) static TABLE: Table = Table {
    halves: 2,
    may_block: |_| true,
    opening: Opening::Connection { streams: true },
    client: |load, flow| {
        let (options, socket) = (&load.options, flow.socket);
        halves(options, socket, flow.index, Lead::Own, Farewell::Nothing)
    },
    server: Serving::Connection(|load, socket, flow| {
        crate::socket::write_side(&socket, &load.options)
            .map_err(|error| io::Error::other(error.to_string()))?;
        halves(
            &load.options,
            socket,
            flow,
            Lead::Peer,
            Farewell::EndOwnHalf,
        )
    }),
    shut_to_stop: true,
    closing: closing::by_peer,
    buffers: Buffers::tcp_stream,
};

fn halves(
    options: &Options,
    socket: Arc<Socket>,
    flow: u32,
    lead: Lead,
    farewell: Farewell,
) -> Machines {
    // Two descriptors, since one cannot be waited for twice in one epoll set.
    let other = Arc::new(socket.try_clone()?);
    let sink = Sink::new(other, flow, farewell);
    let source: Box<dyn Machine> = Box::new(Source::new(options, socket, flow, lead));
    Ok(vec![source, Box::new(sink)])
}
