//! Addresses of storage targets that are not served by this program.

use std::net::ToSocketAddrs;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::Stage;
use wirecost_model::load::{Address, Load, NbdUri};

/// The address of a load's external target; `None`: this program serves the target.
///
/// # Errors
/// A host name that cannot be resolved.
pub(crate) fn external_target(load: &Load) -> Result<Option<Address>, LinkError> {
    match (&load.server, &load.path) {
        (Some(server), _) => resolved(server).map(Some),
        (None, path) => Ok(path.clone().map(Address::Path)),
    }
}

fn resolved(server: &NbdUri) -> Result<Address, LinkError> {
    if let Some(socket) = &server.socket {
        return Ok(Address::Path(socket.clone()));
    }
    let refused = |words: String| LinkError::Refused {
        host: server.host.clone(),
        stage: Stage::Load,
        message: words,
    };
    let found = (server.host.as_str(), server.port).to_socket_addrs();
    let mut found = found.map_err(|error| refused(error.to_string()))?;
    let found = found.next().map(Address::Ip);
    found.ok_or_else(|| refused("its name has no address".to_owned()))
}
