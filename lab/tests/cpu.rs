//! `rubus bench cpu` for real: ciphers beside OpenSSL, ssh as root on a machine where no server was ever started, and
//! what is left after a kill.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::program::{Answer, Home, binary};
use crate::common::{can_run, take_turns};
use rubus_lab::devices::needs::Need;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SSH: [Need; 4] = [
    Need::Root,
    Need::Program("sshd", "openssh-server"),
    Need::Program("ssh", "openssh-client"),
    Need::Program("unshare", "util-linux"),
];
/// Longer than a machine under load needs for anything here.
const PATIENCE: Duration = Duration::from_secs(120);

fn rows<'a>(run: &'a Value, part: &str) -> &'a Vec<Value> {
    let rows = run["processor"][part]["rows"].as_array();
    rows.unwrap_or_else(|| panic!("no {part} in {run}"))
}

/// Measures ciphers for a moment: what was said, and the run.
fn ciphers(home: &Home) -> (Answer, Value) {
    let answer = home.run(&["bench", "cpu", "ciphers", "--seconds", "0.05", "--json", "-"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    let run = answer.json();
    (answer, run)
}

#[test]
fn ciphers_have_figures_on_one_core_and_on_all_and_go_to_the_history() {
    let _turn = take_turns();
    let home = Home::new();
    let (_, run) = ciphers(&home);
    assert!(run.get("verdict").is_none(), "a verdict is about a disk");
    let cores = run["processor"]["cores"].as_u64().expect("it is counted");
    for row in rows(&run, "ciphers") {
        let rate = |which: &str| row["rates"][which]["per_second"]["value"].as_f64();
        assert!(rate("one_core").is_some_and(|rate| rate > 0.0), "{row}");
        assert_eq!(rate("all_cores").is_some(), cores > 1, "{row}");
        assert!(row["implementation"]["uses"].is_string(), "{row}");
    }
    let of_disks = |row: &&Value| row["algorithm"] == "aes_xts512" && row["place"] == "program";
    assert_eq!(rows(&run, "ciphers").iter().filter(of_disks).count(), 4);
    let of_kernel = |row: &&Value| row["place"] == "kernel";
    let left_out = run["processor"]["left_out"].to_string();
    assert!(
        rows(&run, "ciphers").iter().any(|row| of_kernel(&row))
            || left_out.contains("algif_skcipher"),
        "neither measured in the kernel nor said why not: {left_out}"
    );
    assert_eq!(home.runs(), 1);
    let again = home.run(&["history", "show", "1"]);
    assert!(again.says("AES-XTS 512"), "{again}");
    let _ = ciphers(&home);
    let compared = home.run(&["compare", "1", "2"]);
    assert!(compared.stdout.contains("digest 16 KiB, program, one core\n  "), "{compared}");
}

#[test]
fn openssl_stands_beside_with_its_instructions() {
    if !can_run("OpenSSL beside", &[Need::Program("openssl", "openssl")]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let (answer, run) = ciphers(&home);
    let peers = run["processor"]["ciphers"]["peers"].as_array();
    let peers = peers.unwrap_or_else(|| panic!("OpenSSL was not asked: {answer}"));
    assert_eq!(peers.len(), 4, "{answer}");
    for peer in peers {
        let rates = [&peer["bytes_per_second"], &peer["ours"]["value"]];
        for rate in rates {
            assert!(rate.as_f64().is_some_and(|rate| rate > 0.0), "{peer}");
        }
        assert!(peer["uses"].is_string() && peer["our_uses"].is_string(), "{peer}");
        let tool = peer["tool"].as_str().unwrap_or_default();
        assert!(tool.starts_with("OpenSSL "), "{peer}");
    }
    let shown = home.run(&["history", "show", "1"]);
    assert!(shown.stdout.contains("OpenSSL"), "{shown}");
}

/// Runs it where /run is empty, as on a machine that was just installed and where nothing was started.
fn in_an_empty_run(home: &Home, arguments: &str) -> Answer {
    let script = format!(
        "mount -t tmpfs lab /run && {} bench cpu {arguments}; code=$?; ls -A /run >&2; exit $code",
        binary().display()
    );
    with_mounts_of_its_own(home, &script)
}

/// Runs a script in a mount namespace of its own.
fn with_mounts_of_its_own(home: &Home, script: &str) -> Answer {
    let mut command = Command::new("unshare");
    home.adopt(&mut command);
    let output = command.args(["--mount", "sh", "-c", script]).output();
    Answer::of(output.expect("unshare starts"))
}

#[test]
fn ssh_runs_as_root_where_no_server_was_ever_started() {
    if !can_run("ssh without /run/sshd", &SSH) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let answer = in_an_empty_run(&home, "ssh --seconds 0.05 --quiet --json -");
    assert_eq!(answer.status, Some(0), "{answer}");
    // What was made for the server was made for it alone.
    assert_eq!(answer.stderr.trim(), "", "{answer}");
    let run = answer.json();
    assert_eq!(run["processor"]["left_out"], serde_json::json!([]), "{answer}");
    let ciphers = rows(&run, "ssh");
    assert!(ciphers.len() >= 2, "{answer}");
    for row in ciphers {
        assert!(
            row["rate"]["per_second"]["value"].as_f64().is_some_and(|rate| rate > 0.0),
            "{row}"
        );
        for end in ["client", "server"] {
            let seconds = row[end]["seconds_per_gb"].as_f64();
            assert!(seconds.is_some_and(|seconds| seconds > 0.0), "{end} of {row}");
        }
    }
    assert!(!home.path().join(".ssh").exists(), "ssh was to keep nothing");
}

#[test]
fn a_killed_bench_leaves_no_server_behind() {
    if !can_run("ssh after a kill", &SSH) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let mut command = home.command();
    command.args(["bench", "cpu", "ssh", "--seconds", "60", "--no-history"]);
    let mut bench =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    let deadline = Instant::now() + PATIENCE;
    // ssh, the server, and what the server runs.
    let family = loop {
        let family = below(bench.id());
        if family.iter().any(|(_, name)| name == "cat") {
            break family;
        }
        assert!(Instant::now() < deadline, "only {family:?} is running");
        std::thread::sleep(Duration::from_millis(20));
    };
    let id = Pid::from_raw(bench.id() as i32).expect("a process");
    kill_process(id, Signal::KILL).expect("it is killed");
    bench.wait().expect("it is ended");
    let lives = |(id, name): &&(u32, String)| name_of(*id).as_ref() == Some(name);
    while let Some(left) = family.iter().find(lives) {
        assert!(Instant::now() < deadline, "{left:?} outlives the bench");
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = std::fs::read_dir(home.path()).expect("a home");
    assert_eq!(left.count(), 0, "files were left in the home");
}

/// All processes below one, by number and name.
fn below(root: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let mut wanted = vec![root];
    while let Some(parent) = wanted.pop() {
        for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
            let id = entry.file_name().to_string_lossy().parse::<u32>();
            let Ok(id) = id else { continue };
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            if fields.split_whitespace().nth(1) == Some(parent.to_string().as_str()) {
                found.push((id, name_of(id).unwrap_or_default()));
                wanted.push(id);
            }
        }
    }
    found
}

fn name_of(id: u32) -> Option<String> {
    let path = Path::new("/proc").join(id.to_string());
    // A process that has ended and was not yet asked for its status does nothing any more.
    let status = std::fs::read_to_string(path.join("status")).ok()?;
    if status.lines().any(|line| line.starts_with("State:") && line.contains('Z')) {
        return None;
    }
    Some(std::fs::read_to_string(path.join("comm")).ok()?.trim().into())
}

#[test]
fn without_a_server_it_is_said_in_words() {
    if !can_run("ssh without a server", &SSH) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    // A view of the machine in which sshd is no program.
    let sshd = rubus_lab::devices::programs::find("sshd").expect("it is needed");
    let script = format!(
        "mount --bind /dev/null {} && exec {} bench cpu ssh",
        sshd.display(),
        binary().display()
    );
    let mut command = Command::new("unshare");
    home.adopt(&mut command);
    let output = command.args(["--mount", "sh", "-c", &script]).output();
    let answer = Answer::of(output.expect("unshare starts"));
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stderr.contains("openssh-server"), "{answer}");
}

/// Equals in turns: nearly every interval of a ratio holds 1, and no word is said of a difference.
#[test]
fn the_same_program_twice_is_as_fast_as_itself() {
    let _turn = take_turns();
    let home = Home::new();
    let program = binary().display().to_string();
    let answer = home.run(&[
        "bench",
        "cpu",
        "ciphers",
        "--seconds",
        "0.2",
        "--against-binary",
        &program,
        "--json",
        "-",
    ]);
    assert_eq!(answer.status, Some(0), "{answer}");
    let comparison = answer.json();
    assert_eq!(comparison["interleaved"], true, "{answer}");
    let built = comparison["subjects"][0]["name"].as_str().unwrap_or_default();
    assert!(built.contains(std::env::consts::ARCH), "{built}");
    let compared = comparison["rows"].as_array().expect("rows");
    assert!(compared.len() >= 14, "{answer}");
    let holds_1 = |row: &&Value| {
        let interval = &row["throughput"]["ratios"][1]["figure"]["interval"];
        let bound = |which: &str| interval[which].as_f64().unwrap_or(f64::INFINITY);
        bound("low") <= 1.0 && 1.0 <= bound("high")
    };
    let holding = compared.iter().filter(holds_1).count();
    // 95 of 100 are to hold it; of fourteen or more, a third that does not is no accident.
    assert!(3 * holding >= 2 * compared.len(), "{holding} of {}: {answer}", compared.len());
    assert!(!home.database().exists(), "nothing was to be kept");
}

/// A user whose login shell is `shell` asks for ssh to himself, in a view of the machine where he exists.
fn as_a_user_with(shell: &str, home: &Home) -> Answer {
    let script = format!(
        "set -e; mount -t tmpfs lab /mnt; cp /etc/passwd /mnt/passwd; mount -t tmpfs lab /run; \
         echo 'lab:x:64987:64987::/:{shell}' >> /mnt/passwd; mount --bind /mnt/passwd /etc/passwd; \
         exec setpriv --reuid 64987 --regid 64987 --clear-groups {} bench cpu ssh --seconds 0.05 --no-history",
        binary().display()
    );
    with_mounts_of_its_own(home, &script)
}

#[test]
fn a_user_who_may_not_log_in_hears_why_and_another_is_measured() {
    let needs = [&SSH[..], &[Need::Program("setpriv", "util-linux")]].concat();
    if !can_run("ssh without a login shell", &needs) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    for shell in ["/usr/sbin/nologin", "/bin/false"] {
        let answer = as_a_user_with(shell, &home);
        assert_eq!(answer.status, Some(2), "{answer}");
        let why = format!("the login shell of lab is {shell}, which refuses every login");
        assert!(answer.stderr.contains(&why), "{answer}");
        assert!(answer.stderr.contains("chsh -s /bin/sh lab"), "{answer}");
    }
    let answer = as_a_user_with("/bin/sh", &home);
    assert_eq!(answer.status, Some(0), "{answer}");
    assert!(answer.says("ssh from this machine to itself"), "{answer}");
}
