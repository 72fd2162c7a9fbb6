//! The Debian package and the apt repository of a given program: the right files in their places, the same bytes each time,
//! signed, and installed and removed in a root of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use rubus_lab::devices::needs::Need;

use crate::common::packages::{NEEDS, all, make, make_repository, small_program, succeeds};
use crate::common::{can_run, program};

const TEST: &str = "packages";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Debian's name of this machine's processor.
const ARCHITECTURE: &str = match std::env::consts::ARCH.as_bytes() {
    b"aarch64" => "arm64",
    _ => "amd64",
};

#[test]
fn the_files_are_in_their_places_and_lintian_is_content() {
    let mut needs = NEEDS.to_vec();
    needs.push(Need::Program("lintian", "lintian"));
    needs.push(Need::Program("man", "man-db"));
    if !can_run(TEST, &needs) {
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let deb = make(program::binary(), ARCHITECTURE, VERSION, made.path());

    let listed = all(&succeeds(Command::new("dpkg-deb").arg("-c").arg(&deb)));
    let has = |mode: &str, path: &str| {
        let is_it = |line: &str| line.starts_with(mode) && line.ends_with(&format!(" .{path}"));
        assert!(listed.lines().any(is_it), "{mode} {path}:\n{listed}");
    };
    has("-rwxr-xr-x root/root", "/usr/bin/rubus");
    for path in [
        "/usr/share/man/man1/rubus.1.gz",
        "/usr/share/man/man1/rubus-checkup.1.gz",
        "/usr/share/man/man1/rubus-history-show.1.gz",
        "/usr/share/bash-completion/completions/rubus",
        "/usr/share/zsh/vendor-completions/_rubus",
        "/usr/share/fish/vendor_completions.d/rubus.fish",
        "/usr/share/doc/rubus/copyright",
        "/usr/share/doc/rubus/changelog.gz",
        "/usr/share/doc/rubus/CHANGELOG.md.gz",
        "/usr/share/doc/rubus/THIRD-PARTY-LICENSES.txt.gz",
    ] {
        has("-rw-r--r-- root/root", path);
    }
    let outside = |line: &&str| !line.ends_with('/') && !line.contains(" ./usr/");
    let outside: Vec<_> = listed.lines().filter(outside).collect();
    assert!(outside.is_empty(), "{outside:?}");

    let root = made.path().join("root");
    succeeds(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&root));
    let mut man = Command::new("man");
    man.env("MANWIDTH", "80").arg("--warnings").arg("-l");
    let page = succeeds(man.arg(root.join("usr/share/man/man1/rubus.1.gz")));
    assert_eq!(String::from_utf8_lossy(&page.stderr), "", "groff warns");
    let page = String::from_utf8_lossy(&page.stdout).replace('\u{8}', "");
    assert!(page.contains("EXIT STATUS"), "{page}");
    is_clean(&deb, &root.join("usr/bin/rubus"));
    a_list_of_libraries_is_complete(made.path());
}

/// Lintian has nothing to say. What it says of a program that is linked dynamically holds for no release.
fn is_clean(deb: &Path, program: &Path) {
    let kind = all(&succeeds(Command::new("file").arg("-L").arg(program)));
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]);
    if kind.contains("dynamically") {
        lintian.args(["--suppress-tags", "undeclared-elf-prerequisites"]);
    }
    let said = all(&succeeds(lintian.arg(deb)));
    let said: Vec<_> = said.lines().filter(|line| !line.starts_with("N:")).collect();
    assert!(said.is_empty(), "{said:?}");
}

fn a_list_of_libraries_is_complete(made: &Path) {
    let list = made.join(format!("rubus-{VERSION}-{ARCHITECTURE}.cdx.json"));
    let list: serde_json::Value = serde_json::from_str(&fs::read_to_string(list).unwrap()).unwrap();
    assert_eq!(list["bomFormat"], "CycloneDX");
    let components = list["components"].as_array().unwrap();
    let scope_of = |name: &str| {
        let found = components.iter().find(|one| one["name"] == name);
        found.map(|one| one["scope"].as_str().unwrap_or_default())
    };
    assert_eq!(scope_of("rustls"), Some("required"));
    assert_eq!(scope_of("rubus-vocabulary"), Some("required"));
    assert_eq!(scope_of("musl"), Some("required"));
    assert_eq!(scope_of("cc"), Some("excluded"), "only builds");
    assert_eq!(scope_of("proptest"), None, "only tests");
    let text = list.to_string();
    let home = std::env::var("HOME").unwrap_or_default();
    for path in [env!("CARGO_MANIFEST_DIR"), &format!("{home}/.cargo")] {
        assert!(!text.contains(path), "{path} is in the list");
    }
}

#[test]
fn two_runs_give_the_same_bytes() {
    if !can_run(TEST, &NEEDS) {
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let program = small_program(made.path());
    let run = |name: &str, umask: &str, zone: &str| {
        let out = made.path().join(name);
        let script = format!(
            "umask {umask}; exec \"$0\" --binary \"$1\" --arch {ARCHITECTURE} --out \"$2\""
        );
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]);
        shell.arg(rubus_lab::cache::workspace_root().join("scripts/package"));
        shell.arg(&program).arg(&out);
        shell.env("SOURCE_DATE_EPOCH", "1700000000");
        succeeds(shell.env("TZ", zone).env("LC_ALL", "C.UTF-8"));
        let mut files: Vec<_> = fs::read_dir(out).unwrap().map(Result::unwrap).collect();
        files.sort_by_key(fs::DirEntry::file_name);
        let files = files.into_iter();
        files.map(|file| (file.file_name(), fs::read(file.path()).unwrap())).collect::<Vec<_>>()
    };
    let first = run("first", "022", "UTC");
    let second = run("second", "077", "Asia/Tokyo");
    assert_eq!(first.len(), 5, "archive, package, list, sums, build");
    for ((name, bytes), (other_name, other_bytes)) in first.iter().zip(&second) {
        assert_eq!(name, other_name);
        assert!(bytes == other_bytes, "{name:?} differs");
    }
}

#[test]
fn a_signed_repository_installs_upgrades_and_purges() {
    let mut needs = NEEDS.to_vec();
    needs.push(Need::Root);
    if !can_run(TEST, &needs) {
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let (packages, repository) = (made.path().join("packages"), made.path().join("apt"));
    let program = small_program(made.path());
    let key = made.path().join("key.asc");
    let url = format!("file:{}", repository.display());
    let publish = |version: &str| {
        make(&program, ARCHITECTURE, version, &packages);
        make_repository(&packages, &repository, &key, &url);
    };
    let root = Root::new(made.path(), &repository);
    publish("0.0.9");
    is_signed(&repository);
    root.apt(&["update"]);
    root.apt(&["install", "rubus"]);
    assert_eq!(root.version(), "0.0.9");
    assert!(root.path("usr/bin/rubus").is_file());

    publish(VERSION);
    root.apt(&["update"]);
    root.apt(&["upgrade"]);
    assert_eq!(root.version(), VERSION);

    a_program_that_a_boot_needs_is_not_removed(&root);
    a_purge_leaves_what_the_user_made_and_says_where(&root);

    let list = repository.join("dists/stable/InRelease");
    let tampered = fs::read_to_string(&list).unwrap().replace("Origin: Rubus", "Origin: Robus");
    fs::write(&list, tampered).unwrap();
    let refused = all(&root.apt_output(&["update"]));
    // As gpgv says it, apt, and sqv of Debian 13.
    let words = ["BADSIG", "not signed", "has been manipulated"];
    assert!(words.iter().any(|words| refused.contains(words)), "{refused}");
}

fn is_signed(repository: &Path) {
    let mut gpgv = Command::new("gpgv");
    gpgv.arg("--keyring").arg(repository.join("rubus-archive-keyring.gpg"));
    succeeds(gpgv.arg(repository.join("dists/stable/InRelease")));
    let sources = fs::read_to_string(repository.join("rubus.sources")).unwrap();
    assert!(
        sources.contains("Signed-By: /usr/share/keyrings/rubus-archive-keyring.gpg"),
        "{sources}"
    );
}

fn a_program_that_a_boot_needs_is_not_removed(root: &Root) {
    let unit = root.path("etc/systemd/system/rubus-nbd0.service");
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    fs::write(&unit, "[Service]\nExecStart=/usr/bin/rubus attach nbd://host/disk\n").unwrap();
    let refused = root.apt_output(&["remove", "rubus"]);
    assert!(!refused.status.success());
    let said = all(&refused);
    for words in [
        "cannot remove the program",
        "rubus-nbd0.service",
        "rubus undo CHANGE",
        "RUBUS_REMOVE=anyway",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert!(root.path("usr/bin/rubus").is_file());
    fs::remove_file(unit).unwrap();
}

fn a_purge_leaves_what_the_user_made_and_says_where(root: &Root) {
    let mine =
        ["var/lib/rubus/changes/0001-zswap/journal", "home/pi/.local/share/rubus/history.db"];
    for path in mine.map(|path| root.path(path)) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "mine").unwrap();
    }
    let said = all(&root.apt_output(&["purge", "rubus"]));
    for words in ["/var/lib/rubus/changes: journals", "/home/pi/.local/share/rubus: history"] {
        assert!(said.contains(words), "{said}");
    }
    for path in mine.map(|path| root.path(path)) {
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine", "{path:?}");
    }
    let program_files = format!("{}/usr/*", root.directory.display());
    let mut find = Command::new("find");
    let left = succeeds(find.arg(&root.directory).args(["-path", &program_files]));
    let left = all(&left);
    assert_eq!(left, "");
}

/// A root without any other package, for dpkg and apt.
struct Root {
    directory: std::path::PathBuf,
}

impl Root {
    fn new(within: &Path, repository: &Path) -> Root {
        let directory = within.join("root");
        for path in [
            "var/lib/dpkg/info",
            "var/lib/dpkg/updates",
            "var/lib/apt/lists/partial",
            "var/cache/apt/archives/partial",
            "etc/apt/sources.list.d",
            "var/log/apt",
        ] {
            fs::create_dir_all(directory.join(path)).unwrap();
        }
        fs::write(directory.join("var/lib/dpkg/status"), "").unwrap();
        let source = format!(
            "Types: deb\nURIs: file:{0}\nSuites: stable\nComponents: main\nSigned-By: {0}/rubus-archive-keyring.gpg\n",
            repository.display()
        );
        fs::write(directory.join("etc/apt/sources.list.d/rubus.sources"), source).unwrap();
        Root { directory }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.directory.join(path)
    }

    fn apt(&self, arguments: &[&str]) {
        let output = self.apt_output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", all(&output));
    }

    /// Runs apt on this root alone: its own settings, lists and packages.
    fn apt_output(&self, arguments: &[&str]) -> std::process::Output {
        let root = self.directory.display();
        let mut apt = Command::new("apt-get");
        for option in [
            format!("Dir={root}"),
            format!("Dir::State::status={root}/var/lib/dpkg/status"),
            format!("APT::Architecture={ARCHITECTURE}"),
            format!("APT::Architectures::={ARCHITECTURE}"),
            format!("DPkg::Options::=--root={root}"),
            // Nothing is in this root that could run a script.
            "DPkg::Options::=--force-script-chrootless".into(),
            "APT::Sandbox::User=root".into(),
            "Acquire::Languages=none".into(),
        ] {
            apt.args(["-o", &option]);
        }
        apt.args(["-y", "-q"]).args(arguments);
        apt.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
        apt.env("PATH", rubus_lab::tools::search_path());
        apt.output().unwrap()
    }

    fn version(&self) -> String {
        let mut query = Command::new("dpkg-query");
        query.arg(format!("--admindir={}/var/lib/dpkg", self.directory.display()));
        let output = succeeds(query.args(["-W", "-f", "${Version}", "rubus"]));
        String::from_utf8(output.stdout).unwrap()
    }
}
