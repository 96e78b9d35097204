//! What one host could read of OVN's southbound database, another that is told to use the same one may not reach: that it
//! is missing there is then known from the first.

use crate::audited::AuditedHost;

/// Gives every host of OVN that could not read the database what another read at the same address. A Unix socket is a
/// host's own.
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
    use wirecost_audit::snapshot::{Chassis, Enter, HostStack, Ovs};

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
            enter: Enter::Here,
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
