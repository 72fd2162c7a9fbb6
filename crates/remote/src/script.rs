//! The shell texts that are run at the other end.
//!
//! They keep to what dash and busybox ash have, and to one line each: a C shell as login shell could
//! not take a line feed on their way (see [`super::quote`]).

use std::time::Duration;

use super::quote::run_script;

/// First line of the keeper's answer; what a login script prints before it is not ours.
pub const BEGIN: &str = "rubus-keeper 1";
/// Last line of the keeper's answer; after it, the keeper waits.
pub const READY: &str = "rubus-keeper ready";

/// Status with which a run ends when it lost the one who asked for it. The connection may then be
/// half dead, and the keeper may not know it for hours, so the place is cleared at once.
pub const ABANDONED: u8 = 75;

/// The line that means Ctrl-C.
pub const STOP: &str = "stop";
/// How often the other end gives a sign of life.
pub const BEAT: Duration = Duration::from_secs(5);

/// The keeper: says what kind of machine it is, makes a private directory in which programs may be
/// run, waits until the connection ends, and removes the directory. `$1`: KiB that it must hold.
///
/// Memory comes first: what is copied must not wear or disturb the disk that is going to be measured.
const KEEPER: &str = concat!(
    "export LC_ALL=C; umask 077; dir=; ",
    "clean() { trap \"\" HUP INT TERM PIPE; ",
    "for again in 1 2 3 4 5; do [ -n \"$dir\" ] || break; rm -rf \"$dir\"; ",
    "[ -e \"$dir\" ] || break; sleep 1; done; }; ",
    "trap clean EXIT; trap \"exit 129\" HUP; trap \"exit 130\" INT; trap \"exit 143\" TERM; trap \"\" PIPE; ",
    "echo; echo rubus-keeper 1; ",
    "echo \"machine=$(uname -m)\"; echo \"system=$(uname -s)\"; ",
    "echo \"boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)\"; ",
    "for base in \"$XDG_RUNTIME_DIR\" \"$TMPDIR\" /tmp /var/tmp \"$HOME\"; do ",
    "case \"$base\" in /*) ;; *) continue ;; esac; ",
    "[ -d \"$base\" ] || { echo \"tried=absent $base\"; continue; }; ",
    "free=$(df -Pk \"$base\" 2>/dev/null | { read -r head; read -r a b c d e; echo \"$d\"; }); ",
    "case \"$free\" in \"\"|*[!0-9]*) ;; ",
    "*) [ \"$free\" -ge \"$1\" ] || { echo \"tried=full $base\"; continue; } ;; esac; ",
    "dir=$(mktemp -d \"$base/rubus.XXXXXX\" 2>/dev/null) || { dir=; echo \"tried=forbidden $base\"; continue; }; ",
    "echo \"#!/bin/sh\" > \"$dir/try\" && chmod 700 \"$dir/try\" && \"$dir/try\" 2>/dev/null && break; ",
    "echo \"tried=noexec $base\"; rm -rf \"$dir\"; dir=; ",
    "done; ",
    "[ -z \"$dir\" ] || rm -f \"$dir/try\"; ",
    "echo \"dir=$dir\"; echo rubus-keeper ready; ",
    "while read -r line; do :; done",
);

/// Takes a file from standard input as `$1`/`$2` and says how long it is and, if it can, its SHA-256.
const TAKE: &str = concat!(
    "export LC_ALL=C; umask 077; cd \"$1\" && cat > \"$2\" && chmod 700 \"$2\" && ",
    "echo \"bytes=$(wc -c < \"$2\")\" && ",
    "if command -v sha256sum >/dev/null 2>&1; then echo \"sha256=$(sha256sum < \"$2\")\"; fi",
);

/// Runs `$2…`; when that ends as abandoned, removes the directory `$1`.
const RUN: &str = concat!(
    "dir=$1; shift; \"$@\"; status=$?; ",
    "[ \"$status\" != 75 ] || [ -z \"$dir\" ] || rm -rf \"$dir\"; exit \"$status\"",
);

/// The command of the keeper, with the room that is needed.
pub fn keeper(needed_bytes: u64) -> String {
    run_script(KEEPER, &[&needed_bytes.div_ceil(1024).to_string()])
}

/// The command that takes a file.
pub fn take(directory: &str, name: &str) -> String {
    run_script(TAKE, &[directory, name])
}

/// The command that gives a file back.
pub fn give(directory: &str, name: &str) -> String {
    run_script("exec cat \"$1/$2\"", &[directory, name])
}

/// The command that runs a program in the user's home directory, where ssh begins.
pub fn run(directory: &str, words: &[&str]) -> String {
    let mut all = vec![directory];
    all.extend_from_slice(words);
    run_script(RUN, &all)
}

/// The command that sends back what it gets, to time the way.
pub fn echo() -> String {
    run_script("exec cat", &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_has_a_line_feed_or_a_quote_that_needs_care() {
        for script in [KEEPER, TAKE, RUN] {
            assert!(!script.contains('\n') && !script.contains('\''));
        }
        let keeper = keeper(5_000_000);
        assert!(keeper.ends_with(" rubus 4883"), "{keeper}");
        assert!(keeper.contains(BEGIN) && keeper.contains(READY));
        assert!(RUN.contains(&format!("!= {ABANDONED}")));
    }

    #[test]
    fn a_run_passes_its_words_on() {
        let command = run("/tmp/rubus.a b", &["/tmp/rubus.a b/rubus", "bench", "it's"]);
        assert!(
            command.ends_with(r" rubus '/tmp/rubus.a b' '/tmp/rubus.a b/rubus' bench 'it'\''s'"),
            "{command}"
        );
    }
}
