//! What `rubus watch` costs an emulated Raspberry Pi 3 beside `top` and `iostat`, in instructions: those of the program and those
//! of the kernel for it. Time means nothing on an emulated processor, but the board's clock counts instructions here.

use std::time::Duration;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{INSTRUCTION_NS, Options, Session};

const TEST: &str = "vm_pi3_watch";
/// Seconds that each program is watched, a multiple of the five between two walks over all processes.
const SECONDS: u32 = 40;
/// For all of them, on a busy machine.
const LIMIT: Duration = Duration::from_secs(900);
/// 1 % of a core.
const MAX_NS_PER_S: f64 = 1e7;
/// The clock of a Raspberry Pi 3.
const HZ: f64 = 1.2e9;

/// Each program on a terminal of 80 by 24, one after the other, as root, who is shown what all others read and write; among as many
/// processes as a desktop has. Prints for each its processor time in nanoseconds, the time that passed in seconds, and the bytes
/// that its terminal got.
const SCRIPT: &str = r#"
count=$(ls -d /proc/[0-9]* | wc -l)
while [ "$count" -lt 160 ]; do sleep 100000 & count=$((count + 1)); done >/dev/null 2>&1
used() { cat "/proc/$1"/task/*/schedstat | awk '{ ns += $1 } END { printf "%d", ns }'; }
now() { cut -d ' ' -f 1 /proc/uptime; }
watch_one() {
  export TERM=xterm-256color LC_ALL=C.UTF-8
  sleep 100000 | script -q -f -c "stty rows 24 cols 80; exec $1" /tmp/screen >/dev/null 2>&1 &
  sleep 10
  pid=$(pgrep -x "${1%% *}") || { echo "$1 does not run" >&2; cat /tmp/screen >&2; exit 1; }
  bytes=$(wc -c </tmp/screen)
  before="$(used "$pid") $(now)"
  sleep SECONDS
  after="$(used "$pid") $(now)"
  bytes=$(($(wc -c </tmp/screen) - bytes))
  echo "$before $after $bytes $1" | awk '{ printf "%d %.2f %d", $3 - $1, $4 - $2, $5; for (i = 6; i <= NF; i++) printf " %s", $i; print "" }'
  kill "$pid"
}
watch_one "rubus watch"
watch_one "top -d 1"
watch_one "iostat -x 1"
"#;

/// What a program took.
struct Took {
    name: String,
    /// Nanoseconds of the board's clock that it ran in each second.
    ns_per_s: f64,
    /// Bytes to its terminal in each second.
    bytes_per_s: f64,
}

impl Took {
    fn parse(line: &str) -> Took {
        let wrong = || panic!("no figures of a program: {line}");
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [ns, seconds, bytes, name] = words[..] else {
            wrong()
        };
        let number = |word: &str| word.parse::<f64>().unwrap_or_else(|_| wrong());
        let seconds = number(seconds);
        Took {
            name: name.into(),
            ns_per_s: number(ns) / seconds,
            bytes_per_s: number(bytes) / seconds,
        }
    }

    fn instructions_per_s(&self) -> f64 {
        self.ns_per_s / f64::from(INSTRUCTION_NS)
    }
}

#[test]
fn watching_takes_at_most_a_hundredth_of_a_core() {
    if !can_boot(TEST, Board::Pi3) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pi3) else {
        return;
    };
    let options = Options {
        push: vec![rubus],
        counts_instructions: true,
        ..Options::default()
    };
    let mut board = Session::boot(&Cache::of_this_machine(), Board::Pi3, &options).unwrap();
    let script = SCRIPT.replace("SECONDS", &SECONDS.to_string());
    let said = board.must(&script, "root", LIMIT).unwrap();
    board.switch_off().unwrap();

    let took: Vec<Took> = said.lines().map(Took::parse).collect();
    assert_eq!(took.len(), 3, "{said}");
    println!(
        "| | instructions per second | of a core | the instructions of rubus by its | bytes to the terminal per second |"
    );
    println!("|---|---:|---:|---:|---:|");
    for one in &took {
        println!(
            "| `{}` | {:.0} | {:.2} % | {:.2} | {:.0} |",
            one.name,
            one.instructions_per_s(),
            one.ns_per_s / 1e7,
            took[0].ns_per_s / one.ns_per_s,
            one.bytes_per_s
        );
        // One that shows nothing costs nothing.
        assert!(one.bytes_per_s > 50.0 && one.ns_per_s > 0.0, "{said}");
    }
    let per_cycle = 1e9 / f64::from(INSTRUCTION_NS) / HZ;
    println!(
        "\nOf a core: at {per_cycle:.2} instructions per cycle; `rubus watch` takes a hundredth of one at {:.3}.",
        took[0].instructions_per_s() / (0.01 * HZ)
    );
    assert!(took[0].ns_per_s <= MAX_NS_PER_S, "{said}");
}
