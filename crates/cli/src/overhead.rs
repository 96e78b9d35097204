//! `wirecost overhead`: computes what encapsulations cost; nothing is measured or sent.

mod document;
mod figures;
mod overview;
mod page;
mod single;

#[cfg(test)]
mod tests;

use std::error::Error;

use clap::Args;
use wirecost_model::ip::IpVersion;
use wirecost_model::units::{UnitError, parse_rate};
use wirecost_wire::overhead::Stack;

use self::document::{Document, Question, Sizes};
use crate::failure::{Cause, CommandResult, Failure};
use crate::screen;

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Overhead {
    /// Encapsulations around a guest's packet, from the guest outwards [default: a table of all]
    encapsulation: Option<String>,
    /// IP MTU of the underlay; several are joined by commas
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "1500"
    )]
    underlay_mtu: Vec<u32>,
    /// The reverse question: which underlay MTU carries this guest MTU
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        conflicts_with = "underlay_mtu"
    )]
    guest_mtu: Vec<u32>,
    /// The underlay is IPv6, and so are the outer headers of all tunnels
    #[arg(long)]
    ipv6: bool,
    /// The guests use IPv6, 20 bytes more per segment
    #[arg(long)]
    guest_ipv6: bool,
    /// Rate of the line, such as 10gbit: shows Gbit/s and frames/s
    #[arg(long, value_parser = rate)]
    rate: Option<u64>,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
ENCAPSULATION is NAME[:OPTION[,OPTION]], joined by + from the guest outwards: each is carried by the \
one to its right. The result shows the frame part by part, outermost first.

  geneve:ovn+esp     Geneve inside ESP
  vxlan+vlan         VXLAN that carries tagged frames: the tag takes 4 bytes of the MTU
  vxlan+outer-vlan   VXLAN on a tagged line: 4 bytes more on the line, none of the MTU
  mpls:2+gretap      two MPLS labels in Ethernet in GRE

Tunnels of Ethernet  vxlan vxlan-gpe:ethernet geneve[:BYTES|:ovn] gretap[:key,csum,seq] nvgre stt
Tunnels of IP        vxlan-gpe:ip gre[:key,csum,seq] ipip wireguard esp[:natt]
Protection of IP     esp-transport[:natt]: no IP header of its own (as OVN runs ESP)
In the line's frame  mpls[:LABELS] pppoe macsec, and last outer-vlan or outer-qinq
In a tunnel's frame  vlan or qinq behind it; a single vlan or qinq is on the line
Over IPv6            gre, gretap, nvgre and ipip take :encaplimit, Linux's default there

ESP is with AES-GCM and a 16-byte integrity check. Goodput is TCP's with timestamps.
Exit codes: 0 computed, 2 the command line is wrong or nothing fits.";

/// Parses a rate into bit/s.
fn rate(text: &str) -> Result<u64, UnitError> {
    parse_rate(text)
}

pub(crate) fn overhead(arguments: &Overhead) -> CommandResult {
    let question = arguments.question();
    let wrong = |error: &dyn Error| Failure::of(Cause::Usage, error);
    let document = match &arguments.encapsulation {
        Some(text) => {
            let stack = text.parse::<Stack>().map_err(|error| wrong(&error))?;
            Document::of_one(&stack, &question).map_err(|error| wrong(error.as_ref()))?
        }
        None => Document::of_all(&question).map_err(|error| wrong(&error))?,
    };
    if arguments.json {
        screen::print_json(&document)
    } else {
        screen::print(&text(&document, screen::terminal().width))
    }
}

/// The document as text: one encapsulation part by part, or a table of all.
fn text(document: &Document, width: usize) -> String {
    match document.encapsulations.as_slice() {
        [one] => single::text(document, one, width),
        all => overview::text(document, all, width),
    }
}

impl Overhead {
    fn question(&self) -> Question {
        let version = |six| {
            if six {
                IpVersion::Ipv6
            } else {
                IpVersion::Ipv4
            }
        };
        Question {
            underlay: version(self.ipv6),
            guest: version(self.guest_ipv6),
            rate_bps: self.rate,
            sizes: if self.guest_mtu.is_empty() {
                Sizes::Underlay(self.underlay_mtu.clone())
            } else {
                Sizes::Guest(self.guest_mtu.clone())
            },
        }
    }
}
