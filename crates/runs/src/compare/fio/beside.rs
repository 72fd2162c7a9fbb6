//! How many other jobs ran at the same time as one and have figures of their own.
//!
//! fio starts the jobs of a group together: `stonewall` and `new_group` begin the next group (its manual, "Job parameters"). A
//! group in which a job waits for another one, or for a time, tells nothing of what ran beside what.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Options by which a job begins after others of its group.
const WAITS: [&str; 2] = ["wait_for", "startdelay"];

/// How many of fio's results are of each group of a machine.
pub(super) struct Groups(BTreeMap<String, u32>);

impl Groups {
    pub(super) fn of<'a>(entries: impl Iterator<Item = &'a Value>) -> Groups {
        let mut groups = BTreeMap::new();
        let mut waiting = BTreeSet::new();
        for entry in entries {
            let Some(key) = key(entry) else { continue };
            *groups.entry(key.clone()).or_default() += 1;
            if WAITS.iter().any(|option| !entry["job options"][option].is_null()) {
                waiting.insert(key);
            }
        }
        groups.retain(|key, _| !waiting.contains(key));
        Groups(groups)
    }

    /// Results of the group but this one; none where it does not say its group, or where a job of the group waits.
    pub(super) fn others(&self, entry: &Value) -> Option<u32> {
        self.0.get(&key(entry)?)?.checked_sub(1)
    }
}

fn key(entry: &Value) -> Option<String> {
    let group = entry["groupid"].as_u64()?;
    Some(format!("{group} {}", entry["hostname"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_group_with_a_job_that_waits_tells_nothing() {
        let job = |group: u64, options: Value| json!({"groupid": group, "job options": options});
        let entries = [
            job(0, json!({})),
            job(0, json!({"rw": "read"})),
            job(1, json!({})),
            job(1, json!({"wait_for": "a"})),
            job(2, json!({"startdelay": "5"})),
        ];
        let groups = Groups::of(entries.iter());
        let others: Vec<Option<u32>> = entries.iter().map(|entry| groups.others(entry)).collect();
        assert_eq!(others, [Some(1), Some(1), None, None, None]);
    }
}
