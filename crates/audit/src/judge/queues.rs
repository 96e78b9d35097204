//! Transmit queues: the queueing discipline of a device without room for a packet.

use super::Findings;
use crate::snapshot::{Device, HostStack, Namespace};

/// Length of the transmit queue that the fix sets: the kernel's default (`DEFAULT_TX_QUEUE_LEN`), packets.
const DEFAULT_LENGTH: u32 = 1000;
/// Size of an Ethernet header, bytes: the kernel counts it in the limit of a `bfifo` (`psched_mtu`).
const HEADER: u32 = 14;

pub(super) fn judge(stack: &HostStack, found: &mut Findings<'_>) {
    for namespace in &stack.namespaces {
        for device in namespace.devices.iter().filter(|device| device.up) {
            without_room(namespace, device, found);
        }
    }
}

/// A queue that takes its limit from the transmit queue length, where that is or was 0. A `pfifo_fast` follows the
/// length (net/sched/sch_generic.c, `pfifo_fast_change_tx_queue_len`); `pfifo` and `bfifo` read it once, when they are
/// made without a limit of their own (net/sched/sch_fifo.c, `fifo_init`; before Linux 4.3 at least one packet), so
/// that their own limit counts.
fn without_room(namespace: &Namespace, device: &Device, found: &mut Findings<'_>) {
    let Device { name, qdisc, .. } = device;
    let frame = device.mtu.saturating_add(HEADER);
    let (room, limit) = match qdisc.as_str() {
        "pfifo_fast" => (device.tx_queue_len, None),
        "pfifo" => (device.qdisc_limit, Some(DEFAULT_LENGTH)),
        "bfifo" => (
            device.qdisc_limit.map(|limit| limit / frame),
            Some(frame.saturating_mul(DEFAULT_LENGTH)),
        ),
        _ => return,
    };
    let (Some(room), Some(length)) = (room, device.tx_queue_len) else {
        return;
    };
    // One packet, and a length that is not 0: somebody wanted it so.
    if room > 1 || (room == 1 && length != 0) {
        return;
    }
    // A pfifo_fast is bypassed while the device is idle, a fifo with room for less than one packet is not.
    let lost = match (room, limit) {
        (0, Some(_)) => "all of them are dropped",
        _ => "packets sent while the device is busy are dropped",
    };
    let mut fix = vec![format!(
        "ip link set dev {name} txqueuelen {DEFAULT_LENGTH}"
    )];
    fix.extend(limit.map(|limit| {
        let replace = format!("tc qdisc replace dev {name} root {qdisc}");
        format!("{replace} limit {limit}")
    }));
    found.add(
        "transmit-queue-zero",
        Some(namespace),
        Some(name),
        format!(
            "{name} has a transmit queue length of {length}, and its queueing discipline {qdisc} has room for {room} \
             packets of {} bytes: {lost}",
            device.mtu
        ),
        fix.iter()
            .map(|command| namespace.enter.command(command))
            .collect(),
    );
}
