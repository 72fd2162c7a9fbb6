//! The far end of a change that needs a network disk: `rubus serve` over the export of a kit.
//!
//! Each board of a campaign finds its own export behind the same address, which is in its command line by then. So each
//! look at a cut has a network of its own, in which that port is free.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::devices::{Listening, Serving, programs};
use crate::kit::Kit;
use crate::session::{HOST_ADDRESS, Session};
use crate::tools;

use super::{Campaign, Export, Lab, SOON};

/// The board's network, as a person would set it up before anything else.
const NETWORK: &str =
    "card=$(basename $(dirname $(ls -d /sys/class/net/*/device))); ip link set $card up
    ip addr add 10.0.2.15/24 dev $card; ip route add default via 10.0.2.2";

/// Each start needs the program, and not where the harness puts it.
const INSTALL: &str = "install -D $(command -v rubus) /usr/local/bin/rubus";

impl Campaign {
    /// The address of the export, when the boards have one.
    pub(super) fn address(&self) -> Option<String> {
        let port = self.export.as_ref()?.port;
        Some(format!("nbd://{HOST_ADDRESS}:{port}/root"))
    }
}

impl Export {
    fn listening(&self) -> Listening {
        Listening::Port("127.0.0.1".into(), self.port)
    }
}

/// An image with a log of what is written to it, as the emulator's options name them. Nothing waits for this machine's own disk.
fn logged(image: &Path, log: &Path) -> String {
    let file = |key: &str, path: &Path| {
        let path = path.display().to_string().replace(',', ",,");
        format!("{key}.driver=file,{key}.filename={path},{key}.cache.no-flush=on")
    };
    format!(
        "driver=blklogwrites,discard=unmap,{},file.discard=unmap,{}",
        file("file", image),
        file("log", log)
    )
}

impl Lab<'_> {
    /// Serves a kit's export, when the boards have one.
    pub(super) fn serve(&self, kit: &Kit) -> Result<Option<Serving>> {
        let Some(export) = &self.campaign.export else {
            return Ok(None);
        };
        let mut command = programs::command(&export.rubus);
        command.arg("serve").arg(kit.export());
        command.args(["--quiet", "--name", "root", "--listen"]);
        command.arg(format!("127.0.0.1:{}", export.port));
        Serving::start(command, export.listening()).map(Some)
    }

    /// Serves a kit's export, when the boards have one, with a log of what reaches it. That is the emulator's server, since only
    /// its filter writes such logs.
    pub(super) fn serve_logged(&self, kit: &Kit) -> Result<Option<(Serving, PathBuf)>> {
        let Some(export) = &self.campaign.export else {
            return Ok(None);
        };
        let log = kit.directory().join("export.log");
        File::create(&log).with_context(|| format!("cannot make {log:?}"))?;
        let mut command = programs::command("qemu-nbd");
        command.args(["--persistent", "--shared=8", "--discard=unmap"]);
        command.args(["--export-name=root", "--bind=127.0.0.1"]);
        command.arg(format!("--port={}", export.port));
        command.arg("--image-opts").arg(logged(&kit.export(), &log));
        let serving = Serving::start(command, export.listening())?;
        Ok(Some((serving, log)))
    }

    /// Puts the program where each start finds it, when they need it.
    pub(super) fn install(&self, board: &mut Session) -> Result<()> {
        if self.campaign.export.is_some() {
            board.must(INSTALL, "root", SOON)?;
        }
        Ok(())
    }

    /// Attaches the export to a board that has started from its card.
    pub(super) fn attach(&self, board: &mut Session) -> Result<()> {
        if let Some(address) = self.campaign.address() {
            let script = format!("{NETWORK}\nrubus attach {address} /dev/nbd0");
            board.must(&script, "root", SOON)?;
        }
        Ok(())
    }
}

/// Gives this thread, and what it starts from now on, a network in which there is only this machine.
pub(super) fn own_network() -> Result<()> {
    // SAFETY: only the network is another one from now on; the thread shares files and all else as before.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.context("no network of its own (root?)")?;
    tools::run(tools::command("ip").args(["link", "set", "lo", "up"]))?;
    Ok(())
}
