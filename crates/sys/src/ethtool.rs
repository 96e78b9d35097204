//! Device features through the ethtool ioctl (include/uapi/linux/ethtool.h): names, state, change.

#![expect(
    unsafe_code,
    reason = "SIOCETHTOOL takes a raw pointer in struct ifreq"
)]

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_SRINGPARAM: u32 = 0x11;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_SCHANNELS: u32 = 0x3d;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
const ETH_GSTRING_LEN: usize = 32;
const SIOCETHTOOL: u64 = 0x8946;

/// One feature of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureState {
    /// Whether the feature is on.
    pub active: bool,
    /// Whether the user wants it on; it may be off all the same, such as segmentation while checksums are off.
    pub requested: bool,
    /// Whether the user can change it (`ethtool -k` prints the others as `[fixed]`).
    pub changeable: bool,
}

/// Sizes of a device's descriptor rings, in descriptors: current and maximum (`ethtool -g`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings {
    /// Receive ring, current size.
    pub rx: u32,
    /// Receive ring, maximum size.
    pub rx_max: u32,
    /// Transmit ring, current size.
    pub tx: u32,
    /// Transmit ring, maximum size.
    pub tx_max: u32,
}

/// Numbers of a device's queues, each with an interrupt of its own (`ethtool -l`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// Queues that only receive.
    pub rx: u32,
    /// Queues that only transmit.
    pub tx: u32,
    /// Queues that do both.
    pub combined: u32,
    /// Upper bound on `combined`.
    pub combined_max: u32,
}

/// A handle for the devices of the network namespace it was opened in.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
}

impl Ethtool {
    /// Opens a handle in the calling thread's network namespace; it stays valid when the thread leaves that.
    pub fn open() -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Inet,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            None,
        )?;
        Ok(Self { socket })
    }

    /// Features of a device by the kernel's name. Features that are off and cannot be changed are left out: the device
    /// does not have them.
    ///
    /// # Errors
    /// `ENODEV` for an unknown device.
    pub fn features(&self, device: &str) -> io::Result<BTreeMap<String, FeatureState>> {
        let names = self.names(device)?;
        let blocks = names.len().div_ceil(32);
        let mut words = vec![0u32; 2 + 4 * blocks];
        words[0] = ETHTOOL_GFEATURES;
        words[1] = blocks as u32;
        self.call(device, &mut words)?;
        let bit = |field: usize, index: usize| {
            words[2 + 4 * (index / 32) + field] & (1 << (index % 32)) != 0
        };
        let (available, requested, active, never_changed) = (0, 1, 2, 3);
        Ok(names
            .into_iter()
            .enumerate()
            .filter(|(_, name)| !name.is_empty())
            .map(|(index, name)| {
                let changeable = bit(available, index) && !bit(never_changed, index);
                (
                    name,
                    FeatureState {
                        active: bit(active, index),
                        requested: bit(requested, index),
                        changeable,
                    },
                )
            })
            .filter(|(_, state)| state.changeable || state.active)
            .collect())
    }

    /// Whether this kernel knows a feature of that name, whether the device supports it or not.
    pub fn knows(&self, device: &str, feature: &str) -> io::Result<bool> {
        Ok(self.names(device)?.iter().any(|name| name == feature))
    }

    /// Requests features to be on or off, all in one call. Names that the device does not have are ignored, and the
    /// kernel may fulfil the request only in part: read the result back.
    pub fn set_features(&self, device: &str, wanted: &BTreeMap<String, bool>) -> io::Result<()> {
        let names = self.names(device)?;
        let blocks = names.len().div_ceil(32);
        let mut words = vec![0u32; 2 + 2 * blocks];
        words[0] = ETHTOOL_SFEATURES;
        words[1] = blocks as u32;
        let (valid, requested) = (0, 1);
        for (index, name) in names.iter().enumerate() {
            let Some(&on) = wanted.get(name) else {
                continue;
            };
            let block = 2 + 2 * (index / 32);
            words[block + valid] |= 1 << (index % 32);
            if on {
                words[block + requested] |= 1 << (index % 32);
            }
        }
        self.call(device, &mut words)
    }

    /// Name of the device's driver (struct ethtool_drvinfo).
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the driver does not report it.
    pub fn driver(&self, device: &str) -> io::Result<String> {
        // struct ethtool_drvinfo: cmd, driver and four more strings of 32 bytes, 12 reserved bytes, five counts.
        let mut words = [0; 49];
        words[0] = ETHTOOL_GDRVINFO;
        self.call(device, &mut words)?;
        let bytes = words[1..9].iter().flat_map(|word| word.to_ne_bytes());
        let name: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// Speed of the device's link in Mbit/s (struct ethtool_cmd: `speed` and `speed_hi`, which the kernel fills in from
    /// link settings of every kind); `None` where the driver does not know.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the driver does not report it.
    pub fn speed(&self, device: &str) -> io::Result<Option<u32>> {
        let mut words = [0; 11];
        words[0] = ETHTOOL_GSET;
        self.call(device, &mut words)?;
        let half = |word: u32, at: usize| {
            let bytes = word.to_ne_bytes();
            u32::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]))
        };
        // struct ethtool_cmd, by word: 0 cmd, 3 speed and two bytes, 5 maxtxpkt, 6 maxrxpkt, 7 speed_hi and two bytes.
        let speed = half(words[7], 0) << 16 | half(words[3], 0);
        let unknown = [0, u32::from(u16::MAX), u32::MAX];
        Ok((!unknown.contains(&speed)).then_some(speed))
    }

    /// Sizes of the device's rings (struct ethtool_ringparam).
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the device has no rings.
    pub fn rings(&self, device: &str) -> io::Result<Rings> {
        let mut words = [0; 9];
        words[0] = ETHTOOL_GRINGPARAM;
        self.call(device, &mut words)?;
        Ok(Rings {
            rx_max: words[1],
            tx_max: words[4],
            rx: words[5],
            tx: words[8],
        })
    }

    /// Numbers of the device's queues (struct ethtool_channels).
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the driver does not report them.
    pub fn channels(&self, device: &str) -> io::Result<Channels> {
        let mut words = [0; 9];
        words[0] = ETHTOOL_GCHANNELS;
        self.call(device, &mut words)?;
        Ok(Channels {
            combined_max: words[4],
            rx: words[5],
            tx: words[6],
            combined: words[8],
        })
    }

    /// Sets the sizes of the rings, in descriptors; `None` keeps the current size.
    ///
    /// # Errors
    /// `EINVAL` beyond the device's maximum, `EOPNOTSUPP` where it has no rings.
    pub fn set_rings(&self, device: &str, rx: Option<u32>, tx: Option<u32>) -> io::Result<()> {
        let mut words = [0; 9];
        words[0] = ETHTOOL_GRINGPARAM;
        self.call(device, &mut words)?;
        words[0] = ETHTOOL_SRINGPARAM;
        words[5] = rx.unwrap_or(words[5]);
        words[8] = tx.unwrap_or(words[8]);
        self.call(device, &mut words)
    }

    /// Sets the number of combined queues.
    ///
    /// # Errors
    /// `EINVAL` beyond the device's maximum, `EOPNOTSUPP` where the driver has no such queues.
    pub fn set_combined(&self, device: &str, queues: u32) -> io::Result<()> {
        let mut words = [0; 9];
        words[0] = ETHTOOL_GCHANNELS;
        self.call(device, &mut words)?;
        words[0] = ETHTOOL_SCHANNELS;
        words[8] = queues;
        self.call(device, &mut words)
    }

    fn names(&self, device: &str) -> io::Result<Vec<String>> {
        // struct ethtool_sset_info: cmd, reserved, u64 mask, u32 counts[].
        let mut info = [ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0, 0];
        self.call(device, &mut info)?;
        let count = info[4] as usize;
        // struct ethtool_gstrings: cmd, string_set, len, then len strings of 32 bytes.
        let mut words = vec![0u32; 3 + count * ETH_GSTRING_LEN / 4];
        words[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32]);
        self.call(device, &mut words)?;
        let bytes: Vec<u8> = words[3..]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        Ok(bytes
            .chunks_exact(ETH_GSTRING_LEN)
            .map(|raw| {
                let end = raw.iter().position(|&byte| byte == 0).unwrap_or(raw.len());
                String::from_utf8_lossy(&raw[..end]).into_owned()
            })
            .collect())
    }

    /// One ioctl. `words` is the complete variable-length structure; its header says how much of it the kernel may
    /// write, and every caller sizes it so.
    fn call(&self, device: &str, words: &mut [u32]) -> io::Result<()> {
        if device.len() >= libc::IFNAMSIZ {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "device name too long",
            ));
        }
        // SAFETY: an all-zero ifreq is valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: the name is terminated (checked above), ifr_data points at a buffer as long as
        // its own header announces, and both outlive the call.
        let result =
            unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_named_features() {
        let features = Ethtool::open().expect("socket").features("lo").expect("lo");
        assert!(features.contains_key("tx-tcp-segmentation"), "{features:?}");
        assert!(!features["loopback"].changeable);
        let ethtool = Ethtool::open().expect("socket");
        assert!(ethtool.knows("lo", "rx-lro").expect("lo"));
        assert!(!ethtool.knows("lo", "gro").expect("lo"), "a short name");
    }

    #[test]
    fn an_unknown_device_is_an_error() {
        assert!(
            Ethtool::open()
                .expect("socket")
                .features("no-such-dev")
                .is_err()
        );
    }
}
