//! `rubus attach` on the quick board's kernel, with servers on this machine that are killed, frozen, cut off
//! and exchanged under a writer.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{Listening, Serving, free_port, programs};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{HOST_ADDRESS, Options, Session};
use rustix::process::Signal;

const TEST: &str = "vm_pc_nbd";
const SOON: Duration = Duration::from_secs(300);

const BOOT: &str = "boot=11111111-0000-4000-8000-000000000001";
const OTHER_BOOT: &str = "boot=22222222-0000-4000-8000-000000000002";

/// A server over an image of this machine, on a port that stays the same. It is asked to end when this is dropped: one of
/// clones that is killed leaves what it knows of them in memory, for the next one.
struct Server {
    serving: Serving,
    directory: tempfile::TempDir,
    port: u16,
    address: String,
}

/// The NBD server under test.
enum Program {
    /// nbdkit; it says this of itself, if anything.
    Nbdkit(Option<String>),
    /// `rubus serve`.
    Ours,
    /// The same with a clone of the image for each client.
    OurClones,
}

impl Program {
    /// The export's name.
    fn name(&self) -> &'static str {
        match self {
            Program::OurClones => "image/the-board",
            Program::Nbdkit(_) | Program::Ours => "",
        }
    }

    fn command(&self, directory: &Path, port: u16) -> Command {
        match self {
            Program::Nbdkit(identity) => command_of_nbdkit(directory, port, identity.as_deref()),
            Program::Ours => own_command(directory, port),
            Program::OurClones => {
                let clones = directory.join("clones");
                std::fs::create_dir(&clones).unwrap();
                let mut command = own_command(directory, port);
                command.arg("--clone-per-client").arg(clones);
                command
            }
        }
    }
}

fn command_of_nbdkit(directory: &Path, port: u16, identity: Option<&str>) -> Command {
    let mut command = programs::command("nbdkit");
    command.args(["--foreground", "--ipaddr", "127.0.0.1", "--port"]);
    command.arg(port.to_string());
    if identity.is_some() {
        command.arg("--filter=exportname");
    }
    command.arg("file").arg(directory.join("image"));
    if let Some(boot) = identity {
        let export = "export=33333333-0000-4000-8000-000000000003";
        command.arg(format!("exportdesc=fixed:a test [rubus {boot} {export} generation=0 sync=0]"));
    }
    command
}

fn own_command(directory: &Path, port: u16) -> Command {
    let mut command = Command::new(crate::common::program::binary());
    command.arg("serve").arg(directory.join("image"));
    command.args(["--quiet", "--listen", &format!("127.0.0.1:{port}")]);
    command
}

impl Server {
    fn nbdkit(identity: Option<&str>) -> Server {
        Server::start(Program::Nbdkit(identity.map(Into::into)))
    }

    fn start(program: Program) -> Server {
        let directory = tempfile::tempdir().unwrap();
        let image = std::fs::File::create(directory.path().join("image")).unwrap();
        image.set_len(256 << 20).unwrap();
        // An image that a process has open for writing is not served.
        drop(image);
        let port = free_port("127.0.0.1").unwrap();
        let command = program.command(directory.path(), port);
        let listening = Listening::Port("127.0.0.1".into(), port);
        Server {
            serving: Serving::start(command, listening).unwrap(),
            directory,
            port,
            address: format!("nbd://{HOST_ADDRESS}:{port}/{}", program.name()),
        }
    }

    fn image(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    fn address(&self) -> &str {
        &self.address
    }

    fn come_back(&mut self) {
        self.serving.come_back().unwrap();
    }

    /// Another program is there in its stead.
    fn come_back_as(&mut self, program: &Program) {
        let command = program.command(self.directory.path(), self.port);
        let listening = Listening::Port("127.0.0.1".into(), self.port);
        self.serving = Serving::start(command, listening).unwrap();
    }

    fn kill(&mut self) {
        self.serving.kill();
    }

    fn signal(&self, signal: Signal) {
        self.serving.signal(signal).unwrap();
    }

    /// Lets it go on that stood still. nbdkit 1.32 may end when it finds that clients have gone meanwhile; then it is started again.
    fn thaw(&mut self) {
        self.signal(Signal::CONT);
        for _ in 0..50 {
            if !self.serving.is_alive() {
                return self.come_back();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where it was killed there is nothing to end; one that stands still would not.
        let _ = self.serving.signal(Signal::CONT);
        let _ = self.serving.end();
    }
}

fn pause(seconds: u64) {
    std::thread::sleep(Duration::from_secs(seconds));
}

fn must(board: &mut Session, script: &str) -> String {
    board.must(script, "root", SOON).unwrap()
}

/// Appends a number to a file every 0.2 s and waits until it is durable; notes what failed, and what was done.
const WRITER: &str = "cat >/run/writer <<'END'
i=0
while [ ! -e /run/stop ]; do
  i=$((i + 1))
  { echo $i >>/mnt/log && sync /mnt/log; } 2>>/run/failed && echo $i >/run/last
  sleep 0.2
done
END
rm -f /run/stop /run/failed /run/last
setsid sh /run/writer </dev/null >/dev/null 2>&1 &
while [ ! -s /run/last ]; do sleep 0.1; done";

/// Waits until the writer has gone on; ends it; gives its last number. It must never have failed.
fn end_writer(board: &mut Session) -> u64 {
    let said = must(
        board,
        "n=$(cat /run/last); while [ $(cat /run/last) -lt $((n + 5)) ]; do sleep 0.1; done
         touch /run/stop; while pgrep -f /run/writer >/dev/null; do sleep 0.1; done
         cat /run/failed >&2; [ ! -s /run/failed ]; cat /run/last",
    );
    said.trim().parse().unwrap()
}

/// Every number is in the file, as the server's side has it.
fn log_is_whole(image: &Path, last: u64) {
    let output =
        Command::new("/usr/sbin/debugfs").args(["-R", "cat /log"]).arg(image).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let expected: String = (1..=last).map(|n| format!("{n}\n")).collect();
    assert_eq!(text, expected);
}

/// Connections to a server that declares them consistent (multi-conn).
const CONNECTIONS: u64 = 4;

/// A figure of the only attached device.
fn attached(board: &mut Session, name: &str) -> serde_json::Value {
    let said = must(board, "rubus attach --json");
    let all: serde_json::Value = serde_json::from_str(&said).unwrap();
    all[0][name].clone()
}

#[test]
fn a_disk_over_the_network_outlives_its_server() {
    let _turn = crate::common::take_turns();
    let Some(mut board) = board() else {
        return;
    };
    a_filesystem_works_and_is_guarded(&mut board);
    no_write_fails_or_is_lost(&mut board);
    a_clone_outlives_its_server(&mut board);
    four_connections_come_back_from_a_frozen_server(&mut board);
    board.switch_off().unwrap();
}

#[test]
fn another_disk_is_refused_and_a_recipe_attaches_at_each_boot() {
    let _turn = crate::common::take_turns();
    let Some(mut board) = board() else {
        return;
    };
    another_disk_is_refused(&mut board);
    another_image_is_refused(&mut board);
    the_recipe_attaches_and_mounts(&mut board);
    board.switch_off().unwrap();
}

/// What the kernel says of a device with a partition that is attached. "Already in use" means that another program,
/// such as udev, has it open at that moment; `rubus attach` retries.
const ATTACHING: [&str; 3] =
    ["nbd0: detected capacity change from 0", "nbd0: p1", "nbd: nbd0 already in use"];
/// What it says of one that is detached, as `docs/how-to/nbd-attach.md` has it.
const DETACHING: [&str; 3] =
    ["NBD_DISCONNECT", "Disconnected due to user request.", "shutting down sockets"];

#[test]
fn a_disk_is_detached_whatever_others_do() {
    let _turn = crate::common::take_turns();
    let Some(mut board) = board() else {
        return;
    };
    detaching_behind_writes_alarms_nobody(&mut board);
    a_reader_who_stays_does_not_hold_it(&mut board);
    what_cannot_be_written_is_given_up(&mut board);
    board.switch_off().unwrap();
}

/// Neither the watcher, which flushes when writing has paused, nor udev, nor anybody else who looks at devices all the
/// time meets one that has just lost its server.
fn detaching_behind_writes_alarms_nobody(board: &mut Session) {
    let server = Server::start(Program::Ours);
    // With a partition table, for which the kernel itself looks when a device is opened.
    let attach = format!("rubus attach {} /dev/nbd0 >&2", server.address());
    must(
        board,
        &format!(
            "{attach} && echo 'start=2048, type=83' | sfdisk -q /dev/nbd0 && rubus detach >&2"
        ),
    );
    let others = "setsid sh -c 'while [ ! -e /run/enough ]; do head -c 4096 /dev/nbd0; done' \
         </dev/null >/dev/null 2>&1 &";
    for looking in ["", others] {
        let said = must(
            board,
            &format!(
                "echo since-here >/dev/kmsg; rm -f /run/enough
                 {looking}
                 for i in 1 2 3 4 5; do
                   {attach}
                   dd if=/dev/zero of=/dev/nbd0 bs=64k count=16 seek=$i conv=notrunc status=none
                   sleep 0.$i
                   rubus detach >&2
                 done
                 sleep 2; touch /run/enough
                 dmesg | tac | sed '/since-here/q' | tac"
            ),
        );
        let known = || ATTACHING.iter().chain(&DETACHING);
        let lines = said.lines().filter(|line| line.contains("nbd0"));
        let alarming: Vec<&str> =
            lines.filter(|line| !known().any(|words| line.contains(words))).collect();
        assert_eq!(said.matches(DETACHING[0]).count(), 5, "{said}");
        assert!(alarming.is_empty(), "{alarming:#?} with {looking:?}:\n{said}");
    }
}

/// Has the device open and reads on, whatever that gives, until it is told that it is enough.
const READER: &str = "rm -f /run/enough /run/reads
setsid sh -c 'exec 3</dev/nbd0; while [ ! -e /run/enough ]; do dd bs=4k count=1 <&3 >/dev/null 2>&1; echo >>/run/reads; done' \
  </dev/null >/dev/null 2>&1 &
while [ ! -s /run/reads ]; do sleep 0.1; done";

/// The driver keeps the size for as long as a program has the device open.
const NO_READER: &str =
    "touch /run/enough; while pgrep -f 'exec 3</dev/nbd0' >/dev/null; do sleep 0.1; done";

/// The watcher ends once the device is no longer open, shortly after the last program that had it open.
const NO_WATCHER: &str = "for i in $(seq 100); do pgrep -f rubus-attach >/dev/null || break; sleep 0.1; done; pgrep -f rubus-attach || echo no watcher";

/// What was written before is on the server, and a read returns instead of hanging.
fn a_reader_who_stays_does_not_hold_it(board: &mut Session) {
    let server = Server::start(Program::Ours);
    let said = must(
        board,
        &format!(
            "rubus attach {} /dev/nbd0 >&2
             {READER}
             yes rubus | head -c 65536 | dd of=/dev/nbd0 bs=64k seek=1 iflag=fullblock conv=notrunc status=none
             rubus detach
             n=$(wc -l </run/reads); while [ $(wc -l </run/reads) -lt $((n + 3)) ]; do sleep 0.1; done
             {NO_READER}
             cat /sys/block/nbd0/size; {NO_WATCHER}",
            server.address()
        ),
    );
    assert_eq!(said, "/dev/nbd0 is detached.\n0\nno watcher\n");
    assert_eq!(lines_at(&server.image(), 64 << 10), ["rubus"]);
}

/// The server is gone and something was written since: only who says so loses it, at once, and the disk is as it was at the last flush.
fn what_cannot_be_written_is_given_up(board: &mut Session) {
    let mut server = Server::start(Program::Ours);
    must(
        board,
        &format!(
            "rubus attach {} /dev/nbd0 >&2
             yes kept | head -c 65536 | dd of=/dev/nbd0 bs=64k iflag=fullblock conv=notrunc,fsync status=none
             {READER}",
            server.address()
        ),
    );
    server.kill();
    // A close after a write wakes udev, which then waits for the partition table with the device held; closing can wait
    // for that.
    let said = must(
        board,
        &format!(
            "{{ yes lost | head -c 65536 | dd of=/dev/nbd0 bs=64k iflag=fullblock conv=notrunc status=none; }} </dev/null >/dev/null 2>&1 &
             sleep 2
             rubus detach --give-up
             {NO_READER}
             cat /sys/block/nbd0/size; {NO_WATCHER}"
        ),
    );
    assert_eq!(said, "/dev/nbd0 is detached.\n0\nno watcher\n");
    server.come_back();
    must(
        board,
        &format!(
            "rubus attach {} /dev/nbd0 >&2; dd if=/dev/nbd0 of=/dev/null bs=64k count=1 status=none; rubus detach >&2",
            server.address()
        ),
    );
    assert_eq!(lines_at(&server.image(), 0), ["kept"]);
}

/// The different whole lines in 64 KiB of an image.
fn lines_at(image: &Path, offset: u64) -> Vec<String> {
    let mut bytes = vec![0; 64 << 10];
    let file = std::fs::File::open(image).unwrap();
    file.read_exact_at(&mut bytes, offset).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<_> = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.dedup();
    lines
}

/// A board with a network, where all that is needed is there.
fn board() -> Option<Session> {
    let needs = [Need::Program("nbdkit", "nbdkit"), Need::Program("debugfs", "e2fsprogs")];
    if !can_boot(TEST, Board::Pc) || !crate::common::can_run(TEST, &needs) {
        return None;
    }
    let options = Options {
        push: vec![rubus_or_skip(TEST, Board::Pc)?],
        network: true,
        ..Options::default()
    };
    let mut board = Session::boot(&Cache::of_this_machine(), Board::Pc, &options).unwrap();
    must(
        &mut board,
        "card=$(ls /sys/class/net | grep -v '^lo$'); ip link set $card up
         ip addr add 10.0.2.15/24 dev $card; ip route add default via 10.0.2.2",
    );
    Some(board)
}

fn a_filesystem_works_and_is_guarded(board: &mut Session) {
    let server = Server::nbdkit(None);
    let said = must(board, &format!("rubus attach {}", server.address()));
    assert!(said.starts_with("/dev/nbd0 is nbd://"), "{said}");
    assert!(said.contains("does not say which disk"), "{said}");
    let again = must(board, &format!("rubus attach {} /dev/nbd0", server.address()));
    assert!(again.contains("already"), "{again}");
    let taken = board
        .run(&format!("rubus attach {}other /dev/nbd0", server.address()), "root", SOON)
        .unwrap();
    assert_eq!(taken.status, 2, "{}", taken.complaint_text());
    assert!(taken.complaint_text().contains("is attached already"));
    must(board, "mkfs.ext4 -q /dev/nbd0 && mount /dev/nbd0 /mnt");
    let refused = board.run("rubus detach", "root", SOON).unwrap();
    assert_eq!(refused.status, 3, "{}", refused.complaint_text());
    assert!(refused.complaint_text().contains("is mounted at /mnt"));
    must(board, "umount /mnt && fsck.ext4 -fn /dev/nbd0");
    // Swap is a use, too.
    must(board, "mkswap /dev/nbd0 && swapon /dev/nbd0");
    assert_eq!(board.run("rubus detach", "root", SOON).unwrap().status, 3);
    must(board, "swapoff /dev/nbd0 && rubus detach /dev/nbd0");
    assert_eq!(must(board, "cat /sys/block/nbd0/size").trim(), "0");
    assert_eq!(must(board, "pgrep -f rubus-attach || echo none").trim(), "none");

    must(board, &format!("rubus attach --read-only {} /dev/nbd7", server.address()));
    let written = board.run("dd if=/dev/zero of=/dev/nbd7 count=1", "root", SOON);
    assert_ne!(written.unwrap().status, 0);
    must(board, "rubus detach");
}

fn no_write_fails_or_is_lost(board: &mut Session) {
    let mut server = Server::start(Program::Ours);
    let said = must(board, &format!("rubus attach {}", server.address()));
    assert!(!said.contains("does not say which disk"), "{said}");
    // Large files, many small ones, and some that go again, while the server is killed again and again.
    must(
        board,
        "mkfs.ext4 -q /dev/nbd0 && mount /dev/nbd0 /mnt && rm -f /run/copied
         setsid sh -c '{ cp -a /usr/bin /mnt && mkdir /mnt/many && cd /mnt/many &&
           seq 1500 | split -l 1 -a 4 && rm -f *a && sync; } 2>/run/trouble; echo $? >/run/copied' \
         </dev/null >/dev/null 2>&1 &",
    );
    for _ in 0..3 {
        pause(2);
        server.kill();
        pause(1);
        server.come_back();
    }
    let different = must(
        board,
        "while [ ! -e /run/copied ]; do sleep 0.1; done; cat /run/copied /run/trouble
         umount /mnt && fsck.ext4 -fn /dev/nbd0 >/run/fsck 2>&1 || cat /run/fsck
         mount /dev/nbd0 /mnt && echo 3 >/proc/sys/vm/drop_caches && rsync -rlcni --delete /usr/bin/ /mnt/bin/
         cd /mnt/many && find . -type f | wc -l && sort -n * | uniq -u | wc -l
         cd / && rm -r /mnt/bin /mnt/many",
    );
    assert_eq!(different, "0\n1442\n1442\n");
    let before = attached(board, "replaced").as_u64().unwrap();
    assert!(before > 0, "the server was killed while it was used");
    must(board, WRITER);
    server.kill();
    pause(4);
    let waits = must(board, "rubus attach");
    assert!(waits.contains("waits"), "{waits}");
    server.come_back();
    let killed = end_writer(board);
    assert_eq!(attached(board, "replaced"), before + CONNECTIONS);
    must(board, "umount /mnt");
    log_is_whole(&server.image(), killed);

    must(board, "mount /dev/nbd0 /mnt && rm /mnt/log");
    must(board, WRITER);
    server.signal(Signal::STOP);
    pause(6);
    server.signal(Signal::CONT);
    board.plug_network(false).unwrap();
    pause(5);
    board.plug_network(true).unwrap();
    let last = end_writer(board);
    assert_eq!(attached(board, "replaced"), before + CONNECTIONS, "the connections have held");
    must(board, "rm -f /mnt/log && sync");
    must(board, WRITER);
    board.plug_network(false).unwrap();
    // Longer than a silent peer is believed in.
    pause(60);
    board.plug_network(true).unwrap();
    let cut = end_writer(board);
    must(board, "umount /mnt && fsck.ext4 -fn /dev/nbd0 && rubus detach");
    log_is_whole(&server.image(), cut);
    println!("numbers written: {killed}, {last}, {cut}");
}

/// The golden image stays as it is, and the clone is the same disk after its server was killed.
fn a_clone_outlives_its_server(board: &mut Session) {
    let mut server = Server::start(Program::OurClones);
    let image = server.image().display().to_string();
    let golden = || programs::run("sha256sum", &["-b", &image]).unwrap();
    let before = golden();
    must(
        board,
        &format!(
            "rubus attach {} && mkfs.ext4 -q /dev/nbd0 && mount /dev/nbd0 /mnt",
            server.address()
        ),
    );
    must(board, WRITER);
    server.kill();
    pause(2);
    server.come_back();
    let last = end_writer(board);
    assert_eq!(attached(board, "replaced"), CONNECTIONS);
    let text = must(
        board,
        "umount /mnt && fsck.ext4 -fn /dev/nbd0 >/dev/null && mount /dev/nbd0 /mnt && cat /mnt/log
         umount /mnt && rubus detach >&2",
    );
    let expected: String = (1..=last).map(|n| format!("{n}\n")).collect();
    assert_eq!(text, expected);
    assert_eq!(golden(), before, "nothing was written to the golden image");
}

fn four_connections_come_back_from_a_frozen_server(board: &mut Session) {
    let mut server = Server::nbdkit(None);
    must(
        board,
        &format!(
            "rubus attach {} --resume-unidentified --connections 4 --timeout 3 && mkfs.ext4 -q /dev/nbd0 && mount /dev/nbd0 /mnt",
            server.address()
        ),
    );
    must(board, WRITER);
    server.signal(Signal::STOP);
    pause(8);
    server.thaw();
    let _ = end_writer(board);
    must(board, "rm /mnt/log");
    must(board, WRITER);
    let before = attached(board, "replaced").as_u64().unwrap();
    server.kill();
    pause(1);
    server.come_back();
    let last = end_writer(board);
    assert_eq!(attached(board, "replaced"), before + 4);
    assert_eq!(attached(board, "alive"), 4);
    must(board, "umount /mnt && fsck.ext4 -fn /dev/nbd0 && rubus detach");
    log_is_whole(&server.image(), last);
}

fn another_disk_is_refused(board: &mut Session) {
    let mut server = Server::nbdkit(Some(BOOT));
    let attach = format!("rubus attach {} --connections 1", server.address());
    must(board, &attach);
    // Written, and flushed by the watcher when nothing more came: nothing can be lost.
    must(
        board,
        "flushes() { awk '{ print $16 }' /sys/block/nbd0/stat; }
         n=$(flushes)
         dd if=/dev/zero of=/dev/nbd0 bs=64k count=64 oflag=direct status=none
         until [ $(flushes) -gt $n ]; do sleep 0.1; done
         while rubus attach --json | grep -q '\"unflushed\": true'; do sleep 0.1; done",
    );
    server.kill();
    server.come_back_as(&Program::Nbdkit(Some(OTHER_BOOT.into())));
    must(board, "dd if=/dev/nbd0 of=/dev/null bs=64k count=1 iflag=direct status=none");
    assert_eq!(attached(board, "replaced"), 1);
    let identity = attached(board, "identity").to_string();
    assert!(identity.contains(OTHER_BOOT), "{identity}");

    // Written all the time and never flushed.
    must(
        board,
        "setsid sh -c 'dd if=/dev/zero of=/dev/nbd0 bs=64k oflag=direct seek=$((1 + $$ % 7)) ; echo $? >/run/ended' \
         </dev/null >/dev/null 2>&1 &
         n=$(awk '{ print $5 }' /sys/block/nbd0/stat)
         while [ $(awk '{ print $5 }' /sys/block/nbd0/stat) -lt $((n + 20)) ]; do sleep 0.1; done",
    );
    server.kill();
    server.come_back_as(&Program::Nbdkit(Some(BOOT.into())));
    let said = must(
        board,
        "while [ ! -e /run/ended ]; do sleep 0.1; done; cat /run/ended
         while pgrep -f rubus-attach >/dev/null; do sleep 0.1; done; rubus attach; dmesg | grep 'NOT resumed'",
    );
    assert!(said.starts_with("1\n"), "the writer was told: {said}");
    assert!(said.contains("Nothing is attached"), "{said}");
    assert!(said.contains("machine was restarted"), "{said}");
}

/// A backup that is put back under a running client is not the disk that it had.
fn another_image_is_refused(board: &mut Session) {
    let mut server = Server::start(Program::Ours);
    must(
        board,
        &format!(
            "rm -f /run/ended; rubus attach {} && dd if=/dev/zero of=/dev/nbd0 bs=64k count=4 conv=fsync status=none",
            server.address()
        ),
    );
    server.kill();
    let copy = server.directory.path().join("copy");
    std::fs::copy(server.image(), &copy).unwrap();
    std::fs::rename(&copy, server.image()).unwrap();
    server.come_back();
    let said = must(
        board,
        // A device that was failed already has no bytes left to read.
        "[ $(dd if=/dev/nbd0 count=1 iflag=direct status=none 2>/dev/null | wc -c) = 0 ]
         while pgrep -f rubus-attach >/dev/null; do sleep 0.1; done
         rubus attach; dmesg | grep 'NOT resumed' | tail -n 1",
    );
    assert!(said.contains("Nothing is attached"), "{said}");
    assert!(said.contains("another image"), "{said}");
}

fn the_recipe_attaches_and_mounts(board: &mut Session) {
    let server = Server::nbdkit(Some(BOOT));
    let address = server.address();
    must(
        board,
        &format!(
            "mkdir -p /run/systemd/system
             install -D $(command -v rubus) /usr/local/bin/rubus
             rubus attach {address} /dev/nbd1 && mkfs.ext4 -q /dev/nbd1 && rubus detach"
        ),
    );
    let apply = format!(
        "rubus apply network-disk address={address} at=/mnt/network device=/dev/nbd1 --yes"
    );
    let said = must(board, &apply);
    assert!(said.contains("is applied"), "{said}");
    must(board, "echo kept >/mnt/network/file && rubus verify");
    let unit = must(board, "cat /etc/systemd/system/rubus-nbd1.service /etc/fstab");
    assert!(unit.contains(&format!("ExecStart=/usr/local/bin/rubus attach {address} ")));
    assert!(unit.contains("x-systemd.requires=rubus-nbd1.service"));
    let again = must(board, &apply);
    assert!(!again.contains("is applied"), "{again}");
    must(board, "rubus undo --yes");
    let left =
        must(board, "findmnt /mnt/network; rubus attach; ls /etc/systemd/system; cat /etc/fstab");
    assert!(left.contains("Nothing is attached"), "{left}");
    assert!(!left.contains("nbd1") && !left.contains("network"), "{left}");
}
