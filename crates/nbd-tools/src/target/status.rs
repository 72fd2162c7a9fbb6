//! What a server spends, where it can be asked: a server of ours says it where `rubus serve --status` listens, the
//! machine of any server over ssh.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use rubus_host::clock;
use rubus_host::net::Stream;
use rubus_host::net::ssh::Options;
use rubus_measure::Meter;
use rubus_remote::meter::{self, Metered};
use rubus_vocabulary::result::ServerEnd;
use serde_json::Value;

use super::over_ssh::OverSsh;

/// How long the answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// No status is longer: it has some hundred bytes for each client.
const MAX_BYTES: usize = 4 << 20;

/// The meter at the place of `--server-status`, which is asked once.
///
/// # Errors
/// In words, when it is no such place or nothing answers there.
pub fn meter_at(place: &str, ssh: &Options, cancel: &AtomicBool) -> anyhow::Result<Arc<dyn Meter>> {
    Ok(if place.starts_with(meter::SCHEME) {
        let metered = Metered::parse(place).map_err(anyhow::Error::msg)?;
        Arc::new(OverSsh::connect(metered, ssh, cancel)?)
    } else {
        Arc::new(ServerStatus::new(place)?)
    })
}

/// Where a server says what it does.
#[derive(Debug)]
pub struct ServerStatus {
    named: String,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Socket(PathBuf),
    Tcp(String, u16),
}

impl ServerStatus {
    /// The place that the user named: the path of a socket, or a host and a port. The server is asked once.
    ///
    /// # Errors
    /// In words, when it is no place or nothing of the kind is to be heard there.
    pub fn new(named: &str) -> anyhow::Result<ServerStatus> {
        let place = place(named).with_context(|| {
            format!(
                "'{named}' is no place of a server's status: give HOST:PORT or the path of its socket, as in \
                 `rubus serve --status`, or ssh://HOST/PROGRAM"
            )
        })?;
        let status = ServerStatus { named: named.into(), place };
        status.cpu_seconds()?;
        Ok(status)
    }

    fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let trouble = || format!("cannot read the server's status at {}", self.named);
        let line = self.line().with_context(trouble)?;
        let status: Value = serde_json::from_slice(&line).map_err(|_| {
            anyhow::anyhow!("{}: what answers there is not the status of `rubus serve`", trouble())
        })?;
        let seconds = status["cpu_seconds"].as_f64();
        seconds
            .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
            .with_context(|| format!("{}: it has no cpu_seconds", trouble()))
    }

    /// The first line that comes.
    fn line(&self) -> anyhow::Result<Vec<u8>> {
        let stream = match &self.place {
            Place::Socket(path) => Stream::unix(path)?,
            Place::Tcp(host, port) => Stream::tcp(host, *port, PATIENCE)?,
        };
        let end = clock::now() + PATIENCE;
        let mut line = Vec::new();
        let mut piece = vec![0; 16 << 10];
        loop {
            let left = end.saturating_duration_since(clock::now());
            anyhow::ensure!(
                !left.is_zero() && stream.wait(false, Some(left))?,
                "no answer within {} s; is it the address of an export, and not of the status?",
                PATIENCE.as_secs()
            );
            let count = stream.receive_into(&mut piece, false)?;
            anyhow::ensure!(count > 0, "it hung up");
            match piece[..count].iter().position(|&byte| byte == b'\n') {
                Some(at) => {
                    line.extend(&piece[..at]);
                    return Ok(line);
                }
                None => line.extend(&piece[..count]),
            }
            anyhow::ensure!(line.len() <= MAX_BYTES, "its answer has no end");
        }
    }
}

impl Meter for ServerStatus {
    fn cpu_ns(&self) -> Result<u64, String> {
        let seconds = self.cpu_seconds().map_err(|error| format!("{error:#}"))?;
        Ok((seconds * 1e9) as u64)
    }

    fn counts(&self) -> ServerEnd {
        ServerEnd::Process
    }
}

fn place(named: &str) -> Option<Place> {
    if named.contains('/') {
        return Some(Place::Socket(Path::new(named).to_path_buf()));
    }
    let (host, port) = named.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then_some(())?;
    Some(Place::Tcp(host.into(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_path_or_a_host_with_a_port() {
        let told = |named| place(named).map(|place| format!("{place:?}"));
        assert_eq!(told("pi:7000").as_deref(), Some("Tcp(\"pi\", 7000)"));
        assert_eq!(told("[::1]:7").as_deref(), Some("Tcp(\"::1\", 7)"));
        assert_eq!(told("./x").as_deref(), Some("Socket(\"./x\")"));
        for wrong in ["pi", ":7", "pi:x", "pi:70000"] {
            assert_eq!(told(wrong), None, "{wrong}");
        }
    }
}
