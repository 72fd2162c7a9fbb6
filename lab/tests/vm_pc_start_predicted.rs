//! `rubus boot` says of a card, before a board has it, whether it starts; then the board does, or does not.
//!
//! The card is that of the quick board, made to look like one of a Raspberry Pi 3: names, settings, the firmware's programs
//! (of which only the names count). Its initial RAM filesystem is one of Debian's. On each copy one thing is changed
//! ([`changes`]). The harness plays the firmware; kernel, initial RAM filesystem and the mounts of fstab are real.

mod card;
mod changes;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::firmware::Switches;
use rubus_lab::kit::Kit;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};
use rubus_lab::tools;
use rubus_stats::Rng;
use serde_json::{Value, json};

use self::card::Card;
use self::changes::CHANGES;
use crate::common::report;

const TEST: &str = "vm_pc_start_predicted";
const SEED: u64 = 0xb007;
/// For what takes seconds on a free machine.
const SOON: Duration = Duration::from_secs(240);
/// A board that has not come up by then waits at a prompt.
const PATIENCE: Duration = Duration::from_secs(400);
/// What the kernel says before it waits for a root that it has no driver for.
const WAITS_FOR_ROOT: &str = "Waiting for root device";
const DEVICE_TREE: &str =
    "/dts-v1/;\n/ { compatible = \"raspberrypi,3-model-b\", \"brcm,bcm2837\"; };\n";

#[test]
fn six_changed_cards_do_what_is_said_of_them() {
    try_cards(&[0, 14, 37, 49, 66, 69]);
}

#[test]
fn a_hundred_changed_cards_do_what_is_said_of_them() {
    try_cards(&(0..100).collect::<Vec<_>>());
}

/// What became of a card.
struct Tried {
    number: usize,
    /// The words of `rubus boot`.
    said: String,
    is_said_to_start: Option<bool>,
    is_sure: bool,
    /// Why the board did not start.
    stopped: Option<String>,
}

impl Tried {
    fn is_right(&self) -> bool {
        self.is_said_to_start == Some(self.stopped.is_none())
    }

    fn told(&self) -> String {
        let name = CHANGES[self.number % CHANGES.len()].name;
        let happened = self.stopped.as_deref().unwrap_or("started");
        let mark = if self.is_right() { "right" } else { "WRONG" };
        format!("{mark} {} {name}: {}; the board: {happened}", self.number, self.said)
    }
}

/// Tries the cards of these numbers, two at a time; `RUBUS_CARD=NUMBER,…` tries others. A seed in `RUBUS_SEED` draws other values.
fn try_cards(numbers: &[usize]) {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let variable = |name: &str| std::env::var(name).ok();
    let number = |text: &str| text.parse().expect("a number");
    let numbers = match variable("RUBUS_CARD") {
        Some(wanted) => wanted.split(',').map(number).collect(),
        None => numbers.to_vec(),
    };
    let seed = variable("RUBUS_SEED").map_or(SEED, |text| text.parse().expect("a number"));
    let cache = Cache::of_this_machine();
    let base = base(&cache);
    let left = Mutex::new(numbers.into_iter());
    let tried = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(number) = { left.lock().expect("no panic").next() } {
                    let one = try_card(&cache, &base, &rubus, (seed, number));
                    report(&one.told());
                    tried.lock().expect("no panic").push(one);
                }
            });
        }
    });
    let tried = tried.into_inner().expect("no panic");
    let right = tried.iter().filter(|one| one.is_right()).count();
    let too_sure =
        |one: &&Tried| one.is_sure && one.is_said_to_start == Some(true) && one.stopped.is_some();
    let started = tried.iter().filter(|one| one.stopped.is_none()).count();
    let total = tried.len();
    report(&format!("{right} of {total} right; {started} started"));
    let wrong = tried.iter().filter(|one| !one.is_right()).fold(String::new(), |mut all, one| {
        writeln!(all, "{}", one.told()).expect("a text grows");
        all
    });
    assert_eq!(tried.iter().filter(too_sure).count(), 0, "{wrong}");
    assert!(right * 100 >= 95 * total, "{right} of {total}:\n{wrong}");
}

/// The card that all others are copies of.
fn base(cache: &Cache) -> Kit {
    let kit = Kit::temporary(cache, Board::Pc, &[]).unwrap();
    let mut board = Session::boot_kit(cache, &kit, &Options::default()).unwrap();
    let mut must = |script: &str| board.must(script, "root", SOON).unwrap();
    must("update-initramfs -c -k \"$(uname -r)\"");
    // The first program stands in for systemd, and has its place.
    must("cp --remove-destination \"$(readlink -f /sbin/init)\" /usr/lib/systemd/systemd");
    must("ln -sfn ../lib/systemd/systemd /usr/sbin/init");
    must("cd /boot/firmware && mv vmlinuz kernel8.img && mv initrd.img initramfs8");
    board.switch_off().unwrap();
    let card = Card::of(&kit.sd());
    card.write_boot("config.txt", "arm_64bit=1\nauto_initramfs=1\n");
    for (program, bytes) in
        [("bootcode.bin", 52_480), ("start.elf", 2_979_264), ("fixup.dat", 7284)]
    {
        card.write_boot(program, vec![0x5a; bytes]);
    }
    let source = kit.directory().join("board.dts");
    std::fs::write(&source, DEVICE_TREE).unwrap();
    let tree = tools::run(tools::command("dtc").args(["-I", "dts", "-O", "dtb"]).arg(&source));
    card.write_boot("bcm2710-rpi-3-b.dtb", tree.unwrap());
    kit
}

fn try_card(cache: &Cache, base: &Kit, rubus: &Path, (seed, number): (u64, usize)) -> Tried {
    let kit = base.temporary_copy(cache).unwrap();
    let change = &CHANGES[number % CHANGES.len()];
    (change.make)(&Card::of(&kit.sd()), &mut Rng::stream(seed, number as u64));
    let said = said(rubus, &kit.sd());
    let outcome = said["outcome"].as_str().expect("an outcome");
    Tried {
        number,
        said: format!("{} ({})", text(&said["sentence"]), text(&said["certainty"])),
        is_said_to_start: match outcome {
            // Nothing else is plugged in, and the card is a card.
            "starts" => Some(!text(&said["sentence"]).contains(" starts if ")),
            "stops-at" => Some(false),
            _ => None,
        },
        is_sure: said["certainty"] == "certain",
        stopped: start(cache, &kit).err(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What the program says of a card for a Raspberry Pi 3.
fn said(rubus: &Path, card: &PathBuf) -> Value {
    let output =
        Command::new(rubus).arg("boot").arg(card).args(["--board", "pi3", "--json"]).output();
    let output = output.expect("the program starts");
    let refused = String::from_utf8_lossy(&output.stderr);
    // What is no card is refused: it does not start.
    if output.stdout.is_empty() && refused.contains("it is no image of a card") {
        return json!({"outcome": "stops-at", "sentence": refused, "certainty": "certain"});
    }
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {refused}"))
}

/// Starts the board from the card. It has started when all that fstab requires is mounted; else the reason is given.
fn start(cache: &Cache, kit: &Kit) -> Result<(), String> {
    let switches = Switches { as_pi3: true, ..Switches::default() };
    let hopeless = &[WAITS_FOR_ROOT];
    let options = Options { switches, patience: Some(PATIENCE), hopeless, ..Options::default() };
    let board = Session::boot_kit(cache, kit, &options)
        .map_err(|error| last_words(&format!("{error:#}")))?;
    let console = board.console();
    board.cut_power();
    match console.lines().find(|line| line.contains("init: failed") && line.contains("mount")) {
        Some(line) => Err(line.trim().to_owned()),
        None => Ok(()),
    }
}

/// The line that tells why, of all that a board said at its end.
fn last_words(said: &str) -> String {
    const TELLING: [&str; 8] = [
        "firmware finds no",
        "boot ROM finds no",
        "Kernel panic",
        WAITS_FOR_ROOT,
        "ALERT!",
        "No root device",
        "invalid kernel header",
        "No init found",
    ];
    let mut lines = said.lines().map(str::trim);
    let line = lines.find(|line| TELLING.iter().any(|word| line.contains(word)));
    let line = line.or_else(|| said.lines().next()).unwrap_or_default();
    // Behind it may be a whole command.
    line.chars().take(100).collect()
}
