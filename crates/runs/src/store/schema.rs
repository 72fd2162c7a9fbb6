//! The tables and how an older file becomes a current one.
//!
//! `application_id` says that a file is a history; `user_version` counts the migrations that it
//! has seen. A migration is one SQL text, applied in one transaction, and never changed once
//! released.

use rusqlite::{Connection, TransactionBehavior};

/// "Rubs" in ASCII.
pub(crate) const APPLICATION_ID: i64 = 0x5275_6273;

/// The summary and the full record are separate tables: a list then reads only short rows, however
/// long the records are. AUTOINCREMENT: a number is never given twice.
const MIGRATIONS: [&str; 2] = [
    "
    CREATE TABLE run (
        id                                INTEGER PRIMARY KEY AUTOINCREMENT,
        started                           TEXT NOT NULL,
        rubus_version                     TEXT NOT NULL,
        suite                             TEXT NOT NULL,
        target                            TEXT NOT NULL,
        device                            TEXT,
        device_model                      TEXT,
        board                             TEXT,
        elapsed_s                         REAL NOT NULL,
        bytes_written                     INTEGER NOT NULL,
        headline                          TEXT NOT NULL,
        doubts                            INTEGER NOT NULL,
        sequential_read_bytes_per_second  REAL,
        sequential_write_bytes_per_second REAL,
        random_read_iops                  REAL,
        random_write_iops                 REAL,
        commits_per_second                REAL
    ) STRICT;
    CREATE TABLE record (
        run_id INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
        json   TEXT NOT NULL
    ) STRICT;
",
    // The list is ordered by the moment of measuring, which after an import is not that of the
    // numbers.
    "
    ALTER TABLE run ADD COLUMN label TEXT;
    CREATE INDEX run_started ON run (started);
    CREATE INDEX run_label ON run (label) WHERE label IS NOT NULL;
",
];

/// The version that a current file has.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// What a file turned out to be.
#[derive(Debug, PartialEq)]
pub(crate) enum Kind {
    /// An empty database: about to become a history.
    Fresh,
    /// A history of this schema version.
    History(i64),
    /// A database of another program.
    Foreign,
}

/// Looks at a file without changing it.
pub(crate) fn kind(connection: &Connection) -> rusqlite::Result<Kind> {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let application_id = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    if application_id == APPLICATION_ID {
        return Ok(Kind::History(version));
    }
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    if application_id == 0 && version == 0 && tables == 0 {
        return Ok(Kind::Fresh);
    }
    Ok(Kind::Foreign)
}

/// Brings a fresh or older file up to [`VERSION`], all or nothing. A file that another process
/// has brought up meanwhile, or that is current or newer, is left alone.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version = match kind(&transaction)? {
        Kind::Fresh => 0,
        Kind::History(version) => version,
        Kind::Foreign => return Ok(()),
    };
    for (done, sql) in MIGRATIONS.iter().enumerate() {
        if (done as i64) >= version {
            transaction.execute_batch(sql)?;
        }
    }
    if version < VERSION {
        transaction.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"
        ))?;
    }
    transaction.commit()
}
