//! Swap pressure on a whole machine whose kernel has no memory groups, as Raspberry Pi OS is delivered: it is refused
//! until it is asked for, ends before memory is used up, and finds the cliff where arithmetic has it.

use std::time::Duration;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};
use serde_json::Value;

const TEST: &str = "vm_pc_memory";
const SOON: Duration = Duration::from_secs(120);
const LONG: Duration = Duration::from_secs(900);

#[test]
fn a_machine_without_memory_groups_is_measured_as_a_whole_when_asked() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let options = Options {
        push: vec![rubus],
        kernel_words: "cgroup_disable=memory mem=448M psi=1".into(),
        ..Options::default()
    };
    let mut board = Session::boot(&Cache::of_this_machine(), Board::Pc, &options).unwrap();
    board.must("swapoff -a", "root", SOON).unwrap();

    let command = "rubus bench memory pressure";
    let refused = board.run(command, "root", SOON).unwrap();
    let said = refused.complaint_text();
    assert_eq!(refused.status, 2, "{said}");
    for words in ["cgroup_enable=memory", "--whole-machine"] {
        assert!(said.contains(words), "{said}");
    }
    let others = board.run(&format!("{command} --whole-machine"), "pi", SOON);
    let others = others.unwrap();
    assert_eq!(others.status, 2, "{}", others.complaint_text());
    assert!(others.complaint_text().contains("only root"));

    // Without swap it carries itself, and the OOM killer has nothing to do.
    let without = measured(&mut board, "--max-working-set 1.2");
    let (within, because) = carried(&without);
    assert!((0.8..1.2).contains(&within), "{without}");
    assert_eq!(because, "out_of_memory", "{without}");
    assert_eq!(ended_for_want(&mut board), 0, "{without}");

    // What does not fit is compressed to a third, and so the same machine carries more. The swap is as large as three times
    // what has to go there, because the kernel puts pages of others there, too, and the end of it is another end.
    let make =
        "modprobe zram && zramctl --find --size 384M && mkswap -q /dev/zram0 && swapon /dev/zram0";
    board.must(make, "root", SOON).unwrap();
    let with = measured(&mut board, "--max-working-set 1.4");
    let (carries, _) = carried(&with);
    assert!(carries > within + 0.3, "{within}, with zram {carries}: {with}");
    let ratio = with["memory"]["pressure"][0]["measured_ratio"].as_f64();
    let ratio = ratio.expect("the pool was used");
    assert!((2.3..3.05).contains(&ratio), "{ratio}: {with}");
    assert_eq!(ended_for_want(&mut board), 0, "{with}");
    let text = with["memory"]["pressure"][0]["group"].to_string();
    assert!(text.contains(r#""version":null"#), "{text}");
    board.switch_off().unwrap();
}

/// What it measured of the whole machine.
fn measured(board: &mut Session, most: &str) -> Value {
    let script = format!(
        "rubus bench memory pressure --whole-machine --seconds 0.5 --limit 50ms {most} --no-history --json /tmp/run.json \
         && cat /tmp/run.json"
    );
    let outcome = board.run(&script, "root", LONG).unwrap();
    let (said, complaint) = (outcome.text(), outcome.complaint_text());
    assert_eq!(outcome.status, 0, "{said}\n{complaint}");
    assert!(complaint.contains("of the whole machine"), "{complaint}");
    let (shown, json) = said.split_once("\n{").expect("a text and a result");
    assert!(shown.contains("Measured on the whole machine"), "{shown}");
    eprintln!("{shown}");
    serde_json::from_str(&format!("{{{json}")).expect("JSON")
}

/// How often its own size memory carries with every page touched as often as any other, and what came then.
fn carried(run: &Value) -> (f64, &str) {
    let carries = &run["memory"]["pressure"][0]["carries"][0];
    assert_eq!(carries["access"], "uniform", "{run}");
    let because = carries["because"]["kind"].as_str().unwrap_or_default();
    (carries["within"].as_f64().expect("a number"), because)
}

fn ended_for_want(board: &mut Session) -> u64 {
    let script = "sed -n 's/^oom_kill //p' /proc/vmstat";
    let said = board.must(script, "root", SOON).unwrap();
    said.trim().parse().expect("a number")
}
