//! Who a client is by the certificate that it has shown.

use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

/// Behind names that no certificate could have as they are.
const SUFFIX: &str = "client.rubus";

/// A certificate that a client has shown and that was found to be signed by the server's authority.
#[derive(Clone, Debug)]
pub struct PeerCertificate(CertificateDer<'static>);

impl PeerCertificate {
    /// One that was verified.
    pub(crate) fn new(certificate: &CertificateDer<'_>) -> PeerCertificate {
        PeerCertificate(certificate.clone().into_owned())
    }

    /// Whether it is for the client of that name: one of its alternative names (dNSName) is the name or, where that
    /// could be none, what [`alternative_name`] makes of it.
    pub fn is_of(&self, name: &str) -> bool {
        let Ok(certificate) = ParsedCertificate::try_from(&self.0) else {
            return false;
        };
        let Ok(name) = ServerName::try_from(alternative_name(name)) else {
            return false;
        };
        verify_server_name(&certificate, &name).is_ok()
    }
}

/// What stands in the certificate of the client of that name. Certificates know neither upper case nor underscores nor
/// numbers alone; such a name stands there in hexadecimal digits, before `client.rubus`.
pub fn alternative_name(name: &str) -> String {
    let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let is_plain = is_lower
        && is_name(name)
        && matches!(ServerName::try_from(name), Ok(ServerName::DnsName(_)))
        && !name.ends_with(SUFFIX);
    if is_plain {
        return name.into();
    }
    let hex: Vec<String> = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    // A label has 63 characters.
    let labels: Vec<String> = hex.chunks(30).map(|part| format!("x{}", part.concat())).collect();
    format!("{}.{SUFFIX}", labels.join("."))
}

/// Whether it is an address, or could be the name of a machine.
pub fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.parse::<std::net::IpAddr>().is_ok() || (name.len() <= 253 && name.split('.').all(is_label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_clone_has_one_of_its_own_in_certificates() {
        assert_eq!(alternative_name("10000000abcd1234"), "10000000abcd1234");
        assert_eq!(alternative_name("kitchen"), "kitchen");
        let long = "A".repeat(64);
        let others =
            ["12345678", "Kitchen", "a_b", "a..b", "a.", "192.168.1.7", &long, "x.client.rubus"];
        let mut seen: Vec<String> = others.iter().map(|name| alternative_name(name)).collect();
        for (name, given) in others.iter().zip(&seen) {
            assert!(given.ends_with(".client.rubus"), "{name}: {given}");
            assert!(ServerName::try_from(given.as_str()).is_ok(), "{name}: {given}");
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), others.len());
    }
}
