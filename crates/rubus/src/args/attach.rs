//! Arguments of `rubus attach` and `rubus detach`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Json;

/// Attach an NBD export as a block device, and keep it connected.
///
/// The kernel's own driver moves the data; no other program is needed. A watcher stays in the
/// background: when the server restarts or the network fails, reads and writes wait while it
/// reconnects. They continue if the export is still the same disk with every write. If not, or if
/// that cannot be known, the device fails instead.
///
/// Without an address, lists attached devices.
#[derive(Debug, ClapArgs)]
pub struct Attach {
    /// The export, such as nbd://server/disk
    #[arg(value_name = "ADDRESS")]
    pub address: Option<String>,
    /// The device, such as /dev/nbd0 [default: the first free one]
    #[arg(value_name = "DEVICE", value_parser = device)]
    pub device: Option<u32>,
    /// Mount it there
    #[arg(long, value_name = "DIR", requires = "address", value_hint = clap::ValueHint::DirPath)]
    pub mount: Option<PathBuf>,
    /// Number of connections; more than 1 needs a server with multi-conn [default: 4 with
    /// multi-conn, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub connections: Option<u32>,
    /// Drop a connection when a request takes longer; 0 means never: a dead server machine is still
    /// noticed after 30 seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=86_400))]
    pub timeout: u32,
    /// How long reads and writes wait for a lost server before they fail, and any filesystem on the
    /// device with them
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=31_536_000))]
    pub dead_timeout: u32,
    /// How long to retry the first connection
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=86_400))]
    pub wait: u32,
    /// Allow no writes
    #[arg(long)]
    pub read_only: bool,
    /// Also resume with a server that does not identify its disk (nbdkit, nbd-server, qemu-nbd);
    /// writes may be lost if its machine was restarted, not just the server program
    #[arg(long)]
    pub resume_unidentified: bool,
    /// Run the watcher in this process instead of the background; Ctrl-C detaches
    #[arg(long)]
    pub foreground: bool,
    /// The watcher that a process in the foreground starts
    #[arg(long, hide = true, conflicts_with = "foreground")]
    pub watcher: bool,
    #[command(flatten)]
    pub json: Json,
}

/// Detach a device from its NBD export.
///
/// Writes cached data first. A device that is mounted, used as swap or otherwise in use is refused.
#[derive(Debug, ClapArgs)]
pub struct Detach {
    /// The device, such as /dev/nbd0 [default: the only one]
    #[arg(value_name = "DEVICE", value_parser = device)]
    pub device: Option<u32>,
    /// Do not wait for a lost server: unwritten data is lost
    #[arg(long)]
    pub give_up: bool,
}

fn device(text: &str) -> Result<u32, String> {
    let name = text.strip_prefix("/dev/").unwrap_or(text);
    let number = name.strip_prefix("nbd").and_then(|n| n.parse().ok());
    let plain = |n: &u32| name == format!("nbd{n}") && *n <= 255;
    number.filter(plain).ok_or_else(|| "write it as /dev/nbd0, up to /dev/nbd255".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_whole_and_written_as_the_kernel_does() {
        assert_eq!(device("/dev/nbd0"), Ok(0));
        assert_eq!(device("nbd12"), Ok(12));
        for wrong in ["", "nbd", "/dev/sda", "nbd0p1", "nbd00", "nbd256", "0"] {
            assert!(device(wrong).is_err(), "{wrong}");
        }
    }
}
