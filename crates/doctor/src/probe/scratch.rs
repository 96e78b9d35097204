//! Trials inside scratch namespaces.

use std::fs;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use nix::errno::Errno;
use wirecost_model::plan::Description;
use wirecost_netbuild::trial::Scratch;
use wirecost_sys::bpf::PassingClassifier;
use wirecost_sys::process;
use wirecost_sys::socket::{CongestionError, PacketCapture, set_congestion};
use wirecost_sys::tun::Tap;
use wirecost_sys::xdp_socket::BoundXdpSocket;

use super::attempts::{outcome, refused};
use crate::evidence::{EncapsulationKind, Outcome, Trial};

/// Trials of this module, in the order in which they run. Open vSwitch and OVN are last: their daemons may take what is
/// left of the time on a slow machine.
pub(crate) fn trials() -> Vec<Trial> {
    let mut all = TRIALS.to_vec();
    // VXLAN has a trial of its own.
    let kinds = Description::ALL.iter().filter(|kind| kind.word != "vxlan");
    let kinds = kinds.map(|kind| EncapsulationKind(kind.word));
    let first =
        |kind: &EncapsulationKind| kind.of_driver().first().is_some_and(|of| of.word == kind.0);
    all.extend(kinds.filter(first).map(Trial::Encapsulation));
    all.extend([Trial::OpenVswitch, Trial::Ovn]);
    all
}

const TRIALS: [Trial; 16] = [
    Trial::Veth,
    Trial::Bridge,
    Trial::RateLimit,
    Trial::Netem,
    Trial::Fq,
    Trial::Vxlan,
    Trial::Offloads,
    Trial::Steering,
    Trial::Congestion,
    Trial::Capture,
    Trial::Ipv6,
    Trial::Tap,
    Trial::Ifb,
    Trial::BridgeNetfilter,
    Trial::Tcx,
    Trial::AfXdp,
];

pub(super) fn try_all(
    program: Option<&PassingClassifier>,
    report: &mut impl FnMut(Trial, Outcome),
) {
    let mut scratch = match Scratch::open() {
        Ok(scratch) => scratch,
        Err(error) => {
            let refusal = refused(&error);
            for trial in trials() {
                report(trial, refusal.clone());
            }
            return;
        }
    };
    let mut has_veth = false;
    for trial in trials() {
        let needs_veth = match trial {
            Trial::RateLimit | Trial::Netem | Trial::Fq | Trial::Offloads | Trial::OpenVswitch => {
                true
            }
            Trial::Encapsulation(kind) => kind.of_driver().iter().any(|kind| !kind.is_tunnel()),
            _ => false,
        };
        let outcome = if needs_veth && !has_veth {
            Outcome::NotTried("no veth to try it on".into())
        } else {
            attempt(trial, &mut scratch, program)
        };
        has_veth |= trial == Trial::Veth && outcome.works();
        report(trial, outcome);
    }
}

fn attempt(trial: Trial, scratch: &mut Scratch, program: Option<&PassingClassifier>) -> Outcome {
    let made = |result: io::Result<()>, seen: &str| outcome(result.map(|()| seen.to_owned()));
    match trial {
        Trial::Veth => made(
            scratch.veth(),
            "MTU 9000, the other end in another namespace",
        ),
        Trial::Bridge => made(scratch.bridge(), "made, a veth its port"),
        Trial::RateLimit => made(scratch.rate_limit(), "10 Gbit/s with a size table"),
        Trial::Netem => made(scratch.delay(), "a delay of 1 ms on a veth, and read back"),
        Trial::Fq => made(scratch.fair_queue(), "on a veth, and read back"),
        Trial::Vxlan => made(scratch.vxlan(), "made, options read back"),
        Trial::Offloads => made(scratch.offloads(), "TSO and GRO of a veth off and on"),
        Trial::Steering => steering(scratch),
        Trial::Congestion => congestion(),
        Trial::Capture => outcome(capture(scratch)),
        Trial::Ipv6 => outcome(scratch.ipv6().map(str::to_owned)),
        Trial::Encapsulation(kind) => encapsulation(scratch, kind),
        Trial::Tap => outcome(Tap::create("tap0").map(|_| "made".into())),
        Trial::OpenVswitch => open_vswitch(scratch),
        Trial::Ovn => ovn(),
        Trial::Ifb => made(scratch.ifb(), "made and read back"),
        Trial::BridgeNetfilter => outcome(bridge_netfilter()),
        Trial::Tcx => match program {
            None => Outcome::NotTried("no program to attach".into()),
            Some(program) => outcome(tcx(scratch, program)),
        },
        Trial::AfXdp => outcome(af_xdp(scratch)),
        // Run by `probe`, without a scratch namespace.
        Trial::Namespaces
        | Trial::Ebpf
        | Trial::IoUring
        | Trial::Userfaultfd
        | Trial::Kvm
        | Trial::Qemu => Outcome::NotTried("tried elsewhere".into()),
    }
}

fn encapsulation(scratch: &mut Scratch, kind: EncapsulationKind) -> Outcome {
    let kinds = kind.of_driver();
    let made = kinds
        .iter()
        .try_for_each(|kind| scratch.encapsulation(kind));
    let words: Vec<&str> = kinds.iter().map(|kind| kind.word).collect();
    outcome(made.map(|()| match kinds[..] {
        [only] if !only.is_tunnel() => "a tag on a veth".to_owned(),
        [_] => "made and read back".to_owned(),
        _ => format!("{} made and read back", words.join(" and ")),
    }))
}

fn steering(scratch: &mut Scratch) -> Outcome {
    let cpus = process::allowed_cpus();
    match cpus.and_then(|cpus| scratch.steering(&cpus[..cpus.len().min(1)])) {
        Ok(Some(mask)) => Outcome::Works(format!("a new device took the mask {mask}")),
        Ok(None) => {
            Outcome::Works("the mask is set, and cannot be read back without a sysfs".into())
        }
        // A lab then runs without receive steering (`LabHost::is_steered`).
        Err(error) if error.kind() == io::ErrorKind::NotFound => Outcome::Partly(
            "there is no net.core.rps_default_mask, and only root may write rps_cpus: labs are built, and some of what a \
             host receives is handled on the other host's cores"
                .into(),
        ),
        Err(error) => refused(&error),
    }
}

fn congestion() -> Outcome {
    let socket = match TcpListener::bind("127.0.0.1:0") {
        Ok(socket) => socket,
        Err(error) => return refused(&error),
    };
    let code = match set_congestion(&socket, "cubic") {
        Ok(()) => return Outcome::Works("set on a socket".into()),
        Err(CongestionError::Missing { .. }) => Some(Errno::ENOENT as i32),
        Err(CongestionError::NotPermitted { .. }) => Some(Errno::EPERM as i32),
        Err(CongestionError::Other { source, .. }) => source.raw_os_error(),
    };
    refused(&code.map_or_else(
        || io::Error::other("setting it failed"),
        io::Error::from_raw_os_error,
    ))
}

fn capture(scratch: &mut Scratch) -> io::Result<String> {
    PacketCapture::open(scratch.index("lo")?, 128)?;
    Ok("opened".into())
}

/// Starts an Open vSwitch of the namespace's own with a veth as its port, and ends it.
fn open_vswitch(scratch: &mut Scratch) -> Outcome {
    let port = match scratch.switch_port() {
        Ok(port) => port,
        Err(error) => return refused(&error),
    };
    match wirecost_ovs::try_with(port) {
        Ok(found) => {
            let module = if wirecost_ovs::kernel_has_datapath() {
                "its kernel datapath is there too"
            } else {
                "this kernel has no openvswitch module"
            };
            Outcome::Works(format!("{found}; a bridge with a port was made; {module}"))
        }
        Err(error) => refused_by_switch(&error),
    }
}

/// Starts databases and an ovn-northd of this process's own, and ends them.
fn ovn() -> Outcome {
    match wirecost_ovs::ovn::try_central() {
        Ok(version) => Outcome::Works(format!(
            "OVN {version}; ovn-northd made the flows of a logical switch"
        )),
        Err(error) => refused_by_switch(&error),
    }
}

fn refused_by_switch(error: &wirecost_ovs::Error) -> Outcome {
    Outcome::Refused {
        code: error.code(),
        words: error.to_string(),
    }
}

/// Value of `net.bridge.bridge-nf-call-iptables` in a new namespace (`brnf_init_net`,
/// net/bridge/br_netfilter_hooks.c).
fn bridge_netfilter() -> io::Result<String> {
    fs::read_to_string("/proc/sys/net/bridge/bridge-nf-call-iptables")
        .map(|text| text.trim().to_owned())
}

fn tcx(scratch: &mut Scratch, program: &PassingClassifier) -> io::Result<String> {
    let index = scratch.index("lo")?;
    let _link = program.attach_tcx_ingress(index)?;
    // The attached program must let traffic pass.
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    socket.send_to(b"through", socket.local_addr()?)?;
    let mut buffer = [0; 16];
    socket.recv(&mut buffer)?;
    Ok("attached at ingress, and traffic passes".into())
}

fn af_xdp(scratch: &mut Scratch) -> io::Result<String> {
    BoundXdpSocket::bind(scratch.index("lo")?, 0)?;
    Ok("bound in copy mode".into())
}
