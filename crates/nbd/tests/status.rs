//! What takes space and what reads as zeros, asked for with lengths of 32 and of 64 bits; and a client whose server is silent.

use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use rubus_host::block::image::Image;
use rubus_host::net::Stream;
use rubus_host::net::listening::Listener;
use rubus_nbd::client::{Client, ClientError, Due, Extras, Offer, Patience, Wish, agree_with};
use rubus_nbd::server::export_table::{ExportTable, Offered, OneDisk};
use rubus_nbd::server::file_disk::FileDisk;
use rubus_nbd::server::listener::{Server, Settings};
use rubus_nbd::wire::{AllocationFlags, Command, CommandFlags, ErrorCode, Extent};

const PATIENCE: Duration = Duration::from_secs(20);
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// An image with data in two places, far from one another.
const SIZE: u64 = 16 * GIB;
const DATA: [u64; 2] = [MIB, 9 * GIB];

fn wish() -> Wish {
    Wish { export: "sparse".into(), tls: false, structured_replies: true }
}

fn with_server(extras: Extras, ask: impl FnOnce(Client<Stream>, Offer)) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("image");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(SIZE).expect("sparse files");
    for at in DATA {
        file.write_all_at(&vec![7; MIB as usize], at).expect("room");
    }
    let image = Arc::new(Image::open(&path, true).expect("an image"));
    let exports = ExportTable::new(vec![Offered {
        name: "sparse".into(),
        words: String::new(),
        source: Box::new(OneDisk {
            disk: Arc::new(FileDisk::new(image)),
            identity: None,
            sync: false,
        }),
    }]);
    let socket = directory.path().join("socket");
    let listener = Listener::unix(&socket).expect("a socket");
    let server = Server::new(Arc::new(exports), Settings::default(), |_| {}).expect("a server");
    let runs = Arc::clone(&server);
    let thread = std::thread::spawn(move || runs.run(vec![listener]));
    let stream = UnixStream::connect(&socket).expect("it listens");
    let stream = Stream::connected(stream.into(), "socket".into());
    let (stream, offer) = agree_with(stream, wish(), extras, PATIENCE, Ok).expect("they agree");
    ask(Client::new(stream, &offer), offer);
    server.stop();
    thread.join().expect("no panic").expect("it ends well");
}

fn status(client: &mut Client<Stream>, offset: u64, length: u64) -> Result<Vec<Extent>, ErrorCode> {
    client.queue_status(3, offset, length).expect("a free slot");
    let mut answers = Vec::new();
    client.exchange_within(&[], &mut [], &mut answers, PATIENCE).expect("it goes on");
    match answers[0].error {
        ErrorCode::NONE => Ok(client.take_extents(3)),
        error => Err(error),
    }
}

fn hole(extent: &Extent) -> bool {
    AllocationFlags(extent.flags).has(AllocationFlags::HOLE.with(AllocationFlags::ZERO))
}

#[test]
fn with_extended_headers_one_question_covers_the_whole_disk() {
    let extras = Extras { extended_headers: true, allocation: true, fence: None };
    with_server(extras, |mut client, offer| {
        assert!(offer.extended_headers && offer.structured_replies);
        assert!(offer.allocation.is_some());
        let told = status(&mut client, 0, SIZE).expect("it tells");
        let told: Vec<(u64, bool)> = told.iter().map(|e| (e.length, hole(e))).collect();
        let expected = [
            (MIB, true),
            (MIB, false),
            (DATA[1] - 2 * MIB, true),
            (MIB, false),
            (SIZE - DATA[1] - MIB, true),
        ];
        assert_eq!(told, expected);
        // What is read and written goes through the same headers.
        let mut memory = vec![9; 2 * MIB as usize];
        let due = |slot, command, offset| Due {
            slot,
            command,
            flags: CommandFlags::NONE,
            offset,
            length: MIB as u32,
            memory_at: slot as usize * MIB as usize,
        };
        let mut answers = Vec::new();
        let write = due(1, Command::Write, 4 * GIB);
        let read = due(0, Command::Read, DATA[1] - MIB / 2);
        for request in [write, read] {
            client
                .exchange_within(&[request], &mut memory, &mut answers, PATIENCE)
                .expect("it goes on");
        }
        assert!(answers.iter().all(|answer| answer.error == ErrorCode::NONE));
        let (zeros, sevens) = memory[..MIB as usize].split_at(MIB as usize / 2);
        assert!(zeros.iter().all(|b| *b == 0) && sevens.iter().all(|b| *b == 7));
        let told = status(&mut client, 4 * GIB, MIB).expect("it tells");
        assert!(!hole(&told[0]), "just written");
        assert_eq!(status(&mut client, SIZE, MIB), Err(ErrorCode::INVALID), "beyond the end");
        client.disconnect();
    });
}

#[test]
fn without_them_a_question_has_32_bits() {
    let extras = Extras { extended_headers: false, allocation: true, fence: None };
    with_server(extras, |mut client, offer| {
        assert!(!offer.extended_headers);
        assert!(client.queue_status(3, 0, 4 * GIB).is_err());
        let told = status(&mut client, 2 * MIB, 4 * GIB - MIB).expect("it tells");
        assert!(told.iter().all(hole), "{told:?}");
        let all: u64 = told.iter().map(|extent| extent.length).sum();
        assert_eq!(all, 4 * GIB - MIB);
    });
}

#[test]
fn a_context_that_was_not_asked_for_cannot_be_asked_about() {
    with_server(Extras::default(), |mut client, offer| {
        assert_eq!(offer.allocation, None);
        assert!(client.queue_status(3, 0, MIB).is_err());
    });
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let stream = Stream::unix(&path).expect("it listens");
    let _silent = listener.accept().expect("a client");
    let offer = Offer {
        style: rubus_nbd::client::Style::Fixed,
        size_bytes: MIB,
        flags: Default::default(),
        block_sizes: None,
        structured_replies: true,
        extended_headers: false,
        allocation: None,
        description: None,
        fenced: false,
    };
    let mut client = Client::new(stream, &offer);
    client.set_patience(Patience { server: Duration::from_secs(1), ..Patience::OF_A_DISK });
    let mut memory = vec![0; 8 * MIB as usize];
    let due = |command, length| Due {
        slot: 0,
        command,
        flags: CommandFlags::NONE,
        offset: 0,
        length,
        memory_at: 0,
    };
    let error = client.exchange(&[due(Command::Read, 512)], &mut memory, &mut Vec::new());
    assert!(matches!(error, Err(ClientError::Silent(1))), "{error:?}");
    // Also when it takes nothing: this is more than a socket holds.
    let write = Due { slot: 1, ..due(Command::Write, 8 << 20) };
    let error = client.exchange(&[write], &mut memory, &mut Vec::new());
    assert!(matches!(error, Err(ClientError::Silent(1))), "{error:?}");
}
