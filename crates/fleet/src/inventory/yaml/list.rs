//! What `ansible-inventory --list` prints: groups with lists of hosts and children, and the variables of each host, those of
//! its groups included, in `_meta`.

use super::super::ansible::Listed;
use super::{Node, set_of_host, variable};

pub fn add(
    listed: &mut Listed,
    meta: &[(String, Node)],
    groups: &[(String, Node)],
) -> Result<(), String> {
    for (name, group) in groups.iter().filter(|(name, _)| name != "_meta") {
        add_group(listed, name, group)?;
    }
    let Some((_, Node::Map(hosts))) = meta.iter().find(|(key, _)| key == "hostvars") else {
        return Ok(());
    };
    for (host, variables) in hosts {
        set_of_host(listed, host, variables)?;
    }
    Ok(())
}

fn add_group(listed: &mut Listed, name: &str, group: &Node) -> Result<(), String> {
    listed.group(name);
    // The short form of a dynamic inventory is the list of its hosts.
    if let Node::List(hosts) = group {
        add_hosts(listed, name, hosts);
        return Ok(());
    }
    let parts = match group {
        Node::Map(parts) => parts,
        Node::Null => return Ok(()),
        Node::Text(_) | Node::Truth(..) | Node::Whole(..) | Node::List(_) | Node::Other => {
            return Err(format!(
                "the group {name} is neither a list of hosts nor a mapping of hosts, vars and children"
            ));
        }
    };
    for (part, value) in parts {
        match (part.as_str(), value) {
            (_, Node::Null) => {}
            ("hosts", Node::List(hosts)) => add_hosts(listed, name, hosts),
            ("hosts", Node::Map(hosts)) => super::add_hosts(listed, name, hosts)?,
            ("children", Node::List(children)) => {
                for child in texts(children) {
                    listed.child(name, child);
                }
            }
            ("children", Node::Map(children)) => {
                for (child, group) in children {
                    listed.child(name, child);
                    add_group(listed, child, group)?;
                }
            }
            ("vars", Node::Map(variables)) => {
                for (key, value) in variables {
                    if let Some(value) = variable(key, value, name)? {
                        listed.set_of_group(name, key, value)?;
                    }
                }
            }
            ("hosts" | "children" | "vars", _) => {
                return Err(format!(
                    "{part} of the group {name} is neither a list nor a mapping\nWrite a list of names: [\"pi1\", \"pi2\"]"
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

fn add_hosts(listed: &mut Listed, group: &str, hosts: &[Node]) {
    texts(hosts).for_each(|host| listed.host(group, host, None));
}

fn texts(nodes: &[Node]) -> impl Iterator<Item = &str> {
    nodes.iter().filter_map(|node| match node {
        Node::Text(text) | Node::Whole(_, text) => Some(text.as_str()),
        Node::Null | Node::Truth(..) | Node::Map(_) | Node::List(_) | Node::Other => None,
    })
}
