//! One client before it has agreed on an export: the handshake over a socket, without waiting.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rubus_host::net::Stream;
use rubus_host::net::listening::Caller;

use super::fence::{Entry, Fences, Hold};
use super::handshake::{
    Agreed, Closing, Export, Exports, NoExport, ServerHandshake, Step, TlsPolicy,
};
use super::line::Line;
use super::pool::now_ns;
use crate::peer::PeerCertificate;
use crate::tls::{Tls, TlsServerSettings};

/// So much is received at once. A client that sends more is asked again.
const RECEIVED_BYTES: usize = 4 << 10;
/// After this time a client is told that requests of its previous connection are still running. Its own
/// timeout is longer, so it hears this.
const FENCING: Duration = Duration::from_secs(4);

/// A client in the handshake.
pub(super) struct Greeting {
    pub line: Line,
    pub caller: Caller,
    handshake: ServerHandshake,
    certificates: Option<TlsServerSettings>,
    /// What has come and was not yet looked at.
    input: Vec<u8>,
    output: Vec<u8>,
    /// When it began.
    pub since_ns: u64,
    /// Where its claim is entered, if claims are taken.
    fences: Option<Arc<Fences>>,
    /// That of its claim.
    pub hold: Option<Hold>,
}

/// How a handshake goes on.
pub(super) enum Progress {
    /// It asked what there is, and took leave.
    Asked,
    /// When something comes, or there is room to send if so.
    Waits { for_room: bool },
    /// Until an older connection of the client has ended.
    Fences,
    /// It closed the connection without a goodbye: it asked about something else, or probed the
    /// port.
    Left,
    /// With requests; bytes of the first ones may be here already.
    Agreed(Box<Agreed>, Vec<u8>),
    /// The handshake failed, for this reason.
    Ended(String),
}

/// Exports as one client is told of them.
struct OfPeer<'a> {
    exports: &'a dyn Exports,
    line: &'a Line,
}

impl Exports for OfPeer<'_> {
    fn list(&self) -> Vec<(String, String)> {
        self.exports.list()
    }

    fn find(&self, name: &str) -> Result<Export, NoExport> {
        self.exports.admits(name, self.line.peer().as_ref())?;
        self.exports.find(name)
    }

    fn admits(&self, name: &str, peer: Option<&PeerCertificate>) -> Result<(), NoExport> {
        self.exports.admits(name, peer)
    }
}

impl Greeting {
    /// A client of which nothing is known yet. Without certificates there is no TLS.
    pub fn new(
        stream: Stream,
        caller: Caller,
        (policy, certificates): (TlsPolicy, Option<TlsServerSettings>),
        now_ns: u64,
    ) -> Greeting {
        Greeting {
            line: Line::Plain(Arc::new(stream)),
            caller,
            handshake: ServerHandshake::new(policy),
            fences: None,
            hold: None,
            certificates,
            input: Vec::new(),
            output: Vec::new(),
            since_ns: now_ns,
        }
    }

    /// One that may say which connection it replaces.
    pub fn fencing(mut self, fences: &Arc<Fences>) -> Greeting {
        self.handshake = self.handshake.fencing();
        self.fences = Some(Arc::clone(fences));
        self
    }

    /// Goes as far as it can without waiting.
    pub fn advance(&mut self, exports: &dyn Exports) -> Progress {
        loop {
            match self.send() {
                Ok(true) => {}
                Ok(false) => return Progress::Waits { for_room: true },
                // A client that has sent ABORT need not wait for the reply.
                Err(_) if self.handshake.closing() == Some(&Closing::Aborted) => {
                    return Progress::Asked;
                }
                Err(error) => return broken(&error),
            }
            match self.handshake.step() {
                Step::Receive if !self.input.is_empty() => {
                    let exports = OfPeer { exports, line: &self.line };
                    let used = self.handshake.received(&self.input, &exports);
                    self.input.drain(..used);
                }
                Step::Receive => match self.receive() {
                    Ok(0) => return Progress::Left,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let for_room = self.line.wants_room();
                        return Progress::Waits { for_room };
                    }
                    Err(error) => return broken(&error),
                },
                Step::StartTls => {
                    if let Err(why) = self.start_tls() {
                        return Progress::Ended(why);
                    }
                }
                Step::Fence => {
                    if !self.fence() {
                        return Progress::Fences;
                    }
                }
                Step::Close if self.handshake.closing() == Some(&Closing::Aborted) => {
                    return Progress::Asked;
                }
                Step::Close => {
                    let why = self.handshake.closing().map(Closing::to_string);
                    return Progress::Ended(why.unwrap_or_default());
                }
                Step::Serve => {
                    let new = ServerHandshake::new(TlsPolicy::Off);
                    let handshake = std::mem::replace(&mut self.handshake, new);
                    let begun = std::mem::take(&mut self.input);
                    return match handshake.into_agreed() {
                        Some(agreed) => Progress::Agreed(Box::new(agreed), begun),
                        None => Progress::Left,
                    };
                }
            }
        }
    }

    /// Ends what the client's claim replaces; false while that has not ended.
    fn fence(&mut self) -> bool {
        let done = match (&self.fences, self.handshake.claim()) {
            (Some(fences), Some(claim)) => match fences.enter(claim, self.line.stream()) {
                Entry::Entered(hold) => {
                    self.hold = Some(hold);
                    Ok(())
                }
                Entry::Waits if now_ns() - self.since_ns < FENCING.as_nanos() as u64 => {
                    return false;
                }
                Entry::Waits => {
                    Err("the server still waits for its disk with requests of the connection that \
                     this one replaces")
                }
                Entry::Late => Err("a newer connection of the same client is here already"),
            },
            _ => Ok(()),
        };
        self.handshake.fenced(done);
        true
    }

    /// Sends what is to be sent; false when there is no room for all of it.
    fn send(&mut self) -> io::Result<bool> {
        self.output.append(&mut self.handshake.to_send());
        while !self.output.is_empty() {
            match self.line.send_some(&self.output) {
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// From here on everything is encrypted, the handshake of TLS first.
    fn start_tls(&mut self) -> Result<(), String> {
        let settings = self.certificates.as_ref().ok_or("it wants TLS")?;
        let stream = Arc::clone(self.line.stream());
        let tls = Tls::accept(stream, settings).map_err(|error| error.to_string())?;
        self.line = Line::Tls(Box::new(tls));
        self.handshake.tls_started();
        Ok(())
    }

    fn receive(&mut self) -> io::Result<usize> {
        let mut memory = [0; RECEIVED_BYTES];
        let got = self.line.receive(&mut memory, false)?;
        self.input.extend_from_slice(&memory[..got]);
        Ok(got)
    }
}

fn broken(error: &io::Error) -> Progress {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Progress::Left,
        // What TLS does not like of the other end.
        io::ErrorKind::InvalidData => Progress::Ended(format!("TLS failed: {error}")),
        _ => Progress::Ended(format!("the connection broke: {error}")),
    }
}
