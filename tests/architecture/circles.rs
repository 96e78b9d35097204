//! Which files of a crate import each other in a circle.
//!
//! A file depends on another where one of its paths leads to something that is defined there: in a `use` list, however
//! nested, or in the code. Re-exports are followed to the file that they come from. What is compiled for tests only
//! does not count, and neither does what a module and the modules inside it have of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::paths::{File, Module, parse};

/// The circles among the files of one crate, by path relative to `source` (its `src`).
pub(crate) fn circles(source: &Path, files: &[(PathBuf, String)]) -> Vec<BTreeSet<String>> {
    let mut found = Vec::new();
    for (root, members) in by_root(source, files) {
        let mut modules = BTreeMap::new();
        let crate_file = ["lib.rs", "main.rs"].map(|name| root.join(name));
        let crate_file = crate_file
            .iter()
            .find(|file| members.iter().any(|(path, _)| path == file));
        for (path, text) in &members {
            let module = if Some(*path) == crate_file.map(PathBuf::as_path) {
                Module::new()
            } else {
                module_of(path.strip_prefix(&root).unwrap_or(path))
            };
            modules.insert(module, (*path, *text));
        }
        let mut parsed: BTreeMap<Module, File> = modules
            .iter()
            .map(|(module, (_, text))| (module.clone(), parse(text)))
            .collect();
        let tests: Vec<Module> = parsed
            .iter()
            .flat_map(|(module, file)| file.tests.iter().map(|name| child(module, name)))
            .collect();
        parsed.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        let name = |module: &&Module| {
            let path = modules[*module]
                .0
                .strip_prefix(source)
                .unwrap_or(modules[*module].0);
            path.to_string_lossy().into_owned()
        };
        let circles = components(&edges(&parsed));
        found.extend(
            circles
                .into_iter()
                .map(|circle| circle.iter().map(name).collect()),
        );
    }
    found
}

/// Programs in `src/bin/NAME/` have module trees of their own.
fn by_root<'a>(
    source: &Path,
    files: &'a [(PathBuf, String)],
) -> BTreeMap<PathBuf, Vec<(&'a Path, &'a str)>> {
    let mut roots: BTreeMap<PathBuf, Vec<_>> = BTreeMap::new();
    for (path, text) in files {
        let program = path.ancestors().find(|directory| {
            directory.parent() == Some(&source.join("bin")) && *directory != path
        });
        let root = program.unwrap_or(source).to_owned();
        roots
            .entry(root)
            .or_default()
            .push((path.as_path(), text.as_str()));
    }
    roots
}

fn module_of(path: &Path) -> Module {
    let mut module: Module = path
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if module.last().is_some_and(|last| last == "mod") {
        module.pop();
    }
    module
}

fn child(module: &[String], name: &str) -> Module {
    let mut child = module.to_vec();
    child.push(name.to_owned());
    child
}

fn edges(files: &BTreeMap<Module, File>) -> BTreeMap<&Module, BTreeSet<&Module>> {
    let related = |one: &Module, other: &Module| one.starts_with(other) || other.starts_with(one);
    files
        .iter()
        .map(|(module, file)| {
            let uses = file
                .paths
                .iter()
                .filter_map(|path| resolve(files, module, path, 8));
            (module, uses.filter(|used| !related(used, module)).collect())
        })
        .collect()
}

/// The file that has what a path names, seen from a module.
fn resolve<'a>(
    files: &'a BTreeMap<Module, File>,
    from: &Module,
    path: &[String],
    depth: u32,
) -> Option<&'a Module> {
    let mut path = path.to_vec();
    let mut at = from.clone();
    match path.first()?.as_str() {
        "crate" => at.clear(),
        "self" => {}
        "super" => _ = at.pop(),
        name if files.contains_key(&child(&at, name))
            || files.get(&at)?.names.contains_key(name) =>
        {
            path.insert(0, "self".to_owned());
        }
        _ => return None, // of another crate, or of the language
    }
    for (place, name) in path.iter().enumerate().skip(1) {
        let inner = child(&at, name);
        if name == "super" {
            at.pop();
        } else if files.contains_key(&inner) {
            at = inner;
        } else {
            let known = files.get_key_value(&at)?;
            let Some(target) = known.1.names.get(name).filter(|_| depth > 0) else {
                return Some(known.0);
            };
            // Imported from elsewhere, where the rest of the path goes on; else it is defined here.
            let mut whole = target.clone();
            whole.extend_from_slice(&path[place + 1..]);
            let is_same = whole.first() == Some(name) && whole.len() == path.len() - place;
            return if is_same {
                None
            } else {
                resolve(files, &at, &whole, depth - 1)
            };
        }
    }
    files.get_key_value(&at).map(|(module, _)| module)
}

/// Sets of more than one module that reach each other.
fn components<'a>(edges: &BTreeMap<&'a Module, BTreeSet<&'a Module>>) -> Vec<BTreeSet<&'a Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = edges
        .keys()
        .map(|from| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![*from]);
            while let Some(next) = open.pop() {
                open.extend(
                    edges
                        .get(next)
                        .into_iter()
                        .flatten()
                        .filter(|used| seen.insert(**used)),
                );
            }
            (*from, seen)
        })
        .collect();
    let circle = |from: &&'a Module| -> BTreeSet<&'a Module> {
        let back = reached[*from]
            .iter()
            .filter(|other| reached[**other].contains(*from));
        back.copied().collect()
    };
    let circles: BTreeSet<_> = edges
        .keys()
        .map(circle)
        .filter(|circle| circle.len() > 1)
        .collect();
    circles.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| (Path::new("src").join(path), (*text).to_owned()))
            .collect();
        let circles = circles(Path::new("src"), &files);
        circles
            .into_iter()
            .map(|circle| circle.into_iter().collect())
            .collect()
    }

    #[test]
    fn a_circle_is_seen_through_nested_lists_paths_in_code_and_re_exports() {
        let nested = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::{x, b::{self as c, y}};"),
            ("b.rs", "use super::a::Z;"),
        ];
        assert_eq!(of(&nested), [["a.rs", "b.rs"]]);
        let code = [
            ("a.rs", "fn f() { crate::b::g::<u8>(1) }"),
            ("b.rs", "fn g<T>(_: T) { super::a::f() }"),
        ];
        assert_eq!(of(&code), [["a.rs", "b.rs"]]);
        let imported = [
            ("a.rs", "use crate::b; fn f() -> b::T { b::c::g() }"),
            ("b.rs", "mod c;"),
            ("b/c.rs", "use crate::a::f;"),
        ];
        assert_eq!(of(&imported), [["a.rs", "b/c.rs"]]);
        let exported = [
            ("lib.rs", "pub use a::A;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "mod c; pub use self::c::B;"),
            ("b/c.rs", "use crate::A;"),
        ];
        assert_eq!(of(&exported), [["a.rs", "b/c.rs"]]);
    }

    #[test]
    fn parents_and_children_tests_comments_and_strings_make_no_circle() {
        let family = [
            ("a.rs", "mod b; use b::B;"),
            ("a/b.rs", "use super::A;"),
            ("lib.rs", "mod a; use a::A;"),
        ];
        assert!(of(&family).is_empty());
        let text = "//! crate::b\n/* crate::b::x */ const A: &str = \"crate::b::\\\" crate::b::x\"; const B: &str = r#\"\" crate::b::x\"#;\n\
                    const C: char = '\"'; fn f<'a>() {} #[cfg(test)] mod tests { use crate::b::x; }";
        assert!(of(&[("a.rs", text), ("b.rs", "use crate::a::f;")]).is_empty());
        let tests = [
            ("a.rs", "#[cfg(test)]\nmod tests;"),
            ("a/tests.rs", "use crate::b::x;"),
            ("b.rs", "use crate::a::tests::y;"),
        ];
        assert!(of(&tests).is_empty());
    }

    #[test]
    fn programs_have_trees_of_their_own() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a.rs", "use crate::b::x;"),
            ("bin/p/main.rs", "mod a; mod b;"),
            ("bin/p/a.rs", "use crate::b::x;"),
            ("bin/p/b.rs", "use crate::a::y;"),
        ];
        assert_eq!(of(&files), [["bin/p/a.rs", "bin/p/b.rs"]]);
    }
}
