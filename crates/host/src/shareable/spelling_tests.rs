//! No rule for texts lets a secret through, however it is spelt.

use std::collections::BTreeSet;

use super::spelt::{left_of, spelt_otherwise};
use super::{Pseudonyms, command_line, options, paths, products, words};

/// What each rule makes of a text alone.
fn said_of(text: &str) -> Vec<(&'static str, String)> {
    let names = &mut Pseudonyms::default();
    let kept = |is_kept: bool| if is_kept { text.to_string() } else { String::new() };
    vec![
        ("phrase", words::phrase(text, &BTreeSet::new(), names)),
        ("is_phrase", kept(words::is_phrase(text))),
        ("words", kept(options::is_words(text))),
        ("number", kept(options::is_public_number(text))),
        // Beside words, a tag could be the number of a part.
        ("product", kept(!text.starts_with("connect") && products::is_product(text))),
        ("setting", options::setting_line(&format!("size={text}"), names).unwrap_or_default()),
        ("options", options::mount_options(&format!("rw,data={text},commit=x{text}"), names)),
        ("line", command_line::shareable(&format!("quiet console={text} ro"), names)),
        ("in place", command_line::in_place(&format!("quiet console={text} ro"), names)),
        ("quirks", command_line::shareable(&format!("usbcore.quirks=1:2:{text}"), names)),
        ("path", paths::path(text, names)),
        ("home", paths::path(&format!("/home/{text}"), names)),
        ("volume", paths::volume(text, names)),
        ("target", paths::target(text, names)),
        ("device", paths::device(text, names)),
        ("interface", paths::interface(text, names)),
        ("bus", paths::bus(text, names)),
        ("label", paths::label(text, names)),
        ("uuid", paths::uuid(text, names)),
    ]
}

#[test]
fn no_spelling_of_a_secret_passes_a_rule() {
    let mut leaks = Vec::new();
    for spelling in spelt_otherwise(11) {
        for text in [spelling.clone(), format!("connect to host {spelling} port")] {
            let said = said_of(&text);
            let all: Vec<&str> = said.iter().map(|(_, said)| said.as_str()).collect();
            if left_of(&spelling, &all.join("…")).is_none() {
                continue;
            }
            let left = said.iter().filter(|(_, said)| left_of(&spelling, said).is_some());
            leaks.extend(left.map(|(rule, said)| format!("{rule}: {text} -> {said}")));
        }
    }
    assert!(leaks.is_empty(), "{} are left:\n{}", leaks.len(), leaks.join("\n"));
}
