//! A veth pair that segments super-packets. Segmentation offload is off on its sending end, so the
//! kernel segments in software, and the segments arrive one by one at the other end.
//!
//! It is used only with outer checksums, and only for super-packets whose last segment is shorter
//! than the others: the kernel copies the outer header to each segment, but the shorter segment
//! needs another checksum. Only the kernel's own tunnels can ask for outer checksums per segment
//! (SKB_GSO_UDP_TUNNEL_CSUM).

use std::io;

use wirecost_sys::ethtool::Ethtool;

use crate::error::Error;
use crate::link::Links;

/// MTU of the pair, larger than any packet; no packet is longer than the guests' MTU.
const MTU: u32 = 65535;

/// Name of the pair's sending end for an underlay device's interface index. Removing it removes both ends.
pub fn sending_end(underlay: u32) -> String {
    format!("wcseg{underlay}s")
}

/// The veth pair; it is removed by [`Segmenter::remove`] or with its namespace.
#[derive(Debug)]
pub(crate) struct Segmenter {
    pub(crate) sends: String,
    pub(crate) receives: String,
    pub(crate) indexes: (u32, u32),
}

impl Segmenter {
    /// Makes the pair of an underlay device, named after its interface index.
    pub(crate) fn create(links: &mut Links, underlay: u32) -> Result<Self, Error> {
        let (sends, receives) = (sending_end(underlay), format!("wcseg{underlay}r"));
        let failed = |source| Error::Device {
            device: sends.clone(),
            source,
        };
        links
            .create_pair([&sends, &receives], MTU)
            .map_err(failed)?;
        let indexes = Self::set_up(links, &sends, &receives).inspect_err(|_| {
            // A pair that is not set up is useless; the first error is the one to report.
            let _ = links.remove(&sends);
        });
        Ok(Self {
            indexes: indexes.map_err(failed)?,
            sends,
            receives,
        })
    }

    fn set_up(links: &mut Links, sends: &str, receives: &str) -> io::Result<(u32, u32)> {
        let ethtool = Ethtool::open()?;
        let segmentation = ethtool
            .features(sends)?
            .into_keys()
            .filter(|name| {
                name.starts_with("tx-") && name.contains("segmentation") || name == "tx-gso-list"
            })
            .filter(|name| name != "tx-generic-segmentation")
            .map(|name| (name, false))
            .collect();
        ethtool.set_features(sends, &segmentation)?;
        // GRO would join the segments again.
        ethtool.set_features(receives, &[("rx-gro".to_owned(), false)].into())?;
        for device in [sends, receives] {
            links.bring_up(device)?;
        }
        Ok((links.device(sends)?.index, links.device(receives)?.index))
    }

    pub(crate) fn remove(&self, links: &mut Links) -> Result<(), Error> {
        links.remove(&self.sends).map_err(|source| Error::Device {
            device: self.sends.clone(),
            source,
        })
    }
}
