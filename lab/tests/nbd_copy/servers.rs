//! The servers that are copied from and to.

use std::path::{Path, PathBuf};

use super::{SIZE, text};
use crate::common::program::Home;
use rubus_lab::devices::{Listening, NbdServer, Serving, programs};

/// Our server, gone when this is dropped.
pub(super) fn serve(home: &Home, arguments: &[&str], socket: &str) -> Serving {
    let path = home.path().join(socket);
    let mut command = home.command();
    command.args(["serve", "--quiet"]).args(arguments);
    command.arg("--unix").arg(&path);
    Serving::start(command, Listening::Socket(path)).expect("it serves")
}

/// nbdkit, at the same place each time: its version 1.32 may end when a client is killed or goes with requests in flight.
pub(super) fn nbdkit_at(path: PathBuf, arguments: &[&str]) -> Serving {
    let _ = std::fs::remove_file(&path);
    let mut command = programs::nbdkit();
    command.arg("--unix").arg(&path).args(arguments);
    Serving::start(command, Listening::Socket(path)).expect("nbdkit serves")
}

/// Held to 2 MB/s, after a burst of two seconds' worth.
pub(super) fn slowly(home: &Home, image: &Path) -> Serving {
    let arguments = ["--filter=rate", "file", &text(image), "rate=16M"];
    nbdkit_at(home.path().join("slow"), &arguments)
}

/// Each read takes it 6 s.
pub(super) fn thinking(home: &Home) -> Serving {
    let arguments = ["--filter=delay", "pattern", "1M", "delay-read=6"];
    nbdkit_at(home.path().join("thinks"), &arguments)
}

/// nbdkit over an image of which these bytes cannot be read.
pub(super) fn failing(home: &Home, image: &Path, bad: &[(u64, u64)]) -> NbdServer {
    let mut map = String::from("0x0 ? 1\n");
    let mut known = 0;
    for (from, to) in bad {
        map += &format!("{known:#x} {:#x} +\n{from:#x} {:#x} -\n", from - known, to - from);
        known = *to;
    }
    map += &format!("{known:#x} {:#x} +\n", SIZE - known);
    let path = home.path().join("map");
    std::fs::write(&path, map).expect("room");
    let map = format!("ddrescue-mapfile={}", path.display());
    NbdServer::nbdkit(&["--filter=ddrescue", "file", &text(image), &map]).expect("nbdkit")
}
