//! Addresses of exports: `nbd://host:port/export` and its kin, as in the NBD project's `uri.md`.
//!
//! What an address cannot say, or what this client does not do, is an error and never passed over:
//! an address that means something else than its reader thinks is how the wrong disk is measured.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rubus_vocabulary::escapes::escaped;

use crate::callers::is_interface;
use crate::wire::{DEFAULT_PORT, fits_a_string};

/// Where an export is and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// Encrypted (`nbds`, `nbds+unix`).
    pub tls: bool,
    pub server: Server,
    /// Name of the export; empty for the server's default.
    pub export: String,
    /// What goes with TLS.
    pub tls_options: TlsOptions,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    Tcp {
        /// A name or an address, an IPv6 one without its brackets.
        host: String,
        port: u16,
    },
    /// A Unix socket; a path that begins with a zero byte is a name in Linux's abstract space.
    Unix(PathBuf),
}

/// What an address may say about TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// The name that the server's certificate must have, where it is not the host's.
    pub hostname: Option<String>,
    /// A directory with `ca-cert.pem` and perhaps `client-cert.pem` and `client-key.pem`.
    pub certificates: Option<PathBuf>,
}

/// What is wrong with an address, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// The scheme is not one of NBD.
    #[error(
        "invalid NBD address '{0}'; write nbd://HOST/NAME, such as nbd://192.168.1.2/disk; nbds://, nbd+unix:// and nbds+unix:// work too"
    )]
    Scheme(String),
    /// A host is missing.
    #[error("no host in the address; write it like nbd://host/export")]
    NoHost,
    /// A host that cannot be one.
    #[error("'{0}' is no host; an IPv6 address needs brackets, as in nbd://[::1]:10809/export")]
    Host(String),
    /// A port that cannot be one.
    #[error("invalid port '{0}'; give a number from 1 to 65535")]
    Port(String),
    /// A host where there is none.
    #[error("a Unix socket has no host; write it like nbd+unix:///export?socket=/path")]
    HostOfSocket,
    /// The socket is missing.
    #[error("which socket? Write it like nbd+unix:///export?socket=/path")]
    NoSocket,
    /// A user's name, which only the TLS that this client does not have would need.
    #[error(
        "the address names a user, which only TLS with pre-shared keys needs, and that is not supported: use certificates"
    )]
    User,
    /// A parameter that is unknown.
    #[error("the address has a parameter '{0}', which is unknown")]
    Parameter(String),
    /// A parameter that does not go with this scheme.
    #[error("the parameter '{0}' does not belong to an address of this kind")]
    OutOfPlace(String),
    /// TLS of a kind that this client does not have.
    #[error(
        "'{0}': TLS here means certificates (X.509); pre-shared keys and anonymous TLS are not supported"
    )]
    TlsType(String),
    /// The certificate must be checked.
    #[error(
        "tls-verify-peer=0 is not supported: name the server's certificate authority with tls-certificates=DIRECTORY"
    )]
    Unverified,
    /// An escape that is none, or text that is none.
    #[error(
        "'{0}' is not written as an address has to be: after % come two hexadecimal digits, and the whole is UTF-8"
    )]
    Escape(String),
    /// NBD has no such name.
    #[error(
        "the export's name has {0} bytes or a NUL character; NBD allows 4096 bytes without one"
    )]
    Name(usize),
    #[error("'#' begins a part that such an address does not have; write %23 for the character")]
    Fragment,
}

impl Uri {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Uri, UriError> {
        let no_scheme = || UriError::Scheme(text.into());
        let (scheme, rest) = text.split_once("://").ok_or_else(no_scheme)?;
        let (tls, unix) = match scheme.to_ascii_lowercase().as_str() {
            "nbd" => (false, false),
            "nbds" => (true, false),
            "nbd+unix" => (false, true),
            "nbds+unix" => (true, true),
            _ => return Err(no_scheme()),
        };
        if rest.contains('#') {
            return Err(UriError::Fragment);
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let parameters = Parameters::parse(query)?;
        let server = if unix {
            if !authority.is_empty() {
                return Err(UriError::HostOfSocket);
            }
            Server::Unix(parameters.socket.ok_or(UriError::NoSocket)?)
        } else {
            if parameters.socket.is_some() {
                return Err(UriError::OutOfPlace("socket".into()));
            }
            tcp(authority)?
        };
        if let (false, Some(parameter)) = (tls, parameters.about_tls) {
            return Err(UriError::OutOfPlace(parameter));
        }
        let export = text_of(path)?;
        if !fits_a_string(&export) {
            return Err(UriError::Name(export.len()));
        }
        Ok(Uri { tls, server, export, tls_options: parameters.tls })
    }
}

impl std::fmt::Display for Uri {
    /// The address in full, with everything escaped that has to be. It holds no secret: keys are in
    /// files, and of those it has the directory's name only.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut query = Vec::new();
        f.write_str(if self.tls { "nbds" } else { "nbd" })?;
        match &self.server {
            Server::Tcp { host, port } => {
                let host = match (host.contains(':'), host.split_once('%')) {
                    (true, None) => format!("[{host}]"),
                    (true, Some((address, zone))) => {
                        format!("[{address}%25{}]", escaped(zone.as_bytes(), ""))
                    }
                    (false, _) => escaped(host.as_bytes(), ""),
                };
                write!(f, "://{host}")?;
                if *port != DEFAULT_PORT {
                    write!(f, ":{port}")?;
                }
            }
            Server::Unix(path) => {
                f.write_str("+unix://")?;
                query.push(("socket", escaped(path.as_os_str().as_bytes(), "/")));
            }
        }
        write!(f, "/{}", escaped(self.export.as_bytes(), "/"))?;
        if let Some(name) = &self.tls_options.hostname {
            query.push(("tls-hostname", escaped(name.as_bytes(), "")));
        }
        if let Some(path) = &self.tls_options.certificates {
            let path = escaped(path.as_os_str().as_bytes(), "/");
            query.push(("tls-certificates", path));
        }
        for (i, (name, value)) in query.iter().enumerate() {
            let mark = if i == 0 { '?' } else { '&' };
            write!(f, "{mark}{name}={value}")?;
        }
        Ok(())
    }
}

fn tcp(authority: &str) -> Result<Server, UriError> {
    let place = match authority.rsplit_once('@') {
        Some(_) => return Err(UriError::User),
        None => authority,
    };
    let bad_host = || UriError::Host(place.into());
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(bad_host)?;
            (ipv6_host(host).ok_or_else(bad_host)?, port)
        }
        None if place.matches(':').count() > 1 => return Err(bad_host()),
        None => {
            let end = place.find(':').unwrap_or(place.len());
            let (host, port) = place.split_at(end);
            (text_of(host)?, port)
        }
    };
    if host.is_empty() {
        return Err(UriError::NoHost);
    }
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
    if !place.starts_with('[') && !host.chars().all(is_name) {
        return Err(bad_host());
    }
    let port = match port {
        "" | ":" => DEFAULT_PORT,
        port => {
            let digits = port.strip_prefix(':').ok_or_else(bad_host)?;
            match digits.parse() {
                Ok(port @ 1..) if digits.bytes().all(|b| b.is_ascii_digit()) => port,
                _ => return Err(UriError::Port(digits.into())),
            }
        }
    };
    Ok(Server::Tcp { host, port })
}

/// What is between the brackets, with its zone as people write it: RFC 6874 has `%25` and escapes there.
fn ipv6_host(text: &str) -> Option<String> {
    let (address, zone) = match text.split_once('%') {
        None => (text, None),
        Some((address, zone)) => (address, Some(zone)),
    };
    address.parse::<std::net::Ipv6Addr>().ok()?;
    let Some(zone) = zone else {
        return Some(address.into());
    };
    let zone = zone.strip_prefix("25").filter(|rest| !rest.is_empty()).unwrap_or(zone);
    let zone = text_of(zone).ok().filter(|zone| is_interface(zone))?;
    Some(format!("{address}%{zone}"))
}

/// What stands behind the question mark.
#[derive(Debug, Default)]
struct Parameters {
    socket: Option<PathBuf>,
    tls: TlsOptions,
    /// The first parameter that is about TLS.
    about_tls: Option<String>,
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, UriError> {
        let mut all = Parameters::default();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if name.starts_with("tls-") {
                all.about_tls.get_or_insert_with(|| name.into());
            }
            match name {
                "socket" if value.is_empty() => return Err(UriError::NoSocket),
                "socket" => all.socket = Some(path_of(value)?),
                "tls-hostname" => all.tls.hostname = Some(text_of(value)?),
                "tls-certificates" => all.tls.certificates = Some(path_of(value)?),
                "tls-type" if value.eq_ignore_ascii_case("x509") => {}
                "tls-verify-peer" if matches!(value, "1" | "true" | "on" | "yes") => {}
                "tls-verify-peer" => return Err(UriError::Unverified),
                "tls-type" | "tls-psk-file" | "tls-username" => {
                    return Err(UriError::TlsType(name.into()));
                }
                _ => return Err(UriError::Parameter(name.into())),
            }
        }
        Ok(all)
    }
}

fn path_of(text: &str) -> Result<PathBuf, UriError> {
    Ok(OsString::from_vec(bytes_of(text)?).into())
}

fn text_of(text: &str) -> Result<String, UriError> {
    String::from_utf8(bytes_of(text)?).map_err(|_| UriError::Escape(text.into()))
}

/// Undoes the escapes.
fn bytes_of(text: &str) -> Result<Vec<u8>, UriError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let escape = tail.split_first_chunk::<2>().and_then(|(digits, tail)| {
            rest = tail;
            let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
            Some((high? << 4 | low?) as u8)
        });
        bytes.push(escape.ok_or_else(|| UriError::Escape(text.into()))?);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Uri, UriError> {
        Uri::parse(text)
    }

    fn tcp_uri(host: &str, port: u16, export: &str) -> Uri {
        Uri {
            tls: false,
            server: Server::Tcp { host: host.into(), port },
            export: export.into(),
            tls_options: TlsOptions::default(),
        }
    }

    #[test]
    fn the_examples_of_the_standard_are_read() {
        for (text, export) in [
            ("nbd://example.com/disk", "disk"),
            ("nbd://example.com/", ""),
            ("nbd://example.com", ""),
            ("nbd://example.com//disk", "/disk"),
            ("nbd://example.com/hello%20world", "hello world"),
        ] {
            assert_eq!(parse(text), Ok(tcp_uri("example.com", 10809, export)));
        }
        let unix = parse("nbd+unix:///disk?socket=sock").unwrap();
        assert_eq!(unix.server, Server::Unix("sock".into()));
        assert_eq!(unix.export, "disk");
        let hidden = parse("nbd+unix:///?socket=%00/abstract").unwrap();
        assert_eq!(hidden.server, Server::Unix("\0/abstract".into()));
    }

    #[test]
    fn hosts_and_ports_are_told_apart() {
        assert_eq!(parse("NBD://pi:1/e"), Ok(tcp_uri("pi", 1, "e")));
        assert_eq!(parse("nbd://[::1]"), Ok(tcp_uri("::1", 10809, "")));
        assert_eq!(parse("nbd://[fe80::1]:7/x"), Ok(tcp_uri("fe80::1", 7, "x")));
        for zone in ["eth0.100", "br_lan", "wlan-0", "25", "2", "0"] {
            let host = format!("fe80::1%{zone}");
            let uri = tcp_uri(&host, 10809, "");
            assert_eq!(parse(&format!("nbd://[fe80::1%25{zone}]")), Ok(uri));
        }
        assert_eq!(parse("nbd://[fe80::1%25eth0]"), Ok(tcp_uri("fe80::1%eth0", 10809, "")));
        let escaped = parse("nbd://[fe80::1%25a%7Eb%40c]").unwrap();
        assert_eq!(escaped, tcp_uri("fe80::1%a~b@c", 10809, ""));
        assert_eq!(Uri::parse(&escaped.to_string()), Ok(escaped));
        assert_eq!(parse("nbd://[fe80::1%eth0]").unwrap().to_string(), "nbd://[fe80::1%25eth0]/");
        for (bad, error) in [
            ("nbd://", UriError::NoHost),
            ("nbd:///export", UriError::NoHost),
            ("nbd://:10809/e", UriError::NoHost),
            ("nbd://::1/e", UriError::Host("::1".into())),
            ("nbd://fe80::1:2/e", UriError::Host("fe80::1:2".into())),
            ("nbd://[::1/e", UriError::Host("[::1".into())),
            ("nbd://[pi]/e", UriError::Host("[pi]".into())),
            // A zone that is left out would be another address.
            ("nbd://[fe80::1%]/e", UriError::Host("[fe80::1%]".into())),
            ("nbd://[fe80::1%25%2Fx]", UriError::Host("[fe80::1%25%2Fx]".into())),
            ("nbd://[::1%25sixteen-letters-]", UriError::Host("[::1%25sixteen-letters-]".into())),
            ("nbd://pi:0/e", UriError::Port("0".into())),
            ("nbd://pi:65536/e", UriError::Port("65536".into())),
            ("nbd://pi:+1/e", UriError::Port("+1".into())),
            ("nbd://pi:x/e", UriError::Port("x".into())),
            ("nbd://me@pi/e", UriError::User),
        ] {
            assert_eq!(parse(bad), Err(error), "{bad}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (bad, error) in [
            ("http://pi/e", UriError::Scheme("http://pi/e".into())),
            ("nbd:pi", UriError::Scheme("nbd:pi".into())),
            ("nbd://pi/e?x=1", UriError::Parameter("x".into())),
            ("nbd://pi/e?socket=s", UriError::OutOfPlace("socket".into())),
            ("nbd://pi/e?tls-hostname=x", UriError::OutOfPlace("tls-hostname".into())),
            ("nbd+unix:///e", UriError::NoSocket),
            ("nbd+unix:///e?socket=", UriError::NoSocket),
            ("nbd+unix://pi/e?socket=s", UriError::HostOfSocket),
            ("nbds://pi/?tls-psk-file=f", UriError::TlsType("tls-psk-file".into())),
            ("nbds://pi/?tls-type=psk", UriError::TlsType("tls-type".into())),
            ("nbds://pi/?tls-verify-peer=0", UriError::Unverified),
            ("nbd://pi/50%", UriError::Escape("50%".into())),
            ("nbd://pi/%zz", UriError::Escape("%zz".into())),
            ("nbd://pi/%ff", UriError::Escape("%ff".into())),
            ("nbd://pi/a#b", UriError::Fragment),
            ("nbd://pi/a%00b", UriError::Name(3)),
        ] {
            assert_eq!(parse(bad), Err(error), "{bad}");
        }
    }

    #[test]
    fn a_name_is_as_long_as_the_protocol_allows() {
        let longest = "n".repeat(crate::wire::MAX_STRING_BYTES);
        assert_eq!(parse(&format!("nbd://pi/{longest}")).unwrap().export, longest);
        assert_eq!(parse(&format!("nbd://pi/{longest}n")), Err(UriError::Name(4097)));
    }

    #[test]
    fn what_goes_with_tls_is_read() {
        let uri = parse(
            "nbds://pi/e?tls-hostname=disk.example&tls-certificates=/etc/p%20k&tls-type=x509&tls-verify-peer=1",
        );
        let uri = uri.unwrap();
        assert!(uri.tls);
        assert_eq!(uri.tls_options.hostname.as_deref(), Some("disk.example"));
        assert_eq!(uri.tls_options.certificates, Some("/etc/p k".into()));
        assert_eq!(
            uri.to_string(),
            "nbds://pi/e?tls-hostname=disk.example&tls-certificates=/etc/p%20k"
        );
    }

    fn uri() -> impl Strategy<Value = Uri> {
        let host = prop_oneof![
            "[a-z0-9.-]{1,20}",
            Just("::1".to_string()),
            "fe80::2%[a-z0-9._~@-]{1,15}",
        ];
        let tcp = (host, 1_u16..).prop_map(|(host, port)| Server::Tcp { host, port });
        let unix = "[^\u{0}]{1,20}".prop_map(|path| Server::Unix(path.into()));
        let tls_options = (proptest::option::of("[a-z.]{1,10}"), proptest::option::of("/.{0,10}"))
            .prop_map(|(hostname, certificates)| TlsOptions {
                hostname,
                certificates: certificates.map(PathBuf::from),
            });
        (any::<bool>(), prop_oneof![tcp, unix], "[^\u{0}]{0,30}", tls_options).prop_map(
            |(tls, server, export, tls_options)| Uri {
                tls,
                server,
                export,
                tls_options: if tls { tls_options } else { TlsOptions::default() },
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(uri in uri()) {
            let text = uri.to_string();
            prop_assert!(text.is_ascii(), "{}", text);
            prop_assert_eq!(Uri::parse(&text), Ok(uri));
        }

        #[test]
        fn anything_is_read_without_panic(text in "(nbds?(\\+unix)?://)?[\\[\\]a-z:/?&=%@#0-9é]{0,40}") {
            if let Ok(uri) = Uri::parse(&text) {
                prop_assert_eq!(Uri::parse(&uri.to_string()), Ok(uri));
            }
        }
    }
}
