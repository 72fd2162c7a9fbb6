//! The far end of a change that needs a network disk: `rubus serve` over the export of a kit.
//!
//! Each board of a campaign finds its own export behind the same address, which is in its command line by then. So each
//! look at a cut has a network of its own, in which that port is free.

use anyhow::{Context, Result};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::devices::{Listening, Serving, programs};
use crate::kit::Kit;
use crate::session::{HOST_ADDRESS, Session};
use crate::tools;

use super::{Campaign, Lab, SOON};

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
        let listening = Listening::Port("127.0.0.1".into(), export.port);
        Serving::start(command, listening).map(Some)
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
