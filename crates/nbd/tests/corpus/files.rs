//! The fuzzers' corpus (`fuzz/README.md`): its files as they are, cut, and with a few bytes changed.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A door, which takes the bytes of a stranger, by its name, which is also that of its corpus.
pub type Door<'a> = (&'a str, fn(&[u8]));

fn corpus(door: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(door);
    let entries = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    assert!(files.len() >= 5, "{} is nearly empty", directory.display());
    files
        .into_iter()
        .map(|path| {
            let bytes = std::fs::read(&path).expect("a file of the corpus");
            (path, bytes)
        })
        .collect()
}

/// Every file, and what is left of it where a client or server is gone in the middle.
pub fn take_every_file(doors: &[Door<'_>]) {
    for (name, door) in doors {
        for (path, bytes) in corpus(name) {
            // A name in the output of a failure.
            println!("{}", path.display());
            door(&bytes);
            for end in 0..bytes.len().min(300) {
                door(&bytes[..end]);
            }
        }
    }
}

/// One change: where, what kind, with which byte.
type Change = (prop::sample::Index, u8, u8);

fn change(bytes: &mut Vec<u8>, (at, kind, byte): Change) {
    if bytes.is_empty() {
        bytes.push(byte);
    }
    let at = at.index(bytes.len());
    match kind % 5 {
        0 => bytes[at] = byte,
        1 => bytes[at] ^= 1 << (byte % 8),
        2 => bytes.insert(at, byte),
        3 => {
            bytes.remove(at);
        }
        // A field at its end.
        _ => {
            let end = bytes.len().min(at + 4);
            bytes[at..end].fill(if byte % 2 == 0 { 0 } else { 0xff });
        }
    }
}

/// Every file with a few changes.
pub fn stand_changed_files(doors: &[Door<'_>]) {
    for (name, door) in doors {
        let files = corpus(name);
        let changes = proptest::collection::vec(any::<Change>(), 1..6);
        let both = (any::<prop::sample::Index>(), changes);
        let mut runner =
            TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(500) });
        runner
            .run(&both, |(which, changes)| {
                let (_, mut bytes) = files[which.index(files.len())].clone();
                for one in changes {
                    change(&mut bytes, one);
                }
                door(&bytes);
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
