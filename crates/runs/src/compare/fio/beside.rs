//! How many other jobs ran at the same time as one and have figures of their own.
//!
//! Later versions of fio 3 say when each job began. Of others the groups tell it; an option that was given without a
//! value is not in the result, and then the next group counts as a later stage.

use std::collections::BTreeMap;

use serde_json::Value;

use super::part::number;
use crate::compare::stages::{Start, stages};

/// Two jobs ran at the same time where they share this part of the shorter one.
const MIN_SHARED: f64 = 0.1;

/// Each of fio's results with the number of others beside it.
pub(super) struct Groups<'a>(Vec<(&'a Value, Option<u32>)>);

impl<'a> Groups<'a> {
    /// `global` has the options of all jobs.
    pub(super) fn of(entries: impl Iterator<Item = &'a Value>, global: &Value) -> Groups<'a> {
        // The clocks of two machines differ.
        let mut machines: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
        for entry in entries {
            machines.entry(entry["hostname"].to_string()).or_default().push(entry);
        }
        let counted = machines.into_values().flat_map(|entries| {
            let others = by_time(&entries).unwrap_or_else(|| by_group(&entries, global));
            entries.into_iter().zip(others)
        });
        Groups(counted.collect())
    }

    /// Results beside this one; none where nothing tells it.
    pub(super) fn others(&self, entry: &Value) -> Option<u32> {
        let (_, others) = self.0.iter().find(|(other, _)| std::ptr::eq(*other, entry))?;
        *others
    }
}

/// None where a job does not say when it began.
fn by_time(entries: &[&Value]) -> Option<Vec<Option<u32>>> {
    let spans: Option<Vec<Span>> = entries.iter().map(|entry| Span::of(entry)).collect();
    let spans = spans?;
    let others = |own: &Span| {
        let all = spans.iter().filter(|other| own.is_beside(other)).count();
        // A job is beside itself where it took any time.
        u32::try_from(all - usize::from(own.is_beside(own))).ok()
    };
    Some(spans.iter().map(others).collect())
}

/// When a job ran, in milliseconds.
struct Span {
    start: f64,
    end: f64,
}

impl Span {
    fn of(entry: &Value) -> Option<Span> {
        let start = number(&entry["job_start"]).filter(|start| *start > 0.0)?;
        let sides = ["read", "write", "trim", "mixed"].iter();
        let times = sides.filter_map(|side| number(&entry[*side]["runtime"]));
        Some(Span { start, end: start + times.fold(0.0, f64::max) })
    }

    fn is_beside(&self, other: &Span) -> bool {
        let shared = self.end.min(other.end) - self.start.max(other.start);
        let shorter = (self.end - self.start).min(other.end - other.start);
        shared > 0.0 && shared >= shorter * MIN_SHARED
    }
}

fn by_group(entries: &[&Value], global: &Value) -> Vec<Option<u32>> {
    let starts: Option<Vec<Start>> = entries.iter().map(|entry| start(entry, global)).collect();
    let Some(starts) = starts else { return vec![None; entries.len()] };
    let stages = stages(starts.into_iter());
    let others = |stage: &Option<u64>| {
        let all = stages.iter().filter(|other| stage.is_some() && *other == stage).count();
        u32::try_from(all.checked_sub(1)?).ok()
    };
    stages.iter().map(others).collect()
}

fn start(entry: &Value, global: &Value) -> Option<Start> {
    let all = [global.as_object(), entry["job options"].as_object()];
    let all = all.into_iter().flatten().flatten();
    let all = all.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()));
    Some(Start::of(entry["groupid"].as_u64()?, all))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn others(entries: &[Value]) -> Vec<Option<u32>> {
        let groups = Groups::of(entries.iter(), &Value::Null);
        entries.iter().map(|entry| groups.others(entry)).collect()
    }

    #[test]
    fn a_group_with_a_job_that_waits_tells_nothing() {
        let job = |group: u64, options: Value| json!({"groupid": group, "job options": options});
        let entries = [
            job(0, json!({})),
            job(0, json!({"rw": "read"})),
            job(1, json!({})),
            job(1, json!({"wait_for": "a"})),
            job(2, json!({"startdelay": "5"})),
            job(3, json!({})),
            job(4, json!({"new_group": "1"})),
        ];
        let expected = [Some(1), Some(1), None, None, None, Some(1), Some(1)];
        assert_eq!(others(&entries), expected);
    }

    #[test]
    fn what_says_when_it_began_is_counted_by_time() {
        let job = |group: u64, start: u64, host: &str| {
            json!({"groupid": group, "job_start": start, "hostname": host,
                "read": {"runtime": 1000}, "write": {"runtime": 900}})
        };
        // The second group did not wait, the third did; a millisecond at the end is rounding.
        let entries = [job(0, 5000, "a"), job(1, 5001, "a"), job(2, 6000, "a"), job(0, 5000, "b")];
        assert_eq!(others(&entries), [Some(1), Some(1), Some(0), Some(0)]);
        let idle = json!({"groupid": 0, "job_start": 5000, "hostname": "a"});
        assert_eq!(others(&[job(0, 5000, "a"), idle]), [Some(0), Some(0)]);
    }
}
