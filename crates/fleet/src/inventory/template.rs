//! Templates in the values of an inventory, as far as they name variables and nothing more: `{{ inventory_hostname }}.lan`.

use std::collections::BTreeMap;

/// How a value begins that Ansible Vault has encrypted.
pub const VAULT: &str = "$ANSIBLE_VAULT";
/// Variables that all templates of a value lead to.
const MAX_STEPS: usize = 1000;
/// No address and no option of ssh is longer.
const MAX_BYTES: usize = 4096;

/// A value with the variables that its templates name. None where one has a filter or a call, or names what is not there or is
/// no text: only Ansible evaluates that.
pub fn filled(value: &str, host: &str, variables: &BTreeMap<String, String>) -> Option<String> {
    Filling { host, variables, steps: 0 }.of(value)
}

struct Filling<'a> {
    host: &'a str,
    variables: &'a BTreeMap<String, String>,
    steps: usize,
}

impl Filling<'_> {
    fn of(&mut self, value: &str) -> Option<String> {
        if value.len() > MAX_BYTES {
            return None;
        }
        let mut text = String::new();
        let mut rest = value;
        while let Some((before, behind)) = rest.split_once("{{") {
            let (name, after) = behind.split_once("}}")?;
            text.push_str(before);
            text.push_str(&self.named(name.trim())?);
            if text.len() > MAX_BYTES {
                return None;
            }
            rest = after;
        }
        text.push_str(rest);
        let has_more = ["{%", "{#"].iter().any(|mark| text.contains(mark));
        (!has_more).then_some(text)
    }

    fn named(&mut self, name: &str) -> Option<String> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return None;
        }
        match name {
            "inventory_hostname" => Some(self.host.to_string()),
            "inventory_hostname_short" => self.host.split('.').next().map(str::to_string),
            _ => {
                let variables = self.variables;
                let value = variables.get(name)?;
                let is_text = !value.is_empty() && !value.starts_with(VAULT);
                if is_text { self.of(value) } else { None }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_that_name_variables_are_filled_in() {
        let variables: BTreeMap<String, String> = [
            ("ip", "10.0.0.9"),
            ("zone", "{{ site }}.example"),
            ("site", "lab"),
            ("round", "{{ trip }}"),
            ("trip", "{{ round }}"),
            ("none", ""),
            ("secret", "$ANSIBLE_VAULT;1.1;AES256 62"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .into();
        let filled = |value| filled(value, "pi1.lan", &variables);
        assert_eq!(filled("{{ ip }}").as_deref(), Some("10.0.0.9"));
        assert_eq!(filled("{{ip}}").as_deref(), Some("10.0.0.9"));
        assert_eq!(filled("{{ inventory_hostname }}").as_deref(), Some("pi1.lan"));
        let both = "-J u@{{ inventory_hostname_short }}.{{ zone }} -C";
        assert_eq!(filled(both).as_deref(), Some("-J u@pi1.lab.example -C"));
        for other in [
            "{{ ip | default('x') }}",
            "{{ hostvars['pi2'].ip }}",
            "{{ lookup('env', 'IP') }}",
            "{{ absent }}",
            "{{ none }}",
            "{{ secret }}",
            "{{ round }}",
            "{{ ip",
            "{{ ip }}{% if x %}a{% endif %}",
        ] {
            assert_eq!(filled(other), None, "{other}");
        }
    }
}
