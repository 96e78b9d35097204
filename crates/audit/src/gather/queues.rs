//! Features, channels and rings from ethtool; receive and transmit steering (RPS, XPS) from sysfs.

use std::fs;
use std::path::Path;

use wirecost_sys::ethtool::Ethtool;

use crate::snapshot::{Device, Feature};

/// Fills in what ethtool and, where `sysfs` shows this namespace, sysfs say about a device.
pub(super) fn read(ethtool: &Ethtool, sysfs: bool, device: &mut Device) {
    if let Ok(features) = ethtool.features(&device.name) {
        device.features = features
            .into_iter()
            .map(|(name, state)| {
                let feature = Feature {
                    on: state.active,
                    changeable: state.changeable,
                };
                (name, feature)
            })
            .collect();
    }
    if let Ok(channels) = ethtool.channels(&device.name) {
        device.queues.rx = channels.combined + channels.rx;
        device.queues.tx = channels.combined + channels.tx;
    }
    if let Ok(rings) = ethtool.rings(&device.name) {
        device.queues.rx_ring = Some((rings.rx, rings.rx_max));
        device.queues.tx_ring = Some((rings.tx, rings.tx_max));
    }
    let place = Path::new("/sys/class/net").join(&device.name);
    if sysfs && shows(&place, device) {
        device.queues.rps = steered(&place, "rx-", "rps_cpus");
        device.queues.xps = steered(&place, "tx-", "xps_cpus");
    }
}

/// Whether the directory in sysfs is of this device and not of one with the same name in another namespace.
fn shows(place: &Path, device: &Device) -> bool {
    let index = fs::read_to_string(place.join("ifindex")).unwrap_or_default();
    index.trim().parse() == Ok(device.index)
}

/// Number of queues whose CPU mask is not zero.
fn steered(place: &Path, prefix: &str, file: &str) -> u32 {
    let queues = fs::read_dir(place.join("queues"))
        .into_iter()
        .flatten()
        .flatten();
    queues
        .filter(|queue| queue.file_name().to_string_lossy().starts_with(prefix))
        .filter(|queue| {
            let mask = fs::read_to_string(queue.path().join(file)).unwrap_or_default();
            mask.bytes()
                .any(|byte| !matches!(byte, b'0' | b',' | b'\n'))
        })
        .count() as u32
}
