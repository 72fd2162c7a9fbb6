//! Images on every kind of ground: what is written is read, and what is durable was made so.

use std::os::fd::AsRawFd;

use super::descriptions::DESCRIPTIONS;
use super::*;
use crate::net::Stream;

const BLOCK: u64 = 64 << 10;

fn image(directory: &Path, bytes: &[u8]) -> Image {
    let path = directory.join("image");
    std::fs::write(&path, bytes).unwrap();
    Image::open(&path, true).unwrap()
}

/// A directory on a disk and one in memory, where there is one.
fn grounds() -> Vec<tempfile::TempDir> {
    let mut grounds = vec![tempfile::tempdir().unwrap()];
    grounds.extend(tempfile::tempdir_in("/dev/shm"));
    grounds
}

#[test]
fn what_cannot_go_from_a_pipe_to_the_file_is_copied() {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    let directory = tempfile::tempdir().unwrap();
    let image = image(directory.path(), &[7; 100]);
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let stream = Stream::connected(ours.into(), "pair".into());
    let mut conduit = Conduit::new().unwrap();
    let mut put = |byte, at| {
        theirs.write_all(&[byte; 30]).unwrap();
        conduit.receive(&stream, 30, true).unwrap();
        image.write_from(&mut conduit, at, 30).unwrap();
        assert_eq!(conduit.held_bytes(), 0);
        image.takes_from_conduits()
    };
    assert!(put(1, 70));
    // Linux takes nothing from a pipe into a file that only grows at its end.
    rustix::fs::fcntl_setfl(&image.fd, OFlags::APPEND).unwrap();
    assert!(!put(2, 100));
    let wanted = [[7; 30], [7; 30], [1; 30], [2; 30]].concat();
    let mut found = vec![0; 130];
    image.read(0, &mut found).unwrap();
    assert_eq!(found, [&[7; 10], &wanted[..]].concat());
}

#[test]
fn a_file_that_was_cut_off_deleted_or_replaced_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    let image = image(directory.path(), &[7; 8192]);
    image.is_whole().unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let why = image.is_whole().unwrap_err().to_string();
    assert!(why.contains("cut off"), "{why}");
    image.write(4096, &[7; 8192]).unwrap();
    image.is_whole().unwrap();
    let other = directory.path().join("other");
    std::fs::write(&other, [1; 8192]).unwrap();
    std::fs::rename(&other, &path).unwrap();
    let why = image.is_whole().unwrap_err().to_string();
    assert!(why.contains("replaced"), "{why}");
    // As if a file was served that never had a name.
    let mut nameless = Image::open(&path, true).unwrap();
    nameless.was_named = false;
    std::fs::remove_file(&path).unwrap();
    nameless.is_whole().unwrap();
}

#[test]
fn syncs_at_once_have_descriptions_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let image = image(directory.path(), &[7; 8192]);
    let own = image.fd.as_fd();
    let take = |fd: BorrowedFd<'_>| fd.as_raw_fd();
    let others = image.descriptions.with(own, |first| {
        assert_ne!(first.as_raw_fd(), own.as_raw_fd());
        let second = image.descriptions.with(own, take);
        assert_ne!(first.as_raw_fd(), second);
        image.descriptions.idle.lock().unwrap().len()
    });
    assert_eq!(others, DESCRIPTIONS - 1);
    // More than there are wait for one another.
    std::thread::scope(|scope| {
        for at in 0..3 * DESCRIPTIONS as u64 {
            let image = &image;
            scope.spawn(move || {
                image.write_durably(at, &[9]).unwrap();
                image.sync().unwrap();
            });
        }
    });
    assert_eq!(image.descriptions.idle.lock().unwrap().len(), DESCRIPTIONS);
}

#[test]
fn what_is_written_is_read_and_zeros_are_zeros() {
    for directory in grounds() {
        let image = image(directory.path(), &[7; 4 * BLOCK as usize]);
        let mut block = vec![0; BLOCK as usize];
        image.read(BLOCK, &mut block).unwrap();
        assert_eq!(block, vec![7; BLOCK as usize]);
        image.write(BLOCK, &[8; 100]).unwrap();
        image.write_durably(BLOCK + 100, &[9; 100]).unwrap();
        image.sync().unwrap();
        let mut few = [0; 201];
        // It was written just now, so it is in memory, if the filesystem can say so.
        match image.read_ready(BLOCK, &mut few) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                image.read(BLOCK, &mut few).unwrap();
            }
            answer => answer.unwrap(),
        }
        assert_eq!(few[..100], [8; 100]);
        assert_eq!(few[100..200], [9; 100]);
        assert_eq!(few[200], 7);
        for (place, may_punch) in [(0, true), (1, false), (2, true)] {
            let at = place * BLOCK + 10;
            image.zero(at, BLOCK - 20, may_punch, false).unwrap();
            image.read(place * BLOCK, &mut block).unwrap();
            let (edge, middle) = block.split_at(10);
            assert!(edge.iter().all(|byte| *byte >= 7), "before the zeros");
            assert!(middle[..BLOCK as usize - 20].iter().all(|byte| *byte == 0));
            assert!(block[BLOCK as usize - 10..].iter().all(|byte| *byte == 7));
        }
        let error = image.read(4 * BLOCK - 1, &mut few).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn only_whole_blocks_are_zeroed_or_discarded_by_the_device() {
    for block in [512, 4096] {
        for offset in [0, 1, 511, 512, 4095, 4096, 5000, 8192] {
            for length in [0, 1, 511, 512, 513, 4096, 8191, 8192, 20_000] {
                let [head, blocks, tail] = split_at_blocks(offset, length, block);
                let case = format!("{offset}+{length} of {block}");
                assert!(head.1 < block && tail.1 < block, "{case}");
                assert!(blocks.1 == 0 || blocks.0 % block == 0, "{case}");
                assert_eq!(blocks.1 % block, 0, "{case}");
                // Nothing is left out, and nothing is done twice.
                assert_eq!(head.0, offset, "{case}");
                assert_eq!(head.0 + head.1, blocks.0, "{case}");
                assert_eq!(blocks.0 + blocks.1, tail.0, "{case}");
                assert_eq!(tail.0 + tail.1, offset + length, "{case}");
            }
        }
    }
}

#[test]
fn a_call_that_a_signal_interrupts_is_repeated() {
    let mut answers = vec![Err(Errno::NOSPC), Err(Errno::INTR), Err(Errno::INTR)];
    let answer = through_signals(|| answers.pop().unwrap());
    assert_eq!(answer, Err(Errno::NOSPC));
    assert!(answers.is_empty());
}

#[test]
fn holes_are_found_and_made() {
    for directory in grounds() {
        let image = image(directory.path(), &[7; 4 * BLOCK as usize]);
        let end = 4 * BLOCK;
        assert_eq!(image.next_data(0, end).unwrap(), Some((0, end)));
        image.discard(BLOCK, BLOCK).unwrap();
        image.zero(3 * BLOCK, BLOCK, true, true).unwrap();
        assert_eq!(image.next_data(0, end).unwrap(), Some((0, BLOCK)));
        assert_eq!(image.next_data(BLOCK, end).unwrap(), Some((2 * BLOCK, 3 * BLOCK)));
        assert_eq!(image.next_data(3 * BLOCK, end).unwrap(), None);
        // What a file has lost are no zeros.
        rustix::fs::ftruncate(&image.fd, 3 * BLOCK).unwrap();
        let error = image.next_data(3 * BLOCK, end).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        rustix::fs::ftruncate(&image.fd, end).unwrap();
        // Zeros that must take room do.
        image.zero(3 * BLOCK, BLOCK, false, false).unwrap();
        let mut block = vec![1; BLOCK as usize];
        image.read(3 * BLOCK, &mut block).unwrap();
        assert_eq!(block, vec![0; BLOCK as usize]);
    }
}

#[test]
fn a_link_out_of_the_directory_is_not_followed() {
    use std::os::unix::fs::symlink;
    let place = tempfile::tempdir().unwrap();
    let inside = place.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    for path in [place.path().join("secret"), inside.join("a.img")] {
        std::fs::write(path, [7; 512]).unwrap();
    }
    symlink("../secret", inside.join("up.img")).unwrap();
    symlink(place.path().join("secret"), inside.join("absolute.img")).unwrap();
    symlink("a.img", inside.join("beside.img")).unwrap();
    let open = |name: &str| Image::open_in(&inside, name.as_ref(), true);
    for name in ["up.img", "absolute.img", "../secret"] {
        assert!(matches!(open(name), Err(ImageError::LeadsOut)), "{name}");
    }
    let image = open("a.img").unwrap();
    let inode = image.inode().unwrap();
    drop(image);
    assert_eq!(open("beside.img").unwrap().inode().unwrap(), inode);
    assert!(matches!(open("none.img"), Err(ImageError::Missing)));
}

#[test]
fn two_writers_of_one_file_are_one_too_many() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    std::fs::write(&path, [0; 512]).unwrap();
    let reader = Image::open(&path, false).unwrap();
    let _second = Image::open(&path, false).unwrap();
    assert!(matches!(Image::open(&path, true), Err(ImageError::Locked)));
    drop((reader, _second));
    let writer = Image::open(&path, true).unwrap();
    assert!(matches!(Image::open(&path, false), Err(ImageError::Locked)));
    drop(writer);
    assert!(Image::open(&path, true).is_ok());
    assert!(matches!(Image::open(directory.path(), false), Err(ImageError::NotAFile)));
    let missing = directory.path().join("missing");
    assert!(matches!(Image::open(&missing, true), Err(ImageError::Missing)));
}
