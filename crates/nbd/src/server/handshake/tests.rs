//! The server's side of the handshake, tried message by message.

use super::*;
use crate::client::{self, Handshake, Wish};
use crate::wire::{OPTION_REPLY_HEADER_BYTES, OptionReplyHeader};

struct Two;

impl Exports for Two {
    fn list(&self) -> Vec<(String, String)> {
        vec![("root".into(), "a disk".into()), ("ä".into(), String::new())]
    }

    fn find(&self, name: &str) -> Result<Export, NoExport> {
        match name {
            "" | "root" => Ok(Export {
                name: "root".into(),
                size_bytes: 1 << 30,
                abilities: Abilities { knows_extents: true, ..Abilities::default() },
                block_sizes: BlockSizes::DEFAULT,
                description: "a disk".into(),
            }),
            name => Err(NoExport { why: Refusal::Unknown, words: format!("no export '{name}'") }),
        }
    }

    fn admits(&self, _: &str, _: Option<&PeerCertificate>) -> Result<(), NoExport> {
        Ok(())
    }
}

/// Panics if it is asked for anything.
struct Untouchable;

impl Exports for Untouchable {
    fn list(&self) -> Vec<(String, String)> {
        panic!("the list was made for somebody in the clear")
    }

    fn find(&self, name: &str) -> Result<Export, NoExport> {
        panic!("'{name}' was looked for by somebody in the clear")
    }

    fn admits(&self, name: &str, _: Option<&PeerCertificate>) -> Result<(), NoExport> {
        panic!("'{name}' was asked for in the clear")
    }
}

const FIXED: [u8; 4] = [0, 0, 0, 3];

/// A server that has been greeted by a client with these flags.
fn begun(policy: TlsPolicy, flags: [u8; 4]) -> ServerHandshake {
    let mut server = ServerHandshake::new(policy);
    assert_eq!(server.to_send().len(), Greeting::NEWSTYLE_BYTES);
    assert_eq!(server.received(&flags, &Untouchable), 4);
    server
}

fn bytes_of(request: &OptionRequest) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    bytes
}

fn raw(option: u32, length: u32) -> Vec<u8> {
    let mut bytes = bytes_of(&OptionRequest::Other { option, data: Vec::new() });
    bytes[12..16].copy_from_slice(&length.to_be_bytes());
    bytes
}

fn ask(server: &mut ServerHandshake, request: &OptionRequest) -> Vec<OptionReply> {
    let bytes = bytes_of(request);
    assert_eq!(server.received(&bytes, &Two), bytes.len());
    replies(&server.to_send())
}

fn replies(mut bytes: &[u8]) -> Vec<OptionReply> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at(OPTION_REPLY_HEADER_BYTES);
        let header = OptionReplyHeader::decode(head).expect("a header");
        let (data, rest) = rest.split_at(header.length as usize);
        replies.push(OptionReply::decode(header.kind, data).expect("a reply"));
        bytes = rest;
    }
    replies
}

fn refusal(replies: &[OptionReply]) -> Refusal {
    match replies {
        [OptionReply::Refused { why, .. }] => *why,
        other => panic!("{other:?} is no refusal"),
    }
}

fn go(export: &str) -> OptionRequest {
    OptionRequest::Go(InfoRequest {
        export: export.into(),
        wanted: vec![Info::BLOCK_SIZE, Info::DESCRIPTION, Info::NAME],
    })
}

fn contexts(export: &str, queries: &[&str]) -> ContextRequest {
    ContextRequest {
        export: export.into(),
        queries: queries.iter().map(|&query| query.into()).collect(),
    }
}

/// Both ends against each other, with pieces of this size.
fn both(wish: Wish, policy: TlsPolicy, piece: usize) -> (client::Offer, Agreed) {
    let mut client = Handshake::new(wish).expect("the wish is fine");
    let mut server = ServerHandshake::new(policy);
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    loop {
        to_server.extend(client.to_send());
        to_client.extend(server.to_send());
        let now = to_server.len().min(piece);
        let used = server.received(&to_server[..now], &Two);
        to_server.drain(..used);
        match client.step() {
            client::Step::Read(bytes) if to_client.len() >= bytes => {
                let bytes: Vec<u8> = to_client.drain(..bytes).collect();
                client.received(&bytes).expect("an honest server");
            }
            client::Step::Read(_) => {}
            client::Step::StartTls => {
                assert_eq!(server.step(), Step::StartTls);
                client.tls_started();
                server.tls_started();
            }
            client::Step::Done => {
                assert_eq!(server.step(), Step::Serve);
                assert!(to_client.is_empty() && server.to_send().is_empty());
                let offer = client.into_offer().expect("an offer");
                return (offer, server.into_agreed().expect("an agreement"));
            }
        }
    }
}

#[test]
fn our_client_and_our_server_agree() {
    for (tls, policy) in [
        (false, TlsPolicy::Off),
        (false, TlsPolicy::Allow),
        (true, TlsPolicy::Allow),
        (true, TlsPolicy::Require),
    ] {
        for structured_replies in [false, true] {
            for piece in [1, 5, 1000] {
                let wish = Wish { export: String::new(), tls, structured_replies };
                let (offer, agreed) = both(wish, policy, piece);
                assert_eq!(offer.size_bytes, agreed.rules.size_bytes);
                assert_eq!(offer.flags, agreed.rules.flags);
                assert_eq!(offer.block_sizes, Some(BlockSizes::DEFAULT));
                assert_eq!(offer.description.as_deref(), Some("a disk"));
                assert_eq!(offer.structured_replies, structured_replies);
                let structured = agreed.rules.replies == Replies::Structured;
                assert_eq!(structured, structured_replies);
                assert_eq!(agreed.encrypted, tls);
                assert_eq!(agreed.export.name, "root");
            }
        }
    }
}

#[test]
fn an_old_client_asks_by_name() {
    for (flags, length) in [([0, 0, 0, 0], 134), ([0, 0, 0, 1], 134), (FIXED, 10)] {
        let mut server = begun(TlsPolicy::Off, flags);
        let bytes = bytes_of(&OptionRequest::ExportName("root".into()));
        server.received(&bytes, &Two);
        let answer = server.to_send();
        assert_eq!(answer.len(), length);
        let export = ExportName::decode(&answer).expect("an export");
        assert_eq!(export.size_bytes, 1 << 30);
        assert_eq!(server.step(), Step::Serve);
        let agreed = server.into_agreed().expect("an agreement");
        assert_eq!(agreed.rules.replies, Replies::Simple);
    }
    // A missing export ends this client's connection and nothing else (CVE-2011-1925).
    let mut server = begun(TlsPolicy::Off, FIXED);
    server.received(&bytes_of(&OptionRequest::ExportName("boot".into())), &Two);
    assert_eq!(server.step(), Step::Close);
    assert!(matches!(server.closing(), Some(Closing::NoExport { .. })));
    assert!(server.to_send().is_empty());
}

#[test]
fn an_old_client_has_no_other_options() {
    let mut server = begun(TlsPolicy::Off, [0; 4]);
    server.received(&bytes_of(&OptionRequest::List), &Untouchable);
    assert_eq!(server.step(), Step::Close);
}

#[test]
fn an_unknown_option_is_refused_and_the_next_is_heard() {
    let mut server = begun(TlsPolicy::Off, FIXED);
    for option in [0, 4, 12, 13, 0xffff, u32::MAX] {
        for length in [0, 1, 4096, MAX_OPTION_BYTES] {
            let other = OptionRequest::Other { option, data: vec![0x49; length] };
            let replies = ask(&mut server, &other);
            assert_eq!(refusal(&replies), Refusal::Unsupported);
        }
    }
    assert_eq!(ask(&mut server, &OptionRequest::List).len(), 3);
}

#[test]
fn a_long_option_is_thrown_away_and_the_next_is_heard() {
    for option in [3, 5, 6, 7, 8, 9, 10, 11, 99] {
        let mut server = begun(TlsPolicy::Off, FIXED);
        for length in [MAX_OPTION_BYTES + 1, 0xffff] {
            let mut bytes = raw(option, length as u32);
            bytes.resize(bytes.len() + length, 0xff);
            for piece in bytes.chunks(4000) {
                assert_eq!(server.received(piece, &Untouchable), piece.len());
                assert!(server.input.capacity() <= MAX_OPTION_BYTES);
            }
            assert_eq!(refusal(&replies(&server.to_send())), Refusal::TooBig);
        }
        assert_eq!(ask(&mut server, &OptionRequest::List).len(), 3);
    }
}

#[test]
fn an_option_that_is_longer_than_everything_ends_it() {
    // CVE-2022-26495: 0xffffffff and one more was nothing.
    for option in 0..13 {
        for length in [1 << 21, 1 << 31, u32::MAX - 1, u32::MAX] {
            let mut server = begun(TlsPolicy::Off, FIXED);
            server.received(&raw(option, length), &Untouchable);
            assert_eq!(server.step(), Step::Close, "{option} {length}");
        }
    }
    let mut server = begun(TlsPolicy::Off, FIXED);
    let mut bytes = raw(1, MAX_OPTION_BYTES as u32 + 1);
    bytes.resize(bytes.len() + MAX_OPTION_BYTES + 1, b'a');
    server.received(&bytes, &Untouchable);
    assert_eq!(server.step(), Step::Close);
}

#[test]
fn names_whose_length_is_not_that_of_the_option_are_refused() {
    // CVE-2022-26496, CVE-2017-15118.
    for option in [6, 7, 9, 10] {
        for length in [0, 1, 5, 0xffff, 1 << 31, u32::MAX - 1, u32::MAX] {
            for data_bytes in [0, 1, 3, 4, 5, 4097, 9000] {
                let mut data = u32::to_be_bytes(length).to_vec();
                data.resize(data_bytes, b'a');
                let mut server = begun(TlsPolicy::Off, FIXED);
                ask(&mut server, &OptionRequest::StructuredReply);
                let replies = ask(&mut server, &OptionRequest::Other { option, data });
                assert_eq!(refusal(&replies), Refusal::Invalid);
                assert_eq!(ask(&mut server, &OptionRequest::List).len(), 3);
            }
        }
    }
}

#[test]
fn a_client_comes_to_the_point_or_goes() {
    let mut server = begun(TlsPolicy::Off, FIXED);
    for _ in 0..MAX_OPTIONS {
        ask(&mut server, &OptionRequest::List);
    }
    server.received(&bytes_of(&OptionRequest::List), &Untouchable);
    assert_eq!(server.step(), Step::Close);
    let mut server = begun(TlsPolicy::Off, FIXED);
    let mut rounds = 0;
    while server.step() == Step::Receive {
        let mut bytes = raw(99, 40_000);
        bytes.resize(bytes.len() + 40_000, 0);
        let mut at = 0;
        while at < bytes.len() && server.step() == Step::Receive {
            at += server.received(&bytes[at..], &Untouchable);
            server.to_send();
        }
        rounds += 1;
    }
    assert_eq!(rounds, (MAX_HANDSHAKE_BYTES / 40_016 + 1) as u32);
}

#[test]
fn a_flood_of_options_is_answered_one_by_one() {
    let mut server = begun(TlsPolicy::Off, FIXED);
    let flood = bytes_of(&OptionRequest::List).repeat(1000);
    let one = flood.len() / 1000;
    assert_eq!(server.received(&flood, &Two), one);
    assert_eq!(server.received(&flood[one..], &Two), 0, "nobody reads");
    assert_eq!(replies(&server.to_send()).len(), 3);
    assert_eq!(server.received(&flood[one..], &Two), one);
}

#[test]
fn a_failed_go_may_be_tried_again() {
    let mut server = begun(TlsPolicy::Off, FIXED);
    for name in ["boot", "ROOT", "root\0"] {
        assert_eq!(refusal(&ask(&mut server, &go(name))), Refusal::Unknown);
        assert_eq!(server.step(), Step::Receive);
    }
    assert_eq!(ask(&mut server, &go("root")).len(), 5);
    assert_eq!(server.step(), Step::Serve);
    // What comes now is no option any more.
    assert_eq!(server.received(&bytes_of(&go("root")), &Untouchable), 0);
}

#[test]
fn a_client_may_go_at_any_time() {
    for policy in [TlsPolicy::Off, TlsPolicy::Require] {
        let mut server = begun(policy, FIXED);
        let data = b"bye".to_vec();
        let bytes = bytes_of(&OptionRequest::Other { option: 2, data });
        server.received(&bytes, &Untouchable);
        assert_eq!(replies(&server.to_send()), [OptionReply::Ack]);
        assert_eq!(server.closing(), Some(&Closing::Aborted));
    }
}

#[test]
fn whoever_speaks_something_else_is_hung_up_on() {
    for first in [[0, 0, 0, 4], [0, 0, 1, 3], [0x16, 3, 1, 0], *b"GET "] {
        let server = begun(TlsPolicy::Off, first);
        assert_eq!(server.step(), Step::Close, "{first:?}");
    }
    let mut server = begun(TlsPolicy::Off, FIXED);
    server.received(b"IHAVEOPS\0\0\0\x03\0\0\0\0", &Untouchable);
    assert_eq!(server.step(), Step::Close);
}

#[test]
fn without_tls_nothing_is_told_where_it_is_required() {
    let name = || "root".to_string();
    let mut server = begun(TlsPolicy::Require, FIXED);
    let info = InfoRequest { export: name(), wanted: Vec::new() };
    for request in [
        OptionRequest::List,
        OptionRequest::Info(info),
        go("root"),
        OptionRequest::StructuredReply,
        OptionRequest::ExtendedHeaders,
        OptionRequest::ListContexts(contexts("root", &[])),
        OptionRequest::SetContexts(contexts("root", &[BASE_ALLOCATION])),
        OptionRequest::Other { option: 77, data: vec![1, 2, 3] },
        // Not even whether it is well-formed.
        OptionRequest::Other { option: 7, data: vec![0xff; 5] },
    ] {
        server.received(&bytes_of(&request), &Untouchable);
        let answer = replies(&server.to_send());
        assert_eq!(refusal(&answer), Refusal::TlsRequired, "{request:?}");
        assert!(!format!("{answer:?}").contains("root"));
    }
    server.received(&bytes_of(&OptionRequest::ExportName(name())), &Untouchable);
    assert_eq!(server.closing(), Some(&Closing::TlsRequired));
    let mut old = begun(TlsPolicy::Require, [0; 4]);
    old.received(&bytes_of(&OptionRequest::ExportName(name())), &Untouchable);
    assert_eq!(old.closing(), Some(&Closing::TlsRequired));
}

#[test]
fn tls_forgets_what_was_said_in_the_clear() {
    // CVE-2021-3716: an option injected by a man in the middle stayed in force after the upgrade.
    let mut server = begun(TlsPolicy::Allow, FIXED);
    ask(&mut server, &OptionRequest::ExtendedHeaders);
    let set = OptionRequest::SetContexts(contexts("root", &[BASE_ALLOCATION]));
    assert_eq!(ask(&mut server, &set).len(), 2);
    assert_eq!(ask(&mut server, &OptionRequest::StartTls), [OptionReply::Ack]);
    assert_eq!(server.step(), Step::StartTls);
    server.tls_started();
    ask(&mut server, &go("root"));
    let agreed = server.into_agreed().expect("an agreement");
    assert!(agreed.encrypted);
    assert_eq!(agreed.rules.replies, Replies::Simple);
    assert_eq!(agreed.rules.allocation, None);
}

#[test]
fn what_follows_starttls_in_the_clear_is_an_attack() {
    for policy in [TlsPolicy::Allow, TlsPolicy::Require] {
        let start = bytes_of(&OptionRequest::StartTls);
        for more in [&bytes_of(&OptionRequest::StructuredReply)[..], b"I", &[0x16, 3, 1]] {
            let mut server = begun(policy, FIXED);
            server.received(&[&start, more].concat(), &Untouchable);
            assert_eq!(server.closing(), Some(&Closing::Injected));
            assert!(server.to_send().is_empty());
        }
    }
}

#[test]
fn tls_starts_once_and_only_where_it_is_wanted() {
    let mut server = begun(TlsPolicy::Off, FIXED);
    assert_eq!(refusal(&ask(&mut server, &OptionRequest::StartTls)), Refusal::Policy);
    let mut server = begun(TlsPolicy::Require, FIXED);
    let data = vec![1];
    let lie = OptionRequest::Other { option: 5, data };
    assert_eq!(refusal(&ask(&mut server, &lie)), Refusal::Invalid);
    ask(&mut server, &OptionRequest::StartTls);
    server.tls_started();
    assert_eq!(refusal(&ask(&mut server, &OptionRequest::StartTls)), Refusal::Invalid);
}

#[test]
fn contexts_are_agreed_on_for_one_export() {
    let allocation = OptionReply::Context { id: ALLOCATION, name: BASE_ALLOCATION.into() };
    let with = |queries: &[&str]| OptionRequest::SetContexts(contexts("root", queries));
    let mut server = begun(TlsPolicy::Off, FIXED);
    assert_eq!(refusal(&ask(&mut server, &with(&[BASE_ALLOCATION]))), Refusal::Invalid);
    ask(&mut server, &OptionRequest::StructuredReply);
    for (queries, is_told) in [
        (&[][..], true),
        (&["base:"], true),
        (&[BASE_ALLOCATION], true),
        (&["qemu:dirty-bitmap:x", "base:allocation"], true),
        (&["base", "base:alloc", "qemu:", ""], false),
    ] {
        let list = OptionRequest::ListContexts(contexts("root", queries));
        let replies = ask(&mut server, &list);
        assert_eq!(replies.contains(&allocation), is_told, "{queries:?}");
    }
    for (queries, is_told) in [
        (&[][..], false),
        (&["base:"], false),
        (&["x:y", BASE_ALLOCATION], true),
        (&["x:y"], false),
    ] {
        let replies = ask(&mut server, &with(queries));
        assert_eq!(replies.contains(&allocation), is_told, "{queries:?}");
        assert_eq!(server.allocation_of.is_some(), is_told);
    }
    // What is refused undoes what was agreed on before.
    ask(&mut server, &with(&[BASE_ALLOCATION]));
    let other = OptionRequest::SetContexts(contexts("boot", &[BASE_ALLOCATION]));
    assert_eq!(refusal(&ask(&mut server, &other)), Refusal::Unknown);
    assert_eq!(server.allocation_of, None);
    // The same export by another name is another export.
    ask(&mut server, &with(&[BASE_ALLOCATION]));
    ask(&mut server, &go(""));
    let agreed = server.into_agreed().expect("an agreement");
    assert_eq!(agreed.rules.allocation, None);
}

#[test]
fn extended_headers_bring_the_filter_with_them() {
    let mut server = begun(TlsPolicy::Off, FIXED);
    let extended = OptionRequest::ExtendedHeaders;
    assert_eq!(ask(&mut server, &extended), [OptionReply::Ack]);
    assert_eq!(refusal(&ask(&mut server, &extended)), Refusal::Invalid);
    assert_eq!(
        refusal(&ask(&mut server, &OptionRequest::StructuredReply)),
        Refusal::ExtendedHeaders
    );
    let set = OptionRequest::SetContexts(contexts("root", &[BASE_ALLOCATION]));
    ask(&mut server, &set);
    ask(&mut server, &go("root"));
    let rules = server.into_agreed().expect("an agreement").rules;
    assert_eq!(rules.replies, Replies::Extended);
    assert_eq!(rules.allocation, Some(ALLOCATION));
    let flags = TransmissionFlags::BLOCK_STATUS_PAYLOAD.with(TransmissionFlags::SEND_DF);
    assert!(rules.flags.has(flags));
}

fn claim(generation: u64) -> Claim {
    Claim { attachment: 1, generation, lane: 0, ended: 0 }
}

#[test]
fn a_claim_holds_the_assent_back_until_what_it_replaces_has_ended() {
    let mut server = begun(TlsPolicy::Off, FIXED).fencing();
    let assent = ask(&mut server, &OptionRequest::Fence(claim(3)));
    assert_eq!(assent, [OptionReply::Ack]);
    let bytes = bytes_of(&go("root"));
    server.received(&bytes, &Two);
    assert_eq!(server.step(), Step::Fence);
    assert_eq!(server.claim(), Some(claim(3)));
    assert!(server.to_send().is_empty(), "the client may not begin yet");

    server.fenced(Err("the disk hangs"));
    assert_eq!(refusal(&replies(&server.to_send())), Refusal::Policy);
    assert_eq!(server.step(), Step::Receive);

    server.received(&bytes, &Two);
    server.fenced(Ok(()));
    let told = replies(&server.to_send());
    assert_eq!(told.last(), Some(&OptionReply::Ack));
    assert_eq!(server.step(), Step::Serve);
}

#[test]
fn a_claim_is_refused_where_nobody_ends_anything_and_forgotten_when_tls_starts() {
    let mut server = begun(TlsPolicy::Off, FIXED);
    let refused = ask(&mut server, &OptionRequest::Fence(claim(1)));
    assert_eq!(refusal(&refused), Refusal::Unsupported);
    ask(&mut server, &go("root"));
    assert_eq!(server.step(), Step::Serve);

    let mut server = begun(TlsPolicy::Allow, FIXED).fencing();
    ask(&mut server, &OptionRequest::Fence(claim(1)));
    ask(&mut server, &OptionRequest::StartTls);
    server.tls_started();
    assert_eq!(server.claim(), None);

    let mut server = begun(TlsPolicy::Require, FIXED).fencing();
    let refused = ask(&mut server, &OptionRequest::Fence(claim(1)));
    assert_eq!(refusal(&refused), Refusal::TlsRequired);
}

#[test]
fn a_claim_of_the_wrong_length_is_invalid() {
    let mut server = begun(TlsPolicy::Off, FIXED).fencing();
    let short = OptionRequest::Other { option: crate::wire::FENCE, data: vec![0; 35] };
    assert_eq!(refusal(&ask(&mut server, &short)), Refusal::Invalid);
    assert_eq!(server.claim(), None);
}

#[test]
fn who_asks_in_the_old_way_is_fenced_too() {
    let mut server = begun(TlsPolicy::Off, FIXED).fencing();
    ask(&mut server, &OptionRequest::Fence(claim(1)));
    server.received(&bytes_of(&OptionRequest::ExportName("root".into())), &Two);
    assert_eq!(server.step(), Step::Fence);
    assert!(server.to_send().is_empty());
    server.fenced(Err("the disk hangs"));
    assert_eq!(server.closing(), Some(&Closing::NotFenced("the disk hangs")));
}
