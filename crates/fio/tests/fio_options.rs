//! `docs/how-to/fio.md` says of every option what the program does with it.

use std::collections::BTreeSet;

use rubus_fio::job_file::options;

const DOCUMENT: &str = include_str!("../../../docs/how-to/fio.md");

#[test]
fn the_document_has_every_option_as_it_is() {
    let start = DOCUMENT.find("## Every option").expect("the heading is there");
    let documented: BTreeSet<String> = DOCUMENT[start..]
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(str::to_string)
        .collect();
    let real: BTreeSet<String> = options::all()
        .map(|(names, option)| {
            let names: Vec<String> = names.split(' ').map(|name| format!("`{name}`")).collect();
            let (name, text) = (option.support.name(), option.support.text());
            format!("| {} | {name} | {text} |", names.join(" "))
        })
        .collect();
    let missing: Vec<_> = real.difference(&documented).collect();
    let stale: Vec<_> = documented.difference(&real).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "`cargo run -p rubus-fio --example fio-options` prints the table\n\
         missing: {missing:#?}\nstale: {stale:#?}"
    );
}
