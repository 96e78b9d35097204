//! Errors of building a network: the step that failed, and what to do about it.

use std::io;

use wirecost_model::datapath::Datapath;
use wirecost_model::plan::{Description, Driver};

/// A step of building a network that failed.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The kernel refused the step.
    #[error("{step}: {source}{}", hint.as_deref().map(|h| format!(" ({h})")).unwrap_or_default())]
    Refused {
        /// The step, with the device's name.
        step: String,
        /// What to do, where it is known.
        hint: Option<String>,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A device feature that cannot be set.
    #[error(
        "`{feature}` of {device} {problem}: `ethtool -k` of such a device lists what can be set"
    )]
    Feature {
        /// The feature by the kernel's name, as it was asked for.
        feature: String,
        /// The device as messages name it: in quotes, and with its place.
        device: String,
        /// Why the feature cannot be set.
        problem: &'static str,
    },
    /// The kernel accepted the step, and something else was read back.
    #[error("{step}: asked for {wanted}, read back {found}")]
    ReadBack {
        /// The step, with the device's name.
        step: String,
        /// The value that was asked for.
        wanted: String,
        /// The value that was read back.
        found: String,
    },
    /// What is not built in an existing host's network namespace.
    #[error("{0}")]
    NotBeside(String),
}

impl BuildError {
    /// Adds the place where the error happened.
    pub(crate) fn inside(mut self, place: &str) -> Self {
        match &mut self {
            Self::Refused { step, .. } | Self::ReadBack { step, .. } => {
                *step = format!("in {place} {step}");
            }
            Self::Feature { device, .. } => *device = format!("{device} in {place}"),
            Self::NotBeside(_) => {}
        }
        self
    }
}

/// The kernel's own error with its number, where it refused; otherwise the error as text.
impl From<BuildError> for io::Error {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Refused { source, .. } => source,
            other => Self::other(other),
        }
    }
}

/// Error number of a refusal, with or without the kernel's message (`NLMSGERR_ATTR_MSG`) around it.
pub fn error_code(error: &io::Error) -> Option<i32> {
    crate::netlink::code(error)
}

/// Adds the step that failed to an error.
pub(crate) trait Context<T> {
    fn with_context(self, step: impl FnOnce() -> String) -> Result<T, BuildError>;
}

impl<T> Context<T> for io::Result<T> {
    fn with_context(self, step: impl FnOnce() -> String) -> Result<T, BuildError> {
        self.map_err(|source| {
            let step = step();
            let hint = hint(&step, &source);
            BuildError::Refused { step, hint, source }
        })
    }
}

/// What to do where the kernel lacks the driver of an encapsulation's device.
fn driver_hint(step: &str) -> Option<String> {
    Description::ALL.iter().find_map(|encapsulation| {
        let named = |driver: &&Driver| step.contains(&format!(" {} device", driver.kind));
        let driver = encapsulation.drivers.iter().find(named)?;
        let Driver {
            kind,
            module,
            option,
            ..
        } = driver;
        let instead = if encapsulation.datapaths.contains(&Datapath::Ebpf) {
            "; or `datapath: ebpf` as root"
        } else {
            ""
        };
        Some(format!(
            "this kernel has no {kind} device: {option}, `modprobe {module}` as root{instead}"
        ))
    })
}

fn hint(step: &str, error: &io::Error) -> Option<String> {
    match crate::netlink::code(error) {
        // EOPNOTSUPP: no rtnl_link_ops of that kind; ENOENT: no such qdisc (net/sched/sch_api.c).
        Some(2) if step.contains("netem") => Some(
            "this kernel has no netem qdisc: CONFIG_NET_SCH_NETEM, `modprobe sch_netem` as root".into(),
        ),
        // EPROTONOSUPPORT: no nfnetlink; EINVAL, EOPNOTSUPP: no nf_tables, or none for devices.
        Some(2 | 22 | 93 | 95) if step.contains("nf_tables") => Some(
            "this kernel lacks nf_tables or a part of it: CONFIG_NF_TABLES_NETDEV, CONFIG_NFT_NUMGEN, \
             `modprobe nf_tables` as root"
                .into(),
        ),
        Some(95) => Some(driver_hint(step).unwrap_or_else(|| {
            "this kernel has no such device: see its configuration".into()
        })),
        Some(2) if step.contains("tbf") => Some(
            "this kernel has no tbf qdisc: CONFIG_NET_SCH_TBF, `modprobe sch_tbf` as root".into(),
        ),
        Some(2) if step.contains("/net/ipv6/") => Some(
            "this kernel has no IPv6: CONFIG_IPV6, and no `ipv6.disable=1` at its start".into(),
        ),
        Some(2) if step.starts_with("steering") => Some(
            "this kernel has no net.core.rps_default_mask (Linux 6.3), and only root may write rps_cpus: run as root, or \
             leave `steering.rps` out of the plan"
                .into(),
        ),
        Some(1 | 13) => Some("this needs CAP_NET_ADMIN in the network namespace".into()),
        _ => None,
    }
}

/// Fails unless what was read back is what was wanted.
pub(crate) fn same<T: PartialEq + std::fmt::Display>(
    step: impl FnOnce() -> String,
    wanted: &T,
    found: &T,
) -> Result<(), BuildError> {
    if wanted == found {
        return Ok(());
    }
    Err(BuildError::ReadBack {
        step: step(),
        wanted: wanted.to_string(),
        found: found.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_missing_is_named_by_option_and_module() {
        let refused = || io::Error::from_raw_os_error(95);
        for (kind, option) in [
            ("gre", "CONFIG_NET_IPGRE,"),
            ("gretap", "CONFIG_NET_IPGRE,"),
            ("ip6gre", "CONFIG_IPV6_GRE,"),
            ("ip6gretap", "CONFIG_IPV6_GRE,"),
            ("ipip", "CONFIG_NET_IPIP,"),
            ("sit", "CONFIG_IPV6_SIT,"),
            ("ip6tnl", "CONFIG_IPV6_TUNNEL,"),
            ("geneve", "CONFIG_GENEVE,"),
        ] {
            let hint = hint(&format!("making the {kind} device `tunnel0`"), &refused());
            let hint = hint.expect("a hint");
            assert!(
                hint.contains(&format!("no {kind} device: {option}")),
                "{hint}"
            );
        }
        let other = hint("making the bridge `bridge0`", &refused());
        assert!(other.is_some_and(|hint| !hint.contains("CONFIG")));
    }
}
