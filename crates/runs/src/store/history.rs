//! The history: open, add, label, delete, list, get.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::history::{KeyFigures, RunId, RunSummary};
use rubus_host::files::output_file::link_of_another;
use rubus_vocabulary::result::Run;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Row, ToSql, Transaction,
    TransactionBehavior,
};

use crate::store::error::{StoreError, explain, is_full};
use crate::store::schema::{self, Kind, VERSION};

/// How long a call waits for another program that is writing.
const BUSY_TIMEOUT_MS: u32 = 5_000;

/// All runs of one user on one machine (or of many machines, copied together later).
pub struct History {
    pub(crate) connection: Connection,
    path: PathBuf,
    busy_timeout_ms: u32,
}

/// A run as it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    /// Its line in the list, with the headline that was shown.
    pub summary: RunSummary,
    /// The whole record.
    pub run: Run,
}

impl History {
    /// Opens the history in the file `path`, creating the file (not its directory) if there is
    /// none. A history that can be read but not written opens too; [`add`](Self::add) then fails.
    ///
    /// # Errors
    /// Whenever `path` is anything else than a healthy history of a known version; the file is
    /// then left exactly as it was.
    pub fn open(path: &Path) -> Result<History, StoreError> {
        History::open_with_timeout(path, BUSY_TIMEOUT_MS)
    }

    /// Opens another user's history, which nothing is changed of. What its owner adds in this moment may be missing.
    ///
    /// # Errors
    /// As for [`open`](Self::open); also when it is older than this version.
    pub fn open_to_read(path: &Path) -> Result<History, StoreError> {
        let explain = |error| explain(path, BUSY_TIMEOUT_MS, error);
        refuse_links_of_others(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let (connection, kind) = Connection::open_with_flags(path, flags)
            .and_then(|connection| prepare(connection, BUSY_TIMEOUT_MS))
            .map_err(explain)?;
        match kind {
            Kind::History(VERSION) => {
                Ok(History { connection, path: path.into(), busy_timeout_ms: BUSY_TIMEOUT_MS })
            }
            Kind::History(found) if found > VERSION => {
                Err(StoreError::Newer { path: path.into(), found, known: VERSION })
            }
            Kind::Fresh | Kind::History(_) => Err(StoreError::ReadOnly {
                path: path.into(),
                reason: "it is empty or of an older version, and here it is only read".into(),
            }),
            Kind::Foreign => Err(StoreError::Foreign { path: path.into() }),
        }
    }

    pub(crate) fn open_with_timeout(
        path: &Path,
        busy_timeout_ms: u32,
    ) -> Result<History, StoreError> {
        let explain = |error| explain(path, busy_timeout_ms, error);
        refuse_links_of_others(path)?;
        let (mut connection, kind) = open_file(path, busy_timeout_ms)?;
        let read_only = connection.is_readonly("main").map_err(explain)?;
        match kind {
            Kind::Foreign => {
                return Err(StoreError::Foreign { path: path.into() });
            }
            Kind::History(found) if found > VERSION => {
                return Err(StoreError::Newer { path: path.into(), found, known: VERSION });
            }
            Kind::History(version) if version == VERSION => {}
            Kind::Fresh | Kind::History(_) if read_only => {
                return Err(StoreError::ReadOnly {
                    path: path.into(),
                    reason: "it is empty or of an older version, and this user may only read it"
                        .into(),
                });
            }
            Kind::Fresh | Kind::History(_) => {
                write_ahead(&connection, busy_timeout_ms).map_err(explain)?;
                schema::migrate(&mut connection).map_err(explain)?;
            }
        }
        Ok(History { connection, path: path.into(), busy_timeout_ms })
    }

    /// Adds a run with the headline that its reader saw, and returns its number. When this
    /// returns, the run is on the disk.
    ///
    /// # Errors
    /// No space, no permission, locked for too long, a failing disk; nothing is half-added.
    pub fn add(&mut self, run: &Run, verdict_headline: &str) -> Result<RunId, StoreError> {
        self.add_labelled(run, verdict_headline, None)
    }

    /// Adds a run under a label; see [`add`](Self::add).
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub fn add_labelled(
        &mut self,
        run: &Run,
        verdict_headline: &str,
        label: Option<&str>,
    ) -> Result<RunId, StoreError> {
        let json = run
            .to_json_text()
            .map_err(|error| StoreError::NotJson { reason: error.to_string() })?;
        self.in_one(|transaction| insert(transaction, run, verdict_headline, label, &json))
    }

    /// Does several things as one: all of it is on the disk afterwards, or nothing.
    pub(crate) fn in_one<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let (path, waited) = (&self.path, self.busy_timeout_ms);
        let explain = |error| explain(path, waited, error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(explain)?;
        let done = work(&transaction).map_err(explain)?;
        transaction.commit().map_err(explain)?;
        Ok(done)
    }

    /// Gives a run a label, or takes it away.
    ///
    /// # Errors
    /// When there is no such run, or the file cannot be written.
    pub fn label(&mut self, id: RunId, label: Option<&str>) -> Result<(), StoreError> {
        let changed = self.in_one(|transaction| {
            transaction.execute("UPDATE run SET label = ?2 WHERE id = ?1", (id.0, label))
        })?;
        match changed {
            0 => Err(self.no_such_run(id)?),
            _ => Ok(()),
        }
    }

    /// Deletes runs, all of them or none. Their numbers are not given again.
    ///
    /// # Errors
    /// When one of them does not exist, or the file cannot be written.
    pub fn delete(&mut self, ids: &[RunId]) -> Result<(), StoreError> {
        for id in ids {
            if !self.has(*id)? {
                return Err(self.no_such_run(*id)?);
            }
        }
        self.in_one(|transaction| {
            for id in ids {
                // The record goes with it: ON DELETE CASCADE.
                transaction.execute("DELETE FROM run WHERE id = ?1", [id.0])?;
            }
            Ok(())
        })
    }

    /// The line of a run in the list.
    ///
    /// # Errors
    /// When there is no such run, or the file cannot be read or is damaged.
    pub fn summary(&self, id: RunId) -> Result<RunSummary, StoreError> {
        let found = self
            .connection
            .query_row("SELECT * FROM run WHERE id = ?1", [id.0], summary)
            .optional()
            .map_err(|error| self.explain(error))?;
        match found {
            Some(line) => Ok(line),
            None => Err(self.no_such_run(id)?),
        }
    }

    fn has(&self, id: RunId) -> Result<bool, StoreError> {
        self.connection
            .query_row("SELECT 1 FROM run WHERE id = ?1", [id.0], |_| Ok(()))
            .optional()
            .map(|found| found.is_some())
            .map_err(|error| self.explain(error))
    }
}

/// Inserts a run with its record as it is to be kept.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    run: &Run,
    headline: &str,
    label: Option<&str>,
    json: &str,
) -> rusqlite::Result<RunId> {
    let line = RunSummary::of(RunId(0), run, headline);
    let figures = line.figures;
    // Prepared once: an import adds many.
    let mut add = transaction.prepare_cached(
        "INSERT INTO run (started, rubus_version, suite, target, device, device_model, board, \
             elapsed_s, bytes_written, headline, doubts, sequential_read_bytes_per_second, \
             sequential_write_bytes_per_second, random_read_iops, random_write_iops, \
             commits_per_second, label) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?;
    add.execute(rusqlite::params![
        line.started,
        line.rubus_version,
        line.suite,
        line.target,
        line.device,
        line.device_model,
        line.board,
        line.elapsed_s,
        i64::try_from(line.bytes_written).unwrap_or(i64::MAX),
        line.headline,
        line.doubts,
        figures.sequential_read_bytes_per_second,
        figures.sequential_write_bytes_per_second,
        figures.random_read_iops,
        figures.random_write_iops,
        figures.commits_per_second,
        label,
    ])?;
    let id = transaction.last_insert_rowid();
    let mut keep =
        transaction.prepare_cached("INSERT INTO record (run_id, json) VALUES (?1, ?2)")?;
    keep.execute((id, json))?;
    Ok(RunId(id))
}

/// Which runs to list; what is absent holds for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Name of the suite.
    pub suite: Option<String>,
    /// A part of the target's path, of the device's name or of its model, in any case.
    pub target: Option<String>,
    /// A part of the board's model, in any case.
    pub board: Option<String>,
    pub label: Option<String>,
    /// Measured at this moment or later, RFC 3339 in UTC or its beginning ("2026-11").
    pub since: Option<String>,
}

impl History {
    /// Up to `limit` runs, the one measured last first, leaving out `offset` of them.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn list(&self, limit: u32, offset: u32) -> Result<Vec<RunSummary>, StoreError> {
        self.list_of(&Filter::default(), limit, offset)
    }

    /// The same of the runs that a filter lets through.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn list_of(
        &self,
        filter: &Filter,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<RunSummary>, StoreError> {
        self.query_list(filter, limit, offset).map_err(|error| self.explain(error))
    }

    fn query_list(
        &self,
        filter: &Filter,
        limit: u32,
        offset: u32,
    ) -> rusqlite::Result<Vec<RunSummary>> {
        let (sql, texts) = filter.sql();
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut values: Vec<&dyn ToSql> = vec![&limit, &offset];
        values.extend(texts.iter().map(|text| text as &dyn ToSql));
        let rows = statement.query_map(values.as_slice(), summary)?;
        rows.collect()
    }

    /// How many runs there are.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn count(&self) -> Result<u64, StoreError> {
        self.connection
            .query_row("SELECT count(*) FROM run", [], |row| row.get::<_, i64>(0))
            .map(|count| count.unsigned_abs())
            .map_err(|error| self.explain(error))
    }

    /// The whole record of a run.
    ///
    /// # Errors
    /// When there is no such run, when its record was written by a version that this one cannot
    /// read, or when the file cannot be read or is damaged.
    pub fn get(&self, id: RunId) -> Result<StoredRun, StoreError> {
        let found = self
            .connection
            .query_row(GET, [id.0], |row| Ok((summary(row)?, row.get("json")?)))
            .optional()
            .map_err(|error| self.explain(error))?;
        let Some((summary, json)): Option<(RunSummary, String)> = found else {
            return Err(self.no_such_run(id)?);
        };
        match Run::of_json_text(&json) {
            Ok(run) => Ok(StoredRun { summary, run }),
            Err(error) => Err(StoreError::UnreadableRun {
                path: self.path.clone(),
                id,
                rubus_version: summary.rubus_version,
                reason: error,
            }),
        }
    }

    pub(crate) fn no_such_run(&self, id: RunId) -> Result<StoreError, StoreError> {
        let range: (Option<i64>, Option<i64>) = self
            .connection
            .query_row("SELECT min(id), max(id) FROM run", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(|error| self.explain(error))?;
        Ok(StoreError::NoSuchRun {
            path: self.path.clone(),
            id,
            hint: match range {
                (Some(first), Some(last)) => format!("its runs are numbered {first} to {last}"),
                _ => "it is still empty".into(),
            },
        })
    }

    pub(crate) fn explain(&self, error: rusqlite::Error) -> StoreError {
        explain(&self.path, self.busy_timeout_ms, error)
    }
}

impl Filter {
    /// The query with its texts from ?3 on. Only the conditions that are wanted are in it, so that
    /// each finds its index.
    pub(crate) fn sql(&self) -> (String, Vec<String>) {
        const IN: &str = "instr(lower(";
        let conditions = [
            (&self.suite, "suite = ?".to_string(), ""),
            (
                &self.target,
                format!(
                    "{IN}target || ' ' || ifnull(device, '') || ' ' || ifnull(device_model, '')), lower(?"
                ),
                ")) > 0",
            ),
            (&self.board, format!("{IN}ifnull(board, '')), lower(?"), ")) > 0"),
            (&self.label, "label = ?".to_string(), ""),
            (&self.since, "started >= ?".to_string(), ""),
        ];
        let mut texts = Vec::new();
        let mut wanted = Vec::new();
        for (text, before, after) in conditions {
            if let Some(text) = text {
                texts.push(text.clone());
                wanted.push(format!("{before}{}{after}", texts.len() + 2));
            }
        }
        let condition = if wanted.is_empty() {
            String::new()
        } else {
            format!("WHERE {} ", wanted.join(" AND "))
        };
        let sql = format!(
            "SELECT * FROM run {condition}ORDER BY started DESC, id DESC LIMIT ?1 OFFSET ?2"
        );
        (sql, texts)
    }
}

const GET: &str =
    "SELECT run.*, record.json FROM run JOIN record ON record.run_id = run.id WHERE run.id = ?1";

fn summary(row: &Row) -> rusqlite::Result<RunSummary> {
    Ok(RunSummary {
        id: RunId(row.get("id")?),
        started: row.get("started")?,
        rubus_version: row.get("rubus_version")?,
        suite: row.get("suite")?,
        target: row.get("target")?,
        device: row.get("device")?,
        device_model: row.get("device_model")?,
        board: row.get("board")?,
        elapsed_s: row.get("elapsed_s")?,
        bytes_written: row.get::<_, i64>("bytes_written")?.unsigned_abs(),
        headline: row.get("headline")?,
        figures: KeyFigures {
            sequential_read_bytes_per_second: row.get("sequential_read_bytes_per_second")?,
            sequential_write_bytes_per_second: row.get("sequential_write_bytes_per_second")?,
            random_read_iops: row.get("random_read_iops")?,
            random_write_iops: row.get("random_write_iops")?,
            commits_per_second: row.get("commits_per_second")?,
        },
        doubts: row.get("doubts")?,
        label: row.get("label")?,
    })
}

/// Opens the file and looks at what it is, without changing it.
/// SQLite follows links, and root's history may be in a directory of another user (`sudo -E`).
fn refuse_links_of_others(path: &Path) -> Result<(), StoreError> {
    match link_of_another(path) {
        Some(link) => Err(StoreError::LinkOfAnother { path: path.into(), link }),
        None => Ok(()),
    }
}

fn open_file(path: &Path, busy_timeout_ms: u32) -> Result<(Connection, Kind), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let first = Connection::open_with_flags(path, flags)
        .and_then(|connection| prepare(connection, busy_timeout_ms));
    let error = match first {
        Ok((connection, kind)) => {
            refuse_a_cut_page(&connection, path, busy_timeout_ms)?;
            return Ok((connection, kind));
        }
        Err(error) => error,
    };
    let no_shared_memory =
        matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly));
    let readable = path.is_file() && std::fs::File::open(path).is_ok();
    if is_full(&error) && readable {
        return open_alone(path, flags, busy_timeout_ms);
    }
    if !no_shared_memory || !readable {
        return Err(explain(path, busy_timeout_ms, error));
    }
    // A readable file in a directory where SQLite may not create its -shm file: readable still,
    // as long as nothing waits in the -wal file.
    if log_waits(path) {
        return Err(StoreError::NeedsRecovery { path: path.into() });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(immutable_uri(path), flags)
        .and_then(|connection| prepare(connection, busy_timeout_ms))
        .map_err(|error| explain(path, busy_timeout_ms, error))
}

/// Opens a history on a full filesystem, where SQLite's shared memory finds no place: alone it needs none. Others wait
/// until this one is closed; adding still fails for want of space.
fn open_alone(
    path: &Path,
    flags: OpenFlags,
    busy_timeout_ms: u32,
) -> Result<(Connection, Kind), StoreError> {
    let explain = |error| explain(path, busy_timeout_ms, error);
    let connection = Connection::open_with_flags(path, flags).map_err(explain)?;
    connection.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(())).map_err(explain)?;
    let opened = prepare(connection, busy_timeout_ms).map_err(explain)?;
    refuse_a_cut_page(&opened.0, path, busy_timeout_ms)?;
    Ok(opened)
}

fn prepare(connection: Connection, busy_timeout_ms: u32) -> rusqlite::Result<(Connection, Kind)> {
    connection.busy_timeout(Duration::from_millis(busy_timeout_ms.into()))?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // FULL: a run that was reported as added survives a power cut in the next moment.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // One look: between two, another process may make the file a history.
    let looking = connection.unchecked_transaction()?;
    let kind = schema::kind(&looking)?;
    looking.finish()?;
    Ok((connection, kind))
}

/// SQLite notices missing pages itself, but reads the missing end of a cut one as zeros.
fn refuse_a_cut_page(
    connection: &Connection,
    path: &Path,
    busy_timeout_ms: u32,
) -> Result<(), StoreError> {
    let page_bytes: i64 = connection
        .query_row("PRAGMA page_size", [], |row| row.get(0))
        .map_err(|error| explain(path, busy_timeout_ms, error))?;
    let file_bytes = std::fs::metadata(path).map_or(0, |meta| meta.len());
    // With a write-ahead log, the page may just be on its way from there to here.
    if file_bytes % page_bytes.unsigned_abs().max(1) == 0 || log_waits(path) {
        return Ok(());
    }
    Err(StoreError::Damaged {
        path: path.into(),
        reason: format!("it ends in the middle of a page, after {file_bytes} bytes"),
    })
}

/// Whether changes wait in the write-ahead log.
fn log_waits(path: &Path) -> bool {
    std::fs::metadata(beside(path, "-wal")).is_ok_and(|wal| wal.len() > 0)
}

/// Switches to the write-ahead log, so that readers never wait for a writer. The switch does not
/// honour the busy timeout, hence the loop. A filesystem without shared memory keeps the old
/// journal, which is as safe.
fn write_ahead(connection: &Connection, busy_timeout_ms: u32) -> rusqlite::Result<()> {
    let start = Instant::now();
    loop {
        let answer = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
        match answer {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && start.elapsed().as_millis() < u128::from(busy_timeout_ms) =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

/// The file that SQLite puts beside `path`.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// `path` as a URI that promises SQLite that the file is not written to. Bytes with a meaning in URIs are escaped.
fn immutable_uri(path: &Path) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(uri, "%{byte:02x}");
        }
    }
    uri + "?immutable=1"
}
