//! A run before a change and one after it: which of their results were measured alike, so that a ratio means the change.

use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Access, JobResult, Run};
use rubus_vocabulary::units::bytes_iec;

/// Two runs with only those results that may stand side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Alike {
    /// The run before, with what was measured alike.
    pub before: Run,
    /// The run after, with what was measured alike.
    pub after: Run,
    /// What differs between the two measurements, each as a sentence.
    pub differences: Vec<String>,
}

impl Alike {
    /// Whether nothing is left to be compared.
    pub fn is_empty(&self) -> bool {
        self.before.results.is_empty() || self.after.results.is_empty()
    }
}

/// Keeps of two runs what was measured in the same way. Another suite, size of the test file or content is another
/// measurement. Where one run went to the disk and the other through the page cache, only commits stay: each waits for
/// the disk. Another filesystem or disk is what a change may be about, so it is said and compared.
pub fn alike(before: &Run, after: &Run) -> Alike {
    let (mut first, mut second) = (before.clone(), after.clone());
    let mut differences = of_the_whole(before, after);
    if !differences.is_empty() {
        first.results.clear();
        second.results.clear();
    }
    let is_alike = |one: &JobResult, own: &Run, other: &Run| {
        let twins = other.results.iter().filter(|twin| twin.job == one.job);
        let mut ways = twins.map(|twin| is_cached(twin, other));
        one.commit || ways.all(|way| way == is_cached(one, own))
    };
    let (of_first, of_second) = (first.results.len(), second.results.len());
    first.results.retain(|one| is_alike(one, before, after));
    second.results.retain(|one| is_alike(one, after, before));
    if first.results.len() < of_first || second.results.len() < of_second {
        differences.push(
            "One of the runs went to the disk, the other through the page cache: only commits, which wait for the disk, are \
             compared. btrfs with compression has no direct I/O; what it reads and writes from memory says nothing of the disk."
                .into(),
        );
    }
    if !differences.is_empty() {
        // What is shown beside the ratios would be of results that were left out.
        first.findings.clear();
        second.findings.clear();
    }
    differences.extend(of_the_place(before, after));
    Alike { before: first, after: second, differences }
}

/// What makes the two different measurements.
fn of_the_whole(before: &Run, after: &Run) -> Vec<String> {
    let sizes = [before, after].map(|run| bytes_iec(run.target.region_bytes));
    let suites = [before, after].map(|run| run.suite.clone());
    let contents = [before, after].map(|run| run.target.content.clone());
    let paths = [before, after].map(|run| run.target.path.clone());
    let facts = [
        ("the suite", suites),
        ("the test file's size", sizes),
        ("the test file's content", contents),
        ("the directory", paths),
    ];
    let differing = facts.into_iter().filter(|(_, [first, second])| first != second);
    differing
        .map(|(what, [first, second])| {
            format!("Not compared: {what} was {first} before the change and is {second} now.")
        })
        .collect()
}

/// What the change itself may have brought.
fn of_the_place(before: &Run, after: &Run) -> Vec<String> {
    let filesystem = |run: &Run| run.target.filesystem.clone();
    let device = |run: &Run| run.target.device.clone();
    let facts =
        [("filesystem", [before, after].map(filesystem)), ("device", [before, after].map(device))];
    let named = facts.into_iter().filter_map(|(what, [first, second])| {
        let (first, second) = (first?, second?);
        (first != second)
            .then(|| format!("The {what} was {first} before the change and is {second} now."))
    });
    named.collect()
}

/// Whether a result is one of memory: it went through the page cache, or the filesystem did so in secret.
fn is_cached(result: &JobResult, run: &Run) -> bool {
    let mut doubts = run.doubts.iter().chain(&result.doubts);
    run.access_of(result) == Access::Buffered
        || doubts.any(|doubt| {
            matches!(
                doubt,
                Doubt::ThroughPageCache { .. }
                    | Doubt::DirectIsBuffered { .. }
                    | Doubt::LoopThroughCache { .. }
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    fn named(run: &Run) -> Vec<&str> {
        run.results.iter().map(|result| result.job.as_str()).collect()
    }

    #[test]
    fn the_same_measurement_is_compared_whole() {
        let run = fixture::slow_sd_card_run();
        let found = alike(&run, &run);
        assert_eq!(found.differences, Vec::<String>::new());
        assert_eq!(found.before, run);
        assert!(!found.is_empty());
    }

    /// 289 MB/s "after" over a bus of 35 MB/s.
    #[test]
    fn a_run_through_the_page_cache_is_compared_by_commits_alone() {
        let before = fixture::slow_sd_card_run();
        assert_eq!(before.target.access, Access::Direct);
        assert!(before.results.iter().any(|result| result.commit));
        let mut after = before.clone();
        after.doubts.push(Doubt::DirectIsBuffered { filesystem: "btrfs with zstd".into() });
        let found = alike(&before, &after);
        assert!(found.before.results.iter().all(|result| result.commit));
        assert_eq!(named(&found.before), named(&found.after));
        assert!(!found.is_empty());
        assert!(found.differences[0].contains("only commits"), "{found:?}");
        // One job alone that was found in the cache.
        let mut after = before.clone();
        let doubts = &mut after.results[1].doubts;
        doubts.push(Doubt::DirectIsBuffered {
            filesystem: "ext4 kept 60 % of the test file in the page cache".into(),
        });
        let left_out = before.results[1].job.clone();
        let found = alike(&before, &after);
        assert!(!named(&found.after).contains(&left_out.as_str()));
        assert!(!named(&found.before).contains(&left_out.as_str()));
        assert!(found.before.results.len() >= before.results.len() - 2);
    }

    #[test]
    fn another_suite_size_content_or_directory_is_another_measurement() {
        let before = fixture::slow_sd_card_run();
        type Change = (fn(&mut Run), &'static str);
        let changes: [Change; 4] = [
            (|run| run.suite = "full".into(), "the suite was quick"),
            (|run| run.target.region_bytes /= 2, "the test file's size was"),
            (|run| run.target.content = "zeros".into(), "the test file's content was"),
            (|run| run.target.path = "/srv".into(), "the directory was"),
        ];
        for (change, words) in changes {
            let mut after = before.clone();
            change(&mut after);
            let found = alike(&before, &after);
            assert!(found.is_empty(), "{words}");
            assert!(found.differences[0].contains(words), "{found:?}");
        }
    }

    #[test]
    fn another_filesystem_or_disk_is_said_and_compared() {
        let before = fixture::slow_sd_card_run();
        let mut after = before.clone();
        after.target.filesystem = Some("xfs".into());
        after.target.device = Some("sda2".into());
        let found = alike(&before, &after);
        assert_eq!(found.after.results, before.results);
        assert_eq!(found.differences.len(), 2, "{:?}", found.differences);
        assert!(found.differences[0].starts_with("The filesystem was "));
    }
}
