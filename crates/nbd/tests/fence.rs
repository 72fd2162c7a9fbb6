//! A client that comes again after it has lost a connection: nothing that the old one left behind is done after the
//! server has let the new one begin.

#[path = "common/slow.rs"]
mod slow;

use std::time::{Duration, Instant};

use rubus_nbd::wire::{Claim, CommandFlags};

use slow::{Run, SLOW, send_writes, write, write_block};

/// A connection of one attachment.
fn claim(generation: u64, lane: u32) -> Option<Claim> {
    Some(Claim { attachment: 0x1234, generation, lane, ended: 0 })
}

#[test]
fn nothing_of_the_old_connection_is_done_after_the_new_one_begins() {
    let run = Run::new();
    let mut old = run.connect(claim(1, 0));
    send_writes(&mut old, 50, SLOW, CommandFlags::NONE);
    run.disk.await_waiting(1);
    let new = run.connecting(claim(2, 0));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!new.is_finished(), "a write of the old one is still under way");
    run.disk.let_go();
    let (mut new, _) = new.join().unwrap().expect("they agree");
    write(&mut new, 2);
    // What was under way ended before; the 49 others were never begun.
    assert_eq!(run.end(), [SLOW, 2]);
}

#[test]
fn what_waits_for_a_thread_is_forgotten_and_what_has_one_is_waited_for() {
    let run = Run::new();
    let mut old = run.connect(claim(1, 0));
    send_writes(&mut old, 100, SLOW, CommandFlags::FUA);
    run.disk.await_waiting(12);
    let new = run.connecting(claim(2, 0));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!new.is_finished());
    run.disk.let_go();
    let (mut new, _) = new.join().unwrap().expect("they agree");
    write(&mut new, 2);
    let mut expected = vec![SLOW; 12];
    expected.push(2);
    assert_eq!(run.end(), expected);
}

#[test]
fn a_disk_that_hangs_has_words_and_stops_nobody_else() {
    let run = Run::new();
    let mut old = run.connect(claim(1, 0));
    send_writes(&mut old, 1, SLOW, CommandFlags::NONE);
    run.disk.await_waiting(1);
    let new = run.connecting(claim(2, 0));
    let start = Instant::now();
    write_block(&mut run.connect(None), 1, 7);
    write_block(&mut run.connect(claim(3, 1)), 2, 8);
    assert!(start.elapsed() < Duration::from_secs(3), "others wait");
    let why = new.join().unwrap().map(|_| ()).expect_err("it is not let in");
    assert!(why.contains("still waits for its disk"), "{why}");
    assert_eq!(run.end(), [7, 8, SLOW]);
}

#[test]
fn the_other_lanes_of_an_attachment_go_on() {
    let run = Run::new();
    let mut other = run.connect(claim(1, 1));
    let mut stranger = run.connect(None);
    let old = run.connect(claim(2, 0));
    let mut new = run.connect(claim(3, 0));
    write(&mut other, 4);
    write(&mut stranger, 5);
    write(&mut new, 6);
    drop(old);
    assert_eq!(run.end(), [4, 5, 6]);
}

#[test]
fn an_idle_connection_is_ended_too_and_one_that_comes_late_is_not_let_in() {
    let run = Run::new();
    let mut old = run.connect(claim(1, 0));
    write(&mut old, 3);
    // Longer than a client keeps its thread.
    std::thread::sleep(Duration::from_millis(2500));
    let mut new = run.connect(claim(2, 0));
    write(&mut new, 4);
    let mut byte = [0];
    let ended = old.transport().receive_into(&mut byte, true);
    assert!(matches!(ended, Ok(0)), "{ended:?}");
    let late = run.connecting(claim(1, 0)).join().unwrap();
    let why = late.map(|_| ()).expect_err("a newer one is here");
    assert!(why.contains("a newer connection"), "{why}");
    write(&mut new, 5);
    assert_eq!(run.end(), [3, 4, 5]);
}
