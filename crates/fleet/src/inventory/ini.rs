//! Ansible's inventory in INI form.

use std::collections::BTreeSet;

use super::ansible::Listed;
use super::range::with_port;
use super::{expand, words};

/// Slips of one kind that are noted.
const MAX_NOTED: usize = 5;

/// What the lines of a section are.
enum Section {
    Hosts(String),
    Vars(String),
    Children(String),
}

pub fn read(text: &str) -> Result<Listed, String> {
    if text.lines().any(is_of_ssh) {
        return Err("it is an ssh configuration, which ssh itself reads\n\
                    Name its hosts instead: --on pi1 --ssh-config FILE"
            .into());
    }
    let mut listed = Listed::default();
    let mut section = Section::Hosts("ungrouped".into());
    let mut headings = BTreeSet::from(["all".to_string(), "ungrouped".to_string()]);
    let mut mentioned: Vec<(usize, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let of_line = |error: String| format!("line {}: {error}", index + 1);
        if let Some(name) = heading(line) {
            section = begin(&mut listed, name).map_err(of_line)?;
            match &section {
                Section::Hosts(group) | Section::Children(group) => {
                    headings.insert(group.clone());
                }
                Section::Vars(group) => mentioned.push((index + 1, group.clone())),
            }
            continue;
        }
        match &section {
            Section::Hosts(group) => hosts(&mut listed, group, line).map_err(of_line)?,
            Section::Vars(group) => variable(&mut listed, group, line).map_err(of_line)?,
            Section::Children(group) => {
                let words = words::split(line).map_err(of_line)?;
                let child = words.first().map(String::as_str).unwrap_or_default();
                listed.child(group, child);
                mentioned.push((index + 1, child.to_string()));
            }
        }
    }
    // Ansible refuses them: what is meant for a group with a slip in its name reaches no host.
    let unknown = mentioned.into_iter().filter(|(_, group)| !headings.contains(group));
    listed.notes.extend(unknown.take(MAX_NOTED).map(|(line, group)| {
        let group = group.escape_debug();
        format!("line {line} names the group {group}, which has no section and no hosts")
    }));
    Ok(listed)
}

/// Whether a line begins a part of ssh's configuration: `Host pi1`, `Match all`.
fn is_of_ssh(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let keyword = words.next().unwrap_or_default();
    let is_keyword = ["host", "match"].iter().any(|known| keyword.eq_ignore_ascii_case(known));
    is_keyword && words.next().is_some_and(|next| !next.contains('=') && !next.starts_with('#'))
}

/// The name of `[name]`, which may have a comment after it.
fn heading(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix('[')?.split_once(']')?;
    let rest = rest.trim();
    (rest.is_empty() || rest.starts_with('#')).then_some(name)
}

fn begin(listed: &mut Listed, name: &str) -> Result<Section, String> {
    let (group, kind) = name.split_once(':').unwrap_or((name, ""));
    listed.group(group);
    match kind {
        "" => Ok(Section::Hosts(group.into())),
        "vars" => Ok(Section::Vars(group.into())),
        "children" => Ok(Section::Children(group.into())),
        other => Err(format!(
            "[{name}] is no section of an inventory: '{other}' is neither vars nor children"
        )),
    }
}

fn hosts(listed: &mut Listed, group: &str, line: &str) -> Result<(), String> {
    let words = words::split(line)?;
    let Some((pattern, settings)) = words.split_first() else {
        return Ok(());
    };
    let (pattern, port) = with_port(pattern);
    if pattern.ends_with(':') {
        return Err(format!("'{pattern}' ends in a colon, which stands before a port"));
    }
    for name in expand(pattern)? {
        listed.host(group, &name, port);
        for setting in settings {
            let (key, value) = setting.split_once('=').ok_or_else(|| {
                format!(
                    "'{setting}' behind the host {pattern} is not of the form KEY=VALUE, without blanks\nWrite each \
                     host on a line of its own, such as: pi1 ansible_host=10.0.0.7 ansible_user=pi"
                )
            })?;
            listed.set_of_host(&name, key, &words::value(value));
        }
    }
    Ok(())
}

fn variable(listed: &mut Listed, group: &str, line: &str) -> Result<(), String> {
    let (key, value) =
        line.split_once('=').ok_or_else(|| format!("'{line}' is not of the form KEY=VALUE"))?;
    listed.set_of_group(group, key.trim(), &words::value(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_only_variables_or_parents_name_is_noted() {
        let notes = |text: &str| read(text).unwrap().notes;
        let slips =
            "[workers]\npi1\n[shelf:children]\nworkers\nwrkers\n[workes:vars]\nansible_user=pi\n";
        assert_eq!(
            notes(slips),
            [
                "line 5 names the group wrkers, which has no section and no hosts",
                "line 6 names the group workes, which has no section and no hosts",
            ]
        );
        let sound =
            "[b:vars]\nx=1\n[a:children]\nb\n[b]\npi1\n[all:vars]\nx=1\n[ungrouped:vars]\nx=2\n";
        assert_eq!(notes(sound), [""; 0]);
    }
}
