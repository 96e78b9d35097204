//! What may stand at the cursor of a shell: plans, hosts, run directories.

use std::ffi::OsStr;
use std::path::Path;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use wirecost_model::record::file;

/// What may stand for a plan: a built-in one, or a YAML file.
pub(crate) fn plans(typed: &OsStr) -> Vec<CompletionCandidate> {
    let is_yaml = |path: &Path| {
        path.extension()
            .is_some_and(|end| end == "yaml" || end == "yml")
    };
    let files = PathCompleter::file().filter(is_yaml).complete(typed);
    builtin_plans(typed).into_iter().chain(files).collect()
}

/// The built-in plans that begin as typed.
pub(crate) fn builtin_plans(typed: &OsStr) -> Vec<CompletionCandidate> {
    named(wirecost_plan::BUILTIN, "built-in plan", typed)
}

/// The published studies that begin as typed.
pub(crate) fn studies(typed: &OsStr) -> Vec<CompletionCandidate> {
    named(wirecost_plan::STUDIES, "published study", typed)
}

fn named(
    all: &'static [(&str, &str)],
    what: &'static str,
    typed: &OsStr,
) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let names = all.iter().map(|(name, _)| *name);
    names
        .filter(|name| name.starts_with(&*typed))
        .map(|name| CompletionCandidate::new(name).help(Some(what.into())))
        .collect()
}

/// Hosts: this machine, its named namespaces, and how the others begin.
pub(crate) fn hosts(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let near = [("local".to_owned(), "this machine")].into_iter();
    let named = wirecost_sys::namespace::names().into_iter();
    let named = named.map(|name| (format!("netns:{name}"), "network namespace"));
    let far = [
        ("ssh:", "[USER@]HOST[:PORT]"),
        ("exec:", "COMMAND, such as docker exec -i NAME"),
    ];
    let far = far.map(|(begin, rest)| (begin.to_owned(), rest));
    near.chain(named)
        .chain(far)
        .filter(|(host, _)| host.starts_with(&*typed))
        .map(|(host, what)| CompletionCandidate::new(host).help(Some(what.into())))
        .collect()
}

/// Encapsulations as `wirecost overhead` takes them; of a stack, what may follow its last `+`.
pub(crate) fn stacks(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let carried = typed.rfind('+').map_or("", |last| &typed[..=last]);
    let all = wirecost_wire::overhead::every();
    let whole = all.iter().map(|kind| format!("{carried}{}", kind.name));
    whole
        .filter(|stack| stack.starts_with(&*typed))
        .map(CompletionCandidate::new)
        .collect()
}

/// Encapsulations that a tunnel by hand can have.
pub(crate) fn tunnel_words(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let words = ["none", "vlan", "vxlan", "geneve"];
    let words = words.into_iter().filter(|word| word.starts_with(&*typed));
    words.map(CompletionCandidate::new).collect()
}

/// Tunnels of this machine.
pub(crate) fn tunnels(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let all = wirecost_control::tunnel::all().into_iter();
    all.map(|shown| shown.state.name)
        .filter(|name| name.starts_with(&*typed))
        .map(CompletionCandidate::new)
        .collect()
}

/// Run directories, and directories on the way to them.
pub(crate) fn runs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let is_run = |path: &Path| path.join(file::RUN).is_file();
    PathCompleter::dir().filter(is_run).complete(typed)
}
