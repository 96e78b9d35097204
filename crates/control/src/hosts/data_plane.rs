//! Chooses the data-plane address of each of two hosts.

use std::net::IpAddr;

use wirecost_agent::protocol::OwnAddress;
use wirecost_model::host::{HostAddress, Location};

use super::{HostAddresses, HostsError};

/// Data-plane addresses that cannot be used, or cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The host does not have the address that was given for it.
    #[error("{host} has no address {address}: it has {}", listed(own))]
    NotItsOwn {
        /// The host's name.
        host: String,
        /// The address that was given.
        address: IpAddr,
        /// The host's addresses.
        own: Vec<OwnAddress>,
    },
    /// One address is IPv4 and the other IPv6.
    #[error("{} and {} are of different versions of IP: give both hosts addresses of one", of[0], of[1])]
    Versions {
        /// Both addresses.
        of: [IpAddr; 2],
    },
    /// A loopback address between two network namespaces.
    #[error(
        "{of} cannot be reached at {address} from {by}: a loopback address is each network namespace's own; write an address \
         of one of its devices behind the =, or none"
    )]
    Loopback {
        /// The host that the address was given for.
        of: String,
        /// The address that was given.
        address: IpAddr,
        /// The other host.
        by: String,
    },
    /// A device does not have the link-local address.
    #[error(
        "{host} has no {} on {device}: see `ip -6 address show dev {device}` there",
        address.map_or_else(|| "link-local address".to_owned(), |it| it.to_string())
    )]
    NotOnLink {
        /// The host's name.
        host: String,
        /// The device that was given.
        device: String,
        /// The address; `None`: any link-local address.
        address: Option<IpAddr>,
    },
    /// One end has a link-local address and the other does not.
    #[error(
        "{host} needs a link-local address with its device too, such as fe80::1%eth0: the other end's is one"
    )]
    NoLink {
        /// The end without a link-local address.
        host: String,
    },
    /// The host has no address that another host could reach.
    #[error(
        "{host} has no address but loopback and link-local ones: give one of its devices an address"
    )]
    None {
        /// The host's name.
        host: String,
    },
    /// Several addresses of the host qualify, or none that both hosts share.
    #[error(
        "{host} can be reached in more than one way, or in none that both hosts share: say which address is meant, \
         such as {host}={}; it has {}", own[0].address, listed(own)
    )]
    Ambiguous {
        /// The host to give an address for.
        host: String,
        /// The host's addresses, the likeliest first; never empty.
        own: Vec<OwnAddress>,
    },
}

impl AddressError {
    /// Name of the host whose address is the problem; `None`: that of both.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::NotItsOwn { host, .. }
            | Self::Loopback { of: host, .. }
            | Self::NotOnLink { host, .. }
            | Self::NoLink { host }
            | Self::None { host }
            | Self::Ambiguous { host, .. } => Some(host),
            Self::Versions { .. } => None,
        }
    }
}

fn listed(own: &[OwnAddress]) -> String {
    let one = |own: &OwnAddress| format!("{} on {}", own.address, own.device);
    match own {
        [] => "none on a device that is up".to_owned(),
        own => own.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

/// The data-plane addresses of two hosts, in their order. An address that was given is used; the other host's is then
/// the source address that the kernel chooses towards it. Where none is given: the addresses in the network that both
/// hosts share, IPv4 first; else the only address of `to`, and the source address of `from` towards it. Two hosts that
/// are both this machine use 127.0.0.1.
///
/// # Errors
/// Addresses that the hosts do not have, two versions of IP, no address, or several that could be meant.
pub fn data_plane(
    [from, to]: [&HostAddress; 2],
    from_host: &mut impl HostAddresses,
    to_host: &mut impl HostAddresses,
) -> Result<[IpAddr; 2], HostsError> {
    for (of, by) in [(from, to), (to, from)] {
        apart_from_loopback(of, by)?;
    }
    if let Some(given) = from.data {
        has(from_host, given)?;
    }
    if let Some(given) = to.data {
        has(to_host, given)?;
    }
    let addresses = match (from.data, to.data) {
        (None, None) if from.place == Location::Local && to.place == Location::Local => {
            [IpAddr::from([127, 0, 0, 1]); 2]
        }
        (None, None) => unsaid(from_host, to_host)?,
        (Some(from), None) => [from, to_host.towards(from)?],
        (None, Some(to)) => [from_host.towards(to)?, to],
        (Some(from), Some(to)) => [from, to],
    };
    if addresses[0].is_ipv4() != addresses[1].is_ipv4() {
        return Err(AddressError::Versions { of: addresses }.into());
    }
    Ok(addresses)
}

/// The data-plane address of a host, and `to`, an address without an agent. The host's is the one that was given for
/// it, or the source address that the kernel chooses towards `to`.
///
/// # Errors
/// An address that the host does not have, no route, or two versions of IP.
pub fn source_towards(
    from: &HostAddress,
    host: &mut impl HostAddresses,
    to: IpAddr,
) -> Result<[IpAddr; 2], HostsError> {
    let source = match from.data {
        Some(given) => {
            has(host, given)?;
            given
        }
        None => host.towards(to)?,
    };
    if source.is_ipv4() != to.is_ipv4() {
        return Err(AddressError::Versions { of: [source, to] }.into());
    }
    Ok([source, to])
}

/// Refuses a loopback address between two network namespaces of this machine. Which namespace a host behind ssh or a
/// command is in is not known: such hosts are not checked.
fn apart_from_loopback(of: &HostAddress, by: &HostAddress) -> Result<(), HostsError> {
    match of.data {
        Some(address)
            if address.is_loopback()
                && of.place.is_here()
                && by.place.is_here()
                && of.place != by.place =>
        {
            Err(AddressError::Loopback {
                of: of.place.to_string(),
                address,
                by: by.place.to_string(),
            }
            .into())
        }
        _ => Ok(()),
    }
}

fn has(host: &mut impl HostAddresses, address: IpAddr) -> Result<(), HostsError> {
    let own = host.own()?;
    if address.is_loopback() || own.iter().any(|own| own.address == address) {
        return Ok(());
    }
    Err(AddressError::NotItsOwn {
        host: host.name().to_owned(),
        address,
        own,
    }
    .into())
}

fn unsaid(
    from_host: &mut impl HostAddresses,
    to_host: &mut impl HostAddresses,
) -> Result<[IpAddr; 2], HostsError> {
    let from = some(from_host)?;
    let to = some(to_host)?;
    // Networks that both hosts share, by address and prefix length. The same address on both hosts means two separate
    // networks with the same prefix.
    let shared = |of: fn(&IpAddr) -> bool| {
        let mut pairs = Vec::new();
        for one in from.iter().filter(|own| of(&own.address)) {
            let neighbours = to.iter().filter(|other| same_network(one, other));
            pairs.extend(neighbours.map(|other| [one.address, other.address]));
        }
        pairs
    };
    for of in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
        match shared(of)[..] {
            [pair] => return Ok(pair),
            [] => {}
            [[_, first], ..] => return Err(ambiguous(to_host, to, first)),
        }
    }
    for of in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
        let mut there = to.iter().filter(|own| of(&own.address));
        if let (Some(only), None) = (there.next(), there.next())
            && let Ok(source) = from_host.towards(only.address)
            && !source.is_loopback()
        {
            return Ok([source, only.address]);
        }
    }
    let first = to[0].address;
    Err(ambiguous(to_host, to, first))
}

/// A host's addresses: at least one, else [`AddressError::None`].
fn some(host: &mut impl HostAddresses) -> Result<Vec<OwnAddress>, HostsError> {
    let own = host.own()?;
    if own.is_empty() {
        let host = host.name().to_owned();
        return Err(AddressError::None { host }.into());
    }
    Ok(own)
}

fn ambiguous(host: &impl HostAddresses, mut own: Vec<OwnAddress>, first: IpAddr) -> HostsError {
    own.sort_by_key(|own| own.address != first);
    let host = host.name().to_owned();
    AddressError::Ambiguous { host, own }.into()
}

fn same_network(one: &OwnAddress, other: &OwnAddress) -> bool {
    let network = |address: IpAddr, prefix: u8| match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()).checked_shr(32u32.saturating_sub(prefix.into())),
        IpAddr::V6(v6) => v6
            .to_bits()
            .checked_shr(128u32.saturating_sub(prefix.into())),
    };
    // A point-to-point address says nothing about its neighbours.
    let narrow = |own: &OwnAddress| own.prefix >= if own.address.is_ipv4() { 32 } else { 128 };
    one.prefix == other.prefix
        && !narrow(one)
        && one.prefix > 0
        && one.address.is_ipv4() == other.address.is_ipv4()
        && one.address != other.address
        && network(one.address, one.prefix) == network(other.address, other.prefix)
}

#[cfg(test)]
mod tests {
    use wirecost_agent::link::LinkError;

    use wirecost_agent::protocol::Stage;

    use super::*;

    struct Host {
        name: &'static str,
        own: Vec<OwnAddress>,
        source: Option<&'static str>,
    }

    impl HostAddresses for Host {
        fn name(&self) -> &str {
            self.name
        }

        fn own(&mut self) -> Result<Vec<OwnAddress>, LinkError> {
            Ok(self.own.clone())
        }

        fn towards(&mut self, target: IpAddr) -> Result<IpAddr, LinkError> {
            let source = self.source.map(|source| source.parse().expect("address"));
            source.ok_or_else(|| LinkError::Refused {
                host: self.name.to_owned(),
                stage: Stage::Describe,
                message: format!("no route to {target}"),
            })
        }
    }

    fn host(name: &'static str, own: &[&str], source: Option<&'static str>) -> Host {
        let own = own.iter().zip(0..).map(|(text, number)| {
            let (address, prefix) = text.split_once('/').expect("a prefix");
            OwnAddress {
                device: format!("eth{number}"),
                address: address.parse().expect("address"),
                prefix: prefix.parse().expect("bits"),
            }
        });
        let own = own.collect();
        Host { name, own, source }
    }

    fn between(given: [&str; 2], mut from: Host, mut to: Host) -> Result<[String; 2], String> {
        let given = given.map(|text| text.parse::<HostAddress>().expect("a host"));
        data_plane([&given[0], &given[1]], &mut from, &mut to)
            .map(|pair| pair.map(|address| address.to_string()))
            .map_err(|error| error.to_string())
    }

    fn pair(from: &str, to: &str) -> [String; 2] {
        [from.to_owned(), to.to_owned()]
    }

    const HOSTS: [&str; 2] = ["netns:a", "netns:b"];

    #[test]
    fn the_network_that_both_are_in_is_used_ipv4_first() {
        let from = || {
            host(
                "netns:a",
                &["192.0.2.1/24", "10.0.0.1/24", "fd00::1/64"],
                None,
            )
        };
        let both = host(
            "netns:b",
            &["10.0.0.2/24", "fd00::2/64", "198.51.100.1/24"],
            None,
        );
        assert_eq!(
            between(HOSTS, from(), both),
            Ok(pair("10.0.0.1", "10.0.0.2"))
        );
        let only_v6 = host("netns:b", &["fd00::2/64", "198.51.100.1/24"], None);
        assert_eq!(
            between(HOSTS, from(), only_v6),
            Ok(pair("fd00::1", "fd00::2"))
        );
    }

    #[test]
    fn several_shared_networks_are_told_with_what_to_write() {
        let from = host("netns:a", &["10.0.0.1/24", "10.1.0.1/24"], None);
        let to = host(
            "netns:b",
            &["10.9.0.2/24", "10.0.0.2/24", "10.1.0.2/24"],
            None,
        );
        insta::assert_snapshot!(between(HOSTS, from, to).expect_err("two networks"), @"netns:b can be reached in more than one way, or in none that both hosts share: say which address is meant, such as netns:b=10.0.0.2; it has 10.0.0.2 on eth1, 10.9.0.2 on eth0, 10.1.0.2 on eth2");
    }

    #[test]
    fn without_a_shared_network_the_only_address_is_reached_by_a_route() {
        let from = |source| host("netns:a", &["10.0.0.1/24"], source);
        let to = || host("netns:b", &["10.9.0.2/24"], None);
        let routed = between(HOSTS, from(Some("10.0.0.1")), to());
        assert_eq!(routed, Ok(pair("10.0.0.1", "10.9.0.2")));
        let unrouted = between(HOSTS, from(None), to()).expect_err("no route");
        assert!(unrouted.contains("such as netns:b=10.9.0.2"), "{unrouted}");
    }

    #[test]
    fn the_same_address_on_both_is_no_shared_network() {
        let from = host("netns:a", &["172.17.0.1/16", "10.0.0.1/24"], None);
        let to = host("netns:b", &["172.17.0.1/16", "10.0.0.2/24"], None);
        assert_eq!(between(HOSTS, from, to), Ok(pair("10.0.0.1", "10.0.0.2")));
    }

    #[test]
    fn what_is_given_is_used_and_the_other_follows_from_it() {
        let own = ["10.0.0.1/24", "10.1.0.1/24"];
        let from = || host("netns:a", &own, Some("10.1.0.1"));
        let to = || {
            host(
                "netns:b",
                &["10.0.0.2/24", "10.1.0.2/24", "fd00::2/64"],
                Some("10.0.0.2"),
            )
        };
        let given = |hosts| between(hosts, from(), to());
        assert_eq!(
            given(["netns:a", "netns:b=10.1.0.2"]),
            Ok(pair("10.1.0.1", "10.1.0.2"))
        );
        assert_eq!(
            given(["netns:a=10.0.0.1", "netns:b"]),
            Ok(pair("10.0.0.1", "10.0.0.2"))
        );
        assert_eq!(
            given(["netns:a=10.0.0.1", "netns:b=10.1.0.2"]),
            Ok(pair("10.0.0.1", "10.1.0.2"))
        );
        insta::assert_snapshot!(given(["netns:a=10.0.0.9", "netns:b"]).expect_err("foreign"), @"netns:a has no address 10.0.0.9: it has 10.0.0.1 on eth0, 10.1.0.1 on eth1");
        insta::assert_snapshot!(given(["netns:a", "netns:b=127.0.0.1"]).expect_err("loopback"), @"netns:b cannot be reached at 127.0.0.1 from netns:a: a loopback address is each network namespace's own; write an address of one of its devices behind the =, or none");
        assert_eq!(
            given(["netns:a=127.0.0.1", "netns:a=127.0.0.1"]),
            Ok(pair("127.0.0.1", "127.0.0.1"))
        );
        insta::assert_snapshot!(given(["netns:a=10.0.0.1", "netns:b=fd00::2"]).expect_err("mixed"), @"10.0.0.1 and fd00::2 are of different versions of IP: give both hosts addresses of one");
    }

    #[test]
    fn this_machine_with_itself_is_its_loopback_and_a_host_without_an_address_is_named() {
        let bare = || host("local", &[], None);
        assert_eq!(
            between(["local", "local"], bare(), bare()),
            Ok(pair("127.0.0.1", "127.0.0.1"))
        );
        let to = host("netns:b", &["10.0.0.2/24"], None);
        insta::assert_snapshot!(between(["local", "netns:b"], bare(), to).expect_err("none"), @"local has no address but loopback and link-local ones: give one of its devices an address");
    }
}
