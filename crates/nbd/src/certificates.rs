//! Certificates for a server and its clients, made by an authority that exists for them alone.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
pub use rubus_core::certificates::{
    AUTHORITY, AUTHORITY_KEY, CLIENT, CLIENT_KEY, SERVER, SERVER_KEY,
};

/// A file that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its name.
    pub name: &'static str,
    /// What is in it, in PEM.
    pub text: String,
    /// Whether only its owner may read it.
    pub is_secret: bool,
}

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A name that no server can have.
    #[error(
        "'{0}' is no name that a server could have in a certificate; names are of letters, digits, hyphens and dots"
    )]
    Name(String),
    /// The library failed.
    #[error("certificates cannot be made: {0}")]
    Library(#[from] rcgen::Error),
}

/// Makes an authority, a certificate of a server that is known by each of `names` (names or
/// addresses), and one of a client. `machine` is for people who look at them.
///
/// They hold until the end of 2037, the last year that every board can count to, and from 1970 on: a
/// board without a clock of its own believes that it is then until the network tells it more.
///
/// # Errors
/// When one of the names is none.
pub fn make(machine: &str, names: &[String]) -> Result<Vec<Made>, CertificateError> {
    if let Some(name) = names.iter().find(|name| !is_name(name)) {
        return Err(CertificateError::Name(name.clone()));
    }
    let mut authority = params(&[], &format!("NBD certificates of {machine}"))?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority.use_authority_key_identifier_extension = false;
    let authority_key = KeyPair::generate()?;
    let authority_cert = authority.self_signed(&authority_key)?;
    let issuer = Issuer::from_params(&authority, &authority_key);
    let signed = |names: &[String], title: String, purpose: ExtendedKeyUsagePurpose| {
        let mut params = params(names, &title)?;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok::<_, CertificateError>((certificate.pem(), key.serialize_pem()))
    };
    let (server, server_key) = signed(
        names,
        format!("NBD server {machine}"),
        ExtendedKeyUsagePurpose::ServerAuth,
    )?;
    let (client, client_key) = signed(
        &[],
        format!("NBD client of {machine}"),
        ExtendedKeyUsagePurpose::ClientAuth,
    )?;
    let made = |name, text, is_secret| Made {
        name,
        text,
        is_secret,
    };
    Ok(vec![
        made(AUTHORITY, authority_cert.pem(), false),
        made(AUTHORITY_KEY, authority_key.serialize_pem(), true),
        made(SERVER, server, false),
        made(SERVER_KEY, server_key, true),
        made(CLIENT, client, false),
        made(CLIENT_KEY, client_key, true),
    ])
}

fn params(names: &[String], title: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    // The field has room for 64 characters.
    let title: String = title.chars().take(64).collect();
    params.distinguished_name.push(DnType::CommonName, title);
    params.not_before = date_time_ymd(1970, 1, 1);
    params.not_after = date_time_ymd(2037, 12, 31);
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// Whether it is an address, or could be the name of a machine.
pub fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || c == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.parse::<std::net::IpAddr>().is_ok() || (name.len() <= 253 && name.split('.').all(is_label))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::{Pem, TlsServerSettings, TlsSettings};

    #[test]
    fn six_files_are_made_and_go_together() {
        let names = ["pi.local", "192.168.1.7", "fe80::1"].map(String::from);
        let made = make("pi", &names).expect("the names are fine");
        let pem = |name: &'static str| {
            let file = made.iter().find(|file| file.name == name);
            let bytes = file.expect("it is made").text.as_bytes();
            Pem { name, bytes }
        };
        let server = TlsServerSettings::new(pem(SERVER), pem(SERVER_KEY), Some(pem(AUTHORITY)));
        server.expect("a server can use them");
        let client = TlsSettings::new(pem(AUTHORITY), Some((pem(CLIENT), pem(CLIENT_KEY))));
        client.expect("a client can use them");
        assert!(TlsServerSettings::new(pem(SERVER), pem(CLIENT_KEY), None).is_err());
        for file in &made {
            let is_key = file.text.contains("PRIVATE KEY");
            assert_eq!(
                (file.is_secret, is_key),
                (is_key, file.name.ends_with("-key.pem"))
            );
        }
        // Nothing is made twice.
        let again = make("pi", &names).expect("the names are fine");
        assert!(
            made.iter()
                .zip(&again)
                .all(|(one, other)| one.text != other.text)
        );
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for bad in [
            "",
            "a b",
            "-a",
            "a..b",
            "ä.de",
            "*.de",
            "a/b",
            &"a".repeat(64),
        ] {
            let refused = make("pi", &[bad.to_string()]);
            assert!(matches!(refused, Err(CertificateError::Name(_))), "{bad}");
        }
        assert!(is_name("pi-4.local") && is_name("::1") && is_name("10.0.0.1"));
    }
}
