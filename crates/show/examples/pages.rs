//! Writes the page of every example run into a directory, to be looked at in a browser:
//! `cargo run -p rubus-show --example pages -- /tmp/pages`.

use std::path::PathBuf;

use rubus_core::fixture;
use rubus_core::verdict::verdict;

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "pages".into()));
    std::fs::create_dir_all(&directory)?;
    let mut runs = fixture::suite_runs();
    runs.push(fixture::slow_sd_card_run());
    for run in runs {
        let path = directory.join(format!("{}.html", run.suite));
        std::fs::write(&path, rubus_show::page::render(&run, &verdict(&run)))?;
        println!("{}", path.display());
    }
    Ok(())
}
