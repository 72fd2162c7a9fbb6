//! What a crash cannot have done is damage, and is told as such.

use super::*;

#[test]
fn a_map_that_has_lost_pages_or_halves_of_them_is_damage() {
    for flushes in [1, 2, 3] {
        for is_closed in [true, false] {
            for slot in 0..2 {
                let rig = Rig::new(SIZE);
                let disk = rig.open().unwrap();
                for block in 0..flushes {
                    disk.write(block * 4096, &[7; 4096]).unwrap();
                    disk.flush().unwrap();
                }
                disk.close().unwrap();
                drop(disk);
                if !is_closed {
                    // Killed while it was open for the second time.
                    drop(rig.open().unwrap());
                    rig.medium.restart_server();
                }
                let at = Layout::of(SIZE, Kind::Map).page_at(0, slot);
                let mut before = [0; 4096];
                rig.medium.read_at(at, &mut before).unwrap();
                rig.medium.write_at(at, &mut [IoSlice::new(&[0; 4096])]).unwrap();
                let opened = rig.open().map(|_| ());
                if before == [0; 4096] {
                    opened.unwrap();
                    continue;
                }
                // Of a page that was written twice the later half may be one that a crash has kept from being written.
                let is_as_after_a_crash = !is_closed && flushes == 2 && slot == 1;
                assert_eq!(
                    matches!(opened, Err(OpenError::Damaged(_))),
                    !is_as_after_a_crash,
                    "{flushes} flushes, slot {slot}, closed {is_closed}: {opened:?}"
                );
            }
        }
    }
}

#[test]
fn a_clone_that_was_cut_off_is_damage() {
    let rig = Rig::new(SIZE);
    let disk = rig.open().unwrap();
    disk.write(0, &[7; 4096]).unwrap();
    disk.close().unwrap();
    drop(disk);
    let whole = Layout::of(SIZE, Kind::Map).file_bytes;
    for length in [4096, 1 << 20, whole - 1] {
        rig.medium.with(|state| state.length = Some(length));
        let why = rig.open().unwrap_err().to_string();
        assert!(why.contains("it was cut off"), "{why}");
    }
    rig.medium.with(|state| state.length = Some(whole));
    rig.open().unwrap();
}
