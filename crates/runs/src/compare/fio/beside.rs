//! How many other jobs ran at the same time as one and have figures of their own.
//!
//! fio starts the jobs of a group together: `stonewall` and `new_group` begin the next group (its manual, "Job parameters").

use std::collections::BTreeMap;

use serde_json::Value;

/// How many of fio's results are of each group of a machine.
pub(super) struct Groups(BTreeMap<String, u32>);

impl Groups {
    pub(super) fn of<'a>(entries: impl Iterator<Item = &'a Value>) -> Groups {
        let mut groups = BTreeMap::new();
        for key in entries.filter_map(key) {
            *groups.entry(key).or_default() += 1;
        }
        Groups(groups)
    }

    /// Results of the group but this one; none where it does not say its group.
    pub(super) fn others(&self, entry: &Value) -> Option<u32> {
        self.0.get(&key(entry)?)?.checked_sub(1)
    }
}

fn key(entry: &Value) -> Option<String> {
    let group = entry["groupid"].as_u64()?;
    Some(format!("{group} {}", entry["hostname"]))
}
