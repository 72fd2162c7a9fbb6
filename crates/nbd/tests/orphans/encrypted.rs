//! The same of clients with TLS, whose last words have to be deciphered first.

use rubus_nbd::certificates::{self, AUTHORITY, SERVER, SERVER_KEY};
use rubus_nbd::client::{Client, Extras};
use rubus_nbd::connect::{Connection, Endpoint, connect_with};
use rubus_nbd::server::handshake::TlsPolicy;
use rubus_nbd::server::listener::Settings;
use rubus_nbd::tls::{Pem, TlsServerSettings};
use rubus_nbd::wire::{Command, CommandFlags};

use super::slow::{Run, SLOW, send_writes};
use super::{due, exchange, send, waits};

/// A server that wants TLS, and its clients' directory.
fn run() -> (Run, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let made = certificates::make("here", &["localhost".into()]).expect("certificates");
    let text = |name: &str| {
        let file = made.iter().find(|file| file.name == name);
        file.expect("it is made").text.clone()
    };
    std::fs::write(directory.path().join(AUTHORITY), text(AUTHORITY)).expect("room");
    let (certificate, key) = (text(SERVER), text(SERVER_KEY));
    let pem = |text: &'static str| Pem { name: "made", bytes: text.as_bytes() };
    let (certificate, key) = (pem(certificate.leak()), pem(key.leak()));
    let settings = Settings {
        tls: TlsPolicy::Require,
        certificates: TlsServerSettings::new(certificate, key, None).ok(),
        ..Settings::default()
    };
    (Run::with(settings), directory)
}

fn connect((run, certificates): &(Run, tempfile::TempDir)) -> Client<Connection> {
    let (socket, trusted) = (run.directory.path().join("socket"), certificates.path());
    let address = format!(
        "nbds+unix:///disk?socket={}&tls-certificates={}",
        socket.display(),
        trusted.display()
    );
    let endpoint = Endpoint::of(&address).expect("an address");
    connect_with(&endpoint, Extras::default()).expect("they agree").0
}

#[test]
fn a_write_waits_for_that_of_a_dead_connection_with_tls() {
    let with = run();
    let mut old = connect(&with);
    send_writes(&mut old, 50, SLOW, CommandFlags::NONE);
    with.0.disk.await_waiting(1);
    drop(old);
    let mut new = connect(&with);
    waits(&with.0, &mut new, due(0, Command::Write, 0), 2);
    assert_eq!(with.0.end(), [SLOW, 2]);
}

#[test]
fn after_a_disconnect_within_tls_all_is_done_except_what_was_written_later() {
    let with = run();
    let mut old = connect(&with);
    // An answer brings what TLS sends after its handshake. Closing a socket with unread data resets the connection, and
    // the kernel drops what the server has not read yet.
    exchange(&mut old, due(0, Command::Write, 9), 2, &Default::default());
    send(&mut old, Command::Write, &[3, 4, 5, 6], SLOW);
    with.0.disk.await_waiting(1);
    old.disconnect();
    drop(old);
    let mut new = connect(&with);
    exchange(&mut new, due(0, Command::Write, 5), 2, &Default::default());
    waits(&with.0, &mut new, due(0, Command::Write, 3), 2);
    // A server that stops leaves what is not begun.
    with.0.disk.await_done(6);
    let mut places = with.0.disk.places();
    with.0.end();
    places.retain(|place| *place != (3, 2) && *place != (9, 2));
    assert_eq!(places, [(5, 2), (3, SLOW), (4, SLOW), (6, SLOW)]);
}

#[test]
fn a_client_in_the_clear_and_one_with_tls_have_one_disk() {
    let (run, directory) = run();
    // The server of `run` is left as it is; this one lets clients choose.
    let settings = Settings { tls: TlsPolicy::Allow, ..run.settings.clone() };
    run.end();
    let with = (Run::with(settings), directory);
    let mut old = connect(&with);
    send(&mut old, Command::Write, &[0], SLOW);
    with.0.disk.await_waiting(1);
    drop(old);
    waits(&with.0, &mut with.0.connect(None), due(0, Command::Write, 0), 2);
    assert_eq!(with.0.end(), [SLOW, 2]);
}
