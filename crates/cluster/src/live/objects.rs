//! Objects of a pool as a target: `rados bench` writes and reads them in a namespace of their own, and the cluster is watched
//! meanwhile. They are removed at the end; what a killed run left, the next one removes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use rubus_command::message;
use rubus_host::files::own_files;
use rubus_host::process::child::{Lines, answer};
use rubus_host::process::process_stat::began;
use rubus_host::{Files, Live, clock};
use rubus_machine::parse::stat;
use rubus_vocabulary::refused::Refused;
use rubus_vocabulary::result::JobResult;

use super::has_room;
use super::seconds::now_s;
use super::standing::{available, standing_of_pool};
use super::watcher::Watcher;
use crate::rados::output::Row;
use crate::rados::owner::{Owner, Standing as OwnerStanding};
use crate::rados::{Around, Course, FILL_OBJECTS, IN_FLIGHT, NAMESPACE, OBJECT_BYTES, ObjectJob};
use crate::watch::pool_name::PoolName;

/// How long one object may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the tool may say nothing: it prints a row each second, whatever the cluster does.
const SILENCE: Duration = Duration::from_secs(30);
/// How long removing may take.
const REMOVING: Duration = Duration::from_secs(600);
/// Tries to remove what was still under way when a job ended.
const SWEEPS: u32 = 5;

/// The note beside the objects that says whose they are.
const NOTE: &str = "owner";
/// The name of that note's attribute.
const ATTRIBUTE: &str = "process";
/// The tool's own notes on what it wrote.
const FILL: &str = "fill";
const WRITTEN: &str = "written";
/// How the tool names its objects.
const PREFIX: &str = "benchmark_data";

/// A pool that this run may write into.
pub struct Objects {
    name: PoolName,
    /// Watches the cluster.
    pub watcher: Watcher,
    /// Bytes that the pool still takes.
    pub available: u64,
    is_claimed: bool,
}

impl Objects {
    /// Looks at the pool, and begins to watch its cluster. Nothing is written yet.
    ///
    /// # Errors
    /// In words: what is not installed, or what the cluster said. [`Refused`] where it has no room left.
    pub fn open(name: &PoolName) -> anyhow::Result<Objects> {
        let trouble = || format!("cannot measure on {}", name.address());
        let said = |said: String| anyhow::Error::msg(said);
        let standing = standing_of_pool(name).map_err(said).with_context(trouble)?;
        has_room(&standing, "")?;
        anyhow::ensure!(
            !standing.is_inactive,
            "cannot measure on {}: some placement groups are inactive ({} of {} OSDs are up), and writing would wait for \
             them: see `ceph health detail`",
            name.address(),
            standing.facts.osds_up,
            standing.facts.osds
        );
        Ok(Objects {
            available: available(name).map_err(said).with_context(trouble)?,
            watcher: Watcher::start(&name.client, standing.facts),
            name: name.clone(),
            is_claimed: false,
        })
    }

    /// Makes the namespace this run's own, and removes what a killed run left in it.
    ///
    /// # Errors
    /// [`Refused`] where another run has it; else in words.
    pub fn claim(&mut self) -> anyhow::Result<()> {
        let own = own().context("cannot tell which process this is")?;
        match self.rados(&["create", NOTE], PATIENCE) {
            Ok(_) => {}
            Err(why) if why.contains("File exists") => self.inherit(&own)?,
            Err(why) => anyhow::bail!(
                "cannot write to {}: {why}; the user needs rwx on the pool",
                self.name.address()
            ),
        }
        self.is_claimed = true;
        self.rados(&["setxattr", NOTE, ATTRIBUTE, &own.note()], PATIENCE)
            .map(drop)
            .map_err(anyhow::Error::msg)
    }

    /// Whether the run that made the note is gone; then what it left is removed.
    fn inherit(&self, own: &Owner) -> anyhow::Result<()> {
        let note = self.rados(&["getxattr", NOTE, ATTRIBUTE], PATIENCE);
        let owner = note.ok().as_deref().and_then(Owner::parse);
        let began = |process| {
            let text = own_files::text(Path::new(&format!("/proc/{process}/stat")));
            began(&text.ok()?)
        };
        let standing = owner.as_ref().map(|owner| owner.standing(own, began));
        let who = owner.map_or("another run".into(), |owner| {
            format!("process {} on {}", owner.process, owner.host)
        });
        if standing == Some(OwnerStanding::Gone) {
            return self.remove_objects().map_err(anyhow::Error::msg);
        }
        Err(Refused(format!(
            "{who} measures the pool {}, or was killed and left its objects\n  \
             wait for its end; or remove them: rados -p {0} -N {NAMESPACE} cleanup --prefix {PREFIX}; \
             rados -p {0} -N {NAMESPACE} rm {NOTE}",
            self.name
        ))
        .into())
    }

    /// Writes the objects that will be read.
    ///
    /// # Errors
    /// In words, or when the user ends it.
    pub fn fill(&self, stop: &AtomicBool) -> Result<(), String> {
        let objects = FILL_OBJECTS.to_string();
        let words = ["--run-name", FILL, "--no-cleanup", "--max-objects", &objects];
        let mut tool = self.bench("600", "write", &words)?;
        while tool.next(SILENCE, stop)?.is_some() {}
        Ok(())
    }

    /// Measures a job, whose run began at `began_s` on the clock of [`now_s`]; gives the bytes that it moved in all, too.
    ///
    /// # Errors
    /// In words.
    pub fn measure(
        &self,
        job: &ObjectJob,
        began_s: f64,
        stop: &AtomicBool,
        says: &dyn Fn(&str),
    ) -> Result<(JobResult, u64), String> {
        // The rule ends it before the tool would.
        let seconds = (job.stop.max_seconds as u64 + 10).to_string();
        let most = job.stop.max_bytes / u64::from(OBJECT_BYTES);
        let objects = most.saturating_add(u64::from(IN_FLIGHT)).to_string();
        let words: &[&str] = match job.verb() {
            "write" => &["--run-name", WRITTEN, "--no-cleanup", "--max-objects", &objects],
            _ => &["--run-name", FILL],
        };
        let mut course = Course::new(job.clone());
        let cpus = || own_files::text(Path::new("/proc/stat")).map(|text| stat::parse(&text));
        let before = cpus().map_err(|error| format!("cannot read /proc/stat: {error}"))?;
        let mut around = Around { started_s: now_s() - began_s, ..Around::default() };
        let mut tool = self.bench(&seconds, job.verb(), words)?;
        let mut has_begun = false;
        loop {
            let line = match tool.next(SILENCE, stop) {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(_) if stop.load(Ordering::Relaxed) => {
                    around.is_interrupted = true;
                    break;
                }
                Err(why) => return Err(format!("`rados bench {}`: {why}", job.verb())),
            };
            if !has_begun && Row::parse(&line).is_some() {
                has_begun = true;
                around.started_s = now_s() - began_s;
            }
            around.tool_cpu_s = tool.cpu_s().unwrap_or(around.tool_cpu_s);
            let is_enough = course.take(&line);
            says(&course.words());
            if is_enough {
                break;
            }
        }
        drop(tool);
        around.cpu =
            cpus().map_or_else(|_| Default::default(), |after| stat::shares(&before, &after));
        Ok((course.result(around), course.bytes()))
    }

    /// Removes everything that was written.
    ///
    /// # Errors
    /// In words, with what is left and how to remove it.
    pub fn remove(&mut self) -> Result<(), String> {
        if !std::mem::take(&mut self.is_claimed) {
            return Ok(());
        }
        self.remove_objects()?;
        self.rados(&["rm", NOTE], PATIENCE).map(drop)
    }

    /// Removes the objects, but not the note.
    fn remove_objects(&self) -> Result<(), String> {
        let mut left = String::new();
        for sweep in 0..SWEEPS {
            if sweep > 0 {
                // What was under way when a job was ended may have come after the last sweep.
                clock::sleep(Duration::from_secs(2));
            }
            // It complains of what is not there, so only what is left counts.
            let _ = self.rados(&["cleanup", "--prefix", PREFIX], REMOVING);
            let _ = self.rados(&["rm", FILL, WRITTEN], PATIENCE);
            left = self.rados(&["ls"], REMOVING)?;
            if left.lines().all(|name| name == NOTE) {
                return Ok(());
            }
        }
        Err(format!(
            "{} objects are left in the pool {}; remove them with: rados -p {1} -N {NAMESPACE} cleanup --prefix {PREFIX}",
            left.lines().count(),
            self.name
        ))
    }

    fn bench(&self, seconds: &str, verb: &str, more: &[&str]) -> Result<Lines, String> {
        let (options, pool) = (self.name.client.options(), self.name.to_string());
        let (bytes, in_flight) = (OBJECT_BYTES.to_string(), IN_FLIGHT.to_string());
        let mut words: Vec<&str> = options.iter().map(String::as_str).collect();
        words.extend(["-p", &pool, "-N", NAMESPACE, "bench", seconds, verb]);
        words.extend(["-t", &in_flight]);
        if verb == "write" {
            words.extend(["-b", &bytes]);
        }
        words.extend(more);
        Lines::start("rados", &words).map_err(|error| error.to_string())
    }

    fn rados(&self, words: &[&str], limit: Duration) -> Result<String, String> {
        let (options, pool) = (self.name.client.options(), self.name.to_string());
        let mut all: Vec<&str> = options.iter().map(String::as_str).collect();
        all.extend(["-p", &pool, "-N", NAMESPACE]);
        all.extend(words);
        answer("rados", &all, limit).map_err(|why| match why.as_str() {
            "rados is not installed" => {
                "the program `rados` is not installed (on Debian: apt install ceph-common)".into()
            }
            _ => format!("`rados {}` says: {why}", words.join(" ")),
        })
    }
}

/// Whatever ends a run ends it with this.
impl Drop for Objects {
    fn drop(&mut self) {
        if let Err(why) = self.remove() {
            message!("rubus: {why}");
        }
    }
}

/// This process as the owner of objects.
fn own() -> Option<Owner> {
    let text = |path: &str| own_files::text(Path::new(path)).ok();
    let word = |path: &str| text(path).map(|text| text.trim().replace(',', "-"));
    let space = Live::new().link(Path::new("/proc/self/ns/pid")).ok()?;
    Some(Owner {
        host: word("/proc/sys/kernel/hostname")?,
        boot: word("/proc/sys/kernel/random/boot_id")?,
        space: space.display().to_string(),
        process: std::process::id(),
        began: began(&text("/proc/self/stat")?)?,
    })
}
