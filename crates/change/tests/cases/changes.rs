//! What a change may overwrite: only the disk that was meant, and only what was on it when its loss was confirmed. The steps are
//! those of a change; the machine is this one.

use std::path::{Path, PathBuf};

use rubus_change::apply::{GivenAway, Site, StepRunner};
use rubus_change::fixture::plans::small_plan;
use rubus_change::guard::{self, Released};
use rubus_change::plan::volume::{DiskIdentity, FilesystemKind, NewFilesystem, Place};
use rubus_change::plan::{Action, Plan, Step as PlanStep};
use rubus_change::steps::Format;
use rubus_change::steps::{self, LiveStepRunner};
use rubus_host::Live;
use rubus_host::live::hands::LiveHands;

use super::fixtures::{Fixtures, MIB, differences, quietly, settle};
use super::{Case, Power, Step, Stop};

pub const CASES: &[Case] = &[
    ("another device under the name, before a program formats it", Power::Loop, exchanged_before),
    ("another device under the name, while a program formats it", Power::Loop, exchanged_during),
    ("a blank device that was put to use since it was given away", Power::Loop, used_since),
    ("another device of the same kind in a new boot", Power::Loop, another_boot),
];

/// A disk is detached while programs have it open, udev above all, only when the last one closes it.
const TRIES: u32 = 8;

fn exchanged_before(fixtures: &mut Fixtures) -> Step<String> {
    let (device, other) = released(fixtures)?;
    let node = device.node().display().to_string();
    exchange(fixtures, &node, &other)?;
    let mut is_run = false;
    let done = unchanged(fixtures, || {
        guard::while_the_same(&[device], Stop::Fail, || {
            is_run = true;
            quietly("mkfs.ext4", &["-q", "-F", &node]).map_err(Stop::Fail)
        })
    })?;
    match done {
        _ if is_run => Err(Stop::Fail("the program was run on it".into())),
        Ok(()) => Err(Stop::Fail("nothing was said of it".into())),
        Err(stop) => said(stop, "became another disk meanwhile"),
    }
}

fn exchanged_during(fixtures: &mut Fixtures) -> Step<String> {
    let (device, other) = released(fixtures)?;
    let node = device.node().display().to_string();
    let done = guard::while_the_same(
        &[device],
        |why| Stop::Fail(format!("said: {why}")),
        || exchange(fixtures, &node, &other),
    );
    match done {
        Ok(()) => Err(Stop::Fail("nothing was said of it".into())),
        Err(stop) => said(stop, "became another disk meanwhile"),
    }
}

/// A device that the guard let go, and the file of another one.
fn released(fixtures: &mut Fixtures) -> Step<(Released, PathBuf)> {
    let device = fixtures.blank(8)?;
    let other = fixtures.image("precious.img", 8 * MIB)?;
    fixtures.write(&other, 4 * MIB, b"precious")?;
    let claimed = fixtures.allowed(&device, None)?;
    let has_number = claimed.geometry().disk_sequence.is_some();
    let released = Released::of(claimed, Path::new(&device));
    if has_number {
        Ok((released, other))
    } else {
        Err(Stop::Skip("this kernel does not number its disks".into()))
    }
}

/// Gives the name of a loop device to another file.
fn exchange(fixtures: &mut Fixtures, device: &str, other: &Path) -> Step<()> {
    let file = other.display().to_string();
    for _ in 0..TRIES {
        settle();
        let _ = quietly("losetup", &["-d", device]);
        // Another program may have taken the name meanwhile; then it is another disk as well, but not this case's.
        if quietly("losetup", &[device, &file]).is_ok() {
            fixtures.detach_on_close(device, &file);
            return Ok(());
        }
    }
    Err(Stop::Fail(format!("{device} could not be given to {file}")))
}

fn used_since(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(24)?;
    let disk = identity(&device)?;
    fixtures.ext4(&device, "since")?;
    let asked = unchanged(fixtures, || format(&disk, &[]))?;
    let asked = said(asked.err().unwrap_or(NOTHING), "was not confirmed to be lost")?;
    let shown = identity(&device)?.contents;
    if !shown.iter().any(|what| what.contains("an ext4 filesystem \"since\"")) {
        return Err(Stop::Fail(format!("what is on it now: {shown:?}")));
    }
    // Now that the user was asked about what is there.
    format(&disk, &[given(&disk, &device)?])?;
    Ok(format!("{asked}, and formatted when that is confirmed"))
}

fn another_boot(fixtures: &mut Fixtures) -> Step<String> {
    // A size that no other disk of this machine has: nothing else tells loop devices apart in another boot.
    let bytes = 24 * MIB + 4096 * (u64::from(std::process::id()) % 4000 + 1);
    let attached = |fixtures: &mut Fixtures, name: &str| -> Step<(PathBuf, String)> {
        let image = fixtures.image(name, bytes)?;
        let device = fixtures.attach(&image, &[])?;
        fixtures.ext4(&device, name)?;
        Ok((image, device))
    };
    let (meant, device) = attached(fixtures, "meant")?;
    let mut disk = identity(&device)?;
    let mut consent = given(&disk, &device)?;
    let now = consent.boot.replace("the boot before".into());
    disk.boot_id.clone_from(&consent.boot);
    detach(&device)?;
    let (_, twin) = attached(fixtures, "precious")?;
    let asked = unchanged(fixtures, || format(&disk, std::slice::from_ref(&consent)))?;
    let asked = said(asked.err().unwrap_or(NOTHING), "was not confirmed to be lost")?;
    detach(&twin)?;
    // The very disk, with what was given away, but nothing proves that; then it is given away in this boot.
    fixtures.attach(&meant, &[])?;
    let meant_too = unchanged(fixtures, || format(&disk, std::slice::from_ref(&consent)))?;
    said(meant_too.err().unwrap_or(NOTHING), "was not confirmed to be lost")?;
    consent.boot = now;
    format(&disk, &[consent])?;
    Ok(format!("{asked}, and the one that was meant is formatted when that is confirmed again"))
}

const NOTHING: Stop = Stop::Fail(String::new());

/// Detaches a loop device for good.
fn detach(device: &str) -> Step<()> {
    settle();
    quietly("losetup", &["-d", device]).map_err(Stop::Fail)?;
    let name = device.trim_start_matches("/dev/");
    let backing = PathBuf::from(format!("/sys/block/{name}/loop/backing_file"));
    Fixtures::wait_for(|| !backing.exists());
    if backing.exists() { Err(Stop::Fail(format!("{device} stays attached"))) } else { Ok(()) }
}

fn identity(device: &str) -> Step<DiskIdentity> {
    settle();
    steps::identity(&Live::new(), Path::new(device)).map_err(|why| Stop::Fail(why.to_string()))
}

/// The user's word for what is on a device now.
fn given(disk: &DiskIdentity, device: &str) -> Step<GivenAway> {
    Ok(GivenAway {
        disk: disk.path.clone(),
        words: disk.confirmation.clone(),
        ends: Some(steps::fingerprint(Path::new(device)).map_err(Stop::Fail)?),
        boot: steps::boot_id(&Live::new()),
    })
}

/// The step of a change that makes an ext4 on a whole disk.
fn format(disk: &DiskIdentity, consents: &[GivenAway]) -> Step<()> {
    let action = Action::Format(Format {
        place: Place::Disk { disk: disk.clone() },
        filesystem: NewFilesystem {
            kind: FilesystemKind::Ext4,
            uuid: "3f1e9d0a-1c2b-4d5e-8f90-a1b2c3d4e5f6".into(),
            label: "new".into(),
            subvolumes: Vec::new(),
            mount_options: String::new(),
        },
    });
    let plan = Plan {
        steps: vec![PlanStep {
            id: "format".into(),
            why: "A case needs it.".into(),
            action: action.clone(),
        }],
        ..small_plan()
    };
    let mut site = Site {
        change: "0001-guard-case",
        directory: Path::new("/nonexistent"),
        steps: &plan.steps,
        before_trial: None,
        step: 0,
        is_begun_again: false,
        consents,
        top: "/".into(),
        tell: &mut |_| {},
    };
    settle();
    let done = LiveStepRunner::default().apply(&action, &mut site, &mut LiveHands::new());
    done.map(drop).map_err(|error| Stop::Fail(error.to_string()))
}

/// Does something that must not change any image of the fixtures; its result.
fn unchanged<T>(fixtures: &Fixtures, act: impl FnOnce() -> T) -> Step<T> {
    let before = fixtures.state()?;
    let done = act();
    let after = fixtures.state()?;
    if before == after {
        Ok(done)
    } else {
        let changed = differences(&before, &after);
        Err(Stop::Fail(format!("something was written: {changed:#?}")))
    }
}

/// That the reason of a failure was this.
fn said(stop: Stop, reason: &str) -> Step<String> {
    match stop {
        Stop::Fail(why) if why.contains(reason) => Ok(format!("refused: it {reason}")),
        other => Err(other),
    }
}
