//! What Ansible's inventories say, in INI or YAML: hosts, groups in groups, and the variables that
//! say how a host is reached.

use std::collections::{BTreeMap, BTreeSet};

use super::{Board, Inventory, Reach, check_places, words};

type Variables = BTreeMap<String, String>;

/// An inventory as it was listed.
#[derive(Debug, Default)]
pub struct Listed {
    /// In the order of the file.
    hosts: Vec<String>,
    host_variables: BTreeMap<String, Variables>,
    groups: BTreeMap<String, Group>,
    /// What is not followed.
    pub notes: Vec<String>,
}

#[derive(Debug, Default)]
struct Group {
    hosts: BTreeSet<String>,
    children: BTreeSet<String>,
    variables: Variables,
}

impl Listed {
    pub fn group(&mut self, group: &str) {
        self.groups.entry(group.into()).or_default();
    }

    pub fn child(&mut self, group: &str, child: &str) {
        self.group(child);
        let group = self.groups.entry(group.into()).or_default();
        group.children.insert(child.into());
    }

    /// A host of a group. It may be in several groups, but only once in each.
    pub fn host(&mut self, group: &str, host: &str) -> Result<(), String> {
        if !self.host_variables.contains_key(host) {
            self.hosts.push(host.into());
            self.host_variables.insert(host.into(), Variables::new());
        }
        let members = &mut self.groups.entry(group.into()).or_default().hosts;
        match members.insert(host.into()) {
            true => Ok(()),
            false => Err(format!(
                "{host} is listed twice in the group {group}\nRemove one of the two {host}"
            )),
        }
    }

    pub fn set_of_host(&mut self, host: &str, key: &str, value: &str) {
        let variables = self.host_variables.entry(host.into()).or_default();
        variables.insert(key.into(), value.into());
    }

    pub fn set_of_group(&mut self, group: &str, key: &str, value: &str) {
        let group = self.groups.entry(group.into()).or_default();
        group.variables.insert(key.into(), value.into());
    }

    /// The hosts that ssh reaches.
    pub fn boards(mut self) -> Result<Inventory, String> {
        let parents = self.parents();
        let mut boards = Vec::new();
        for host in std::mem::take(&mut self.hosts) {
            let above = self.groups_of(&host, &parents)?;
            let mut variables = Variables::new();
            for group in ["all"].into_iter().chain(above.iter().map(String::as_str)) {
                let of_group = self.groups.get(group).map(|group| &group.variables);
                variables.extend(of_group.cloned().unwrap_or_default());
            }
            variables.extend(self.host_variables.remove(&host).unwrap_or_default());
            let Some(reach) = self.reach(&host, &variables)? else {
                continue;
            };
            boards.push(Board::reached(&host, &reach, above)?);
        }
        check_places(&boards)?;
        self.notes.dedup();
        Ok(Inventory { boards, notes: self.notes })
    }

    fn parents(&self) -> BTreeMap<String, Vec<String>> {
        let mut parents: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, group) in &self.groups {
            for child in &group.children {
                parents.entry(child.clone()).or_default().push(name.clone());
            }
        }
        parents
    }

    /// The groups of a host, the outermost first, then by name: what a later one says counts, as
    /// with Ansible.
    fn groups_of(
        &self,
        host: &str,
        parents: &BTreeMap<String, Vec<String>>,
    ) -> Result<Vec<String>, String> {
        let mut depths: BTreeMap<String, usize> = BTreeMap::new();
        let direct = self.groups.iter().filter(|(_, group)| group.hosts.contains(host));
        for (name, _) in direct {
            let mut path = Vec::new();
            depth(name, parents, &mut path, &mut depths)?;
        }
        let mut groups: Vec<(usize, String)> =
            depths.into_iter().map(|(name, depth)| (depth, name)).collect();
        groups.sort();
        let names = groups.into_iter().map(|(_, name)| name);
        Ok(names.filter(|name| name != "all" && name != "ungrouped").collect())
    }

    /// How ssh reaches a host; none where something else does.
    fn reach(&mut self, host: &str, variables: &Variables) -> Result<Option<Reach>, String> {
        let get = |names: &[&str]| -> Result<Option<String>, String> {
            let found = names.iter().find_map(|name| Some((*name, variables.get(*name)?)));
            match found {
                Some((name, value)) if value.contains("{{") => Err(format!(
                    "{name} of {host} is a template, which only Ansible can evaluate\nWrite the \
                     value itself"
                )),
                found => Ok(found.map(|(_, value)| value.clone())),
            }
        };
        let connection = get(&["ansible_connection"])?.unwrap_or_default();
        let is_ssh = ["", "smart", "ssh", "paramiko", "paramiko_ssh"]
            .contains(&connection.trim_start_matches("ansible.builtin."));
        if !is_ssh {
            self.notes.push(format!("{host} is left out: its connection is {connection}, not ssh"));
            return Ok(None);
        }
        let port = get(&["ansible_port", "ansible_ssh_port"])?;
        let port = port.map(|text| {
            let port = text.parse::<u16>().ok().filter(|port| *port > 0);
            port.ok_or_else(|| format!("ansible_port of {host} is '{text}', which is no port"))
        });
        let mut reach = Reach {
            host: get(&["ansible_host", "ansible_ssh_host"])?,
            user: get(&["ansible_user", "ansible_ssh_user"])?,
            port: port.transpose()?,
            identity: get(&["ansible_ssh_private_key_file", "ansible_private_key_file"])?,
            settings: Vec::new(),
        };
        for name in ["ansible_ssh_common_args", "ansible_ssh_extra_args"] {
            let given = get(&[name])?.unwrap_or_default();
            let given = words::split(&given).map_err(|why| format!("{name} of {host}: {why}"))?;
            let (settings, others) = options(given);
            reach.settings.extend(settings);
            if !others.is_empty() {
                self.notes.push(format!(
                    "{name} has {}, which is not followed; only -o and -J are",
                    others.join(" ")
                ));
            }
        }
        Ok(Some(reach))
    }
}

/// The longest way from a group without parents, for it and all groups above it.
fn depth(
    group: &str,
    parents: &BTreeMap<String, Vec<String>>,
    path: &mut Vec<String>,
    known: &mut BTreeMap<String, usize>,
) -> Result<usize, String> {
    if let Some(depth) = known.get(group) {
        return Ok(*depth);
    }
    if path.iter().any(|above| above == group) {
        return Err(format!("the group {group} contains itself"));
    }
    path.push(group.into());
    let mut deepest = 0;
    for parent in parents.get(group).into_iter().flatten() {
        deepest = deepest.max(1 + depth(parent, parents, path, known)?);
    }
    path.pop();
    known.insert(group.into(), deepest);
    Ok(deepest)
}

/// `-o` and `-J` of ssh's arguments as settings, and the others.
fn options(words: Vec<String>) -> (Vec<String>, Vec<String>) {
    let (mut settings, mut others) = (Vec::new(), Vec::new());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some((option, value)) = word.split_at_checked(2) else {
            others.push(word);
            continue;
        };
        let name = match option {
            "-o" => "",
            "-J" => "ProxyJump=",
            _ => {
                others.push(word);
                continue;
            }
        };
        let value = match value.is_empty() {
            true => words.next().unwrap_or_default(),
            false => value.to_string(),
        };
        settings.push(format!("{name}{value}"));
    }
    (settings, others)
}
