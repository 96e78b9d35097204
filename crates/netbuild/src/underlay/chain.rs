//! The path from host a to host b, hop by hop: first the namespaces and the wires between them, then what each hop does
//! with the packets that arrive.

use wirecost_model::transit::{Hop, HopKind, Icmp, Member, Mtus, Transit};

use crate::addresses::LinkEnd;
use crate::device::PeerNamespace;
use crate::error::BuildError;
use crate::names::UNDERLAY_DEVICE;
use crate::netlink::Netlink;
use crate::underlay::line_namespace::FAR;
use crate::underlay::node::{Node, TOWARDS_A, TOWARDS_B, WireEnd, wire};
use crate::underlay::router::{self, Port, Router};
use crate::underlay::{UnderlayParameters, fault, switch};

/// Number of the first link from the first fork to a member; there are up to 64 of them.
const TO_MEMBERS: u8 = 64;
/// Number of the first link from a member to the second fork.
const FROM_MEMBERS: u8 = 128;

/// Number of host b's link: each router begins another, and the two forks together one.
pub(super) fn last_link(transit: &Transit) -> u8 {
    let routers = transit.hops.iter();
    let routers = routers.filter(|hop| hop.kind == HopKind::Router);
    routers.count() as u8 + u8::from(!transit.paths.is_empty())
}

/// End of a wire at a host: the host's own underlay device.
pub(super) fn host(place: LinkEnd, mtu: u32) -> WireEnd {
    WireEnd {
        device: UNDERLAY_DEVICE.to_owned(),
        mtu,
        place: Some(place),
    }
}

/// Creates every namespace and device between the hosts, and the hosts' own devices. Where the hosts' lines have
/// namespaces of their own, `line_namespace` of host a and `b` of host b, the wires end there.
pub(super) fn build(
    transit: &Transit,
    UnderlayParameters { mtu, queues, ip }: UnderlayParameters,
    (a, line_namespace): (&mut Netlink, Option<PeerNamespace<'_>>),
    b: PeerNamespace<'_>,
) -> Result<Vec<Node>, BuildError> {
    let ends = [LinkEnd::near_a(0), LinkEnd::near_b(last_link(transit))];
    let wire_ends = ends.map(|place| match line_namespace {
        Some(_) => WireEnd::inner(FAR, None),
        None => host(place, mtu),
    });
    let [first, last] = wire_ends;
    let mut builder = ChainBuilder {
        a,
        line_namespace,
        nodes: Vec::new(),
        link: 0,
        open_end: (None, first),
        queues,
        to_set_up: Vec::new(),
    };
    for (number, hop) in (1..).zip(&transit.hops) {
        builder.hop(number, hop)?;
    }
    if !transit.paths.is_empty() {
        builder.fork(&transit.paths)?;
    }
    builder.attach(b, &last)?;
    let ChainBuilder {
        mut nodes,
        to_set_up,
        ..
    } = builder;
    for (node, setup) in nodes.iter_mut().zip(&to_set_up) {
        match setup {
            NodeSetup::Switch(hop) => switch::set_up(node, hop, queues)?,
            NodeSetup::Router(router) => {
                router::set_up(node, router, ends, ip)?;
                router::wait_until_ready(node, router, ip)?;
            }
        }
        if let NodeSetup::Switch(hop) | NodeSetup::Router(Router { hop: Some(hop), .. }) = setup {
            fault::set_up_faults(node, hop)?;
        }
    }
    Ok(nodes)
}

/// What is left to do in a namespace once all its wires exist.
enum NodeSetup<'a> {
    Switch(&'a Hop),
    Router(Router<'a>),
}

struct ChainBuilder<'a, 't> {
    /// Netlink connection of host a's namespace, which creates all devices, in whichever namespace.
    a: &'a mut Netlink,
    /// The namespace of host a's line, where that has one.
    line_namespace: Option<PeerNamespace<'a>>,
    nodes: Vec<Node>,
    /// One entry for each node.
    to_set_up: Vec<NodeSetup<'t>>,
    /// Number of the link that has been reached.
    link: u8,
    /// The known end of the next wire: at the node of this index, or at host a (`None`).
    open_end: (Option<usize>, WireEnd),
    /// Number of queues at the ends of every veth.
    queues: u32,
}

impl<'t> ChainBuilder<'_, 't> {
    fn node(&mut self, name: String, setup: NodeSetup<'t>) -> Result<usize, BuildError> {
        self.nodes.push(Node::create(name)?);
        self.to_set_up.push(setup);
        Ok(self.nodes.len() - 1)
    }

    /// Creates the wire from the loose end to the next namespace.
    fn attach(&mut self, next: PeerNamespace<'_>, wire_end: &WireEnd) -> Result<(), BuildError> {
        let (at, own) = &self.open_end;
        let namespace = at.map_or(self.line_namespace, |node| Some(self.nodes[node].as_peer()));
        wire(self.a, (namespace, own), (next, wire_end), self.queues)
    }

    /// Creates the wire from the loose end to a node, whose other device becomes the loose end.
    fn attach_node(&mut self, node: usize, near: &WireEnd, far: WireEnd) -> Result<(), BuildError> {
        let (at, own) = &self.open_end;
        let namespace = at.map_or(self.line_namespace, |node| Some(self.nodes[node].as_peer()));
        let next = self.nodes[node].as_peer();
        wire(self.a, (namespace, own), (next, near), self.queues)?;
        self.open_end = (Some(node), far);
        Ok(())
    }

    fn hop(&mut self, number: u32, hop: &'t Hop) -> Result<(), BuildError> {
        let name = format!("hop {number}, a {},", hop.kind.key());
        let (node, near, far) = match hop.kind {
            HopKind::Switch => (self.node(name, NodeSetup::Switch(hop))?, None, None),
            HopKind::Router => {
                let (near, far) = (LinkEnd::near_b(self.link), LinkEnd::near_a(self.link + 1));
                self.link += 1;
                let router = Router {
                    towards_a: vec![Port::new(TOWARDS_A, near)],
                    towards_b: vec![Port::new(TOWARDS_B, far)],
                    mtu: Some(hop.mtu),
                    icmp: hop.icmp,
                    hop: Some(hop),
                };
                let node = self.node(name, NodeSetup::Router(router))?;
                (node, Some(near), Some(far))
            }
        };
        let plugs = (
            WireEnd::inner(TOWARDS_A, near),
            WireEnd::inner(TOWARDS_B, far),
        );
        self.attach_node(node, &plugs.0, plugs.1)
    }

    /// Adds two routers that divide flows among the members between them.
    fn fork(&mut self, members: &[Member]) -> Result<(), BuildError> {
        let (near, far) = (LinkEnd::near_b(self.link), LinkEnd::near_a(self.link + 1));
        self.link += 1;
        let branch = |first: u8, side: fn(u8) -> LinkEnd| -> Vec<Port> {
            (0..members.len() as u8)
                .map(|number| Port::new(&format!("member{number}"), side(first + number)))
                .collect()
        };
        let first = Router {
            towards_a: vec![Port::new(TOWARDS_A, near)],
            towards_b: branch(TO_MEMBERS, LinkEnd::near_a),
            mtu: None,
            icmp: Icmp::Sent,
            hop: None,
        };
        let second = Router {
            towards_a: branch(FROM_MEMBERS, LinkEnd::near_b),
            towards_b: vec![Port::new(TOWARDS_B, far)],
            mtu: None,
            icmp: Icmp::Sent,
            hop: None,
        };
        let (outward, inward) = (first.towards_b.clone(), second.towards_a.clone());
        let first = self.node("the first fork".to_owned(), NodeSetup::Router(first))?;
        let second = self.node("the second fork".to_owned(), NodeSetup::Router(second))?;
        self.attach_node(
            first,
            &WireEnd::inner(TOWARDS_A, Some(near)),
            outward[0].wire_end(),
        )?;
        for (number, member) in members.iter().enumerate() {
            let near = Port::new(TOWARDS_A, outward[number].place.across());
            let far = Port::new(TOWARDS_B, inward[number].place.across());
            let plugs = (near.wire_end(), far.wire_end());
            let router = Router {
                towards_a: vec![near],
                towards_b: vec![far],
                mtu: member.mtu.map(Mtus::both),
                icmp: member.icmp,
                hop: None,
            };
            let node = self.node(format!("path {number}"), NodeSetup::Router(router))?;
            self.open_end = (Some(first), outward[number].wire_end());
            self.attach_node(node, &plugs.0, plugs.1)?;
            self.attach_node(
                second,
                &inward[number].wire_end(),
                inward[number].wire_end(),
            )?;
        }
        self.open_end = (Some(second), WireEnd::inner(TOWARDS_B, Some(far)));
        Ok(())
    }
}
