//! The guard on real loop devices. Needs root, loop devices, util-linux, e2fsprogs, dosfstools,
//! btrfs-progs and qemu-utils; what is missing is said. With `RUBUS_REQUIRE_ALL=1` a case that
//! cannot run is a failure. The cases that need RAID, device mapper and the like are run by the
//! program `guard_cases` on a machine that has them.

mod cases;

use cases::{Case, Power};

// The first test's other process is this program in another role, so there is no test harness.
fn main() {
    if cases::uses::hold_if_asked() {
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    // As in other test programs: words choose the cases whose names contain one of them.
    let here = |case: &Case| {
        let is_chosen = words.is_empty() || words.iter().any(|word| case.0.contains(*word));
        is_chosen && matches!(case.1, Power::Loop | Power::Btrfs)
    };
    let chosen: Vec<Case> = cases::all().into_iter().filter(here).collect();
    if arguments.iter().any(|word| word == "--list") {
        chosen.iter().for_each(|case| println!("{}: test", case.0));
        return;
    }
    let tally = cases::run(&chosen);
    for (name, _, why) in &tally.skipped {
        eprintln!("SKIPPED, so not proven: {name}: {why}");
    }
    let must_all = std::env::var_os("RUBUS_REQUIRE_ALL").is_some_and(|value| value == "1");
    let missing = must_all && !tally.skipped.is_empty();
    if missing {
        eprintln!("RUBUS_REQUIRE_ALL=1: a case that cannot run is a failure");
    }
    if !tally.failed.is_empty() || missing {
        std::process::exit(1);
    }
}
