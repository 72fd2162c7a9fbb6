//! `docs/data/fio-options.tsv` says of every option what the program does with it.

use std::collections::BTreeSet;

use rubus_fio::job_file::options;

const TABLE: &str = include_str!("../../../docs/data/fio-options.tsv");

#[test]
fn the_table_has_every_option_as_it_is() {
    let documented: BTreeSet<String> = TABLE.lines().skip(1).map(str::to_string).collect();
    let real: BTreeSet<String> = options::all()
        .map(|(names, option)| {
            format!("{names}\t{}\t{}", option.support.name(), option.support.text())
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
