//! Every example page in a real browser: nothing is loaded, nothing is complained of, every drawing
//! is drawn, nothing sticks out on a phone, and it can be read without eyes and without a mouse.
//!
//! Set `RUBUS_PICTURES` to a directory to have the pages, pictures and prints of them kept there, and
//! `RUBUS_AXE` to the `axe.min.js` of axe-core to have its rules checked, too. Without Chromium the
//! test says so and does nothing; with `RUBUS_REQUIRE_ALL=1` that is a failure.

#[path = "chromium/browser.rs"]
mod browser;
#[path = "chromium/pages.rs"]
mod pages;

use std::fs;
use std::path::{Path, PathBuf};

use rubus_fixtures::skipped;
use serde_json::{Value, json};

use browser::Browser;

const CHECKS: &str = include_str!("chromium/checks.js");

/// The violations that axe-core finds, as a list of sentences. Target sizes are not among its defaults.
const AXE: &str = "axe.run(document, { rules: { 'target-size': { enabled: true } } }).then(found => \
    found.violations.flatMap(rule => rule.nodes.map(node => 'axe: ' + rule.id + ': ' + node.target.join(' ') + ': ' + node.failureSummary)))";

/// Folded parts are looked at too; pictures show the page as it opens.
const UNFOLD: &str = "document.querySelectorAll('details').forEach(d => d.open = true)";
const FOLD: &str = "document.querySelectorAll('details').forEach(d => d.open = false)";

/// How a page is looked at: a name, the medium, light or dark, the width in pixels. Paper is as wide as
/// the printable part of a sheet of A4.
const LOOKS: [(&str, &str, &str, u32); 5] = [
    ("light", "screen", "light", 1280),
    ("dark", "screen", "dark", 1280),
    ("phone", "screen", "light", 360),
    ("phone-dark", "screen", "dark", 360),
    ("paper", "print", "light", 718),
];

#[test]
fn every_page_is_fine_in_a_real_browser() {
    let Some(program) = browser::find() else {
        return skipped("the pages in a browser", "Chromium is not installed");
    };
    let own = tempfile::tempdir().expect("a directory");
    let pictures = std::env::var_os("RUBUS_PICTURES").map(PathBuf::from);
    let directory = pictures.as_deref().unwrap_or(own.path());
    fs::create_dir_all(directory).expect("the directory can be made");
    let mut browser = Browser::start(&program);
    let mut problems = Vec::new();
    for (name, html) in pages::all() {
        let path = directory.join(format!("{name}.html"));
        fs::write(&path, html).expect("the page can be written");
        for problem in look_at(&mut browser, &path, pictures.as_deref()) {
            problems.push(format!("{name}, {problem}"));
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn the_browser_notices_what_is_wrong() {
    let Some(program) = browser::find() else {
        return skipped("a bad page in a browser", "Chromium is not installed");
    };
    let own = tempfile::tempdir().expect("a directory");
    let path = own.path().join("bad.html");
    let bad = "<!DOCTYPE html><html><head></head><body><h3>x</h3><svg role=img></svg>\
        <p style='width:2000px;color:#bbb;background:#fff'>pale</p><table><tr><th>a</th></tr></table>\
        <a href='#nowhere'>there</a><img src='http://example.invalid/x.png'></body></html>";
    fs::write(&path, bad).expect("the page can be written");
    let mut browser = Browser::start(&program);
    let found = look_at(&mut browser, &path, None).join("\n");
    for expected in [
        "a drawing without words",
        "nothing in it",
        "sticks out",
        "contrast of only",
        "a head without scope",
        "skips a level",
        "no language",
        "no skip link",
        "a link to nothing",
        "outside of every landmark",
        "the page asked for http://example.invalid/x.png",
    ] {
        assert!(found.contains(expected), "not noticed: {expected}\n{found}");
    }
}

/// Everything that is wrong with a page.
fn look_at(browser: &mut Browser, page: &Path, pictures: Option<&Path>) -> Vec<String> {
    browser.take_events();
    browser.resize(1280, 900);
    browser.show_as("screen", "light");
    browser.load(page);
    let mut problems: Vec<String> = browser.take_events().iter().filter_map(complaint).collect();
    problems.extend(without_a_mouse(browser));
    let axe = std::env::var_os("RUBUS_AXE").map(|path| {
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path:?}: {error}"))
    });
    if let Some(axe) = &axe {
        browser.evaluate(&format!("{axe};1"));
    }
    for (look, medium, scheme, width) in LOOKS {
        browser.show_as(medium, scheme);
        browser.resize(width, 900);
        if let Some(directory) = pictures {
            browser.evaluate(FOLD);
            let name = page.file_stem().unwrap_or_default().to_string_lossy();
            keep_picture(browser, &directory.join(format!("{name}-{look}.png")), width);
            if medium == "print" {
                keep_print(browser, &directory.join(format!("{name}.pdf")));
            }
        }
        browser.evaluate(UNFOLD);
        let found = browser.evaluate(CHECKS);
        let found = found.as_array().expect("the checks give a list");
        problems.extend(found.iter().map(|problem| format!("{look}: {problem}")));
        if axe.is_some() {
            let found = browser.evaluate(AXE);
            let found = found.as_array().expect("axe gives a list");
            problems.extend(found.iter().map(|problem| format!("{look}: {problem}")));
        }
    }
    problems.extend(browser.take_events().iter().filter_map(complaint));
    problems
}

/// An event that must not happen, in words.
fn complaint(event: &Value) -> Option<String> {
    let params = &event["params"];
    match event["method"].as_str()? {
        "Network.requestWillBeSent" => {
            let url = params["request"]["url"].as_str()?;
            (!url.starts_with("file://")).then(|| format!("the page asked for {url}"))
        }
        "Log.entryAdded" => Some(format!("the browser complains: {}", params["entry"]["text"])),
        "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" => {
            Some(format!("the page's console: {params}"))
        }
        _ => None,
    }
}

/// Goes through the page with the tabulator key: everything that can be reached shows that it is, and
/// the first stop leads past the contents.
fn without_a_mouse(browser: &mut Browser) -> Vec<String> {
    const AT: &str = "(() => { const e = document.activeElement; const s = getComputedStyle(e); \
        return [e.localName, e.getAttribute('aria-label') || e.textContent.slice(0, 40), s.outlineStyle, parseFloat(s.outlineWidth)]; })()";
    const STOPS: &str = "[...document.querySelectorAll('[tabindex], summary, a[href]')]\
        .filter(e => e.checkVisibility()).length";
    let stops = browser.evaluate(STOPS).as_u64().unwrap_or(0);
    let mut problems = Vec::new();
    for _ in 0..stops.min(40) {
        browser.press_tab();
        let at = browser.evaluate(AT);
        if at[0] == "body" {
            problems.push("the keyboard does not reach what it should".to_string());
        } else if at[2] == "none" || at[3].as_f64().unwrap_or(0.0) < 1.5 {
            problems.push(format!("the focus is not to be seen: {at}"));
        }
    }
    problems.extend(past_the_contents(browser));
    problems
}

/// The skip link comes first, can be seen when it has the focus, and leads to the main part.
fn past_the_contents(browser: &mut Browser) -> Option<String> {
    const FOCUS: &str = "(() => { document.activeElement.blur(); scrollTo(0, 0); const skip = document.querySelector('a'); \
        if (!skip) return null; skip.focus(); const b = skip.getBoundingClientRect(); \
        return b.width > 60 && b.height > 20 && b.left >= 0 && b.top >= 0; })()";
    const AFTER: &str = "document.activeElement.closest('main') !== null";
    const BEHIND: &str = "document.querySelectorAll('main [tabindex], main summary').length > 0";
    match browser.evaluate(FOCUS).as_bool() {
        None => return Some("no skip link".into()),
        Some(false) => return Some("the skip link is not to be seen with the focus".into()),
        Some(true) => {}
    }
    browser.evaluate("document.activeElement.click()");
    browser.press_tab();
    let is_there = browser.evaluate(BEHIND) == false || browser.evaluate(AFTER) == true;
    browser.evaluate("document.activeElement.blur()");
    (!is_there).then(|| "the skip link does not lead to the main part".into())
}

/// A picture of the whole page.
fn keep_picture(browser: &mut Browser, path: &Path, width: u32) {
    let height = browser.evaluate("document.documentElement.scrollHeight");
    let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
    let shot = browser.call(
        "Page.captureScreenshot",
        json!({ "format": "png", "captureBeyondViewport": true, "clip": clip }),
    );
    let bytes = from_base64(shot["data"].as_str().expect("a picture"));
    fs::write(path, bytes).expect("the picture can be written");
}

/// The page as it is printed on A4.
fn keep_print(browser: &mut Browser, path: &Path) {
    let paper = json!({ "paperWidth": 8.27, "paperHeight": 11.69, "printBackground": false });
    let printed = browser.call("Page.printToPDF", paper);
    let bytes = from_base64(printed["data"].as_str().expect("a document"));
    fs::write(path, bytes).expect("the document can be written");
}

/// RFC 4648, without checks: the browser made it.
fn from_base64(text: &str) -> Vec<u8> {
    let six = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = group.iter().fold(0_u32, |bits, letter| bits << 6 | u32::from(six(*letter)));
        let bits = bits << (6 * (4 - group.len()) + 8);
        bytes.extend_from_slice(&bits.to_be_bytes()[..group.len() - 1]);
    }
    bytes
}

#[test]
fn base64_is_read_as_it_is_written() {
    let words = ["", "f", "fo", "foo", "foob"];
    let coded = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="];
    for (word, code) in words.iter().zip(coded) {
        assert_eq!(from_base64(code), word.as_bytes());
    }
}
