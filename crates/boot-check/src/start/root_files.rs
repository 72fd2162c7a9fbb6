//! The files of a root that decide whether a start reaches a login.

use std::collections::BTreeSet;
use std::path::Path;

use rubus_boot::chain::{ChainFacts, Defect, RootFiles};
use rubus_boot::cmdline_txt::CmdlineTxt;
use rubus_boot::config_txt::BootPath;
use rubus_boot::crypttab::Crypttab;
use rubus_boot::fstab::Fstab;
use rubus_boot::modules::Modules;
use rubus_host::{Files, ReadError};

/// What the kernel starts where `init=` names none, before it gives up and starts a shell. Source: Linux, init/main.c.
const INITS: [&str; 3] = ["/sbin/init", "/etc/init", "/bin/init"];
const MODULES: [&str; 2] = ["/lib/modules", "/usr/lib/modules"];
/// The largest list of modules that is read.
const MAX_LIST_BYTES: usize = 16 << 20;
const MAX_TABLE_BYTES: usize = 1 << 20;

/// Reads the root that `files` shows. Where it is `whole`, what is not there does not exist.
pub(super) fn root_files(files: &dyn Files, is_whole: bool, init: Option<&str>) -> RootFiles {
    let (fstab, fstab_defect) = table(files, "/etc/fstab");
    let (crypttab, crypttab_defect) = table(files, "/etc/crypttab");
    let is_unreadable = is_whole && fstab.is_none();
    let unreadable = || is_unreadable.then(|| "/etc/fstab cannot be read".to_string());
    let first = is_whole.then(|| first_program(files, init));
    let is_there = first.as_ref().filter(|(_, is_there)| *is_there);
    let init_defect = is_there.and_then(|(program, _)| defect(files, program));
    let releases = MODULES.iter().find_map(|place| files.list(Path::new(place)).ok());
    RootFiles {
        unread: None,
        unread_table: fstab_defect.or(crypttab_defect).or_else(unreadable),
        fstab,
        crypttab,
        absent: BTreeSet::new(),
        releases: releases.map(|names| names.into_iter().collect()),
        subvolumes: None,
        subvolume_numbers: None,
        default_subvolume: None,
        init: first,
        init_defect,
        usual_init: usual_init(files),
        program_bits: program_bits(files),
        is_systemd: is_systemd(files, is_whole),
    }
}

/// The text of a table, and why it is not understood where it is there.
fn table(files: &dyn Files, path: &str) -> (Option<String>, Option<String>) {
    match files.read_prefix(Path::new(path), MAX_TABLE_BYTES) {
        Ok(bytes) => {
            let defect = not_plain(&bytes).map(|what| format!("{path} {what}"));
            (Some(String::from_utf8_lossy(&bytes).into_owned()), defect)
        }
        // Systems that mount by other means have none: no line of it ends a start.
        Err(ReadError::Absent) => (Some(String::new()), None),
        // A table of volumes with their keys may be for root alone.
        Err(_) => (None, None),
    }
}

/// Why the lines of a text are not those that a program finds, as in a file of an editor for another system, or one that a power
/// cut left full of zeros.
fn not_plain(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Some("is UTF-16, of which no line is understood");
    }
    if bytes.contains(&0) {
        return Some("holds zero bytes, and what is read of it is not known");
    }
    let has_mark = bytes.starts_with(b"\xef\xbb\xbf");
    has_mark.then_some("begins with a byte order mark, which spoils its first line")
}

/// Of the paths that both tables name, those that are not there. Not asked of a machine that runs, where a server that does not
/// answer may be mounted at one.
pub(super) fn absent(files: &dyn Files, root: &RootFiles) -> BTreeSet<String> {
    let fstab = Fstab::parse(root.fstab.as_deref().unwrap_or_default());
    let named = fstab.entries().into_iter().flat_map(|entry| [entry.target, entry.source]);
    let crypttab = Crypttab::parse(root.crypttab.as_deref().unwrap_or_default());
    let keys = crypttab.entries().into_iter().map(|entry| entry.key_file());
    let is_absent = |path: &String| path.starts_with('/') && !files.exists(Path::new(path));
    named.filter(|path| !path.starts_with("/dev/")).chain(keys).filter(is_absent).collect()
}

fn usual_init(files: &dyn Files) -> Option<String> {
    let found = INITS.iter().find(|path| files.exists(Path::new(path)));
    found.map(|path| (*path).to_string())
}

fn first_program(files: &dyn Files, init: Option<&str>) -> (String, bool) {
    let named = init.filter(|path| path.starts_with('/'));
    let all: Vec<&str> = named.map_or(INITS.to_vec(), |named| vec![named]);
    let found = all.iter().find(|path| files.exists(Path::new(path)));
    match found {
        Some(path) => ((*path).to_string(), true),
        None => (all[0].to_string(), false),
    }
}

/// What keeps a program that is there from being run, as far as can be seen.
fn defect(files: &dyn Files, program: &str) -> Option<Defect> {
    let path = Path::new(program);
    let head = files.read_prefix(path, 20).ok()?;
    let may_run = |mode: u32| mode & 0o111 != 0;
    // A link has all permissions.
    let mode = files.real_path(path).and_then(|real| files.mode(&real));
    match head.as_slice() {
        [] => Some(Defect::Empty),
        _ if files.keeps_modes(path) && mode.is_ok_and(|mode| !may_run(mode)) => {
            Some(Defect::NotExecutable)
        }
        [b'\x7f', b'E', b'L', b'F', ..] => {
            is_for_arm(&head).is_some_and(|is_it| !is_it).then_some(Defect::OtherProcessor)
        }
        [b'#', b'!', ..] => None,
        _ => Some(Defect::NoProgram),
    }
}

/// Whether a program is for the processors of these boards, by its header. Source: elf(5), `e_machine`.
fn is_for_arm(head: &[u8]) -> Option<bool> {
    const ARM: u16 = 40;
    const AARCH64: u16 = 183;
    const LITTLE_ENDIAN: u8 = 1;
    let machine = head.get(18..20).filter(|_| head.get(5) == Some(&LITTLE_ENDIAN))?;
    Some([ARM, AARCH64].contains(&u16::from_le_bytes([machine[0], machine[1]])))
}

/// 32 or 64, from the header of a program. Source: elf(5), `EI_CLASS`.
fn program_bits(files: &dyn Files) -> Option<u32> {
    let programs = ["/sbin/init", "/bin/sh", "/usr/bin/env"];
    let class = |path: &&str| {
        let head = files.read_prefix(Path::new(path), 5).ok()?;
        (head.starts_with(b"\x7fELF")).then(|| head.get(4).copied())?
    };
    match programs.iter().find_map(class)? {
        1 => Some(32),
        2 => Some(64),
        _ => None,
    }
}

fn is_systemd(files: &dyn Files, is_whole: bool) -> Option<bool> {
    let places = ["/lib/systemd/systemd", "/usr/lib/systemd/systemd"];
    let is_there = places.iter().any(|path| files.exists(Path::new(path)));
    let is_other =
        files.exists(Path::new("/sbin/openrc")) || files.exists(Path::new("/etc/inittab"));
    match (is_there, is_other) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => is_whole.then_some(false),
    }
}

/// Gives each kernel the lists of its modules.
pub(super) fn modules_into(files: &dyn Files, facts: &mut ChainFacts) {
    for kernel in facts.images.kernels.values_mut() {
        let Some(release) = &kernel.release else { continue };
        let list = |name: &str| {
            let texts = MODULES.iter().filter_map(|place| {
                let path = Path::new(place).join(release).join(name);
                files.read_prefix(&path, MAX_LIST_BYTES).ok()
            });
            let bytes = texts.into_iter().next().unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        kernel.modules = Modules::parse(&list("modules.dep"), &list("modules.builtin"));
    }
}

/// What `init=` of a way to start says.
pub(super) fn init_of(facts: &ChainFacts, path: &BootPath) -> Option<String> {
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline)?);
    line.get("init").map(str::to_string)
}

/// Why a root was not read, for a sentence.
pub(super) fn unread(why: impl Into<String>) -> RootFiles {
    RootFiles { unread: Some(why.into()), ..RootFiles::default() }
}
