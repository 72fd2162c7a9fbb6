//! Passwords in captures that keep everything else as it was read.

use super::containers;
use crate::simulated::recorder::Record;

/// What stands in the names of options and parameters whose value is a password or a key: mount.cifs(8), mount.davfs(8),
/// curlftpfs(1), dracut.cmdline(7), systemd.system-credentials(7).
const MARKS: [&str; 9] =
    ["pass", "pwd", "psk", "secret", "token", "cred", "access_key", "sshpw", "apikey"];

/// Words in such names that have one of the marks and no password.
const HARMLESS: [&str; 4] = ["passthrough", "bypass", "passive", "passno"];

/// Tables of mounts and command lines.
const FILES: [&str; 4] = ["/etc/fstab", "/proc/cmdline", "/proc/self/mountinfo", "cmdline.txt"];

/// Directories of files that people write.
const WRITTEN: [&str; 2] = ["/etc/", "/boot/"];

/// Blots them out in what was recorded, also those in comments.
pub(super) fn blot_out(record: &mut Record) {
    for (path, contents) in &mut record.files {
        if path == containers::ENVIRONMENT {
            contents.bytes = containers::environment(&contents.bytes);
            contents.whole = true;
            continue;
        }
        let is_table = FILES.iter().any(|file| path.ends_with(file));
        let is_written = WRITTEN.iter().any(|start| path.starts_with(start));
        let text = std::str::from_utf8(&contents.bytes);
        if is_table || is_written && text.is_ok_and(|text| !text.contains('\0')) {
            let text = String::from_utf8_lossy(&contents.bytes);
            let lines = text.split_inclusive('\n').map(blotted_line);
            contents.bytes = lines.collect::<String>().into_bytes();
        }
    }
}

/// A line in which each word is looked at alone, and behind those that announce a password. One in quotes may have blanks.
fn blotted_line(line: &str) -> String {
    let (mut before, mut is_open) = (["", ""], false);
    let mut said = String::new();
    for word in line.split_inclusive(char::is_whitespace) {
        let core = word.trim();
        if core.is_empty() {
            said.push_str(word);
            continue;
        }
        let is_secret = is_open || announces(before);
        let blotted = if is_secret { stars(word) } else { blotted(word) };
        let has_one_quote = core.matches(['"', '\'']).count() % 2 == 1;
        is_open ^= has_one_quote && (is_secret || blotted != word);
        said.push_str(&blotted);
        before = [before[1], core];
    }
    said
}

/// Whether a password follows: "password =", "password:", "--password", "sshpass -p".
fn announces([earlier, last]: [&str; 2]) -> bool {
    const SIGNS: [char; 2] = ['=', ':'];
    let name = last.trim_end_matches(SIGNS);
    let is_open = last.ends_with(SIGNS) || last.starts_with("--") && !last.contains('=');
    let name = if name.is_empty() { earlier } else { name };
    is_open && (is_of_password(name) || is_of_key(name))
        || last == "-p" && earlier.ends_with("sshpass")
}

fn is_of_password(name: &str) -> bool {
    let name = name.to_lowercase();
    let is_harmless = HARMLESS.iter().any(|word| name.contains(word));
    !is_harmless && MARKS.iter().any(|mark| name.contains(mark))
}

/// "wep_key", "key": what is called so is also a file that holds one.
fn is_of_key(name: &str) -> bool {
    let last = name.rsplit(|c: char| !c.is_alphanumeric()).next();
    last.is_some_and(|last| ["key", "pw"].contains(&last.to_lowercase().as_str()))
}

/// A column: "//nas/music", "user=me,password=secret", "https://me:secret@server/".
fn blotted(word: &str) -> String {
    let options = word.split_inclusive(',').map(|option| {
        let is_one = |(name, value): &(&str, &str)| {
            let is_user = ["user", "username"].contains(&name.to_lowercase().as_str());
            is_of_password(name)
                || is_of_key(name) && !value.starts_with('/')
                || is_user && value.contains('%')
                || value.contains("sshpass")
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
            ("password = \"yz\"\n", "password = ****\n"),
            ("# wifi_password:  xy\n", "# wifi_password:  **\n"),
            ("PROGRAM /x --password xy z\n", "PROGRAM /x --password ** z\n"),
            ("cifs rw,credentials=/k,password=/xy", "cifs rw,credentials=**,password=***"),
            ("username=me%xy,wep_key=xy", "username=*****,wep_key=**"),
            ("x ssh_command=sshpass\\040-p\\040xy", "x ssh_command=*******************"),
            ("ssh_command=\"sshpass -p xy\" z", "ssh_command=******** ** *** z"),
            ("PASSWORD=\"two words\" x\n", "PASSWORD=**** ****** x\n"),
            (
                "rd.luks.key=/k iommu.passthrough=1 key=val",
                "rd.luks.key=/k iommu.passthrough=1 key=***",
            ),
        ] {
            assert_eq!(blotted_line(line), expected);
        }
    }
}
