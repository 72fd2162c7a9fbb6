//! What `rubus nbd copy` opens: the two ends, past the guard, and the journal beside them.

pub mod destination;
mod kept_journal;
pub mod run;
pub mod source;

use std::sync::Arc;
use std::time::Duration;

use rubus_nbd::client::{Extras, Offer, Patience};
use rubus_nbd::connect::{Connection, Endpoint, connect_with};
use rubus_nbd::identity::Identity;

use crate::copy::Export;
use anyhow::Context;

/// What a copy wants of a server besides the usual.
const EXTRAS: Extras = Extras { extended_headers: true, allocation: true, fence: None };

/// Connects to an export. `patience` is the timeout for each answer, as long as the server's
/// machine is alive.
///
/// # Errors
/// If the address is invalid, or the connection or the handshake fails.
pub fn export(address: &str, patience: Duration) -> anyhow::Result<Export<Connection>> {
    let place = Arc::new(Endpoint::of(address)?);
    let known = Arc::clone(&place);
    let connect = move || {
        let (mut client, offer) = connect_with(&place, EXTRAS)?;
        client.set_patience(Patience { server: patience, ..Patience::OF_A_DISK });
        anyhow::Ok((client, offer))
    };
    let (client, offer) = connect().with_context(|| format!("cannot copy with {address}"))?;
    let name = known.uri.to_string();
    let again = name.clone();
    let dial = move || {
        connect().map_err(|error| format!("cannot connect to {again} once more: {error:#}"))
    };
    Ok(Export::new(name, client, offer, Arc::new(dial)))
}

/// What tells an export from everything else that could be served there. A server that says who it is may be
/// reached another way the next time.
fn mark_of(uri: &str, offer: &Offer) -> String {
    let identity = offer.description.as_deref().and_then(Identity::parse);
    match identity {
        Some(identity) => format!(
            "export {} generation {} of {} bytes",
            identity.export, identity.generation, offer.size_bytes
        ),
        None => format!(
            "export {uri} of {} bytes, {}",
            offer.size_bytes,
            offer.description.as_deref().unwrap_or("not described")
        ),
    }
}
