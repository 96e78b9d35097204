//! Classic BPF program that selects the socket of a datagram where several share a UDP port: the load by a part of
//! its secret, the thread by the flow's number. The kernel's hash would give some threads several flows and others
//! none.

use std::collections::BTreeSet;

use socket2::SockFilter;

use crate::handshake::{FLOW, MAGIC};
use crate::shared::Shared;

// Classic BPF (linux/bpf_common.h): load word, load half-word, jumps, remainder, sum, return a constant, return A.
const LOAD_W: u16 = 0x20;
const LOAD_H: u16 = 0x28;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const MODULO: u16 = 0x94;
const ADD: u16 = 0x04;
const RETURN: u16 = 0x06;
const RETURN_A: u16 = 0x16;

/// The last four bytes of a load's secret: in a header they precede the flow.
fn tail(shared: &Shared) -> u32 {
    let [.., a, b, c, d] = shared.options.secret;
    u32::from_be_bytes([a, b, c, d])
}

/// Whether all loads differ in the last four bytes of their secrets, and in the tag of their datagrams.
pub(crate) fn are_distinguishable(loads: &[&Shared]) -> bool {
    let tails: BTreeSet<u32> = loads.iter().map(|shared| tail(shared)).collect();
    let tags: BTreeSet<u32> = loads.iter().map(|shared| shared.tag).collect();
    tails.len() == loads.len() && tags.len() == loads.len()
}

/// The program for these loads' sockets, bound in the order of the loads and of their threads. Datagrams of no load,
/// or too short, go to the first socket: the kernel ends a program that reads beyond the end with 0.
pub(crate) fn program(loads: &[&Shared]) -> Vec<SockFilter> {
    let magic = u64::from_be_bytes(MAGIC);
    let of = SockFilter::new;
    // For each load: the word at this offset that identifies it, and the offset of the flow's number.
    let choice = |word: usize, flow: usize, is: fn(&Shared) -> u32| {
        let mut part = vec![of(LOAD_W, 0, 0, word as u32)];
        let mut first = 0;
        for shared in loads {
            let sockets = shared.threads.len() as u32;
            part.extend([
                of(IF_EQUAL, 0, 4, is(shared)),
                of(LOAD_H, 0, 0, flow as u32),
                of(MODULO, 0, 0, sockets.max(1)),
                of(ADD, 0, 0, first),
                of(RETURN_A, 0, 0, 0),
            ]);
            first += sockets;
        }
        part.push(of(RETURN, 0, 0, 0));
        part
    };
    // A handshake header has four bytes for the flow, of which the last two are enough.
    let handshake = choice(FLOW - 4, FLOW + 2, tail);
    let mut program = vec![
        of(LOAD_W, 0, 0, 0),
        of(IF_EQUAL, 0, 2, (magic >> 32) as u32),
        of(LOAD_W, 0, 0, 4),
        of(IF_EQUAL, 1, 0, magic as u32),
        of(JUMP, 0, 0, handshake.len() as u32),
    ];
    program.extend(handshake);
    program.extend(choice(0, 4, |shared| shared.tag));
    program
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use socket2::{Domain, Socket, Type};
    use wirecost_model::end_window::End;
    use wirecost_sys::socket::{poll_readable, steer_reuseport};

    use super::*;
    use crate::datagram::Datagram;
    use crate::engine::Engine;
    use crate::handshake::{Header, Phase};
    use crate::options::{Options, Workload};
    use crate::sequence::Timestamp;

    #[test]
    fn each_thread_has_the_flows_of_its_load_and_numbers() {
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
        let sender = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let shared = |threads, secret| {
            let options = Options::new(Workload::UdpRr, secret).with(|load| {
                load.streams = 1024;
                load.threads = Some(threads);
            });
            Engine::new(&options, End::Server).unwrap().shared
        };
        let own = [shared(1, [6; 16]), shared(2, [7; 16])];
        let loads = [&*own[0], &*own[1]];
        assert!(are_distinguishable(&loads));
        assert!(!are_distinguishable(&[&own[0], &shared(2, [6; 16])]));
        steer_reuseport(&sockets[0], &program(&loads)).unwrap();
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
        for (shared, flow, place) in [
            (0, 0, 0),
            (0, 1023, 0),
            (1, 0, 1),
            (1, 1, 2),
            (1, 2, 1),
            (1, 701, 2),
        ] {
            let shared = &loads[shared];
            let mut message = [0; 20];
            let (number, sent) = (9, Timestamp(1));
            Datagram {
                tag: shared.tag,
                flow,
                counted: false,
                number,
                sent,
            }
            .put(&mut message);
            assert_eq!(readable(&message), place);
            let header = Header::new(&shared.options, flow.into(), Phase::Open).encode();
            assert_eq!(readable(&header), place);
        }
        assert_eq!(readable(b"?"), 0);
        assert_eq!(readable(&[9; 64]), 0);
    }
}
