//! The handshake against servers of every age and mood, byte for byte.

mod common;

use common::{Nature, Server, disk, hexdump};
use rubus_nbd::client::{Handshake, HandshakeError, Offer, Step, Style, Wish};
use rubus_nbd::wire::{BlockSizes, Refusal, TransmissionFlags};

fn wish(export: &str) -> Wish {
    Wish { export: export.into(), tls: false, structured_replies: true }
}

fn nature(exports: &[&str]) -> Nature {
    Nature { exports: exports.iter().map(|name| name.to_string()).collect(), ..Nature::default() }
}

/// Runs the handshake; gives its end and what went over the wire.
fn shake(nature: Nature, wish: Wish) -> (Result<Offer, HandshakeError>, String) {
    let mut server = Server::new(nature, disk(1 << 20));
    let mut handshake = match Handshake::new(wish) {
        Ok(handshake) => handshake,
        Err(error) => return (Err(error), String::new()),
    };
    let mut trace = String::new();
    loop {
        let sent = handshake.to_send();
        if !sent.is_empty() {
            trace.push_str(&format!("client:\n{}", hexdump(&sent)));
        }
        server.take(&sent);
        match handshake.step() {
            Step::Read(bytes) if server.output.len() < bytes => {
                assert!(server.has_ended(), "the server owes {bytes} bytes");
                trace.push_str("server: hangs up\n");
                return (Err(HandshakeError::NotNbd), trace);
            }
            Step::Read(bytes) => {
                let bytes: Vec<u8> = server.output.drain(..bytes).collect();
                trace.push_str(&format!("server:\n{}", hexdump(&bytes)));
                if let Err(error) = handshake.received(&bytes) {
                    return (Err(error), trace);
                }
            }
            Step::StartTls => {
                trace.push_str("both: TLS\n");
                handshake.tls_started();
            }
            Step::Done => {
                assert!(server.output.is_empty(), "bytes of the server are left");
                return (Ok(handshake.into_offer().expect("it is over")), trace);
            }
        }
    }
}

fn error(nature: Nature, wish: Wish) -> String {
    shake(nature, wish).0.unwrap_err().to_string()
}

#[test]
fn a_modern_server_tells_everything() {
    let nature = Nature {
        block_sizes: Some(BlockSizes::DEFAULT),
        description: Some("the disk in the attic".into()),
        ..nature(&["attic"])
    };
    let (offer, trace) = shake(nature, wish("attic"));
    let offer = offer.unwrap();
    assert_eq!(offer.style, Style::Fixed);
    assert_eq!(offer.size_bytes, 1 << 20);
    assert!(offer.structured_replies);
    assert!(offer.flags.has(TransmissionFlags::SEND_FLUSH));
    assert_eq!(offer.block_sizes, Some(BlockSizes::DEFAULT));
    assert_eq!(offer.description.as_deref(), Some("the disk in the attic"));
    insta::assert_snapshot!("modern", trace);
}

#[test]
fn a_server_without_options_is_asked_by_name() {
    for (knows_go, fixed, style) in [(false, true, Style::Fixed), (true, false, Style::Newstyle)] {
        let nature =
            Nature { knows_go, fixed, structured: false, no_zeroes: fixed, ..nature(&["disk"]) };
        let (offer, trace) = shake(nature, wish("disk"));
        let offer = offer.unwrap();
        assert_eq!((offer.style, offer.structured_replies), (style, false));
        assert_eq!(offer.blocks(), BlockSizes::DEFAULT);
        insta::assert_snapshot!(format!("by_name_fixed_{fixed}"), trace);
    }
}

#[test]
fn the_oldest_server_says_it_all_at_once() {
    let oldstyle = Nature { oldstyle: true, ..Nature::default() };
    let (offer, trace) = shake(oldstyle.clone(), wish(""));
    let offer = offer.unwrap();
    assert_eq!((offer.style, offer.size_bytes), (Style::Oldstyle, 1 << 20));
    insta::assert_snapshot!("oldstyle", trace);
    insta::assert_snapshot!(error(oldstyle, wish("disk")), @"this server is of the old style and has one export without a name, so it cannot have 'disk'; leave the name out");
}

#[test]
fn tls_forgets_what_was_said_in_the_clear() {
    let nature = Nature { has_tls: true, tls_only: true, ..Nature::default() };
    let tls = Wish { tls: true, ..wish("") };
    let (offer, trace) = shake(nature, tls);
    assert!(offer.unwrap().structured_replies, "asked again, encrypted");
    insta::assert_snapshot!("tls", trace);
}

#[test]
fn who_does_not_agree_is_told_why_and_what_to_do() {
    let tls_only = Nature { tls_only: true, ..Nature::default() };
    insta::assert_snapshot!(error(tls_only, wish("")), @"the server wants TLS; write nbds:// in place of nbd:// (nbds+unix:// for nbd+unix://)");
    let tls = Wish { tls: true, ..wish("") };
    insta::assert_snapshot!(error(Nature::default(), tls), @"the server offers no TLS; write nbd:// in place of nbds:// if the connection may be read by others");
    insta::assert_snapshot!(error(nature(&["root", "boot"]), wish("rot")), @"the server has no export 'rot'; it has 'root', 'boot'");
    insta::assert_snapshot!(error(nature(&["root"]), wish("")), @"the server has no default export; it has 'root'");
    insta::assert_snapshot!(error(nature(&[]), wish("x")), @"the server has no export 'x', and does not say which it has; check the spelling");
    let names: Vec<String> = (0..30).map(|i| format!("disk{i}")).collect();
    let many = Nature { exports: names, ..Nature::default() };
    let said = error(many, wish("x"));
    assert!(said.contains("among others it has 'disk0', "), "{said}");
    assert!(said.ends_with("'disk19'"), "{said}");
    let refused = Nature {
        refusal: Some((Refusal::Policy, "only for\u{1b}[2J friends".into())),
        ..Nature::default()
    };
    insta::assert_snapshot!(error(refused, wish("")), @r#"the server refuses the export: its settings forbid it ("only for [2J friends")"#);
}

#[test]
fn names_that_cannot_be_asked_for_are_refused_here() {
    assert_eq!(shake(Nature::default(), wish("a\0b")).0, Err(HandshakeError::BadName));
    assert_eq!(shake(Nature::default(), wish(&"x".repeat(4097))).0, Err(HandshakeError::BadName));
    let long = "x".repeat(4096);
    assert!(shake(nature(&[&long]), wish(&long)).0.is_ok());
}

#[test]
fn a_size_that_is_negative_is_refused() {
    let mut handshake = Handshake::new(wish("")).unwrap();
    let mut greeting = b"NBDMAGIC\0\0\x42\x02\x81\x86\x12\x53".to_vec();
    handshake.received(&greeting[..16]).unwrap();
    greeting.resize(152, 0);
    greeting[16] = 0x80;
    let error = handshake.received(&greeting[16..]).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"the server breaks the protocol: the size of an export cannot be 9223372036854775808");
}

#[test]
fn what_answers_may_be_anything() {
    let mut handshake = Handshake::new(wish("")).unwrap();
    let error = handshake.received(b"HTTP/1.1 400 Bad").unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"what answers there does not speak NBD; check host and port");
}
