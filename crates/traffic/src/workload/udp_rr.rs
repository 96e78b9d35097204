//! Requests and responses in datagrams.

use crate::closing;
use crate::machine::datagrams::DatagramServer;
use crate::machine::udp_request::UdpRequester;
use crate::options::Options;
use crate::table::{Buffers, Opening, Serving, Table};

pub(crate) static TABLE: Table = Table {
    halves: 1,
    may_block,
    opening: Opening::Ports,
    client: |load, flow| {
        let requester = UdpRequester::new(load, flow.socket, flow.index);
        Ok(vec![Box::new(requester)])
    },
    server: Serving::Thread(|load, entrance, seat| {
        Ok(Box::new(DatagramServer::new(load, entrance.socket, seat)))
    }),
    shut_to_stop: false,
    closing: closing::by_datagram,
    buffers: Buffers::udp_rr,
};

/// A thread that waits for a response cannot at the same time wait for the moment to send the next request.
fn may_block(options: &Options) -> bool {
    let timed = options.rate.is_some() || !options.think_time.is_zero();
    !timed || options.depth == 1
}
