//! Advice on captured boards, as their owner would read it.

use std::process::{Command, Output};

const CAPTURES: [&str; 6] = [
    "emulated-pi3",
    "pi2b-sd-usb-stick",
    "pi3bplus-usb-ssd",
    "pi4b-usb3-ssd",
    "pi5-nvme",
    "vm-virtio",
];
const PURPOSES: [&str; 5] = ["desktop", "server", "logger", "storage-node", "swap"];

fn rubus(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().expect("a directory");
    Command::new(env!("CARGO_BIN_EXE_rubus"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args(arguments)
        .env("XDG_DATA_HOME", home.path())
        .output()
        .expect("it runs")
}

fn text(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout.clone()).expect("a text")
}

fn advice(capture: &str, arguments: &[&str]) -> String {
    let capture = format!("captures/{capture}");
    let all = [&["advise", "--machine", &capture], arguments].concat();
    text(&rubus(&all))
}

#[test]
fn of_all_boards_for_a_desktop() {
    for capture in CAPTURES {
        insta::assert_snapshot!(format!("{capture}_desktop"), advice(capture, &[]));
    }
}

#[test]
fn of_a_pi_4_for_all_else() {
    for purpose in &PURPOSES[1..] {
        let words = advice("pi4b-usb3-ssd", &["--for", purpose]);
        insta::assert_snapshot!(format!("pi4_{purpose}"), words);
    }
}

#[test]
fn the_order_with_its_times_of_every_board_and_purpose() {
    let mut lines = String::new();
    for capture in CAPTURES {
        for purpose in PURPOSES {
            let json = advice(capture, &["--for", purpose, "--json"]);
            let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            let candidates = json["candidates"].as_array().expect("a list");
            let one = |c: &serde_json::Value| {
                let name = c["name"].as_str().unwrap_or_default();
                let now = if c["is_now"] == true { "*" } else { "" };
                format!("{name}{now} {:.2}", c["time_s"]["value"].as_f64().unwrap_or(-1.0))
            };
            let order: Vec<String> = candidates.iter().map(one).collect();
            lines.push_str(&format!("{capture} {purpose}: {}\n", order.join(", ")));
        }
    }
    insta::assert_snapshot!(lines);
}

#[test]
fn every_text_fits_80_columns_and_is_ascii() {
    for capture in CAPTURES {
        for purpose in PURPOSES {
            let words = advice(capture, &["--for", purpose, "--pipes"]);
            for line in words.lines() {
                assert!(line.len() <= 80 && line.is_ascii(), "{capture} {purpose}: {line}");
            }
            let short = advice(capture, &["--for", purpose]);
            assert!(short.lines().count() <= 24, "{short}");
        }
    }
}

#[test]
fn what_is_asked_with_a_queue_is_shown_with_its_rate() {
    let capture = ["--for", "server", "--with", "nbd"];
    let words = advice("pi4b-usb3-ssd", &[&capture[..], &["--pipes"]].concat());
    let words = words.replace("\n", " ");
    assert!(words.contains("/s with 8 in flight)"), "{words}");
    let json = advice("pi4b-usb3-ssd", &[&capture[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let demand = &json["candidates"][0]["demands"][1];
    assert_eq!((&demand["what"], &demand["in_flight"]), (&"random-read".into(), &8.into()));
    let (seconds, rate) = (&demand["seconds"]["value"], &demand["per_second"]["value"]);
    let count = seconds.as_f64().expect("a number") * rate.as_f64().expect("a number");
    assert!((count - 2000.0).abs() < 1e-6, "{demand}");
}

/// `survey` has a rule for a disk and a network on one bus; what a file server gives by it is what advice counts.
#[test]
fn advice_for_a_storage_node_agrees_with_what_the_survey_says_of_its_bus() {
    let captures = [
        ("pi2b-sd-usb-stick", "while eth0 is full (11.8 MB/s), 11.5 MB/s are left", 11.8e6),
        ("pi3bplus-usb-ssd", "17.5 MB/s at most", 17.5e6),
    ];
    for (capture, words, most) in captures {
        let machine = format!("captures/{capture}");
        let survey = text(&rubus(&["survey", "--machine", &machine]));
        let survey: Vec<&str> = survey.split_whitespace().collect();
        assert!(survey.join(" ").contains(words), "{capture}");
        let json = advice(capture, &["--for", "storage-node", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let candidates = json["candidates"].as_array().expect("a list");
        let in_order = |name: &str| {
            let mut all = candidates.iter();
            let one = all.find(|one| one["name"] == name).expect("it is there");
            let demand = &one["demands"][0];
            assert_eq!(demand["what"], "sequential-read");
            demand["per_second"]["value"].as_f64().expect("a rate")
        };
        let (disk, card) = (in_order("sda"), in_order("mmcblk0"));
        assert!(disk <= most && disk > 0.8 * most, "{capture}: {disk}");
        assert!(card >= disk, "{capture}: {card} {disk}");
        assert!(card <= 35e6, "{capture}: {card}");
    }
}

/// The plan of each command that is given is drawn up, and what stands in its way is said with it.
#[test]
fn every_command_was_put_through_plan() {
    let (mut fine, mut refused) = (0, 0);
    for capture in CAPTURES {
        let machine = format!("captures/{capture}");
        for purpose in PURPOSES {
            let json = advice(capture, &["--for", purpose, "--json"]);
            let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            let subjects = json["subjects"].as_array().expect("a list").iter();
            for said in subjects.chain([&json]) {
                let Some(words) = said["command"].as_array() else {
                    continue;
                };
                let words = words.iter().map(|word| word.as_str().expect("a word"));
                let words: Vec<&str> = words.skip(1).chain(["--json"]).collect();
                let output = rubus(&[&["--machine", &machine], &words[..]].concat());
                let plan: serde_json::Value =
                    serde_json::from_slice(&output.stdout).expect("a plan is drawn up");
                let checks = plan["checks"].as_array().expect("checks").iter();
                // What a capture does not hold stands in no way.
                let fails = |check: &&serde_json::Value| {
                    check["is_met"] == false && check["is_unknown"] != true
                };
                let failed = checks.filter(fails).count();
                let obstacles = said["obstacles"].as_array().map_or(0, Vec::len);
                assert_eq!(obstacles, failed, "{capture} {purpose}: {words:?}");
                let next = &said["next"]["command"];
                let is_refused = failed > 0 && next == &said["command"];
                assert!(!is_refused, "{capture} {purpose}: {next} is refused");
                match failed {
                    0 => fine += 1,
                    _ => refused += 1,
                }
            }
        }
    }
    assert!(fine > 0 && refused > 0, "{fine} {refused}");
    let words = advice("pi4b-usb3-ssd", &[]);
    let words: Vec<&str> = words.split_whitespace().collect();
    assert!(words.join(" ").contains("copy that elsewhere first, then `sudo umount /srv/data`"));
}

/// What a plan is refused for comes before the plan, and is not repeated below it.
#[test]
fn a_remedy_comes_before_the_plan_that_needs_it() {
    let words = advice("pi2b-sd-usb-stick", &["swap"]);
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let step = "To do: sudo apt install systemd-zram-generator (on that machine: so that a program makes the zram swap at each boot; \
                then: rubus plan swap to=zram size=922M swappiness=190)";
    assert!(words.contains(step), "{words}");
    assert!(!words.contains("But:"), "{words}");
}

/// The page and the terminal say the same first; the page says it without what identifies the machine.
#[test]
fn the_page_of_a_refused_plan_begins_with_the_remedy_too() {
    let place = tempfile::tempdir().expect("a directory");
    let page = place.path().join("advice.html");
    advice("pi2b-sd-usb-stick", &["swap", "--html", page.to_str().expect("a text")]);
    let page = std::fs::read_to_string(page).expect("it was written");
    let head = page.split("id=\"pipes\"").next().unwrap_or_default();
    assert!(head.contains("<code>sudo apt install systemd-zram-generator</code>"), "{head}");
    assert!(head.contains("; then: rubus plan swap to=zram"), "{head}");
    assert!(!head.contains("Rubus refuses that plan"), "{head}");
    let page = place.path().join("kept.html");
    advice("pi2b-sd-usb-stick", &["desktop", "--html", page.to_str().expect("a text")]);
    let page = std::fs::read_to_string(page).expect("it was written");
    let head = page.split("id=\"pipes\"").next().unwrap_or_default();
    assert!(!head.contains("Before you do it"), "{head}");
}

/// The plans that a survey and `zswap` tell to type are accepted on that machine.
#[test]
fn plans_of_a_survey_and_of_zswap_are_accepted() {
    let mut seen = 0;
    for capture in CAPTURES {
        let machine = format!("captures/{capture}");
        let json = |words: &[&str]| -> serde_json::Value {
            let all = [&["--machine", machine.as_str()][..], words, &["--json"]].concat();
            serde_json::from_slice(&rubus(&all).stdout).expect("JSON")
        };
        let survey = json(&["survey"]);
        let findings = survey["findings"].as_array().expect("a list").iter();
        let mut commands: Vec<String> =
            findings.filter_map(|one| one["command"].as_str().map(str::to_string)).collect();
        if let Some(words) = json(&["zswap"])["report"]["next"]["command"].as_array() {
            let words = words.iter().filter_map(|word| word.as_str());
            let words: Vec<&str> = words.take_while(|word| *word != "--machine").collect();
            commands.push(words.join(" "));
        }
        for command in commands.iter().filter_map(|command| command.strip_prefix("rubus plan ")) {
            let words: Vec<&str> = ["plan"].into_iter().chain(command.split(' ')).collect();
            let plan = json(&words);
            let checks = plan["checks"].as_array().expect("checks").iter();
            let fails = |check: &&serde_json::Value| {
                check["is_met"] == false && check["is_unknown"] != true
            };
            let failed: Vec<&serde_json::Value> = checks.filter(fails).collect();
            assert!(failed.is_empty(), "{capture}: {command}: {failed:?}");
            seen += 1;
        }
    }
    assert!(seen > 2, "{seen}");
}

/// A next step that leads to advice without a word about the finding is none.
#[test]
fn what_a_survey_tells_to_type_parses_and_its_advice_names_the_finding() {
    let mut seen = 0;
    for capture in CAPTURES {
        let machine = format!("captures/{capture}");
        let survey = rubus(&["--machine", &machine, "survey", "--json"]);
        let survey: serde_json::Value = serde_json::from_slice(&survey.stdout).expect("JSON");
        for finding in survey["findings"].as_array().expect("a list") {
            let Some(words) = finding["command"].as_str() else { continue };
            let words: Vec<&str> = words.split(' ').filter(|word| *word != "sudo").collect();
            let ["rubus", words @ ..] = &words[..] else { continue };
            let help = rubus(&[words, &["--help"]].concat());
            assert!(help.status.success(), "{capture}: {words:?}");
            let ["advise", ..] = words else { continue };
            let advice =
                rubus(&[&["--machine", machine.as_str()][..], words, &["--json"]].concat());
            let advice = String::from_utf8(advice.stdout).expect("UTF-8");
            let about = finding["about"].as_str().expect("what it is about");
            let name = about.rsplit(['/', '.']).next().unwrap_or_default();
            assert!(advice.contains(name), "{capture}: {words:?} says nothing of {name}");
            seen += 1;
        }
    }
    assert!(seen > 2, "{seen}");
}

/// Where swap belongs is one decision: a survey and `zswap` plan and keep nothing that the advice would move.
#[test]
fn a_survey_and_zswap_agree_with_the_advice_on_swap() {
    for capture in CAPTURES {
        let machine = format!("captures/{capture}");
        let json = |arguments: &[&str]| -> serde_json::Value {
            let words = [&["--machine", machine.as_str()][..], arguments, &["--json"]].concat();
            serde_json::from_slice(&rubus(&words).stdout).expect("JSON")
        };
        let advice = json(&["advise", "swap"]);
        let advised = advice["command"].to_string();
        let survey = json(&["survey"]);
        let findings = survey["findings"].as_array().expect("a list").iter();
        for command in findings.filter_map(|finding| finding["command"].as_str()) {
            if let Some(place) = command.strip_prefix("rubus plan swap ") {
                let place = place.split(' ').next().unwrap_or_default();
                assert!(advised.contains(place), "{capture}: {command}, but {advised}");
            }
        }
        let next = &json(&["zswap"])["report"]["next"];
        let words = next["words"].as_str().expect("words");
        if next["command"].is_null() && words.contains("swap is in zram") {
            let best = advice["candidates"][0]["name"].as_str().expect("a name");
            assert!(best.starts_with("zram"), "{capture}: {words}, but {best}");
        }
    }
}

/// A command within a sentence has options that its recipe has.
#[test]
fn commands_in_sentences_are_ones_that_plan_understands() {
    let mut commands = std::collections::BTreeSet::new();
    for capture in CAPTURES {
        for purpose in PURPOSES {
            let json = advice(capture, &["--for", purpose, "--json"]);
            let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            let to_do = json["to_do"].as_str().unwrap_or_default();
            for rest in to_do.split("rubus plan ").skip(1) {
                let command = rest.split(['`', ',', '(', ';']).next().unwrap_or_default();
                let command = command.trim().trim_end_matches('.');
                let command = command.replace("NAME", "sda").replace("SERVER", "nas");
                commands.insert((capture, command));
            }
        }
    }
    assert!(commands.len() > 2, "{commands:?}");
    for (capture, command) in commands {
        let machine = format!("captures/{capture}");
        let words: Vec<&str> = command.split(' ').collect();
        let output = rubus(&[&["--machine", &machine, "plan"], &words[..]].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{command}: {error}");
    }
}

/// What does the work in less than its share of the time stays, and what is faster is listed behind it.
#[test]
fn what_is_there_and_enough_is_the_advice() {
    for (capture, purpose) in
        [("pi3bplus-usb-ssd", "logger"), ("pi4b-usb3-ssd", "logger"), ("pi5-nvme", "logger")]
    {
        let json = advice(capture, &["--for", purpose, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let best = &json["candidates"][0];
        assert_eq!(best["is_now"], true, "{capture}: {best}");
        let said = json["because"][0].as_str().expect("a text");
        assert!(said.contains("it is enough for a logger"), "{capture}: {said}");
        assert_eq!(json["command"], serde_json::Value::Null);
    }
    // A port that is full is no reason for PCIe beyond what the board is certified for.
    let words = advice("pi5-nvme", &["--for", "storage-node", "--verbose"]);
    assert!(words.contains("To do: Nothing: the system is there already\n"), "{words}");
    assert!(words.contains("narrowest pipe is the link eth0"), "{words}");
}

#[test]
fn a_link_that_tells_no_rate_is_weighed_and_said_to_tell_none() {
    let words = advice("vm-virtio", &["--with", "nbd://nas/root", "--pipes"]);
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("eth0 does not tell its rate: everything is assumed"));
    assert!(words.contains("if link, round trip and server are as assumed"));
}

#[test]
fn with_what_is_wished() {
    let wishes = ["--with", "nbd://nas/root", "--with", "raid0:sda,sdb", "--pipes"];
    insta::assert_snapshot!(advice("pi4b-usb3-ssd", &wishes));
}

#[test]
fn a_page_that_loads_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let page = place.path().join("advice with a space.html");
    let path = page.to_str().expect("a text");
    advice("pi5-nvme", &["--html", path]);
    let page = std::fs::read_to_string(page).expect("it was written");
    for part in ["default-src 'none'", "nvme0n1@gen3", "Compression by link", "id=\"data\""] {
        assert!(page.contains(part), "{part}");
    }
    for bad in ["http://", "https://", "<script src"] {
        assert!(!page.contains(bad), "{bad}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_words() {
    for (arguments, words) in [
        (&["advise", "--with", "floppy"][..], "usb3-ssd"),
        (&["advise", "--with", "nbds://nas/root"], "TLS"),
        (&["advise", "--with", "nbd://"], "such as nbd://"),
        (&["advise", "--with", "nbd:///root"], "no host"),
        (&["advise", "--with", "nbd://nas:port/root"], "invalid port"),
        (&["advise", "--with", "nbd+unix:///root"], "socket"),
        (&["advise", "--from", "last"], "history"),
        (&["advise", "--machine", "captures/pi5-nvme", "--with", "raid0:sda,sdb"], "no disk sda"),
        (&["advise", "--machine", "captures/pi5-nvme", "--measure"], "captured"),
        (
            &["advise", "--machine", "captures/pi5-nvme", "--from", "captures/pi5-nvme"],
            "one of them",
        ),
        (&["advise", "--for", "gaming"], "storage-node"),
    ] {
        let output = rubus(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}
