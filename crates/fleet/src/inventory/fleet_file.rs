//! A fleet file of our own, in TOML.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{Board, Inventory, Reach, expand};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    user: Option<String>,
    port: Option<u16>,
    identity: Option<String>,
    #[serde(default)]
    boards: Vec<String>,
    #[serde(default)]
    board: Vec<One>,
    #[serde(default)]
    groups: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    name: String,
    host: Option<String>,
    user: Option<String>,
    port: Option<u16>,
    identity: Option<String>,
}

pub fn read(text: &str) -> Result<Inventory, String> {
    let file: File = toml::from_str(text).map_err(|error| {
        if is_of_ansible(text) { OF_ANSIBLE.to_string() } else { error.to_string() }
    })?;
    let groups = members(&file.groups)?;
    let groups_of = |name: &str| groups.get(name).cloned().unwrap_or_default();
    let mut boards = Vec::new();
    for pattern in &file.boards {
        for name in expand(pattern)? {
            boards.push(short(&file, &name, groups_of(&name))?);
        }
    }
    for one in &file.board {
        let reach = Reach {
            host: one.host.clone(),
            user: one.user.clone().or(file.user.clone()),
            port: one.port.or(file.port),
            identity: one.identity.clone().or(file.identity.clone()),
            settings: Vec::new(),
        };
        boards.push(Board::reached(&one.name, &reach, groups_of(&one.name))?);
    }
    let names: BTreeSet<&String> = boards.iter().map(|board| &board.name).collect();
    let missing = groups.keys().find(|name| !names.contains(name));
    if let Some(name) = missing {
        return Err(format!("{name} is in a group, but it is no board of this file"));
    }
    super::check(&boards)?;
    Ok(Inventory { boards, notes: Vec::new() })
}

/// What is said of an inventory of Ansible's in TOML.
const OF_ANSIBLE: &str = "it is an Ansible inventory in TOML, of which YAML and INI are read\nConvert it first: \
                          ansible-inventory -i FILE --list --yaml --output hosts.yml";

/// Whether it has a table for each group, as Ansible's plugin for TOML reads it.
fn is_of_ansible(text: &str) -> bool {
    let tables = toml::from_str::<toml::Table>(text).unwrap_or_default();
    let others = tables.iter().filter(|(name, _)| name.as_str() != "groups");
    let has_part = |group: &toml::Table| {
        ["hosts", "children", "vars"].iter().any(|part| group.contains_key(*part))
    };
    others.filter_map(|(_, group)| group.as_table()).any(has_part)
}

/// `pi07`, `root@nas` or an address that begins with `ssh://` and says all itself.
fn short(file: &File, name: &str, groups: Vec<String>) -> Result<Board, String> {
    if name.starts_with("ssh://") {
        let board = Board::typed(name)?;
        return Ok(Board { groups, is_listed: true, ..board });
    }
    let (user, host) = match name.rsplit_once('@') {
        Some((user, host)) => (Some(user.to_string()), host),
        None => (file.user.clone(), name),
    };
    let reach = Reach {
        host: Some(host.into()),
        user,
        port: file.port,
        identity: file.identity.clone(),
        settings: Vec::new(),
    };
    Board::reached(name, &reach, groups)
}

/// Each member with its groups.
fn members(
    groups: &BTreeMap<String, Vec<String>>,
) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut of_member: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (group, patterns) in groups {
        for pattern in patterns {
            for name in expand(pattern)? {
                let list = of_member.entry(name.clone()).or_default();
                if list.contains(group) {
                    return Err(format!("{name} is listed twice in the group {group}"));
                }
                list.push(group.clone());
            }
        }
    }
    Ok(of_member)
}
