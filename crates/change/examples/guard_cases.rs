//! Runs the guard's cases on this machine, as root, and prints one line of the Test Anything
//! Protocol for each. Meant to be built static and copied to a machine with a kernel that has
//! what this one has not.
//!
//! `guard_cases [--require WORDS] [--only WORDS]`: words are loop, btrfs, md, dm, scan, vfat, nbd,
//! zram, targets, with commas between; or kernel for what a kernel must have beyond loop and btrfs; or all. A case of a
//! required kind that cannot run is a failure.
//! Tools: util-linux, e2fsprogs, dosfstools, fdisk (sfdisk), btrfs-progs, mdadm, dmsetup,
//! qemu-utils (qemu-nbd).
//!
//! Exit status: 0 everything that ran went as it should, 1 a case failed or a required one could
//! not run, 2 the command line makes no sense.

#[path = "../tests/cases/mod.rs"]
mod cases;

use cases::{Case, Power};

const POWERS: [Power; 9] = [
    Power::Loop,
    Power::Btrfs,
    Power::Md,
    Power::Dm,
    Power::Scan,
    Power::Vfat,
    Power::Nbd,
    Power::Zram,
    Power::Targets,
];

fn main() {
    if cases::uses::hold_if_asked() {
        return;
    }
    let (mut required, mut only) = (Vec::new(), POWERS.to_vec());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let words = arguments.next().and_then(|words| powers(&words));
        match (argument.as_str(), words) {
            ("--require", Some(words)) => required = words,
            ("--only", Some(words)) => only = words,
            _ => {
                eprintln!("usage: guard_cases [--require WORDS] [--only WORDS]");
                std::process::exit(2);
            }
        }
    }
    let chosen: Vec<Case> =
        cases::all().into_iter().filter(|case| only.contains(&case.1)).collect();
    let tally = cases::run(&chosen);
    let mut bad = !tally.failed.is_empty();
    for (name, power, why) in &tally.skipped {
        if required.contains(power) {
            eprintln!("required, but cannot run here: {name}: {why}");
            bad = true;
        }
    }
    std::process::exit(i32::from(bad));
}

fn powers(words: &str) -> Option<Vec<Power>> {
    match words {
        "all" => return Some(POWERS.to_vec()),
        "kernel" => return Some(POWERS.into_iter().filter(needs_a_kernel).collect()),
        _ => {}
    }
    let by_word = |word: &str| POWERS.into_iter().find(|power| power.word() == word);
    words.split(',').map(by_word).collect()
}

/// Whether not every machine that runs the tests has it.
fn needs_a_kernel(power: &Power) -> bool {
    !matches!(power, Power::Loop | Power::Btrfs)
}
