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
    Pem { name, bytes: text.as_bytes() }
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
                config.with_no_client_auth().with_single_cert(vec![certificate], key)
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
        // A client that does not trust us reports it; that can be ignored here.
        let _ = self.server.process_new_packets();
        let mut plain = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(read @ 1..) = self.server.reader().read(&mut piece) {
            plain.extend_from_slice(&piece[..read]);
        }
        for piece in plain.chunks(1000) {
            self.server.writer().write_all(piece).expect("there is room");
            while self.server.wants_write() {
                self.server.write_tls(&mut self.to_client).expect("it is memory");
            }
        }
        while self.server.wants_write() {
            self.server.write_tls(&mut self.to_client).expect("it is memory");
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
        assert!(or_room || !self.to_client.is_empty(), "it would wait for ever");
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
    assert!(tls.description().starts_with("TLS 1.3, "), "{}", tls.description());
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

mod both_ends {
    //! Our client and our server over a socket.

    use std::os::unix::net::UnixStream;
    use std::thread;

    use rubus_host::net::Stream;
    use rubus_nbd::certificates::{self, Made};
    use rubus_nbd::tls::TlsServerSettings;

    use super::*;

    fn made() -> Vec<Made> {
        let names = ["localhost", "127.0.0.1"].map(String::from);
        certificates::make("here", &names).expect("the names are fine")
    }

    fn file<'a>(made: &'a [Made], name: &'a str) -> Pem<'a> {
        let file = made.iter().find(|file| file.name == name);
        pem(name, &file.expect("it is made").text)
    }

    fn server(made: &[Made], asks: bool) -> TlsServerSettings {
        let clients = asks.then(|| file(made, certificates::AUTHORITY));
        let certificate = file(made, certificates::SERVER);
        let key = file(made, certificates::SERVER_KEY);
        TlsServerSettings::new(certificate, key, clients).expect("they go together")
    }

    fn client(made: &[Made], shows: bool) -> TlsSettings {
        let certificate = file(made, certificates::CLIENT);
        let pair = shows.then(|| (certificate, file(made, certificates::CLIENT_KEY)));
        TlsSettings::new(file(made, certificates::AUTHORITY), pair).expect("they go together")
    }

    fn pair() -> (Stream, Stream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let stream = |socket: UnixStream| Stream::connected(socket.into(), "pair".into());
        (stream(ours), stream(theirs))
    }

    /// Sends everything back until the client goes; gives why it ended.
    fn echo(settings: &TlsServerSettings, stream: Stream) -> io::Result<usize> {
        let mut tls = Tls::accept(stream, settings).expect("the settings are fine");
        let (mut memory, mut count) = (vec![0; 70_000], 0);
        loop {
            let got = tls.receive(&mut [IoSliceMut::new(&mut memory)], true)?;
            if got == 0 {
                return Ok(count);
            }
            assert!(tls.is_started(), "nothing comes before that");
            count += got;
            let mut left = &memory[..got];
            while !left.is_empty() {
                match tls.send(&[IoSlice::new(left)]) {
                    Ok(sent) => left = &left[sent..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        tls.wait(true, None)?;
                    }
                    Err(error) => return Err(error),
                }
            }
            while tls.wants_room() {
                tls.wait(true, None)?;
                let _ = tls.send(&[]);
            }
        }
    }

    /// The client's and the server's end of it: 300 kB there and back.
    fn talk(
        server: TlsServerSettings,
        client: &TlsSettings,
        name: &str,
    ) -> (Result<usize, ClientError>, io::Result<usize>) {
        let (ours, theirs) = pair();
        let theirs = thread::spawn(move || echo(&server, theirs));
        let ours = (|| {
            let mut tls = Tls::start(ours, client, name, PATIENCE)?;
            let sent: Vec<u8> = (0..300_000_u32).map(|i| (i / 11) as u8).collect();
            let (mut left, mut back) = (&sent[..], Vec::new());
            let mut memory = vec![0; 10_000];
            while back.len() < sent.len() {
                match tls.send(&[IoSlice::new(left)]) {
                    Ok(now) => left = &left[now..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error.into()),
                }
                match tls.receive(&mut [IoSliceMut::new(&mut memory)], left.is_empty()) {
                    Ok(0) => return Err(ClientError::Closed("")),
                    Ok(got) => back.extend_from_slice(&memory[..got]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        tls.wait(true, None)?;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            assert!(back == sent);
            Ok(back.len())
        })();
        (ours, theirs.join().expect("the server does not panic"))
    }

    #[test]
    fn they_come_to_terms_when_both_trust_one_another() {
        let made = made();
        for (asks, shows) in [(false, false), (false, true), (true, true)] {
            for name in ["localhost", "127.0.0.1"] {
                let (ours, theirs) = talk(server(&made, asks), &client(&made, shows), name);
                assert_eq!(ours.expect("they trust one another"), 300_000);
                assert_eq!(theirs.expect("the client says goodbye"), 300_000);
            }
        }
    }

    #[test]
    fn a_client_without_a_certificate_is_refused_where_one_is_asked_for() {
        let made = made();
        let (ours, theirs) = talk(server(&made, true), &client(&made, false), "localhost");
        assert!(ours.is_err() && theirs.is_err());
        // A certificate signed by another authority does not count.
        let other = self::made();
        let authority = file(&made, certificates::AUTHORITY);
        let certificate = file(&other, certificates::CLIENT);
        let pair = Some((certificate, file(&other, certificates::CLIENT_KEY)));
        let stranger = TlsSettings::new(authority, pair).expect("they go together");
        let (ours, theirs) = talk(server(&made, true), &stranger, "localhost");
        assert!(ours.is_err() && theirs.is_err());
        // Nor is a server's.
        let certificate = file(&made, certificates::SERVER);
        let pair = Some((certificate, file(&made, certificates::SERVER_KEY)));
        let server_as_client = TlsSettings::new(authority, pair).expect("they go together");
        let (ours, theirs) = talk(server(&made, true), &server_as_client, "localhost");
        assert!(ours.is_err() && theirs.is_err());
    }

    #[test]
    fn a_server_that_is_not_who_it_should_be_is_refused() {
        let made = made();
        let (ours, theirs) = talk(server(&self::made(), false), &client(&made, false), "localhost");
        let error = ours.unwrap_err().to_string();
        assert!(error.contains("may be new: copy"), "{error}");
        assert!(theirs.is_err());
        let elsewhere = certificates::make("elsewhere", &["localhost".into()]);
        let stranger = server(&elsewhere.expect("the name is fine"), false);
        let (ours, theirs) = talk(stranger, &client(&made, false), "localhost");
        let error = ours.unwrap_err().to_string();
        assert!(error.contains("authority that is not trusted"), "{error}");
        assert!(theirs.is_err());
        let (ours, theirs) = talk(server(&made, false), &client(&made, false), "elsewhere");
        let error = ours.unwrap_err().to_string();
        assert!(error.contains("is not for 'elsewhere'"), "{error}");
        assert!(theirs.is_err());
    }

    #[test]
    fn whoever_does_not_speak_tls_is_hung_up_on() {
        let made = made();
        let mut request = Vec::new();
        rubus_nbd::wire::OptionRequest::List.encode(&mut request);
        for bytes in [&request[..], &[0; 100], &[0x16, 3, 1, 0xff, 0xff]] {
            let (ours, theirs) = pair();
            ours.send(&[IoSlice::new(bytes)]).expect("there is room");
            drop(ours);
            let ended = echo(&server(&made, false), theirs);
            assert!(!matches!(ended, Ok(1..)), "{ended:?}");
        }
    }
}
