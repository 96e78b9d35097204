//! Requests and responses on connections that stay.

use crate::closing;
use crate::machine::request::Requester;
use crate::machine::respond::Responder;
use crate::options::Options;
use crate::table::{Buffers, Opening, Serving, Table};

pub(crate) static TABLE: Table = Table {
    halves: 1,
    may_block,
    opening: Opening::Connection { streams: false },
    client: |load, flow| {
        let requester = Requester::new(load, flow.socket, flow.index);
        Ok(vec![Box::new(requester)])
    },
    server: Serving::Connection(|_, socket, flow| Ok(vec![Box::new(Responder::new(socket, flow))])),
    shut_to_stop: false,
    closing: closing::by_end,
    buffers: Buffers::tcp,
};

/// What is outstanding at once, up to which two blocking ends cannot both wait in a write.
const SAFELY_OUTSTANDING: u64 = 16 << 10;

/// A thread that waits for a response cannot at the same time wait for the moment to send the next request.
fn may_block(options: &Options) -> bool {
    let largest = u64::from(options.request.max(options.response));
    let one_at_a_time =
        options.depth == 1 || largest * u64::from(options.depth) <= SAFELY_OUTSTANDING;
    let timed = options.rate.is_some() || !options.think_time.is_zero();
    one_at_a_time && (!timed || options.depth == 1)
}
