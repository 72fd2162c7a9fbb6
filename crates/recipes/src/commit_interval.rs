//! commit-interval: the root's filesystem writes what changed in its structures once in a minute, not every few seconds
//! (`commit=`, ext4(5) and btrfs(5)).

use std::path::Path;

use super::{Found, OptionSpec, PlanBuilder, PlanInput, Queries, Recipe, Wishes, mounting::FSTAB};
use rubus_boot::cmdline_txt::CmdlineTxt;
use rubus_boot::fstab::Fstab;
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::plan::volume::FilesystemKind;
use rubus_vocabulary::machine::{Machine, Mount};

pub(super) static RECIPE: Recipe = Recipe {
    name: "commit-interval",
    title: "Have the root's filesystem commit once a minute, so that its journal writes less to the disk.",
    guide: super::Guide {
        changes: "Adds commit=SECONDS to the options of / in /etc/fstab. A power cut then loses more of what was not synced.",
        needs: "A root on ext4 or btrfs with a line in /etc/fstab. Takes effect at the next start.",
        example: "sudo rubus plan commit-interval seconds=60",
    },
    options: &[OptionSpec {
        name: "seconds",
        what: "time between two commits, 5 to 300 seconds; ext4 takes 5 and btrfs 30 by itself",
        default: Some("60"),
        check: |value| seconds(value).map(drop),
    }],
    look_at,
    draw_up,
};

/// Below it ext4 commits more often than by itself.
const MIN_SECONDS: u32 = 5;
/// btrfs warns above this, and a power cut would lose more than users expect.
const MAX_SECONDS: u32 = 300;

/// How often btrfs commits by itself.
const BTRFS_S: u32 = 30;

fn seconds(value: &str) -> Result<u32, String> {
    match value.parse() {
        Ok(seconds) if (MIN_SECONDS..=MAX_SECONDS).contains(&seconds) => Ok(seconds),
        _ => Err(format!(
            "write a number of seconds from {MIN_SECONDS} to {MAX_SECONDS}, such as 60"
        )),
    }
}

fn look_at(_: &Machine, _: &Wishes) -> Queries {
    Queries::paths([FSTAB])
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let wanted = situation.option("seconds").unwrap_or("60");
    let root = situation.machine.mounts.iter();
    let root = root.rev().find(|mount| mount.point == "/");
    let kind = root.and_then(|root| kind_of(&root.filesystem));
    draft.check(
        "the root is on ext4 or btrfs",
        kind.is_some(),
        root.map_or("the root is not known".to_string(), |root| {
            format!("it is {}", root.filesystem)
        }),
        "other filesystems have no such setting",
    );
    let mut fstab = Fstab::parse(situation.text(Path::new(FSTAB)));
    let entry = fstab.at("/");
    draft.check(
        "/etc/fstab has a line for the root",
        entry.is_some(),
        match (&entry, situation.file(Path::new(FSTAB))) {
            (Some(_), _) => Found::from("there is one"),
            (None, Some(_)) => "there is none".into(),
            (None, None) => situation.presence(Path::new(FSTAB)),
        },
        "mount the root by /etc/fstab, as Raspberry Pi OS and Debian do",
    );
    let (Some(root), Some(kind), Some(mut entry)) = (root, kind, entry) else {
        return;
    };
    let option = format!("commit={wanted}");
    let is_longer = |now: &Interval| now.seconds > wanted.parse().unwrap_or(0);
    if let Some(now) = interval(root, &entry.options, situation).filter(is_longer) {
        return draft.notes.push(format!(
            "The root commits every {} s already ({}), which is longer than {wanted} s: it stays as it is.",
            now.seconds, now.source
        ));
    }
    promise(root, kind, &option, situation, draft);
    let options = with_commit(&entry.options, &option);
    if entry.options == options {
        return draft
            .notes
            .push(format!("/etc/fstab says {option} already; it holds from the next start on."));
    }
    entry.options = options;
    fstab.set(&entry);
    draft.write(
        "at-boot",
        "The root is mounted with the options of this table at each start.",
        Path::new(FSTAB),
        fstab.text().into(),
        situation,
    );
    draft.needs_boot = true;
    words(root, wanted, draft);
}

/// How often the root commits, and what says so.
struct Interval {
    seconds: u32,
    source: &'static str,
}

/// The interval that holds after the next start if nothing is changed: the table's word, else what the kernel was told
/// before, which a remount without the option keeps, else the filesystem's own.
fn interval(root: &Mount, options: &str, situation: &PlanInput<'_>) -> Option<Interval> {
    let found = |options: &str, source| {
        let seconds = options.split(',').rev().find_map(|o| o.strip_prefix("commit="));
        // 0 is the filesystem's own.
        let seconds = seconds?.trim_matches('"').parse().ok().filter(|seconds| *seconds > 0)?;
        Some(Interval { seconds, source })
    };
    let line = situation.machine.system.command_line.text().unwrap_or_default();
    let line = CmdlineTxt::parse(line);
    let flags = line.get("rootflags").unwrap_or_default();
    let from_kernel = [
        found(&root.options.join(","), "as it is mounted now"),
        found(flags, "rootflags= on the kernel's command line"),
    ];
    let longest = from_kernel.into_iter().flatten().max_by_key(|interval| interval.seconds);
    found(options, "its line of /etc/fstab").or(longest).or(match root.filesystem.as_str() {
        "btrfs" => Some(Interval { seconds: BTRFS_S, source: "btrfs by itself" }),
        _ => None,
    })
}

/// The kind of a root that has such a setting; f2fs has none.
fn kind_of(filesystem: &str) -> Option<FilesystemKind> {
    FilesystemKind::of_root(filesystem).filter(|kind| *kind != FilesystemKind::F2fs)
}

/// The options with this one in the place of another of its kind, or behind the others.
fn with_commit(options: &str, wanted: &str) -> String {
    let all: Vec<&str> = options.split(',').filter(|o| !o.is_empty()).collect();
    let is_commit = |option: &&&str| option.starts_with("commit=");
    let place = all.iter().position(|option| is_commit(&option));
    let mut kept: Vec<&str> = all.iter().filter(|o| !is_commit(o)).copied().collect();
    kept.insert(place.unwrap_or(kept.len()).min(kept.len()), wanted);
    kept.join(",")
}

fn promise(
    root: &Mount,
    kind: FilesystemKind,
    option: &str,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) {
    let mut devices = situation.machine.block_devices.iter();
    let device = devices.find(|device| Some(&device.name) == root.device.as_ref());
    // Without its UUID there is nothing to find it again by.
    let Some(uuid) = device.and_then(|device| device.identity.uuid.clone()) else {
        return;
    };
    draft.promises.push(Promise {
        what: format!("the root is mounted with {option}"),
        look: Look::Mounted { at: "/".into(), kind, uuid, options: vec![option.into()] },
        needs_boot: true,
    });
}

fn words(root: &Mount, wanted: &str, draft: &mut PlanBuilder) {
    draft.gains_unknown = Some(
        "How much less is written depends on how many programs write without syncing; those that sync commit each time. `rubus \
         writers` with recordings of a day before and after says it."
            .into(),
    );
    draft.risks.push(format!(
        "A power cut or crash loses what was written in the last {wanted} s, unless its program synced it. The filesystem itself \
         stays whole."
    ));
    let by_itself = match root.filesystem.as_str() {
        "btrfs" => BTRFS_S,
        _ => 5,
    };
    draft.notes.push(format!(
        "{} commits every {by_itself} s by itself; data goes to the disk within about 30 s as before, and its place is recorded with \
         the commit.",
        root.filesystem
    ));
}

#[cfg(test)]
mod tests;
