//! A lab's host: building, adapting to a cell, and watching its underlay.

use std::path::PathBuf;

use wirecost_meter::{Meter, Scope};
use wirecost_model::offload::Offload;
use wirecost_model::sample::CapturedFrame;
use wirecost_netbuild::{HostSpec, LabHost};
use wirecost_ovs::ovn::Central;
use wirecost_sys::socket::PacketCapture;

use super::{Agent, Answer, UNPREPARED, guest_namespaces};
use crate::datapath::{self, FrameCarrier};
use crate::error::{AgentError, Context, Result};
use crate::existing_underlay::ExistingUnderlay;
use crate::expected_datagram::ExpectedDatagram;
use crate::line::Line;
use crate::protocol::{Reply, Secret};
use crate::prove;

/// Bytes captured of a frame: enough for all headers, with 252 bytes of Geneve options, and for the header of a probe.
const SNAP_BYTES: usize = 512;

/// Number of hosts in a lab.
const HOSTS: usize = 2;
const NOT_JOINED: &str = "the host has not joined the run yet";

impl Agent {
    /// Makes the namespaces of a lab's host; where tunnels use an existing network, in namespaces separate from it.
    pub(super) fn prepare(&mut self, spec: HostSpec) -> Result<LabHost> {
        if spec.existing_underlay.is_none() {
            return Ok(LabHost::prepare(spec)?);
        }
        let joined = self.existing.take();
        let existing_underlay =
            ExistingUnderlay::leave(joined.ok_or(AgentError::NotReady(NOT_JOINED))?)?;
        let host = LabHost::prepare_over(spec, existing_underlay.netns())?;
        self.existing_underlay = Some(existing_underlay);
        Ok(host)
    }

    pub(super) fn capture(&mut self) -> Result<PacketCapture> {
        if let Some(existing_underlay) = &mut self.existing_underlay {
            return existing_underlay.watch(SNAP_BYTES);
        }
        let index = self.host()?.underlay_index()?;
        PacketCapture::open(index, SNAP_BYTES).context("watching the underlay")
    }

    pub(super) fn adapt(&mut self, guest_mtu: u32, offload: &Offload) -> Answer {
        if let Some(carrier) = &mut self.carrier {
            carrier.wait_for_peer()?;
        }
        if let Some(central) = &mut self.central {
            central.wait_for_hosts(HOSTS)?;
        }
        let host = self.host.as_mut().ok_or(AgentError::NotReady(UNPREPARED))?;
        self.devices = host.adapt(guest_mtu, offload)?;
        if let Some(existing_underlay) = &mut self.existing_underlay {
            self.devices.insert(0, existing_underlay.state()?);
        }
        self.complete_line()?;
        let host = self.host.as_ref().ok_or(AgentError::NotReady(UNPREPARED))?;
        if let Some(carrier) = &mut self.carrier {
            carrier.set_peer(host.spec())?;
        }
        Ok(Reply::Devices(self.devices.clone()))
    }

    fn complete_line(&mut self) -> Result<()> {
        match (&mut self.line, &self.host) {
            (Some(line), Some(host)) => line.set(host),
            _ => Ok(()),
        }
    }

    pub(super) fn lift_line(&mut self) -> Answer {
        if let (Some(line), Some(host)) = (&mut self.line, &self.host) {
            line.lift(host)?;
        }
        self.host()?.lift_line()?;
        Ok(Reply::Done)
    }

    pub(super) fn set_line(&mut self) -> Answer {
        self.host()?.set_line()?;
        self.complete_line()?;
        Ok(Reply::Done)
    }

    pub(super) fn build(&mut self, secret: Secret, ovn: Option<PathBuf>) -> Answer {
        let host = self.host.as_mut().ok_or(AgentError::NotReady(UNPREPARED))?;
        host.build()?;
        let existing = self.existing_underlay.as_mut();
        self.carrier = datapath::attach(host, self.guards.owner(), ovn, existing)?;
        self.line = Line::of(host)?;
        let responder = prove::respond(guest_namespaces(host), secret)
            .context("starting the responder in the guests")?;
        let responders = responder.addresses().to_vec();
        let guest_tids = host.guest_tids();
        let pid = std::process::id();
        // An existing host uses all of its cores.
        let cpus = match self.existing_underlay {
            Some(_) => wirecost_meter::online_cpus()?,
            None => wirecost_sys::process::allowed_cpus()?,
        };
        let scope = Scope {
            cpus,
            pid,
            host_task: pid,
            guest_tasks: guest_tids.clone(),
        };
        self.meter = Some(Meter::open(scope)?);
        self.responder = Some((responder, secret));
        Ok(Reply::Built {
            responders,
            guest_tids,
            switch: self
                .carrier
                .as_ref()
                .and_then(FrameCarrier::switch)
                .map(|mut switch| {
                    let central = self.central.as_ref().map(Central::processes);
                    switch.processes.extend(central.into_iter().flatten());
                    switch
                }),
            steered: host.is_steered(),
            line: self.line.as_ref().map(|line| line.release().clone()),
        })
    }

    /// Searches the captured frames for a full-size probe of this lab.
    pub(super) fn read_capture(&mut self, size: u32) -> Result<Option<CapturedFrame>> {
        let secret = self.secret()?;
        let capture = self
            .watch
            .take()
            .ok_or(AgentError::NotReady("the underlay is not being watched"))?;
        let wanted = ExpectedDatagram::of(&self.host()?.spec().network, size, secret)?;
        let mut buffer = [0; SNAP_BYTES];
        let failed = |error| format!("reading what the underlay showed: {error}");
        while let Some((captured, original)) = capture.recv(&mut buffer).map_err(failed)? {
            if let Some(seen) = wanted.sizes_of(&buffer[..captured], original) {
                return Ok(Some(seen));
            }
        }
        Ok(None)
    }
}
