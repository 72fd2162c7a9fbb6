//! The real ssh, from this machine to itself.
//!
//! A server of our own speaks with ssh over a pair of pipes (`sshd -i` as its ProxyCommand), so no port is opened and no
//! running server is asked. Keys, configuration and known hosts are files in memory without a name, which only live as
//! long as this process; should it be killed, the kernel kills ssh, and the server sees the end of its line.

mod account;
mod nameless;
mod start;

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};
use rubus_stats::passes;
use rubus_vocabulary::processor::ssh::{self, End, Row, Ssh, key};
use rubus_vocabulary::processor::{Rate, starved};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SendFlags, send};

use account::Account;
use nameless::Nameless;
use rubus_host::ticks::now_ns;
use start::{Complaints, Start};

/// The programs, and who uses them.
#[derive(Clone, Debug)]
pub struct Programs {
    /// Path of the client.
    pub ssh: PathBuf,
    /// Path of the server.
    pub sshd: PathBuf,
    /// The name of the user that this process runs as.
    pub user: String,
}

/// Timed passes of one cipher.
const PASSES: u32 = 10;
/// So much is sent untimed, more than fits into all windows and pipes between both ends.
const WARM_UP_BYTES: u64 = 8 << 20;
/// Timeout without any data transfer.
const PATIENCE_NS: u64 = 20_000_000_000;
/// Timeout for ssh to exit.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// What is sent at once.
const BLOCK: usize = 128 << 10;

/// Measures every cipher that both ends offer, each for `seconds`.
///
/// # Errors
/// In words, when there can be no connection at all. A cipher that fails is left out and named in the second list.
pub fn ssh(
    programs: &Programs,
    seconds: f64,
    cancel: &AtomicBool,
    says: &mut dyn FnMut(&str),
) -> Result<(Ssh, Vec<String>), String> {
    let files = Files::new().map_err(|error| format!("keys in memory cannot be made: {error}"))?;
    let start = Start::new(programs, &files)?;
    let (client, server) = (start.client_settings()?, start.server_settings()?);
    let ciphers = ssh::both_offer(&client, &server, "ciphers");
    if ciphers.is_empty() {
        return Err("ssh and sshd of this machine have no cipher in common".into());
    }
    let mut found = Ssh {
        version: start.version(),
        mac: ssh::both_offer(&client, &server, "macs").into_iter().next(),
        rows: Vec::new(),
    };
    let mut failed = Vec::new();
    for cipher in ciphers {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        says(&format!("ssh with {cipher}"));
        match one(&start, &cipher, seconds, cancel) {
            Ok(row) => found.rows.extend(row),
            Err(why) => failed.push((cipher, why)),
        }
    }
    match (found.rows.is_empty(), failed.first()) {
        (true, Some((_, why))) => Err(format!("ssh from this machine to itself: {why}")),
        _ => {
            let named = failed.iter().map(|(cipher, why)| format!("{cipher}: {why}"));
            Ok((found, named.collect()))
        }
    }
}

/// What both ends read.
struct Files {
    key: Nameless,
    authorized: Nameless,
    known: Nameless,
    settings: Nameless,
}

impl Files {
    fn new() -> std::io::Result<Files> {
        let no_key = |_| std::io::Error::other("no key could be made");
        let (mut seed, mut check) = ([0; 32], [0; 4]);
        let random = SystemRandom::new();
        random.fill(&mut seed).map_err(no_key)?;
        random.fill(&mut check).map_err(no_key)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed)
            .map_err(|_| std::io::Error::other("no key could be made"))?;
        let bad_key = |_| std::io::Error::other("a key has another length");
        let public: [u8; 32] = pair.public_key().as_ref().try_into().map_err(bad_key)?;
        let private = key::private(&seed, &public, u32::from_be_bytes(check));
        let public = key::public(&public);
        // One pair is enough for both: it is temporary, and opens nothing else.
        let key = Nameless::of(private.as_bytes())?;
        let authorized = Nameless::of(format!("{public}\n").as_bytes())?;
        let settings = format!("HostKey {}\n{SETTINGS}", key.path());
        Ok(Files {
            known: Nameless::of(format!("{HOST} {public}\n").as_bytes())?,
            settings: Nameless::of(settings.as_bytes())?,
            key,
            authorized,
        })
    }
}

/// What the server is called, by which its key is known.
const HOST: &str = "rubus";
/// The rest of the server's settings: nothing but this one key opens it, and it reads nothing of its user.
const SETTINGS: &str = "\
StrictModes no
UsePAM no
PidFile none
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PermitUserRC no
PermitUserEnvironment no
PrintMotd no
UseDNS no
Compression no
LogLevel INFO
";

/// One cipher; nothing when the user had enough.
fn one(
    start: &Start<'_>,
    cipher: &str,
    seconds: f64,
    cancel: &AtomicBool,
) -> Result<Option<Row>, String> {
    let (mut line, mut complaints) = Line::start(start, cipher)?;
    let measured = line.measure(seconds, cancel);
    let ended = line.end();
    let mut words = || match ssh::reason(&complaints.text()) {
        Some(reason) => reason.to_string(),
        None => "ssh ended without a word; look at the user's login shell in /etc/passwd".into(),
    };
    match (measured, ended) {
        (Ok(None), _) => Ok(None),
        (Ok(Some(mut row)), Some(status)) if status.success() => {
            row.cipher = cipher.into();
            Ok(Some(row))
        }
        (Err(Trouble::Closed) | Ok(_), _) => Err(words()),
        (Err(Trouble::Silent), _) => {
            Err(format!("nothing moved for {} s", PATIENCE_NS / 1_000_000_000))
        }
        (Err(Trouble::Io(error)), _) => Err(error.to_string()),
    }
}

/// Why sending ended too soon.
enum Trouble {
    Closed,
    Silent,
    Io(std::io::Error),
}

/// A running ssh, and the way into it.
struct Line {
    ssh: Child,
    way: Option<OwnedFd>,
    block: Vec<u8>,
}

impl Line {
    fn start(start: &Start<'_>, cipher: &str) -> Result<(Line, Complaints), String> {
        let (ssh, way, complaints) = start.connection(cipher)?;
        let line = Line {
            ssh,
            way: Some(way),
            // ssh compresses nothing here, so what is sent is all the same.
            block: vec![0; BLOCK],
        };
        Ok((line, complaints))
    }

    fn measure(&mut self, seconds: f64, cancel: &AtomicBool) -> Result<Option<Row>, Trouble> {
        let stopped = || cancel.load(Ordering::Relaxed);
        let mut sent = 0;
        let begun = now_ns();
        while sent < WARM_UP_BYTES || (now_ns() - begun) < 200_000_000 {
            if stopped() {
                return Ok(None);
            }
            sent += self.send()?;
        }
        let before = Account::of(self.ssh.id());
        let (begun, mut sent) = (now_ns(), 0);
        let mut timed = Vec::new();
        for _ in 0..PASSES {
            let (start, mut bytes) = (now_ns(), 0);
            let elapsed = loop {
                if stopped() {
                    return Ok(None);
                }
                bytes += self.send()?;
                let elapsed = (now_ns() - start) as f64 / 1e9;
                if elapsed * f64::from(PASSES) >= seconds {
                    break elapsed;
                }
            };
            sent += bytes;
            timed.push((bytes, elapsed));
        }
        let elapsed_s = (now_ns() - begun) as f64 / 1e9;
        let spent = Account::of(self.ssh.id()).since(&before);
        let end = |cpu_ns: u64| End::of(cpu_ns, sent, elapsed_s);
        let waited_ns = spent.as_ref().map_or(0, |spent| spent.waited_ns);
        Ok(passes::rate(&timed).map(|per_second| Row {
            cipher: String::new(),
            rate: Rate {
                threads: 1,
                per_second,
                passes: PASSES,
                doubts: starved(waited_ns as f64 / 1e9 / elapsed_s),
            },
            sent_bytes: sent,
            elapsed_s,
            client: spent.as_ref().and_then(|spent| end(spent.client_ns)),
            server: spent.as_ref().and_then(|spent| end(spent.server_ns)),
        }))
    }

    /// Sends what is taken, waiting for room if there is none.
    fn send(&mut self) -> Result<u64, Trouble> {
        let Some(way) = &self.way else {
            return Err(Trouble::Closed);
        };
        let begun = now_ns();
        loop {
            // A line that is cut must be an answer here and not a signal that ends the program.
            match send(way, &self.block, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(bytes) => return Ok(bytes as u64),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => {
                    return Err(Trouble::Closed);
                }
                Err(error) => return Err(Trouble::Io(error.into())),
            }
            if now_ns() - begun > PATIENCE_NS {
                return Err(Trouble::Silent);
            }
            let moment = rustix::time::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let _ = poll(&mut [PollFd::new(&way.as_fd(), PollFlags::OUT)], Some(&moment));
        }
    }

    /// Sends no more and waits for the end; kills what does not come to it.
    fn end(&mut self) -> Option<ExitStatus> {
        self.way = None;
        let deadline = now_ns() + LAST_WORDS.as_nanos() as u64;
        while now_ns() < deadline {
            match self.ssh.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(_) => return None,
            }
        }
        self.kill();
        None
    }

    fn kill(&mut self) {
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.way = None;
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_settings_are_readable_through_their_paths_and_end_with_them() {
        let files = Files::new().expect("memory");
        let settings = std::fs::read_to_string(files.settings.path()).expect("it is readable");
        assert!(settings.contains(&format!("HostKey {}", files.key.path())));
        let key = std::fs::read_to_string(files.key.path()).expect("it is readable");
        assert!(key.ends_with("-----END OPENSSH PRIVATE KEY-----\n"));
        let (authorized, known) = (files.authorized.path(), files.known.path());
        let authorized = std::fs::read_to_string(authorized).expect("it is readable");
        let known = std::fs::read_to_string(known).expect("it is readable");
        assert_eq!(known, format!("{HOST} {authorized}"));
    }
}
