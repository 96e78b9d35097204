//! What is compared: a factor or two runs, and which differences belong to it by its nature.

use wirecost_model::plan::Plan;
use wirecost_model::vary::Setting;

/// What a comparison of two cells is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject<'a> {
    /// Two levels of a factor.
    Factor {
        /// The plan that varies the factor.
        plan: &'a Plan,
        /// The factor's key.
        key: &'a str,
        /// The level compared with.
        from: String,
        /// The level compared.
        to: String,
    },
    /// One cell in two runs: whatever changed between them may be what is asked about.
    Runs,
}

/// What a factor changes. Kinds decide which differences between cells are the factor's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind<'a> {
    /// Packets on their way: MTU, IP, encapsulation, datapath, line, guests.
    Network,
    Offload,
    Steering,
    /// An option of a load, by its name.
    Option(&'a str),
    /// Sysctls, device features or device settings that the plan sets.
    Setting,
    /// A command of the plan with unknown effect.
    Command,
    /// Two runs: anything may differ.
    Runs,
}

/// The factors of the network and of the guests.
const NETWORK: [&str; 13] = [
    "pairs",
    "underlay.mtu",
    "underlay.rate",
    "underlay.links",
    "underlay.ip",
    "guests",
    "guest_mtu",
    "guest_ip",
    "encapsulation",
    "udp_checksum",
    "datapath",
    "topology",
    "acl",
];

impl Subject<'_> {
    fn kind(&self) -> Kind<'_> {
        let Self::Factor { plan, key, .. } = self else {
            return Kind::Runs;
        };
        if let Some(vary) = plan.vary.iter().find(|vary| vary.name == *key) {
            let sets = |level: &Setting| {
                !level.sysctl.is_empty() || !level.ethtool.is_empty() || !level.device.is_empty()
            };
            let known = vary.levels.iter().any(sets);
            return if known { Kind::Setting } else { Kind::Command };
        }
        match *key {
            key if NETWORK.contains(&key) => Kind::Network,
            "offload" => Kind::Offload,
            "steering.queues" | "steering.rps" => Kind::Steering,
            key => Kind::Option(self::option(key)),
        }
    }

    /// The factor's key.
    pub(super) const fn key(&self) -> Option<&str> {
        match self {
            Self::Factor { key, .. } => Some(key),
            Self::Runs => None,
        }
    }

    /// Name of the load option that is varied, without the load's name.
    pub(super) fn option(&self) -> Option<&str> {
        match self.kind() {
            Kind::Option(option) => Some(option),
            _ => None,
        }
    }

    pub(super) fn is_offload(&self) -> bool {
        self.kind() == Kind::Offload
    }

    /// Whether the factor decides how many segments travel as one packet.
    pub(super) fn is_about_aggregation(&self) -> bool {
        !matches!(self.kind(), Kind::Network | Kind::Command)
    }

    /// Whether the factor decides how full backlogs become.
    pub(super) fn is_about_backlog(&self) -> bool {
        self.is_about_aggregation()
    }

    /// Whether the factor decides what the load's own threads do for each message.
    pub(super) fn is_about_generator(&self) -> bool {
        matches!(self.kind(), Kind::Option(_))
    }

    /// Whether the factor is meant to change the number of wake-ups.
    pub(super) fn is_about_wakeups(&self) -> bool {
        const OPTIONS: [&str; 15] = [
            "streams",
            "streams_per_guest",
            "connections",
            "connections_per_guest",
            "depth",
            "io_size",
            "pattern",
            "message",
            "request",
            "response",
            "threads",
            "spin",
            "nodelay",
            "socket_buffer",
            "segmentation_offload",
        ];
        match self.kind() {
            Kind::Option(option) => OPTIONS.contains(&option),
            Kind::Steering | Kind::Setting | Kind::Runs => true,
            Kind::Network | Kind::Offload | Kind::Command => false,
        }
    }

    /// `with none`, or `before`.
    pub(super) fn with_from(&self) -> String {
        match self {
            Self::Factor { from, .. } => format!("with {from}"),
            Self::Runs => "before".into(),
        }
    }

    /// `with vxlan`, or `after`.
    pub(super) fn with_to(&self) -> String {
        match self {
            Self::Factor { to, .. } => format!("with {to}"),
            Self::Runs => "after".into(),
        }
    }
}

/// Name of a load's option, without the load: `ping.rate` is the option `rate` of the load `ping`.
fn option(key: &str) -> &str {
    key.rsplit_once('.').map_or(key, |(_, option)| option)
}
