//! Ansible's inventory in YAML form (JSON is YAML too).

mod list;
mod whole;

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::ansible::Listed;
use super::expand;
use super::range::with_port;

/// Nodes of a file, those that aliases repeat included.
const MAX_NODES: usize = 1_000_000;
/// What Ansible's JSON has for `!vault` and `!unsafe`.
const MARKS: [&str; 2] = ["__ansible_vault", "__ansible_unsafe"];
/// Variables of which a host's address and the options of ssh are made.
const REACH: [&str; 9] = [
    "ansible_connection",
    "ansible_host",
    "ansible_ssh_host",
    "ansible_user",
    "ansible_ssh_user",
    "ansible_port",
    "ansible_ssh_port",
    "ansible_ssh_common_args",
    "ansible_ssh_extra_args",
];
/// Groups in groups.
const MAX_DEPTH: usize = 64;

/// A value. What a tag such as `!vault` marks cannot be read.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Null,
    Text(String),
    /// A word that YAML 1.1 takes for a truth value: "yes".
    Truth(bool, String),
    /// A word that YAML 1.1 takes for a whole number, in decimal, and as it is written: "18", "0022".
    Whole(String, String),
    Map(Vec<(String, Node)>),
    List(Vec<Node>),
    Other,
}

pub fn read(text: &str) -> Result<Listed, String> {
    let root = load(text)?;
    let mut listed = Listed::default();
    if is_playbook(&root) {
        return Err(
            "it is a playbook, and no inventory\nName the inventory that it is run with".into()
        );
    }
    let groups = match root {
        Node::Map(groups) => groups,
        Node::Null => return Ok(listed),
        _ => {
            return Err(
                "it is no mapping of groups; see Ansible's documentation, \"How to build your \
             inventory\""
                    .into(),
            );
        }
    };
    if groups.iter().any(|(key, _)| key == "plugin") {
        return Err(
            "it is the configuration of an inventory plugin, which only Ansible can ask\nWrite \
             its hosts to a file first: ansible-inventory -i FILE --list --yaml --output hosts.yml"
                .into(),
        );
    }
    let get = |name: &str| groups.iter().find(|(key, _)| key == name).map(|(_, node)| node);
    if let Some(Node::Map(meta)) = get("_meta") {
        list::add(&mut listed, meta, &groups)?;
        return Ok(listed);
    }
    for (name, group) in &groups {
        add(&mut listed, name, group)?;
    }
    Ok(listed)
}

/// Whether it is a list of plays: mappings that have hosts and something to do with them.
fn is_playbook(root: &Node) -> bool {
    let is_play = |item: &Node| match item {
        Node::Map(entries) => {
            let has = |name: &str| entries.iter().any(|(key, _)| key == name);
            has("import_playbook") || (has("hosts") && (has("tasks") || has("roles")))
        }
        _ => false,
    };
    matches!(root, Node::List(items) if items.iter().any(is_play))
}

/// A file of variables: those that are no lists and mappings.
pub fn variables(text: &str) -> Result<BTreeMap<String, String>, String> {
    let entries = match load(text)? {
        Node::Null => Vec::new(),
        Node::Map(entries) => entries,
        _ => return Err("it is no mapping of variables".into()),
    };
    let texts =
        entries.iter().filter_map(|(key, value)| Some((key.clone(), value.variable()?.into())));
    Ok(texts.collect())
}

fn add(listed: &mut Listed, name: &str, group: &Node) -> Result<(), String> {
    listed.group(name);
    let parts = match group {
        Node::Null => return Ok(()),
        Node::Map(parts) => parts,
        _ => {
            return Err(format!("the group {name} is no mapping of hosts, vars and children"));
        }
    };
    for (part, value) in parts {
        match (part.as_str(), value) {
            (_, Node::Null) => {}
            ("hosts", Node::Map(hosts)) => add_hosts(listed, name, hosts)?,
            ("hosts", Node::Text(pattern)) => {
                add_hosts(listed, name, &[(pattern.clone(), Node::Null)])?;
            }
            ("vars", Node::Map(variables)) => {
                for (key, value) in variables {
                    if let Some(value) = variable(key, value, name)? {
                        listed.set_of_group(name, key, value)?;
                    }
                }
            }
            ("children", Node::Map(children)) => {
                for (child, group) in children {
                    listed.child(name, child);
                    add(listed, child, group)?;
                }
            }
            ("children", Node::Text(child)) => listed.child(name, child),
            ("hosts" | "vars" | "children", _) => {
                return Err(format!(
                    "{part} of the group {name} is no mapping\nWrite each of them on a line of its own, with a colon \
                     behind its name"
                ));
            }
            (other, _) => listed.notes.push(format!(
                "{other} of the group {name} is neither hosts, vars nor children, and is passed \
                 over"
            )),
        }
    }
    Ok(())
}

fn add_hosts(listed: &mut Listed, group: &str, hosts: &[(String, Node)]) -> Result<(), String> {
    for (pattern, variables) in hosts {
        let (pattern, port) = with_port(pattern);
        for host in expand(pattern)? {
            listed.host(group, &host, port);
            set_of_host(listed, &host, variables)?;
        }
    }
    Ok(())
}

/// Takes the variables of a host. Anything but a mapping or nothing is a slip, such as `pi: 10.0.0.7`, without which another
/// machine would be reached; Ansible refuses it, too.
fn set_of_host(listed: &mut Listed, host: &str, variables: &Node) -> Result<(), String> {
    let variables = match variables {
        Node::Map(variables) => variables,
        Node::Null | Node::Truth(false, _) => return Ok(()),
        Node::Text(text) if text.is_empty() => return Ok(()),
        Node::List(items) if items.is_empty() => return Ok(()),
        Node::Text(_) | Node::Truth(true, _) | Node::Whole(..) | Node::List(_) | Node::Other => {
            return Err(format!(
                "what stands behind the host {host} is no mapping of variables\nWrite each of them on a line of its own \
                 below the host, such as ansible_host: 10.0.0.7"
            ));
        }
    };
    for (key, value) in variables {
        if let Some(value) = variable(key, value, host)? {
            listed.set_of_host(host, key, value);
        }
    }
    Ok(())
}

/// The text of a variable, if it is one; what an address or option of ssh is made of has to be.
fn variable<'a>(key: &str, value: &'a Node, of: &str) -> Result<Option<&'a str>, String> {
    let text = value.variable();
    if text.is_none() && REACH.contains(&key) {
        return Err(format!("{key} of {of} is no text\nWrite one value, behind the colon"));
    }
    Ok(text)
}

/// What is being read.
enum Open {
    Map {
        anchor: usize,
        entries: Vec<(String, Node)>,
        /// What `<<` brings; it counts where the mapping itself says nothing.
        merged: Vec<(String, Node)>,
        key: Option<String>,
    },
    List {
        anchor: usize,
        items: Vec<Node>,
    },
}

/// Reads the only document.
fn load(text: &str) -> Result<Node, String> {
    let mut loader = Loader::default();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|why| format!("line {}: {}", why.marker().line(), why.info()))?;
        let of_line = |why: &str| format!("line {}: {why}", span.start.line());
        if root.is_none() {
            root = loader.take(event).map_err(|why| of_line(&why))?;
        } else if matches!(event, Event::DocumentStart(..)) {
            let why = "a second document begins, and Ansible takes one\nMake it a file of its own";
            return Err(of_line(why));
        }
    }
    Ok(root.unwrap_or(Node::Null))
}

#[derive(Default)]
struct Loader {
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
}

impl Loader {
    /// Takes an event; gives the whole document once it is complete.
    fn take(&mut self, event: Event<'_>) -> Result<Option<Node>, String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_null = style == ScalarStyle::Plain && ["", "~", "null"].contains(&&*text);
                let is_typed = |tag: &Tag| ["int", "bool"].contains(&tag.suffix.as_str());
                let is_plain = style == ScalarStyle::Plain && tag.as_deref().is_none_or(is_typed);
                let node = if !is_readable(tag.as_deref()) {
                    Node::Other
                } else if is_null {
                    Node::Null
                } else if let Some(truth) = truth(&text).filter(|_| is_plain) {
                    Node::Truth(truth, text.into_owned())
                } else if let Some(number) = whole::decimal(&text).filter(|_| is_plain) {
                    Node::Whole(number, text.into_owned())
                } else {
                    Node::Text(text.into_owned())
                };
                self.put(anchor, node)
            }
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned();
                self.put(0, node.ok_or("an alias without its anchor")?)
            }
            Event::MappingStart(anchor, _) => {
                self.begin(Open::Map { anchor, entries: Vec::new(), merged: Vec::new(), key: None })
            }
            Event::SequenceStart(anchor, _) => self.begin(Open::List { anchor, items: Vec::new() }),
            Event::MappingEnd | Event::SequenceEnd => match self.open.pop() {
                Some(Open::Map { anchor, mut entries, merged, .. }) => {
                    merge(&mut entries, merged);
                    self.put(anchor, Node::Map(entries))
                }
                Some(Open::List { anchor, items }) => self.put(anchor, Node::List(items)),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    fn begin(&mut self, open: Open) -> Result<Option<Node>, String> {
        if self.open.len() >= MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} levels"));
        }
        self.open.push(open);
        Ok(None)
    }

    /// Puts a whole node where it belongs.
    fn put(&mut self, anchor: usize, node: Node) -> Result<Option<Node>, String> {
        self.nodes += size(&node);
        if self.nodes > MAX_NODES {
            return Err(format!("more than {MAX_NODES} values"));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => return Ok(Some(node)),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, merged, key, .. }) => match key.take() {
                None => {
                    let next = key_of(node)?;
                    if next != "<<" && entries.iter().any(|(known, _)| *known == next) {
                        return Err(format!(
                            "{next} is listed twice\nRemove one of the two {next}"
                        ));
                    }
                    *key = Some(next);
                }
                // Of several mappings the first counts (yaml.org/type/merge.html).
                Some(key) if key == "<<" => match node {
                    Node::Map(more) => merge(merged, more),
                    Node::List(items) => {
                        for item in items {
                            if let Node::Map(more) = item {
                                merge(merged, more);
                            }
                        }
                    }
                    Node::Null
                    | Node::Text(_)
                    | Node::Truth(..)
                    | Node::Whole(..)
                    | Node::Other => {}
                },
                Some(key) => entries.push((key, node)),
            },
        }
        Ok(None)
    }
}

/// What YAML 1.1 takes a plain word for (yaml.org/type/bool.html, without the letters y and n, as PyYAML has it).
fn truth(word: &str) -> Option<bool> {
    let is_cased = |known: &str| {
        let is_first_upper = word.as_bytes()[0].is_ascii_uppercase();
        let rest = &word[1..];
        word.eq_ignore_ascii_case(known)
            && (rest.bytes().all(|byte| byte.is_ascii_lowercase())
                || (is_first_upper && rest.bytes().all(|byte| byte.is_ascii_uppercase())))
    };
    if !matches!(word.len(), 2..=5) || !word.is_ascii() {
        return None;
    }
    let is_any = |known: &[&str]| known.iter().any(|known| is_cased(known));
    if is_any(&["yes", "true", "on"]) {
        Some(true)
    } else {
        is_any(&["no", "false", "off"]).then_some(false)
    }
}

impl Node {
    /// A variable's value: null sets it to nothing, also where a group sets it to something.
    fn variable(&self) -> Option<&str> {
        match self {
            Node::Null => Some(""),
            Node::Text(_)
            | Node::Truth(..)
            | Node::Whole(..)
            | Node::Map(_)
            | Node::List(_)
            | Node::Other => self.text(),
        }
    }

    /// A value as Ansible fills it in: a truth value and a number as Python writes them.
    fn text(&self) -> Option<&str> {
        match self {
            Node::Text(text) | Node::Whole(text, _) => Some(text),
            Node::Truth(true, _) => Some("True"),
            Node::Truth(false, _) => Some("False"),
            Node::Map(entries) => match &entries[..] {
                // As Ansible writes tags in JSON.
                [(mark, Node::Text(text))] if MARKS.contains(&mark.as_str()) => Some(text),
                _ => None,
            },
            Node::Null | Node::List(_) | Node::Other => None,
        }
    }
}

/// Values that belong to a node, itself included.
fn size(node: &Node) -> usize {
    match node {
        Node::Map(entries) => 1 + entries.iter().map(|(_, node)| size(node)).sum::<usize>(),
        Node::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Node::Null | Node::Text(_) | Node::Truth(..) | Node::Whole(..) | Node::Other => 1,
    }
}

fn key_of(node: Node) -> Result<String, String> {
    match node {
        Node::Text(key) | Node::Truth(_, key) | Node::Whole(_, key) => Ok(key),
        _ => Err("a key that is no text".into()),
    }
}

fn merge(entries: &mut Vec<(String, Node)>, more: Vec<(String, Node)>) {
    for (key, value) in more {
        if !entries.iter().any(|(known, _)| *known == key) {
            entries.push((key, value));
        }
    }
}

/// Whether a value is a text here. What `!vault` marks begins with what no other value does.
fn is_readable(tag: Option<&Tag>) -> bool {
    tag.is_none_or(|tag| {
        tag.is_yaml_core_schema() || ["unsafe", "vault"].contains(&tag.suffix.as_str())
    })
}
