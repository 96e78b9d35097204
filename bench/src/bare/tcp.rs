//! Streams, requests and responses.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use wirecost_sys::epoll::{Epoll, Events, Interest};

/// Reads `connections` streams to their end, a thread for each.
///
/// # Errors
/// Of the sockets.
pub(super) fn drain(address: SocketAddr, message: usize, connections: usize) -> io::Result<()> {
    let streams = accept(&TcpListener::bind(address)?, connections)?;
    in_threads(streams, |mut stream| {
        let mut buffer = vec![0; message];
        while stream.read(&mut buffer)? > 0 {}
        Ok(0)
    })
    .map(|_| ())
}

/// Writes `connections` streams for `time`, a thread for each; Gbit/s of payload that the sockets took.
///
/// # Errors
/// Of the sockets.
pub(super) fn fill(
    address: SocketAddr,
    message: usize,
    connections: usize,
    time: Duration,
) -> io::Result<f64> {
    let streams = connect(address, connections)?;
    let begin = Instant::now();
    let written = in_threads(streams, |mut stream| {
        let buffer = vec![0; message];
        let mut written = 0;
        loop {
            written += stream.write(&buffer)? as u64;
            if begin.elapsed() >= time {
                return Ok(written);
            }
        }
    })?;
    Ok(written as f64 * 8.0 / begin.elapsed().as_secs_f64() / 1e9)
}

/// Answers requests on `connections` connections until a client ends.
///
/// # Errors
/// Of the sockets.
pub(super) fn answer(address: SocketAddr, message: usize, connections: usize) -> io::Result<()> {
    let streams = accept(&TcpListener::bind(address)?, connections)?;
    turn(streams, message, || true).map(|_| ())
}

/// Sends a request on each of `connections` connections, and the next one when it is answered, for `time`; thousands of
/// responses a second.
///
/// # Errors
/// Of the sockets.
pub(super) fn ask(
    address: SocketAddr,
    message: usize,
    connections: usize,
    time: Duration,
) -> io::Result<f64> {
    let mut streams = connect(address, connections)?;
    let request = vec![0; message];
    for stream in &mut streams {
        stream.write_all(&request)?;
    }
    let begin = Instant::now();
    let answered = turn(streams, message, || begin.elapsed() < time)?;
    Ok(answered as f64 / begin.elapsed().as_secs_f64() / 1e3)
}

/// Reads a message and writes one, once and as long as `goes_on` and the peer does; how many were read. One connection blocks in
/// read(2), several in epoll_wait(2).
fn turn(
    mut streams: Vec<TcpStream>,
    message: usize,
    goes_on: impl Fn() -> bool,
) -> io::Result<u64> {
    let mut buffer = vec![0; message];
    let mut read = 0;
    if let [stream] = streams.as_mut_slice() {
        while stream.read(&mut buffer)? == message {
            stream.write_all(&buffer)?;
            read += 1;
            if !goes_on() {
                break;
            }
        }
        return Ok(read);
    }
    let epoll = Epoll::new()?;
    for (token, stream) in streams.iter().enumerate() {
        epoll.add(stream, Interest::READ, token as u64)?;
    }
    let mut events = Events::with_capacity(streams.len());
    loop {
        epoll.wait(&mut events, None)?;
        for token in events.tokens() {
            let stream = &mut streams[token as usize];
            if stream.read(&mut buffer)? != message {
                return Ok(read);
            }
            stream.write_all(&buffer)?;
            read += 1;
        }
        if !goes_on() {
            return Ok(read);
        }
    }
}

fn accept(listener: &TcpListener, connections: usize) -> io::Result<Vec<TcpStream>> {
    let one = |_| {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    (0..connections).map(one).collect()
}

fn connect(address: SocketAddr, connections: usize) -> io::Result<Vec<TcpStream>> {
    let one = |_| {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    (0..connections).map(one).collect()
}

/// Runs `work` on each stream at the same time; the sum of what they return.
fn in_threads(
    streams: Vec<TcpStream>,
    work: impl Fn(TcpStream) -> io::Result<u64> + Sync,
) -> io::Result<u64> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = streams
            .into_iter()
            .map(|stream| scope.spawn(move || work(stream)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread that does not panic"))
            .sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address that is free now.
    fn free() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        listener.local_addr().expect("bound")
    }

    /// Retries until the server listens, at most for two seconds.
    fn tried<T>(mut what: impl FnMut() -> io::Result<T>) -> T {
        for _ in 0..200 {
            if let Ok(done) = what() {
                return done;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server does not listen");
    }

    #[test]
    fn requests_are_answered_on_one_and_on_several_connections() {
        for connections in [1, 3] {
            let address = free();
            let server = std::thread::spawn(move || answer(address, 16, connections));
            let rate = tried(|| ask(address, 16, connections, Duration::from_millis(50)));
            assert!(rate > 0.0, "{connections}: {rate}");
            // The client's end ends it, by end of file or by a reset where a response was not read.
            let _ = server.join().expect("a thread that does not panic");
        }
    }

    #[test]
    fn a_stream_is_read_to_its_end() {
        let address = free();
        let server = std::thread::spawn(move || drain(address, 4096, 2));
        let rate = tried(|| fill(address, 4096, 2, Duration::from_millis(50)));
        assert!(rate > 0.0);
        server.join().expect("no panic").expect("read to the end");
    }
}
