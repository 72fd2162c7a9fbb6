//! ssh from a machine to itself: how many bytes a second, and what they cost at both ends.

use serde::{Deserialize, Serialize};

use super::Rate;

/// What was measured of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ssh {
    /// What ssh calls itself ("OpenSSH_9.2p1").
    pub version: String,
    /// What authenticates messages where the cipher does not do that itself, such as "umac-64-etm@openssh.com".
    pub mac: Option<String>,
    /// One entry per cipher that both ends offer unasked, in the order in which they would be chosen.
    pub rows: Vec<Row>,
}

/// One cipher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// As ssh calls it.
    pub cipher: String,
    /// Bytes per second through one connection.
    pub rate: Rate,
    /// Bytes that were sent while it was measured.
    pub sent_bytes: u64,
    /// Seconds of that.
    pub elapsed_s: f64,
    /// What enciphered them: the client.
    pub client: Option<End>,
    /// What deciphered them: all processes of the server together.
    pub server: Option<End>,
}

/// Processor time of one end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct End {
    /// Cores that it kept busy.
    pub cores: f64,
    /// Seconds of a core for 10^9 bytes.
    pub seconds_per_gb: f64,
}

impl End {
    /// From nanoseconds of processor time.
    pub fn of(cpu_ns: u64, sent_bytes: u64, elapsed_s: f64) -> Option<End> {
        let cpu_s = cpu_ns as f64 / 1e9;
        (sent_bytes > 0 && elapsed_s > 0.0).then(|| End {
            cores: cpu_s / elapsed_s,
            seconds_per_gb: cpu_s / (sent_bytes as f64 / 1e9),
        })
    }
}

impl Row {
    /// Whether the cipher leaves it to a MAC to authenticate.
    pub fn needs_mac(&self) -> bool {
        !self.cipher.contains("gcm") && !self.cipher.contains("poly1305")
    }
}

/// The value of a setting as `ssh -G` and `sshd -T` print it: a name, a space, and a list with commas.
pub fn setting<'a>(printed: &'a str, name: &str) -> Vec<&'a str> {
    let mut lines = printed.lines().filter_map(|line| line.split_once(' '));
    let list = lines.find(|(key, _)| *key == name).map(|(_, list)| list);
    list.map_or_else(Vec::new, |list| list.trim().split(',').collect())
}

/// What both ends offer, in the client's order, since its order decides (RFC 4253, 7.1).
pub fn both_offer(client: &str, server: &str, setting_name: &str) -> Vec<String> {
    let theirs = setting(server, setting_name);
    let ours = setting(client, setting_name).into_iter();
    ours.filter(|cipher| !cipher.is_empty() && theirs.contains(cipher))
        .map(str::to_string)
        .collect()
}

/// The directory that a server started by root wants to have and has not, from its complaint.
pub fn missing_directory(complaint: &str) -> Option<&str> {
    let rest = complaint.split_once("Missing privilege separation directory: ")?.1;
    let path = rest.lines().next()?.trim();
    path.starts_with('/').then_some(path)
}

/// The login shell in a line of passwd(5); where it says none, the usual one.
pub fn login_shell(line: &str) -> &str {
    match line.trim_end().split(':').nth(6) {
        Some(shell) if !shell.is_empty() => shell,
        _ => "/bin/sh",
    }
}

/// Whether a login shell only refuses logins, as `nologin` does.
pub fn lets_nobody_in(shell: &str) -> bool {
    let name = shell.rsplit('/').next().unwrap_or(shell);
    ["nologin", "false", "true", "sync"].contains(&name)
}

/// The line of a program's complaints that says most: the last that is none of the usual aftermath.
pub fn reason(complaints: &str) -> Option<&str> {
    const AFTERMATH: [&str; 4] =
        ["Connection closed", "kex_exchange_identification", "Accepted publickey", "Connection to"];
    let lines = complaints.lines().map(str::trim);
    let all: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let is_telling = |line: &&&str| {
        let is_aftermath = AFTERMATH.iter().any(|usual| line.starts_with(usual));
        // What the client says when the server has said why.
        !is_aftermath && !line.contains(": Permission denied (")
    };
    let telling = all.iter().rev().find(is_telling);
    telling.or(all.last()).copied()
}

/// An Ed25519 key pair in the files that OpenSSH reads.
///
/// Sources: PROTOCOL.key of OpenSSH; RFC 4251, section 5, for strings; RFC 8709 for the algorithm.
pub mod key {
    const ALGORITHM: &[u8] = b"ssh-ed25519";

    /// The private key, without a passphrase. `check` is any number.
    pub fn private(seed: &[u8; 32], public: &[u8; 32], check: u32) -> String {
        let mut secret = Vec::new();
        secret.extend(check.to_be_bytes());
        secret.extend(check.to_be_bytes());
        string(&mut secret, ALGORITHM);
        string(&mut secret, public);
        string(&mut secret, &[&seed[..], public].concat());
        string(&mut secret, b"");
        // To whole blocks of the cipher "none", with 1, 2, 3 and so on.
        let padding = (1_u8..).take(secret.len().next_multiple_of(8) - secret.len());
        secret.extend(padding.collect::<Vec<u8>>());
        let mut file = b"openssh-key-v1\0".to_vec();
        string(&mut file, b"none");
        string(&mut file, b"none");
        string(&mut file, b"");
        file.extend(1_u32.to_be_bytes());
        string(&mut file, &blob(public));
        string(&mut file, &secret);
        let text = base64(&file);
        let mut lines = String::from("-----BEGIN OPENSSH PRIVATE KEY-----\n");
        for line in text.as_bytes().chunks(70) {
            lines.push_str(&String::from_utf8_lossy(line));
            lines.push('\n');
        }
        lines.push_str("-----END OPENSSH PRIVATE KEY-----\n");
        lines
    }

    /// The public key, as in `authorized_keys`.
    pub fn public(public: &[u8; 32]) -> String {
        format!("ssh-ed25519 {}", base64(&blob(public)))
    }

    fn blob(public: &[u8; 32]) -> Vec<u8> {
        let mut blob = Vec::new();
        string(&mut blob, ALGORITHM);
        string(&mut blob, public);
        blob
    }

    fn string(into: &mut Vec<u8>, bytes: &[u8]) {
        into.extend((bytes.len() as u32).to_be_bytes());
        into.extend(bytes);
    }

    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for three in bytes.chunks(3) {
            let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for i in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
                text.push(if i > three.len() { '=' } else { char::from(digit) });
            }
        }
        text
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn base64_is_that_of_the_standard() {
            // RFC 4648, section 10.
            let pairs =
                [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
            for (plain, text) in pairs {
                assert_eq!(base64(plain.as_bytes()), text);
            }
        }

        #[test]
        fn a_key_file_has_whole_blocks_and_short_lines() {
            let text = private(&[1; 32], &[2; 32], 7);
            assert!(text.lines().all(|line| line.len() <= 70));
            assert!(text.starts_with("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA"));
            let line = public(&[2; 32]);
            assert!(line.starts_with("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAIC"), "{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_both_offer_is_tried_in_the_clients_order() {
        let client =
            "host x\nciphers chacha20-poly1305@openssh.com,aes128-ctr,aes256-gcm@openssh.com\n";
        let server =
            "port 22\nciphers aes256-gcm@openssh.com,chacha20-poly1305@openssh.com\nmacs x\n";
        let both = both_offer(client, server, "ciphers");
        assert_eq!(both, ["chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com"]);
        assert!(both_offer("", server, "ciphers").is_empty());
        assert!(setting("ciphersuite a,b\n", "ciphers").is_empty());
    }

    #[test]
    fn a_server_that_misses_its_directory_says_which() {
        let complaint = "Missing privilege separation directory: /run/sshd\r\n";
        assert_eq!(missing_directory(complaint), Some("/run/sshd"));
        assert_eq!(missing_directory("no hostkeys available"), None);
    }

    #[test]
    fn the_telling_line_is_found_among_the_aftermath() {
        let text = "User root not allowed because account is locked\nroot@rubus: Permission denied (publickey).\n\
                    kex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535\n";
        assert_eq!(reason(text), Some("User root not allowed because account is locked"));
        assert_eq!(reason("Connection closed by x\n"), Some("Connection closed by x"));
        assert_eq!(reason("\n"), None);
    }

    #[test]
    fn a_login_shell_that_refuses_logins_is_known() {
        let daemon = "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n";
        assert!(lets_nobody_in(login_shell(daemon)));
        assert!(lets_nobody_in(login_shell("x:x:7:7::/:/bin/false")));
        let pi = "pi:x:1000:1000:,,,:/home/pi:/bin/bash\n";
        assert_eq!(login_shell(pi), "/bin/bash");
        assert!(!lets_nobody_in(login_shell(pi)));
        assert_eq!(login_shell("x:x:7:7::/:"), "/bin/sh");
    }

    #[test]
    fn processor_time_is_told_per_byte_and_in_cores() {
        let end = End::of(500_000_000, 250_000_000, 1.0).expect("something was sent");
        assert_eq!((end.cores, end.seconds_per_gb), (0.5, 2.0));
        assert_eq!(End::of(1, 0, 1.0), None);
    }
}
