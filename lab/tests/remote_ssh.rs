//! Measuring on another machine over ssh: the other machine is this one, behind a server of our own.
//! Results come back; whatever is interrupted or killed, nothing stays over there and nothing goes on.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::program::{Answer, Home, binary};
use crate::common::run;
use crate::common::sshd::{HOSTS, NEEDS, NOBODY, Server};
use crate::common::{can_run, script, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{FilesystemKind, SmallFilesystem, free_port, programs};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
/// Longer than a machine under load needs to notice and to clear up.
const PATIENCE: Duration = Duration::from_secs(60);
/// The shortest suite: it ends after a fixed number of bytes, and memory is quick.
const SHORT: [&str; 5] = ["--suite", "stream", "--size", "16MiB", "--no-html"];

// --- Results come back ----------------------------------------------------------------------

#[test]
fn a_bench_over_ssh_is_kept_here_and_leaves_nothing_there() {
    let Some(lab) = Lab::start("bench over ssh") else {
        return;
    };
    let target = lab.target();
    let answer =
        lab.run(&[&["bench", &target, "--on", "attic", "--json", "-"], &SHORT[..]].concat());
    assert_eq!(answer.status, Some(0), "{answer}");
    let run = answer.json();
    assert!(!run::results(&run).is_empty(), "{answer}");
    assert_eq!(run["on"]["destination"], "attic");
    assert_eq!(run["target"]["path"], target.as_str());
    let round_trip = run["on"]["round_trip_ms"].as_f64().expect("it was timed");
    assert!((0.001..1000.0).contains(&round_trip), "{round_trip} ms");
    let busy = run["on"]["local_cpu"]["per_core_busy"].as_array();
    assert!(!busy.expect("this end's processors were watched").is_empty());
    assert!(run["on"]["ssh_version"].as_str().is_some_and(|v| v.contains("SSH")));
    assert!(answer.stderr.contains(" until the end"), "{answer}");
    assert_eq!(lab.home.runs(), 1);
    lab.check_nothing_is_left();
    assert_eq!(std::fs::read_dir(lab.memory.path()).unwrap().count(), 0);
}

#[test]
fn a_job_file_of_this_machine_runs_on_the_other() {
    let Some(lab) = Lab::start("job file over ssh") else {
        return;
    };
    let file = lab.home.path().join("random read.fio");
    let job = "[it]\nrw=randread\nbs=4k\nsize=8m\nruntime=1\ntime_based\n";
    std::fs::write(&file, job).unwrap();
    let (file, target) = (file.display().to_string(), lab.target());
    let bench = ["bench", &target, "--on", "attic", "--fio-job", &file];
    let answer = lab.run(&[&bench[..], &["--json", "-", "--no-html"]].concat());
    assert_eq!(answer.status, Some(0), "{answer}");
    let run = answer.json();
    assert_eq!(run["on"]["destination"], "attic");
    assert_eq!(run::results(&run).len(), 1, "{answer}");
    assert!(answer.stderr.contains("random read.fio"), "{answer}");
    lab.check_nothing_is_left();
}

#[test]
fn a_survey_and_its_capture_come_back() {
    let Some(lab) = Lab::start("survey over ssh") else {
        return;
    };
    let capture = lab.home.path().join("attic.tar").display().to_string();
    let answer = lab.run(&["survey", "--on", "attic", "--json", "--save", &capture]);
    assert_eq!(answer.status, Some(0), "{answer}");
    let here = lab.home.run(&["survey", "--json"]).json();
    let kernel = "/system/kernel_release/value";
    let there = answer.json();
    assert!(there.pointer(kernel).is_some(), "{answer}");
    assert_eq!(there.pointer(kernel), here.pointer(kernel));
    let again = lab.home.run(&["survey", "--machine", &capture]);
    assert_eq!(again.status, Some(0), "{again}");
    // Two machines in the order in which they were named.
    let both = lab.run(&["survey", "--on", "cellar,attic"]);
    assert_eq!(both.status, Some(0), "{both}");
    let of = |name: &str| both.stdout.find(&format!("\n{name} "));
    assert!(of("cellar").is_some() && of("cellar") < of("attic"), "{both}");
    lab.check_nothing_is_left();
}

#[test]
fn several_machines_work_at_once_and_a_missing_one_costs_only_itself() {
    let Some(lab) = Lab::start("several machines") else {
        return;
    };
    let json = lab.home.path().join("all.json");
    let file = json.display().to_string();
    let target = lab.target();
    let on = format!("{},{NOBODY}", HOSTS.join(","));
    let answer = lab.run(&[&["bench", &target, "--on", &on, "--json", &file], &SHORT[..]].concat());
    assert_eq!(answer.status, Some(2), "{answer}");
    for words in ["cannot reach nobody", "Connection refused"] {
        assert!(answer.stderr.contains(words), "{answer}");
    }
    assert!(answer.stderr.contains("attic and cellar are the same machine"), "{answer}");
    assert!(answer.says("Side by side"), "{answer}");
    let text = std::fs::read_to_string(&json).unwrap();
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let boards = all["boards"].as_array().unwrap();
    let runs = boards.iter().flat_map(|board| board["runs"].as_array().unwrap());
    assert_eq!(runs.map(destination).collect::<Vec<_>>(), HOSTS);
    assert_eq!(boards[2]["name"], NOBODY);
    assert_eq!(boards[2]["status"], 2);
    assert_eq!(lab.home.runs(), 2);
    lab.check_nothing_is_left();
}

fn destination(run: &serde_json::Value) -> &str {
    run["on"]["destination"].as_str().expect("it was measured elsewhere")
}

// --- What a server spends -------------------------------------------------------------------

const NBDKIT: Need = Need::Program("nbdkit", "nbdkit");

/// The quick suite as far as it reads, and no longer than a test needs it.
const READS: [&str; 7] =
    ["--read-only", "--size", "16MiB", "--precision", "50%", "--no-html", "--no-history"];

/// nbdkit under a name that no other program of this machine has.
struct OtherServer {
    name: String,
    port: u16,
    child: Child,
    _directory: TempDir,
}

impl OtherServer {
    fn start() -> OtherServer {
        let directory = TempDir::with_prefix("lab-nbdkit-").unwrap();
        let name = format!("kit-{}", std::process::id());
        let program = programs::find("nbdkit").expect("it was looked for");
        std::os::unix::fs::symlink(program, directory.path().join(&name)).unwrap();
        let port = free_port("127.0.0.1").expect("a port");
        let child = Command::new(directory.path().join(&name))
            .args(["-f", "-i", "127.0.0.1", "-p", &port.to_string()])
            .args(["memory", "64M"])
            .spawn()
            .expect("nbdkit starts");
        let server = OtherServer { name, port, child, _directory: directory };
        let give_up = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < give_up, "nbdkit does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// What it has spent, in hundredths of a second.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let numbers = stat.rsplit_once(") ").unwrap().1;
        let spent = numbers.split_whitespace().skip(11).take(2);
        spent.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }
}

impl Drop for OtherServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_a_server_of_any_kind_spends_is_told_over_ssh() {
    let test = "what a server spends";
    if !can_run(test, &[NBDKIT]) {
        return;
    }
    let Some(lab) = Lab::start(test) else {
        return;
    };
    let other = OtherServer::start();
    let export = format!("nbd://127.0.0.1:{}/", other.port);
    let asked = |place: &str, more: &[&str]| {
        let words = ["bench", &export, "--server-status", place];
        lab.run(&[&words, &READS[..], more].concat())
    };
    let program = format!("ssh://attic/{}", other.name);
    let before = other.ticks();
    let answer = asked(&program, &["--json", "-"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    let spent_s = (other.ticks() - before) as f64 / 100.0;
    let run = answer.json();
    let results = run["results"].as_array().expect("results");
    let mut told_s = 0.0;
    for result in results {
        let ends = &result["both_ends"];
        assert_eq!(ends["server_is"]["program"], other.name.as_str(), "{run}");
        assert_eq!(ends["client_is"], "process");
        told_s += ends["server"]["cpu_s"].as_f64().expect("it was asked");
    }
    assert!(!results.is_empty(), "{answer}");
    // What it spends beside the jobs is in none of them.
    assert!(told_s > 0.0 && told_s < spent_s + 0.005, "{told_s} of {spent_s} s");
    let answer = asked("ssh://attic", &[]);
    assert_eq!(answer.status, Some(0), "{answer}");
    for words in ["server/GiB", "server: all of its machine"] {
        assert!(answer.stdout.contains(words), "{answer}");
    }
    for (place, words) in [
        ("ssh://attic/no-such-server", "no process called 'no-such-server'"),
        ("ssh://nobody/nbdkit", "Connection refused"),
        ("ssh://attic/usr/bin/nbdkit", "no program's name"),
    ] {
        let answer = asked(place, &[]);
        assert_eq!(answer.status, Some(2), "{answer}");
        assert!(answer.stderr.contains(words), "{answer}");
    }
    let answer = lab.run(&["bench", &export, "--suite", "stream"]);
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stderr.contains("which nothing here needs"), "{answer}");
    lab.check_nothing_is_left();
}

// --- Places and programs --------------------------------------------------------------------

#[test]
fn a_place_without_room_or_execution_is_passed_over() {
    let full = SmallFilesystem::new(FilesystemKind::Tmpfs, MIB);
    let forbidden = TempDir::new().unwrap();
    let Some(full) = full.ok().filter(|_| can_run("places", &NEEDS)) else {
        return;
    };
    let _mounted = NoExec::mount(forbidden.path());
    let environment = [("XDG_RUNTIME_DIR", forbidden.path()), ("TMPDIR", full.path())];
    // Other tests have places of their own, so these are this one's.
    let next = ["/tmp", "/var/tmp"].map(Path::new);
    let lab = Lab::looking_at(Server::start(&environment), &next);
    let target = lab.target();
    let answer = lab.run(&[&["bench", &target, "--on", "attic"], &SHORT[..]].concat());
    assert_eq!(answer.status, Some(0), "{answer}");
    assert!(answer.stderr.contains(" is in /tmp/rubus."), "{answer}");
    for place in [forbidden.path(), full.path()] {
        assert_eq!(std::fs::read_dir(place).unwrap().count(), 0);
    }
    lab.check_nothing_is_left();
}

#[test]
fn a_program_for_another_processor_is_not_copied_and_one_that_does_not_run_is_said_so() {
    if !can_run("another processor", &NEEDS) {
        return;
    }
    let bin = TempDir::new().unwrap();
    script(&bin.path().join("uname"), "[ \"$1\" = -m ] && echo aarch64 || echo Linux");
    let lab = Lab::with(Server::with_programs(bin.path()));
    let target = lab.target();
    let own = binary().display().to_string();
    if !cfg!(target_arch = "aarch64") {
        let answer = lab.run(&["bench", &target, "--on", "attic", "--binary", &own]);
        check_failure(&answer, &["aarch64", &own, "64-bit x86", "--binary FILE"]);
    }
    // What looks like the right program, but is not.
    let pretender = lab.home.path().join("pretender");
    let mut bytes = std::fs::read(binary()).unwrap();
    bytes[18..20].copy_from_slice(&183_u16.to_le_bytes());
    bytes.truncate(100_000);
    std::fs::write(&pretender, bytes).unwrap();
    let pretender = pretender.display().to_string();
    let answer = lab.run(&["bench", &target, "--on", "attic", "--binary", &pretender]);
    check_failure(&answer, &[&pretender]);
    let text = lab.home.path().join("text");
    std::fs::write(&text, "no program").unwrap();
    let text = text.display().to_string();
    let answer = lab.run(&["bench", &target, "--on", "attic", "--binary", &text]);
    check_failure(&answer, &["does not begin like an ELF file"]);
    lab.check_nothing_is_left();
}

#[test]
fn an_installed_program_is_used_only_if_it_is_of_the_same_version() {
    if !can_run("installed program", &NEEDS) {
        return;
    }
    let bin = TempDir::new().unwrap();
    std::os::unix::fs::symlink(binary(), bin.path().join("rubus")).unwrap();
    script(&bin.path().join("older"), "echo rubus 0.0.9");
    let lab = Lab::with(Server::with_programs(bin.path()));
    let target = lab.target();
    let with = |command: &'static str| ["--on", "attic", "--remote-binary", command];
    let bench = ["bench", &target, "--json", "-"];
    let answer = lab.run(&[&bench[..], &with("rubus"), &SHORT].concat());
    assert_eq!(answer.status, Some(0), "{answer}");
    assert_eq!(answer.json()["on"]["binary"], "installed there as rubus");
    let answer = lab.run(&[&bench[..], &with("older"), &SHORT].concat());
    check_failure(&answer, &["0.0.9", "--remote-binary"]);
    let answer = lab.run(&[&bench[..], &with("missing"), &SHORT].concat());
    check_failure(&answer, &["cannot run `missing`", "not found"]);
    lab.check_nothing_is_left();
}

// --- Ends in the middle ---------------------------------------------------------------------

#[test]
fn control_c_here_ends_the_measurement_there_and_brings_back_what_there_is() {
    let Some(lab) = Lab::start("Ctrl-C over ssh") else {
        return;
    };
    let running = lab.begin(&["bench", &lab.target(), "--size", "64MiB", "--json", "-"]);
    std::thread::sleep(Duration::from_secs(4));
    // To all of the group, as a terminal does it: ssh must not take it for itself.
    running.signal_group(Signal::INT);
    let answer = running.finish();
    assert_eq!(answer.status, Some(1), "{answer}");
    let doubts = run::all_doubts(&answer.json());
    assert!(doubts.iter().any(|doubt| doubt == "interrupted"), "{doubts:?}");
    assert_eq!(lab.home.runs(), 1);
    lab.check_nothing_is_left();
}

#[test]
fn a_lost_connection_ends_the_measurement_there() {
    let Some(lab) = Lab::start("lost connection") else {
        return;
    };
    let running = lab.begin(&["bench", &lab.target(), "--size", "64MiB", "--json", "-"]);
    let clients = running.children("ssh");
    assert!(!clients.is_empty(), "no ssh was found");
    for client in clients {
        let _ = kill_process(client, Signal::KILL);
    }
    let answer = running.finish();
    check_failure(&answer, &["the connection to attic was lost"]);
    lab.check_nothing_is_left();
}

#[test]
fn a_killed_program_here_ends_the_measurement_there() {
    let Some(lab) = Lab::start("kill over ssh") else {
        return;
    };
    let running = lab.begin(&["bench", &lab.target(), "--size", "64MiB", "--json", "-"]);
    running.signal(Signal::KILL);
    assert_eq!(running.finish().status, None);
    lab.check_nothing_is_left_but_sockets();
}

// --- What is refused ------------------------------------------------------------------------

#[test]
fn a_name_that_ssh_would_take_for_an_option_is_refused() {
    let _turn = take_turns();
    let home = Home::new();
    let witness = home.path().join("witness");
    let bad = format!("--on=-oProxyCommand=touch {}", witness.display());
    for arguments in
        [vec!["survey", &bad], vec!["survey", "--on", "pi,pi"], vec!["history", "--on", "pi"]]
    {
        let answer = home.run(&arguments);
        assert_eq!(answer.status, Some(2), "{answer}");
    }
    assert!(!witness.exists(), "the name was run as a command");
}

#[test]
fn a_changed_host_key_is_shown_and_never_passed_over() {
    let Some(lab) = Lab::start("changed host key") else {
        return;
    };
    lab.server.forget_host_key();
    let answer = lab.run(&["survey", "--on", "attic"]);
    check_failure(&answer, &["REMOTE HOST IDENTIFICATION HAS CHANGED", "cannot reach attic"]);
    lab.check_nothing_is_left();
}

#[test]
fn the_guard_over_there_decides_and_its_status_comes_back() {
    let Some(lab) = Lab::start("guard over ssh") else {
        return;
    };
    let file = lab.memory.path().join("it's precious");
    std::fs::write(&file, vec![7_u8; 4 << 20]).unwrap();
    let path = file.display().to_string();
    let wrong = "--i-will-lose-everything-on=/another/file";
    let answer = lab.run(&["bench", &path, "--on", "attic", wrong]);
    assert_eq!(answer.status, Some(3), "{answer}");
    assert!(answer.stderr.contains("attic: rubus: refused"), "{answer}");
    assert!(std::fs::read(&file).unwrap().iter().all(|byte| *byte == 7));
    lab.check_nothing_is_left();
}

// --- Helpers --------------------------------------------------------------------------------

/// A server, a home on this side, and memory to measure.
struct Lab {
    server: Server,
    home: Home,
    memory: SmallFilesystem,
    /// Where the program makes directories at either end.
    places: Vec<PathBuf>,
    /// Of those directories, the ones that were there.
    before: BTreeSet<PathBuf>,
    _turn: std::sync::MutexGuard<'static, ()>,
}

impl Lab {
    fn start(test: &str) -> Option<Lab> {
        can_run(test, &NEEDS).then(|| Lab::with(Server::start(&[])))
    }

    fn with(server: Server) -> Lab {
        Lab::looking_at(server, &[])
    }

    /// One that also looks for what is left in places that are not its own.
    fn looking_at(server: Server, more: &[&Path]) -> Lab {
        let turn = take_turns();
        let home = Home::new();
        let mut places = vec![home.path().to_path_buf(), server.runtime()];
        places.extend(more.iter().map(|place| place.to_path_buf()));
        Lab {
            before: leftovers(&places),
            memory: SmallFilesystem::new(FilesystemKind::Tmpfs, 512 * MIB).expect("memory"),
            server,
            home,
            places,
            _turn: turn,
        }
    }

    /// Processes that measure for another rubus here, and not for another test.
    fn measuring(&self) -> Vec<u32> {
        let all = std::fs::read_dir("/proc").expect("the processes").flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            words.first().is_some_and(|first| first.ends_with(b"/rubus"))
                && words.contains(&b"--records".as_slice())
                && words.contains(&self.target().as_bytes())
        })
        .collect()
    }

    fn target(&self) -> String {
        self.memory.path().display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command();
        command.args(arguments).arg("--ssh-config").arg(self.server.config());
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Answer {
        Answer::of(self.command(arguments).output().expect("the program starts"))
    }

    /// Starts a long measurement on `attic` and waits until it measures there.
    fn begin(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        command.args(["--on", "attic", "--no-html"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // As a shell does, so that the test can do as a terminal does.
        command.process_group(0);
        let running = Running(Some(command.spawn().expect("the program starts")));
        let give_up = Instant::now() + PATIENCE;
        while self.measuring().is_empty() {
            assert!(Instant::now() < give_up, "it does not begin");
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_secs(1));
        running
    }

    fn check_nothing_is_left(&self) {
        self.check(|_| true);
    }

    /// A killed program cannot remove the directory of its socket, which holds nothing.
    fn check_nothing_is_left_but_sockets(&self) {
        self.check(|path| !entries(path).is_empty());
    }

    fn check(&self, counts: impl Fn(&Path) -> bool) {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let mut files = leftovers(&self.places);
            files.retain(|path| !self.before.contains(path) && counts(path));
            let processes = self.measuring();
            if files.is_empty() && processes.is_empty() {
                return;
            }
            assert!(
                Instant::now() < give_up,
                "left: {:?}, processes {processes:?}",
                files.iter().map(|path| (path, entries(path))).collect::<Vec<_>>()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A program that runs in the background; killed if the test ends before it.
struct Running(Option<Child>);

impl Running {
    fn id(&self) -> u32 {
        self.0.as_ref().expect("it runs").id()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.id() as i32).expect("a process");
        kill_process(pid, signal).expect("it runs");
    }

    fn signal_group(&self, signal: Signal) {
        let group = Pid::from_raw(self.id() as i32).expect("a process");
        kill_process_group(group, signal).expect("it runs");
    }

    /// The processes of this name that it started.
    fn children(&self, name: &str) -> Vec<Pid> {
        let parent = self.id().to_string();
        let listed = programs::run("ps", &["-o", "pid=", "-C", name, "--ppid", &parent]);
        let listed = listed.unwrap_or_default();
        let own = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let after = stat.rsplit_once(')').map(|(_, after)| after.to_string());
            after.is_some_and(|after| after.split_whitespace().nth(1) == Some(&parent))
        };
        let pids = listed.split_whitespace().filter(|pid| own(pid));
        pids.filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    }

    fn finish(mut self) -> Answer {
        let mut child = self.0.take().expect("it runs");
        let give_up = Instant::now() + PATIENCE * 2;
        while child.try_wait().expect("it can be waited for").is_none() {
            if Instant::now() > give_up {
                let _ = child.kill();
                let mut said = String::new();
                if let Some(mut stderr) = child.stderr.take() {
                    let _ = stderr.read_to_string(&mut said);
                }
                panic!("it does not end: {said}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Answer::of(child.wait_with_output().expect("its output"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// It ended with status 2 and said all these words, without a result.
fn check_failure(answer: &Answer, words: &[&str]) {
    assert_eq!(answer.status, Some(2), "{answer}");
    for word in words {
        assert!(answer.stderr.contains(word), "no '{word}' in: {answer}");
    }
    assert!(!answer.stderr.contains("panicked"), "{answer}");
    assert!(answer.stdout.is_empty(), "{answer}");
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Directories in these places that the program makes at both ends.
fn leftovers(places: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for place in places {
        let ours = entries(place).into_iter().filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // `rubus.x1y2` over there, `rubus-123-0` here; not the tests' own `rubus-lab-…`.
            let number = name.strip_prefix("rubus-").unwrap_or_default();
            name.starts_with("rubus.") || number.starts_with(|c: char| c.is_ascii_digit())
        });
        found.extend(ours);
    }
    found
}

/// Memory mounted somewhere, from which nothing may be run.
struct NoExec(PathBuf);

impl NoExec {
    fn mount(path: &Path) -> NoExec {
        let place = path.display().to_string();
        programs::run("mount", &["-t", "tmpfs", "-o", "noexec,size=256m", "tmpfs", &place])
            .expect("it can be mounted");
        NoExec(path.into())
    }
}

impl Drop for NoExec {
    fn drop(&mut self) {
        let _ = programs::run("umount", &[&self.0.display().to_string()]);
    }
}
