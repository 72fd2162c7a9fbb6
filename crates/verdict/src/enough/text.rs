//! The answer as text.

use rubus_stats::stalls::rarer_than_s;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::units::{bytes_iec, duration_ns};

use rubus_draw::next_step;
use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{bind_units, hang, pad_right};
use rubus_draw::words::{span, stall_cause};

use super::judge::limit;
use super::{Answer, Judgement, Workload};

/// No line is wider.
const COLUMNS: usize = 80;
/// Width of the column with names.
const NAMES: usize = 10;

/// What is going to be written, `most_bytes` of it, and for how long.
pub fn announcement(workload: &Workload, place: &str, most_bytes: u64, seconds: f64) -> String {
    format!(
        "Writing under {place} for {} as {} does: at most {}, to nameless files that are gone at the end.",
        span(seconds),
        workload.title,
        bytes_iec(most_bytes)
    )
}

/// The question, the answer and what it rests on, ending in a line feed.
pub fn render(
    workload: &Workload,
    place: &str,
    judgement: &Judgement,
    doubts: &[&Doubt],
    style: Style,
) -> String {
    let question = format!("Is the storage under {place} fast enough for {}?", workload.title);
    let mut lines = hang("", &question, COLUMNS);
    lines.push(String::new());
    let tone = match judgement.answer {
        Answer::Yes => Tone::Good,
        Answer::No => Tone::Bad,
        Answer::YesBut | Answer::Undecided => Tone::Warn,
    };
    let answer = hang("", &bind_units(&judgement.sentence), COLUMNS);
    lines.extend(answer.iter().map(|line| style.paint(tone, line)));
    lines.extend(next_step::lines(&judgement.next, style));
    lines.push(String::new());
    for (name, words) in rows(workload, judgement) {
        let name = pad_right(&format!("  {name}"), NAMES + 2);
        lines.extend(hang(&name, &bind_units(&words), COLUMNS));
    }
    // What the answer says is not said again.
    let is_said = |doubt: &&&Doubt| judgement.sentence.contains(&doubt.what());
    for doubt in doubts.iter().filter(|doubt| !is_said(doubt)) {
        lines.push(String::new());
        let words = format!("{}; {}", doubt.what(), doubt.remedy());
        lines.extend(hang("  ! ", &words, COLUMNS));
    }
    lines.join("\n") + "\n"
}

fn rows(workload: &Workload, judgement: &Judgement) -> Vec<(&'static str, String)> {
    let limits = &workload.limits;
    let ms = |ms: f64| duration_ns((ms * 1e6) as u64);
    let mut rows = vec![
        ("pattern", workload.writes.to_string()),
        ("seen", format!("{} commits in {}", judgement.commits, span(judgement.measured_s))),
    ];
    if let Some(median_ms) = judgement.median_ms {
        rows.push(("median", ms(median_ms)));
    }
    if let Some(p99) = judgement.p99_ms {
        let up_to = if p99.high.is_finite() {
            format!("{} to {}", ms(p99.low), ms(p99.high))
        } else {
            format!("at least {}", ms(p99.low))
        };
        // A percentile counts commits; while the storage stands still, there are none.
        let between = if judgement.stood_still() { " between the stalls" } else { "" };
        let words = format!("{} or less{between} (95 % interval: {up_to})", ms(p99.value));
        rows.push(("99 %", words));
    }
    if judgement.commits > 0 || !judgement.stalls.is_empty() {
        rows.push(("longest", ms(judgement.longest_wait_ms())));
    }
    let stalls = judgement.stalls.iter().map(|stall| {
        let (length, at) = (ms(stall.length_ms), stall.start_s);
        format!("{length} at {at:.0} s ({})", stall_cause(stall.cause))
    });
    let stalls: Vec<String> = stalls.collect();
    let stall = limit(limits.stall_ns);
    if !stalls.is_empty() {
        rows.push(("stalls", stalls.join(", ")));
    } else if judgement.longest_ms < judgement.stall_ms && judgement.commits > 0 {
        let words = format!(
            "none of {stall} or longer in {} (95 % confidence: fewer than one per {})",
            span(judgement.measured_s),
            span(rarer_than_s(judgement.measured_s))
        );
        rows.push(("stalls", words));
    }
    rows.push((
        "limits",
        format!(
            "99 % within {} is good, within {} the edge; a stall of {stall} {}",
            limit(limits.good_ns),
            limit(limits.edge_ns),
            workload.stall_means
        ),
    ));
    rows.push(("source", workload.source.to_string()));
    rows
}

#[cfg(test)]
mod tests {
    use rubus_stats::estimate::Estimate;
    use rubus_vocabulary::result::{LatencyBins, Stall, StallCause};

    use super::*;
    use crate::enough::{Evidence, Question, by_name, judge};

    fn evidence() -> Evidence {
        Evidence {
            commits: 12_049,
            seconds: 60.0,
            shortest_ns: Some(900_000),
            median_ns: Some(1_200_000),
            p99_ns: Some(Estimate::new(3.2e6, 2.9e6, 3.6e6)),
            longest_ns: 80_000_000,
            bins: LatencyBins {
                up_to_ns: vec![4_000_000, 85_000_000],
                operations: vec![11_989, 60],
            },
            ..Evidence::default()
        }
    }

    fn rendered(seen: &Evidence, doubts: &[&Doubt]) -> String {
        let etcd = by_name("etcd").expect("it is listed");
        let question = Question { workload: etcd, place: "/var/lib", seconds: 60.0 };
        render(etcd, "/var/lib", &judge(&question, seen), doubts, Style::PLAIN)
    }

    #[test]
    fn a_reservation_with_a_disturbance() {
        let traffic = Doubt::OtherTraffic { bytes: 30 << 20, share: 0.3 };
        insta::assert_snapshot!(rendered(&evidence(), &[&traffic]));
    }

    #[test]
    fn a_stall() {
        let mut seen = evidence();
        seen.stalls = vec![Stall { start_s: 31.4, length_ms: 1400.0, cause: StallCause::Device }];
        seen.longest_ns = 1_400_000_000;
        insta::assert_snapshot!(rendered(&seen, &[]));
    }

    #[test]
    fn what_held_the_test_up_is_said_once() {
        let mut seen = evidence();
        seen.p99_ns = Some(Estimate::new(36e6, 33e6, 39e6));
        seen.held_up = Some(Doubt::CpuStarved { share: 0.65 });
        let starved = Doubt::CpuStarved { share: 0.65 };
        let text = rendered(&seen, &[&starved]);
        assert_eq!(text.matches("for a processor").count(), 1, "{text}");
        assert!(!text.contains("  ! "), "{text}");
    }

    #[test]
    fn a_stall_that_outlasts_the_measurement() {
        let mut seen = evidence();
        seen.stalls = vec![Stall { start_s: 5.4, length_ms: 75e3, cause: StallCause::Device }];
        insta::assert_snapshot!(rendered(&seen, &[]));
    }

    #[test]
    fn nothing_seen() {
        insta::assert_snapshot!(rendered(&Evidence::default(), &[]));
    }

    #[test]
    fn the_announcement_says_what_is_written() {
        for (name, bytes) in [
            ("etcd", "105 MiB"),
            ("home-assistant", "110 MiB"),
            ("database", "78.6 MiB"),
            ("git-server", "436 MiB"),
            ("camera-recorder", "134 MiB"),
        ] {
            let workload = by_name(name).expect("it is listed");
            let suite = workload.measurement(60.0).suite;
            let most_bytes = rubus_measure::suites::plan_writes(&suite, false);
            let words = announcement(workload, "/x", most_bytes, 60.0);
            assert!(words.contains(&format!("at most {bytes}, ")), "{words}");
        }
    }
}
