//! Plans for an example machine: whole, again, with every obstacle, and with other wishes.

use super::*;
use crate::testing::{disk, facts as testing_facts, obstacles, plan, shown, text};
use crate::{Facts, PathState, TreeSize};
use rubus_change::plan::{Action, Plan};
use rubus_change::steps::{BuildInitramfs, On, WriteFile};
use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::Machine;

const RELEASE: &str = "6.12.47+rpt-rpi-v8";
const ADDRESS: &str = "nbd://192.168.1.2/root";
const CMDLINE: &str = "console=tty1 root=PARTUUID=1f3c5a77-02 rootfstype=ext4 fsck.repair=yes rootwait quiet resize\n";
const FSTAB: &str = "proc            /proc           proc    defaults          0       0\n\
                     PARTUUID=1f3c5a77-01  /boot/firmware  vfat    defaults          0       2\n\
                     PARTUUID=1f3c5a77-02  /               ext4    defaults,noatime  0       1\n\
                     # mine\n\
                     /var/swap  none  swap  sw  0  0\n\
                     PARTUUID=1f3c5a77-03  none  swap  sw  0  0\n";
fn names(names: &[&str]) -> PathState {
    PathState::Directory(names.iter().map(|name| name.to_string()).collect())
}

fn facts(machine: &Machine, given: &[(&str, PathState)]) -> Facts {
    let modules = format!("/lib/modules/{RELEASE}");
    let builtin = format!("{modules}/modules.builtin");
    let block = format!("{modules}/kernel/drivers/block");
    let usual = [
        ("/boot/firmware", names(&["config.txt", "cmdline.txt", "kernel8.img", "initramfs8"])),
        ("/boot/firmware/config.txt", text("arm_64bit=1\nauto_initramfs=1\n")),
        ("/boot/firmware/cmdline.txt", text(CMDLINE)),
        ("/etc/fstab", text(FSTAB)),
        ("/etc/initramfs-tools", names(&["modules"])),
        ("/etc/initramfs-tools/hooks", names(&[])),
        ("/etc/initramfs-tools/scripts", names(&[])),
        ("/etc/initramfs-tools/conf.d", names(&[])),
        ("/etc/initramfs-tools/modules", text("# List of modules\n")),
        ("/lib/modules", names(&[RELEASE])),
        (builtin.as_str(), text("kernel/fs/ext4/ext4.ko\nkernel/drivers/mmc/core/mmc_block.ko\n")),
        (block.as_str(), names(&["nbd.ko.xz"])),
        ("/usr/lib/klibc/bin/ipconfig", PathState::Something),
        ("/usr/local/bin/rubus", PathState::Something),
        ("/sys/block/nbd0/backend", text("rubus nbd://192.168.1.2/root\n")),
        ("/run/rubus/attached/nbd0.json", text("{\"identity\": \"boot=1 export=2\"}")),
        ("/proc/1/comm", text("systemd\n")),
    ];
    let all: Vec<(&str, PathState)> = usual.into_iter().chain(given.iter().cloned()).collect();
    let mut facts = testing_facts(&RECIPE, machine, &[], &all);
    let mut export = disk("/dev/nbd0", ADDRESS);
    export.model = Some(ADDRESS.into());
    export.serial = None;
    facts.disks = [(PathBuf::from("/dev/nbd0"), Ok(export))].into();
    let size = TreeSize { bytes: 6_400_000_000, entries: 154_000 };
    facts.trees = [(PathBuf::from("/"), size)].into();
    facts.random = [7; 32];
    facts
}

fn drawn(given: &[(&str, PathState)], wished: &[(&str, &str)]) -> Plan {
    let machine = fixture::pi3_with_usb_ssd();
    plan(&RECIPE, &machine, &facts(&machine, given), wished)
}

/// For the tests of journals that end early.
pub(crate) fn usual_plans() -> Vec<Plan> {
    vec![drawn(&[], &[])]
}

/// What the plan puts into the file whose name ends so, on either root.
fn written(plan: &Plan, end: &str) -> String {
    let mut actions = plan.steps.iter().map(|step| match &step.action {
        Action::On(On { action, .. }) => action,
        action => action,
    });
    let found = actions.find_map(|action| match action {
        Action::WriteFile(WriteFile { path, becomes, .. }) if path.ends_with(end) => {
            Some(becomes.text.clone())
        }
        _ => None,
    });
    found.unwrap_or_else(|| panic!("nothing writes {end}"))
}

#[test]
fn a_whole_plan() {
    let plan = drawn(&[], &[]);
    assert_eq!(obstacles(&plan), [""; 0]);
    insta::assert_snapshot!(format!("{}\n{}", shown(&plan), written(&plan, "etc/fstab")));
}

#[test]
fn the_last_step_alone_decides_and_the_card_stays_the_root_that_the_kernel_is_told() {
    let plan =
        drawn(&[], &[("ip", "192.168.1.50::192.168.1.1:255.255.255.0::eth0:off"), ("wait", "60")]);
    let last = plan.steps.last().expect("there are steps");
    let Action::WriteFile(WriteFile { path, becomes, .. }) = &last.action else {
        panic!("{last:?}");
    };
    assert_eq!(path, Path::new("/boot/firmware/cmdline.txt"));
    assert_eq!(
        becomes.text,
        "console=tty1 root=PARTUUID=1f3c5a77-02 rootfstype=ext4 fsck.repair=yes rootwait quiet \
         rubus.root=nbd://192.168.1.2/root rubus.wait=60 \
         rubus.ip=192.168.1.50::192.168.1.1:255.255.255.0::eth0:off\n"
    );
    for step in &plan.steps[..plan.steps.len() - 1] {
        let is_new = match &step.action {
            Action::WriteFile(WriteFile { was, .. }) => was.is_none(),
            Action::BuildInitramfs(BuildInitramfs { kept, .. }) => kept.is_some(),
            _ => true,
        };
        assert!(is_new, "{} changes what a start reads", step.id);
    }
}

#[test]
fn the_scripts_have_no_gap_left_and_say_what_was_wished() {
    let plan = drawn(&[], &[("dead-timeout", "600"), ("resume-unidentified", "yes")]);
    let [hook, script] = ["hooks/rubus-network-root", "local-top/rubus-network-root"]
        .map(|path| written(&plan, path));
    for text in [&hook, &script] {
        assert!(text.starts_with("#!/bin/sh\n"));
        assert!(!text.contains('@'), "{text}");
    }
    assert!(hook.contains("copy_exec /usr/local/bin/rubus /opt/rubus\n"), "{hook}");
    assert!(script.contains(" --dead-timeout=600 --resume-unidentified "), "{script}");
    assert!(script.contains("\nROOTFSTYPE=ext4\n"), "{script}");
}

/// Runs what the script does with the disk, in a shell with a reader of our own.
#[allow(clippy::disallowed_methods)] // Only a shell can tell what a script for one does.
fn reads_the_disk(reader: &str) -> String {
    let script = written(&drawn(&[], &[]), "local-top/rubus-network-root");
    let from = script.find("told_uuid=").expect("it reads the disk");
    let to = from + script[from..].find("\n}\n").expect("a function") + 3;
    let place = tempfile::tempdir().expect("a directory");
    let told = place.path().join("uuid").display().to_string();
    let function = script[from..to].replace("/run/rubus-root-uuid", &told);
    let program = format!(
        "seconds() {{ read -r up rest </proc/uptime; echo \"${{up%%.*}}\"; }}
         is_time_left() {{ left=$((end - $(seconds))); [ \"$left\" -gt 0 ]; }}
         blkid() {{ {reader}; }}
         end=$(seconds)
         {function}
         if find_uuid; then echo \"found $uuid\"; else echo late; fi"
    );
    let mut shell = std::process::Command::new("sh");
    let said = shell.args(["-c", &program]).stderr(std::process::Stdio::null());
    let said = said.output().expect("a shell");
    String::from_utf8_lossy(&said.stdout).trim().to_string()
}

#[test]
fn a_server_that_freezes_after_the_handshake_does_not_hold_the_start_up() {
    assert_eq!(reads_the_disk("echo 1234"), "found 1234");
    assert_eq!(reads_the_disk("false"), "found", "it has no filesystem");
    // Had it waited until the reader ended, it would have found what that has read.
    assert_eq!(reads_the_disk("sleep 20; echo 1234"), "late");
}

#[test]
fn a_root_that_is_there_already_is_left_alone() {
    let mut machine = fixture::pi3_with_usb_ssd();
    let root = machine.mounts.iter_mut().find(|mount| mount.point == "/");
    root.expect("there is a root").device = Some("nbd0".into());
    let again = plan(&RECIPE, &machine, &facts(&machine, &[]), &[]);
    assert_eq!(obstacles(&again), [""; 0]);
    assert!(again.is_empty(), "{:?}", again.steps);
}

#[test]
fn every_obstacle_says_what_to_do() {
    let absent = |path| (path, PathState::Absent);
    let bare = drawn(
        &[
            absent("/sys/block/nbd0/backend"),
            absent("/usr/local/bin/rubus"),
            absent("/usr/lib/klibc/bin/ipconfig"),
        ],
        &[],
    );
    let named = drawn(
        &[
            ("/sys/block/nbd0/backend", text("rubus nbd://server/root\n")),
            ("/proc/1/comm", text("apt\n")),
        ],
        &[],
    );
    let six = [("/sys/block/nbd0/backend", text("rubus nbd://[fd00::2]/root\n"))];
    let six = obstacles(&drawn(&six, &[])).join("\n");
    assert!(six.contains("this is an IPv6 address"), "{six}");
    assert!(!six.contains("names cannot"), "{six}");
    let mut wireless = fixture::pi3_with_usb_ssd();
    wireless.links.retain(|link| link.kind != "ethernet");
    let wireless = plan(&RECIPE, &wireless, &facts(&wireless, &[]), &[]);
    let machine = fixture::pi3_with_usb_ssd();
    let mut small = facts(&machine, &[]);
    for disk in small.disks.values_mut().flatten() {
        disk.size_bytes = 6_500_000_000;
    }
    let small = plan(&RECIPE, &machine, &small, &[]);
    let all = [bare, named, wireless, small];
    for plan in &all {
        assert!(plan.is_empty(), "a plan with an obstacle has no steps");
    }
    let all: Vec<String> = all.iter().map(|plan| obstacles(plan).join("\n")).collect();
    insta::assert_snapshot!(all.join("\n\n"));
}

/// Nothing is to be served, attached or installed first where the root cannot move in the end.
#[test]
fn a_system_without_initramfs_tools_is_refused_for_that_alone() {
    let given = [
        ("/sys/block/nbd0/backend", PathState::Absent),
        ("/usr/lib/klibc/bin/ipconfig", PathState::Absent),
    ];
    for (id, name) in
        [("fedora", "Fedora Linux 43"), ("alpine", "Alpine Linux v3.22"), ("nixos", "NixOS 25.05")]
    {
        let mut machine = fixture::pi3_with_usb_ssd();
        machine.system.os_ids = vec![id.into()];
        machine.system.os = Fact::known(name.into(), "a test");
        let plan = plan(&RECIPE, &machine, &facts(&machine, &given), &[]);
        let obstacles = obstacles(&plan);
        assert_eq!(obstacles.len(), 1, "{obstacles:#?}");
        assert!(obstacles[0].contains(&format!("{name} makes them by other means")));
        assert!(plan.is_empty() && !obstacles[0].contains("sudo"), "{obstacles:?}");
    }
}

#[test]
fn a_server_without_an_identity_is_warned_of() {
    let unknown = [("/run/rubus/attached/nbd0.json", text("{\"identity\": null}"))];
    let risks = |wished: &[(&str, &str)]| drawn(&unknown, wished).risks.join("\n");
    assert!(risks(&[]).contains("does not say which disk it serves (rubus serve does)"));
    assert!(risks(&[("resume-unidentified", "yes")]).contains("damaged silently"));
    assert!(!drawn(&[], &[]).risks.join("\n").contains("does not say"));
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    for good in ["dhcp", "10.0.0.2::10.0.0.1:255.0.0.0::eth0:off"] {
        assert_eq!(ip(good), Ok(()), "{good}");
    }
    for wrong in ["", "10.0.0.2", "a:b c", "a:\"", "a:$(reboot)"] {
        assert!(ip(wrong).is_err(), "{wrong}");
    }
    assert_eq!(wait("5"), Ok(()));
    for wrong in ["", "4", "601", "x"] {
        assert!(wait(wrong).is_err(), "{wrong}");
    }
}
