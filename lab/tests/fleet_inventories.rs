//! Inventories as people write them, and hundreds of hosts in nested groups: Rubus reads from them what `ansible-inventory` does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::can_run;
use crate::common::program::Home;
use rubus_lab::devices::needs::Need;

/// What Rubus refuses on purpose and Ansible reads.
const REFUSED: [(&str, &str); 7] = [
    ("dup-keys.yml", "is listed twice"),
    ("emptyall.yml", "lists no boards"),
    ("templ.ini", "is a template"),
    ("tmpl-key.ini", "is a template"),
    ("jinja-key.yml", "is a template"),
    ("pat-comma.ini", "which no machine's name has"),
    ("alllocal.ini", "no board that ssh reaches"),
];
/// What Ansible fills in only when it connects, so that its list has the template; and the address that comes of it.
const FILLED_IN: [(&str, &str); 1] = [("inv-hostname.yml", "\"address\": \"h1.lan\"")];
/// How a host is reached: user, address, port, and its groups.
type Reached = (Option<String>, String, Option<String>, BTreeSet<String>);
type Hosts = BTreeMap<String, Reached>;

#[test]
fn inventories_are_read_as_ansible_reads_them() {
    if !can_run("inventories", &[Need::Program("ansible-inventory", "ansible-core")]) {
        return;
    }
    let home = Home::new();
    let config = home.path().join("ssh.conf");
    std::fs::write(&config, "Host *\n  ProxyCommand false\n").expect("a file");
    let mut files = shapes();
    // Not the directory where it works: Ansible takes variables from there, too, for every inventory.
    let generated_at = home.path().join("generated");
    std::fs::create_dir(&generated_at).expect("a directory");
    files.extend((1..=6).map(|seed| {
        let path = generated_at.join(format!("generated-{seed}.ini"));
        std::fs::write(&path, generated(seed)).expect("a file");
        path
    }));
    variables_beside(&generated_at);
    assert!(files.len() > 60, "the shapes were not found");
    let (mut compared, mut wrong) = (0, Vec::new());
    for file in &files {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let Some(expected) = by_ansible(&home, file) else {
            continue;
        };
        let answer = home.run(&[
            "survey",
            &format!("--on=@{}", file.display()),
            "--json",
            "--at-once=64",
            &format!("--ssh-config={}", config.display()),
        ]);
        if let Some((_, words)) = REFUSED.iter().find(|(known, _)| *known == name) {
            if !answer.stderr.contains(words) {
                wrong.push(format!("{name}: not refused with '{words}': {answer}"));
            }
            continue;
        }
        if let Some((_, address)) = FILLED_IN.iter().find(|(known, _)| *known == name) {
            if !answer.stdout.contains(address) {
                wrong.push(format!("{name}: not filled in as {address}: {answer}"));
            }
            continue;
        }
        if !answer.stdout.trim_start().starts_with('{') {
            wrong.push(format!("{name}: refused: {}", answer.stderr));
            continue;
        }
        compared += 1;
        let found = by_rubus(&answer.json());
        for host in expected.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
            let (expected, found) = (expected.get(host), found.get(host));
            if expected != found {
                wrong.push(format!("{name}: {host}: Ansible {expected:?}, Rubus {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 40, "only {compared} inventories were compared");
}

/// Files of variables beside the generated inventories: of groups and hosts, in all forms, and others that do not count.
fn variables_beside(directory: &Path) {
    let files = [
        ("group_vars/all.json", "{\"ansible_port\": 2299}"),
        ("group_vars/g1.yml", "---\nansible_user: beside1\nansible_group_priority: 50\n"),
        ("group_vars/g3/a.yml", "ansible_user: first\nansible_port: 2203\n"),
        ("group_vars/g3/b.yaml", "ansible_user: beside3\nlist: [1, {a: b}]\n"),
        ("group_vars/g3/c.yml~", "ansible_user: copy\n"),
        ("group_vars/g3/deeper/d", "ansible_port: 2204\n"),
        ("group_vars/g5", "ansible_user: beside5\n"),
        ("group_vars/g5.yml", "ansible_user: hidden\n"),
        ("group_vars/g7.txt", "ansible_user: text\n"),
        ("group_vars/ungrouped.yaml", "ansible_port: 2211\n"),
        ("group_vars/README.md", "- no: [variables\n"),
        ("host_vars/h2.yml", "ansible_user: beside-host\nansible_host: 10.7.7.2\n"),
        ("host_vars/h4", "ansible_ssh_port: 2244\n"),
        ("host_vars/loner.json", "{\"ansible_user\": \"alone\"}"),
    ];
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(path, text).expect("a file");
    }
}

fn shapes() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("inventories");
    let files = std::fs::read_dir(directory).expect("the inventories");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    files
}

/// The hosts that Ansible reaches with ssh; none where it refuses the file.
fn by_ansible(home: &Home, file: &Path) -> Option<Hosts> {
    let mut command = Command::new("ansible-inventory");
    home.adopt(&mut command);
    command.env("ANSIBLE_INVENTORY_ENABLED", "ini,yaml").env("LC_ALL", "C.UTF-8");
    let output = command.arg("-i").arg(file).arg("--list").output().expect("ansible starts");
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || said.contains("parse") {
        return None;
    }
    let list: Value = serde_json::from_slice(&output.stdout).expect("Ansible's list");
    let groups = list.as_object().expect("groups");
    let mut of_host: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in groups.keys().filter(|name| *name != "_meta") {
        for host in hosts_below(&list, name) {
            let own = of_host.entry(host).or_default();
            if name != "all" && name != "ungrouped" {
                own.insert(name.clone());
            }
        }
    }
    let reached = |host: String, own: BTreeSet<String>| {
        let variables = &list["_meta"]["hostvars"][&host];
        let get = |names: [&str; 2]| {
            let mut all = names.iter().map(|name| &variables[*name]);
            all.find_map(|value| match value {
                Value::String(text) if !text.is_empty() => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                // As Python writes it.
                Value::Bool(truth) => Some(if *truth { "True" } else { "False" }.to_string()),
                _ => None,
            })
        };
        let connection = get(["ansible_connection"; 2]).unwrap_or("ssh".into());
        let address = get(["ansible_ssh_host", "ansible_host"]).unwrap_or(host.clone());
        let user = get(["ansible_ssh_user", "ansible_user"]);
        let port = get(["ansible_ssh_port", "ansible_port"]);
        ["ssh", "smart"]
            .contains(&connection.as_str())
            .then_some((host, (user, address, port, own)))
    };
    Some(of_host.into_iter().filter_map(|(host, own)| reached(host, own)).collect())
}

fn hosts_below(list: &Value, group: &str) -> BTreeSet<String> {
    let texts = |field: &str| {
        let all = list[group][field].as_array().cloned().unwrap_or_default();
        all.into_iter().filter_map(|text| Some(text.as_str()?.to_string())).collect::<Vec<_>>()
    };
    let below = texts("children").into_iter().flat_map(|child| hosts_below(list, &child));
    texts("hosts").into_iter().chain(below).collect()
}

fn by_rubus(document: &Value) -> Hosts {
    let boards = document["boards"].as_array().expect("boards");
    let reached = |board: &Value| {
        let name = board["name"].as_str().expect("a name").to_string();
        let address = board["address"].as_str().unwrap_or(&name).to_string();
        let mut parts = address.split(", Port=");
        let place = parts.next().unwrap_or_default();
        let port = parts.next().map(str::to_string);
        let (user, host) = match place.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_string()), host),
            None => (None, place),
        };
        let groups = board["groups"].as_array().expect("groups").iter();
        let groups = groups.map(|group| group.as_str().expect("a name").to_string()).collect();
        (name, (user, host.to_string(), port, groups))
    };
    boards.iter().map(reached).collect()
}

/// An inventory of nested groups, with variables and priorities that contradict each other.
fn generated(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut below = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    let groups = 12;
    let mut text = String::from("loner ansible_user=own\n");
    for group in 0..groups {
        let _ = writeln!(text, "[g{group}]");
        let members: BTreeSet<u64> = (0..8).map(|_| below(40)).collect();
        for host in members {
            let _ = write!(text, "h{host}");
            if below(4) == 0 {
                let _ = write!(text, ":22{host}");
            }
            if below(3) == 0 {
                let _ = write!(
                    text,
                    " ansible_{}user=of-host-{group}",
                    if below(2) == 0 { "ssh_" } else { "" }
                );
            }
            text.push('\n');
        }
        let _ = writeln!(text, "[g{group}:vars]");
        for name in ["ansible_user", "ansible_ssh_user", "ansible_port", "ansible_ssh_port"] {
            if below(3) == 0 {
                let value = if name.ends_with("user") {
                    format!("'u{group}'")
                } else {
                    format!("{}  # port", 1000 + group)
                };
                let _ = writeln!(text, "{name} = {value}");
            }
        }
        if below(2) == 0 {
            let _ = writeln!(text, "ansible_group_priority={}", below(20));
        }
        // Only later groups are children, so that there is no circle.
        let children: BTreeSet<u64> = (0..2).map(|_| group + 1 + below(groups - group)).collect();
        let children: Vec<u64> = children.into_iter().filter(|child| *child < groups).collect();
        if !children.is_empty() {
            let _ = writeln!(text, "[g{group}:children]");
            children.iter().for_each(|child| text += &format!("g{child}\n"));
        }
    }
    text + "[ungrouped:vars]\nansible_port=7\n[all:vars]\nansible_user=everyone\n"
}
