//! The two units: the sockets, and the server behind them with the few rights that it needs.

use std::net::IpAddr;
use std::path::Path;

use super::tls::Tls;
use super::{Server, own_socket};
use crate::{NodeKind, units};

/// What `ProtectHome=` hides.
const HOMES: [&str; 3] = ["/home", "/root", "/run/user"];

/// The sockets, which stay while the server is restarted.
pub(super) fn socket(server: &Server<'_>) -> String {
    let mut lines = vec![
        "# Made by rubus (network-server).".to_string(),
        "[Unit]".into(),
        format!(
            "Description=Sockets of the network disk server of {}",
            units::text(server.export.image)
        ),
        String::new(),
        "[Socket]".into(),
    ];
    for address in &server.listen {
        let address = address.to_string();
        lines.push(format!("ListenStream={}", units::text(&address)));
    }
    let own = own_socket(&server.export.name);
    lines.push("# For root on this machine.".into());
    lines.push(format!("ListenStream={}", own.display()));
    lines.push("SocketMode=0600".into());
    lines.push("RemoveOnStop=yes".into());
    if server.listen.iter().any(|address| address.is_ipv6()) {
        lines.push("BindIPv6Only=ipv6-only".into());
    }
    let is_of_a_link = |ip: IpAddr| !ip.is_loopback() && !ip.is_unspecified();
    if server.listen.iter().any(|address| is_of_a_link(address.ip())) {
        lines
            .push("# A boot listens before the network has given this machine its address.".into());
        lines.push("FreeBind=yes".into());
    }
    lines.extend(["", "[Install]", "WantedBy=sockets.target"].map(String::from));
    lines.join("\n") + "\n"
}

/// The server. It keeps no capability, sees no network of its own (the sockets come from systemd), no device and
/// no home, and of all files may write those alone that it serves.
pub(super) fn service(server: &Server<'_>) -> String {
    let export = &server.export;
    let mut lines = vec![
        "# Made by rubus (network-server).".to_string(),
        "[Unit]".into(),
        format!("Description=Network disk server of {}", units::text(export.image)),
        // At the end of the machine it is stopped before the network, and its clients hear of it.
        "After=network.target".into(),
    ];
    let image = (export.kind != NodeKind::BlockDevice).then_some(export.image);
    let certificates = server.tls.as_ref().map(|tls| tls.directory.as_str());
    let places = image.into_iter().chain(export.clones).chain(certificates);
    let places: Vec<String> = places.map(units::path_word).collect();
    if !places.is_empty() {
        lines.push(format!("RequiresMountsFor={}", places.join(" ")));
    }
    lines.extend([String::new(), "[Service]".into(), "Type=exec".into()]);
    lines.push(format!("ExecStart={}", command_line(server)));
    lines.extend(server.tls.iter().flat_map(Tls::credentials));
    // What is in flight has ten seconds; then everything is made durable, which on a slow disk takes its time.
    lines.push("TimeoutStopSec=90".into());
    lines.extend(rights(server));
    lines.join("\n") + "\n"
}

/// The program with its arguments; the sockets come from systemd.
fn command_line(server: &Server<'_>) -> String {
    let export = &server.export;
    let mut words = vec![server.program.clone(), "serve".into()];
    words.push(units::word(export.image));
    // Each image in a directory has its own name.
    if export.kind != NodeKind::Directory {
        words.push(format!("--name={}", export.name));
    }
    if let Some(clones) = export.clones {
        words.extend(["--clone-per-client".into(), units::word(clones)]);
    }
    if export.is_read_only {
        words.push("--read-only".into());
    }
    for network in &server.allow {
        words.push(format!("--allow={network}"));
    }
    words.extend(server.tls.iter().flat_map(Tls::arguments));
    if let Some(disk) = &export.gives_away {
        let confirmation = units::word(&disk.confirmation);
        words.extend(["--i-will-lose-everything-on".into(), confirmation]);
    }
    words.join(" ")
}

fn rights(server: &Server<'_>) -> Vec<String> {
    let export = &server.export;
    let mut lines: Vec<String> = Vec::new();
    if let Some((user, group)) = export.owner {
        lines.push(format!("User={user}"));
        lines.push(format!("Group={group}"));
    }
    lines.extend(
        ["CapabilityBoundingSet=", "NoNewPrivileges=yes", "ProtectSystem=strict"].map(String::from),
    );
    lines.extend(view(server));
    let fixed = [
        "PrivateTmp=yes",
        "PrivateNetwork=yes",
        "ProtectClock=yes",
        "ProtectControlGroups=yes",
        "ProtectHostname=yes",
        "ProtectKernelLogs=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelTunables=yes",
        "RestrictAddressFamilies=AF_UNIX",
        "RestrictNamespaces=yes",
        "RestrictRealtime=yes",
        "RestrictSUIDSGID=yes",
        "LockPersonality=yes",
        "MemoryDenyWriteExecute=yes",
        "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service",
        "SystemCallErrorNumber=EPERM",
    ];
    lines.extend(fixed.map(String::from));
    lines
}

/// Which files and devices there are for the server, and what of them it may write.
fn view(server: &Server<'_>) -> Vec<String> {
    let export = &server.export;
    if export.kind == NodeKind::BlockDevice {
        let may = if export.is_read_only { "r" } else { "rw" };
        return vec![
            "ProtectHome=yes".into(),
            "DevicePolicy=closed".into(),
            format!("DeviceAllow={} {may}", units::path_word(export.image)),
        ];
    }
    let is_written = !export.is_read_only && export.clones.is_none();
    let places = [(Some(export.image), is_written), (export.clones, true)];
    let places = places.iter().filter_map(|(place, is_written)| Some(((*place)?, *is_written)));
    let is_home = |place: &str| HOMES.iter().any(|home| Path::new(place).starts_with(home));
    let mut lines = vec!["PrivateDevices=yes".to_string()];
    // An empty directory takes the place of the homes, and in it what is served.
    lines.push(if places.clone().any(|(place, _)| is_home(place)) {
        "ProtectHome=tmpfs".into()
    } else {
        "ProtectHome=yes".into()
    });
    for (place, is_written) in places {
        let key = match (is_home(place), is_written) {
            (true, true) => "BindPaths",
            (true, false) => "BindReadOnlyPaths",
            (false, true) => "ReadWritePaths",
            (false, false) => continue,
        };
        lines.push(format!("{key}={}", units::path_word(place)));
    }
    lines
}
