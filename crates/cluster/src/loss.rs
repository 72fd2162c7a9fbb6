//! What happens when a failure domain is lost, in facts and words.

use serde::Serialize;

use crate::capacity::Capacity;
use crate::design::Design;
use crate::layout::{FailureDomain, Layout};

/// What a loss does.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Loss {
    /// Failure domains that may be lost at the same time without losing data.
    pub survives: u32,
    /// Failure domains that may be lost while clients still read and write.
    pub serves_without: u32,
    /// Whether Ceph restores all chunks by itself after the first loss.
    pub heals: bool,
    /// Whether clients still write after the first loss although no chunk is to spare.
    pub writes_unprotected: bool,
    /// What that means, in sentences.
    pub words: Vec<String>,
}

/// What a loss does to a design that was checked.
pub fn loss(design: &Design, capacity: &Capacity) -> Loss {
    let layout = design.layout;
    let survives = layout.survives();
    let serves_without = layout.width() - layout.min_size();
    let writes_unprotected = layout.min_size() == layout.data();
    let thing = match design.domain {
        FailureDomain::Host => "board",
        FailureDomain::Osd => "disk",
    };
    let mut words = Vec::new();
    words.push(match survives {
        1 => format!("Any one {thing} may fail without loss of data."),
        n => format!("Any {n} {thing}s may fail at the same time without loss of data."),
    });
    if capacity.heals {
        words.push(format!(
            "After one {thing} is lost for 10 minutes, Ceph restores the missing chunks on the other {}.",
            capacity.domains - 1
        ));
    } else {
        words.push(format!(
            "It never heals by itself: {} needs {} {thing}s, and {} are left. Chunks stay missing until you replace the \
             {thing}.",
            layout.name(),
            layout.width(),
            capacity.domains - 1
        ));
    }
    if writes_unprotected && !capacity.heals {
        words.push(format!(
            "Meanwhile it goes on writing with nothing to spare: min_size is {}. A second loss, or one unreadable sector, \
             loses data.",
            layout.min_size()
        ));
    } else if writes_unprotected {
        words.push(format!(
            "Until it has healed it goes on writing with nothing to spare: min_size is {}.",
            layout.min_size()
        ));
    } else if survives > serves_without {
        words.push(format!(
            "After {} lost {thing}s reads and writes stop (min_size is {}), but the data is there.",
            serves_without + 1,
            layout.min_size()
        ));
    }
    match layout {
        Layout::Erasure { parity: 1, .. } => words.push(
            "m=1: Ceph's documentation strongly discourages it. A restart for an update takes the only parity away.".into(),
        ),
        Layout::Replica { copies: 2 } => words.push(
            "size=2: two copies that differ after a crash have no third to decide between them. Use it with a backup.".into(),
        ),
        _ => {}
    }
    let max_disks = design.groups.iter().map(|group| group.disks).max().unwrap_or(0);
    if design.domain == FailureDomain::Osd && max_disks > survives {
        words.push(format!(
            "Failure domain osd: a board with {max_disks} disks may hold {max_disks} chunks of an object, and the layout \
             survives {survives}. Losing that board loses data."
        ));
    } else if design.domain == FailureDomain::Osd && max_disks > 1 {
        words.push(
            "Failure domain osd: losing a board costs as many chunks as it has disks.".into(),
        );
    }
    Loss { survives, serves_without, heals: capacity.heals, writes_unprotected, words }
}
