//! Why there is no agreement with a server, in words for people.

use std::io;

use super::{Answer, ClientError};
use crate::wire::{ErrorCode, Malformed, Refusal};
use rubus_draw::text::one_line;

/// Why there was no agreement. The sentences say what to do where that is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// Whatever answers, it is no NBD server.
    #[error("what answers there does not speak NBD; check host and port")]
    NotNbd,
    /// The server broke the protocol.
    #[error("the server breaks the protocol: {0}")]
    Malformed(#[from] Malformed),
    /// The server answered an option that the client had not sent.
    #[error("the server breaks the protocol: it answers option {0}, which was not asked")]
    Unasked(u32),
    /// The server never came to the point.
    #[error("the server breaks the protocol: its answer has no end")]
    Endless,
    /// The server never came to the point in time.
    #[error("the handshake exceeded its limit of {0} s; the server or the network is too slow")]
    TooSlow(u64),
    /// The server said yes and not how large the export is.
    #[error("the server breaks the protocol: it agrees and does not say how large the export is")]
    NoSize,
    /// The server accepts encrypted connections only.
    #[error(
        "the server wants TLS; write nbds:// in place of nbd:// (nbds+unix:// for nbd+unix://)"
    )]
    TlsRequired,
    /// Only in the clear.
    #[error(
        "the server offers no TLS{}; write nbd:// in place of nbds:// if the connection may be read by others",
        in_words(.0)
    )]
    NoTls(String),
    /// There is no export of that name.
    #[error("{}", no_such_export(wanted, known, *more))]
    NoSuchExport {
        /// The name that was asked for.
        wanted: String,
        /// Names that there are, as far as the server tells.
        known: Vec<String>,
        /// There are more of them.
        more: bool,
    },
    /// The server has one export without a name.
    #[error(
        "this server is of the old style and has one export without a name, so it cannot have '{0}'; leave the name out"
    )]
    NoNames(String),
    /// The name cannot be asked for.
    #[error("an export's name has at most 4096 bytes and no zero byte")]
    BadName,
    /// The server does not give the export, for a reason of its own.
    #[error("the server refuses the export: {why}{}", in_words(.text))]
    Refused {
        why: Refusal,
        /// In the server's words.
        text: String,
    },
}

/// A connection that is of no more use, with advice.
pub fn lost(error: &ClientError) -> String {
    let advice = match error {
        ClientError::Closed(_) | ClientError::Broken(_) => {
            "; is the server still running? Look at its log and at the network"
        }
        ClientError::Silent(_) => {
            "; its machine may be alive: look whether the server hangs, and at its disk"
        }
        ClientError::Unreachable(_) => {
            "; look at the cable, the switch and the machine, and try again when it answers"
        }
        ClientError::Flight(_) => "; try another version of the server",
        ClientError::Handshake(_) | ClientError::Tls(_) => "",
    };
    format!("{error}{advice}")
}

/// A request that the server refused, in its words and ours, with advice.
pub fn refused(answer: &Answer, words: &str) -> String {
    let advice = match answer.error {
        ErrorCode::PERMISSION => "; the export may be read-only",
        ErrorCode::IO => "; look at the log of the server and at its disk",
        ErrorCode::NO_SPACE => "; the disk of the server may be full",
        ErrorCode::SHUTDOWN => "; start the server again",
        _ => "",
    };
    let words = match words {
        "" => String::new(),
        words => format!(" (\"{}\")", words.escape_default()),
    };
    format!("the server answers: {}{words}{advice}", answer.error)
}

/// The server's own words, to follow ours.
fn in_words(text: &str) -> String {
    let start: String = text.chars().take(200).collect();
    match one_line(&start).trim() {
        "" => String::new(),
        text => format!(" (\"{text}\")"),
    }
}

fn no_such_export(wanted: &str, known: &[String], more: bool) -> String {
    let sentence = match wanted {
        "" => "the server has no default export".to_string(),
        wanted => format!("the server has no export '{wanted}'"),
    };
    let names: Vec<String> = known.iter().map(|name| format!("'{name}'")).collect();
    match (&names[..], more) {
        ([], _) => format!("{sentence}, and does not say which it has; check the spelling"),
        (names, true) => format!("{sentence}; among others it has {}", names.join(", ")),
        (names, false) => format!("{sentence}; it has {}", names.join(", ")),
    }
}

/// Whether the other end has hung up because it does not like our certificate, or that we have none.
pub(crate) fn is_about_our_certificate(error: &io::Error) -> bool {
    use rustls::{AlertDescription, Error};
    let cause = error.get_ref().and_then(|e| e.downcast_ref::<Error>());
    matches!(
        cause,
        Some(Error::AlertReceived(
            AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnknownCA
                | AlertDescription::DecryptError
        ))
    )
}

pub(crate) fn wants_certificate() -> String {
    "the server wants a certificate of this client that its authority has signed; put client-cert.pem and client-key.pem into a \
     directory with ca-cert.pem and name it in the address: tls-certificates=DIRECTORY"
        .into()
}
