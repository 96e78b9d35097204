//! The client writes, the server reads to the end and says how much that was.

use crate::closing;
use crate::machine::sink::{Farewell, Sink};
use crate::machine::source::{Lead, Source};
use crate::table::{Buffers, Opening, Serving, Table};

pub(crate) static TABLE: Table = Table {
    halves: 1,
    may_block: |_| true,
    opening: Opening::Connection { streams: true },
    client: |load, flow| {
        let source = Source::new(&load.options, flow.socket, flow.index, Lead::Own);
        Ok(vec![Box::new(source)])
    },
    server: Serving::Connection(|_, socket, flow| {
        let sink = Sink::new(socket, flow, Farewell::Count);
        Ok(vec![Box::new(sink)])
    }),
    shut_to_stop: true,
    closing: closing::by_count,
    buffers: Buffers::tcp_stream,
};
