//! Frames between controller and agent by the million, in both directions, mutated from ones that are right: `make
//! fuzz`, or `cargo run --release -p wirecost-agent --example fuzz_protocol -- INPUTS SEED`.

#[path = "../../wire/examples/shared/fuzz.rs"]
mod fuzz;

use std::net::SocketAddr;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wirecost_agent::frame;
use wirecost_agent::protocol::{LoadEnd, Reply, Request, Secret, Side, VERSION};
use wirecost_model::load::{Load, Workload};
use wirecost_model::offload::{Offload, Profile};

use fuzz::fuzz;

/// More than there are kinds of requests, and of replies.
const KINDS: u8 = 48;

fn main() {
    fuzz(&seeds(), |bytes, _| {
        let asked = comes_back::<Request>(bytes, |_| true);
        // The hosts of a description are the controller's to fill in: they are written to records, and never travel.
        let travels = |reply: &Reply| match reply {
            Reply::Description(of) => of.hosts.is_empty(),
            _ => true,
        };
        let told = comes_back::<Reply>(bytes, travels);
        asked || told
    });
}

/// Whether it is a message; one that is comes back as it was.
fn comes_back<T: Serialize + DeserializeOwned>(bytes: &[u8], travels: impl Fn(&T) -> bool) -> bool {
    let taken = frame::take::<T>(&mut bytes.to_vec());
    let read = frame::read::<T>(&mut &*bytes);
    assert_eq!(
        matches!(taken, Ok(Some(_))),
        matches!(read, Ok(Some(_))),
        "the two readers differ"
    );
    let Ok(Some(message)) = taken else {
        return false;
    };
    if !travels(&message) {
        return false;
    }
    let written = frame::encode(&message).expect("to memory");
    let again: T = frame::read(&mut &written[..])
        .expect("ours")
        .expect("a message");
    assert_eq!(frame::encode(&again).expect("to memory"), written);
    true
}

/// Some requests, and of every kind of message one whose fields are all zero, and all one.
fn seeds() -> Vec<Vec<u8>> {
    let secret = Secret {
        probe: [7; 16],
        acknowledgement: [9; 8],
    };
    let ends = Workload::ALL.map(|workload| LoadEnd {
        name: workload.name().to_owned(),
        place: wirecost_agent::protocol::HostNetns::Guest(1),
        address: SocketAddr::from(([192, 0, 2, 1], 7)).into(),
        load: Load::new(workload),
        secret: [9; 16],
        source: Some([192, 0, 2, 2].into()),
        cpus: vec![0, 7],
    });
    let requests = [
        Request::Hello { version: VERSION },
        Request::Build { secret, ovn: None },
        Request::Join {
            side: Side::A,
            address: [192, 0, 2, 1].into(),
            peer: [192, 0, 2, 2].into(),
            secret,
        },
        Request::Adapt {
            guest_mtu: 9000,
            offload: Offload::profile(Profile::None),
        },
        Request::OpenClients(ends.into()),
        Request::Prove {
            targets: vec![([192, 0, 2, 1], 7).into(); 3],
            size: 9000,
            exact: true,
        },
    ];
    let requests = requests
        .iter()
        .map(|one| frame::encode(one).expect("to memory"));
    let plain = (0..KINDS).flat_map(|kind| {
        [0, 1].map(|fill| {
            let mut body = vec![fill; 600];
            body[0] = kind;
            [&600u32.to_be_bytes()[..], &body].concat()
        })
    });
    requests.chain(plain).collect()
}
