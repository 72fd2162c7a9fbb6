//! The emulator's control socket, for what is done to a running board from outside: limits, faults,
//! unplugging. Protocol: QMP, <https://www.qemu.org/docs/master/interop/qmp-spec.html>.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// How long the emulator may take to answer. A board that is busy keeps it from answering.
const REPLY_LIMIT: Duration = Duration::from_secs(60);

/// Where in a PCI device's configuration the system writes (PCI Local Bus Specification 3.0, 6.1): command and status, the six base
/// addresses, the interrupt line.
const PCI_WRITABLE: [u32; 8] = [0x04, 0x10, 0x14, 0x18, 0x1c, 0x20, 0x24, 0x3c];

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
        let mut monitor = Self { input: BufReader::new(connection), output, events: Vec::new() };
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
    pub fn wait_for(&mut self, mut wanted: impl FnMut(&Value) -> bool) -> Result<()> {
        if let Some(at) = self.events.iter().position(&mut wanted) {
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

    /// Writes the state of a board that was paused into a file: its memory and its devices, but not its disks.
    ///
    /// # Errors
    /// When a device of it cannot be saved, or the file cannot be written.
    pub fn save(&mut self, file: &Path) -> Result<()> {
        self.migrate("migrate", &format!("exec:cat >{}", quoted(file)))
    }

    /// Reads the state of a saved board into an emulator that waits for it. The board stays paused.
    ///
    /// # Errors
    /// When it is of another board.
    pub fn load(&mut self, file: &Path) -> Result<()> {
        self.migrate("migrate-incoming", &format!("exec:cat {}", quoted(file)))
    }

    fn migrate(&mut self, command: &str, uri: &str) -> Result<()> {
        let events = json!({"capabilities": [{"capability": "events", "state": true}]});
        self.command("migrate-set-capabilities", events)?;
        // As fast as it goes: unlimited, 32 MiB/s would be the most.
        self.command("migrate-set-parameters", json!({"max-bandwidth": 1_u64 << 40}))?;
        self.command(command, json!({"uri": uri}))?;
        let mut ended = Value::Null;
        self.wait_for(|event| {
            let status = &event["data"]["status"];
            let is_end =
                event["event"] == "MIGRATION" && (status == "completed" || status == "failed");
            if is_end {
                ended = status.clone();
            }
            is_end
        })?;
        if ended == "failed" {
            let why = self.command("query-migrate", json!({}))?;
            bail!("the emulator could not {command} a board's state: {why}");
        }
        Ok(())
    }

    /// What a PCI device of a PC has in its configuration where the system writes: command, base addresses, interrupt line.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn pci_configuration(&mut self, device: &str) -> Result<Vec<u32>> {
        let address = self.pci_address(device)?;
        self.with_pci_ports(|monitor| {
            let read = |offset: &u32| {
                monitor.human(&format!("o /4w 0xcf8 {:#x}", address | offset))?;
                let said = monitor.human("i /4x 0xcfc")?;
                port_value(&said)
            };
            PCI_WRITABLE.iter().map(read).collect()
        })
    }

    /// Sets the same.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn set_pci_configuration(&mut self, device: &str, values: &[u32]) -> Result<()> {
        let address = self.pci_address(device)?;
        self.with_pci_ports(|monitor| {
            // The command, which switches the device on, comes last.
            for (offset, value) in PCI_WRITABLE.iter().zip(values).rev() {
                monitor.human(&format!("o /4w 0xcf8 {:#x}", address | offset))?;
                monitor.human(&format!("o /4w 0xcfc {value:#x}"))?;
            }
            Ok(())
        })
    }

    /// The system may have been paused between its write of an address and the access to it.
    fn with_pci_ports<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let said = self.human("i /4x 0xcf8")?;
        let done = act(self)?;
        self.human(&format!("o /4w 0xcf8 {:#x}", port_value(&said)?))?;
        Ok(done)
    }

    /// A device's configuration as the port 0xcf8 names it.
    fn pci_address(&mut self, device: &str) -> Result<u32> {
        let buses = self.command("query-pci", json!({}))?;
        let devices =
            buses.as_array().into_iter().flatten().flat_map(|bus| bus["devices"].as_array());
        let found = devices.flatten().find(|entry| entry["qdev_id"] == device);
        let found = found.with_context(|| format!("the board has no PCI device {device}"))?;
        let number = |key: &str| found[key].as_u64().and_then(|number| u32::try_from(number).ok());
        let (bus, slot, function) = (number("bus"), number("slot"), number("function"));
        let shifted = |number: Option<u32>, by: u32| number.map_or(0, |number| number << by);
        Ok(1 << 31 | shifted(bus, 16) | shifted(slot, 11) | shifted(function, 8))
    }

    /// A command of the monitor for people.
    fn human(&mut self, line: &str) -> Result<String> {
        let said = self.command("human-monitor-command", json!({"command-line": line}))?;
        Ok(said.as_str().unwrap_or_default().trim().to_owned())
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

/// The number in `portl[0x0cfc] = 0xfebf1000`.
fn port_value(said: &str) -> Result<u32> {
    let digits = said.rsplit_once("0x").map(|(_, digits)| digits);
    let value = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    value.with_context(|| format!("the emulator says {said:?} of a port"))
}

/// A path as a word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
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
