//! Writes the page of every example run and advice into a directory, to be looked at in a browser:
//! `cargo run -p rubus-page --example pages -- /tmp/pages`.

use std::path::PathBuf;

use rubus_fixtures as fixture;
use rubus_verdict::verdict::verdict;

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "pages".into()));
    std::fs::create_dir_all(&directory)?;
    let mut runs = fixture::suite_runs();
    runs.push(fixture::slow_sd_card_run());
    let mut pages: Vec<(String, String)> = runs
        .into_iter()
        .map(|run| {
            let page = rubus_page::render(&run, &verdict(&run));
            (run.suite, page)
        })
        .collect();
    for advice in [rubus_advise::fixture::advice(), rubus_advise::fixture::swap_advice()] {
        let name = format!("advice-{}", advice.purpose.id());
        pages.push((name, rubus_page::advice::render(&advice, "")));
    }
    for (name, page) in pages {
        let path = directory.join(format!("{name}.html"));
        std::fs::write(&path, page)?;
        println!("{}", path.display());
    }
    Ok(())
}
