//! TLS around a transport, with certificates (X.509). Pre-shared keys and anonymous TLS, which other
//! NBD programs know too, are not in the library that does the work (rustls).
//!
//! An upgraded connection is never silently a plain one: a caller that asks for TLS gets TLS or an
//! error.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
};

use crate::client::{ClientError, Limit, wants_certificate};
use crate::peer::PeerCertificate;
use crate::transport::{Awaited, Transport};

/// Why TLS cannot be used, with what to do.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that should have certificates has none, or something else.
    #[error("{what} holds no certificate that can be read: {why}")]
    Certificates {
        /// Path of the file.
        what: String,
        /// What the parser reports.
        why: String,
    },
    /// A file that should have a key has none.
    #[error("{what} holds no private key that can be read: {why}")]
    Key {
        /// Path of the file.
        what: String,
        /// What the parser reports.
        why: String,
    },
    /// Certificate and key do not go together.
    #[error("{what} cannot be used: {why}; it must be of X.509 version 3 and go with its key")]
    Pair {
        /// The certificate's file.
        what: String,
        /// What is wrong.
        why: rustls::Error,
    },
    /// The server's name is none.
    #[error("'{0}' cannot be the name in a certificate; give one with tls-hostname=NAME")]
    Name(String),
    /// The library has no cipher of these protocol versions.
    #[error("TLS cannot be set up: {0}")]
    Setup(rustls::Error),
}

/// What is read from a file, with its name for errors.
#[derive(Clone, Copy, Debug)]
pub struct Pem<'a> {
    /// Name of the file.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// Whom to trust, and who we are.
#[derive(Clone, Debug)]
pub struct TlsSettings(Arc<ClientConfig>);

impl TlsSettings {
    /// Trusts servers whose certificate was signed by one of those in `authorities`; `client` is our
    /// own certificate with its key, for servers that want one. All in PEM.
    ///
    /// # Errors
    /// [`TlsError`], about the file that is wrong.
    pub fn new(authorities: Pem<'_>, client: Option<(Pem<'_>, Pem<'_>)>) -> Result<Self, TlsError> {
        let roots = roots(authorities)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .with_root_certificates(roots);
        let config = match client {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                config
                    .with_client_auth_cert(chain, private_key(key)?)
                    .map_err(|why| TlsError::Pair { what: certificate.name.into(), why })?
            }
        };
        Ok(TlsSettings(Arc::new(config)))
    }
}

/// Who a server is, and which clients it talks to.
#[derive(Clone, Debug)]
pub struct TlsServerSettings(Arc<ServerConfig>);

impl TlsServerSettings {
    /// Shows clients `certificate`, which goes with `key`. With `clients`, a client has to show a
    /// certificate that was signed by one of those. All in PEM.
    ///
    /// # Errors
    /// [`TlsError`], about the file that is wrong.
    pub fn new(
        certificate: Pem<'_>,
        key: Pem<'_>,
        clients: Option<Pem<'_>>,
    ) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?;
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(authorities) => {
                let roots = Arc::new(roots(authorities)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
                config.with_client_cert_verifier(verifier.map_err(|error| {
                    TlsError::Certificates { what: authorities.name.into(), why: error.to_string() }
                })?)
            }
        };
        let config = config
            .with_single_cert(certificates(certificate)?, private_key(key)?)
            .map_err(|why| TlsError::Pair { what: certificate.name.into(), why })?;
        Ok(TlsServerSettings(Arc::new(config)))
    }
}

/// Whether a certificate of a client was signed by this authority. All in PEM.
///
/// # Errors
/// When one of them cannot be read.
pub(crate) fn is_signed_by(certificate: Pem<'_>, authorities: Pem<'_>) -> Result<bool, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trusted = Arc::new(roots(authorities)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(trusted, provider).build();
    let Ok(verifier) = verifier else {
        return Ok(false);
    };
    let chain = certificates(certificate)?;
    let [certificate] = &chain[..] else {
        return Ok(false);
    };
    // All of ours hold at this moment.
    let now = UnixTime::since_unix_epoch(Duration::from_secs(1_000_000_000));
    Ok(verifier.verify_client_cert(certificate, &[], now).is_ok())
}

fn roots(authorities: Pem<'_>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates(authorities)?);
    match added {
        0 => Err(TlsError::Certificates {
            what: authorities.name.into(),
            why: "none of them is a certificate authority's".into(),
        }),
        _ => Ok(roots),
    }
}

fn private_key(pem: Pem<'_>) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pem.bytes)
        .map_err(|error| TlsError::Key { what: pem.name.into(), why: error.to_string() })
}

fn certificates(pem: Pem<'_>) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |why: String| TlsError::Certificates { what: pem.name.into(), why };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.bytes).collect();
    match found.map_err(|error| wrong(error.to_string()))? {
        none if none.is_empty() => Err(wrong("it has no part marked as one".into())),
        found => Ok(found),
    }
}

/// A transport with TLS around it.
#[derive(Debug)]
pub struct Tls<T: Transport> {
    inner: T,
    connection: Connection,
    /// How long receiving waits at most.
    patience: Option<Duration>,
}

impl<T: Transport> Tls<T> {
    /// Starts TLS as a client; the server must prove that it is `name`, and has `most` for each step.
    ///
    /// # Errors
    /// When the name is none, or both ends do not come to terms; the server's certificate is the
    /// usual reason.
    pub fn start(
        inner: T,
        settings: &TlsSettings,
        name: &str,
        most: Duration,
    ) -> Result<Self, ClientError> {
        let server = ServerName::try_from(name.to_string())
            .map_err(|_| ClientError::Tls(TlsError::Name(name.into()).to_string()))?;
        let connection = ClientConnection::new(Arc::clone(&settings.0), server)
            .map_err(|error| ClientError::Tls(error.to_string()))?;
        let mut tls = Tls { inner, connection: Connection::Client(connection), patience: None };
        let limit = Limit::of(most);
        while tls.connection.is_handshaking() {
            tls.flush()?;
            match tls.take_in() {
                Ok(0) => return Err(ClientError::Closed(" while TLS was started")),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let or_room = tls.connection.wants_write();
                    limit.wait(&mut tls.inner, or_room)?;
                }
                Err(error) => return Err(refusal(&error, name)),
            }
        }
        tls.flush()?;
        Ok(tls)
    }

    /// TLS as a server, before the handshake. Receiving and sending complete the handshake first,
    /// so this can be used at once, and blocks only if told to. The caller's limit on the handshake
    /// applies until [`Tls::is_started`].
    ///
    /// # Errors
    /// When the settings cannot be used.
    pub fn accept(inner: T, settings: &TlsServerSettings) -> Result<Self, TlsError> {
        let connection = ServerConnection::new(Arc::clone(&settings.0)).map_err(TlsError::Setup)?;
        Ok(Tls { inner, connection: Connection::Server(connection), patience: None })
    }

    /// Whether both ends have come to terms, and the client is who it has to be.
    pub fn is_started(&self) -> bool {
        !self.connection.is_handshaking()
    }

    /// The certificate that a client has shown, once both ends have come to terms.
    pub fn peer(&self) -> Option<PeerCertificate> {
        let shown = self.connection.peer_certificates()?;
        shown.first().map(PeerCertificate::new)
    }

    /// Whether encrypted bytes wait for room to be sent. The next call of any method sends them.
    pub fn wants_room(&self) -> bool {
        self.connection.wants_write()
    }

    /// Whether something is here that was received and decrypted, and is still to be taken.
    pub fn has_plain(&mut self) -> bool {
        let state = self.connection.process_new_packets();
        state.is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }

    /// Says that nothing more comes, so that the other end knows that nothing was cut off.
    fn finish(&mut self) {
        self.connection.send_close_notify();
        // If this fails, the other end is gone already.
        let _ = self.flush();
    }

    /// The protocol and the cipher: "TLS 1.3, AES-256-GCM".
    pub fn description(&self) -> String {
        let version = match self.connection.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2",
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
            _ => "TLS",
        };
        let suite = self.connection.negotiated_cipher_suite();
        let name = suite.and_then(|suite| suite.suite().as_str());
        let name = name.unwrap_or_default();
        let cipher = [
            ("CHACHA20_POLY1305", "ChaCha20-Poly1305"),
            ("AES_256_GCM", "AES-256-GCM"),
            ("AES_128_GCM", "AES-128-GCM"),
        ];
        match cipher.iter().find(|(part, _)| name.contains(part)) {
            Some((_, words)) => format!("{version}, {words}"),
            None => version.into(),
        }
    }

    /// The transport below.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// Sends what is encrypted and waits to be sent, as far as there is room.
    fn flush(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Socket(&mut self.inner)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes in and decrypts what is there; 0 when the other end has closed.
    fn take_in(&mut self) -> io::Result<usize> {
        let read = self.connection.read_tls(&mut Socket(&mut self.inner))?;
        if let Err(error) = self.connection.process_new_packets() {
            // The other end is told why; it need not listen.
            let _ = self.flush();
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        Ok(read)
    }

    fn read_plain(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut reader = self.connection.reader();
        let mut got = 0;
        for part in parts {
            match reader.read(part) {
                Ok(read) => {
                    got += read;
                    if read < part.len() {
                        break;
                    }
                }
                Err(_) if got > 0 => break,
                // Closed without a word, which is said by a length of zero here.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) => return Err(error),
            }
        }
        Ok(got)
    }
}

impl<T: Transport> Drop for Tls<T> {
    /// Without close_notify, the other end could not tell the end from a connection cut by an
    /// attacker.
    fn drop(&mut self) {
        if self.is_started() {
            self.finish();
        }
    }
}

impl<T: Transport> Transport for Tls<T> {
    fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.flush()?;
        let sent = self.connection.writer().write_vectored(parts)?;
        self.flush()?;
        if sent == 0 && parts.iter().any(|part| !part.is_empty()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(sent)
    }

    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], wait: bool) -> io::Result<usize> {
        loop {
            match self.read_plain(parts) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                answer => return answer,
            }
            // What was accepted may still be here, and the answer is to that.
            self.flush()?;
            match self.take_in() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && wait => {
                    let or_room = self.connection.wants_write();
                    if !self.inner.wait(or_room, self.patience)? {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
                // The other end has closed before both came to terms.
                Ok(0) if self.connection.is_handshaking() => return Ok(0),
                Ok(_) => {}
            }
        }
    }

    fn wait(&mut self, or_room: bool, most: Option<Duration>) -> io::Result<bool> {
        let state = self
            .connection
            .process_new_packets()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if state.plaintext_bytes_to_read() > 0 {
            return Ok(true);
        }
        let or_room = or_room || self.connection.wants_write();
        self.inner.wait(or_room, most)
    }

    fn set_patience(&mut self, most: Option<Duration>) -> io::Result<()> {
        self.patience = most;
        Ok(())
    }

    fn awaited(&mut self, or_room: bool) -> io::Result<Option<Awaited<'_>>> {
        if self.has_plain() {
            return Ok(None);
        }
        let or_room = or_room || self.connection.wants_write();
        self.inner.awaited(or_room)
    }
}

/// A transport as the library wants it: it never waits.
struct Socket<'a, T>(&'a mut T);

impl<T: Transport> Read for Socket<'_, T> {
    fn read(&mut self, memory: &mut [u8]) -> io::Result<usize> {
        self.0.receive(&mut [IoSliceMut::new(memory)], false)
    }
}

impl<T: Transport> Write for Socket<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.send(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why both ends did not come to terms, with what to do about the reasons that are usual.
fn refusal(error: &io::Error, name: &str) -> ClientError {
    use rustls::{AlertDescription, CertificateError, Error};
    let cause = error.get_ref().and_then(|e| e.downcast_ref::<Error>());
    let words = match cause {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "the server's certificate was signed by an authority that is not trusted; name the \
             directory with its ca-cert.pem in the address: tls-certificates=DIRECTORY"
                .into()
        }
        Some(Error::InvalidCertificate(CertificateError::BadSignature)) => {
            "the server's certificate was signed by another authority than the one that is trusted, \
             of the same name; the certificates of the server may be new: copy its \
             ca-cert.pem to this machine again"
                .into()
        }
        Some(Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => format!(
            "the server's certificate is not for '{name}'; give the name that it is for in the \
             address: tls-hostname=NAME"
        ),
        Some(Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => "the server's certificate has expired, or the clock of this machine is wrong".into(),
        Some(Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        )) => "the server's certificate is not valid yet: the clock of this machine may be wrong"
            .into(),
        Some(Error::AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::BadCertificate,
        )) => wants_certificate(),
        Some(Error::AlertReceived(AlertDescription::HandshakeFailure)) => {
            "the server has no way of encrypting in common with this program; it may know \
             pre-shared keys only, which are not supported: give it a certificate"
                .into()
        }
        Some(error) => error.to_string(),
        None => error.to_string(),
    };
    ClientError::Tls(words)
}
