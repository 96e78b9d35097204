//! A host's switch: its daemons, its configuration (applied and read back), and its route to the other host.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tracing::debug;
use wirecost_model::plan::Encapsulation;
use wirecost_model::switch::{OpenVswitch, OvsDatapath};
use wirecost_netlink::generic;
use wirecost_sys::scratch::ScratchDirectory;
use wirecost_sys::tun::Tap;

use crate::config::{SwitchSpec, mac_text, operations};
use crate::control::Control;
use crate::daemon::{Daemon, run};
use crate::database::{Database, Operation, Schema, optional};
use crate::deadline::{DaemonWait, Deadline};
use crate::error::Error;
use crate::names::{INTEGRATION_BRIDGE, UNDERLAY_BRIDGE};
use crate::options::{OptionMapping, mapping};
use crate::ovn::Controller;
use crate::programs::Programs;

/// Time limit of each step until the switch is configured, extended while its daemons are at work: an idle machine
/// takes a tenth of it for all steps.
const PATIENCE: Duration = Duration::from_secs(8);
/// Longest run of ovs-ofctl, seconds: it took over 5 in an emulated machine on busy cores.
const OFCTL_TIMEOUT_S: u32 = 20;
const STEP: Duration = Duration::from_millis(5);
/// Generic netlink family of the kernel module (include/uapi/linux/openvswitch.h).
const FAMILY: &str = "ovs_datapath";
/// Device by which it is tried whether devices can be created; removed at once.
const TRIAL_DEVICE: &str = "ovs-trial";

/// A configured switch. Dropping it ends its daemons; its devices go with these, or with their namespace.
#[derive(Debug)]
pub struct Switch {
    control: Control,
    controller: Option<Controller>,
    // Dropped in this order: the switch, its database, their files.
    vswitchd: Daemon,
    database: Daemon,
    directory: ScratchDirectory,
    wanted: SwitchSpec,
    about: OpenVswitch,
}

impl Switch {
    /// Starts a switch in the calling thread's network namespace, where the devices that become its ports are. The
    /// daemons end with the calling thread. `owner` is the run's controller, which [`crate::owner_in`] finds among the
    /// daemons' arguments.
    ///
    /// # Errors
    /// Where a program or the kernel's part is missing, where this datapath cannot do what is wanted, or the switch
    /// refuses it.
    pub fn start(wanted: SwitchSpec, datapath: OvsDatapath, owner: &str) -> Result<Self, Error> {
        let programs = Programs::find()?;
        let version = programs.version()?;
        can_be_had(datapath)?;
        wanted.check(datapath)?;
        let options = match wanted.ovn {
            // OVN sends options of its own.
            Some(_) => None,
            None => mapping(&wanted.encapsulation)?,
        };
        let soon = || Deadline::within(PATIENCE);

        let directory = ScratchDirectory::create().map_err(Error::Scratch)?;
        let path = |file: &str| directory.path().join(file);
        let text = |file: &str| path(file).display().to_string();
        let schema = programs.schema.display().to_string();
        let create = ["create".to_owned(), text("conf.db"), schema];
        run(&programs.database_tool, &create, &directory)?;
        let socket = text("db.sock");
        let arguments = [text("conf.db"), format!("--remote=punix:{socket}")];
        let server = &programs.database_server;
        let mut database = Daemon::start(server, "database", &arguments, &directory, owner)?;
        let mut connection =
            Database::connect(&path("db.sock"), Schema::OpenVswitch, soon(), || {
                database.check_running()
            })?;
        connection.transact(&operations(&wanted, datapath), soon())?;

        let arguments = [format!("unix:{socket}")];
        let program = &programs.switch;
        let mut vswitchd = Daemon::start(program, "switch", &arguments, &directory, owner)?;
        let controller = match &wanted.ovn {
            Some(_) => Some(Controller::start(&socket, &directory, owner)?),
            None => None,
        };
        let wait = || DaemonWait::with(vec![database.pid(), vswitchd.pid()], PATIENCE);
        let (in_force, read) = (wait(), wait());
        let put = connection.wait_for_configuration(1, in_force, || vswitchd.check_running());
        put.map_err(|error| match error {
            Error::Control { problem, .. } => {
                vswitchd.failed(format!("is not configured: {problem}"))
            }
            other => other,
        })?;
        let ports = read_back(&mut connection, &wanted, datapath, read)?;
        debug!("Open vSwitch {version}, {datapath}: ports {ports:?}");

        let mut control = Control::connect(&path("switch.ctl"))?;
        if let Some(range) = wanted.encapsulation.udp().and_then(|udp| udp.source_ports) {
            let (first, last) = (range.first.to_string(), range.last.to_string());
            control.call("tnl/egress_port_range", &[&first, &last], soon())?;
        }
        if let Some(options) = options {
            let of = Openflow {
                program: &programs.openflow,
                directory: &directory,
            };
            of.send_options(&options, &wanted, &ports)?;
        }
        let ovn = controller.as_ref().map(|one| one.version().to_owned());
        Ok(Self {
            control,
            controller,
            vswitchd,
            database,
            directory,
            wanted,
            about: OpenVswitch {
                version,
                datapath,
                ovn,
            },
        })
    }

    /// Version and datapath of the switch.
    pub fn about(&self) -> &OpenVswitch {
        &self.about
    }

    /// Configuration that the switch was started with.
    pub fn spec(&self) -> &SwitchSpec {
        &self.wanted
    }

    /// Directory of the daemons' sockets, as Open vSwitch's own commands take it in OVS_RUNDIR; gone with the switch.
    /// Other processes replace `self` in it by this process's id.
    pub fn run_directory(&self) -> PathBuf {
        self.directory.path()
    }

    /// Process ids of the daemons.
    pub fn processes(&self) -> Vec<u32> {
        let controller = self.controller.as_ref().map(Controller::pid);
        let own = [self.database.pid(), self.vswitchd.pid()];
        own.into_iter().chain(controller).collect()
    }

    /// Waits, where OVN programs the switch, until its guests are ports of the logical network and its tunnel to the
    /// other host exists, for which that host must have started as well.
    ///
    /// # Errors
    /// [`Error::NotInForce`], or that a daemon has ended.
    pub fn wait_for_ovn(&mut self) -> Result<(), Error> {
        let Some(controller) = &mut self.controller else {
            return Ok(());
        };
        let mut connection = Database::connect(
            &self.directory.path().join("db.sock"),
            Schema::OpenVswitch,
            Deadline::within(PATIENCE),
            || self.database.check_running(),
        )?;
        let daemons = vec![self.database.pid(), self.vswitchd.pid(), controller.pid()];
        let wait = DaemonWait::with(daemons, PATIENCE);
        controller.wait_until_installed(&mut connection, &self.wanted, wait)
    }

    /// Prepares the route to the other host, once [`UNDERLAY_BRIDGE`] has its address: tells the switch the hardware
    /// address of `next_hop`, which the switch would otherwise ask for while the first frames are lost, and waits until
    /// the switch has found the route. Does nothing where the kernel routes, or nothing is routed.
    ///
    /// The switch forgets the hardware address after some minutes without traffic: call this again before the next.
    ///
    /// # Errors
    /// [`Error::NoRoute`], or that a daemon has ended.
    pub fn reach(&mut self, next_hop: IpAddr, mac: [u8; 6]) -> Result<(), Error> {
        self.vswitchd.check_running()?;
        self.database.check_running()?;
        if let Some(controller) = &mut self.controller {
            controller.check_running()?;
        }
        if !self.wanted.has_underlay_bridge(self.about.datapath) {
            return Ok(());
        }
        let deadline = Deadline::within(PATIENCE);
        let (hop, mac) = (next_hop.to_string(), mac_text(mac));
        let neighbour = [UNDERLAY_BRIDGE, &hop, &mac];
        self.control.call("tnl/neigh/set", &neighbour, deadline)?;
        let peer = self.wanted.peer;
        let through = format!("dev {UNDERLAY_BRIDGE}");
        let found =
            self.control
                .call_until("ovs/route/lookup", &[&peer.to_string()], deadline, |said| {
                    said.lines().any(|line| line.trim() == through)
                });
        found.map_err(|found| Error::NoRoute { peer, found })
    }
}

/// Starts a switch with the userspace datapath in the calling thread's network namespace, with one device as its port,
/// and ends it.
///
/// # Errors
/// As for [`Switch::start`].
pub fn try_with(device: &str) -> Result<OpenVswitch, Error> {
    let nowhere = IpAddr::from([0, 0, 0, 0]);
    let wanted = SwitchSpec {
        encapsulation: Encapsulation::None,
        underlay: device.to_owned(),
        underlay_mtu: 0,
        guests: Vec::new(),
        local: nowhere,
        peer: nowhere,
        mac: [0; 6],
        ovn: None,
    };
    // The owner is not a run's controller, so that no cleanup looks for it.
    let switch = Switch::start(wanted, OvsDatapath::Userspace, "trial")?;
    Ok(switch.about.clone())
}

/// Whether this kernel has the openvswitch module; loads it where it is installed.
pub fn kernel_has_datapath() -> bool {
    generic::has_family(FAMILY).unwrap_or(false)
}

/// Checks that a datapath can be used: the kernel's needs the module, the one in userspace devices for its bridges.
fn can_be_had(datapath: OvsDatapath) -> Result<(), Error> {
    match datapath {
        OvsDatapath::Kernel if kernel_has_datapath() => Ok(()),
        OvsDatapath::Kernel => Err(Error::NoModule),
        OvsDatapath::Userspace => Tap::create(TRIAL_DEVICE).map(drop).map_err(Error::NoTap),
    }
}

/// OpenFlow port numbers by port name, once all ports read back as configured.
fn read_back(
    database: &mut Database,
    wanted: &SwitchSpec,
    datapath: OvsDatapath,
    mut wait: DaemonWait,
) -> Result<BTreeMap<String, u64>, Error> {
    let columns = ["name", "error", "ofport", "mtu", "mac_in_use"];
    loop {
        let select = Operation::select("Interface", &columns);
        let results = database.transact(&[select], wait.request_deadline())?;
        let rows = results[0]["rows"].as_array().map_or(&[][..], Vec::as_slice);
        match ports(rows, wanted, datapath) {
            // Columns that are read from the devices follow the configuration a moment later.
            Err(Error::ReadBack { .. }) if !wait.is_over() => sleep(STEP),
            done => return done,
        }
    }
}

fn ports(
    rows: &[Value],
    wanted: &SwitchSpec,
    datapath: OvsDatapath,
) -> Result<BTreeMap<String, u64>, Error> {
    let mut ports = BTreeMap::new();
    for row in rows {
        let name = row["name"].as_str().unwrap_or_default().to_owned();
        if let Some(problem) = optional(&row["error"]).and_then(Value::as_str) {
            return Err(Error::Port {
                name,
                problem: problem.to_owned(),
            });
        }
        let read = |column| optional(&row[column]).map(|value| value.to_string().replace('"', ""));
        let same = |column: &'static str, wanted: String| {
            let found = read(column).unwrap_or_else(|| "nothing".to_owned());
            let name = name.clone();
            (found == wanted).then_some(()).ok_or(Error::ReadBack {
                name,
                column,
                wanted,
                found,
            })
        };
        if name == UNDERLAY_BRIDGE && wanted.has_underlay_bridge(datapath) {
            same("mtu", wanted.underlay_mtu.to_string())?;
            same("mac_in_use", mac_text(wanted.mac))?;
        }
        // -1 where the port could not be created.
        let Some(number) = optional(&row["ofport"]).and_then(Value::as_u64) else {
            let found = read("ofport").unwrap_or_else(|| "nothing".to_owned());
            return Err(Error::ReadBack {
                name,
                column: "ofport",
                wanted: "a number".to_owned(),
                found,
            });
        };
        ports.insert(name, number);
    }
    Ok(ports)
}

/// Settings that only OpenFlow has.
struct Openflow<'a> {
    program: &'a PathBuf,
    directory: &'a ScratchDirectory,
}

impl Openflow<'_> {
    /// Makes every packet of a guest carry the options.
    fn send_options(
        &self,
        options: &OptionMapping,
        wanted: &SwitchSpec,
        ports: &BTreeMap<String, u64>,
    ) -> Result<(), Error> {
        self.run("add-tlv-map", &options.table)?;
        let of_guests = wanted.guests.iter().filter_map(|guest| ports.get(guest));
        let mut flows = String::new();
        for port in of_guests {
            // Writing to a string does not fail.
            let _ = writeln!(
                flows,
                "priority=1,in_port={port},actions={},NORMAL",
                options.action
            );
        }
        let file = self.directory.path().join("flows");
        fs::write(&file, flows).map_err(Error::Flows)?;
        self.run("add-flows", &file.display().to_string())
    }

    fn run(&self, command: &str, argument: &str) -> Result<(), Error> {
        let socket = self
            .directory
            .path()
            .join(format!("{INTEGRATION_BRIDGE}.mgmt"));
        let arguments = [
            "--protocols=OpenFlow13".to_owned(),
            format!("--timeout={OFCTL_TIMEOUT_S}"),
            command.to_owned(),
            format!("unix:{}", socket.display()),
            argument.to_owned(),
        ];
        run(self.program, &arguments, self.directory)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wirecost_model::plan::Vxlan;

    use super::*;

    fn wanted() -> SwitchSpec {
        SwitchSpec {
            encapsulation: Encapsulation::Vxlan(Vxlan::default()),
            underlay: "underlay".to_owned(),
            underlay_mtu: 9000,
            guests: vec!["guest0".to_owned()],
            local: "198.18.0.1".parse().expect("an address"),
            peer: "198.18.0.2".parse().expect("an address"),
            mac: [2, 0, 0, 0, 0, 1],
            ovn: None,
        }
    }

    fn row(name: &str, ofport: &Value) -> Value {
        let nothing = json!(["set", []]);
        json!({"name": name, "error": nothing, "ofport": ofport, "mtu": 9000, "mac_in_use": "02:00:00:00:00:01"})
    }

    fn read(rows: &[Value]) -> Result<BTreeMap<String, u64>, String> {
        ports(rows, &wanted(), OvsDatapath::Userspace).map_err(|error| error.to_string())
    }

    #[test]
    fn ports_that_are_there_have_numbers() {
        let ports = read(&[row("guest0", &json!(3)), row("br-underlay", &json!(65534))]);
        assert_eq!(ports.expect("ports")["guest0"], 3);
    }

    #[test]
    fn a_port_that_could_not_be_made_is_named_with_the_switchs_words() {
        let mut broken = row("guest0", &json!(-1));
        broken["error"] = json!("could not open network device guest0 (No such device)");
        insta::assert_snapshot!(read(&[broken]).expect_err("broken"), @"Open vSwitch cannot use guest0 as a port (table Interface, column error): could not open network device guest0 (No such device)");
        let error = read(&[row("guest0", &json!(["set", []]))]).expect_err("not there yet");
        insta::assert_snapshot!(error, @"table Interface, row guest0, column ofport: asked for a number, read back nothing");
    }

    #[test]
    fn flows_that_cannot_be_written_are_told_as_that() {
        let directory = match ScratchDirectory::create() {
            Ok(directory) => directory,
            Err(error) => {
                wirecost_skips::skip(format!("a file system cannot be made here: {error}"));
                return;
            }
        };
        // Something else has the file's name.
        fs::create_dir(directory.path().join("flows")).expect("a directory");
        let openflow = Openflow {
            program: &PathBuf::from("/bin/true"),
            directory: &directory,
        };
        let options = OptionMapping {
            table: String::new(),
            action: String::new(),
        };
        let sent = openflow.send_options(&options, &wanted(), &BTreeMap::new());
        let error = sent.expect_err("no file").to_string();
        assert!(error.starts_with("writing the flows"), "{error}");
    }

    #[test]
    fn the_underlays_bridge_must_have_mtu_and_address() {
        let mut small = row("br-underlay", &json!(65534));
        small["mtu"] = json!(1500);
        let error = read(&[small]).expect_err("another MTU");
        assert!(
            error.contains("column mtu: asked for 9000, read back 1500"),
            "{error}"
        );
    }
}
