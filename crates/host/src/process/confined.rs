//! Programs of another system, shut in: they see the files of that system and nothing of this machine.
//!
//! An image may be from anyone. Its program has the image as its root and a user without rights on this machine, to whom
//! the files of the image's root belong (an idmapped mount, Linux 5.12; 5.15 on btrfs). It has no network, no devices but
//! `/dev/null` and its like, no `/sys`, and sees no process but its own. All of it ends with its first process.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
};
use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use super::programs::{self, Failure, Limit, RunError};

/// The users of this machine that stand for those of the other system, beyond all that are given to people and containers.
const FIRST_ID: u32 = 0x7000_0000;
const IDS: u32 = 1 << 16;

/// What each of its processes may have. Their address space has no limit: an emulator of a processor reserves one as a whole.
const LIMITS: [(Resource, u64); 6] = [
    (Resource::Nproc, 256),
    (Resource::Data, 2 << 30),
    (Resource::Fsize, 2 << 30),
    (Resource::Nofile, 1024),
    (Resource::Cpu, 2 * 3600),
    (Resource::Core, 0),
];
/// An initial RAM filesystem takes minutes where the processor is emulated.
const TIME_LIMIT: Duration = Duration::from_secs(2 * 3600);

/// What it may do with files of its own root, numbers of capabilities(7): give them away, pass their permissions, change its user,
/// and take a directory for its root.
const CAPABILITIES: [i32; 7] = [0, 1, 3, 4, 6, 7, 18];

/// Runs a program of the system whose root is mounted at `top`, until it ends or `stop` is raised, and gives its standard
/// output. The program is found there, in the usual directories.
///
/// # Errors
/// [`RunError`]; where the kernel cannot shut it in, it is not run.
pub fn run(
    top: &Path,
    program: &str,
    arguments: &[&str],
    stop: &AtomicBool,
) -> Result<String, RunError> {
    let line = || programs::shell_line(program, arguments);
    let unable = |tried: &'static str| {
        move |error: io::Error| RunError::Unable {
            line: line(),
            reason: format!(
                "cannot {tried}: {error}; programs of an image are run only where the kernel shuts them in (Linux 5.15 \
                 and newer, with user namespaces)"
            ),
        }
    };
    let users = user_namespace().map_err(unable("make users without rights"))?;
    let tree =
        tree_of(top, &users).map_err(unable("show them the files of the image as theirs"))?;
    let owner = format!("uid={FIRST_ID},gid={FIRST_ID},mode=1777,size=256m");
    let world = World {
        top: c_string(top.as_os_str().as_bytes()),
        temporary: c_string(owner.as_bytes()),
        tree,
        users,
    };
    let mut command = programs::bare(Path::new(program), arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    // SAFETY: between fork and exec, only calls of the kernel with texts that are there already.
    unsafe { command.pre_exec(move || world.enter()) };
    let child = command.spawn().map_err(unable("shut the program in"))?;
    let limit = Limit::within(TIME_LIMIT).or_until(stop);
    match programs::wait(child, &limit) {
        Err(Failure::TooSlow) => Err(RunError::Unable {
            line: line(),
            reason: format!(
                "it did not end within {} h, and was killed",
                TIME_LIMIT.as_secs() / 3600
            ),
        }),
        ended => programs::ended(ended, line),
    }
}

fn c_string(bytes: &[u8]) -> CString {
    // Paths of mount points and texts of our own have no zero bytes.
    CString::new(bytes).unwrap_or_default()
}

/// A user namespace whose users are none of this machine's.
fn user_namespace() -> io::Result<OwnedFd> {
    let holder = programs::find("cat").ok_or(io::ErrorKind::NotFound)?;
    let mut holder = Command::new(holder);
    holder.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: one call of the kernel.
    unsafe {
        holder.pre_exec(|| Ok(rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER)?));
    }
    let mut holder = holder.spawn()?;
    let of_it = PathBuf::from(format!("/proc/{}", holder.id()));
    let map = format!("0 {FIRST_ID} {IDS}\n");
    let made = fs::write(of_it.join("uid_map"), &map)
        .and_then(|()| fs::write(of_it.join("gid_map"), &map))
        .and_then(|()| fs::File::open(of_it.join("ns/user")));
    // It ends with its input.
    drop(holder.stdin.take());
    let _ = holder.wait();
    made.map(OwnedFd::from)
}

/// The filesystem at a place, mounted once more: what belongs to its users belongs to those of the namespace.
fn tree_of(top: &Path, users: &OwnedFd) -> io::Result<OwnedFd> {
    /// `struct mount_attr` of include/uapi/linux/mount.h.
    #[repr(C)]
    struct MountAttributes {
        set: u64,
        clear: u64,
        propagation: u64,
        users: u64,
    }
    const NO_SUID: u64 = 0x2;
    const NO_DEVICES: u64 = 0x4;
    const IDMAP: u64 = 0x0010_0000;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = rustix::mount::open_tree(CWD, top, flags)?;
    let attributes = MountAttributes {
        set: NO_SUID | NO_DEVICES | IDMAP,
        clear: 0,
        propagation: u64::from(MountPropagationFlags::PRIVATE.bits()),
        users: users.as_raw_fd() as u64,
    };
    // SAFETY: the kernel reads the structure, whose size it is told.
    let set = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if set == 0 { Ok(tree) } else { Err(io::Error::last_os_error()) }
}

/// What a program is shut into. All its functions run between fork and exec.
struct World {
    top: CString,
    /// Options of the filesystems in memory for `/tmp` and `/run`.
    temporary: CString,
    tree: OwnedFd,
    users: OwnedFd,
}

impl World {
    /// Takes this process out of the machine, and goes on in a child that is the first of its own world.
    fn enter(&self) -> io::Result<()> {
        // Where memory ends, it ends first.
        write_to(c"/proc/self/oom_score_adj", b"1000")?;
        let apart = UnshareFlags::NEWNS
            | UnshareFlags::NEWPID
            | UnshareFlags::NEWNET
            | UnshareFlags::NEWIPC
            | UnshareFlags::NEWUTS;
        // SAFETY: no memory and no descriptors are split off.
        unsafe { rustix::thread::unshare_unsafe(apart) }?;
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change(c"/", private)?;
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => self.inside(),
            child => wait_and_leave(child),
        }
    }

    fn inside(&self) -> io::Result<()> {
        self.take_root()?;
        self.fill_root()?;
        rustix::system::sethostname(b"image")?;
        self.become_user()?;
        for (resource, most) in LIMITS {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            rustix::process::setrlimit(resource, limit)?;
        }
        leave_capabilities()?;
        rustix::thread::set_no_new_privs(true)?;
        rustix::process::setsid()?;
        keep_no_files()?;
        // Last, since a change of the user takes it back.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    }

    /// The other system becomes the root, and this machine's is out of reach.
    fn take_root(&self) -> io::Result<()> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(self.tree.as_fd(), c"", CWD, self.top.as_c_str(), flags)?;
        rustix::process::chdir(self.top.as_c_str())?;
        rustix::process::pivot_root(c".", c".")?;
        rustix::mount::unmount(c".", UnmountFlags::DETACH)?;
        Ok(rustix::process::chdir(c"/")?)
    }

    fn fill_root(&self) -> io::Result<()> {
        let plain = MountFlags::NOSUID | MountFlags::NOEXEC;
        let no_devices = plain | MountFlags::NODEV;
        let in_memory = MountFlags::NOSUID | MountFlags::NODEV;
        mount(c"proc", c"/proc", no_devices | MountFlags::RDONLY, c"")?;
        mount(c"tmpfs", c"/dev", plain, c"mode=755,size=1m")?;
        mount(c"tmpfs", c"/run", in_memory, &self.temporary)?;
        mount(c"tmpfs", c"/tmp", in_memory, &self.temporary)?;
        // Numbers of Documentation/admin-guide/devices.txt.
        let nodes = [
            (c"/dev/null", 3),
            (c"/dev/zero", 5),
            (c"/dev/full", 7),
            (c"/dev/random", 8),
            (c"/dev/urandom", 9),
        ];
        let anyone = Mode::from_raw_mode(0o666);
        for (path, minor) in nodes {
            let device = rustix::fs::makedev(1, minor);
            rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, anyone, device)?;
            rustix::fs::chmod(path, anyone)?;
        }
        let links = [
            (c"/proc/self/fd", c"/dev/fd"),
            (c"/proc/self/fd/0", c"/dev/stdin"),
            (c"/proc/self/fd/1", c"/dev/stdout"),
            (c"/proc/self/fd/2", c"/dev/stderr"),
        ];
        for (to, link) in links {
            rustix::fs::symlink(to, link)?;
        }
        Ok(())
    }

    fn become_user(&self) -> io::Result<()> {
        let users: BorrowedFd<'_> = self.users.as_fd();
        rustix::thread::move_into_link_name_space(users, Some(LinkNameSpaceType::User))?;
        rustix::thread::set_thread_groups(&[])?;
        let (user, group) = (rustix::process::Uid::ROOT, rustix::process::Gid::ROOT);
        rustix::thread::set_thread_res_gid(group, group, group)?;
        rustix::thread::set_thread_res_uid(user, user, user)?;
        Ok(())
    }
}

fn mount(kind: &CStr, at: &CStr, flags: MountFlags, options: &CStr) -> io::Result<()> {
    Ok(rustix::mount::mount(kind, at, kind, flags, options)?)
}

fn write_to(path: &CStr, bytes: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, rustix::fs::OFlags::WRONLY, Mode::empty())?;
    rustix::io::write(&file, bytes)?;
    Ok(())
}

/// Whatever is left of this program's files is closed when the other one begins.
fn keep_no_files() -> io::Result<()> {
    // SAFETY: no descriptor is closed now.
    let set = unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn leave_capabilities() -> io::Result<()> {
    for capability in (0..64).filter(|one| !CAPABILITIES.contains(one)) {
        // SAFETY: it takes numbers alone.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if dropped != 0 {
            let error = io::Error::last_os_error();
            // Beyond the last one that the kernel has.
            let is_unknown = error.raw_os_error() == Some(libc::EINVAL) && capability > 40;
            return if is_unknown { Ok(()) } else { Err(error) };
        }
    }
    Ok(())
}

/// Ends as the child does. What else is open here would keep its pipes open.
fn wait_and_leave(child: libc::pid_t) -> ! {
    const BY_SIGNAL: i32 = 128;
    let mut status = 0;
    // SAFETY: descriptors and a child of this process, which does nothing else any more.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
        while libc::waitpid(child, &raw mut status, 0) < 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                libc::_exit(BY_SIGNAL);
            }
        }
        libc::_exit(if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            BY_SIGNAL + libc::WTERMSIG(status)
        })
    }
}

#[cfg(test)]
mod tests;
