//! What the two tools are compared on.

use std::fmt;

use wirecost_model::cell::Network;
use wirecost_model::ip::IpVersion;
use wirecost_model::load::{Load, NamedLoad, Workload};
use wirecost_model::offload::{Offload, Profile};
use wirecost_model::plan::{Cores, Encapsulation, Vxlan};
use wirecost_model::transit::Transit;
use wirecost_model::units::format_rate;

/// MTU of the guests' devices in bytes: the one with the most segments for each byte.
pub(crate) const GUEST_MTU: u32 = 1500;
/// MTU of the underlay in bytes, as in the built-in plan.
const UNDERLAY_MTU: u32 = 9000;
/// Line rate where everything is offloaded, bits per second.
const LINE_RATE: u64 = 10_000_000_000;
/// Bytes per write, for both tools.
pub(crate) const MESSAGE: u32 = 128 * 1024;
/// Congestion control, for both tools.
pub(crate) const CONGESTION: &str = "cubic";

/// One network with its offloads.
#[derive(Debug, Clone)]
pub(crate) struct Configuration {
    pub(crate) network: Network,
    pub(crate) offload: Offload,
}

impl Configuration {
    /// All of them. With nothing offloaded an unlimited lab shows the generator's cost best; with
    /// everything offloaded an unlimited lab is bistable, so the line has a rate there.
    pub(crate) fn all(cores: Cores) -> Vec<Self> {
        let mut all = Vec::new();
        for encapsulation in [Encapsulation::None, Encapsulation::Vxlan(Vxlan::default())] {
            for (profile, rate) in [(Profile::None, None), (Profile::Tunnel, Some(LINE_RATE))] {
                let encapsulation = encapsulation.clone();
                let network = Network {
                    underlay_mtu: UNDERLAY_MTU,
                    rate,
                    underlay_ip: IpVersion::Ipv4,
                    encapsulation,
                    guest_ip: IpVersion::Ipv4,
                    guests: 1,
                    transit: Transit::wire(),
                    cores,
                };
                all.push(Self {
                    network,
                    offload: Offload::profile(profile),
                });
            }
        }
        all
    }
}

/// `vxlan, offload tunnel, 10gbit`.
impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, offload {}, ",
            self.network.encapsulation, self.offload
        )?;
        match self.network.rate {
            Some(rate) => f.write_str(&format_rate(rate)),
            None => f.write_str("no limit"),
        }
    }
}

/// The built-in load with the options that iperf3 is given.
pub(crate) fn stream() -> NamedLoad {
    NamedLoad::alone(Load {
        request: MESSAGE,
        congestion: Some(CONGESTION.to_owned()),
        ..Load::new(Workload::TcpStream)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_a_rate_where_everything_is_offloaded() {
        let labels: Vec<String> = Configuration::all(Cores::Split)
            .iter()
            .map(ToString::to_string)
            .collect();
        insta::assert_snapshot!(labels.join("\n"), @r"
        none, offload none, no limit
        none, offload tunnel, 10gbit
        vxlan, offload none, no limit
        vxlan, offload tunnel, 10gbit
        ");
    }
}
