//! Ctrl-C ends what waits for a server that hangs, wherever it hangs: one is enough.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Where a server hangs: with this many answers, counted from its greeting over its options to its requests.
#[derive(Clone, Copy, Debug)]
enum Hangs {
    BeforeGreeting,
    InHandshake,
    AfterRequests(u32),
}

const SIZE_BYTES: u64 = 64 << 20;
/// How long to wait for a program, which itself would wait for its server for an hour.
const LIMIT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

/// Serves until it hangs; `waiting` counts the connections on which it does.
fn serve(path: &Path, hangs: Hangs, waiting: &Arc<AtomicU32>) {
    let listener = UnixListener::bind(path).expect("a socket");
    let (waiting, answered) = (Arc::clone(waiting), Arc::new(AtomicU32::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (waiting, answered) = (Arc::clone(&waiting), Arc::clone(&answered));
            std::thread::spawn(move || {
                let mut stream = stream;
                // A client that has gone.
                let _ = talk(&mut stream, hangs, &answered);
                waiting.fetch_add(1, Ordering::Relaxed);
                let _ = stream.read_to_end(&mut Vec::new());
            });
        }
    });
}

fn talk(stream: &mut UnixStream, hangs: Hangs, answered: &AtomicU32) -> std::io::Result<()> {
    if matches!(hangs, Hangs::BeforeGreeting) {
        return Ok(());
    }
    stream.write_all(b"NBDMAGICIHAVEOPT\0\x03")?;
    stream.read_exact(&mut [0; 4])?;
    while let Hangs::AfterRequests(_) = hangs {
        let mut head = [0; 16];
        stream.read_exact(&mut head)?;
        let [option, length] =
            [8, 12].map(|at| u32::from_be_bytes(head[at..at + 4].try_into().expect("four")));
        stream.read_exact(&mut vec![0; length as usize])?;
        let mut reply = |kind: u32, body: &[u8]| {
            let mut bytes = 0x0003_e889_0455_65a9_u64.to_be_bytes().to_vec();
            let length = u32::try_from(body.len()).expect("short");
            for word in [option, kind, length] {
                bytes.extend(word.to_be_bytes());
            }
            bytes.extend(body);
            stream.write_all(&bytes)
        };
        // INFO and GO; others are not known.
        if !matches!(option, 6 | 7) {
            reply(0x8000_0001, b"")?;
            continue;
        }
        let mut export = vec![0, 0];
        export.extend(SIZE_BYTES.to_be_bytes());
        // Flags, FLUSH, FUA, and several connections.
        export.extend((1_u16 | 4 | 8 | 0x100).to_be_bytes());
        reply(3, &export)?;
        reply(1, b"")?;
        if option == 7 {
            break;
        }
    }
    while let Hangs::AfterRequests(most) = hangs {
        let mut head = [0; 28];
        stream.read_exact(&mut head)?;
        let command = u16::from_be_bytes([head[6], head[7]]);
        let length = u32::from_be_bytes(head[24..28].try_into().expect("four")) as usize;
        if command == 1 {
            stream.read_exact(&mut vec![0; length])?;
        }
        if answered.fetch_add(1, Ordering::Relaxed) >= most {
            break;
        }
        let mut bytes = 0x6744_6698_u32.to_be_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(&head[8..16]);
        if command == 0 {
            bytes.resize(bytes.len() + length, 7);
        }
        stream.write_all(&bytes)?;
    }
    Ok(())
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut left = LIMIT;
    while !is_so() {
        assert!(!left.is_zero(), "{what}");
        std::thread::sleep(LOOK);
        left = left.saturating_sub(LOOK);
    }
}

/// The program, with the server's socket beside its files.
fn start(place: &Path, arguments: &[&str]) -> Child {
    if !place.join("disk.img").exists() {
        std::fs::write(place.join("disk.img"), vec![5; 8 << 20]).expect("room");
    }
    let uri = format!("nbd+unix:///?socket={}", place.join("s").display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_rubus"));
    for argument in arguments {
        command.arg(argument.replace("URI", &uri));
    }
    command.current_dir(place).env("HOME", place);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// What the program says when it is interrupted once, while its server hangs.
fn interrupted(arguments: &[&str], hangs: Hangs) -> Output {
    let directory = tempfile::tempdir().expect("a directory");
    interrupted_in(directory.path(), arguments, hangs)
}

fn interrupted_in(place: &Path, arguments: &[&str], hangs: Hangs) -> Output {
    let waiting = Arc::new(AtomicU32::new(0));
    serve(&place.join("s"), hangs, &waiting);
    let mut child = start(place, arguments);
    wait_for("it did not come to where the server hangs", || {
        assert_eq!(child.try_wait().expect("a child"), None, "{arguments:?} ended by itself");
        waiting.load(Ordering::Relaxed) > 0
    });
    kill_process(pid(&child), Signal::INT).expect("it is there");
    let mut is_over = false;
    wait_for(&format!("{arguments:?} goes on, {hangs:?}"), || {
        is_over = child.try_wait().expect("a child").is_some();
        is_over
    });
    child.wait_with_output().expect("it has ended")
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[test]
fn whatever_waits_for_a_server_ends_before_the_server_is_given_up() {
    let commands: [&[&str]; 6] = [
        &["nbd", "info", "URI"],
        &["nbd", "list", "URI"],
        &["nbd", "copy", "URI", "copy.img", "--patience", "3600"],
        &[
            "nbd",
            "copy",
            "disk.img",
            "URI",
            "--i-will-lose-everything-on=URI",
            "--patience",
            "3600",
        ],
        &["bench", "URI", "--read-only"],
        &["bench", "URI", "--against", "URI", "--read-only"],
    ];
    for arguments in commands {
        for hangs in [Hangs::BeforeGreeting, Hangs::InHandshake] {
            let output = interrupted(arguments, hangs);
            // Nothing had begun that would have to be ended in order.
            assert_eq!(output.status.signal(), Some(2), "{arguments:?} {hangs:?} {output:?}");
        }
    }
}

#[test]
fn a_bench_ends_while_its_first_read_is_not_answered() {
    let output = interrupted(&["bench", "URI", "--read-only"], Hangs::AfterRequests(0));
    assert_eq!(output.status.signal(), Some(2), "{output:?}");
}

/// Interrupted while requests are in flight, whose answers never come, a copy ends within its grace, and the same command goes on
/// from its journal with a server that answers.
#[test]
fn a_copy_ends_while_its_requests_are_not_answered_and_goes_on_with_a_server_that_does() {
    let to_a_file = ["nbd", "copy", "URI", "copy.img", "--patience", "3600"];
    let to_an_export = [
        "nbd",
        "copy",
        "disk.img",
        "URI",
        "--i-will-lose-everything-on=URI",
        "--journal=journal",
        "--patience=3600",
    ];
    for arguments in [&to_a_file[..], &to_an_export] {
        for answers in [0, 20] {
            let directory = tempfile::tempdir().expect("a directory");
            let place = directory.path();
            let output = interrupted_in(place, arguments, Hangs::AfterRequests(answers));
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{arguments:?} {output:?}");
            assert!(said.contains("the same command continues"), "{said}");
            std::fs::remove_file(place.join("s")).expect("a socket");
            serve(&place.join("s"), Hangs::AfterRequests(u32::MAX), &Arc::default());
            let more = [arguments, &["--no-verify"]].concat();
            let output = start(place, &more).wait_with_output().expect("it ends");
            assert!(output.status.success(), "{output:?}");
            if arguments == to_a_file {
                let copied = std::fs::read(place.join("copy.img")).expect("a file");
                let is_all = copied.len() as u64 == SIZE_BYTES && copied.iter().all(|b| *b == 7);
                assert!(is_all, "{answers}: not what the server has");
            }
        }
    }
}

/// Without Ctrl-C, too, it does not wait for ever.
#[test]
fn a_copy_gives_a_silent_server_up_and_says_what_to_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path();
    serve(&place.join("s"), Hangs::AfterRequests(20), &Arc::default());
    let arguments = ["nbd", "copy", "URI", "copy.img", "--patience", "2"];
    let output = start(place, &arguments).wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["nbd+unix:", "2 s", "--patience", "the same command continues"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
