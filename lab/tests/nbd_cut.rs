//! The network between client and server is cut: for five seconds it goes on, and the pause is a stall; for longer it
//! ends with what, where and since when.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::program::{Answer, Home, binary};
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::programs;

const HERE: &str = "198.51.100.1";
const THERE: &str = "198.51.100.2";
const PATIENCE: Duration = Duration::from_secs(30);

/// A server in a network of its own, at the other end of a cable. Both are gone when this is dropped.
struct Across {
    namespace: String,
    server: Child,
}

impl Across {
    fn new(home: &Home) -> Across {
        let number = std::process::id();
        let namespace = format!("rubus-lab-{number}");
        let (near, far) = (format!("rl{number}a"), format!("rl{number}b"));
        let ip = |arguments: &[&str]| programs::run("ip", arguments).expect("ip does it");
        ip(&["netns", "add", &namespace]);
        ip(&["link", "add", &near, "type", "veth", "peer", "name", &far, "netns", &namespace]);
        ip(&["address", "add", &format!("{HERE}/24"), "dev", &near]);
        ip(&["link", "set", &near, "up"]);
        ip(&["-n", &namespace, "address", "add", &format!("{THERE}/24"), "dev", &far]);
        ip(&["-n", &namespace, "link", "set", &far, "up"]);
        // About 10 MB/s, so that a copy takes a while.
        let shape = ["root", "tbf", "rate", "80mbit", "burst", "64kb", "latency", "50ms"];
        let shape = [&["-n", &namespace, "qdisc", "add", "dev", &far], &shape[..]].concat();
        programs::run("tc", &shape).expect("tc does it");
        let image = home.path().join("disk.img");
        std::fs::write(&image, vec![7; 64 << 20]).expect("room");
        let mut command = programs::command("ip");
        command.args(["netns", "exec", &namespace]).arg(binary());
        command.args(["serve", "--quiet", "--read-only"]).arg(&image);
        command.args(["--listen", &format!("{THERE}:10809")]);
        let server = command.stderr(Stdio::null()).spawn().expect("it starts");
        let across = Across { namespace, server };
        let begin = Instant::now();
        while home.run(&["nbd", "info", &across.address()]).status != Some(0) {
            assert!(begin.elapsed() < PATIENCE, "the server does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        across
    }

    fn address(&self) -> String {
        format!("nbd://{THERE}/")
    }

    /// Cuts the cable, or mends it.
    fn cut(&self, is_cut: bool) {
        let far = format!("rl{}b", std::process::id());
        let state = if is_cut { "down" } else { "up" };
        programs::run("ip", &["-n", &self.namespace, "link", "set", &far, state])
            .expect("ip does it");
    }
}

impl Drop for Across {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        // The cable goes with it.
        let _ = programs::run("ip", &["netns", "del", &self.namespace]);
    }
}

fn start(home: &Home, arguments: &[&str]) -> Child {
    let mut command = Command::new(binary());
    home.adopt(&mut command);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

fn end(child: Child) -> Answer {
    Answer::of(child.wait_with_output().expect("it ends"))
}

#[test]
fn a_cut_of_five_seconds_is_a_stall_and_a_long_one_is_the_end() {
    let needs = [Need::Root, Need::Program("ip", "iproute2")];
    if !can_run("nbd_cut", &needs) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let across = Across::new(&home);
    let address = across.address();
    let bench = [
        "bench",
        "--suite",
        "queue-depth",
        "--read-only",
        "--no-history",
        "--no-html",
        "--json=-",
        &address,
    ];
    let child = start(&home, &bench);
    std::thread::sleep(Duration::from_secs(3));
    across.cut(true);
    std::thread::sleep(Duration::from_secs(5));
    across.cut(false);
    let answer = end(child);
    assert_eq!(answer.status, Some(0), "{answer}");
    let run = answer.json();
    let results = run["results"].as_array().expect("results");
    let longest = results
        .iter()
        .filter_map(|result| {
            result["latency_ns"]["max"].as_f64().or(result["latency"]["max_ns"].as_f64())
        })
        .fold(0.0, f64::max);
    report(&format!("the longest operation took {:.1} s", longest / 1e9));
    assert!(longest > 4e9, "the pause was not seen: {run}");

    // Both at once, so that the wait is had once.
    let child = start(&home, &bench);
    let arguments = ["nbd", "copy", "--json", &address, "copy.img"];
    let copy = start(&home, &arguments);
    std::thread::sleep(Duration::from_secs(3));
    across.cut(true);
    let cut = Instant::now();
    let copied = end(copy);
    let answer = end(child);
    report(&format!(
        "{:.0} s after the cut: {} {}",
        cut.elapsed().as_secs_f64(),
        answer.stderr.trim(),
        copied.stderr.trim()
    ));
    assert_ne!(answer.status, Some(0), "{answer}");
    for words in ["no operation ended within 30 s", THERE, "cable"] {
        assert!(answer.stderr.contains(words), "{words}: {answer}");
    }
    let silence = "nothing has come from the server's machine for 45 s";
    for words in [silence, THERE, "cable", "the same command continues"] {
        assert!(copied.stderr.contains(words), "{words}: {copied}");
    }
    assert_eq!(copied.status, Some(2), "{copied}");
    // The cable is mended, and the copy goes on.
    across.cut(false);
    let copied = home.run(&arguments);
    assert_eq!(copied.status, Some(0), "{copied}");
    assert!(copied.json()["resumed_bytes"].as_u64() > Some(0), "{copied}");
    let found = std::fs::read(home.path().join("copy.img")).expect("the copy");
    assert!(found.len() == 64 << 20 && found.iter().all(|byte| *byte == 7));
}
