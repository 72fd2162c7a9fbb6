//! Certificates for a server and its clients, made by an authority that exists for them alone.

pub use crate::names::{AUTHORITY, AUTHORITY_KEY, CLIENT, CLIENT_KEY, SERVER, SERVER_KEY};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::peer::alternative_name;
pub use crate::peer::is_name;
use crate::server::overlay::ClientName;
use crate::tls::{Pem, is_signed_by};

/// A file that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
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
    #[error("invalid server name '{0}' for a certificate; use letters, digits, hyphens and dots")]
    Name(String),
    /// A name that no client has.
    #[error(
        "invalid client name '{0}'; names have 1 to 64 letters, digits, dots, dashes and underscores, and begin \
         with a letter or a digit"
    )]
    Client(String),
    /// The authority is not one that was made here.
    #[error(
        "the authority in ca-cert.pem was not made by `rubus serve --make-certificates`, or ca-key.pem is not its key: \
         certificates for clients cannot be made with it"
    )]
    Authority,
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
    let (server, server_key) =
        signed(names, format!("NBD server {machine}"), ExtendedKeyUsagePurpose::ServerAuth)?;
    let (client, client_key) =
        signed(&[], format!("NBD client of {machine}"), ExtendedKeyUsagePurpose::ClientAuth)?;
    let made = |name, text, is_secret| Made { name, text, is_secret };
    Ok(vec![
        made(AUTHORITY, authority_cert.pem(), false),
        made(AUTHORITY_KEY, authority_key.serialize_pem(), true),
        made(SERVER, server, false),
        made(SERVER_KEY, server_key, true),
        made(CLIENT, client, false),
        made(CLIENT_KEY, client_key, true),
    ])
}

/// Makes the certificate of the client that is called `name`, signed by an authority that [`make`] has made
/// (its certificate and its key, in PEM).
///
/// # Errors
/// When no client can be called so, or the authority is none of ours.
pub fn make_client(authority: &str, key: &str, name: &str) -> Result<Vec<Made>, CertificateError> {
    if ClientName::asked(name).is_err() {
        return Err(CertificateError::Client(name.into()));
    }
    let title = title_of(authority).ok_or(CertificateError::Authority)?;
    let key = KeyPair::from_pem(key).map_err(|_| CertificateError::Authority)?;
    let mut issuer = params(&[], &title)?;
    issuer.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    issuer.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let issuer = Issuer::from_params(&issuer, &key);
    let mut client = params(&[alternative_name(name)], name)?;
    client.is_ca = IsCa::ExplicitNoCa;
    client.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let client_key = KeyPair::generate()?;
    let certificate = client.signed_by(&client_key, &issuer)?.pem();
    let made = Pem { name: CLIENT, bytes: certificate.as_bytes() };
    let signer = Pem { name: AUTHORITY, bytes: authority.as_bytes() };
    match is_signed_by(made, signer) {
        Ok(true) => {}
        _ => return Err(CertificateError::Authority),
    }
    let made = |name, text, is_secret| Made { name, text, is_secret };
    Ok(vec![
        made(AUTHORITY, authority.into(), false),
        made(CLIENT, certificate, false),
        made(CLIENT_KEY, client_key.serialize_pem(), true),
    ])
}

/// The common name of an authority of ours, which made it itself. Whether it was found is seen when what is signed
/// under it is checked.
fn title_of(authority: &str) -> Option<String> {
    const COMMON_NAME: [u8; 5] = [6, 3, 0x55, 4, 3];
    const UTF8: u8 = 12;
    let certificate = CertificateDer::from_pem_slice(authority.as_bytes()).ok()?;
    let bytes = certificate.as_ref();
    let at = bytes.windows(5).position(|window| window == COMMON_NAME)?;
    let (kind, rest) = bytes.get(at + 5..)?.split_first()?;
    let (length, rest) = rest.split_first()?;
    let text = rest.get(..usize::from(*length))?;
    (*kind == UTF8).then(|| String::from_utf8(text.to_vec()).ok())?
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::PeerCertificate;
    use crate::tls::{TlsServerSettings, TlsSettings};

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
            assert_eq!((file.is_secret, is_key), (is_key, file.name.ends_with("-key.pem")));
        }
        // Nothing is made twice.
        let again = make("pi", &names).expect("the names are fine");
        assert!(made.iter().zip(&again).all(|(one, other)| one.text != other.text));
    }

    #[test]
    fn a_named_client_has_a_certificate_of_its_own() {
        let made = make("pi ü", &["pi.local".into()]).expect("the names are fine");
        let text = |name: &str| {
            let file = made.iter().find(|file| file.name == name);
            file.expect("it is made").text.clone()
        };
        let (authority, key) = (text(AUTHORITY), text(AUTHORITY_KEY));
        let peer = |pem: &str| {
            let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            PeerCertificate::new(&certificate)
        };
        for name in ["10000000abcd1234", "12345678", "Kitchen_2"] {
            let files = make_client(&authority, &key, name).expect("it is signed");
            let names: Vec<_> = files.iter().map(|file| file.name).collect();
            assert_eq!(names, [AUTHORITY, CLIENT, CLIENT_KEY]);
            assert!(files[2].is_secret);
            let peer = peer(&files[1].text);
            assert!(peer.is_of(name));
            for other in ["", "10000000abcd1235", "12345679", "kitchen_2", "pi.local", "*"] {
                assert!(!peer.is_of(other), "{name} is let in as {other}");
            }
        }
        // The certificate that all clients share names no client, and the server's names only the
        // server.
        assert!(!peer(&text(CLIENT)).is_of("10000000abcd1234"));
    }

    #[test]
    fn an_authority_that_is_not_ours_or_has_another_key_signs_nothing() {
        let of = |machine: &str, name: &str| {
            let made = make(machine, &[]).unwrap();
            made.into_iter().find(|file| file.name == name).unwrap().text
        };
        for (authority, key) in [
            (of("pi", AUTHORITY), of("pi", AUTHORITY_KEY)),
            ("none".into(), of("pi", AUTHORITY_KEY)),
            (of("pi", AUTHORITY), "none".into()),
        ] {
            let made = make_client(&authority, &key, "a");
            assert!(matches!(made, Err(CertificateError::Authority)));
        }
        let refused = make_client("", "", "../a");
        assert!(matches!(refused, Err(CertificateError::Client(_))));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for bad in ["", "a b", "-a", "a..b", "ä.de", "*.de", "a/b", &"a".repeat(64)] {
            let refused = make("pi", &[bad.to_string()]);
            assert!(matches!(refused, Err(CertificateError::Name(_))), "{bad}");
        }
        assert!(is_name("pi-4.local") && is_name("::1") && is_name("10.0.0.1"));
    }
}
