//! Goes a change one way on a board, and stops where the power is to be cut.
//!
//! For exact stops the command runs under `strace`, which gives it a SIGSTOP as each call that makes something
//! durable, or changes a directory, ends. It stands still until the harness has said that it may
//! go on. The product knows nothing of that.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::channel::Outcome;
use crate::kit::Kit;
use crate::session::Session;

use super::caches::Caches;
use super::{Lab, LeftOut, Moment, Random, STATE_DIRECTORY, Stops, Way};

/// The calls of the command's first thread after which it stands still. The threads that copy files, and the
/// programs that it starts, are not stopped. Not among them are those that make thousands of files in a copy.
pub(super) const CALLS: &str =
    "fsync,fdatasync,syncfs,rename,renameat,renameat2,unlink,unlinkat,mount,umount2,swapon,swapoff";
/// The call that ends each record.
const RECORD_CALL: &str = "fsync";
/// How the script begins the line about a stop.
const STOP_MARK: &str = "stop: ";

/// A change that was gone to its end.
pub(super) struct Passed {
    /// The disks afterwards; the board is off.
    pub kit: Kit,
    /// How long it took without the cuts.
    pub length: Duration,
    /// Moments that would have been after its end.
    pub left: Vec<Duration>,
    /// How many records it wrote, when it was stopped at them.
    pub records: usize,
}

/// What a cut has left.
pub(super) struct Left {
    /// The board's disks after the cut.
    pub kit: Kit,
    /// When it was.
    pub moment: Moment,
    /// What became of what was not flushed.
    pub unflushed: String,
}

/// A stop as the board tells it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// The call that has just ended.
    pub(super) call: String,
    /// The record that the journal has since then.
    pub(super) record: Option<Value>,
}

impl Lab<'_> {
    /// Goes one way once, and gives what is left of the board's disks to `cut` at each moment and at each stop. With `random`,
    /// the disks have caches.
    pub(super) fn pass(
        &self,
        way: Way,
        from: &Kit,
        moments: Vec<Duration>,
        stops: Stops,
        random: Option<Random>,
        cut: &mut dyn FnMut(Left) -> Result<()>,
    ) -> Result<Passed> {
        let kit = from.temporary_copy(self.cache)?;
        let _server = self.serve(&kit)?;
        let mut board = self.boot_logged(&kit, way)?;
        let mut caches = match random {
            Some(random) => Some(Caches::of(self.cache, &mut board, from, random, way)?),
            None => None,
        };
        if way == Way::Apply {
            self.attach(&mut board)?;
            if let Some(before) = self.campaign.before {
                before(&mut board);
            }
        }
        let disks_of = |board: &mut Session, caches: &mut Option<Caches>, moment| {
            let (kit, unflushed) = match caches {
                Some(caches) => {
                    let is_stop = !matches!(moment, Moment::Random(_));
                    caches.cut(self.cache, board, &kit, is_stop)?
                }
                None => {
                    board.pause()?;
                    (kit.temporary_copy(self.cache)?, String::new())
                }
            };
            anyhow::Ok(Left { kit, moment, unflushed })
        };
        let command = self.command(&mut board, way)?;
        let titles = self.titles(&mut board, way)?;
        let left_out = self.campaign.without_flush.as_ref();
        let left_out = left_out.filter(|_| way == Way::Apply);
        let script = match stops {
            Stops::No if left_out.is_some() => bail!("a flush is left out only with stops"),
            Stops::No => command,
            Stops::Records => stopping(&command, RECORD_CALL, left_out),
            Stops::Syncs => stopping(&command, CALLS, left_out),
        };
        board.begin(&script, "root", self.campaign.limit * 20)?;
        let mut moments = moments.into_iter().peekable();
        let mut length = Duration::ZERO;
        let mut records = 0;
        let mut step = None;
        loop {
            let started = Instant::now();
            let mut stop = None;
            let wait =
                moments.peek().map_or(self.campaign.limit, |moment| moment.saturating_sub(length));
            let left = board.follow(wait, &mut |said| {
                stop = stop_in(said);
                stop.is_none()
            })?;
            length += started.elapsed();
            if let Some(outcome) = left {
                ended_well(&outcome).with_context(|| format!("could not {}", way.word()))?;
                break;
            }
            if let Some(stop) = stop {
                records += usize::from(stop.record.is_some());
                if let Some(record) = &stop.record {
                    step = step_of(record, &titles);
                }
                if let Some(moment) = self.wanted(&stop, stops, &titles, step.as_deref()) {
                    cut(disks_of(&mut board, &mut caches, moment)?)?;
                    board.go_on()?;
                } else if let Some(caches) = &mut caches {
                    caches.note()?;
                }
                board.answer("go")?;
            } else if moments.next().is_some() {
                cut(disks_of(&mut board, &mut caches, Moment::Random(length))?)?;
                board.go_on()?;
            } else {
                bail!("{} did not end within {:?}", way.word(), self.campaign.limit);
            }
        }
        board.switch_off()?;
        Ok(Passed { kit, length, left: moments.collect(), records })
    }

    /// The command that goes one way.
    pub(super) fn command(&self, board: &mut Session, way: Way) -> Result<String> {
        match way {
            Way::Apply => Ok(format!("rubus apply {} --yes", self.change(board)?)),
            Way::Undo => Ok("rubus undo --yes".to_owned()),
            Way::Verify => Ok("rubus verify".to_owned()),
        }
    }

    /// The recipe with its options and arguments, in words of the shell.
    pub(super) fn change(&self, board: &mut Session) -> Result<String> {
        let mut words = Vec::new();
        let address = self.campaign.address().unwrap_or_default();
        for word in &self.campaign.change {
            let mut word = word.replace("{export}", &address);
            for number in 0..self.campaign.usb.len() {
                let mark = format!("{{usb{number}}}");
                if word.contains(&mark) {
                    word = word.replace(&mark, &board.usb_device(number)?);
                }
            }
            words.push(format!("'{}'", word.replace('\'', r"'\''")));
        }
        Ok(words.join(" "))
    }

    /// The steps' titles; they are the same each time, though each plan is a new one.
    pub(super) fn titles(&self, board: &mut Session, way: Way) -> Result<Vec<String>> {
        let script = match way {
            // Without the arguments that follow, which only `apply` takes.
            Way::Apply => {
                let change = self.change(board)?;
                let words = change.split(' ').take_while(|word| !word.starts_with("'--"));
                format!("rubus plan {} --json", words.collect::<Vec<_>>().join(" "))
            }
            Way::Undo | Way::Verify => "rubus status --json".to_owned(),
        };
        let said = board.run(&script, "root", self.campaign.limit)?;
        let value: Value = serde_json::from_slice(&said.output).with_context(|| {
            format!("{script} said {:?} {:?}", said.text(), said.complaint_text())
        })?;
        let steps = match way {
            Way::Apply => value["steps"].as_array(),
            // The last change is the one that is undone, or waits for its trial.
            Way::Undo | Way::Verify => {
                value.as_array().and_then(|changes| changes.last()?["steps"].as_array())
            }
        };
        let steps = steps.with_context(|| format!("{script} gives no steps"))?;
        let id = |step: &Value| step["id"].as_str().unwrap_or_default().to_owned();
        Ok(steps.iter().map(id).collect())
    }

    /// The moment in words, when the power is to be cut there. `step` is the one that is under way.
    fn wanted(
        &self,
        stop: &Stop,
        stops: Stops,
        titles: &[String],
        step: Option<&str>,
    ) -> Option<Moment> {
        let moment = match (&stop.record, step) {
            (Some(record), _) => Moment::Record(words(record, titles)),
            (None, _) if stops != Stops::Syncs => return None,
            (None, Some(step)) => Moment::Sync(format!("{} in {step}", short(&stop.call))),
            (None, None) => Moment::Sync(short(&stop.call)),
        };
        let (Moment::Record(text) | Moment::Sync(text)) = &moment else {
            return None;
        };
        let only = &self.campaign.only;
        let is_wanted = only.is_empty() || only.iter().any(|part| text.contains(part.as_str()));
        is_wanted.then_some(moment)
    }
}

/// A record in words.
pub(super) fn words(record: &Value, titles: &[String]) -> String {
    let name = record["record"].as_str().unwrap_or_default();
    match numbered(record, titles) {
        Some(step) => format!("{name} {step}"),
        None => name.to_owned(),
    }
}

/// The step that is under way after a record: number and title.
pub(super) fn step_of(record: &Value, titles: &[String]) -> Option<String> {
    let is_under_way = record["record"] == "begun";
    numbered(record, titles).filter(|_| is_under_way)
}

fn numbered(record: &Value, titles: &[String]) -> Option<String> {
    let step = record["step"].as_u64()?;
    let title = usize::try_from(step).ok().and_then(|step| titles.get(step));
    let title = title.map_or("", String::as_str);
    Some(format!("{} ({title})", step + 1))
}

/// A call without its result and its spaces.
pub(super) fn short(call: &str) -> String {
    let call = call.rsplit_once(" = ").map_or(call, |(call, _)| call);
    call.trim().to_owned()
}

/// The stop that a line tells of.
pub(super) fn stop_in(said: &[u8]) -> Option<Stop> {
    let text = String::from_utf8_lossy(said);
    let (call, record) = text.trim_end_matches('\n').strip_prefix(STOP_MARK)?.split_once('\t')?;
    Some(Stop { call: call.to_owned(), record: serde_json::from_str(record).ok() })
}

/// A script that runs a command and stops it after each of these calls, until it reads a line from the harness. It tells
/// of the call, and the last record of the journal when a new one has just become durable. Of calls with the name of one that is
/// left out, only that one is stopped: `strace` does one thing to each kind of call.
pub(super) fn stopping(command: &str, calls: &str, left_out: Option<&LeftOut>) -> String {
    let (skip, syncs) = match left_out {
        Some(LeftOut { call, number }) => {
            (format!("-e inject={call}:retval=0:signal=SIGSTOP:when={number}"), "*")
        }
        None => (String::new(), "*sync*"),
    };
    format!(
        "port=/dev/$(cat /run/lab/port)\n\
         newest() {{ ls -t {STATE_DIRECTORY}/changes/*/journal 2>/dev/null | head -n 1; }}\n\
         look() {{ journal=$(newest); [ -z \"$journal\" ] || wc -l \"$journal\"; }}\n\
         seen=$(look); call=\n\
         rm -f /run/stops; mkfifo /run/stops || exit 1\n\
         strace -qq -y -o /run/stops -e trace={calls} -e inject={calls}:signal=SIGSTOP {skip} \
           {command} >/run/said 2>&1 & tracer=$!\n\
         while IFS= read -r line; do\n\
           case $line in\n\
             '--- stopped by SIGSTOP ---')\n\
               read -r stopped _ </proc/$tracer/task/$tracer/children\n\
               now=$(look); record=\n\
               case $call in {syncs}) [ \"$now\" = \"$seen\" ] || {{\n\
                 seen=$now; record=$(tail -n 1 \"${{now#* }}\")\n\
               }} ;; esac\n\
               printf '{STOP_MARK}%s\\t%s\\n' \"$call\" \"$record\"\n\
               read -r _ <\"$port\"\n\
               kill -CONT \"$stopped\" ;;\n\
             ---*) ;;\n\
             *) call=$line ;;\n\
           esac\n\
         done </run/stops\n\
         wait $tracer; status=$?; cat /run/said >&2; exit $status\n"
    )
}

pub(super) fn ended_well(outcome: &Outcome) -> Result<()> {
    if outcome.status != 0 {
        bail!("status {}: {}", outcome.status, outcome.complaint_text());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_stops_after_each_call_and_gives_the_commands_status() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name).display().to_string();
        std::fs::write(at("old"), "").unwrap();
        // The harness says "go" at each stop; here it has said so beforehand.
        std::fs::write(at("port"), "go\n").unwrap();
        let run = |command: &str, left_out: Option<&LeftOut>| {
            let script = stopping(command, CALLS, left_out)
                .replace("/dev/$(cat /run/lab/port)", &at("port"))
                .replace("/run/", &format!("{}/", place.path().display()))
                .replace(STATE_DIRECTORY, "/nonexistent");
            let mut shell = crate::tools::command("bash");
            shell.args(["-c", &script]).output().unwrap()
        };
        let moved = run(&format!("mv {} {}", at("old"), at("new")), None);
        assert_eq!(moved.status.code(), Some(0), "{moved:?}");
        let stop = stop_in(&moved.stdout).unwrap();
        assert!(stop.call.starts_with("rename"), "{stop:?}");
        assert!(stop.call.contains("/new\""), "{stop:?}");
        let failed = run("sh -c 'exit 3'", None);
        assert_eq!(failed.status.code(), Some(3), "{failed:?}");
        let second = LeftOut { call: "fsync".to_owned(), number: 2 };
        let sync = format!("sync {}", at("new"));
        let flushed = run(&format!("{sync} {0} {0}", at("new")), Some(&second));
        assert_eq!(flushed.status.code(), Some(0), "{flushed:?}");
        let text = String::from_utf8(flushed.stdout).unwrap();
        let stops: Vec<&str> = text.lines().collect();
        assert_eq!(stops.len(), 1, "{text}");
        assert!(stops[0].contains("INJECTED"), "{text}");
    }

    #[test]
    fn stops_are_read_from_lines() {
        let stop = stop_in(b"stop: fsync(3</x>) = 0\t{\"record\":\"begun\",\"step\":1}\n").unwrap();
        let titles = ["a".to_owned(), "b".to_owned()];
        let record = stop.record.unwrap();
        assert_eq!(words(&record, &titles), "begun 2 (b)");
        assert_eq!(step_of(&record, &titles).as_deref(), Some("2 (b)"));
        let done = serde_json::json!({"record": "done", "step": 1});
        assert_eq!(step_of(&done, &titles), None);
        assert_eq!(short(&stop.call), "fsync(3</x>)");
        let stop = stop_in(b"stop: rename(\"a\", \"b\")   = 0\t\n").unwrap();
        assert_eq!(stop.record, None);
        assert_eq!(short(&stop.call), "rename(\"a\", \"b\")");
        assert_eq!(stop_in(b"something else\n"), None);
    }
}
