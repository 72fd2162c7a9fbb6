//! Looks at a cluster once a second, in a thread, through one `ceph` that answers line by line: a new one each second would be
//! more work than the benchmark on a small board.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rubus_host::process::child::Conversation;
use rubus_vocabulary::cluster_facts::{ClusterFacts, ClusterTrouble, Dip};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{JobResult, Run};

use super::nodes::Nodes;
use super::seconds::{lock, now_s, rest};
use crate::watch::client::Client;
use crate::watch::dip::dip;
use crate::watch::state::{State, noticed, osds_down};
use crate::watch::timeline::Timeline;

/// A monitor elects another leader in less.
const PATIENCE: Duration = Duration::from_secs(15);

/// A cluster that is watched, until this value goes.
#[derive(Debug)]
pub struct Watcher {
    facts: ClusterFacts,
    /// The cluster's machines, where they are asked.
    nodes: OnceLock<Nodes>,
    seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    timeline: Timeline,
    /// When it could not be watched any more, on the clock of [`now_s`], and why.
    ended: Option<(f64, String)>,
}

impl Watcher {
    /// Begins to watch the cluster of an image or a pool.
    pub fn start(client: &Client, facts: ClusterFacts) -> Watcher {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let (seen, stop, options) = (Arc::clone(&seen), Arc::clone(&stop), client.options());
            std::thread::spawn(move || {
                if let Err(why) = watch(&options, &seen, &stop)
                    && !stop.load(Ordering::Relaxed)
                {
                    lock(&seen).ended = Some((now_s(), why));
                }
            })
        };
        Watcher { facts, nodes: OnceLock::new(), seen, stop, thread: Some(thread) }
    }

    /// What these machines of the cluster spend is told too; the first to be named stay.
    pub fn ask(&self, nodes: Nodes) {
        let _ = self.nodes.set(nodes);
    }

    /// Writes into a run what happened since `began_s`, on the clock of [`now_s`]: what the cluster is, doubts where it was
    /// not whole, and what became of the throughput.
    pub fn tell(&self, run: &mut Run, began_s: f64) {
        let seen = lock(&self.seen);
        let mut facts = self.facts.clone();
        facts.changes = seen.timeline.between(began_s, now_s());
        if let Some((at_s, why)) = &seen.ended {
            facts.not_watched = Some(format!("after {:.0} s: {why}", (at_s - began_s).max(0.0)));
        }
        drop(seen);
        if let Some(nodes) = self.nodes.get() {
            facts.nodes = nodes.tell(run, began_s);
        }
        for result in &mut run.results {
            facts.dips.extend(dips(result, &facts));
            let end_s = result.started_s + result.warm_up_s + result.elapsed_s;
            let during = facts.changes.iter();
            let during = during.filter(|change| change.is_within(result.started_s, end_s));
            let what: Vec<String> = during.map(|change| change.words()).collect();
            let fell = facts.dips.iter().filter(|dip| dip.job == result.job);
            let what: Vec<String> = what.into_iter().chain(fell.map(Dip::words)).collect();
            if !what.is_empty() {
                let what = what.join("; ");
                result.doubts.push(Doubt::ClusterTroubled { what });
            }
        }
        if let Some(why) = &facts.not_watched {
            let what = format!("the cluster, {why}");
            run.doubts.push(Doubt::NotWatched { what });
        }
        run.target.cluster = Some(facts);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the throughput of a job did while OSDs went down.
fn dips(result: &JobResult, facts: &ClusterFacts) -> Vec<Dip> {
    let Some(series) = &result.series else {
        return Vec::new();
    };
    let down = facts.changes.iter().filter(|change| {
        let is_down = matches!(change.trouble, ClusterTrouble::OsdDown { .. });
        is_down && change.started_s > result.started_s
    });
    let mut found: Vec<Dip> = down
        .filter_map(|change| {
            dip(
                &result.job,
                result.started_s + result.warm_up_s,
                series.bin_s,
                &series.bytes,
                change.started_s,
            )
        })
        .collect();
    // Two OSDs that go down together are one dip.
    found.dedup();
    found
}

fn watch(options: &[String], seen: &Mutex<Seen>, stop: &AtomicBool) -> Result<(), String> {
    let mut words: Vec<&str> = options.iter().map(String::as_str).collect();
    words.push("--format=json");
    let mut ceph = Conversation::start("ceph", &words).map_err(|error| error.to_string())?;
    while !stop.load(Ordering::Relaxed) {
        let before_s = now_s();
        let state = State::parse(&ceph.ask("status", PATIENCE, stop)?)?;
        let at_s = f64::midpoint(before_s, now_s());
        let mut troubles: Vec<ClusterTrouble> = state.troubles().collect();
        if state.osds_up < state.osds {
            let down = osds_down(&ceph.ask("osd tree down", PATIENCE, stop)?)?;
            let trouble = |osd| ClusterTrouble::OsdDown { osd, noticed: None };
            troubles.extend(down.into_iter().map(trouble));
        }
        let unexplained = {
            let mut seen = lock(seen);
            seen.timeline.look(at_s, &troubles);
            seen.timeline.unexplained()
        };
        if !unexplained.is_empty() {
            let log = ceph.ask("log last 200 debug cluster", PATIENCE, stop)?;
            for osd in unexplained {
                if let Some(how) = noticed(&log, osd) {
                    lock(seen).timeline.explain(osd, how);
                }
            }
        }
        rest(stop);
    }
    Ok(())
}
