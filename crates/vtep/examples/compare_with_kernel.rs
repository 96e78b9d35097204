//! Our VXLAN compared with the kernel's: one TCP stream between guests, the two in turns, segmentation and GRO off on
//! the underlay, GRO after decapsulation on for both. Prints the ratio of each pair; say how many pairs and which guest
//! MTU: `cargo run -p wirecost-vtep --example compare_with_kernel -- 10 1450`.
//!
//! A quick look, not the measurement that a claim needs: that is `bench/`'s business.

#[path = "../tests/lab/mod.rs"]
mod lab;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use lab::{Lab, NO_OFFLOADS, VNI, allowed};
use wirecost_vtep::{Config, Format, Tunnel};

const WINDOW: Duration = Duration::from_secs(1);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise: u32| {
        arguments
            .next()
            .map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (pairs, guest_mtu) = (number(5), number(1450));
    if !allowed() {
        return;
    }
    let labs = [(); 2].map(|()| {
        let lab = Lab::new(guest_mtu + 50, guest_mtu);
        for host in &lab.hosts {
            host.features("under0", &NO_OFFLOADS);
        }
        lab
    });
    let [ours, kernels] = &labs;
    let _ends = [0, 1].map(|index| {
        let tunnel = Tunnel::vxlan(Lab::host(index + 1, false));
        ours.endpoint(index, Config::new("under0", Format::Vxlan(tunnel)))
    });
    for index in [0, 1] {
        kernel_end(kernels, index, guest_mtu);
    }
    let mut ratios: Vec<f64> = (0..pairs)
        .map(|pair| {
            // Who goes first alternates.
            let (a, b) = if pair % 2 == 0 {
                let first = stream(ours);
                (first, stream(kernels))
            } else {
                let first = stream(kernels);
                (stream(ours), first)
            };
            println!(
                "ours {a:.2} Gbit/s, the kernel's {b:.2}, ratio {:.3}",
                a / b
            );
            a / b
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.3}", ratios[ratios.len() / 2]);
}

/// A vxlan device and the guest's in a bridge.
fn kernel_end(lab: &Lab, index: usize, mtu: u32) {
    let host = &lab.hosts[index];
    let (local, remote) = (Lab::host(index + 1, false), Lab::host(2 - index, false));
    host.ip(&format!(
        "link add vx0 mtu {mtu} type vxlan id {VNI} local {local} remote {remote} dstport 4789 dev under0 nolearning noudpcsum"
    ));
    host.ip(&format!(
        "link add br0 mtu {mtu} type bridge stp_state 0 forward_delay 0"
    ));
    host.ip(&format!("link set guest0 mtu {mtu}"));
    for device in ["vx0", "guest0"] {
        host.ip(&format!("link set {device} master br0"));
    }
    for device in ["vx0", "br0"] {
        host.ip(&format!("link set {device} up"));
    }
    // What GRO has joined on vx0 is left whole.
    host.features("guest0", &lab::NO_TSO.map(|(name, _)| (name, true)));
}

fn pin_to(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core).expect("a core");
    sched_setaffinity(Pid::from_raw(0), &cores).expect("pinned");
}

/// Gbit/s received in one window.
fn stream(lab: &Lab) -> f64 {
    let at = Lab::guest(2, false);
    let listener = lab.guests[1].run(|| TcpListener::bind((at, 0)).expect("a listener"));
    let to = listener.local_addr().expect("its address");
    let receiving = thread::spawn(move || {
        pin_to(1);
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut buffer = vec![0; 1 << 17];
        let (mut bytes, mut start) = (0u64, Instant::now());
        let warm = start + WINDOW / 4;
        loop {
            let got = stream.read(&mut buffer).expect("data");
            if got == 0 {
                return bytes as f64 * 8e-9 / start.elapsed().as_secs_f64();
            }
            bytes += got as u64;
            if start < warm && Instant::now() > warm {
                (bytes, start) = (0, Instant::now());
            }
        }
    });
    let mut stream = lab.guests[0]
        .run(|| TcpStream::connect(to))
        .expect("a connection");
    let sending = thread::spawn(move || {
        pin_to(0);
        let data = vec![0x5a; 1 << 17];
        let end = Instant::now() + WINDOW + WINDOW / 4;
        while Instant::now() < end {
            stream.write_all(&data).expect("sent");
        }
    });
    sending.join().expect("the sender");
    receiving.join().expect("the receiver")
}
