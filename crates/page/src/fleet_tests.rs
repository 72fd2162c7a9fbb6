//! The page of a fleet.

use rubus_fixtures as fixture;
use rubus_fleet::figures::{self, OfBoard};
use rubus_fleet::settings;
use rubus_fleet::text::Board;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::result::Run;

use super::fleet::{Fleet, render};

const FAILURE: &str = "ssh: connect to host <b>10.0.0.3</b> port 22: Connection refused";

fn run(slower: f64) -> Run {
    let mut run = fixture::remote_run();
    for result in &mut run.results {
        result.iops = result.iops.scaled(1.0 / slower);
        result.bytes_per_second = result.bytes_per_second.scaled(1.0 / slower);
    }
    run
}

/// The page of boards of which the third failed, and one of the others is slow.
fn page(names: &[&str], slow: usize) -> String {
    let mut runs: Vec<Run> = (0..names.len()).map(|at| run(1.0 + (at % 5) as f64 * 0.01)).collect();
    runs[slow] = run(2.2);
    runs[slow].machine.system.kernel_release = Fact::known("6.1.0 <old>".into(), "a test");
    let boards: Vec<Board<'_>> = names
        .iter()
        .enumerate()
        .map(|(at, name)| Board { name, failure: (at == 2).then_some(FAILURE) })
        .collect();
    let measured = || runs.iter().enumerate().filter(|(at, _)| *at != 2);
    let of_boards: Vec<OfBoard<'_>> = measured()
        .map(|(board, run)| OfBoard { board, number: Some(board as i64 + 1), run })
        .collect();
    let facts: Vec<_> = measured()
        .map(|(board, run)| (names[board], rubus_runs::compare::facts::of_run(run)))
        .collect();
    let table = figures::table(&of_boards);
    let next = NextStep::command(&["rubus", "survey", "--on", "pi02"], "why it is slower");
    let fleet = Fleet {
        next: &next,
        title: "Checkup",
        boards: &boards,
        differences: &settings::differences(&facts),
        outliers: &figures::outliers(&table, names),
        table: &table,
    };
    render(&fleet, "0.2.0")
}

#[test]
fn as_a_page() {
    let page = page(&["pi01", "pi02", "pi03", "pi04", "pi05"], 3);
    let (page, data) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .expect("the page has its data");
    assert!(data.ends_with("</script></body></html>"));
    for forbidden in ["<script", "http://", "https://", "src=", "<b>10", "<old>"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let body = page.split("</style>").last().expect("a body");
    insta::assert_snapshot!(body.replace("><", ">\n<"));
}

#[test]
fn the_slow_card_in_twenty_is_marked_wherever_it_is() {
    let names: Vec<String> = (1..=20).map(|at| format!("pi{at:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let page = page(&names, 12);
    assert!(page.contains("pi13 stands apart from boards of its kind."));
    assert_eq!(page.matches("pi13 <span class=\"badge\">slow</span>").count(), 6);
    assert_eq!(page.matches("<span class=\"badge\">slow").count(), 6);
    assert_eq!(page.matches("class=\"badge danger\">failed").count(), 1);
    // Its setting is another, and comes first.
    let place = |words: &str| page.find(words).expect(words);
    assert!(place("6.1.0 &lt;old&gt;") < place("id=\"boards\""));
    assert!(place("id=\"boards\"") < place("id=\"outliers\""));
}

#[test]
fn names_are_escaped_on_the_page() {
    let page = page(&["<b>a</b>", "b\u{1b}[2J", "\" onload=\"x", "d</script>", "e"], 3);
    let text = page.split("</style>").last().expect("a body");
    assert!(!text.contains("<b>a") && !text.contains('\u{1b}'), "{text}");
    assert!(!text.contains("\" onload=\"x"), "{text}");
    assert_eq!(text.matches("</script>").count(), 1);
}
