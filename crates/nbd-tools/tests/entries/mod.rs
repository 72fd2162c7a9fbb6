//! The door through which a stranger's journal of a copy comes in, as a function of bytes alone. The fuzz target and the test
//! `corpus` go through it. What breaks a promise panics.

use rubus_nbd_tools::copy::journal;

/// The journal of a copy, which may be damaged or something else: whatever is understood of it is written again as it is.
pub fn copy_journal(data: &[u8]) {
    let Ok(journal) = journal::parse(data) else {
        return;
    };
    assert!(journal.length <= data.len());
    let sections = journal.head.grid.sections();
    assert!(sections <= 1 << 18, "a book of {sections} sections");
    assert!(journal.done.iter().all(|(number, _)| *number < sections));
    let records: String = journal.done.iter().map(|(n, d)| journal::record(*n, *d)).collect();
    // Numbers may have been written with zeros in front, which no program of ours does.
    if data[..journal.length].ends_with(records.as_bytes()) {
        let head = journal.length - records.len();
        let again = journal::parse(&data[..head]).expect("its head");
        assert_eq!(again.head, journal.head);
    }
}
