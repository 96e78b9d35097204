//! Frames on a byte stream: a length of four bytes, big-endian, then that many bytes of postcard.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Upper bound on the length of a message, bytes: a larger length means that the stream is not of this protocol.
const MAX_BYTES: usize = 16 << 20;

/// Encodes one message as a frame: length and postcard bytes.
///
/// # Errors
/// The message cannot be encoded as postcard.
pub fn encode<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let body = postcard::to_stdvec(message).map_err(invalid)?;
    let mut bytes = Vec::with_capacity(4 + body.len());
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
    Ok(bytes)
}

/// Removes one message from the front of `arrived`; `None` where the message is not complete.
///
/// # Errors
/// `InvalidData`: the bytes are not of this protocol.
pub fn take<T: DeserializeOwned>(arrived: &mut Vec<u8>) -> io::Result<Option<T>> {
    let Some(length) = arrived.first_chunk() else {
        return Ok(None);
    };
    let end = 4 + length_of(*length)?;
    if arrived.len() < end {
        return Ok(None);
    }
    let message = postcard::from_bytes(&arrived[4..end]).map_err(invalid)?;
    arrived.drain(..end);
    Ok(Some(message))
}

/// Writes one message and flushes.
pub(crate) fn write<T: Serialize>(stream: &mut impl Write, message: &T) -> io::Result<()> {
    stream.write_all(&encode(message)?)?;
    stream.flush()
}

/// Reads one message; `None` where the stream ends between two messages.
///
/// # Errors
/// Errors of the stream; `UnexpectedEof` where it ends within a message; `InvalidData` where the bytes are not of this
/// protocol.
pub fn read<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    let mut filled = 0;
    while filled < length.len() {
        match stream.read(&mut length[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut body = vec![0; length_of(length)?];
    stream.read_exact(&mut body)?;
    postcard::from_bytes(&body).map(Some).map_err(invalid)
}

fn length_of(bytes: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_be_bytes(bytes) as usize;
    if length > MAX_BYTES {
        return Err(invalid(format!(
            "a frame of {length} bytes: this is not our protocol"
        )));
    }
    Ok(length)
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back_as_it_was_and_the_end_is_seen() {
        let mut bytes = Vec::new();
        write(&mut bytes, &("hello".to_owned(), 7u32)).expect("to memory");
        let mut stream = bytes.as_slice();
        assert_eq!(
            read(&mut stream).expect("frame"),
            Some(("hello".to_owned(), 7u32))
        );
        assert_eq!(read::<u32>(&mut stream).expect("end"), None);
    }

    /// Zeros and absences too: nothing that travels may leave a field out.
    #[test]
    fn a_measurement_comes_back_as_it_was_whatever_is_zero_in_it() {
        use wirecost_model::end_window::{Counts, End, EndWindow, FlowWindow, ThreadWindow};
        use wirecost_model::latency::Latency;
        use wirecost_model::load::{Load, Workload};
        use wirecost_model::sample::Interval;

        use crate::protocol::{HostNetns, LoadEnd, MeasuredEnd, Request};

        let part = |messages| Interval {
            end_s: 0.1,
            bytes: 7,
            messages,
        };
        let thread = |idle_looks| ThreadWindow {
            busy: 0.5,
            runnable: 0.0,
            idle_looks,
        };
        let end = MeasuredEnd {
            name: "ping".to_owned(),
            place: HostNetns::Guest(0),
            end: End::Client,
            window: EndWindow {
                seconds: 1.0,
                flows: vec![FlowWindow {
                    counts: Counts::default(),
                    lost: -3,
                    tcp: None,
                }],
                latency: Latency::from_buckets([(3, 4)]),
                threads: vec![thread(None), thread(Some(0.5))],
                generator_bound: false,
                strays: 0,
                intervals: vec![part(0), part(9)],
                datagrams: Some(7),
                io: None,
                moves: Vec::new(),
                path: None,
                flushes: Latency::default(),
                lateness: Latency::default(),
                schedule: None,
            },
        };
        let mut bytes = Vec::new();
        write(&mut bytes, &end).expect("to memory");
        assert_eq!(read(&mut bytes.as_slice()).expect("frame"), Some(end));

        let ends = Workload::ALL.map(|workload| LoadEnd {
            name: workload.name().to_owned(),
            place: HostNetns::Host,
            address: std::net::SocketAddr::from(([192, 0, 2, 1], 7)).into(),
            cpus: vec![1],
            load: Load::new(workload),
            secret: [9; 16],
            source: None,
        });
        let request = Request::OpenClients(ends.into());
        let mut bytes = Vec::new();
        write(&mut bytes, &request).expect("to memory");
        assert_eq!(read(&mut bytes.as_slice()).expect("frame"), Some(request));
    }

    #[test]
    fn what_has_arrived_in_pieces_is_taken_when_it_is_whole() {
        let whole = [
            encode(&("hello".to_owned(), 7u32)).expect("to memory"),
            encode(&("again".to_owned(), 8u32)).expect("to memory"),
        ]
        .concat();
        let (mut arrived, mut taken) = (Vec::new(), Vec::new());
        for byte in whole {
            arrived.push(byte);
            taken.extend(take::<(String, u32)>(&mut arrived).expect("ours"));
        }
        assert_eq!(taken, [("hello".to_owned(), 7), ("again".to_owned(), 8)]);
        assert!(arrived.is_empty());
        assert!(take::<u32>(&mut b"Last login: Mon".to_vec()).is_err());
    }

    #[test]
    fn a_frame_cut_at_any_byte_is_an_error_and_a_foreign_stream_too() {
        let message = ("hello".to_owned(), 7u32);
        let frame = encode(&message).expect("to memory");
        for end in 1..frame.len() {
            let cut = read::<(String, u32)>(&mut &frame[..end]);
            let error = cut.expect_err("it is not complete");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{end} bytes");
            // The frame before it is read.
            let mut two = [&frame[..], &frame[..end]].concat();
            let mut stream = two.as_slice();
            let first = read(&mut stream).expect("a frame");
            assert_eq!(first, Some(message.clone()));
            assert!(read::<(String, u32)>(&mut stream).is_err(), "{end} bytes");
            let taken = take::<(String, u32)>(&mut two).expect("ours");
            assert_eq!(taken, Some(message.clone()));
            assert_eq!(take::<(String, u32)>(&mut two).expect("ours"), None);
        }
        assert!(read::<u32>(&mut b"Last login: Mon".as_slice()).is_err());
    }

    /// A length that is too small for its message, as that of a cut file.
    #[test]
    fn a_body_that_is_too_short_for_its_message_is_an_error() {
        let body = &encode(&("hello".to_owned(), 7u32)).expect("to memory")[4..];
        for length in 0..body.len() {
            let mut frame = (length as u32).to_be_bytes().to_vec();
            frame.extend(&body[..length]);
            let short = read::<(String, u32)>(&mut frame.as_slice());
            let error = short.expect_err("it is not complete");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{length} bytes");
        }
    }
}
