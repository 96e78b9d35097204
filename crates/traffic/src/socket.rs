//! Sockets with the options of a load.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use wirecost_model::load::Address;
use wirecost_sys::socket::{
    autotune_buffers, bind_address_no_port, bind_here, congestion, enable_zero_copy, force_buffers,
    set_busy_poll, set_congestion, set_dscp, set_max_pacing_rate, set_udp_gro, set_udp_segment,
    widen_receive_buffer,
};

use crate::error::TrafficError;
use crate::options::{Options, Rate, Sending, WaitMode};
use crate::timeouts::{PEER_TIMEOUT, POLL_INTERVAL};

/// EINPROGRESS: connect(2) on a non-blocking socket.
pub(crate) const IN_PROGRESS: i32 = wirecost_sys::socket::IN_PROGRESS;

/// `SO_BUSY_POLL`, microseconds.
const BUSY_POLL_US: u32 = 50;
/// `TCP_USER_TIMEOUT` of one of several streams on a full path: the retransmission timeout doubles with each loss
/// (RFC 6298, 5.5), and the sixth retransmission in a row is 13 s after the first.
const STARVED: Duration = Duration::from_mins(1);
/// Unsent bytes of a stream beyond which a write waits (`TCP_NOTSENT_LOWAT`, tcp(7)).
const UNSENT: u32 = 512 << 10;
/// Unsent bytes of all streams together, which bounds the kernel's memory for unsent data.
const UNSENT_IN_ALL: u32 = 16 << 20;
/// Lower bound on the unsent bytes of each stream.
const LEAST_UNSENT: u32 = 16 << 10;
/// Memory that the kernel accounts for a datagram besides its payload (`SKB_TRUESIZE`, include/linux/skbuff.h),
/// about, bytes.
const DATAGRAM_OVERHEAD: u64 = 1024;
/// Largest receive buffer for outstanding datagrams, bytes.
const MOST_OUTSTANDING: u64 = 64 << 20;

fn failed(what: &'static str) -> impl FnOnce(std::io::Error) -> TrafficError {
    move |source| TrafficError::Socket { what, source }
}

/// A TCP socket with the load's options, not yet bound or connected: accepted sockets inherit those of a listener,
/// and buffers decide the window scale of the handshake.
pub(crate) fn tcp(peer: SocketAddr, options: &Options) -> Result<Socket, TrafficError> {
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))
        .map_err(failed("making a TCP socket"))?;
    of_connection(&socket, options)?;
    Ok(socket)
}

/// How long data may stay unacknowledged before the kernel aborts a connection (`TCP_USER_TIMEOUT`, tcp(7)).
fn patience(options: &Options) -> Duration {
    let workload = options.load.workload;
    if (workload.is_tcp_stream() || workload.is_migration()) && options.load.connections() > 1 {
        STARVED
    } else {
        PEER_TIMEOUT
    }
}

/// Sets the options of a load on a TCP socket.
fn of_connection(socket: &Socket, options: &Options) -> Result<(), TrafficError> {
    if let Some(congestion) = &options.load.congestion {
        set_congestion(socket, congestion)?;
    }
    socket
        .set_tcp_user_timeout(Some(patience(options)))
        .map_err(failed("setting TCP_USER_TIMEOUT"))?;
    if options.load.nodelay {
        socket
            .set_tcp_nodelay(true)
            .map_err(failed("setting TCP_NODELAY"))?;
    }
    if let Some(Rate::BitsPerSecond(bits)) = options.load.rate
        && !options.paces_messages()
    {
        // The connections of a machine share its rate.
        let bits = bits / u64::from(options.load.migration.map_or(1, |one| one.channels));
        set_max_pacing_rate(socket, bits.div_ceil(8))
            .map_err(failed("setting SO_MAX_PACING_RATE"))?;
    }
    common(socket, options)
}

/// The options of a listener that several loads share: those of the first load, whose connections inherit them, with
/// the largest buffer of all, which decides the offered window scale (RFC 7323, section 2.3).
pub(crate) fn of_listener(first: &Options, all: &[&Options]) -> Options {
    let mut options = first.clone();
    let buffers = all.iter().filter_map(|options| options.load.socket_buffer);
    options.load.socket_buffer = buffers.max();
    options
}

/// Sets a load's options on accepted sockets that inherited those of another load.
#[derive(Debug, Clone)]
pub(crate) struct OptionFixup {
    /// Whether the listener has a fixed buffer size.
    buffered: bool,
    /// The namespace's default congestion control, where the listener has another and the load asks for none.
    usual: Option<String>,
}

impl OptionFixup {
    /// For connections of a load from a listener with the options `listener`; `None` where they inherit all options of
    /// the load.
    ///
    /// # Errors
    /// The default congestion control of this network namespace cannot be read.
    pub(crate) fn of(listener: &Options, options: &Options) -> Result<Option<Self>, TrafficError> {
        let own = |of: &Options| {
            let rate = match of.load.rate {
                Some(Rate::BitsPerSecond(bits)) => Some(bits),
                _ => None,
            };
            (
                of.load.congestion.clone(),
                of.load.nodelay,
                rate,
                of.load.dscp,
                of.load.waiting,
                of.load.socket_buffer,
                of.paces_messages(),
                patience(of),
            )
        };
        if own(listener) == own(options) {
            return Ok(None);
        }
        // Read once, not for every connection.
        let usual = if listener.load.congestion.is_some() && options.load.congestion.is_none() {
            let new = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
            let usual = new.and_then(|new| congestion(&new));
            Some(usual.map_err(failed("reading the usual TCP_CONGESTION"))?)
        } else {
            None
        };
        Ok(Some(Self {
            buffered: listener.load.socket_buffer.is_some(),
            usual,
        }))
    }

    /// Sets the load's options, and the kernel's defaults where it has none.
    pub(crate) fn apply(&self, socket: &Socket, options: &Options) -> Result<(), TrafficError> {
        if self.buffered && options.load.socket_buffer.is_none() {
            autotune_buffers(socket).map_err(failed("setting SO_BUF_LOCK"))?;
        }
        if let Some(usual) = &self.usual {
            set_congestion(socket, usual)?;
        }
        if options.load.waiting != WaitMode::Spin {
            let _ = set_busy_poll(socket, 0);
        }
        socket
            .set_tcp_nodelay(options.load.nodelay)
            .map_err(failed("setting TCP_NODELAY"))?;
        if options.paces_messages() || !matches!(options.load.rate, Some(Rate::BitsPerSecond(_))) {
            set_max_pacing_rate(socket, u64::MAX).map_err(failed("setting SO_MAX_PACING_RATE"))?;
        }
        if options.load.dscp.is_none() {
            set_dscp(socket, 0).map_err(failed("setting the DSCP"))?;
        }
        of_connection(socket, options)
    }
}

/// A UDP socket with the load's options for `flows` flows, not yet bound or connected.
pub(crate) fn udp(peer: SocketAddr, options: &Options, flows: u32) -> Result<Socket, TrafficError> {
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP))
        .map_err(failed("making a UDP socket"))?;
    // Nothing wakes a thread in a blocking receive: it returns regularly to check whether to stop.
    let look = if options.load.workload.is_request_response() {
        // A shorter time-out would be none to the kernel, which counts microseconds.
        let least = Duration::from_micros(1);
        options.load.reply_timeout.clamp(least, POLL_INTERVAL)
    } else {
        POLL_INTERVAL
    };
    socket
        .set_read_timeout(Some(look))
        .and_then(|()| socket.set_write_timeout(Some(POLL_INTERVAL)))
        .map_err(failed("setting a time-out"))?;
    common(&socket, options)?;
    hold_outstanding(&socket, options, flows)?;
    Ok(socket)
}

/// A connection's socket with the load's options, to or at any address; not yet bound or connected.
pub(crate) fn connection(peer: &Address, options: &Options) -> Result<Socket, TrafficError> {
    if let Address::Ip(peer) = peer {
        return tcp(*peer, options);
    }
    let socket =
        Socket::new(Domain::UNIX, Type::STREAM, None).map_err(failed("making a Unix socket"))?;
    if let Some(bytes) = options.load.socket_buffer {
        set_buffers(&socket, bytes)?;
    }
    Ok(socket)
}

/// The address as the kernel takes it (`sockaddr`).
///
/// # Errors
/// A path that is too long.
pub(crate) fn kernel_address(address: &Address) -> io::Result<SockAddr> {
    match address {
        Address::Ip(address) => Ok((*address).into()),
        Address::Path(path) => SockAddr::unix(path),
        // A zero in front makes it an abstract one (unix(7)).
        Address::Abstract(name) => SockAddr::unix(format!("\0{name}")),
    }
}

/// The address and port of an IP address.
///
/// # Errors
/// [`TrafficError::Options`] for a Unix socket, which only persistent connections may use.
pub(crate) fn ip(address: &Address) -> Result<SocketAddr, TrafficError> {
    address
        .ip()
        .ok_or_else(|| TrafficError::Options(format!("{address}: this load goes over IP only")))
}

/// [`connection`] for a client: bound to the load's source address, where it has one.
pub(crate) fn client_connection(peer: &Address, options: &Options) -> Result<Socket, TrafficError> {
    let socket = connection(peer, options)?;
    if peer.ip().is_some() {
        bind_source(&socket, options)?;
    }
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

/// Enlarges the receive buffer of a UDP request/response socket to hold the outstanding datagrams of `flows` flows:
/// they start together, and after a loss they retry together. Not where the plan sets the buffer.
fn hold_outstanding(socket: &Socket, options: &Options, flows: u32) -> Result<(), TrafficError> {
    if !options.load.workload.is_request_response() || options.load.socket_buffer.is_some() {
        return Ok(());
    }
    let each = u64::from(options.load.request.max(options.load.response)) + DATAGRAM_OVERHEAD;
    let all = u64::from(flows) * u64::from(options.load.depth) * each;
    let wanted = all.min(MOST_OUTSTANDING) as u32;
    let there = socket.recv_buffer_size();
    // The kernel doubles the size that is set.
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
    // The port is chosen by connect(2): then it need only be unique for this peer.
    bind_address_no_port(socket)
        .and_then(|()| bind_here(socket, address))
        .map_err(|source| TrafficError::BindSource { address, source })
}

/// Enables UDP segmentation offload: sending at a client (`UDP_SEGMENT`), receiving at a server (`UDP_GRO`).
pub(crate) fn segment(socket: &Socket, options: &Options, sends: bool) -> Result<(), TrafficError> {
    if sends && options.load.segmentation.send {
        // At most 65507 (`Load::faults`).
        set_udp_segment(socket, options.load.request as u16)
            .map_err(failed("setting UDP_SEGMENT"))?;
    }
    if !sends && options.load.segmentation.receive {
        set_udp_gro(socket).map_err(failed("setting UDP_GRO"))?;
    }
    Ok(())
}

fn common(socket: &Socket, options: &Options) -> Result<(), TrafficError> {
    if let Some(bytes) = options.load.socket_buffer {
        set_buffers(socket, bytes)?;
    }
    if let Some(dscp) = options.load.dscp {
        set_dscp(socket, dscp).map_err(failed("setting the DSCP"))?;
    }
    if options.load.waiting == WaitMode::Spin {
        // Busy-polls the receive queue of the network card. Without the privilege, or on a device without such a queue,
        // threads spin by polling the socket.
        let _ = set_busy_poll(socket, BUSY_POLL_US);
    }
    Ok(())
}

/// Options of a socket that sends a stream, set after the handshake (a header is a partial segment).
pub(crate) fn set_sender_options(socket: &Socket, options: &Options) -> Result<(), TrafficError> {
    if options.corks() {
        cork(socket)?;
    }
    if options.load.sending == Sending::ZeroCopy {
        enable_zero_copy(socket).map_err(failed("setting SO_ZEROCOPY"))?;
    }
    if options.has_small_segments() {
        // Unsent data must be allowed to queue: only then does the kernel join small segments once the path is behind
        // (`tcp_should_autocork`, net/ipv4/tcp.c), as with other generators.
        return Ok(());
    }
    keep_little_unsent(socket, options.load.connections())
}

/// Sends full segments only (`TCP_CORK`): the kernel fills each to the MSS across writes, so that neither the message
/// size nor its remainder modulo the MSS decides how many segments there are. The last, partial segment is sent with
/// the end of the stream. `MSG_MORE` is not enough: it holds for one send only, and an acknowledgement in between
/// releases the partial segment (RFC 896, tcp(7)).
pub(crate) fn cork(socket: &Socket) -> Result<(), TrafficError> {
    socket
        .set_tcp_cork(true)
        .map_err(failed("setting TCP_CORK"))
}

/// Limits unsent data (`TCP_NOTSENT_LOWAT`), so that it is sent by the writing thread while it runs and hot from its
/// cache. With megabytes queued it is sent when acknowledgements arrive, a window at a time: such bursts overflow the
/// backlog of the sending core (`net.core.netdev_max_backlog`). Measurements: docs/facts.md.
fn keep_little_unsent(socket: &Socket, streams: u32) -> Result<(), TrafficError> {
    let unsent = (UNSENT_IN_ALL / streams).clamp(LEAST_UNSENT, UNSENT);
    socket
        .set_tcp_notsent_lowat(unsent)
        .map_err(failed("setting TCP_NOTSENT_LOWAT"))
}

/// Sets both buffers and reads them back: the kernel silently caps what is asked for, then doubles it for its
/// overhead (socket(7)). With CAP_NET_ADMIN the caps do not apply (`SO_SNDBUFFORCE`, `SO_RCVBUFFORCE`).
///
/// # Errors
/// [`TrafficError::BufferCapped`].
pub(crate) fn set_buffers(socket: &Socket, asked: u32) -> Result<(), TrafficError> {
    let bytes = asked as usize;
    socket
        .set_send_buffer_size(bytes)
        .map_err(failed("setting SO_SNDBUF"))?;
    socket
        .set_recv_buffer_size(bytes)
        .map_err(failed("setting SO_RCVBUF"))?;
    // Fails without CAP_NET_ADMIN; the size is checked below.
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
    use crate::options::Workload;

    #[test]
    fn connections_of_another_loads_listener_get_the_time_out_of_their_load() {
        let with = |streams| {
            Options::new(Workload::TcpBidirectional, [0; 16]).with(|load| load.streams = streams)
        };
        let (one, many) = (with(1), with(8));
        assert!(OptionFixup::of(&one, &one).unwrap().is_none());
        assert!(OptionFixup::of(&with(4), &many).unwrap().is_none());
        let fixup = OptionFixup::of(&one, &many).unwrap().unwrap();
        let inherited = tcp(SocketAddr::from(([127, 0, 0, 1], 0)), &one).unwrap();
        assert_eq!(inherited.tcp_user_timeout().unwrap(), Some(PEER_TIMEOUT));
        fixup.apply(&inherited, &many).unwrap();
        assert_eq!(inherited.tcp_user_timeout().unwrap(), Some(STARVED));
    }

    #[test]
    fn a_reply_time_out_below_a_microsecond_does_not_block_for_ever() {
        let options = Options::new(Workload::UdpRr, [0; 16])
            .with(|load| load.reply_timeout = Duration::from_nanos(500));
        let socket = udp(SocketAddr::from(([127, 0, 0, 1], 0)), &options, 1).unwrap();
        assert!(socket.read_timeout().unwrap().is_some());
    }

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
        let (_, stream) = with(|options| options.load.workload = Workload::UdpStream, 1_024);
        assert_eq!(stream, usual);
        let (asked, kept) = with(|options| options.load.socket_buffer = Some(8 << 10), 1_024);
        assert_eq!(asked, kept, "as large as was asked for");
        // 1024 flows of 1000 bytes. Who may not go beyond net.core.rmem_max has that.
        let (_, many) = with(|options| options.load.request = 1_000, 1_024);
        let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
        let most: usize = most.trim().parse().unwrap();
        let wanted = 1_024 * 2_024;
        assert!(many >= 2 * wanted.min(most), "{many} of {wanted}, {most}");
    }
}
