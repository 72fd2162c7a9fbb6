//! The promises of the history, each tried: broken, foreign, newer and read-only files, a full
//! disk, locks, two writers at once, and a writer killed in the middle.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::history::RunId;
use rubus_fixtures as fixture;
use rubus_vocabulary::result::Run;
use rusqlite::Connection;
use tempfile::TempDir;

mod exchange;
mod full_disk;
mod known;

use crate::store::error::StoreError;
use crate::store::history::{Filter, History};

fn scratch() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("history.db");
    (directory, path)
}

/// A run that differs from others by its seed.
fn run(seed: u64) -> Run {
    Run { seed, ..fixture::slow_sd_card_run() }
}

fn filled(path: &Path, runs: u64) {
    let mut history = History::open(path).expect("a new history");
    for seed in 1..=runs {
        history.add(&run(seed), "headline").expect("adds");
    }
}

fn refused(path: &Path) -> StoreError {
    match History::open(path) {
        Ok(_) => panic!("{} was accepted", path.display()),
        Err(error) => error,
    }
}

#[test]
fn what_goes_in_comes_out() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    let first = history.add(&run(1), "The card is slow.").unwrap();
    let second = history.add(&fixture::failed_run(), "Nothing.").unwrap();
    drop(history);

    let history = History::open(&path).unwrap();
    assert_eq!(history.count().unwrap(), 2);
    let list = history.list(10, 0).unwrap();
    assert_eq!(
        list.iter().map(|line| line.id).collect::<Vec<_>>(),
        [second, first],
        "the newest first"
    );
    assert_eq!(history.list(1, 1).unwrap()[0].id, first);
    assert_eq!(history.list(10, 2).unwrap(), []);
    let stored = history.get(first).unwrap();
    assert_eq!(stored.run, run(1));
    assert_eq!(stored.summary, list[1]);
    assert_eq!(stored.summary.headline, "The card is slow.");
    assert_eq!(stored.summary.figures.sequential_read_bytes_per_second, Some(22.6e6));
    assert_eq!(history.get(second).unwrap().run, fixture::failed_run());
}

#[test]
fn a_number_is_never_given_twice() {
    let (_directory, path) = scratch();
    filled(&path, 3);
    Connection::open(&path).unwrap().execute("DELETE FROM run WHERE id = 3", []).unwrap();
    let mut history = History::open(&path).unwrap();
    assert_eq!(history.add(&run(4), "").unwrap(), RunId(4));
}

#[test]
fn a_missing_run_names_the_numbers_there_are() {
    let (_directory, path) = scratch();
    let empty = History::open(&path).unwrap().get(RunId(1)).unwrap_err();
    assert!(empty.to_string().contains("still empty"), "{empty}");
    filled(&path, 2);
    let missing = History::open(&path).unwrap().get(RunId(7)).unwrap_err();
    assert!(
        missing.to_string().ends_with("has no run 7: its runs are numbered 1 to 2"),
        "{missing}"
    );
}

#[test]
fn a_record_of_another_version_spoils_only_itself() {
    let (_directory, path) = scratch();
    filled(&path, 2);
    Connection::open(&path)
        .unwrap()
        .execute("UPDATE record SET json = '{\"of\": \"the future\"}' WHERE run_id = 1", [])
        .unwrap();
    let history = History::open(&path).unwrap();
    assert!(matches!(history.get(RunId(1)), Err(StoreError::UnreadableRun { id: RunId(1), .. })));
    assert_eq!(history.list(10, 0).unwrap().len(), 2);
    assert_eq!(history.get(RunId(2)).unwrap().run, run(2));
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let (_directory, path) = scratch();
    let content = "my shopping list\n".repeat(100);
    std::fs::write(&path, &content).unwrap();
    let error = refused(&path);
    assert!(matches!(error, StoreError::NotADatabase { .. }), "{error}");
    assert!(error.to_string().contains("nothing was changed. Move it away (mv "), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
}

#[test]
fn another_programs_database_is_left_alone() {
    let (_directory, path) = scratch();
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE bookmark (url TEXT); INSERT INTO bookmark VALUES ('x');")
        .unwrap();
    drop(other);
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(refused(&path), StoreError::Foreign { .. }));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_newer_history_is_left_alone() {
    let (_directory, path) = scratch();
    filled(&path, 1);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = refused(&path);
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("Use the newer rubus"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_truncated_history_is_reported_and_left_alone() {
    let (_directory, path) = scratch();
    filled(&path, 20);
    let whole = std::fs::read(&path).unwrap();
    for length in [17, 100, 4096, 5000, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = refused(&path);
        assert!(
            matches!(error, StoreError::Damaged { .. } | StoreError::NotADatabase { .. }),
            "{length} bytes: {error:?}"
        );
        assert!(error.to_string().contains("nothing was changed"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), &whole[..length], "{length} bytes");
    }
    // Put back, everything is there again.
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(History::open(&path).unwrap().list(100, 0).unwrap().len(), 20);
}

/// Any page overwritten with rubbish gives an error or untouched data, never a panic and never a
/// write.
#[test]
fn no_overwritten_page_makes_it_panic_or_write() {
    let (_directory, path) = scratch();
    filled(&path, 6);
    let whole = std::fs::read(&path).unwrap();
    let mut told = 0;
    for page in 0..whole.len() / 4096 {
        let mut broken = whole.clone();
        for (i, byte) in broken[page * 4096..][..4096].iter_mut().enumerate() {
            *byte = (i as u8).wrapping_mul(31) ^ 0xa5;
        }
        std::fs::write(&path, &broken).unwrap();
        let failed = match History::open(&path) {
            Err(_) => true,
            Ok(history) => {
                history.list(100, 0).is_err() || (1..=6).any(|id| history.get(RunId(id)).is_err())
            }
        };
        told += usize::from(failed);
        assert_eq!(std::fs::read(&path).unwrap(), broken, "page {page}");
    }
    assert!(told > 3, "only {told} overwritten pages were noticed");
}

#[test]
fn a_missing_directory_is_named() {
    let (directory, _) = scratch();
    let path = directory.path().join("no/such/history.db");
    let error = refused(&path);
    assert!(matches!(error, StoreError::CannotOpen { .. }), "{error:?}");
    assert!(error.to_string().contains("its directory: No such file"), "{error}");
    assert!(!directory.path().join("no").exists());
}

#[test]
fn a_directory_in_its_place_is_named() {
    let (_directory, path) = scratch();
    std::fs::create_dir(&path).unwrap();
    assert!(refused(&path).to_string().contains("it is a directory"));
}

#[test]
fn a_database_that_may_not_grow_keeps_what_it_has() {
    let (_directory, path) = scratch();
    filled(&path, 3);
    let mut history = History::open(&path).unwrap();
    let pages: i64 =
        history.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    history
        .connection
        .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
        .unwrap();
    let error = history.add(&run(4), "").unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert_eq!(history.count().unwrap(), 3);
    drop(history);
    filled(&path, 1);
    assert_eq!(History::open(&path).unwrap().count().unwrap(), 4);
}

#[test]
fn a_locked_history_says_so_and_stays_readable() {
    let (_directory, path) = scratch();
    filled(&path, 1);
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut history = History::open_with_timeout(&path, 50).unwrap();
    let error = history.add(&run(2), "").unwrap_err();
    assert!(matches!(error, StoreError::Locked { waited_ms: 50, .. }), "{error:?}");
    assert_eq!(history.list(10, 0).unwrap().len(), 1, "readers do not wait");
    holder.execute_batch("COMMIT").unwrap();
    history.add(&run(2), "").unwrap();
}

#[test]
fn a_list_reads_no_records_and_sorts_nothing() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    history.add(&run(1), "first").unwrap();
    // 100 000 runs: the first one copied, with a record that is long enough to hurt if it were read.
    history
        .connection
        .execute_batch(
            "BEGIN;
             INSERT INTO run
             WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
             SELECT n.i, started, rubus_version, suite, target, device, device_model, board,
                    elapsed_s, bytes_written, headline, doubts, sequential_read_bytes_per_second,
                    sequential_write_bytes_per_second, random_read_iops, random_write_iops,
                    commits_per_second, NULL
             FROM n, run WHERE run.id = 1;
             INSERT INTO record SELECT id, '{}' FROM run WHERE id > 1;
             COMMIT;",
        )
        .unwrap();
    assert_eq!(history.count().unwrap(), 100_000);
    let newest = history.list(20, 0).unwrap();
    assert_eq!((newest.len(), newest[0].id), (20, RunId(100_000)));
    let oldest = history.list(20, 99_990).unwrap();
    assert_eq!((oldest.len(), oldest[9].id), (10, RunId(1)));

    let plan = |filter: Filter| -> Vec<String> {
        let (sql, texts) = filter.sql();
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = history.connection.prepare(&explain).unwrap();
        let mut values: Vec<&dyn rusqlite::ToSql> = vec![&20, &0];
        values.extend(texts.iter().map(|text| text as &dyn rusqlite::ToSql));
        let details = statement.query_map(values.as_slice(), |row| row.get("detail"));
        details.unwrap().map(Result::unwrap).collect()
    };
    let some = |text: &str| Some(text.to_string());
    assert_eq!(plan(Filter::default()), ["SCAN run USING INDEX run_started"]);
    let since = Filter { since: some("2026-11"), ..Filter::default() };
    assert_eq!(plan(since), ["SEARCH run USING INDEX run_started (started>?)"]);
    let suite = Filter {
        suite: some("quick"),
        target: some("pi"),
        board: some("Pi 3"),
        ..Filter::default()
    };
    assert_eq!(plan(suite), ["SCAN run USING INDEX run_started"]);
    let labelled = Filter { label: some("before"), ..Filter::default() };
    assert_eq!(plan(labelled)[0], "SEARCH run USING INDEX run_label (label=?)");
    // For the curious: how long the lists take here.
    for (what, filter) in [
        ("newest", Filter::default()),
        ("no board of that name", Filter { board: some("no such"), ..Filter::default() }),
    ] {
        let start = std::time::Instant::now();
        let found = history.list_of(&filter, 20, 0).unwrap().len();
        eprintln!("{what}: {found} of 100000 in {:?}", start.elapsed());
    }
}

// ---------------------------------------------------------------------------------------------
// Other processes: this test binary started again with one of the functions below. They are the
// other halves of the tests that start them, so they are ignored, and fail on their own.

const CHILD_HISTORY: &str = "RUBUS_STORE_TEST_HISTORY";

fn child(test: &str, binary: &Path, path: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .args([&format!("store::tests::{test}"), "--exact", "--ignored", "--nocapture"])
        .args(["--test-threads", "1"])
        .env(CHILD_HISTORY, path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

fn this_binary() -> PathBuf {
    std::env::current_exe().expect("the path of the test binary")
}

fn child_history() -> PathBuf {
    std::env::var_os(CHILD_HISTORY).expect("another test starts this one").into()
}

/// Adds runs for ever and prints each number once it is promised.
#[test]
#[ignore = "a child process that another test starts"]
fn child_adds_for_ever() {
    let path = child_history();
    let mut history = History::open(&path).unwrap();
    for seed in 0.. {
        let id = history.add(&run(seed), "from the child").unwrap();
        println!("\nadded {id} {seed}");
    }
}

/// Adds forty runs.
#[test]
#[ignore = "a child process that another test starts"]
fn child_adds_forty() {
    let path = child_history();
    for seed in 0..40 {
        // Opened each time, since opening is where a new file is made.
        let mut history = History::open(&path).unwrap();
        history.add(&run(seed), "from one of two").unwrap();
    }
}

/// Tries everything on a history that this user may only read.
#[test]
#[ignore = "a child process that another test starts"]
fn child_may_only_read() {
    let path = child_history();
    let mut history = History::open(&path).unwrap();
    assert_eq!(history.list(10, 0).unwrap().len(), 2);
    assert_eq!(history.get(RunId(1)).unwrap().run, run(1));
    let error = history.add(&run(3), "").unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    println!("\nread only: fine");
}

/// Reads what a killed writer left. Showing less than was promised would be a lie, so it is either
/// all of it or a refusal.
#[test]
#[ignore = "a child process that another test starts"]
fn child_reads_what_a_killed_writer_left() {
    let path = child_history();
    match History::open(&path) {
        Ok(history) => println!("\nread {}", history.count().unwrap()),
        Err(StoreError::NeedsRecovery { .. }) => println!("\nrefused"),
        Err(error) => panic!("{error:?}"),
    }
}

/// Opens a history that does not exist in a directory where this user may not write.
#[test]
#[ignore = "a child process that another test starts"]
fn child_may_not_create() {
    let path = child_history();
    let error = refused(&path);
    assert!(matches!(error, StoreError::CannotOpen { .. }), "{error:?}");
    assert!(error.to_string().contains("not writable for this user"), "{error}");
    println!("\nnot created: fine");
}

fn promised(child: &mut Child, how_many: usize) -> Vec<(i64, u64)> {
    let stdout = child.stdout.take().expect("piped");
    let mut promised = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.expect("text");
        if let Some(numbers) = line.strip_prefix("added ") {
            let (id, seed) = numbers.split_once(' ').expect("two numbers");
            promised.push((id.parse().unwrap(), seed.parse().unwrap()));
        }
        if promised.len() >= how_many {
            break;
        }
    }
    // Kill it with the pipe still open: it is in the middle of the next run.
    child.kill().expect("kill");
    child.wait().expect("wait");
    promised
}

#[test]
fn a_killed_writer_loses_nothing_that_it_promised() {
    let (_directory, path) = scratch();
    let mut kept: Vec<(i64, u64)> = Vec::new();
    for round in 1..=6 {
        let mut writer = child("child_adds_for_ever", &this_binary(), &path).spawn().unwrap();
        let promised = promised(&mut writer, 2 + 3 * round);
        assert!(!promised.is_empty(), "round {round}: the child added nothing");
        kept.extend(promised);

        let history = History::open(&path).unwrap();
        let check: String =
            history.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        for (id, seed) in &kept {
            assert_eq!(history.get(RunId(*id)).unwrap().run.seed, *seed, "round {round}");
        }
    }
}

#[test]
fn two_writers_that_both_create_it_lose_nothing() {
    let (_directory, path) = scratch();
    let spawn = || child("child_adds_forty", &this_binary(), &path).spawn().unwrap();
    for mut writer in [spawn(), spawn()] {
        // The pipe is drained so that the writer cannot block on it.
        let stdout = writer.stdout.take().expect("piped");
        let output: Vec<String> = BufReader::new(stdout).lines().map_while(Result::ok).collect();
        assert!(writer.wait().unwrap().success(), "{output:#?}");
    }
    let history = History::open(&path).unwrap();
    assert_eq!(history.count().unwrap(), 80);
    assert!((1..=80).all(|id| history.get(RunId(id)).is_ok()));
}

#[test]
fn a_history_that_is_just_being_made_is_not_taken_for_another_programs() {
    for _ in 0..100 {
        let (_directory, path) = scratch();
        std::thread::scope(|threads| {
            let open = || History::open(&path).map(drop);
            let all: Vec<_> = (0..4).map(|_| threads.spawn(open)).collect();
            for opened in all {
                opened.join().unwrap().unwrap();
            }
        });
    }
}

fn am_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// Starts a child as a user for whom permissions count.
fn as_ordinary_user(directory: &Path, test: &str, path: &Path) -> String {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    let mut command = if am_root() {
        // The binary may lie where other users cannot read it.
        let copy = directory.join("test-binary");
        std::fs::copy(this_binary(), &copy).unwrap();
        let mut command = child(test, &copy, path);
        command.uid(NOBODY).gid(NOBODY);
        command
    } else {
        child(test, &this_binary(), path)
    };
    let output = command.current_dir("/").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn without_write_permission_it_can_still_be_read() {
    let (directory, _) = scratch();
    let inner = directory.path().join("percent % and question ?");
    std::fs::create_dir(&inner).unwrap();
    let path = inner.join("history.db");
    filled(&path, 2);
    let before = std::fs::read(&path).unwrap();
    set_mode(directory.path(), 0o755);
    set_mode(&path, 0o444);

    set_mode(&inner, 0o555);
    let text = as_ordinary_user(directory.path(), "child_may_only_read", &path);
    assert!(text.contains("read only: fine"), "{text}");
    set_mode(&inner, 0o777);
    let text = as_ordinary_user(directory.path(), "child_may_only_read", &path);
    assert!(text.contains("read only: fine"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), before);

    set_mode(&inner, 0o555);
    let new = inner.join("new.db");
    let text = as_ordinary_user(directory.path(), "child_may_not_create", &new);
    assert!(text.contains("not created: fine"), "{text}");
    assert!(!new.exists());
    set_mode(&inner, 0o755);
}

#[test]
fn a_killed_writers_last_runs_are_never_left_out_silently() {
    for with_shared_memory in [true, false] {
        let (directory, _) = scratch();
        let inner = directory.path().join("history");
        std::fs::create_dir(&inner).unwrap();
        let path = inner.join("history.db");
        let mut writer = child("child_adds_for_ever", &this_binary(), &path).spawn().unwrap();
        let promised = promised(&mut writer, 5).len() as u64;
        let log = std::fs::metadata(inner.join("history.db-wal")).unwrap();
        assert!(log.len() > 0, "the writer left nothing to recover");
        if !with_shared_memory {
            std::fs::remove_file(inner.join("history.db-shm")).unwrap();
        }
        for file in std::fs::read_dir(&inner).unwrap() {
            set_mode(&file.unwrap().path(), 0o444);
        }
        set_mode(directory.path(), 0o755);
        set_mode(&inner, 0o555);
        let text =
            as_ordinary_user(directory.path(), "child_reads_what_a_killed_writer_left", &path);
        set_mode(&inner, 0o755);
        let read = text.lines().find_map(|line| line.strip_prefix("read "));
        match read {
            Some(count) => assert!(count.parse::<u64>().unwrap() >= promised, "{text}"),
            None => assert!(text.contains("refused"), "{text}"),
        }
    }
}

#[test]
fn another_users_history_is_read_and_never_changed() {
    let (_directory, path) = scratch();
    let mut own = History::open(&path).unwrap();
    let id = own.add(&run(1), "").unwrap();
    let mut other = History::open_to_read(&path).unwrap();
    assert_eq!(other.get(id).unwrap().run.seed, 1);
    assert!(other.add(&run(2), "").is_err());
    drop((own, other));
    let empty = path.with_file_name("empty.db");
    std::fs::write(&empty, b"").unwrap();
    assert!(History::open_to_read(&empty).is_err());
    assert_eq!(std::fs::metadata(&empty).unwrap().len(), 0);
    assert!(History::open_to_read(&path.with_file_name("none.db")).is_err());
}
