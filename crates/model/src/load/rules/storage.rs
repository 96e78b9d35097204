//! Rules of storage loads.

use super::super::{MAX_EXPORT, MAX_FLUSH_EVERY, SECTOR};
use super::{Fault, Load, unless};

/// The share of reads and the size of the export.
pub(super) fn storage(load: &Load) -> Option<Fault> {
    let storage = load.storage?;
    if !(1..=99).contains(&storage.reads) {
        return unless(false, "reads", || {
            format!("reads is {} %: 1 to 99 of a mix", storage.reads)
        });
    }
    // Size 0 is all of the file or device: its size is known once it is open.
    if load.path.is_some() && storage.size == 0 {
        return None;
    }
    let sectors = storage.size.is_multiple_of(u64::from(SECTOR));
    let fits = (u64::from(load.request)..=MAX_EXPORT).contains(&storage.size) && sectors;
    unless(fits, "size", || {
        format!(
            "an export of {} bytes: a multiple of {SECTOR}, one I/O at least, {MAX_EXPORT} at most",
            storage.size
        )
    })
}

pub(super) fn flushes(load: &Load) -> Option<Fault> {
    let storage = load.storage?;
    if storage.flush_every > MAX_FLUSH_EVERY {
        return unless(false, "flush_every", || {
            format!(
                "flush_every is {}: at most {MAX_FLUSH_EVERY}",
                storage.flush_every
            )
        });
    }
    let fits = storage.flush_every == 0 || storage.pattern.writes();
    unless(fits, "flush_every", || {
        format!("{} has no writes to flush", storage.pattern.name())
    })
}

/// The network's share needs Wirecost's own target, which can also be reached from its own host, and a second window.
pub(super) fn network_share(load: &Load) -> Option<Fault> {
    if !load.storage?.network_share {
        return None;
    }
    let wrong = |words: &str| unless(false, "network_share", || words.to_owned());
    if !load.has_server() {
        return wrong(
            "network_share needs the built-in target: an NBD server or a path cannot be loaded over a Unix socket as \
             well",
        );
    }
    if load.limit.is_some() {
        return wrong(
            "a load with a limit has no second window: leave `limit` or `network_share` out",
        );
    }
    None
}
