//! Errors of a lab host's Open vSwitch.

use std::io;
use std::path::PathBuf;

/// Debian's package that has all of it.
pub const PACKAGE: &str = "openvswitch-switch";
/// Debian's packages that have OVN: its databases' schemas and ovn-northd, and ovn-controller.
pub const OVN_PACKAGES: &str = "ovn-central ovn-host";

/// Why a switch could not be started or configured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program or file of the package is not there.
    #[error(
        "{} is not installed here: there is no {missing}; on Debian `apt-get install {package}` brings it",
        product(package)
    )]
    NotInstalled {
        /// Which one.
        missing: String,
        /// Debian's packages that have it.
        package: &'static str,
    },
    /// The directory for its files cannot be made.
    #[error(
        "a file system in memory for Open vSwitch's files cannot be made: {0}; this needs Linux 5.2 and a mount \
         namespace of one's own"
    )]
    Scratch(#[source] io::Error),
    /// A program cannot be started, or did not do its work.
    #[error("{program} {problem}{}", said(log))]
    Program {
        /// Its file.
        program: PathBuf,
        /// In words, such as "ended with exit status 1".
        problem: String,
        /// The end of what it said.
        log: String,
    },
    /// The userspace datapath cannot make the devices that it needs.
    #[error(
        "Open vSwitch's userspace datapath needs /dev/net/tun, which cannot be used here: {0}; run as root, on a kernel \
         with CONFIG_TUN, or write `datapath: ovs-kernel` on one with CONFIG_OPENVSWITCH"
    )]
    NoTap(#[source] io::Error),
    /// The kernel has no datapath of Open vSwitch's.
    #[error(
        "this kernel has no openvswitch module, which `datapath: ovs-kernel` needs: `modprobe openvswitch` as root, boot \
         a kernel built with CONFIG_OPENVSWITCH, or write `datapath: ovs`, which switches in userspace"
    )]
    NoModule,
    /// A daemon does not answer as it should.
    #[error("asking {whom} to {what}: {problem}")]
    Control {
        /// The daemon.
        whom: &'static str,
        /// What was asked.
        what: String,
        /// What came of it.
        problem: String,
    },
    /// The database refused a change.
    #[error("{whose} refused to {what}: {error}{}", also(details))]
    Refused {
        /// The database.
        whose: &'static str,
        /// The operation, with its table and columns.
        what: String,
        /// The error (RFC 7047, section 3.1).
        error: String,
        /// Its details.
        details: String,
    },
    /// The switch took the configuration, and could not put it in force.
    #[error("Open vSwitch cannot use {name} as a port (table Interface, column error): {problem}")]
    Port {
        /// The interface.
        name: String,
        /// The column's words.
        problem: String,
    },
    /// What was read back is something else than what was wanted.
    #[error("table Interface, row {name}, column {column}: asked for {wanted}, read back {found}")]
    ReadBack {
        /// The interface.
        name: String,
        /// What of it.
        column: &'static str,
        /// As it was configured.
        wanted: String,
        /// As it is.
        found: String,
    },
    /// The way to the other host is not the one that tunnels need.
    #[error("Open vSwitch finds no way to {peer} (`ovs-appctl ovs/route/lookup`): {found}")]
    NoRoute {
        /// The other host.
        peer: std::net::IpAddr,
        /// What it said.
        found: String,
    },
    /// The logical network did not come into force in time.
    #[error("OVN: {missing} after {seconds:.0} s{}", said(log))]
    NotInForce {
        /// What is missing, such as "there is no tunnel to the other host".
        missing: String,
        /// How long it was waited for.
        seconds: f64,
        /// The end of what ovn-controller or ovn-northd logged.
        log: String,
    },
    /// Something that this datapath cannot put on the wire.
    #[error("{0}")]
    Cannot(String),
}

impl Error {
    /// As an error number, where it is about something that is missing or not permitted: `ENOENT` for programs, `ENODEV`
    /// for the kernel's part.
    pub fn code(&self) -> Option<i32> {
        // include/uapi/asm-generic/errno-base.h
        const ENOENT: i32 = 2;
        const ENXIO: i32 = 6;
        const ENODEV: i32 = 19;
        match self {
            Self::NotInstalled { .. } => Some(ENOENT),
            Self::NoTap(error) => match error.raw_os_error() {
                Some(ENOENT | ENXIO) => Some(ENODEV),
                code => code,
            },
            Self::Scratch(error) => error.raw_os_error(),
            _ => None,
        }
    }
}

fn product(package: &str) -> &'static str {
    match package {
        OVN_PACKAGES => "OVN",
        _ => "Open vSwitch",
    }
}

fn said(log: &str) -> String {
    match log {
        "" => String::new(),
        log => format!("; it said: {log}"),
    }
}

fn also(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!(": {text}"),
    }
}
