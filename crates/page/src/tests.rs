//! The page as a whole: complete, well-formed, self-contained, and safe against its own contents.

use rubus_fixtures as fixture;
use rubus_verdict::verdict::verdict;

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
    run.results[0].bytes_per_second = rubus_stats::estimate::Estimate::new(0.0, 0.0, f64::INFINITY);
    run.results[0].iops = run.results[0].bytes_per_second;
    run.results[0].operations = 0;
    run.results[0].outcome = Outcome::Inconclusive;
    run.calibration = None;
    run.machine = fixture::unreadable_machine();
    run.target.device = None;
    run.doubts = vec![rubus_vocabulary::doubt::Doubt::Interrupted];
    run
}

/// A disk a thousand times faster, for the scales of the drawings.
fn fast() -> Run {
    let mut run = fixture::slow_sd_card_run();
    for result in &mut run.results {
        let factor = if result.block_bytes == 4096 { 1000.0 } else { 200.0 };
        result.bytes_per_second = result.bytes_per_second.scaled(factor);
        result.iops = result.iops.scaled(factor);
        result.stalls.clear();
        for ns in
            [&mut result.latency_ns.p50, &mut result.latency_ns.p90, &mut result.latency_ns.p99]
        {
            *ns = ns.map(|ns| ns / factor as u64);
        }
        result.latency_ns.max = result.latency_ns.max.map(|ns| ns / 10);
        result.series = None;
    }
    run.machine.block_devices[0].path.clear();
    run
}

fn runs() -> Vec<Run> {
    let mut runs = vec![fixture::slow_sd_card_run(), fixture::failed_run(), interrupted(), fast()];
    runs.extend(fixture::suite_runs());
    runs
}

fn advices() -> [String; 2] {
    [rubus_advise::fixture::advice(), rubus_advise::fixture::swap_advice()]
        .map(|advice| advice::render(&advice, ""))
}

/// Checks that tags nest, attributes are quoted and no id is given twice. Not a parser of HTML:
/// it refuses much that browsers take.
fn check_well_formed(page: &str) {
    const VOID: [&str; 3] = ["meta", "br", "hr"];
    let mut open: Vec<&str> = Vec::new();
    let mut ids: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a doctype first");
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "a bare > before: {}", &rest[..start]);
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
        if name == "style" || name == "script" {
            let end = format!("</{name}>");
            rest = &rest[rest.find(&end).expect("an end of the raw text")..];
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

fn check_attributes<'a>(attributes: &'a str, ids: &mut Vec<&'a str>) {
    let mut rest = attributes;
    while let Some(attribute) = rest.strip_prefix(' ') {
        let (name, value) = attribute.split_once("=\"").expect("a quoted attribute");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{name}");
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

/// The page without its data, which is no part of what is shown or run.
fn without_data(page: &str) -> String {
    let (before, data) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .expect("the page has its data");
    let (data, after) = data.split_once("</script>").expect("and it ends");
    assert!(!data.contains('<'), "the data could end early");
    format!("{before}{after}")
}

#[test]
fn every_page_is_well_formed_and_stands_alone() {
    let pages = runs().iter().map(page).collect::<Vec<String>>();
    for page in pages.into_iter().chain(advices()) {
        check_well_formed(&page);
        let shown = without_data(&page);
        for forbidden in ["http:", "https:", "src=", "url(", "@import", "<script", "NaN", "inf"] {
            let found = shown.find(forbidden).map(|at| &shown[at.saturating_sub(40)..at + 20]);
            assert_eq!(found, None, "{forbidden} in the page");
        }
        check_links(&page);
        assert!(page.contains("default-src 'none'") || page.contains("default-src &#39;none"));
    }
}

/// Every link leads to a place on the page itself.
fn check_links(page: &str) {
    for link in page.split("href=\"").skip(1) {
        let target = link.split('"').next().unwrap_or("");
        let id = target.strip_prefix('#').expect("a link within the page");
        assert!(page.contains(&format!(" id=\"{id}\"")), "{target} leads nowhere");
    }
}

/// Every page of the examples, as a reader gets it.
fn pages() -> Vec<String> {
    let mut pages: Vec<String> = runs().iter().map(page).collect();
    pages.extend(advices());
    pages.push(page(&rubus_verdict::fixture::slow_sd_card_run_with_rules()));
    pages
}

#[test]
fn anchors_are_words_in_lower_case() {
    for page in pages() {
        let shown = without_data(&page);
        for id in shown.split(" id=\"").skip(1) {
            let id = id.split('"').next().unwrap_or("");
            let is_word = |word: &str| !word.is_empty() && word == word.to_lowercase();
            assert!(id.split('-').all(is_word), "{id}");
            assert!(id.starts_with(|c: char| c.is_alphabetic()), "{id}");
        }
    }
}

#[test]
fn long_pages_begin_with_their_contents() {
    for page in pages() {
        let sections = page.matches("<h2 id=").count();
        let contents = page.split_once("<nav ").map(|(_, rest)| rest);
        assert_eq!(contents.is_some(), sections >= 5, "{sections} sections");
        let Some(contents) = contents else { continue };
        let (contents, _) = contents.split_once("</nav>").expect("it ends");
        assert_eq!(contents.matches("href=\"#").count(), sections);
    }
}

#[test]
fn a_headline_carries_its_reservation() {
    let mut runs = runs();
    for run in &mut runs {
        for result in &mut run.results {
            result.outcome = Outcome::Inconclusive;
        }
        if run.results.is_empty() {
            continue;
        }
        let page = page(run);
        // A suite without an answer has its certainty alone.
        let Some((_, headline)) = page.rsplit_once("<p class=\"headline\">") else {
            continue;
        };
        let headline = headline.split("</p>").next().unwrap_or("");
        // A run that was stopped has no verdict, so nothing is said of how sure it is.
        let is_told = ["no figure settled", "No figure settled", "no verdict"];
        assert!(is_told.iter().any(|words| headline.contains(words)), "{headline}");
    }
    let advice = advices().concat();
    let said = "measured here. <span class=\"reservation\">The figures of sda";
    assert!(advice.contains(said), "{advice}");
}

#[test]
fn what_stands_in_backquotes_is_shown_as_code() {
    let mut run = rubus_verdict::fixture::slow_sd_card_run_with_rules();
    run.doubts.push(rubus_vocabulary::doubt::Doubt::LoopThroughCache { device: "loop0".into() });
    let mut advice = rubus_advise::fixture::advice();
    let words = "Run `rubus survey` first.";
    advice.because.push(words.into());
    advice.to_do = Some("Before: `rubus survey`.".into());
    advice.candidates[0].risks.push(words.into());
    advice.candidates[0].source = words.into();
    advice.subjects[0].advice = words.into();
    advice.unknown[0].what = words.into();
    let pages = [page(&run), advice::render(&advice, "")];
    for page in &pages {
        let shown = without_data(page);
        let at = shown.find('`').map(|at| &shown[at.saturating_sub(60)..]);
        assert_eq!(at, None);
    }
    assert!(pages[0].contains("<code>losetup --direct-io=on</code>"));
    assert!(pages[0].contains("<code>unmap</code>"));
    let code = "<code>rubus survey</code>";
    assert_eq!(pages[1].matches(code).count(), 6);
}

#[test]
fn a_risk_has_its_label_and_is_said_once() {
    let mut advice = rubus_advise::fixture::advice();
    let risk = "All that is on it is lost.".to_string();
    advice.candidates[0].risks = vec![risk.clone()];
    let shown = format!("<p class=\"risk\"><strong>Risk:</strong> {risk}</p>");
    let once = |advice: &rubus_advise::advice::Advice| {
        let page = without_data(&advice::render(advice, ""));
        assert!(page.contains(&shown), "{page}");
        assert_eq!(page.matches(&risk).count(), 1, "{page}");
    };
    once(&advice);
    advice.to_do = Some(risk.clone());
    once(&advice);
    advice.to_do = Some(format!("Look first. {risk}"));
    once(&advice);
    // Nothing is changed, so nothing is risked.
    advice.candidates[0].is_now = true;
    assert!(!advice::render(&advice, "").contains("Risk:"));
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
    let shown = without_data(&page);
    assert!(!shown.contains("<script"), "something was not escaped");
    assert!(shown.contains("&lt;script&gt;alert"));
    check_well_formed(&page);
}

#[test]
fn what_an_advice_says_of_a_machine_is_escaped() {
    const HOSTILE: &str = "<script>alert(1)</script>";
    let mut advice = rubus_advise::fixture::advice();
    for candidate in &mut advice.candidates {
        candidate.name.push_str(HOSTILE);
        candidate.what.push_str(HOSTILE);
        for pipe in &mut candidate.pipes {
            pipe.name.push_str(HOSTILE);
        }
    }
    let page = advice::render(&advice, "");
    assert!(!without_data(&page).contains("<script"));
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
        Value::Array(items) => items.into_iter().map(|item| poisoned(item, poison)).collect(),
        other => other,
    }
}

#[test]
fn the_page_of_a_slow_card_as_text() {
    insta::assert_snapshot!(as_text(&page(&rubus_verdict::fixture::slow_sd_card_run_with_rules())));
}

#[test]
fn the_page_of_an_advice_as_text() {
    let [desktop, swap] = advices();
    insta::assert_snapshot!("advice_desktop", as_text(&desktop));
    insta::assert_snapshot!("advice_swap", as_text(&swap));
}

#[test]
fn where_the_best_is_there_already_one_pipe_is_drawn() {
    let mut advice = rubus_advise::fixture::advice();
    let now = advice.candidates.pop().expect("the current one");
    advice.candidates.insert(0, now);
    let text = as_text(&advice::render(&advice, ""));
    assert_eq!(text.matches("[The pipe:").count(), 1, "{text}");
    assert!(text.contains("Now, and kept: mmcblk0"), "{text}");
    advice.candidates.clear();
    let text = as_text(&advice::render(&advice, ""));
    assert!(!text.contains("[The pipe:"), "{text}");
}

#[test]
fn the_page_of_a_failed_run_as_text() {
    insta::assert_snapshot!(as_text(&page(&fixture::failed_run())));
}

/// What a screen reader reads: the text of the page, a line per block, the words of each drawing, and
/// nothing that is hidden from it. The contents and the link past them repeat headings and are left out.
fn as_text(page: &str) -> String {
    let page = without_data(page);
    let body = page.split("<body>").nth(1).expect("a body");
    let mut text = String::new();
    // The open elements, and whether what is in them is read.
    let mut open: Vec<bool> = vec![true];
    for piece in body.split('<').skip(1) {
        let (tag, words) = piece.split_once('>').expect("a tag that ends");
        let name = tag.trim_start_matches('/').split(' ').next().unwrap_or("");
        if tag.starts_with('/') {
            open.pop();
        } else if !matches!(name, "br" | "hr") {
            let drawing = tag.contains("role=\"img\"");
            let repeats = name == "nav" || tag.contains("class=\"unseen skip\"");
            let hidden = tag.contains("aria-hidden=\"true\"") || repeats;
            let read = open.last() == Some(&true) && !hidden;
            if read && drawing {
                let label = tag.split("aria-label=\"").nth(1).expect("a label");
                let label = label.split('"').next().unwrap_or("");
                text.push_str(&format!("\n[{label}]"));
            }
            open.push(read && !drawing);
        }
        match name {
            "td" | "th" => text.push_str(" | "),
            "span" | "strong" | "code" | "sup" | "b" | "time" | "a" => {}
            _ => text.push('\n'),
        }
        if open.last() == Some(&true) {
            text.push_str(words);
        }
    }
    let lines =
        text.lines().map(str::trim_end).filter(|line| !line.trim_matches([' ', '|']).is_empty());
    lines.map(|line| line.trim_start_matches(" | ")).collect::<Vec<_>>().join("\n")
}

/// What a suite has beyond the sections that every page has, which come behind it.
fn own_sections(run: &Run) -> String {
    let text = as_text(&page(run));
    let common = ["\nHow it behaves\n", "\nWhat disturbed it\n"];
    let end = common.iter().filter_map(|title| text.find(title)).min();
    text[..end.unwrap_or(text.len())].to_string()
}

#[test]
fn the_sections_of_the_suites_as_text() {
    for run in fixture::suite_runs() {
        insta::assert_snapshot!(format!("suite_{}", run.suite), own_sections(&run));
    }
}

/// The colours of a mode: the variables of the first block behind `from` in the style sheet.
fn colours(from: &str) -> Vec<(&'static str, [f64; 3])> {
    let block = STYLE.split(from).nth(1).expect("the mode is in the style sheet");
    let block = block.split('}').next().unwrap_or("");
    let pairs = block.split(';').filter_map(|line| line.trim().split_once(": #"));
    let channel = |hex: &str| f64::from(u8::from_str_radix(hex, 16).expect("hexadecimal")) / 255.0;
    pairs
        .map(|(name, hex)| {
            let hex = if hex.len() == 3 {
                hex.chars().flat_map(|c| [c, c]).collect()
            } else {
                hex.to_string()
            };
            let rgb = [0, 2, 4].map(|i| channel(&hex[i..i + 2]));
            (name.trim_start_matches("--"), rgb)
        })
        .collect()
}

/// The contrast of two colours as the Web Content Accessibility Guidelines 2 define it, 1 to 21.
fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let linear = |c: f64| {
        if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    let luminance =
        |[r, g, b]: [f64; 3]| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// A card whose class has no rule is grey, whatever it says.
#[test]
fn no_page_has_letters_that_are_hidden() {
    let mut run = fixture::slow_sd_card_run();
    run.rubus_version = "0.9\u{202e}\u{200b}\u{9b}1".into();
    let text = page(&run);
    assert!(text.contains("Made by rubus 0.9\u{fffd}\u{fffd}\u{fffd}1"), "{text}");
    // The data mean the same.
    assert!(text.contains("0.9\\u202e\\u200b\\u009b1"), "{text}");
    assert!(!text.contains(|c: char| !"\n\t".contains(c) && is_hidden(c)), "{text}");
}

#[test]
fn every_grade_has_its_colour() {
    use rubus_verdict::text::disturbances::grade;
    use rubus_verdict::verdict::Grade;
    let style = include_str!("style.css");
    for known in [Grade::Good, Grade::Limited, Grade::Poor] {
        let (word, _) = grade(known);
        assert!(style.contains(&format!(".purposes .{word} {{")), "{word}");
    }
}

#[test]
fn every_colour_is_legible_in_both_modes() {
    // What stands on what, and the least contrast: 4.5 for text, 3 for shapes that carry meaning.
    const TEXTS: [(&str, &str, f64); 18] = [
        ("ink", "paper", 4.5),
        ("soft", "paper", 4.5),
        ("ink", "card", 4.5),
        ("soft", "card", 4.5),
        ("good", "card", 4.5),
        ("limited", "card", 4.5),
        ("poor", "card", 4.5),
        ("good", "paper", 4.5),
        ("poor", "paper", 4.5),
        ("narrow", "paper", 4.5),
        ("ink", "heat-0", 4.5),
        ("ink", "heat-1", 4.5),
        ("ink", "heat-2", 4.5),
        ("ink", "heat-3", 4.5),
        ("ink", "heat-4", 4.5),
        ("flow", "paper", 3.0),
        ("flow", "heat-0", 3.0),
        ("ink", "narrow-soft", 3.0),
    ];
    for mode in [":root {", "prefers-color-scheme: dark) {\n  :root {"] {
        let colours = colours(mode);
        let of = |name: &str| {
            let found = colours.iter().find(|(known, _)| *known == name);
            found.unwrap_or_else(|| panic!("{mode} has no {name}")).1
        };
        for (front, back, least) in TEXTS {
            let found = contrast(of(front), of(back));
            assert!(found >= least, "{mode} {front} on {back}: {found:.2}");
        }
    }
}

#[test]
fn contrast_is_that_of_the_guidelines() {
    let (black, white, grey) = ([0.0; 3], [1.0; 3], [0x76 as f64 / 255.0; 3]);
    assert!((contrast(black, white) - 21.0).abs() < 1e-9);
    assert!((contrast(grey, white) - 4.54).abs() < 0.01);
}
