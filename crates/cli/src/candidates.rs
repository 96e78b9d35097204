//! Completion candidates for shells: plans, hosts, encapsulations, tunnels, run directories.

use std::ffi::OsStr;
use std::path::Path;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use wirecost_model::record::file;

/// Plans: built-in ones and YAML files.
pub(crate) fn plans(typed: &OsStr) -> Vec<CompletionCandidate> {
    let is_yaml = |path: &Path| {
        path.extension()
            .is_some_and(|end| end == "yaml" || end == "yml")
    };
    let files = PathCompleter::file().filter(is_yaml).complete(typed);
    builtin_plans(typed).into_iter().chain(files).collect()
}

/// Built-in plans that begin with `typed`.
pub(crate) fn builtin_plans(typed: &OsStr) -> Vec<CompletionCandidate> {
    named(wirecost_plan::BUILTIN, "built-in plan", typed)
}

/// Published studies that begin with `typed`.
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

/// Hosts: this machine, its named network namespaces, and the prefixes of other forms.
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

/// Encapsulations as `wirecost overhead` takes them; in a stack, those that may follow the last `+`.
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

/// Encapsulations of `wirecost tunnel`.
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

/// Run directories, and the directories above them.
pub(crate) fn runs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let is_run = |path: &Path| path.join(file::RUN).is_file();
    PathCompleter::dir().filter(is_run).complete(typed)
}
