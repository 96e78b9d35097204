//! Tunnels over switches, routers and equal paths: built, proven at exactly what they carry, measured.

use crate::common::{Record, TestDir, lab_can_be_built, lock_shared, run, wirecost};
use crate::direct_lab::{NEVER, lab};
use wirecost_control::Lab;
use wirecost_model::cell::Network;
use wirecost_model::fixtures;
use wirecost_model::ip::IpVersion::{self, Ipv4, Ipv6};
use wirecost_model::offload::{Offload, Profile};
use wirecost_model::plan::{Encapsulation, Vxlan};
use wirecost_model::sample::{Proof, ProofTime};
use wirecost_model::transit::{Hop, HopKind, Icmp, Member, Transit};

fn network(transit: Transit, encapsulation: Encapsulation, ip: IpVersion) -> Network {
    Network {
        underlay_ip: ip,
        encapsulation,
        guests: 2,
        transit,
        ..fixtures::network()
    }
}

fn prove(lab: &mut Lab, size: u32) -> Vec<Proof> {
    let offload = Offload::profile(Profile::None);
    lab.adapt(size, &offload, &NEVER).expect("adapted");
    lab.prove(ProofTime::Before, size, &NEVER)
        .expect("the agents answer")
}

#[test]
fn a_path_is_proven_at_exactly_what_its_narrowest_hop_carries() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let vxlan = || Encapsulation::Vxlan(Vxlan::default());
    let switches = || Transit {
        hops: vec![
            Hop::new(HopKind::Switch, 9000),
            Hop::new(HopKind::Switch, 8192),
        ],
        paths: vec![],
    };
    let member = |mtu| Member {
        mtu,
        icmp: Icmp::Filtered,
    };
    let routed = || Transit {
        hops: vec![
            Hop::new(HopKind::Switch, 8950),
            Hop::new(HopKind::Router, 8900),
        ],
        paths: vec![member(None), member(Some(8800)), member(Some(8800))],
    };
    for network in [
        network(switches(), Encapsulation::None, Ipv4),
        network(switches(), vxlan(), Ipv4),
        network(switches(), vxlan(), Ipv6),
        network(routed(), vxlan(), Ipv4),
        network(routed(), vxlan(), Ipv6),
    ] {
        let mut lab = lab(&network);
        let largest = network.path_mtu() - network.overhead_bytes();
        println!("{network}: {largest}, built in {:.3} s", lab.seconds());
        for proof in prove(&mut lab, largest) {
            assert!(proof.proven, "{network}: {proof:?}");
            let seen = proof.seen.expect("looked for");
            assert_eq!(seen.outer_ip_bytes, network.path_mtu(), "{network}");
        }
        if network.transit.is_routed() {
            // What one flow meets of several paths is chance.
            continue;
        }
        for proof in prove(&mut lab, largest + 1) {
            assert!(!proof.proven, "{network}: {proof:?}");
            let reason = proof.reason.expect("a reason");
            assert!(
                reason.contains(&(largest + 1).to_string()),
                "{network}: {reason}"
            );
        }
    }
}

#[test]
fn a_plan_with_hops_runs_and_its_record_says_what_was_between_the_hosts() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(
        "\
name: hops
underlay: { mtu: 9000, hops: [{ switch: { mtu: 8950 } }, { router: { mtu: 9000 } }], paths: 2 }
encapsulation: vxlan
guest_mtu: [1500, max]
guests: [1, 3]
offload: [none, tunnel]
repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }
",
    );
    let ended = run(place.run_command(&plan, "out").arg("--json"));
    ended.expect_code(0);
    let record = Record::read(&place.path().join("out")).expect("a record");
    assert_eq!(record.samples.len(), 8);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None, "{sample:#?}");
        let cell = &record.head.experiment.cells[sample.cell as usize];
        assert_eq!(cell.network.transit.hops.len(), 2);
        let wanted = if cell.levels["guest_mtu"] == "max" {
            8900
        } else {
            1500
        };
        assert_eq!(cell.guest_mtu, wanted);
        let flows = &sample.loads[0].flows;
        assert_eq!(flows.len() as u32, cell.network.guests, "one for each pair");
        assert!(flows.iter().all(|flow| flow.bytes > 0), "{flows:#?}");
    }
}

#[test]
fn a_guest_mtu_that_a_hop_drops_is_found_where_the_plan_asks_for_it() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let text = |oversize| {
        format!(
            "name: narrow\nunderlay: {{ mtu: 9000, hops: [{{ switch: {{ mtu: 1500 }} }}], oversize: {oversize} }}\n\
             guest_mtu: 9000\nrepeat: {{ rounds: 1, seconds: 0.4, warmup: 0.05 }}\n"
        )
    };
    let refused = run(wirecost(["run", "--dry-run"]).arg(place.plan(&text("refuse"))));
    refused.expect_code(2);
    assert!(
        refused.stderr.contains("underlay.oversize: send"),
        "{refused:#?}"
    );

    let ended = run(place
        .run_command(&place.plan(&text("send")), "out")
        .arg("--json"));
    println!("{ended:#?}");
    let record = Record::read(&place.path().join("out")).expect("a record");
    let reason = record.samples[0]
        .invalid
        .as_ref()
        .expect("no proof")
        .reason();
    assert!(reason.contains("1500"), "{reason}");
}
