//! The MTU that a path leaves to guests behind an encapsulation.

use std::net::IpAddr;

use serde::Serialize;
use wirecost_model::ip::IpVersion;
use wirecost_wire::overhead::{MtuError, Path, Stack, StackError};

/// An encapsulation over the path that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EncapsulationReport {
    /// The encapsulation, as `wirecost overhead` writes it.
    pub format: String,
    /// The largest guest MTU that fits the path MTU of every flow in both directions, bytes; `None` where none fits or
    /// the path MTU is unknown.
    pub guest_mtu: Option<u32>,
    /// The underlay MTU that a guest MTU of [`guests`](Self::guests) needs, bytes.
    pub underlay_mtu: Option<u32>,
    /// The guest MTU that [`underlay_mtu`](Self::underlay_mtu) is for, bytes: the size expected of the path, or the MTU
    /// of the senders' devices.
    pub guests: u32,
    /// The encapsulation over the IP version of each pair of hosts.
    #[serde(skip)]
    paths: Vec<Path>,
}

impl EncapsulationReport {
    /// Computes the MTUs of `stack` over the IP version of `address`: `carries` is the path MTU and `guests` the guest
    /// MTU that is wanted, in bytes. Guests use IPv4.
    ///
    /// # Errors
    /// Where the encapsulation does not exist over that IP version.
    pub fn new(
        stack: &Stack,
        address: IpAddr,
        carries: Option<u32>,
        guests: u32,
    ) -> Result<Self, StackError> {
        let path = stack.over(version(address), IpVersion::Ipv4)?;
        let fits = |mtu: Result<u32, MtuError>| mtu.ok();
        Ok(Self {
            format: stack.to_string(),
            guest_mtu: carries.and_then(|mtu| fits(path.guest_mtu(mtu))),
            underlay_mtu: fits(path.underlay_mtu(guests)),
            guests,
            paths: vec![path],
        })
    }

    /// Adds the report on another pair of hosts: what fits every path, and what the largest guest MTU needs on every
    /// path.
    pub(crate) fn join(&mut self, other: Self) {
        self.guest_mtu = self.guest_mtu.zip(other.guest_mtu).map(|(a, b)| a.min(b));
        self.guests = self.guests.max(other.guests);
        self.paths.extend(other.paths);
        let needed: Result<Vec<u32>, MtuError> = self
            .paths
            .iter()
            .map(|path| path.underlay_mtu(self.guests))
            .collect();
        self.underlay_mtu = needed.ok().and_then(|mtus| mtus.into_iter().max());
    }
}

/// The guest MTU, bytes, behind `stack` over an underlay MTU of `underlay_mtu` bytes and the IP version of `address`;
/// `None` where none fits.
pub fn guests_of(stack: &Stack, address: IpAddr, underlay_mtu: u32) -> Option<u32> {
    let path = stack.over(version(address), IpVersion::Ipv4).ok()?;
    path.guest_mtu(underlay_mtu).ok()
}

const fn version(address: IpAddr) -> IpVersion {
    match address {
        IpAddr::V4(_) => IpVersion::Ipv4,
        IpAddr::V6(_) => IpVersion::Ipv6,
    }
}

/// The default UDP port of the outermost encapsulation. Probes to this port are treated by filters and equal-cost paths
/// as the encapsulation's packets are. `None`: the encapsulation has no UDP port.
pub fn tunnel_port(stack: &Stack) -> Option<u16> {
    let format = stack.to_string();
    let outermost = format
        .split('+')
        .rfind(|layer| !layer.starts_with("outer-") && !matches!(*layer, "vlan" | "qinq"))?;
    let name = outermost.split(':').next().unwrap_or(outermost);
    match name {
        // RFC 7348, draft-ietf-nvo3-vxlan-gpe, RFC 8926, wg(8), RFC 3948.
        "vxlan" => Some(4789),
        "vxlan-gpe" => Some(4790),
        "geneve" => Some(6081),
        "wireguard" => Some(51_820),
        "esp" | "esp-transport" if outermost.contains("natt") => Some(4500),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ovn_over_9000_leaves_8942_and_wants_58_more() {
        let stack: Stack = "geneve:ovn".parse().expect("a stack");
        let said = EncapsulationReport::new(&stack, [10, 0, 0, 1].into(), Some(9000), 9000);
        let said = said.expect("over IPv4");
        assert_eq!(
            (said.guest_mtu, said.underlay_mtu),
            (Some(8942), Some(9058))
        );
        let unknown = EncapsulationReport::new(&stack, [10, 0, 0, 1].into(), None, 9000);
        assert_eq!(unknown.expect("over IPv4").guest_mtu, None);
    }

    #[test]
    fn of_several_pairs_the_largest_guests_and_the_largest_overhead_count() {
        let stack: Stack = "vxlan".parse().expect("a stack");
        let four = ([10, 0, 0, 1].into(), Some(1500), 1500);
        let six = (IpAddr::from([0u8; 16]), Some(1500), 1500);
        let large = ([10, 0, 0, 1].into(), Some(9000), 9000);
        let dead = ([10, 0, 0, 1].into(), None, 1500);
        for (pairs, guest_mtu, needs) in [
            ([four, six], Some(1430), Some((1500, 1570))),
            ([six, four], Some(1430), Some((1500, 1570))),
            ([four, large], Some(1450), Some((9000, 9050))),
            ([large, six], Some(1430), Some((9000, 9070))),
            ([six, dead], None, Some((1500, 1570))),
        ] {
            let [mut one, other] = pairs.map(|(address, carries, guests)| {
                EncapsulationReport::new(&stack, address, carries, guests).expect("a report")
            });
            one.join(other);
            let needed = one.underlay_mtu.map(|mtu| (one.guests, mtu));
            assert_eq!((one.guest_mtu, needed), (guest_mtu, needs), "{pairs:?}");
        }
    }

    #[test]
    fn the_port_is_that_of_the_outermost_tunnel() {
        let port = |text: &str| tunnel_port(&text.parse().expect("a stack"));
        assert_eq!(port("vxlan"), Some(4789));
        assert_eq!(port("vxlan+vlan"), Some(4789));
        assert_eq!(port("geneve:ovn+outer-vlan"), Some(6081));
        assert_eq!(port("geneve:ovn+esp"), None);
        assert_eq!(port("geneve:ovn+esp:natt"), Some(4500));
        assert_eq!(port("none"), None);
    }
}
