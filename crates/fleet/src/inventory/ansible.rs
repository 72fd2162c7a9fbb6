//! What Ansible's inventories say, in INI or YAML: hosts, groups in groups, and the variables that
//! say how a host is reached.

use std::collections::{BTreeMap, BTreeSet};

use super::{Board, Inventory, MAX_BOARDS, Reach, template, words};

pub type Variables = BTreeMap<String, String>;

/// What files beside an inventory say of its groups and hosts.
#[derive(Debug, Default)]
pub struct VariablesBeside {
    pub groups: BTreeMap<String, Variables>,
    pub hosts: BTreeMap<String, Variables>,
    /// What of them is not read.
    pub notes: Vec<String>,
}

/// The group of the hosts that are in no other one.
const UNGROUPED: &str = "ungrouped";

/// Arguments of ssh, in the order in which Ansible gives them.
const ARGUMENTS: [&str; 3] =
    ["ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args"];
/// Variables of how a host is reached that Rubus does not go by, and why.
const NOT_FOLLOWED: [(&str, &str); 4] = [
    ("ansible_ssh_executable", "Rubus calls ssh"),
    ("ansible_password", PASSWORD),
    ("ansible_ssh_pass", PASSWORD),
    ("ansible_ssh_password", PASSWORD),
];
const PASSWORD: &str = "a board that needs a password asks for it on the terminal";
/// Groups in groups: no inventory needs more, and Ansible itself ends at about as many.
const MAX_NESTING: usize = 1000;
/// Hosts of a file of which perhaps one group is meant.
const MAX_HOSTS: usize = 10 * MAX_BOARDS;
/// The limit of groups and variables that are gone through for all hosts together.
const MAX_STEPS: usize = 10_000_000;
/// What a group costs that a host keeps, in steps.
const STEPS_OF_GROUP: usize = 10;
/// The priority of a group that sets none.
const DEFAULT_PRIORITY: i64 = 1;

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
    priority: Option<i64>,
}

/// What is known of a group from where it stands: how far from `all`, and which groups contain it.
type Standing = BTreeMap<String, (usize, Vec<String>)>;

impl Listed {
    pub fn group(&mut self, group: &str) {
        self.groups.entry(group.into()).or_default();
    }

    pub fn child(&mut self, group: &str, child: &str) {
        self.group(child);
        let group = self.groups.entry(group.into()).or_default();
        group.children.insert(child.into());
    }

    /// A host of a group, with the port of its pattern, which counts where the host is listed first. Listed again, in the same
    /// group or another one, it is the same host, and what is said of it later counts, as with Ansible.
    pub fn host(&mut self, group: &str, host: &str, port: Option<&str>) {
        if !self.host_variables.contains_key(host) {
            self.hosts.push(host.into());
            let port = port.map(|port| ("ansible_port".to_string(), port.to_string()));
            self.host_variables.insert(host.into(), port.into_iter().collect());
        }
        self.groups.entry(group.into()).or_default().hosts.insert(host.into());
    }

    pub fn set_of_host(&mut self, host: &str, key: &str, value: &str) {
        let variables = self.host_variables.entry(host.into()).or_default();
        variables.insert(key.into(), value.into());
    }

    /// A variable of a group; its priority is none.
    pub fn set_of_group(&mut self, group: &str, key: &str, value: &str) -> Result<(), String> {
        let of_group = self.groups.entry(group.into()).or_default();
        if key == "ansible_group_priority" && !value.is_empty() {
            let priority = value.trim().parse();
            of_group.priority = Some(priority.map_err(|_| {
                format!("ansible_group_priority of {group} is '{value}', which is no whole number")
            })?);
        } else {
            of_group.variables.insert(key.into(), value.into());
        }
        Ok(())
    }

    /// Whether there is a group of this name; `all` and `ungrouped` always are.
    pub fn has_group(&self, name: &str) -> bool {
        !is_of_users(name) || self.groups.contains_key(name)
    }

    pub fn has_host(&self, name: &str) -> bool {
        self.host_variables.contains_key(name)
    }

    /// The hosts that ssh reaches; what files beside the inventory say of a group or host counts before what it says itself.
    pub fn boards(mut self, mut beside: VariablesBeside) -> Result<Inventory, String> {
        if self.hosts.len() > MAX_HOSTS {
            return Err(format!("it lists {} hosts, more than {MAX_HOSTS}", self.hosts.len()));
        }
        let standing = self.standing()?;
        let mut steps = 0;
        self.notes.append(&mut beside.notes);
        let mut direct: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, group) in &self.groups {
            for host in &group.hosts {
                direct.entry(host.clone()).or_default().push(name.clone());
            }
        }
        let mut boards = Vec::new();
        for host in std::mem::take(&mut self.hosts) {
            let of_host = direct.remove(&host).unwrap_or_default();
            let above = self.groups_of(&of_host, &standing, &mut steps)?;
            let mut variables = Variables::new();
            let groups = || ["all"].into_iter().chain(above.iter().map(String::as_str));
            for group in groups() {
                let of_group = self.groups.get(group).map(|group| &group.variables);
                steps += of_group.map_or(0, BTreeMap::len);
                variables.extend(of_group.cloned().unwrap_or_default());
            }
            for group in groups() {
                let of_group = beside.groups.get(group);
                steps += of_group.map_or(0, BTreeMap::len);
                variables.extend(of_group.cloned().unwrap_or_default());
            }
            variables.extend(self.host_variables.remove(&host).unwrap_or_default());
            variables.extend(beside.hosts.remove(&host).unwrap_or_default());
            let Some(reach) = self.reach(&host, &variables)? else {
                continue;
            };
            let named = above.into_iter().filter(|group| group != UNGROUPED).collect();
            boards.push(Board::reached(&host, &reach, named)?);
        }
        self.notes.dedup();
        if boards.is_empty() && !self.notes.is_empty() {
            return Err(format!("it lists no board that ssh reaches: {}", self.notes.join("; ")));
        }
        Ok(Inventory { boards, notes: self.notes })
    }

    /// How far from `all` each group is by its longest way, and which groups it is in.
    fn standing(&self) -> Result<Standing, String> {
        let mut parents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, group) in &self.groups {
            for child in group.children.iter().filter(|child| *child != "all") {
                parents.entry(child).or_default().push(name);
            }
        }
        let mut standing = Standing::new();
        // The groups whose parents are all known come next; those of a circle never do.
        let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
        let mut ready: Vec<&str> = Vec::new();
        for name in self.groups.keys() {
            let count = parents.get(name.as_str()).map_or(0, Vec::len);
            missing.insert(name, count);
            if count == 0 {
                ready.push(name);
            }
        }
        while let Some(name) = ready.pop() {
            let of_group = parents.get(name).map(Vec::as_slice).unwrap_or_default();
            let known = of_group.iter().filter_map(|parent| standing.get(*parent));
            // A group without parents is a child of `all`.
            let depth = known
                .map(|(depth, _)| *depth)
                .max()
                .map_or(usize::from(name != "all"), |max| max + 1);
            if depth > MAX_NESTING {
                return Err(format!("the group {name} is nested more than {MAX_NESTING} deep"));
            }
            let of_group = of_group.iter().map(|parent| (*parent).to_string()).collect();
            standing.insert(name.into(), (depth, of_group));
            for child in self.groups.get(name).into_iter().flat_map(|group| &group.children) {
                if let Some(count) = missing.get_mut(child.as_str()) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        ready.push(child);
                    }
                }
            }
        }
        match self.groups.keys().find(|name| !standing.contains_key(*name)) {
            Some(circle) => {
                Err(format!("the group {circle} contains itself, or is in one that does"))
            }
            None => Ok(standing),
        }
    }

    /// The groups of a host that is listed in some: the outermost first, then by priority, then by name. What a later one says
    /// counts, as with Ansible. One that is in no other group is `ungrouped`.
    fn groups_of(
        &self,
        direct: &[String],
        standing: &Standing,
        steps: &mut usize,
    ) -> Result<Vec<String>, String> {
        let mut above: BTreeSet<&str> = BTreeSet::new();
        let mut todo: Vec<&str> = direct.iter().map(String::as_str).collect();
        while let Some(name) = todo.pop() {
            if is_of_users(name) && above.insert(name) {
                let (_, parents) = &standing[name];
                todo.extend(parents.iter().map(String::as_str));
                *steps += STEPS_OF_GROUP + parents.len();
            }
            if *steps > MAX_STEPS {
                return Err(
                    "its groups, variables and hosts are too many together\nList the hosts of \
                            one group in a file of their own"
                        .into(),
                );
            }
        }
        if above.is_empty() {
            return Ok(vec![UNGROUPED.into()]);
        }
        let order = |name: &&str| {
            let priority = self.groups.get(*name).and_then(|group| group.priority);
            let depth = standing.get(*name).map_or(0, |(depth, _)| *depth);
            (depth, priority.unwrap_or(DEFAULT_PRIORITY), (*name).to_string())
        };
        let mut names: Vec<&str> = above.into_iter().collect();
        names.sort_by_cached_key(order);
        Ok(names.into_iter().map(str::to_string).collect())
    }

    /// How ssh reaches a host; none where something else does.
    fn reach(&mut self, host: &str, variables: &Variables) -> Result<Option<Reach>, String> {
        let get = |names: &[&str]| -> Result<Option<String>, String> {
            // What is set to nothing is not set.
            let set = |name: &&str| variables.get(*name).filter(|value| !value.is_empty());
            let found = names.iter().find_map(|name| Some((*name, set(name)?)));
            match found {
                Some((name, value)) if value.starts_with(template::VAULT) => Err(format!(
                    "{name} of {host} is encrypted with Ansible Vault, which Rubus does not open\nWrite \
                     the value itself, or set it in your ssh configuration"
                )),
                Some((name, value)) if value.contains("{{") => {
                    let filled = template::filled(value, host, variables);
                    filled.map(Some).ok_or_else(|| {
                        format!(
                            "{name} of {host} is a template, which only Ansible can evaluate\nWrite the value itself; \
                             Ansible shows it: ansible {host} -i FILE -m debug -a var={name}"
                        )
                    })
                }
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
        let port = get(&["ansible_ssh_port", "ansible_port"])?;
        let port = port.map(|text| {
            let number = match text.strip_prefix("0x") {
                Some(digits) => u16::from_str_radix(digits, 16).ok(),
                None => text.trim().parse().ok(),
            };
            let port = number.filter(|port| *port > 0);
            port.ok_or_else(|| format!("ansible_port of {host} is '{text}', which is no port"))
        });
        let mut reach = Reach {
            // Where both are set, Ansible takes the name with `ssh`.
            host: get(&["ansible_ssh_host", "ansible_host"])?,
            user: get(&["ansible_ssh_user", "ansible_user"])?,
            port: port.transpose()?,
            identity: get(&["ansible_ssh_private_key_file", "ansible_private_key_file"])?,
            settings: Vec::new(),
        };
        let mut notes = Vec::new();
        for name in ARGUMENTS {
            let given = get(&[name])?.unwrap_or_default();
            let given =
                words::split_arguments(&given).map_err(|why| format!("{name} of {host}: {why}"))?;
            let (settings, others) = options(given);
            // Ansible's own arguments keep its connections open for later tasks.
            let is_followed = |one: &String| name != ARGUMENTS[0] || !is_of_sharing(one);
            reach.settings.extend(settings.into_iter().filter(is_followed));
            if !others.is_empty() {
                notes.push(format!(
                    "{name} has {}, which is not followed; only -o and -J are",
                    others.join(" ")
                ));
            }
        }
        let is_set = |name: &str| variables.get(name).is_some_and(|value| !value.is_empty());
        let left = NOT_FOLLOWED.iter().filter(|one| is_set(one.0));
        notes.extend(left.map(|(name, why)| format!("{name} is not followed: {why}")));
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        Ok(Some(reach))
    }
}

/// Whether a group is one that people make: `all` and `ungrouped` are Ansible's own.
fn is_of_users(group: &str) -> bool {
    group != "all" && group != UNGROUPED
}

/// Whether a setting of ssh is about one connection for several calls.
fn is_of_sharing(setting: &str) -> bool {
    setting.trim_start().get(..7).is_some_and(|start| start.eq_ignore_ascii_case("control"))
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
        let value =
            if value.is_empty() { words.next().unwrap_or_default() } else { value.to_string() };
        settings.push(format!("{name}{value}"));
    }
    (settings, others)
}
