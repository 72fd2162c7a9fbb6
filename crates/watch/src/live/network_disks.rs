//! Network disks of both sides: those attached here, and the clients of a server that tells its status.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rubus_host::clock::{monotonic_ns, sleep};
use rubus_nbd_tools::attach::records::{Record, Records};
use serde_json::Value;

use crate::{Attached, Nbd, NbdClient, NbdServer};

/// Time between two looks at the files of attached devices.
const PACE_NS: u64 = 5_000_000_000;
/// Time until a server that is gone is called again.
const AGAIN: Duration = Duration::from_secs(2);
/// A status with thousands of clients is shorter.
const MAX_BYTES: u64 = 16 << 20;

/// Looks after both.
pub struct Disks {
    attached: Vec<Attached>,
    read_ns: Option<u64>,
    server: Option<Arc<Mutex<Heard>>>,
}

/// What the server said last.
#[derive(Default)]
struct Heard {
    server: NbdServer,
    lines: u64,
}

impl Disks {
    /// Begins to listen to a server, where one is named.
    pub fn new(place: Option<&str>) -> Disks {
        let server = place.map(|place| {
            let heard = Arc::new(Mutex::new(Heard::default()));
            let (place, for_thread) = (place.to_string(), Arc::clone(&heard));
            heard.lock().unwrap_or_else(PoisonError::into_inner).server = NbdServer {
                place: place.clone(),
                trouble: Some("not heard of yet".into()),
                ..NbdServer::default()
            };
            std::thread::spawn(move || listen(&place, &for_thread));
            heard
        });
        Disks { attached: Vec::new(), read_ns: None, server }
    }

    /// How it stands now; none if there is neither the one nor the other.
    pub fn look(&mut self) -> Option<Nbd> {
        let now_ns = monotonic_ns();
        if self.read_ns.is_none_or(|read_ns| now_ns - read_ns >= PACE_NS) {
            self.read_ns = Some(now_ns);
            self.attached = Records::all().into_iter().map(attached).collect();
        }
        let heard = self.server.as_ref();
        let heard = heard.map(|heard| {
            let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard.server.clone()
        });
        (heard.is_some() || !self.attached.is_empty())
            .then(|| Nbd { attached: self.attached.clone(), server: heard })
    }

    /// Whether the server has told rates, which takes it two lines; true where there is none to wait for.
    pub fn has_rates(&self) -> bool {
        self.server.as_ref().is_none_or(|heard| {
            let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard.lines >= 2
        })
    }
}

fn attached(record: Record) -> Attached {
    let watched = rubus_host::process::mlocked::is_there(record.watcher);
    Attached {
        device: record.device.trim_start_matches("/dev/").to_string(),
        address: record.address,
        alive: record.alive,
        connections: record.connections,
        replaced: record.replaced,
        trouble: if watched {
            record.trouble
        } else {
            Some("no watcher: it will not survive a restart of the server".into())
        },
    }
}

fn listen(place: &str, heard: &Mutex<Heard>) {
    loop {
        let why = match connect(place) {
            Ok(stream) => match follow(stream, place, heard) {
                Ok(()) => "the server ended the connection".to_string(),
                Err(error) => error.to_string(),
            },
            Err(error) => format!("cannot connect: {error}"),
        };
        *heard.lock().unwrap_or_else(PoisonError::into_inner) = Heard {
            server: NbdServer { place: place.into(), trouble: Some(why), ..NbdServer::default() },
            lines: 0,
        };
        sleep(AGAIN);
    }
}

/// As the server understands its `--status`: an address with a port, or a path.
fn connect(place: &str) -> std::io::Result<Box<dyn Read + Send>> {
    match place.parse::<SocketAddr>() {
        Ok(address) => Ok(Box::new(TcpStream::connect_timeout(&address, Duration::from_secs(5))?)),
        Err(_) => Ok(Box::new(UnixStream::connect(place)?)),
    }
}

fn follow(stream: Box<dyn Read>, place: &str, heard: &Mutex<Heard>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        lines.by_ref().take(MAX_BYTES).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let Some(server) = serde_json::from_slice(&line).ok().and_then(|v| server(place, &v))
        else {
            let words = "what answers there is no `rubus serve --status`";
            return Err(std::io::Error::other(words));
        };
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.server = server;
        heard.lines += 1;
    }
}

/// One line of the server's status (see `rubus_nbd_tools::serving::lines`).
fn server(place: &str, line: &Value) -> Option<NbdServer> {
    let clients = line.get("clients")?.as_array()?;
    Some(NbdServer {
        place: place.into(),
        trouble: None,
        cpu_share: line.get("cpu_share").and_then(Value::as_f64),
        clients: clients.iter().map(client).collect(),
    })
}

fn client(line: &Value) -> NbdClient {
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_string();
    let rates = &line["rates"];
    let rate = |name: &str| rates[name].as_f64().unwrap_or(0.0);
    NbdClient {
        caller: text("caller"),
        export: text("export"),
        read_bytes_per_second: rate("read_bytes_per_second"),
        written_bytes_per_second: rate("written_bytes_per_second"),
        requests_per_second: rate("reads_per_second")
            + rate("writes_per_second")
            + rate("flushes_per_second"),
        p50_us: rates["p50_us"].as_u64(),
        p99_us: rates["p99_us"].as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_server_s_status_is_understood() {
        let line = serde_json::json!({
            "cpu_share": 0.25,
            "clients": [{"caller": "unix:12", "export": "disk", "rates": {
                "reads_per_second": 10.0, "writes_per_second": 5.0, "flushes_per_second": 1.0,
                "read_bytes_per_second": 4096.0, "written_bytes_per_second": 512.0, "p50_us": 3, "p99_us": null}}],
        });
        let server = server("/x", &line).unwrap();
        assert_eq!(server.cpu_share, Some(0.25));
        let client = &server.clients[0];
        assert_eq!((client.export.as_str(), client.requests_per_second), ("disk", 16.0));
        assert_eq!((client.p50_us, client.p99_us), (Some(3), None));
        // The first line has no rates yet.
        let first = serde_json::json!({"clients": [{"caller": "a", "export": "b", "rates": null}]});
        assert_eq!(super::server("/x", &first).unwrap().clients[0].requests_per_second, 0.0);
        assert_eq!(super::server("/x", &serde_json::json!({"ok": 1})), None);
    }
}
