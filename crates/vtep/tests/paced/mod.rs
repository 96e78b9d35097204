//! A guest that always has more to send than its host's line takes, for the kernel's trace to be read meanwhile
//! (tests/kernels/line.rs): UDP of the guest's MTU, in one frame each.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use wirecost_model::ip::IpVersion::Ipv4;
use wirecost_vtep::{Config, EdtProgram, Format, Hook, LineRate, Tunnel};
use wirecost_wire::size_table::FrameSizes;

use crate::lab::{Lab, allowed};

const RATE: u64 = 20_000_000;
const STEP_NS: u64 = 10_000_000;
/// More than a socket's buffer of 4 MB holds: whoever sends has to wait.
const LIMIT_NS: u64 = 2_000_000_000;
const SENDING: Duration = Duration::from_secs(1);

fn send_by_a_line(guest_mtu: u32, format: Format) {
    if !allowed() {
        return;
    }
    let lab = Lab::new(9000, guest_mtu);
    let host = &lab.hosts[0];
    let fq = host.run(|| {
        let tc = [
            "qdisc", "replace", "dev", "under0", "root", "fq", "nopacing",
        ];
        let more = [
            "limit",
            "100000",
            "flow_limit",
            "100000",
            "timer_slack",
            "0",
        ];
        let tc = std::process::Command::new("tc")
            .args(tc)
            .args(more)
            .output();
        tc.expect("tc of iproute2").status.success()
    });
    if !fq {
        // Where it has to be there, the step that reads the trace fails.
        wirecost_skips::lacks("this kernel has no fq, or its tc knows no timer_slack");
        return;
    }
    let config = Config::new("under0", format);
    let frames = FrameSizes::new(guest_mtu, config.overhead(), Ipv4, 0);
    let _endpoints = [0, 1].map(|index| lab.endpoint(index, config_of(index, &config)));
    let mut line = EdtProgram::load("under0").unwrap_or_else(|error| panic!("{error}"));
    let pace = LineRate {
        rate: RATE,
        step_ns: STEP_NS,
        limit_ns: LIMIT_NS,
        frames,
        links: 1,
        classes: false,
    };
    host.run(|| line.set(&pace, Hook::Best)).expect("a line");
    let to = (Lab::guest(2, false), 9);
    let socket = lab.guests[0].run(|| UdpSocket::bind("0.0.0.0:0").expect("a socket"));
    let datagram = vec![7; guest_mtu as usize - 28];
    let began = Instant::now();
    while began.elapsed() < SENDING {
        // The other guest says that nobody listens, which is told by the next call.
        let _ = socket.send_to(&datagram, to);
    }
    // What waits still goes out in its time, however busy this machine's processors were.
    std::thread::sleep(Duration::from_nanos(LIMIT_NS));
    host.run(|| drop(line));
}

/// The same endpoint with that host's own address.
fn config_of(index: usize, config: &Config) -> Config {
    let mut config = config.clone();
    if let Format::Vxlan(tunnel) = &mut config.format {
        tunnel.local = Lab::host(index + 1, false);
    }
    config
}

fn vxlan() -> Format {
    Format::Vxlan(Tunnel::vxlan(Lab::host(1, false)))
}

#[test]
fn paced_1500_none() {
    send_by_a_line(1500, Format::Plain);
}

#[test]
fn paced_1450_vxlan() {
    send_by_a_line(1450, vxlan());
}

#[test]
fn paced_9000_none() {
    send_by_a_line(9000, Format::Plain);
}

#[test]
fn paced_8950_vxlan() {
    send_by_a_line(8950, vxlan());
}
