//! Checks of the host before a load starts: limits are raised where that is allowed, else reported with what to do.

use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use wirecost_model::end_window::End;
use wirecost_model::load::{Backing, MAX_IO, MoveEngine};
use wirecost_qemu::{QemuError, host_qemu};
use wirecost_sys::dirty_pages::DirtyPages;
use wirecost_sys::missing_pages::MissingPages;
use wirecost_sys::process::allowed_cpus;
use wirecost_sys::thread::raise_descriptor_limit;
use wirecost_sys::{control_group, memory};

use crate::error::TrafficError;
use crate::options::{Options, WaitMode};
use crate::socket;
use crate::threads::threads;
use crate::workload;

/// Descriptors of a process besides those of a load.
const OTHER_DESCRIPTORS: u64 = 128;
/// Kernel memory of a connection with autotuned buffers, besides unsent data, bytes.
const PER_CONNECTION: u64 = 16 << 10;

/// Memory of a QEMU process besides its machine's, bytes.
const QEMU_ITSELF: u64 = 48 << 20;

/// Histograms and used stack of a thread, bytes.
const PER_THREAD: u64 = 256 << 10;

/// Why this host cannot run a load.
#[derive(Debug)]
pub enum Finding {
    /// Too few descriptors, and the hard limit allows no more.
    Descriptors {
        /// How many the load needs.
        needed: u64,
        /// How many this process may have.
        limit: u64,
    },
    /// Fewer local ports than flows.
    Ports {
        /// How many the load needs.
        needed: u64,
        /// How many local ports there are.
        there: u64,
    },
    /// More memory than is available on the host, or left by a control group.
    Memory {
        /// Estimate of what the load needs, kernel buffers included, bytes.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
    /// More spinning threads than processors: they would preempt each other and the counting.
    Spinning {
        /// Threads of all loads on this host.
        threads: u64,
        /// Processors that this process may use.
        processors: u64,
    },
    /// No virtual machine runs on this host.
    Qemu(QemuError),
    /// The kernel cannot track which pages a machine writes to, as pre-copy needs it.
    Tracking(io::Error),
    /// A thread cannot be made to wait for missing pages (userfaultfd(2)), as post-copy needs it.
    Waiting(io::Error),
    /// A capped socket buffer, or a congestion control that is missing or not permitted.
    Socket(TrafficError),
    /// Invalid options.
    Options(TrafficError),
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descriptors { needed, limit } => write!(
                formatter,
                "the load needs {needed} descriptors and this process may have {limit}: raise the hard limit \
                 (`ulimit -Hn {needed}` as root, or LimitNOFILE of the service), or use fewer streams"
            ),
            Self::Ports { needed, there } => write!(
                formatter,
                "the load needs {needed} local ports and there are {there}: widen sysctl \
                 net.ipv4.ip_local_port_range, or use fewer streams"
            ),
            Self::Memory { needed, available } => write!(
                formatter,
                "the load needs about {} MiB and {} MiB are available: use fewer streams or machines, smaller \
                 messages, exports or machines, or a smaller socket buffer",
                needed >> 20,
                available >> 20
            ),
            Self::Spinning {
                threads,
                processors,
            } => write!(
                formatter,
                "{threads} threads would spin on {processors} of the machine's processors: use as many `threads` at \
                 most, all loads and guests together, or do without `spin`"
            ),
            Self::Tracking(error) => write!(
                formatter,
                "this kernel cannot track which pages of a machine are written to (PAGEMAP_SCAN, Linux 6.7 and \
                 CONFIG_USERFAULTFD with CONFIG_PTE_MARKER_UFFD_WP): {error}; run the migration's source on a host with \
                 such a kernel"
            ),
            Self::Waiting(error) => write!(
                formatter,
                "this host cannot have a machine wait for pages that are not there yet, as `post_copy` needs it (userfaultfd(2) \
                 for a program's own faults: Linux 5.11 and CONFIG_USERFAULTFD, and a container's seccomp profile may forbid \
                 it): {error}; do without `post_copy`, or move machines to a host that can"
            ),
            Self::Qemu(error) => error.fmt(formatter),
            Self::Socket(error) | Self::Options(error) => error.fmt(formatter),
        }
    }
}

/// Checks one end of a load in the calling thread's network namespace: local ports of a client, and the socket
/// options. Nothing is changed. What several ends need together is checked by [`check_resources`].
pub fn preflight(options: &Options, end: End) -> Vec<Finding> {
    if let Err(error) = options.validate() {
        return vec![Finding::Options(error)];
    }
    let mut findings = Vec::new();
    if options.load.path.is_some() {
        // Storage at a path has no sockets.
        return findings;
    }
    let needed = u64::from(options.load.connections());
    if end == End::Client
        && let Some(there) = local_ports()
        && there < needed
    {
        findings.push(Finding::Ports { needed, there });
    }
    let post_copy = options.load.migration.is_some_and(|one| one.post_copy);
    match options.load.migration.map(|migration| migration.engine) {
        Some(MoveEngine::Memory) if end == End::Client => {
            findings.extend(DirtyPages::check().err().map(Finding::Tracking));
        }
        Some(MoveEngine::Memory) if post_copy => {
            findings.extend(MissingPages::check().err().map(Finding::Waiting));
        }
        Some(MoveEngine::Qemu) => findings.extend(host_qemu().err().map(Finding::Qemu)),
        Some(MoveEngine::Memory) | None => {}
    }
    let anywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let tried = if options.load.workload.is_udp() {
        socket::udp(anywhere, options, 1)
    } else {
        socket::tcp(anywhere, options)
    };
    if let Err(error) = tried {
        findings.push(Finding::Socket(error));
    }
    findings
}

/// Checks that all ends of loads in this process, the `open` and the `new` ones, together have enough descriptors,
/// memory and, where they spin, processors. The soft limit of descriptors is raised; nothing else is changed.
pub fn check_resources<'a>(
    open: impl IntoIterator<Item = (&'a Options, End)>,
    new: impl IntoIterator<Item = (&'a Options, End)>,
) -> Vec<Finding> {
    let (mut wanted, mut spinning) = (OTHER_DESCRIPTORS, 0);
    let (mut bytes, mut taken) = (0, 0);
    let open = open.into_iter().map(|end| (end, true));
    let new = new.into_iter().map(|end| (end, false));
    for ((options, end), is_open) in open.chain(new) {
        if options.load.waiting == WaitMode::Spin {
            spinning += u64::from(threads(options));
        }
        wanted += descriptors(options);
        bytes += later_memory(options);
        let own = own_memory(options, end);
        if is_open {
            taken += own;
        } else {
            bytes += own;
        }
    }
    let mut findings = Vec::new();
    match raise_descriptor_limit(wanted) {
        Ok(limit) if limit < wanted => findings.push(Finding::Descriptors {
            needed: wanted,
            limit,
        }),
        // Where the limit cannot be read, making sockets reports the error.
        Ok(_) | Err(_) => {}
    }
    if let Some(available) = available(taken)
        && bytes > available
    {
        findings.push(Finding::Memory {
            needed: bytes,
            available,
        });
    }
    if let Ok(processors) = allowed_cpus()
        && spinning > processors.len() as u64
    {
        findings.push(Finding::Spinning {
            threads: spinning,
            processors: processors.len() as u64,
        });
    }
    findings
}

/// Raises the descriptor limit for a load with both ends in this process.
///
/// # Errors
/// [`TrafficError::Host`]: the limit does not suffice for one end.
pub(crate) fn raise_descriptors(options: &Options) -> Result<(), TrafficError> {
    let needed = descriptors(options) + OTHER_DESCRIPTORS;
    let wanted = needed + descriptors(options);
    let limit = raise_descriptor_limit(wanted).map_err(|source| TrafficError::Socket {
        what: "raising the limit of descriptors",
        source,
    })?;
    if limit < needed {
        let finding = Finding::Descriptors { needed, limit };
        return Err(TrafficError::Host(finding.to_string()));
    }
    Ok(())
}

/// Descriptors of one end.
fn descriptors(options: &Options) -> u64 {
    let each = u64::from(workload::ops(&options.load).tasks_per_flow);
    // A thread has an eventfd, an epoll set or a ring, and up to two sockets.
    let threads = 4 * u64::from(threads(options));
    // A machine with post-copy has a userfaultfd and an eventfd.
    let machines = match options.load.migration {
        Some(migration) if migration.post_copy => 2 * u64::from(options.load.streams),
        _ => 0,
    };
    each * u64::from(options.load.connections()) + threads + machines
}

/// Memory that an open end may still take, bytes: what the kernel keeps for its sockets once they carry data, and that
/// of QEMU's machines, which is taken as it is written to.
fn later_memory(options: &Options) -> u64 {
    let load = &options.load;
    // The kernel doubles the size that is asked for (socket(7)).
    let ways = 2 * u64::from(workload::ops(load).tasks_per_flow);
    let buffers = load
        .socket_buffer
        .map_or(PER_CONNECTION, |bytes| ways * u64::from(bytes));
    let qemu = load
        .migration
        .filter(|migration| migration.engine == MoveEngine::Qemu);
    let machine = qemu.map_or(0, |migration| migration.memory);
    u64::from(load.connections()) * buffers + u64::from(load.streams) * machine
}

/// Memory that an end takes when it is opened, bytes.
fn own_memory(options: &Options, end: End) -> u64 {
    let threads = u64::from(threads(options));
    let message = u64::from(options.load.request.max(options.load.response));
    let sizes = (workload::ops(&options.load).buffers)(options);
    let each = sizes.total() + PER_THREAD;
    let buffers = (sizes.ring + sizes.connection) as u64;
    let export = options.load.storage.filter(|_| end == End::Server);
    let export = export.map_or(0, |storage| match storage.target {
        Backing::Memory => storage.size,
        Backing::Discard => MAX_IO.into(),
    });
    let machine = options
        .load
        .migration
        .map_or(0, |migration| match migration.engine {
            MoveEngine::Memory => migration.memory,
            MoveEngine::Qemu => QEMU_ITSELF,
        });
    let machines = u64::from(options.load.streams) * machine;
    u64::from(options.load.connections()) * buffers + threads * each + message + export + machines
}

fn local_ports() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut bounds = text.split_whitespace().map(str::parse::<u64>);
    let (low, high) = (bounds.next()?.ok()?, bounds.next()?.ok()?);
    Some((high + 1).saturating_sub(low))
}

/// Memory that control groups leave to this process, bytes, as [`note_control_groups`] found it.
static LEFT: OnceLock<Option<u64>> = OnceLock::new();

/// Stores how much memory control groups leave to this process, for [`check_resources`]. To be called before /sys is
/// covered by that of another network namespace, which shows no control groups.
pub fn note_control_groups() {
    LEFT.get_or_init(control_group::memory_left);
}

/// Memory that this process may still take, bytes: of the host and of its control groups. `taken` are the bytes that
/// open ends have taken since [`note_control_groups`].
fn available(taken: u64) -> Option<u64> {
    let left = match LEFT.get() {
        Some(noted) => noted.map(|left| left.saturating_sub(taken)),
        None => control_group::memory_left(),
    };
    memory::of_machine().into_iter().chain(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Workload;

    const NONE: [(&Options, End); 0] = [];

    #[test]
    fn an_export_needs_memory_where_it_is_and_once() {
        let mut options = Options::new(Workload::Storage, [0; 16]);
        if let Some(storage) = &mut options.load.storage {
            storage.size = 1 << 50;
        }
        let [server, client] = [End::Server, End::Client].map(|end| own_memory(&options, end));
        assert_eq!(server - client, 1 << 50);
        let is_memory = |finding: &Finding| matches!(finding, Finding::Memory { .. });
        let opening = check_resources(NONE, [(&options, End::Server)]);
        assert!(opening.iter().any(is_memory), "{opening:?}");
        // It has its memory, which is not available any more.
        let open = check_resources([(&options, End::Server)], [(&options, End::Client)]);
        assert!(!open.iter().any(is_memory), "{open:?}");
    }

    #[test]
    fn nothing_stands_in_the_way_of_loads_as_they_are_usually_run() {
        for workload in Workload::ALL {
            let mut options = Options::new(workload, [0; 16]);
            options.load.streams = if workload.is_migration() { 4 } else { 64 };
            let mut findings = preflight(&options, End::Client);
            findings.extend(check_resources(NONE, [(&options, End::Client)]));
            assert!(findings.is_empty(), "{findings:?}");
        }
    }

    #[test]
    fn what_stands_in_the_way_is_named_with_what_to_do() {
        let mut options = Options::new(Workload::TcpStream, [0; 16]);
        options.load.congestion = Some("no-such".to_owned());
        let words: Vec<String> = preflight(&options, End::Server)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(words.len(), 1, "{words:?}");
        assert!(
            words[0].contains("no-such") && words[0].contains("it has:"),
            "{words:?}"
        );

        options.load.streams = 0;
        assert!(matches!(
            preflight(&options, End::Server)[..],
            [Finding::Options(_)]
        ));

        options.load.congestion = None;
        options.load.streams = 1024;
        options.load.threads = Some(1024);
        options.load.waiting = WaitMode::Spin;
        let findings = check_resources(NONE, [(&options, End::Client)]);
        let is_spinning = |finding: &Finding| matches!(finding, Finding::Spinning { .. });
        assert!(findings.iter().any(is_spinning), "{findings:?}");

        (options.load.threads, options.load.waiting) = (None, WaitMode::Sleep);
        options.load.socket_buffer = Some(1 << 29);
        let findings = check_resources(NONE, [(&options, End::Client)]);
        let is_memory = |finding: &Finding| matches!(finding, Finding::Memory { .. });
        assert!(findings.iter().any(is_memory), "{findings:?}");
    }

    #[test]
    fn every_finding_says_both_numbers() {
        insta::assert_snapshot!(Finding::Descriptors { needed: 5000, limit: 1024 }, @"the load needs 5000 descriptors and this process may have 1024: raise the hard limit (`ulimit -Hn 5000` as root, or LimitNOFILE of the service), or use fewer streams");
        insta::assert_snapshot!(Finding::Ports { needed: 1024, there: 100 }, @"the load needs 1024 local ports and there are 100: widen sysctl net.ipv4.ip_local_port_range, or use fewer streams");
        insta::assert_snapshot!(Finding::Memory { needed: 8 << 30, available: 1 << 30 }, @"the load needs about 8192 MiB and 1024 MiB are available: use fewer streams or machines, smaller messages, exports or machines, or a smaller socket buffer");
        insta::assert_snapshot!(Finding::Spinning { threads: 64, processors: 2 }, @"64 threads would spin on 2 of the machine's processors: use as many `threads` at most, all loads and guests together, or do without `spin`");
    }
}
