//! The shapes of published figures, and how alike two boards are.

pub mod figures;

use serde::Serialize;

use crate::spec::{Direction, Pattern};

/// What was measured on one board and device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reference {
    /// Short unique name for the command line.
    pub id: &'static str,
    /// The board.
    pub board: &'static str,
    /// What kind of device it was.
    pub kind: DeviceKind,
    /// The device.
    pub device: &'static str,
    /// The filesystem, where it was said.
    pub filesystem: Option<&'static str>,
    /// The tool and its options.
    pub tool: &'static str,
    /// Where and when it was published.
    pub source: &'static str,
    /// What the source does not say or says oddly.
    pub note: &'static str,
    /// The figures.
    pub figures: &'static [Published],
}

/// One published figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Published {
    /// Name of the job.
    pub job: &'static str,
    /// Read or write.
    pub direction: Direction,
    /// Sequential or random.
    pub pattern: Pattern,
    /// Bytes per operation, where it was said.
    pub block_bytes: Option<u32>,
    /// Operations in flight, where it was said.
    pub queue_depth: Option<u32>,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

/// A published figure that no job of a suite measures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Aside {
    /// The board that was measured.
    pub board: &'static str,
    /// What was measured.
    pub what: &'static str,
    /// The published figure, in `unit`.
    pub value: f64,
    /// Unit of the figure, for people.
    pub unit: &'static str,
    /// Where and when it was published.
    pub source: &'static str,
}

/// Kinds of devices, as far as references are told apart by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// An SD card.
    Card,
    /// A disk behind USB.
    Usb,
    /// A network block device.
    Network,
}

/// 4 for the same model, 2 for the same generation, 1 for any Raspberry Pi.
pub fn board_likeness(ours: &str, published: &str) -> u32 {
    let generation = |name: &str| {
        let rest = name.strip_prefix("Raspberry Pi ")?;
        rest.chars().next().filter(char::is_ascii_digit)
    };
    if published == ours || ours.starts_with(&format!("{published} ")) {
        return 4;
    }
    match (generation(ours), generation(published)) {
        (Some(a), Some(b)) if a == b => 2,
        (Some(_), Some(_)) => 1,
        _ => 0,
    }
}
