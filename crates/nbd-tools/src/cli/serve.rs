//! `rubus serve`: disk images over the network.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rubus_command::places::say;
use rubus_command::{Exit, General, inherited_sockets, signals};
use rubus_nbd::callers::{ListenAddress, Network};
use rubus_nbd::server::handshake::TlsPolicy;
use rubus_nbd::server::overlay::Lasting;
use rubus_vocabulary::verb::{GUARDED, Page};

use super::Outside;
use crate::serving::certificate_files;
use crate::serving::exports::{self, ServeRequest};
use crate::serving::log::Log;
use crate::serving::run::{Clones, Encryption, Ended, ServeOptions, serve};

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-serve",
    statuses: &[
        (0, "ended when asked"),
        (1, "the client of --stdin did not speak NBD"),
        (2, "could not start or continue"),
        GUARDED,
    ],
    examples: &[
        (
            "rubus serve disk.img --size 32GiB --listen 192.168.1.5",
            "Create an image if there is none, and serve it to the network.",
        ),
        (
            "rubus serve images/ --read-only --unix /run/images.sock",
            "Let programs on this machine read each image of a directory.",
        ),
    ],
};

/// Serve disk images over the network, as NBD exports.
///
/// PATH is an image, a directory of images (*.img, *.raw, *.iso), a block device, or a TOML file
/// with exports (repeatable). Any NBD client can use them: rubus, the Linux kernel, qemu, nbdcopy.
/// Without --listen, only programs on this machine can connect.
///
/// `rubus plan network-server` shows how to serve it at each boot.
///
/// On Ctrl-C or SIGTERM, finishes requests in flight, makes everything durable, and ends.
#[derive(Debug, Args)]
pub struct Serve {
    /// What to serve
    #[arg(value_name = "PATH", required_unless_present = "make_certificates", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Create the image with this size if it does not exist, such as 32GiB
    #[arg(long, value_name = "SIZE", value_parser = rubus_vocabulary::units::parse_size)]
    pub size: Option<u64>,
    /// Allocate the space for a new image now, so that it cannot run out later
    #[arg(long, requires = "size")]
    pub preallocate: bool,
    /// Name of the export [default: the file's name without .img or .raw]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Description of the export, shown to clients
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Listen on this address, such as 192.168.1.5:10809, 0.0.0.0 (all of IPv4), `[::]` (all of
    /// IPv6) or fe80::1%eth0 (repeatable) [default: 127.0.0.1:10809, unless --unix]
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub listen: Vec<ListenAddress>,
    /// Listen on a Unix socket at this path (repeatable)
    #[arg(long, value_name = "FILE")]
    pub unix: Vec<PathBuf>,
    /// Serve the one client that standard input is connected to
    #[arg(long, conflicts_with_all = ["listen", "unix", "status"])]
    pub stdin: bool,
    /// Allow no writes
    #[arg(long)]
    pub read_only: bool,
    /// Make every write durable before acknowledging it: slow, but nothing is lost even if this
    /// machine loses power
    #[arg(long)]
    pub sync: bool,
    /// Give each client a copy-on-write clone of the image, kept in this directory; clients ask for
    /// NAME/CLIENT, where CLIENT is a permanent name, such as the board's serial number (`rubus nbd
    /// clones`)
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath,
        conflicts_with_all = ["size", "sync", "read_only"])]
    pub clone_per_client: Option<PathBuf>,
    /// Keep the clones until they are reset or removed (the default)
    #[arg(long, requires = "clone_per_client", conflicts_with = "temporary")]
    pub keep: bool,
    /// Remove the clones when the server ends
    #[arg(long, alias = "throw-away", requires = "clone_per_client")]
    pub temporary: bool,
    /// Maximum number of clones
    #[arg(long, value_name = "N", requires = "clone_per_client", default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub max_clones: u32,
    /// Allowed client networks or addresses, such as 192.168.1.0/24 (a list, or repeatable)
    /// [default: all]
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    pub allow: Vec<Network>,
    /// Encrypt connections; needs --certificates
    #[arg(long, value_name = "MODE", default_value = "off")]
    pub tls: TlsMode,
    /// Directory with server-cert.pem and server-key.pem
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub certificates: Option<PathBuf>,
    /// Serve only clients with a certificate of their own, signed by the
    /// directory's ca-cert.pem
    #[arg(long, requires = "certificates")]
    pub verify_clients: bool,
    /// Create certificates for this machine and its clients in this directory, and exit
    #[arg(long, value_name = "DIR", conflicts_with = "paths", value_hint = clap::ValueHint::DirPath)]
    pub make_certificates: Option<PathBuf>,
    /// Create a certificate for the client of this name, in DIR/clients/NAME, signed by the
    /// authority in DIR (a list, or repeatable)
    #[arg(long, value_name = "NAME", requires = "make_certificates", value_delimiter = ',')]
    pub client: Vec<String>,
    /// With --clone-per-client and --verify-clients: let any client with a certificate of the
    /// authority open every clone
    #[arg(long, requires_all = ["clone_per_client", "verify_clients"])]
    pub shared_certificate: bool,
    /// Additional names or addresses of this machine for its certificate (a list, or repeatable)
    #[arg(long, value_name = "NAME", requires = "make_certificates", value_delimiter = ',')]
    pub known_as: Vec<String>,
    /// Maximum number of clients at once
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub max_clients: u32,
    /// Report the server's status as JSON lines to anyone who connects here
    #[arg(long, value_name = "FILE or ADDRESS:PORT")]
    pub status: Option<String>,
    /// Let clients overwrite what is on a block device; takes its serial number
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Vec<String>,
    /// Write the log as JSON lines
    #[arg(long = "json")]
    pub json: bool,
}

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TlsMode {
    /// Never
    Off,
    /// Up to each client
    Allow,
    /// Always: no plain-text connection learns or does anything
    Require,
}

/// Serves until it is asked to end.
pub fn run(general: &General, arguments: &Serve, outside: &dyn Outside) -> anyhow::Result<Exit> {
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
    Ok(match serve(options, &*outside.guard(), &log, &on_end)? {
        Ended::Well => Exit::Fine,
        Ended::Malformed => Exit::AnswerIsNo,
    })
}

fn options(arguments: &Serve) -> anyhow::Result<ServeOptions> {
    let clones = arguments.clone_per_client.as_ref();
    let encryption = Encryption {
        policy: match arguments.tls {
            TlsMode::Off => TlsPolicy::Off,
            TlsMode::Allow => TlsPolicy::Allow,
            TlsMode::Require => TlsPolicy::Require,
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
        inherited: inherited_sockets(),
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
