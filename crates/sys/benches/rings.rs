//! Whether io_uring would carry a load better than what the traffic engine has: bare loops without figures, options or
//! checks, in three ways (a blocking thread for each connection; one thread with epoll; one thread with a ring), client
//! on the first processor and server on the last, in two namespaces joined by a veth without offloads, interleaved.
//! Needs root. `cargo bench -p wirecost-sys --bench rings -- [PART OF A ROW'S NAME] [ROUNDS] [SECONDS]` prints the
//! median figure of each way and the geometric mean of its ratios to the first with their 95 % interval's half width.
#![expect(unsafe_code, reason = "entries of a submission queue hold pointers")]

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, squeue, types};
use wirecost_sys::epoll::{Epoll, Events, Interest};
use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::HeldNetns;
use wirecost_sys::process::{allowed_cpus, pin_to};

const WARMUP: Duration = Duration::from_millis(200);
const ROUNDS: usize = 15;
const WINDOW: Duration = Duration::from_millis(500);
/// Bytes of a request and of a response.
const REQUEST: usize = 16;
/// Bytes that are written and read at once.
const BLOCK: usize = 128 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IoMethod {
    Blocking,
    Epoll,
    Ring,
}

/// What one end does with each of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Reads a message and writes one.
    Echo,
    /// The same, having written the first.
    Ask,
    Write,
    Read,
}

struct Row {
    name: &'static str,
    streams: usize,
    /// The client's and the server's.
    roles: [Role; 2],
}

const EXCHANGE: [Role; 2] = [Role::Ask, Role::Echo];
const STREAM: [Role; 2] = [Role::Write, Role::Read];
const WAYS: [IoMethod; 3] = [IoMethod::Blocking, IoMethod::Epoll, IoMethod::Ring];
const ROWS: [Row; 6] = [
    Row {
        name: "tcp-rr 1",
        streams: 1,
        roles: EXCHANGE,
    },
    Row {
        name: "tcp-rr 16",
        streams: 16,
        roles: EXCHANGE,
    },
    Row {
        name: "tcp-rr 64",
        streams: 64,
        roles: EXCHANGE,
    },
    Row {
        name: "tcp-stream 1",
        streams: 1,
        roles: STREAM,
    },
    Row {
        name: "tcp-stream 4",
        streams: 4,
        roles: STREAM,
    },
    Row {
        name: "tcp-stream 64",
        streams: 64,
        roles: STREAM,
    },
];

/// Adds what a connection did: messages read, or bytes.
fn add(count: &AtomicU64, role: Role, bytes: usize) {
    let done = match role {
        Role::Read => bytes as u64,
        Role::Ask => 1,
        Role::Echo | Role::Write => return,
    };
    count.store(count.load(Relaxed) + done, Relaxed);
}

fn begin(role: Role, stream: &mut TcpStream) {
    stream.set_nodelay(true).expect("TCP_NODELAY");
    if role == Role::Ask {
        stream.write_all(&[7; REQUEST]).expect("the first request");
    }
}

/// One turn on a socket that blocks, or says that it would.
fn turn(
    role: Role,
    stream: &mut TcpStream,
    block: &mut [u8],
    count: &AtomicU64,
) -> io::Result<bool> {
    let bytes = match role {
        Role::Write => stream.write(block)?,
        Role::Read => stream.read(block)?,
        Role::Echo | Role::Ask => {
            // What is so small comes and goes whole.
            let bytes = stream.read(&mut block[..REQUEST])?;
            if bytes > 0 {
                stream.write_all(&block[..REQUEST])?;
            }
            bytes
        }
    };
    add(count, role, bytes);
    Ok(bytes > 0)
}

fn blocking(role: Role, mut stream: TcpStream, count: &AtomicU64) {
    let mut block = vec![7; BLOCK];
    begin(role, &mut stream);
    while turn(role, &mut stream, &mut block, count).is_ok_and(|goes_on| goes_on) {}
}

fn epoll(role: Role, mut streams: Vec<TcpStream>, count: &AtomicU64) {
    let mut block = vec![7; BLOCK];
    let epoll = Epoll::new().expect("epoll");
    let interest = Interest {
        read: role != Role::Write,
        write: role == Role::Write,
    };
    for (index, stream) in streams.iter_mut().enumerate() {
        begin(role, stream);
        stream.set_nonblocking(true).expect("O_NONBLOCK");
        epoll
            .add(stream, interest, index as u64)
            .expect("epoll_ctl");
    }
    let mut events = Events::with_capacity(streams.len());
    let mut alive = streams.len();
    while alive > 0 {
        epoll.wait(&mut events, None).expect("epoll_wait");
        for token in events.tokens() {
            let stream = &mut streams[token as usize];
            match turn(role, stream, &mut block, count) {
                Ok(true) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(false) | Err(_) => {
                    epoll.remove(&*stream).expect("epoll_ctl");
                    alive -= 1;
                }
            }
        }
    }
}

/// A request for one connection; `index` comes back with its completion.
fn entries(role: Role, fd: RawFd, block: &mut [u8], index: u64) -> Vec<squeue::Entry> {
    let fd = types::Fd(fd);
    let (at, len) = (block.as_mut_ptr(), block.len() as u32);
    let receive = |len| opcode::Recv::new(fd, at, len).build().user_data(index);
    match role {
        Role::Read => vec![receive(len)],
        // As a blocking write: the kernel goes on until all of it is queued.
        Role::Write => {
            let send = opcode::Send::new(fd, at, len).flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL);
            vec![send.build().user_data(index)]
        }
        // The answer, and then the next request, in one. Only the latter is told, or the former's failure, with which
        // the latter goes without a word (io_uring_enter(2), IOSQE_CQE_SKIP_SUCCESS).
        Role::Echo | Role::Ask => {
            let send = opcode::Send::new(fd, at, REQUEST as u32).flags(libc::MSG_NOSIGNAL);
            let send = send.build().user_data(index);
            let alone = squeue::Flags::IO_LINK | squeue::Flags::SKIP_SUCCESS;
            vec![send.flags(alone), receive(REQUEST as u32)]
        }
    }
}

fn ring(role: Role, mut streams: Vec<TcpStream>, count: &AtomicU64) {
    // Before the ring, so that they outlive it.
    let mut blocks: Vec<Vec<u8>> = streams.iter().map(|_| vec![7; BLOCK]).collect();
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(256)
        .expect("a ring: Linux 6.1, kernel.io_uring_disabled 0");
    let push = |ring: &mut IoUring, all: &[squeue::Entry]| {
        // SAFETY: buffers and sockets are dropped after the ring.
        while unsafe { ring.submission().push_multiple(all) }.is_err() {
            ring.submit().expect("io_uring_enter");
        }
    };
    for (index, (stream, block)) in streams.iter_mut().zip(&mut blocks).enumerate() {
        begin(role, stream);
        let mut first = entries(role, stream.as_raw_fd(), block, index as u64);
        // Nothing to answer yet.
        push(&mut ring, &first.split_off(first.len() - 1));
    }
    let mut alive = streams.len();
    let mut done: Vec<(u64, i32)> = Vec::with_capacity(512);
    while alive > 0 {
        ring.submit_and_wait(1).expect("io_uring_enter");
        done.extend(
            ring.completion()
                .map(|entry| (entry.user_data(), entry.result())),
        );
        for (index, result) in done.drain(..) {
            if result <= 0 {
                alive -= 1;
                continue;
            }
            add(count, role, result as usize);
            let at = index as usize;
            let next = entries(role, streams[at].as_raw_fd(), &mut blocks[at], index);
            push(&mut ring, &next);
        }
    }
}

fn spawn(
    way: IoMethod,
    role: Role,
    streams: Vec<TcpStream>,
    count: &Arc<[AtomicU64]>,
    cpu: u32,
) -> Vec<JoinHandle<()>> {
    let start = |work: Box<dyn FnOnce() + Send>| {
        thread::spawn(move || {
            pin_to(&[cpu]).expect("affinity");
            work();
        })
    };
    if way == IoMethod::Blocking {
        let each = streams.into_iter().enumerate().map(|(index, stream)| {
            let count = Arc::clone(count);
            start(Box::new(move || blocking(role, stream, &count[index])))
        });
        return each.collect();
    }
    let count = Arc::clone(count);
    let drive = if way == IoMethod::Epoll { epoll } else { ring };
    vec![start(Box::new(move || drive(role, streams, &count[0])))]
}

struct Bed {
    client: HeldNetns,
    server: HeldNetns,
    cpus: [u32; 2],
}

impl Bed {
    fn new() -> Self {
        let ip = |arguments: String| {
            let status = Command::new("ip")
                .args(arguments.split_whitespace())
                .status();
            assert!(status.expect("ip(8)").success(), "ip {arguments}");
        };
        let make = |name| HeldNetns::create(name).expect("a namespace: run as root");
        let (client, server) = (make("rings-client"), make("rings-server"));
        let peer = server.tid();
        for (netns, own) in [(&client, 0), (&server, 1)] {
            let set_up = || {
                if own == 0 {
                    ip(format!("link add ri0 type veth peer name ri1 netns {peer}"));
                }
                ip(format!("addr add 10.99.1.{}/24 dev ri{own}", own + 1));
                ip(format!("link set ri{own} up"));
                let ethtool = Ethtool::open().expect("ethtool");
                let device = format!("ri{own}");
                let off: BTreeMap<String, bool> = ethtool
                    .features(&device)
                    .expect("features")
                    .into_keys()
                    .filter(|name| name.contains("segmentation") || name == "rx-gro")
                    .map(|name| (name, false))
                    .collect();
                ethtool.set_features(&device, &off).expect("features");
            };
            netns.netns().within(set_up).expect("namespace");
        }
        let all = allowed_cpus().expect("affinity");
        let cpus = [all[0], all[all.len() - 1]];
        Self {
            client,
            server,
            cpus,
        }
    }

    /// What the counting end did in a second.
    fn measure(&self, row: &Row, way: IoMethod, window: Duration) -> f64 {
        let listen = || TcpListener::bind("10.99.1.2:0").expect("a listener");
        let listener = self.server.netns().within(listen).expect("namespace");
        let address = listener.local_addr().expect("its address");
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..row.streams {
            let connect = || TcpStream::connect(address).expect("a connection");
            ours.push(self.client.netns().within(connect).expect("namespace"));
            theirs.push(listener.accept().expect("a connection").0);
        }
        let ends: Vec<TcpStream> = ours
            .iter()
            .map(|stream| stream.try_clone().expect("dup"))
            .collect();
        let counts = [0, 1].map(|_| {
            (0..row.streams)
                .map(|_| AtomicU64::new(0))
                .collect::<Arc<[_]>>()
        });
        let [client, server] = row.roles;
        let mut threads = spawn(way, server, theirs, &counts[1], self.cpus[1]);
        threads.extend(spawn(way, client, ours, &counts[0], self.cpus[0]));
        let look = || {
            counts
                .iter()
                .flat_map(|end| end.iter())
                .map(|count| count.load(Relaxed))
                .sum::<u64>()
        };
        thread::sleep(WARMUP);
        let (begin, before) = (Instant::now(), look());
        thread::sleep(window);
        let figure = (look() - before) as f64 / begin.elapsed().as_secs_f64();
        for end in &ends {
            let _ = end.shutdown(Shutdown::Both);
        }
        for thread in threads {
            thread.join().expect("a loop");
        }
        figure
    }
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let wanted = arguments.next().unwrap_or_default();
    let rounds = arguments
        .next()
        .map_or(ROUNDS, |rounds| rounds.parse().expect("rounds: a number"));
    let window = arguments.next().map_or(WINDOW, |seconds| {
        Duration::from_secs_f64(seconds.parse().expect("seconds: a number"))
    });
    let bed = Bed::new();
    println!("| load | way | median | ratio |");
    println!("|---|---|---|---|");
    for row in ROWS.iter().filter(|row| row.name.contains(&wanted)) {
        let mut figures: Vec<Vec<f64>> = WAYS.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            for turn in 0..WAYS.len() {
                let at = (turn + round) % WAYS.len();
                figures[at].push(bed.measure(row, WAYS[at], window));
            }
        }
        let stream = row.roles == STREAM;
        for (way, values) in WAYS.iter().zip(&figures) {
            let logs: Vec<f64> = values
                .iter()
                .zip(&figures[0])
                .map(|(one, first)| (one / first).ln())
                .collect();
            let mean = logs.iter().sum::<f64>() / rounds as f64;
            let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>()
                / (rounds.max(2) - 1) as f64;
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let (unit, name) = if stream {
                (8e-9, "Gbit/s")
            } else {
                (1e-3, "k/s")
            };
            println!(
                "| {} | {way:?} | {:.2} {name} | {:.2} ±{:.2} |",
                row.name,
                sorted[rounds / 2] * unit,
                mean.exp(),
                2.1 * (variance / rounds as f64).sqrt(),
            );
        }
    }
}
