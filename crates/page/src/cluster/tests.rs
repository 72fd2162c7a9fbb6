//! What a page of a cluster must have.

use rubus_cluster::compare::compare;
use rubus_cluster::report::Report;
use rubus_cluster::wishes::Wishes;

fn wishes() -> Wishes {
    let file = "nodes = 4\nboard = \"pi4-4gb\"\ndisk = \"1TB\"\nobjects = \"4KiB:60%,4MiB:40%\"\n";
    Wishes::parse(file).unwrap()
}

#[test]
fn a_sized_cluster_has_every_section_and_names_the_pipe_that_binds() {
    let report = Report::of(wishes().design(None).unwrap()).unwrap();
    let page = super::size::render(&report, "0");
    for words in [
        "are usable.",
        "Uncertain: the disks were not measured",
        "id=\"pipes\"",
        "id=\"ceilings\"",
        "id=\"capacity\"",
        "id=\"cost\"",
        "What it forgot",
        "Put the monitor's store on the SSD",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("badge\">binds").count(), 2);
    for ceiling in &report.ceilings {
        let name = ceiling.work.name().replace(' ', "\u{a0}");
        assert!(page.contains(&name), "{name}");
    }
    assert!(page.contains("\"capacity\":"), "its figures can be read back");
}

#[test]
fn a_comparison_has_each_layout_also_those_that_are_impossible() {
    let comparison = compare(&wishes(), None).unwrap();
    let page = super::comparison::render(&comparison, "0");
    for row in &comparison.rows {
        assert!(page.contains(&row.name), "{}", row.name);
    }
    assert!(page.contains("Impossible: cannot place EC 4+2 fast"));
    assert!(page.contains("Cheapest that heals by itself"), "{page}");
}
