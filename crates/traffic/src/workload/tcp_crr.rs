//! A connection for each request and response.

use crate::closing;
use crate::machine::accept::Acceptor;
use crate::machine::connect::Connector;
use crate::table::{Buffers, Opening, Serving, Table};

pub(crate) static TABLE: Table = Table {
    halves: 1,
    may_block: |_| true,
    opening: Opening::Connections,
    client: |load, flow| {
        Ok(vec![Box::new(Connector::new(
            load,
            flow.target,
            flow.index,
        ))])
    },
    server: Serving::Thread(|load, entrance, _| Ok(Box::new(Acceptor::new(load, entrance)?))),
    shut_to_stop: false,
    closing: closing::by_connection,
    buffers: Buffers::tcp,
};
