//! Prints the table of fio's options, `docs/data/fio-options.tsv`.

use rubus_fio::job_file::options;

fn main() {
    let mut rows: Vec<String> = options::all()
        .map(|(names, option)| {
            format!("{names}\t{}\t{}", option.support.name(), option.support.text())
        })
        .collect();
    rows.sort();
    println!("option\tsupport\ttext\n{}", rows.join("\n"));
}
