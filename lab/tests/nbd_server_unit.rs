//! `network-server` under a real systemd: its units start with the few rights that they have, serve, are started again by the
//! next client, and are gone after undoing.

use crate::common::{can_run, program, report, take_turns};
use rubus_lab::devices::LoopDevice;
use rubus_lab::devices::needs::Need;
use rubus_lab::under_systemd::{self, Ran};

const NEEDS: [Need; 4] = [
    Need::Root,
    Need::Loop,
    Need::Program("unshare", "util-linux"),
    Need::Program("systemd-analyze", "systemd"),
];

/// A home directory closed to other users, with images of its own.
const BEGIN: &str = "
install /run/lab/rubus /usr/local/bin/rubus
mkdir -p /home/keeper/images
truncate -s 16M '/home/keeper/golden 1%.img' /home/keeper/boards.img /home/keeper/images/one.img /home/keeper/images/two.raw
chown -R 1000:1000 /home/keeper
chmod 700 /home/keeper
head -c 16777216 /dev/urandom >/run/pattern
overwrite() { rubus nbd copy --quiet /run/pattern \"$1\" --i-will-lose-everything-on=\"$1\"; }
pid_of() { systemctl show --property MainPID --value rubus-serve-$1.service; }
";

/// The image is made, and the server, which refuses this machine's addresses, is asked on its own socket.
const MADE: &str = "
rubus apply network-server image=/srv/made/kitchen.img size=16MiB listen=0.0.0.0 allow=10.0.0.0/8 --yes
if rubus nbd info nbd://127.0.0.1/kitchen; then exit 101; fi
overwrite 'nbd+unix:///kitchen?socket=/run/rubus-serve-kitchen.socket'
systemctl stop rubus-serve-kitchen.service
cmp /run/pattern /srv/made/kitchen.img
rubus verify
test $(pid_of kitchen) != 0
test -e /etc/systemd/system/sockets.target.wants/rubus-serve-kitchen.socket
rubus apply network-server image=/srv/made/kitchen.img listen=0.0.0.0 allow=10.0.0.0/8 --yes | grep 'Nothing to do'
";

/// The server is the image's owner, and when it is killed, the next client starts it.
const OWNED: &str = "
rubus apply network-server 'image=/home/keeper/golden 1%.img' name=golden listen=127.0.0.1:10810 --yes
test $(ps -o uid= $(pid_of golden)) = 1000
grep 'CapBnd:.0000000000000000' /proc/$(pid_of golden)/status
overwrite nbd://127.0.0.1:10810/golden
kill -9 $(pid_of golden)
rubus nbd info nbd://127.0.0.1:10810/golden
cmp /run/pattern '/home/keeper/golden 1%.img'
";

/// Clones, and a directory that is only read.
const SEVERAL: &str = "
rubus apply network-server image=/home/keeper/boards.img clones=/srv/clones 'listen=127.0.0.1:10811,[::1]:10811' --yes
overwrite nbd://127.0.0.1:10811/boards/one
rubus nbd info 'nbd://[::1]:10811/boards/two'
rubus nbd clones list /srv/clones
rubus apply network-server image=/home/keeper/images read-only=yes listen=127.0.0.1:10812 --yes
rubus nbd list nbd://127.0.0.1:10812/
if overwrite nbd://127.0.0.1:10812/one; then exit 102; fi
systemctl stop rubus-serve-boards.service
cmp /home/keeper/boards.img /home/keeper/images/one.img
rubus verify --all
rubus status
";

/// A device that is given away, also when something is on it.
const DEVICE: &str = "
mkdir -p /dev/disk/by-id
ln -s /dev/loop* /dev/disk/by-id/lab-stick
rubus apply network-server image=/dev/disk/by-id/lab-stick name=stick listen=127.0.0.1:10814 --yes
overwrite nbd://127.0.0.1:10814/stick
systemctl stop rubus-serve-stick.service
cmp /run/pattern /dev/disk/by-id/lab-stick
rubus nbd info nbd://127.0.0.1:10814/stick
rubus undo --yes
";

/// With TLS, for those alone who have a certificate; the server's key is root's, and the server is not.
const ENCRYPTED: &str = "
tls='/root/my-tls:100%'
rubus serve --make-certificates \"$tls\"
truncate -s 1M /home/keeper/secret.img
chown 1000:1000 /home/keeper/secret.img
rubus apply network-server image=/home/keeper/secret.img listen=127.0.0.1:10815 certificates=\"$tls\" verify-clients=yes --yes
test $(ps -o uid= $(pid_of secret)) = 1000
ln -s \"$tls\" /run/all
install -D -m 644 /run/all/ca-cert.pem /run/few/ca-cert.pem
head -c 1M /run/pattern >/run/small
disk=nbds://127.0.0.1:10815/secret?tls-certificates=/run/all
rubus nbd copy --quiet /run/small $disk --i-will-lose-everything-on=$disk
if rubus nbd info nbd://127.0.0.1:10815/secret; then exit 105; fi
if rubus nbd info nbds://127.0.0.1:10815/secret?tls-certificates=/run/few; then exit 106; fi
if rubus nbd info 'nbd+unix:///secret?socket=/run/rubus-serve-secret.socket'; then exit 107; fi
rubus verify
setpriv --reuid=1000 --regid=1000 --clear-groups rubus verify >/run/seen || test $? = 1
grep 'run it as root' /run/seen
systemd-analyze verify /etc/systemd/system/rubus-serve-secret.service
systemctl stop rubus-serve-secret.service
cmp /run/small /home/keeper/secret.img
rubus apply network-server image=/home/keeper/secret.img listen=127.0.0.1:10815 certificates=\"$tls\" verify-clients=yes --yes | grep 'Nothing to do'
rubus undo --yes
test ! -e /run/rubus-serve-secret.socket
test ! -e /run/credentials/rubus-serve-secret.service
";

/// What cannot be served is taken back, with what the server said.
const REFUSED: &str = "
rubus apply network-server image=/srv/made/kitchen.img name=again listen=127.0.0.1:10813 --yes || test $? = 4
test -z \"$(find /etc/systemd/system /run -name 'rubus-serve-again.*')\"
";

const JUDGED: &str = "
systemd-analyze verify /etc/systemd/system/rubus-serve-*
for name in kitchen golden boards images; do
  systemd-analyze security --no-pager --threshold=20 rubus-serve-$name.service | tail -n 1
done
";

const UNDONE: &str = "
for name in images boards golden kitchen; do rubus undo --yes; done
test -z \"$(find /etc/systemd/system /run -path /run/systemd/generator -prune -o '(' -name 'rubus-*' -o -name sockets.target.wants ')' -print)\"
test \"$(systemctl list-units --all --plain --no-legend 'rubus-serve-*')\" = ''
cmp /run/pattern /srv/made/kitchen.img
ls /srv/clones/*
";

#[test]
fn what_the_recipe_serves_starts_with_the_rights_that_it_has() {
    if !can_run("nbd_server_unit", &NEEDS) {
        return;
    }
    let _turn = take_turns();
    let stick = LoopDevice::new(16 << 20).expect("a loop device");
    let script = [BEGIN, MADE, OWNED, SEVERAL, DEVICE, ENCRYPTED, REFUSED, JUDGED, UNDONE].concat();
    let files = [("rubus", program::binary())];
    let ran = under_systemd::run(&script, &files, &[stick.path()]);
    let Ran { status, output } = ran.expect("systemd runs it");
    assert_eq!(status, 0, "{output}");
    for words in [
        "0001-network-server is applied",
        "the server answers, and has kitchen",
        "if clients are only to read it, give --read-only",
        "cannot ask nbd://127.0.0.1:10815/secret: the server wants TLS",
        "cannot ask nbd+unix:///secret?socket=/run/rubus-serve-secret.socket: the server wants TLS",
        "the server wants a certificate of this client",
        "the server answers, and has secret",
        "is as it was before",
        "0004-network-server is undone",
    ] {
        assert!(output.contains(words), "'{words}' is not in:\n{output}");
    }
    let judged = output.lines().filter(|line| line.contains("exposure level"));
    for line in judged {
        report(line);
    }
}
