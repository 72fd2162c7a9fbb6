//! Where a control group that limits memory can be made, from what the kernel says about groups.
//!
//! Sources: Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of the kernel; cgroups(7).

#![deny(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};

use rubus_machine::parse::mountinfo;

/// A directory in which groups can be made, if this user may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Version of control groups: 1 or 2.
    pub version: u32,
    /// Directory of the parent group.
    pub parent: PathBuf,
    /// This process is in that very group. In version 2 a group that has processes hands no controller on to groups
    /// below it, so it must step aside first.
    pub is_own: bool,
}

/// Where this process may make groups. `groups` is `/proc/cgroups`, `own` is `/proc/self/cgroup`, `mounts` is
/// `/proc/self/mountinfo`; `is_alone` tells whether this process is the only one of the group that it is in, by the
/// path of that group.
///
/// # Errors
/// When memory cannot be limited on this kernel as it was started, in words, with what to do.
pub fn place(
    groups: &str,
    own: &str,
    mounts: &str,
    is_root: bool,
    is_alone: impl Fn(&Path) -> bool,
) -> Result<Place, String> {
    let memory = groups.lines().find_map(|line| line.strip_prefix("memory\t"));
    if memory.is_some_and(|rest| rest.trim_end().ends_with("\t0")) {
        return Err(
            "this kernel was started with memory groups switched off; on a Raspberry Pi add `cgroup_enable=memory` to \
             the line in cmdline.txt and restart"
                .into(),
        );
    }
    let (mounts, _strange) = mountinfo::parse(mounts);
    let own_path = |is_meant: &dyn Fn(&str) -> bool| {
        own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            is_meant(controllers).then(|| path.trim_start_matches('/').to_string())
        })
    };
    let first = mounts.iter().find(|mount| {
        mount.filesystem == "cgroup" && mount.super_options.iter().any(|word| word == "memory")
    });
    if let Some(mount) = first {
        let top = PathBuf::from(&mount.point);
        let own = own_path(&|names| names.split(',').any(|name| name == "memory"));
        return Ok(Place {
            version: 1,
            // Root may make groups anywhere; what it was given may not have room for more.
            parent: if is_root { top } else { top.join(own.unwrap_or_default()) },
            is_own: false,
        });
    }
    let second = mounts.iter().find(|mount| mount.filesystem == "cgroup2");
    let Some(mount) = second else {
        return Err(
            "no control groups are mounted; `mount -t cgroup2 none /sys/fs/cgroup` (as root) mounts them".into(),
        );
    };
    let top = PathBuf::from(&mount.point);
    let own = own_path(&|names| names.is_empty()).unwrap_or_default();
    let within = top.join(&own);
    // What was given to this process alone has its limits, which are to hold for the measurement, too. Root may go
    // elsewhere where it shares its group with a shell.
    let stays = !is_root || (!own.is_empty() && is_alone(&within));
    Ok(if stays {
        Place { version: 2, parent: within, is_own: true }
    } else {
        Place { version: 2, parent: top, is_own: own.is_empty() }
    })
}

/// Advice for a user who may not create a group.
pub const ADVICE: &str = "run it as root (sudo), or in a group of your own: systemd-run --user --scope -p Delegate=yes \
                          rubus bench memory";

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: &str =
        "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t0\t90\t1\nmemory\t0\t90\t1\n";

    #[test]
    fn version_1_has_a_tree_of_its_own() {
        let mounts = "36 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      37 31 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let own = "4:memory:/jobs/7\n3:cpuset:/\n0::/\n";
        let root = place(GROUPS, own, mounts, true, |_| false).unwrap();
        assert_eq!((root.version, root.parent.to_str()), (1, Some("/sys/fs/cgroup/memory")));
        let user = place(GROUPS, own, mounts, false, |_| false).unwrap();
        assert_eq!(user.parent.to_str(), Some("/sys/fs/cgroup/memory/jobs/7"));
    }

    #[test]
    fn version_2_gives_a_user_what_is_below_his_own_group() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope\n";
        let user = place(GROUPS, own, mounts, false, |_| false).unwrap();
        assert!(user.is_own && user.parent.ends_with("app.slice/run-r1.scope"));
        let root = place(GROUPS, own, mounts, true, |_| false).unwrap();
        assert_eq!((root.parent.to_str(), root.is_own), (Some("/sys/fs/cgroup"), false));
        assert!(place(GROUPS, "0::/\n", mounts, true, |_| false).unwrap().is_own);
        let alone =
            place(GROUPS, "0::/jobs/7\n", mounts, true, |path| path.ends_with("jobs/7")).unwrap();
        assert_eq!((alone.parent.to_str(), alone.is_own), (Some("/sys/fs/cgroup/jobs/7"), true));
    }

    #[test]
    fn a_kernel_without_is_told_from_one_where_they_are_off() {
        let off = GROUPS.replace("memory\t0\t90\t1", "memory\t0\t1\t0");
        assert!(
            place(&off, "0::/\n", "", true, |_| false)
                .unwrap_err()
                .contains("cgroup_enable=memory")
        );
        assert!(place(GROUPS, "", "", true, |_| false).unwrap_err().contains("mounted"));
    }
}
