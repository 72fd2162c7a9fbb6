//! What `rubus watch` costs an emulated Raspberry Pi 3 beside `top` and `iostat`, and what a recording of a day costs, in
//! instructions: those of the program and those of the kernel for it. Time means nothing on an emulated processor, but the board's clock counts instructions here.

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
/// Half a percent of a core.
const MAX_RECORDER_NS_PER_S: f64 = 5e6;
/// The clock of a Raspberry Pi 3.
const HZ: f64 = 1.2e9;

/// As many processes as a desktop has, and the clocks.
const BUSY: &str = r#"
count=$(ls -d /proc/[0-9]* | wc -l)
while [ "$count" -lt 160 ]; do sleep 100000 & count=$((count + 1)); done >/dev/null 2>&1
used() { cat "/proc/$1"/task/*/schedstat | awk '{ ns += $1 } END { printf "%d", ns }'; }
now() { cut -d ' ' -f 1 /proc/uptime; }
"#;

/// Each program on a terminal of 80 by 24, one after the other, as root, who is shown what all others read and write. Prints for
/// each its processor time in nanoseconds, the time that passed in seconds, and the bytes that its terminal got.
const SCRIPT: &str = r#"
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

/// A recording as `docs/how-to/writers.md` begins it, among programs that write and end. Prints as above, with the bytes of the recording.
const RECORD: &str = r#"
(while :; do date >>/root/work; sync /root/work; sleep 5; done) >/dev/null 2>&1 &
rubus watch --interval 30 --record /root/day.rec >/dev/null &
pid=$!
sleep 40
bytes=$(wc -c </root/day.rec)
before="$(used $pid) $(now)"
sleep 120
after="$(used $pid) $(now)"
bytes=$(($(wc -c </root/day.rec) - bytes))
echo "$before $after $bytes" | awk '{ printf "%d %.2f %d rubus watch --record\n", $3 - $1, $4 - $2, $5 }'
kill %1; kill -INT $pid
wait $pid
rubus writers /root/day.rec >&2
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
        let [ns, seconds, bytes, name] = words[..] else { wrong() };
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
    let Some(took) = took_by(&SCRIPT.replace("SECONDS", &SECONDS.to_string())) else {
        return;
    };
    assert_eq!(took.len(), 3);
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
        assert!(one.bytes_per_s > 50.0 && one.ns_per_s > 0.0, "{}", one.name);
    }
    let per_cycle = 1e9 / f64::from(INSTRUCTION_NS) / HZ;
    println!(
        "\nOf a core: at {per_cycle:.2} instructions per cycle; `rubus watch` takes a hundredth of one at {:.3}.",
        took[0].instructions_per_s() / (0.01 * HZ)
    );
    assert!(took[0].ns_per_s <= MAX_NS_PER_S);
}

#[test]
fn recording_a_day_takes_at_most_half_a_percent_of_a_core() {
    let Some(took) = took_by(RECORD) else {
        return;
    };
    let recorder = &took[0];
    println!(
        "`{}`: {:.0} instructions per second, {:.2} % of a core, {:.1} MB a day",
        recorder.name,
        recorder.instructions_per_s(),
        recorder.ns_per_s / 1e7,
        recorder.bytes_per_s * 86_400.0 / 1e6,
    );
    assert!(recorder.bytes_per_s > 10.0 && recorder.ns_per_s > 0.0);
    assert!(recorder.ns_per_s <= MAX_RECORDER_NS_PER_S);
}

/// What the programs of a script took on a board with many processes; nothing where no board can start.
fn took_by(script: &str) -> Option<Vec<Took>> {
    if !can_boot(TEST, Board::Pi3) {
        return None;
    }
    let options = Options {
        push: vec![rubus_or_skip(TEST, Board::Pi3)?],
        counts_instructions: true,
        ..Options::default()
    };
    let mut board = Session::boot(&Cache::of_this_machine(), Board::Pi3, &options).unwrap();
    let said = board.must(&format!("{BUSY}{script}"), "root", LIMIT).unwrap();
    board.switch_off().unwrap();
    Some(said.lines().map(Took::parse).collect())
}
