//! `rubus serve`: disk images over the network.

use std::sync::Arc;

use rubus_nbd::server::handshake::TlsPolicy;
use rubus_nbd::server::overlay::Lasting;
use rubus_nbd::serving::certificate_files;
use rubus_nbd::serving::exports::{self, ServeRequest};
use rubus_nbd::serving::log::Log;
use rubus_nbd::serving::run::{Clones, Encryption, Ended, ServeOptions, serve};

use crate::args::{Encryption as Wanted, General, Serve};
use crate::exit::Exit;
use crate::guarding::LiveGuard;
use rubus_command::places::say;
use rubus_command::signals;

/// Descriptor of the first socket that a program is started with; see `sd_listen_fds(3)`.
const FIRST_SOCKET: i32 = 3;

/// Serves until it is asked to end.
pub fn run(general: &General, arguments: &Serve) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        general.machine.is_none(),
        "serve is about disks of this machine; leave --machine out"
    );
    if let Some(directory) = &arguments.make_certificates {
        let (known_as, clients) = (&arguments.known_as, &arguments.client);
        certificate_files::make(directory, known_as, clients, &mut |line| {
            // The files are there whether or not this is read.
            let _ = say(&format!("{line}\n"));
        })?;
        return Ok(Exit::Fine);
    }
    let options = options(arguments)?;
    signals::survive_closed_pipes();
    signals::survive_large_files();
    let log = Arc::new(Log::new(general.quiet, arguments.json));
    let on_end = |end: Box<dyn Fn() + Send>| signals::on_end(end);
    Ok(match serve(options, &LiveGuard, &log, &on_end)? {
        Ended::Well => Exit::Fine,
        Ended::Malformed => Exit::AnswerIsNo,
    })
}

fn options(arguments: &Serve) -> anyhow::Result<ServeOptions> {
    let clones = arguments.clone_per_client.as_ref();
    let encryption = Encryption {
        policy: match arguments.tls {
            Wanted::Off => TlsPolicy::Off,
            Wanted::Allow => TlsPolicy::Allow,
            Wanted::Require => TlsPolicy::Require,
        },
        certificates: arguments.certificates.clone(),
        verify_clients: arguments.verify_clients,
    };
    Ok(ServeOptions {
        certificates: encryption.read()?,
        encryption,
        wishes: exports::wishes(&request(arguments))?,
        losses: arguments.i_will_lose_everything_on.clone(),
        clones: clones.map(|directory| Clones {
            directory: directory.clone(),
            lasting: if arguments.temporary { Lasting::ThrownAway } else { Lasting::Kept },
            max: arguments.max_clones as usize,
            shared_certificate: arguments.shared_certificate,
        }),
        max_clients: arguments.max_clients as usize,
        stdin: arguments.stdin,
        inherited: inherited(),
        status: arguments.status.clone(),
    })
}

fn request(arguments: &Serve) -> ServeRequest {
    ServeRequest {
        paths: arguments.paths.clone(),
        name: arguments.name.clone(),
        description: arguments.description.clone(),
        size: arguments.size,
        preallocate: arguments.preallocate,
        read_only: arguments.read_only,
        sync: arguments.sync,
        listen: arguments.listen.clone(),
        unix: arguments.unix.clone(),
        allow: arguments.allow.clone(),
    }
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
