//! Heat, clock and supply, from the files in which the survey found something.

use crate::{Clock, Heat, Zone, number};
use rubus_host::Files;
use rubus_host::files::polled_file::PolledFile;
use rubus_vocabulary::machine::Machine;

use super::keep;

/// Mailbox tag "get throttled".
const GET_THROTTLED: u32 = 0x0003_0046;

pub(super) struct HeatFiles<'a> {
    zones: Vec<(String, PolledFile)>,
    clocks: Vec<(Clock, PolledFile)>,
    throttled: Throttled<'a>,
    undervoltage: Option<PolledFile>,
    /// What was seen at the last slow look.
    last: Heat,
}

/// Where the throttling bits are available.
enum Throttled<'a> {
    File(PolledFile),
    Mailbox(&'a dyn Files),
    Nowhere,
}

impl<'a> HeatFiles<'a> {
    pub(super) fn new(files: &'a dyn Files, machine: &Machine) -> HeatFiles<'a> {
        let power = &machine.power;
        let zones = power.temperatures.iter().filter_map(|zone| {
            zone.millicelsius.value()?;
            Some((zone.zone.clone(), keep(zone.millicelsius.source())?))
        });
        let clocks = machine.cpu.clocks.iter().filter_map(|clock| {
            clock.current_hz.value()?;
            // Without frequency scaling it is a line of another file, and does not change.
            let source = clock.current_hz.source();
            let file = source.ends_with("_freq").then(|| keep(source))??;
            let known = Clock { cores: clock.cores.clone(), hz: 0, max_hz: clock.max_hz.get() };
            Some((known, file))
        });
        let source = power.throttling.source();
        let throttled = match power.throttling.value() {
            Some(_) if source.starts_with("/sys") => keep(source).map(Throttled::File),
            Some(_) if source.starts_with("/dev/vcio") => Some(Throttled::Mailbox(files)),
            _ => None,
        };
        let alarm = &power.undervoltage_alarm;
        HeatFiles {
            zones: zones.collect(),
            clocks: clocks.collect(),
            throttled: throttled.unwrap_or(Throttled::Nowhere),
            undervoltage: alarm.value().and_then(|_| keep(alarm.source())),
            last: Heat::default(),
        }
    }

    /// The clock every time; heat and supply, which the firmware or a disk has to be asked for, when it is due.
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>, is_due: bool) -> Heat {
        if is_due {
            self.last.zones = self.temperatures(buffer);
            self.last.throttled = match &self.throttled {
                Throttled::File(file) => file.read(buffer).ok().and_then(hexadecimal),
                Throttled::Mailbox(files) => files.firmware_word(GET_THROTTLED).ok(),
                Throttled::Nowhere => None,
            };
            let alarm = self.undervoltage.as_ref();
            let alarm = alarm.and_then(|file| number(file.read(buffer).ok()?));
            self.last.undervoltage = alarm.map(|raised| raised != 0);
        }
        let clocks = self.clocks.iter().filter_map(|(clock, file)| {
            // The kernel counts in kHz.
            let hz = number(file.read(buffer).ok()?)?.saturating_mul(1000);
            Some(Clock { hz, ..clock.clone() })
        });
        self.last.clocks = clocks.collect();
        self.last.clone()
    }

    fn temperatures(&self, buffer: &mut Vec<u8>) -> Vec<Zone> {
        let each = self.zones.iter().filter_map(|(name, file)| {
            let text = std::str::from_utf8(file.read(buffer).ok()?).ok()?;
            Some(Zone { name: name.clone(), millicelsius: text.trim().parse().ok()? })
        });
        each.collect()
    }
}

/// Clock, heat and supply alone, all of them at every look.
pub struct HeatSampler<'a> {
    files: HeatFiles<'a>,
    buffer: Vec<u8>,
}

impl<'a> HeatSampler<'a> {
    /// Opens what there is on this machine, by what its survey has found.
    pub fn new(files: &'a dyn Files, machine: &Machine) -> HeatSampler<'a> {
        HeatSampler { files: HeatFiles::new(files, machine), buffer: Vec::new() }
    }

    /// Reads clocks, temperatures and the supply now.
    pub fn look(&mut self) -> Heat {
        self.files.read(&mut self.buffer, true)
    }
}

/// With or without "0x".
fn hexadecimal(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?.trim();
    u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_bits_are_hexadecimal() {
        assert_eq!(hexadecimal(b"50005\n"), Some(0x50005));
        assert_eq!(hexadecimal(b"0x0\n"), Some(0));
        assert_eq!(hexadecimal(b"\xff"), None);
    }
}
