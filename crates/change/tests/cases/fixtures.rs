//! Where a case builds its devices: everything made here is taken down in reverse order, also
//! after a panic, and the guard's answer is checked against the promise that nothing is written.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rubus_change::guard::{self, Consent, Refusal};
use rubus_host::block::blockdev::ClaimedDevice;
use rubus_host::files::clone_file::CloneFile;
use rubus_host::{Files, Live};
use tempfile::TempDir;

use super::{Step, Stop};

pub const MIB: u64 = 1 << 20;

/// Names and places, and the bytes there.
pub type State = Vec<(String, Vec<u8>)>;

type Undo = (String, Box<dyn FnOnce() -> Result<(), String>>);

/// A temporary directory with the devices made from its files.
pub struct Fixtures {
    directory: TempDir,
    undo: Vec<Undo>,
    images: Vec<PathBuf>,
}

impl Fixtures {
    /// An empty set of fixtures.
    pub fn new() -> Step<Fixtures> {
        if !Path::new("/dev/loop-control").exists() {
            let _ = quietly("modprobe", &["loop"]);
        }
        if fs::metadata("/proc/self").is_err() {
            return Err(Stop::Skip("no /proc".into()));
        }
        let is_root = {
            use std::os::unix::fs::MetadataExt;
            fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
        };
        if !is_root {
            return Err(Stop::Skip("only root can make loop devices".into()));
        }
        if OpenOptions::new().write(true).open("/dev/loop-control").is_err() {
            return Err(Stop::Skip("this machine has no loop devices".into()));
        }
        let directory = tempfile::Builder::new()
            .prefix("rubus-guard-")
            .tempdir()
            .map_err(|error| Stop::Fail(format!("no temporary directory: {error}")))?;
        Ok(Fixtures { directory, undo: Vec::new(), images: Vec::new() })
    }

    /// Takes everything down; says what could not be.
    pub fn close(mut self) -> Result<(), String> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<(), String> {
        let mut left = Vec::new();
        while let Some((what, undo)) = self.undo.pop() {
            if let Err(why) = undo() {
                left.push(format!("{what}: {why}"));
            }
        }
        if left.is_empty() { Ok(()) } else { Err(left.join("; ")) }
    }

    /// Remembers how something is taken down.
    pub fn on_close(&mut self, what: &str, undo: impl FnOnce() -> Result<(), String> + 'static) {
        self.undo.push((what.to_string(), Box::new(undo)));
    }

    /// A path in the fixtures' directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a program that must succeed; its output.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Step<String> {
        run(program, arguments)
    }

    /// A file of zeros.
    pub fn image(&mut self, name: &str, bytes: u64) -> Step<PathBuf> {
        let path = self.path(name);
        let file = File::create(&path).map_err(fail)?;
        file.set_len(bytes).map_err(fail)?;
        self.images.push(path.clone());
        Ok(path)
    }

    /// A file of zeros, too long to be read again after each question.
    pub fn sparse(&mut self, name: &str, bytes: u64) -> Step<PathBuf> {
        let path = self.path(name);
        let file = File::create(&path).map_err(fail)?;
        file.set_len(bytes).map_err(fail)?;
        Ok(path)
    }

    /// A loop device over a new file of zeros.
    pub fn blank(&mut self, mib: u64) -> Step<String> {
        let name = format!("disk{}.img", self.images.len());
        let image = self.image(&name, mib * MIB)?;
        self.attach(&image, &[])
    }

    /// A loop device over a file or a device, with further arguments for losetup.
    pub fn attach(&mut self, backing: &Path, arguments: &[&str]) -> Step<String> {
        let backing = backing.to_string_lossy().into_owned();
        let mut all = vec!["-f", "--show", "-P"];
        all.extend(arguments);
        all.push(&backing);
        // Another process may take the free device before it is attached here.
        let mut attempt = 0;
        let device = loop {
            match run("losetup", &all) {
                Ok(device) => break device,
                Err(stop) if attempt == 20 => return Err(stop),
                Err(_) => attempt += 1,
            }
        };
        self.detach_on_close(&device, &backing);
        Ok(device)
    }

    /// Detaches a loop device in the end if it still stands on this file: a case may have detached it, and another
    /// process may have taken it since.
    pub fn detach_on_close(&mut self, device: &str, backing: &str) {
        let (own, file) = (device.to_string(), backing.to_string());
        self.on_close(&format!("loop device {device}"), move || {
            if !is_over(&own, &file) {
                return Ok(());
            }
            let _ = quietly("partx", &["-d", &own]);
            quietly("losetup", &["-d", &own])?;
            // While another program has it open (udev looks at each device that changes), it goes with the last close
            // only, and keeps the filesystem of its file busy until then.
            Self::wait_for(|| !is_over(&own, &file));
            Ok(())
        });
    }

    /// Writes an sfdisk script to a device and makes its partition nodes; their paths.
    pub fn partition(&mut self, device: &str, script: &str, count: usize) -> Step<Vec<String>> {
        self.table(device, script)?;
        let nodes: Vec<String> = (1..=count).map(|number| format!("{device}p{number}")).collect();
        // Where the kernel reads partition tables itself, the nodes may be there already.
        let _ = quietly("partx", &["-u", device]);
        settle();
        for node in &nodes {
            if !Path::new(node).exists() {
                return Err(Stop::Fail(format!("{node} did not appear")));
            }
        }
        Ok(nodes)
    }

    /// Writes an sfdisk script to a device, nothing more.
    pub fn table(&mut self, device: &str, script: &str) -> Step<()> {
        let mut child = command("sfdisk")?
            .args(["-q", "--wipe=never", "--no-reread", "--no-tell-kernel", device])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(fail)?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(script.as_bytes()).map_err(fail)?;
        }
        let output = child.wait_with_output().map_err(fail)?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Stop::Fail(format!("sfdisk {device}: {why}")));
        }
        Ok(())
    }

    /// Makes an ext4 filesystem with nothing left to do in the background.
    pub fn ext4(&mut self, device: &str, label: &str) -> Step<()> {
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-F", "-L", label, "-E", lazy, device]).map(drop)
    }

    /// Mounts a device on a new directory of the fixtures.
    pub fn mount(&mut self, device: &str, name: &str) -> Step<PathBuf> {
        self.mount_with(device, name, &[])
    }

    /// Mounts with further arguments.
    pub fn mount_with(&mut self, device: &str, name: &str, arguments: &[&str]) -> Step<PathBuf> {
        let point = self.path(name);
        fs::create_dir_all(&point).map_err(fail)?;
        let text = point.to_string_lossy().into_owned();
        let mut all = arguments.to_vec();
        all.extend([device, &text]);
        run("mount", &all)?;
        self.on_close(&format!("mount {text}"), move || {
            match quietly("umount", &[&text]) {
                // A case may have unmounted it.
                Err(why) if why.contains("not mounted") || why.contains("no mount point") => Ok(()),
                other => other,
            }
        });
        Ok(point)
    }

    /// Makes a device or file active swap.
    pub fn swap_on(&mut self, area: &str) -> Step<()> {
        run("mkswap", &["-q", area])?;
        run("swapon", &[area])?;
        let own = area.to_string();
        self.on_close(&format!("swap {area}"), move || quietly("swapoff", &[&own]));
        Ok(())
    }

    /// Starts a program that runs until the fixtures are closed, and waits for a line on its output.
    pub fn start(&mut self, program: &str, arguments: &[&str], line: &str) -> Step<u32> {
        let mut child = command(program)?
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(fail)?;
        let pid = child.id();
        let output = child.stdout.take();
        self.on_close(&format!("process {pid}"), move || {
            drop(child.stdin.take());
            let _ = child.kill();
            child.wait().map(drop).map_err(|error| error.to_string())
        });
        if line.is_empty() {
            return Ok(pid);
        }
        let mut seen = Vec::new();
        let mut byte = [0];
        let mut output = output.ok_or_else(|| Stop::Fail("no output".into()))?;
        while !seen.ends_with(line.as_bytes()) {
            match output.read(&mut byte) {
                Ok(1) => seen.push(byte[0]),
                _ => {
                    let said = String::from_utf8_lossy(&seen).into_owned();
                    return Err(Stop::Fail(format!("{program} did not say {line:?}: {said:?}")));
                }
            }
        }
        Ok(pid)
    }

    /// Waits up to ten seconds for something to become true.
    pub fn wait_for(is_true: impl Fn() -> bool) {
        for _ in 0..200 {
            if is_true() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Writes bytes into an image or device at a place and lets them reach the image.
    pub fn write(&mut self, path: impl AsRef<Path>, offset: u64, bytes: &[u8]) -> Step<()> {
        let mut file = OpenOptions::new().write(true).open(path).map_err(fail)?;
        file.seek(SeekFrom::Start(offset)).map_err(fail)?;
        file.write_all(bytes).map_err(fail)?;
        file.sync_all().map_err(fail)
    }

    /// Makes a symbolic link in the fixtures.
    pub fn link(&mut self, target: impl AsRef<Path>, name: &str) -> Step<PathBuf> {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(fail)?;
        }
        std::os::unix::fs::symlink(target, &path).map_err(fail)?;
        Ok(path)
    }

    /// Asks the guard and checks that it wrote nothing.
    pub fn ask(
        &mut self,
        path: impl AsRef<Path>,
        typed: Option<&str>,
    ) -> Step<Result<ClaimedDevice, Refusal>> {
        self.ask_through(&Live, path, typed)
    }

    /// The same with another view of the machine's files.
    pub fn ask_through(
        &mut self,
        files: &dyn Files,
        path: impl AsRef<Path>,
        typed: Option<&str>,
    ) -> Step<Result<ClaimedDevice, Refusal>> {
        let consent = typed.map(Consent::new);
        let mut differences_in_a_row = 0;
        loop {
            let before = self.state()?;
            let answer = guard::claim(files, path.as_ref(), consent.as_ref());
            // The claim itself must not have written either; what it could still hold back in the
            // device's cache is forced out by the sync.
            let after = self.state()?;
            if before != after {
                // A mounted filesystem writes by itself now and then. A guard that writes does so
                // every time it is asked, so a difference counts when it comes three times in a row.
                differences_in_a_row += 1;
                if differences_in_a_row == 3 {
                    let changed = differences(&before, &after);
                    return Err(Stop::Fail(format!("something changed: {changed:#?}")));
                }
            } else {
                return Ok(answer);
            }
        }
    }

    /// The guard must refuse, for all these reasons and none else, and no confirmation may help.
    pub fn refused(
        &mut self,
        path: impl AsRef<Path>,
        typed: Option<&str>,
        reasons: &[&str],
    ) -> Step<String> {
        let answer = self.ask(path, typed)?;
        refused(answer, reasons)
    }

    /// The guard must ask for this confirmation and show these things.
    pub fn asks(
        &mut self,
        path: impl AsRef<Path>,
        typed: Option<&str>,
        expected: &str,
        shown: &[&str],
    ) -> Step<String> {
        let answer = self.ask(path, typed)?;
        let Err(refusal) = answer else {
            return Err(Stop::Fail("it was allowed".into()));
        };
        let text = refusal.to_string();
        match refusal.expected_confirmation() {
            Some(confirmation) if confirmation.text == expected => {}
            other => return Err(Stop::Fail(format!("expects {other:?}\n{text}"))),
        }
        match shown.iter().find(|fragment| !text.contains(*fragment)) {
            Some(missing) => Err(Stop::Fail(format!("'{missing}' is not shown in\n{text}"))),
            None => Ok(format!("asks for {expected}")),
        }
    }

    /// The guard must allow it; the claimed device.
    pub fn allowed(&mut self, path: impl AsRef<Path>, typed: Option<&str>) -> Step<ClaimedDevice> {
        let answer = self.ask(path, typed)?;
        answer.map_err(|refusal| Stop::Fail(format!("it was refused:\n{refusal}")))
    }

    /// The content of every image and the names in `/dev`, for a comparison.
    pub fn state(&self) -> Step<State> {
        let _ = quietly("sync", &[]);
        let mut state = Vec::new();
        for image in &self.images {
            state.extend(contents(image)?);
        }
        let names = |directory: &Path| -> Step<State> {
            let entries = fs::read_dir(directory).map_err(fail)?.flatten();
            let mut names: Vec<String> =
                entries.map(|entry| entry.path().display().to_string()).collect();
            // Other programs on the machine make and remove devices meanwhile.
            names.retain(|name| !name.starts_with("/dev/") || name.contains("rubus"));
            names.sort();
            Ok(names.into_iter().map(|name| (name, Vec::new())).collect())
        };
        state.extend(names(Path::new("/dev"))?);
        state.extend(names(self.directory.path())?);
        Ok(state)
    }
}

impl Drop for Fixtures {
    fn drop(&mut self) {
        if let Err(left) = self.take_down() {
            eprintln!("left behind: {left}");
        }
    }
}

/// The answer must be a refusal for all these reasons and none else.
pub fn refused(answer: Result<ClaimedDevice, Refusal>, reasons: &[&str]) -> Step<String> {
    let Err(refusal) = answer else {
        return Err(Stop::Fail("it was allowed".into()));
    };
    let text = refusal.to_string();
    if refusal.expected_confirmation().is_some() {
        return Err(Stop::Fail(format!("it asks instead of refusing:\n{text}")));
    }
    let given = refusal.reasons();
    let is_told = |fragment: &&&str| given.iter().any(|reason| reason.what.contains(**fragment));
    if let Some(missing) = reasons.iter().find(|fragment| !is_told(fragment)) {
        return Err(Stop::Fail(format!("'{missing}' is no reason in\n{text}")));
    }
    if given.len() != reasons.len() {
        let wanted = reasons.len();
        return Err(Stop::Fail(format!("{wanted} reasons were expected in\n{text}")));
    }
    let whats: Vec<&str> = given.iter().map(|reason| reason.what.as_str()).collect();
    Ok(format!("refused: {}", whats.join(" ")))
}

/// What is in only one of two states, or is not the same in both.
pub fn differences(before: &State, after: &State) -> Vec<String> {
    let missing = |from: &State, there: &State| -> Vec<String> {
        let missing = from.iter().filter(|one| !there.contains(one));
        missing.map(|(name, _)| name.clone()).collect()
    };
    let mut all = missing(before, after);
    all.extend(missing(after, before));
    all
}

/// What a file holds besides zeros, in pieces with their places. Images are mostly zeros: holes are not read, and zeros that
/// were written count like holes. Kept and not hashed: this code is not optimised, and an emulated processor compares bytes
/// much sooner than it hashes them.
fn contents(path: &Path) -> Step<State> {
    const CHUNK: u64 = 64 * 1024;
    let file = CloneFile::read_only(path).map_err(fail)?;
    let end = fs::metadata(path).map_err(fail)?.len();
    let zeros = vec![0_u8; CHUNK as usize];
    let mut chunk = zeros.clone();
    let mut found = vec![(format!("{}: {end} bytes", path.display()), Vec::new())];
    let mut offset = 0;
    while offset < end {
        let Some((data, hole)) = file.next_data(offset).map_err(fail)? else {
            break;
        };
        // Pieces begin at the same places wherever the holes are.
        offset = offset.max(data / CHUNK * CHUNK);
        while offset < hole.min(end) {
            let piece = &mut chunk[..(end - offset).min(CHUNK) as usize];
            file.read_at(offset, piece).map_err(fail)?;
            if *piece != zeros[..piece.len()] {
                let place = format!("{}: at byte {offset}", path.display());
                found.push((place, piece.to_vec()));
            }
            offset += CHUNK;
        }
    }
    Ok(found)
}

/// An error of a call that should have worked.
pub fn fail(error: std::io::Error) -> Stop {
    Stop::Fail(error.to_string())
}

/// A program from the standard directories, or by its path; its absence skips the case.
pub fn command(program: &str) -> Step<Command> {
    const DIRECTORIES: [&str; 6] =
        ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let found = DIRECTORIES
        .iter()
        // A path stays itself.
        .map(|directory| Path::new(directory).join(program))
        .find(|path| path.exists());
    let path = found.ok_or_else(|| Stop::Skip(format!("{program} is not installed")))?;
    let mut command = Command::new(path);
    command.env("LC_ALL", "C").env("PATH", DIRECTORIES.join(":"));
    Ok(command)
}

/// Whether a loop device stands on this file.
fn is_over(device: &str, file: &str) -> bool {
    let name = device.trim_start_matches("/dev/");
    let backing = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
    // Under a detached mount the kernel names only the end of the path.
    let base = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
    backing.is_ok_and(|backing| {
        let backing = backing.trim_end().trim_end_matches(" (deleted)");
        backing == file || backing == format!("/{base}")
    })
}

/// Runs a program that must succeed; its output without the line feed at its end.
pub fn run(program: &str, arguments: &[&str]) -> Step<String> {
    let output = command(program)?.args(arguments).output().map_err(fail)?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_string();
        let call = format!("{program} {}", arguments.join(" "));
        return Err(Stop::Fail(format!("{call}: {}: {why}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_string())
}

/// Runs a program whose failure is for the caller to judge.
pub fn quietly(program: &str, arguments: &[&str]) -> Result<(), String> {
    match run(program, arguments) {
        Ok(_) => Ok(()),
        Err(Stop::Skip(why) | Stop::Fail(why)) => Err(why),
    }
}

/// Waits until the device manager has caught up, where there is one.
pub fn settle() {
    let _ = quietly("udevadm", &["settle", "--timeout=20"]);
}
