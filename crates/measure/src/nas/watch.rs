//! What is seen of a file server while a run goes on: the round trip under load, the NFS client's counters, and whether it still
//! answers at all.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rubus_host::Files;
use rubus_host::clock;
use rubus_host::process::answering::{Answer, answer};
use rubus_host::process::standard_error;
use rubus_machine::parse::mountstats;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::nas::{
    ColdRead, ConnectTimes, FileProtocol, LoadedConnect, NasFacts, NasLink, RpcTimes,
};
use rubus_vocabulary::result::JobResult;

use super::{Share, facts};

/// How often it is connected meanwhile. Samba starts a process for each connection.
const EACH_NFS: Duration = Duration::from_millis(400);
const EACH_SMB: Duration = Duration::from_millis(1000);
/// Fewer connections than this say nothing of a job.
const MIN_SAMPLES: usize = 3;
/// How often the filesystem is asked whether it answers, and how long it may take: a hard mount of NFS tries once more after
/// 60 s.
const ASKS_EACH_NS: u64 = 15_000_000_000;
const ANSWERS_WITHIN: Duration = Duration::from_secs(90);

/// A watch over a share, from before the first job to after the last.
#[derive(Debug)]
pub struct Watch {
    share: Share,
    link: Fact<NasLink>,
    connect: Fact<ConnectTimes>,
    cold: Fact<ColdRead>,
    rpc: Vec<RpcTimes>,
    began_ns: u64,
    /// When each connection began, and how long it took, in nanoseconds.
    seen: Arc<Mutex<Vec<(u64, u64)>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Looks at the way to the server, and begins to watch. With `reads_a_file`, an existing file of the directory is read.
    pub fn start(
        share: &Share,
        files: &dyn Files,
        machine: &Machine,
        directory: &Path,
        reads_a_file: bool,
    ) -> Watch {
        let connect = facts::idle(share);
        let mut watch = Watch {
            share: share.clone(),
            link: facts::link(files, machine, share),
            connect,
            cold: Fact::unknown("this suite does not ask for it", "the share"),
            rpc: Vec::new(),
            began_ns: clock::monotonic_ns(),
            seen: Arc::default(),
            is_over: Arc::default(),
            thread: None,
        };
        // From here on a server that goes away ends the program.
        watch.thread = watch.sampler(directory);
        if reads_a_file {
            watch.cold = facts::cold(directory);
        }
        watch.rpc = counters(files, share);
        watch.began_ns = clock::monotonic_ns();
        watch
    }

    fn sampler(&self, directory: &Path) -> Option<JoinHandle<()>> {
        let can_connect = self.connect.value().is_some();
        let address = self.share.address().filter(|_| can_connect);
        let each = match self.share.mount.protocol {
            FileProtocol::Nfs => EACH_NFS,
            FileProtocol::Smb => EACH_SMB,
        };
        let (seen, is_over) = (Arc::clone(&self.seen), Arc::clone(&self.is_over));
        let directory: PathBuf = directory.into();
        let sample = move || {
            let mut asked_ns = clock::monotonic_ns();
            while !is_over.load(Ordering::Relaxed) {
                let now_ns = clock::monotonic_ns();
                if let Some(took_ns) = address.and_then(|address| facts::connect_ns(address).ok()) {
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.push((now_ns, took_ns));
                }
                if now_ns - asked_ns > ASKS_EACH_NS {
                    end_if_silent(&directory, &is_over);
                    asked_ns = clock::monotonic_ns();
                }
                clock::sleep(each);
            }
        };
        let thread = std::thread::Builder::new().name("nas".into()).stack_size(256 << 10);
        // Without it the round trip under load is not known, and nothing else is missing.
        thread.spawn(sample).ok()
    }

    /// Ends the watch and says what was seen.
    pub fn finish(mut self, files: &dyn Files, results: &[JobResult]) -> NasFacts {
        self.stop();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        NasFacts {
            mount: self.share.mount.clone(),
            link: self.link.clone(),
            connect: self.connect.clone(),
            loaded: loaded(&seen, self.began_ns, results),
            rpc: mountstats::between(&self.rpc, &counters(files, &self.share)),
            cold: self.cold.clone(),
        }
    }

    fn stop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It sleeps for a moment, or waits for one connection.
            let _ = thread.join();
        }
    }
}

/// A run that failed ends its watch, too.
impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends the program if the filesystem does not answer any more: the jobs wait in the kernel, and nothing else would end
/// them.
fn end_if_silent(directory: &Path, is_over: &AtomicBool) {
    let left = match answer(directory, ANSWERS_WITHIN) {
        Answer::Answered | Answer::NotAsked => return,
        Answer::Silent => String::new(),
        Answer::Stuck { process } => format!(" Process {process} waits in the kernel until then."),
    };
    if is_over.load(Ordering::Relaxed) {
        return;
    }
    standard_error::write_line(&format!(
        "rubus: {} did not answer for {} s, and nothing was kept of this measurement\n  Measure again when the server is \
         back, or give the mount up: umount -f -l.{left}",
        directory.display(),
        ANSWERS_WITHIN.as_secs()
    ));
    std::process::exit(2);
}

fn counters(files: &dyn Files, share: &Share) -> Vec<RpcTimes> {
    let text = files.text(Path::new("/proc/self/mountstats")).unwrap_or_default();
    mountstats::of_mount(&text, &share.point)
}

/// The connections that were made while each job was measured, by when the run began.
fn loaded(seen: &[(u64, u64)], began_ns: u64, results: &[JobResult]) -> Vec<LoadedConnect> {
    let each = results.iter().filter_map(|result| {
        let from_s = result.started_s + result.warm_up_s;
        let within = from_s..from_s + result.elapsed_s;
        let during = seen.iter().filter(|(at_ns, _)| {
            let since_ns = at_ns.checked_sub(began_ns);
            since_ns.is_some_and(|ns| within.contains(&(ns as f64 / 1e9)))
        });
        let took_ns: Vec<u64> = during.map(|(_, took_ns)| *took_ns).collect();
        let times = facts::times(took_ns).filter(|times| times.samples as usize >= MIN_SAMPLES)?;
        Some(LoadedConnect { job: result.job.clone(), times })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_belong_to_the_job_that_ran() {
        let mut run = rubus_fixtures::slow_sd_card_run();
        run.results.truncate(2);
        for (result, started_s) in run.results.iter_mut().zip([0.5, 10.0]) {
            (result.started_s, result.warm_up_s, result.elapsed_s) = (started_s, 0.5, 5.0);
        }
        let at = |second: f64, took_ns: u64| (1_000 + (second * 1e9) as u64, took_ns);
        let seen =
            [(10, 9), at(0.1, 9), at(1.5, 40), at(2.5, 50), at(3.5, 60), at(8.0, 9), at(11.0, 9)];
        let found = loaded(&seen, 1_000, &run.results);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].job, run.results[0].job);
        assert_eq!((found[0].times.samples, found[0].times.median_ns), (3, 50));
    }
}
