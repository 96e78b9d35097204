//! Sockets with a load's options.

use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use wirecost_sys::socket::{
    autotune_buffers, bind_address_no_port, congestion, enable_zero_copy, force_buffers,
    set_busy_poll, set_congestion, set_dscp, set_max_pacing_rate, set_udp_gro, set_udp_segment,
    widen_receive_buffer,
};

use crate::error::TrafficError;
use crate::machine::{LOOK, PEER_SILENCE};
use crate::options::{Options, Rate, Sending, Waiting, Workload};

/// What connect(2) says on a socket that does not block.
pub(crate) const IN_PROGRESS: i32 = wirecost_sys::socket::IN_PROGRESS;

/// How long the device is polled before a receive gives up for this time, microseconds.
const BUSY_POLL_US: u32 = 50;
/// How long one of several streams may starve on a full path: it waits twice as long after each loss (RFC 6298, 5.5), and
/// the sixth in a row is 13 s after the first.
const STARVED: Duration = Duration::from_mins(1);
/// Unsent bytes of a stream beyond which a write waits (`TCP_NOTSENT_LOWAT`, tcp(7)).
const UNSENT: u32 = 512 << 10;
/// And of all streams together: so much of the kernel's memory may be filled with what was not sent.
const UNSENT_IN_ALL: u32 = 16 << 20;
const LEAST_UNSENT: u32 = 16 << 10;
/// What the kernel accounts for a datagram beside its payload (`SKB_TRUESIZE`, include/linux/skbuff.h), about, bytes.
const DATAGRAM_OVERHEAD: u64 = 1024;
/// Largest buffer for what may be outstanding, bytes.
const MOST_OUTSTANDING: u64 = 64 << 20;

fn failed(what: &'static str) -> impl FnOnce(std::io::Error) -> TrafficError {
    move |source| TrafficError::Socket { what, source }
}

/// A TCP socket with the load's options, not yet bound or connected: a listener hands them on to what it accepts, and
/// buffers decide the window scale that the handshake offers.
pub(crate) fn tcp(peer: SocketAddr, options: &Options) -> Result<Socket, TrafficError> {
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))
        .map_err(failed("making a TCP socket"))?;
    of_connection(&socket, options)?;
    Ok(socket)
}

/// How long what was sent may stay unacknowledged before the kernel gives a connection up (`TCP_USER_TIMEOUT`, tcp(7)).
fn patience(options: &Options) -> Duration {
    let streams = matches!(
        options.workload,
        Workload::TcpStream | Workload::TcpBidirectional
    );
    if streams && options.streams > 1 {
        STARVED
    } else {
        PEER_SILENCE
    }
}

/// The socket options of a load over TCP.
fn of_connection(socket: &Socket, options: &Options) -> Result<(), TrafficError> {
    if let Some(congestion) = &options.congestion {
        set_congestion(socket, congestion)?;
    }
    socket
        .set_tcp_user_timeout(Some(patience(options)))
        .map_err(failed("setting TCP_USER_TIMEOUT"))?;
    if options.nodelay {
        socket
            .set_tcp_nodelay(true)
            .map_err(failed("setting TCP_NODELAY"))?;
    }
    if let Some(Rate::BitsPerSecond(bits)) = options.rate
        && !options.paces_messages()
    {
        set_max_pacing_rate(socket, bits.div_ceil(8))
            .map_err(failed("setting SO_MAX_PACING_RATE"))?;
    }
    common(socket, options)
}

/// The options of a listener that several loads share: those of the first, which its connections need not set again, but
/// with the largest buffer of all, which decides the window scale that is offered (RFC 7323, section 2.3).
pub(crate) fn shared(first: &Options, all: &[&Options]) -> Options {
    Options {
        socket_buffer: all.iter().filter_map(|options| options.socket_buffer).max(),
        ..first.clone()
    }
}

/// How a connection that was accepted with another load's options comes to its own.
#[derive(Debug, Clone)]
pub(crate) struct Adopt {
    /// Whether the listener has a buffer of a size that somebody asked for.
    buffered: bool,
    /// The congestion control that new sockets have here, where the listener has another and the load asks for none.
    usual: Option<String>,
}

impl Adopt {
    /// Of connections that such a listener accepts; `None` where they have all that the load asks for.
    ///
    /// # Errors
    /// Where the usual congestion control of this network namespace cannot be read.
    pub(crate) fn of(listener: &Options, options: &Options) -> Result<Option<Self>, TrafficError> {
        let own = |of: &Options| {
            let rate = match of.rate {
                Some(Rate::BitsPerSecond(bits)) => Some(bits),
                _ => None,
            };
            (
                of.congestion.clone(),
                of.nodelay,
                rate,
                of.dscp,
                of.waiting,
                of.socket_buffer,
            )
        };
        if own(listener) == own(options) {
            return Ok(None);
        }
        // Once, and not for every connection.
        let usual = if listener.congestion.is_some() && options.congestion.is_none() {
            let new = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
            let usual = new.and_then(|new| congestion(&new));
            Some(usual.map_err(failed("reading the usual TCP_CONGESTION"))?)
        } else {
            None
        };
        Ok(Some(Self {
            buffered: listener.socket_buffer.is_some(),
            usual,
        }))
    }

    /// Sets the load's own, and the kernel's where it asks for nothing.
    pub(crate) fn apply(&self, socket: &Socket, options: &Options) -> Result<(), TrafficError> {
        if self.buffered && options.socket_buffer.is_none() {
            autotune_buffers(socket).map_err(failed("setting SO_BUF_LOCK"))?;
        }
        if let Some(usual) = &self.usual {
            set_congestion(socket, usual)?;
        }
        if options.waiting != Waiting::Spin {
            let _ = set_busy_poll(socket, 0);
        }
        socket
            .set_tcp_nodelay(options.nodelay)
            .map_err(failed("setting TCP_NODELAY"))?;
        if options.paces_messages() || !matches!(options.rate, Some(Rate::BitsPerSecond(_))) {
            set_max_pacing_rate(socket, u64::MAX).map_err(failed("setting SO_MAX_PACING_RATE"))?;
        }
        if options.dscp.is_none() {
            set_dscp(socket, 0).map_err(failed("setting the DSCP"))?;
        }
        of_connection(socket, options)
    }
}

/// A UDP socket with the load's options for so many of its flows, not yet bound or connected.
pub(crate) fn udp(peer: SocketAddr, options: &Options, flows: u32) -> Result<Socket, TrafficError> {
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP))
        .map_err(failed("making a UDP socket"))?;
    // Nothing wakes a thread that waits on such a socket: it looks by itself now and then.
    let look = match options.workload {
        Workload::UdpRr => options.reply_timeout.min(LOOK),
        _ => LOOK,
    };
    socket
        .set_read_timeout(Some(look))
        .and_then(|()| socket.set_write_timeout(Some(LOOK)))
        .map_err(failed("setting a time-out"))?;
    common(&socket, options)?;
    hold_outstanding(&socket, options, flows)?;
    Ok(socket)
}

/// [`tcp`] for a client: bound to the load's source address, where it has one.
pub(crate) fn client_tcp(peer: SocketAddr, options: &Options) -> Result<Socket, TrafficError> {
    let socket = tcp(peer, options)?;
    bind_source(&socket, options)?;
    Ok(socket)
}

/// [`udp`] for a client: bound to the load's source address, where it has one.
pub(crate) fn client_udp(peer: SocketAddr, options: &Options) -> Result<Socket, TrafficError> {
    let socket = udp(peer, options, 1)?;
    bind_source(&socket, options)?;
    Ok(socket)
}

/// Has a socket of UDP requests or responses hold what all of so many flows may have outstanding at once: they begin together,
/// and after a loss they ask again together. Not where the plan says how large the buffer is.
fn hold_outstanding(socket: &Socket, options: &Options, flows: u32) -> Result<(), TrafficError> {
    if options.workload != Workload::UdpRr || options.socket_buffer.is_some() {
        return Ok(());
    }
    let each = u64::from(options.request.max(options.response)) + DATAGRAM_OVERHEAD;
    let all = u64::from(flows) * u64::from(options.depth) * each;
    let wanted = all.min(MOST_OUTSTANDING) as u32;
    let there = socket.recv_buffer_size();
    // The kernel doubles what it is told, for overhead of its own.
    if there.map_err(failed("reading SO_RCVBUF"))? as u64 >= 2 * u64::from(wanted) {
        return Ok(());
    }
    widen_receive_buffer(socket, wanted).map_err(failed("setting SO_RCVBUF"))
}

fn bind_source(socket: &Socket, options: &Options) -> Result<(), TrafficError> {
    let Some(source) = options.source else {
        return Ok(());
    };
    let address = SocketAddr::new(source, 0);
    // The port is chosen when the peer is known: ports are many for each peer, and few for all of them.
    bind_address_no_port(socket)
        .and_then(|()| socket.bind(&address.into()))
        .map_err(|source| TrafficError::Source { address, source })
}

/// Has a client's socket send, and a server's receive, many datagrams as one.
pub(crate) fn segment(socket: &Socket, options: &Options, sends: bool) -> Result<(), TrafficError> {
    if sends && options.segmentation.send {
        // At most 65507 (options/validate.rs).
        set_udp_segment(socket, options.request as u16).map_err(failed("setting UDP_SEGMENT"))?;
    }
    if !sends && options.segmentation.receive {
        set_udp_gro(socket).map_err(failed("setting UDP_GRO"))?;
    }
    Ok(())
}

fn common(socket: &Socket, options: &Options) -> Result<(), TrafficError> {
    if let Some(bytes) = options.socket_buffer {
        set_buffers(socket, bytes)?;
    }
    if let Some(dscp) = options.dscp {
        set_dscp(socket, dscp).map_err(failed("setting the DSCP"))?;
    }
    if options.waiting == Waiting::Spin {
        // Polls a network card's queue; without the privilege, or on a device that has none, threads spin all the
        // same, by asking again and again.
        let _ = set_busy_poll(socket, BUSY_POLL_US);
    }
    Ok(())
}

/// What a writing half's socket needs besides, once the handshake is over (a header is a partial segment).
pub(crate) fn write_side(socket: &Socket, options: &Options) -> Result<(), TrafficError> {
    if options.corks() {
        cork(socket)?;
    }
    if options.sending == Sending::ZeroCopy {
        enable_zero_copy(socket).map_err(failed("setting SO_ZEROCOPY"))?;
    }
    if options.has_small_segments() {
        // What queues behind such a segment has to be let: only then is it sent together once the path is behind
        // (`tcp_should_autocork` of net/ipv4/tcp.c), as with other generators. 128 bytes, unoffloaded at MTU 1500: 0.4
        // Gbit/s with little unsent, 0.6 to 1.1 with the kernel's own limit.
        return Ok(());
    }
    keep_little_unsent(socket, options.streams)
}

/// Has only full segments leave (`TCP_CORK`): the kernel fills each to the MSS across writes, so that neither the
/// message size nor what is left of it after division by the MSS decides how many there are. The last, partial
/// segment leaves with the end of the stream.
///
/// With segmentation offload off, 128 KiB writes that each left a small tail segment made a factor of 1.37 in
/// throughput between MTUs 8 bytes apart. `MSG_MORE` on every send is not enough: it holds for that send only, and
/// an acknowledgement that comes in between lets the tail go (RFC 896; tcp(7)). Counted on loopback at MSS 1396,
/// segments in proportion to the fewest possible: `MSG_MORE` 1.97 with messages of 100 bytes, 1.26 to 1.29 with 1000,
/// 1.05 to 1.09 with 10,007, up to 1.005 from 64 KiB on; `TCP_CORK` at most 1.0001 with each.
pub(crate) fn cork(socket: &Socket) -> Result<(), TrafficError> {
    socket
        .set_tcp_cork(true)
        .map_err(failed("setting TCP_CORK"))
}

/// Keeps the queue of what is written and not yet sent short, so that data leave the writing thread hot from the
/// cache and while it runs. With megabytes queued they leave from the handling of acknowledgements instead, a window
/// at a time: such bursts overflow the backlog of the sending core (`net.core.netdev_max_backlog`), and both cores
/// halt in turns. Over the same unoffloaded path at MTU 1500 without a rate limit: 4.6 Gbit/s without, 6.2 to 6.9 with
/// 32 to 256 KiB. How much is best: docs/loads.md.
fn keep_little_unsent(socket: &Socket, streams: u32) -> Result<(), TrafficError> {
    let unsent = (UNSENT_IN_ALL / streams).clamp(LEAST_UNSENT, UNSENT);
    socket
        .set_tcp_notsent_lowat(unsent)
        .map_err(failed("setting TCP_NOTSENT_LOWAT"))
}

/// Sets both buffers and reads them back: the kernel caps what is asked for without a word, then doubles it for its
/// own bookkeeping (socket(7)). Where this process may, it goes beyond the caps, which are of the whole machine and
/// stay as they are.
pub(crate) fn set_buffers(socket: &Socket, asked: u32) -> Result<(), TrafficError> {
    let bytes = asked as usize;
    socket
        .set_send_buffer_size(bytes)
        .map_err(failed("setting SO_SNDBUF"))?;
    socket
        .set_recv_buffer_size(bytes)
        .map_err(failed("setting SO_RCVBUF"))?;
    // Without CAP_NET_ADMIN it stays at the caps: what that comes to is read back.
    let _ = force_buffers(socket, asked);
    let given = [
        ("SO_SNDBUF", "net.core.wmem_max", socket.send_buffer_size()),
        ("SO_RCVBUF", "net.core.rmem_max", socket.recv_buffer_size()),
    ];
    for (option, sysctl, size) in given {
        let limit = size.map_err(failed("reading a socket buffer's size"))? / 2;
        if limit < bytes {
            return Err(TrafficError::BufferCapped {
                option,
                sysctl,
                asked,
                limit: limit as u32,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_requests_holds_what_all_of_its_flows_have_outstanding() {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let with = |change: fn(&mut Options), flows| {
            let mut options = Options::new(Workload::UdpRr, [0; 16]);
            change(&mut options);
            let of = |flows| udp(here, &options, flows).unwrap().recv_buffer_size();
            (of(1).unwrap(), of(flows).unwrap())
        };
        let plain = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        let usual = plain.recv_buffer_size().unwrap();
        let (few, _) = with(|_| {}, 1);
        assert_eq!(few, usual, "it has room already");
        let (_, stream) = with(|options| options.workload = Workload::UdpStream, 1_024);
        assert_eq!(stream, usual);
        let (asked, kept) = with(|options| options.socket_buffer = Some(8 << 10), 1_024);
        assert_eq!(asked, kept, "as large as was asked for");
        // 1024 flows of 1000 bytes. Who may not go beyond net.core.rmem_max has that.
        let (_, many) = with(|options| options.request = 1_000, 1_024);
        let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
        let most: usize = most.trim().parse().unwrap();
        let wanted = 1_024 * 2_024;
        assert!(many >= 2 * wanted.min(most), "{many} of {wanted}, {most}");
    }
}
