//! What people read is in the field's words: help, pages, every sentence that the program has in its sources, and the
//! comments.

use clap::CommandFactory;

use super::Args;
use super::documented::{documents, sources};

/// Paraphrases that a reader stumbles over, where the field has a word.
const PARAPHRASES: [&str; 16] = [
    "somebody",
    "nobody",
    "whoever",
    "everybody",
    "that which",
    "those who",
    "gone on with",
    "go on with",
    "goes on with",
    "so many",
    "so long",
    "anew",
    "be had",
    "is wished",
    "taken away",
    "thrown away",
];

/// Pages that quote a paraphrase: of the program's output, its options or its tables.
const QUOTING_PAGES: [&str; 3] =
    ["docs/reference/findings.md", "docs/how-to/nbd-copy.md", "docs/how-to/nbd-serve.md"];

/// The paraphrases in a text, as whole words.
fn paraphrases(text: &str) -> Vec<&'static str> {
    let text = text.to_lowercase();
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    let is_in = |phrase: &&str| {
        text.match_indices(*phrase).any(|(start, found)| {
            let (before, after) = (&text[..start], &text[start + found.len()..]);
            !is_letter(before.chars().next_back()) && !is_letter(after.chars().next())
        })
    };
    PARAPHRASES.into_iter().filter(is_in).collect()
}

/// Every help text of a command and those below it, with its path.
fn help_texts(command: &clap::Command, above: &str) -> Vec<(String, String)> {
    let path = format!("{above} {}", command.get_name());
    let mut texts: Vec<_> = command
        .get_arguments()
        .flat_map(|argument| [argument.get_help(), argument.get_long_help()])
        .chain([command.get_about(), command.get_long_about()])
        .flatten()
        .map(|text| (path.clone(), text.to_string()))
        .collect();
    for below in command.get_subcommands() {
        texts.extend(help_texts(below, &path));
    }
    texts
}

#[test]
fn help_and_pages_have_the_fields_words() {
    let mut texts = help_texts(&Args::command(), "");
    assert!(texts.len() > 200, "the help texts were not found");
    for (path, text) in documents() {
        if !QUOTING_PAGES.iter().any(|page| path.ends_with(page)) {
            texts.push((path.display().to_string(), text));
        }
    }
    let faults: Vec<_> = texts
        .iter()
        .flat_map(|(place, text)| paraphrases(text).into_iter().map(move |phrase| (place, phrase)))
        .map(|(place, phrase)| format!("{place}: '{phrase}'"))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_paraphrase_is_found() {
    assert_eq!(paraphrases("Somebody sits before it"), ["somebody"]);
    assert!(paraphrases("those whose parents have ended").is_empty());
}

/// A sentence in a source with its file.
struct Sentence {
    file: String,
    text: String,
}

/// The strings of a source that are sentences or parts of them, as the compiler reads them.
fn strings(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(start) = rest.find(['"', '\'', '/']) {
        rest = &rest[start..];
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if let Some(character) = ["'\"'", "'\\\"'", "'\\''", "'\\\\'"]
            .iter()
            .find(|character| rest.starts_with(**character))
        {
            rest = &rest[character.len()..];
        } else if let Some(inside) = rest.strip_prefix('"') {
            let mut is_escaped = false;
            let end = inside.find(|c| {
                let is_end = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                is_end
            });
            let end = end.unwrap_or(inside.len());
            found.push(joined(&inside[..end]));
            rest = inside.get(end + 1..).unwrap_or("");
        } else {
            rest = &rest[1..];
        }
    }
    found
}

/// A string without its line breaks that are none.
fn joined(literal: &str) -> String {
    let mut parts = literal.split("\\\n");
    let first = parts.next().unwrap_or("").to_string();
    parts.fold(first, |text, part| text + part.trim_start())
}

/// The sentences in the program's sources. What only tests say is left out.
fn sentences() -> Vec<Sentence> {
    let is_of_a_test = |name: &str| {
        let parts = ["test", "fixture", "benches", "examples", "chaos", "words.rs"];
        parts.iter().any(|part| name.contains(part))
    };
    let said = sources().into_iter();
    said.filter(|(file, _)| !is_of_a_test(file))
        .flat_map(|(file, source)| sentences_of(&file, &source))
        .collect()
}

fn sentences_of(file: &str, source: &str) -> Vec<Sentence> {
    let said = source.split("#[cfg(test)]\nmod tests {").next();
    let texts = strings(said.unwrap_or_default()).into_iter();
    texts
        .filter(|text| text.contains(' '))
        .map(|text| Sentence { file: file.to_string(), text })
        .collect()
}

/// Words of the longest part of a text between full stops, semicolons and line ends.
fn longest_sentence(text: &str) -> usize {
    let text = text.replace("\\n", "\n").replace([';', ':', '?', '!'], "\n");
    let parts = text.replace(". ", "\n");
    let counts = parts.lines().map(|part| part.split_whitespace().count());
    counts.max().unwrap_or(0)
}

/// Words of a sentence that a reader still follows.
const MAX_WORDS: usize = 34;

#[test]
fn the_programs_sentences_are_short_and_in_the_fields_words() {
    let sentences = sentences();
    assert!(sentences.len() > 5000, "the sources were not found");
    let is_sql =
        |text: &str| ["CREATE TABLE", "INSERT INTO"].iter().any(|word| text.contains(word));
    let faults: Vec<_> = sentences
        .iter()
        .filter(|sentence| !is_sql(&sentence.text))
        .filter_map(|Sentence { file, text }| {
            let words = longest_sentence(text);
            match paraphrases(text).first() {
                Some(phrase) => Some(format!("{file}: '{phrase}' in: {text}")),
                None if words > MAX_WORDS => Some(format!("{file}: {words} words in: {text}")),
                None => None,
            }
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// An installation is the program alone: its texts name verbs and words of the help, not files of the sources.
#[test]
fn no_text_sends_to_a_file_of_the_documentation() {
    let places = ["docs/how-to", "docs/explanation", "docs/tutorials"];
    let said = sentences().into_iter().map(|Sentence { file, text }| (file, text));
    let faults: Vec<_> = said
        .chain(help_texts(&Args::command(), ""))
        .filter(|(_, text)| places.iter().any(|place| text.contains(place)))
        .map(|(place, text)| format!("{place}: {text}"))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The comments of a source, each with the number of its first line; lines that follow one another are one comment.
fn comments(source: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (index, line) in source.lines().enumerate() {
        let Some(text) = line.trim_start().strip_prefix("//") else {
            is_open = false;
            continue;
        };
        let text = text.trim_start_matches(['/', '!']).trim();
        match found.last_mut() {
            Some((_, comment)) if is_open => *comment += &format!(" {text}"),
            _ => found.push((index + 1, text.to_string())),
        }
        is_open = true;
    }
    found
}

#[test]
fn comments_have_the_fields_words() {
    let (mut seen, mut faults) = (0, Vec::new());
    for (file, source) in sources() {
        for (line, comment) in comments(&source) {
            seen += 1;
            let phrases = paraphrases(&comment).into_iter();
            faults.extend(phrases.map(|phrase| format!("{file}:{line}: '{phrase}'")));
        }
    }
    assert!(seen > 20_000, "the sources were not found: {seen} comments");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_comment_is_read_over_its_lines() {
    let source = "/// So\n/// many.\nlet a = 1;\n    // Why.\n";
    assert_eq!(comments(source), [(1, "So many.".to_string()), (4, "Why.".to_string())]);
}

#[test]
fn the_strings_of_a_source_are_found() {
    let source = r#"// "a comment" isn't one
let quote = '"'; let name = "first"; say("it \
             goes on \"here\"")"#;
    assert_eq!(strings(source), ["first", "it goes on \\\"here\\\""]);
    assert_eq!(longest_sentence("One two three. Four five"), 3);
}
