//! What the server says while it runs: one line for each thing that happens, on standard error.

use std::sync::Mutex;

use rubus_host::clock::{monotonic_ns, now_rfc3339};
use rubus_vocabulary::units::{bytes_si, duration_ns};
use serde_json::{Value, json};

use crate::server::Gone;
use crate::server::listener::{Client, Event};
use crate::server::tally::Counts;

/// So many lines about callers that were refused are written in a second. A flood of callers is not
/// to become a flood of lines.
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
        Log {
            quiet,
            json,
            refusals: Mutex::default(),
        }
    }

    /// Writes a line that is no event of a client.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            self.line("said", text, json!({}));
        }
    }

    /// Writes what happened.
    pub fn event(&self, event: &Event<'_>) {
        match event {
            Event::Came(_) | Event::Went(..) if self.quiet => {}
            Event::Came(client) => {
                let text = format!("{} uses '{}'", who(client), client.export);
                self.line("came", &text, of_client(client));
            }
            Event::Went(client, why) => self.went(client, why),
            Event::Asked(caller) => {
                let text = format!("{} asked what there is", caller.name);
                self.stranger("asked", &text, json!({"caller": caller.name}));
            }
            Event::Left(caller) => {
                let text = format!("{} left during the handshake", caller.name);
                self.stranger("left", &text, json!({"caller": caller.name}));
            }
            Event::Refused { caller, why } => {
                let text = format!("{} was refused: {why}", caller.name);
                let fields = json!({"caller": caller.name, "why": why});
                self.stranger("refused", &text, fields);
            }
            Event::Trouble(text) => self.line("trouble", text, json!({})),
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
        let mut fields = of_client(client);
        fields["seconds"] = json!(seconds_ns as f64 / 1e9);
        fields["why"] = json!(why.to_string());
        fields["counts"] = super::status::counts(&counts);
        self.line("went", &text, fields);
    }

    /// Writes of somebody who is not a client; of many, only that there were.
    fn stranger(&self, kind: &str, text: &str, fields: Value) {
        let mut refusals = super::status::lock(&self.refusals);
        let now_ns = monotonic_ns();
        let mut before = 0;
        if now_ns.saturating_sub(refusals.second_ns) >= SECOND_NS {
            before = std::mem::take(&mut refusals.kept_back);
            *refusals = Refusals {
                second_ns: now_ns,
                ..Refusals::default()
            };
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
            self.line("refused", &text, json!({"callers": before}));
        }
        self.line(kind, text, fields);
    }

    fn line(&self, kind: &str, text: &str, mut fields: Value) {
        // Names come from outside: nothing in them may move the cursor or begin a line.
        let text: String = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        if self.json {
            fields["time"] = json!(now_rfc3339());
            fields["event"] = json!(kind);
            fields["text"] = json!(text);
            write(&format!("{fields}\n"));
        } else {
            write(&format!("rubus: {text}\n"));
        }
    }
}

/// One line, in one piece. Serving goes on when nobody reads the log any more.
fn write(line: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn who(client: &Client) -> String {
    format!("client {} ({})", client.number, client.caller.name)
}

fn of_client(client: &Client) -> Value {
    json!({
        "client": client.number,
        "caller": client.caller.name,
        "export": client.export,
    })
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
