//! Opening a clone's file: what it holds, what the memory that outlived the last server adds to that, and what was lost.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use super::clone::{CloneDisk, Records, new_locks};
use super::format::{
    BLOCK_BYTES, GoldenId, Header, Kind, Layout, PAGE_WORDS, Page, SLOT_BYTES, Slot, later,
};
use super::gate::Gate;
use super::present::Present;
use super::store::{Golden, Memory, PREFIX, Store, Words};
use crate::identity::{Identity, Uuid};
use crate::server::place::Place;

/// Why a clone cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file is something else.
    #[error("it is no clone")]
    NoClone,
    /// A later version of this program made it.
    #[error(
        "it has version {0} of the format, which this program does not know; use the one that made it"
    )]
    Version(u32),
    /// It does not hold what was written.
    #[error(
        "it is damaged ({0}), so it is unknown which of its blocks were written; look at the disk it is on, then \
         delete it, or restore it from a backup"
    )]
    Damaged(String),
    /// The image below it is another one now.
    #[error("{0}")]
    GoldenChanged(String),
    /// The device failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What there is to open a clone with.
pub struct Surroundings<'a> {
    /// The golden image.
    pub golden: Arc<dyn Golden>,
    /// By what it is recognised.
    pub golden_id: &'a GoldenId,
    /// Memory that outlives the server.
    pub memory: Arc<dyn Memory + Send + Sync>,
    /// Where the clone's file is; nothing where its memory need not go with it.
    pub place: Option<Place>,
    /// A new random number.
    pub random: &'a dyn Fn() -> io::Result<Uuid>,
}

/// What a header says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The header that holds.
    pub header: Header,
    /// Sequence number of the header; the higher of the two slots counts.
    pub sequence: u64,
}

/// Reads the header.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn read_header(store: &impl Store) -> Result<Found, OpenError> {
    let slots = [read_slot(store, 0)?, read_slot(store, 1)?];
    let slots = slots.map(|slot| Header::decode(&slot));
    let mut is_torn = false;
    for slot in &slots {
        match slot {
            Slot::Version(version) => return Err(OpenError::Version(*version)),
            Slot::Torn => is_torn = true,
            Slot::Empty | Slot::Valid(..) => {}
        }
    }
    match later(slots) {
        Some((_, sequence, header)) => {
            let (is, should_be) = (store.length()?, header.layout().file_bytes);
            if is < should_be {
                return Err(OpenError::Damaged(format!(
                    "it was cut off: it has {is} bytes and should have {should_be}"
                )));
            }
            Ok(Found { header, sequence })
        }
        None if is_torn && starts_like_one(store)? => {
            Err(OpenError::Damaged("neither of its headers is whole".into()))
        }
        None => Err(OpenError::NoClone),
    }
}

fn starts_like_one(store: &impl Store) -> io::Result<bool> {
    let slots = [read_slot(store, 0)?, read_slot(store, 1)?];
    Ok(slots.iter().any(|slot| slot.starts_with(b"rubus clone file")))
}

fn read_slot(store: &impl Store, slot: usize) -> io::Result<Box<[u8; SLOT_BYTES]>> {
    let mut bytes = Box::new([0; SLOT_BYTES]);
    store.read_at(Header::slot_at(slot), &mut bytes[..])?;
    Ok(bytes)
}

/// Writes the header of a new clone, which is not durable yet.
///
/// # Errors
/// If the header cannot be written.
pub fn write_new(store: &impl Store, header: &Header) -> io::Result<()> {
    let slot = header.encode(1);
    store.write_at(Header::slot_at(1), &mut [io::IoSlice::new(&slot[..])])
}

/// A page of the map as the file has it.
struct Loaded {
    place: Option<(usize, u64)>,
    page: Option<Page>,
    /// One of its slots is not whole and has to be written.
    is_torn: bool,
}

fn load_page(
    store: &impl Store,
    header: &Header,
    layout: &Layout,
    number: usize,
) -> Result<Loaded, OpenError> {
    let mut slots = Vec::new();
    for slot in 0..2 {
        let mut bytes = Box::new([0; SLOT_BYTES]);
        store.read_at(layout.page_at(number, slot), &mut bytes[..])?;
        slots.push(Page::decode(&bytes, header.clone, header.generation, number as u32));
    }
    let torn = slots.iter().filter(|slot| **slot == Slot::Torn).count();
    // A file that was closed has no torn slot; in one that was not, the last that was written may be.
    if torn == 2 || torn == 1 && !header.in_use {
        return Err(OpenError::Damaged(format!("page {number} of its map is not whole")));
    }
    let has_empty = slots.contains(&Slot::Empty);
    let [first, second] = [slots.remove(0), slots.remove(0)];
    let (place, page) = match later([first, second]) {
        // The slots are written in turn: before the second time both have been.
        Some((_, sequence, _)) if sequence > 1 && has_empty => {
            return Err(OpenError::Damaged(format!("half of page {number} of its map is missing")));
        }
        Some((place, sequence, page)) => (Some((place, sequence)), Some(page)),
        None => (None, None),
    };
    Ok(Loaded { place, page, is_torn: torn == 1 })
}

/// Whether nothing is missing of the map that there was when the clone was closed last.
fn check_note(header: &Header, pages: &[Option<(usize, u64)>]) -> Result<(), OpenError> {
    let note = header.note.as_ref();
    if note.is_none_or(|note| note.fits(pages, !header.in_use)) {
        Ok(())
    } else {
        Err(OpenError::Damaged(
            "pages of its map are missing that were there when it was closed".into(),
        ))
    }
}

/// How many bytes of its disk a file has of its own, as far as its map says; nothing where it shares all of it.
///
/// # Errors
/// When the map is damaged or cannot be read.
pub fn own_bytes(store: &impl Store, header: &Header) -> Result<Option<u64>, OpenError> {
    if header.kind == Kind::Shared {
        return Ok(None);
    }
    let layout = header.layout();
    let mut blocks = 0;
    let mut places = Vec::with_capacity(layout.pages);
    for number in 0..layout.pages {
        let loaded = load_page(store, header, &layout, number)?;
        places.push(loaded.place);
        if let Some(page) = loaded.page {
            blocks += page.words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
    }
    check_note(header, &places)?;
    Ok(Some(blocks * BLOCK_BYTES))
}

/// The name of the memory that belongs to a clone until it is closed or the boot ends.
pub fn memory_name(clone: Uuid, epoch: Uuid) -> String {
    format!("{PREFIX}{clone}-{epoch}")
}

/// Opens a clone; afterwards its file says that it is in use.
///
/// # Errors
/// If the file is no valid clone, its golden image has changed, or an I/O operation fails.
pub fn open<S: Store>(store: S, around: &Surroundings<'_>) -> Result<CloneDisk<S>, OpenError> {
    let Found { mut header, sequence } = read_header(&store)?;
    if header.kind == Kind::Map {
        compare(&header.golden, around.golden_id).map_err(OpenError::GoldenChanged)?;
    }
    let layout = header.layout();
    let count = Present::words_of(layout.pages).max(1);
    let old_name = memory_name(header.clone, header.epoch);
    let survived = if header.in_use {
        around.memory.find(&old_name, count, around.place.as_ref())
    } else {
        None
    };
    if header.in_use && survived.is_none() {
        around.memory.forget(&old_name);
        header.epoch = (around.random)()?;
    }
    let name = memory_name(header.clone, header.epoch);
    let (words, outlives) = match survived {
        Some(words) => (words, true),
        None => match around.memory.create(&name, count, around.place.as_ref()) {
            Ok(words) => (words, true),
            // Without it the next server that finds this one killed says that something was lost.
            Err(_) => (Words::zeros(count), false),
        },
    };
    let present = Present::new(words);
    let mut pages = Vec::with_capacity(layout.pages);
    for number in 0..layout.pages {
        let loaded = load_page(&store, &header, &layout, number)?;
        let page = loaded
            .page
            .unwrap_or_else(|| Page { number: number as u32, words: Box::new([0; PAGE_WORDS]) });
        present.add(&page);
        if loaded.is_torn || !present.is_same(&page) {
            present.mark(number);
        }
        pages.push(loaded.place);
    }
    check_note(&header, &pages)?;
    header.in_use = true;
    let disk = CloneDisk {
        identity: Identity {
            boot: header.epoch,
            export: header.clone,
            generation: header.generation,
            sync: false,
        },
        size: header.golden.size_bytes,
        store,
        golden: around.golden.clone(),
        layout,
        // Where everything is shared, the one word in memory only says that the boot is the same.
        present: (header.kind == Kind::Map).then_some(present),
        memory: outlives.then(|| (around.memory.clone(), name)),
        is_fleeting: false,
        locks: new_locks(),
        gate: Gate::default(),
        is_broken: AtomicBool::new(false),
        lost: OnceLock::new(),
        records: Mutex::new(Records { header, header_sequence: sequence, pages }),
    };
    disk.say_in_use()?;
    Ok(disk)
}

/// A clone that goes with this server: nothing of it is ever found again.
///
/// # Errors
/// Where there is no random number.
pub fn fleeting<S: Store>(
    store: S,
    kind: Kind,
    around: &Surroundings<'_>,
) -> io::Result<CloneDisk<S>> {
    let layout = Layout::of(around.golden_id.size_bytes, kind);
    let (clone, epoch) = ((around.random)()?, (around.random)()?);
    let header = Header {
        clone,
        generation: 1,
        epoch,
        kind,
        in_use: true,
        golden: around.golden_id.clone(),
        golden_path: Vec::new(),
        note: None,
    };
    Ok(CloneDisk {
        identity: Identity { boot: epoch, export: clone, generation: 1, sync: false },
        size: around.golden_id.size_bytes,
        store,
        golden: around.golden.clone(),
        layout,
        present: (kind == Kind::Map)
            .then(|| Present::new(Words::zeros(Present::words_of(layout.pages)))),
        records: Mutex::new(Records {
            header,
            header_sequence: 0,
            pages: vec![None; layout.pages],
        }),
        memory: None,
        is_fleeting: true,
        locks: new_locks(),
        gate: Gate::default(),
        is_broken: AtomicBool::new(false),
        lost: OnceLock::new(),
    })
}

/// Whether an image is the one that a clone was made of.
///
/// # Errors
/// In words, with what can be done.
pub fn compare(before: &GoldenId, now: &GoldenId) -> Result<(), String> {
    if before.size_bytes != now.size_bytes {
        return Err(format!(
            "the golden image has {} bytes and had {} when this clone was made; bring the old image back, or reset \
             the clone",
            now.size_bytes, before.size_bytes
        ));
    }
    if before.fingerprint != now.fingerprint {
        return Err(
            "the golden image has other contents than when this clone was made; bring the old image back, or reset \
             the clone"
                .into(),
        );
    }
    if before.changed_ns != now.changed_ns {
        let time = |ns: Option<i128>| match ns {
            Some(ns) => {
                format!("{}.{:09}", ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000))
            }
            None => "none".into(),
        };
        return Err(format!(
            "the golden image was changed (time {}) after this clone was made (time {}); bring the old image back, or \
             reset the clone; if you know that the contents are the same, set its time back with \
             'touch --date=@{} IMAGE'",
            time(now.changed_ns),
            time(before.changed_ns),
            time(before.changed_ns)
        ));
    }
    Ok(())
}
