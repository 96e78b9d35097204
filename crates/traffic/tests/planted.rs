//! Loss, duplicates, reordering and silence planted on a path between two namespaces: what is planted is what is
//! told. Every wait is bounded, none is measured.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use wirecost_model::end_window::Counts;
use wirecost_model::load::Migration;
use wirecost_sys::dirty_pages::DirtyPages;
use wirecost_sys::namespace::{HeldNetns, Netns};
use wirecost_traffic::{
    Client, Limit, Options, Rate, Server, TrafficError, Workload, window_until_end,
};

const LONG: Duration = Duration::from_secs(30);
/// Bytes of a datagram with its UDP header: what the rules know the load's own by.
const LENGTH: u32 = 200;
const SECRET: [u8; 16] = *b"planted-planted-";

/// Two namespaces joined by a veth: what the client's end is called in one is 10.98.0.1, the server's 10.98.0.2.
struct Path {
    client: HeldNetns,
    server: HeldNetns,
}

fn run(netns: &Netns, program: &str, arguments: &str, input: &str) -> bool {
    let run = || -> std::io::Result<bool> {
        let mut child = Command::new(program)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .args(arguments.split_whitespace())
            .stdin(Stdio::piped())
            .spawn()?;
        child.stdin.take().unwrap().write_all(input.as_bytes())?;
        Ok(child.wait()?.success())
    };
    netns
        .within(run)
        .unwrap()
        .unwrap_or_else(|error| panic!("{program} {arguments}: {error}"))
}

fn must(netns: &Netns, program: &str, arguments: &str) {
    assert!(run(netns, program, arguments, ""), "{program} {arguments}");
}

impl Path {
    /// `None`, and said so, where this user may not.
    fn lay() -> Option<Self> {
        let (client, server) = match (
            HeldNetns::create("planted-client"),
            HeldNetns::create("planted-server"),
        ) {
            (Ok(client), Ok(server)) => (client, server),
            (Err(error), _) | (_, Err(error)) => {
                wirecost_skips::skip(format!("making network namespaces: {error}"));
                return None;
            }
        };
        let peer = server.tid();
        must(
            client.netns(),
            "ip",
            &format!("link add pl0 type veth peer name pl1 netns {peer}"),
        );
        must(client.netns(), "ip", "addr add 10.98.0.1/24 dev pl0");
        must(client.netns(), "ip", "link set pl0 up");
        must(server.netns(), "ip", "addr add 10.98.0.2/24 dev pl1");
        must(server.netns(), "ip", "link set pl1 up");
        Some(Self { client, server })
    }

    fn pair(&self, options: &Options) -> (Server, Client) {
        let listen: SocketAddr = "10.98.0.2:0".parse().unwrap();
        let listening = self
            .server
            .netns()
            .within(|| Server::listen(listen, options));
        let server = listening.unwrap().unwrap();
        let connecting = || Client::connect(server.address(), options, LONG);
        let client = self.client.netns().within(connecting).unwrap().unwrap();
        server.wait_connected(LONG).unwrap();
        (server, client)
    }

    /// So many streams, all of which have begun to move.
    fn moving(&self, streams: u32) -> (Server, Client) {
        let options = Options::new(Workload::TcpStream, SECRET).with(|load| load.streams = streams);
        let (server, client) = self.pair(&options);
        client.start().unwrap();
        eventually("every stream moves", || {
            let flows = server.snapshot().unwrap().flows;
            flows.iter().all(|flow| flow.counts.bytes() > 0)
        });
        (server, client)
    }

    /// Rules of one end, in nft's words; `false`, and said so, where nft(8) or a part of it is missing.
    fn rules(&self, at_server: bool, rules: &str) -> bool {
        let netns = if at_server {
            &self.server
        } else {
            &self.client
        };
        let put = run(netns.netns(), "nft", "-f -", rules);
        if !put {
            wirecost_skips::skip("nft(8), or what this rule needs of the kernel, is not there");
        }
        put
    }

    /// Packets that a counting rule of the server's end has seen.
    fn dropped(&self) -> u64 {
        let list = || {
            Command::new("nft")
                .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
                .args(["list", "ruleset"])
                .output()
        };
        let listed = self.server.netns().within(list).unwrap().unwrap().stdout;
        let text = String::from_utf8(listed).unwrap();
        let (_, rest) = text.split_once("counter packets ").unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    }

    /// The client's port of one of the connections.
    fn client_port(&self) -> u16 {
        *self.client_ports().first().expect("a connection")
    }

    /// The client's ports of all connections, in the order in which their sockets were made.
    fn client_ports(&self) -> Vec<u16> {
        let read = || fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
        let text = self.client.netns().within(read).unwrap();
        // sl, local_address, rem_address, st: 01 is TCP_ESTABLISHED (include/net/tcp_states.h).
        let port = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (_, port) = fields.get(1)?.split_once(':')?;
            let port = u16::from_str_radix(port, 16).ok()?;
            let inode: u64 = fields.get(9)?.parse().ok()?;
            (fields.get(3) == Some(&"01")).then_some((inode, port))
        };
        let mut ports: Vec<_> = text.lines().filter_map(port).collect();
        ports.sort_unstable();
        ports.into_iter().map(|(_, port)| port).collect()
    }

    /// Datagrams that the server's sockets had no room for.
    fn overflowed(&self) -> u64 {
        let read = || fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let text = self.server.netns().within(read).unwrap();
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let place = names
            .split(' ')
            .position(|name| name == "RcvbufErrors")
            .unwrap();
        values.split(' ').nth(place).unwrap().parse().unwrap()
    }
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// 2000 datagrams at a rate that no receiver is overrun by.
fn datagrams() -> Options {
    Options::new(Workload::UdpStream, SECRET).with(|load| {
        load.request = LENGTH - 8;
        load.rate = Some(Rate::BitsPerSecond(u64::from(LENGTH - 8) * 8 * 5_000));
        load.limit = Some(Limit::Transactions(2_000));
    })
}

/// Sends them all, and returns what the receiver counted once `all` are accounted for.
fn send(path: &Path, all: impl Fn(&Counts, u64) -> bool) -> Counts {
    let (server, client) = path.pair(&datagrams());
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    let counts = || server.snapshot().unwrap().flows[0].counts;
    eventually("what can arrive is there", || {
        all(&counts(), path.overflowed())
    });
    client.stop(LONG).unwrap();
    let counts = counts();
    assert!(server.finish(LONG).unwrap().drained());
    counts
}

#[test]
fn planted_loss_is_told_to_the_datagram() {
    let Some(path) = Path::lay() else { return };
    let rule = format!(
        "table inet planted {{ chain in {{ type filter hook prerouting priority -300; \
         udp length {LENGTH} numgen inc mod 10 3 drop\n }}\n}}\n"
    );
    if !path.rules(true, &rule) {
        return;
    }
    let counts = send(&path, |counts, overflowed| {
        counts.received + overflowed >= 1_800
    });
    assert_eq!(counts.expected, 2_000);
    assert_eq!(counts.expected - counts.received, 200 + path.overflowed());
    assert_eq!(
        (counts.duplicated, counts.reordered, counts.too_old),
        (0, 0, 0)
    );
}

#[test]
fn the_last_datagrams_are_lost_too_when_they_are() {
    let Some(path) = Path::lay() else { return };
    let rule = format!(
        "table inet planted {{ chain in {{ type filter hook prerouting priority -300; \
         udp length {LENGTH} limit rate over 1/day burst 500 packets drop\n }}\n}}\n"
    );
    if !path.rules(true, &rule) {
        return;
    }
    let counts = send(&path, |counts, overflowed| {
        counts.received + overflowed >= 500
    });
    // Nothing that arrived tells of them; the sender does when it ends the flow.
    assert_eq!(counts.expected, 2_000);
    assert!(counts.received <= 501, "{counts:?}");
}

#[test]
fn planted_duplicates_are_told_to_the_datagram() {
    let Some(path) = Path::lay() else { return };
    let rule = format!(
        "table ip planted {{ chain out {{ type filter hook output priority 0; \
         udp length {LENGTH} numgen inc mod 10 3 dup to 10.98.0.2 device \"pl0\"\n }}\n}}\n"
    );
    if !path.rules(false, &rule) {
        return;
    }
    let counts = send(&path, |counts, overflowed| {
        counts.received + counts.duplicated + overflowed >= 2_150
    });
    let arrived = counts.received + counts.duplicated;
    let lost = path.overflowed();
    // The duplicate passes the rule as well, so that it is not every tenth of the originals exactly.
    assert!(
        (2_150..=2_250).contains(&(arrived + lost)),
        "{counts:?} {lost}"
    );
    assert!(counts.received + lost >= 2_000 && counts.received <= 2_000);
    assert!(counts.duplicated + lost >= 150, "{counts:?} {lost}");
    assert_eq!((counts.reordered, counts.too_old), (0, 0));
}

#[test]
fn planted_reordering_is_neither_loss_nor_duplication() {
    let Some(path) = Path::lay() else { return };
    let (client, server) = (path.client.netns(), path.server.netns());
    // Every tenth datagram goes a second, slow way to the same address.
    let peer = path.server.tid();
    must(
        client,
        "ip",
        &format!("link add pl2 type veth peer name pl3 netns {peer}"),
    );
    must(client, "ip", "addr add 10.98.1.1/24 dev pl2");
    must(client, "ip", "link set pl2 up");
    must(server, "ip", "addr add 10.98.1.2/24 dev pl3");
    must(server, "ip", "link set pl3 up");
    must(
        client,
        "ip",
        "route add 10.98.0.2/32 via 10.98.1.2 dev pl2 src 10.98.0.1 table 100",
    );
    must(client, "ip", "rule add fwmark 1 table 100");
    for device in ["all", "default", "pl3"] {
        let loose = || fs::write(format!("/proc/sys/net/ipv4/conf/{device}/rp_filter"), "0");
        server.within(loose).unwrap().unwrap();
    }
    if !run(
        client,
        "tc",
        "qdisc add dev pl2 root tbf rate 300kbit burst 2000 limit 1000000",
        "",
    ) {
        wirecost_skips::skip("tc(8) or tbf is not there");
        return;
    }
    let rule = format!(
        "table ip planted {{ chain out {{ type route hook output priority -150; \
         udp length {LENGTH} numgen inc mod 10 3 meta mark set 1\n }}\n}}\n"
    );
    if !path.rules(false, &rule) {
        return;
    }
    let counts = send(&path, |counts, overflowed| {
        counts.received + overflowed >= 2_000
    });
    assert_eq!(counts.received + path.overflowed(), 2_000, "{counts:?}");
    assert_eq!((counts.duplicated, counts.too_old), (0, 0), "{counts:?}");
    assert!((1..=200).contains(&counts.reordered), "{counts:?}");
    assert!(counts.jitter_ns > 0);

    // Nobody waits here for those on the slow way: the word that it is over comes long before them.
    let before = path.overflowed();
    let (server, client) = path.pair(&datagrams());
    client.set_counted(true);
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    let sent = client.stop(LONG).unwrap().flows[0].counted;
    let came = server.finish(LONG).unwrap().flows[0].counted;
    assert_eq!((sent, came + path.overflowed() - before), (2_000, 2_000));
}

#[test]
fn datagrams_are_lost_in_the_window_in_which_they_were_sent() {
    let Some(path) = Path::lay() else { return };
    let silence = format!(
        "table inet planted {{ chain in {{ type filter hook prerouting priority -300; \
         udp length {LENGTH} counter drop\n }}\n}}\n"
    );
    let options = datagrams().with(|load| load.limit = None);
    let (server, client) = path.pair(&options);
    let sent = || client.snapshot().unwrap().flows[0].counts.sent;
    let more = |count| {
        let until = sent() + count;
        eventually("more were sent", || sent() >= until);
    };
    client.start().unwrap();
    more(100);
    if !path.rules(true, &silence) {
        return;
    }
    more(1_000);
    assert!(path.rules(true, "flush ruleset\n"));
    // All of that was before: by the numbers that come now it looks as if it were lost now.
    let overflowed = path.overflowed();
    client.set_counted(true);
    more(500);
    assert!(path.rules(true, &silence));
    // And nothing that comes will tell of these.
    more(500);
    let before_end = sent();
    client.set_counted(false);
    let ended = client.stop(LONG).unwrap();
    let after_end = ended.bytes / u64::from(LENGTH - 8) - before_end;
    let sent = ended.flows[0].counted;
    let came = server.finish(LONG).unwrap().flows[0].counted;
    let dropped = path.dropped();
    let overflowed = path.overflowed() - overflowed;
    assert!(sent >= 1_000, "{sent}");
    assert!((500..=sent - 500).contains(&(came + overflowed)), "{came}");
    // What was sent between the window's end and the load's was dropped, too.
    assert!(
        sent - came <= dropped + overflowed,
        "{sent} {came} {dropped}"
    );
    assert!(
        dropped <= sent - came + after_end,
        "{sent} {came} {dropped} {after_end}"
    );
}

#[test]
fn requests_go_on_over_loss_and_a_time_out_is_no_latency() {
    let Some(path) = Path::lay() else { return };
    let rule = format!(
        "table inet planted {{ chain in {{ type filter hook prerouting priority -300; \
         udp length {LENGTH} numgen inc mod 7 3 drop\n }}\n}}\n"
    );
    // Requests on one side, responses on the other.
    if !path.rules(true, &rule) || !path.rules(false, &rule) {
        return;
    }
    let reply_timeout = Duration::from_millis(40);
    for (streams, threads, depth) in [(1, 1, 1), (3, 1, 1), (2, 2, 4)] {
        let options = Options::new(Workload::UdpRr, SECRET).with(|load| {
            load.streams = streams;
            load.threads = Some(threads);
            load.depth = depth;
            load.request = LENGTH - 8;
            load.response = LENGTH - 8;
            load.reply_timeout = reply_timeout;
            load.limit = Some(Limit::Transactions(200));
        });
        let (server, client) = path.pair(&options);
        let before = client.snapshot().unwrap();
        client.start().unwrap();
        client.wait_ended(LONG).unwrap();
        let window = window_until_end(&before, &client.snapshot().unwrap()).unwrap();
        let (received, lost) = (window.counts().received, window.counts().timeouts);
        assert_eq!(received + lost, 200);
        assert!(lost >= 30, "{lost}");
        assert_eq!(window.latency.count(), received);
        // Within the thousandth that buckets hold.
        assert!(window.latency.max().unwrap() <= reply_timeout.mul_f64(1.001));
        assert!(client.stop(LONG).unwrap().drained());
        assert!(server.finish(LONG).unwrap().drained());
    }
}

/// A load of every workload that moves on a path that then falls silent, at both ends; `None`, and said so, where it
/// cannot be made to.
fn silenced(path: &Path) -> Option<Vec<(Workload, (Server, Client))>> {
    let pairs: Vec<_> = Workload::ALL
        .into_iter()
        // It may be over before the path is silent.
        .filter(|workload| !workload.is_migration())
        .map(|workload| {
            let options = Options::new(workload, SECRET).with(|load| {
                load.rate =
                    (workload == Workload::UdpStream).then_some(Rate::BitsPerSecond(1_000_000));
            });
            (workload, path.pair(&options))
        })
        .collect();
    for (_, (_, client)) in &pairs {
        client.start().unwrap();
    }
    eventually("every load moves", || {
        pairs.iter().all(|(_, (server, _))| server.bytes() > 0)
    });
    let silence =
        "table inet planted { chain in { type filter hook prerouting priority -300; drop\n }\n}\n";
    path.rules(true, silence).then_some(pairs)
}

#[test]
fn a_path_that_falls_silent_just_before_the_end_is_a_peer_that_vanished_too() {
    // Who lost its core before it sent the next request has nothing under way, and ends well: by chance, once or twice.
    let mut ended_well = Workload::ALL.to_vec();
    for _ in 0..3 {
        let Some(path) = Path::lay() else { return };
        let Some(pairs) = silenced(&path) else { return };
        // Packets in flight have been acknowledged by then, and no timer of either end has expired.
        thread::sleep(Duration::from_millis(100));
        let mut ends = Vec::new();
        for (workload, (server, client)) in pairs {
            ends.push((
                workload,
                thread::spawn(move || client.stop(Duration::from_millis(1_500))),
            ));
            drop(server);
        }
        let mut again = Vec::new();
        for (workload, end) in ends {
            match end.join().unwrap() {
                Ok(_) => again.push(workload),
                Err(error) => {
                    let vanished = matches!(error, TrafficError::PeerVanished { flow: 0, .. });
                    assert!(vanished, "{workload:?}: {error}");
                }
            }
        }
        ended_well.retain(|workload| again.contains(workload));
        if ended_well.is_empty() {
            return;
        }
    }
    panic!("{ended_well:?} ended well on a silent path, three times");
}

#[test]
fn one_silent_flow_among_others_is_given_up_and_its_peer_has_not_vanished() {
    let Some(path) = Path::lay() else { return };
    let (server, client) = path.moving(3);
    let port = path.client_port();
    let silence = format!(
        "table inet planted {{ chain in {{ type filter hook prerouting priority -300; tcp sport {port} drop\n }}\n}}\n"
    );
    if !path.rules(true, &silence) {
        return;
    }
    // What was on its way has been acknowledged by then.
    thread::sleep(Duration::from_millis(100));
    let ended = client.stop(Duration::from_secs(5)).unwrap();
    let drained = ended.flows.iter().filter(|flow| flow.drained).count();
    assert_eq!(drained, 2, "{ended:?}");
    assert!(!server.finish(Duration::from_millis(10)).unwrap().drained());
}

#[test]
fn memory_that_is_not_compared_in_time_is_an_error_also_where_another_connection_answers() {
    if let Err(error) = DirtyPages::check() {
        wirecost_skips::skip(format!("writes cannot be tracked: {error}"));
        return;
    }
    let options = Options::new(Workload::Migration, SECRET).with(|load| {
        load.migration = Some(Migration {
            memory: 4 << 20,
            channels: 2,
            ..Migration::USUAL
        });
    });
    let Some(path) = Path::lay() else { return };
    let (_server, client) = path.pair(&options);
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    let port = path.client_ports()[1];
    let silence = format!(
        "table inet planted {{ chain in {{ type filter hook prerouting priority -300; tcp sport {port} drop\n }}\n}}\n"
    );
    if !path.rules(true, &silence) {
        return;
    }
    let error = client.stop(Duration::from_secs(5)).unwrap_err();
    let is_late = matches!(error, TrafficError::NotCompared { flow: 1, .. });
    assert!(is_late, "{error}");
}

#[test]
fn a_path_that_falls_silent_is_a_peer_that_vanished_for_every_workload() {
    let Some(path) = Path::lay() else { return };
    let Some(pairs) = silenced(&path) else { return };
    for (workload, (server, client)) in pairs {
        // A sender of datagrams hears of nothing: its peer's silence shows at the end.
        if workload != Workload::UdpStream {
            eventually("the silence is noticed", || client.snapshot().is_err());
        }
        let error = client.stop(Duration::from_millis(300)).unwrap_err();
        let vanished = matches!(error, TrafficError::PeerVanished { flow: 0, .. });
        assert!(vanished, "{workload:?}: {error}");
        let ended = server.finish(Duration::from_millis(10));
        assert!(
            !ended.is_ok_and(|finished| finished.drained()),
            "{workload:?}"
        );
    }
}

/// Whether this process runs the test alone. Otherwise it is run in one of its own, where no other test's memory
/// counts.
fn alone(test: &str) -> bool {
    const ALONE: &str = "WIRECOST_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let own = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&own.stdout);
    assert!(own.status.success() && said.contains("1 passed"), "{own:?}");
    false
}

#[test]
fn a_thousand_streams_run_and_end_in_a_small_process() {
    if !alone("a_thousand_streams_run_and_end_in_a_small_process") {
        return;
    }
    let Some(path) = Path::lay() else { return };
    let (server, client) = path.moving(1_024);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    // Both ends.
    assert!(kib < 128 << 10, "{line}");
    assert_eq!(
        client.stop(LONG).unwrap().bytes,
        server.finish(LONG).unwrap().bytes
    );
}
