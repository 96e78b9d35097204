//! The namespaces that a veth's peer may be in: named ones, and those of processes and threads.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;

use wirecost_netlink::raw::Raw;

use super::attributes::{Attributes, attribute};
use crate::snapshot::NetnsEntry;

const GETNSID: u16 = 90;
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;
/// Size of struct rtgenmsg, padded, bytes.
const RTGENMSG: usize = 4;
/// Upper bound on the threads whose namespaces are examined.
const MAX_THREADS: usize = 20_000;

/// A namespace that might be entered.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) label: String,
    pub(super) enter: NetnsEntry,
}

/// Namespaces by their files, those with names first. One namespace may be listed several times.
pub(super) fn candidates() -> impl Iterator<Item = Candidate> {
    let named = list("/run/netns").map(|path| {
        let name = file_name(&path);
        Candidate {
            label: name.clone(),
            enter: NetnsEntry::Named(name),
            path,
        }
    });
    let threads = list("/proc")
        .filter(|path| file_name(path).bytes().all(|byte| byte.is_ascii_digit()))
        .flat_map(|process| {
            // The main thread, whose number is the process's, comes first.
            list(&process.join("task").to_string_lossy()).collect::<Vec<_>>()
        })
        .map(|thread| {
            let id = file_name(&thread);
            let name = fs::read_to_string(thread.join("comm")).unwrap_or_default();
            Candidate {
                label: format!("process {id}, {}", name.trim()),
                enter: NetnsEntry::Process(id.parse().unwrap_or(0)),
                path: thread.join("ns/net"),
            }
        });
    named.chain(threads.take(MAX_THREADS))
}

fn list(directory: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let mut found: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.into_iter()
}

fn file_name(path: &std::path::Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The nsid that the netlink connection's namespace has for the namespace of descriptor `other`; `None`: there is none.
pub(super) fn number_of(netlink: &mut Raw, other: RawFd) -> Option<i32> {
    let mut body = vec![0; RTGENMSG];
    body.extend(attribute(NETNSA_FD, &(other as u32).to_ne_bytes()));
    let answer = netlink.get(GETNSID, &body).ok().flatten()?;
    let number = Attributes(answer.get(RTGENMSG..)?).u32(NETNSA_NSID)? as i32;
    (number >= 0).then_some(number)
}

/// Opens the namespace of a candidate.
pub(super) fn open(candidate: &Candidate) -> io::Result<File> {
    File::open(&candidate.path)
}

/// The raw descriptor, for a netlink request.
pub(super) fn number(file: &File) -> RawFd {
    file.as_raw_fd()
}
