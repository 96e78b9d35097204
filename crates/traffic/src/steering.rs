//! Which thread's socket a datagram goes to, where several share a port: its load by what it has of the load's secret,
//! there the thread by the flow's number. Left to the kernel's hash some threads would have several flows and others none.

use std::collections::BTreeSet;
use std::sync::Arc;

use socket2::SockFilter;

use crate::handshake::{FLOW, MAGIC};
use crate::load::Load;

// Classic BPF (linux/bpf_common.h): load word, load half-word, jumps, remainder, sum, return a constant, return A.
const LOAD_W: u16 = 0x20;
const LOAD_H: u16 = 0x28;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const MODULO: u16 = 0x94;
const ADD: u16 = 0x04;
const RETURN: u16 = 0x06;
const RETURN_A: u16 = 0x16;

/// The last bytes of a load's secret, which a header has before the flow.
fn tail(load: &Load) -> u32 {
    let [.., a, b, c, d] = load.options.secret;
    u32::from_be_bytes([a, b, c, d])
}

/// Whether what headers and datagrams have of the loads' secrets differs.
pub(crate) fn can_be_told_apart(loads: &[Arc<Load>]) -> bool {
    let tails: BTreeSet<u32> = loads.iter().map(|load| tail(load)).collect();
    let tags: BTreeSet<u32> = loads.iter().map(|load| load.tag).collect();
    tails.len() == loads.len() && tags.len() == loads.len()
}

/// For these loads' sockets, bound in the order of the loads and of their threads. What is nobody's, or too short to have
/// a flow, is the first socket's: the kernel ends a program that reads beyond the end with 0.
pub(crate) fn program(loads: &[Arc<Load>]) -> Vec<SockFilter> {
    let magic = u64::from_be_bytes(MAGIC);
    let of = SockFilter::new;
    // What a word at a place has to be for a load, and where the flow is then.
    let choice = |word: usize, flow: usize, is: fn(&Load) -> u32| {
        let mut part = vec![of(LOAD_W, 0, 0, word as u32)];
        let mut first = 0;
        for load in loads {
            let sockets = load.seats.len() as u32;
            part.extend([
                of(IF_EQUAL, 0, 4, is(load)),
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
    // A handshake has four bytes for the flow, of which the last two are enough.
    let handshake = choice(FLOW - 4, FLOW + 2, tail);
    let mut program = vec![
        of(LOAD_W, 0, 0, 0),
        of(IF_EQUAL, 0, 2, (magic >> 32) as u32),
        of(LOAD_W, 0, 0, 4),
        of(IF_EQUAL, 1, 0, magic as u32),
        of(JUMP, 0, 0, handshake.len() as u32),
    ];
    program.extend(handshake);
    program.extend(choice(0, 4, |load| load.tag));
    program
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
        let load = |threads, secret| {
            let options = Options {
                streams: 1024,
                threads: Some(threads),
                ..Options::new(Workload::UdpRr, secret)
            };
            Load::new(&options, threads, wirecost_model::end_window::End::Server).unwrap()
        };
        let loads = [load(1, [6; 16]), load(2, [7; 16])];
        assert!(can_be_told_apart(&loads));
        assert!(!can_be_told_apart(&[load(1, [6; 16]), load(2, [6; 16])]));
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
        for (load, flow, place) in [
            (0, 0, 0),
            (0, 1023, 0),
            (1, 0, 1),
            (1, 1, 2),
            (1, 2, 1),
            (1, 701, 2),
        ] {
            let load = &loads[load];
            let mut message = [0; 20];
            let (number, sent) = (9, Stamp(1));
            Datagram {
                tag: load.tag,
                flow,
                counted: false,
                number,
                sent,
            }
            .put(&mut message);
            assert_eq!(readable(&message), place);
            let header = Header::new(&load.options, flow.into(), Phase::Open).encode();
            assert_eq!(readable(&header), place);
        }
        assert_eq!(readable(b"?"), 0);
        assert_eq!(readable(&[9; 64]), 0);
    }
}
