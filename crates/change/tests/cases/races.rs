//! What changes while the guard looks. The moment is chosen by a view of the machine's files that
//! does something when a certain file is read for the n-th time.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use rubus_host::{Files, Live, ReadError, Space};

use super::fixtures::{Fixtures, quietly, refused, settle};
use super::{Case, Power, Step, Stop};

pub const CASES: &[Case] = &[
    ("a device that goes away after the first look", Power::Loop, detached),
    ("a mount during the first look", Power::Loop, mount_first),
    ("a mount during the second look", Power::Loop, mount_second),
    ("a loop device put over it during the second look", Power::Loop, stacked),
    ("a filesystem made during the first look", Power::Loop, formatted),
    ("a node exchanged during the first look", Power::Loop, exchanged),
    ("a table of mounts that cannot be read", Power::Loop, blind),
    ("a device that udev examines until it has settled", Power::Loop, examined),
];

type Action = Box<dyn FnOnce()>;

/// The live machine, with an action before the n-th question about a path.
struct Meanwhile {
    path: PathBuf,
    countdown: Cell<u32>,
    action: RefCell<Option<Action>>,
}

impl Meanwhile {
    fn new(path: &str, nth: u32, action: impl FnOnce() + 'static) -> Self {
        Meanwhile {
            path: path.into(),
            countdown: Cell::new(nth),
            action: RefCell::new(Some(Box::new(action))),
        }
    }

    fn before(&self, path: &Path) {
        if path != self.path {
            return;
        }
        self.countdown.set(self.countdown.get().saturating_sub(1));
        if self.countdown.get() == 0 {
            if let Some(action) = self.action.borrow_mut().take() {
                action();
            }
        }
    }

    /// An action that never ran proves nothing.
    fn must_have_happened(&self) -> Step<()> {
        match &*self.action.borrow() {
            None => Ok(()),
            Some(_) => Err(Stop::Fail(format!("{} was not read", self.path.display()))),
        }
    }
}

impl Files for Meanwhile {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        self.before(path);
        Live.read_prefix(path, limit)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        self.before(path);
        Live.list(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        self.before(path);
        Live.real_path(path)
    }

    fn space(&self, path: &Path) -> Result<Space, ReadError> {
        Live.space(path)
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ReadError> {
        Live.ask(program, arguments)
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        Live.mode(path)
    }

    fn keeps_modes(&self, path: &Path) -> bool {
        Live.keeps_modes(path)
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        Live.link(path)
    }

    fn firmware_word(&self, tag: u32) -> Result<u32, ReadError> {
        Live.firmware_word(tag)
    }
}

const MOUNTS: &str = "/proc/self/mountinfo";
const BLOCK: &str = "/sys/block";

/// udev may have the device open just then, and while it has, the device does not go away; then it is done again.
fn detached(fixtures: &mut Fixtures) -> Step<String> {
    const TRIES: u32 = 8;
    for _ in 0..TRIES {
        settle();
        if let Some(said) = detached_once(fixtures)? {
            return Ok(said);
        }
    }
    Err(Stop::Fail(format!("it was allowed {TRIES} times")))
}

/// What was said of a device that went away; nothing when it was allowed.
fn detached_once(fixtures: &mut Fixtures) -> Step<Option<String>> {
    let device = fixtures.blank(8)?;
    let own = device.clone();
    // While the guard looks, the device is only marked: it goes when the look lets go of it.
    let files = Meanwhile::new(MOUNTS, 1, move || {
        let _ = quietly("losetup", &["-d", &own]);
    });
    let answer = fixtures.ask_through(&files, &device, None)?;
    files.must_have_happened()?;
    let text = match answer {
        Ok(_) => return Ok(None),
        Err(refusal) => refusal.to_string(),
    };
    if text.contains("no medium") || text.contains("not the device any more") {
        return Ok(Some("refused: it went away".into()));
    }
    Err(Stop::Fail(text))
}

fn mount_first(fixtures: &mut Fixtures) -> Step<String> {
    mounted_during(fixtures, 1)?;
    Ok("allowed: the mount failed, since the look holds a claim".into())
}

fn mount_second(fixtures: &mut Fixtures) -> Step<String> {
    mounted_during(fixtures, 2)?;
    Ok("allowed: the mount failed".into())
}

/// A mount that is tried in this look fails, and the device is allowed.
fn mounted_during(fixtures: &mut Fixtures, look: u32) -> Step<()> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "late")?;
    let (own, consent) = (device.clone(), device.clone());
    let point = fixtures.path("point");
    std::fs::create_dir(&point).map_err(super::fixtures::fail)?;
    let files = Meanwhile::new(MOUNTS, look, move || {
        let done = quietly("mount", &[&own, &point.to_string_lossy()]);
        assert!(done.is_err(), "mounted in look {look}");
    });
    let answer = fixtures.ask_through(&files, &device, Some(&consent))?;
    files.must_have_happened()?;
    match answer {
        Ok(_) => Ok(()),
        Err(refusal) => Err(Stop::Fail(refusal.to_string())),
    }
}

fn stacked(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let own = device.clone();
    // The list of loop devices is read in each look before anything is done with it.
    let files = Meanwhile::new(BLOCK, 2, move || {
        let _ = quietly("losetup", &["-f", &own]);
        settle();
    });
    let path = device.clone();
    fixtures.on_close("loop device on top", move || {
        let over = super::fixtures::run("losetup", &["-n", "-O", "NAME,BACK-FILE"]);
        for line in over.unwrap_or_default().lines() {
            if let Some((name, backing)) = line.trim().split_once(char::is_whitespace) {
                if backing.trim() == path {
                    quietly("losetup", &["-d", name])?;
                }
            }
        }
        Ok(())
    });
    let answer = fixtures.ask_through(&files, &device, None)?;
    files.must_have_happened()?;
    refused(answer, &["The loop device"])
}

fn formatted(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let own = device.clone();
    // After the content was read for the first time. A writer needs no claim.
    let files = Meanwhile::new(MOUNTS, 1, move || {
        use std::io::{Seek, SeekFrom, Write};
        let mut file = std::fs::OpenOptions::new().write(true).open(own).unwrap();
        file.seek(SeekFrom::Start(4086)).unwrap();
        file.write_all(b"SWAPSPACE2").unwrap();
        file.sync_all().unwrap();
    });
    let consent = rubus_change::guard::claim(&files, Path::new(&device), None);
    files.must_have_happened()?;
    match consent {
        Err(refusal) if refusal.to_string().contains("a swap area") => {
            Ok(format!("asks for {device}"))
        }
        Err(refusal) => Err(Stop::Fail(refusal.to_string())),
        Ok(_) => Err(Stop::Fail("it was allowed".into())),
    }
}

fn exchanged(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let precious = fixtures.blank(8)?;
    fixtures.write(&precious, 0, b"precious")?;
    let link = fixtures.link(&device, "link")?;
    let (own, other) = (link.clone(), precious.clone());
    let files = Meanwhile::new(MOUNTS, 1, move || {
        std::fs::remove_file(&own).unwrap();
        std::os::unix::fs::symlink(&other, &own).unwrap();
    });
    let answer = fixtures.ask_through(&files, &link, None)?;
    files.must_have_happened()?;
    match answer {
        Ok(claimed) if claimed.path() == Path::new(&device) => {
            Ok("allowed: the device that was looked at, not the new one".into())
        }
        Ok(claimed) => Err(Stop::Fail(format!("claimed {}", claimed.path().display()))),
        Err(refusal) => Err(Stop::Fail(refusal.to_string())),
    }
}

/// A machine whose tables are hidden.
struct Blind;

impl Files for Blind {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        if path == Path::new(MOUNTS) {
            return Err(ReadError::Denied);
        }
        Live.read_prefix(path, limit)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        Live.list(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        Live.real_path(path)
    }

    fn space(&self, path: &Path) -> Result<Space, ReadError> {
        Live.space(path)
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ReadError> {
        Live.ask(program, arguments)
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        Live.mode(path)
    }

    fn keeps_modes(&self, path: &Path) -> bool {
        Live.keeps_modes(path)
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        Live.link(path)
    }

    fn firmware_word(&self, tag: u32) -> Result<u32, ReadError> {
        Live.firmware_word(tag)
    }
}

fn blind(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let answer = fixtures.ask_through(&Blind, &device, None)?;
    refused(answer, &["Not everything could be checked: /proc/self/mountinfo"])
}

/// The live machine, with a udev that lets go when it is waited for.
struct Settling {
    worker: u32,
    waited: Cell<u32>,
}

impl Files for Settling {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        Live.read_prefix(path, limit)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        Live.list(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        Live.real_path(path)
    }

    fn space(&self, path: &Path) -> Result<Space, ReadError> {
        Live.space(path)
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ReadError> {
        if program != "udevadm" {
            return Live.ask(program, arguments);
        }
        self.waited.set(self.waited.get() + 1);
        if self.waited.get() == 2 {
            let _ = quietly("kill", &["-9", &self.worker.to_string()]);
        }
        Ok(String::new())
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        Live.mode(path)
    }

    fn keeps_modes(&self, path: &Path) -> bool {
        Live.keeps_modes(path)
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        Live.link(path)
    }

    fn firmware_word(&self, tag: u32) -> Result<u32, ReadError> {
        Live.firmware_word(tag)
    }
}

fn examined(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    // A shell under the name of udev's workers.
    let worker = fixtures.path("(udev-worker)");
    std::fs::copy("/bin/sh", &worker).map_err(super::fixtures::fail)?;
    let script = format!("exec 3<>{device}; echo ready; read line");
    let worker = fixtures.start(&worker.to_string_lossy(), &["-c", &script], "ready\n")?;
    let view = Settling { worker, waited: Cell::new(0) };
    let answer = fixtures.ask_through(&view, &device, None)?;
    match (answer, view.waited.get()) {
        (Ok(_), waited) if waited >= 2 => Ok("allowed once udev has let go".into()),
        (Ok(_), waited) => Err(Stop::Fail(format!("udev was waited for {waited} times"))),
        (Err(refusal), _) => Err(Stop::Fail(refusal.to_string())),
    }
}
