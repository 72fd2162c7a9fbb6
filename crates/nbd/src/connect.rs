//! The way to an export: sockets, certificates, encryption.

use std::io::{self, IoSlice, IoSliceMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use rubus_host::files::document;
use rubus_host::net::Stream;

use crate::certificates::{AUTHORITY, CLIENT, CLIENT_KEY};
use crate::client::{Client, ClientError, Extras, Inquiry, Offer, Patience, Wish, agree_with};
use crate::tls::{Pem, Tls, TlsSettings};
use crate::transport::{Awaited, Transport};
use crate::uri::{Server, TlsOptions, Uri};

/// How long one step of connecting may take.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Where an export is, with all that is needed to connect to it.
#[derive(Debug)]
pub struct Endpoint {
    /// Address of the export.
    pub uri: Uri,
    /// Whom to trust; absent: in the clear.
    pub tls: Option<TlsSettings>,
}

/// A connection's bytes, encrypted or not.
#[derive(Debug)]
pub enum Connection {
    /// In the clear.
    Plain(Stream),
    /// Through TLS.
    Tls(Box<Tls<Stream>>),
}

impl Connection {
    /// The connection's socket.
    pub fn stream(&self) -> &Stream {
        match self {
            Connection::Plain(stream) => stream,
            Connection::Tls(tls) => tls.inner(),
        }
    }
}

impl Transport for Connection {
    #[inline]
    fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Connection::Plain(stream) => stream.send(parts),
            Connection::Tls(tls) => tls.send(parts),
        }
    }

    #[inline]
    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], wait: bool) -> io::Result<usize> {
        match self {
            Connection::Plain(stream) => stream.receive(parts, wait),
            Connection::Tls(tls) => tls.receive(parts, wait),
        }
    }

    fn wait(&mut self, or_room: bool, most: Option<Duration>) -> io::Result<bool> {
        match self {
            Connection::Plain(stream) => stream.wait(or_room, most),
            Connection::Tls(tls) => tls.wait(or_room, most),
        }
    }

    fn set_patience(&mut self, most: Option<Duration>) -> io::Result<()> {
        match self {
            Connection::Plain(stream) => Transport::set_patience(stream, most),
            Connection::Tls(tls) => tls.set_patience(most),
        }
    }

    fn awaited(&mut self, or_room: bool) -> io::Result<Option<Awaited<'_>>> {
        match self {
            Connection::Plain(stream) => stream.awaited(or_room),
            Connection::Tls(tls) => tls.awaited(or_room),
        }
    }
}

impl Endpoint {
    /// The export that an address names.
    ///
    /// # Errors
    /// When it is no address, or what is needed to trust the server cannot be read.
    pub fn of(address: &str) -> anyhow::Result<Endpoint> {
        let uri = Uri::parse(address)?;
        let tls = if uri.tls { Some(trust(&uri.tls_options)?) } else { None };
        Ok(Endpoint { uri, tls })
    }

    fn stream(&self) -> anyhow::Result<Stream> {
        let stream = match &self.uri.server {
            Server::Tcp { host, port } => Stream::tcp(host, *port, PATIENCE)?,
            Server::Unix(path) => Stream::unix(path)?,
        };
        // A machine that is gone without a word would be waited for for ever.
        stream.notice_silence(Patience::OF_A_DISK.machine)?;
        Ok(stream)
    }
}

/// Connects to an export and agrees with its server.
///
/// # Errors
/// In words: the network, the encryption, the server or the export.
pub fn connect(endpoint: &Endpoint) -> anyhow::Result<(Client<Connection>, Offer)> {
    connect_with(endpoint, Extras::default())
}

/// [`connect`] with extensions, which the server need not support.
///
/// # Errors
/// As for [`connect`].
pub fn connect_with(
    endpoint: &Endpoint,
    extras: Extras,
) -> anyhow::Result<(Client<Connection>, Offer)> {
    let wish = Wish {
        export: endpoint.uri.export.clone(),
        tls: endpoint.uri.tls,
        structured_replies: true,
    };
    let stream = endpoint.stream()?;
    let agreed = agree_with(Connection::Plain(stream), wish, extras, PATIENCE, |line| {
        encrypt(line, endpoint)
    });
    let (line, offer) = agreed.map_err(|error| in_words(error, endpoint))?;
    Ok((Client::new(line, &offer), offer))
}

/// Connects to a server to ask it questions.
///
/// # Errors
/// In words: the network, the encryption or the server.
pub fn inquire(endpoint: &Endpoint) -> anyhow::Result<Inquiry<Connection>> {
    let asked = Inquiry::begin(Connection::Plain(endpoint.stream()?), PATIENCE);
    let asked = if endpoint.uri.tls {
        asked.and_then(|inquiry| inquiry.start_tls(|line| encrypt(line, endpoint)))
    } else {
        asked
    };
    asked.map_err(|error| in_words(error, endpoint))
}

fn in_words(error: ClientError, endpoint: &Endpoint) -> anyhow::Error {
    match error {
        // Servers end a connection that they do not trust without a word.
        ClientError::Closed(_) if endpoint.uri.tls => anyhow::anyhow!(
            "{error}; it may want a certificate of this client (client-cert.pem and client-key.pem \
             in the directory of tls-certificates=DIRECTORY), or know pre-shared keys only, which \
             are not supported"
        ),
        error => error.into(),
    }
}

fn encrypt(line: Connection, endpoint: &Endpoint) -> Result<Connection, ClientError> {
    let (Connection::Plain(stream), Some(settings)) = (line, &endpoint.tls) else {
        return Err(ClientError::Tls("it was not asked for; this is a bug".into()));
    };
    let host = match (&endpoint.uri.tls_options.hostname, &endpoint.uri.server) {
        (Some(name), _) => name,
        // Certificates know no interfaces.
        (None, Server::Tcp { host, .. }) => host.split('%').next().unwrap_or(host),
        (None, Server::Unix(_)) => "localhost",
    };
    let tls = Tls::start(stream, settings, host, PATIENCE)?;
    Ok(Connection::Tls(Box::new(tls)))
}

/// Where distributions keep the authorities that the whole system trusts.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];

/// Whom to trust: the authority in the directory that the address names, or else those of the
/// system. The names of the files are those of other NBD programs.
///
/// # Errors
/// When a file cannot be read or does not hold what it should.
pub fn trust(options: &TlsOptions) -> anyhow::Result<TlsSettings> {
    let Some(directory) = &options.certificates else {
        let mut known = SYSTEM_AUTHORITIES.iter().map(Path::new);
        let path = known.find(|path| path.is_file()).context(
            "this system has no list of certificate authorities (package ca-certificates); name \
             the directory with a ca-cert.pem in the address: tls-certificates=DIRECTORY",
        )?;
        let file = PemFile::read(path.to_path_buf())?;
        return Ok(TlsSettings::new(file.pem(), None)?);
    };
    let authority = PemFile::read(directory.join(AUTHORITY))?;
    let certificate = directory.join(CLIENT);
    if !certificate.exists() {
        return Ok(TlsSettings::new(authority.pem(), None)?);
    }
    let certificate = PemFile::read(certificate)?;
    let key = PemFile::read(directory.join(CLIENT_KEY))?;
    let pair = Some((certificate.pem(), key.pem()));
    Ok(TlsSettings::new(authority.pem(), pair)?)
}

/// A file with certificates or a key.
pub struct PemFile {
    name: String,
    bytes: Vec<u8>,
}

impl PemFile {
    /// Reads a PEM file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(path: PathBuf) -> anyhow::Result<PemFile> {
        let name = path.display().to_string();
        let bytes = document::bytes(&path, document::MAX_LIST_BYTES)
            .with_context(|| format!("cannot read {name}"))?;
        Ok(PemFile { name, bytes })
    }

    /// What is in it, with its name.
    pub fn pem(&self) -> Pem<'_> {
        Pem { name: &self.name, bytes: &self.bytes }
    }
}
