//! Ceph clusters as targets. An image: QEMU's server reads and writes it past every cache, this program's NBD client
//! measures that, and the cluster is watched meanwhile.

mod nodes;
pub mod objects;
mod seconds;
mod standing;
mod watcher;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use rubus_host::clock;
use rubus_host::files::socket_place::SocketPlace;
use rubus_host::process::child::Server;
use rubus_measure::remote::{Remote, Wire};
use rubus_nbd_tools::target::Export;
use rubus_vocabulary::refused::Refused;
use rubus_vocabulary::result::NetworkFacts;

pub use self::nodes::{Node, Nodes};
pub use self::seconds::now_s;
use self::standing::{Standing, standing};
pub use self::watcher::Watcher;
use crate::watch::image::ImageName;

/// How long the server may take to open the image.
const OPENING: Duration = Duration::from_secs(20);

/// What the directories with sockets of servers are called.
const PREFIX: &str = "rubus-rbd-";
/// What serves the image.
const SERVER: &str = "qemu-nbd";

/// An image that is served to this program alone.
#[derive(Debug)]
pub struct Image {
    export: Export,
    facts: NetworkFacts,
    server: Mutex<Server>,
    /// Where the server's socket is.
    _place: SocketPlace,
}

/// What is to be done with an image.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// Nothing is written.
    pub is_read_only: bool,
    /// Connections at once.
    pub connections: u32,
}

/// Opens an image whose cluster is well, and begins to watch that.
///
/// # Errors
/// In words: what is not installed, or what the cluster, the pool or the image said. [`Refused`] where the image is in use
/// or the cluster has no room left.
pub fn open(name: &ImageName, wanted: Use) -> anyhow::Result<(Image, Arc<Watcher>)> {
    let trouble = || format!("cannot measure on {}", name.address());
    let standing = standing(name).map_err(anyhow::Error::msg).with_context(trouble)?;
    may_be_used(name, &standing, wanted)?;
    let watcher = Watcher::start(&name.client, standing.facts.clone());
    let image = Image::serve(name, wanted, &standing).with_context(trouble)?;
    Ok((image, Arc::new(watcher)))
}

/// Whether no other client uses the image, and the cluster has room for writes.
fn may_be_used(name: &ImageName, standing: &Standing, wanted: Use) -> anyhow::Result<()> {
    if wanted.is_read_only {
        return Ok(());
    }
    if let [first, others @ ..] = &standing.watchers[..] {
        let others = match others.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return Err(Refused(format!(
            "{name} is in use by {first}{others} (`rbd status {name}`): writing under it would destroy what it has there\n  \
             detach it there, or measure with --read-only; a client that was killed is forgotten after half a minute"
        ))
        .into());
    }
    has_room(standing, ", or measure with --read-only")
}

/// Whether writing would not be the cluster's last straw; else what to do but to make room.
fn has_room(standing: &Standing, or_else: &str) -> anyhow::Result<()> {
    if standing.full.is_empty() {
        return Ok(());
    }
    Err(Refused(format!(
        "the cluster has little room left ({}): a benchmark could stop all writing to it\n  \
         make room first{or_else}",
        standing.full.join("; ")
    ))
    .into())
}

impl Image {
    fn serve(name: &ImageName, wanted: Use, standing: &Standing) -> anyhow::Result<Image> {
        let place = SocketPlace::new(PREFIX).context("cannot make a directory for a socket")?;
        let socket = place.socket();
        let (socket_word, address): (String, String) =
            (socket.display().to_string(), name.address());
        let shared = format!("--shared={}", wanted.connections.max(1));
        // Past every cache of the client.
        let mut words = vec![
            "--format=raw",
            "--cache=none",
            "--discard=unmap",
            &shared,
            "--socket",
            &socket_word,
        ];
        if wanted.is_read_only {
            words.push("--read-only");
        }
        words.push(&address);
        let mut server = Server::start(SERVER, &words)?;
        wait_for(&mut server, &socket)?;
        let export =
            Export::open(&format!("nbd+unix:///?socket={socket_word}"), wanted.connections);
        let export =
            export.map_err(|error| ended(&mut server).map_or(error, anyhow::Error::msg))?;
        let facts = NetworkFacts {
            uri: address,
            peer: format!(
                "a Ceph cluster ({}, {} OSDs) through {SERVER}",
                standing.facts.layout, standing.facts.osds
            ),
            ..export.facts().clone()
        };
        Ok(Image { export, facts, server: Mutex::new(server), _place: place })
    }
}

/// Waits until the server listens.
fn wait_for(server: &mut Server, socket: &Path) -> anyhow::Result<()> {
    let end_ns = clock::monotonic_ns() + OPENING.as_nanos() as u64;
    while !socket.exists() {
        if let Some(words) = ended(server) {
            anyhow::bail!(words);
        }
        anyhow::ensure!(
            clock::monotonic_ns() < end_ns,
            "{SERVER} has not opened the image within {} s",
            OPENING.as_secs()
        );
        clock::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// That the server has ended, if it has: what it complained of, with what to do where that is known.
fn ended(server: &mut Server) -> Option<String> {
    let words = server.last_words()?;
    let hint = if words.contains("Unknown protocol 'rbd'") {
        "; its driver for RBD is missing (on Debian: apt install qemu-block-extra)"
    } else {
        ""
    };
    Some(format!("{SERVER} ended: {words}{hint}"))
}

impl Remote for Image {
    fn facts(&self) -> &NetworkFacts {
        &self.facts
    }

    fn connect(&self) -> Result<Box<dyn Wire>, String> {
        self.export.connect().map_err(|error| {
            let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
            ended(&mut server).unwrap_or(error)
        })
    }
}
