//! `wirecost check --simulate`: TCP transfers over the path.

use std::fmt::{self, Write as _};
use std::time::Duration;

use clap::Args;
use wirecost_check::Simulated;
use wirecost_control::path::{CheckTarget, Simulation};
use wirecost_model::host::{HostAddress, Location};

use crate::screen::wrap;

/// Bytes to transfer in each direction: enough to finish slow start, and little enough for any path.
const BYTES: u64 = 16_000_000;
/// Default time limit of a transfer, seconds. The kernel tries a smaller MSS after three to six seconds without an
/// acknowledgement (`net.ipv4.tcp_retries1`, net/ipv4/tcp_timer.c).
const LIMIT_S: u32 = 10;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Then send 16 MB by TCP in both directions, with `tcp_mtu_probing` 0, 1 and 2: bytes, stalls, recovery (hosts
    /// netns:NAME only, where the setting is changed meanwhile)
    #[arg(long)]
    simulate: bool,
    /// How long a transfer may take
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_S, requires = "simulate", value_parser = clap::value_parser!(u32).range(1..=600))]
    simulate_limit: u32,
}

/// The error that the hosts of `--simulate` are not two network namespaces.
#[derive(Debug)]
pub(super) struct NotNamespaces {
    host: String,
    /// `is none`, or that it is both.
    problem: &'static str,
}

impl fmt::Display for NotNamespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "--simulate needs two hosts netns:NAME, and {} {}: it changes net.ipv4.tcp_mtu_probing for a time, which \
             would affect every other connection there; name two namespaces",
            self.host, self.problem
        )
    }
}

impl std::error::Error for NotNamespaces {}

impl Options {
    /// The transfers to make; `None` without `--simulate`.
    ///
    /// # Errors
    /// Where a host is not a named network namespace: the sysctl would change for everything else that runs there. Or
    /// where both are one: each end would set and restore it while the other needs it.
    pub(super) fn simulation(
        &self,
        from: &HostAddress,
        to: &CheckTarget,
    ) -> Result<Option<Simulation>, NotNamespaces> {
        if !self.simulate {
            return Ok(None);
        }
        let is_lab = |host: &HostAddress| matches!(host.place, Location::Netns(_));
        let other = match to {
            CheckTarget::Host(host) => (!is_lab(host)).then(|| host.place.to_string()),
            CheckTarget::Address(address) | CheckTarget::OnLink(address, _) => {
                Some(address.to_string())
            }
        };
        let own = (!is_lab(from)).then(|| from.place.to_string());
        if let Some(host) = own.or(other) {
            let problem = "is none";
            return Err(NotNamespaces { host, problem });
        }
        if matches!(to, CheckTarget::Host(host) if host.place == from.place) {
            return Err(NotNamespaces {
                host: from.place.to_string(),
                problem: "is both hosts",
            });
        }
        Ok(Some(Simulation {
            bytes: BYTES,
            limit: Duration::from_secs(self.simulate_limit.into()),
        }))
    }
}

/// A paragraph for each direction; empty without transfers.
pub(super) fn text(simulated: &[Simulated], width: usize) -> String {
    let mut text = String::new();
    let mut before = None;
    for transfer in simulated {
        let ends = (&transfer.from, &transfer.to);
        if before != Some(ends) {
            let _ = write!(
                text,
                "\n\na TCP transfer from {} to {} ({})",
                ends.0, ends.1, transfer.congestion_control
            );
            before = Some(ends);
        }
        let _ = write!(text, "\n{}", wrap(&format!("  {transfer}"), "    ", width));
    }
    text
}
