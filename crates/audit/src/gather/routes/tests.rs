use super::*;

/// An IPv4 route as the kernel reports it: struct rtmsg, and attributes.
fn message(length: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut message = vec![0; RTMSG];
    (message[0], message[1], message[7]) = (AF_INET, length, RTN_UNICAST);
    message.extend(attributes.concat());
    message
}

/// As the kernel lists them where a second card has a table of its own.
#[test]
fn the_default_route_is_the_main_tables() {
    let by = |table: u32, device: u32| {
        let device = attribute(RTA_OIF, &device.to_ne_bytes());
        message(0, &[attribute(RTA_TABLE, &table.to_ne_bytes()), device])
    };
    let of = |messages: &[Vec<u8>]| {
        let mut routes = Routes::default();
        for message in messages {
            take(message, &mut |_| None, &mut routes);
        }
        routes.default_device()
    };
    assert_eq!(of(&[by(2, 3), by(254, 2), by(254, 4)]), Some(2));
    // The main table has none.
    assert_eq!(of(&[by(2, 3), by(3, 4)]), Some(3));
    assert_eq!(of(&[]), None);
}

/// As a fabric of IPv6 link-local addresses has its IPv4 routes (RFC 5549).
#[test]
fn a_router_of_ipv6_is_kept_in_the_words_of_a_route() {
    let words = |message: &[u8]| {
        let mut name = |index: u32| Some(format!("eth{index}"));
        ip_route(message, &mut name).map(|route| route.hops)
    };
    let via = |last: u8| {
        let mut content = vec![AF_INET6, 0, 0xfe, 0x80];
        content.resize(2 + 15, 0);
        content.push(last);
        attribute(RTA_VIA, &content)
    };
    let one = message(0, &[attribute(RTA_OIF, &2u32.to_ne_bytes()), via(1)]);
    assert_eq!(words(&one).as_deref(), Some("via inet6 fe80::1 dev eth2"));
    let found = router(Attributes(&one[RTMSG..]));
    assert_eq!(found, "fe80::1".parse().ok());
    // struct rtnexthop: length, flags, weight - 1, device.
    let member = |index: u8| {
        let via = via(index);
        let head = [(8 + via.len()) as u8, 0, 0, 0, index, 0, 0, 0];
        [&head[..], &via].concat()
    };
    let several = [member(3), member(4)].concat();
    let two = message(0, &[attribute(RTA_MULTIPATH, &several)]);
    assert_eq!(
        words(&two).as_deref(),
        Some("nexthop via inet6 fe80::3 dev eth3 nexthop via inet6 fe80::4 dev eth4")
    );
    let four = attribute(RTA_GATEWAY, &[10, 0, 0, 254]);
    let usual = message(0, &[attribute(RTA_OIF, &2u32.to_ne_bytes()), four]);
    assert_eq!(words(&usual).as_deref(), Some("via 10.0.0.254 dev eth2"));
}
