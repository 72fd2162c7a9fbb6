//! The life of the Debian package on a board: from an apt repository behind HTTP to its purge.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::devices::{Listening, Serving, free_port};
use rubus_lab::extra_packages;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{HOST_ADDRESS, Options, Session};

use super::packages::{NEEDS, make, make_repository};

const SOON: Duration = Duration::from_secs(300);
const LONG: Duration = Duration::from_secs(1200);
const VERSION: &str = env!("CARGO_PKG_VERSION");
const EARLIER: &str = "0.1.0";

/// What Raspberry Pi OS has and the board's disks do not.
const BESIDE: [&str; 4] = ["apt", "diffutils", "man-db", "bash-completion"];

/// The shortest run that the history keeps.
const JOB: &str = "[short]\nrw=write\nbs=64k\nsize=1m\n";

/// Adds the repository, installs the earlier version, uses it, upgrades it and purges it.
pub fn life_of_a_package(test: &str, board: Board) {
    if !can_boot(test, board) || !super::can_run(test, &NEEDS) {
        return;
    }
    let Some(program) = rubus_or_skip(test, board) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let beside = extra_packages::archive(&cache, board, &BESIDE).unwrap();
    let web = Web::start(&beside, &program, board.debian_architecture());
    let options = Options { network: true, ..Options::default() };
    let mut board = Session::boot(&cache, board, &options).unwrap();

    web.publish(EARLIER);
    prepare(&mut board, &web);
    board.must("apt-get update -q && apt-get install -y -q rubus", "root", LONG).unwrap();
    assert_eq!(installed(&mut board), EARLIER);
    it_works_for_an_ordinary_user(&mut board);
    let before = what_the_user_has(&mut board);

    web.publish(VERSION);
    // The clock of a busy emulator falls behind, and apt passes over a list from the future with a warning.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let upgrade = format!(
        "date -s @{} && apt-get update -q --error-on=any && apt-get upgrade -y -q",
        now.as_secs() + 1
    );
    let said = board.must(&upgrade, "root", LONG).unwrap();
    assert_eq!(installed(&mut board), VERSION, "{said}");
    assert_eq!(what_is_there(&mut board), before);
    the_change_can_still_be_undone(&mut board);

    purge_leaves_what_the_user_made(&mut board);
    board.switch_off().unwrap();
}

/// A repository behind HTTP on this machine.
struct Web<'a> {
    serving: Serving,
    url: String,
    directory: tempfile::TempDir,
    program: &'a Path,
    architecture: &'static str,
}

impl<'a> Web<'a> {
    fn start(beside: &Path, program: &'a Path, architecture: &'static str) -> Web<'a> {
        let directory = tempfile::tempdir().unwrap();
        let served = directory.path().join("served");
        std::fs::create_dir(&served).unwrap();
        std::os::unix::fs::symlink(beside, served.join("beside")).unwrap();
        let port = free_port("127.0.0.1").unwrap();
        let mut server = Command::new("python3");
        server.args(["-m", "http.server", "--bind", "127.0.0.1", "--directory"]);
        server.arg(&served).arg(port.to_string());
        let serving = Serving::start(server, Listening::Port("127.0.0.1".into(), port)).unwrap();
        Web {
            serving,
            url: format!("http://{HOST_ADDRESS}:{port}"),
            directory,
            program,
            architecture,
        }
    }

    /// Adds a version to the repository.
    fn publish(&self, version: &str) {
        let packages = self.directory.path().join("packages");
        make(self.program, self.architecture, version, &packages);
        let repository = self.directory.path().join("served/apt");
        let key = self.directory.path().join("key.asc");
        make_repository(&packages, &repository, &key, &format!("{}/apt", self.url));
    }
}

/// The network, what the disks lack, and the repository as docs/how-to/install.md adds it.
fn prepare(board: &mut Session, web: &Web<'_>) {
    let script = format!(
        "set -e
         card=$(basename $(dirname $(ls -d /sys/class/net/*/device))); ip link set $card up
         ip addr add 10.0.2.15/24 dev $card; ip route add default via {HOST_ADDRESS}
         busybox wget -q -O - {url}/beside/{archive} | tar -x -C / --skip-old-files --keep-directory-symlink
         ldconfig
         rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
         mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /usr/share/keyrings /var/log/apt
         touch /var/lib/dpkg/status
         busybox wget -q -O /usr/share/keyrings/rubus-archive-keyring.gpg {url}/apt/rubus-archive-keyring.gpg
         busybox wget -q -O /etc/apt/sources.list.d/rubus.sources {url}/apt/rubus.sources",
        url = web.url,
        archive = extra_packages::ARCHIVE,
    );
    board.must(&script, "root", LONG).unwrap();
    assert!(web.serving.id().is_some());
}

fn installed(board: &mut Session) -> String {
    board.must("dpkg-query -W -f '${Version}' rubus", "root", SOON).unwrap()
}

fn it_works_for_an_ordinary_user(board: &mut Session) {
    let mut must = |script: &str| board.must(script, "pi", SOON).unwrap();
    assert_eq!(must("command -v rubus").trim(), "/usr/bin/rubus");
    let verbose = must("rubus --version --verbose");
    assert!(verbose.contains(", static\n"), "{verbose}");
    let page = must("man -w rubus");
    assert_eq!(page.trim(), "/usr/share/man/man1/rubus.1.gz");
    let page = must("MANWIDTH=80 man rubus | cat");
    assert!(page.contains("EXIT STATUS"), "{page}");
    let completed = must(
        ". /usr/share/bash-completion/bash_completion
         _comp_load rubus
         COMP_WORDS=(rubus surv); COMP_CWORD=1; COMP_LINE='rubus surv'; COMP_POINT=10
         $(complete -p rubus | sed 's/.*-F \\([^ ]*\\).*/\\1/') rubus surv rubus
         echo \"${COMPREPLY[@]}\"",
    );
    assert_eq!(completed.trim(), "survey");
}

/// Makes a run of the user's and a change of the system; gives what is to survive.
fn what_the_user_has(board: &mut Session) -> String {
    let run = format!("printf '{JOB}' >short.fio && rubus bench . --fio-job short.fio --quiet");
    board.must(&run, "pi", LONG).unwrap();
    board.must("rubus apply zswap --yes", "root", LONG).unwrap();
    let there = what_is_there(board);
    assert!(there.contains("0001-zswap"), "{there}");
    assert!(there.contains("job-file"), "{there}");
    there
}

/// The history, the change with its journal, and what it set.
fn what_is_there(board: &mut Session) -> String {
    let history = board.must("rubus history --json", "pi", SOON).unwrap();
    let change = board
        .must(
            "rubus status --json | sed '/_at\"/d'
             find /var/lib/rubus/changes -type f | sort | xargs sha256sum
             cat /sys/module/zswap/parameters/enabled",
            "root",
            SOON,
        )
        .unwrap();
    format!("{history}{change}")
}

fn the_change_can_still_be_undone(board: &mut Session) {
    board.must("rubus undo --yes", "root", LONG).unwrap();
    let status = board.run("rubus status", "root", SOON).unwrap().text();
    assert!(status.contains("undone"), "{status}");
}

fn purge_leaves_what_the_user_made(board: &mut Session) {
    let files = board
        .must("for f in $(dpkg -L rubus); do [ -d $f ] || echo $f; done", "root", SOON)
        .unwrap();
    assert!(files.lines().count() > 20, "{files}");
    let said = board.must("apt-get purge -y -q rubus", "root", LONG).unwrap();
    for words in ["/var/lib/rubus/changes: journals", "/home/pi/.local/share/rubus: history"] {
        assert!(said.contains(words), "{said}");
    }
    let left = format!("for f in {}; do [ ! -e $f ] || echo $f; done", files.replace('\n', " "));
    assert_eq!(board.must(&left, "root", SOON).unwrap(), "");
    board
        .must(
            "[ -e /home/pi/.local/share/rubus/history.db ] && [ -d /var/lib/rubus/changes/0001-zswap ]",
            "root",
            SOON,
        )
        .unwrap();
}
