//! The `pc` board with three USB disks, two of them on one bus, whose limits are set from outside; and arrays that the recipe
//! `raid0` makes of them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::board::{Board, Throttle};
use crate::cache::Cache;
use crate::kit::{Kit, UsbDisk};
use crate::mounted;
use crate::session::{Options, Session};

/// The bus of each disk.
pub const BUS_OF_DISK: [usize; 3] = [0, 0, 1];
/// Where an array is mounted.
pub const MOUNTED_AT: &str = "/mnt/fast";

const DISK_BYTES: u64 = 512 << 20;
/// For what takes seconds on a free machine.
const SOON: Duration = Duration::from_secs(300);

/// A running board. Dropping it cuts its power.
#[derive(Debug)]
pub struct RaidBoard {
    session: Session,
    disks: [String; 3],
    // Behind the session: the emulator has its files open.
    _kit: Kit,
}

impl RaidBoard {
    /// Starts a board with this `rubus`; nothing is limited yet.
    ///
    /// # Errors
    /// When the board's disks cannot be built or it does not start.
    pub fn boot(cache: &Cache, rubus: PathBuf) -> Result<RaidBoard> {
        let disk = |number: usize| UsbDisk::blank(number, DISK_BYTES).on_bus(BUS_OF_DISK[number]);
        let kit = Kit::temporary(cache, Board::Pc, &[disk(0), disk(1), disk(2)])?;
        let options = Options { push: vec![rubus], ..Options::default() };
        let mut session = Session::boot_kit(cache, &kit, &options)?;
        let disks = [session.usb_device(0)?, session.usb_device(1)?, session.usb_device(2)?];
        Ok(RaidBoard { session, disks, _kit: kit })
    }

    /// Limits each disk and each bus from now on; `None` is no limit.
    ///
    /// # Errors
    /// When the emulator refuses.
    pub fn limit(&mut self, disk: Option<Throttle>, bus: Option<Throttle>) -> Result<()> {
        for number in 0..self.disks.len() {
            self.session.throttle_usb(number, disk)?;
        }
        for number in 0..Board::Pc.usb_buses() {
            self.session.throttle_bus(number, bus)?;
        }
        Ok(())
    }

    /// The board's names of some disks.
    #[must_use]
    pub fn nodes(&self, disks: &[usize]) -> Vec<String> {
        disks.iter().map(|&n| self.disks[n].clone()).collect()
    }

    /// Runs a script as root that must succeed; gives its standard output.
    ///
    /// # Errors
    /// When it fails.
    pub fn must(&mut self, script: &str) -> Result<String> {
        self.session.must(script, "root", SOON)
    }

    /// Measures the jobs of a job file on a directory or a device of the board, or on those that the jobs name; gives the run.
    ///
    /// # Errors
    /// When measuring fails.
    pub fn bench(&mut self, jobs: &str, target: Option<&str>) -> Result<Value> {
        self.must(&format!("cat >/run/jobs.fio <<'END'\n{jobs}\nEND\n"))?;
        let target = target.unwrap_or_default();
        // What waits to be written to the card, which keeps the processor busy, would be written while something is measured.
        self.must("sync")?;
        self.json(&format!(
            "rubus bench {target} --fio-job /run/jobs.fio --quiet --no-html --json -"
        ))
    }

    /// What the recipe says of an array of these disks before it makes it.
    ///
    /// # Errors
    /// When there is no plan.
    pub fn plan(&mut self, disks: &[usize]) -> Result<Value> {
        let wishes = self.wishes(disks);
        self.json(&format!("rubus plan raid0 {wishes} --json"))
    }

    /// Makes the array of a plan and mounts it at [`MOUNTED_AT`]; gives its node.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_array(&mut self, disks: &[usize], plan: &Value) -> Result<String> {
        let wishes = self.wishes(disks);
        let losses = losses(plan);
        self.must(&format!("rubus apply raid0 {wishes} --yes{losses}"))?;
        Ok(mounted::at(&mut self.session, MOUNTED_AT)?.source)
    }

    /// Takes the array back.
    ///
    /// # Errors
    /// When that fails.
    pub fn take_back(&mut self) -> Result<()> {
        self.must("rubus undo --yes").map(|_| ())
    }

    /// Switches the board off in the proper way.
    ///
    /// # Errors
    /// When it does not go off by itself.
    pub fn switch_off(self) -> Result<()> {
        self.session.switch_off()
    }

    fn wishes(&self, disks: &[usize]) -> String {
        format!("devices={} at={MOUNTED_AT}", self.nodes(disks).join(","))
    }

    fn json(&mut self, script: &str) -> Result<Value> {
        let text = self.must(script)?;
        serde_json::from_str(&text).with_context(|| format!("{script:?} gave no JSON: {text}"))
    }
}

/// The words with which the loss of what a plan overwrites is confirmed: a disk that was in an array before holds its remains.
fn losses(plan: &Value) -> String {
    let steps = plan["steps"].as_array().into_iter().flatten();
    let lost = steps.filter_map(|step| step["action"]["disk"]["confirmation"].as_str());
    lost.map(|words| format!(" --i-will-lose-everything-on={words}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_disks_that_hold_something_are_confirmed() {
        let plan = json!({"steps": [
            {"action": {"disk": {"confirmation": "4C53"}}},
            {"action": {"disk": {"confirmation": null}}},
            {"action": {"text": "x"}},
        ]});
        assert_eq!(losses(&plan), " --i-will-lose-everything-on=4C53");
        assert_eq!(losses(&json!({})), "");
    }
}
