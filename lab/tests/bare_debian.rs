//! The install lines of README.md and docs/how-to/install.md, typed as they stand on bare roots of Debian, against an apt repository
//! behind HTTP.

use std::path::Path;
use std::process::Command;

use rubus_lab::bare_debian::{BareDebian, TOOLS, USER};
use rubus_lab::cache::{Cache, workspace_root};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{Listening, Serving, free_port};

use crate::common::packages::{NEEDS, all, make, make_repository};
use crate::common::{can_run, program};

const TEST: &str = "bare_debian";
const HOST: &str = "127.0.0.1";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const EARLIER: &str = "0.1.0";
/// Debian's name of this machine's processor.
const ARCHITECTURE: &str = match std::env::consts::ARCH.as_bytes() {
    b"aarch64" => "arm64",
    _ => "amd64",
};

#[test]
fn the_install_lines_work_on_debian_12() {
    the_install_lines_work("bookworm");
}

#[test]
fn the_install_lines_work_on_debian_13() {
    the_install_lines_work("trixie");
}

fn the_install_lines_work(suite: &str) {
    let mut needs = NEEDS.to_vec();
    needs.push(Need::Root);
    needs.extend(TOOLS.iter().map(|tool| Need::Program(tool.program, tool.package)));
    if !can_run(TEST, &needs) {
        return;
    }
    let cache = Cache::of_this_machine();
    let web = Web::start();

    let root = BareDebian::new(&cache, suite).unwrap();
    web.publish(EARLIER);
    must(&root, &lines_of_the_repository(&web));
    assert_eq!(installed(&root), EARLIER);
    manual_and_completion_are_there(&root);
    must(
        &root,
        "printf '[short]\\nrw=write\\nbs=64k\\nsize=1m\\n' >short.fio
        rubus bench . --fio-job short.fio --quiet",
    );
    let history = must(&root, "rubus history --json");
    assert!(history.contains("job-file"), "{history}");

    web.publish(VERSION);
    must(&root, "sudo apt update && sudo apt upgrade -y");
    assert_eq!(installed(&root), VERSION);
    assert_eq!(must(&root, "rubus history --json"), history);

    let said =
        must(&root, &lines("docs/how-to/install.md", "## Remove it").replace("purge", "purge -y"));
    assert!(said.contains("/home/pi/.local/share/rubus: history"), "{said}");
    assert!(!root.path("usr/bin/rubus").exists());
    assert!(root.path("home/pi/.local/share/rubus/history.db").exists());
    drop(root);

    readme_installs_a_package(&BareDebian::new(&cache, suite).unwrap(), &web);
}

/// README's lines, in a directory with the package of this processor: from `dpkg` to a checkup.
fn readme_installs_a_package(root: &BareDebian, web: &Web) {
    let typed = answered(&lines("README.md", "## Install"));
    let words = ["dpkg --print-architecture", "apt install -y ./rubus_*.deb", "rubus "];
    assert!(words.iter().all(|words| typed.contains(words)), "{typed}");
    let download = format!("wget -q {}/packages/{}", web.url, web.package(VERSION));
    let said = must(root, &format!("{download}\n{typed}\nrubus survey"));
    assert!(said.lines().any(|line| line == ARCHITECTURE), "{said}");
    for words in ["To do: ", "Machine"] {
        assert!(said.contains(words), "no {words:?} in: {said}");
    }
    assert!(root.path("home/pi/.local/share/rubus/history.db").exists());
}

/// The lines of docs/how-to/install.md that add the repository and install from it.
fn lines_of_the_repository(web: &Web) -> String {
    let typed = lines("docs/how-to/install.md", "## With apt");
    let (typed, _) = typed.split_once("Types: deb").expect("the contents of rubus.sources");
    assert!(typed.contains("https://HOST/rubus/rubus.sources"), "{typed}");
    answered(&typed.replace("https://HOST/rubus", &format!("{}/apt", web.url)))
}

/// apt asks a person whether to install what comes along.
fn answered(typed: &str) -> String {
    typed.replace("apt install ", "apt install -y ")
}

/// The code block or blocks below a heading, up to what is built from source.
fn lines(document: &str, heading: &str) -> String {
    let text = std::fs::read_to_string(workspace_root().join(document)).unwrap();
    let (_, below) = text.split_once(&format!("\n{heading}\n")).expect(heading);
    let until = ["\n## ", "\n### ", "\nFrom source"];
    let end = until.iter().filter_map(|end| below.find(end)).min();
    let typed = below[..end.unwrap_or(below.len())].lines();
    let typed: Vec<_> = typed.filter_map(|line| line.strip_prefix("    ")).collect();
    assert!(!typed.is_empty(), "{document} has no lines below '{heading}'");
    typed.join("\n")
}

fn manual_and_completion_are_there(root: &BareDebian) {
    let page = must(root, "MANWIDTH=80 man rubus | cat");
    assert!(page.contains("EXIT STATUS"), "{page}");
    let completed = must(
        root,
        ". /usr/share/bash-completion/bash_completion
         loader=$(declare -F _comp_load __load_completion | head -n 1); $loader rubus
         COMP_WORDS=(rubus surv); COMP_CWORD=1; COMP_LINE='rubus surv'; COMP_POINT=10
         $(complete -p rubus | sed 's/.*-F \\([^ ]*\\).*/\\1/') rubus surv rubus
         echo \"${COMPREPLY[@]}\"",
    );
    assert_eq!(completed.trim(), "survey");
}

fn installed(root: &BareDebian) -> String {
    must(root, "dpkg-query -W -f '${Version}' rubus")
}

/// What a script that has to succeed says, run as an ordinary user.
fn must(root: &BareDebian, script: &str) -> String {
    let output = root.run(USER, &format!("set -e\n{script}")).unwrap();
    assert!(output.status.success(), "{script}\n{}", all(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Packages and a repository behind HTTP on this machine.
struct Web {
    url: String,
    directory: tempfile::TempDir,
    _serving: Serving,
}

impl Web {
    fn start() -> Web {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port(HOST).unwrap();
        let mut server = Command::new("python3");
        server.args(["-m", "http.server", "--bind", HOST, "--directory"]);
        server.arg(directory.path()).arg(port.to_string());
        let listening = Listening::Port(HOST.into(), port);
        Web {
            url: format!("http://{HOST}:{port}"),
            _serving: Serving::start(server, listening).unwrap(),
            directory,
        }
    }

    /// Adds a version to the packages, and makes the repository of them.
    fn publish(&self, version: &str) {
        let at = |name: &str| self.directory.path().join(name);
        let program: &Path = program::binary();
        make(program, ARCHITECTURE, version, &at("packages"));
        make_repository(&at("packages"), &at("apt"), &at("key.asc"), &format!("{}/apt", self.url));
    }

    fn package(&self, version: &str) -> String {
        format!("rubus_{version}_{ARCHITECTURE}.deb")
    }
}
