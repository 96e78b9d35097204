//! Shares what one host read of OVN's southbound database with hosts that use the same database and could not read it:
//! whether such a host is missing in the database is then known.

use crate::audited::AuditedHost;

/// Gives every host of OVN that could not read the database what another host read at the same address. A Unix socket
/// names a host's own database and is left out.
pub(crate) fn share(hosts: &mut [AuditedHost]) {
    let read: Vec<_> = hosts
        .iter()
        .filter_map(|host| {
            let ovs = host.stack.ovs.as_ref()?;
            Some((
                ovs.external_ids.get("ovn-remote")?.clone(),
                ovs.chassis.clone()?,
            ))
        })
        .collect();
    for ovs in hosts.iter_mut().filter_map(|host| host.stack.ovs.as_mut()) {
        let remote = ovs.external_ids.get("ovn-remote");
        let Some(remote) = remote.filter(|remote| !remote.starts_with("unix:")) else {
            continue;
        };
        if ovs.chassis.is_none() {
            let same = read.iter().find(|(other, _)| other == remote);
            ovs.chassis = same.map(|(_, chassis)| chassis.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use wirecost_audit::snapshot::{Chassis, HostStack, NetnsEntry, Ovs};

    use super::*;

    fn host(name: &str, remote: &str, chassis: Option<&str>) -> AuditedHost {
        let chassis = chassis.map(|name| {
            vec![Chassis {
                name: name.to_owned(),
                ..Chassis::default()
            }]
        });
        let ids = [("ovn-remote", remote), ("system-id", name)];
        AuditedHost {
            stack: HostStack {
                host: name.to_owned(),
                ovs: Some(Ovs {
                    external_ids: ids.map(|(key, value)| (key.into(), value.into())).into(),
                    chassis,
                    ..Ovs::default()
                }),
                ..HostStack::default()
            },
            machine: name.to_owned(),
            enter: NetnsEntry::Here,
            rules: Vec::new(),
        }
    }

    fn known(host: &AuditedHost) -> bool {
        let ovs = host.stack.ovs.as_ref().expect("a switch");
        ovs.chassis.is_some()
    }

    #[test]
    fn a_host_that_cannot_reach_the_database_is_held_against_what_another_read() {
        let mut hosts = [
            host("a", "tcp:10.0.0.9:6642", Some("a")),
            host("b", "tcp:10.0.0.9:6642", None),
            host("c", "tcp:10.0.0.8:6642", None),
        ];
        share(&mut hosts);
        assert_eq!(hosts.each_ref().map(known), [true, true, false]);
        let mut hosts = [
            host("a", "unix:/run/ovn/ovnsb_db.sock", Some("a")),
            host("b", "unix:/run/ovn/ovnsb_db.sock", None),
        ];
        share(&mut hosts);
        assert!(!known(&hosts[1]));
    }
}
