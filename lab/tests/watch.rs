//! `rubus watch` on devices of known truth, and in a real terminal (tmux).

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::program::{Home, binary};
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{Limits, ThrottledLoop};

const TMUX: [Need; 1] = [Need::Program("tmux", "tmux")];
/// For how long something is waited for that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal of its own server, which is gone with it.
struct Tmux {
    home: Home,
}

impl Tmux {
    /// A shell on a screen of this size.
    fn new(width: u32, height: u32) -> Tmux {
        let tmux = Tmux { home: Home::new() };
        let (width, height) = (width.to_string(), height.to_string());
        tmux.tell(&["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, "sh"]);
        tmux.type_in("PS1='ready> '; stty -a > before; clear");
        tmux.until("the shell", is_prompt_alone);
        tmux
    }

    fn socket(&self) -> String {
        self.home.path().join("tmux.socket").display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        self.home.adopt(&mut command);
        command
            .arg("-u")
            .arg("-S")
            .arg(self.socket())
            .args(arguments)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TMUX");
        command
    }

    fn tell(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("tmux starts");
        assert!(
            output.status.success(),
            "tmux {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn type_in(&self, line: &str) {
        self.tell(&["send-keys", "-l", line]);
        self.tell(&["send-keys", "Enter"]);
    }

    fn press(&self, key: &str) {
        self.tell(&["send-keys", key]);
    }

    fn screen(&self) -> String {
        self.tell(&["capture-pane", "-p"])
    }

    /// One of tmux's own variables of the terminal.
    fn state(&self, name: &str) -> String {
        let format = format!("#{{{name}}}");
        self.tell(&["display-message", "-p", &format]).trim().to_string()
    }

    /// Waits for a screen that is as it should be.
    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(Instant::now() < give_up, "{what} does not come:\n{screen}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn start(&self, arguments: &str) {
        self.type_in(&format!("{} watch {arguments}; echo status=$?", binary().display()));
        self.until("the watch", has_disks);
        assert_eq!(self.state("alternate_on"), "1");
        assert_eq!(self.state("cursor_flag"), "0");
    }

    /// The terminal is as it was before, and the program ended with this status.
    fn is_back(&self, status: &str) {
        let wanted = format!("status={status}");
        let screen = self.until("the shell", |screen| screen.lines().any(|line| line == wanted));
        assert!(!screen.contains("rubus watch  "), "{screen}");
        assert_eq!(self.state("alternate_on"), "0");
        assert_eq!(self.state("cursor_flag"), "1");
        self.type_in("stty -a > after; cmp before after && echo same-settings");
        self.until("the comparison", |screen| screen.lines().any(|line| line == "same-settings"));
        self.type_in("clear");
        self.until("a clear screen", is_prompt_alone);
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

/// The shell waits for a line. What is typed before would be shown twice or not at all, and what comes after it would begin in
/// the prompt's row.
fn is_prompt_alone(screen: &str) -> bool {
    screen.trim() == "ready>"
}

/// After the second sample there is the table of disks, and the title is on top.
fn has_disks(screen: &str) -> bool {
    screen.starts_with("rubus watch") && screen.contains("disk ") && screen.contains("memory ")
}

fn columns(screen: &str) -> usize {
    let widths = screen.lines().map(|line| line.chars().count());
    widths.max().unwrap_or(0)
}

#[test]
fn the_screen_is_drawn_resized_and_given_back() {
    let _turn = take_turns();
    if !can_run("the screen in tmux", &TMUX) {
        return;
    }
    let tmux = Tmux::new(80, 24);
    tmux.start("--interval 0.2");
    let screen = tmux.screen();
    report(&screen);
    assert!(screen.contains("q quit  space pause  p programs"), "{screen}");
    assert!(screen.contains("CPU "), "{screen}");
    assert!(columns(&screen) <= 80);

    tmux.press("Space");
    tmux.until("the pause", |screen| screen.contains("paused"));
    tmux.press("Space");
    tmux.until("the end of the pause", |screen| !screen.contains("paused"));

    for (width, height) in [("120", "40"), ("40", "12"), ("20", "4"), ("80", "24")] {
        tmux.tell(&["resize-window", "-x", width, "-y", height]);
        // tmux shows the old contents until the program has redrawn.
        let columns_now: usize = width.parse().expect("a number");
        let rows: usize = height.parse().expect("a number");
        tmux.until("the new size", |screen| {
            let last = screen.lines().nth(rows - 1);
            screen.starts_with("rubus watch")
                && last.is_some_and(|last| last.starts_with("q quit"))
                && columns(screen) <= columns_now
        });
    }
    tmux.press("q");
    tmux.is_back("0");
}

#[test]
fn ctrl_c_and_sigterm_end_it_and_give_the_terminal_back() {
    let _turn = take_turns();
    let needs = [TMUX[0], Need::Program("pgrep", "procps")];
    if !can_run("the end by Ctrl-C and SIGTERM in tmux", &needs) {
        return;
    }
    let tmux = Tmux::new(80, 24);
    tmux.start("--interval 0.3");
    tmux.press("C-c");
    tmux.is_back("0");

    tmux.start("--interval 0.3 --record kept.jsonl");
    let own = format!("{} watch", binary().display());
    let found = Command::new("pgrep").args(["-f", "-x", &format!("{own} .*kept.jsonl")]).output();
    let found = String::from_utf8_lossy(&found.expect("pgrep runs").stdout).into_owned();
    let process = found.trim();
    assert!(process.parse::<u32>().is_ok(), "one process: {found:?}");
    let killed = Command::new("kill").args(["-TERM", process]).status();
    assert!(killed.expect("kill runs").success());
    tmux.is_back("0");
    assert!(tmux.home.path().join("kept.jsonl").is_file());
}

#[test]
fn a_recording_that_was_cut_off_is_shown_stepped_and_paused() {
    let _turn = take_turns();
    if !can_run("a recording in tmux", &TMUX) {
        return;
    }
    let tmux = Tmux::new(80, 24);
    let file = tmux.home.path().join("kept.jsonl");
    let mut recorder = tmux.home.command();
    recorder
        .args(["watch", "--interval", "0.1", "--record"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut recorder = recorder.spawn().expect("the program starts");
    let has_lines = || std::fs::read_to_string(&file).is_ok_and(|text| text.lines().count() > 8);
    let give_up = Instant::now() + PATIENCE;
    while !has_lines() {
        assert!(Instant::now() < give_up, "no recording");
        std::thread::sleep(Duration::from_millis(50));
    }
    // As a pulled plug would end it; and then in the middle of a line.
    recorder.kill().expect("it is killed");
    let _ = recorder.wait();
    let text = std::fs::read_to_string(&file).expect("the recording");
    let whole: Vec<&str> = text.lines().collect();
    let end = whole[..8].join("\n").len() + 60;
    std::fs::write(&file, &text[..end]).expect("it is cut");

    let answer = tmux.home.run(&["watch", "--replay", "kept.jsonl", "--once", "--json"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    assert!(answer.stderr.contains("cut off"), "{answer}");
    assert!(answer.json()["watch"]["cpu"]["user"].is_number(), "{answer}");

    tmux.start("--replay kept.jsonl --speed 0.01");
    tmux.press("Home");
    tmux.until("the first", |screen| screen.contains("sample 2 of 7, paused"));
    tmux.press("Right");
    tmux.until("the next", |screen| screen.contains("sample 3 of 7, paused"));
    tmux.press("End");
    tmux.until("the last", |screen| screen.contains("sample 7 of 7, paused"));
    tmux.press("Left");
    tmux.until("the one before", |screen| screen.contains("sample 6 of 7"));
    tmux.press("q");
    tmux.is_back("0");
}

/// Reads a device without the page cache for as long as it lives, in the group that limits it.
struct Reader(std::process::Child);

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_throttled_device_shows_the_rate_that_it_is_held_to() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::DirectLoop, Need::BlockThrottle, Need::Program("fio", "fio")];
    if !can_run("the rate of a throttled device", &needs) {
        return;
    }
    const BYTES_PER_SECOND: u64 = 8 << 20;
    const BLOCK: u64 = 64 << 10;
    let limits = Limits { read_bytes_per_second: Some(BYTES_PER_SECOND), ..Limits::default() };
    let device = ThrottledLoop::new(256 << 20, limits).expect("a throttled device");
    let node = device.path().display().to_string();
    let child = device
        .command("fio")
        .args([
            "--name=load",
            // Processes of their own would outlive the one that is killed.
            "--thread",
            "--rw=randread",
            "--direct=1",
            "--ioengine=psync",
            "--time_based",
        ])
        .args(["--runtime=120", "--output=/dev/null", "--numjobs=4"])
        .arg(format!("--bs={BLOCK}"))
        .arg(format!("--filename={node}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("fio starts");
    let _reader = Reader(child);
    let name = Path::new(&node).file_name().expect("a name").to_string_lossy().into_owned();
    let home = Home::new();
    let look = || {
        let answer = home.run(&["watch", "--once", "--json", "--interval", "4"]);
        assert_eq!(answer.status, Some(0), "{answer}");
        let disks = answer.json()["watch"]["disks"].clone();
        let disks = disks.as_array().expect("a list").clone();
        disks.into_iter().find(|disk| disk["name"] == name.as_str())
    };
    // fio takes a while to begin.
    let give_up = Instant::now() + PATIENCE;
    let is_read = |disk: &Option<serde_json::Value>| {
        let rate = disk.as_ref().map(|disk| disk["rates"]["read_bytes_per_second"].clone());
        rate.and_then(|rate| rate.as_f64()).is_some_and(|rate| rate > 0.0)
    };
    while !is_read(&look()) {
        assert!(Instant::now() < give_up, "nothing is read");
    }
    let disk = look().expect("the device is there");
    report(&disk.to_string());
    let rate = |what: &str| disk["rates"][what].as_f64().expect("a number");
    let is_near = |value: f64, truth: f64| (value / truth - 1.0).abs() < 0.05;
    assert!(is_near(rate("read_bytes_per_second"), BYTES_PER_SECOND as f64), "{disk}");
    assert!(is_near(rate("reads_per_second"), (BYTES_PER_SECOND / BLOCK) as f64), "{disk}");
    assert_eq!(rate("written_bytes_per_second"), 0.0, "{disk}");
}

#[test]
fn without_a_terminal_it_says_what_works_there() {
    let _turn = take_turns();
    let home = Home::new();
    let answer = home.run(&["watch"]);
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stderr.contains("--once"), "{answer}");
    let answer = home.run(&["watch", "--once", "--interval", "0.2"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    // The locale of the tests knows no UTF-8.
    assert!(answer.stdout.is_ascii(), "{answer}");
    assert!(answer.stdout.starts_with("rubus watch"), "{answer}");
    let answer = home.run(&["watch", "--once", "--interval", "0.2", "--prometheus", "rubus.prom"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    let text = std::fs::read_to_string(home.path().join("rubus.prom")).expect("the file");
    assert!(text.contains("\nrubus_disk_read_bytes_total{device="), "{text}");
    let names: Vec<_> = std::fs::read_dir(home.path()).expect("the home").collect();
    assert_eq!(names.len(), 1, "nothing else is left: {names:?}");
    let answer = home.run(&["watch", "--once", "--prometheus", "rubus.txt"]);
    assert!(answer.stderr.contains(".prom"), "{answer}");
    let machine = ["watch", "--machine", "/nonexistent"];
    let answer = home.run(&machine);
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stderr.contains("--replay"), "{answer}");
}
