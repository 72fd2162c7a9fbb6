//! The emulator's control socket, for what is done to a running board from outside: limits, faults,
//! unplugging. Protocol: QMP, <https://www.qemu.org/docs/master/interop/qmp-spec.html>.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// How long the emulator may take to answer. A board that is busy keeps it from answering.
const REPLY_LIMIT: Duration = Duration::from_secs(60);

/// A connection that has been greeted.
#[derive(Debug)]
pub struct Monitor {
    input: BufReader<UnixStream>,
    output: UnixStream,
    /// Events that came between answers, oldest first.
    events: Vec<Value>,
}

impl Monitor {
    /// Takes over a fresh connection.
    ///
    /// # Errors
    /// When the other end does not speak the protocol.
    pub fn over(connection: UnixStream) -> Result<Self> {
        connection.set_read_timeout(Some(REPLY_LIMIT))?;
        let output = connection.try_clone().context("could not share a socket")?;
        let mut monitor = Self {
            input: BufReader::new(connection),
            output,
            events: Vec::new(),
        };
        let greeting = monitor.line()?;
        if greeting.get("QMP").is_none() {
            bail!("the emulator's control socket greeted with {greeting}");
        }
        monitor.command("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// Gives a command and returns what the emulator answers.
    ///
    /// # Errors
    /// When the emulator refuses, with its words, or does not answer.
    pub fn command(&mut self, name: &str, arguments: Value) -> Result<Value> {
        let request = json!({"execute": name, "arguments": arguments});
        writeln!(self.output, "{request}").context("the emulator's control socket is closed")?;
        loop {
            let mut answer = self.line()?;
            if let Some(error) = answer.get("error") {
                bail!("the emulator refuses {request}: {}", error["desc"]);
            }
            if answer.get("return").is_some() {
                return Ok(answer["return"].take());
            }
            self.events.push(answer);
        }
    }

    /// Waits for an event for which `wanted` holds.
    ///
    /// # Errors
    /// When none comes.
    pub fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Result<()> {
        if let Some(at) = self.events.iter().position(&wanted) {
            self.events.drain(..=at);
            return Ok(());
        }
        self.events.clear();
        loop {
            let event = self.line()?;
            if wanted(&event) {
                return Ok(());
            }
        }
    }

    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        let read = self.input.read_line(&mut line);
        if read.context("the emulator does not answer")? == 0 {
            bail!("the emulator closed its control socket");
        }
        serde_json::from_str(&line).with_context(|| format!("the emulator answered {line:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_kept_for_who_waits_and_refusals_are_quoted() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let said = "{\"QMP\": {}}\n{\"return\": {}}\n{\"event\": \"A\"}\n{\"event\": \"B\"}\n\
                    {\"return\": 5}\n{\"error\": {\"desc\": \"no such node\"}}\n";
        theirs.write_all(said.as_bytes()).unwrap();
        let mut monitor = Monitor::over(ours).unwrap();
        assert_eq!(monitor.command("x", json!({})).unwrap(), 5);
        monitor.wait_for(|event| event["event"] == "B").unwrap();
        let refusal = monitor.command("y", json!({})).unwrap_err().to_string();
        assert!(refusal.contains("no such node"), "{refusal}");
    }
}
