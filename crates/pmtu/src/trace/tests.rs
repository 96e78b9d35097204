//! Traces of simulated paths.

use super::*;
use crate::outcome::Source;

const MS: Duration = Duration::from_millis(1);

fn router(ttl: u8) -> IpAddr {
    [10, 0, ttl, 1].into()
}

/// A path of routers, each link with an MTU; whether a router says that a packet is too big, and whether it reports.
struct Path {
    links: Vec<u32>,
    signals: bool,
    mute: Vec<u8>,
}

fn trace(path: &Path, sizes: &[u32]) -> Vec<TracedHop> {
    let mut tracer = Tracer::new(TraceConfig {
        passing: 64,
        sizes: sizes.to_vec(),
        max_ttl: 30,
        wait: MS * 50,
    });
    let mut now = Duration::ZERO;
    for _ in 0..10_000 {
        if let Some(hops) = tracer.result() {
            return hops.to_vec();
        }
        let Some(probe) = tracer.poll_transmit(now) else {
            now = tracer.next_timeout().unwrap_or(now);
            continue;
        };
        now += MS;
        let ttl = usize::from(probe.ttl);
        let narrow = path
            .links
            .iter()
            .take(ttl)
            .position(|&link| probe.size > link);
        match narrow {
            Some(at) if path.signals => tracer.on_message(HopMessage::TooBig(TooBig {
                mtu: path.links[at],
                source: Source::Router(router(at as u8)),
            })),
            Some(_) => {}
            None if ttl >= path.links.len() => {
                tracer.on_arrived(Some(probe.id), [10, 9, 9, 9].into(), now);
            }
            None if path.mute.contains(&probe.ttl) => {}
            None => tracer.on_expired(Some(probe.id), router(probe.ttl), now),
        }
    }
    panic!("no end: {tracer:?}");
}

fn told(hops: &[TracedHop]) -> Vec<(u8, Option<u32>)> {
    hops.iter().map(|hop| (hop.ttl, hop.reached_by)).collect()
}

#[test]
fn a_wide_path_is_two_packets_a_hop() {
    let path = Path {
        links: vec![1500; 3],
        signals: true,
        mute: vec![],
    };
    let hops = trace(&path, &[576, 1400, 1500]);
    assert_eq!(
        told(&hops),
        [(1, Some(1500)), (2, Some(1500)), (3, Some(1500))]
    );
    assert!(hops[2].destination && hops[0].address == Some(router(1)));
    assert_eq!(hops[0].rtt, Some(MS));
}

#[test]
fn each_narrow_link_shows_at_the_hop_behind_it() {
    for signals in [true, false] {
        let links = vec![9000, 9000, 4352, 1400, 9000];
        let path = Path {
            links,
            signals,
            mute: vec![],
        };
        let hops = trace(&path, &[576, 1280, 1400, 1500, 4352, 8950, 9000]);
        let sizes: Vec<_> = hops.iter().map(|hop| hop.reached_by).collect();
        assert_eq!(sizes, [9000, 9000, 4352, 1400, 1400].map(Some), "{signals}");
        assert_eq!(hops[2].message.is_some(), signals);
    }
}

#[test]
fn hops_that_say_nothing_are_told_as_such_and_end_it_where_they_are_many() {
    let path = Path {
        links: vec![1500; 4],
        signals: true,
        mute: vec![2],
    };
    let hops = trace(&path, &[1500]);
    let sizes: Vec<_> = hops.iter().map(|hop| hop.reached_by).collect();
    assert_eq!(sizes, [Some(1500), None, Some(1500), Some(1500)]);
    let path = Path {
        links: vec![1500; 30],
        signals: true,
        mute: (3..30).collect(),
    };
    let hops = trace(&path, &[1500]);
    assert_eq!(told(&hops), [(1, Some(1500)), (2, Some(1500)), (3, None)]);
}
