//! Arguments of `rubus attach` and `rubus detach`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Json;

/// Make an NBD export a block device of this machine, and keep it.
///
/// The kernel's own driver moves the data; no other program is needed. A
/// watcher stays in the background: when the server is restarted or the network
/// is cut, reads and writes wait, it connects again, and they go on, if the
/// export is still the same disk with everything that was written. If that is
/// not so, or cannot be known, the device is failed instead.
///
/// Without an address: shows what is attached.
#[derive(Debug, ClapArgs)]
pub struct Attach {
    /// The export, such as nbd://server/disk
    #[arg(value_name = "ADDRESS")]
    pub address: Option<String>,
    /// The device, such as /dev/nbd0 [default: the first that is free]
    #[arg(value_name = "DEVICE", value_parser = device)]
    pub device: Option<u32>,
    /// Mount it there
    #[arg(long, value_name = "DIR", requires = "address", value_hint = clap::ValueHint::DirPath)]
    pub mount: Option<PathBuf>,
    /// Use so many connections; the server must promise that they agree
    /// [default: 4 where it does, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub connections: Option<u32>,
    /// Give a connection up when a request takes longer; 0: never, a server
    /// whose machine is gone is noticed after 30 seconds anyway
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=86_400))]
    pub timeout: u32,
    /// Let reads and writes wait so long for a server that is gone; then they
    /// fail, and a filesystem on the device with them
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=31_536_000))]
    pub dead_timeout: u32,
    /// Try so long to reach the server at first
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=86_400))]
    pub wait: u32,
    /// Allow no writes
    #[arg(long)]
    pub read_only: bool,
    /// Go on with a server that does not say which disk it serves (nbdkit,
    /// nbd-server, qemu-nbd), although writes may be lost when its machine,
    /// and not only the server program, was restarted
    #[arg(long)]
    pub resume_unidentified: bool,
    /// Watch in this process instead of the background; Ctrl-C detaches
    #[arg(long)]
    pub foreground: bool,
    /// The watcher that a process in the foreground starts
    #[arg(long, hide = true, conflicts_with = "foreground")]
    pub watcher: bool,
    #[command(flatten)]
    pub json: Json,
}

/// Take a device its NBD export again.
///
/// What is in caches is written first. A device that is mounted, swap, or used
/// in any other way is refused, with exit status 3.
#[derive(Debug, ClapArgs)]
pub struct Detach {
    /// The device, such as /dev/nbd0 [default: the only one]
    #[arg(value_name = "DEVICE", value_parser = device)]
    pub device: Option<u32>,
    /// Do not wait for a server that is gone: what was not written is lost
    #[arg(long)]
    pub give_up: bool,
}

fn device(text: &str) -> Result<u32, String> {
    let name = text.strip_prefix("/dev/").unwrap_or(text);
    let number = name.strip_prefix("nbd").and_then(|n| n.parse().ok());
    let plain = |n: &u32| name == format!("nbd{n}") && *n <= 255;
    number
        .filter(plain)
        .ok_or_else(|| "write it as /dev/nbd0, up to /dev/nbd255".into())
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
