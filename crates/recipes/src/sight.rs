//! What a recipe looks at, besides the surveyed machine: whether a path is there, and the text of a
//! small file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::{NextStart, PathState, Recipe, Seen, VolatileRoot, Wishes};
use rubus_boot::chain::{Outcome, Stage, Stop, missing_key};
use rubus_boot::cmdline_txt::CmdlineTxt;
use rubus_boot::config_txt::ConfigTxt;
use rubus_boot::kernel_file;
use rubus_boot::model::{Kernels, Model};
use rubus_boot_check::card::Card;
use rubus_boot_check::start::{self, CardParts};
use rubus_change::plan::TextFile;
use rubus_change::unseen::Unseen;
use rubus_host::block::disk_bytes::DiskBytes;
use rubus_host::{Files, ReadError};
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine};

/// A file larger than this is not one that a plan edits.
const MAX_BYTES: usize = 256 << 10;
/// A directory with more names than this is not one that a plan looks through.
const MAX_NAMES: usize = 4096;
/// The firmware's settings and what they include: the largest number of files that are read.
const MAX_FOLLOWED: usize = 32;
/// More than any kernel takes.
const MAX_KERNEL_BYTES: usize = 128 << 20;
/// The mode of a file that a capture keeps without it.
const USUAL_MODE: u32 = 0o644;

/// Looks at all paths. A part of a path that is `*` stands for every name in the directory before it; what such a
/// path leads to is looked at where it is there, and not told of where it is not.
pub fn look(files: &dyn Files, paths: &[PathBuf]) -> Seen {
    let mut seen = Seen::new();
    see(files, paths, &mut seen);
    follow(files, &mut seen);
    seen
}

/// Looks at all that the recipes look at with their usual wishes, so that a capture answers plans, too.
pub fn look_for_plans(files: &dyn Files, machine: &Machine) {
    for (recipe, wishes) in usual_wishes(machine) {
        look(files, &(recipe.look_at)(machine, &wishes).paths);
    }
}

/// Each recipe with the wishes that a machine's owner may have: none, and each of its disks.
pub fn usual_wishes(machine: &Machine) -> Vec<(&'static Recipe, Wishes)> {
    let is_disk = |device: &&BlockDevice| device.kind == BlockKind::Disk;
    let disks = machine.block_devices.iter().filter(is_disk);
    let disks: Vec<String> = disks.map(|disk| format!("/dev/{}", disk.name)).collect();
    let mut all = Vec::new();
    for recipe in crate::ALL {
        let has = |name: &str| recipe.options.iter().any(|option| option.name == name);
        let mut base = Wishes::new();
        if has("at") {
            base.insert("at".into(), "/mnt/data".into());
        }
        all.push((recipe, Wishes::new()));
        let mut with = |name: &str, value: String| {
            let mut wishes = base.clone();
            wishes.insert(name.into(), value);
            all.push((recipe, wishes));
        };
        if has("device") {
            disks.iter().for_each(|disk| with("device", disk.clone()));
        } else if has("devices") {
            disks.windows(2).for_each(|pair| with("devices", pair.join(",")));
        } else if has("to") {
            ["zram", "none"].iter().for_each(|to| with("to", (*to).into()));
            disks.iter().for_each(|disk| with("to", format!("disk:{disk}")));
        } else if has("at") {
            all.push((recipe, base));
        }
    }
    all
}

fn see(files: &dyn Files, paths: &[PathBuf], seen: &mut Seen) {
    for path in paths {
        let is_pattern = path.components().any(|part| part.as_os_str() == "*");
        for found in spread(files, path) {
            match sight(files, &found) {
                PathState::Absent if is_pattern => {}
                sight => drop(seen.insert(found, sight)),
            }
        }
    }
}

/// The firmware's settings name further files and directories, and files that they include may do so as well.
fn follow(files: &dyn Files, seen: &mut Seen) {
    let is_config = |path: &&PathBuf| path.ends_with("config.txt");
    let configs: Vec<PathBuf> = seen.keys().filter(is_config).cloned().collect();
    for config in configs {
        let Some(boot) = config.parent().map(Path::to_path_buf) else { continue };
        let mut todo = vec![config.clone()];
        let mut known = BTreeSet::from([config]);
        for _ in 0..MAX_FOLLOWED {
            let Some(path) = todo.pop() else { break };
            let Some(PathState::Text(file)) = seen.get(&path) else { continue };
            let named = ConfigTxt::parse(file.text.as_str());
            let included: Vec<PathBuf> =
                named.includes().into_iter().map(|name| boot.join(name)).collect();
            let mut paths: Vec<PathBuf> = named
                .companions()
                .into_iter()
                .map(|name| boot.join(name.trim_end_matches('/')))
                .collect();
            paths.retain(|path| !seen.contains_key(path));
            see(files, &paths, seen);
            todo.extend(included.into_iter().filter(|path| known.insert(path.clone())));
        }
    }
}

/// The paths that one with `*` in it stands for.
fn spread(files: &dyn Files, pattern: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    for part in pattern.components() {
        if part.as_os_str() != "*" {
            paths.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let names = |path: &PathBuf| {
            let names = files.list(path).unwrap_or_default().into_iter();
            let whole: Vec<PathBuf> = names.take(MAX_NAMES).map(|n| path.join(n)).collect();
            whole
        };
        paths = paths.iter().flat_map(names).collect();
    }
    paths
}

fn sight(files: &dyn Files, path: &Path) -> PathState {
    if let Ok(names) = files.list(path) {
        return if names.len() <= MAX_NAMES {
            PathState::Directory(names)
        } else {
            PathState::Something
        };
    }
    match files.read_prefix(path, MAX_BYTES + 1) {
        Ok(bytes) if bytes.len() > MAX_BYTES => PathState::Something,
        Ok(bytes) => text(files, path, &bytes),
        Err(ReadError::Absent) => match files.link(path) {
            Ok(target) => PathState::Dangling(target),
            Err(_) => PathState::Absent,
        },
        Err(error) => PathState::Hidden(Unseen::from(&error)),
    }
}

/// A text in another encoding has no zeros; a program has. Of texts by their name, the bytes of UTF-16 are kept.
fn text(files: &dyn Files, path: &Path, bytes: &[u8]) -> PathState {
    let is_utf_8 = std::str::from_utf8(bytes).is_ok();
    let is_named_so = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("txt"));
    if !is_utf_8 && !is_named_so && bytes.contains(&0) {
        return PathState::Something;
    }
    let mode = files.mode(path).unwrap_or(USUAL_MODE);
    TextFile::of_bytes(bytes, mode).map_or(PathState::Something, PathState::Text)
}

/// Which release each kernel is that the settings of a boot partition lead to, as its file says; one that does not say it is
/// left out. Only where the modules of kernels were looked at, too.
pub fn kernel_releases(
    files: &dyn Files,
    machine: &Machine,
    seen: &Seen,
) -> BTreeMap<PathBuf, String> {
    let wants_kernels = seen.contains_key(Path::new("/lib/modules"));
    let configs = seen.iter().filter(|(path, _)| wants_kernels && path.ends_with("config.txt"));
    let mut found = BTreeMap::new();
    for (config, sight) in configs {
        let (Some(boot), PathState::Text(file)) = (config.parent(), sight) else { continue };
        for name in kernel_names(machine, boot, &file.text, seen) {
            let path = boot.join(&name);
            let is_listed =
                path.parent().and_then(|directory| seen.get(directory)).is_some_and(|sight| {
                    match sight {
                        PathState::Directory(names) => {
                            let own =
                                path.file_name().map(|name| name.to_string_lossy().into_owned());
                            names.iter().any(|name| Some(name) == own.as_ref())
                        }
                        _ => false,
                    }
                });
            if !is_listed {
                continue;
            }
            let bytes = files.read_prefix(&path, MAX_KERNEL_BYTES).unwrap_or_default();
            if let Some(release) = kernel_file::release(&bytes) {
                found.insert(path, release);
            }
        }
    }
    found
}

/// What `rubus boot` says of the next start if nothing were changed: what a plan keeps as the way back has to start. Asked only for
/// plans that look at the settings of a boot partition.
pub fn next_start(files: &dyn Files, machine: &Machine, seen: &Seen) -> NextStart {
    let is_asked = seen.keys().any(|path| path.ends_with("config.txt"));
    if !is_asked {
        return NextStart::default();
    }
    let start = start::of_machine(files, machine);
    // The questions about the mounts of the next start are asked by each plan, but not this one.
    let ends_at_mounts = start.chain.outcome() == Outcome::StopsAt(Stage::Mounts);
    match missing_key(&start.facts).filter(|_| ends_at_mounts) {
        Some(stop) => NextStart::Stops(stop),
        None => NextStart::of_machine(&start.chain),
    }
}

/// Whether a command line of the next start makes its root one that keeps nothing, which that of this start did not.
pub fn volatile_root(files: &dyn Files, machine: &Machine) -> Option<VolatileRoot> {
    let given = CmdlineTxt::parse(machine.system.command_line.text().unwrap_or_default());
    if given.volatile_root().is_some() {
        return None;
    }
    start::command_lines(files, machine).into_iter().find_map(|(path, text)| {
        let word = CmdlineTxt::parse(text).volatile_root()?.written.to_string();
        Some(VolatileRoot { word, path })
    })
}

/// How the next start of an image would end, in that of its boards in which it comes furthest. `boot_partition`: number of the one
/// that is changed.
///
/// # Errors
/// Why the image cannot be read.
pub fn next_start_of_image(file: &Path, boot_partition: u32) -> Result<NextStart, String> {
    let shown = file.display().to_string();
    let disk = DiskBytes::open(file).map_err(|why| format!("cannot read {shown}: {why}"))?;
    let card = Card::open(&disk)?;
    let parts = CardParts::of(&shown, &card)?;
    let starts = start::in_its_boards(&parts);
    let other =
        starts.iter().find_map(|start| start.boot_partition()).filter(|own| *own != boot_partition);
    if let Some(number) = other {
        return Ok(NextStart::Elsewhere(Stop {
            why: format!(
                "the firmware reads partition {number}, and this recipe takes the files of partition {boot_partition}"
            ),
            remedy: "take an image whose first FAT partition is the one that is started".into(),
        }));
    }
    let found = starts.iter().map(|start| NextStart::of_image(&start.chain));
    let none = "its boot partition has no device tree of a board that is known";
    Ok(found.min_by_key(NextStart::severity).unwrap_or_else(|| NextStart::Unsure(none.into())))
}

/// The files that may be a kernel, by the settings, by what they include, and by the firmware's own choice on this board (of
/// an image: on any).
fn kernel_names(machine: &Machine, boot: &Path, settings: &str, seen: &Seen) -> BTreeSet<String> {
    let config = ConfigTxt::parse(settings);
    let text_of = |name: &str| match seen.get(&boot.join(name)) {
        Some(PathState::Text(file)) => Some(file.text.clone()),
        _ => None,
    };
    let included = config.included(&text_of);
    let texts = std::iter::once(settings).chain(included.values().map(String::as_str));
    let mut names: BTreeSet<String> =
        texts.flat_map(|text| ConfigTxt::parse(text).kernels()).collect();
    let own = Model::of(&machine.board);
    let models = if own.kernels == Kernels::Named { Model::every() } else { vec![own] };
    let usual = models.iter().flat_map(|model| model.kernels.names(None));
    let prefixes: BTreeSet<String> =
        names.iter().filter_map(|name| name.rfind('/').map(|at| name[..=at].to_string())).collect();
    for kernel in usual {
        names.insert((*kernel).to_string());
        names.extend(prefixes.iter().map(|prefix| format!("{prefix}{kernel}")));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    #[test]
    fn everything_is_of_some_kind() {
        let files = FakeFiles::new()
            .file("/etc/text", "a = 1\n")
            .file("/bin/program", [0x7f, b'E', 0xff, 0])
            .file("/big", vec![b'x'; MAX_BYTES + 1])
            .denied("/secret");
        let paths = ["/etc/text", "/etc", "/bin/program", "/big", "/none", "/secret"];
        let seen = look(&files, &paths.map(PathBuf::from));
        let at = |path: &str| &seen[Path::new(path)];
        assert_eq!(*at("/etc/text"), PathState::Text(TextFile::public("a = 1\n")));
        assert_eq!(*at("/etc"), PathState::Directory(vec!["text".into()]));
        assert_eq!(*at("/bin/program"), PathState::Something);
        assert_eq!(*at("/big"), PathState::Something);
        assert_eq!(*at("/none"), PathState::Absent);
        assert!(matches!(at("/secret"), PathState::Hidden(Unseen::Denied(_))));
    }

    #[test]
    fn what_the_firmwares_settings_name_is_looked_at() {
        let files = FakeFiles::new()
            .file("/boot/firmware/config.txt", "include mine.txt\n")
            .file("/boot/firmware/mine.txt", [b'#', 0xe9, b'\n'].as_slice())
            .file("/boot/firmware/cmdline.txt", "root=/dev/sda2\n");
        let seen = look(&files, &["/boot/firmware/config.txt".into()]);
        let Some(PathState::Text(file)) = seen.get(Path::new("/boot/firmware/mine.txt")) else {
            panic!("{seen:?}");
        };
        assert_eq!(file.shown(), "#\u{fffd}\n");
        assert_eq!(file.bytes(), [b'#', 0xe9, b'\n']);
        assert!(seen.contains_key(Path::new("/boot/firmware/cmdline.txt")));
    }

    #[test]
    fn files_that_include_each_other_end() {
        let files = FakeFiles::new()
            .file("/boot/config.txt", "include a.txt\n")
            .file("/boot/a.txt", "include a.txt\ninclude config.txt\nos_prefix=old/\n")
            .file("/boot/old/cmdline.txt", "root=/dev/sda2\n");
        let seen = look(&files, &["/boot/config.txt".into()]);
        assert_eq!(
            seen[Path::new("/boot/old")],
            PathState::Directory(vec!["cmdline.txt".to_string()])
        );
        assert!(matches!(seen[Path::new("/boot/old/cmdline.txt")], PathState::Text(_)));
    }

    /// A card for a Raspberry Pi 3 and a Raspberry Pi 4, without some of the files of its boot partition.
    fn next_start_without(files: &[&[u8]], boot_partition: u32) -> NextStart {
        let packed: &[u8] = include_bytes!("../../boot-check/src/card/fixtures/card.img.gz");
        let mut image = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut image)
            .expect("the fixture");
        for short_name in files {
            let is_it = |at: &usize| image[*at..].starts_with(short_name);
            let entry = (1 << 20..2 << 20).step_by(32).find(is_it).expect("the file");
            // What FAT writes over a file that is deleted.
            image[entry] = 0xe5;
        }
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        std::io::Write::write_all(&mut file, &image).expect("it is written");
        next_start_of_image(file.path(), boot_partition).expect("it is an image")
    }

    #[test]
    fn an_image_is_followed_in_the_boards_that_it_has_device_trees_of() {
        const START4: &[u8] = b"START4  ELF";
        assert_eq!(next_start_without(&[], 1), NextStart::Starts);
        // Sound for the older of them.
        assert_eq!(next_start_without(&[START4], 1), NextStart::Starts);
        let why = |found: NextStart| match found {
            NextStart::Stops(stop) => stop.why,
            other => panic!("{other:?}"),
        };
        let found = next_start_without(&[START4, b"START   ELF"], 1);
        assert!(why(found).contains("start4.elf"));
        let found = next_start_without(&[b"KERNEL8 IMG"], 1);
        assert!(why(found).contains("kernel8.img"));
    }

    #[test]
    fn an_image_whose_firmware_reads_another_partition_is_refused_and_one_for_no_board_is_not_certain()
     {
        let NextStart::Elsewhere(stop) = next_start_without(&[], 2) else { panic!("it is read") };
        assert!(stop.why.contains("the firmware reads partition 1"), "{}", stop.why);
        let trees: [&[u8]; 2] = [b"BCM271~1DTB", b"BCM271~2DTB"];
        assert!(matches!(next_start_without(&trees, 1), NextStart::Unsure(_)));
    }

    #[test]
    fn a_star_is_every_name() {
        let files = FakeFiles::new()
            .file("/lib/modules/6.1/builtin", "a\n")
            .file("/lib/modules/6.12/builtin", "b\n")
            .file("/lib/modules/old/other", "c\n");
        let seen = look(
            &files,
            &[PathBuf::from("/lib/modules/*/builtin"), PathBuf::from("/none/*/builtin")],
        );
        let paths: Vec<&Path> = seen.keys().map(PathBuf::as_path).collect();
        assert_eq!(
            paths,
            [Path::new("/lib/modules/6.1/builtin"), Path::new("/lib/modules/6.12/builtin")]
        );
    }
}
