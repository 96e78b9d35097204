//! Executes a controller's requests.

mod build;
mod describe;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use wirecost_meter::{Meter, Scope};
use wirecost_model::sample::DeviceState;
use wirecost_netbuild::LabHost;
use wirecost_ovs::ovn::Central;
use wirecost_probe::Responder;
use wirecost_sys::namespace::Netns;
use wirecost_sys::socket::PacketCapture;

use crate::datapath::{self, FrameCarrier};
use crate::error::{AgentError, Result};
use crate::existing::ExistingHost;
use crate::existing_underlay::ExistingUnderlay;
use crate::guards::SettingsGuards;
use crate::level::AppliedLevel;
use crate::line::Line;
use crate::load::{Loads, WindowCounter};
use crate::path::Paths;
use crate::protocol::{Reply, Request, Secret, VERSION};
use crate::prove;
use crate::role::AgentRole;
use crate::settings;
use crate::transfer::Transfers;
use crate::validate;

/// Loads are ended after this time without a request, as when the controller was stopped (Ctrl-Z). A running controller
/// sends requests about loads every few seconds.
pub(crate) const LOAD_IDLE_LIMIT: Duration = Duration::from_mins(1);

const UNPREPARED: &str = "the host is not prepared yet";
const NOT_COUNTING: AgentError = AgentError::NotReady("counting has not started");

/// State of an agent: what it has built, and what is running.
#[derive(Debug, Default)]
pub(crate) struct Agent {
    // Declared before `host`: dropping it first detaches it from the devices.
    carrier: Option<FrameCarrier>,
    /// OVN's databases of a lab; only host a has them.
    central: Option<Central>,
    line: Option<Line>,
    host: Option<LabHost>,
    /// The existing host, instead of `host`, where the network is used as it is.
    existing: Option<ExistingHost>,
    /// The underlay of an existing host, in addition to `host`, where the host's tunnels use the existing network.
    existing_underlay: Option<ExistingUnderlay>,
    meter: Option<Meter>,
    /// The responder for proofs by the other host's guests, and the secret of these proofs.
    responder: Option<(Responder, Secret)>,
    watch: Option<PacketCapture>,
    loads: Loads,
    /// Whether loads were ended because the controller sent no request for too long.
    abandoned: bool,
    counting: Option<WindowCounter>,
    /// The devices of the path as read back after the last `Adapt`.
    devices: Vec<DeviceState>,
    applied: AppliedLevel,
    guards: SettingsGuards,
    role: AgentRole,
    paths: Paths,
    transfers: Transfers,
}

/// The error is a message for the user.
type Answer = Result<Reply>;

impl Agent {
    pub(crate) fn new(guards: SettingsGuards, role: AgentRole) -> Self {
        Self {
            guards,
            role,
            ..Self::default()
        }
    }

    /// Whether settings of an existing host are applied.
    pub(crate) fn has_changes(&self) -> bool {
        self.existing.as_ref().is_some_and(ExistingHost::is_changed)
    }

    /// Undoes the settings, because the controller is idle.
    pub(crate) fn abandon_changes(&mut self) {
        if let Some(host) = &mut self.existing {
            host.abandon(&self.guards);
        }
    }

    pub(crate) fn has_loads(&self) -> bool {
        !self.loads.is_empty()
    }

    /// Ends all loads, because the controller is idle. The next request about loads is refused.
    pub(crate) fn abandon_loads(&mut self) {
        self.loads = Loads::default();
        self.counting = None;
        self.abandoned = true;
    }

    pub(crate) fn execute(&mut self, request: Request) -> Answer {
        self.role.check(&request, self.existing.is_some())?;
        validate::check(&request)?;
        self.abandoned &= !matches!(request, Request::OpenServers(_));
        if request.is_about_loads() && std::mem::take(&mut self.abandoned) {
            return Err(format!(
                "its loads were ended, because no request arrived for {} s: the controller was stopped, or its \
                 connection stalled",
                LOAD_IDLE_LIMIT.as_secs()
            ).into());
        }
        self.act(request)
    }

    fn act(&mut self, request: Request) -> Answer {
        match request {
            Request::Hello { .. } => Ok(Reply::Hello {
                version: VERSION,
                pid: std::process::id(),
            }),
            Request::Prepare(spec) => {
                let host = self.prepare(*spec)?;
                let joined_at = host.joined_at();
                self.host = Some(host);
                Ok(Reply::Prepared { joined_at })
            }
            Request::Wire { peer } => {
                self.host()?.wire(peer)?;
                let host = self.host.as_ref().ok_or(AgentError::NotReady(UNPREPARED))?;
                self.central = datapath::central(host.spec(), self.guards.owner())?;
                let ovn = self.central.as_ref().map(Central::remote);
                Ok(Reply::Wired { ovn })
            }
            Request::Build { secret, ovn } => self.build(secret, ovn),
            Request::Join {
                side,
                address,
                peer,
                secret,
            } => {
                // Settings guards of an earlier `Join`: they may be for another device or side.
                self.guards.end();
                let (host, responder, joined) = ExistingHost::join(side, (address, peer), secret)?;
                self.existing = Some(host);
                self.responder = Some((responder, secret));
                Ok(Reply::Joined(Box::new(joined)))
            }
            Request::Device => {
                let host = self
                    .existing
                    .as_mut()
                    .ok_or(AgentError::NotReady(UNPREPARED))?;
                Ok(Reply::Devices(vec![host.state(&[])?]))
            }
            Request::PathDevices => {
                let host = self
                    .existing
                    .as_ref()
                    .ok_or(AgentError::NotReady(UNPREPARED))?;
                Ok(Reply::PathDevices(Box::new(host.path_devices()?)))
            }
            Request::RemoveTunnel => {
                self.carrier = None;
                self.host()?.remove_tunnel()?;
                Ok(Reply::Done)
            }
            Request::UndoLeft => settings::undo_left().map(Reply::Undone),
            Request::Adapt { guest_mtu, offload } => self.adapt(guest_mtu, &offload),
            Request::LiftLine => self.lift_line(),
            Request::SetLine => self.set_line(),
            Request::ApplySettings(settings) => {
                if let Some(host) = &mut self.existing {
                    return host.apply(&self.guards, &settings).map(Reply::Devices);
                }
                let host = self.host.as_mut().ok_or(AgentError::NotReady(UNPREPARED))?;
                self.applied
                    .apply(host, &self.guards, &settings, &self.devices)
                    .map(Reply::Devices)
            }
            Request::Undo => self.undo(),
            Request::StartCapture => {
                self.watch = Some(self.capture()?);
                Ok(Reply::Done)
            }
            Request::ReadCapture { size } => self.read_capture(size).map(Reply::Captured),
            Request::Prove {
                targets,
                size,
                exact,
            } => self.prove(&targets, (size, exact)),
            Request::OpenServers(_)
            | Request::OpenClients(_)
            | Request::Start
            | Request::Begin(_)
            | Request::Part(_)
            | Request::Total
            | Request::StopClients
            | Request::StopServers => self.act_on_loads(request),
            Request::Describe
            | Request::Addresses
            | Request::Machine
            | Request::SourceTowards(_) => self.execute_query(&request),
            Request::Path(request) => self.paths.execute(*request),
            Request::Transfer(request) => self.transfers.execute(*request, self.guards.owner()),
        }
    }

    fn undo(&mut self) -> Answer {
        if let Some(host) = &mut self.existing {
            host.undo(&self.guards)?;
        } else {
            let host = self.host.as_mut().ok_or(AgentError::NotReady(UNPREPARED))?;
            self.applied.undo(host, &self.guards)?;
        }
        Ok(Reply::Done)
    }

    fn prove(&mut self, targets: &[SocketAddr], size: (u32, bool)) -> Answer {
        let secret = self.secret()?;
        let proven = match &self.existing {
            Some(host) => {
                host.still_applied()?;
                let own = [(None, host.address())].into_iter();
                prove::prove_all(own, targets, size, &secret)
            }
            None => prove::prove_all(guest_namespaces(self.host()?), targets, size, &secret),
        };
        proven.map(Reply::Proof)
    }

    fn act_on_loads(&mut self, request: Request) -> Answer {
        match request {
            Request::OpenServers(ends) => {
                self.loads = Loads::default();
                self.counting = None;
                let addresses = self.loads.serve(&ends, self.host.as_ref())?;
                Ok(Reply::Listening(addresses))
            }
            Request::OpenClients(ends) => {
                self.loads.connect(&ends, self.host.as_ref())?;
                Ok(Reply::Done)
            }
            Request::Start => {
                if let Some(counting) = &mut self.counting {
                    counting.host_from_now(meter(&mut self.meter)?)?;
                }
                self.loads.start()?;
                Ok(Reply::Done)
            }
            Request::Begin(order) => {
                let meter = meter(&mut self.meter)?;
                self.counting = Some(WindowCounter::begin(meter, &self.loads, order)?);
                Ok(Reply::Done)
            }
            Request::Part(order) => {
                let meter = meter(&mut self.meter)?;
                let counting = self.counting.as_mut().ok_or(NOT_COUNTING)?;
                let part = counting.part(meter, &self.loads, &order)?;
                Ok(Reply::Part(Box::new(part)))
            }
            Request::Total => {
                let counting = self.counting.as_ref().ok_or(NOT_COUNTING)?;
                Ok(Reply::Measured(Box::new(counting.total()?)))
            }
            Request::StopClients => self.loads.stop_clients().map(Reply::Ended),
            Request::StopServers => self.loads.stop_servers().map(Reply::Ended),
            _ => Err(AgentError::NotReady("not about loads")),
        }
    }

    /// The secret of this host's proofs.
    fn secret(&self) -> Result<Secret> {
        let responder = self
            .responder
            .as_ref()
            .ok_or(AgentError::NotReady("the host is not built yet"))?;
        Ok(responder.1)
    }

    fn host(&mut self) -> Result<&mut LabHost> {
        self.host.as_mut().ok_or(AgentError::NotReady(UNPREPARED))
    }
}

/// The meter. On an existing host it is opened on first use and covers all processors, since any of them may handle
/// packets.
fn meter(slot: &mut Option<Meter>) -> Result<&mut Meter> {
    if slot.is_none() {
        let pid = std::process::id();
        let scope = Scope {
            cpus: wirecost_meter::online_cpus()?,
            pid,
            host_task: pid,
            guest_tasks: vec![pid],
        };
        *slot = Some(Meter::open(scope)?);
    }
    slot.as_mut().ok_or(AgentError::NotReady("no meter"))
}

/// The guests' namespaces and addresses, by number.
fn guests(host: &LabHost) -> impl Iterator<Item = (&Netns, IpAddr)> {
    host.guests().zip(host.spec().guest_addresses())
}

/// The guests' namespaces and addresses, for proofs.
fn guest_namespaces(host: &LabHost) -> impl Iterator<Item = (prove::GuestNetns<'_>, IpAddr)> {
    guests(host).map(|(guest, address)| (Some(guest), address))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use wirecost_model::load::{Load, Workload};

    use super::*;
    use crate::protocol::{CountingStart, HostNetns, LoadEnd, PartOrder};

    #[test]
    fn loads_that_were_given_up_are_told_once_and_new_ones_open() {
        let end = LoadEnd {
            name: "tcp-rr".to_owned(),
            place: HostNetns::Host,
            // No other test listens there: a port that is free again is anybody's.
            address: SocketAddr::from(([127, 3, 1, 8], 0)).into(),
            source: None,
            cpus: Vec::new(),
            load: Load::new(Workload::TcpRr),
            secret: [7; 16],
        };
        let mut agent = Agent::new(SettingsGuards::new("a test"), AgentRole::Load);
        let opened = |agent: &mut Agent| agent.execute(Request::OpenServers(vec![end.clone()]));
        assert!(!agent.has_loads());
        let Ok(Reply::Listening(addresses)) = opened(&mut agent) else {
            panic!("it listens");
        };
        assert!(agent.has_loads());
        std::net::TcpStream::connect(addresses[0].ip().unwrap()).unwrap();
        agent.abandon_loads();
        assert!(!agent.has_loads());
        assert!(
            std::net::TcpStream::connect(addresses[0].ip().unwrap()).is_err(),
            "nobody listens"
        );
        assert!(
            agent.execute(Request::Machine).is_ok(),
            "it is about no load"
        );
        let part = Request::Part(PartOrder::default());
        let told = agent.execute(part.clone()).unwrap_err().to_string();
        assert!(
            told.starts_with("its loads were ended, because no request arrived for 60 s"),
            "{told}"
        );
        let told = agent.execute(part).unwrap_err().to_string();
        assert_eq!(told, "counting has not started");
        agent.abandon_loads();
        assert!(opened(&mut agent).is_ok());
        assert!(agent.execute(Request::StopServers).is_ok());
    }

    #[test]
    fn the_wait_for_the_other_host_before_the_start_is_not_counted() {
        let mut agent = Agent::new(SettingsGuards::new("a test"), AgentRole::Load);
        let mut act = |request| agent.execute(request).expect("a reply");
        act(Request::OpenServers(Vec::new()));
        act(Request::Begin(CountingStart::default()));
        std::thread::sleep(Duration::from_millis(500));
        let start = Instant::now();
        act(Request::Start);
        act(Request::Part(PartOrder {
            last: true,
            ..PartOrder::default()
        }));
        let most = start.elapsed().as_secs_f64();
        let Reply::Measured(measured) = act(Request::Total) else {
            panic!("the counts");
        };
        let window_s = measured.usage.window_s;
        assert!(window_s <= most, "{window_s} s of {most} s");
    }
}
