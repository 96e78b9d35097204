//! The machine that a journal is of: several machines may have the same home directory (NFS).
//!
//! Name and machine-id (machine-id(5)) must both be the same. Machines may have the same name (`localhost`), cloned
//! images and containers the same machine-id. To undo on the wrong machine is worse than to leave a journal, so that
//! one of a machine with a new name is left.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

const ID: &str = "/etc/machine-id";

/// This machine, as journals name it: `NAME.ID`, or `NAME` without a machine-id. Empty for root, whose directory is
/// the machine's own, so that a new name does not hide journals.
pub(super) fn this() -> io::Result<String> {
    if nix::unistd::geteuid().is_root() {
        return Ok(String::new());
    }
    let name = fs::read_to_string("/proc/sys/kernel/hostname")?;
    let id = fs::read_to_string(ID).unwrap_or_default();
    let id = if is_transient() { "" } else { id.trim() };
    Ok(written(&name, id))
}

/// Whether the machine-id is made anew at each boot, as on a host without a disk: systemd mounts it over a read-only
/// file (machine-id(5)).
fn is_transient() -> bool {
    let file = |path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
    match (file(ID), file("/run/machine-id")) {
        (Ok(id), Ok(transient)) => id == transient,
        _ => false,
    }
}

/// The name, of letters, digits, `-` and `_`, and a hash of the machine-id, which is not to be shown to others
/// (machine-id(5)).
fn written(name: &str, id: &str) -> String {
    let is_plain = |sign: &char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_');
    let mut machine: String = name.chars().filter(is_plain).collect();
    if is_machine_id(id) {
        machine.push('.');
        let hash = Sha256::digest(format!("wirecost journal {id}"));
        machine.push_str(&HEXLOWER.encode(&hash[..16]));
    }
    machine
}

/// Whether it is an id: in an image it is empty or `uninitialized` until the first boot.
fn is_machine_id(id: &str) -> bool {
    let is_hexadecimal = |sign: char| matches!(sign, '0'..='9' | 'a'..='f');
    id.len() == 32 && id.chars().all(is_hexadecimal) && id.chars().any(|sign| sign != '0')
}

fn parts(machine: &str) -> (&str, &str) {
    machine.split_once('.').unwrap_or((machine, ""))
}

/// The name of a machine that a journal names.
pub(super) fn name(machine: &str) -> &str {
    parts(machine).0
}

/// Whether it has a machine-id.
pub(super) fn has_id(machine: &str) -> bool {
    !parts(machine).1.is_empty()
}

/// Whether the machine that a journal names is this one. Earlier versions wrote no machine-id.
pub(super) fn is_this(machine: &str, this: &str) -> bool {
    let ((name, id), (own_name, own_id)) = (parts(machine), parts(this));
    name == own_name && (id.is_empty() || id == own_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3d1219c7c4c5404aaa1f6d2a48adfda4";

    #[test]
    fn a_machine_is_told_by_its_name_and_by_its_id_where_it_has_one() {
        let this = written("db-1\n", ID);
        assert_eq!(name(&this), "db-1");
        assert!(!this.contains(ID), "{this}");
        let other_id = ID.replace('3', "4");
        for (machine, is_same) in [
            (written("db-1", ID), true),
            (written("db-1", ""), true),
            (written("db-2", ID), false),
            (written("db-1", &other_id), false),
        ] {
            assert_eq!(is_this(&machine, &this), is_same, "{machine}");
        }
        assert!(!is_this(&this, "db-1"), "it had a machine-id");
    }

    #[test]
    fn what_is_no_machine_id_is_left_out() {
        let (upper, zeros) = (ID.to_uppercase(), "0".repeat(32));
        for id in [
            "",
            "uninitialized",
            &ID[1..],
            upper.as_str(),
            zeros.as_str(),
        ] {
            assert_eq!(written("db.1", id), "db1", "{id}");
        }
    }
}
