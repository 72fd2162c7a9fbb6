//! Which module of a crate takes something from which, and that none of it goes round in a circle.
//!
//! The rule holds in each folder: the modules in it, each with everything below it, do not use each other in a circle. A module and what is
//! below it are one subject, so a parent may declare, call and re-export its children, and a child may take its parent's types. The
//! crate's root only declares and re-exports. What is there for tests only may use anything.
//!
//! Imports are read as text: every path that begins with `crate`, `self` or `super`, in a `use` or elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::workspace;

/// The names of a module from the crate's root down; empty for the root.
type Module = Vec<String>;
/// The modules that each one takes something from.
type Uses = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn the_modules_of_a_crate_have_no_circles() {
    let mut seen = 0;
    for source in sources_of_crates() {
        let files = files_below(&source);
        let uses = uses_of(&read(&source, &files));
        seen += uses.values().map(BTreeSet::len).sum::<usize>();
        let circles = circles(&uses);
        assert!(circles.is_empty(), "{}: {circles:#?}", source.display());
    }
    assert!(seen > 1000, "the imports were not read: {seen}");
}

/// The same name in a folder and below it means two files for one subject: a reader does not know which one to open.
/// Folders beside each other may be built alike, as recipes are.
#[test]
fn a_subject_has_one_file() {
    for source in sources_of_crates() {
        let files = files_below(&source);
        for (first, second) in files.iter().flat_map(|f| files.iter().map(move |s| (f, s))) {
            let (Some(folder), Some(name)) = (first.parent(), first.file_name()) else {
                continue;
            };
            let is_role = ["mod.rs", "tests.rs"].iter().any(|role| name == *role);
            let is_below = second.parent().is_some_and(|p| p != folder && p.starts_with(folder));
            let is_test = second.components().any(|part| part.as_os_str() == "tests");
            let is_root = folder == source;
            assert!(
                is_role || is_root || is_test || !is_below || second.file_name() != Some(name),
                "{} and {}",
                first.display(),
                second.display()
            );
        }
    }
}

#[test]
fn a_circle_is_found_and_a_parent_with_its_children_is_none() {
    let files = |texts: &[(&str, &str)]| -> BTreeMap<Module, String> {
        let path = |name: &str| name.split("::").map(str::to_string).collect();
        texts.iter().map(|(name, text)| (path(name), text.to_string())).collect()
    };
    let fine = files(&[
        (
            "a",
            "use crate::b::{self, c::{D, E}};\n// use super::a;\n#[cfg(test)]\nmod tests { use crate::a::X; }",
        ),
        ("b", "mod c;\npub use self::c::D;\npub struct B;"),
        ("b::c", "use super::B;\n#[cfg(test)]\nuse crate::a::X;\nfn f(a: &super::B) {}"),
    ]);
    assert_eq!(circles(&uses_of(&fine)), Vec::<String>::new());
    let round = files(&[
        ("a", "fn f() -> crate::b::B { todo() }"),
        ("b", "mod c;"),
        ("b::c", "use crate::{x::Y, a::A};"),
        ("x", ""),
    ]);
    assert_eq!(circles(&uses_of(&round)), ["a, b"]);
}

/// The folders with the sources of each crate.
fn sources_of_crates() -> Vec<PathBuf> {
    let crates = fs::read_dir(workspace().join("crates")).expect("the crates");
    let crates = crates.map(|entry| entry.expect("a crate").path());
    let all = crates.chain([workspace().join("lab")]);
    all.map(|path| path.join("src")).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files
}

fn read(source: &Path, files: &[PathBuf]) -> BTreeMap<Module, String> {
    let module = |file: &PathBuf| -> Module {
        let inside = file.strip_prefix(source).expect("a file of the crate");
        let names = inside.with_extension("");
        let names = names.iter().map(|name| name.to_string_lossy().into_owned());
        let mut names: Module = names.collect();
        if matches!(names.last().map(String::as_str), Some("mod"))
            || names == ["lib"]
            || names == ["main"]
        {
            names.pop();
        }
        names
    };
    let mut all: BTreeMap<Module, String> = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(file).expect("a source file");
        // A crate with a library and a program has two roots.
        all.entry(module(file)).or_default().push_str(&text);
    }
    all
}

fn uses_of(files: &BTreeMap<Module, String>) -> Uses {
    let mut plain = BTreeMap::new();
    let mut only_tests = BTreeSet::new();
    for (module, text) in files {
        let (text, tests) = without_tests(&without_comments(text));
        only_tests.extend(tests.into_iter().map(|name| joined(module, &name)));
        plain.insert(module.clone(), text);
    }
    let is_test = |module: &Module| {
        (1..=module.len()).any(|end| only_tests.contains(&module[..end]))
            || module.iter().any(|name| name == "tests" || name.ends_with("_tests"))
    };
    let mut uses = Uses::new();
    for (module, text) in plain.iter().filter(|(module, _)| !is_test(module)) {
        for path in paths(text) {
            let used = resolved(module, &path, files);
            if used != *module && !is_test(&used) {
                uses.entry(module.clone()).or_default().insert(used);
            }
        }
    }
    uses
}

fn joined(module: &[String], name: &str) -> Module {
    let mut longer = module.to_vec();
    longer.push(name.to_string());
    longer
}

/// The module that a path leads to; what comes after it is an item of it.
fn resolved(from: &Module, path: &[String], files: &BTreeMap<Module, String>) -> Module {
    let mut names = path.iter().map(String::as_str).peekable();
    let mut at = match names.peek() {
        Some(&"crate") => Module::new(),
        _ => from.clone(),
    };
    for name in names {
        match name {
            "crate" | "self" => {}
            "super" => drop(at.pop()),
            name if files.contains_key(&joined(&at, name)) => at.push(name.to_string()),
            _ => break,
        }
    }
    at
}

fn without_comments(text: &str) -> String {
    let lines = text.lines().map(|line| match line.find("//") {
        Some(at) if !line[..at].contains('"') => &line[..at],
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The text without what is compiled for tests only, and the names of modules in files of their own among that.
fn without_tests(text: &str) -> (String, Vec<String>) {
    let (mut kept, mut tests) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(at) = ["#[cfg(test", "#[cfg(all(test"].iter().filter_map(|a| rest.find(a)).min()
    {
        kept.push_str(&rest[..at]);
        let after = &rest[at..];
        let item = after.find(']').map_or("", |end| &after[end + 1..]);
        let length = item_length(item);
        let words: Vec<&str> = item[..length].split([' ', '\n', ';']).collect();
        if let Some(name) = words.windows(2).find(|pair| pair[0] == "mod") {
            tests.push(name[1].to_string());
        }
        rest = &item[length..];
    }
    kept.push_str(rest);
    (kept, tests)
}

/// To the end of the first item: its closing brace, or a semicolon outside braces.
fn item_length(text: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(letter, '}' | ';') {
            return at + 1;
        }
    }
    text.len()
}

/// All paths that begin within the crate, with groups in braces taken apart.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "self::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$';
            if !text[..at].ends_with(is_word) {
                expand(&text[at..], &[], &mut found);
            }
        }
    }
    found
}

fn expand(text: &str, before: &[String], found: &mut Vec<Vec<String>>) {
    let mut names = before.to_vec();
    let mut rest = text.trim_start();
    loop {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        if name.is_empty() {
            break;
        }
        names.push(name.to_string());
        let Some(after) = after.trim_start().strip_prefix("::") else {
            break;
        };
        rest = after.trim_start();
        if let Some(group) = rest.strip_prefix('{') {
            for part in parts(group) {
                expand(part, &names, found);
            }
            return;
        }
    }
    found.push(names);
}

/// What is between the commas of a group, up to its closing brace.
fn parts(group: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            '}' => {
                parts.push(&group[start..at]);
                break;
            }
            _ => {}
        }
    }
    parts
}

/// In each folder, the modules that use each other in a circle, by name.
fn circles(uses: &Uses) -> Vec<String> {
    let folders: BTreeSet<&[String]> =
        uses.keys().flat_map(|module| (0..module.len()).map(|end| &module[..end])).collect();
    let mut all = Vec::new();
    for folder in folders {
        let depth = folder.len();
        let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, used) in uses.iter().filter(|(from, _)| is_inside(from, folder)) {
            for to in used.iter().filter(|to| is_inside(to, folder) && to[depth] != from[depth]) {
                edges.entry(&from[depth]).or_default().insert(&to[depth]);
            }
        }
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            edges.keys().map(|from| (*from, reachable(from, &edges))).collect();
        let meets = |a: &str, b: &str| reach.get(a).is_some_and(|reached| reached.contains(b));
        let mut told = BTreeSet::new();
        for from in edges.keys().filter(|from| meets(from, from)) {
            let circle = edges.keys().filter(|other| meets(from, other) && meets(other, from));
            let names: Vec<String> = circle.map(|name| joined(folder, name).join("::")).collect();
            told.insert(names.join(", "));
        }
        all.extend(told);
    }
    all
}

fn is_inside(module: &[String], folder: &[String]) -> bool {
    module.len() > folder.len() && module.starts_with(folder)
}

fn reachable<'a>(from: &str, edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut todo: Vec<&str> = edges.get(from).into_iter().flatten().copied().collect();
    while let Some(name) = todo.pop() {
        if reached.insert(name) {
            todo.extend(edges.get(name).into_iter().flatten());
        }
    }
    reached
}
