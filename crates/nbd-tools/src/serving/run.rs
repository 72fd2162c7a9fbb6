//! Serving disk images over the network, from opening them to the last flush.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use rubus_host::net::listening::{self, Listener};
use rubus_nbd::callers::ListenAddress;
use rubus_nbd::certificates::{AUTHORITY, SERVER, SERVER_KEY};
use rubus_nbd::connect::PemFile;
use rubus_nbd::server::disk::Disk;
use rubus_nbd::server::export_table::ExportTable;
use rubus_nbd::server::handshake::TlsPolicy;
use rubus_nbd::server::listener::{Event, Server, Settings};
use rubus_nbd::server::overlay::{CloneExports, Fleet, GoldenFile, Lasting};
use rubus_nbd::tls::TlsServerSettings;
use rubus_nbd::uri::{Server as UriServer, TlsOptions, Uri};
use rubus_nbd::wire::DEFAULT_PORT;
use rubus_vocabulary::units::bytes_iec;

use super::exports::{self, Ready, Wishes};
use super::image_identity;
use super::log::Log;
use super::status;
use crate::guard::Guard;

/// Calls back when the user, or the system, wants the server to end.
pub type OnEnd<'a> = dyn Fn(Box<dyn Fn() + Send>) -> anyhow::Result<()> + 'a;

/// How to serve.
pub struct ServeOptions {
    pub wishes: Wishes,
    /// What may be lost on devices, by their serial numbers.
    pub losses: Vec<String>,
    pub clones: Option<Clones>,
    pub encryption: Encryption,
    /// What [`Encryption::read`] gave.
    pub certificates: Option<TlsServerSettings>,
    pub max_clients: usize,
    /// The socket of the one client is standard input.
    pub stdin: bool,
    /// Numbers of the sockets that this program was started with.
    pub inherited: Range<i32>,
    /// Path or address where the status is served.
    pub status: Option<String>,
}

/// Each client gets a clone of its own.
pub struct Clones {
    pub directory: PathBuf,
    pub lasting: Lasting,
    pub max: usize,
    /// A certificate of a client opens all of them.
    pub shared_certificate: bool,
}

/// Whether connections are encrypted.
pub struct Encryption {
    pub policy: TlsPolicy,
    /// The directory of the server's certificate.
    pub certificates: Option<PathBuf>,
    /// Clients must show a certificate.
    pub verify_clients: bool,
}

/// How serving ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Well,
    /// The one client of standard input did not keep to the protocol.
    Malformed,
}

/// Serves until it is asked to end.
///
/// # Errors
/// In words: what cannot be served, or where it cannot listen; [`rubus_vocabulary::refused::Refused`] when data could be
/// lost.
pub fn serve(
    mut options: ServeOptions,
    guard: &dyn Guard,
    log: &Arc<Log>,
    on_end: &OnEnd<'_>,
) -> anyhow::Result<Ended> {
    let certificates = options.certificates.take();
    let options = &options;
    if let Some(clones) = &options.clones {
        return serve_clones(clones, options, certificates, log, on_end);
    }
    image_identity::sweep();
    let (ready, left_out) = exports::open_all(&options.wishes.exports, &options.losses, guard)?;
    for why in left_out {
        log.event(&Event::Trouble(why));
    }
    let disks: Vec<_> = ready
        .iter()
        .map(|ready| {
            let name = ready.offered.name.clone();
            (name, Arc::clone(&ready.disk), ready.path.clone())
        })
        .collect();
    for ready in &ready {
        log.say(&about(ready));
    }
    let settings = settings(options, certificates);
    let exports = ExportTable::new(ready.into_iter().map(|ready| ready.offered).collect());
    let told = Arc::clone(log);
    let server = Server::new(Arc::new(exports), settings, move |event| told.event(event))
        .context("cannot begin to serve")?;
    listening::allow_many_files();
    let ended = if options.stdin {
        serve_standard_input(&server)
    } else {
        serve_listeners(&server, options, log, on_end)
    };
    // One that fails keeps none of the others from being flushed.
    let flushed = disks.iter().map(|(name, disk, path)| {
        let flushed = disk.flush();
        if flushed.is_ok() {
            image_identity::ended(disk, path);
        }
        (name, flushed)
    });
    let failed: Vec<String> = flushed
        .filter_map(|(name, flushed)| Some(format!("export '{name}': {}", flushed.err()?)))
        .collect();
    anyhow::ensure!(
        failed.is_empty(),
        "ended, and NOT everything that was written is on stable storage: {}",
        failed.join("; ")
    );
    if ended.is_ok() {
        log.say("ended; everything is on stable storage");
    }
    ended
}

fn settings(options: &ServeOptions, certificates: Option<TlsServerSettings>) -> Settings {
    Settings {
        allow: options.wishes.allow.clone(),
        max_clients: options.max_clients,
        tls: options.encryption.policy,
        certificates,
        ..Settings::default()
    }
}

/// Serves each client a clone of its own.
fn serve_clones(
    clones: &Clones,
    options: &ServeOptions,
    certificates: Option<TlsServerSettings>,
    log: &Arc<Log>,
    on_end: &OnEnd<'_>,
) -> anyhow::Result<Ended> {
    let (directory, lasting) = (&*clones.directory, clones.lasting);
    let exports = &options.wishes.exports;
    let [wanted] = &exports[..] else {
        anyhow::bail!(
            "--clone-per-client is for one golden image, and there are {} exports",
            exports.len()
        );
    };
    let place = wanted.path.display();
    let golden = GoldenFile::open(&wanted.path)
        .with_context(|| format!("cannot serve clones of {place}"))?;
    let size = bytes_iec(golden.id().size_bytes);
    let fleet = Fleet::new(directory, golden, lasting, clones.max)
        .with_context(|| format!("cannot use the directory {}", directory.display()))?;
    let name = exports::name_of(wanted);
    exports::clones_fit(&name)?;
    let fate = match lasting {
        Lasting::Kept => format!("kept in {}", directory.display()),
        Lasting::ThrownAway => "discarded when this server ends".into(),
    };
    log.say(&format!("export '{name}/CLIENT': {size}, a clone of {place} for each CLIENT, {fate}"));
    let words = wanted.description.clone().unwrap_or_default();
    let exports = CloneExports::new(name.clone(), words, fleet);
    let verifies = options.encryption.verify_clients;
    let is_bound = verifies && !clones.shared_certificate;
    let exports = Arc::new(if is_bound { exports.bound_to_certificates() } else { exports });
    if is_bound {
        log.say(&format!(
            "'{name}/CLIENT' is opened with a certificate for CLIENT alone (`rubus serve --make-certificates DIR --client \
             CLIENT`); --shared-certificate gives that up"
        ));
    } else if verifies {
        log.say("--shared-certificate: anyone with any certificate can open every clone");
    }
    let (store, told): (Arc<CloneExports>, _) = (Arc::clone(&exports), Arc::clone(log));
    let settings = settings(options, certificates);
    let server = Server::new(store, settings, move |event| told.event(event))
        .context("cannot begin to serve")?;
    listening::allow_many_files();
    // Clients don't wait for what a killed server has left, unless it is their own.
    let (left, told) = (Arc::clone(&exports), Arc::clone(log));
    std::thread::spawn(move || {
        if let Err(error) = left.settle() {
            let why = format!("cannot look for clones that a killed server left: {error}");
            told.event(&Event::Trouble(why));
        }
        // After that: clones that were moved here still have what they need in memory.
        image_identity::sweep();
    });
    let ended = if options.stdin {
        serve_standard_input(&server)
    } else {
        serve_listeners(&server, options, log, on_end)
    };
    exports.close().context("ended, and NOT everything that was written is on stable storage")?;
    if ended.is_ok() {
        log.say("ended; everything is on stable storage");
    }
    ended
}

impl Encryption {
    /// What encryption needs, read now.
    ///
    /// # Errors
    /// When the wishes contradict each other, or a certificate cannot be read.
    pub fn read(&self) -> anyhow::Result<Option<TlsServerSettings>> {
        if self.policy == TlsPolicy::Off {
            anyhow::ensure!(
                self.certificates.is_none(),
                "certificates are of no use without TLS; add --tls require (or allow)"
            );
            return Ok(None);
        }
        anyhow::ensure!(
            self.policy == TlsPolicy::Require || !self.verify_clients,
            "with --tls allow a client can do without TLS and show no certificate; \
             --verify-clients needs --tls require"
        );
        let directory = self.certificates.as_ref().context(
            "TLS needs certificates: name their directory with --certificates DIR; \
         `rubus serve --make-certificates DIR` makes them",
        )?;
        let certificate = PemFile::read(directory.join(SERVER))?;
        let key = PemFile::read(directory.join(SERVER_KEY))?;
        let authority = if self.verify_clients {
            Some(PemFile::read(directory.join(AUTHORITY))?)
        } else {
            None
        };
        let authority = authority.as_ref().map(PemFile::pem);
        let settings = TlsServerSettings::new(certificate.pem(), key.pem(), authority)?;
        Ok(Some(settings))
    }
}

fn serve_standard_input(server: &Arc<Server>) -> anyhow::Result<Ended> {
    let (stream, caller) = listening::standard_input().context(
        "standard input is no socket; --stdin is for programs that start rubus with one",
    )?;
    let gone = server
        .run_one(stream, caller)
        .map_err(|why| anyhow::anyhow!("no agreement with the client: {why}"))?;
    Ok(match gone {
        rubus_nbd::server::Gone::Malformed(_) => Ended::Malformed,
        _ => Ended::Well,
    })
}

fn serve_listeners(
    server: &Arc<Server>,
    options: &ServeOptions,
    log: &Log,
    on_end: &OnEnd<'_>,
) -> anyhow::Result<Ended> {
    let listeners = listeners(options)?;
    for listener in &listeners {
        log.say(&format!("listening on {}", address_of(listener, options.encryption.policy)));
    }
    warn_of_the_public(&listeners, options, log);
    let status = match &options.status {
        None => None,
        Some(place) => Some(Arc::new(status::listen(place)?)),
    };
    if let Some(listener) = &status {
        log.say(&format!("status on {}", listener.place()));
        status::answer(Arc::clone(listener), Arc::clone(server));
    }
    let stopper = Arc::clone(server);
    on_end(Box::new(move || stopper.stop()))?;
    server.run(listeners).context("cannot go on serving")?;
    // Its thread keeps the listener, so its socket would stay.
    if let Some(listener) = &status {
        listener.remove();
    }
    Ok(Ended::Well)
}

/// What to listen on: the sockets passed at start, or those that were asked for, or the default port
/// on the loopback address.
fn listeners(options: &ServeOptions) -> anyhow::Result<Vec<Listener>> {
    let wishes = &options.wishes;
    let mut listeners = Vec::new();
    for number in options.inherited.clone() {
        listeners.push(Listener::inherited(number)?);
    }
    let mut addresses = wishes.listen.clone();
    if listeners.is_empty() && wishes.unix.is_empty() && addresses.is_empty() {
        addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)).into());
    }
    for ListenAddress { address, zone } in addresses {
        listeners.push(match zone {
            None => Listener::tcp(address)?,
            Some(zone) => Listener::tcp_on(address, &zone)?,
        });
    }
    for path in &wishes.unix {
        listeners.push(Listener::unix(path)?);
    }
    Ok(listeners)
}

fn about(ready: &Ready) -> String {
    let manner = if ready.read_only { ", read-only" } else { "" };
    format!("export '{}': {}{manner}", ready.offered.name, ready.told)
}

/// The address of an export here, as clients write it, without its name.
fn address_of(listener: &Listener, tls: TlsPolicy) -> String {
    let server = match listener.address() {
        None => UriServer::Unix(listener.place().into()),
        Some(address) => UriServer::Tcp {
            host: match listener.interface() {
                None => address.ip().to_string(),
                Some(interface) => format!("{}%{interface}", address.ip()),
            },
            port: address.port(),
        },
    };
    let uri = Uri {
        tls: tls == TlsPolicy::Require,
        server,
        export: String::new(),
        tls_options: TlsOptions::default(),
    };
    uri.to_string()
}

/// Says what it means to listen where others can connect.
fn warn_of_the_public(listeners: &[Listener], options: &ServeOptions, log: &Log) {
    let wishes = &options.wishes;
    let required = options.encryption.policy == TlsPolicy::Require;
    // Then only those come in whom the owner has given a certificate.
    if required && options.encryption.verify_clients {
        return;
    }
    let is_public = |address: SocketAddr| !address.ip().is_loopback();
    let mut public = listeners.iter().filter_map(Listener::address);
    if !public.any(is_public) {
        return;
    }
    let who = match &wishes.allow[..] {
        [] => "anyone who reaches this address".into(),
        networks => {
            let names: Vec<_> = networks.iter().map(ToString::to_string).collect();
            format!("every machine in {}", names.join(", "))
        }
    };
    let what = if wishes.exports.iter().all(|export| export.read_only) {
        "read"
    } else {
        "read and overwrite"
    };
    let advice = match (wishes.allow.is_empty(), what) {
        (true, "read") => "; --allow says who may connect",
        (true, _) => "; --allow says who may connect, --read-only forbids writing",
        (false, _) => "",
    };
    if required {
        log.say(&format!(
            "with TLS, but without --verify-clients: {who} can {what} these disks{advice}"
        ));
        return;
    }
    log.say(&format!(
        "without TLS: {who} can {what} these disks, and anyone on the path can see and change \
         what passes{advice}"
    ));
}
