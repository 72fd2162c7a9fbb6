//! A trial of settings that was cut off, as `rubus status` tells of it.

use rubus_command::places;
use rubus_host::Live;
use rubus_host::live::hands::lock;

use crate::record;

/// What `rubus status` says of a trial that was cut off; nothing where none was.
pub fn words() -> Option<String> {
    let directory = places::tuning();
    let live = Live::new();
    let found = match record::Record::load(&directory, &live) {
        Ok(found) => found?,
        Err(error) => return Some(error.to_string()),
    };
    if record::boot(&live).is_ok_and(|boot| boot != found.boot) {
        return None;
    }
    let settings = found.entries.len();
    let settings = match settings {
        1 => "1 setting".to_string(),
        more => format!("{more} settings"),
    };
    Some(match lock(&record::lock(&directory)) {
        Ok(None) => format!("`rubus tune` is at work: {settings} under trial"),
        Ok(Some(_)) => format!(
            "a `rubus tune` was cut off and left {settings} changed; put back: sudo rubus tune --restore"
        ),
        // Only root can tell.
        Err(_) => format!(
            "a `rubus tune` is at work, or was cut off and left {settings} changed; see: sudo rubus status"
        ),
    })
}
