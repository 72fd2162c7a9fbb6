//! What `group_vars` and `host_vars` beside an Ansible inventory say of its groups and hosts.

use std::collections::BTreeMap;

use super::ansible::{Variables, VariablesBeside};
use super::yaml;

/// The directories beside an inventory from which Ansible takes variables: of groups, and of hosts.
pub const GROUP_VARIABLES: &str = "group_vars";
pub const HOST_VARIABLES: &str = "host_vars";

/// Endings of files of variables, in the order in which Ansible looks for them; of one name the first counts alone.
pub const ENDINGS: [&str; 4] = ["", ".yml", ".yaml", ".json"];

/// Files of variables beside an inventory, by the names of groups and hosts; only those of the inventory's own are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    groups: BTreeMap<String, Vec<File>>,
    hosts: BTreeMap<String, Vec<File>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    path: String,
    text: String,
}

impl Beside {
    /// Adds a file that Ansible would take for a group of this name. Of several files the last counts.
    pub fn add_group(&mut self, group: &str, path: &str, text: &str) {
        self.groups.entry(group.into()).or_default().push(File::of(path, text));
    }

    /// The same of a host.
    pub fn add_host(&mut self, host: &str, path: &str, text: &str) {
        self.hosts.entry(host.into()).or_default().push(File::of(path, text));
    }

    /// What they say of the groups and hosts that there are.
    pub(super) fn read(
        &self,
        is_group: impl Fn(&str) -> bool,
        is_host: impl Fn(&str) -> bool,
    ) -> Result<VariablesBeside, String> {
        let mut read = VariablesBeside::default();
        for (group, files) in self.groups.iter().filter(|(group, _)| is_group(group)) {
            let mut variables = all_of(files, &mut read.notes)?;
            // Ansible takes it from inventories alone.
            variables.remove("ansible_group_priority");
            read.groups.insert(group.clone(), variables);
        }
        for (host, files) in self.hosts.iter().filter(|(host, _)| is_host(host)) {
            read.hosts.insert(host.clone(), all_of(files, &mut read.notes)?);
        }
        Ok(read)
    }
}

impl File {
    fn of(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }
}

fn all_of(files: &[File], notes: &mut Vec<String>) -> Result<Variables, String> {
    let mut variables = Variables::new();
    for File { path, text } in files {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim_start().starts_with("$ANSIBLE_VAULT") {
            notes.push(format!(
                "{path} is encrypted with Ansible Vault and not read; an address, user or port in it has to stand elsewhere"
            ));
            continue;
        }
        variables.extend(yaml::variables(text).map_err(|why| format!("{path}: {why}"))?);
    }
    Ok(variables)
}

/// Whether Ansible takes a name in a directory of variables for one of them: neither hidden nor an editor's copy, and with an
/// ending of [`ENDINGS`].
pub fn is_of_variables(name: &str) -> bool {
    let has_other_ending = || {
        let ending = name.rfind('.').map_or("", |at| &name[at..]);
        !ENDINGS.contains(&ending)
    };
    !name.starts_with('.') && !name.ends_with('~') && !has_other_ending()
}

#[cfg(test)]
mod tests {
    use super::super::{read, read_with};
    use super::*;

    const INVENTORY: &str = "[outer:children]\ninner\n[inner]\nh1\nh2 ansible_user=own\n[inner:vars]\nansible_user=listed\n";

    fn destinations(beside: &Beside) -> Vec<String> {
        let inventory = read_with("hosts.ini", INVENTORY, beside).unwrap();
        let board = |board: &super::super::Board| {
            format!("{} {}", board.destination, board.settings.join(" ")).trim().to_string()
        };
        inventory.boards.iter().map(board).collect()
    }

    #[test]
    fn files_of_a_group_count_before_the_inventory_and_those_of_a_host_before_all() {
        let mut beside = Beside::default();
        assert_eq!(destinations(&beside), ["listed@h1", "own@h2"]);
        beside.add_group("all", "all.yml", "ansible_port: 2200\nansible_user: everyone\n");
        assert_eq!(destinations(&beside), ["everyone@h1 Port=2200", "own@h2 Port=2200"]);
        beside.add_group("outer", "outer.yml", "ansible_user: outer\nansible_port: 2201\n");
        beside.add_group("inner", "inner/a.yml", "---\nansible_user: first\n");
        beside.add_group("inner", "inner/b.yml", "ansible_user: inner\nlist: [1, 2]\n");
        assert_eq!(destinations(&beside), ["inner@h1 Port=2201", "own@h2 Port=2201"]);
        beside.add_host("h2", "h2", "ansible_user: host\nansible_host: 10.0.0.2\n");
        assert_eq!(destinations(&beside), ["inner@h1 Port=2201", "host@10.0.0.2 Port=2201"]);
    }

    #[test]
    fn what_cannot_be_read_is_named_and_files_of_nothing_there_do_not_matter() {
        let mut beside = Beside::default();
        beside.add_group("README.md", "README.md", "- [x](y)\n\t: {");
        beside.add_host("h9", "h9.yml", "{{");
        beside.add_group("inner", "inner/vault", "$ANSIBLE_VAULT;1.1;AES256\n6162\n");
        let inventory = read_with("hosts.ini", INVENTORY, &beside).unwrap();
        assert_eq!(inventory.boards.len(), 2);
        assert!(
            inventory.notes[0].starts_with("inner/vault is encrypted"),
            "{:?}",
            inventory.notes
        );
        beside.add_host("h1", "host_vars/h1.yml", "- a\n- b\n");
        let error = read_with("hosts.ini", INVENTORY, &beside).unwrap_err();
        assert!(error.contains("host_vars/h1.yml: it is no mapping of variables"), "{error}");
        assert_eq!(read("hosts.ini", INVENTORY).unwrap().notes, [""; 0]);
    }

    #[test]
    fn names_of_files_are_told_as_ansible_tells_them() {
        for name in ["all", "a.yml", "a.yaml", "a.json"] {
            assert!(is_of_variables(name), "{name}");
        }
        for name in [".a.yml", "a.yml~", "a.txt", "a.yml.bak"] {
            assert!(!is_of_variables(name), "{name}");
        }
    }
}
