//! `wirecost tunnel`: makes, shows and removes tunnels between two network namespaces, or this host and a peer, to test
//! applications over them.

use std::fmt::Write as _;
use std::net::IpAddr;

use clap::{Args, Subcommand};
use serde_json::json;
use wirecost_control::tunnel::{self, TunnelEnds, TunnelSpec, TunnelState, TunnelStatus};
use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion;
use wirecost_model::plan::{Description, Encapsulation};

use crate::failure::{Cause, CommandResult, Failure};
use crate::screen;

/// Default name of a tunnel.
const USUAL_NAME: &str = "wirecost0";

#[derive(Debug, Args)]
pub(crate) struct Tunnel {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a tunnel, with eBPF or in an Open vSwitch bridge; it stays after this command ends
    Up(Up),
    /// Remove a tunnel, with its devices, programs and namespaces
    Down(Down),
    /// Show the tunnels of this machine and their counters
    Show(Show),
}

#[derive(Debug, Args)]
struct Up {
    /// The encapsulation: vlan, vxlan, geneve or none, as in a plan
    encapsulation: String,
    /// Its options, as in a plan: options=ovn, udp_checksum=on, vni=7, inner_vlan=100, source_ports=1000-2000
    #[arg(value_name = "KEY=VALUE")]
    options: Vec<String>,
    /// Name of the tunnel and its device
    #[arg(long, default_value = USUAL_NAME)]
    name: String,
    /// MTU of the guest's device in bytes [default: 1500, or what the underlay leaves]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(576..=65535))]
    mtu: Option<u32>,
    /// Underlay address of the other end, where the same command has to be run; without it both ends are made here,
    /// in the new network namespaces NAME-a and NAME-b
    #[arg(long, value_name = "ADDRESS", requires = "address")]
    peer: Option<IpAddr>,
    /// Address and prefix of the guest's device, such as 192.0.2.1/24
    #[arg(long, value_name = "ADDRESS/LENGTH", requires = "peer", value_parser = with_prefix)]
    address: Option<(IpAddr, u8)>,
    /// The device towards the peer [default: that of the route to it]
    #[arg(long, value_name = "DEVICE", requires = "peer")]
    underlay: Option<String>,
    /// A bridge of this host's Open vSwitch: guest and tunnel become its ports, instead of eBPF
    #[arg(long, value_name = "NAME", requires = "peer")]
    bridge: Option<String>,
    /// IPv6 between the two namespaces
    #[arg(long, conflicts_with = "peer")]
    ipv6: bool,
    /// Print what was made as one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Down {
    /// Name of the tunnel
    #[arg(default_value = USUAL_NAME)]
    name: String,
    /// Print what was removed as one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Show {
    /// Print the tunnels as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn tunnel(arguments: &Tunnel) -> CommandResult {
    match &arguments.command {
        Command::Up(arguments) => up(arguments),
        Command::Down(arguments) => down(arguments),
        Command::Show(arguments) => show(arguments),
    }
}

fn up(arguments: &Up) -> CommandResult {
    let wrong = |message: String| Failure::new(Cause::Usage, message);
    tunnel::check_name(&arguments.name).map_err(|error| wrong(error.to_string()))?;
    let datapath = match arguments.bridge {
        Some(_) => Datapath::Ovs,
        None => Datapath::Ebpf,
    };
    let encapsulation =
        encapsulation(&arguments.encapsulation, &arguments.options, datapath).map_err(wrong)?;
    let between = match (arguments.peer, arguments.address) {
        (Some(peer), Some(address)) => TunnelEnds::Peer {
            peer,
            underlay: arguments.underlay.clone(),
            address,
            bridge: arguments.bridge.clone(),
        },
        _ => TunnelEnds::Namespaces {
            underlay: if arguments.ipv6 {
                IpVersion::Ipv6
            } else {
                IpVersion::Ipv4
            },
        },
    };
    let over_ipv4 = arguments
        .peer
        .map_or(!arguments.ipv6, |peer| peer.is_ipv4());
    let wanted = TunnelSpec {
        name: arguments.name.clone(),
        encapsulation: datapath.resolved(encapsulation, over_ipv4),
        mtu: arguments.mtu,
        between,
    };
    let note = tunnel::up(&wanted).map_err(failed)?;
    if arguments.json {
        screen::print(&json!({ "tunnel": note }).to_string())
    } else {
        screen::print(&made(&note))
    }
}

fn down(arguments: &Down) -> CommandResult {
    let note = tunnel::down(&arguments.name).map_err(failed)?;
    if arguments.json {
        screen::print(&json!({ "removed": note }).to_string())
    } else {
        screen::print(&format!("tunnel {} is removed", note.name))
    }
}

fn show(arguments: &Show) -> CommandResult {
    let all = tunnel::all();
    if arguments.json {
        return screen::print(&json!({ "tunnels": all }).to_string());
    }
    if all.is_empty() {
        return screen::print("there is no tunnel; `wirecost tunnel up vxlan` makes one");
    }
    let lines: Vec<String> = all.iter().map(shown).collect();
    screen::print(&lines.join("\n"))
}

fn failed(message: impl std::fmt::Display) -> Failure {
    Failure::new(Cause::Machine, message.to_string())
}

/// Parses an encapsulation and its options with the plan's parser: same words, same errors.
fn encapsulation(
    word: &str,
    options: &[String],
    datapath: Datapath,
) -> Result<Encapsulation, String> {
    let pairs: Vec<(&str, &str)> = options
        .iter()
        .map(|option| {
            option.split_once('=').ok_or_else(|| {
                format!("`{option}` is not an option: write KEY=VALUE, such as udp_checksum=on")
            })
        })
        .collect::<Result<_, _>>()?;
    // Other characters could be read as YAML syntax.
    let plain = |text: &str| {
        let sign = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        !text.is_empty() && text.chars().all(sign)
    };
    let words = pairs.iter().flat_map(|(key, value)| [*key, *value]);
    if let Some(strange) = [word].into_iter().chain(words).find(|text| !plain(text)) {
        return Err(format!(
            "`{strange}`: an encapsulation and its options are letters, digits, `-` and `_`"
        ));
    }
    let kernels_alone = |kind: &Description| !kind.datapaths.contains(&Datapath::Ebpf);
    if Description::by_word(word).is_some_and(kernels_alone) {
        return Err(format!(
            "`{word}` is the kernel's own device (`ip link add ... type {word}`): choose none, vlan, vxlan or geneve \
             for `wirecost tunnel up`"
        ));
    }
    if let Some((key, _)) = pairs.first()
        && word == "none"
    {
        return Err(format!("`none` has no options, and no `{key}`"));
    }
    for (number, (key, _)) in pairs.iter().enumerate() {
        if pairs[..number].iter().any(|(before, _)| before == key) {
            return Err(format!("`{key}` is given twice"));
        }
    }
    let options: Vec<String> = pairs
        .iter()
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    let written = if options.is_empty() {
        word.to_owned()
    } else {
        format!("{{ {word}: {{ {} }} }}", options.join(", "))
    };
    let text = format!(
        "name: tunnel\nunderlay: {{ mtu: 65535 }}\nencapsulation: {written}\ndatapath: {}\n",
        datapath.key()
    );
    let experiment = wirecost_plan::load("the command line", &text).map_err(|errors| {
        let said = errors.errors().iter();
        let said = said.map(|error| {
            // The help text about `datapath` does not apply here: the command line has no such key.
            if error.message.contains("`datapath: ") {
                error.message.clone()
            } else {
                format!("{}; {}", error.message, error.help)
            }
        });
        said.collect::<Vec<_>>().join("\n")
    })?;
    let cell = experiment.cells.into_iter().next();
    cell.map(|cell| cell.network.encapsulation)
        .ok_or_else(|| "no encapsulation".to_owned())
}

fn with_prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || "write an address and the length of its prefix, such as 192.0.2.1/24".to_owned();
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let length: u8 = length.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    if length > most {
        return Err(format!("a prefix of {address} has at most {most} bits"));
    }
    Ok((address, length))
}

/// The text about a tunnel that was made, and how to use it.
fn made(state: &TunnelState) -> String {
    let mut text = format!("{} is up: {}", state.name, state.encapsulation);
    for end in &state.ends {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n  {}{} with {}/{}, MTU {}, {}over {} from {} to {}",
            end.namespace
                .as_ref()
                .map_or_else(String::new, |name| format!("in {name}: ")),
            end.device,
            end.address,
            end.prefix,
            end.mtu,
            end.bridge
                .as_ref()
                .map_or_else(String::new, |name| format!("in bridge {name}, ")),
            end.underlay,
            end.local,
            end.peer
        );
    }
    let try_it = match &state.ends[..] {
        [a, b] => {
            let name = a.namespace.as_deref().unwrap_or_default();
            format!("Try it: ip netns exec {name} ping {}", b.address)
        }
        _ => "Run the same command on the peer, with its own `--peer` and `--address`.".to_owned(),
    };
    let _ = write!(
        text,
        "\n{try_it}\n`wirecost tunnel down {}` removes it.",
        state.name
    );
    text
}

fn shown(tunnel: &TunnelStatus) -> String {
    let state = &tunnel.state;
    let mut text = format!("{}: {}", state.name, state.encapsulation);
    if !tunnel.intact {
        let missing = match &tunnel.missing[..] {
            [] => "it is incomplete".to_owned(),
            missing => format!("missing: {}", missing.join(", ")),
        };
        let _ = write!(
            text,
            " - broken, {missing}; `wirecost tunnel down {}` removes it",
            state.name
        );
    }
    if !tunnel.programs_seen {
        text.push_str(
            " - run `wirecost tunnel show` as root to see its programs and their counters",
        );
    }
    for (end, counters) in state.ends.iter().zip(&tunnel.counters) {
        let elsewhere = tunnel.place.as_deref().unwrap_or("this host");
        let place = end.namespace.as_deref().unwrap_or(elsewhere);
        let counted: Vec<String> = counters
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        let _ = write!(
            text,
            "\n  {place}: {} {}/{}, MTU {}, {} to {}{}{}",
            end.device,
            end.address,
            end.prefix,
            end.mtu,
            end.local,
            end.peer,
            if counted.is_empty() { "" } else { "; " },
            counted.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(word: &str, options: &[&str]) -> Result<String, String> {
        let options: Vec<String> = options.iter().map(|text| (*text).to_owned()).collect();
        encapsulation(word, &options, Datapath::Ebpf).map(|read| read.to_string())
    }

    #[test]
    fn an_encapsulation_is_written_as_records_label_it() {
        for label in [
            "none",
            "vlan id=7",
            "vxlan vni=9 udp_checksum=on",
            "geneve options=ovn source_ports=1000-2000 inner_vlan=100",
        ] {
            let mut words = label.split(' ');
            let word = words.next().expect("a word");
            let options: Vec<&str> = words.collect();
            assert_eq!(read(word, &options).as_deref(), Ok(label));
        }
    }

    #[test]
    fn what_a_plan_refuses_is_refused_with_the_plans_words() {
        let said = |word, options: &[&str]| read(word, options).expect_err("wrong");
        assert!(said("vxln", &[]).contains("did you mean `vxlan`?"));
        assert!(said("vxlan", &["vni=x"]).contains("`encapsulation.vxlan.vni` cannot be `x`"));
        assert!(said("vxlan", &["color=red"]).contains("has no key `color`"));
        assert!(said("geneve", &["options=7"]).contains("`encapsulation.geneve.options`"));
        assert!(said("vxlan", &["df=inherit"]).contains("cannot be built by `datapath: ebpf`"));
        assert!(said("vxlan", &["vni"]).contains("write KEY=VALUE"));
        // No way to write another plan between the lines.
        assert!(said("vxlan }\nhosts", &[]).contains("letters, digits"));
    }

    #[test]
    fn an_address_has_its_prefix() {
        assert_eq!(with_prefix("192.0.2.1/24"), Ok(([192, 0, 2, 1].into(), 24)));
        assert!(with_prefix("2001:db8::1/64").is_ok());
        for wrong in ["192.0.2.1", "192.0.2.1/33", "x/24", "192.0.2.1/"] {
            assert!(with_prefix(wrong).is_err(), "{wrong}");
        }
    }
}
