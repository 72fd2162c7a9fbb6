//! Cuts a board's power in the middle of a change and of its undoing, again and again: does it boot,
//! is anything of the old system lost, does the change end cleanly?
//!
//! One change serves for many cuts. When a cut is due, the board is paused and its disks are
//! copied; the copy is what a cut at this moment would have left. It is booted on a second board,
//! ended there, and looked at from outside; then the first board goes on. What a pause cannot show
//! is a write that was half done when the power went.

use std::io::{Write, stderr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::board::Board;
use crate::cache::Cache;
use crate::channel::Outcome;
use crate::kit::{Kit, UsbDisk};
use crate::outside::{self, Manifest};
use crate::session::{Options, Session};

/// Where the product keeps plans and journals.
const SHELF: &str = "/var/lib/rubus";

/// What is tried.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The board.
    pub board: Board,
    /// Its USB disks.
    pub usb: Vec<UsbDisk>,
    /// A static rubus for it.
    pub rubus: PathBuf,
    /// What follows `rubus apply`: the recipe, its options and arguments. `{usb0}` stands for the
    /// board's name of a USB disk.
    pub change: Vec<String>,
    /// Shell script that prepares the board first.
    pub prepare: Option<String>,
    /// Cuts at random moments, half of them while applying, half while undoing.
    pub runs: usize,
    /// Cut after each record of the journal too.
    pub every_record: bool,
    /// Starting value of the random numbers.
    pub seed: u64,
    /// How long a change, or its end, may take.
    pub limit: Duration,
    /// Where the disks of failed cuts go.
    pub keep_failures: Option<PathBuf>,
}

/// Which way the change is gone when the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Apply,
    Undo,
}

/// How an interrupted change is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Resume,
    Undo,
}

/// What the disks look like without any cut.
struct Reference {
    /// The plain system.
    plain: Manifest,
    /// After the change.
    changed: Manifest,
    /// How long applying takes.
    apply: Duration,
    /// How long undoing takes.
    undo: Duration,
}

/// What came of one cut.
#[derive(Clone, Debug)]
pub struct Row {
    /// When the power was cut.
    pub moment: String,
    /// What booted then: device and filesystem of the root.
    pub booted: String,
    /// What ended the change, and how.
    pub ended: String,
    /// What is wrong; empty when all is well.
    pub wrong: Vec<String>,
    /// How long looking at this cut took.
    pub took: Duration,
}

/// Runs a campaign and shows each row as it comes; gives all of them.
///
/// # Errors
/// When the change fails without any cut, or the lab itself does. A cut with a bad end is a row.
pub fn run(cache: &Cache, campaign: &Campaign, show: &mut dyn FnMut(&Row)) -> Result<Vec<Row>> {
    let lab = Lab { cache, campaign };
    let plain = Kit::temporary(cache, campaign.board, &campaign.usb)?;
    lab.prepare(&plain)?;
    let changed = plain.temporary_copy(cache)?;
    let reference = lab.reference(&plain, &changed)?;
    let note = format!(
        "uninterrupted: applied in {:.0} s, undone in {:.0} s",
        reference.apply.as_secs_f64(),
        reference.undo.as_secs_f64()
    );
    writeln!(stderr(), "{note}")?;
    let mut random = Random(campaign.seed | 1);
    let half = campaign.runs / 2;
    let mut rows = Vec::new();
    for (way, kit, length, count) in [
        (Way::Apply, &plain, reference.apply, campaign.runs - half),
        (Way::Undo, &changed, reference.undo, half),
    ] {
        let mut moments: Vec<Duration> = (0..count).map(|_| random.below(length)).collect();
        moments.sort();
        lab.cut_along(way, kit, &moments, &reference, &mut |row| {
            show(&row);
            rows.push(row);
        })?;
    }
    Ok(rows)
}

/// A campaign with the machine that it runs on.
struct Lab<'a> {
    cache: &'a Cache,
    campaign: &'a Campaign,
}

impl Lab<'_> {
    fn boot(&self, kit: &Kit) -> Result<Session> {
        let options = Options {
            push: vec![self.campaign.rubus.clone()],
            ..Options::default()
        };
        Session::boot_kit(self.cache, kit, &options)
    }

    /// Boots a fresh kit once, so that what a first boot makes is there, and prepares it.
    fn prepare(&self, kit: &Kit) -> Result<()> {
        let mut board = self.boot(kit)?;
        if let Some(script) = &self.campaign.prepare {
            board.must(script, "root", self.campaign.limit)?;
        }
        board.switch_off()
    }

    /// Applies and undoes the change without a cut. `changed` is left with the change applied.
    fn reference(&self, plain: &Kit, changed: &Kit) -> Result<Reference> {
        let before = outside::manifest(&plain.sd())?;
        let mut board = self.boot(changed)?;
        let apply = self.timed(&mut board, Way::Apply)?;
        board.switch_off()?;
        let after = outside::manifest(&changed.sd())?;
        let undone = changed.temporary_copy(self.cache)?;
        let mut board = self.boot(&undone)?;
        let undo = self.timed(&mut board, Way::Undo)?;
        board.switch_off()?;
        let left = outside::manifest(&undone.sd())?;
        let differences = outside::differences(&before, &left, &[SHELF]);
        if !differences.is_empty() {
            bail!("undoing without any cut leaves\n{}", differences.join("\n"));
        }
        Ok(Reference {
            plain: before,
            changed: after,
            apply,
            undo,
        })
    }

    fn timed(&self, board: &mut Session, way: Way) -> Result<Duration> {
        let started = Instant::now();
        let script = self.script(board, way)?;
        board.must(&script, "root", self.campaign.limit)?;
        Ok(started.elapsed())
    }

    /// The command that goes one way.
    fn script(&self, board: &mut Session, way: Way) -> Result<String> {
        if way == Way::Undo {
            return Ok("rubus undo --yes".to_owned());
        }
        let mut words = vec!["rubus".to_owned(), "apply".to_owned()];
        for word in &self.campaign.change {
            let mut word = word.clone();
            for number in 0..self.campaign.usb.len() {
                let mark = format!("{{usb{number}}}");
                if word.contains(&mark) {
                    word = word.replace(&mark, &board.usb_device(number)?);
                }
            }
            words.push(format!("'{}'", word.replace('\'', r"'\''")));
        }
        words.push("--yes".to_owned());
        Ok(words.join(" "))
    }

    /// Goes one way once, and looks at a cut at each moment and, when asked for, each record.
    fn cut_along(
        &self,
        way: Way,
        from: &Kit,
        moments: &[Duration],
        reference: &Reference,
        give: &mut dyn FnMut(Row),
    ) -> Result<()> {
        let kit = from.temporary_copy(self.cache)?;
        let mut board = self.boot(&kit)?;
        let script = watched(&self.script(&mut board, way)?, self.campaign.every_record);
        board.begin(&script, "root", self.campaign.limit * 20)?;
        let name = match way {
            Way::Apply => "apply",
            Way::Undo => "undo",
        };
        let mut moments = moments.iter().copied().peekable();
        let mut ran = Duration::ZERO;
        let mut number = 0;
        loop {
            let started = Instant::now();
            let mut record = None;
            let wait = moments
                .peek()
                .map_or(self.campaign.limit, |moment| moment.saturating_sub(ran));
            let left = board.follow(wait, &mut |said| {
                record = self.record(said);
                record.is_none()
            })?;
            ran += started.elapsed();
            if let Some(outcome) = left {
                return ended_well(&outcome).with_context(|| format!("could not {name}"));
            }
            let moment = match record {
                Some(record) => format!("{name}, at {record}"),
                None if moments.next().is_some() => {
                    format!("{name}, after {:.1} s", ran.as_secs_f64())
                }
                None => bail!("{name} did not end within {:?}", self.campaign.limit),
            };
            board.pause()?;
            let end = match number % 2 {
                0 => End::Resume,
                _ => End::Undo,
            };
            number += 1;
            give(self.look(&kit, moment, end, reference)?);
            board.go_on()?;
        }
    }

    /// The record in a line of the journal, when cuts at records are asked for.
    fn record(&self, said: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(said);
        let line = text.strip_prefix(JOURNAL_MARK)?;
        let value: serde_json::Value = serde_json::from_str(line.trim()).ok()?;
        let step = match value["step"].as_u64() {
            Some(step) => format!(" {}", step + 1),
            None => String::new(),
        };
        let record = value["record"].as_str()?;
        self.campaign
            .every_record
            .then(|| format!("the record '{record}{step}'"))
    }

    /// Looks at what a cut now would leave.
    fn look(&self, kit: &Kit, moment: String, end: End, reference: &Reference) -> Result<Row> {
        let started = Instant::now();
        let mut row = Row {
            moment,
            booted: "nothing".to_owned(),
            ended: "-".to_owned(),
            wrong: Vec::new(),
            took: Duration::ZERO,
        };
        let cut = kit.temporary_copy(self.cache)?;
        if let Err(error) = self.end(&cut, end, reference, &mut row) {
            row.wrong.push(format!("{error:#}"));
        }
        if let (false, Some(directory)) = (row.wrong.is_empty(), &self.campaign.keep_failures) {
            let name = row
                .moment
                .replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            kit.copy_to(&directory.join(name))?;
        }
        row.took = started.elapsed();
        Ok(row)
    }

    fn end(&self, cut: &Kit, end: End, reference: &Reference, row: &mut Row) -> Result<()> {
        let mut board = self.boot(cut)?;
        let minute = Duration::from_secs(60);
        let root = board.must("findmnt -no SOURCE,FSTYPE /", "root", minute)?;
        row.booted = root.split_whitespace().collect::<Vec<_>>().join(" ");
        let status = board.run("rubus status --json", "root", minute)?.text();
        let changes = changes(&status)?;
        let command = match end {
            // Before the first record is written there is nothing to be ended.
            _ if changes.is_empty() => "true",
            End::Resume => "rubus resume",
            // What is undone already cannot be undone again.
            End::Undo if changes.iter().all(|change| change.is_undone()) => "true",
            End::Undo => "rubus undo --yes",
        };
        let outcome = board.run(command, "root", self.campaign.limit)?;
        row.ended = format!("{command}: {}", outcome.status);
        if outcome.status != 0 {
            row.wrong.push(outcome.complaint_text());
        }
        let status = board.run("rubus status --json", "root", minute)?.text();
        let last = self::changes(&status)?;
        if !last.iter().all(|change| change.is_finished) {
            row.wrong.push(format!("not at its end: {status}"));
        }
        board.switch_off()?;
        let is_old = last.iter().all(Change::is_undone);
        let found = outside::manifest(&cut.sd())?;
        row.wrong.extend(losses(&found, is_old, reference));
        Ok(())
    }
}

/// What is not as it must be on the card: after undoing everything as it was; after applying, what
/// the change itself changes may be changed, and nothing else.
fn losses(found: &Manifest, is_old: bool, reference: &Reference) -> Vec<String> {
    let differences = outside::differences(&reference.plain, found, &[SHELF]);
    if is_old {
        return differences;
    }
    let planned = outside::differences(&reference.plain, &reference.changed, &[SHELF]);
    let unplanned = differences.into_iter().filter(|one| !planned.contains(one));
    unplanned.collect()
}

const JOURNAL_MARK: &str = "journal: ";

/// A script that runs a command and shows the last record of the journal whenever there is a new
/// one. With `stops`, the command stands still while the journal is looked at, and at each new record
/// until the harness has had time to pause the board. It is looked at often after a record and
/// seldom in a long step; a record that is followed at once by another is passed over.
fn watched(command: &str, stops: bool) -> String {
    let (stop, go_on, rest) = match stops {
        true => ("kill -STOP $command", "kill -CONT $command", "sleep 0.5"),
        false => (":", ":", ":"),
    };
    format!(
        "newest() {{ ls -t {SHELF}/changes/*/journal 2>/dev/null | head -n 1; }}\n\
         look() {{ journal=$(newest); [ -z \"$journal\" ] || wc -l \"$journal\"; }}\n\
         seen=$(look); naps=\n\
         {command} >/run/said 2>&1 & command=$!\n\
         while kill -0 $command 2>/dev/null; do\n\
           {stop} 2>/dev/null; now=$(look)\n\
           [ \"$now\" = \"$seen\" ] || {{\n\
             seen=$now; naps=; echo \"{JOURNAL_MARK}$(tail -n 1 \"${{now#* }}\")\"; {rest}\n\
           }}\n\
           {go_on} 2>/dev/null\n\
           case $naps in ...........*) sleep 0.5 ;; .....*) sleep 0.1 ;; *) sleep 0.01 ;; esac\n\
           naps=$naps.\n\
         done\n\
         wait $command; status=$?; cat /run/said >&2; exit $status\n"
    )
}

fn ended_well(outcome: &Outcome) -> Result<()> {
    if outcome.status != 0 {
        bail!("status {}: {}", outcome.status, outcome.complaint_text());
    }
    Ok(())
}

/// What the product says of a change.
struct Change {
    way: String,
    is_finished: bool,
}

impl Change {
    fn is_undone(&self) -> bool {
        self.is_finished && self.way == "undo"
    }
}

fn changes(status: &str) -> Result<Vec<Change>> {
    let value: serde_json::Value =
        serde_json::from_str(status).with_context(|| format!("rubus status said {status:?}"))?;
    let list = value.as_array().context("rubus status gives no list")?;
    let change = |value: &serde_json::Value| {
        Some(Change {
            way: value["way"].as_str()?.to_owned(),
            is_finished: value["is_finished"].as_bool()?,
        })
    };
    let all: Option<Vec<Change>> = list.iter().map(change).collect();
    all.with_context(|| format!("rubus status said {status:?}"))
}

/// Numbers that look random and are the same for the same seed (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, length: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let part = (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        length.mul_f64(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(files: &[(&str, &str)]) -> Manifest {
        let owned = |&(path, seen): &(&str, &str)| (path.to_owned(), seen.to_owned());
        files.iter().map(owned).collect()
    }

    #[test]
    fn only_what_the_change_itself_changes_may_differ_and_nothing_after_undoing() {
        let reference = Reference {
            plain: manifest(&[("/a", "1"), ("/b", "1")]),
            changed: manifest(&[("/a", "2"), ("/b", "1"), ("/new", "1")]),
            apply: Duration::ZERO,
            undo: Duration::ZERO,
        };
        let other = manifest(&[
            ("/a", "3"),
            ("/b", "1"),
            ("/new", "4"),
            ("/var/lib/rubus/x", "1"),
        ]);
        assert!(losses(&other, false, &reference).is_empty());
        assert_eq!(losses(&other, true, &reference), ["changed /a", "new /new"]);
        let lost = manifest(&[("/b", "2"), ("/new", "1")]);
        assert_eq!(losses(&lost, false, &reference), ["lost /a", "changed /b"]);
    }

    #[test]
    fn moments_are_spread_and_repeatable() {
        let length = Duration::from_secs(100);
        let moments = |seed| {
            let mut random = Random(seed);
            (0..200).map(|_| random.below(length)).collect::<Vec<_>>()
        };
        assert_eq!(moments(7), moments(7));
        assert!(moments(7).iter().all(|moment| *moment < length));
        let early = moments(7).iter().filter(|m| m.as_secs() < 50).count();
        assert!(
            (60..140).contains(&early),
            "{early} of 200 in the first half"
        );
    }

    #[test]
    fn the_watching_script_is_a_script_and_gives_the_commands_status() {
        let check = |script: &str| {
            let mut shell = crate::tools::command("sh");
            shell.args(["-c", script]).output().unwrap()
        };
        let parsed = check(&format!("set -n\n{}", watched("rubus undo --yes", true)));
        assert!(parsed.status.success(), "{parsed:?}");
        // Where no journal is found.
        let ended = check(
            &watched("(sleep 0.1; exit 3)", true)
                .replace("/run/said", "/dev/null")
                .replace(SHELF, "/nonexistent"),
        );
        assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    }

    #[test]
    fn status_is_read_and_nonsense_is_not() {
        let one = changes("[{\"way\": \"undo\", \"is_finished\": true, \"name\": \"x\"}]").unwrap();
        assert!(one[0].is_undone());
        assert!(changes("[]").unwrap().is_empty());
        assert!(changes("[{\"way\": 3}]").is_err());
        assert!(changes("oops").is_err());
    }
}
