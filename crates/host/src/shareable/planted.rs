//! Secrets of every kind that a machine may have, in the texts in which they stand, for tests that plant them.

/// A text, and what in it must not leave the machine.
#[derive(Clone, Debug)]
pub(crate) struct Planted {
    pub(crate) text: String,
    pub(crate) secrets: Vec<String>,
}

/// What stands for a letter between braces: user, host, password, volume, label, hardware address, the same without
/// separators, addresses of both versions, UUID, the same without separators, serial number, world-wide name, target, token;
/// the hardware address with blanks, in groups of four and in halves, in an address of version 6; an address of version 4
/// with hyphens and backwards; a key of WireGuard, a fingerprint and a public key of ssh, a key of a cloud; the names of a
/// container, a processor, a card's register and a modem; an account of a bank, an onion service, a Wi-Fi network, a tag of
/// a computer, a mail address.
const PEOPLE: [[(&str, &str); MARKS]; 3] = [
    [
        ("{u}", "qzalice"),
        ("{h}", "qzattic"),
        ("{p}", "qzhunter2"),
        ("{v}", "qzatticvg"),
        ("{l}", "qzlabel"),
        ("{m}", "b8:27:eb:3a:2b:1c"),
        ("{n}", "b827eb3a2b1c"),
        ("{4}", "10.11.12.13"),
        ("{6}", "fd12:3456:789a::7"),
        ("{i}", "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"),
        ("{j}", "0a1b2c3d4e5f60718293a4b5c6d7e8f9"),
        ("{s}", "S4EVNX0R123456"),
        ("{w}", "5002538e40aabbcc"),
        ("{q}", "qztarget"),
        ("{t}", "ghp_qzTOKEN0123456789abcdef"),
        ("{B}", "b8 27 eb 3a 2b 1c"),
        ("{M}", "b827.eb3a.2b1c"),
        ("{H}", "b827eb-3a2b1c"),
        ("{E}", "fe80::ba27:ebff:fe3a:2b1c"),
        ("{D}", "10-11-12-13"),
        ("{A}", "13.12.11.10.in-addr.arpa"),
        ("{k}", "qzGpJ0b1Xl9v7T3m2Qe5Rk8Ws6Ya4Ud1Fh0Zc9Nx7Bo="),
        ("{f}", "SHA256:qzU9kP3vR7tX1yB5nM2cL8dF4gH6jK0sA3eW7iO1uYz"),
        ("{K}", "AAAAC3NzaC1lZDI1NTE5AAAAIqz8s7Yk2m"),
        ("{C}", "AKIAQZ3EXAMPLE7WXYZ2"),
        ("{d}", "4fa6e0f0c6786287e131c3852c58a2e01cc697a68231826813597e4994f1d6e2"),
        ("{c}", "10000000a1b2c3d4"),
        ("{r}", "0353445343363447801234567801a300"),
        ("{o}", "490154203237518"),
        ("{b}", "DE89370400440532013000"),
        ("{x}", "qzexpyuzz4wqqyqhjn7gd4l3.onion"),
        ("{S}", "qzFamily O'Brien"),
        ("{z}", "7QZ1X32"),
        ("{e}", "qzanna@qzmail.example"),
    ],
    [
        ("{u}", "QZBOBQUUX"),
        ("{h}", "qzpi4b.qzhome.example"),
        ("{p}", "qztr0ub4dor&3"),
        ("{v}", "QzTank"),
        ("{l}", "QZUSBSTICK"),
        ("{m}", "DC-A6-32-AA-BB-CC"),
        ("{n}", "DCA632AABBCC"),
        ("{4}", "192.168.178.42"),
        // Made of a hardware address (EUI-64).
        ("{6}", "2001:db8:77:1:dea6:32ff:feaa:bbcc"),
        ("{i}", "C0FFEE00-1111-4222-8333-444455556666"),
        ("{j}", "C0FFEE001111422283334444555566AA"),
        ("{s}", "WD-WX12A3456789"),
        ("{w}", "500A075E1234ABCD"),
        ("{q}", "qzq77x"),
        ("{t}", "eyJhbGciOiJIUzI1NiJ9.qzjwtbody.c2lnbmVk"),
        ("{B}", "DC A6 32 AA BB CC"),
        ("{M}", "DCA6.32AA.BBCC"),
        ("{H}", "DCA632:AABBCC"),
        ("{E}", "fe80::dea6:32ff:feaa:bbcc%wlan0"),
        ("{D}", "192-168-178-42"),
        ("{A}", "42.178.168.192.in-addr.arpa"),
        ("{k}", "QZx4Lw9Vb2Kc7Rj1Tn5Mf8Pd3Hs6Gy0Uq4Ea2Io9Zl8="),
        ("{f}", "MD5:c0:ff:ee:00:11:22:33:44:55:66:77:88:99:aa:bb:cc"),
        ("{K}", "AAAAB3NzaC1yc2EAAAADAQABAAABgQQZ5x9"),
        ("{C}", "xoxb-2134567890-QZabCdEfGhIj"),
        ("{d}", "sha256:9b2cf535f27731c974343645a3985328a1c0de11bd5b4e37ba3f2a9f0a7c1e44"),
        ("{c}", "00000000deadbe0f"),
        ("{r}", "1B534D3030303030102A3B4C5D016700"),
        ("{o}", "8949020000001234567"),
        ("{b}", "GB29NWBK60161331926819"),
        ("{x}", "qzpi.tail1a2b3.ts.net"),
        ("{S}", "QZ_5G_Schmidt"),
        ("{z}", "QZ-5CD1234ABC"),
        ("{e}", "Qz.Bob+pi@qzcorp.example"),
    ],
    // Made of what passes for words, numbers and kernel names alone.
    [
        ("{u}", "qzzoë"),
        ("{h}", "qz-nas-2.fritz.box"),
        ("{p}", "Qz!7sda1"),
        ("{v}", "qzsdb1vg"),
        ("{l}", "QZ_2019"),
        ("{m}", "b8:27:0b:3a:2b:1c"),
        ("{n}", "b8270b3a2b1c"),
        ("{4}", "172.16.254.1"),
        ("{6}", "fd12:3456::7"),
        ("{i}", "12345678-1234-5678-1234-567812345678"),
        ("{j}", "12345678123456781234567812345678"),
        ("{s}", "0x1a2b3c4d"),
        ("{w}", "5000039fe6123456"),
        ("{q}", "qzlun0"),
        ("{t}", "glpat-qz7Zz_9xY1"),
        ("{B}", "00 11 22 33 44 55"),
        ("{M}", "0011.223a.4455"),
        ("{H}", "001122-3a4455"),
        ("{E}", "fe80::211:22ff:fe33:4455"),
        ("{D}", "172-16-254-1"),
        ("{A}", "1.254.16.172.in-addr.arpa"),
        ("{k}", "q1z2x3c4v5b6n7m8a9s0d1f2g3h4j5k6l7p8o9i0u1y="),
        ("{f}", "0a:1b:2c:3d:4e:5f:60:71:82:93:a4:b5:c6:d7:e8:f9"),
        ("{K}", "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYqz"),
        ("{C}", "sk_live_51Qz0x0x0x0x0x"),
        ("{d}", "1234567890123456789012345678901234567890123456789012345678901234"),
        ("{c}", "100000001a2b3c4d"),
        ("{r}", "12345678123456780123456789012345"),
        ("{o}", "356938035643809"),
        ("{b}", "CH9300762011623852957"),
        ("{x}", "qz3ab2c.local"),
        ("{S}", "qz 2.4 GHz"),
        ("{z}", "1qz4k8x"),
        ("{e}", "q.z@1x2.example"),
    ],
];

/// How many of them each has.
const MARKS: usize = 34;

/// The texts, by kind.
const TEXTS: &[&str] = &[
    // Users and their directories.
    "{u}",
    "{u}@{h}",
    "{u}@{h}:/srv/x",
    "{u}@{h}:backup",
    "/home/{u}/bench",
    "/home//{u}/bench",
    "/home/./{u}/x",
    "%2Fhome%2F{u}",
    "~{u}/x",
    "/media/{u}/{l}",
    "/run/media/{u}/x",
    "/export/home/{u}/x",
    "/mnt/users/{u}",
    "/Users/{u}/x",
    "/var/mail/{u}",
    "/srv/nfs/{u}",
    "file:///home/{u}/x",
    "mailto:{u}@{h}",
    "{u}@{h}.example.org",
    // Machines and servers.
    "{h}",
    "{h}.local",
    "http://{h}/",
    "https://{u}:{p}@{h}/x",
    "ftp://{u}:{p}@{h}/",
    "ssh://{u}@{h}:22/",
    "sftp://{u}@{h}/x",
    "smb://{u}:{p}@{h}/{v}",
    "nbd://{h}:10809/{v}",
    "NBDS://{h}/disk",
    "nbd+unix:///{v}?socket=%2Fhome%2F{u}%2Fs",
    "nbds://{u}@{h}/{v}?tls-certificates=/home/{u}/tls",
    "//{h}/{v}",
    "{h}:/export/{u}",
    "{h}:{v}",
    // An address with a mark of a message beside it.
    "connect to {4}: refused",
    "connect to {6}: refused",
    "connect to [{6}]: refused",
    "{6}#53",
    "{4}#53",
    "{4}-{4}",
    "{6}-{6}",
    "from={6}!",
    "`{6}`",
    "{{6}}",
    "dev {m}: gone",
    "#{m}#",
    "{m}_x",
    "eth0:{6}:22",
    "[{6}]:/x",
    "{4}:/srv/{u}",
    "{u}@.{v}=/",
    "{u}@fsid.{v}=/",
    "{4}:6789:/",
    "{v}/{u}",
    "s3#{v}",
    "curlftpfs#{u}:{p}@{h}",
    "sshfs#{u}@{h}:x",
    "iqn.2004-01.com.example:{q}",
    "iqn.2004-01.com.{h}:{q}",
    "nqn.2014-08.org.nvmexpress:uuid:{i}",
    "nqn.2019-08.org.{h}:{q}",
    "CN={h}, O={u}",
    // Messages.
    "ssh: connect to host {h} port 22: No route to host",
    "{u}@{h}: Permission denied (publickey)",
    "Could not resolve hostname {h}: Name or service not known",
    "access denied by server while mounting {h}:/x",
    "cannot open /home/{u}/x: No such file",
    "mount of //{h}/{v} failed",
    "login of {u} from {4}",
    // Addresses.
    "{4}",
    "{4}:2049",
    "{4}/24",
    "{6}",
    "[{6}]:22",
    "{6}%eth0",
    "{6}/64",
    "{m}",
    "{n}",
    "enx{n}",
    "wlx{n}",
    "wg-{u}",
    "br-{h}",
    // Identities of disks and what is on them.
    "{i}",
    "{j}",
    "UUID={i}",
    "PARTUUID={i}",
    "LABEL={l}",
    "PARTLABEL={l}",
    "ID=ata-X_{s}",
    "/dev/disk/by-id/ata-X_{s}",
    "/dev/disk/by-id/usb-SanDisk_{s}-0:0",
    "/dev/disk/by-id/wwn-0x{w}",
    "/dev/disk/by-uuid/{i}",
    "/dev/disk/by-label/{l}",
    "/dev/disk/by-partlabel/{l}",
    "naa.{w}",
    "eui.{w}",
    "0x{w}",
    "{w}",
    "{s}",
    "/dev/mapper/{v}-root",
    "/dev/{v}/root",
    "/dev/mapper/luks-{i}",
    "CRYPT-LUKS2-{j}-{u}",
    "/dev/md/{h}:0",
    "name={h}:0",
    "ZFS={v}/ROOT",
    "/dev/zvol/{v}/{u}",
    // Options of mounts.
    "password={p}",
    "PASSWORD={p}",
    "pass={p}",
    "passwd={p}",
    "password=\"{p}\"",
    "\"password={p}\"",
    "'password={p}'",
    "pass\"word={p}\"",
    "username={u},domain={h}",
    "user={u}%{p}",
    "credentials=/home/{u}/.smb",
    "cred=/home/{u}/.smb",
    "addr={4}",
    "addr={6}",
    "clientaddr={6}%wlan0",
    "mon_addr={h}:6789",
    "name={u}",
    "secret={t}",
    "secretfile=/home/{u}/s",
    "passwd_file=/x,secret_access_key={t}",
    "ssh_command=sshpass\\040-p\\040{p}\\040ssh",
    "IdentityFile=/home/{u}/.ssh/id",
    "fsname={h}:x,user_id=1000",
    "upperdir=/home/{u}/up",
    "x-systemd.requires=/home/{u}/m",
    // Parameters of the kernel.
    "ip={4}::10.11.12.1:255.255.255.0:{h}:eth0:off",
    "wifi.password={p}",
    "wpa.psk={p}",
    "ssid={l}",
    "smsc95xx.macaddr={m}",
    "root=iscsi:{u}:{p}@{h}::::iqn.x:{q}",
    "netroot=iscsi:{u}:{p}@{4}::3260::iqn.x:{q}",
    "root=nbd:{h}:{v}",
    "root=nfs:{h}:/x",
    "root=//{h}/{v}",
    "root=LABEL={l}",
    "nfsroot={4}:/srv/{u},v3",
    "cifsroot=//{h}/s,username={u},password={p}",
    "x=\"a root={p} b\"",
    "cryptdevice=UUID={i}:{v}",
    "rd.luks.uuid={i}",
    "rd.lvm.vg={v}",
    "zfs={v}/ROOT",
    "systemd.hostname={h}",
    "hostname={h}",
    "systemd.set_credential=x:{p}",
    "systemd.run=/home/{u}/first",
    "rootflags=addr={h},password={p}",
    "ds=nocloud;s=http://{h}/",
    "inst.sshpw={p}",
    "nvme_core.hostnqn=nqn.{u}",
    "ipv6={6}",
    "init=/home/{u}/init",
    // Settings, tokens and versions.
    "CONF_SWAPFILE=/home/{u}/swap",
    "writeback-device=/dev/{v}/swap",
    "HOSTNAME={h}",
    "SSID={l}",
    "psk=\"{p}\"",
    "{t}",
    "Bearer {t}",
    "token={t}",
    "api_key={t}",
    "AWS_SECRET_ACCESS_KEY={t}",
    "6.1.0-{u}",
    "OpenSSH_9.2p1 {u}",
    "TLS 1.3, CN={h}",
    // Hardware addresses as people and programs spell them.
    "{B}",
    "dev {B} is gone",
    "ap {B}, 5 GHz",
    "{M}",
    "{H}",
    "bssid={m}",
    "hci0 {m}",
    "eth0@{M}",
    "wlan0: {E}",
    "{E}",
    "[{E}]:10809",
    "raspberrypi-{H}",
    "pi_{n}",
    "macvlan-{n}",
    "lladdr {m} REACHABLE",
    "00:00:{m}",
    "01-{m}",
    "duid {B}",
    "macs {B} {B}",
    "{n}-{n}",
    "MAC:{n}",
    "{n}.local",
    "ESP_{H}",
    "Shelly1-{n}",
    // Addresses in names of hosts.
    "ip-{D}",
    "ip-{D}.ec2.internal",
    "ec2-{D}.compute.amazonaws.com",
    "host {D} down",
    "{A}",
    "::ffff:{4}",
    "{4},{6}",
    "0.{A}",
    "nfs4 {4}:/{v} at /mnt",
    "{D}.sslip.io",
    "gateway {4} dev eth0",
    "udp:{4}:51820",
    "tcp://{4}:2375",
    "{4}@o2ib0",
    "{4}@tcp:/lustre",
    // Keys and fingerprints.
    "{k}",
    "PrivateKey = {k}",
    "wg0: peer {k}",
    "{f}",
    "ssh-ed25519 {K} {u}@{h}",
    "key {f} refused",
    "fp={f}",
    "{C}",
    "key={C}",
    "aws_access_key_id = {C}",
    "x-api-key: {C}",
    "s3://{C}@{v}",
    "tskey-{C}",
    "hf_{C}",
    "?sig={k}",
    "https://{h}/?token={C}",
    "psk={k}",
    "rclone:{v}:{u}",
    "restic:rest:https://{u}:{p}@{h}/",
    "borg@{h}:{v}",
    // Containers and services.
    "{d}",
    "docker-{d}.scope",
    "/var/lib/docker/overlay2/{d}/merged",
    "/var/lib/docker/volumes/{u}_db/_data",
    "/var/lib/containers/storage/overlay/{d}/diff",
    "/var/lib/kubelet/pods/{i}/volumes/{v}",
    "lowerdir=/var/lib/docker/overlay2/{d}/diff",
    "overlay:{d}",
    "/run/user/1000/{u}",
    "/var/snap/{u}",
    "lxc/{h}/rootfs",
    "/var/lib/lxc/{h}",
    "/var/lib/machines/{h}",
    "veth{H}",
    "br-{H}",
    "cni-{i}",
    "user-{u}.slice",
    "vpn@{u}.service",
    "tailscale-{u}",
    "tun-{u}",
    "wt0-{h}",
    "zt{z}",
    // Identities of machines and boards.
    "machine-id {j}",
    "boot_id={i}",
    "/var/log/journal/{j}",
    "{j}-0012.journal",
    "{c}",
    "Serial\t\t: {c}",
    "serial={c}",
    "{r}",
    "cid {r}",
    "csd={r}",
    "imei {o}",
    "iccid:{o}",
    "{z}",
    "asset-{z}",
    "tag {z}",
    "PK-{s}",
    "eeprom serial {c}",
    "efi/{i}",
    "bmc-{z}",
    "systemd.machine_id={j}",
    "rpi-{c}",
    "otp {c}",
    "/sys/firmware/efi/efivars/Boot-{i}",
    // Volumes and what lies on them.
    "bcache-{i}",
    "/dev/bcache/by-uuid/{i}",
    "/dev/bcache/by-label/{l}",
    "/dev/mapper/{v}--x-{l}",
    "/dev/mapper/{u}",
    "zfs-{v}/home/{u}@snap",
    "{v}/data@auto-{u}",
    "subvol=/@home/{u}",
    "subvol=/{u}/snapshots",
    "/dev/disk/by-id/dm-name-{v}-root",
    "/dev/disk/by-id/md-name-{h}:{v}",
    "/dev/disk/by-id/scsi-3{w}",
    "/dev/disk/by-path/ip-{4}:3260-iscsi-iqn.2004-01.com.{h}:{q}-lun-0",
    "/dev/disk/by-id/mmc-X_0x{w}",
    "/dev/disk/by-partuuid/{i}",
    "/dev/disk/by-id/nvme-eui.{w}",
    "/dev/disk/by-id/lvm-pv-uuid-{v}",
    "iscsi:{u}@{h}",
    "drbd-{h}",
    "rbd/{u}/{v}",
    "vgroup-{u}",
    "dev/{v}/{u}",
    "/mnt/{v}/{u}/x",
    "gocryptfs:{u}",
    "ecryptfs_sig={c}",
    "/home/.ecryptfs/{u}/x",
    "mergerfs:{u}",
    "/opt/{u}/bin/x",
    "/var/www/{h}/x",
    "/data/{v}/x",
    "/srv/{h}.{u}/x",
    "/tmp/{u}-x",
    "C:\\Users\\{u}\\x",
    "\\\\{h}\\{v}",
    "afp://{u}@{h}/{v}",
    "davs://{u}@{h}/x",
    "dav:{h}",
    "hdfs://{h}:8020/{u}",
    "gs://{v}/{u}",
    "az:{v}",
    "9p {v}",
    "virtiofs {v}",
    "{v}@{i}",
    "{x}",
    "http://{x}/x",
    // People.
    "{e}",
    "mail to {e}",
    "<{e}>",
    "# {u} <{e}>",
    "by {u}, {e}",
    "{b}",
    "IBAN {b}",
    "ssid=\"{S}\"",
    "wifi {S}",
    "network {S} lost",
    "{u} o'{u}",
    "author={u}",
    "owner: {u}",
    "{u}'s disk",
    "disk of {u}",
    "({u})",
    "{u}.{u}",
    "{u}_backup",
    "backup-{u}-1",
    "job {u} at {h}",
    "{u}1",
    "user={u},pass={p}",
    "vers=3.0,username={u}",
    "gid={u}",
    "krb5 {u}@{h}",
    "host/{h}@{u}",
    "dn: cn={u},dc={h}",
    "ou={u}",
    "uid={u}",
    // Messages of programs.
    "mount error(13): {u} at //{h}/{v}",
    "open {v}/{u}: permission denied",
    "stat '/home/{u}': error",
    "\"{u}\" is no user",
    "exec /home/{u}/x: failed",
    "unknown host '{h}'",
    "no route to {h} ({4})",
    "kex_exchange_identification: {h}",
    "certificate of {h} expired",
    "sudo: {u} : TTY=pts/0",
    "systemd[1]: Mounted {v}",
    "nbd0: {h}:10809 lost",
    "cifs: \\\\{h}\\{v} gone",
    "audit: uid={u}",
    "Key for '{h}' not found",
];

/// Every text with the values of each of the people.
pub(crate) fn planted() -> Vec<Planted> {
    let of = |people: &[(&str, &str); MARKS], text: &str| {
        let used = people.iter().filter(|(mark, _)| text.contains(mark));
        let secrets = used.clone().map(|(_, value)| (*value).to_string()).collect();
        let text = used.fold(text.to_string(), |text, (mark, value)| text.replace(mark, value));
        Planted { text, secrets }
    };
    PEOPLE.iter().flat_map(|people| TEXTS.iter().map(move |text| of(people, text))).collect()
}

/// The secrets themselves.
pub(crate) fn values() -> Vec<&'static str> {
    PEOPLE.iter().flatten().map(|(_, value)| *value).collect()
}

/// A secret as a reader could still know it: as it is, without separators, backwards, as hexadecimal digits and in base64;
/// all in small letters.
pub(crate) fn spellings(secret: &str) -> Vec<String> {
    let small = secret.to_lowercase();
    let bare: String = small.chars().filter(|c| c.is_alphanumeric()).collect();
    let backwards: String = small.chars().rev().collect();
    let hex: String = small.bytes().map(|b| format!("{b:02x}")).collect();
    let mut all = vec![small, backwards, hex, base64(secret).to_lowercase()];
    // An address without its dots is a number like others.
    if bare.chars().any(char::is_alphabetic) {
        all.push(bare);
    }
    all
}

/// RFC 4648, without what fills it up.
pub(crate) fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut said = String::new();
    for three in text.as_bytes().chunks(3) {
        let bits = (0..3)
            .fold(0_usize, |bits, at| bits << 8 | usize::from(three.get(at).copied().unwrap_or(0)));
        for digit in 0..=three.len() {
            said.push(char::from(DIGITS[bits >> (18 - 6 * digit) & 63]));
        }
    }
    said
}

/// A text in which secrets are looked for.
pub(crate) struct Text {
    small: String,
    bare: String,
}

impl Text {
    pub(crate) fn of(text: &str) -> Text {
        let small = text.to_lowercase();
        let bare = small.chars().filter(|c| c.is_alphanumeric()).collect();
        Text { small, bare }
    }

    /// The spelling in which it has a secret.
    pub(crate) fn has(&self, secret: &str) -> Option<String> {
        let mut spellings = spellings(secret).into_iter();
        spellings.find(|spelling| self.small.contains(spelling) || self.bare.contains(spelling))
    }

    /// What stands around it.
    pub(crate) fn around(&self, spelling: &str) -> String {
        let text = if self.small.contains(spelling) { &self.small } else { &self.bare };
        let at = text.find(spelling).unwrap_or(0);
        let from = text[..at].char_indices().rev().nth(60).map_or(0, |(from, _)| from);
        text[from..].chars().take(140).collect()
    }
}

#[test]
fn there_are_hundreds_and_each_text_has_its_secrets() {
    let all = planted();
    assert!(all.len() >= 1000, "{}", all.len());
    for one in &all {
        assert!(!one.text.contains("{u") && !one.secrets.is_empty(), "{one:?}");
        let text = Text::of(&one.text);
        assert!(one.secrets.iter().all(|secret| text.has(secret).is_some()), "{one:?}");
    }
    assert_eq!(values().len(), 3 * MARKS);
    assert_eq!(base64("qzalice"), "cXphbGljZQ");
    let text = Text::of("x cXphbGljZQ y");
    assert_eq!(text.has("qzalice").as_deref(), Some("cxphbgljzq"));
    assert!(text.around("cxphbgljzq").starts_with("x "));
}
