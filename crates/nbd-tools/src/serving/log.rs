//! What the server says while it runs: one line for each thing that happens, on standard error.

use std::sync::Mutex;

use rubus_draw::text::one_line;
use rubus_host::clock::{monotonic_ns, now_rfc3339};
use rubus_nbd::server::Gone;
use rubus_nbd::server::listener::{Client, Event};
use rubus_nbd::server::tally::Counts;
use rubus_vocabulary::units::{bytes_si, duration_ns};

use super::lines::{CountsLine, EventLine, EventOf};

/// Maximum number of lines a second about refused clients, so that a flood of clients is no flood
/// of lines.
const MAX_REFUSALS: u32 = 5;
const SECOND_NS: u64 = 1_000_000_000;

pub struct Log {
    quiet: bool,
    json: bool,
    refusals: Mutex<Refusals>,
}

#[derive(Default)]
struct Refusals {
    second_ns: u64,
    written: u32,
    kept_back: u64,
}

impl Log {
    /// Lines for people, or JSON; only problems if quiet.
    pub fn new(quiet: bool, json: bool) -> Log {
        Log { quiet, json, refusals: Mutex::default() }
    }

    /// Writes a line that is no event of a client.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            self.line(text, EventOf::Said {});
        }
    }

    /// Writes what happened.
    pub fn event(&self, event: &Event<'_>) {
        match event {
            Event::Came(_) | Event::Went(..) if self.quiet => {}
            Event::Came(client) => {
                let text = format!("{} uses '{}'", who(client), client.export);
                let came = EventOf::Came {
                    client: client.number,
                    caller: &client.caller.name,
                    export: &client.export,
                };
                self.line(&text, came);
            }
            Event::Went(client, why) => self.went(client, why),
            Event::Asked(caller) => {
                let text = format!("{} asked what there is", caller.name);
                self.stranger(&text, EventOf::Asked { caller: &caller.name });
            }
            Event::Left(caller) => {
                let text = format!("{} left during the handshake", caller.name);
                self.stranger(&text, EventOf::Left { caller: &caller.name });
            }
            Event::Refused { caller, why } => {
                let text = format!("{} was refused: {why}", caller.name);
                let refused =
                    EventOf::Refused { caller: Some(&caller.name), why: Some(why), callers: None };
                self.stranger(&text, refused);
            }
            Event::Trouble(text) => self.line(text, EventOf::Trouble {}),
        }
    }

    fn went(&self, client: &Client, why: &Gone) {
        let counts = client.counts();
        let seconds_ns = monotonic_ns().saturating_sub(client.since_ns);
        let text = format!(
            "{} left '{}' after {}: {}; {why}",
            who(client),
            client.export,
            duration_ns(seconds_ns),
            in_words(&counts)
        );
        let went = EventOf::Went {
            client: client.number,
            caller: &client.caller.name,
            export: &client.export,
            seconds: seconds_ns as f64 / 1e9,
            why: why.to_string(),
            counts: CountsLine::from(&counts),
        };
        self.line(&text, went);
    }

    /// Logs an event of a caller that is not a client; beyond the limit, only their number.
    fn stranger(&self, text: &str, what: EventOf<'_>) {
        let mut refusals = super::status::lock(&self.refusals);
        let now_ns = monotonic_ns();
        let mut before = 0;
        if now_ns.saturating_sub(refusals.second_ns) >= SECOND_NS {
            before = std::mem::take(&mut refusals.kept_back);
            *refusals = Refusals { second_ns: now_ns, ..Refusals::default() };
        }
        if refusals.written >= MAX_REFUSALS {
            refusals.kept_back += 1;
            return;
        }
        refusals.written += 1;
        drop(refusals);
        if self.quiet {
            return;
        }
        if before > 0 {
            let text = format!("{before} more came and were not served");
            let refused = EventOf::Refused { caller: None, why: None, callers: Some(before) };
            self.line(&text, refused);
        }
        self.line(text, what);
    }

    fn line(&self, text: &str, what: EventOf<'_>) {
        let text = one_line(text);
        if !self.json {
            return write(&format!("rubus: {text}\n"));
        }
        let line = EventLine { time: now_rfc3339(), text, what };
        if let Ok(line) = serde_json::to_string(&line) {
            write(&(line + "\n"));
        }
    }
}

/// Writes one line in one piece. Serving continues when the log has no reader.
fn write(line: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn who(client: &Client) -> String {
    format!("client {} ({})", client.number, client.caller.name)
}

fn in_words(counts: &Counts) -> String {
    let mut words = format!(
        "read {} in {}, wrote {} in {}",
        bytes_si(counts.read_bytes),
        counts.reads,
        bytes_si(counts.written_bytes),
        counts.writes
    );
    if counts.flushes > 0 {
        words += &format!(", {} flushes", counts.flushes);
    }
    if counts.errors > 0 {
        words += &format!(", {} ERRORS", counts.errors);
    }
    words
}
