//! A server of disk images (NBD) at each boot: systemd holds the sockets, and behind them is `rubus serve` with few rights.

mod export;
mod texts;
mod tls;
mod words;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::{
    NodeKind, OptionSpec, PathState, PlanBuilder, PlanInput, Queries, Recipe, Wishes, mounting,
    programs, units, yes_or_no,
};
use export::Export;
use rubus_change::plan::Action;
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::steps::{MakeImage, ReadUnits, StartServer};
use rubus_nbd::callers::{NBD_PORT, Network, listen_address};
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::units::parse_size;
use tls::Tls;

pub(super) static RECIPE: Recipe = Recipe {
    name: "network-server",
    title: "Serve a disk image to other machines (NBD), now and at each boot.",
    guide: super::Guide {
        changes: "Makes the image where size= says so, and writes a systemd unit that serves it.",
        needs: "systemd, and an image, a directory of images, or room for a new image. Other machines need listen= and allow=.",
        example: "sudo rubus plan network-server image=/srv/disk.img size=32GiB listen=0.0.0.0 allow=192.168.1.0/24",
    },
    options: &[
        OptionSpec {
            name: "image",
            what: "the image, such as /srv/disk.img, a directory of images, or a block device below /dev/disk/by-id",
            default: None,
            check: export::image,
        },
        OptionSpec {
            name: "name",
            what: "what clients ask for, and what the units are called after: letters, digits, '-', '_' and '.'; else the \
                   name of the image without .img, .raw or .iso",
            default: None,
            check: export::name,
        },
        OptionSpec {
            name: "size",
            what: "make the image, this large, if it is not there, such as 32GiB",
            default: None,
            check: |value| match parse_size(value)? {
                0 => Err("write a size such as 32GiB".into()),
                _ => Ok(()),
            },
        },
        OptionSpec {
            name: "listen",
            what: "an address of this machine, such as 192.168.1.5 or 0.0.0.0:10809 (all of them), several with commas \
                   between them",
            default: Some("127.0.0.1"),
            check: |value| listening(value).map(drop),
        },
        OptionSpec {
            name: "allow",
            what: "who may connect: networks or addresses such as 192.168.1.0/24, with commas between them, or any; it \
                   has to be said where other machines reach the address",
            default: None,
            check: |value| allowed(value).map(drop),
        },
        OptionSpec {
            name: "read-only",
            what: "yes: refuse all writes; no",
            default: Some("no"),
            check: yes_or_no,
        },
        OptionSpec {
            name: "clones",
            what: "a directory: each client gets a copy-on-write clone of the image, kept there, and asks for NAME/CLIENT",
            default: None,
            check: export::place,
        },
        OptionSpec {
            name: "certificates",
            what: "a directory with server-cert.pem and server-key.pem, for encryption (TLS); rubus serve \
                   --make-certificates makes them",
            default: None,
            check: tls::place,
        },
        OptionSpec {
            name: "tls",
            what: "require: nothing in the clear; allow: as each client wants; off; else require with certificates, and \
                   off without",
            default: None,
            check: tls::mode,
        },
        OptionSpec {
            name: "verify-clients",
            what: "yes: serve only clients with a certificate that the directory's ca-cert.pem has signed; no",
            default: Some("no"),
            check: yes_or_no,
        },
    ],
    look_at,
    draw_up,
};

/// Reached early at each boot.
const SOCKETS: &str = "sockets.target";

fn listening(value: &str) -> Result<Vec<SocketAddr>, String> {
    value.split(',').map(listen_address).collect()
}

/// An empty list allows every client.
fn allowed(value: &str) -> Result<Vec<Network>, String> {
    if value == "any" {
        return Ok(Vec::new());
    }
    let networks = value.split(',').map(|text| {
        let network: Result<Network, _> = text.parse();
        network.map_err(|error| format!("{error}, or any"))
    });
    networks.collect()
}

/// Both units without their endings.
fn unit(name: &str) -> String {
    format!("rubus-serve-{name}")
}

/// The socket on which root reaches the server on this machine, whichever clients are allowed. It exists as long as the
/// socket unit listens.
fn own_socket(name: &str) -> PathBuf {
    format!("/run/{}.socket", unit(name)).into()
}

fn look_at(_: &Machine, wishes: &Wishes) -> Queries {
    let mut paths: Vec<PathBuf> = programs::INSTALLED.iter().map(PathBuf::from).collect();
    paths.extend(programs::paths(["systemctl"]));
    let image = wishes.get("image").map(String::as_str);
    let clones = wishes.get("clones").map(String::as_str);
    let named = wishes.get("name").map(String::as_str);
    let name = named.or(image.map(export::name_of)).unwrap_or_default();
    paths.extend(units::look_at(&format!("{}.socket", unit(name)), SOCKETS));
    paths.push(units::path(&format!("{}.service", unit(name))));
    paths.push(own_socket(name));
    let parent = image.and_then(|image| Path::new(image).parent());
    for directory in parent.into_iter().chain(clones.map(Path::new)) {
        paths.extend(mounting::directories(directory));
    }
    let is_read_only = wishes.get("read-only").is_some_and(|value| value == "yes");
    let device = image.filter(|image| image.starts_with("/dev/") && !is_read_only);
    let mut nodes: Vec<PathBuf> = image.into_iter().chain(clones).map(PathBuf::from).collect();
    nodes.extend(tls::look_at(wishes));
    Queries {
        disks: device.map(PathBuf::from).into_iter().collect(),
        nodes,
        ..Queries::paths(paths)
    }
}

/// All that the units and the words about them depend on.
struct Server<'a> {
    export: Export<'a>,
    listen: Vec<SocketAddr>,
    allow: Vec<Network>,
    tls: Option<Tls>,
    program: String,
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let Some(image) = situation.option("image") else {
        let remedy = "say which: rubus plan network-server image=/srv/disk.img size=32GiB listen=192.168.1.5 allow=192.168.1.0/24";
        return draft.check("it is said what is served", false, "no", remedy);
    };
    let program = programs::check_installed(situation, draft);
    let remedy = "let what starts services here run `rubus serve` instead (see rubus serve --help)";
    units::check_running(remedy, situation, draft);
    programs::check_one("systemctl", situation, draft);
    let export = export::look(image, situation, draft);
    let listen = listening(situation.option("listen").unwrap_or_default()).unwrap_or_default();
    let tls = tls::look(situation, draft);
    let allow = check_callers(&listen, tls.as_ref(), situation, draft);
    let Some(export) = export else {
        return;
    };
    let server = Server { export, listen, allow, tls, program };
    put(&server, situation, draft);
    words::say(&server, draft);
    draft.promises.push(Promise {
        what: format!("{} serves {}", unit(&server.export.name), server.export.image),
        look: Look::Served {
            address: server.address(None),
            export: server.is_one_export().then(|| server.export.name.clone()),
        },
        needs_boot: false,
    });
}

/// Which clients may connect. A public address is open to every client only where the user asked for that.
fn check_callers(
    listen: &[SocketAddr],
    tls: Option<&Tls>,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) -> Vec<Network> {
    let is_public = listen.iter().any(|address| !address.ip().is_loopback());
    let wished = situation.option("allow");
    let shown: Vec<String> = listen.iter().map(ToString::to_string).collect();
    let shown = shown.join(", ");
    let proof = if tls.is_some_and(|tls| tls.verifies_clients) {
        "may connect, and has to show a client's certificate"
    } else {
        "is served without asking for a password"
    };
    draft.check(
        "it is said who may connect",
        !is_public || wished.is_some(),
        match (wished, is_public) {
            (Some("any"), _) => format!("anyone who reaches {shown}"),
            (Some(networks), _) => format!("{networks} to {shown}"),
            (None, false) => format!("only programs of this machine reach {shown}"),
            (None, true) => format!("other machines reach {shown}, and allow= is not given"),
        },
        &format!(
            "say allow=192.168.1.0/24: only machines with such addresses; or allow=any: every machine that reaches this one \
             {proof}"
        ),
    );
    let allow = wished.and_then(|networks| allowed(networks).ok());
    allow.unwrap_or_default()
}

/// The steps, as far as they are not done.
fn put(server: &Server<'_>, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let export = &server.export;
    let unit = unit(&export.name);
    let texts = [
        (format!("{unit}.socket"), texts::socket(server)),
        (format!("{unit}.service"), texts::service(server)),
    ];
    let is_as_wished =
        |(unit, text): &(String, String)| situation.text(&units::path(unit)) == text.as_str();
    let is_nothing = |(unit, _): &(String, String)| {
        let sight = situation.facts.seen.get(&units::path(unit));
        matches!(sight, None | Some(PathState::Absent))
    };
    let is_free = texts.iter().all(|text| is_nothing(text) || is_as_wished(text));
    draft.check(
        "the units' names are free",
        is_free,
        if is_free {
            format!("{unit}.socket and {unit}.service")
        } else {
            format!("there is another {unit}.socket or {unit}.service in {}", units::UNITS)
        },
        "take another one (name=…), or undo the change that made these (rubus status, rubus undo)",
    );
    make_places(server, situation, draft);
    let are_written = texts.iter().all(is_as_wished);
    if !are_written {
        draft.step(
            "units-read",
            "Undoing ends with this step, and systemd forgets the units that are gone by then.",
            Action::ReadUnits(ReadUnits {}),
        );
    }
    let [(socket, socket_text), (service, service_text)] = texts;
    draft.write(
        "socket",
        "systemd holds the sockets, so clients that come while the server is restarted wait instead of failing.",
        &units::path(&socket),
        socket_text,
        situation,
    );
    draft.write(
        "service",
        "The first client starts the server, which may do nothing but read and write what it serves.",
        &units::path(&service),
        service_text,
        situation,
    );
    let why = "Each boot listens again.";
    units::enable(&socket, SOCKETS, why, situation, draft);
    let own = own_socket(&export.name);
    let is_up = !matches!(
        situation.facts.seen.get(&own),
        None | Some(PathState::Absent | PathState::Dangling(_))
    );
    if are_written && is_up {
        return;
    }
    draft.step(
        "started",
        "It is served at once, and the answer proves that the server can do its work with the rights that it has.",
        Action::StartServer(StartServer {
            unit,
            socket: own,
            question: server.question(),
            gives_away: export.gives_away.iter().cloned().collect(),
        }),
    );
}

/// The image and the directory of the clones, as far as they are missing.
fn make_places(server: &Server<'_>, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let export = &server.export;
    if let Some(clones) = export.clones {
        let why = "What each client writes is kept there.";
        draft.directory("clones", why, Path::new(clones), situation);
    }
    let Some(size_bytes) = export.made_bytes else {
        return;
    };
    let path = PathBuf::from(export.image);
    if let Some(directory) = path.parent() {
        draft.directory("place", "The image is made in it.", directory, situation);
    }
    draft.step(
        "image",
        "It is made once, here, and not by the server: where its disk is missing at some boot, no other one takes its place.",
        Action::MakeImage(MakeImage { path, size_bytes }),
    );
}

impl Server<'_> {
    /// Whether there is one export, whose name is known.
    fn is_one_export(&self) -> bool {
        self.export.kind != NodeKind::Directory
    }

    /// The address at which this machine asks: over the network if the server lets its own machine in, else on the
    /// socket of its own.
    fn address(&self, export: Option<&str>) -> String {
        let export = export.unwrap_or_default();
        let here = |address: &SocketAddr| match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        // Who connects to an address of his own machine comes from that same address.
        let is_let_in = |address: &&SocketAddr| {
            self.allow.is_empty() || self.allow.iter().any(|network| network.has(here(address)))
        };
        let tls = self.tls.as_ref().filter(|tls| tls.is_required);
        let scheme = if tls.is_some() { "nbds" } else { "nbd" };
        let mut parameters = Vec::new();
        let place = match self.listen.iter().find(is_let_in) {
            Some(address) => {
                let host = match here(address) {
                    IpAddr::V4(ip) => ip.to_string(),
                    IpAddr::V6(ip) => format!("[{ip}]"),
                };
                match address.port() {
                    NBD_PORT => format!("{scheme}://{host}/{export}"),
                    port => format!("{scheme}://{host}:{port}/{export}"),
                }
            }
            None => {
                let socket = own_socket(&self.export.name);
                parameters.push(format!("socket={}", socket.display()));
                format!("{scheme}+unix:///{export}")
            }
        };
        parameters.extend(tls.map(Tls::parameters));
        if parameters.is_empty() { place } else { format!("{place}?{}", parameters.join("&")) }
    }

    /// Behind `rubus nbd`. Asked about an export, the server of clones would make one.
    fn question(&self) -> Vec<String> {
        if self.is_one_export() && self.export.clones.is_none() {
            vec!["info".into(), self.address(Some(&self.export.name))]
        } else {
            vec!["list".into(), self.address(None)]
        }
    }
}

#[cfg(test)]
mod tests;
