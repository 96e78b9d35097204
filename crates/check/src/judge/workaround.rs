//! A workaround for a path that cannot be fixed yet: a route MTU.

use crate::report::PathReport;

/// A comment and the command that limit the sender's packets to the destination to `mtu` bytes, on the route that they
/// take already; empty where that route is unknown.
pub(crate) fn route_mtu_workaround(path: &PathReport, mtu: u32) -> Vec<String> {
    let route = path.leaving.as_ref().and_then(|way| way.route.as_ref());
    route.map_or_else(Vec::new, |route| {
        vec![
            format!("# until then, have this host send no more than {mtu} to that address:"),
            route.host_route_command(path.through_mapping.unwrap_or(path.to.address), mtu),
        ]
    })
}
