//! Prints the table of fio's options for `docs/how-to/fio.md`.

use rubus_fio::job_file::options;

fn main() {
    let mut rows: Vec<String> = options::all()
        .map(|(names, option)| {
            let names: Vec<String> = names.split(' ').map(|name| format!("`{name}`")).collect();
            let (name, text) = (option.support.name(), option.support.text());
            format!("| {} | {name} | {text} |", names.join(" "))
        })
        .collect();
    rows.sort();
    println!("{}", rows.join("\n"));
}
