//! What each form of a text lets through.

use std::collections::BTreeSet;

use rubus_host::shareable::list::is_word;
use rubus_host::shareable::products::is_product;
use rubus_host::shareable::words::{is_phrase, phrase, spelt_words};
use rubus_host::shareable::{
    Kind, LEFT_OUT, Pseudonyms, command_line, identities, options, paths, releases,
};

use super::table::TextRule;

/// What the rules of one record share.
pub(super) struct Context<'a> {
    pub names: &'a mut Pseudonyms,
    /// Names of products, which texts may repeat.
    pub public: &'a BTreeSet<String>,
}

/// The text as others may see it; nothing where it is to go.
pub(super) fn text(rule: TextRule, text: &str, context: Context<'_>) -> Option<String> {
    let Context { names, public } = context;
    if text == LEFT_OUT || text.is_empty() {
        return Some(text.to_string());
    }
    let kept = match rule {
        TextRule::Digits => is_digits(text).then(|| text.to_string()),
        TextRule::Time => is_time(text).then(|| text.to_string()),
        TextRule::Release => is_version(text).then(|| release(text)),
        TextRule::Phrase | TextRule::Content => Some(phrase(text, public, names)),
        TextRule::Reason => Some(reason(text, public, names)),
        TextRule::Model => is_model(text, names).then(|| text.to_string()),
        TextRule::Oem => is_oem(text).then(|| text.to_string()),
        TextRule::Compatible => only(text, |c| c.is_ascii_alphanumeric() || ",.-_".contains(c), 64)
            .filter(|text| {
                is_product(text) && !identities::is_address(text) && !names.reveals(text)
            }),
        TextRule::Firmware => firmware(text, public, names),
        TextRule::Openssh => Some(openssh(text)),
        TextRule::Tls => text.starts_with("TLS 1.").then(|| phrase(text, public, names)),
        TextRule::Setting => options::is_words(text).then(|| text.to_string()),
        TextRule::Source => Some(source(text, public, names)),
        TextRule::Device => Some(paths::device(text, names)),
        TextRule::Interface => Some(paths::interface(text, names)),
        TextRule::Bus => Some(paths::bus(text, names)),
        TextRule::Serial => Some(names.name(Kind::Serial, text.trim_start_matches("0x"))),
        TextRule::Uuid => Some(paths::uuid(text, names)),
        TextRule::Label => Some(paths::label(text, names)),
        TextRule::Path => Some(paths::path(text, names)),
        TextRule::Target => Some(paths::target(text, names)),
        TextRule::Volume => Some(paths::volume(text, names)),
        TextRule::Server => Some(names.name(Kind::Server, text)),
        TextRule::Host => Some(names.name(Kind::Host, text)),
        TextRule::Pool => Some(pool(text, names)),
        TextRule::Program => Some(program(text, names)),
        TextRule::Job => Some(job(text, names)),
        TextRule::Title => {
            Some(if is_phrase(text) { text.to_string() } else { names.name(Kind::Job, text) })
        }
        TextRule::Suite => Some(if options::is_words(text) {
            text.to_string()
        } else {
            names.name(Kind::Job, text)
        }),
        TextRule::MountOptions => return mount_options(text, names),
        TextRule::LineOptions => Some(options::mount_options(text, names)),
        TextRule::JobOptions => None,
        TextRule::SwapSettings => options::setting_line(text, names),
        TextRule::CommandLine => Some(command_line::shareable(text, names)),
    };
    // Fields of these forms are not optional, and a reader must see that there was something.
    match (kept, rule) {
        (None, TextRule::SwapSettings | TextRule::Compatible) => None,
        (None, _) => {
            names.remember(text);
            Some(LEFT_OUT.into())
        }
        (kept, _) => kept,
    }
}

fn only(text: &str, is_allowed: impl Fn(char) -> bool, longest: usize) -> Option<String> {
    (text.len() <= longest && text.chars().all(is_allowed)).then(|| text.to_string())
}

/// A device's number ("179:2"), cores ("0-3,6"), a month ("03/2024") or a version ("1.4").
fn is_digits(text: &str) -> bool {
    let groups: Vec<&str> = text.split(|c: char| "-:/.,".contains(c)).collect();
    let is_number =
        |group: &&str| (1..=4).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_digit());
    let numbers: Vec<u32> = groups.iter().map_while(|group| group.parse().ok()).collect();
    let are_cores = || {
        text.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b',')
            && numbers.windows(2).all(|pair| pair[0] < pair[1])
    };
    text.len() <= 40
        && groups.iter().all(is_number)
        && (groups.len() <= 2 || are_cores())
        && (groups.len() != 2 || spelt_words(text).is_empty())
        && !identities::is_address(text)
}

/// "SD", or "0x0100" where the register has no characters.
fn is_oem(text: &str) -> bool {
    let is_number =
        |digits: &str| digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let is_text = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    is_text || text.strip_prefix("0x").is_some_and(is_number)
}

/// RFC 3339: "2026-11-21T00:58:12.660Z".
fn is_time(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    let Some((moment, rest)) = text.split_at_checked(FORM.len()) else {
        return false;
    };
    let is_same = |(here, form): (u8, &u8)| match form {
        b'0' => here.is_ascii_digit(),
        mark => here == *mark,
    };
    let fraction = rest.strip_prefix('.').unwrap_or(rest);
    let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    let has_fraction = fraction.len() - zone.len() <= if rest.starts_with('.') { 9 } else { 0 };
    let is_offset = |offset: &str| offset.len() == 5 && offset.bytes().zip(b"00:00").all(is_same);
    moment.bytes().zip(FORM).all(is_same)
        && has_fraction
        && (zone == "Z" || zone.strip_prefix(['+', '-']).is_some_and(is_offset))
}

/// Options of a mount come one by one, or together as fstab has them.
fn mount_options(text: &str, names: &mut Pseudonyms) -> Option<String> {
    if text.contains(',') {
        Some(options::mount_options(text, names))
    } else {
        options::mount_option(text, names)
    }
}

/// "6.12.47+rpt-rpi-v8", "5.15.0-1034-raspi": numbers with points, and a few words and numbers behind them.
fn is_version(text: &str) -> bool {
    const MARKS: [char; 5] = ['.', '-', '+', '_', '~'];
    const MAX_NUMBERS: usize = 5;
    let pieces: Vec<&str> = text.trim_end_matches('+').split(MARKS).collect();
    let is_number = |piece: &&str| piece.len() <= 4 && piece.bytes().all(|b| b.is_ascii_digit());
    let numbers = pieces.iter().filter(|piece| is_number(piece)).count();
    let letters = pieces.iter().filter(|piece| piece.len() == 1 && !is_number(piece)).count();
    let begins = |text: &str| {
        text.split_once('.').is_some_and(|(first, rest)| {
            is_number(&first) && rest.starts_with(|c: char| c.is_ascii_digit())
        })
    };
    let behind = releases::four_numbers(text).map_or(text, |numbers| &text[numbers.len()..]);
    text.chars().all(|c| c.is_ascii_alphanumeric() || MARKS.contains(&c))
        && pieces.iter().all(|piece| !piece.is_empty())
        && numbers <= MAX_NUMBERS
        && letters <= 1
        && begins(text)
        && !identities::is_address(behind)
        && releases::addresses_in(text).is_empty()
}

/// A version: numbers and the words that distributions add. A word of one's own kernel is left out.
fn release(text: &str) -> String {
    let mut said = String::new();
    for piece in text.split_inclusive(['.', '-', '+', '_', '~']) {
        let core = piece.trim_end_matches(['.', '-', '+', '_', '~']);
        let is_kept = core.is_empty() || options::is_words(core);
        said.push_str(if is_kept { core } else { "…" });
        said.push_str(&piece[core.len()..]);
    }
    said
}

/// The name of a product with nothing private in it.
pub(super) fn is_model(text: &str, names: &Pseudonyms) -> bool {
    is_product(text) && !names.reveals(text)
}

/// The words of an error that are public: what a system call or a server answered, without the names in it.
pub(super) fn reason(text: &str, public: &BTreeSet<String>, names: &Pseudonyms) -> String {
    let spaced = text.replace(['\n', '\t'], " ");
    phrase(&spaced, public, names)
}

/// Words, a date, and behind the word "version" the 40 digits of the sources' commit.
fn firmware(text: &str, public: &BTreeSet<String>, names: &Pseudonyms) -> Option<String> {
    let is_commit = |word: &str| word.len() == 40 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let behind = text.split("version ").skip(1).filter_map(|rest| rest.split(' ').next());
    let mut public = public.clone();
    public.extend(behind.filter(|word| is_commit(word)).map(String::from));
    Some(phrase(text, &public, names))
}

/// "OpenSSH_9.2p1", without what distributions and owners add.
fn openssh(text: &str) -> String {
    let word = text.split([' ', ',']).next().unwrap_or_default();
    let version = word.strip_prefix("OpenSSH_").unwrap_or_default();
    let digits: String =
        version.chars().take_while(|c| c.is_ascii_digit() || ".p".contains(*c)).collect();
    let mut parts = digits.split(['.', 'p']);
    let is_version = parts.clone().count() <= 3 && parts.all(|part| (1..=2).contains(&part.len()));
    if is_version { format!("OpenSSH_{digits}") } else { LEFT_OUT.into() }
}

/// Paths of the kernel's, and words between them.
fn source(text: &str, public: &BTreeSet<String>, names: &mut Pseudonyms) -> String {
    let is_kernels = |word: &&str| word.starts_with("/sys/") || word.starts_with("/proc/");
    let others: Vec<&str> = text.split(' ').filter(|word| !is_kernels(word)).collect();
    if !spelt_words(&others.join(" ")).is_empty() {
        return LEFT_OUT.into();
    }
    let (mut said, mut words): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for word in text.split(' ') {
        let (core, end) = word.split_at(word.trim_end_matches([',', ':', ')']).len());
        if !core.starts_with('/') {
            words.push(word);
            continue;
        }
        if !words.is_empty() {
            said.push(phrase(&std::mem::take(&mut words).join(" "), public, names));
        }
        said.push(format!("{}{end}", system_path(core, names)));
    }
    if !words.is_empty() {
        said.push(phrase(&words.join(" "), public, names));
    }
    said.join(" ")
}

fn system_path(text: &str, names: &mut Pseudonyms) -> String {
    if text.starts_with("/dev/") { paths::volume(text, names) } else { paths::path(text, names) }
}

/// "rbd/image": pool and image.
fn pool(text: &str, names: &mut Pseudonyms) -> String {
    let parts = text
        .split('/')
        .map(|part| if is_word(part) { part.to_string() } else { names.name(Kind::Volume, part) });
    parts.collect::<Vec<_>>().join("/")
}

const SERVERS: [&str; 8] = [
    "nbdkit",
    "qemu-nbd",
    "nbd-server",
    "qemu-storage-daemon",
    "rubus",
    "ceph-osd",
    "nfsd",
    "smbd",
];

fn program(text: &str, names: &mut Pseudonyms) -> String {
    if SERVERS.contains(&text) { text.to_string() } else { names.name(Kind::Program, text) }
}

/// A job of a suite is named by public words; one of a job file by its owner.
fn job(text: &str, names: &mut Pseudonyms) -> String {
    if options::is_words(text) { text.to_string() } else { names.name(Kind::Job, text) }
}

/// Options of job files whose values are numbers or words, in fio's names.
const JOB_OPTIONS: &[&str] = &[
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "bssplit",
    "bsrange",
    "size",
    "io_size",
    "filesize",
    "offset",
    "offset_increment",
    "offset_align",
    "iodepth",
    "numjobs",
    "runtime",
    "time_based",
    "ramp_time",
    "direct",
    "buffered",
    "sync",
    "fsync",
    "fdatasync",
    "end_fsync",
    "fsync_on_close",
    "ioengine",
    "rate",
    "rate_iops",
    "rate_min",
    "rate_process",
    "thinktime",
    "thinktime_blocks",
    "rwmixread",
    "rwmixwrite",
    "random_distribution",
    "randrepeat",
    "norandommap",
    "randseed",
    "group_reporting",
    "new_group",
    "stonewall",
    "wait_for_previous",
    "startdelay",
    "loops",
    "nrfiles",
    "file_service_type",
    "invalidate",
    "fallocate",
    "thread",
    "refill_buffers",
    "scramble_buffers",
    "buffer_compress_percentage",
    "verify",
    "do_verify",
    "zonesize",
    "zoneskip",
    "zonerange",
    "percentage_random",
    "latency_target",
    "hipri",
    "exitall",
];
/// Options whose values are paths or devices.
const JOB_PATHS: [&str; 2] = ["directory", "filename"];

/// The value of an option of a job file as others may see it; nothing where the option or its value is not known.
pub(super) fn job_option(name: &str, value: &str, context: Context<'_>) -> Option<String> {
    if JOB_PATHS.contains(&name) && !identities::is_address(value) {
        let files = value.split(':').map(|file| paths::target(file, context.names));
        return Some(files.collect::<Vec<_>>().join(":"));
    }
    let is_kept = JOB_OPTIONS.contains(&name)
        && (value.is_empty() || options::is_words(value) || options::is_number(value));
    is_kept.then(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_told_from_an_address() {
        for text in ["6.12.47+rpt-rpi-v8", "5.15.146.1-microsoft-standard-WSL2"] {
            assert!(is_version(text), "{text}");
            assert_eq!(release(text), text);
        }
        for text in ["192.168.1.5", "5.15.146.1-qz", "192.168.1.5-microsoft-standard-WSL2"] {
            assert!(!is_version(text), "{text}");
        }
    }
}
