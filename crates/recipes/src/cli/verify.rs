//! `rubus verify`: whether everything holds that applied changes promise. A change on trial that holds it is kept.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use rubus_command::places::say;
use rubus_command::{Exit, General, Json, Terminal, World, message};
use rubus_draw::next_step;
use rubus_host::net::NetError;
use rubus_host::{Files, Live, clock};
use rubus_machine::parse::btrfs::Compression;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::verb::{MISTAKE, Page};
use serde::Serialize;

use super::Outside;
use super::changes::{all_known, must_be_live};
use super::status::remarks;
use super::way::keep;
use rubus_change::apply::{BOOT_ID, Change, Ending, initramfs_answers};
use rubus_change::on_trial::{self, Stage};
use rubus_change::plan::journal::Way;
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::plan::verify::{Answer, Found, PromiseState, Unheard, verify, zswap_words};
use rubus_change::promises;
use rubus_change::text::verify as verify_text;
use rubus_change::text::verify::Verified;

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-verify",
    statuses: &[
        (0, "everything holds"),
        (1, "something does not hold, or holds only after a restart"),
        MISTAKE,
        (4, "the trial start failed, and the old system is running again"),
    ],
    examples: &[
        ("sudo rubus verify", "Check the last change."),
        (
            "sudo rubus verify --measure",
            "Also repeat the measurement of `rubus apply --measure`, and compare.",
        ),
    ],
};

/// Check everything an applied recipe promises.
///
/// Checks the running machine; most checks need root.
#[derive(Debug, Args)]
pub struct Verify {
    /// The change (see `rubus status`) [default: the last one]
    pub change: Option<String>,
    /// All applied changes
    #[arg(long, conflicts_with = "change")]
    pub all: bool,
    /// Repeat the measurement from before the change, and compare
    #[arg(long, conflicts_with_all = ["all", "wanted"])]
    pub measure: bool,
    #[command(flatten)]
    pub json: Json,
}

/// Whether changes hold what they promise.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerifyDocument<'a> {
    /// Every promise holds, and no change is half undone.
    pub holds: bool,
    /// What to do next.
    pub next: NextStep,
    /// The changes.
    pub changes: Vec<VerifiedChange<'a>>,
    /// Changes in the middle of their way back, in words.
    pub half_undone: &'a [String],
}

/// Whether a change holds what it promises.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerifiedChange<'a> {
    /// Name of the change.
    pub name: &'a str,
    /// What it does, as a sentence.
    pub title: &'a str,
    /// All its steps are done.
    pub is_finished: bool,
    /// It is on trial.
    pub is_on_trial: bool,
    /// Its trial was passed just now, and it was kept.
    pub is_kept_now: bool,
    /// The machine was restarted after the change.
    pub started_since: bool,
    /// Every promise holds.
    pub holds: bool,
    /// The promises.
    pub promises: &'a [Answer],
    /// How files are compressed, by mount point.
    pub compression: Vec<CompressionAt<'a>>,
    /// The kernel's counters of zswap.
    pub zswap: ZswapCounters<'a>,
    /// What else there is to know.
    pub remarks: &'a [String],
}

/// How files on a filesystem are compressed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompressionAt<'a> {
    /// Mount point.
    pub at: String,
    #[serde(flatten)]
    pub seen: CompressionSeen<'a>,
}

/// What a look at a filesystem's compression gave.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum CompressionSeen<'a> {
    /// It was seen.
    Known {
        /// Stored bytes as a share of the original ones.
        share: f64,
        /// What was counted.
        files: &'a Compression,
    },
    /// It could not be seen.
    Unknown {
        /// Why.
        unknown: &'a str,
    },
}

/// The kernel's counters of zswap.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZswapCounters<'a> {
    /// Whether it is on; null: unknown.
    pub enabled: Option<bool>,
    /// The counters that could be read, by name.
    pub counters: BTreeMap<&'a str, u64>,
}

/// How long a disk is watched that should be quiet.
const WATCH: Duration = Duration::from_secs(5);
/// How long it may take to look how files are compressed.
const MAX_LOOKING: Duration = Duration::from_secs(60);

/// A change with its answers.
struct Looked {
    change: Change,
    started_since: bool,
    answers: Vec<Answer>,
    besides: Vec<(String, String)>,
    compression: Vec<(PathBuf, Result<Compression, String>)>,
    remarks: Vec<String>,
    /// How keeping it ended, where its trial was passed just now.
    kept: Option<Ending>,
}

/// Looks at every promise of the chosen changes and says what is the case.
pub fn run(general: &General, arguments: &Verify, outside: &dyn Outside) -> anyhow::Result<Exit> {
    must_be_live(general, "verify")?;
    let live = Live::new();
    let (all, lost) = all_known()?;
    if let Some(lost) = lost {
        message!("{}", lost.words);
    }
    let is_half_undone =
        |change: &&Change| !change.state.is_finished && change.state.way == Way::Undo;
    let half_undone: Vec<String> = all.iter().filter(is_half_undone).map(half_words).collect();
    let changes = chosen(all.clone(), arguments)?;
    let machine = World::of(general)?.survey();
    let promises: Vec<Promise> =
        changes.iter().flat_map(|change| change.plan.promises.iter().cloned()).collect();
    let found = look(general, &live, &machine, &promises);
    let boot = live.text(Path::new(BOOT_ID)).ok();
    let looked = changes
        .into_iter()
        .map(|change| answer(change, &all, &machine, &found, boot.as_deref(), &live));
    let looked: anyhow::Result<Vec<Looked>> =
        looked.map(|looked| after_trial(general, looked, &live)).collect();
    let looked = looked?;
    let holds = half_undone.is_empty() && looked.iter().all(Looked::holds);
    let shown: Vec<Verified<'_>> = looked.iter().map(Looked::shown).collect();
    let next = verify_text::next(&shown, !half_undone.is_empty());
    if arguments.json.wanted {
        let changes: Vec<_> = looked.iter().map(|looked| document(looked, &machine)).collect();
        let whole = VerifyDocument { holds, next, changes, half_undone: &half_undone };
        say(&(serde_json::to_string_pretty(&whole)? + "\n"))?;
    } else {
        let style = Terminal::of(general).style();
        if half_undone.is_empty() || !shown.is_empty() {
            say(&verify_text::verified(&shown, style))?;
        }
        say(&half_undone.concat())?;
        say(&(next_step::lines(&next, style).join("\n") + "\n"))?;
    }
    if let (true, Some(last)) = (arguments.measure, looked.last()) {
        let measured = outside.measure_after(&last.change)?;
        if measured != Exit::Fine {
            return Ok(measured);
        }
    }
    let is_rolled_back = |looked: &Looked| matches!(looked.kept, Some(Ending::RolledBack { .. }));
    // What comes true only after the next start does not hold yet.
    let is_waiting = looked.iter().any(Looked::waits_for_a_start);
    Ok(if looked.iter().any(is_rolled_back) {
        Exit::RolledBack
    } else if holds && !is_waiting {
        Exit::Fine
    } else {
        Exit::AnswerIsNo
    })
}

/// Keeps a change whose trial runs and holds everything; says of another one on trial what it waits for.
fn after_trial(general: &General, mut looked: Looked, live: &Live) -> anyhow::Result<Looked> {
    let promises = &looked.change.plan.promises;
    let Some(stage) = on_trial::stage(&looked.change, promises, &looked.answers, live) else {
        return Ok(looked);
    };
    looked.besides.extend(on_trial::told_by_firmware(live));
    let is_kept = on_trial::may_be_kept(promises, &looked.answers);
    if stage != Stage::Running || !is_kept {
        let words = on_trial::words(&looked.change, stage, Some(is_kept));
        looked.remarks.push(words);
        return Ok(looked);
    }
    let (change, ending) = keep(general, &looked.change.name)?;
    looked.remarks.push(on_trial::kept(&ending, &change.plan.promises));
    looked.change = change;
    looked.kept = Some(ending);
    Ok(looked)
}

/// What is said of a change in the middle of its way back: it promises nothing, and is not gone either.
fn half_words(change: &Change) -> String {
    let remarks = remarks(change, &Live::new()).join(" ");
    format!(
        "{} is HALF UNDONE, so nothing of it is looked at. {remarks} `rubus resume` goes on.\n",
        change.name
    )
}

/// The changes that are to be looked at: the named one, all that are applied, or the last of those.
fn chosen(changes: Vec<Change>, arguments: &Verify) -> anyhow::Result<Vec<Change>> {
    if let Some(name) = &arguments.change {
        let found = changes.into_iter().find(|change| change.name == *name);
        let found =
            found.with_context(|| format!("there is no change '{name}'; see `rubus status`"))?;
        anyhow::ensure!(
            found.state.way == Way::Apply || !found.state.is_finished,
            "{name} is undone, so it promises nothing any more"
        );
        // One that is half undone is only told of.
        return Ok(match found.state.way {
            Way::Apply => vec![found],
            Way::Undo => Vec::new(),
        });
    }
    let mut applied = changes;
    applied.retain(|change| change.state.way == Way::Apply);
    if !arguments.all {
        applied = applied.pop().into_iter().collect();
    }
    Ok(applied)
}

fn look(general: &General, live: &Live, machine: &Machine, promises: &[Promise]) -> Found {
    let mut pause = || {
        if !general.quiet && !general.records {
            message!("Watching for {} s what is written.", WATCH.as_secs());
        }
        let begun_ns = clock::monotonic_ns();
        clock::sleep(WATCH);
        (clock::monotonic_ns() - begun_ns) as f64 / 1e9
    };
    let mut found = promises::look(live, machine, promises, &mut pause);
    for promise in promises {
        if let Look::Compressed { at, .. } = &promise.look {
            let seen = rubus_machine::probe::compression::subvolume(at, MAX_LOOKING);
            let seen = seen.map_err(|error| error.to_string());
            found.compression.insert(at.clone(), seen);
        }
        if let Look::Served { address, .. } = &promise.look {
            let names = rubus_nbd_tools::info::names(address).map_err(|error| unheard(&error));
            found.exports.insert(address.clone(), names);
        }
    }
    found
}

/// Root may connect and read wherever others may not; where root is refused, that is the server's answer.
fn unheard(error: &anyhow::Error) -> Unheard {
    let is_denied = error.chain().any(|cause| {
        let of_the_system = match cause.downcast_ref() {
            Some(NetError::Other { error, .. }) => Some(error),
            _ => cause.downcast_ref::<io::Error>(),
        };
        of_the_system.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    });
    let words = format!("{error:#}");
    if is_denied && !rustix::process::geteuid().is_root() {
        Unheard::Forbidden(words)
    } else {
        Unheard::Silent(words)
    }
}

fn answer(
    change: Change,
    all: &[Change],
    machine: &Machine,
    found: &Found,
    boot: Option<&str>,
    live: &Live,
) -> Looked {
    let promises = &change.plan.promises;
    let started_since = change.started_since(boot);
    let mut answers = verify(promises, machine, found, started_since);
    let place = all.iter().position(|one| one.name == change.name);
    let later = place.map_or(&[][..], |place| &all[place + 1..]);
    answers.extend(initramfs_answers(&change, later, live));
    let is_zswap = |promise: &Promise| match &promise.look {
        Look::Knob { path, .. } => path.starts_with("/sys/module/zswap"),
        _ => false,
    };
    let besides = if promises.iter().any(is_zswap) {
        zswap_words(machine).map(|words| ("zswap".to_string(), words))
    } else {
        None
    };
    let compression = promises.iter().filter_map(|promise| match &promise.look {
        Look::Compressed { at, .. } => Some((at.clone(), found.compression.get(at)?.clone())),
        _ => None,
    });
    Looked {
        started_since,
        answers,
        besides: besides.into_iter().collect(),
        compression: compression.collect(),
        remarks: remarks(&change, live),
        kept: None,
        change,
    }
}

impl Looked {
    /// Whether everything holds that has to hold by now.
    fn holds(&self) -> bool {
        self.answers
            .iter()
            .all(|answer| matches!(answer.standing, PromiseState::Holds | PromiseState::AfterStart))
    }

    /// Whether something can be looked at only after the next start.
    fn waits_for_a_start(&self) -> bool {
        let mut all = self.answers.iter();
        all.any(|answer| answer.standing == PromiseState::AfterStart)
    }

    fn shown(&self) -> Verified<'_> {
        Verified {
            name: &self.change.name,
            title: &self.change.plan.title,
            remarks: &self.remarks,
            answers: &self.answers,
            besides: &self.besides,
        }
    }
}

fn document<'a>(looked: &'a Looked, machine: &'a Machine) -> VerifiedChange<'a> {
    let compression = looked.compression.iter().map(|(at, seen)| CompressionAt {
        at: at.display().to_string(),
        seen: match seen {
            Ok(seen) => CompressionSeen::Known { share: seen.share(), files: seen },
            Err(unknown) => CompressionSeen::Unknown { unknown },
        },
    });
    let counters = machine.swap.zswap.counters.iter().filter_map(|counter| {
        let number: u64 = counter.value.value()?.parse().ok()?;
        Some((&*counter.name, number))
    });
    VerifiedChange {
        name: &looked.change.name,
        title: &looked.change.plan.title,
        is_finished: looked.change.state.is_finished,
        is_on_trial: looked.change.state.is_on_trial(),
        is_kept_now: matches!(looked.kept, Some(Ending::Applied)),
        started_since: looked.started_since,
        holds: looked.holds(),
        promises: &looked.answers,
        compression: compression.collect(),
        zswap: ZswapCounters {
            enabled: machine.swap.zswap.enabled.get(),
            counters: counters.collect(),
        },
        remarks: &looked.remarks,
    }
}
