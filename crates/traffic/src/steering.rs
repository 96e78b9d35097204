//! Which thread's socket a datagram goes to, where several share a port: that of its flow's number. Left to the
//! kernel's hash some threads would have several flows and others none.

use socket2::SockFilter;

use crate::handshake::{FLOW, MAGIC};

// Classic BPF (linux/bpf_common.h): load word, load half-word, jumps, remainder, return A.
const LOAD_W: u16 = 0x20;
const LOAD_H: u16 = 0x28;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const MODULO: u16 = 0x94;
const RETURN_A: u16 = 0x16;

/// For so many sockets, bound in the order of their threads. What is too short to have a flow is the first one's, as the
/// kernel ends a program that reads beyond the end.
pub(crate) fn program(sockets: u32) -> [SockFilter; 9] {
    let magic = u64::from_be_bytes(MAGIC);
    let of = SockFilter::new;
    [
        of(LOAD_W, 0, 0, 0),
        of(IF_EQUAL, 0, 4, (magic >> 32) as u32),
        of(LOAD_W, 0, 0, 4),
        of(IF_EQUAL, 0, 2, magic as u32),
        // A handshake has four bytes for the flow, of which two are enough.
        of(LOAD_H, 0, 0, FLOW as u32 + 2),
        of(JUMP, 0, 0, 1),
        of(LOAD_H, 0, 0, 4),
        of(MODULO, 0, 0, sockets.max(1)),
        of(RETURN_A, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use socket2::{Domain, Socket, Type};
    use wirecost_sys::socket::{poll_readable, steer_reuseport};

    use super::*;
    use crate::datagram::Datagram;
    use crate::handshake::{Header, Phase};
    use crate::options::{Options, Workload};
    use crate::sequence::Stamp;

    #[test]
    fn each_thread_has_the_flows_of_its_numbers() {
        let mut address: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        let sockets: Vec<Socket> = (0..3)
            .map(|_| {
                let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
                socket.set_reuse_port(true).unwrap();
                socket.bind(&address.into()).unwrap();
                address = socket.local_addr().unwrap().as_socket().unwrap();
                socket
            })
            .collect();
        steer_reuseport(&sockets[0], &program(3)).unwrap();
        let sender = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let options = Options::new(Workload::UdpRr, [7; 16]);
        let readable = |message: &[u8]| {
            sender.send_to(message, address).unwrap();
            let fds: Vec<_> = sockets.iter().map(std::os::fd::AsFd::as_fd).collect();
            let places = poll_readable(&fds, Duration::from_secs(10)).unwrap();
            assert_eq!(places.len(), 1);
            sockets[places[0]]
                .recv(&mut [std::mem::MaybeUninit::uninit(); 64])
                .unwrap();
            places[0]
        };
        for flow in [0, 1, 2, 3, 700, 1023] {
            let mut message = [0; 20];
            let (number, sent) = (9, Stamp(1));
            Datagram {
                tag: 5,
                flow,
                number,
                sent,
            }
            .put(&mut message);
            assert_eq!(readable(&message), usize::from(flow) % 3);
            let header = Header::new(&options, flow.into(), Phase::Open).encode();
            assert_eq!(readable(&header), usize::from(flow) % 3);
        }
        assert_eq!(readable(b"?"), 0);
    }
}
