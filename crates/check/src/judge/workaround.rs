//! A workaround for a path that cannot be fixed yet: a route MTU.

use crate::report::PathReport;

/// Has this host send no more than `mtu` bytes to that destination, by the way that packets take already: what it is
/// for, and the command. Nothing where that way is not known.
pub(crate) fn route_mtu_workaround(path: &PathReport, mtu: u32) -> Vec<String> {
    let route = path.leaving.as_ref().and_then(|way| way.route.as_ref());
    route.map_or_else(Vec::new, |route| {
        vec![
            format!("# until then, have this host send no more than {mtu} to that address:"),
            route.only_to(path.through_mapping.unwrap_or(path.to.address), mtu),
        ]
    })
}
