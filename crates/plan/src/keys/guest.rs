//! Keys of guests, offloads and steering.

use wirecost_model::cell::MAX_GUESTS;
use wirecost_model::steering::MAX_QUEUES;

use super::Presence::Default;
use super::{BASE, IP, Key, Kind, MTU, ON_OFF, from_to};

keys! {
    GUEST_MTU "guest_mtu" Whole {
        words: &["max"], range: MTU, presence: Default("max"), factor: true, example: "8900",
    }
        "MTU of the guests' devices in bytes; `max` is the underlay's less the encapsulation's overhead.";

    GUEST_IP "guest_ip" Word { words: IP, presence: Default("ipv4"), factor: true, example: "[ipv4, ipv6]" }
        "IP version of the guests; `ipv6` needs a `guest_mtu` of at least 1280 (RFC 8200).";

    GUESTS "guests" Whole { range: from_to(1.0, MAX_GUESTS as f64), presence: Default("1"), factor: true, example: "16" }
        "Number of guests of each host, each in its own network namespace behind the host's bridge. Guest i of host a \
         talks to guest i of host b.";

    OFFLOAD "offload" Map {
        words: &["none", "plain", "tunnel"], presence: Default("tunnel"), factor: true,
        example: "{ profile: tunnel, tso: off }",
    }
        "Offloads, the same on every device of the path: a profile, or a profile with single switches changed.";
    OFFLOAD_PROFILE "offload.profile" Word {
        words: &["none", "plain", "tunnel"], presence: Default("tunnel"), example: "none",
    }
        "The profile to start from.";
    OFFLOAD_TSO "offload.tso" Word { words: ON_OFF, example: "off" }
        "TCP segmentation offload.";
    OFFLOAD_GSO "offload.gso" Word { words: ON_OFF, example: "on" }
        "Generic segmentation offload, of datagrams sent with `segmentation_offload`; TCP ignores it.";
    OFFLOAD_GRO "offload.gro" Word { words: ON_OFF, example: "on" }
        "Generic receive offload, by the receiving guest's device, where frames arrive one by one.";
    OFFLOAD_TUNNEL "offload.tunnel_segmentation" Word { words: ON_OFF, example: "off" }
        "Segmentation of super-packets inside a tunnel.";
    OFFLOAD_CHECKSUM "offload.checksum" Word { words: &["software", "hardware"], example: "software" }
        "Where checksums are computed and verified.";

    STEERING "steering" Map { example: "{ queues: [1, 2], rps: [own, off] }" }
        "How received packets are spread over queues and cores.";
    STEERING_QUEUES "steering.queues" Whole {
        range: from_to(1.0, MAX_QUEUES as f64), presence: Default("1"), factor: true, example: "2",
    }
        "Transmit and receive queues of every veth of the path: the underlay's, and between guest and host.";
    STEERING_RPS "steering.rps" Mask {
        words: &["own", "off", "all"], presence: Default("own"), factor: true, example: "0x3",
    }
        "Receive packet steering of the underlay's devices: `own` is each host's own cores (none where `cores` is \
         `shared`), `off` none, `all` every core of the run. Where receive work may leave the host's own cores, \
         sender and receiver CPU cannot be separated, and the result says so.";
}
