//! What of the environment and the control groups of process 1 goes into a capture: what they say of a container.

use crate::shareable::LEFT_OUT;

/// The environment of process 1. That of a container often holds passwords.
pub(super) const ENVIRONMENT: &str = "/proc/1/environ";

/// The names by which managers call themselves (systemd-detect-virt(1)).
const MANAGERS: [&str; 9] =
    ["docker", "podman", "lxc", "lxc-libvirt", "systemd-nspawn", "openvz", "oci", "rkt", "proot"];

/// How components of a control group's path begin that managers of containers make, and the manager in the words of
/// systemd-detect-virt(1).
const GROUPS: [(&str, &str); 4] =
    [("docker", "docker"), ("libpod", "podman"), ("lxc", "lxc"), ("kubepods", "oci")];

/// A manager of containers by the name that it gives itself; nothing where that is not known.
pub fn manager_by_name(name: &str) -> Option<&'static str> {
    MANAGERS.into_iter().find(|manager| *manager == name)
}

/// The manager of the container whose process 1 is in these control groups, in the form of `/proc/1/cgroup` (cgroups(7));
/// nothing where no manager is known by them.
pub fn manager_by_groups(text: &str) -> Option<&'static str> {
    group(text).map(|(_, manager)| manager)
}

fn group(text: &str) -> Option<(&'static str, &'static str)> {
    let paths = || text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let is_in =
        |start: &str| paths().flat_map(|path| path.split('/')).any(|part| part.starts_with(start));
    GROUPS.into_iter().find(|(start, _)| is_in(start))
}

/// Of an environment, who made the container.
pub(super) fn environment(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let named = text.split('\0').find_map(|entry| entry.strip_prefix("container="));
    let said = named
        .filter(|manager| !manager.is_empty())
        .map(|manager| format!("container={}\0", manager_by_name(manager).unwrap_or(LEFT_OUT)));
    said.unwrap_or_default().into_bytes()
}

/// Of control groups, that of the manager of containers, without the container's name.
pub(super) fn groups(bytes: &[u8]) -> Vec<u8> {
    let known = group(&String::from_utf8_lossy(bytes));
    known.map(|(start, _)| format!("0::/{start}\n")).unwrap_or_default().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_environment_the_manager_is_kept_and_nothing_else() {
        for (environment_of_1, expected) in [
            ("PATH=/bin\0DB_PASSWORD=qzsecret\0container=lxc\0", "container=lxc\0"),
            ("container=systemd-nspawn\0TERM=linux\0", "container=systemd-nspawn\0"),
            ("container=qzalice\0", "container=left out\0"),
            ("container=disk-board\0", "container=left out\0"),
            ("container=\0TERM=linux\0", ""),
            ("my_container=docker\0", ""),
            ("", ""),
        ] {
            assert_eq!(environment(environment_of_1.as_bytes()), expected.as_bytes());
        }
    }

    #[test]
    fn control_groups_tell_the_manager_and_no_name() {
        for (text, manager) in [
            ("12:memory:/docker/0a1b2c\n1:name=systemd:/docker/0a1b2c\n", Some("docker")),
            ("0::/system.slice/docker-0a1b2c.scope\n", Some("docker")),
            ("4:cpu:/kubepods.slice/kubepods-besteffort.slice/x\n", Some("oci")),
            ("4:cpu:/machine.slice/libpod-0a1b2c.scope\n", Some("podman")),
            ("4:cpu:/lxc.payload.qzalice\n", Some("lxc")),
            ("4:cpu:/lxc/qzalice/init.scope\n", Some("lxc")),
            ("0::/init.scope\n", None),
            ("0::/\n", None),
            ("docker\n", None),
        ] {
            assert_eq!(manager_by_groups(text), manager, "{text}");
            let kept = String::from_utf8(groups(text.as_bytes())).unwrap();
            assert_eq!(manager_by_groups(&kept), manager, "{kept}");
            assert!(!kept.contains("qz") && !kept.contains("0a1b2c"), "{kept}");
        }
    }
}
