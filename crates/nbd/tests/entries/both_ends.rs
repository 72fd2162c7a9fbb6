//! Both ends against each other: what a client reads is what a model of the disk has.

use super::*;

/// Our client and our server, with what they do chosen by the bytes: both keep to the protocol, and
/// what is read is what was written. One byte of natures, one of pieces, then six for each request.
pub fn both_ends(data: &[u8]) {
    let [nature, piece, script @ ..] = data else {
        return;
    };
    let piece = piece_of(*piece);
    let Some(rules) = agree(*nature, piece) else {
        return;
    };
    let replies = match rules.replies {
        Replies::Simple => client::Replies::Simple,
        Replies::Structured => client::Replies::Structured,
        Replies::Extended => client::Replies::Extended,
    };
    let context = rules.allocation;
    let mut flight = Flight::new(replies, context);
    let mut server = Server::new(rules);
    let mut model = disk();
    let mut memory = vec![0; MEMORY_BYTES];
    for batch in script.chunks(6 * SLOTS as usize) {
        let mut expected = Vec::new();
        let mut sent = Vec::new();
        for (slot, words) in batch.chunks_exact(6).enumerate() {
            let due = due(slot as u32, words);
            if context.is_some() && words[0] >= 0xf0 {
                let length = u64::from(due.length);
                let head = flight.begin_status(due.slot, due.offset, length);
                sent.extend_from_slice(&head.expect("a free slot"));
                let is_inside = length > 0 && due.offset + length <= DISK_BYTES as u64;
                expected.push(if is_inside { Ok(Vec::new()) } else { Err(ErrorCode::INVALID) });
                continue;
            }
            let at = due.memory_at..due.memory_at + SLOT_BYTES as usize;
            memory[at.clone()].fill(words[5]);
            let head = flight.begin(&due, MEMORY_BYTES).expect("a free slot");
            sent.extend_from_slice(&head);
            if due.command == Command::Write {
                sent.extend_from_slice(&memory[at][..due.length as usize]);
            }
            expected.push(model_of(&due, words[5], &mut model));
        }
        for bytes in sent.chunks(piece) {
            assert!(server.take(bytes), "the server hung up");
        }
        let out = std::mem::take(&mut server.out);
        let mut answers = Vec::new();
        let heard = hear(&mut flight, &out, piece, &mut memory, &mut answers);
        assert!(heard, "the client hung up");
        assert_eq!((flight.in_flight(), answers.len()), (0, expected.len()));
        for answer in answers {
            let slot = answer.slot as usize;
            let extents = flight.take_extents(answer.slot);
            assert!(extents.iter().all(|extent| extent.length <= DISK_BYTES as u64));
            match &expected[slot] {
                Err(error) => assert_eq!(answer.error, *error),
                Ok(data) => {
                    assert_eq!(answer.error, ErrorCode::NONE);
                    let at = slot * SLOT_BYTES as usize;
                    assert!(memory[at..].starts_with(data), "other bytes were read");
                }
            }
        }
    }
    assert!(server.disk == model, "other bytes were written");
}

fn agree(nature: u8, piece: usize) -> Option<Rules> {
    let mut handshake = Handshake::with(wish(nature), extras(nature)).expect("the name is fine");
    let mut server = ServerHandshake::new(policy_of(nature >> 2));
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    loop {
        to_server.extend(handshake.to_send());
        to_client.extend(server.to_send());
        let now = piece.min(to_server.len());
        let used = server.received(&to_server[..now], &Two::default());
        to_server.drain(..used);
        match handshake.step() {
            client::Step::Read(bytes) if to_client.len() >= bytes => {
                let bytes: Vec<u8> = to_client.drain(..bytes).collect();
                // They may disagree about TLS, and about nothing else.
                if let Err(why) = handshake.received(&bytes) {
                    assert!(why.to_string().contains("TLS"), "{why}");
                    return None;
                }
            }
            client::Step::Read(_) => {}
            client::Step::StartTls => {
                handshake.tls_started();
                server.tls_started();
            }
            client::Step::Done => return server.into_agreed().map(|agreed| agreed.rules),
        }
    }
}

fn due(slot: u32, words: &[u8]) -> Due {
    let (command, flags) = match words[0] % 8 {
        0..3 => (Command::Read, CommandFlags::NONE),
        3 => (Command::Write, CommandFlags::NONE),
        4 => (Command::Write, CommandFlags::FUA),
        5 => (Command::Trim, CommandFlags::NONE),
        6 => (Command::WriteZeroes, CommandFlags::NO_HOLE),
        _ => (Command::Flush, CommandFlags::NONE),
    };
    let (offset, length) = match command {
        Command::Flush => (0, 0),
        _ => (
            u64::from(u16::from_be_bytes([words[1], words[2]])),
            u32::from(u16::from_be_bytes([words[3], words[4]])) % (SLOT_BYTES + 1),
        ),
    };
    Due { slot, command, flags, offset, length, memory_at: (slot * SLOT_BYTES) as usize }
}

/// What has to come of a request.
fn model_of(due: &Due, fill: u8, model: &mut [u8]) -> Result<Vec<u8>, ErrorCode> {
    if due.command == Command::Flush {
        return Ok(Vec::new());
    }
    let at = due.offset as usize;
    let place = model.get_mut(at..at + due.length as usize);
    let Some(place) = place.filter(|place| !place.is_empty()) else {
        let changes = matches!(due.command, Command::Write | Command::WriteZeroes);
        return Err(if changes && due.length > 0 {
            ErrorCode::NO_SPACE
        } else {
            ErrorCode::INVALID
        });
    };
    match due.command {
        Command::Read => return Ok(place.to_vec()),
        Command::Write => place.fill(fill),
        _ => place.fill(0),
    }
    Ok(Vec::new())
}
