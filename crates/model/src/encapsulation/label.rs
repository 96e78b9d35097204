//! Names of an encapsulation: as a level of a factor, and as a stack of headers.

use std::fmt;

use super::{Encapsulation, GeneveOptions, Gre, IpTunnel, UdpTunnel, Vlan, Wireguard};

impl Encapsulation {
    /// The stack's name as `wirecost overhead` takes it: `none`, `outer-vlan`, `vxlan+vlan`, `geneve:ovn`, `gre:key`.
    pub fn stack(&self) -> String {
        let mut stack = self.kind().stack.to_owned();
        match self {
            Self::Geneve(geneve) if geneve.options != GeneveOptions::NONE => {
                stack.push(':');
                stack.push_str(&geneve.options.to_string());
            }
            Self::Gre(Gre { key: Some(_), .. }) | Self::Gretap(Gre { key: Some(_), .. }) => {
                stack.push_str(":key");
            }
            _ => {}
        }
        if self.inner_tag_bytes() > 0 {
            stack.push_str("+vlan");
        }
        stack
    }
}

/// The level's label: `none`, `vlan id=7`, `vxlan udp_checksum=on`, `geneve options=ovn`, `gre key=7`.
impl fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().word)?;
        match self {
            Self::Vlan(vlan) if *vlan != Vlan::default() => write!(f, " id={}", vlan.id)?,
            Self::Geneve(geneve) if geneve.options != GeneveOptions::NONE => {
                write!(f, " options={}", geneve.options)?;
            }
            Self::Wireguard(tunnel) if *tunnel != Wireguard::default() => {
                write!(f, " port={}", tunnel.port)?;
            }
            _ => {}
        }
        write_options(f, self.udp(), (self.kind().usual)().udp())?;
        write_ip_options(f, self.ip_tunnel())
    }
}

/// Writes the options of GRE and IP in IP that the plan gives.
fn write_ip_options(f: &mut fmt::Formatter<'_>, tunnel: Option<IpTunnel>) -> fmt::Result {
    let Some(tunnel) = tunnel else { return Ok(()) };
    if let Some(key) = tunnel.key {
        write!(f, " key={key}")?;
    }
    if let Some(ttl) = tunnel.ttl {
        write!(f, " ttl={ttl}")?;
    }
    if let Some(df) = tunnel.df {
        write!(f, " df={}", df.key())?;
    }
    Ok(())
}

/// Writes the options of VXLAN and Geneve that differ from the defaults.
fn write_options(
    f: &mut fmt::Formatter<'_>,
    tunnel: Option<UdpTunnel>,
    usual: Option<UdpTunnel>,
) -> fmt::Result {
    let (Some(tunnel), Some(usual)) = (tunnel, usual) else {
        return Ok(());
    };
    if tunnel.vni != usual.vni {
        write!(f, " vni={}", tunnel.vni)?;
    }
    if tunnel.port != usual.port {
        write!(f, " port={}", tunnel.port)?;
    }
    if tunnel.df != usual.df {
        write!(f, " df={}", tunnel.df.key())?;
    }
    if tunnel.udp_checksum {
        f.write_str(" udp_checksum=on")?;
    }
    if let Some(ports) = tunnel.source_ports {
        write!(f, " source_ports={ports}")?;
    }
    if let Some(id) = tunnel.inner_vlan {
        write!(f, " inner_vlan={id}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Geneve, Ipip, OuterDf, SourcePorts};
    use super::*;

    #[test]
    fn a_label_tells_what_is_not_usual() {
        let of = |encapsulation: Encapsulation| encapsulation.to_string();
        assert_eq!(of(Encapsulation::Vlan(Vlan::default())), "vlan");
        assert_eq!(of(Encapsulation::Vlan(Vlan { id: 7 })), "vlan id=7");
        assert_eq!(of(Encapsulation::Geneve(Geneve::default())), "geneve");
        let ovn = Geneve {
            options: GeneveOptions::Ovn,
            udp_checksum: true,
            inner_vlan: Some(9),
            source_ports: SourcePorts::parse("49152-65535"),
            ..Geneve::default()
        };
        assert_eq!(
            of(Encapsulation::Geneve(ovn)),
            "geneve options=ovn udp_checksum=on source_ports=49152-65535 inner_vlan=9"
        );
        assert_eq!(of(Encapsulation::Ipip(Ipip::default())), "ipip");
        let elsewhere = Encapsulation::Wireguard(Wireguard { port: 51821 });
        assert_eq!(of(elsewhere), "wireguard port=51821");
        let keyed = Gre {
            key: Some(0),
            ttl: Some(64),
            df: Some(OuterDf::Set),
        };
        assert_eq!(
            of(Encapsulation::Gretap(keyed)),
            "gretap key=0 ttl=64 df=set"
        );
    }
}
