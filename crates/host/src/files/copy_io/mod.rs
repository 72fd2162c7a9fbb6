//! The I/O of the copy of a tree: directories, files and their attributes, always relative to an open directory.
//!
//! No call here takes a path of more than one name, except [`Directory::open_root`], which a copy uses twice, and
//! [`Directory::open_beneath`], which cannot leave the directory it starts from. No call follows a symbolic link.
//! So neither a path longer than `PATH_MAX` nor a link planted by another user leads elsewhere.

mod attributes;
mod data;
mod directory;
mod disk;
mod failure;

pub use attributes::{Flags, Place, Times};
pub use data::File;
pub use directory::{Directory, Filesystem, Kind, Listed, Meta, Moment};
pub use disk::{DISK_ALIGNMENT, Disk, Extent};
pub use failure::{Failure, Reason};

/// Raises this process's limit of open files as far as the system allows it, and says how many that is.
pub fn allow_many_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(1 << 20).min(1 << 16);
    let raised =
        Rlimit { current: Some(most.max(limit.current.unwrap_or(most))), maximum: limit.maximum };
    // Where it may not be raised, the present limit is used.
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(most)
}

/// Seconds since 1970, as the filesystems of this machine count them.
pub fn wall_clock_s() -> i64 {
    rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec
}

/// Bytes of memory of this machine.
pub fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram as u64 * u64::from(info.mem_unit.max(1))
}

/// How many processors this process may use; 1 when that is not known.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Whether this process may do what only root may.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
