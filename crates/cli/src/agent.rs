//! `wirecost agent`: the agent of a host. No thread may be started before the process is in its namespaces.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use wirecost_agent::existing_host;
use wirecost_agent::lab::become_host;
use wirecost_agent::role::AgentRole;
use wirecost_sys::namespace::UserNamespace;

#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// The host's name, for process lists
    #[arg(long)]
    pub(crate) host: String,
    /// Process id and start time of the controller on this machine, for `wirecost clean`; the agent ends with it
    #[arg(long, required_unless_present = "in_place")]
    pub(crate) owner: Option<String>,
    /// Use the host as it is: make no namespaces, pin nothing
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Enter this named network namespace
    #[arg(long, requires = "in_place")]
    pub(crate) netns: Option<String>,
    /// What it is for; it gives up the capabilities that this does not need, and refuses other requests
    #[arg(long = "duty", requires = "in_place", default_value = "commands", value_parser = role)]
    pub(crate) role: AgentRole,
    /// The directory that holds nothing but the copy of the program that this is; it is removed
    #[arg(long, requires = "in_place", value_name = "DIR")]
    pub(crate) temporary: Option<PathBuf>,
    /// End when nothing was asked for so many seconds
    #[arg(long)]
    pub(crate) idle_limit: Option<u64>,
    /// Cores to run on
    #[arg(
        long,
        value_delimiter = ',',
        required_unless_present = "in_place",
        conflicts_with = "in_place"
    )]
    pub(crate) cpus: Vec<u32>,
    /// Join the user namespace of this process
    #[arg(long, conflicts_with = "in_place")]
    pub(crate) user_namespace_of: Option<u32>,
}

pub(crate) fn agent(arguments: &Agent) -> ExitCode {
    if let Some(directory) = &arguments.temporary {
        existing_host::remove_copy(directory);
    }
    let started = if arguments.in_place {
        existing_host::become_agent(
            arguments.netns.as_deref(),
            arguments.role,
            arguments.owner.is_some(),
        )
    } else {
        let user = arguments
            .user_namespace_of
            .map_or(UserNamespace::Keep, UserNamespace::Of);
        become_host(user, &arguments.cpus)
    };
    let idle = arguments.idle_limit.map(Duration::from_secs);
    let owner = arguments.owner.as_deref().unwrap_or_default();
    wirecost_agent::serve(
        io::stdin(),
        io::stdout().lock(),
        &started,
        owner,
        idle,
        arguments.role,
    )
}

fn role(word: &str) -> Result<AgentRole, String> {
    AgentRole::of_word(word).ok_or_else(|| format!("no duty `{word}`"))
}
