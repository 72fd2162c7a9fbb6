//! What the machines of a cluster spend meanwhile: each is asked over ssh once a second, in a thread of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rubus_host::net::ssh::Options;
use rubus_machine::parse::stat::CpuTimes;
use rubus_nbd_tools::target::over_ssh::OverSsh;
use rubus_remote::Destination;
use rubus_remote::meter::Reading;
use rubus_vocabulary::cluster_facts::NodeLoad;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::Run;
use rubus_watch::{LinkCounters, parse_net_dev};

use super::seconds::{lock, now_s, rest};

/// A machine of the cluster, and how ssh reaches it without asking for anything.
#[derive(Clone, Debug)]
pub struct Node {
    /// As its owner calls it.
    pub name: String,
    /// As ssh is to be told.
    pub destination: Destination,
    /// How ssh connects.
    pub options: Options,
}

/// Machines that are asked, until this value goes.
#[derive(Debug, Default)]
pub struct Nodes {
    all: Vec<Asked>,
    stop: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Asked {
    name: String,
    seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    moments: Vec<Moment>,
    /// Why there are no more.
    ended: Option<String>,
}

/// What a machine had counted at a moment.
#[derive(Clone, Debug, Default)]
struct Moment {
    /// On the clock of [`now_s`].
    at_s: f64,
    times: CpuTimes,
    links: Vec<LinkCounters>,
}

impl Nodes {
    /// Begins to ask these machines, each as soon as it is reached.
    pub fn start(nodes: Vec<Node>) -> Nodes {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |node: Node| {
            let seen = Arc::new(Mutex::new(Seen::default()));
            let name = node.name.clone();
            let thread = {
                let (seen, stop) = (Arc::clone(&seen), Arc::clone(&stop));
                std::thread::spawn(move || {
                    if let Err(why) = ask(node, &seen, &stop)
                        && !stop.load(Ordering::Relaxed)
                    {
                        lock(&seen).ended = Some(why);
                    }
                })
            };
            Asked { name, seen, thread: Some(thread) }
        };
        Nodes { all: nodes.into_iter().map(start).collect(), stop }
    }

    /// What they spent during each job of a run that began at `began_s`, on the clock of [`now_s`]; a machine that could not be
    /// asked is a doubt of the run.
    pub fn tell(&self, run: &mut Run, began_s: f64) -> Vec<NodeLoad> {
        let mut loads = Vec::new();
        for node in &self.all {
            let seen = lock(&node.seen);
            for result in &run.results {
                let start_s = began_s + result.started_s + result.warm_up_s;
                let moments = (start_s, start_s + result.elapsed_s);
                loads.extend(load(&seen.moments, moments).map(|load| NodeLoad {
                    node: node.name.clone(),
                    job: result.job.clone(),
                    ..load
                }));
            }
            if let Some(why) = &seen.ended {
                let what = format!("the machine {}: {why}", node.name);
                run.doubts.push(Doubt::NotWatched { what });
            }
        }
        loads
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.all.iter_mut().filter_map(|node| node.thread.take()) {
            let _ = thread.join();
        }
    }
}

fn ask(node: Node, seen: &Mutex<Seen>, stop: &AtomicBool) -> Result<(), String> {
    let machine = OverSsh::connect(node.destination.into(), &node.options, stop)
        .map_err(|error| format!("{error:#}"))?;
    while !stop.load(Ordering::Relaxed) {
        let before_s = now_s();
        let reading = machine.reading()?;
        let at_s = f64::midpoint(before_s, now_s());
        lock(seen).moments.push(Moment::new(at_s, &reading));
        rest(stop);
    }
    Ok(())
}

impl Moment {
    fn new(at_s: f64, reading: &Reading) -> Moment {
        let links = parse_net_dev(reading.links.as_bytes())
            .filter(|(name, _)| *name != "lo")
            .map(|(name, counters)| LinkCounters { name: name.into(), ..counters });
        Moment { at_s, times: reading.times, links: links.collect() }
    }
}

/// What was spent between two times, from the first moment after the one to the last before the other. The link is the one that
/// carried the most: a bridge's bytes are those of its ports again, so that no sum of all would be right.
fn load(moments: &[Moment], (start_s, end_s): (f64, f64)) -> Option<NodeLoad> {
    let mut within = moments.iter().filter(|moment| (start_s..=end_s).contains(&moment.at_s));
    let first = within.next()?;
    let last = within.next_back()?;
    let seconds = last.at_s - first.at_s;
    let times = last.times.since(&first.times);
    let worked = times.total() - times.idle - times.iowait - times.steal;
    let carried = last.links.iter().filter_map(|link| {
        let before = first.links.iter().find(|before| before.name == link.name)?;
        let received = link.received_bytes.checked_sub(before.received_bytes)?;
        let sent = link.sent_bytes.checked_sub(before.sent_bytes)?;
        Some((&link.name, received, sent))
    });
    let most = carried
        .filter(|(_, received, sent)| received + sent > 0)
        .max_by_key(|(_, received, sent)| received + sent);
    let (link, received, sent) = match most {
        Some((name, received, sent)) => (Some(name.clone()), received, sent),
        None => (None, 0, 0),
    };
    Some(NodeLoad {
        node: String::new(),
        job: String::new(),
        busy: worked as f64 / times.total().max(1) as f64,
        link,
        received_bytes_per_second: received as f64 / seconds,
        sent_bytes_per_second: sent as f64 / seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(at_s: f64, user: u64, idle: u64, eth0: (u64, u64)) -> Moment {
        let link = |name: &str, (received_bytes, sent_bytes)| LinkCounters {
            name: name.into(),
            received_bytes,
            sent_bytes,
        };
        Moment {
            at_s,
            times: CpuTimes { user, idle, ..CpuTimes::default() },
            links: vec![link("wlan0", (7, 7)), link("eth0", eth0)],
        }
    }

    #[test]
    fn a_job_has_what_was_spent_within_it() {
        let moments = [
            moment(9.0, 0, 0, (0, 0)),
            moment(10.5, 100, 500, (1000, 0)),
            moment(11.5, 200, 800, (2000, 50)),
            moment(12.5, 400, 1000, (5000, 100)),
            moment(14.0, 9000, 1000, (90000, 100)),
        ];
        let found = load(&moments, (10.0, 13.0)).unwrap();
        assert!((found.busy - 300.0 / 800.0).abs() < 1e-12, "{found:?}");
        assert_eq!(found.link.as_deref(), Some("eth0"));
        let carried = (found.received_bytes_per_second, found.sent_bytes_per_second);
        assert_eq!(carried, (2000.0, 50.0));
        // One moment says nothing of a time.
        assert_eq!(load(&moments, (10.0, 11.0)), None);
        assert_eq!(load(&[], (0.0, 100.0)), None);
    }

    #[test]
    fn a_link_that_was_reset_is_left_out() {
        let moments = [moment(1.0, 0, 0, (9000, 9000)), moment(2.0, 50, 50, (10, 10))];
        let found = load(&moments, (0.0, 3.0)).unwrap();
        assert_eq!(found.link, None);
        assert_eq!(found.busy, 0.5);
    }

    #[test]
    fn the_loopback_is_no_link() {
        let mut answers = rubus_remote::meter::Answers::of(&rubus_remote::meter::Metered {
            destination: rubus_remote::Destination::parse("node1").unwrap(),
            program: None,
        });
        let text = "rubus-meter 1\nticks=100\ncpu  1 1 1 1\nInter-|   Receive\n face |bytes\n    lo: 9 0 0 0 0 0 0 0 9 0\n  \
                    eth0: 5 0 0 0 0 0 0 0 6 0\nrubus-meter-end 1\n";
        let answer = text.lines().find_map(|line| answers.line(line)).unwrap();
        let moment = Moment::new(1.0, &answer.1.unwrap());
        assert_eq!(moment.links.len(), 1);
        assert_eq!((moment.links[0].received_bytes, moment.links[0].sent_bytes), (5, 6));
    }
}
