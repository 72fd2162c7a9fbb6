//! What would be lost: what the bytes of the device and of its partitions say.
//!
//! Only a part of the device is read: both ends of it and of every partition, and a few blocks
//! spread between. A device counts as blank when all of that is zero.

use rubus_core::signature::{self, END_BYTES, Kind, Window, all_zero};
use rubus_host::blockdev::OpenDevice;

use super::facts::{Content, SpanOnDisk};

/// How many blocks between the ends are looked at, and how long each is.
const SAMPLES: u64 = 62;
const SAMPLE_BYTES: usize = 4096;

/// No table that a person made has more; the rest is counted.
const MOST_PARTITIONS: usize = 32;

/// Everything on the device, itself first, then its partitions in the order of the disk. Empty
/// only for a device that is blank and has no partitions. What cannot be read counts as content.
pub(super) fn look(device: &OpenDevice, partitions: &[SpanOnDisk]) -> Vec<Content> {
    let whole = SpanOnDisk {
        name: String::new(),
        start_bytes: 0,
        size_bytes: device.size_bytes(),
    };
    let on = |partition: Option<&str>, what: String, size_bytes: Option<u64>| Content {
        partition: partition.map(str::to_string),
        what,
        size_bytes,
    };
    let mut found = Vec::new();
    let own = span(device, &whole);
    let partitions = match &own {
        Ok(own) if partitions.is_empty() => own.partitions.clone(),
        _ => partitions.to_vec(),
    };
    match own {
        Ok(own) if own.signatures.is_empty() => {
            let middle = if own.blank { middle(device) } else { None };
            let what = match (own.blank, middle) {
                (true, None) => None,
                (true, Some(why)) => Some(why),
                (false, _) => Some("data of an unknown kind".to_string()),
            };
            if let Some(what) = what.filter(|_| partitions.is_empty()) {
                found.push(on(None, what, None));
            }
        }
        Ok(own) => found.extend(own.signatures.into_iter().map(|what| on(None, what, None))),
        Err(why) => found.push(on(None, unreadable(&why), None)),
    }
    for partition in partitions.iter().take(MOST_PARTITIONS) {
        let what = match span(device, partition) {
            Ok(own) if !own.signatures.is_empty() => own.signatures.join(" and "),
            Ok(own) if own.blank => "nothing but zeros at both ends".to_string(),
            Ok(_) => "data of an unknown kind".to_string(),
            Err(why) => unreadable(&why),
        };
        found.push(on(Some(&partition.name), what, Some(partition.size_bytes)));
    }
    if let Some(more) = partitions
        .len()
        .checked_sub(MOST_PARTITIONS)
        .filter(|n| *n > 0)
    {
        found.push(on(None, format!("{more} more partitions"), None));
    }
    found
}

fn unreadable(why: &str) -> String {
    format!("something that cannot be told: {why}")
}

struct SpanContents {
    /// In words.
    signatures: Vec<String>,
    /// Whether both ends are all zero.
    blank: bool,
    /// The partitions that a table in it lists.
    partitions: Vec<SpanOnDisk>,
}

fn span(device: &OpenDevice, span: &SpanOnDisk) -> Result<SpanContents, String> {
    let end_bytes = span.size_bytes.min(END_BYTES as u64);
    let last_begins = span.size_bytes - end_bytes;
    let read = |offset: u64| -> Result<Vec<u8>, String> {
        let at = span
            .start_bytes
            .checked_add(offset)
            .ok_or("it lies beyond any device")?;
        device.read(at, end_bytes as usize)
    };
    let first = read(0)?;
    let last = read(last_begins)?;
    let window = Window::new(span.size_bytes, &first, &last)
        .with_logical_block(device.logical_block_bytes());
    let signatures = signature::sniff(&window);
    let divided = signatures
        .iter()
        .any(|found| matches!(found.kind, Kind::PartitionTable(_)));
    let partitions = signature::partitions(&window)
        .into_iter()
        .map(|entry| SpanOnDisk {
            name: format!("partition {}", entry.number),
            start_bytes: span.start_bytes.saturating_add(entry.start_bytes),
            size_bytes: entry.size_bytes,
        });
    Ok(SpanContents {
        partitions: partitions.filter(|_| divided).collect(),
        signatures: signatures.iter().map(|found| found.phrase()).collect(),
        blank: all_zero(&first) && all_zero(&last),
    })
}

/// Data between blank ends, from a few blocks; none when those are zero as well.
fn middle(device: &OpenDevice) -> Option<String> {
    let size = device.size_bytes();
    let between = size.checked_sub(2 * END_BYTES as u64)?;
    for sample in 0..SAMPLES {
        let offset = END_BYTES as u64 + between / SAMPLES * sample;
        match device.read(offset, SAMPLE_BYTES) {
            Ok(bytes) if all_zero(&bytes) => {}
            Ok(_) => return Some("data of an unknown kind behind a blank start".to_string()),
            Err(why) => return Some(unreadable(&why)),
        }
    }
    None
}
