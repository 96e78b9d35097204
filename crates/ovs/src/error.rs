//! Errors of a lab host's Open vSwitch.

use std::io;
use std::path::PathBuf;

/// Debian package of Open vSwitch.
pub const PACKAGE: &str = "openvswitch-switch";
/// Debian packages of OVN: its databases' schemas and ovn-northd, and ovn-controller.
pub const OVN_PACKAGES: &str = "ovn-central ovn-host";

/// Why a switch could not be started or configured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program or file of a package is missing.
    #[error(
        "{} is not installed here: there is no {missing}; on Debian `apt-get install {package}` brings it",
        product(package)
    )]
    NotInstalled {
        /// Name of the program or path of the file.
        missing: String,
        /// Debian packages that contain it.
        package: &'static str,
    },
    /// The directory for Open vSwitch's files cannot be created.
    #[error(
        "a file system in memory for Open vSwitch's files cannot be made: {0}; this needs Linux 5.2 and a mount \
         namespace of one's own"
    )]
    Scratch(#[source] io::Error),
    /// The file of flows cannot be written.
    #[error("writing the flows of Open vSwitch: {0}")]
    Flows(#[source] io::Error),
    /// A program cannot be started, or failed.
    #[error("{program} {problem}{}", said(log))]
    Program {
        /// Path of the program.
        program: PathBuf,
        /// Description, such as "ended with exit status 1".
        problem: String,
        /// The end of its output.
        log: String,
    },
    /// The userspace datapath cannot create the devices that it needs.
    #[error(
        "Open vSwitch's userspace datapath needs /dev/net/tun, which cannot be used here: {0}; run as root, on a kernel \
         with CONFIG_TUN, or write `datapath: ovs-kernel` on one with CONFIG_OPENVSWITCH"
    )]
    NoTap(#[source] io::Error),
    /// The kernel has no datapath of Open vSwitch.
    #[error(
        "this kernel has no openvswitch module, which `datapath: ovs-kernel` needs: `modprobe openvswitch` as root, boot \
         a kernel built with CONFIG_OPENVSWITCH, or write `datapath: ovs`, which switches in userspace"
    )]
    NoModule,
    /// A daemon does not answer as expected.
    #[error("asking {whom} to {what}: {problem}")]
    Control {
        /// Name of the daemon.
        whom: &'static str,
        /// What the daemon was asked to do.
        what: String,
        /// Its answer, or what failed.
        problem: String,
    },
    /// The database refused a change.
    #[error("{whose} refused to {what}: {error}{}", also(details))]
    Refused {
        /// Name of the database in messages.
        whose: &'static str,
        /// The operation, with its table and columns.
        what: String,
        /// The error string (RFC 7047, section 3.1).
        error: String,
        /// Details of the error.
        details: String,
    },
    /// The switch accepted the configuration, but could not apply it to an interface.
    #[error("Open vSwitch cannot use {name} as a port (table Interface, column error): {problem}")]
    Port {
        /// Name of the interface.
        name: String,
        /// Content of the column.
        problem: String,
    },
    /// A column reads back different from what was configured.
    #[error("table Interface, row {name}, column {column}: asked for {wanted}, read back {found}")]
    ReadBack {
        /// Name of the interface.
        name: String,
        /// Name of the column.
        column: &'static str,
        /// The value as it was configured.
        wanted: String,
        /// The value as it was read back.
        found: String,
    },
    /// The switch's route to the other host is not the one that tunnels need.
    #[error("Open vSwitch has no route to {peer} (`ovs-appctl ovs/route/lookup`): {found}")]
    NoRoute {
        /// Address of the other host.
        peer: std::net::IpAddr,
        /// The switch's answer.
        found: String,
    },
    /// The logical network was not applied in time.
    #[error("OVN: {missing} after {seconds:.0} s{}", said(log))]
    NotInForce {
        /// What is missing, such as "there is no tunnel to the other host".
        missing: String,
        /// Time limit of the wait, seconds.
        seconds: f64,
        /// The end of what ovn-controller or ovn-northd logged.
        log: String,
    },
    /// Something that cannot be done here; the message says why and what to do.
    #[error("{0}")]
    Cannot(String),
}

impl Error {
    /// Error number, where something is missing or not permitted: `ENOENT` for a program or file, `ENODEV` for the
    /// kernel's TUN driver, or what the kernel answered. `None` for every other error.
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
