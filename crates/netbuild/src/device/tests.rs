use std::net::{Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{Emitable, Nla};

use netlink_packet_route::link::{InfoData, InfoVxlan};
use wirecost_model::plan::{Geneve, OuterDf, SourcePorts, Vxlan};

use super::tunnel::{geneve_attributes, geneve_of, vlan_data, vxlan_attributes, vxlan_of};
use super::*;

fn bytes<T: Nla>(attributes: &[T]) -> Vec<u8> {
    let mut bytes = vec![0; attributes.buffer_len()];
    attributes.emit(&mut bytes);
    bytes
}

const V6: (Ipv6Addr, Ipv6Addr) = (
    Ipv6Addr::new(0x2001, 2, 0, 0x18, 0, 0, 0, 1),
    Ipv6Addr::new(0x2001, 2, 0, 0x18, 0, 0, 0, 2),
);

#[test]
fn a_tunnel_over_ipv6_has_ifla_vxlan_group6_and_local6_and_may_send_and_take_zero_checksums() {
    let ends = (V6.0.into(), V6.1.into());
    let sent = bytes(&vxlan_attributes(&Vxlan::default(), ends, 7)[..]);
    let expected: Vec<u8> = [
        &[8u8, 0, 1, 0, 42, 0, 0, 0][..], // IFLA_VXLAN_ID 42
        &[8, 0, 3, 0, 7, 0, 0, 0],        // IFLA_VXLAN_LINK 7
        &[6, 0, 15, 0, 0x12, 0xb5, 0, 0], // IFLA_VXLAN_PORT 4789, big-endian
        &[5, 0, 7, 0, 1, 0, 0, 0],        // IFLA_VXLAN_LEARNING
        &[5, 0, 18, 0, 0, 0, 0, 0],       // IFLA_VXLAN_UDP_CSUM off: IPv4's
        &[5, 0, 19, 0, 1, 0, 0, 0],       // IFLA_VXLAN_UDP_ZERO_CSUM6_TX on
        &[5, 0, 20, 0, 1, 0, 0, 0],       // IFLA_VXLAN_UDP_ZERO_CSUM6_RX on
        &[5, 0, 29, 0, 0, 0, 0, 0],       // IFLA_VXLAN_DF unset
        &[20, 0, 17, 0],                  // IFLA_VXLAN_LOCAL6
        &V6.0.octets(),
        &[20, 0, 16, 0], // IFLA_VXLAN_GROUP6
        &V6.1.octets(),
    ]
    .concat();
    assert_eq!(sent, expected);
}

#[test]
fn a_checksum_that_is_wanted_is_neither_left_out_nor_taken_as_zero() {
    let wanted = Vxlan {
        udp_checksum: true,
        ..Vxlan::default()
    };
    let ends = (V6.0.into(), V6.1.into());
    let attributes = vxlan_attributes(&wanted, ends, 7);
    assert!(attributes.contains(&InfoVxlan::UDPZeroCsumTX(false)));
    assert!(attributes.contains(&InfoVxlan::UDPZeroCsumRX(false)));
}

#[test]
fn a_tunnels_options_read_back_over_either_ip() {
    let v4 = (Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2));
    let ends: [(IpAddr, IpAddr); 2] = [(v4.0.into(), v4.1.into()), (V6.0.into(), V6.1.into())];
    for ends in ends {
        for udp_checksum in [false, true] {
            let wanted = Vxlan {
                udp_checksum,
                ..Vxlan::default()
            };
            let sent = vxlan_attributes(&wanted, ends, 7);
            let read = vxlan_of(sent.iter());
            assert_eq!(read, (wanted, [Some(ends.0), Some(ends.1)]));
        }
    }
    // A kernel that took one side of it only did not apply it.
    let half = [
        InfoVxlan::Group6(V6.1),
        InfoVxlan::UDPZeroCsumTX(true),
        InfoVxlan::UDPZeroCsumRX(false),
    ];
    assert!(vxlan_of(half.iter()).0.udp_checksum);
}

#[test]
fn a_range_of_source_ports_is_ifla_vxlan_port_range_in_network_order_and_reads_back() {
    let ends = (
        Ipv4Addr::new(198, 18, 0, 1).into(),
        Ipv4Addr::new(198, 18, 0, 2).into(),
    );
    let wanted = Vxlan {
        source_ports: SourcePorts::parse("49152-65535"),
        ..Vxlan::default()
    };
    let attributes = vxlan_attributes(&wanted, ends, 7);
    let range = attributes.last().expect("attributes");
    assert_eq!(
        bytes(&[range.clone()][..]),
        [8, 0, 10, 0, 0xc0, 0, 0xff, 0xff]
    );
    assert_eq!(vxlan_of(attributes.iter()).0, wanted);
    // A device without one says so with zeros.
    let none = [InfoVxlan::PortRange((0, 0))];
    assert_eq!(vxlan_of(none.iter()).0.source_ports, None);
}

#[test]
fn a_geneve_tunnel_has_its_remote_and_tells_of_the_checksums_of_both_ips() {
    let geneve = Geneve {
        vni: 0x12_3456,
        df: OuterDf::Set,
        ..Geneve::default()
    };
    let sent = bytes(&geneve_attributes(&geneve, Ipv4Addr::new(198, 18, 0, 2).into())[..]);
    let expected: Vec<u8> = [
        [8u8, 0, 1, 0, 0x56, 0x34, 0x12, 0], // IFLA_GENEVE_ID
        [8, 0, 2, 0, 198, 18, 0, 2],         // IFLA_GENEVE_REMOTE
        [6, 0, 5, 0, 0x17, 0xc1, 0, 0],      // IFLA_GENEVE_PORT 6081, big-endian
        [5, 0, 8, 0, 0, 0, 0, 0],            // IFLA_GENEVE_UDP_CSUM off: IPv4's
        [5, 0, 9, 0, 1, 0, 0, 0],            // IFLA_GENEVE_UDP_ZERO_CSUM6_TX on
        [5, 0, 10, 0, 1, 0, 0, 0],           // IFLA_GENEVE_UDP_ZERO_CSUM6_RX on
        [5, 0, 13, 0, 1, 0, 0, 0],           // IFLA_GENEVE_DF set
    ]
    .concat();
    assert_eq!(sent, expected);
    let six = bytes(&geneve_attributes(&geneve, V6.1.into())[..]);
    assert_eq!(six[8..12], [20, 0, 7, 0]); // IFLA_GENEVE_REMOTE6
    assert_eq!(six[12..28], V6.1.octets());
}

#[test]
fn a_geneve_tunnels_options_read_back_over_either_ip() {
    for remote in [IpAddr::from(Ipv4Addr::new(198, 18, 0, 2)), V6.1.into()] {
        for udp_checksum in [false, true] {
            let wanted = Geneve {
                udp_checksum,
                df: OuterDf::Inherit,
                ..Geneve::default()
            };
            let sent = geneve_attributes(&wanted, remote);
            assert_eq!(geneve_of(sent.iter()), (wanted, Some(remote)));
        }
    }
}

#[test]
fn a_vlan_device_has_ifla_vlan_id() {
    let InfoData::Vlan(attributes) = vlan_data(100) else {
        panic!("a VLAN's");
    };
    assert_eq!(bytes(&attributes[..]), [6, 0, 1, 0, 100, 0, 0, 0]);
}

#[test]
fn a_neighbour_is_told_as_permanent() {
    for (address, family, octets) in [
        (
            IpAddr::from(Ipv4Addr::new(198, 18, 0, 2)),
            2,
            vec![198, 18, 0, 2],
        ),
        (IpAddr::from(V6.1), 10, V6.1.octets().to_vec()),
    ] {
        let message = neighbour_message(7, address, [2, 0, 0, 0, 0, 2]);
        let mut sent = vec![0; message.buffer_len()];
        message.emit(&mut sent);
        let expected: Vec<u8> = [
            // struct ndmsg: family, index, NUD_PERMANENT, flags, type.
            &[family, 0, 0, 0, 7, 0, 0, 0, 0x80, 0, 0, 0][..],
            &[4 + octets.len() as u8, 0, 1, 0], // NDA_DST
            &octets,
            &[10, 0, 2, 0, 2, 0, 0, 0, 0, 2, 0, 0], // NDA_LLADDR
        ]
        .concat();
        assert_eq!(sent, expected);
    }
}

#[test]
fn an_ipv6_address_needs_no_detection_of_duplicates() {
    let message = address_message(3, V6.0.into(), 64);
    let mut sent = vec![0; message.buffer_len()];
    message.emit(&mut sent);
    let octets = V6.0.octets();
    let expected: Vec<u8> = [
        // struct ifaddrmsg: AF_INET6, prefix, IFA_F_NODAD, scope, index.
        &[10u8, 64, 0x02, 0, 3, 0, 0, 0][..],
        &[20, 0, 2, 0], // IFA_LOCAL
        &octets,
        &[20, 0, 1, 0], // IFA_ADDRESS
        &octets,
    ]
    .concat();
    assert_eq!(sent, expected);
    let ipv4 = address_message(3, Ipv4Addr::new(198, 18, 0, 1).into(), 24);
    assert!(ipv4.header.flags.is_empty());
}
