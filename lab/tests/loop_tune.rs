//! `rubus tune` on a real filesystem: a setting of known effect is found, and a kill leaves every setting as it was.
//!
//! The device lets few reads pass in a second, so that what is read ahead in larger pieces comes faster: the one effect that
//! there is.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::program::{Answer, Home, binary};
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{BlockGroup, FilesystemKind, Limits, SmallFilesystem};
use serde_json::Value;

const NEEDS: [Need; 3] = [Need::Root, Need::Loop, Need::BlockThrottle];
const SIZE_BYTES: u64 = 900 << 20;
/// Looks for something that is to happen, a fifth of a second apart.
const LOOKS: usize = 300;

/// A filesystem on a loop device, whose settings a trial may change, and the trial's own directory.
struct Scene {
    filesystem: SmallFilesystem,
    home: Home,
    group: BlockGroup,
}

impl Scene {
    fn new() -> Self {
        let filesystem =
            SmallFilesystem::new(FilesystemKind::Ext4, SIZE_BYTES).expect("a filesystem");
        let group = BlockGroup::new().expect("a control group");
        let number = filesystem.device().expect("a device").number().expect("a number");
        let limits = Limits { read_iops: Some(400), ..Limits::default() };
        group.limit(number, limits).expect("a limit");
        let scene = Scene { filesystem, home: Home::new(), group };
        std::fs::write(scene.setting("read_ahead_kb"), "128").expect("a read-ahead");
        scene
    }

    fn setting(&self, name: &str) -> PathBuf {
        let device = self.filesystem.device().expect("a device").path();
        let disk = device.file_name().expect("a name");
        PathBuf::from("/sys/block").join(disk).join("queue").join(name)
    }

    fn settings(&self) -> Vec<String> {
        let names = ["scheduler", "read_ahead_kb", "nr_requests"];
        let read = |name| std::fs::read_to_string(self.setting(name)).expect("a setting");
        names.into_iter().map(read).collect()
    }

    fn tune(&self, arguments: &[&str]) -> Command {
        let mut command = self.group.command(binary());
        self.home.adopt(&mut command);
        command.env("RUBUS_CHANGES", self.home.path().join("changes"));
        command.arg("tune").args(arguments);
        command
    }

    /// Waits until the settings are these, or others.
    fn wait_for(&self, settings: &[String], is_so: bool) {
        for _ in 0..LOOKS {
            if (self.settings() == settings) == is_so {
                return;
            }
            sleep(Duration::from_millis(200));
        }
        panic!("{:?} after {LOOKS} looks", self.settings());
    }
}

/// A trial in the background; it does not outlive the test.
struct Trial(Child);

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_kill_in_the_middle_leaves_the_settings_as_they_were() {
    let _turn = take_turns();
    if !can_run("tune and a kill", &NEEDS) {
        return;
    }
    let scene = Scene::new();
    let before = scene.settings();
    let place = scene.filesystem.path().display().to_string();
    let mut trial = scene.tune(&[&place, "--time", "10m", "--yes"]);
    let trial = trial.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut trial = Trial(trial);
    scene.wait_for(&before, false);
    trial.0.kill().expect("a kill");
    scene.wait_for(&before, true);
    let again = Answer::of(scene.tune(&["--restore"]).output().expect("it starts"));
    assert_eq!(scene.settings(), before, "{}", again.stdout);
}

#[test]
fn the_one_setting_with_an_effect_is_named() {
    let _turn = take_turns();
    if !can_run("tune on a device of known truth", &NEEDS) {
        return;
    }
    let scene = Scene::new();
    let before = scene.settings();
    let place = scene.filesystem.path().display().to_string();
    let mut command = scene.tune(&[&place, "--time", "5m", "--yes", "--json"]);
    let answer = Answer::of(command.output().expect("it starts")).json();
    assert_eq!(scene.settings(), before);
    let tried = answer["candidates"].as_array().expect("what was tried");
    let helping: Vec<&Value> = tried.iter().filter(|one| one["is_winner"] == true).collect();
    report(&format!("tune: {} of {} values help", helping.len(), tried.len()));
    assert!(!helping.is_empty(), "{answer}");
    assert!(helping.iter().all(|one| one["setting"] == "read-ahead"), "{answer}");
}
