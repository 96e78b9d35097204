//! Loads divided evenly among the pairs of guests.

use wirecost_model::load::{Limit, NamedLoad, WaitMode};

/// The share of a load that runs between one pair of guests.
pub(super) struct GuestLoad {
    /// Number of the guest on both hosts, from 0.
    pub(super) guest: u32,
    pub(super) named: NamedLoad,
}

/// Upper bound on the threads of a load on a host, all guests together, where the plan names no number: as many as the
/// load would have with the same flows and a single guest.
const THREADS: u32 = 64;

/// Every load for every pair of guests. Flows are divided evenly, which the plan's checks ensure. Threads are divided
/// too; each guest has at least one.
pub(super) fn divide_among_guests(loads: &[NamedLoad], guests: u32) -> Vec<GuestLoad> {
    let of = |named: &NamedLoad, guest| {
        let mut named = named.clone();
        let load = &mut named.load;
        load.streams = (load.streams / guests).max(1);
        if guests > 1 {
            let usual = match load.waiting {
                WaitMode::Sleep => THREADS,
                // Each spinning thread has a processor to itself.
                WaitMode::Spin => guests,
            };
            let all = load.threads.unwrap_or(usual);
            load.threads = Some((all / guests).clamp(1, load.connections()));
        }
        let part = |all: u64| {
            let (each, rest) = (all / u64::from(guests), all % u64::from(guests));
            each + u64::from(u64::from(guest) < rest)
        };
        load.limit = load.limit.map(|limit| match limit {
            Limit::Time(time) => Limit::Time(time),
            Limit::Bytes(all) => Limit::Bytes(part(all)),
            Limit::Transactions(all) => Limit::Transactions(part(all)),
        });
        GuestLoad { guest, named }
    };
    let pairs = |named| (0..guests).map(move |guest| of(named, guest));
    loads.iter().flat_map(pairs).collect()
}

#[cfg(test)]
mod tests {
    use wirecost_model::load::{Load, Workload};

    use super::*;

    #[test]
    fn a_load_is_divided_evenly_among_guests_and_its_threads_are_not_multiplied() {
        let load = NamedLoad::alone(Load {
            streams: 80,
            ..Load::new(Workload::TcpStream)
        });
        let divided = divide_among_guests(std::slice::from_ref(&load), 16);
        let guests: Vec<u32> = divided.iter().map(|part| part.guest).collect();
        assert_eq!(guests, (0..16).collect::<Vec<_>>());
        for part in &divided {
            assert_eq!(
                (part.named.load.streams, part.named.load.threads),
                (5, Some(4))
            );
        }
        let [whole] = &divide_among_guests(std::slice::from_ref(&load), 1)[..] else {
            panic!("one guest");
        };
        assert_eq!(whole.named, load, "one guest is left to the engine");
        let wide = NamedLoad::alone(Load {
            streams: 1024,
            ..Load::new(Workload::TcpRr)
        });
        let parts = divide_among_guests(&[wide], 64);
        let threads = parts.iter().map(|part| part.named.load.threads);
        assert_eq!(threads.map(Option::unwrap_or_default).sum::<u32>(), 64);
    }

    #[test]
    fn a_limit_is_divided_to_the_last_byte() {
        let load = NamedLoad::alone(Load {
            streams: 3,
            limit: Some(Limit::Bytes(1000)),
            ..Load::new(Workload::TcpStream)
        });
        let parts = divide_among_guests(&[load], 3);
        let limits: Vec<_> = parts.iter().map(|part| part.named.load.limit).collect();
        assert_eq!(
            limits,
            [334, 333, 333].map(|bytes| Some(Limit::Bytes(bytes)))
        );
    }
}
