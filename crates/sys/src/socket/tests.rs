use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};

use super::*;

const LONG: Duration = Duration::from_secs(10);

/// Waits for a queued error, bounded.
fn next_error(socket: &UdpSocket) -> QueuedError {
    for _ in 0..100 {
        if let Some(error) = read_error_queue(socket).unwrap() {
            return error;
        }
        poll_readable(&[socket.as_fd()], Duration::from_millis(100)).unwrap();
    }
    panic!("no error was queued");
}

fn needs(privilege: &str, error: &io::Error) {
    wirecost_skips::skip(format!("{privilege} is missing: {error}"));
}

#[test]
fn tcp_info_counts_what_crossed_a_connection() {
    use std::io::{Read, Write};

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    near.write_all(&[7; 1000]).unwrap();
    far.read_exact(&mut [0; 1000]).unwrap();

    let received = tcp_info(&far).unwrap();
    assert_eq!(received.bytes_received, 1000);
    assert_eq!(received.data_segs_in, 1);
    let sent = tcp_info(&near).unwrap();
    assert_eq!(sent.data_segs_out, 1);
    assert!(
        sent.segs_out >= 2,
        "the handshake's acknowledgement and the data: {sent:?}"
    );
    assert!(
        sent.snd_mss > 500 && sent.pmtu > sent.snd_mss && sent.snd_cwnd > 0,
        "{sent:?}"
    );
}

#[test]
fn tcp_info_of_another_kind_of_socket_is_an_error() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    assert!(tcp_info(&socket).is_err());
}

#[test]
fn sending_on_a_closed_connection_is_an_error_and_no_signal() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert_eq!(send(&near, b"abc").unwrap(), 3);
    near.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(
        send(&near, b"def").unwrap_err().kind(),
        io::ErrorKind::BrokenPipe
    );
}

#[test]
fn congestion_control_is_set_per_socket_and_read_back() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    set_congestion(&listener, "reno").unwrap();
    assert_eq!(congestion(&listener).unwrap(), "reno");
}

#[test]
fn a_congestion_control_that_does_not_exist_is_named_beside_those_that_do() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let error = set_congestion(&listener, "no-such").unwrap_err();
    assert!(
        matches!(error, CongestionError::Missing { .. }),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(
        text.contains("`no-such`") && text.contains("reno"),
        "{text}"
    );
}

#[test]
fn a_datagram_too_large_to_leave_is_a_local_error_that_tells_the_devices_mtu() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    set_mtu_discover_probe(&socket).unwrap();
    enable_recverr(&socket).unwrap();
    assert_eq!(read_error_queue(&socket).unwrap(), None);
    socket.connect(socket.local_addr().unwrap()).unwrap();
    // Loopback's MTU is 65536; 20 + 8 + 65520 is above it.
    let refused = socket.send(&vec![0; 65_520]).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EMSGSIZE));
    assert_eq!(
        next_error(&socket),
        QueuedError {
            errno: libc::EMSGSIZE,
            origin: ErrorOrigin::Local,
            mtu: Some(65_536),
            offender: None,
        }
    );
    assert_eq!(read_error_queue(&socket).unwrap(), None);
}

#[test]
fn an_ipv6_datagram_too_large_to_leave_is_refused_and_not_fragmented_by_its_sender() {
    let socket = match UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(socket) => socket,
        Err(error) => return needs("IPv6", &error),
    };
    enable_recverr(&socket).unwrap();
    socket.connect(socket.local_addr().unwrap()).unwrap();
    // Loopback's MTU is 65536: a packet of 40 + 8 + 65489 bytes is one byte above it, and without the
    // option leaves in two fragments.
    let too_large = vec![0; 65_536 - 48 + 1];
    assert_eq!(socket.send(&too_large).unwrap(), too_large.len());
    assert_eq!(read_error_queue(&socket).unwrap(), None);

    set_mtu_discover_probe(&socket).unwrap();
    assert_eq!(socket.send(&too_large[1..]).unwrap(), too_large.len() - 1);
    let refused = socket.send(&too_large).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EMSGSIZE));
    assert_eq!(
        next_error(&socket),
        QueuedError {
            errno: libc::EMSGSIZE,
            origin: ErrorOrigin::Local,
            mtu: Some(65_536),
            offender: None,
        }
    );
}

#[test]
fn a_closed_port_is_an_icmp_error_from_its_host() {
    let closed = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    enable_recverr(&socket).unwrap();
    socket.send_to(b"anyone?", closed).unwrap();
    assert_eq!(
        next_error(&socket),
        QueuedError {
            errno: libc::ECONNREFUSED,
            origin: ErrorOrigin::Icmp,
            mtu: None,
            offender: Some(Ipv4Addr::LOCALHOST.into()),
        }
    );
}

#[test]
fn polling_names_the_readable_ones_only() {
    let quiet = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let busy = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    quiet.send_to(b"x", busy.local_addr().unwrap()).unwrap();
    assert_eq!(
        poll_readable(&[quiet.as_fd(), busy.as_fd()], LONG).unwrap(),
        [1]
    );
    assert!(
        poll_readable(&[quiet.as_fd()], Duration::ZERO)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_capture_tells_a_frames_own_length_though_it_copies_less() {
    let loopback = nix::net::if_::if_nametoindex("lo").unwrap();
    let capture = match PacketCapture::open(loopback, 64) {
        Ok(capture) => capture,
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            return needs("CAP_NET_RAW", &error);
        }
        Err(error) => panic!("{error}"),
    };
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = receiver.local_addr().unwrap().port();
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let send = || sender.send_to(&[9; 3000], (Ipv4Addr::LOCALHOST, port));
    send().unwrap();

    let mut frame = [0; 2048];
    let deadline = Instant::now() + LONG;
    while Instant::now() < deadline {
        match capture.recv(&mut frame).unwrap() {
            // Ethernet 14, IPv4 20, then UDP's source and destination port.
            Some((copied, original)) if frame[36..38] == port.to_be_bytes() => {
                assert_eq!((copied, original), (64, 14 + 20 + 8 + 3000));
                return;
            }
            Some(_) => {}
            // Others' frames may have filled the capture's buffer.
            None => drop(send().unwrap()),
        }
    }
    panic!("the frame was never seen");
}

#[test]
fn a_capture_on_no_interface_is_refused() {
    assert!(PacketCapture::open(0, 64).is_err());
}
