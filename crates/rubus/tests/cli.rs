//! The program as its user meets it: help, texts, exit statuses, machine-readable output. What
//! needs a real device is tested in the lab.

use std::path::{Path, PathBuf};

use assert_cmd::Command;

/// The program with a home of its own.
fn rubus(home: &Path) -> Command {
    let mut command = Command::cargo_bin("rubus").expect("the program is built");
    command
        .current_dir(workspace())
        .env("XDG_DATA_HOME", home)
        .env_remove("NO_COLOR")
        .env("COLUMNS", "80");
    command
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Names of the captures with their paths below the workspace, in which the program is started so
/// that no golden text depends on where the workspace is.
fn captures() -> Vec<(String, PathBuf)> {
    let directory = workspace().join("captures");
    let mut found: Vec<_> = std::fs::read_dir(directory)
        .expect("captures are there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .map(|name| (name.clone(), Path::new("captures").join(name)))
        .collect();
    found.sort();
    found
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8")
}

#[test]
fn help_fits_80_columns() {
    let home = home();
    for command in [
        "",
        "checkup",
        "survey",
        "boot",
        "bench",
        "compare",
        "history",
        "history show",
        "history label",
        "history delete",
        "history export",
        "history import",
        "attach",
        "detach",
        "advise",
        "tune",
        "watch",
        "writers",
        "completions",
        "manual",
    ] {
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        arguments.push("--help");
        let output = rubus(home.path()).args(&arguments).output().expect("it runs");
        assert!(output.status.success(), "{command}");
        for line in text(&output.stdout).lines() {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
    }
}

#[test]
fn attaching_refuses_what_the_kernel_cannot_do_before_it_is_asked() {
    let home = home();
    for (arguments, words) in [
        (["attach", "nbds://server/disk"], "no TLS"),
        (["attach", "http://server/disk"], "nbd://"),
        (["detach", "/dev/sda"], "/dev/nbd0"),
    ] {
        let output = rubus(home.path()).args(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn every_capture_is_shown_as_a_person_reads_it() {
    let home = home();
    for (name, path) in captures() {
        let output =
            rubus(home.path()).args(["survey", "--machine"]).arg(&path).output().expect("it runs");
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        insta::assert_snapshot!(format!("survey_of_{name}"), text(&output.stdout));
    }
}

#[test]
fn the_survey_of_a_capture_is_the_same_json_wherever_it_runs() {
    let home = home();
    for (name, path) in captures() {
        let survey = || {
            let output = rubus(home.path())
                .args(["survey", "--json", "--machine"])
                .arg(&path)
                .output()
                .expect("it runs");
            text(&output.stdout)
        };
        let machine: rubus_vocabulary::machine::Machine =
            serde_json::from_str(&survey()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(machine.schema, 1);
        assert_eq!(survey(), survey());
    }
}

#[test]
fn usage_errors_are_status_2_and_say_what_would_be_right() {
    let home = home();
    let cases: [(&[&str], &str); 12] = [
        (&["surveyy"], "survey"),
        (&["bench"], "TARGET"),
        (&["checkup", "/nonexistent"], "/nonexistent"),
        (&["/nonexistent"], "cannot measure on /nonexistent: there is no such file"),
        (&["enough", "etcd", "/nonexistent"], "Name a directory on the disk; `rubus survey` lists"),
        (&["bench", ".", "--suite", "qiuck"], "did you mean 'quick'"),
        (&["survey", "--machine", "/nonexistent.tar"], "/nonexistent.tar: there is no such file"),
        (&["history", "show", "12"], "no history yet"),
        (&["enough", "etdc"], "'etcd'"),
        (&["enough", "etcd", "Cargo.toml"], "not a directory"),
        (&["writers", "Cargo.toml"], "it is no recording"),
        (&["writers", "--time", "1s"], "from 5s to 24h"),
    ];
    for (arguments, expected) in cases {
        let output = rubus(home.path()).args(arguments).output().expect("it runs");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
        // The system's number for an error says nothing of what to do.
        assert!(!message.contains("os error"), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?} wrote to standard output");
    }
}

/// A captured machine that is ignored would be a wrong answer.
#[test]
fn every_command_reads_the_machine_that_is_named_or_refuses_it() {
    let home = home();
    for line in [
        "advise",
        "attach nbd://server/disk",
        "bench .",
        "bench cpu",
        "boot",
        "boot disk.img",
        "checkup",
        "cluster boards",
        "compare a b",
        "completions bash",
        "compression .",
        "copy a b",
        "detach /dev/nbd0",
        "enough etcd .",
        "explain hot",
        "gallery a",
        "history",
        "history show 1",
        "manual",
        "nbd list nbd://server",
        "plan zswap",
        "recipes",
        "serve disk.img",
        "share 1 a",
        "status",
        "suites",
        "survey",
        "verify",
        "watch --once",
        "writers",
        "zswap",
    ] {
        let output = rubus(home.path())
            .args(["--machine", "/nope"])
            .args(line.split(' '))
            .output()
            .expect("it runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("/nope") || said.contains("--machine"), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn a_guess_is_made_only_where_something_is_near() {
    let home = home();
    let said = |arguments: &[&str]| {
        let output = rubus(home.path()).args(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        text(&output.stderr)
    };
    for arguments in [&["bench", ".", "--suite", "zz"][..], &["plan", "foo"], &["explain", "zz"]] {
        let said = said(arguments);
        assert!(said.contains("there is no ") && !said.contains("did you mean"), "{said}");
    }
    assert!(said(&["explain", "slow-comits"]).contains("did you mean 'slow-commits'?"));
    let alike = said(&["explain", "swap"]);
    assert!(alike.contains("swap-on-card") && alike.lines().count() < 5, "{alike}");
}

#[test]
fn lanes_and_polling_are_refused_where_they_mean_nothing() {
    let home = home();
    let cases: [(&[&str], &str); 7] = [
        (&[".", "--lanes", "0"], "from 1 to the number of CPUs"),
        (&[".", "--lanes", "100000"], "cannot use --lanes 100000"),
        (&[".", "--lanes", "auto", "--suite", "commit"], "queue that could be shared"),
        (&["--fio-job", "Cargo.toml", "--lanes", "1"], "Set numjobs=N in it"),
        (&["--fio-job", "Cargo.toml", "--hipri"], "its jobs wait for interrupts"),
        (&[".", "--hipri", "--suite", "small-files"], "none of its jobs can poll"),
        (&["ram:64MiB", "--hipri"], "--hipri polls for completions"),
    ];
    for (arguments, expected) in cases {
        let output = rubus(home.path())
            .args(["bench", "--quiet"])
            .args(arguments)
            .output()
            .expect("it runs");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn a_captured_machine_is_surveyed_and_not_measured() {
    let home = home();
    let (_, path) = captures().swap_remove(0);
    let output = rubus(home.path()).arg("--machine").arg(&path).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("has none to measure"), "{}", text(&output.stderr));
}

#[test]
fn an_empty_history_is_not_an_error_and_makes_no_file() {
    let home = home();
    rubus(home.path()).arg("history").assert().success();
    let output = rubus(home.path()).args(["history", "--json"]).output().expect("it runs");
    assert_eq!(text(&output.stdout), "[]\n");
    assert!(!home.path().join("rubus/history.db").exists());
}

#[test]
fn completions_and_manual_come_from_the_same_definitions() {
    let home = home();
    for shell in ["bash", "zsh", "fish"] {
        let output = rubus(home.path()).args(["completions", shell]).output().expect("it runs");
        assert!(text(&output.stdout).contains("i-will-lose-everything-on"), "{shell}");
    }
    let pages = home.path().join("man");
    let refused =
        rubus(home.path()).args(["manual", "--dir"]).arg(&pages).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("no such directory"));
    std::fs::create_dir(&pages).expect("a new directory");
    rubus(home.path()).args(["manual", "--dir"]).arg(&pages).assert().success();
    let bench = std::fs::read_to_string(pages.join("rubus-bench.1")).expect("a page for bench");
    assert!(bench.contains("fio"));
    for page in std::fs::read_dir(&pages).expect("the pages") {
        let page = page.expect("a page").path();
        let roff = std::fs::read_to_string(&page).expect("it is text");
        for section in ["EXIT STATUS", "ENVIRONMENT", "FILES"] {
            assert!(roff.contains(section), "{}: {section}", page.display());
        }
        assert!(!roff.contains(".SH EXTRA"), "{}", page.display());
    }
}

#[test]
fn a_missing_command_suggests_the_checkup() {
    let home = home();
    let tip_of = |arguments: &[&str]| {
        let output = rubus(home.path()).args(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        let error = text(&output.stderr).to_string();
        error
            .lines()
            .find_map(|line| line.split_once("with these arguments: "))
            .map(|(_, line)| line.to_string())
    };
    assert_eq!(tip_of(&["--no-history"]).as_deref(), Some("rubus checkup --no-history"));
    assert_eq!(tip_of(&["hsitory"]), None);
    assert_eq!(tip_of(&["--no-such-thing"]), None);
}

#[test]
fn a_capture_of_this_machine_gives_the_survey_of_this_machine() {
    let home = home();
    let tar = home.path().join("here.tar");
    rubus(home.path()).args(["survey", "--save"]).arg(&tar).assert().success();
    let output = rubus(home.path())
        .args(["survey", "--json", "--machine"])
        .arg(&tar)
        .output()
        .expect("it runs");
    let captured: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let live = rubus(home.path()).args(["survey", "--json"]).output().expect("it runs");
    let live: serde_json::Value = serde_json::from_slice(&live.stdout).expect("JSON");
    for field in ["cpu", "vm"] {
        let names = |value: &serde_json::Value| value[field].as_array().map(Vec::len);
        assert_eq!(names(&captured), names(&live), "{field}");
    }
    assert_eq!(captured["system"]["kernel_release"], live["system"]["kernel_release"]);
    assert_eq!(captured["origin"]["kind"], "capture");
}

#[test]
fn swap_to_compare_with_is_never_made_in_memory() {
    let home = home();
    for (directory, why) in [("/dev", "/dev is a "), ("/nowhere", "cannot find the directory")] {
        let output = rubus(home.path())
            .args(["bench", "memory", "pressure", "--compare"])
            .args(["--directory", directory])
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{directory}");
        let said = text(&output.stderr);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn clones_are_looked_for_in_a_directory() {
    let home = home();
    let file = home.path().join("golden.img");
    std::fs::write(&file, "x").expect("a file");
    for (place, words) in
        [(home.path().join("none"), "there is no directory"), (file, "is no directory")]
    {
        let output = rubus(home.path())
            .args(["nbd", "clones", "list"])
            .arg(&place)
            .output()
            .expect("it runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words) && !said.contains("os error"), "{said}");
        assert!(said.contains("--clone-per-client DIRECTORY"), "{said}");
    }
}

#[test]
fn memory_that_cannot_be_spared_is_not_used() {
    let home = home();
    let refuse = |arguments: &[&str]| {
        let output = rubus(home.path()).arg("bench").args(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        text(&output.stderr)
    };
    assert!(refuse(&["ram:1000TiB"]).contains("half of that may be used"));
    assert!(refuse(&["ram:4k"]).contains("ram:1MiB"));
    assert!(refuse(&["ram:"]).contains("such as ram:256MiB"));
    assert!(refuse(&["ram:4MiB", "--size", "2MiB"]).contains("--size does not go with ram:4MiB"));
    assert!(refuse(&[".", "--suite", "ram"]).contains("the suite 'ram' is for memory"));
}

/// An attacker may name a directory so that it writes control sequences into a user's terminal.
#[test]
fn a_name_can_neither_move_the_cursor_nor_break_a_line() {
    let home = home();
    let name = "/nowhere/a\nrubus: all is well\u{1b}[2Jb";
    let usage = format!("--purpose={name}");
    for arguments in [
        vec!["bench", name],
        vec!["compare", name, name],
        vec!["advise", "--from", name],
        vec!["bench", &usage],
    ] {
        let output = rubus(home.path()).args(&arguments).output().expect("runs");
        let said = text(&output.stderr);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!said.contains('\u{1b}'), "{arguments:?}: {said:?}");
        assert!(!said.contains("\nrubus: all is well"), "{arguments:?}: {said:?}");
    }
}

/// `ulimit -f` killed the program by SIGXFSZ, without a word.
#[test]
fn a_limit_of_the_size_of_files_is_told() {
    let home = home();
    let job = home.path().join("work.fio");
    let wanted = "[one]\nrw=write\nsize=8m\nbs=64k\nfilename=file\n";
    std::fs::write(&job, wanted).expect("a job file");
    let script = "ulimit -f 64; exec \"$0\" bench \"$1\" --fio-job \"$2\" --no-history --no-html";
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_rubus")])
        .args([home.path(), &job])
        .env("XDG_DATA_HOME", home.path())
        .output()
        .expect("a shell");
    let said = text(&output.stderr) + &text(&output.stdout);
    assert_ne!(output.status.code(), Some(0), "{said}");
    assert!(output.status.code().is_some(), "killed: {said}");
    assert!(said.contains("ulimit -f"), "{said}");
}

/// PowerShell's `>` writes UTF-16, and old editors a byte per letter.
#[test]
fn a_job_file_is_read_in_the_letters_of_any_editor() {
    let home = home();
    let job = "; Größe\r\n[one]\r\nrw=write\r\nsize=64k\r\nbs=64k\r\n";
    let in_utf_16: Vec<u8> =
        format!("\u{feff}{job}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let in_latin_1: Vec<u8> =
        job.chars().map(|letter| u8::try_from(u32::from(letter)).expect("of Latin 1")).collect();
    for bytes in [in_utf_16, in_latin_1] {
        let file = home.path().join("work.fio");
        std::fs::write(&file, bytes).expect("a job file");
        let output = rubus(home.path())
            .args(["bench", "--no-history", "--no-html", "--fio-job"])
            .arg(&file)
            .current_dir(home.path())
            .output()
            .expect("it runs");
        let said = text(&output.stderr) + &text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
}

#[test]
fn json_before_the_command_is_json_behind_it() {
    let home = home();
    let printed = |words: &[&str]| {
        let answer = rubus(home.path()).args(words).output().expect("it runs");
        text(&answer.stdout)
    };
    for words in ["survey --machine=captures/pi4b-usb3-ssd", "suites", "recipes", "history"] {
        let words: Vec<&str> = words.split(' ').collect();
        let verb = words[0];
        let before = printed(&[&["--json"], &words[..]].concat());
        assert_eq!(before, printed(&[&words[..], &["--json"]].concat()), "{verb}");
        serde_json::from_str::<serde_json::Value>(&before).expect(verb);
    }
}

#[test]
fn the_sensors_for_home_assistant_name_what_a_survey_has() {
    let sensors = std::fs::read_to_string(workspace().join("contrib/home-assistant.yaml"))
        .expect("the sensors");
    let home = home();
    let answer = rubus(home.path())
        .args(["--machine", "captures/pi4b-usb3-ssd", "survey", "--json"])
        .output()
        .expect("it runs");
    let survey: serde_json::Value = serde_json::from_slice(&answer.stdout).expect("JSON");
    let is_in_a_path = |c: char| c.is_ascii_lowercase() || c == '_' || c == '.';
    let paths: Vec<&str> = sensors
        .split("value_json.")
        .skip(1)
        .filter_map(|rest| rest.split(|c| !is_in_a_path(c)).next())
        .collect();
    assert!(paths.len() >= 3, "{paths:?}");
    for path in paths {
        let pointer = format!("/{}", path.replace('.', "/"));
        assert!(survey.pointer(&pointer).is_some(), "no {path}");
    }
    let seen = survey.pointer("/power/throttling/value/undervoltage_seen");
    assert!(seen.is_some_and(serde_json::Value::is_boolean));
    let is_known = |finding: &serde_json::Value| {
        let weight = finding["weight"].as_str();
        weight.is_some_and(|weight| ["danger", "cost", "hint"].contains(&weight))
    };
    assert!(survey["findings"].as_array().is_some_and(|all| all.iter().all(is_known)));
}

#[test]
fn what_has_no_meaning_for_objects_is_said_before_anything_is_asked() {
    let home = home();
    for (words, wanted) in [
        (&["--read-only"][..], "--read-only has no meaning for the objects of a pool (rados:rbd)"),
        (&["--size", "1GiB"], "--size has no meaning"),
        (&["--content", "zeros"], "--content has no meaning"),
        (&["--suite", "full"], "the suite 'full' is for disks; objects have the suite 'objects'"),
        (&["/tmp"], "are measured alone: give rados:rbd in a command of its own"),
    ] {
        let output = rubus(home.path())
            .args(["bench", "rados:rbd"])
            .args(words)
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(wanted), "{words:?}: {said}");
    }
}
