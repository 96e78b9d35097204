//! Storage with other programs at the other end, over loopback: our target with their initiators, our initiator with
//! their servers.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use socket2::Socket;
use wirecost_model::load::{Address, Pattern, Storage};
use wirecost_traffic::{Client, Options, PlainTarget, Workload};

const LONG: Duration = Duration::from_secs(30);
const SIZE: u64 = 8 << 20;

/// Whether all of these programs are there; where not, says so.
fn there(programs: &[&str]) -> bool {
    let missing: Vec<&&str> = programs
        .iter()
        .filter(|program| {
            let mut command = Command::new(program);
            command.arg("--version").stdout(Stdio::null());
            command.stderr(Stdio::null()).status().is_err()
        })
        .collect();
    if missing.is_empty() {
        return true;
    }
    let required = std::env::var_os("WIRECOST_REQUIRE_ROOT").is_some_and(|value| value == "1");
    assert!(
        !required,
        "WIRECOST_REQUIRE_ROOT=1, and there is no {missing:?}"
    );
    println!("skipped: there is no {missing:?}");
    false
}

/// Our target on a port, until the test's process ends.
fn target(storage: Storage) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let target = Arc::new(PlainTarget::new(&storage).expect("memory"));
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let target = Arc::clone(&target);
            connection.set_nodelay(true).expect("TCP_NODELAY");
            // A client that resets its connection is its own business.
            thread::spawn(move || target.serve(&Socket::from(connection)));
        }
    });
    address
}

fn of_size(size: u64) -> Storage {
    Storage {
        size,
        ..Storage::USUAL
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new("timeout")
        .args(["60", program])
        .args(arguments)
        .output()
        .expect("timeout(1)");
    let (stdout, stderr) = [stdout, stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .into();
    assert!(
        status.success(),
        "{program} {arguments:?}: {stdout}{stderr}"
    );
    stdout
}

/// A directory of the test's own, removed with it.
struct ScratchDir(PathBuf);

impl ScratchDir {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("wirecost-nbd-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a directory");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Bytes that do not repeat.
fn bytes(length: u64) -> Vec<u8> {
    let word = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    (0..length / 8).flat_map(word).collect()
}

#[test]
fn libnbd_describes_and_copies_our_export() {
    if !there(&["nbdinfo", "nbdcopy"]) {
        return;
    }
    let uri = format!("nbd://{}", target(of_size(SIZE)));
    let said = run("nbdinfo", &[&uri]);
    for words in [
        "newstyle-fixed",
        "export-size: 8388608",
        "can_multi_conn: true",
        "can_flush: true",
        "can_fua: true",
        "is_read_only: false",
        "block_size_minimum: 512",
        "block_size_maximum: 4194304",
    ] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    let listed = run("nbdinfo", &["--list", &uri]);
    assert!(listed.contains("export=\"wirecost\""), "{listed}");
    let scratch = ScratchDir::new();
    let [from, to] = ["from", "to"].map(|name| scratch.file(name));
    fs::write(&from, bytes(SIZE)).expect("written");
    run("nbdcopy", &["--flush", "--connections=4", &from, &uri]);
    run("nbdcopy", &["--connections=4", &uri, &to]);
    assert_eq!(fs::read(&from).expect("read"), fs::read(&to).expect("read"));
}

#[test]
fn qemu_converts_compares_and_checks_our_export() {
    if !there(&["qemu-img", "qemu-io"]) {
        return;
    }
    let uri = format!("nbd://{}/wirecost", target(of_size(SIZE)));
    let scratch = ScratchDir::new();
    let file = scratch.file("image");
    fs::write(&file, bytes(SIZE)).expect("written");
    let raw = ["-f", "raw"];
    run(
        "qemu-img",
        &["convert", "-n", raw[0], raw[1], "-O", "raw", &file, &uri],
    );
    let same = run(
        "qemu-img",
        &["compare", raw[0], raw[1], "-F", "raw", &file, &uri],
    );
    assert!(same.contains("identical"), "{same}");
    let io = ["write -P 7 -f 512 1024", "read -P 7 512 1024", "flush"];
    let said = run(
        "qemu-io",
        &["-f", "raw", "-c", io[0], "-c", io[1], "-c", io[2], &uri],
    );
    assert!(
        said.contains("read 1024/1024 bytes at offset 512") && !said.contains("failed"),
        "{said}"
    );
}

#[test]
fn fio_verifies_what_it_wrote_to_our_export() {
    if !there(&["fio"]) {
        return;
    }
    let uri = format!("--uri=nbd://{}", target(of_size(SIZE)));
    let scratch = ScratchDir::new();
    // Where it keeps what it has verified.
    let state = format!("--aux-path={}", scratch.0.display());
    let said = run(
        "fio",
        &[
            "--name=verify",
            "--ioengine=nbd",
            &uri,
            &state,
            "--rw=randwrite",
            "--bs=4k",
            "--size=8m",
            "--iodepth=32",
            "--verify=crc32c",
            "--verify_fatal=1",
        ],
    );
    assert!(said.contains("err= 0"), "{said}");
}

/// A server of others, ended with the test.
struct Peer(Child, SocketAddr);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Peer {
    /// Starts a server on a free port and waits until it listens.
    fn start(program: &str, arguments: impl Fn(u16) -> Vec<String>) -> Self {
        for _ in 0..5 {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .and_then(|listener| listener.local_addr())
                .expect("a port")
                .port();
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let child = Command::new(program)
                .args(arguments(port))
                .stdin(Stdio::null())
                .spawn()
                .expect("a server");
            let mut peer = Self(child, address);
            let deadline = Instant::now() + LONG;
            while Instant::now() < deadline {
                if TcpStream::connect(address).is_ok() {
                    return peer;
                }
                // Another program may have taken the port.
                if peer.0.try_wait().expect("its state").is_some() {
                    break;
                }
                thread::sleep(Duration::from_millis(10));
            }
        }
        panic!("{program} does not listen");
    }
}

/// Runs our initiator against a server of others; whatever it wrote is verified at the end.
fn load(peer: &Peer, export: &str, pattern: Pattern, streams: u32, io_size: u32) {
    load_at(peer.1.into(), export, pattern, streams, io_size);
}

fn load_at(target: Address, export: &str, pattern: Pattern, streams: u32, io_size: u32) {
    let options = Options::new(Workload::Storage, *b"fedcba9876543210").with(|load| {
        load.request = io_size;
        load.streams = streams;
        load.storage = Some(Storage {
            pattern,
            flush_every: if pattern.writes() { 8 } else { 0 },
            ..of_size(SIZE)
        });
    });
    let options = Options {
        export: Some(export.to_owned()),
        ..options
    };
    let client = Client::connect(target, &options, LONG).expect("connected");
    client.start().expect("started");
    let deadline = Instant::now() + LONG;
    while client.snapshot().expect("counts").latency.count() < 500 {
        assert!(Instant::now() < deadline, "nothing is answered");
        thread::sleep(Duration::from_millis(1));
    }
    let finished = client.stop(LONG).expect("verified");
    assert!(finished.drained(), "{finished:?}");
}

const PATTERNS: [Pattern; 4] = [
    Pattern::RandomRead,
    Pattern::SequentialWrite,
    Pattern::RandomMix,
    Pattern::SequentialMix,
];

#[test]
fn our_initiator_loads_nbdkit() {
    if !there(&["nbdkit"]) {
        return;
    }
    let peer = Peer::start("nbdkit", |port| {
        let port = port.to_string();
        [
            "-f",
            "-P",
            "/dev/null",
            "-i",
            "127.0.0.1",
            "-p",
            &port,
            "memory",
            "8M",
        ]
        .map(str::to_owned)
        .into()
    });
    for pattern in PATTERNS {
        for (streams, io_size) in [(1, 4 << 10), (4, 64 << 10), (2, 1 << 20)] {
            load(&peer, "", pattern, streams, io_size);
        }
    }
}

#[test]
fn our_initiator_loads_nbdkit_over_a_unix_socket() {
    if !there(&["nbdkit"]) {
        return;
    }
    let scratch = ScratchDir::new();
    let socket = scratch.file("socket");
    let child = Command::new("nbdkit")
        .args(["-f", "-P", "/dev/null", "-U", &socket, "memory", "8M"])
        .stdin(Stdio::null())
        .spawn()
        .expect("a server");
    // Its address is of no use here.
    let _peer = Peer(child, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let deadline = Instant::now() + LONG;
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        assert!(Instant::now() < deadline, "nbdkit does not listen");
        thread::sleep(Duration::from_millis(10));
    }
    for pattern in PATTERNS {
        load_at(Address::Path(socket.clone()), "", pattern, 2, 64 << 10);
    }
}

#[test]
fn our_initiator_loads_qemu_nbd() {
    if !there(&["qemu-nbd"]) {
        return;
    }
    let scratch = ScratchDir::new();
    let file = scratch.file("disk");
    fs::write(&file, vec![0; SIZE as usize]).expect("written");
    let peer = Peer::start("qemu-nbd", |port| {
        let port = port.to_string();
        [
            "-t",
            "-f",
            "raw",
            "-e",
            "8",
            "-x",
            "disk",
            "-b",
            "127.0.0.1",
            "-p",
            &port,
            &file,
        ]
        .map(str::to_owned)
        .into()
    });
    for pattern in PATTERNS {
        load(&peer, "disk", pattern, 1, 64 << 10);
    }
    load(&peer, "disk", Pattern::RandomRead, 4, 4 << 10);
    let unknown = Options {
        export: Some("other".to_owned()),
        ..Options::new(Workload::Storage, [7; 16])
    };
    let error = Client::connect(peer.1, &unknown, LONG).expect_err("no such export");
    let error = error.to_string();
    assert!(error.contains("it has no export of that name"), "{error}");
}
