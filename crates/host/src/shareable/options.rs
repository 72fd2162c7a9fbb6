//! Options of mounts, and settings of files that are lists of `name=value`.

use super::list::is_word;
use super::paths;
use super::pseudonyms::Pseudonyms;
use super::words::{is_public_piece, is_round};

/// What the value of an option may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// There is none.
    None,
    /// Digits with a unit; a long number is round.
    Number,
    /// Digits with a unit, whatever they are: sizes and counts that the kernel makes of the memory.
    Size,
    /// Public words, numbers with them: `zstd:3`, `tcp`, `strict`.
    Word,
    /// A path.
    Path,
    /// A device or other volume.
    Volume,
}

/// Options of mounts that say something of storage: of the kernel's filesystems (Documentation/filesystems, mount(8),
/// nfs(5), mount.cifs(8)) and of fstab (systemd.mount(5)). What is none of these is left out, with its value.
const MOUNT_OPTIONS: &[(&str, Value)] = {
    use Value::{None as N, Number as D, Path as P, Size as S, Volume as V, Word as W};
    &[
        ("rw", N),
        ("ro", N),
        ("defaults", N),
        ("noatime", N),
        ("relatime", N),
        ("strictatime", N),
        ("lazytime", N),
        ("nodiratime", N),
        ("nosuid", N),
        ("nodev", N),
        ("noexec", N),
        ("suid", N),
        ("dev", N),
        ("exec", N),
        ("auto", N),
        ("noauto", N),
        ("user", N),
        ("nouser", N),
        ("users", N),
        ("async", N),
        ("sync", N),
        ("dirsync", N),
        ("_netdev", N),
        ("nofail", N),
        ("bind", N),
        ("rbind", N),
        ("discard", W),
        ("nodiscard", N),
        ("iversion", N),
        ("mand", N),
        ("seclabel", N),
        ("x-systemd.automount", N),
        ("x-systemd.growfs", N),
        ("x-systemd.makefs", N),
        ("x-systemd.device-timeout", D),
        ("x-systemd.mount-timeout", D),
        ("x-systemd.idle-timeout", D),
        ("x-systemd.requires", P),
        ("x-systemd.after", P),
        ("x-systemd.before", P),
        ("x-gvfs-show", N),
        ("x-initrd.mount", N),
        ("sw", N),
        ("pri", D),
        ("shared", D),
        ("errors", W),
        ("data", W),
        ("commit", D),
        ("barrier", D),
        ("nobarrier", N),
        ("journal_checksum", N),
        ("journal_async_commit", N),
        ("stripe", D),
        ("delalloc", N),
        ("nodelalloc", N),
        ("noload", N),
        ("norecovery", N),
        ("user_xattr", N),
        ("acl", N),
        ("noacl", N),
        ("quota", N),
        ("noquota", N),
        ("usrquota", N),
        ("grpquota", N),
        ("prjquota", N),
        ("inode_readahead_blks", D),
        ("max_batch_time", D),
        ("min_batch_time", D),
        ("dioread_nolock", N),
        ("compress", W),
        ("compress-force", W),
        ("ssd", N),
        ("nossd", N),
        ("ssd_spread", N),
        ("space_cache", W),
        ("nospace_cache", N),
        ("subvol", P),
        ("subvolid", S),
        ("degraded", N),
        ("autodefrag", N),
        ("noautodefrag", N),
        ("datacow", N),
        ("nodatacow", N),
        ("datasum", N),
        ("nodatasum", N),
        ("flushoncommit", N),
        ("max_inline", D),
        ("thread_pool", D),
        ("device", V),
        ("size", S),
        ("nr_inodes", S),
        ("mode", D),
        ("uid", D),
        ("gid", D),
        ("umask", D),
        ("fmask", D),
        ("dmask", D),
        ("codepage", D),
        ("iocharset", W),
        ("shortname", W),
        ("utf8", N),
        ("flush", N),
        ("background_gc", W),
        ("active_logs", D),
        ("alloc_mode", W),
        ("fsync_mode", W),
        ("checkpoint", W),
        ("inline_data", N),
        ("attr2", N),
        ("inode64", N),
        ("logbufs", D),
        ("logbsize", D),
        ("sunit", D),
        ("swidth", D),
        ("allocsize", S),
        ("vers", W),
        ("nfsvers", W),
        ("rsize", S),
        ("wsize", S),
        ("hard", N),
        ("soft", N),
        ("proto", W),
        ("timeo", D),
        ("retrans", D),
        ("cache", W),
        ("actimeo", D),
        ("nconnect", D),
        ("max_channels", D),
        ("noac", N),
        ("seal", N),
        ("sign", N),
        ("port", D),
        ("local_lock", W),
        ("lowerdir", P),
        ("upperdir", P),
        ("allow_other", N),
    ]
};

/// One option of a mount, `name` or `name=value`; nothing where it is not one of the known ones or its value is of another
/// form than theirs.
pub fn mount_option(text: &str, names: &mut Pseudonyms) -> Option<String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let known = MOUNT_OPTIONS.iter().find(|(known, _)| *known == name);
    let Some((_, form)) = known else {
        names.remember(value.unwrap_or(text));
        return None;
    };
    let Some(value) = value else {
        return Some(name.to_string());
    };
    let kept = match form {
        Value::None => None,
        Value::Number => is_public_number(value).then(|| value.to_string()),
        Value::Size => is_number(value).then(|| value.to_string()),
        Value::Word => is_words(value).then(|| value.to_string()),
        Value::Path => Some(paths::path(value, names)),
        Value::Volume => Some(paths::volume(value, names)),
    };
    match kept {
        Some(value) => Some(format!("{name}={value}")),
        None => {
            names.remember(value);
            None
        }
    }
}

/// Options with commas between them, as fstab has them; `defaults` where none is left.
pub fn mount_options(text: &str, names: &mut Pseudonyms) -> String {
    let kept: Vec<String> = text.split(',').filter_map(|one| mount_option(one, names)).collect();
    if kept.is_empty() { "defaults".into() } else { kept.join(",") }
}

/// Digits, with a sign before them and a unit or a percent sign behind them.
pub fn is_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    let unit = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let count = digits.len() - unit.len();
    // A longer number may be a serial number, unless it is a size in whole pages.
    let is_size = || digits[..count].parse::<u64>().is_ok_and(|bytes| bytes % 4096 == 0);
    (1..=8).contains(&count) | (count > 8 && is_size())
        && digits.chars().filter(|c| *c == '.').count() <= 1
        && (unit.is_empty()
            || unit == "%"
            || unit.len() <= 3 && is_word(unit)
            || ["k", "K", "m", "M", "g", "G", "t", "T", "s"].contains(&unit))
}

/// The same where nothing tells that the value is a number: one of six digits and more without a unit is round.
pub fn is_public_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    let is_plain = digits.len() > 5 && digits.bytes().all(|b| b.is_ascii_digit());
    is_number(text) && (!is_plain || is_round_number(digits))
}

/// Whether digits are a number as sizes and rates are, and no telephone number.
pub fn is_round_number(digits: &str) -> bool {
    digits.parse().is_ok_and(is_round)
}

/// Public words and short numbers with separators between them.
pub fn is_words(text: &str) -> bool {
    let is_piece = |piece: &str| is_public_piece(piece) || super::kernel_names::is_device(piece);
    text.len() <= 80
        && text.split([':', '.', '-', '_', ',', '/', ' ']).filter(|p| !p.is_empty()).all(is_piece)
        && !super::identities::is_address(text)
        && !super::in_a_row::is_spelt(text)
}

/// A line of a program that configures swap: `name=value` with a public name, and a number, words or a path.
pub fn setting_line(text: &str, names: &mut Pseudonyms) -> Option<String> {
    let (name, value) = text.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if !is_words(name) {
        names.remember(text);
        return None;
    }
    let plain = value.trim_matches(['"', '\'']);
    if super::identities::is_address(plain) {
        names.remember(value);
        return None;
    }
    let kept = if plain.starts_with('/') {
        paths::volume(plain, names)
    } else if plain.is_empty() || is_public_number(plain) || is_words(plain) || is_formula(plain) {
        plain.to_string()
    } else {
        names.remember(value);
        return None;
    };
    Some(if kept == plain { text.to_string() } else { format!("{name}={kept}") })
}

/// "min(ram / 2, 4096)", "zstd lz4 (type=huge)", as zram-generator takes them.
fn is_formula(text: &str) -> bool {
    if super::in_a_row::is_spelt(text) {
        return false;
    }
    let pieces = text.split(|c: char| " ()*/+-,.=_".contains(c)).filter(|piece| !piece.is_empty());
    pieces.into_iter().all(|piece| {
        is_word(piece) || piece.bytes().all(|b| b.is_ascii_digit()) && is_public_number(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_options_stay_and_others_go_with_their_values() {
        let mut names = Pseudonyms::default();
        let mut of = |text: &str| mount_options(text, &mut names);
        for same in [
            "rw,noatime,commit=60,errors=remount-ro",
            "defaults,compress=zstd:3,subvol=/home,space_cache=v2",
            "rw,vers=4.2,rsize=1048576,proto=tcp,hard",
            "nofail,x-systemd.device-timeout=10s",
            "rw,size=1938540k,nr_inodes=484635,mode=755,uid=1000",
        ] {
            assert_eq!(of(same), same);
        }
        for secret in [
            "username=alice,password=tr0ub,ador-rest",
            "PASSWORD=x1y2",
            "credentials=/home/alice/.smb",
            "addr=10.9.8.7",
            "clientaddr=fe80::1%eth0",
            "domain=WORK",
            "user=alice%hunter2",
            "name=alice",
            "mode=alice",
            "uid=1715551,gid=4715552",
            "port=5551239,timeo=4930556,codepage=5551240",
            "password=\"a b\"",
        ] {
            assert_eq!(of(secret), "defaults", "{secret}");
        }
        assert_eq!(of("rw,subvol=/@alice,uid=1000"), "rw,subvol=/name-1,uid=1000");
        assert!(names.reveals("hunter2"));
    }

    #[test]
    fn a_hardware_address_is_no_words_however_it_is_spelt() {
        for address in [
            "b8 27 0b 3a 2b 1c",
            "b8_27_0b_3a_2b_1c",
            "b8 27-0b 3a_2b/1c",
            "001122-3a4455",
            "read b8 27 0b 3a 2b 1c",
            "00 11 22 33 44 55",
            "ip-10-11-12-13",
        ] {
            assert!(!is_words(address), "{address}");
        }
        for words in ["read 4k 32", "read-4-16-64", "10 20 30 40 50 60", "read-1024-2048-4096"] {
            assert!(is_words(words), "{words}");
        }
    }

    #[test]
    fn settings_of_swap_stay_where_their_form_is_known() {
        let mut names = Pseudonyms::default();
        let mut of = |text: &str| setting_line(text, &mut names);
        assert_eq!(of("CONF_SWAPSIZE=100").as_deref(), Some("CONF_SWAPSIZE=100"));
        assert_eq!(
            of("CONF_SWAPFILE=/home/alice/swap").as_deref(),
            Some("CONF_SWAPFILE=/home/name-1/swap")
        );
        assert_eq!(
            of("zram-size = min(ram / 2, 4096)").as_deref(),
            Some("zram-size = min(ram / 2, 4096)")
        );
        let algorithms = "compression-algorithm = zstd lz4 (type=huge)";
        assert_eq!(of(algorithms).as_deref(), Some(algorithms));
        for number in ["CONF_SWAPSIZE=5551234", "zram-size = min(ram / 2, 4915551)"] {
            assert_eq!(of(number), None);
        }
        assert_eq!(of("ALICE=1"), None);
        assert_eq!(of("Mechanism=hunter2").as_deref(), None);
    }
}
