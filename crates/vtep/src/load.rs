//! Loads the compiled object: sets its constants, passes the verifier, and attaches the programs to hooks.

use std::io::{self, Read as _};
use std::thread;
use std::time::Duration;

use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use aya::programs::links::Link;
use aya::programs::tc::{
    NlOptions, SchedClassifier, SchedClassifierLink, TcAttachOptions, TcError,
};
use aya::programs::{LinkOrder, ProgramError, TcAttachType, tc};
use aya::{Ebpf, EbpfError, EbpfLoader};
use flate2::read::GzDecoder;

use crate::config::{Config, Format, Hook};
use crate::error::Error;
use crate::layout::{self, KNOWN_OPTIONS};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vtep.bpf.o.gz"));

/// Error of the kernel for an unknown attach type.
const EINVAL: i32 = 22;
/// Error of the kernel for a verification that was interrupted.
const EAGAIN: i32 = 11;
/// Error of the kernel for a program that is attached to this hook of the device.
const EEXIST: i32 = 17;

/// Name of the program for frames from guests.
pub(crate) const ENCAPSULATE: &str = "encapsulate";
/// Name of the program for frames from the underlay.
pub(crate) const DECAPSULATE: &str = "decapsulate";

/// A program attached to a hook; dropping it detaches the program.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) link: SchedClassifierLink,
}

/// An object as the build compressed it.
pub(crate) fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut object = Vec::new();
    let unpacked = GzDecoder::new(packed).read_to_end(&mut object);
    unpacked.expect("the build compressed it");
    object
}

/// Sets the programs' constants and loads both programs.
pub(crate) fn load(config: &Config, underlay: u32, segmenter: (u32, u32)) -> Result<Ebpf, Error> {
    let tunnel = config.format.tunnel();
    let (format, vlan): (u32, u32) = match config.format {
        Format::Plain => (0, 0),
        Format::Vlan { id } => (1, id.into()),
        Format::Vxlan(_) => (2, 0),
        Format::Geneve(..) => (3, 0),
    };
    let family: u32 = tunnel.map_or(0, |t| if t.local.is_ipv4() { 2 } else { 10 });
    let ports = tunnel.map_or((0, 0), |t| t.source_ports);
    let (port_min, port_max) = (u32::from(ports.0), u32::from(ports.1));
    let udp_port = tunnel.map_or(0, |t| u32::from(t.port));
    let checksum = u32::from(tunnel.is_some_and(|t| t.udp_checksum));
    let local = tunnel.map_or([0; 16], |t| layout::address(t.local));
    let inner_tag = config.inner_vlan.map_or(0, |id| u32::from(id) + 1);
    let header_len = config.format.header_bytes();
    let mut known = [0u32; KNOWN_OPTIONS];
    let mut known_options = 0u32;
    if let Format::Geneve(_, options) = &config.format {
        for (place, option) in known.iter_mut().zip(options.iter()) {
            *place = u32::from(option.class) << 8 | u32::from(option.kind);
            known_options += 1;
        }
    }

    let mut loader = EbpfLoader::new();
    let constants = [
        ("format", &format),
        ("family", &family),
        ("underlay", &underlay),
        ("segmenter", &segmenter.0),
        ("segmented", &segmenter.1),
        ("header_len", &header_len),
        ("port_min", &port_min),
        ("port_max", &port_max),
        ("udp_port", &udp_port),
        ("checksum", &checksum),
        ("vlan", &vlan),
        ("inner_tag", &inner_tag),
        ("known_options", &known_options),
    ];
    for (name, value) in constants {
        loader.override_global(name, value, true);
    }
    loader.override_global("known_option", &known, true);
    loader.override_global("local_address", &local, true);
    verify(loader.load(&unpack(OBJECT)), &[ENCAPSULATE, DECAPSULATE])
}

/// Loads an object's programs through the verifier.
pub(crate) fn verify(
    loaded: Result<Ebpf, EbpfError>,
    programs: &[&'static str],
) -> Result<Ebpf, Error> {
    let mut object = loaded.map_err(cannot_load)?;
    for program in programs {
        let classifier = classifier(&mut object, program);
        let verified = Retry::INTERRUPTED.run(|| classifier.load());
        verified.map_err(|error| refused(program, error))?;
    }
    Ok(object)
}

/// A call of the kernel that is repeated after an error that passes.
struct Retry {
    error: i32,
    attempts: u32,
    pause: Duration,
}

impl Retry {
    /// A verification that a signal to this thread interrupted (kernel/bpf/verifier.c, `do_check`).
    const INTERRUPTED: Self = Self {
        error: EAGAIN,
        attempts: 10,
        pause: Duration::ZERO,
    };
    /// A detached program stays as long as a process that another thread forked holds the link's descriptor: until
    /// exec.
    const BEING_DETACHED: Self = Self {
        error: EEXIST,
        attempts: 200,
        pause: Duration::from_millis(10),
    };

    fn run<T>(self, mut call: impl FnMut() -> Result<T, ProgramError>) -> Result<T, ProgramError> {
        for _ in 1..self.attempts {
            match call() {
                Err(error) if code(&error) == Some(self.error) => thread::sleep(self.pause),
                done => return done,
            }
        }
        call()
    }
}

/// A program of one of our objects.
pub(crate) fn classifier<'a>(
    object: &'a mut Ebpf,
    program: &'static str,
) -> &'a mut SchedClassifier {
    object
        .program_mut(program)
        .and_then(|program| program.try_into().ok())
        .expect("a classifier in our own object")
}

/// Attaches a program to a device's ingress.
pub(crate) fn attach(
    object: &mut Ebpf,
    program: &'static str,
    device: &str,
    hook: Hook,
) -> Result<Attached, Error> {
    attach_to(object, program, device, TcAttachType::Ingress, hook)
}

/// Attaches a program to a device's ingress or egress, after those already there.
pub(crate) fn attach_to(
    object: &mut Ebpf,
    program: &'static str,
    device: &str,
    side: TcAttachType,
    hook: Hook,
) -> Result<Attached, Error> {
    let classifier = classifier(object, program);
    let failed = |source| Error::Attach {
        program,
        device: device.to_owned(),
        source: Box::new(source),
    };
    let tcx = |classifier: &mut SchedClassifier| {
        Retry::BEING_DETACHED.run(|| {
            let order = TcAttachOptions::TcxOrder(LinkOrder::default());
            classifier.attach_with_options(device, side, order)
        })
    };
    let clsact = |classifier: &mut SchedClassifier| {
        match tc::qdisc_add_clsact(device) {
            Err(error) if !is_there(&error) => return Err(error.into()),
            _ => {}
        }
        let options = TcAttachOptions::Netlink(NlOptions::default());
        classifier.attach_with_options(device, side, options)
    };
    let id = match hook {
        Hook::Tcx => match tcx(classifier) {
            Err(error) if lacks_tcx(&error) => {
                let device = device.to_owned();
                return Err(Error::NoTcx { device });
            }
            other => other,
        },
        Hook::Clsact => clsact(classifier),
        Hook::Best => match tcx(classifier) {
            Err(error) if lacks_tcx(&error) => clsact(classifier),
            other => other,
        },
    };
    let link = classifier.take_link(id.map_err(failed)?).map_err(failed)?;
    Ok(Attached { link })
}

impl Attached {
    /// Detaches the program and reports errors.
    pub(crate) fn detach(self, program: &'static str, device: &str) -> Result<(), Error> {
        self.link.detach().map_err(|source| Error::Attach {
            program,
            device: device.to_owned(),
            source: Box::new(source),
        })
    }
}

fn is_there(error: &TcError) -> bool {
    matches!(error, TcError::AlreadyAttached)
        || source_io(error).is_some_and(|io| io.kind() == io::ErrorKind::AlreadyExists)
}

/// The kernel's error below aya's.
fn source_io<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io);
        }
        next = error.source();
    }
    None
}

fn code(error: &ProgramError) -> Option<i32> {
    source_io(error).and_then(io::Error::raw_os_error)
}

/// Whether the kernel does not know the attach type of tcx.
fn lacks_tcx(error: &ProgramError) -> bool {
    code(error) == Some(EINVAL)
}

fn cannot_load(error: EbpfError) -> Error {
    match source_io(&error).map(io::Error::kind) {
        Some(io::ErrorKind::PermissionDenied) => Error::NotAllowed,
        _ => Error::Load(Box::new(error)),
    }
}

fn refused(program: &'static str, error: ProgramError) -> Error {
    // Without a log the verifier did not run.
    let looked = matches!(&error, ProgramError::LoadError { verifier_log, .. } if !verifier_log.to_string().is_empty());
    match source_io(&error).map(io::Error::kind) {
        Some(io::ErrorKind::PermissionDenied) if !looked => Error::NotAllowed,
        _ => Error::Refused {
            program,
            source: Box::new(error),
        },
    }
}

/// Takes a map out of one of our objects.
pub(crate) fn typed<T: TryFrom<aya::maps::Map, Error = aya::maps::MapError>>(
    object: &mut Ebpf,
    map: &'static str,
) -> Result<T, Error> {
    let data = object.take_map(map).expect("a map of our own object");
    data.try_into().map_err(|source| Error::Map {
        map,
        source: Box::new(source),
    })
}

/// The programs' maps.
pub(crate) struct Maps {
    pub(crate) ports: HashMap<MapData, u32, layout::Port>,
    pub(crate) fdb: HashMap<MapData, layout::FdbKey, layout::FdbEntry>,
    pub(crate) remotes: Array<MapData, layout::Remote>,
    pub(crate) sources: HashMap<MapData, [u8; 16], u32>,
    pub(crate) floods: HashMap<MapData, u32, layout::Flood>,
    /// `None` once the map is pinned.
    pub(crate) counters: Option<PerCpuArray<MapData, u64>>,
}

impl Maps {
    pub(crate) fn take(object: &mut Ebpf) -> Result<Self, Error> {
        Ok(Self {
            ports: typed(object, "ports")?,
            fdb: typed(object, "fdb")?,
            remotes: typed(object, "remotes")?,
            sources: typed(object, "sources")?,
            floods: typed(object, "floods")?,
            counters: Some(typed(object, "counters")?),
        })
    }
}
