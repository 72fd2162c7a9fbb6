//! The guard's cases on real devices: loop devices over files of a temporary directory, with real
//! filesystems, swap areas, arrays and mappings on them.
//!
//! Shared by the test `loop_guard` and the program `guard_cases`, which can be copied to another
//! machine. Each case builds what it needs in a [`fixtures::Fixtures`], asks the guard, and has the fixtures
//! check that not a byte of any image and no entry of `/dev` changed. The fixtures take everything
//! down again, whatever happened.

pub mod changes;
pub mod contents;
pub mod exporters;
pub mod fixtures;
pub mod kernel;
pub mod nodes;
pub mod races;
pub mod uses;

use fixtures::Fixtures;

/// Why a case ended before its end.
#[derive(Debug)]
pub enum Stop {
    /// This machine cannot run it: a tool or a part of the kernel is missing.
    Skip(String),
    /// The guard answered wrongly, or something could not be built that should have been.
    Fail(String),
}

/// What a step of a case gives.
pub type Step<T> = Result<T, Stop>;

/// What a case needs beyond root and loop devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// Nothing: any Linux with the tools of util-linux, e2fsprogs and dosfstools.
    Loop,
    /// btrfs in the kernel and its tools.
    Btrfs,
    /// Software RAID and mdadm.
    Md,
    /// Device mapper and dmsetup.
    Dm,
    /// The kernel's own reading of partition tables.
    Scan,
    /// FAT in the kernel.
    Vfat,
    /// Network block devices and qemu-nbd.
    Nbd,
    /// Compressed RAM disks.
    Zram,
    /// The kernel's own exporters: NVMe and SCSI targets, USB gadgets.
    Targets,
}

impl Power {
    /// The word that stands for it on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Power::Loop => "loop",
            Power::Btrfs => "btrfs",
            Power::Md => "md",
            Power::Dm => "dm",
            Power::Scan => "scan",
            Power::Vfat => "vfat",
            Power::Nbd => "nbd",
            Power::Zram => "zram",
            Power::Targets => "targets",
        }
    }
}

/// One case: its name, what it needs, and what it does. It returns the guard's answer in short.
pub type Case = (&'static str, Power, fn(&mut Fixtures) -> Step<String>);

/// All cases, in the order in which they run.
pub fn all() -> Vec<Case> {
    [
        nodes::CASES,
        contents::CASES,
        uses::CASES,
        races::CASES,
        exporters::CASES,
        changes::CASES,
        kernel::CASES,
    ]
    .concat()
}

/// How many cases ended how.
#[derive(Debug, Default)]
pub struct Tally {
    /// Names of the cases that went as they should.
    pub passed: Vec<&'static str>,
    /// Names and reasons of those that this machine cannot run.
    pub skipped: Vec<(&'static str, Power, String)>,
    /// Names and reasons of those that went wrong.
    pub failed: Vec<(&'static str, String)>,
}

/// Runs cases one after the other and prints a line of the Test Anything Protocol for each.
pub fn run(cases: &[Case]) -> Tally {
    let mut tally = Tally::default();
    println!("TAP version 13");
    println!("1..{}", cases.len());
    for (index, (name, power, case)) in cases.iter().enumerate() {
        let number = index + 1;
        let ended = match Fixtures::new() {
            Ok(mut fixtures) => {
                let ended = case(&mut fixtures);
                let left_behind = fixtures.close();
                match (ended, left_behind) {
                    (Ok(_), Err(why)) => Err(Stop::Fail(format!("left behind: {why}"))),
                    (ended, _) => ended,
                }
            }
            Err(stop) => Err(stop),
        };
        match ended {
            Ok(answer) => {
                println!("ok {number} - {name}: {answer}");
                tally.passed.push(name);
            }
            Err(Stop::Skip(why)) => {
                println!("ok {number} - {name} # SKIP ({}) {why}", power.word());
                tally.skipped.push((name, *power, why));
            }
            Err(Stop::Fail(why)) => {
                println!("not ok {number} - {name}");
                why.lines().for_each(|line| println!("#   {line}"));
                tally.failed.push((name, why));
            }
        }
    }
    println!(
        "# {} passed, {} failed, {} skipped",
        tally.passed.len(),
        tally.failed.len(),
        tally.skipped.len()
    );
    tally
}
