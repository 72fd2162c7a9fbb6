//! TLS over a transport that brings bytes in pieces and has little room.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::time::Duration;

use rubus_nbd::client::ClientError;
use rubus_nbd::tls::{Pem, Tls, TlsError, TlsSettings};
use rubus_nbd::transport::Transport;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

const PATIENCE: Duration = Duration::from_secs(1);
/// A certificate that signs itself, for `localhost`, and its key; good until 2126.
const CERTIFICATE: &str = include_str!("localhost-cert.pem");
const KEY: &str = include_str!("localhost-key.pem");

fn pem<'a>(name: &'a str, text: &'a str) -> Pem<'a> {
    Pem {
        name,
        bytes: text.as_bytes(),
    }
}

/// A server that sends everything back, in the same program.
#[derive(Debug)]
struct Echo {
    server: ServerConnection,
    to_client: Vec<u8>,
    turn: usize,
}

impl Echo {
    fn new() -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificate =
            CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).expect("it is one");
        let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).expect("it is one");
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config
                    .with_no_client_auth()
                    .with_single_cert(vec![certificate], key)
            })
            .expect("they go together");
        Echo {
            server: ServerConnection::new(Arc::new(config)).expect("a server"),
            to_client: Vec::new(),
            turn: 0,
        }
    }

    fn work(&mut self) {
        use std::io::{Read, Write};
        // A client that does not trust us says so; nobody here has to listen.
        let _ = self.server.process_new_packets();
        let mut plain = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(read @ 1..) = self.server.reader().read(&mut piece) {
            plain.extend_from_slice(&piece[..read]);
        }
        for piece in plain.chunks(1000) {
            self.server
                .writer()
                .write_all(piece)
                .expect("there is room");
            while self.server.wants_write() {
                self.server
                    .write_tls(&mut self.to_client)
                    .expect("it is memory");
            }
        }
        while self.server.wants_write() {
            self.server
                .write_tls(&mut self.to_client)
                .expect("it is memory");
        }
    }
}

impl Transport for Echo {
    fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn % 3 == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let part = parts.iter().find(|part| !part.is_empty());
        let Some(part) = part else { return Ok(0) };
        let mut bytes = &part[..part.len().min(700)];
        let sent = self.server.read_tls(&mut bytes).expect("it is memory");
        self.work();
        Ok(sent)
    }

    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], wait: bool) -> io::Result<usize> {
        if self.to_client.is_empty() {
            assert!(!wait, "TLS never waits below");
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let now = self.to_client.len().min(parts[0].len()).min(333);
        parts[0][..now].copy_from_slice(&self.to_client[..now]);
        self.to_client.drain(..now);
        Ok(now)
    }

    fn wait(&mut self, or_room: bool, _most: Option<Duration>) -> io::Result<bool> {
        assert!(
            or_room || !self.to_client.is_empty(),
            "it would wait for ever"
        );
        Ok(true)
    }
}

fn start(name: &str) -> Result<Tls<Echo>, ClientError> {
    let settings = TlsSettings::new(pem("ca", CERTIFICATE), None).expect("it is a certificate");
    Tls::start(Echo::new(), &settings, name, PATIENCE)
}

#[test]
fn everything_comes_back_however_little_room_there_is() {
    let mut tls = start("localhost").expect("they trust one another");
    assert!(
        tls.description().starts_with("TLS 1.3, "),
        "{}",
        tls.description()
    );
    let sent: Vec<u8> = (0..200_000_u32).map(|i| (i / 7) as u8).collect();
    let (mut at, mut back) = (0, Vec::new());
    let mut memory = [0; 5000];
    while back.len() < sent.len() {
        let (head, tail) = sent[at..].split_at((sent.len() - at).min(3));
        match tls.send(&[IoSlice::new(head), IoSlice::new(tail)]) {
            Ok(now) => at += now,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        let (head, tail) = memory.split_at_mut(100);
        let mut parts = [IoSliceMut::new(head), IoSliceMut::new(tail)];
        match tls.receive(&mut parts, at == sent.len()) {
            Ok(got) => back.extend_from_slice(&memory[..got]),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
    assert!(back == sent);
}

#[test]
fn another_name_is_not_trusted() {
    let error = start("elsewhere").unwrap_err().to_string();
    assert!(error.contains("is not for 'elsewhere'"), "{error}");
    let error = start("not a name").unwrap_err().to_string();
    assert!(error.contains("tls-hostname=NAME"), "{error}");
}

#[test]
fn files_that_are_not_what_they_should_be_are_named() {
    let none = TlsSettings::new(pem("/etc/ca-cert.pem", "nothing"), None).unwrap_err();
    insta::assert_snapshot!(none.to_string(), @"/etc/ca-cert.pem holds no certificate that can be read: it has no part marked as one");
    let ours = pem("mine.pem", CERTIFICATE);
    let no_key = TlsSettings::new(ours, Some((ours, pem("key.pem", CERTIFICATE)))).unwrap_err();
    assert!(matches!(no_key, TlsError::Key { .. }), "{no_key}");
    assert!(no_key.to_string().contains("key.pem"), "{no_key}");
    let settings = TlsSettings::new(ours, Some((ours, pem("key.pem", KEY))));
    assert!(settings.is_ok());
}
