//! Receive steering (RPS, Documentation/networking/scaling.rst): which cores process what a device receives.
//!
//! A device takes over its namespace's `net.core.rps_default_mask` when it is created, which a user namespace's root
//! may set. A kernel without it (before Linux 6.3) has only the device's own `rps_cpus`, which only root of the machine
//! may write (net/core/net-sysfs.c, `store_rps_map`): the device of an unprivileged user is not steered there.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use wirecost_sys::namespace::{effective_capability, with_own_sysfs};

/// include/uapi/linux/capability.h
const CAP_NET_ADMIN: u32 = 12;
const DEFAULT_MASK: &str = "/proc/sys/net/core/rps_default_mask";

/// Steering for a device that is about to be created in the calling thread's namespace.
#[derive(Debug)]
pub(crate) struct Steering {
    mask: String,
    method: SteeringMethod,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SteeringMethod {
    /// The device takes over the default mask when it is created.
    Default,
    /// The mask is written to the device.
    Device,
}

/// Whether this process may steer what a device of its namespaces receives: by the default mask, or as root of the
/// machine.
pub fn may_steer() -> bool {
    let users = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let of_the_machine = users.split_whitespace().eq(["0", "0", "4294967295"]);
    Path::new(DEFAULT_MASK).exists() || of_the_machine && effective_capability(CAP_NET_ADMIN)
}

/// Steers what a device of the calling thread's namespace receives on so many queues, and reads the masks back. Where
/// the kernel has a default mask, which [`Steering::by_default`] has set, the masks are only read back, if a container
/// allows that.
pub(crate) fn steer(device: &str, queues: u32, cpus: &[u32]) -> io::Result<()> {
    let mask = cpu_mask(cpus);
    let by_default = Path::new(DEFAULT_MASK).exists();
    let steered = with_own_sysfs(|| {
        for queue in (0..queues).filter(|_| !by_default) {
            fs::write(rps_cpus(device, queue), &mask)?;
        }
        Ok::<_, io::Error>(receive_masks(device))
    });
    let found = match steered {
        Err(error) if by_default && error.kind() == ErrorKind::PermissionDenied => return Ok(()),
        steered => steered??,
    };
    if found.len() == queues as usize
        && found.iter().all(|one| mask_value(one) == mask_value(&mask))
    {
        return Ok(());
    }
    let problem = format!("asked for {mask} on {queues} queues, read back {found:?}");
    Err(io::Error::other(problem))
}

impl Steering {
    /// Sets the default mask for all devices that are created in the calling thread's namespace from now on. Does
    /// nothing where the kernel has no default mask: [`steer`] then writes each device's.
    pub(crate) fn by_default(cpus: &[u32]) -> io::Result<()> {
        match fs::write(DEFAULT_MASK, cpu_mask(cpus)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            written => written,
        }
    }

    /// Begins steering: to be called before the device is created.
    pub(crate) fn begin(cpus: &[u32]) -> io::Result<Self> {
        let mask = cpu_mask(cpus);
        let method = match fs::write(DEFAULT_MASK, &mask) {
            Ok(()) => SteeringMethod::Default,
            Err(error) if error.kind() == ErrorKind::NotFound => SteeringMethod::Device,
            Err(error) => return Err(error),
        };
        Ok(Self { mask, method })
    }

    /// Ends steering: to be called after the device was created with so many receive queues. Devices created later are
    /// not steered. `false` where the kernel has no default mask and this user may not write the device's: the device
    /// is then not steered either.
    pub(crate) fn end(self, device: &str, queues: u32) -> io::Result<bool> {
        if self.method == SteeringMethod::Default {
            return fs::write(DEFAULT_MASK, "0").map(|()| true);
        }
        for queue in 0..queues {
            match fs::write(rps_cpus(device, queue), &self.mask) {
                Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(false),
                written => written?,
            }
        }
        Ok(true)
    }
}

/// Writes the steering mask of each receive queue in use: `masks` has one for all, or one for each in their order.
pub(crate) fn write_masks(device: &str, masks: &str) -> io::Result<()> {
    let masks: Vec<&str> = masks.split_whitespace().collect();
    for queue in 0..receive_masks(device).len() as u32 {
        let mask = masks.get(queue as usize).or(masks.last());
        let none = || io::Error::from(ErrorKind::InvalidInput);
        fs::write(rps_cpus(device, queue), in_words(mask.ok_or_else(none)?))?;
    }
    Ok(())
}

fn rps_cpus(device: &str, queue: u32) -> String {
    format!("/sys/class/net/{device}/queues/rx-{queue}/rps_cpus")
}

/// A bitmap of CPUs as /proc and /sys write it: 32-bit words in hex, the highest first.
pub(crate) fn cpu_mask(cpus: &[u32]) -> String {
    let words = cpus.iter().max().map_or(1, |highest| highest / 32 + 1);
    let word = |index: u32| {
        let bits = cpus.iter().filter(|&&cpu| cpu / 32 == index);
        format!(
            "{:08x}",
            bits.fold(0u32, |word, cpu| word | 1 << (cpu % 32))
        )
    };
    (0..words).rev().map(word).collect::<Vec<_>>().join(",")
}

/// A mask in hex digits as the kernel takes it: a comma after every 32-bit word (lib/bitmap.c, `bitmap_parse`).
fn in_words(mask: &str) -> String {
    let digits = format!("{:0>8}", mask_value(mask));
    let words = digits.as_bytes().rchunks(8).rev();
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    words.join(",")
}

/// Canonical form of a mask, without commas and leading zeros, in small letters.
pub(crate) fn mask_value(mask: &str) -> String {
    let digits: String = mask.trim().chars().filter(|c| *c != ',').collect();
    digits.trim_start_matches('0').to_ascii_lowercase()
}

/// Steering mask of a device's first receive queue; `None` where this namespace's sysfs is not mounted.
pub(crate) fn receive_mask(device: &str) -> Option<String> {
    receive_masks(device).into_iter().next()
}

/// Steering mask of each receive queue in use; empty where this namespace's sysfs is not mounted.
pub(crate) fn receive_masks(device: &str) -> Vec<String> {
    (0..)
        .map_while(|queue| fs::read_to_string(rps_cpus(device, queue)).ok())
        .map(|text| text.trim().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use wirecost_sys::namespace::{self, UserNamespace};

    use super::*;

    #[test]
    fn masks_are_written_as_the_kernel_reads_them() {
        assert_eq!(cpu_mask(&[0, 1]), "00000003");
        assert_eq!(cpu_mask(&[1, 33]), "00000002,00000002");
        assert_eq!(mask_value("00000000,00000002"), mask_value("2"));
        assert_ne!(mask_value("00000002,00000000"), mask_value("2"));
        assert_eq!(mask_value("000000ff"), mask_value("FF"));
        for (written, taken) in [
            ("0", "00000000"),
            ("3", "00000003"),
            ("0100000001", "1,00000001"),
            ("0000000000ff", "000000ff"),
            ("00000002,00000000", "2,00000000"),
        ] {
            assert_eq!(in_words(written), taken);
        }
    }

    /// What a kernel without a default mask comes to, on a device that is there already.
    #[test]
    fn without_a_default_mask_root_steers_the_device_itself() {
        let steered = std::thread::spawn(|| {
            // This thread's own namespaces, which end with it.
            namespace::isolate(UserNamespace::Keep)?;
            namespace::mount_own_sysfs()?;
            let steering = Steering {
                mask: cpu_mask(&[0]),
                method: SteeringMethod::Device,
            };
            steering.end("lo", 1)?;
            Ok::<_, io::Error>(receive_mask("lo"))
        });
        match steered.join().expect("the thread") {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                wirecost_skips::skip(format!("this needs root: {error}"));
            }
            mask => {
                let mask = mask.expect("namespaces").expect("a queue");
                assert_eq!(mask_value(&mask), "1");
            }
        }
    }
}
