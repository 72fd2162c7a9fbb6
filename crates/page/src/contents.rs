//! The contents of a long page: a link to each section, and anchors that read well.

use maud::{Markup, PreEscaped, html};

/// Shorter pages are seen at a glance.
const MIN_SECTIONS: usize = 5;

/// Where the skip link leads.
pub const MAIN: &str = "content";

/// Links to the sections of the main part, read from the part itself, so that none is missing.
fn of(main: &Markup) -> Markup {
    let sections = sections(&main.0);
    if sections.len() < MIN_SECTIONS {
        return html! {};
    }
    html! {
        nav class="contents" aria-label="Contents" {
            ol {
                @for (anchor, title) in sections {
                    // The title is markup of this page already.
                    li { a href={ "#" (anchor) } { (PreEscaped(title)) } }
                }
            }
        }
    }
}

/// The main part with its contents: behind the picture of the pipes, or the stages of a share, so that the answer, what it is good
/// for and these come first; without them, at the top.
pub fn placed(main: &Markup) -> Markup {
    const FIRST: [&str; 2] =
        ["<section aria-labelledby=\"pipes\">", "<section aria-labelledby=\"way-to-the-nas\">"];
    const END: &str = "</section>";
    let text = &main.0;
    let begin = FIRST.iter().find_map(|section| text.find(section));
    let behind = begin.and_then(|at| Some(at + text[at..].find(END)? + END.len()));
    let (first, rest) = text.split_at(behind.unwrap_or(0));
    html! { (PreEscaped(first)) (of(main)) (PreEscaped(rest)) }
}

/// Anchor and title of each section. What users and machines wrote is escaped, so it has no tags.
fn sections(main: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for piece in main.split("<h2 id=\"").skip(1) {
        let heading = piece.split("</h2>").next().unwrap_or(piece);
        found.extend(heading.split_once("\">"));
    }
    found
}

/// A title as an anchor: lower case, a hyphen for what is neither letter nor digit.
pub fn anchor(title: &str) -> String {
    let lower = title.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// Titles of subsections, each unique: the second of its name gets a number.
pub fn unique(titles: Vec<String>) -> Vec<String> {
    let mut given: Vec<String> = Vec::new();
    for title in titles {
        let mut candidate = title.clone();
        let mut number = 2;
        while given.contains(&candidate) {
            candidate = format!("{title} ({number})");
            number += 1;
        }
        given.push(candidate);
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::section;

    fn main_of(sections: usize) -> Markup {
        html! { @for i in 0..sections {
            (section(&format!("section-{i}"), &format!("Section {i} & more"), html! { p { "text" } }))
        } }
    }

    #[test]
    fn long_pages_have_contents_and_short_ones_have_none() {
        assert_eq!(of(&main_of(MIN_SECTIONS - 1)).0, "");
        let long = of(&main_of(MIN_SECTIONS)).0;
        assert!(long.starts_with("<nav class=\"contents\" aria-label=\"Contents\">"), "{long}");
        assert_eq!(long.matches("<li>").count(), MIN_SECTIONS);
        assert!(long.contains("<a href=\"#section-3\">Section 3 &amp; more</a>"), "{long}");
    }

    #[test]
    fn a_title_that_looks_like_a_heading_adds_no_entry() {
        let main = html! { (main_of(MIN_SECTIONS)) p { "<h2 id=\"x\">X</h2>" } };
        assert_eq!(of(&main).0.matches("<li>").count(), MIN_SECTIONS);
    }

    #[test]
    fn anchors_read_like_their_titles_and_are_unique() {
        assert_eq!(anchor("99 % latency"), "99-latency");
        assert_eq!(anchor("4 KiB random reads ×32"), "4-kib-random-reads-32");
        let titles = ["4 KiB reads", "4 KiB reads", "4 KiB writes"].map(str::to_string);
        let titles = unique(titles.into());
        assert_eq!(titles, ["4 KiB reads", "4 KiB reads (2)", "4 KiB writes"]);
        assert_eq!(anchor(&titles[1]), "4-kib-reads-2");
    }
}
