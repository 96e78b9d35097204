//! `wirecost agent`: nothing may start a thread before the process has its namespaces.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use wirecost_agent::lab::become_host;
use wirecost_agent::place;
use wirecost_sys::namespace::UserNamespace;

use crate::arguments::Agent;

pub(crate) fn agent(arguments: &Agent) -> ExitCode {
    if let Some(directory) = &arguments.temporary {
        place::remove_copy(directory);
    }
    let started = if arguments.in_place {
        place::settle(arguments.netns.as_deref(), arguments.owner.is_some())
    } else {
        let user = arguments
            .user_namespace_of
            .map_or(UserNamespace::Keep, UserNamespace::Of);
        become_host(user, &arguments.cpus)
    };
    let idle = arguments.idle_limit.map(Duration::from_secs);
    let owner = arguments.owner.as_deref().unwrap_or_default();
    wirecost_agent::serve(io::stdin(), io::stdout().lock(), &started, owner, idle)
}
