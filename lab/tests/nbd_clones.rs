//! `rubus serve --clone-per-client` with clients, kills and full disks; `rubus nbd` asking servers that are not ours.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::program::Home;
use crate::common::{can_run, take_turns};
use rubus_host::net::Stream;
use rubus_lab::devices::free_port;
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{FilesystemKind, Listening, NbdServer, Serving, SmallFilesystem};
use rubus_nbd::client::{Client, Due, Wish, agree};
use rubus_nbd::identity::Identity;
use rubus_nbd::wire::{Command, CommandFlags, ErrorCode};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(120);
const SIZE: usize = 16 << 20;
const NBDKIT: Need = Need::Program("nbdkit", "nbdkit");

fn golden() -> Vec<u8> {
    (0..SIZE).map(|at| (at / 4096 * 7 + at % 251) as u8).collect()
}

/// A server of clones. It is asked to end when this is dropped: one that is killed leaves what it knows of its clones in
/// memory, for the next one.
struct Served {
    serving: Serving,
    socket: PathBuf,
}

impl Served {
    fn start(home: &Home, clones: &Path, options: &[&str]) -> Served {
        let socket = home.path().join("socket");
        let _ = std::fs::remove_file(&socket);
        let mut command = home.command();
        command.args(["serve", "golden.img", "--name", "root", "--quiet"]);
        command.arg("--clone-per-client").arg(clones);
        command.arg("--unix").arg(&socket).args(options);
        let listening = Listening::Socket(socket.clone());
        let serving = Serving::start(command, listening).expect("it serves");
        Served { serving, socket }
    }

    /// A client, and which disk it has.
    fn connect(&self, name: &str) -> (Client<Stream>, Identity) {
        let wish = Wish { export: format!("root/{name}"), tls: false, structured_replies: true };
        let stream = Stream::unix(&self.socket).expect("it listens");
        let (stream, offer) = agree(stream, wish, PATIENCE, Ok).expect("they agree");
        let words = offer.description.as_deref().expect("it says who it is");
        let identity = Identity::parse(words).expect("an identity");
        (Client::new(stream, &offer), identity)
    }

    fn kill(mut self) {
        self.serving.kill();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Where it was killed there is nothing to end.
        let _ = self.serving.end();
    }
}

fn ask(
    client: &mut Client<Stream>,
    command: Command,
    offset: usize,
    memory: &mut [u8],
) -> ErrorCode {
    let due = Due {
        slot: 0,
        command,
        flags: CommandFlags::NONE,
        offset: offset as u64,
        length: memory.len() as u32,
        memory_at: 0,
    };
    let mut answers = Vec::new();
    client.exchange_within(&[due], memory, &mut answers, PATIENCE).expect("the server answers");
    answers[0].error
}

fn write(client: &mut Client<Stream>, offset: usize, bytes: &[u8]) {
    let error = ask(client, Command::Write, offset, &mut bytes.to_vec());
    assert_eq!(error, ErrorCode::NONE);
}

fn read_all(client: &mut Client<Stream>) -> Vec<u8> {
    let mut memory = vec![0; SIZE];
    assert_eq!(ask(client, Command::Read, 0, &mut memory), ErrorCode::NONE);
    memory
}

fn home_with_golden() -> Home {
    let home = Home::new();
    std::fs::write(home.path().join("golden.img"), golden()).expect("the image");
    home
}

#[test]
fn a_killed_server_loses_nothing_and_the_golden_image_stays() {
    let _turn = take_turns();
    let home = home_with_golden();
    let clones = home.path().join("clones");
    let mut model = golden();
    let server = Served::start(&home, &clones, &[]);
    let (mut client, before) = server.connect("board-1");
    let (mut other, other_is) = server.connect("board-2");
    for (turn, at) in (0..SIZE - 9000).step_by(77_777).enumerate() {
        let bytes = vec![turn as u8; 1 + turn * 37];
        write(&mut client, at, &bytes);
        model[at..at + bytes.len()].copy_from_slice(&bytes);
        if turn == 100 {
            assert_eq!(ask(&mut client, Command::Flush, 0, &mut []), ErrorCode::NONE);
        }
    }
    assert!(read_all(&mut other) == golden(), "another client's writes are seen");
    server.kill();
    assert_eq!(kept_in_memory(&before), 1, "for the next server");

    // Half of it was never flushed.
    let server = Served::start(&home, &clones, &[]);
    let (mut client, now) = server.connect("board-1");
    assert_eq!(now, before, "a client may go on");
    assert!(read_all(&mut client) == model);
    let refused = home.run(&["nbd", "clones", "reset", "clones", "board-1"]);
    assert_eq!(refused.status, Some(3), "{refused}");
    drop(client);
    server.kill();

    let out = home.path().join("out.img");
    let merged = home.run(&["nbd", "clones", "merge", "clones", "board-1", "--to", "out.img"]);
    assert_eq!(merged.status, Some(0), "{merged}");
    assert!(std::fs::read(out).expect("the image") == model);
    let reset = home.run(&["nbd", "clones", "reset", "clones", "board-1"]);
    assert_eq!(reset.status, Some(0), "{reset}");
    let server = Served::start(&home, &clones, &[]);
    let (mut client, now) = server.connect("board-1");
    assert_eq!((now.export, now.generation), (before.export, 2));
    assert_ne!(now.boot, before.boot);
    assert!(read_all(&mut client) == golden());
    assert_ne!(other_is.export, now.export);
    let listed = home.run(&["nbd", "clones", "list", "clones", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!(listed["clones"][0]["name"], "board-1");
    assert_eq!(listed["clones"][0]["standing"], "in-use");
    assert!(std::fs::read(home.path().join("golden.img")).expect("the image") == golden());
    // A server that ends forgets what it kept in memory, and throwing a clone away forgets what a killed one left.
    drop(client);
    drop(server);
    assert_eq!(kept_in_memory(&now), 0);
    let thrown = home.run(&["nbd", "clones", "remove", "clones", "board-2"]);
    assert_eq!(thrown.status, Some(0), "{thrown}");
    assert_eq!(kept_in_memory(&other_is), 0);
}

/// How much is kept in memory of a clone.
fn kept_in_memory(identity: &Identity) -> usize {
    let name = format!("rubus-clone-{}", identity.export);
    let files = std::fs::read_dir("/dev/shm").expect("it can be listed");
    let names = files.map(|file| file.expect("a file").file_name());
    names.filter(|file| file.to_string_lossy().starts_with(&name)).count()
}

/// Deleted by hand, while no server could notice.
#[test]
fn what_a_killed_server_kept_of_a_deleted_clone_goes_with_the_next_server() {
    let _turn = take_turns();
    // Any server that starts on this machine sweeps what is gone from its place, a file that was moved too: where one of another
    // test comes in between, the next server begins afresh.
    let is_kept = (0..3).any(|_| is_kept_where_its_clone_was_moved());
    assert!(is_kept, "nothing is lost");
}

/// Whether a clone that was moved within its directory goes on as it was; one that was deleted never does.
fn is_kept_where_its_clone_was_moved() -> bool {
    let home = home_with_golden();
    let clones = home.path().join("clones");
    let server = Served::start(&home, &clones, &[]);
    let (mut gone, gone_is) = server.connect("gone");
    let (mut moved, moved_is) = server.connect("moved");
    write(&mut gone, 5000, b"mine");
    write(&mut moved, 5000, b"mine");
    server.kill();
    drop((gone, moved));
    std::fs::remove_file(clones.join("gone.clone")).expect("it was there");
    // Within the directory of the next server, which closes it before it looks what is gone.
    let names = ["moved.clone", "here.clone"].map(|name| clones.join(name));
    std::fs::rename(&names[0], &names[1]).expect("it was there");

    let server = Served::start(&home, &clones, &[]);
    let is_swept = || kept_in_memory(&gone_is) == 0;
    let waits = (0..1000).take_while(|_| !is_swept());
    waits.for_each(|_| std::thread::sleep(std::time::Duration::from_millis(20)));
    assert!(is_swept(), "it is kept of a file that is gone");
    let (mut client, now) = server.connect("here");
    assert_eq!(now.export, moved_is.export, "the same disk");
    assert_eq!(&read_all(&mut client)[5000..5004], b"mine");
    let is_kept = now == moved_is;
    let (mut client, now) = server.connect("gone");
    assert_ne!(now.export, gone_is.export, "another disk");
    assert!(read_all(&mut client) == golden());
    is_kept
}

#[test]
fn discarded_clones_last_as_long_as_their_server() {
    let _turn = take_turns();
    let home = home_with_golden();
    let clones = home.path().join("clones");
    let server = Served::start(&home, &clones, &["--temporary"]);
    let (mut client, before) = server.connect("a");
    write(&mut client, 5000, b"mine");
    client.disconnect();
    drop(client);
    let (mut client, again) = server.connect("a");
    assert_eq!(again, before);
    assert_eq!(&read_all(&mut client)[5000..5004], b"mine");
    server.kill();
    assert_eq!(std::fs::read_dir(&clones).expect("it is there").count(), 0);
    let server = Served::start(&home, &clones, &["--temporary"]);
    let (mut client, now) = server.connect("a");
    assert_ne!(now.export, before.export, "another disk");
    assert!(read_all(&mut client) == golden());
}

#[test]
fn a_full_disk_is_told_and_hurts_nothing() {
    if !can_run("nbd_clones_full_disk", &[Need::Root]) {
        return;
    }
    let _turn = take_turns();
    let home = home_with_golden();
    let small = SmallFilesystem::new(FilesystemKind::Tmpfs, 8 << 20).expect("a filesystem");
    let clones = small.path().join("clones");
    let server = Served::start(&home, &clones, &[]);
    let (mut client, _) = server.connect("a");
    let mut model = golden();
    let mut was_full = false;
    for at in (0..SIZE).step_by(256 << 10) {
        let mut piece = vec![9; 256 << 10];
        match ask(&mut client, Command::Write, at, &mut piece) {
            ErrorCode::NONE => model[at..at + (256 << 10)].fill(9),
            error => {
                assert_eq!(error, ErrorCode::NO_SPACE);
                was_full = true;
                break;
            }
        }
    }
    assert!(was_full, "the disk was to be full");
    assert_eq!(ask(&mut client, Command::Flush, 0, &mut []), ErrorCode::NONE);
    assert!(read_all(&mut client) == model);
    drop(client);
    server.kill();
    let server = Served::start(&home, &clones, &[]);
    let (mut client, _) = server.connect("a");
    assert!(read_all(&mut client) == model);
    drop(client);
    drop(server);
}

#[test]
fn servers_that_are_not_ours_are_asked() {
    if !can_run("nbd_clones_info", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let server = NbdServer::nbdkit(&["-r", "memory", "8M"]).expect("nbdkit");
    let answer = home.run(&["nbd", "info", server.address(), "--json"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    let told: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!(told["size_bytes"], 8 << 20);
    assert_eq!(told["style"], "fixed newstyle");
    assert_eq!(told["structured_replies"], true);
    assert_eq!(told["flags"]["read_only"], true);
    assert_eq!(told["contexts"], serde_json::json!(["base:allocation"]));
    assert_eq!(told["identity"], Value::Null);
    let text = home.run(&["nbd", "info", server.address()]);
    assert!(text.stdout.contains("8.00 MiB (8388608 bytes)"), "{text}");
    let list = home.run(&["nbd", "list", server.address(), "--json"]);
    let list: Value = serde_json::from_str(&list.stdout).expect("JSON");
    assert_eq!(list["exports"][0]["size_bytes"], 8 << 20);
    assert_eq!(list["is_all"], true);

    let old = NbdServer::nbdkit(&["-o", "memory", "8M"]).expect("nbdkit");
    let answer = home.run(&["nbd", "info", old.address(), "--json"]);
    let told: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!(told["style"], "oldstyle");
    assert_eq!(told["size_bytes"], 8 << 20);
    let refused = home.run(&["nbd", "list", old.address()]);
    assert_eq!(refused.status, Some(2), "{refused}");
    assert!(refused.stderr.contains("has no list"), "{refused}");
}

#[test]
fn a_clone_is_opened_with_its_own_certificate_alone() {
    let _turn = take_turns();
    let home = Home::new();
    std::fs::write(home.path().join("golden.img"), golden()).expect("the image");
    for client in ["a", "Kitchen_2"] {
        let made = ["serve", "--make-certificates", "certs", "--client", client];
        let made = home.run(&made);
        assert_eq!(made.status, Some(0), "{made}");
    }
    let again = home.run(&["serve", "--make-certificates", "certs", "--client", "a"]);
    assert!(again.stderr.contains("are not replaced"), "{again}");
    let port = free_port("127.0.0.1").expect("a port");
    let listen = format!("127.0.0.1:{port}");
    let ask = |certificates: &str, clone: &str| {
        let certificates = home.path().join(certificates);
        let certificates = certificates.display();
        let address = format!("nbds://{listen}/root/{clone}?tls-certificates={certificates}");
        home.run(&["nbd", "info", &address])
    };
    let serve = |options: &[&str]| {
        let mut command = home.command();
        command.args(["serve", "golden.img", "--name", "root", "--quiet"]);
        command.args(["--clone-per-client", "clones", "--tls=require"]);
        command.args(["--certificates=certs", "--verify-clients", "--listen", &listen]);
        command.args(options);
        Serving::start(command, Listening::Port("127.0.0.1".into(), port)).expect("it serves")
    };
    let bound = serve(&[]);
    for (certificates, clone) in
        [("certs/clients/a", "a"), ("certs/clients/Kitchen_2", "Kitchen_2")]
    {
        let told = ask(certificates, clone);
        assert_eq!(told.status, Some(0), "{told}");
    }
    for (certificates, clone) in
        [("certs/clients/a", "b"), ("certs/clients/Kitchen_2", "kitchen_2"), ("certs", "a")]
    {
        let refused = ask(certificates, clone);
        assert_eq!(refused.status, Some(2), "{refused}");
        let remedy = format!("--make-certificates DIR --client {clone}");
        assert!(refused.stderr.contains(&remedy), "{refused}");
    }
    assert!(!home.path().join("clones/b.clone").exists());
    drop(bound);
    let _shared = serve(&["--shared-certificate"]);
    let told = ask("certs", "b");
    assert_eq!(told.status, Some(0), "{told}");
}
