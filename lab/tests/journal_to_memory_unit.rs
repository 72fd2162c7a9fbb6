//! `journal-to-memory` under a real systemd: journald writes nothing to the old journal from then on, shows it as before, and
//! writes to it again after undoing.

use crate::common::{can_run, program, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::under_systemd::{self, Ran};

const NEEDS: [Need; 3] =
    [Need::Root, Need::Program("unshare", "util-linux"), Need::Program("journalctl", "systemd")];

/// A journal on the disk.
const BEGIN: &str = "
install /run/lab/rubus /usr/local/bin/rubus
old() { find /var/log/journal -type f -exec sha256sum {} + | sort; }
say() { echo \"$1\" | systemd-cat; journalctl --sync; }
rm -rf /etc/systemd/journald.conf.d
mkdir -p /var/log/journal
journalctl --flush
say 'said before'
journalctl -D /var/log/journal -o cat | grep 'said before'
";

/// The journal is in memory; the old one is read, not written.
const APPLIED: &str = "
rubus apply journal-to-memory size=16M --yes
before=$(old)
say 'said in memory'
test \"$(old)\" = \"$before\"
journalctl -D /run/log/journal -o cat | grep 'said in memory'
journalctl -o cat | grep 'said before'
journalctl -u systemd-journald -o cat | grep 'Runtime Journal.*max 16'
rubus verify
rubus apply journal-to-memory size=16M --yes | grep 'Nothing to do'
";

const UNDONE: &str = "
rubus undo --yes
test ! -e /etc/systemd/journald.conf.d
say 'said after'
journalctl -D /var/log/journal -o cat | grep 'said after'
";

#[test]
fn the_journal_leaves_the_disk_and_comes_back() {
    if !can_run("journal_to_memory_unit", &NEEDS) {
        return;
    }
    let _turn = take_turns();
    let script = [BEGIN, APPLIED, UNDONE].concat();
    let ran = under_systemd::run(&script, &[("rubus", program::binary())], &[]);
    let Ran { status, output } = ran.expect("systemd runs it");
    assert_eq!(status, 0, "{output}");
    for words in ["0001-journal-to-memory is applied", "0001-journal-to-memory is undone"] {
        assert!(output.contains(words), "'{words}' is not in:\n{output}");
    }
}
