//! What a finding tells to type has no part left empty.

use rubus_vocabulary::rule_finding::RuleFinding;

/// Where a name was left out of a command or a path: in the command of a finding, and in its other words.
pub(in crate::rules) fn gap(finding: &RuleFinding) -> Option<String> {
    let words = [&finding.evidence, &finding.consequence, &finding.fix];
    let command = finding.command.iter();
    command.chain(words).find_map(|text| gap_in(text))
}

fn gap_in(text: &str) -> Option<String> {
    let is_address = |word: &str| word.contains("://");
    let is_gap = |word: &&str| {
        let word = word.trim_matches(['`', '(', ')', ',', '.', ';']);
        let is_cut = word.ends_with("/dev/") || word == "device=" || word == "at=";
        !is_address(word) && (word.contains("//") || is_cut)
    };
    text.split_whitespace().find(is_gap).map(str::to_string)
}

/// Recipes that ask for a disk, a place or an address: their plan is refused without it.
const NEED_AN_OPTION: [&str; 6] =
    ["desktop", "format", "network-disk", "raid0", "swap", "usb-quirk"];

/// A plan that is refused for want of an option.
pub(in crate::rules) fn bare(finding: &RuleFinding) -> Option<&str> {
    let command = finding.command.as_deref()?;
    let recipe = command.strip_prefix("rubus plan ")?;
    NEED_AN_OPTION.contains(&recipe).then_some(command)
}

/// A test of a whole device that only root may open.
pub(in crate::rules) fn without_root(finding: &RuleFinding) -> Option<&str> {
    let command = finding.command.as_deref()?;
    command.starts_with("rubus bench /dev/").then_some(command)
}

#[test]
fn a_path_without_its_device_is_a_gap() {
    for (text, is_gap) in [
        ("echo bfq into /sys/block//home/pi/queue/scheduler", true),
        ("rubus plan desktop device=/dev/", true),
        ("rubus plan format device= at=/srv", true),
        ("rubus plan desktop device=/dev/sda", false),
        ("rubus plan network-disk address=nbd://SERVER/NAME at=/mnt", false),
    ] {
        assert_eq!(gap_in(text).is_some(), is_gap, "{text}");
    }
}
