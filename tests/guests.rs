//! Many guests on a host: built, proven pair by pair, counted together, and gone without a trace.

use std::collections::BTreeSet;
use std::fs;

use crate::common::{lab_can_be_built, lock_shared, state_and_start, wait_for};
use crate::direct_lab::{NEVER, lab};
use wirecost_control::Lab;
use wirecost_model::cell::{MAX_GUESTS, Network};
use wirecost_model::fixtures;
use wirecost_model::ip::IpVersion;
use wirecost_model::offload::{Offload, Profile, Role};
use wirecost_model::plan::{Encapsulation, Vxlan};
use wirecost_model::sample::ProofTime;

fn network(guests: u32, guest_ip: IpVersion) -> Network {
    Network {
        encapsulation: Encapsulation::Vxlan(Vxlan::default()),
        guest_ip,
        guests,
        ..fixtures::network()
    }
}

/// The network namespaces that a lab's threads are in, as the kernel numbers them.
fn namespaces(lab: &Lab) -> BTreeSet<u64> {
    let of = |task: &u32| {
        let link = fs::read_link(format!("/proc/{task}/ns/net")).expect("a namespace");
        let text = link.to_string_lossy().into_owned();
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    };
    let guests = lab.guest_tids().iter().flatten();
    guests.chain(&lab.pids()).map(of).collect()
}

/// All network namespaces that any thread of this machine is in.
fn all_namespaces() -> BTreeSet<u64> {
    let processes = fs::read_dir("/proc").expect("proc").flatten();
    let tasks = processes.filter_map(|process| fs::read_dir(process.path().join("task")).ok());
    let links = tasks
        .flatten()
        .flatten()
        .filter_map(|task| fs::read_link(task.path().join("ns/net")).ok());
    links
        .filter_map(|link| {
            let text = link.to_string_lossy().into_owned();
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            digits.parse().ok()
        })
        .collect()
}

#[test]
fn sixty_four_guests_on_each_host_are_built_proven_pair_by_pair_and_vanish() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    for guest_ip in IpVersion::ALL {
        let network = network(MAX_GUESTS, guest_ip);
        let mut lab = lab(&network);
        println!("{network}: built in {:.3} s", lab.seconds());
        let ours = namespaces(&lab);
        assert_eq!(ours.len() as u32, 2 * MAX_GUESTS + 2, "one each");
        let addresses: BTreeSet<_> = lab.guest_addresses().concat().into_iter().collect();
        assert_eq!(addresses.len() as u32, 2 * MAX_GUESTS);

        for (profile, mtu) in [(Profile::None, 1500), (Profile::Tunnel, 8950)] {
            let began = std::time::Instant::now();
            let devices = lab
                .adapt(mtu, &Offload::profile(profile), &NEVER)
                .expect("adapted");
            println!("adapted in {:.3} s", began.elapsed().as_secs_f64());
            for device in &devices {
                let wanted = match device.role {
                    Role::Guest | Role::GuestPort => (MAX_GUESTS, mtu),
                    Role::Tunnel => (1, 8950),
                    _ => (1, 9000),
                };
                assert_eq!((device.count, device.mtu), wanted, "{device:?}");
            }
            assert_eq!(devices.len(), 2 * 4);
            let proofs = lab.prove(ProofTime::Before, mtu, &NEVER);
            for proof in proofs.expect("the agents answer") {
                println!("{} probes in {:.3} s", proof.probes, proof.seconds);
                assert!(proof.proven, "{proof:?}");
                assert!(proof.probes >= MAX_GUESTS, "every pair: {proof:?}");
            }
        }

        let pids = lab.pids();
        drop(lab);
        wait_for("the agents to be gone", || {
            pids.iter()
                .all(|pid| state_and_start(*pid).is_none())
                .then_some(())
        });
        wait_for("the namespaces to be gone", || {
            all_namespaces().is_disjoint(&ours).then_some(())
        });
    }
}
