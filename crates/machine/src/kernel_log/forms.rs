//! Trouble of several kinds in every form that logs are pasted in.

use super::judge::Cause;
use super::tests::judged;

/// How a form writes the message of a number.
type Form = (&'static str, fn(usize, &str) -> String);

const FORMS: &[Form] = &[
    ("dmesg", |n, m| format!("[ 5432.12345{n}] {m}")),
    ("dmesg in colour", |n, m| {
        format!("\u{1b}[32m[ 5432.12345{n}] \u{1b}[0m\u{1b}[33m{m}\u{1b}[0m")
    }),
    ("dmesg --time-format iso", |n, m| format!("2024-05-01T12:00:0{n},123456+02:00 {m}")),
    ("dmesg --json", |n, m| {
        format!(
            "      {{\n         \"pri\": \"err\",\n         \"time\": 5432.{n},\n         \"msg\": \"{m}\"\n      }},"
        )
    }),
    ("dmesg --decode", |n, m| format!("kern  :err   : [ 5432.12345{n}] {m}")),
    ("RFC 5424", |n, m| {
        format!("<3>1 2024-05-01T12:00:0{n}.1Z pi kernel - - - [ 5432.12345{n}] {m}")
    }),
    ("RFC 5424 without a clock", |n, m| {
        format!("<3>1 2024-05-01T12:00:0{n}.1Z pi kernel - - - {m}")
    }),
    ("journalctl -k", |n, m| format!("May 01 12:00:0{n} pi kernel: {m}")),
    ("journalctl -o json", |n, m| {
        format!("{{\"_TRANSPORT\":\"kernel\",\"N\":\"{n}\",\"MESSAGE\":\"{m}\"}}")
    }),
    ("a container's log", |n, m| {
        format!(
            "{{\"log\":\"[ 5432.12345{n}] {m}\\n\",\"stream\":\"stdout\",\"time\":\"2024-05-01T12:00:0{n}.1Z\"}}"
        )
    }),
    ("journalctl -o export", |n, m| format!("_TRANSPORT=kernel\nPRIORITY={n}\nMESSAGE={m}\n")),
    ("Talos", |n, m| format!("10.0.0.5: kern:     err: [2024-05-01T10:00:0{n}.1Z]: {m}")),
    ("a serial console", |n, m| format!("raspberrypi login: [ 5432.12345{n}] {m}")),
    ("logcat", |n, m| format!("05-01 12:00:0{n}.123     0     0 E         : {m}")),
    ("logcat -v year", |n, m| format!("2024-05-01 12:00:0{n}.123     0     0 E         : {m}")),
    ("a web page", |n, m| format!("[\u{a0}5432.12345{n}]\u{a0}{m}")),
    ("journalctl -o json in bytes", |n, m| {
        let bytes = m.as_bytes();
        format!("{{\"_TRANSPORT\":\"kernel\",\"N\":\"{n}\",\"MESSAGE\":{bytes:?}}}")
    }),
    ("Loki", |n, m| {
        format!(
            "{{\"labels\":{{\"job\":\"kern\"}},\"line\":\"[ 5432.12345{n}] {m}\",\"timestamp\":\"2024\"}}"
        )
    }),
    ("printk of MediaTek, interrupts off", |n, m| {
        format!("<3>[ 5432.12345{n}] .(1)[45:kworker/1:1]{m}")
    }),
    ("logcat, which takes the first word for a program", |n, m| {
        let (name, text) = m.split_once(": ").unwrap_or(("", m));
        format!("05-01 12:00:0{n}.123     0     0 E {name:<8}: {text}")
    }),
    ("printk with the processor", |n, m| format!("[ 5432.12345{n}] c2 {m}")),
    ("printk with the process", |n, m| format!("[ 5432.12345{n}] [0:    kworker/0:1:   33] {m}")),
    ("a quote", |n, m| format!("> > [ 5432.12345{n}] {m}")),
    ("a quote in HTML", |n, m| format!("&gt; [ 5432.12345{n}] {m}<br>")),
    ("a list", |n, m| format!("- [ 5432.12345{n}] {m}")),
    ("code", |n, m| format!("`[ 5432.12345{n}] {m}`")),
    ("bold", |n, m| format!("**[ 5432.12345{n}]** {m}")),
    ("escaped brackets", |n, m| format!("\\[ 5432.12345{n}\\] {m}")),
    ("grep -n", |n, m| format!("12{n}:[ 5432.12345{n}] {m}")),
    ("cat -n", |n, m| format!("   12{n}\t[ 5432.12345{n}] {m}")),
    ("grep over files", |n, m| format!("/var/log/kern.log.1:May  1 12:00:0{n} pi kernel: {m}")),
    ("no brackets", |n, m| format!("5432.12345{n} {m}")),
    ("a cut clock", |n, m| format!("432.12345{n}] {m}")),
    ("ts", |n, m| format!("12:00:0{n} [ 5432.12345{n}] {m}")),
    ("picocom", |n, m| format!("[2024-05-01 12:00:0{n}.123] [ 5432.12345{n}] {m}")),
    ("zero bytes", |n, m| format!("\0\0\0[ 5432.12345{n}] {m}\r")),
];

/// Messages, the part that they are about, and the cause.
const TROUBLE: &[(&[&str], &str, Cause)] = &[
    (
        &[
            "mmcblk0: error -110 transferring data, sector 9, nr 8, cmd response 0x900",
            "I/O error, dev mmcblk0, sector 9",
        ],
        "mmcblk0",
        Cause::Disk,
    ),
    (&["ata3.00: status: { DRDY ERR }", "ata3.00: error: { UNC }"], "ata3", Cause::Disk),
    (
        &["sd 0:0:0:0: [sda] tag#5 uas_eh_abort_handler 0 uas-tag 3 inflight: CMD OUT"],
        "sda",
        Cause::Uas,
    ),
    (
        &[
            "usb-storage 2-1:1.0: USB Mass Storage device detected",
            "usb 2-1: device descriptor read/8, error -110",
            "usb 2-1: device not accepting address 7, error -71",
        ],
        "2-1",
        Cause::Connection,
    ),
    (&["hwmon hwmon1: Undervoltage detected!"], "", Cause::Supply),
    (
        &["nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10"],
        "nvme0",
        Cause::Connection,
    ),
    (
        &["EXT4-fs (sda2): warning: mounting fs with errors, running e2fsck is recommended"],
        "sda",
        Cause::Filesystem,
    ),
    (&["blk_update_request: I/O error, dev sdb, sector 5"], "sdb", Cause::Disk),
];

#[test]
fn every_kind_of_trouble_is_found_in_every_form() {
    for (form, written) in FORMS {
        for (messages, part, cause) in TROUBLE {
            let lines: Vec<String> =
                messages.iter().enumerate().map(|(n, message)| written(n, message)).collect();
            let found = judged(&lines.join("\n"));
            let told: Vec<_> =
                found.iter().map(|(part, cause, _)| (part.as_str(), *cause)).collect();
            assert_eq!(told, [(*part, *cause)], "{form}: {lines:?}");
        }
    }
}

#[test]
fn lines_that_a_page_joined_and_a_mailer_wrapped_are_put_right() {
    let joined = "[ 5432.123450] usb 2-1: x [ 5432.123451] I/O error, dev sdb, sector 5";
    assert_eq!(judged(joined), [("sdb".to_string(), Cause::Disk, true)]);
    let wrapped = ">> May  1 21:54:39 server kernel: sd 9:0:0:0: [sde] tag#18 FAILED Result:\n\
                   >> hostbyte=DID_OK driverbyte=DRIVER_SENSE cmd_age=3s\n\
                   >> May  1 21:54:39 server kernel: sd 9:0:0:0: [sde] tag#18 Sense Key :\n\
                   >> Medium Error [current]";
    assert_eq!(judged(wrapped), [("sde".to_string(), Cause::Disk, true)]);
}

#[test]
fn other_programs_and_prompts_are_no_disks() {
    for line in [
        "<30>1 2024-05-01T12:00:00Z pi smartd 512 - - I/O error, dev sda, sector 5",
        "05-01 12:00:00.123   100   101 E vold    : I/O error, dev sda, sector 5",
        "{\"SYSLOG_IDENTIFIER\":\"smartd\",\"MESSAGE\":\"I/O error, dev sda, sector 5\"}",
        "login: I/O error, dev login, sector 5",
        "{\"log\":\"I/O error, dev sda, sector 5\\n\",\"stream\":\"stdout\"}",
        "{\"line\":\"I/O error, dev sda, sector 5\",\"labels\":{}}",
        "{\"SYSLOG_IDENTIFIER\":\"smartd\",\"MESSAGE\":[73,47,79,32,101,114,114,111,114,44,32,100,101,118,32,115,100,97]}",
    ] {
        assert_eq!(judged(line), [], "{line}");
    }
}

#[test]
fn utf_16_is_read_by_its_mark() {
    let bytes: Vec<u8> =
        "\u{feff}mmc0: x".encode_utf16().flat_map(|unit| unit.to_le_bytes()).collect();
    assert_eq!(super::text(&bytes), "mmc0: x");
    assert_eq!(super::text(b"mmc0: x"), "mmc0: x");
}
