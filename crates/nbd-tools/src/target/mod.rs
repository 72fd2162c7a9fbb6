//! NBD exports as targets: connects, learns what is offered, and fits the protocol's client to what
//! the measuring engine wants.

pub mod link;
pub mod over_ssh;
pub mod status;

use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use rubus_host::clock::monotonic_ns;
use rubus_measure::remote::{Completion, Remote, Request, RequestKind, Wire};
use rubus_nbd::client::{Answer, Client, Due, Offer, lost, refused};
use rubus_nbd::connect::{Connection, Endpoint, PATIENCE, connect, trust};
use rubus_nbd::uri::Uri;
use rubus_nbd::wire::{Command, CommandFlags, ErrorCode, TransmissionFlags};
use rubus_vocabulary::result::{NetworkBlockSizes, NetworkFacts, RoundTrip};

/// Number of smallest reads before the first job, or as many as fit this time.
const EXCHANGES: usize = 32;
const EXCHANGES_NS: u64 = 300_000_000;

/// An export to which there is a connection.
#[derive(Debug)]
pub struct Export {
    place: Endpoint,
    facts: NetworkFacts,
    /// The connection on which the facts were learnt: the first to be used.
    first: Mutex<Option<Client<Connection>>>,
}

impl Export {
    /// Connects to the export at that address, of which at most `connections` connections will be used at once.
    ///
    /// # Errors
    /// In words: the address, the network, the server or the export.
    pub fn open(address: &str, connections: u32) -> anyhow::Result<Export> {
        let uri = Uri::parse(address)?;
        let trouble = || format!("cannot measure on {address}");
        let tls = if uri.tls { Some(trust(&uri.tls_options).with_context(trouble)?) } else { None };
        let place = Endpoint { uri, tls };
        let (mut client, offer) = connect(&place).with_context(trouble)?;
        let can = |flag| offer.flags.has(flag);
        let blocks = offer.blocks();
        anyhow::ensure!(
            connections == 1 || can(TransmissionFlags::CAN_MULTI_CONN),
            "cannot measure on {address} with {connections} connections: the server does not promise \
             that all of them see the same data (multi-conn); leave --connections out"
        );
        let round_trip = round_trip(&mut client, &offer).with_context(trouble)?;
        let stream = client.transport().stream();
        let facts = NetworkFacts {
            uri: place.uri.to_string(),
            peer: stream.peer.clone(),
            export_bytes: offer.size_bytes,
            description: offer.description.clone(),
            handshake: offer.style.name().into(),
            structured_replies: offer.structured_replies,
            tls: match client.transport() {
                Connection::Plain(_) => None,
                Connection::Tls(tls) => Some(tls.description()),
            },
            block_sizes: NetworkBlockSizes {
                least_bytes: blocks.min_bytes,
                preferred_bytes: blocks.preferred_bytes,
                most_bytes: blocks.max_bytes,
                is_stated: offer.block_sizes.is_some(),
            },
            is_read_only: can(TransmissionFlags::READ_ONLY),
            is_rotational: can(TransmissionFlags::ROTATIONAL),
            can_flush: can(TransmissionFlags::SEND_FLUSH),
            can_fua: can(TransmissionFlags::SEND_FUA),
            can_trim: can(TransmissionFlags::SEND_TRIM),
            can_write_zeroes: can(TransmissionFlags::SEND_WRITE_ZEROES),
            can_multi_conn: can(TransmissionFlags::CAN_MULTI_CONN),
            connections,
            connect_ns: stream.connect_ns,
            round_trip,
        };
        Ok(Export { place, facts, first: Mutex::new(Some(client)) })
    }
}

impl Remote for Export {
    fn facts(&self) -> &NetworkFacts {
        &self.facts
    }

    fn connect(&self) -> Result<Box<dyn Wire>, String> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let client = match first {
            Some(client) => client,
            None => {
                let uri = &self.facts.uri;
                let again = |error| format!("cannot connect to {uri} again: {error:#}");
                let (client, offer) = connect(&self.place).map_err(again)?;
                if offer.size_bytes != self.facts.export_bytes {
                    return Err(format!(
                        "{uri} has changed its size from {} to {} bytes meanwhile",
                        self.facts.export_bytes, offer.size_bytes
                    ));
                }
                client
            }
        };
        Ok(Box::new(NbdWire { client, due: Vec::new(), answers: Vec::new() }))
    }
}

/// How long the smallest reads at the start of the export take, one after the other. A server that
/// fails or is silent is found out here.
fn round_trip(client: &mut Client<Connection>, offer: &Offer) -> anyhow::Result<Option<RoundTrip>> {
    let read_bytes = offer.blocks().min_bytes.max(512);
    if offer.size_bytes < u64::from(read_bytes) {
        return Ok(None);
    }
    let due = Due {
        slot: 0,
        command: Command::Read,
        flags: CommandFlags::NONE,
        offset: 0,
        length: read_bytes,
        memory_at: 0,
    };
    let mut memory = vec![0; read_bytes as usize];
    let mut took_ns = Vec::new();
    let start_ns = monotonic_ns();
    while took_ns.len() < EXCHANGES && monotonic_ns() - start_ns < EXCHANGES_NS {
        let (mut answers, sent_ns) = (Vec::new(), monotonic_ns());
        client
            .exchange_within(&[due], &mut memory, &mut answers, PATIENCE)
            .map_err(|error| anyhow::anyhow!("the first read failed: {}", lost(&error)))?;
        took_ns.push(monotonic_ns() - sent_ns);
        if let Some(answer) = answers.iter().find(|a| a.error != ErrorCode::NONE) {
            anyhow::bail!("the first read failed: {}", refused(answer, client.words()));
        }
    }
    took_ns.sort_unstable();
    Ok(Some(RoundTrip {
        read_bytes,
        exchanges: took_ns.len() as u32,
        least_ns: took_ns[0],
        median_ns: took_ns[took_ns.len() / 2],
    }))
}

/// A connection as the engine wants it.
struct NbdWire {
    client: Client<Connection>,
    due: Vec<Due>,
    answers: Vec<Answer>,
}

impl Wire for NbdWire {
    fn exchange(
        &mut self,
        due: &[Request],
        memory: &mut [u8],
        completions: &mut Vec<Completion>,
    ) -> Result<(), String> {
        self.due.clear();
        self.due.extend(due.iter().map(translate));
        self.answers.clear();
        self.client.exchange(&self.due, memory, &mut self.answers).map_err(|error| {
            let peer = &self.client.transport().stream().peer;
            format!("{peer}: {}", lost(&error))
        })?;
        for answer in &self.answers {
            let failed = answer.error != ErrorCode::NONE;
            completions.push(Completion {
                slot: answer.slot,
                failure: failed.then(|| refused(answer, self.client.words()).into()),
                hole_bytes: answer.hole_bytes,
            });
        }
        Ok(())
    }
}

impl Drop for NbdWire {
    fn drop(&mut self) {
        self.client.disconnect();
    }
}

fn translate(request: &Request) -> Due {
    let (command, flags) = match request.kind {
        RequestKind::Read => (Command::Read, CommandFlags::NONE),
        RequestKind::Write => (Command::Write, CommandFlags::NONE),
        RequestKind::DurableWrite => (Command::Write, CommandFlags::FUA),
        RequestKind::Flush => (Command::Flush, CommandFlags::NONE),
    };
    Due {
        slot: request.slot,
        command,
        flags,
        offset: request.offset,
        length: request.length,
        memory_at: request.memory_at,
    }
}
