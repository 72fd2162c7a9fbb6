//! Whether an export says of all its bytes that they are zeros.

use rubus_nbd::client::lost;
use rubus_nbd::transport::Transport;
use rubus_nbd::wire::AllocationFlags;

use super::{CopyError, Export};

/// A server that tells less at a time than it takes to be asked so often might be asked for ever.
const MAX_QUESTIONS: u32 = 1 << 16;

/// Whether a whole export reads as zeros, as far as its server says; nothing when it does not say.
///
/// # Errors
/// If the connection breaks.
pub fn is_all_zero<T: Transport + 'static>(export: &Export<T>) -> Result<Option<bool>, CopyError> {
    if export.offer.allocation.is_none() {
        return Ok(None);
    }
    let size = export.offer.size_bytes;
    let mut client = export.take()?.client;
    let mut at = 0;
    for _ in 0..MAX_QUESTIONS {
        if at >= size {
            export.give_back(client);
            return Ok(Some(true));
        }
        let most = if export.offer.extended_headers { size - at } else { (size - at).min(1 << 31) };
        let mut answers = Vec::new();
        client
            .queue_status(0, at, most)
            .and_then(|()| client.exchange(&[], &mut [], &mut answers))
            .map_err(|error| CopyError::Trouble(format!("{}: {}", export.name, lost(&error))))?;
        let extents = client.take_extents(0);
        if extents.is_empty() {
            return Ok(None);
        }
        let is_zero = |flags| AllocationFlags(flags).has(AllocationFlags::ZERO);
        for extent in extents {
            if !is_zero(extent.flags) {
                export.give_back(client);
                return Ok(Some(false));
            }
            at = at.saturating_add(extent.length);
        }
    }
    Ok(None)
}
