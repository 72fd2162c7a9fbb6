//! A share of a file server (NFS, SMB) as a target: whether it answers, how it is reached, and what is seen of it around a run.

mod facts;
mod watch;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use rubus_host::Files;
use rubus_host::process::answering::{Answer, answer};
use rubus_machine::parse::{mountinfo, network_mount};
use rubus_machine::probe::mounts::may_hang;
use rubus_vocabulary::nas::NetworkMount;
use rubus_vocabulary::spec::Suite;

use crate::target::Target;

pub use facts::MAX_READ_BYTES;
pub use watch::Watch;

/// How long a filesystem may take to say how large it is. A hard mount of NFS would let every call wait for good.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// How long it may take before its path counts as a directory; the checkup says then what is wrong.
pub const LOOK_WITHIN: Duration = Duration::from_secs(3);

/// A share that something is measured on.
#[derive(Clone, Debug)]
pub struct Share {
    /// Where it is mounted.
    point: String,
    /// How.
    mount: NetworkMount,
    /// The server's address, where the mount's options have it.
    server: Option<IpAddr>,
}

impl Share {
    /// The share that holds a path without links; nothing where it is on none.
    pub fn holding(files: &dyn Files, real: &Path) -> Option<Share> {
        let lines = mount_lines(files);
        let line = mountinfo::holding(&lines, &real.to_string_lossy())?;
        let mount = network_mount::of(&line.filesystem, &line.super_options)?;
        let options = [line.options.clone(), line.super_options.clone()].concat();
        let is_sync = network_mount::of(&line.filesystem, &options)?.is_sync;
        let mount = NetworkMount { is_sync, ..mount };
        Some(Share { point: line.point.clone(), mount, server: network_mount::server(&options) })
    }

    /// Where its server listens.
    fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.server?, self.mount.port))
    }
}

/// Whether an existing file is read before the jobs: in a checkup of a directory of a share.
pub fn reads_a_file(suite: &Suite, target: &Target, share: Option<&Share>) -> bool {
    suite.name == "quick" && target.is_own_file() && share.is_some()
}

/// Makes sure that what a path lies on answers, before anything touches it. Where no mount can hang, nothing is asked, nor of what
/// lies on a disk of this machine: that may be slow.
///
/// # Errors
/// In words, when it does not answer in time.
pub fn must_answer(files: &dyn Files, path: &Path) -> anyhow::Result<()> {
    let lines = mount_lines(files);
    let left = match answer_of(&lines, path, ANSWERS_WITHIN) {
        Answer::Answered | Answer::NotAsked => return Ok(()),
        Answer::Silent => String::new(),
        Answer::Stuck { process } => format!(
            "\n  Process {process}, which asked, waits in the kernel and ends when the filesystem answers or is \
             unmounted."
        ),
    };
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let line = mountinfo::holding(&lines, &absolute.to_string_lossy());
    let below = line.filter(|line| may_hang(&line.filesystem));
    let (kind, point) = match below {
        Some(line) => (line.filesystem.as_str(), line.point.as_str()),
        None => ("a filesystem behind a link", "MOUNT_POINT"),
    };
    let who = if kind.starts_with("fuse") { "Is its program alive" } else { "Is the server on" };
    anyhow::bail!(
        "cannot measure on {}: {kind} did not answer within {} s\n  \
         {who}, and does the network reach it? To give the mount up: umount -f -l {point}{left}",
        path.display(),
        ANSWERS_WITHIN.as_secs()
    )
}

/// Whether a path may be touched: what it lies on answers within that time.
pub fn answers(files: &dyn Files, path: &Path, limit: Duration) -> bool {
    match answer_of(&mount_lines(files), path, limit) {
        Answer::Answered | Answer::NotAsked => true,
        Answer::Silent | Answer::Stuck { .. } => false,
    }
}

fn answer_of(lines: &[mountinfo::MountLine], path: &Path, limit: Duration) -> Answer {
    if reaches_what_may_hang(lines, path) { answer(path, limit) } else { Answer::NotAsked }
}

/// Whether the filesystem of a path, or of what a link on it may lead to, can hang. The links are those above and at the path that
/// lie on filesystems that cannot.
fn reaches_what_may_hang(lines: &[mountinfo::MountLine], path: &Path) -> bool {
    let can_hang = |path: &Path| {
        let line = mountinfo::holding(lines, &path.to_string_lossy());
        line.is_none_or(|line| may_hang(&line.filesystem))
    };
    if !lines.iter().any(|line| may_hang(&line.filesystem)) {
        return false;
    }
    let Ok(absolute) = std::path::absolute(path) else { return true };
    let mut parts: Vec<&Path> = absolute.ancestors().collect();
    parts.reverse();
    // Each part is looked at only after those above it were found to lie where nothing hangs, and to be no links.
    parts.into_iter().any(|part| can_hang(part) || part.is_symlink())
}

fn mount_lines(files: &dyn Files) -> Vec<mountinfo::MountLine> {
    let table = files.text(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    mountinfo::parse(&table).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    const TABLE: &str = "\
26 1 179:2 / / rw,noatime - ext4 /dev/mmcblk0p2 rw
32 26 0:43 / /mnt/nas rw,sync,relatime - nfs4 nas:/media rw,vers=4.2,rsize=1048576,wsize=1048576,addr=192.0.2.7
33 26 0:44 / /mnt/smb rw,relatime - cifs //nas/media rw,vers=3.1.1,username=alice,addr=192.0.2.8
";

    #[test]
    fn the_share_below_a_path_is_found_with_its_server() {
        let files = FakeFiles::new().file("/proc/self/mountinfo", TABLE);
        let nfs = Share::holding(&files, Path::new("/mnt/nas/films")).unwrap();
        assert!(nfs.mount.is_sync);
        assert_eq!(nfs.address(), Some("192.0.2.7:2049".parse().unwrap()));
        let smb = Share::holding(&files, Path::new("/mnt/smb")).unwrap();
        assert_eq!(smb.address(), Some("192.0.2.8:445".parse().unwrap()));
        assert!(Share::holding(&files, Path::new("/home/pi")).is_none());
    }

    #[test]
    fn only_what_can_hang_is_asked() {
        let local = mountinfo::parse("26 1 8:1 / / rw - ext4 /dev/sda1 rw\n").0;
        let with_shares = mountinfo::parse(TABLE).0;
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("nas");
        std::os::unix::fs::symlink("/mnt/nas", &link).unwrap();
        assert!(!reaches_what_may_hang(&local, Path::new("/mnt/nas")));
        assert!(!reaches_what_may_hang(&with_shares, Path::new("/proc")));
        assert!(!reaches_what_may_hang(&with_shares, directory.path()));
        for asked in
            [Path::new("/mnt/nas"), Path::new("/mnt/nas/films"), &link, &link.join("films")]
        {
            assert!(reaches_what_may_hang(&with_shares, asked), "{}", asked.display());
        }
        let automount = mountinfo::parse(
            "26 1 8:1 / / rw - ext4 /dev/sda1 rw\n33 26 0:50 / /mnt/nas rw - autofs systemd-1 rw\n",
        )
        .0;
        assert!(reaches_what_may_hang(&automount, Path::new("/mnt/nas")));
    }
}
