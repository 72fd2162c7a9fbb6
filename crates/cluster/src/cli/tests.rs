//! What people read, and that bad input is refused.

use std::cell::RefCell;

use anyhow::bail;
use clap::Parser;

use super::*;

#[derive(Default)]
struct Outer {
    said: RefCell<String>,
    file: Option<String>,
}

impl Outside for Outer {
    fn read(&self, path: &Path) -> Result<String> {
        match &self.file {
            Some(text) => Ok(text.clone()),
            None => bail!("cannot read {}: no such file", path.display()),
        }
    }

    fn sizes_below(&self, directory: &Path) -> Result<Option<Vec<u64>>> {
        Ok((directory == Path::new("photos")).then(|| vec![4096, 4096, 5 << 20]))
    }

    fn run(&self, name: &str) -> Result<Run> {
        match name {
            "last" => Ok(rubus_fixtures::slow_sd_card_run()),
            "rbd" => {
                let mut run = rubus_fixtures::slow_sd_card_run();
                run.target.cluster = Some(rubus_fixtures::troubled_cluster());
                run.target.named = "rbd:rbd/disk".into();
                Ok(run)
            }
            _ => bail!("there is no run '{name}'"),
        }
    }

    fn page_of(&self, report: &Report) -> String {
        format!("page of {} boards", report.design.boards())
    }

    fn page_of_comparison(&self, comparison: &Comparison) -> String {
        format!("page of {} rows", comparison.rows.len())
    }

    fn write(&self, path: &Path, text: &str) -> Result<()> {
        self.say(&format!("[{} bytes to {}]\n", text.len().min(1), path.display()))
    }

    fn say_as_it_is(&self, text: &str) -> Result<()> {
        self.say(text)
    }

    fn say(&self, text: &str) -> Result<()> {
        self.said.borrow_mut().push_str(text);
        Ok(())
    }

    fn style(&self) -> Style {
        Style::PLAIN
    }
}

#[derive(Debug, Parser)]
struct Program {
    #[command(flatten)]
    cluster: Cluster,
}

fn says_with(outer: &Outer, line: &str) -> Result<Ended> {
    let words = ["rubus"].into_iter().chain(line.split_whitespace());
    run(&Program::try_parse_from(words)?.cluster, outer)
}

fn says(line: &str) -> String {
    let outer = Outer::default();
    let ended = says_with(&outer, line);
    match ended {
        Ok(ended) => format!("{}({ended:?})\n", outer.said.borrow()),
        Err(error) => format!("{error:#}\n"),
    }
}

const FOURTH: &str =
    "size --nodes 4 --disk 1TB --ec 3+1 --node-price 100 --disk-price 100 --power-price 25";

#[test]
fn the_fourth_document_is_answered() {
    insta::assert_snapshot!(says(FOURTH));
}

#[test]
fn a_cluster_that_heals_is_answered() {
    insta::assert_snapshot!(says(
        "size --nodes 5 --board mini-pc --disk 2TB --disk-kind ssd-plp --objects 4KiB:60%,64KiB:30%,4MiB:10% --ec 2+2 --fast-ec --disks 2"
    ));
}

#[test]
fn the_table_of_boards_fits_80_columns() {
    let said = says("boards");
    assert!(said.contains("mini-pc"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
}

#[test]
fn boards_that_are_too_small_are_a_no() {
    let said = says("size --nodes 4 --board pi3b+ --disk 1TB --disk-kind hdd");
    assert!(said.contains("\nIt cannot work: the boards have too little memory.\n"), "{said}");
    assert!(!said.contains("Cost and power"), "{said}");
    assert!(said.ends_with("(AnswerIsNo)\n"), "{said}");
}

#[test]
fn what_was_measured_replaces_what_is_assumed() {
    let said = says("size --nodes 4 --node-from last --disk 1TB");
    assert!(!said.contains("figures of the disks"), "{said}");
    assert!(said.contains("Disk figures: last, measured"), "{said}");
}

#[test]
fn what_a_cluster_gave_stands_beside_what_is_expected() {
    let said = says("size --nodes 4 --node-from last --disk 1TB --link 100Mbit --measured rbd");
    let start = said.find("Expected and measured").unwrap_or(0);
    let end = said.find("Rebuild and risk").unwrap_or(said.len());
    insta::assert_snapshot!(&said[start..end]);
    let refused = says("size --nodes 4 --disk 1TB --measured last");
    assert!(refused.contains("which is no cluster"), "{refused}");
}

#[test]
fn sizes_of_files_are_taken_from_a_directory() {
    let said = says("size --nodes 4 --disk 1TB --ec 2+1 --objects photos");
    assert!(said.contains("67 % of 4.00 KiB, 33 % of 5.00 MiB"), "{said}");
}

#[test]
fn a_file_has_the_same_names() {
    let outer = Outer {
        file: Some("nodes = 4\ndisk = '1TB'\nec = '3+1'\nnode-price = 100\ndisk-price = 100\npower-price = 25\n".into()),
        ..Outer::default()
    };
    assert_eq!(says_with(&outer, "size --file cluster.toml").unwrap(), Ended::Fine);
    assert_eq!(format!("{}(Fine)\n", outer.said.borrow()), says(FOURTH));
}

#[test]
fn bad_input_is_refused_in_words() {
    let lines = [
        "size",
        "size --nodes 4",
        "size --nodes 4 --disk 1TB --ec 4+2",
        "size --nodes 1 --disk 1TB",
        "size --nodes 4 --disk 1TB --ec 1+1",
        "size --nodes 4 --disk 1TB --ec 3+1 --fast-ec --release 20.2.3",
        "size --nodes 4 --disk 1TB --node-from nothing",
        "size --nodes 4 --disk 1TB --objects 4KiB:60%",
        "size --nodes 4 --disk 1TB --board pi9",
        "size --file missing.toml",
    ];
    let said: Vec<String> = lines.iter().map(|line| format!("> {line}\n{}", says(line))).collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn json_holds_every_figure_and_reads_back() {
    let said = says(&format!("{FOURTH} --json"));
    let text = said.trim_end().trim_end_matches("(Fine)");
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(value["schema"], 1);
    assert_eq!(value["cost"]["listed_total"], 825.0);
    assert_eq!(value["capacity"]["usable_bytes"]["value"], 2.55e12);
    for part in
        ["design", "capacity", "loss", "memory", "ceilings", "rebuild", "cost", "reservations"]
    {
        assert!(!value[part].is_null(), "{part}");
    }
}

#[test]
fn layouts_boards_and_ways_without_ceph_stand_in_one_table() {
    insta::assert_snapshot!(says(
        "compare --nodes 4 --board pi4-4gb --disk 1TB --node-price 100 --disk-price 100 --power-price 25"
    ));
}

#[test]
fn a_row_has_figures_or_why_it_is_impossible() {
    let said = says("compare --nodes 4 --disk 1TB --json");
    let value: serde_json::Value =
        serde_json::from_str(said.trim_end().trim_end_matches("(Fine)")).unwrap();
    let rows = value["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["figures"].is_object() != row["impossible"].is_string()));
    assert!(rows.iter().any(|row| row["impossible"].is_string()));
    assert!(says("compare --nodes 1 --disk 1TB").contains("cannot place"));
}

#[test]
fn a_cluster_is_described_for_cephadm() {
    insta::assert_snapshot!(says(
        "spec --nodes 4 --board pi4-8gb --disk 1TB --ec 2+1 --fast-ec --node-from last --host a=10.0.0.1,b=10.0.0.2,c,d --clients kernel"
    ));
}

#[test]
fn a_cluster_is_described_for_microceph() {
    insta::assert_snapshot!(says(
        "spec --nodes 3 --board pi5-8gb --disk 1TB --replica 3 --deployer microceph --release squid"
    ));
}

#[test]
fn files_go_into_a_directory() {
    let said = says("spec --nodes 3 --board pi4-8gb --disk 1TB --into here");
    assert!(said.contains("[1 bytes to here/cluster.yaml]"), "{said}");
    assert!(says("spec --nodes 4 --board pi3b+ --disk 1TB").contains("too small"));
}

#[test]
fn a_page_is_written_instead_of_a_text() {
    for verb in ["size", "compare"] {
        let said = says(&format!("{verb} --nodes 4 --board pi4-4gb --disk 1TB --html out.html"));
        assert_eq!(said, "[1 bytes to out.html]\n(Fine)\n");
    }
}
