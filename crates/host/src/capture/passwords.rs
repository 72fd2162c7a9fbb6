//! Passwords in lines of `/etc/fstab`. They are no identities: every capture is without them.

use crate::recorder::Record;

/// Options whose value is a password. Source: mount.cifs(8), mount.davfs(8), curlftpfs(1).
const OPTIONS: [&str; 4] = ["password", "password2", "pass", "passwd"];

/// Blots them out in what was recorded, also those in comments.
pub(super) fn blot_out(record: &mut Record) {
    if let Some(contents) = record.files.get_mut("/etc/fstab") {
        let text = String::from_utf8_lossy(&contents.bytes);
        let words = text.split_inclusive(char::is_whitespace);
        contents.bytes = words.map(blotted).collect::<String>().into_bytes();
    }
}

/// A column: "//nas/music", "user=me,password=secret", "https://me:secret@server/".
fn blotted(word: &str) -> String {
    let options = word.split_inclusive(',').map(|option| {
        let is_one = |(name, _): &(&str, &str)| OPTIONS.contains(&name.trim_start_matches('#'));
        match option.split_once('=').filter(is_one) {
            Some((name, value)) => format!("{name}={}", stars(value)),
            None => option.to_string(),
        }
    });
    let word: String = options.collect();
    // What stands before the machine's name.
    let Some((before, after)) = word.split_once('@') else {
        return word;
    };
    match before.rsplit_once(':') {
        Some((user, password)) if !password.starts_with("//") => {
            format!("{user}:{}@{after}", stars(password))
        }
        _ => word,
    }
}

/// As long as before, with the character that ends it.
fn stars(value: &str) -> String {
    let is_end = |c: char| c == ',' || c.is_whitespace();
    value.chars().map(|c| if is_end(c) { c } else { '*' }).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Captured, Identities, save};
    use super::*;
    use crate::fake::FakeFiles;
    use crate::files::Files;
    use crate::recorder::Recorder;

    #[test]
    fn no_capture_has_one_whatever_is_asked_for() {
        let table = Path::new("/etc/fstab");
        let machine = FakeFiles::new().file(table, "//nas/x /mnt cifs password=tr0ub4dor\n");
        for identities in [Identities::Replace, Identities::Keep] {
            let recorder = Recorder::new(&machine);
            recorder.text(table).unwrap();
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("capture.tar");
            save(&recorder, &path, "a test", "2026-11-21T12:00:00Z", identities).unwrap();
            let kept = Captured::open(&path).unwrap().text(table).unwrap();
            assert_eq!(kept, "//nas/x /mnt cifs password=*********");
        }
    }

    #[test]
    fn only_passwords_are_blotted_out() {
        for (line, expected) in [
            (
                "//nas/music /mnt cifs user=me,password=a=b,uid=5 0 0\n",
                "//nas/music /mnt cifs user=me,password=***,uid=5 0 0\n",
            ),
            ("#pass=x\tpasswd=yz\n", "#pass=*\tpasswd=**\n"),
            (
                "https://me:secret@server/ /mnt davfs rw\n",
                "https://me:******@server/ /mnt davfs rw\n",
            ),
            (
                "me@server:/export /mnt fuse.sshfs _netdev\n",
                "me@server:/export /mnt fuse.sshfs _netdev\n",
            ),
            ("https://me@server/ /mnt davfs rw\n", "https://me@server/ /mnt davfs rw\n"),
            ("UUID=5DF9-E225 / btrfs subvol=@ 0 0\n", "UUID=5DF9-E225 / btrfs subvol=@ 0 0\n"),
        ] {
            let words = line.split_inclusive(char::is_whitespace);
            assert_eq!(words.map(blotted).collect::<String>(), expected);
        }
    }
}
