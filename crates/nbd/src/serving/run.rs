//! `rubus serve`: disk images over the network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use rubus_host::listening::{self, Listener};
use rubus_nbd::certificates::{AUTHORITY, SERVER, SERVER_KEY};
use rubus_nbd::connect::PemFile;
use rubus_nbd::server::disk::Disk;
use rubus_nbd::server::export_table::ExportTable;
use rubus_nbd::server::handshake::TlsPolicy;
use rubus_nbd::server::listener::{Event, Server, Settings};
use rubus_nbd::server::overlay::{CloneExports, Fleet, GoldenFile, Lasting};
use rubus_nbd::tls::TlsServerSettings;
use rubus_nbd::wire::DEFAULT_PORT;
use rubus_vocabulary::units::bytes_iec;

use super::certificates;
use crate::args::{Encryption, General, Serve};
use crate::exit::Exit;
use crate::serving::exports::{self, Ready, Wishes};
use crate::serving::identity;
use crate::serving::log::Log;
use crate::serving::status;
use crate::signals;

/// Descriptor of the first socket that a program is started with; see `sd_listen_fds(3)`.
const FIRST_SOCKET: i32 = 3;

/// Serves until it is asked to end.
pub fn run(general: &General, arguments: &Serve) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        general.machine.is_none(),
        "serve is about disks of this machine; leave --machine out"
    );
    if let Some(directory) = &arguments.make_certificates {
        return certificates::make(directory, &arguments.known_as, &arguments.client);
    }
    let (tls, certificates) = encryption(arguments)?;
    signals::survive_closed_pipes();
    signals::survive_large_files();
    let log = Arc::new(Log::new(general.quiet, arguments.json));
    let wishes = exports::wishes(arguments)?;
    if let Some(directory) = &arguments.clone_per_client {
        let settings = settings(arguments, &wishes, tls, certificates);
        return serve_clones(directory, arguments, &wishes, settings, &log);
    }
    identity::sweep();
    let (ready, left_out) =
        exports::open_all(&wishes.exports, &arguments.i_will_lose_everything_on)?;
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
    let settings = settings(arguments, &wishes, tls, certificates);
    let exports = ExportTable::new(ready.into_iter().map(|ready| ready.offered).collect());
    let told = Arc::clone(&log);
    let server = Server::new(Arc::new(exports), settings, move |event| told.event(event))
        .context("cannot begin to serve")?;
    listening::allow_many_files();
    let ended = match arguments.stdin {
        true => serve_standard_input(&server),
        false => serve_listeners(&server, arguments, &wishes, &log),
    };
    // One that fails keeps none of the others from being flushed.
    let flushed = disks.iter().map(|(name, disk, path)| {
        let flushed = disk.flush();
        if flushed.is_ok() {
            identity::ended(disk, path);
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
    log.say("ended; everything is on stable storage");
    ended
}

fn settings(
    arguments: &Serve,
    wishes: &Wishes,
    tls: TlsPolicy,
    certificates: Option<TlsServerSettings>,
) -> Settings {
    Settings {
        allow: wishes.allow.clone(),
        max_clients: arguments.max_clients as usize,
        tls,
        certificates,
        ..Settings::default()
    }
}

/// Serves each client a clone of its own.
fn serve_clones(
    directory: &Path,
    arguments: &Serve,
    wishes: &Wishes,
    settings: Settings,
    log: &Arc<Log>,
) -> anyhow::Result<Exit> {
    let [wanted] = &wishes.exports[..] else {
        anyhow::bail!(
            "--clone-per-client is for one golden image, and there are {} exports",
            wishes.exports.len()
        );
    };
    let place = wanted.path.display();
    let golden = GoldenFile::open(&wanted.path)
        .with_context(|| format!("cannot serve clones of {place}"))?;
    let lasting = match arguments.throw_away {
        true => Lasting::ThrownAway,
        false => Lasting::Kept,
    };
    let size = bytes_iec(golden.id().size_bytes);
    let fleet = Fleet::new(directory, golden, lasting, arguments.max_clones as usize)
        .with_context(|| format!("cannot use the directory {}", directory.display()))?;
    let name = exports::name_of(wanted);
    let fate = match lasting {
        Lasting::Kept => format!("kept in {}", directory.display()),
        Lasting::ThrownAway => "discarded when this server ends".into(),
    };
    log.say(&format!(
        "export '{name}/CLIENT': {size}, a clone of {place} for each CLIENT, {fate}"
    ));
    let words = wanted.description.clone().unwrap_or_default();
    let exports = CloneExports::new(name.clone(), words, fleet);
    let is_bound = arguments.verify_clients && !arguments.shared_certificate;
    let exports = Arc::new(match is_bound {
        true => exports.bound_to_certificates(),
        false => exports,
    });
    match arguments.verify_clients {
        true if is_bound => log.say(&format!(
            "'{name}/CLIENT' is opened with a certificate for CLIENT alone (`rubus serve --make-certificates DIR --client \
             CLIENT`); --shared-certificate gives that up"
        )),
        true => log.say("--shared-certificate: anyone with any certificate can open every clone"),
        false => {}
    }
    let (store, told): (Arc<CloneExports>, _) = (Arc::clone(&exports), Arc::clone(log));
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
        identity::sweep();
    });
    let ended = match arguments.stdin {
        true => serve_standard_input(&server),
        false => serve_listeners(&server, arguments, wishes, log),
    };
    exports
        .close()
        .context("ended, and NOT everything that was written is on stable storage")?;
    log.say("ended; everything is on stable storage");
    ended
}

/// Whether connections are encrypted, and what for that is needed.
fn encryption(arguments: &Serve) -> anyhow::Result<(TlsPolicy, Option<TlsServerSettings>)> {
    let policy = match arguments.tls {
        Encryption::Off => {
            anyhow::ensure!(
                arguments.certificates.is_none(),
                "certificates are of no use without TLS; add --tls require (or allow)"
            );
            return Ok((TlsPolicy::Off, None));
        }
        Encryption::Allow => TlsPolicy::Allow,
        Encryption::Require => TlsPolicy::Require,
    };
    anyhow::ensure!(
        policy == TlsPolicy::Require || !arguments.verify_clients,
        "with --tls allow a client can do without TLS and show no certificate; \
         --verify-clients needs --tls require"
    );
    let directory = arguments.certificates.as_ref().context(
        "TLS needs certificates: name their directory with --certificates DIR; \
         `rubus serve --make-certificates DIR` makes them",
    )?;
    let certificate = PemFile::read(directory.join(SERVER))?;
    let key = PemFile::read(directory.join(SERVER_KEY))?;
    let authority = match arguments.verify_clients {
        true => Some(PemFile::read(directory.join(AUTHORITY))?),
        false => None,
    };
    let authority = authority.as_ref().map(PemFile::pem);
    let settings = TlsServerSettings::new(certificate.pem(), key.pem(), authority)?;
    Ok((policy, Some(settings)))
}

fn serve_standard_input(server: &Arc<Server>) -> anyhow::Result<Exit> {
    let (stream, caller) = listening::standard_input().context(
        "standard input is no socket; --stdin is for programs that start rubus with one",
    )?;
    let gone = server
        .run_one(stream, caller)
        .map_err(|why| anyhow::anyhow!("no agreement with the client: {why}"))?;
    Ok(match gone {
        rubus_nbd::server::Gone::Malformed(_) => Exit::AnswerIsNo,
        _ => Exit::Fine,
    })
}

fn serve_listeners(
    server: &Arc<Server>,
    arguments: &Serve,
    wishes: &Wishes,
    log: &Log,
) -> anyhow::Result<Exit> {
    let listeners = listeners(wishes)?;
    for listener in &listeners {
        log.say(&format!(
            "listening on {}",
            address_of(listener, arguments.tls)
        ));
    }
    warn_of_the_public(&listeners, wishes, arguments, log);
    let status = match &arguments.status {
        None => None,
        Some(place) => Some(Arc::new(status::listen(place)?)),
    };
    if let Some(listener) = &status {
        log.say(&format!("status on {}", listener.place()));
        status::answer(Arc::clone(listener), Arc::clone(server));
    }
    let stopper = Arc::clone(server);
    signals::on_end(move || stopper.stop())?;
    server.run(listeners).context("cannot go on serving")?;
    // Its thread keeps the listener, so its socket would stay.
    if let Some(listener) = &status {
        listener.remove();
    }
    Ok(Exit::Fine)
}

/// What to listen on: sockets that we were started with, or those that are wished for, or the usual
/// port of this machine alone.
fn listeners(wishes: &Wishes) -> anyhow::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for number in inherited() {
        listeners.push(Listener::inherited(number)?);
    }
    let mut addresses = wishes.listen.clone();
    if listeners.is_empty() && wishes.unix.is_empty() && addresses.is_empty() {
        addresses.push((Ipv4Addr::LOCALHOST, DEFAULT_PORT).into());
    }
    for address in addresses {
        listeners.push(Listener::tcp(address)?);
    }
    for path in &wishes.unix {
        listeners.push(Listener::unix(path)?);
    }
    Ok(listeners)
}

/// Numbers of the sockets that systemd, or whoever does as it does, has started us with.
fn inherited() -> std::ops::Range<i32> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<i32>().ok();
    let for_us = number("LISTEN_PID").is_some_and(|pid| pid == std::process::id() as i32);
    match number("LISTEN_FDS") {
        Some(count) if for_us && (1..1024).contains(&count) => FIRST_SOCKET..FIRST_SOCKET + count,
        _ => FIRST_SOCKET..FIRST_SOCKET,
    }
}

fn about(ready: &Ready) -> String {
    let manner = match ready.read_only {
        true => ", read-only",
        false => "",
    };
    format!("export '{}': {}{manner}", ready.offered.name, ready.told)
}

/// The address of an export here, as clients write it, without its name.
fn address_of(listener: &Listener, tls: Encryption) -> String {
    let scheme = match tls {
        Encryption::Off | Encryption::Allow => "nbd",
        Encryption::Require => "nbds",
    };
    match listener.address() {
        Some(address) if address.port() == DEFAULT_PORT => {
            format!("{scheme}://{}/", host(address.ip()))
        }
        Some(address) => format!("{scheme}://{}:{}/", host(address.ip()), address.port()),
        None => format!("{scheme}+unix:///?socket={}", listener.place()),
    }
}

fn host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Says what it means to listen where others can connect.
fn warn_of_the_public(listeners: &[Listener], wishes: &Wishes, arguments: &Serve, log: &Log) {
    let required = arguments.tls == Encryption::Require;
    // Then only those come in whom the owner has given a certificate.
    if required && arguments.verify_clients {
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
    let what = match wishes.exports.iter().all(|export| export.read_only) {
        true => "read",
        false => "read and overwrite",
    };
    let advice = match wishes.allow.is_empty() {
        true => "; --allow says who may connect, --read-only forbids writing",
        false => "",
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
