//! Whole tunnels between namespaces: our endpoint with itself, and with the kernel's vxlan.

mod lab;

use lab::{Lab, allowed, bulk, echo};
use wirecost_vtep::{Config, Counter, Format, Tunnel, Vtep};

const MEGABYTE: usize = 1 << 20;

fn both(lab: &Lab, config: impl Fn(usize) -> Config) -> [Vtep; 2] {
    [0, 1].map(|index| lab.endpoint(index, config(index)))
}

#[test]
fn vxlan_carries_both_ways() {
    if !allowed() {
        return;
    }
    let lab = Lab::new(1500, 1450);
    let ends = both(&lab, |index| {
        Config::new(
            "under0",
            Format::Vxlan(Tunnel::vxlan(Lab::host(index + 1, false))),
        )
    });
    for (from, to) in [(0, 1), (1, 0)] {
        let at = Lab::guest(to + 1, false);
        let there = echo(&lab.guests[from], &lab.guests[to], at, 1422);
        if !there {
            for h in &lab.hosts {
                println!("{}", h.ip("neigh"));
            }
        }
        assert!(there, "{:#?}", ends.each_ref().map(Vtep::counters));
        bulk(
            &lab.guests[from],
            &lab.guests[to],
            at,
            20 * MEGABYTE,
            1 << 17,
        );
    }
    for end in ends {
        let counters = end.counters().expect("counters");
        println!("{counters:?}");
        assert_eq!(counters.dropped(), 0, "{counters:?}");
        assert!(counters.get(Counter::Decapsulated) > 100);
        end.detach().expect("detached");
    }
}
