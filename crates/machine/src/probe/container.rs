//! Whether the system runs in a container: then its kernel, its disks' settings and its swap are the host's to change.

use std::path::Path;

use rubus_host::Files;
use rubus_host::capture::{manager_by_groups, manager_by_name};

/// Where the manager of a container says which one it is (systemd, "Container Interface").
const NAMED: [&str; 2] = ["/run/host/container-manager", "/run/systemd/container"];

/// Files that managers put into a container.
const MARKS: [(&str, &str); 2] = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];

/// What made the container, in the words of systemd-detect-virt(1), or "a manager without a known name"; nothing outside of
/// one. What everyone may read comes first.
pub(crate) fn container(files: &dyn Files) -> Option<String> {
    let named = NAMED.iter().find_map(|path| known(&files.text(Path::new(path)).ok()?));
    let found = named.or_else(|| marked(files)).or_else(|| by_groups(files));
    found.or_else(|| by_environment(files)).map(str::to_string)
}

/// A manager's name; nothing where there is none.
fn known(name: &str) -> Option<&'static str> {
    let name = Some(name.trim()).filter(|name| !name.is_empty())?;
    Some(manager_by_name(name).unwrap_or("a manager without a known name"))
}

fn marked(files: &dyn Files) -> Option<&'static str> {
    let mark = MARKS.into_iter().find(|(path, _)| files.read_prefix(Path::new(path), 1).is_ok());
    // The host of OpenVZ has both directories.
    let is_openvz = || files.exists(Path::new("/proc/vz")) && !files.exists(Path::new("/proc/bc"));
    mark.map(|(_, manager)| manager).or_else(|| is_openvz().then_some("openvz"))
}

/// Where the kernel does not hide them: control groups of the first version.
fn by_groups(files: &dyn Files) -> Option<&'static str> {
    manager_by_groups(&files.text(Path::new("/proc/1/cgroup")).ok()?)
}

/// What root may read of any first process, whether that is systemd or not.
fn by_environment(files: &dyn Files) -> Option<&'static str> {
    let environment = files.text(Path::new("/proc/1/environ")).ok()?;
    known(environment.split('\0').find_map(|entry| entry.strip_prefix("container="))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::capture::{self, Captured, Identities};
    use rubus_host::simulated::fake::FakeFiles;
    use rubus_host::simulated::recorder::Recorder;

    const ENVIRONMENT: &str = "/proc/1/environ";

    #[test]
    fn containers_are_told_by_what_their_managers_leave() {
        let cases = [
            (FakeFiles::new(), None),
            (FakeFiles::new().file(NAMED[1], "\n"), None),
            (FakeFiles::new().file(NAMED[1], "lxc\n"), Some("lxc")),
            (FakeFiles::new().file(NAMED[1], "alice\n"), Some("a manager without a known name")),
            (FakeFiles::new().file(NAMED[0], "oci\n"), Some("oci")),
            (FakeFiles::new().file("/.dockerenv", ""), Some("docker")),
            (FakeFiles::new().file("/run/.containerenv", "engine=\"podman\"\n"), Some("podman")),
            (FakeFiles::new().dir("/proc/vz"), Some("openvz")),
            (FakeFiles::new().dir("/proc/vz").dir("/proc/bc"), None),
            (FakeFiles::new().file("/proc/1/cgroup", "4:cpu:/docker/0a1b2c\n"), Some("docker")),
            (FakeFiles::new().file("/proc/1/cgroup", "0::/init.scope\n"), None),
            (FakeFiles::new().file(ENVIRONMENT, "TERM=linux\0container=lxc\0"), Some("lxc")),
            (FakeFiles::new().file(ENVIRONMENT, "TERM=linux\0HOME=/\0"), None),
            (FakeFiles::new().file(ENVIRONMENT, "container=\0"), None),
            (FakeFiles::new().denied(ENVIRONMENT), None),
        ];
        for (files, expected) in cases {
            assert_eq!(container(&files).as_deref(), expected);
        }
    }

    #[test]
    fn a_capture_that_may_be_shared_tells_it() {
        for (path, text, expected) in [
            (NAMED[1], "systemd-nspawn\n", "systemd-nspawn"),
            (NAMED[0], "oci\n", "oci"),
            (ENVIRONMENT, "TERM=linux\0container=lxc\0DB_PASSWORD=qzalice\0", "lxc"),
            ("/proc/1/cgroup", "4:cpu:/libpod_parent/libpod-qzalice\n", "podman"),
            ("/.dockerenv", "", "docker"),
            ("/run/.containerenv", "name=\"qzalice\"\n", "podman"),
        ] {
            let files = FakeFiles::new().file(path, text);
            let recorder = Recorder::new(&files);
            let _ = container(&recorder);
            let directory = tempfile::tempdir().unwrap();
            let saved = directory.path().join("capture.tar");
            let when = "2026-12-01T00:58:12Z";
            capture::save(&recorder, &saved, "for a test", when, Identities::Replace).unwrap();
            let captured = Captured::open(&saved).unwrap();
            let kept = captured.text(Path::new(path)).unwrap();
            assert!(!kept.contains("qzalice"), "{path}: {kept}");
            assert_eq!(container(&captured).as_deref(), Some(expected), "{path}");
        }
    }

    #[test]
    fn no_capture_has_the_rest_of_an_environment() {
        let files = FakeFiles::new().file(ENVIRONMENT, "DB_URL=qzalice\0container=podman\0");
        let recorder = Recorder::new(&files);
        let _ = container(&recorder);
        let directory = tempfile::tempdir().unwrap();
        let saved = directory.path().join("capture.tar");
        let when = "2026-12-01T00:58:12Z";
        capture::save(&recorder, &saved, "for a test", when, Identities::Keep).unwrap();
        let captured = Captured::open(&saved).unwrap();
        let kept = captured.text(Path::new(ENVIRONMENT)).unwrap();
        assert!(!kept.contains("qzalice"), "{kept}");
        assert_eq!(container(&captured).as_deref(), Some("podman"));
    }
}
