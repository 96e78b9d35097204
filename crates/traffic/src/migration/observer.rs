//! A third program's view of a move: it sends a request to each machine every millisecond, to the source and to the
//! destination, and measures for how long neither answers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wirecost_model::end_window::End;
use wirecost_model::machine_move::ObservedGap;
use wirecost_sys::socket::poll_readable;

use super::service::{REQUEST_BYTES, Request};
use crate::shared::Shared;

/// Interval of the requests to a machine.
const EVERY: Duration = Duration::from_millis(1);
/// How long the start of a load waits until each machine has answered at its source.
const FIRST_ANSWER: Duration = Duration::from_secs(2);
/// Longest delay of the thread after which missed requests are still sent.
const LATEST: Duration = Duration::from_millis(10);

/// The socket of an observer, in the network namespace of the thread that made it.
#[derive(Debug)]
pub struct Observer {
    socket: UdpSocket,
}

impl Observer {
    /// An observer in the calling thread's network namespace, for machines with addresses of the family of `towards`.
    ///
    /// # Errors
    /// Those of making and binding the socket.
    pub fn here(towards: IpAddr) -> io::Result<Self> {
        let any: IpAddr = match towards {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// Starts a thread that asks until every machine was seen at its destination, or until the watch is dropped.
    /// Returns once each machine has answered at its source, at the latest after [`FIRST_ANSWER`]: a machine may have
    /// moved before a thread has begun.
    pub(crate) fn watch(
        self,
        shared: &Arc<Shared>,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> io::Result<ObserverThread> {
        let ending = Arc::new(AtomicBool::new(false));
        let (shared, told) = (Arc::clone(shared), Arc::clone(&ending));
        let (tell, first) = channel();
        shared.machine_gaps.begin();
        let thread = thread::Builder::new()
            .name("move-observer".to_owned())
            .stack_size(128 << 10)
            .spawn(move || ask(&shared, &self.socket, [source, destination], (&told, tell)))?;
        // The load also starts without these answers, and reports no gap for machines that did not answer.
        let _ = first.recv_timeout(FIRST_ANSWER);
        Ok(ObserverThread {
            ending,
            thread: Some(thread),
        })
    }
}

/// The thread of an observer. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ObserverThread {
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for ObserverThread {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the observer knows of one machine.
#[derive(Debug, Clone, Copy, Default)]
struct MachineAnswers {
    /// The latest request that was answered at the source: when it was sent, and when its answer arrived;
    /// nanoseconds.
    at_source: Option<[u64; 2]>,
    /// Requests, each sent to both places.
    asked: u64,
    /// Answers from both places.
    answered: u64,
    /// The destination has answered.
    over: bool,
}

impl MachineAnswers {
    /// Notes an answer that arrived at `now`. Returns the gap with the first answer of the destination.
    fn hear(&mut self, answer: Request, now: u64) -> Option<ObservedGap> {
        self.answered += 1;
        if answer.by == Some(End::Client) {
            let later = self.at_source.is_none_or(|[sent, _]| sent < answer.sent);
            if later {
                self.at_source = Some([answer.sent, now]);
            }
            return None;
        }
        self.over = true;
        let [sent, heard] = self.at_source?;
        let seconds =
            |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from)).as_secs_f64();
        Some(ObservedGap {
            to_machine_s: seconds(sent, answer.sent),
            from_machine_s: seconds(heard, now),
            asked: self.asked,
            answered: self.answered,
        })
    }
}

fn ask(
    shared: &Shared,
    socket: &UdpSocket,
    places: [SocketAddr; 2],
    (ending, hears): (&AtomicBool, Sender<()>),
) {
    let mut hears = Some(hears);
    let tag = shared.watch_tag();
    let mut all = vec![MachineAnswers::default(); shared.machine_gaps.machines()];
    let mut next = Instant::now();
    while !ending.load(Ordering::Relaxed) && all.iter().any(|one| !one.over) {
        let now = Instant::now();
        if now >= next {
            for (machine, seen) in (0..).zip(&mut all).filter(|(_, seen)| !seen.over) {
                let request = Request {
                    machine,
                    by: None,
                    sent: shared.now(),
                };
                for place in places {
                    // A request that fails to be sent counts as one lost on the way.
                    let _ = socket.send_to(&request.encode(tag), place);
                }
                seen.asked += 1;
            }
            next += EVERY;
            if now > next + LATEST {
                next = now;
            }
        }
        hear(shared, socket, tag, &mut all);
        if all.iter().all(|one| one.at_source.is_some()) {
            // The receiver is gone where [`FIRST_ANSWER`] has passed.
            let _ = hears.take().map(|hears| hears.send(()));
        }
        if Instant::now() < next {
            let _ = poll_readable(&[socket.as_fd()], EVERY);
        }
    }
}

/// Handles the answers that have arrived.
fn hear(shared: &Shared, socket: &UdpSocket, tag: u64, all: &mut [MachineAnswers]) {
    let mut bytes = [0; REQUEST_BYTES + 1];
    loop {
        match socket.recv(&mut bytes) {
            Ok(length) => {
                let Some(answer) = Request::decode(&bytes[..length], tag) else {
                    continue;
                };
                let Some(seen) = all.get_mut(answer.machine as usize) else {
                    continue;
                };
                if let Some(gap) = seen.hear(answer, shared.now()) {
                    shared.machine_gaps.set(answer.machine, gap);
                }
            }
            // ICMP port unreachable: nothing listens at the destination yet.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_is_between_the_last_answer_of_the_source_and_the_first_of_the_destination() {
        let answer = |by, sent| Request {
            machine: 0,
            by: Some(by),
            sent,
        };
        let mut seen = MachineAnswers {
            asked: 30,
            ..MachineAnswers::default()
        };
        assert_eq!(seen.hear(answer(End::Client, 1_000_000), 1_200_000), None);
        assert_eq!(seen.hear(answer(End::Client, 3_000_000), 3_300_000), None);
        // One that was overtaken.
        assert_eq!(seen.hear(answer(End::Client, 2_000_000), 3_400_000), None);
        let gap = seen
            .hear(answer(End::Server, 23_000_000), 25_300_000)
            .expect("a gap");
        assert!((gap.to_machine_s - 0.020).abs() < 1e-9, "{gap:?}");
        assert!((gap.from_machine_s - 0.022).abs() < 1e-9, "{gap:?}");
        assert_eq!((gap.asked, gap.answered), (30, 4));
        // A machine that never answered at its source tells no gap.
        assert_eq!(
            MachineAnswers::default().hear(answer(End::Server, 5), 9),
            None
        );
    }
}
