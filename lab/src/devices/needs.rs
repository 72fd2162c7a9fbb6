//! What a test needs from the machine, and whether it is there.

use std::path::Path;

use super::block_group::{BlockGroup, LimitForAll, memory_group};
use super::loop_device::LoopDevice;
use super::programs;
use crate::board::Board;
use crate::cache::Cache;
use crate::session::missing_tools;
use crate::tools;

/// Something without which a device cannot be built.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// To be root.
    Root,
    /// A program, and the Debian package that has it.
    Program(&'static str, &'static str),
    /// Support for loop devices.
    Loop,
    /// Loop devices on `/var/tmp` that bypass the page cache.
    DirectLoop,
    /// The block throttle of the control groups, version 1 or 2.
    BlockThrottle,
    /// A block throttle that holds for the kernel's own threads, too: control groups of version 1.
    ThrottleForAll,
    /// `/dev/fuse`, nbdkit and nbdfuse.
    NbdFile,
    /// This many processors.
    Processors(usize),
    /// The real-time scheduling class.
    RealTime,
    /// A filesystem that the kernel can mount.
    Filesystem(&'static str),
    /// Processes by the numbers that the kernel has for them, not those of a container.
    KernelsProcessNumbers,
    /// zswap in the kernel.
    Zswap,
    /// A control group that limits memory, version 1 or 2.
    MemoryGroup,
    /// An emulated board on which this machine's programs run.
    Board(Board),
}

impl Need {
    /// Why the need is not met; nothing when it is.
    pub fn missing(self) -> Option<String> {
        match self {
            Need::Root => (!rustix::process::geteuid().is_root()).then(|| "needs root".into()),
            Need::Program(name, package) => programs::find(name)
                .is_none()
                .then(|| format!("{name} is missing; install the package {package}")),
            Need::Loop => (!Path::new("/dev/loop-control").exists())
                .then(|| "no /dev/loop-control: the kernel has no loop devices".into()),
            Need::DirectLoop => Need::Loop.missing().or_else(no_direct_loop),
            Need::BlockThrottle => {
                BlockGroup::new().err().map(|error| format!("no block throttle: {error:#}"))
            }
            Need::ThrottleForAll => LimitForAll::missing(),
            Need::NbdFile => {
                if !Path::new("/dev/fuse").exists() {
                    return Some("no /dev/fuse: the kernel has no FUSE".into());
                }
                Need::Program("nbdkit", "nbdkit")
                    .missing()
                    .or_else(|| Need::Program("nbdfuse", "libnbd-bin").missing())
            }
            Need::Processors(wanted) => {
                let found = std::thread::available_parallelism().map_or(1, usize::from);
                (found < wanted).then(|| format!("needs {wanted} processors, has {found}"))
            }
            Need::RealTime => programs::run("chrt", &["-f", "10", "true"])
                .err()
                .map(|error| format!("no real-time scheduling: {error:#}")),
            Need::KernelsProcessNumbers => {
                let own = std::fs::read_link("/proc/self/ns/pid");
                own.is_ok_and(|own| own != Path::new("pid:[4026531836]"))
                    .then(|| "this is a container: the kernel tells of programs that end by other numbers".into())
            }
            Need::Zswap => (!Path::new("/sys/module/zswap/parameters/enabled").exists())
                .then(|| "the kernel has no zswap".into()),
            Need::MemoryGroup => match memory_group(1 << 30) {
                Ok(group) => {
                    let _ = std::fs::remove_dir(group);
                    None
                }
                Err(error) => Some(format!("no control group that limits memory: {error:#}")),
            },
            Need::Board(board) => no_board(board),
            Need::Filesystem(name) => {
                // A module that is not loaded yet is not in the list until it is asked for.
                let _ = programs::output("modprobe", &["-q", name]);
                let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
                let listed = known.lines().any(|line| line.split_whitespace().last() == Some(name));
                (!listed).then(|| format!("the kernel cannot mount {name}"))
            }
        }
    }
}

fn no_direct_loop() -> Option<String> {
    match LoopDevice::on_disk(1 << 20) {
        Ok(device) if device.is_direct() => None,
        Ok(_) => Some("loop devices on /var/tmp go through the page cache".into()),
        Err(error) => Some(format!("no loop device on /var/tmp: {error:#}")),
    }
}

fn no_board(board: Board) -> Option<String> {
    if !board.runs_programs_of_this_machine() {
        return Some(format!("this machine's programs do not run on the {}", board.title()));
    }
    let absent = missing_tools(&Cache::of_this_machine(), board);
    (!absent.is_empty()).then(|| tools::remedy(&absent))
}

/// The first of the needs that is not met, in words.
pub fn first_missing(needs: &[Need]) -> Option<String> {
    needs.iter().find_map(|need| need.missing())
}
