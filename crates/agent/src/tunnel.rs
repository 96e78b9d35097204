//! A tunnel by hand: for trying applications over an encapsulation, between two network namespaces or this host and
//! a peer. It outlives the command that made it: devices are the kernel's, the programs on them are pinned.
//!
//! What was made is noted before it is made, so that `down` and `clean` find all of it, a half of it included.

mod bridge;
mod end;
mod note;

use std::io;
use std::net::IpAddr;

use serde::Serialize;
use wirecost_model::ip::IpVersion;
use wirecost_model::plan::Encapsulation;
use wirecost_netbuild::{Side, by_hand, underlay};
use wirecost_sys::namespace::{self, Netns};
use wirecost_vtep::Counters;

use crate::address;
use crate::stray::Owner;

pub use note::{End, Note};

use note::Home;

/// Longest name of a tunnel in bytes: its port's device has one letter and a sign more, and devices 15.
pub const NAME_MAX: usize = 13;

/// What a tunnel is to be.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Letters, digits and `-`, at most [`NAME_MAX`]: the guest's device is called so.
    pub name: String,
    /// How frames cross the underlay.
    pub encapsulation: Encapsulation,
    /// MTU of the guest's device in bytes; `None` is 1500, or what the underlay leaves where that is less.
    pub mtu: Option<u32>,
    /// Where its ends are.
    pub between: Between,
}

/// Where a tunnel's ends are.
#[derive(Debug, Clone)]
pub enum Between {
    /// Two network namespaces that are made for it, NAME-a and NAME-b, joined by an underlay of their own.
    Namespaces {
        /// Which IP the underlay speaks.
        underlay: IpVersion,
    },
    /// This host and one where the same is done the other way round.
    Peer {
        /// The peer's address on the underlay.
        peer: IpAddr,
        /// The underlay's device; `None` is the one that has the address which packets to the peer leave with.
        underlay: Option<String>,
        /// The guest's own address, and the length of its network's prefix.
        address: (IpAddr, u8),
        /// A bridge of this host's own Open vSwitch that guest and tunnel become ports of, instead of eBPF.
        bridge: Option<String>,
    },
}

/// A tunnel and what became of it.
#[derive(Debug, Clone, Serialize)]
pub struct Shown {
    /// What was made.
    #[serde(flatten)]
    pub note: Note,
    /// Whether all of it is there.
    pub whole: bool,
    /// What is missing, in words.
    pub missing: Vec<String>,
    /// The network namespace that it was made in, in words, where that is another than the command's.
    pub place: Option<String>,
    /// Whether its programs could be looked at: root can.
    pub programs_seen: bool,
    /// What each end has counted, by its place in the note; those that have counted something.
    pub counters: Vec<Vec<(&'static str, u64)>>,
}

/// Makes a tunnel.
///
/// # Errors
/// In words. Nothing of it is left then, or the error says what is.
pub fn up(wanted: &Wanted) -> Result<Note, String> {
    let name = &wanted.name;
    check_name(name)?;
    let others = note::all();
    if others.iter().any(|other| other.name == *name) {
        return Err(format!(
            "there is a tunnel {name} already: `wirecost tunnel down {name}` removes it, `--name` gives another"
        ));
    }
    let ends = match &wanted.between {
        Between::Namespaces { underlay } => namespaces(wanted, *underlay),
        Between::Peer {
            peer,
            underlay,
            address,
            bridge,
        } => {
            let end = at_peer(wanted, *peer, underlay.as_deref(), *address)?;
            let end = End {
                bridge: bridge.clone(),
                ..end
            };
            let here = note::here();
            let mut others = others.iter().filter(|other| other.home == here);
            if let Some(other) = others.find(|other| collide(other, &wanted.encapsulation, &end)) {
                return Err(format!(
                    "tunnel {} takes {} on {} already, and would take what comes for this one: `wirecost tunnel down {}` \
                     removes it; another encapsulation or VLAN can be beside it",
                    other.name,
                    what_it_takes(&other.encapsulation),
                    end.underlay,
                    other.name
                ));
            }
            vec![end]
        }
    };
    let mut made = Note {
        name: name.clone(),
        encapsulation: wanted.encapsulation.clone(),
        home: match wanted.between {
            Between::Namespaces { .. } => None,
            Between::Peer { .. } => note::here(),
        },
        own_namespaces: matches!(wanted.between, Between::Namespaces { .. }),
        maker: Owner::this()
            .map_err(|error| format!("reading /proc: {error}"))?
            .argument(),
        complete: false,
        ends,
    };
    note::write(&made)?;
    if let Err(error) = build(&mut made, wanted) {
        return Err(match take_down(&made) {
            Ok(()) => error,
            Err(left) => format!("{error}; and what was made until then is left: {left}"),
        });
    }
    made.complete = true;
    note::write(&made)?;
    Ok(made)
}

/// Whether two ends of this host would take the same frames: an endpoint takes all of its UDP port, whatever the VNI,
/// or all of its VLAN.
fn collide(other: &Note, encapsulation: &Encapsulation, end: &End) -> bool {
    let takes = what_it_takes(encapsulation);
    // In a bridge Open vSwitch tells them apart.
    let theirs = other.ends.iter().filter(|end| end.bridge.is_none());
    end.bridge.is_none()
        && takes == what_it_takes(&other.encapsulation)
        && theirs
            .filter(|theirs| theirs.underlay_index == end.underlay_index)
            .any(|theirs| !encapsulation.is_tunnel() || theirs.local == end.local)
}

fn what_it_takes(encapsulation: &Encapsulation) -> String {
    let kind = encapsulation.to_string();
    let word = kind.split(' ').next().unwrap_or_default();
    match encapsulation {
        Encapsulation::None => "frames without encapsulation".to_owned(),
        Encapsulation::Vlan(_) => kind,
        _ => format!("all of {word}"),
    }
}

/// # Errors
/// In words: a name that devices cannot have.
pub fn check_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(fits) {
        return Err(format!(
            "a tunnel cannot be called `{name}`: write letters, digits and `-`, at most {NAME_MAX}, for devices are \
             called after it"
        ));
    }
    Ok(())
}

fn namespaces(wanted: &Wanted, ip: IpVersion) -> Vec<End> {
    let wire = wirecost_model::transit::Transit::wire();
    let end = |side: Side| {
        let name = format!("{}-{}", wanted.name, side.name());
        End {
            namespace: Some(name),
            namespace_made: false,
            underlay: wirecost_netbuild::UNDERLAY_DEVICE.to_owned(),
            underlay_index: None,
            local: underlay::address(&wire, side, ip),
            peer: underlay::address(&wire, side.other(), ip),
            device: wanted.name.clone(),
            address: by_hand::guest_address(side),
            prefix: by_hand::GUEST_PREFIX,
            mtu: wanted.mtu.unwrap_or(end::USUAL_MTU),
            bridge: None,
        }
    };
    vec![end(Side::A), end(Side::B)]
}

fn at_peer(
    wanted: &Wanted,
    peer: IpAddr,
    underlay: Option<&str>,
    (guest, prefix): (IpAddr, u8),
) -> Result<End, String> {
    if peer.is_loopback() || peer.is_unspecified() || peer.is_multicast() {
        return Err(format!(
            "{peer} is no other host's address: name the peer's on the underlay"
        ));
    }
    let local =
        address::towards(peer).map_err(|error| format!("no route leads to {peer}: {error}"))?;
    if local == peer {
        return Err(format!(
            "{peer} is this host's own address: name the peer's on the underlay"
        ));
    }
    let own = address::own().map_err(|error| format!("listing addresses: {error}"))?;
    if let Some(taken) = own.iter().find(|own| own.address == guest) {
        return Err(format!(
            "{guest} is an address of {} already: give the tunnel another with --address",
            taken.device
        ));
    }
    let underlay = match underlay {
        Some(device) => device.to_owned(),
        None => device_of(local)?,
    };
    let index = by_hand::find(&underlay)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| {
            format!("there is no device {underlay}: `ip link` lists those of this host")
        })?;
    Ok(End {
        namespace: None,
        namespace_made: false,
        underlay,
        underlay_index: Some(index),
        local,
        peer,
        device: wanted.name.clone(),
        address: guest,
        prefix,
        mtu: wanted.mtu.unwrap_or(end::USUAL_MTU),
        bridge: None,
    })
}

fn device_of(local: IpAddr) -> Result<String, String> {
    let own = address::own().map_err(|error| format!("listing addresses: {error}"))?;
    let found = own.into_iter().find(|own| own.address == local);
    found.map(|own| own.device).ok_or_else(|| {
        format!("{local}, which packets to the peer leave with, is no device's: name one with --underlay")
    })
}

/// Makes what the note says, and notes what only making it tells.
fn build(made: &mut Note, wanted: &Wanted) -> Result<(), String> {
    if let [only] = &mut made.ends[..]
        && only.bridge.is_some()
    {
        bridge::join(only, &made.encapsulation, &made.name, wanted.mtu)?;
        return note::write(made);
    }
    note::prepare_pins()?;
    if let Between::Namespaces { underlay } = wanted.between {
        end::join(made, underlay)?;
    }
    for number in 0..made.ends.len() {
        end::attach(made, number, wanted.mtu)?;
        note::write(made)?;
    }
    Ok(())
}

/// Removes a tunnel.
///
/// # Errors
/// In words: that there is none of that name, or what could not be removed; the rest is.
pub fn down(name: &str) -> Result<Note, String> {
    let Some(made) = note::read(name) else {
        let names: Vec<String> = note::all().into_iter().map(|note| note.name).collect();
        let there = match &names[..] {
            [] => "there is none".to_owned(),
            names => format!("there are: {}", names.join(", ")),
        };
        return Err(format!("no tunnel is called {name}; {there}"));
    };
    match made.home() {
        Home::Here => take_down(&made)?,
        Home::At(netns, place) => netns
            .within(|| take_down(&made))
            .map_err(|error| format!("entering {place}, where {name} was made: {error}"))??,
        Home::Gone => forget(&made)?,
    }
    Ok(made)
}

/// Removes what is left of a tunnel whose devices went with their network namespace.
fn forget(made: &Note) -> Result<(), String> {
    for number in 0..made.ends.len() {
        end::unpin(made, number)?;
    }
    note::remove(&made.name)
}

/// Removes all that a note names, and then the note. All is tried.
fn take_down(made: &Note) -> Result<(), String> {
    let mut left: Vec<String> = Vec::new();
    let mut tried = |done: Result<(), String>| left.extend(done.err());
    // Nothing of ours is in a namespace of somebody else's that has the name.
    let ours = |end: &&End| end.namespace.is_none() || end.namespace_made;
    for number in 0..made.ends.len() {
        if ours(&&made.ends[number]) {
            tried(end::detach(made, number));
        }
    }
    if made.own_namespaces {
        let namespaces = made.ends.iter().filter(ours);
        for name in namespaces.filter_map(|end| end.namespace.as_ref()) {
            let removed = namespace::remove_named(name);
            tried(removed.map_err(|error| format!("removing network namespace {name}: {error}")));
        }
    }
    if !left.is_empty() {
        return Err(left.join("; "));
    }
    note::remove(&made.name)
}

/// The tunnels of this machine, sorted by name.
pub fn all() -> Vec<Shown> {
    note::all().into_iter().map(show).collect()
}

fn show(note: Note) -> Shown {
    let all = 0..note.ends.len();
    let look = || {
        all.clone()
            .flat_map(|number| end::missing(&note, number))
            .collect()
    };
    let (missing, place): (Vec<String>, Option<String>) = match note.home() {
        Home::Here => (look(), None),
        Home::At(netns, place) => (netns.within(look).unwrap_or_default(), Some(place)),
        Home::Gone => (
            vec!["the network namespace that it was made in".to_owned()],
            None,
        ),
    };
    let mut counters = Vec::new();
    for number in all {
        let counted = wirecost_vtep::pinned::counters(&note.pins(number));
        counters.push(
            counted
                .map(|counters| nonzero(&counters))
                .unwrap_or_default(),
        );
    }
    Shown {
        whole: note.complete && missing.is_empty(),
        missing,
        place,
        programs_seen: !end::pins_are_hidden(&note),
        counters,
        note,
    }
}

fn nonzero(counters: &Counters) -> Vec<(&'static str, u64)> {
    let all = wirecost_vtep::Counter::ALL.into_iter();
    all.map(|counter| (counter.name(), counters.get(counter)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// What `clean` did with tunnels.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// Those that were half made, or of which something is missing: removed.
    pub removed: Vec<String>,
    /// Pairs of devices of nobody's: removed.
    pub devices: Vec<String>,
    /// Those that are whole, and stay.
    pub up: Vec<String>,
    /// What could not be removed, and why.
    pub refused: Vec<(String, String)>,
}

/// Removes what tunnels left behind where their making was cut short or something else took a part of them away. Those
/// that are whole stay.
pub fn clean() -> Cleaned {
    let mut cleaned = Cleaned::default();
    let mut in_use = Vec::new();
    for shown in all() {
        let name = shown.note.name.clone();
        let indexes = shown.note.ends.iter().filter_map(|end| end.underlay_index);
        in_use.extend(indexes.map(wirecost_vtep::sending_end));
        let being_made =
            !shown.note.complete && Owner::parse(&shown.note.maker).is_some_and(Owner::is_alive);
        if shown.whole || being_made {
            cleaned.up.push(name);
            continue;
        }
        match down(&name) {
            Ok(_) => cleaned.removed.push(name),
            Err(error) => cleaned.refused.push((name, error)),
        }
    }
    let strays = by_hand::devices().unwrap_or_default().into_iter();
    let is_stray = |name: &String| {
        let number = name
            .strip_prefix("wcseg")
            .and_then(|rest| rest.strip_suffix('s'));
        number.is_some_and(|number| number.parse::<u32>().is_ok()) && !in_use.contains(name)
    };
    for device in strays.filter(is_stray) {
        match by_hand::remove(&device) {
            Ok(()) => cleaned.devices.push(device),
            Err(error) => cleaned.refused.push((device, error.to_string())),
        }
    }
    cleaned
}

/// Runs `work` in an end's namespace. `None`: it is gone.
fn within<T>(end: &End, work: impl FnOnce() -> T) -> Result<Option<T>, String> {
    let Some(name) = &end.namespace else {
        return Ok(Some(work()));
    };
    let entered = Netns::named(name).and_then(|netns| netns.within(work));
    match entered {
        Ok(done) => Ok(Some(done)),
        // The name is gone, or nothing is behind it any more.
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(format!("entering network namespace {name}: {error}")),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
    )
}
