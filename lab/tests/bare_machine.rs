//! `scripts/test --set-up` on a bare machine: README's line typed as it stands, by a user with sudo, where there is neither
//! Python nor a compiler beside rustup's; and what it says where something is missing.

use rubus_lab::bare_debian::{BareDebian, CHECKOUT, OLDEST, TOOLS, USER};
use rubus_lab::cache::{Cache, workspace_root};
use rubus_lab::devices::needs::Need;

use crate::common::can_run;
use crate::common::packages::all;

const TEST: &str = "bare_machine";

#[test]
fn the_tests_can_be_set_up_on_debian_12() {
    the_tests_can_be_set_up("bookworm");
}

#[test]
fn the_tests_can_be_set_up_on_debian_13() {
    the_tests_can_be_set_up("trixie");
}

fn the_tests_can_be_set_up(suite: &str) {
    let mut needs =
        vec![Need::Root, Need::Program("rustup", "rustup"), Need::Program("git", "git")];
    needs.extend(TOOLS.iter().map(|tool| Need::Program(tool.program, tool.package)));
    if !can_run(TEST, &needs) {
        return;
    }
    let machine = Machine(BareDebian::new(&Cache::of_this_machine(), suite).unwrap());
    machine.0.add_network().unwrap();
    machine.0.add_checkout().unwrap();

    let set_up = format!("{} --set-up", readmes_line());
    machine.refuses(&set_up, &["there is no cargo", "sh.rustup.rs"]);
    machine.succeeds(
        "printf '#!/bin/sh\necho cargo 1.63.0\n' | sudo tee /usr/bin/cargo && sudo chmod +x /usr/bin/cargo",
    );
    machine.refuses(&set_up, &["/usr/bin/cargo is cargo 1.63.0", "too old"]);
    machine.succeeds(
        "mkdir -p ~/.cargo/bin && printf '#!/bin/sh\necho cargo 1.80.0\n' >~/.cargo/bin/cargo &&
        cp ~/.cargo/bin/cargo ~/.cargo/bin/rustup && chmod +x ~/.cargo/bin/*",
    );
    machine
        .refuses(&set_up, &[&format!("Rust {OLDEST} or newer is needed"), "rustup update stable"]);
    machine.succeeds("rm -r ~/.cargo");
    machine.0.add_toolchain(OLDEST).unwrap();
    machine.refuses(
        &format!("ln -s ~/{CHECKOUT} ~/'a b' && cd ~/'a b' && {set_up}"),
        &["has a space", "a b"],
    );
    machine.refuses(
        &format!(
            "mkdir ~/small && sudo mount -t tmpfs -o size=200m tmpfs ~/small
            cp -a ~/{CHECKOUT} ~/small && cd ~/small/{CHECKOUT} && {set_up}"
        ),
        &["small/rubus has 0 GB of free space", "Make room"],
    );
    machine.succeeds("! command -v python3 && ! command -v cc");

    let said = machine.succeeds(&set_up);
    assert!(said.contains("Everything that the tests need is installed"), "{said}");
    machine.succeeds(
        "target/tools/bin/cargo-zigbuild --version && command -v python3 cc qemu-system-aarch64",
    );
    assert_eq!(machine.succeeds("find ~ -user root"), "", "the user cannot build there any more");

    // Nothing is fetched a second time, and what is missing then is said.
    machine.0.remove_network().unwrap();
    machine.succeeds(&set_up);
    machine.succeeds("sudo apt-get remove -qq -y jq && sudo apt-get clean");
    machine.refuses(&set_up, &["apt-get install failed", "Check the network"]);
    machine.refuses(
        &set_up.replace("sudo -E ", ""),
        &["only root can install the packages that the tests drive: jq", "sudo -E scripts/test"],
    );
    machine.refuses(
        &format!(
            "sudo python3 -c '{HOLD}' &
            timeout 60 sh -c 'until [ -e /tmp/held ]; do sleep 0.1; done'
            RUBUS_APT_WAIT_S=1 {set_up}"
        ),
        &["another apt or dpkg is at work", "Run this again"],
    );
}

/// Holds the lock of apt's lists until the machine ends.
const HOLD: &str = "import fcntl, time
lock = open(\"/var/lib/apt/lists/lock\", \"w\")
fcntl.lockf(lock, fcntl.LOCK_EX)
open(\"/tmp/held\", \"w\").close()
time.sleep(3600)";

/// The line of README.md that runs the tests.
fn readmes_line() -> String {
    let text = std::fs::read_to_string(workspace_root().join("README.md")).unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("    "));
    let line = lines.rfind(|line| line.ends_with("scripts/test"));
    line.expect("README.md says how the tests are run").to_owned()
}

struct Machine(BareDebian);

impl Machine {
    /// Runs a script in the checkout. A script must not call `exit`: the login shell then reads Debian's `.bash_logout`, which fails
    /// without a terminal.
    fn run(&self, script: &str) -> (Option<i32>, String) {
        let output = self.0.run(USER, &format!("set -e\ncd {CHECKOUT}\n{script}")).unwrap();
        (output.status.code(), all(&output))
    }

    fn succeeds(&self, script: &str) -> String {
        let (status, said) = self.run(script);
        assert_eq!(status, Some(0), "{script}\n{said}");
        said
    }

    fn refuses(&self, script: &str, words: &[&str]) {
        let (status, said) = self.run(script);
        assert_eq!(status, Some(2), "{script}\n{said}");
        for words in words {
            assert!(said.contains(words), "no {words:?} in: {said}");
        }
    }
}
