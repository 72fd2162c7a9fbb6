//! Memory and what is written back: swap, zswap in front of it, limits of unwritten data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::{PathState, PlanInput, Seen, swap_managers, zswap};
use super::kernels::{Has, has, releases};
use super::options::{Choice, SwapKind};
use rubus_vocabulary::units::{bytes_iec, rate_si};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Priority of the new swap: above those that the kernel gives by itself.
pub(super) const SWAP_PRIORITY: i32 = 10;
/// Unwritten data at most: what the disk writes in this time. Filesystem people ask for 5 s of streaming.
const DIRTY_S: f64 = 4.0;
/// Writing begins with what the disk writes in this time.
const BACKGROUND_S: f64 = 1.0;
const MIN_DIRTY_BYTES: u64 = 16 * MIB;

/// The swap size: as requested, by default twice the memory in whole 64 MiB.
pub(super) fn swap_bytes(choice: &Choice, memory_bytes: Option<u64>, disk_bytes: u64) -> u64 {
    let wished = choice.swap_bytes.unwrap_or_else(|| {
        let twice = memory_bytes.unwrap_or(GIB).saturating_mul(2);
        let step = 64 * MIB;
        let size = twice.min(4 * GIB).min(disk_bytes / 8);
        (size / step * step).max(step)
    });
    wished / 4096 * 4096
}

/// Settings of zswap on the new system, as the current kernel has them; empty where it has none.
pub(super) fn zswap_settings(situation: &PlanInput<'_>, choice: &Choice) -> Vec<(String, String)> {
    if choice.swap == SwapKind::None {
        return Vec::new();
    }
    let Some(now) = zswap::parameters(situation.machine) else {
        return Vec::new();
    };
    let compressor = choice.zswap_compressor.clone().or_else(|| compressor(situation));
    zswap::settings(&now, compressor.as_deref(), choice.zswap_percent)
}

/// The best compressor that the running kernel can load, or all kernels of an image: zstd keeps most pages in memory,
/// lz4 is quick.
fn compressor(situation: &PlanInput<'_>) -> Option<String> {
    let releases = match situation.facts.image {
        None => vec![situation.machine.system.kernel_release.text()?.to_string()],
        Some(_) => releases(situation),
    };
    let mut known = ["zstd", "lz4"].into_iter();
    let have = |name: &&str| {
        let mut all = releases.iter();
        !releases.is_empty() && all.all(|release| has(situation, release, name) != Has::Not)
    };
    known.find(have).map(str::to_string)
}

/// The least memory of a board that a system of today is put on; an image may come onto any.
const SMALL_MEMORY_BYTES: u64 = GIB / 2;

/// Limits of unwritten data in bytes: hard one, and where writing begins.
fn dirty_bytes(write_bytes_per_second: f64, memory_bytes: Option<u64>) -> (u64, u64) {
    let most = memory_bytes.map_or(u64::MAX, |bytes| bytes / 10).max(MIN_DIRTY_BYTES);
    let whole = |bytes: f64| (bytes as u64).div_ceil(MIB) * MIB;
    let hard = whole(write_bytes_per_second * DIRTY_S).clamp(MIN_DIRTY_BYTES, most) / MIB * MIB;
    let background = whole(write_bytes_per_second * BACKGROUND_S).clamp(4 * MIB, hard / 2);
    (hard, background)
}

/// How long a disk takes for so much, as a user would work it out.
fn seconds(bytes: u64, bytes_per_second: f64) -> String {
    format!("{:.1} s", bytes as f64 / bytes_per_second.max(1.0))
}

/// How eagerly memory of programs is swapped out before files are dropped: 200 r / (1 + r) where swap is r
/// times as fast as the filesystem (Linux, Documentation/admin-guide/sysctl/vm.rst).
fn swappiness(swap_by_filesystem: f64) -> u32 {
    (200.0 * swap_by_filesystem / (1.0 + swap_by_filesystem)).round() as u32
}

/// Name and value of the new system's settings below `vm.`, with the reason of each.
pub(super) fn sysctls(
    situation: &PlanInput<'_>,
    choice: &Choice,
    write_bytes_per_second: f64,
    source: &str,
) -> Vec<(&'static str, String, String)> {
    let memory = match situation.facts.image {
        None => situation.machine.memory.total_bytes.get(),
        Some(_) => Some(SMALL_MEMORY_BYTES),
    };
    let (hard, background) = dirty_bytes(write_bytes_per_second, memory);
    let rate = rate_si(write_bytes_per_second);
    let mut lines = vec![
        (
            "dirty_bytes",
            hard.to_string(),
            format!(
                "At most {} wait to be written: {} of this disk's writes ({rate}, {source}), never more than a tenth of the \
                 memory{}.",
                bytes_iec(hard),
                seconds(hard, write_bytes_per_second),
                match situation.facts.image {
                    None => String::new(),
                    Some(_) => format!(" of a board with {}", bytes_iec(SMALL_MEMORY_BYTES)),
                }
            ),
        ),
        (
            "dirty_background_bytes",
            background.to_string(),
            format!(
                "Writing begins at {}, {} of them.",
                bytes_iec(background),
                seconds(background, write_bytes_per_second)
            ),
        ),
    ];
    if choice.swap != SwapKind::None {
        let is_compressed = zswap::parameters(situation.machine).is_some();
        // Half of the pages that come back are taken to come from memory.
        let (ratio, why) = if is_compressed {
            (
                2.0,
                "with zswap in front the swap is taken for twice as fast as the files on the same disk",
            )
        } else {
            (1.0, "swap and files are on the same disk")
        };
        lines.push((
            "swappiness",
            swappiness(ratio).to_string(),
            format!("200 r / (1 + r) with r = {ratio:.0}: {why}."),
        ));
        lines.push((
            "page-cluster",
            "0".into(),
            "Swapped pages are found one by one; reading their neighbours ahead costs and gains nothing."
                .into(),
        ));
    }
    lines
}

/// Directories of sysctl.d(5), strongest first.
const SYSCTL_DIRECTORIES: [&str; 4] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];

/// The file that has the last word about a setting at each boot, if it is read after `own`: its path, and its value. Of the
/// files of all directories the names decide the order; one of a stronger directory takes the place of its namesakes.
/// `/etc/sysctl.conf` is `99-sysctl.conf` on Debian.
fn last_word(seen: &Seen, name: &str, own: &str) -> Option<(PathBuf, String)> {
    let mut files: BTreeMap<String, (&Path, &str)> = BTreeMap::new();
    for (path, sight) in seen {
        let PathState::Text(file) = sight else { continue };
        let (Some(directory), Some(base)) = (path.parent(), path.file_name()) else {
            continue;
        };
        let base = if path == Path::new("/etc/sysctl.conf") {
            "99-sysctl.conf".to_string()
        } else {
            base.to_string_lossy().into_owned()
        };
        let rank = |directory: &Path| {
            let mut known = SYSCTL_DIRECTORIES.iter();
            known.position(|known| directory == Path::new(known))
        };
        let is_one = rank(directory).is_some() || path == Path::new("/etc/sysctl.conf");
        if !is_one || !base.ends_with(".conf") || base.as_str() <= own {
            continue;
        }
        let is_stronger = files
            .get(&base)
            .is_none_or(|(known, _)| rank(directory) < known.parent().and_then(rank));
        if is_stronger {
            files.insert(base, (path, &file.text));
        }
    }
    let all = files.into_values().rev();
    let mut words = all.filter_map(|(path, text)| Some((path.into(), assigned(text, name)?)));
    words.next()
}

/// The value that a file of sysctl.d(5) gives a setting below `vm`.
fn assigned(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().rev().map(str::trim);
    let mut values = lines.filter_map(|line| {
        let (left, value) = line.split_once('=')?;
        let left = left.trim().trim_start_matches('-').replace('/', ".");
        (left.strip_prefix("vm.") == Some(name)).then(|| value.trim().to_string())
    });
    values.next()
}

/// Takes out the settings about which another file has the last word: they would not hold after the next start. What is
/// said of each.
pub(super) fn give_way(
    seen: &Seen,
    lines: &mut Vec<(&'static str, String, String)>,
    own: &str,
) -> Vec<String> {
    let mut notes = Vec::new();
    lines.retain(|(name, wanted, _)| {
        let Some((path, value)) = last_word(seen, name, own).filter(|(_, value)| value != wanted) else {
            return true;
        };
        notes.push(format!(
            "vm.{name} becomes {value}, as {} says, and not {wanted}: that file is read later. Take the line out of it for the \
             other value.",
            path.display()
        ));
        false
    });
    notes
}

/// The file that says them at each boot.
pub(super) fn sysctl_text(lines: &[(&'static str, String, String)]) -> String {
    let mut text = String::from("# Made by rubus (desktop).\n");
    for (name, value, why) in lines {
        text.push_str(&format!("# {why}\nvm.{name} = {value}\n"));
    }
    text
}

/// What [`crate::swap_managers`] and the rest here want to see.
pub(super) fn paths() -> Vec<std::path::PathBuf> {
    let mut paths = swap_managers::paths();
    paths.extend(SYSCTL_DIRECTORIES.map(|directory| Path::new(directory).join("*")));
    paths.push("/etc/sysctl.conf".into());
    paths.extend(zswap::boot_paths().map(Into::into));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 90 MiB at 34.5 MB/s are not 4 s.
    #[test]
    fn a_limit_that_the_memory_sets_is_told_in_its_own_seconds() {
        let memory = Some(944_000_000);
        let (hard, _) = dirty_bytes(34.5e6, memory);
        assert_eq!(seconds(hard, 34.5e6), "2.7 s");
        let (hard, _) = dirty_bytes(34.5e6, Some(8 * GIB));
        assert_eq!(seconds(hard, 34.5e6), "4.0 s");
    }

    #[test]
    fn unwritten_data_is_seconds_of_the_disk_and_never_much_memory() {
        let mib = |(hard, background): (u64, u64)| (hard / MIB, background / MIB);
        assert_eq!(mib(dirty_bytes(10e6, Some(GIB))), (39, 10));
        assert_eq!(mib(dirty_bytes(34e6, Some(GIB))), (102, 33));
        assert_eq!(mib(dirty_bytes(0.5e6, Some(GIB))), (16, 4));
        assert_eq!(mib(dirty_bytes(400e6, Some(64 * MIB))), (16, 8));
        assert_eq!(mib(dirty_bytes(400e6, None)), (1526, 382));
    }

    #[test]
    fn a_file_that_is_read_later_has_the_last_word() {
        let text = |text: &str| PathState::Text(rubus_change::plan::TextFile::public(text));
        let seen = Seen::from([
            ("/etc/sysctl.d/97-dietpi.conf".into(), text("# x\nvm.swappiness=1\n")),
            ("/usr/lib/sysctl.d/10-early.conf".into(), text("vm.swappiness=5\n")),
            ("/usr/lib/sysctl.d/97-dietpi.conf".into(), text("vm.swappiness=7\n")),
            ("/etc/sysctl.d/98-same.conf".into(), text("vm/page-cluster = 0\n")),
            ("/etc/sysctl.conf".into(), text("#vm.swappiness=9\nkernel.printk = 3\n")),
        ]);
        let lines = |names: &[&'static str]| -> Vec<(&'static str, String, String)> {
            names.iter().map(|name| (*name, "0".into(), String::new())).collect()
        };
        let mut all = lines(&["swappiness", "page-cluster", "dirty_bytes"]);
        let notes = give_way(&seen, &mut all, "90-rubus-desktop.conf");
        assert_eq!(all, lines(&["page-cluster", "dirty_bytes"]));
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].contains("vm.swappiness becomes 1, as /etc/sysctl.d/97-dietpi.conf says"),
            "{notes:?}"
        );
    }

    #[test]
    fn swappiness_is_the_kernels_formula() {
        assert_eq!(swappiness(1.0), 100);
        assert_eq!(swappiness(2.0), 133);
    }
}
