//! Which device tree a board needs, among those of its relatives.

use super::*;

/// How a card with these device trees starts in a board.
fn with_trees(board: &str, trees: &[&str]) -> StartChain {
    let mut facts = super::board();
    let mut partition = BootPartition::default();
    for name in ["bootcode.bin", "start.elf", "start4.elf", "fixup.dat", "fixup4.dat"] {
        partition.add(name, 7000);
    }
    for name in ["kernel8.img", "initramfs8", "overlays/bcm2712d0.dtbo"] {
        partition.add(name, 1000);
    }
    partition.put("config.txt", CONFIG);
    partition.put("cmdline.txt", CMDLINE);
    for tree in trees {
        partition.add(tree, 50_000);
    }
    facts.partition = partition;
    facts.model = Model::of_filter(board).expect("a board").0;
    StartChain::of(&facts)
}

#[test]
fn a_board_starts_with_its_own_tree_and_not_with_that_of_a_relative() {
    for (board, own, relatives) in [
        ("pi4", "bcm2711-rpi-4-b.dtb", &["bcm2711-rpi-400.dtb", "bcm2711-rpi-cm4.dtb"][..]),
        ("pi400", "bcm2711-rpi-400.dtb", &["bcm2711-rpi-cm4.dtb"]),
        ("cm4", "bcm2711-rpi-cm4.dtb", &["bcm2711-rpi-cm4s.dtb"]),
        ("pi3", "bcm2710-rpi-3-b.dtb", &["bcm2710-rpi-3-b-plus.dtb", "bcm2710-rpi-cm3.dtb"]),
        ("pi3", "upstream/bcm2837-rpi-3-b.dtb", &["bcm2837-rpi-3-b-plus.dtb"]),
        ("cm3", "bcm2837-rpi-cm3-io3.dtb", &["bcm2710-rpi-3-b.dtb"]),
        ("pi02", "bcm2710-rpi-zero-2.dtb", &["bcm2710-rpi-3-b.dtb"]),
        ("pi02", "bcm2837-rpi-zero-2-w.dtb", &["bcm2710-rpi-3-b.dtb"]),
        ("pi5", "bcm2712d0-rpi-5-b.dtb", &["bcm2712-rpi-500.dtb"]),
        ("pi500", "bcm2712-rpi-500.dtb", &["bcm2712-rpi-5-b.dtb"]),
    ] {
        let chain = with_trees(board, relatives);
        assert_eq!(chain.outcome(), Outcome::StopsAt(Stage::Kernel), "{board}, {relatives:?}");
        assert_eq!(chain.certainty(), Certainty::Likely, "{board}, {relatives:?}");
        assert!(chain.is_for_others(), "{board}, {relatives:?}");
        assert_eq!(with_trees(board, &[own]).outcome(), Outcome::Starts, "{board}, {own}");
    }
}

/// raspberrypi/firmware, issue 943.
#[test]
fn a_tree_that_the_firmware_takes_in_place_of_the_boards_own_starts_it() {
    let chain = with_trees("pi3+", &["bcm2710-rpi-3-b.dtb"]);
    assert_eq!((chain.outcome(), chain.certainty()), (Outcome::Starts, Certainty::Likely));
}

#[test]
fn age_is_named_only_of_boards_that_came_later() {
    let why = |board: &str, trees: &[&str]| {
        let chain = with_trees(board, trees);
        chain.deciding().and_then(|link| link.stop.clone()).expect("it stops").why
    };
    for (board, trees, reason) in [
        ("pi4", &["bcm2711-rpi-400.dtb"][..], "for other boards, or damaged"),
        ("pi4", &["bcm2712-rpi-5-b.dtb"], "for other boards, or damaged"),
        ("pi4", &["bcm2710-rpi-3-b.dtb"], "older than the board, or damaged"),
        ("pi5", &["bcm2712-rpi-cm5-cm5io.dtb"], "for other boards, or damaged"),
        ("pi02", &["bcm2710-rpi-3-b.dtb"], "older than the board, or for others"),
        ("cm5", &["bcm2712-rpi-5-b.dtb"], "older than the board, or for others"),
    ] {
        let why = why(board, trees);
        assert!(why.ends_with(reason), "{board}: {why}");
    }
}

#[test]
fn a_system_that_runs_with_a_relatives_tree_is_not_understood() {
    let mut facts = super::board();
    facts.model = Model::of_filter("pi3").expect("a board").0;
    let mut partition = BootPartition::default();
    for name in ["bootcode.bin", "start.elf", "kernel8.img", "initramfs8", "bcm2710-rpi-cm3.dtb"] {
        partition.add(name, 7000);
    }
    partition.add("fixup.dat", 7000);
    partition.put("config.txt", CONFIG);
    partition.put("cmdline.txt", CMDLINE);
    facts.partition = partition;
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Kernel));
    let release = Some("6.12.47+rpt-rpi-v8".into());
    facts.running = Some(Running { release, ..Running::default() });
    let chain = StartChain::of(&facts);
    assert_eq!(chain.outcome(), Outcome::NotCertainAfter(Stage::Settings));
    let found = &chain.doubt().expect("it is not certain").found;
    assert!(found.contains("no device tree for this board (bcm2710-rpi-3-b.dtb)"), "{found}");
}
