//! What is said of clones, in words and as JSON.

use rubus_nbd::server::overlay::{CloneState, Kind, Listed};
use rubus_vocabulary::units::bytes_iec;

use crate::documents::NbdCloneDocument;

fn state(state: &CloneState) -> &'static str {
    match state {
        CloneState::Closed => "closed",
        CloneState::Open => "in use",
        CloneState::Left => "left by a server that was killed",
        CloneState::Unusable(_) => "unusable",
    }
}

/// A clone for people.
pub fn as_text(clone: &Listed) -> String {
    let mut text = format!("{}  {}", clone.name, state(&clone.state));
    if let Some(contents) = &clone.contents {
        let own = match (contents.kind, contents.own_bytes) {
            (Kind::Shared, _) => format!(
                "{} on disk, partly shared with the golden image",
                bytes_iec(clone.taken_bytes)
            ),
            (Kind::Map, Some(bytes)) => {
                format!("{} of its own, {} on disk", bytes_iec(bytes), bytes_iec(clone.taken_bytes))
            }
            (Kind::Map, None) => format!("{} on disk", bytes_iec(clone.taken_bytes)),
        };
        text += &format!(
            "\n  {} disk, {own}, generation {}\n  of {}",
            bytes_iec(contents.size_bytes),
            contents.generation,
            contents.golden.display()
        );
    }
    if let CloneState::Unusable(why) = &clone.state {
        text += &format!("\n  {why}");
    }
    text + "\n"
}

/// A clone for programs.
pub fn document(clone: &Listed) -> NbdCloneDocument<'_> {
    let contents = clone.contents.as_ref();
    NbdCloneDocument {
        name: clone.name.to_string(),
        standing: match clone.state {
            CloneState::Closed => "closed",
            CloneState::Open => "in-use",
            CloneState::Left => "left",
            CloneState::Unusable(_) => "unusable",
        },
        why: match &clone.state {
            CloneState::Unusable(why) => Some(why),
            _ => None,
        },
        taken_bytes: clone.taken_bytes,
        generation: contents.map(|contents| contents.generation),
        size_bytes: contents.map(|contents| contents.size_bytes),
        own_bytes: contents.and_then(|contents| contents.own_bytes),
        is_shared: contents.map(|contents| contents.kind == Kind::Shared),
        golden: contents.map(|contents| contents.golden.display().to_string()),
    }
}
