//! The page as a whole: complete, well-formed, self-contained, and safe against its own contents.

use rubus_core::fixture;
use rubus_core::verdict::verdict;

use super::*;

fn page(run: &Run) -> String {
    render(run, &verdict(run))
}

/// A run that nearly everything was left out of.
fn interrupted() -> Run {
    let mut run = fixture::slow_sd_card_run();
    run.results.truncate(1);
    run.results[0].series = None;
    run.results[0].latency_ns = Default::default();
    run.results[0].bytes_per_second = rubus_core::estimate::Estimate::new(0.0, 0.0, f64::INFINITY);
    run.results[0].iops = run.results[0].bytes_per_second;
    run.results[0].operations = 0;
    run.results[0].outcome = Outcome::Inconclusive;
    run.calibration = None;
    run.machine = fixture::unreadable_machine();
    run.target.device = None;
    run.doubts = vec![rubus_core::doubt::Doubt::Interrupted];
    run
}

/// A disk a thousand times faster, for the scales of the drawings.
fn fast() -> Run {
    let mut run = fixture::slow_sd_card_run();
    for result in &mut run.results {
        let factor = if result.block_bytes == 4096 {
            1000.0
        } else {
            200.0
        };
        result.bytes_per_second = result.bytes_per_second.scaled(factor);
        result.iops = result.iops.scaled(factor);
        result.stalls.clear();
        for ns in [
            &mut result.latency_ns.p50,
            &mut result.latency_ns.p90,
            &mut result.latency_ns.p99,
        ] {
            *ns = ns.map(|ns| ns / factor as u64);
        }
        result.latency_ns.max = result.latency_ns.max.map(|ns| ns / 10);
        result.series = None;
    }
    run.machine.block_devices[0].path.clear();
    run
}

fn runs() -> [Run; 4] {
    [
        fixture::slow_sd_card_run(),
        fixture::failed_run(),
        interrupted(),
        fast(),
    ]
}

/// Checks that tags nest, attributes are quoted and no id is given twice. Not a parser of HTML:
/// it refuses much that browsers take.
fn check_well_formed(page: &str) {
    const VOID: [&str; 3] = ["meta", "br", "hr"];
    let mut open: Vec<&str> = Vec::new();
    let mut ids: Vec<&str> = Vec::new();
    let mut rest = page
        .strip_prefix("<!DOCTYPE html>")
        .expect("a doctype first");
    while let Some(start) = rest.find('<') {
        assert!(
            !rest[..start].contains('>'),
            "a bare > before: {}",
            &rest[..start]
        );
        let end = start + rest[start..].find('>').expect("a tag that ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "</{name}> closes something else");
            continue;
        }
        let name = tag.split(' ').next().expect("a name");
        check_attributes(&tag[name.len()..], &mut ids);
        if !VOID.contains(&name) {
            open.push(name);
        }
        if name == "style" {
            rest = &rest[rest.find("</style>").expect("an end of the style")..];
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

fn check_attributes<'a>(attributes: &'a str, ids: &mut Vec<&'a str>) {
    let mut rest = attributes;
    while let Some(attribute) = rest.strip_prefix(' ') {
        let (name, value) = attribute.split_once("=\"").expect("a quoted attribute");
        assert!(
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
            "{name}"
        );
        let (value, after) = value.split_once('"').expect("a closing quote");
        assert!(!value.contains(['<', '>']), "{name}={value}");
        if name == "id" {
            assert!(!ids.contains(&value), "the id {value} twice");
            ids.push(value);
        }
        rest = after;
    }
    assert_eq!(rest, "", "not an attribute");
}

#[test]
fn every_page_is_well_formed_and_stands_alone() {
    for run in runs() {
        let page = page(&run);
        check_well_formed(&page);
        for forbidden in [
            "http:", "https:", "src=", "href=", "url(", "@import", "<script", "NaN", "inf",
        ] {
            let found = page
                .find(forbidden)
                .map(|at| &page[at.saturating_sub(40)..at + 20]);
            assert_eq!(found, None, "{forbidden} in the page");
        }
        assert!(page.contains("default-src 'none'") || page.contains("default-src &#39;none"));
    }
}

#[test]
fn the_checker_notices_what_is_wrong() {
    for broken in [
        "<!DOCTYPE html><p><b></p></b>",
        "<!DOCTYPE html><p>",
        "<!DOCTYPE html><p id=x></p>",
        "<!DOCTYPE html><p id=\"x\"></p><p id=\"x\"></p>",
        "<!DOCTYPE html><p title=\"<\"></p>",
    ] {
        let caught = std::panic::catch_unwind(|| check_well_formed(broken));
        assert!(caught.is_err(), "{broken}");
    }
}

#[test]
fn what_the_machine_says_is_escaped_everywhere() {
    const HOSTILE: &str = "\"><script>alert('x')</script>&";
    let mut run = fixture::slow_sd_card_run();
    let value = serde_json::to_value(&run).expect("JSON");
    run = serde_json::from_value(poisoned(value, HOSTILE)).expect("still a run");
    let page = page(&run);
    assert!(!page.contains("<script"), "something was not escaped");
    assert!(page.contains("&lt;script&gt;alert"));
    check_well_formed(&page);
}

/// The same JSON with a text appended to every free text: those under these names.
fn poisoned(value: serde_json::Value, poison: &str) -> serde_json::Value {
    use serde_json::Value;
    const FREE: [&str; 18] = [
        "value",
        "unknown",
        "source",
        "name",
        "path",
        "named",
        "filesystem",
        "content",
        "suite",
        "started",
        "rubus_version",
        "engine",
        "link",
        "id",
        "zone",
        "device",
        "what",
        "label",
    ];
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| {
                let value = match value {
                    // The kernel name of the target must still find its disk.
                    Value::String(text)
                        if FREE.contains(&key.as_str())
                            && text != "mmcblk0p2"
                            && text != "mmcblk0" =>
                    {
                        Value::String(text + poison)
                    }
                    other => poisoned(other, poison),
                };
                (key, value)
            })
            .collect(),
        Value::Array(items) => items
            .into_iter()
            .map(|item| poisoned(item, poison))
            .collect(),
        other => other,
    }
}

#[test]
fn the_page_of_a_slow_card_as_text() {
    insta::assert_snapshot!(as_text(&page(&fixture::slow_sd_card_run())));
}

#[test]
fn the_page_of_a_failed_run_as_text() {
    insta::assert_snapshot!(as_text(&page(&fixture::failed_run())));
}

/// What a reader without eyes for pictures gets: the text of the page, a line per block, and for
/// each drawing that its description is there.
fn as_text(page: &str) -> String {
    const BLOCKS: [&str; 16] = [
        "h1",
        "h2",
        "h3",
        "p",
        "li",
        "tr",
        "caption",
        "dt",
        "dd",
        "figcaption",
        "pre",
        "footer",
        "header",
        "div",
        "desc",
        "title",
    ];
    let body = page.split("<body>").nth(1).expect("a body");
    let mut text = String::new();
    for piece in body.split('<') {
        let (tag, words) = piece.split_once('>').unwrap_or(("", piece));
        let name = tag.trim_start_matches('/').split(' ').next().unwrap_or("");
        if BLOCKS.contains(&name) {
            text.push('\n');
        } else if name == "td" || name == "th" {
            text.push_str(" | ");
        }
        text.push_str(words);
    }
    let lines = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.trim_matches([' ', '|']).is_empty());
    lines
        .map(|line| line.trim_start_matches(" | "))
        .collect::<Vec<_>>()
        .join("\n")
}
