//! The way of the recipe `network-root` on any board: from a plain SD system to a root on an export of `rubus serve` on
//! this machine, with real boots between, with the server there and not.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rubus_lab::board::Board;
use rubus_lab::devices::{Listening, Serving, free_port, programs};
use rubus_lab::mounted;
use rubus_lab::product::rubus_or_skip;
use rubus_lab::session::{HOST_ADDRESS, Session};

use super::desktop::{LONG, SOON, must};

/// `rubus serve` over an image of this machine, on a port that stays the same.
pub struct Server {
    serving: Serving,
    image: PathBuf,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Server {
    /// Starts it over an image of its own; none where there is no program for this machine.
    pub fn start(test: &str) -> Option<Server> {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("root.img");
        let port = free_port("127.0.0.1").unwrap();
        // Boards of the other kind have this machine's processor.
        let mut command = programs::command(rubus_or_skip(test, Board::Pc)?);
        command.arg("serve").arg(&image);
        command.args(["--name", "root", "--size", "2GiB", "--listen"]);
        command.arg(format!("127.0.0.1:{port}"));
        let listening = Listening::Port("127.0.0.1".into(), port);
        Some(Server {
            serving: Serving::start(command, listening).unwrap(),
            image,
            port,
            _directory: directory,
        })
    }

    /// What it serves.
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address by which a board reaches its export.
    pub fn address(&self) -> String {
        format!("nbd://{HOST_ADDRESS}:{}/root", self.port)
    }

    pub fn come_back(&mut self) {
        self.serving.come_back().unwrap();
    }

    pub fn kill(&mut self) {
        self.serving.kill();
    }

    /// A file of the network root, as it is on the server.
    pub fn file(&self, path: &str) -> String {
        let mut debugfs = Command::new("/usr/sbin/debugfs");
        debugfs.args(["-R", &format!("cat {path}")]);
        let output = debugfs.arg(&self.image).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Sets the network up on the card's system, and installs the program where each boot finds it.
pub fn prepare(board: &mut Session) {
    must(
        board,
        "card=$(basename $(dirname $(ls -d /sys/class/net/*/device))); ip link set $card up
         ip addr add 10.0.2.15/24 dev $card; ip route add default via 10.0.2.2
         install -D $(command -v rubus) /usr/local/bin/rubus",
        SOON,
    );
}

/// Attaches the export and applies the recipe to it.
pub fn apply(board: &mut Session, address: &str, options: &str) {
    let script = format!(
        "rubus attach {address} /dev/nbd0
         rubus apply network-root {options} --yes --i-will-lose-everything-on={address}"
    );
    let said = must(board, &script, LONG);
    assert!(said.contains("is applied"), "{said}");
    assert_eq!(root(board), card(board), "the running system has changed");
}

/// The device of the root filesystem.
pub fn root(board: &mut Session) -> String {
    mounted::at(board, "/").unwrap().source
}

/// The second partition of the card.
pub fn card(board: &mut Session) -> String {
    let script = "ls /dev/mmcblk?p2";
    must(board, script, SOON).trim().to_owned()
}

/// The root is the network disk, watched by the process that the initial RAM filesystem started.
pub fn is_on_the_network(board: &mut Session, address: &str) {
    assert_eq!(root(board), "/dev/nbd0", "{}", board.console());
    let verified = board.run("rubus verify", "root", SOON).unwrap();
    let said = format!("{}\n{}", verified.text(), verified.complaint_text());
    assert_eq!(verified.status, 0, "{said}");
    let attached = must(board, "rubus attach", SOON);
    assert!(attached.contains(address), "{attached}");
    assert!(attached.contains("connected"), "{attached}");
    // Its name says that it has to live on, and it was there before the first program of this root.
    let watcher = must(
        board,
        "pid=$(pgrep -f '^@rubus-attach'); tr '\\0' ' ' </proc/$pid/cmdline; grep VmLck /proc/$pid/status",
        SOON,
    );
    assert!(watcher.starts_with("@rubus-attach attach "), "{watcher}");
    assert!(!watcher.contains(" 0 kB"), "{watcher}");
}

/// The server is not there: the board has started from the card, and says so wherever one looks.
pub fn is_on_the_card(board: &mut Session) {
    assert_eq!(root(board), card(board), "{}", board.console());
    assert!(board.console().contains("rubus: this start is from the card"));
    let log = must(board, "dmesg", SOON);
    assert!(log.contains("rubus: this start is from the card"), "{log}");
    for (command, status) in [("rubus status", 1), ("rubus verify", 1), ("rubus survey", 0)] {
        let looked = board.run(command, "root", SOON).unwrap();
        let said = looked.text();
        assert_eq!(looked.status, status, "{command}: {said}");
        assert!(said.contains("FROM THE CARD"), "{command}: {said}");
    }
}

/// The card's system runs as before the recipe. Switches the board off.
pub fn asks_for_no_network(mut board: Session) {
    assert_ne!(root(&mut board), "/dev/nbd0");
    assert!(!board.console().contains("rubus: "), "{}", board.console());
    board.switch_off().unwrap();
}

/// Appends a number to a file on the root every 0.2 s and waits until it is durable; notes what failed.
const WRITER: &str = "cat >/run/writer <<'END'
i=0
while [ ! -e /run/stop ]; do
  i=$((i + 1))
  { echo $i >>/log && sync /log; } 2>>/run/failed && echo $i >/run/last
  sleep 0.2
done
END
setsid sh /run/writer </dev/null >/dev/null 2>&1 &
while [ ! -s /run/last ]; do sleep 0.1; done";

/// The server is killed under a writer and comes back: nothing fails. Gives the last number that was written.
pub fn outlives_its_server(board: &mut Session, server: &mut Server) -> u64 {
    // What a stopped root must not be asked for.
    must(board, "cat $(command -v cat sync sleep touch pgrep rubus) >/dev/null", SOON);
    must(board, WRITER, SOON);
    server.kill();
    std::thread::sleep(Duration::from_secs(4));
    server.come_back();
    let said = must(
        board,
        "n=$(cat /run/last); while [ $(cat /run/last) -lt $((n + 5)) ]; do sleep 0.1; done
         touch /run/stop; while pgrep -f /run/writer >/dev/null; do sleep 0.1; done
         cat /run/failed >&2; [ ! -s /run/failed ]; cat /run/last",
        SOON,
    );
    let replaced = must(board, "rubus attach --json | grep replaced", SOON);
    assert!(replaced.contains("\"replaced\": 4"), "each of the connections once: {replaced}");
    said.trim().parse().unwrap()
}

/// Every number is in the file, as the server's side has it.
pub fn log_is_whole(server: &Server, last: u64) {
    let expected: String = (1..=last).map(|n| format!("{n}\n")).collect();
    assert_eq!(server.file("/log"), expected);
}

/// What may differ on the card after there and back.
pub const MAY_DIFFER: &[&str] = &["/var/lib/rubus", "/var/cache", "/etc/mtab", "/usr/local"];

/// Whether the program that looks into images is there.
pub fn needs() -> [rubus_lab::devices::needs::Need; 1] {
    [rubus_lab::devices::needs::Need::Program("debugfs", "e2fsprogs")]
}

/// How far a test is, in seconds since it began.
pub fn clock() -> impl Fn(&str) {
    let begun = Instant::now();
    move |what| println!("{:4.0} s: {what}", begun.elapsed().as_secs_f64())
}
