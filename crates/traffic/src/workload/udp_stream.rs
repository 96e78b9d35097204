//! Datagrams from client to server; what counts is what arrived.

use crate::closing;
use crate::machine::datagrams::DatagramServer;
use crate::machine::udp_source::UdpSource;
use crate::table::{Buffers, Opening, Serving, Table};

pub(crate) static TABLE: Table = Table {
    halves: 1,
    may_block: |_| true,
    opening: Opening::Ports,
    client: |load, flow| {
        let source = UdpSource::new(load, flow.socket, flow.index);
        Ok(vec![Box::new(source)])
    },
    server: Serving::Thread(|load, entrance, seat| {
        Ok(Box::new(DatagramServer::new(load, entrance.socket, seat)))
    }),
    shut_to_stop: false,
    closing: closing::by_datagram,
    buffers: Buffers::udp_stream,
};
