//! `wirecost agent`: nothing may start a thread before the process has its namespaces.

use std::io;
use std::process::ExitCode;

use wirecost_agent::lab::become_host;
use wirecost_sys::namespace::UserNamespace;

use crate::arguments::Agent;

pub(crate) fn agent(arguments: &Agent) -> ExitCode {
    let user = arguments
        .user_namespace_of
        .map_or(UserNamespace::Keep, UserNamespace::Of);
    let started = become_host(user, &arguments.cpus);
    let output = io::stdout().lock();
    wirecost_agent::serve(io::stdin(), output, &started, &arguments.owner)
}
