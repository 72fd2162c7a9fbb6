//! The guard's cases on a kernel that has what a test machine may lack: arrays, mappings, partition
//! scanning, FAT, network block devices, compressed RAM disks, NVMe and SCSI targets, USB gadgets,
//! and udev looking at every device.

use std::time::Duration;

use rubus_fixtures::skipped;
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::product::{can_boot, example_for};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_guard";
// Twice what they take beside other boards.
const LIMIT: Duration = Duration::from_secs(1800);

#[test]
fn guard_cases_that_only_a_debian_kernel_has() {
    run("--only kernel --require kernel", 15);
}

#[test]
fn guard_cases_on_a_debian_kernel() {
    run("--require all", 80);
}

fn run(arguments: &str, at_least: usize) {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let cases = match example_for(Board::Pc, "guard_cases") {
        Ok(path) => path,
        Err(error) => return skipped(TEST, &format!("{error:#}")),
    };
    let options = Options { push: vec![cases], ..Options::default() };
    let mut board = Session::boot(&Cache::of_this_machine(), Board::Pc, &options).unwrap();
    let command = format!("guard_cases {arguments}");
    let outcome = board.run(&command, "root", LIMIT).unwrap();
    let (said, complaint) = (outcome.text(), outcome.complaint_text());
    let not_ok = said.lines().filter(|line| !line.starts_with("ok "));
    let wrong = not_ok.collect::<Vec<_>>().join("\n");
    assert_eq!(outcome.status, 0, "{wrong}\n{complaint}");
    let passed = said.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(passed >= at_least, "only {passed} cases passed:\n{said}");
    board.switch_off().unwrap();
}
