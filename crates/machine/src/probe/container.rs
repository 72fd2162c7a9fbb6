//! Whether the system runs in a container: then its kernel, its disks' settings and its swap are the host's to change.

use std::path::Path;

use rubus_host::Files;

/// Where the manager of a container says which one it is (systemd, "Container Interface").
const NAMED: &str = "/run/systemd/container";

/// Files that managers put into a container.
const MARKS: [(&str, &str); 2] = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];

/// The names by which managers call themselves there (systemd-detect-virt(1)).
const MANAGERS: [&str; 9] =
    ["docker", "podman", "lxc", "lxc-libvirt", "systemd-nspawn", "openvz", "oci", "rkt", "proot"];

/// What made the container, in the words of systemd-detect-virt(1), or "a manager without a known name"; nothing outside of
/// one.
pub(crate) fn container(files: &dyn Files) -> Option<String> {
    let named = files.text(Path::new(NAMED)).ok();
    if let Some(name) = named.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
        let known = MANAGERS.iter().find(|manager| **manager == name);
        return Some(known.unwrap_or(&"a manager without a known name").to_string());
    }
    let mark = MARKS.iter().find(|(path, _)| files.read_prefix(Path::new(path), 1).is_ok());
    mark.map(|(_, manager)| manager.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::capture::{self, Captured, Identities};
    use rubus_host::simulated::fake::FakeFiles;
    use rubus_host::simulated::recorder::Recorder;

    #[test]
    fn containers_are_told_by_what_their_managers_leave() {
        let cases = [
            (FakeFiles::new(), None),
            (FakeFiles::new().file(NAMED, "\n"), None),
            (FakeFiles::new().file(NAMED, "lxc\n"), Some("lxc")),
            (FakeFiles::new().file(NAMED, "alice\n"), Some("a manager without a known name")),
            (FakeFiles::new().file("/.dockerenv", ""), Some("docker")),
            (FakeFiles::new().file("/run/.containerenv", "engine=\"podman\"\n"), Some("podman")),
        ];
        for (files, expected) in cases {
            assert_eq!(container(&files).as_deref(), expected);
        }
    }

    #[test]
    fn a_capture_that_may_be_shared_tells_it() {
        for (path, text, expected) in [
            (NAMED, "systemd-nspawn\n", "systemd-nspawn"),
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
            assert_eq!(container(&captured).as_deref(), Some(expected), "{path}");
        }
    }
}
