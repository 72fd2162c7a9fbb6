//! Passwords in captures that keep everything else as it was read.

use crate::simulated::recorder::Record;

/// What stands in the names of options and parameters whose value is a password or a key: mount.cifs(8), mount.davfs(8),
/// curlftpfs(1), dracut.cmdline(7), systemd.system-credentials(7).
const MARKS: [&str; 9] =
    ["pass", "pwd", "psk", "secret", "token", "cred", "access_key", "sshpw", "apikey"];

/// Tables of mounts and command lines.
const FILES: [&str; 4] = ["/etc/fstab", "/proc/cmdline", "/proc/self/mountinfo", "cmdline.txt"];

/// Blots them out in what was recorded, also those in comments.
pub(super) fn blot_out(record: &mut Record) {
    for (path, contents) in &mut record.files {
        if FILES.iter().any(|file| path.ends_with(file)) {
            let text = String::from_utf8_lossy(&contents.bytes);
            let words = text.split_inclusive(char::is_whitespace);
            contents.bytes = words.map(blotted).collect::<String>().into_bytes();
        }
    }
}

/// A column: "//nas/music", "user=me,password=secret", "https://me:secret@server/".
fn blotted(word: &str) -> String {
    let options = word.split_inclusive(',').map(|option| {
        let is_one = |(name, value): &(&str, &str)| {
            let name = name.to_lowercase();
            MARKS.iter().any(|mark| name.contains(mark)) || name == "user" && value.contains('%')
        };
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
    use super::*;

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
