//! The program that takes memory, and the line to it: a line of JSON each way for every wish.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::run::{MemoryLoad, Touching};
use anyhow::Context;
use rubus_vocabulary::memory::{Access, Phase};
use serde::{Deserialize, Serialize};

/// The hidden argument that makes this program a memory load.
pub const ARGUMENT: &str = "--eater";

/// What it is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// To get ready.
    Begin {
        /// The most that it will ever have.
        most_bytes: u64,
        page_bytes: u64,
        /// Percent to which pages compress.
        content_percent: u32,
        /// Of all that is random.
        seed: u64,
    },
    /// Grow to this number of pages.
    Grow {
        /// Number of pages in all.
        pages: u64,
        /// Seconds after which it gives up.
        most_s: f64,
    },
    /// To touch them.
    Touch {
        /// How the pages are touched.
        access: Access,
        /// Seconds before it counts.
        warm_up_s: f64,
        /// Seconds that it counts.
        seconds: f64,
        /// Touches at most.
        most: u64,
        /// Slower is slow.
        limit_ns: u64,
        /// Of the order.
        seed: u64,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Ready,
    /// Number of pages that it has.
    Grown(u64),
    /// So it was.
    Touched(Box<Phase>),
    /// It cannot do that, for this reason.
    Unable(String),
}

/// A running load. It ends with this value, and with this process.
pub struct Line {
    child: Child,
    wishes: ChildStdin,
    answers: Receiver<String>,
}

/// What came instead of an answer.
pub enum Silence {
    /// No answer yet.
    NotYet,
    /// The process has ended.
    Gone,
}

impl Line {
    /// Starts one, which waits for its first wish and has taken nothing yet.
    ///
    /// # Errors
    /// When this program cannot be started once more.
    pub fn start() -> anyhow::Result<Line> {
        let tried = "cannot start the program that takes memory";
        let (child, wishes, out) = super::start_own(ARGUMENT, tried)?;
        let (sender, answers) = channel();
        // Reads until the program ends; the thread is never joined.
        std::thread::Builder::new()
            .name("answers".into())
            .spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            })
            .context("cannot begin a thread")?;
        Ok(Line { child, wishes, answers })
    }

    /// Process id of the load.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a wish. That it cannot be heard any more shows at the answer.
    pub fn wish(&mut self, wish: &Wish) {
        let text = serde_json::to_string(wish).unwrap_or_default();
        let _ = writeln!(self.wishes, "{text}");
    }

    /// The answer, if it comes within that time.
    pub fn answer(&mut self, within: Duration) -> Result<Answer, Silence> {
        match self.answers.recv_timeout(within) {
            Ok(line) => Ok(serde_json::from_str(&line)
                .unwrap_or_else(|error| Answer::Unable(format!("it said '{line}': {error}")))),
            Err(RecvTimeoutError::Timeout) => Err(Silence::NotYet),
            Err(RecvTimeoutError::Disconnected) => Err(Silence::Gone),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // It may be gone already; what waits for a slow disk ends when its turn comes.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the load does: wish after wish until the line is cut.
pub fn serve() -> bool {
    // It is in a group that has no memory left and waits for a disk: only a kill ends it at once.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let mut load = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(wish) = serde_json::from_str(&line) else {
            return false;
        };
        let answer = serve_one(&wish, &mut load);
        let text = serde_json::to_string(&answer).unwrap_or_default();
        let mut out = std::io::stdout();
        if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
            return false;
        }
    }
    true
}

fn serve_one(wish: &Wish, load: &mut Option<MemoryLoad>) -> Answer {
    match (wish, load) {
        (Wish::Begin { most_bytes, page_bytes, content_percent, seed }, load) => {
            match MemoryLoad::new(*most_bytes, *page_bytes, *content_percent, *seed) {
                Ok(begun) => {
                    *load = Some(begun);
                    Answer::Ready
                }
                Err(error) => Answer::Unable(format!(
                    "cannot have {most_bytes} bytes of addresses: {error}; `sysctl vm.overcommit_memory` of 2, or \
                 `ulimit -v`, forbids it"
                )),
            }
        }
        (_, None) => Answer::Unable("it was not begun".into()),
        (Wish::Grow { pages, most_s }, Some(load)) => Answer::Grown(load.grow(*pages, *most_s)),
        (Wish::Touch { access, warm_up_s, seconds, most, limit_ns, seed }, Some(load)) => {
            Answer::Touched(Box::new(load.touch(&Touching {
                access: *access,
                warm_up_s: *warm_up_s,
                seconds: *seconds,
                most: *most,
                limit_ns: *limit_ns,
                seed: *seed,
            })))
        }
    }
}
