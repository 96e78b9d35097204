//! Nothing but the two system calls (`crate::bare`): no generator, but what the best one could have here. It is in this
//! program, so it is never absent.

use super::{Peer, Plan, Setting, value, words};
use crate::place::Door;
use crate::process::Said;
use crate::row::Load;

/// As the table and `--peer` name it.
pub(crate) const NAME: &str = "bare";
/// Of its datagrams.
const PORT: u16 = 7_001;

#[derive(Debug)]
pub(crate) struct Bare;

impl Peer for Bare {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> Result<String, String> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn plan(&self, load: Load, setting: &Setting<'_>) -> Result<Plan, String> {
        let Load::UdpStream {
            segmentation: false,
            ..
        } = load
        else {
            return Err("it has datagrams one by one only".to_owned());
        };
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut line = words![program.display(), "bare"];
        line.extend(words!["--message", load.message()]);
        line.extend(words!["--address", format!("{}:{PORT}", setting.server)]);
        let server = [line.clone(), words!["server"]].concat();
        line.extend(words!["client", "--seconds", setting.seconds]);
        Ok(Plan {
            server,
            door: Door::Udp(PORT),
            server_ends: false,
            clients: vec![line],
            takes_window: false,
        })
    }

    fn own(&self, _: Load, said: &Said) -> Result<f64, String> {
        value(&said.output, "sent_k").map_err(|reason| format!("{reason}: {}", said.words()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BULK, said, setting};
    use super::*;

    #[test]
    fn it_has_datagrams_one_by_one() {
        let datagrams = |segmentation| Load::UdpStream {
            message: 64,
            segmentation,
        };
        let plan = Bare.plan(datagrams(false), &setting()).expect("it can");
        // Behind the program's own path.
        assert_eq!(
            plan.server[1..].join(" "),
            "bare --message 64 --address 198.19.0.2:7001 server"
        );
        assert_eq!(
            plan.clients[0][1..].join(" "),
            "bare --message 64 --address 198.19.0.2:7001 client --seconds 2"
        );
        for load in [datagrams(true), BULK] {
            assert!(Bare.plan(load, &setting()).is_err(), "{load:?}");
        }
    }

    #[test]
    fn what_it_sent_is_read() {
        let load = Load::UdpStream {
            message: 64,
            segmentation: false,
        };
        assert_eq!(Bare.own(load, &said("sent_k=201.250\n")), Ok(201.25));
        assert!(Bare.own(load, &said("")).is_err());
    }
}
