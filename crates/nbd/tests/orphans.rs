//! Connections that end while the disk is slow: nothing of theirs is done after what other connections write later.

#[path = "orphans/clones.rs"]
mod clones;
#[path = "orphans/encrypted.rs"]
mod encrypted;
#[path = "common/slow.rs"]
mod slow;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rubus_nbd::client::{Client, Due};
use rubus_nbd::transport::Transport;
use rubus_nbd::wire::{Command, CommandFlags, ErrorCode};

use slow::{BLOCK, Run, SLOW, send_writes, write};

fn due(slot: u32, command: Command, block: u64) -> Due {
    let flags = CommandFlags::NONE;
    let length = if command == Command::Flush { 0 } else { BLOCK as u32 };
    Due { slot, command, flags, offset: block * BLOCK as u64, length, memory_at: 0 }
}

/// Sends a request to each of these blocks, with this byte if it is a write, and waits for nothing.
fn send<T: Transport>(client: &mut Client<T>, command: Command, blocks: &[u64], byte: u8) {
    for (slot, block) in blocks.iter().enumerate() {
        client.queue(&due(slot as u32, command, *block), BLOCK).expect("it is fine");
    }
    while !client.turn(&mut vec![byte; BLOCK], &mut Vec::new()).expect("it sends").all_sent {}
}

/// Does a request; says in `is_done` when it is answered.
fn exchange<T: Transport>(client: &mut Client<T>, due: Due, byte: u8, is_done: &AtomicBool) {
    let mut answers = Vec::new();
    client.exchange(&[due], &mut vec![byte; BLOCK], &mut answers).expect("it is served");
    assert_eq!(answers[0].error, ErrorCode::NONE);
    is_done.store(true, Ordering::SeqCst);
}

/// Has a client do something, which has to wait until the disk is let go.
fn waits<T: Transport + Send>(run: &Run, client: &mut Client<T>, due: Due, byte: u8) {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(client, due, byte, &is_done));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!is_done.load(Ordering::SeqCst), "an old write is still under way");
        run.disk.let_go();
    });
}

#[test]
fn a_write_waits_for_that_of_a_dead_connection_and_the_rest_of_that_is_given_up() {
    let run = Run::new();
    let mut old = run.connect(None);
    send_writes(&mut old, 50, SLOW, CommandFlags::NONE);
    run.disk.await_waiting(1);
    drop(old);
    waits(&run, &mut run.connect(None), due(0, Command::Write, 0), 2);
    assert_eq!(run.end(), [SLOW, 2]);
}

#[test]
fn what_waits_for_a_thread_is_given_up_and_what_has_one_is_waited_for() {
    let run = Run::new();
    let mut old = run.connect(None);
    send_writes(&mut old, 100, SLOW, CommandFlags::FUA);
    run.disk.await_waiting(12);
    drop(old);
    waits(&run, &mut run.connect(None), due(0, Command::Write, 0), 2);
    assert_eq!(run.end(), [&[SLOW; 12][..], &[2]].concat());
}

#[test]
fn a_connection_that_was_there_before_waits_too() {
    let run = Run::new();
    let (mut old, mut other) = (run.connect(None), run.connect(None));
    write(&mut other, 7);
    send(&mut old, Command::Write, &[3, 4, 5], SLOW);
    run.disk.await_waiting(1);
    drop(old);
    std::thread::sleep(Duration::from_millis(2));
    waits(&run, &mut other, due(0, Command::Write, 3), 2);
    let places = run.disk.places();
    assert_eq!(places, [(0, 7), (3, SLOW), (3, 2)]);
    run.end();
}

#[test]
fn other_places_are_not_waited_for_and_are_not_overwritten_either() {
    let run = Run::new();
    let mut old = run.connect(None);
    send(&mut old, Command::Write, &[3, 4, 5], SLOW);
    run.disk.await_waiting(1);
    drop(old);
    let mut new = run.connect(None);
    exchange(&mut new, due(0, Command::Write, 4), 2, &AtomicBool::new(false));
    exchange(&mut new, due(0, Command::Read, 5), 0, &AtomicBool::new(false));
    waits(&run, &mut new, due(0, Command::Write, 3), 2);
    assert_eq!(run.disk.places(), [(4, 2), (3, SLOW), (3, 2)]);
    run.end();
}

#[test]
fn reads_of_the_place_zeros_and_flushes_wait() {
    for command in [Command::Read, Command::WriteZeroes, Command::Trim, Command::Flush] {
        let run = Run::new();
        let mut old = run.connect(None);
        send(&mut old, Command::Write, &[0], SLOW);
        run.disk.await_waiting(1);
        drop(old);
        waits(&run, &mut run.connect(None), due(0, command, 0), 0);
        run.end();
    }
}

#[test]
fn after_a_disconnect_in_order_all_is_done_except_what_was_written_later() {
    let run = Run::new();
    let mut old = run.connect(None);
    send(&mut old, Command::Write, &[3, 4, 5, 6], SLOW);
    run.disk.await_waiting(1);
    old.disconnect();
    drop(old);
    let mut new = run.connect(None);
    exchange(&mut new, due(0, Command::Write, 5), 2, &AtomicBool::new(false));
    waits(&run, &mut new, due(0, Command::Write, 3), 2);
    // A server that stops leaves what is not begun.
    run.disk.await_done(5);
    let mut places = run.disk.places();
    run.end();
    places.retain(|place| *place != (3, 2));
    assert_eq!(places, [(5, 2), (3, SLOW), (4, SLOW), (6, SLOW)]);
}

#[test]
fn a_client_that_only_stops_sending_gets_its_answers_while_nobody_else_is_there() {
    let run = Run::new();
    let mut old = run.connect(None);
    send_writes(&mut old, 20, SLOW, CommandFlags::FUA);
    run.disk.await_waiting(12);
    drop(old);
    std::thread::sleep(Duration::from_millis(100));
    run.disk.let_go();
    run.disk.await_done(20);
    assert_eq!(run.end(), [SLOW; 20]);
}

#[test]
fn connections_that_are_open_do_not_wait_for_each_other() {
    let run = Run::new();
    let mut slow = run.connect(None);
    send(&mut slow, Command::Write, &[0], SLOW);
    run.disk.await_waiting(1);
    write(&mut run.connect(None), 2);
    assert_eq!(run.end(), [2, SLOW]);
}

#[test]
fn a_server_that_stops_does_not_wait_for_those_that_wait() {
    let run = Run::new();
    let mut old = run.connect(None);
    send(&mut old, Command::Write, &[0], SLOW);
    run.disk.await_waiting(1);
    drop(old);
    let mut new = run.connect(None);
    send(&mut new, Command::Write, &[0], 2);
    std::thread::sleep(Duration::from_millis(100));
    run.server.stop();
    assert_eq!(run.end(), [SLOW], "what was not begun is not answered");
}
