use wirecost_model::plan::{Gre, Ipip};

use super::*;

const FOUR: (IpAddr, IpAddr) = (
    IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2)),
);
const SIX: (IpAddr, IpAddr) = (
    IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0x18, 0, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0x18, 0, 0, 0, 2)),
);

fn gre(key: Option<u32>, ttl: Option<u8>, df: Option<OuterDf>) -> Gre {
    Gre { key, ttl, df }
}

fn device(encapsulation: &Encapsulation, ends: (IpAddr, IpAddr), guest: IpVersion) -> TunnelDevice {
    TunnelDevice::of(encapsulation, ends, guest).expect("a tunnel without UDP")
}

fn bytes(attributes: &[DefaultNla]) -> Vec<u8> {
    let mut bytes = vec![0; attributes.buffer_len()];
    attributes.emit(&mut bytes);
    bytes
}

/// `IFLA_INFO_DATA` as iproute2 6.1 sent it (strace -xx ip link add ... dev lo, which has the index 1), without what
/// says nothing: type of service 0, mark 0, no FOU, flow label 0, no ERSPAN, and a limit that the flags switch off.
fn meant(sent: &[u8], silent: &[u16]) -> Vec<u8> {
    let attributes = NlasIterator::new(sent).map(|attribute| attribute.expect("whole"));
    let kept: Vec<DefaultNla> = attributes
        .filter(|attribute| !silent.contains(&attribute.kind()))
        .map(|attribute| DefaultNla::new(attribute.kind(), attribute.value().to_vec()))
        .collect();
    bytes(&kept)
}

/// Of GRE: TOS, encapsulation limit, flow label, FOU, mark, ERSPAN.
const SILENT_GRE: [u16; 9] = [9, 11, 12, 14, 15, 16, 17, 20, 22];
/// Of IP in IP: TOS, encapsulation limit, flow label, FOU, mark.
const SILENT_IPTUN: [u16; 8] = [5, 6, 7, 15, 16, 17, 18, 20];

const SENT_GRE: &[u8] = b"\x08\x00\x04\x00\x00\x00\x00\x07\x08\x00\x05\x00\x00\x00\x00\x07\x06\x00\x02\x00\x20\x00\x00\x00\
\x06\x00\x03\x00\x20\x00\x00\x00\x08\x00\x06\x00\xc6\x12\x00\x01\x08\x00\x07\x00\xc6\x12\x00\x02\x05\x00\x0a\x00\x01\x00\
\x00\x00\x05\x00\x09\x00\x00\x00\x00\x00\x08\x00\x01\x00\x01\x00\x00\x00\x05\x00\x08\x00\x40\x00\x00\x00\x08\x00\x14\x00\
\x00\x00\x00\x00\x06\x00\x0e\x00\x00\x00\x00\x00\x06\x00\x0f\x00\x00\x00\x00\x00\x06\x00\x10\x00\x00\x00\x00\x00\x06\x00\
\x11\x00\x00\x00\x00\x00";

const SENT_GRETAP: &[u8] = b"\x08\x00\x04\x00\x00\x00\x00\x00\x08\x00\x05\x00\x00\x00\x00\x00\x06\x00\x02\x00\x00\x00\x00\x00\
\x06\x00\x03\x00\x00\x00\x00\x00\x08\x00\x06\x00\xc6\x12\x00\x01\x08\x00\x07\x00\xc6\x12\x00\x02\x05\x00\x0a\x00\x00\x00\
\x00\x00\x05\x00\x13\x00\x01\x00\x00\x00\x05\x00\x09\x00\x00\x00\x00\x00\x08\x00\x01\x00\x01\x00\x00\x00\x05\x00\x08\x00\
\x00\x00\x00\x00\x08\x00\x14\x00\x00\x00\x00\x00\x06\x00\x0e\x00\x00\x00\x00\x00\x06\x00\x0f\x00\x00\x00\x00\x00\x06\x00\
\x10\x00\x00\x00\x00\x00\x06\x00\x11\x00\x00\x00\x00\x00";

const SENT_IP6GRE: &[u8] = b"\x08\x00\x04\x00\x00\x00\x00\x07\x08\x00\x05\x00\x00\x00\x00\x07\x06\x00\x02\x00\x20\x00\x00\x00\
\x06\x00\x03\x00\x20\x00\x00\x00\x14\x00\x06\x00\x20\x01\x00\x02\x00\x00\x00\x18\x00\x00\x00\x00\x00\x00\x00\x01\x14\x00\
\x07\x00\x20\x01\x00\x02\x00\x00\x00\x18\x00\x00\x00\x00\x00\x00\x00\x02\x08\x00\x01\x00\x01\x00\x00\x00\x05\x00\x08\x00\
\x40\x00\x00\x00\x05\x00\x0b\x00\x04\x00\x00\x00\x08\x00\x0c\x00\x00\x00\x00\x00\x08\x00\x0d\x00\x01\x00\x00\x00\x08\x00\
\x14\x00\x00\x00\x00\x00\x05\x00\x16\x00\x01\x00\x00\x00\x06\x00\x0e\x00\x00\x00\x00\x00\x06\x00\x0f\x00\x02\x00\x00\x00\
\x06\x00\x10\x00\x00\x00\x00\x00\x06\x00\x11\x00\x00\x00\x00\x00";

const SENT_IPIP: &[u8] = b"\x05\x00\x09\x00\x00\x00\x00\x00\x08\x00\x02\x00\xc6\x12\x00\x01\x08\x00\x03\x00\xc6\x12\x00\x02\
\x05\x00\x0a\x00\x01\x00\x00\x00\x05\x00\x05\x00\x00\x00\x00\x00\x05\x00\x04\x00\x40\x00\x00\x00\x08\x00\x01\x00\x01\x00\
\x00\x00\x08\x00\x14\x00\x00\x00\x00\x00\x06\x00\x0f\x00\x00\x00\x00\x00\x06\x00\x10\x00\x00\x00\x00\x00\x06\x00\x11\x00\
\x00\x00\x00\x00\x06\x00\x12\x00\x00\x00\x00\x00";

const SENT_SIT: &[u8] = b"\x05\x00\x09\x00\x29\x00\x00\x00\x08\x00\x02\x00\xc6\x12\x00\x01\x08\x00\x03\x00\xc6\x12\x00\x02\
\x05\x00\x0a\x00\x01\x00\x00\x00\x05\x00\x05\x00\x00\x00\x00\x00\x05\x00\x04\x00\x00\x00\x00\x00\x08\x00\x01\x00\x01\x00\
\x00\x00\x08\x00\x14\x00\x00\x00\x00\x00\x06\x00\x0f\x00\x00\x00\x00\x00\x06\x00\x10\x00\x00\x00\x00\x00\x06\x00\x11\x00\
\x00\x00\x00\x00\x06\x00\x12\x00\x00\x00\x00\x00\x06\x00\x08\x00\x00\x00\x00\x00";

const SENT_IP6TNL: &[u8] = b"\x05\x00\x09\x00\x04\x00\x00\x00\x14\x00\x02\x00\x20\x01\x00\x02\x00\x00\x00\x18\x00\x00\x00\x00\
\x00\x00\x00\x01\x14\x00\x03\x00\x20\x01\x00\x02\x00\x00\x00\x18\x00\x00\x00\x00\x00\x00\x00\x02\x05\x00\x04\x00\x40\x00\
\x00\x00\x05\x00\x06\x00\x04\x00\x00\x00\x08\x00\x07\x00\x00\x00\x00\x00\x08\x00\x08\x00\x01\x00\x00\x00\x08\x00\x01\x00\
\x01\x00\x00\x00\x08\x00\x14\x00\x00\x00\x00\x00\x06\x00\x0f\x00\x00\x00\x00\x00\x06\x00\x10\x00\x02\x00\x00\x00\x06\x00\
\x11\x00\x00\x00\x00\x00\x06\x00\x12\x00\x00\x00\x00\x00";

#[test]
fn gre_is_made_as_iproute2_makes_it() {
    // ip link add try0 type gre local 198.18.0.1 remote 198.18.0.2 key 7 ttl 64 dev lo
    let keyed = Encapsulation::Gre(gre(Some(7), Some(64), None));
    let device = device(&keyed, FOUR, IpVersion::Ipv4);
    assert_eq!(device.kind, InfoKind::GreTun);
    assert_eq!(bytes(&device.attributes(1)), meant(SENT_GRE, &SILENT_GRE));
}

#[test]
fn gretap_that_leaves_df_unset_is_made_as_iproute2_makes_it() {
    // ip link add try0 type gretap local 198.18.0.1 remote 198.18.0.2 nopmtudisc ignore-df dev lo
    let tap = Encapsulation::Gretap(gre(None, None, Some(OuterDf::Unset)));
    let device = device(&tap, FOUR, IpVersion::Ipv6);
    assert_eq!(device.kind, InfoKind::GreTap);
    assert_eq!(
        bytes(&device.attributes(1)),
        meant(SENT_GRETAP, &SILENT_GRE)
    );
}

#[test]
fn gre_over_ipv6_without_a_limit_is_made_as_iproute2_makes_it() {
    // ip link add try0 type ip6gre local ... remote ... key 7 encaplimit none hoplimit 64 dev lo
    let keyed = Encapsulation::Gre(gre(Some(7), Some(64), None));
    let six = device(&keyed, SIX, IpVersion::Ipv4);
    assert_eq!(six.kind, InfoKind::GreTun6);
    assert_eq!(bytes(&six.attributes(1)), meant(SENT_IP6GRE, &SILENT_GRE));
    let tap = Encapsulation::Gretap(Gre::default());
    let tap = device(&tap, SIX, IpVersion::Ipv4);
    assert_eq!(tap.kind, InfoKind::GreTap6);
}

#[test]
fn ip_in_ip_is_made_as_iproute2_makes_it_but_for_the_protocol_that_it_says() {
    // ip link add try0 type ipip local 198.18.0.1 remote 198.18.0.2 ttl 64 dev lo
    let ipip = Encapsulation::Ipip(Ipip {
        ttl: Some(64),
        df: None,
    });
    let four = device(&ipip, FOUR, IpVersion::Ipv4);
    assert_eq!(four.kind, InfoKind::IpIp);
    let mut expected = meant(SENT_IPIP, &SILENT_IPTUN);
    // iproute2's 0 lets MPLS through as well; here it is IPv4 alone (IPPROTO_IPIP).
    assert_eq!(expected[4], 0);
    expected[4] = 4;
    assert_eq!(bytes(&four.attributes(1)), expected);
    // ip link add try0 type sit local 198.18.0.1 remote 198.18.0.2 dev lo mode ip6ip
    let six_inside = device(&Encapsulation::Ipip(Ipip::default()), FOUR, IpVersion::Ipv6);
    assert_eq!(six_inside.kind, InfoKind::SitTun);
    // Its flags are those of ISATAP.
    let silent: Vec<u16> = SILENT_IPTUN.into_iter().chain([8]).collect();
    assert_eq!(bytes(&six_inside.attributes(1)), meant(SENT_SIT, &silent));
    // ip link add try0 type ip6tnl local ... remote ... encaplimit none dev lo mode ip4ip6 hoplimit 64
    let over_six = device(&ipip, SIX, IpVersion::Ipv4);
    assert_eq!(over_six.kind, InfoKind::Ip6Tnl);
    let expected = meant(SENT_IP6TNL, &SILENT_IPTUN);
    assert_eq!(bytes(&over_six.attributes(1)), expected);
    let six_in_six = device(&ipip, SIX, IpVersion::Ipv6);
    assert_eq!(six_in_six.protocol, Some(41));
}

#[test]
fn every_device_reads_back_as_it_was_asked_for() {
    let df = [
        None,
        Some(OuterDf::Set),
        Some(OuterDf::Inherit),
        Some(OuterDf::Unset),
    ];
    for key in [None, Some(0), Some(u32::MAX)] {
        for ttl in [None, Some(1), Some(255)] {
            for df in df {
                for ends in [FOUR, SIX] {
                    let mut all = vec![
                        Encapsulation::Gre(gre(key, ttl, df)),
                        Encapsulation::Gretap(gre(key, ttl, df)),
                    ];
                    if df != Some(OuterDf::Unset) {
                        all.push(Encapsulation::Ipip(Ipip { ttl, df }));
                    }
                    for encapsulation in all {
                        for guest in IpVersion::ALL {
                            let wanted = device(&encapsulation, ends, guest);
                            let data = InfoData::Other(bytes(&wanted.attributes(7)));
                            let read = TunnelDevice::read(wanted.kind.clone(), &numbered(&data));
                            assert_eq!(read.as_ref(), Some(&wanted), "{encapsulation}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_kernel_that_did_something_else_is_found_out() {
    let wanted = device(
        &Encapsulation::Gre(gre(Some(7), None, None)),
        SIX,
        IpVersion::Ipv4,
    );
    let data = |change: fn(&mut BTreeMap<u16, Vec<u8>>)| {
        let mut data = numbered(&InfoData::Other(bytes(&wanted.attributes(1))));
        change(&mut data);
        TunnelDevice::read(InfoKind::GreTun6, &data)
    };
    let as_asked = data(|_| {});
    assert_eq!(as_asked.as_ref(), Some(&wanted));
    // Linux's own default: the option of 8 bytes.
    let limited = data(|data| {
        data.remove(&GRE.flags);
    });
    assert!(limited.is_some_and(|device| device.limits));
    let one_key = data(|data| {
        data.insert(GRE_OUTPUT_KEY, vec![0, 0, 0, 8]);
    });
    assert!(one_key.is_some_and(|device| device.options.key.is_none()));
    assert_eq!(data(BTreeMap::clear), None);
    assert_eq!(TunnelDevice::read(InfoKind::Vxlan, &BTreeMap::new()), None);
}
