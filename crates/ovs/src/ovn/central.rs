//! OVN's databases and ovn-northd.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;
use wirecost_sys::scratch::ScratchDirectory;

use super::logical::{LogicalNetwork, operations};
use super::programs::OvnPrograms;
use crate::daemon::{Daemon, run};
use crate::database::{Database, Operation, Schema};
use crate::deadline::{DaemonWait, Deadline};
use crate::error::Error;
use crate::programs::Programs;

/// Time limit of each wait, as for a switch: an idle machine takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(8);
const STEP: Duration = Duration::from_millis(5);
const SOCKET: &str = "ovn.sock";

/// OVN's databases with a logical network, and ovn-northd. Dropping it ends these daemons; the hosts' switches stay
/// programmed.
#[derive(Debug)]
pub struct Central {
    // Dropped in this order.
    northd: Daemon,
    database: Daemon,
    directory: ScratchDirectory,
}

impl Central {
    /// Starts both databases behind one socket, writes the wanted network to them, and starts ovn-northd. The daemons
    /// end with the calling thread; `owner` as for [`crate::Switch::start`].
    ///
    /// # Errors
    /// Where a program is missing, or a database refuses an operation.
    pub fn start(wanted: &LogicalNetwork, owner: &str) -> Result<Self, Error> {
        let (ovs, ovn) = (Programs::find()?, OvnPrograms::find()?);
        let directory = ScratchDirectory::create().map_err(Error::Scratch)?;
        let text = |file: &str| directory.path().join(file).display().to_string();
        for (file, schema) in [("nb.db", &ovn.northbound), ("sb.db", &ovn.southbound)] {
            let create = [
                "create".to_owned(),
                text(file),
                schema.display().to_string(),
            ];
            run(&ovs.database_tool, &create, &directory)?;
        }
        let socket = text(SOCKET);
        let arguments = [
            format!("--remote=punix:{socket}"),
            text("nb.db"),
            text("sb.db"),
        ];
        let server = &ovs.database_server;
        let mut database = Daemon::start(server, "ovn-database", &arguments, &directory, owner)?;
        let path = directory.path().join(SOCKET);
        let mut connect = |schema| {
            let soon = Deadline::within(PATIENCE);
            Database::connect(&path, schema, soon, || database.check_running())
        };
        let soon = || Deadline::within(PATIENCE);
        connect(Schema::OvnNorthbound)?.transact(&operations(wanted), soon())?;
        let global = Operation::insert("SB_Global", "global", &json!({}));
        connect(Schema::OvnSouthbound)?.transact(&[global], soon())?;
        let arguments = [
            format!("--ovnnb-db=unix:{socket}"),
            format!("--ovnsb-db=unix:{socket}"),
        ];
        let northd = Daemon::start(&ovn.northd, "northd", &arguments, &directory, owner)?;
        Ok(Self {
            northd,
            database,
            directory,
        })
    }

    /// Path of the databases' socket, for other processes of this user; valid while this process exists.
    pub fn remote(&self) -> PathBuf {
        let own = self.directory.path().join(SOCKET);
        let of_process = format!("/proc/{}", std::process::id());
        own.strip_prefix("/proc/self")
            .map_or(own.clone(), |rest| PathBuf::from(of_process).join(rest))
    }

    /// Process ids of the database server and of ovn-northd.
    pub fn processes(&self) -> [u32; 2] {
        [self.database.pid(), self.northd.pid()]
    }

    /// Waits until `number` hosts have joined and all of them have applied the current network.
    ///
    /// # Errors
    /// [`Error::NotInForce`], or that a daemon has ended.
    pub fn wait_for_hosts(&mut self, number: usize) -> Result<(), Error> {
        let mut wait = self.wait();
        let (mut south, mut north) = (
            self.connect(Schema::OvnSouthbound)?,
            self.connect(Schema::OvnNorthbound)?,
        );
        self.until(&mut wait, |wait| {
            let there = south
                .rows("Chassis", &["name"], wait.request_deadline())?
                .len();
            let missing = format!("{there} of {number} hosts have joined");
            Ok((there < number).then_some(missing))
        })?;
        // A number that no host has confirmed before (ovn-nbctl(8), `--wait=hv`).
        let before = north.rows("NB_Global", &["nb_cfg"], wait.request_deadline())?;
        let before = before.first().and_then(|row| row["nb_cfg"].as_i64());
        let wanted = before.unwrap_or(0) + 1;
        let next = Operation::update("NB_Global", &json!({"nb_cfg": wanted}));
        north.transact(&[next], wait.request_deadline())?;
        self.until(&mut wait, |wait| {
            let rows = north.rows("NB_Global", &["hv_cfg"], wait.request_deadline())?;
            let in_force = rows.first().and_then(|row| row["hv_cfg"].as_i64());
            let missing = "the hosts' switches have not applied the logical network";
            Ok((in_force.unwrap_or(0) < wanted).then(|| missing.to_owned()))
        })
    }

    /// Waits until ovn-northd has computed logical flows of the network, where there are no hosts to wait for.
    fn wait_for_flows(&mut self) -> Result<(), Error> {
        let mut wait = self.wait();
        let mut south = self.connect(Schema::OvnSouthbound)?;
        self.until(&mut wait, |wait| {
            let rows = south.rows("Logical_Flow", &["match"], wait.request_deadline())?;
            let missing = "ovn-northd has made no logical flows";
            Ok(rows.is_empty().then(|| missing.to_owned()))
        })
    }

    /// Repeats a check until it finds nothing missing.
    fn until(
        &mut self,
        wait: &mut DaemonWait,
        mut missing: impl FnMut(&DaemonWait) -> Result<Option<String>, Error>,
    ) -> Result<(), Error> {
        while let Some(missing) = missing(wait)? {
            self.database.check_running()?;
            self.northd.check_running()?;
            if wait.is_over() {
                return Err(Error::NotInForce {
                    missing,
                    seconds: PATIENCE.as_secs_f64(),
                    log: self.northd.log(),
                });
            }
            sleep(STEP);
        }
        Ok(())
    }

    fn wait(&self) -> DaemonWait {
        DaemonWait::with(self.processes().to_vec(), PATIENCE)
    }

    fn connect(&mut self, schema: Schema) -> Result<Database, Error> {
        let path = self.directory.path().join(SOCKET);
        let database = &mut self.database;
        Database::connect(&path, schema, Deadline::within(PATIENCE), || {
            database.check_running()
        })
    }
}

/// Starts OVN's databases and ovn-northd with one logical switch, waits until its flows are there, and ends them.
/// Returns OVN's version.
///
/// # Errors
/// As for [`Central::start`].
pub fn try_central() -> Result<String, Error> {
    let version = OvnPrograms::find()?.version()?;
    let wanted = LogicalNetwork {
        guests: [Vec::new(), Vec::new()],
        key: 1,
        router: None,
        acl: wirecost_model::logical::Acl::None,
        to_underlay: false,
        tag: None,
    };
    // The owner is not a run's controller, so that no cleanup looks for it.
    Central::start(&wanted, "trial")?.wait_for_flows()?;
    Ok(version)
}
