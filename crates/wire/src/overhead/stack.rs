//! A stack of encapsulations, and the rules for combining them.

use std::fmt;

use wirecost_model::ip::IpVersion;

use super::catalogue::{
    CatalogueEntry, ENCAPLIMIT, Header, InnerPayload, MPLS_ORDER, Number, OptionSyntax, Piece,
    Role, every,
};

/// Prefix of the names of tags on the line.
const OUTER: &str = "outer-";

/// A valid stack of encapsulations around a guest packet, innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    pub(super) layers: Vec<Layer>,
    /// Tags of the frame on the line.
    pub(super) outer: Option<&'static CatalogueEntry>,
}

/// One encapsulation with its options, and the tags of the frame that it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) of: &'static CatalogueEntry,
    pub(super) options: Options,
    pub(super) inner: Option<&'static CatalogueEntry>,
}

/// The options after the colon, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Options {
    pub(super) words: Vec<&'static str>,
    pub(super) number: u32,
}

/// An encapsulation as it was written, not yet checked against the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) of: &'static CatalogueEntry,
    pub(super) options: Options,
}

/// Why encapsulations cannot be combined: the problem, and what to write instead.
pub(super) type Refusal = (String, String);

impl Layer {
    /// Whether an element of the layout is present with these options.
    pub(super) fn has(&self, piece: &Piece) -> bool {
        match piece {
            Piece::With(word, _) => self.options.words.contains(word),
            _ => true,
        }
    }

    fn carries(&self) -> InnerPayload {
        match self.of.syntax {
            OptionSyntax::OneOf(_) if self.options.words.contains(&"ethernet") => {
                InnerPayload::Frames
            }
            _ => self.of.carries,
        }
    }
}

impl Stack {
    /// Whether the stack is no encapsulation.
    pub const fn is_none(&self) -> bool {
        self.layers.is_empty() && self.outer.is_none()
    }

    /// Describes the stack in words, innermost first: `Geneve with 8 option bytes, in ESP in tunnel mode`.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for layer in &self.layers {
            if !text.is_empty() {
                text.push_str(", in ");
            }
            text.push_str(layer.of.title);
            let with = layer.with_words();
            if !with.is_empty() {
                text.push(' ');
                text.push_str(&with.join(" and "));
            }
        }
        match self.outer {
            Some(tags) if text.is_empty() => tags.title.into(),
            Some(tags) => format!("{text}, with {}", tags.title),
            None if text.is_empty() => "no encapsulation".into(),
            None => text,
        }
    }

    /// Notes on the encapsulations of the stack, each once.
    pub fn notes(&self, underlay: IpVersion) -> Vec<&'static str> {
        let mut notes = Vec::new();
        for layer in &self.layers {
            let of_ipv6 = matches!(layer.of.syntax, OptionSyntax::AnyOf(words) if words.iter().any(|word| word.word == ENCAPLIMIT));
            let matters = !of_ipv6
                || (underlay == IpVersion::Ipv6 && !layer.options.words.contains(&ENCAPLIMIT));
            if matters {
                notes.push(layer.of.note);
            }
        }
        if self
            .layers
            .windows(2)
            .any(|pair| pair[0].of.role == Role::Tunnel && pair[1].of.name == "esp")
        {
            notes.push(
                "`esp` is tunnel mode, with an IP header of its own. Where the tunnel's own ends encrypt, as OVN's do \
                 (ovs-monitor-ipsec sets type=transport), write `esp-transport`: one IP header less.",
            );
        }
        notes.extend(self.outer.map(|tags| tags.note));
        notes.retain(|note| !note.is_empty());
        let mut seen = Vec::new();
        notes.retain(|note| {
            !seen.contains(note) && {
                seen.push(*note);
                true
            }
        });
        notes
    }

    /// VLAN tags of the frame on the line.
    pub(super) fn line_tags(&self) -> impl Iterator<Item = Header> {
        tags(self.outer)
    }

    /// Combines encapsulations, innermost first, or says why they cannot be combined.
    pub(super) fn assemble(items: Vec<Item>) -> Result<Self, Refusal> {
        let mut stack = Self {
            layers: Vec::new(),
            outer: None,
        };
        let alone = items.len() == 1;
        for item in items {
            if let Some(outer) = stack.outer {
                return Err((
                    format!(
                        "`{}` tags the frame on the line, and nothing stands outside that",
                        outer.name
                    ),
                    format!("write `{}` last, and once", outer.name),
                ));
            }
            match item.of.role {
                Role::Nothing if alone => {}
                Role::Nothing => {
                    return Err((
                        "`none` is no encapsulation, so it cannot be part of one".into(),
                        "leave it out".into(),
                    ));
                }
                Role::OuterTag => stack.outer = Some(item.of),
                // Without a tunnel the guest's frame is the frame on the line.
                Role::InnerTag if alone => stack.outer = on_the_line(item.of),
                Role::InnerTag => stack.tag(item.of)?,
                Role::Tunnel | Role::Transport | Role::Shim(_) => stack.wrap(item)?,
            }
        }
        Ok(stack)
    }

    /// Tags the frame that the outermost encapsulation so far carries.
    fn tag(&mut self, tags: &'static CatalogueEntry) -> Result<(), Refusal> {
        let name = tags.name;
        let Some(layer) = self.layers.last_mut() else {
            return Err((
                format!(
                    "`{name}` at the beginning can be read two ways, as a tag of the guest's frame and as one of the \
                     frame on the line"
                ),
                format!(
                    "write `vxlan+{name}` for a tag inside a tunnel that carries Ethernet, which takes from the MTU, \
                     and `vxlan+outer-{name}` for one on the line, which does not"
                ),
            ));
        };
        let carrier = layer.of.name;
        if layer.carries() != InnerPayload::Frames {
            return Err((
                format!("`{name}` tags an Ethernet frame, and there is none in `{carrier}`"),
                format!(
                    "write `{carrier}+outer-{name}` for a tag of the frame on the line, or take a tunnel that carries \
                     Ethernet"
                ),
            ));
        }
        if layer.inner.is_some() {
            return Err((
                format!("the frame in `{carrier}` has its tags already"),
                "write `qinq` for two tags".into(),
            ));
        }
        layer.inner = Some(tags);
        Ok(())
    }

    /// Puts the stack so far into a further encapsulation.
    fn wrap(&mut self, item: Item) -> Result<(), Refusal> {
        let layer = Layer {
            of: item.of,
            options: item.options,
            inner: None,
        };
        let name = layer.of.name;
        // A shim makes no packet: it needs the Ethernet header of a frame, that of the line or of a tunnel.
        let below = self.layers.last().and_then(|below| match below.of.role {
            Role::Shim(order) => Some((below.of.name, order)),
            _ => None,
        });
        match (layer.of.role, below) {
            (_, None) => {}
            (Role::Shim(order), Some((_, below))) if order > below => {}
            (Role::Shim(order), Some((shim, below))) if order == below => {
                let help = if below == MPLS_ORDER {
                    "write `mpls:2` for two labels"
                } else {
                    "write it once"
                };
                return Err((format!("one frame cannot have `{shim}` twice"), help.into()));
            }
            (Role::Shim(_), Some((shim, _))) => {
                return Err((
                    format!("in one frame `{name}` stands inside `{shim}`, not outside"),
                    format!("write `{name}` further to the left: what is inside comes first"),
                ));
            }
            _ if layer.carries() == InnerPayload::Frames => {}
            (_, Some((_, order)))
                if order == MPLS_ORDER && layer.carries() == InnerPayload::IpOrMpls => {}
            (_, Some((shim, _))) => {
                return Err((
                    format!("`{name}` carries IP packets, and `{shim}` makes Ethernet payload"),
                    format!(
                        "write `{name}+{shim}` for {shim} on the line, or take a tunnel that carries Ethernet, such as \
                         `{shim}+gretap`"
                    ),
                ));
            }
        }
        self.layers.push(layer);
        Ok(())
    }
}

impl Layer {
    /// Describes the options and the inner tags in words.
    fn with_words(&self) -> Vec<String> {
        let mut with = Vec::new();
        match self.of.syntax {
            OptionSyntax::AnyOf(words) | OptionSyntax::OneOf(words) => {
                let given = words
                    .iter()
                    .filter(|word| self.options.words.contains(&word.word));
                with.extend(given.map(|word| word.means.to_owned()));
            }
            OptionSyntax::Number(Number { what, .. }) if self.options.number > 0 => {
                let what = if self.options.number == 1 {
                    what.trim_end_matches('s')
                } else {
                    what
                };
                with.push(format!("with {} {what}", self.options.number));
            }
            OptionSyntax::Number(_) | OptionSyntax::Nothing => {}
        }
        let tags = self.inner.map(|tags| match tags.name {
            "qinq" => "with two VLAN tags inside".to_owned(),
            _ => "with a VLAN tag inside".to_owned(),
        });
        with.extend(tags);
        with
    }

    /// VLAN tags of the frame that the encapsulation carries.
    pub(super) fn inner_tags(&self) -> impl Iterator<Item = Header> {
        tags(self.inner)
    }
}

/// The entry for the same tags on the line.
fn on_the_line(tags: &CatalogueEntry) -> Option<&'static CatalogueEntry> {
    every()
        .iter()
        .find(|other| other.name.strip_prefix(OUTER) == Some(tags.name))
}

fn tags(of: Option<&'static CatalogueEntry>) -> impl Iterator<Item = Header> {
    of.into_iter()
        .flat_map(|tags| tags.layout)
        .filter_map(|piece| match piece {
            Piece::Header(tag) => Some(*tag),
            _ => None,
        })
}

/// Writes the stack as an expression that parses to the same stack.
impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Vec::new();
        for layer in &self.layers {
            names.push(layer.to_string());
            names.extend(layer.inner.map(|tags| tags.name.to_owned()));
        }
        names.extend(self.outer.map(|tags| {
            let alone = tags.name.strip_prefix(OUTER).filter(|_| names.is_empty());
            alone.unwrap_or(tags.name).to_owned()
        }));
        if names.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&names.join("+"))
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.of.name)?;
        match self.of.syntax {
            OptionSyntax::Number(number) if self.options.number != number.default => {
                let value = self.options.number;
                match number.named.iter().find(|(_, named)| *named == value) {
                    Some((word, _)) => write!(f, ":{word}"),
                    None => write!(f, ":{value}"),
                }
            }
            OptionSyntax::AnyOf(_) | OptionSyntax::OneOf(_) if !self.options.words.is_empty() => {
                write!(f, ":{}", self.options.words.join(","))
            }
            _ => Ok(()),
        }
    }
}
