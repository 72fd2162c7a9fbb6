//! Clones in files: against a model, from several threads, with a golden image that stays what it is.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::crash_tests::{Dice, Rig, golden_byte};
use super::fleet::{ClientName, Fleet, FleetError, Lasting};
use super::format::Kind;
use super::golden::GoldenFile;
use super::maintain::{CloneState, list, merge, reset, throw_away};
use crate::server::disk::{Disk, Zeroing};

const SIZE: u64 = (3 << 20) + 1000;

fn golden_bytes() -> Vec<u8> {
    // A hole in the middle.
    let is_hole = |at: u64| (1 << 20..2 << 20).contains(&at);
    (0..SIZE).map(|at| if is_hole(at) { 0 } else { golden_byte(at) }).collect()
}

fn write_golden(path: &Path) {
    use std::os::unix::fs::FileExt;
    let bytes = golden_bytes();
    let file = std::fs::File::create(path).unwrap();
    file.set_len(SIZE).unwrap();
    file.write_all_at(&bytes[..1 << 20], 0).unwrap();
    file.write_all_at(&bytes[2 << 20..], 2 << 20).unwrap();
}

struct Place {
    directory: tempfile::TempDir,
    /// Where the golden image is when clones cannot share its blocks.
    elsewhere: Option<tempfile::TempDir>,
}

impl Place {
    fn new() -> Self {
        Self::with_golden_in(None)
    }

    /// With the golden image in memory: no filesystem shares blocks with another one, so clones have a map.
    fn without_sharing() -> Self {
        Self::with_golden_in(Some(tempfile::tempdir_in("/dev/shm").unwrap()))
    }

    fn with_golden_in(elsewhere: Option<tempfile::TempDir>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = Place { directory, elsewhere };
        write_golden(&place.golden());
        place
    }

    fn golden(&self) -> std::path::PathBuf {
        self.elsewhere.as_ref().unwrap_or(&self.directory).path().join("golden.img")
    }

    fn clones(&self) -> std::path::PathBuf {
        self.directory.path().join("clones")
    }

    fn fleet(&self, lasting: Lasting) -> Fleet {
        let golden = GoldenFile::open(&self.golden()).unwrap();
        Fleet::new(&self.clones(), golden, lasting, 100).unwrap()
    }
}

fn name(name: &str) -> ClientName {
    ClientName::asked(name).unwrap()
}

fn all_of(disk: &impl Disk) -> Vec<u8> {
    let mut bytes = vec![0; disk.size_bytes() as usize];
    disk.read(0, &mut bytes).unwrap();
    bytes
}

/// One operation on a disk and on what it should be.
fn operate(disk: &impl Disk, model: &mut [u8], dice: &mut Dice) {
    let offset = dice.below(SIZE);
    let length = match dice.below(3) {
        0 => 1 + dice.below(300),
        1 => 4096 * (1 + dice.below(4)),
        _ => 1 + dice.below(300_000),
    };
    let offset = if dice.below(2) == 0 { offset / 4096 * 4096 } else { offset };
    let length = length.min(SIZE - offset);
    let part = offset as usize..(offset + length) as usize;
    match dice.below(8) {
        0 => {
            let may_punch = dice.below(2) == 0;
            let how = Zeroing { may_punch, only_if_fast: false };
            disk.zero(offset, length, how).unwrap();
            model[part].fill(0);
        }
        1 => {
            disk.trim(offset, length).unwrap();
            let mut seen = vec![0; length as usize];
            disk.read(offset, &mut seen).unwrap();
            for (is, was) in seen.iter().zip(&mut model[part]) {
                assert!(*is == 0 || is == was);
                *was = *is;
            }
        }
        2 => disk.flush().unwrap(),
        3 => {
            let mut seen = vec![0; length as usize];
            match disk.read_ready(offset, &mut seen) {
                Ok(()) => assert!(seen == model[part]),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        4 => {
            // What the extents call zeros is zeros, and together they are what was asked for.
            let extents = disk.extents(offset, length, dice.below(2) == 0).unwrap();
            let mut at = offset as usize;
            for extent in &extents {
                assert!(extent.length > 0);
                let end = at + extent.length as usize;
                assert!(!extent.is_zero || model[at..end].iter().all(|&byte| byte == 0));
                at = end;
            }
            assert!(at > offset as usize && at <= part.end);
        }
        _ => {
            let byte = dice.next() as u8;
            let bytes: Vec<u8> = (0..length).map(|at| byte.wrapping_add(at as u8)).collect();
            disk.write(offset, &bytes).unwrap();
            model[part].copy_from_slice(&bytes);
        }
    }
}

#[test]
fn a_clone_does_what_a_disk_does() {
    for lasting in [Lasting::Kept, Lasting::ThrownAway] {
        let place = Place::new();
        let mut model = golden_bytes();
        let mut dice = Dice(5);
        for _ in 0..4 {
            let fleet = place.fleet(lasting);
            let disk = fleet.clone_of(&name("a")).unwrap();
            if lasting == Lasting::ThrownAway {
                model = golden_bytes();
            }
            assert!(all_of(&*disk) == model);
            for _ in 0..200 {
                operate(&*disk, &mut model, &mut dice);
            }
            assert!(all_of(&*disk) == model);
        }
        assert!(
            std::fs::read(place.golden()).unwrap() == golden_bytes(),
            "the golden image is never written"
        );
        if lasting == Lasting::ThrownAway {
            assert_eq!(std::fs::read_dir(place.clones()).unwrap().count(), 0);
        }
    }
}

#[test]
fn threads_that_write_parts_of_one_block_lose_nothing() {
    let place = Place::new();
    let disk = place.fleet(Lasting::Kept).clone_of(&name("a")).unwrap();
    let mut expected = golden_bytes();
    let pieces: Vec<u64> = (0..SIZE / 1000).collect();
    for &piece in &pieces {
        expected[piece as usize * 1000..][..1000].fill(piece as u8);
    }
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (disk, pieces) = (&disk, &pieces);
            scope.spawn(move || {
                // Neighbours are always another thread's.
                for &piece in pieces.iter().filter(|&&piece| piece % 4 == thread) {
                    disk.write(piece * 1000, &[piece as u8; 1000]).unwrap();
                    if piece % 97 == 0 {
                        disk.flush().unwrap();
                    }
                }
            });
        }
    });
    assert!(all_of(&*disk) == expected);
    drop(disk);
    assert!(all_of(&*place.fleet(Lasting::Kept).clone_of(&name("a")).unwrap()) == expected);
}

#[test]
fn connections_of_one_client_share_a_clone_and_others_do_not() {
    let place = Place::new();
    let fleet = place.fleet(Lasting::Kept);
    let (one, two) = (fleet.clone_of(&name("a")).unwrap(), fleet.clone_of(&name("a")).unwrap());
    let other = fleet.clone_of(&name("b")).unwrap();
    one.write(0, b"hello").unwrap();
    let mut seen = [0; 5];
    two.read(0, &mut seen).unwrap();
    assert_eq!(&seen, b"hello");
    assert_eq!(one.identity(), two.identity());
    other.read(0, &mut seen).unwrap();
    assert_eq!(seen[..], golden_bytes()[..5]);
    assert_ne!(one.identity().export, other.identity().export);
    // Another server may not have it, until the last connection is gone.
    let second = place.fleet(Lasting::Kept);
    assert!(matches!(second.clone_of(&name("a")), Err(FleetError::InUse(_))));
    drop(one);
    assert!(matches!(second.clone_of(&name("a")), Err(FleetError::InUse(_))));
    let before = two.identity();
    drop(two);
    let again = second.clone_of(&name("a")).unwrap();
    again.read(0, &mut seen).unwrap();
    assert_eq!((&seen, again.identity()), (b"hello", before), "a reconnect finds the same disk");
}

#[test]
fn clients_that_come_and_go_at_once_always_get_their_clone() {
    let place = Place::new();
    let fleet = place.fleet(Lasting::Kept);
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let fleet = &fleet;
            scope.spawn(move || {
                for turn in 0..30 {
                    let disk = fleet.clone_of(&name("a")).unwrap();
                    disk.write(u64::from(thread) * 512, &[turn; 512]).unwrap();
                }
            });
        }
    });
    let disk = fleet.clone_of(&name("a")).unwrap();
    assert!(all_of(&*disk)[..2048].iter().all(|&byte| byte == 29));
}

#[test]
fn an_image_that_changed_below_a_clone_is_refused() {
    let place = Place::without_sharing();
    drop(place.fleet(Lasting::Kept).clone_of(&name("a")).unwrap());
    let file = std::fs::OpenOptions::new().write(true).open(place.golden()).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"other", 0).unwrap();
    let kind = list(&place.clones()).unwrap().remove(0);
    assert_eq!(kind.contents.unwrap().kind, Kind::Map);
    let opened = place.fleet(Lasting::Kept).clone_of(&name("a"));
    let why = opened.unwrap_err().to_string();
    assert!(why.contains("golden image") && why.contains("reset the clone"), "{why}");
    assert!(matches!(kind.state, CloneState::Unusable(_)));
    assert_eq!(reset(&place.clones(), &name("a"), None).unwrap(), 2);
    let disk = place.fleet(Lasting::Kept).clone_of(&name("a")).unwrap();
    assert_eq!(&all_of(&*disk)[..5], b"other");
}

#[test]
fn clones_are_listed_reset_merged_and_thrown_away() {
    let place = Place::new();
    let fleet = place.fleet(Lasting::Kept);
    let disk = fleet.clone_of(&name("board-1")).unwrap();
    let mut model = golden_bytes();
    let mut dice = Dice(9);
    for _ in 0..60 {
        operate(&*disk, &mut model, &mut dice);
    }
    let before = disk.identity();
    let listed = list(&place.clones()).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].state, CloneState::Open);
    for refused in [
        reset(&place.clones(), &name("board-1"), None).map(drop),
        throw_away(&place.clones(), &name("board-1")),
    ] {
        assert!(matches!(refused, Err(FleetError::InUse(_))));
    }
    drop(disk);
    let listed = list(&place.clones()).unwrap();
    assert_eq!(listed[0].state, CloneState::Closed);
    let contents = listed[0].contents.as_ref().unwrap();
    assert_eq!((contents.generation, contents.size_bytes), (1, SIZE));
    assert_eq!(contents.golden, std::fs::canonicalize(place.golden()).unwrap());

    let out = place.directory.path().join("out.img");
    let mut last = 0;
    merge(&place.clones(), &name("board-1"), None, &out, &mut |at| last = at).unwrap();
    assert_eq!(last, SIZE);
    assert!(std::fs::read(&out).unwrap() == model);
    let again = merge(&place.clones(), &name("board-1"), None, &out, &mut |_| {});
    assert!(again.unwrap_err().to_string().contains("exists"));

    assert_eq!(reset(&place.clones(), &name("board-1"), None).unwrap(), 2);
    let disk = fleet.clone_of(&name("board-1")).unwrap();
    assert!(all_of(&*disk) == golden_bytes());
    let now = disk.identity();
    assert_eq!((now.export, now.generation), (before.export, 2));
    drop(disk);
    throw_away(&place.clones(), &name("board-1")).unwrap();
    assert!(list(&place.clones()).unwrap().is_empty());
    let disk = fleet.clone_of(&name("board-1")).unwrap();
    assert_ne!(disk.identity().export, before.export, "a new disk under the old name");
}

#[test]
fn names_are_plain() {
    for good in ["a", "10000000abcd", "Board_1.lab-2"] {
        assert!(ClientName::asked(good).is_ok(), "{good}");
    }
    let long = "a".repeat(65);
    for bad in ["", ".", "..", "../x", "a/b", "-a", "ä", "a b", &long] {
        assert!(ClientName::asked(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_file_that_is_no_clone_is_refused() {
    let place = Place::new();
    drop(place.fleet(Lasting::Kept));
    let path = place.clones().join("a.clone");
    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    let why = place.fleet(Lasting::Kept).clone_of(&name("a")).unwrap_err().to_string();
    assert!(why.ends_with("it is no clone"), "{why}");
    let mut later = super::crash_tests::header(SIZE).encode(1);
    later[16] = 2;
    std::fs::write(&path, &later[..]).unwrap();
    let why = place.fleet(Lasting::Kept).clone_of(&name("a")).unwrap_err().to_string();
    assert!(why.contains("version 2"), "{why}");
}

/// Flushes of an untouched clone write no page, and those of a written one only what changed.
#[test]
fn a_flush_writes_what_changed_and_no_more() {
    let rig = Rig::new(super::format::PAGE_BLOCKS * 4096 * 3);
    let disk = Arc::new(rig.open().unwrap());
    let events = || rig.medium.events();
    let cost = |work: &dyn Fn()| {
        let before = events();
        work();
        events() - before
    };
    disk.write(0, &[1; 4096]).unwrap();
    // Sync, one page, sync.
    assert_eq!(cost(&|| disk.flush().unwrap()), 3);
    assert_eq!(cost(&|| disk.flush().unwrap()), 1);
    disk.write(100, &[1; 100]).unwrap();
    assert_eq!(cost(&|| disk.flush().unwrap()), 1);
}

#[test]
fn a_clone_that_was_cut_off_or_partly_zeroed_is_refused() {
    use std::os::unix::fs::FileExt;
    let place = Place::new();
    let fleet = place.fleet(Lasting::Kept);
    let disk = fleet.clone_of(&name("a")).unwrap();
    disk.write(0, b"mine").unwrap();
    disk.flush().unwrap();
    drop(disk);
    let path = place.clones().join("a.clone");
    let whole = std::fs::read(&path).unwrap();
    let must_be_refused = |words: &str| {
        let why = fleet.clone_of(&name("a")).unwrap_err().to_string();
        assert!(why.contains("damaged") && why.contains(words), "{why}");
        let listed = list(&place.clones()).unwrap().remove(0);
        assert!(
            matches!(listed.state, CloneState::Unusable(ref why) if why.contains(words)),
            "{listed:?}"
        );
        std::fs::write(&path, &whole).unwrap();
    };
    let file = || std::fs::File::options().write(true).open(&path).unwrap();
    for length in [8192, 1 << 20] {
        file().set_len(length).unwrap();
        must_be_refused("cut off");
    }
    let has_map = list(&place.clones()).unwrap()[0]
        .contents
        .as_ref()
        .is_some_and(|contents| contents.kind == Kind::Map);
    if has_map {
        file().write_all_at(&[0; 4096], 8192).unwrap();
        must_be_refused("pages of its map are missing");
    }
    let mut seen = [0; 4];
    fleet.clone_of(&name("a")).unwrap().read(0, &mut seen).unwrap();
    assert_eq!(&seen, b"mine");
}
