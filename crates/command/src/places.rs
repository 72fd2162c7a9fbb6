//! Where the program keeps things: the history and the pages, after the XDG base directory
//! specification.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use rubus_draw::text::fit;
use rubus_host::files::output_file::write_output;
use rubus_host::files::own_files;
use rubus_vocabulary::checked_json::escaped;

use crate::terminal;

/// `$XDG_DATA_HOME/rubus`, or `~/.local/share/rubus`; made if it does not exist.
pub fn data_directory() -> anyhow::Result<PathBuf> {
    let directory = data_home()?.join("rubus");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make the data directory {}", directory.display()))?;
    Ok(directory)
}

/// Where the changes of this machine are kept. Not in a home directory: another user may undo a change, and a
/// change outlives the user who made it.
pub fn changes() -> PathBuf {
    let elsewhere = std::env::var_os("RUBUS_CHANGES").map(PathBuf::from);
    let elsewhere = elsewhere.filter(|path| path.is_absolute());
    elsewhere.unwrap_or_else(|| PathBuf::from("/var/lib/rubus/changes"))
}

/// Where `rubus tune` keeps what it has changed for a trial: beside the changes.
pub fn tuning() -> PathBuf {
    changes().with_file_name("tune")
}

/// Where the system keeps what is this user's alone until the last log-out, if it does.
pub fn runtime_directory() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)
}

/// What the environment has under a name.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Path of the history, whether or not it exists.
pub fn history() -> anyhow::Result<PathBuf> {
    Ok(data_directory()?.join("history.db"))
}

/// The history database where there is one; nothing is made.
pub fn present_history() -> Option<PathBuf> {
    let path = data_home().ok()?.join("rubus/history.db");
    path.exists().then_some(path)
}

/// The history of the user who called this program through sudo, where there is one: what pi measured counts when root
/// plans. It is only read.
pub fn history_of_caller() -> Option<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let name = std::env::var("SUDO_USER").ok()?;
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let (uid, home) = home_of(&users, &name)?;
    let path = home.join(".local/share/rubus/history.db");
    // A link could lead root elsewhere.
    let found = std::fs::symlink_metadata(&path).ok()?;
    let is_theirs = found.is_file() && std::os::unix::fs::MetadataExt::uid(&found) == uid;
    (is_theirs && Some(&path) != present_history().as_ref()).then_some(path)
}

/// A user's number and home in `/etc/passwd` (passwd(5)). Root is not one who called.
fn home_of(users: &str, name: &str) -> Option<(u32, PathBuf)> {
    let line = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.first() == Some(&name)).then_some(fields)
    })?;
    let uid: u32 = line.get(2)?.parse().ok()?;
    let home = PathBuf::from(*line.get(5)?);
    (uid != 0 && home.is_absolute()).then_some((uid, home))
}

fn data_home() -> anyhow::Result<PathBuf> {
    // The specification: a relative path in the variable is to be ignored.
    let absolute =
        |value: std::ffi::OsString| Some(PathBuf::from(value)).filter(|p| p.is_absolute());
    if let Some(path) = std::env::var_os("XDG_DATA_HOME").and_then(absolute) {
        return Ok(path);
    }
    let home = std::env::var_os("HOME").and_then(absolute);
    Ok(home
        .ok_or_else(|| anyhow!("neither XDG_DATA_HOME nor HOME is set, so there is no place for the history; set one of them, or use --no-history --no-html"))?
        .join(".local/share"))
}

/// Writes to standard output.
///
/// # Errors
/// When it cannot be written, on a full disk for instance. (A closed pipe ends the program quietly.)
pub fn say(text: &str) -> anyhow::Result<()> {
    // A document is for programs, however it is shown.
    let is_document = text.starts_with(['{', '[']);
    match terminal::columns_of_output().filter(|_| !is_document) {
        Some(columns) => say_as_it_is(&fit(text, columns)),
        // Texts of others are in it as they are.
        None if is_document => say_as_it_is(&escaped(text)),
        None => say_as_it_is(text),
    }
}

/// The same for what has its own layout, such as a script.
///
/// # Errors
/// As for [`say`].
pub fn say_as_it_is(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}

/// Refuses a path that cannot become a file, before anything is measured for it.
///
/// # Errors
/// When its directory does not exist.
pub fn must_be_writable(path: &Path) -> anyhow::Result<()> {
    own_files::must_be_writable(path).map_err(anyhow::Error::msg)
}

/// Writes a whole file so that a reader never sees half of it; one that is there is replaced. `-` is standard output.
pub fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return say(text);
    }
    write_output(path, text.as_bytes()).with_context(|| {
        format!("cannot write {}; is the directory there and writable?", path.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_of_who_called_sudo_is_found() {
        let users =
            "root:x:0:0:root:/root:/bin/bash\npi:x:1000:1000:,,,:/home/pi:/bin/bash\nodd:x:7:7\n";
        assert_eq!(home_of(users, "pi"), Some((1000, "/home/pi".into())));
        assert_eq!(home_of(users, "p"), None);
        assert_eq!(home_of(users, "odd"), None);
        assert_eq!(home_of(users, "root"), None);
    }
}
