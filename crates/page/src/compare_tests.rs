//! The page of a comparison.

use rubus_fixtures as fixture;
use rubus_runs::compare::{Comparison, Subject, compare};

fn two_runs() -> Comparison {
    compare(&[
        Subject::of_run("run 3", &fixture::slow_sd_card_run()),
        Subject::of_run("run 7", &fixture::slow_sd_card_run_a_day_later()),
    ])
}

#[test]
fn as_a_page() {
    let page = super::compare::render(&two_runs());
    // The data comes last, in an element that no browser runs.
    let (page, data) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .expect("the page has its data");
    assert!(data.ends_with("</script></body></html>"));
    for forbidden in ["<script", "http://", "https://", "src="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let body = page.split("</style>").last().expect("a body");
    insta::assert_snapshot!(body.replace("><", ">\n<"));
}

#[test]
fn names_are_escaped_on_the_page() {
    let run = fixture::failed_run();
    let comparison = compare(&[
        Subject::of_run("<b>one</b>", &run),
        Subject::of_run("two", &fixture::slow_sd_card_run()),
    ]);
    let page = super::compare::render(&comparison);
    assert!(!page.contains("<b>one"), "{page}");
}
