//! Mounting, unmounting and swapping: the kernel's calls, with nothing between.
//!
//! What a change mounts for itself is mounted in a mount namespace of its own: other processes do not
//! see it, nothing can be mounted on top of it, and it is gone when the process is.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::files::hands::WriteError;

/// The system's mount namespace, while this process has its own.
#[derive(Debug)]
pub struct OuterMounts {
    namespace: OwnedFd,
}

static OUTER: OnceLock<OuterMounts> = OnceLock::new();

/// The system's mount namespace, if this process has its own.
pub fn outer_mounts() -> Option<&'static OuterMounts> {
    OUTER.get()
}

/// Gives this process its own mount namespace, if it does not have one yet, and returns the system's. Later mounts and
/// unmounts outside still show here, but not the other way round. To be called by the main thread; threads that are
/// started later follow.
///
/// # Errors
/// When this user may not do that.
pub fn private_mounts() -> Result<&'static OuterMounts, WriteError> {
    if let Some(outer) = OUTER.get() {
        return Ok(outer);
    }
    let own = Path::new("/proc/self/ns/mnt");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace = rustix::fs::open(own, flags, Mode::empty())
        .map_err(|errno| WriteError::of("open", own, errno))?;
    let root = Path::new("/");
    // SAFETY: no memory and no descriptors are split off, only the view of mounts.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.map_err(|errno| {
        WriteError::of("have a view of its own of the mounts below", root, errno)
    })?;
    let outer = OUTER.get_or_init(|| OuterMounts { namespace });
    let follow = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    rustix::mount::mount_change(root, follow)
        .map_err(|errno| WriteError::of("keep apart the mounts below", root, errno))?;
    Ok(outer)
}

impl OuterMounts {
    /// Does something in the system's mount namespace, in a thread of its own that enters it.
    ///
    /// # Errors
    /// What `act` says, or that there is no way there.
    pub fn visit<T: Send>(
        &self,
        act: impl FnOnce() -> Result<T, WriteError> + Send,
    ) -> Result<T, WriteError> {
        let own = Path::new("/proc/self/ns/mnt");
        let enter = || {
            // SAFETY: the thread ends with this visit; its working directory is its own from here on.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) }?;
            rustix::thread::move_into_link_name_space(
                self.namespace.as_fd(),
                Some(LinkNameSpaceType::Mount),
            )
        };
        std::thread::scope(|scope| {
            let visitor = scope.spawn(|| {
                enter().map_err(|errno| {
                    WriteError::of("go back to the machine's mounts from", own, errno)
                })?;
                act()
            });
            visitor.join().unwrap_or_else(|_| {
                Err(WriteError {
                    tried: "work among the machine's mounts of",
                    path: own.display().to_string(),
                    reason: "it ended unexpectedly".into(),
                })
            })
        })
    }
}

/// Mounts a filesystem.
///
/// `options` are as in fstab, without those that only `mount` and systemd know (`nofail`, `x-…`).
///
/// # Errors
/// With what the kernel's answer means for a mount.
pub fn mount(what: &Path, at: &Path, kind: &str, options: &str) -> Result<(), WriteError> {
    let (flags, data) = split_options(options);
    mount_as(what, at, kind, flags, &data)
}

/// Gives a mounted filesystem other options.
///
/// # Errors
/// As for [`mount`].
pub fn remount(at: &Path, options: &str) -> Result<(), WriteError> {
    let (flags, data) = split_options(options);
    let data = CString::new(data).map_err(|_| WriteError::of("mount again", at, Errno::INVAL))?;
    rustix::mount::mount_remount(at, flags, data)
        .map_err(|errno| WriteError::of("mount again", at, errno))
}

fn mount_as(
    what: &Path,
    at: &Path,
    kind: &str,
    flags: MountFlags,
    data: &str,
) -> Result<(), WriteError> {
    let data = CString::new(data).map_err(|_| WriteError::of("mount", what, Errno::INVAL))?;
    rustix::mount::mount(what, at, kind, flags, data.as_c_str()).map_err(|errno| {
        let advice = match errno {
            Errno::INVAL => "; the kernel log says which option or what in the filesystem it minds",
            Errno::NODEV => "; this kernel has no such filesystem (`modprobe` may bring it)",
            Errno::BUSY => "; it is in use already",
            Errno::NOENT => "; the directory is not there, or no such subvolume",
            Errno::NOTBLK => "; it is no block device",
            _ => "",
        };
        let path = format!("{} at {}", what.display(), at.display());
        WriteError::advised("mount", path, errno, advice)
    })
}

/// Lets what is at one place be seen at another too; what is mounted below it is not seen there.
///
/// # Errors
/// If the kernel refuses the mount.
pub fn bind(from: &Path, at: &Path) -> Result<(), WriteError> {
    rustix::mount::mount_bind(from, at)
        .map_err(|errno| WriteError::of("show elsewhere", from, errno))
}

/// Unmounts what is at a place, with everything on it durable.
///
/// # Errors
/// When it is in use.
pub fn unmount(at: &Path) -> Result<(), WriteError> {
    rustix::mount::unmount(at, UnmountFlags::NOFOLLOW).map_err(|errno| match errno {
        Errno::BUSY => WriteError {
            tried: "unmount",
            path: at.display().to_string(),
            reason: "something there is still in use (`fuser -vm` says by whom)".into(),
        },
        errno => WriteError::of("unmount", at, errno),
    })
}

/// Everything written to the filesystem that a path is on is on stable storage.
///
/// # Errors
/// When the device fails.
pub fn sync_filesystem(path: &Path) -> Result<(), WriteError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .and_then(rustix::fs::syncfs)
        .map_err(|errno| WriteError::of("make durable everything on", path, errno))
}

/// The UUID of the filesystem that a path is on, from the kernel (since Linux 6.9, for most filesystems).
pub fn filesystem_uuid(path: &Path) -> Option<[u8; 16]> {
    /// `struct fsuuid2` of include/uapi/linux/fs.h.
    #[repr(C)]
    struct Answer {
        length: u8,
        uuid: [u8; 16],
    }
    const FS_IOC_GETFSUUID: ioctl::Opcode = ioctl::opcode::read::<Answer>(0x15, 0);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    // SAFETY: this number makes the kernel write exactly the type named here.
    let answer =
        unsafe { ioctl::ioctl(&directory, ioctl::Getter::<FS_IOC_GETFSUUID, Answer>::new()) };
    let answer = answer.ok()?;
    (answer.length == 16).then_some(answer.uuid)
}

/// Options that are flags of the mount itself; the rest goes to the filesystem as it is.
fn split_options(options: &str) -> (MountFlags, String) {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match option {
            "ro" => flags |= MountFlags::RDONLY,
            "noatime" => flags |= MountFlags::NOATIME,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "relatime" => flags |= MountFlags::RELATIME,
            "strictatime" => flags |= MountFlags::STRICTATIME,
            "lazytime" => flags |= MountFlags::LAZYTIME,
            "nodev" => flags |= MountFlags::NODEV,
            "noexec" => flags |= MountFlags::NOEXEC,
            "nosuid" => flags |= MountFlags::NOSUID,
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            "dirsync" => flags |= MountFlags::DIRSYNC,
            // What holds anyway, and what is for other readers of fstab.
            "defaults" | "rw" | "exec" | "suid" | "dev" | "async" | "auto" | "noauto"
            | "nofail" | "user" | "nouser" | "_netdev" => {}
            other if other.starts_with("x-") || other.starts_with("comment=") => {}
            other => data.push(other),
        }
    }
    (flags, data.join(","))
}

/// Uses swap from now on; `priority` 0 to 32767, or the kernel chooses.
///
/// # Errors
/// With what the kernel's answer means for swap.
pub fn swap_on(what: &Path, priority: Option<i32>) -> Result<(), WriteError> {
    const PREFER: libc::c_int = 0x8000;
    const PRIORITY_BITS: libc::c_int = 0x7FFF;
    let flags = match priority {
        Some(priority) if priority >= 0 => PREFER | (priority & PRIORITY_BITS),
        _ => 0,
    };
    let name = CString::new(what.as_os_str().as_bytes())
        .map_err(|_| WriteError::of("use the swap", what, Errno::INVAL))?;
    // SAFETY: the name lives until the call returns.
    if unsafe { libc::swapon(name.as_ptr(), flags) } == 0 {
        return Ok(());
    }
    let errno = last_errno();
    let advice = match errno {
        Errno::INVAL => {
            "; it is no swap area, has holes, or its filesystem cannot hold swap (the kernel log says which)"
        }
        Errno::BUSY => "; it is in use already",
        Errno::PERM => "; run it as root, or there are too many swap areas",
        _ => "",
    };
    Err(WriteError::advised("use the swap", what.display(), errno, advice))
}

/// Uses swap no more. What is in it goes back to memory first, which takes its time.
///
/// # Errors
/// When memory does not suffice for that, above all.
pub fn swap_off(what: &Path) -> Result<(), WriteError> {
    let name = CString::new(what.as_os_str().as_bytes())
        .map_err(|_| WriteError::of("stop using the swap", what, Errno::INVAL))?;
    // SAFETY: the name lives until the call returns.
    if unsafe { libc::swapoff(name.as_ptr()) } == 0 {
        return Ok(());
    }
    let errno = last_errno();
    let advice = match errno {
        Errno::NOMEM => {
            "; what is in it does not fit into the memory that is free: end some programs, or use other swap first"
        }
        Errno::INVAL => "; it is not in use as swap",
        _ => "",
    };
    Err(WriteError::advised("stop using the swap", what.display(), errno, advice))
}

/// Why the last call into the C library failed.
fn last_errno() -> Errno {
    let error = std::io::Error::last_os_error();
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_flags_or_for_the_filesystem() {
        let (flags, data) =
            split_options("defaults,noatime,compress=zstd:3,subvol=/@,nofail,x-a=b");
        assert_eq!(flags, MountFlags::NOATIME);
        assert_eq!(data, "compress=zstd:3,subvol=/@");
        assert_eq!(split_options(""), (MountFlags::empty(), String::new()));
    }
}
