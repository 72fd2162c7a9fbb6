//! `logs-to-memory` under a real systemd, over five starts of one machine: the logs come to memory and back to the disk, and
//! no more is lost than the plan says.

use std::fs;

use crate::common::{can_run, program, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::under_systemd::{End, Machine, Ran};

const NEEDS: [Need; 3] =
    [Need::Root, Need::Program("unshare", "util-linux"), Need::Program("journalctl", "systemd")];
const KEPT: [&str; 4] = ["/etc/systemd/system", "/usr/local/bin", "/usr/local/sbin", "/var"];

const TOOLS: &str = "
say() { echo \"$1\" | systemd-cat; journalctl --sync; }
said() { journalctl --no-pager -o cat | grep -q \"^$1\"; }
covered() { grep -q '^rubus-logs /var/log tmpfs ' /proc/self/mounts; }
not() { if \"$@\"; then return 1; fi; }
disk=/run/rubus/logs/disk
";

/// The change waits for the next boot, whatever starts its unit: programs have their logs open.
const APPLIED: &str = "
install /run/lab/rubus /usr/local/bin/rubus
mkdir -p /var/log/journal /var/log/app
journalctl --flush
say 'said before'
echo one >/var/log/text
echo old >/var/log/app/rotated.1
chown 33 /var/log/app
chmod 2750 /var/log/app
head -c 30000000 /dev/zero >/var/log/large
not rubus apply logs-to-memory size=64M save=hourly --yes
rubus plan logs-to-memory size=64M | grep '28.6 MiB of logs, 48.0 MiB'
rm /var/log/large
rubus apply logs-to-memory size=64M save=hourly --yes
systemctl daemon-reload
systemctl start rubus-logs
systemctl is-active rubus-logs
journalctl -u rubus-logs --no-pager -o cat | grep 'until the next start'
not covered
echo two >>/var/log/text
rubus verify | grep 'comes true after the next start'
";

const IN_MEMORY: &str = "
covered
systemctl is-active rubus-logs rubus-logs-save.timer
test -z \"$(systemctl list-units --failed --no-legend)\"
journalctl -b --no-pager >/run/journal
not grep 'ordering cycle' /run/journal
rubus verify
rubus apply logs-to-memory size=64M save=hourly --yes | grep 'Nothing to do'
test \"$(cat /var/log/text)\" = \"$(printf 'one\\ntwo')\"
test \"$(stat -c '%a %u' /var/log/app)\" = '2750 33'
said 'said before'
say 'said in memory'
echo three >>/var/log/text
not grep three $disk/text
systemctl start rubus-logs-save
grep three $disk/text
test ! -e $disk/.rubus-logs
";

/// Root's files are never written through a symbolic link in another user's directory.
const LINKS: &str = "
ln -s /etc /var/log/app/sub
systemctl start rubus-logs-save
test \"$(readlink $disk/app/sub)\" = /etc
rm /var/log/app/sub
mkdir /var/log/app/sub
echo strange >/var/log/app/sub/rubus-lab-strange
systemctl start rubus-logs-save
test ! -e /etc/rubus-lab-strange
grep strange $disk/app/sub/rubus-lab-strange
";

/// The disk stays as it was when not everything fits; what does not fit in memory is not logged, and no more than that is lost.
const FULL: &str = "
mkdir /run/small
mount -t tmpfs -o size=256k small /run/small
for log in text app; do cp -a $disk/$log /run/small/; done
mount --bind /run/small $disk
before=$(cd $disk; find . -type f -exec sha256sum {} + | sort)
echo four >>/var/log/text
head -c 400000 /dev/urandom >/var/log/app/large
not systemctl start rubus-logs-save
journalctl -u rubus-logs-save --no-pager -o cat | grep 'does not fit on the disk'
test \"$(cd $disk; find . -type f -exec sha256sum {} + | sort)\" = \"$before\"
umount $disk
rm /var/log/app/large
systemctl start rubus-logs-save
grep four $disk/text
not dd if=/dev/zero of=/var/log/app/large bs=1M
not sh -c 'head -c 100000 /dev/zero >>/var/log/text'
rm /var/log/app/large
mv /var/log/app/rotated.1 /var/log/app/rotated.2
mkdir /var/log/new
echo five >/var/log/new/text
";

/// The rest is cut off.
const CUT: &str = "
covered
said 'said before'
said 'said in memory'
echo six >>/var/log/new/text
systemctl start rubus-logs-save
echo lost >>/var/log/new/text
";

/// Undoing takes the files away, and what runs still saves.
const UNDONE: &str = "
covered
not grep lost /var/log/new/text
rubus undo --yes
systemctl daemon-reload
test ! -e /usr/local/sbin/rubus-logs
test -z \"$(find /etc/systemd/system -name 'rubus-logs*')\"
covered
echo seven >>/var/log/new/text
say 'said after undo'
";

const BACK: &str = "
not covered
test ! -e /run/rubus/logs
for words in before 'in memory' 'after undo'; do said \"said $words\"; done
say 'said at last'
said 'said at last'
";

#[test]
fn the_logs_come_to_memory_and_back() {
    if !can_run("logs_to_memory_unit", &NEEDS) {
        return;
    }
    let _turn = take_turns();
    let machine = Machine::keeping(&KEPT, &[("rubus", program::binary())]).unwrap();
    let start = |script: &str, end| {
        let ran = machine.start(&format!("{TOOLS}{script}"), end);
        let Ran { status, output } = ran.expect("systemd runs it");
        assert_eq!(status, 0, "{output}");
        output
    };
    let log = |name: &str| fs::read_to_string(machine.disk("/var/log").join(name));

    let said = start(APPLIED, End::Stop);
    assert!(said.contains("is applied"), "{said}");
    assert_eq!(log("text").unwrap(), "one\ntwo\n");

    start(&[IN_MEMORY, LINKS, FULL].concat(), End::Stop);
    let text = log("text").unwrap();
    assert!(text.starts_with("one\ntwo\nthree\nfour\n"), "{text}");
    assert_eq!(log("new/text").unwrap(), "five\n");
    assert_eq!(log("app/rotated.2").unwrap(), "old\n");
    assert!(log("app/rotated.1").is_err(), "it was moved");

    start(CUT, End::Cut);
    assert_eq!(log("new/text").unwrap(), "five\nsix\n");

    let said = start(UNDONE, End::Stop);
    assert!(said.contains("is undone"), "{said}");
    assert_eq!(log("new/text").unwrap(), "five\nsix\nseven\n");
    start(BACK, End::Stop);
}
