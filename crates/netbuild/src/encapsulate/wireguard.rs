//! The kernel's WireGuard device (drivers/net/wireguard): created by rtnetlink, given its keys and its peer by generic
//! netlink (include/uapi/linux/wireguard.h), and read back.

mod attributes;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use netlink_packet_core::DefaultNla;
use netlink_packet_route::link::InfoKind;
use wirecost_model::plan::Wireguard;

use super::{Endpoints, alike};
use crate::addresses;
use crate::device;
use crate::error::{BuildError, Context};
use crate::names::Side;
use crate::netlink::Netlink;
use crate::netlink::generic::{AttributeMap, Command, Generic, nested, parse_attributes};
use crate::spec::EndSecret;

use self::attributes::{allowed_attribute, device_attribute, peer_attribute};

const FAMILY: &str = "wireguard";
const VERSION: u8 = 1;
const GET_DEVICE: Command = Command::Dump(0);
const SET_DEVICE: Command = Command::Do(1);

// include/linux/socket.h
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// A key of Curve25519.
type Key = [u8; 32];

/// Time limit for two hosts to agree on a session, less than the controller waits: the kernel retries every 5 s
/// (messages.h, `REKEY_TIMEOUT`).
pub(super) const PATIENCE: Duration = Duration::from_secs(8);
/// Time after which host b begins a session, too. The packet by which host a confirms its session is sent once, and is
/// lost where host b is still configuring its device: host b would wait in vain.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(2);
/// A session of this age is renewed by the host that began it, when it sends (`REKEY_AFTER_TIME`); after 180 s it is
/// invalid.
const RENEWED_AFTER: Duration = Duration::from_mins(2);
const GONE_SOON: Duration = Duration::from_secs(150);

/// A WireGuard device's configuration.
#[derive(Debug, PartialEq, Eq)]
struct WireguardDevice {
    secret: EndSecret,
    port: u16,
    peers: Vec<WireguardPeer>,
}

/// The other host as a peer.
#[derive(Debug, PartialEq, Eq)]
struct WireguardPeer {
    public: Key,
    endpoint: SocketAddr,
    /// Interval of keepalive packets, seconds; 0 is never.
    keepalive: u16,
    /// Addresses to which the device sends through the peer, and which it accepts from it: an address and a prefix
    /// length, bits.
    allowed: (IpAddr, u8),
}

/// Creates a host's end of the tunnel.
pub(super) fn make(
    between: &Endpoints<'_>,
    wireguard: &Wireguard,
    (netlink, name): (&mut Netlink, &str),
) -> Result<(), BuildError> {
    between
        .create(netlink, name, |netlink, new| {
            device::create_plain(netlink, new, InfoKind::Wireguard, between.mtu)
        })
        .with_context(|| format!("making the wireguard device `{name}`"))?;
    let talking = || format!("setting the keys of the wireguard device `{name}`");
    let mut family = Generic::open(FAMILY).with_context(talking)?;
    let (own, other) = between.secrets;
    // The kernel computes a public key from the private key of the device: first the other host's.
    set(&mut family, name, &[private(other)]).with_context(talking)?;
    let public = get(&mut family, name)
        .and_then(|found| key(&found, device_attribute::PUBLIC_KEY))
        .with_context(talking)?;
    let (_, remote) = between.ends;
    let wanted = WireguardDevice {
        secret: EndSecret(clamped(own.0)),
        port: wireguard.port,
        peers: vec![WireguardPeer {
            public,
            endpoint: SocketAddr::new(remote, wireguard.port),
            keepalive: 0,
            allowed: addresses::guest_range(between.guest_ip),
        }],
    };
    set(&mut family, name, &wanted.attributes()).with_context(talking)?;
    let found = get(&mut family, name)
        .and_then(|found| WireguardDevice::read(&found))
        .with_context(|| format!("reading the wireguard device `{name}` back"))?;
    alike("wireguard", name, &wanted, &found)
}

/// Waits until there is a session: host a begins one, and host b later where there is none yet. If both began at once,
/// each would drop the answer to its own handshake, and nothing would be carried until they try again (noise.c,
/// `wg_noise_handshake_consume_response`).
pub(super) fn handshake(name: &str, side: Side) -> Result<(), BuildError> {
    let step = || format!("waiting for the other end of the wireguard device `{name}`");
    let mut family = Generic::open(FAMILY).with_context(step)?;
    let (usable, asks_after) = match side {
        Side::A => (RENEWED_AFTER, Duration::ZERO),
        Side::B => (GONE_SOON, CONFIRMED_WITHIN),
    };
    let agreed = |family: &mut Generic| -> io::Result<bool> {
        Ok(session_age(&get(family, name)?)?.is_some_and(|age| age < usable))
    };
    let began = Instant::now();
    let mut asked = false;
    while !agreed(&mut family).with_context(step)? {
        if began.elapsed() > PATIENCE {
            return Err(io::Error::from(io::ErrorKind::TimedOut)).with_context(step);
        }
        if !asked && began.elapsed() >= asks_after {
            keep_alive(&mut family, name, 1).with_context(step)?;
            asked = true;
        }
        thread::sleep(Duration::from_millis(2));
    }
    if asked {
        keep_alive(&mut family, name, 0).with_context(step)?;
    }
    Ok(())
}

/// Age of the session with the peer; `None` before the first handshake.
fn session_age(found: &AttributeMap) -> io::Result<Option<Duration>> {
    // struct __kernel_timespec.
    let time: [u8; 16] = value(&first_peer(found)?, peer_attribute::LAST_HANDSHAKE)?;
    let seconds = i64::from_ne_bytes(time[..8].try_into().unwrap_or_default());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let at = Duration::from_secs(seconds.unsigned_abs());
    Ok((seconds > 0).then(|| now.unwrap_or_default().saturating_sub(at)))
}

/// Sets the interval of keepalive packets, seconds, the first of which is sent at once; 0 is never.
fn keep_alive(family: &mut Generic, name: &str, seconds: u16) -> io::Result<()> {
    use peer_attribute::{FLAGS, KEEPALIVE, PUBLIC_KEY, UPDATE_ONLY};
    let public = key(&first_peer(&get(family, name)?)?, PUBLIC_KEY)?;
    let peer = [
        DefaultNla::new(PUBLIC_KEY, public.to_vec()),
        DefaultNla::new(FLAGS, UPDATE_ONLY.to_ne_bytes().to_vec()),
        DefaultNla::new(KEEPALIVE, seconds.to_ne_bytes().to_vec()),
    ];
    let peers = nested(device_attribute::PEERS, &[nested(0, &peer)]);
    set(family, name, &[peers])
}

fn first_peer(found: &AttributeMap) -> io::Result<AttributeMap> {
    let peers = found.get(&device_attribute::PEERS).ok_or_else(truncated)?;
    let first = parse_attributes(peers)
        .into_values()
        .next()
        .ok_or_else(truncated)?;
    Ok(parse_attributes(&first))
}

fn set(family: &mut Generic, name: &str, attributes: &[DefaultNla]) -> io::Result<()> {
    let mut all = vec![device_name(name)];
    all.extend_from_slice(attributes);
    family.call(SET_DEVICE, VERSION, &all).map(drop)
}

/// The kernel reports a device with one peer in one message.
fn get(family: &mut Generic, name: &str) -> io::Result<AttributeMap> {
    let told = family.call(GET_DEVICE, VERSION, &[device_name(name)])?;
    told.into_iter().next().ok_or_else(truncated)
}

fn device_name(name: &str) -> DefaultNla {
    let text = [name.as_bytes(), &[0]].concat();
    DefaultNla::new(device_attribute::NAME, text)
}

fn private(EndSecret(key): &EndSecret) -> DefaultNla {
    DefaultNla::new(device_attribute::PRIVATE_KEY, key.to_vec())
}

/// A private key as the kernel keeps it (include/crypto/curve25519.h, `curve25519_clamp_secret`).
const fn clamped(mut key: Key) -> Key {
    key[0] &= 0xf8;
    key[31] = key[31] & 0x7f | 0x40;
    key
}

impl WireguardDevice {
    fn attributes(&self) -> Vec<DefaultNla> {
        use device_attribute::{FLAGS, LISTEN_PORT, PEERS, REPLACE_PEERS};
        let peers: Vec<DefaultNla> = self
            .peers
            .iter()
            .map(|peer| nested(0, &peer.attributes()))
            .collect();
        vec![
            private(&self.secret),
            DefaultNla::new(LISTEN_PORT, self.port.to_ne_bytes().to_vec()),
            DefaultNla::new(FLAGS, REPLACE_PEERS.to_ne_bytes().to_vec()),
            nested(PEERS, &peers),
        ]
    }

    fn read(found: &AttributeMap) -> io::Result<Self> {
        let peers = found.get(&device_attribute::PEERS);
        let peers = peers
            .map(|peers| parse_attributes(peers))
            .unwrap_or_default();
        Ok(Self {
            secret: EndSecret(key(found, device_attribute::PRIVATE_KEY)?),
            port: u16::from_ne_bytes(value(found, device_attribute::LISTEN_PORT)?),
            peers: peers
                .values()
                .map(|peer| WireguardPeer::read(&parse_attributes(peer)))
                .collect::<io::Result<_>>()?,
        })
    }
}

impl WireguardPeer {
    fn attributes(&self) -> Vec<DefaultNla> {
        use peer_attribute::{
            ALLOWED_IPS, ENDPOINT, FLAGS, KEEPALIVE, PUBLIC_KEY, REPLACE_ALLOWED_IPS,
        };
        let (address, prefix) = self.allowed;
        let (family, octets) = octets(address);
        let allowed = [
            DefaultNla::new(allowed_attribute::FAMILY, family.to_ne_bytes().to_vec()),
            DefaultNla::new(allowed_attribute::ADDRESS, octets),
            DefaultNla::new(allowed_attribute::PREFIX, vec![prefix]),
        ];
        vec![
            DefaultNla::new(PUBLIC_KEY, self.public.to_vec()),
            DefaultNla::new(FLAGS, REPLACE_ALLOWED_IPS.to_ne_bytes().to_vec()),
            DefaultNla::new(ENDPOINT, socket_address(self.endpoint)),
            DefaultNla::new(KEEPALIVE, self.keepalive.to_ne_bytes().to_vec()),
            nested(ALLOWED_IPS, &[nested(0, &allowed)]),
        ]
    }

    fn read(found: &AttributeMap) -> io::Result<Self> {
        let allowed = parse_attributes(
            found
                .get(&peer_attribute::ALLOWED_IPS)
                .ok_or_else(truncated)?,
        );
        let allowed = parse_attributes(allowed.values().next().ok_or_else(truncated)?);
        let octets = allowed.get(&allowed_attribute::ADDRESS);
        let [prefix] = value(&allowed, allowed_attribute::PREFIX)?;
        let endpoint = found.get(&peer_attribute::ENDPOINT);
        Ok(Self {
            public: key(found, peer_attribute::PUBLIC_KEY)?,
            endpoint: endpoint
                .and_then(|bytes| endpoint_of(bytes))
                .ok_or_else(truncated)?,
            keepalive: u16::from_ne_bytes(value(found, peer_attribute::KEEPALIVE)?),
            allowed: (
                octets
                    .and_then(|octets| address(octets))
                    .ok_or_else(truncated)?,
                prefix,
            ),
        })
    }
}

/// An address as a `struct sockaddr_in` or `struct sockaddr_in6`.
fn socket_address(of: SocketAddr) -> Vec<u8> {
    let (family, octets) = octets(of.ip());
    let mut bytes = family.to_ne_bytes().to_vec();
    bytes.extend(of.port().to_be_bytes());
    // IPv6: the flow label before the address, the scope after it. IPv4: padding after the address.
    if of.is_ipv6() {
        bytes.extend([0; 4]);
    }
    bytes.extend(&octets);
    bytes.resize(bytes.len() + if of.is_ipv6() { 4 } else { 8 }, 0);
    bytes
}

fn endpoint_of(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let octets = match family {
        AF_INET => bytes.get(4..8),
        AF_INET6 => bytes.get(8..24),
        _ => None,
    };
    Some(SocketAddr::new(address(octets?)?, port))
}

fn octets(address: IpAddr) -> (u16, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(octets) {
        return Some(Ipv4Addr::from(four).into());
    }
    let six = <[u8; 16]>::try_from(octets).ok()?;
    Some(Ipv6Addr::from(six).into())
}

fn key(found: &AttributeMap, number: u16) -> io::Result<Key> {
    value(found, number)
}

fn value<const BYTES: usize>(found: &AttributeMap, number: u16) -> io::Result<[u8; BYTES]> {
    let value = found
        .get(&number)
        .and_then(|value| value[..].try_into().ok());
    value.ok_or_else(truncated)
}

/// Error for an attribute that is missing or of another length.
fn truncated() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(remote: IpAddr, allowed: (IpAddr, u8)) -> WireguardDevice {
        WireguardDevice {
            secret: EndSecret(clamped([0xff; 32])),
            port: 51820,
            peers: vec![WireguardPeer {
                public: [7; 32],
                endpoint: SocketAddr::new(remote, 51820),
                keepalive: 0,
                allowed,
            }],
        }
    }

    fn read(attributes: &[DefaultNla]) -> AttributeMap {
        let all = parse_attributes(&parse_attributes(&bytes(&[nested(1, attributes)]))[&1]);
        assert_eq!(all.len(), attributes.len());
        all
    }

    fn bytes(attributes: &[DefaultNla]) -> Vec<u8> {
        use netlink_packet_core::Emitable;
        let mut bytes = vec![0; attributes.buffer_len()];
        attributes.emit(&mut bytes);
        bytes
    }

    #[test]
    fn what_a_device_is_told_reads_back_over_either_ip() {
        let (four, six) = (Ipv4Addr::new(198, 18, 0, 2), Ipv6Addr::LOCALHOST);
        let range4 = (Ipv4Addr::new(198, 19, 0, 0).into(), 24);
        let range6 = (Ipv6Addr::UNSPECIFIED.into(), 64);
        for (remote, allowed) in [
            (four.into(), range4),
            (six.into(), range6),
            (four.into(), range6),
        ] {
            let wanted = device(remote, allowed);
            let found = WireguardDevice::read(&read(&wanted.attributes())).expect("readable");
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn an_endpoint_is_a_socket_address_as_the_kernel_has_it() {
        let four = socket_address((Ipv4Addr::new(198, 18, 0, 2), 51820).into());
        let expected = [2, 0, 0xca, 0x6c, 198, 18, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(four, expected);
        let six = socket_address((Ipv6Addr::LOCALHOST, 1).into());
        assert_eq!((six.len(), six[23]), (28, 1));
        assert_eq!(endpoint_of(&six[..20]), None);
    }

    #[test]
    fn a_device_without_a_key_is_not_taken_for_one_with() {
        let wanted = device(Ipv4Addr::LOCALHOST.into(), (Ipv4Addr::LOCALHOST.into(), 32));
        let mut found = read(&wanted.attributes());
        found.remove(&device_attribute::PRIVATE_KEY);
        assert!(WireguardDevice::read(&found).is_err());
    }
}
