//! The built program, driven from outside, with a home of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

/// The program: `RUBUS_BIN`, or else one that is built now.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(given) = std::env::var_os("RUBUS_BIN") {
            let path = PathBuf::from(given);
            let path = path.canonicalize().unwrap_or(path);
            assert!(path.is_file(), "RUBUS_BIN={} is no file", path.display());
            return path;
        }
        build()
    })
}

fn build() -> PathBuf {
    // This test is <target>/<profile>/deps/<name>.
    let own = std::env::current_exe().expect("a test knows its own file");
    let target = own.ancestors().nth(3).expect("a test lies in a target directory");
    let status = rubus_lab::product::cargo()
        .args(["build", "--release", "--package", "rubus", "--target-dir"])
        .arg(target)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .status()
        .expect("cargo starts");
    assert!(status.success(), "the build failed");
    target.join("release/rubus")
}

/// A home of its own for the program: its history, pages and sockets go there and nowhere else.
pub struct Home {
    directory: TempDir,
}

impl Home {
    /// An empty one, which every user may write into.
    pub fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let directory = TempDir::with_prefix("rubus-lab-home-").expect("a temporary directory");
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o1777))
            .expect("the permissions can be set");
        Home { directory }
    }

    /// Path of the home directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The history database, whether or not it exists.
    pub fn database(&self) -> PathBuf {
        self.path().join("rubus/history.db")
    }

    /// Gives a command this home.
    pub fn adopt(&self, command: &mut Command) {
        command
            .env("XDG_DATA_HOME", self.path())
            .env("HOME", self.path())
            .env("XDG_RUNTIME_DIR", self.path())
            .env("NO_COLOR", "1")
            .env("LC_ALL", "C")
            .current_dir(self.path());
    }

    /// A command that starts the program.
    pub fn command(&self) -> Command {
        let mut command = Command::new(binary());
        self.adopt(&mut command);
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Answer {
        Answer::of(self.command().args(arguments).output().expect("the program starts"))
    }

    /// How many runs the history has.
    pub fn runs(&self) -> usize {
        let answer = self.run(&["history", "--json", "-n", "1000"]);
        assert_eq!(answer.status, Some(0), "{answer}");
        let list: Value = serde_json::from_str(&answer.stdout).expect("the history is JSON");
        let runs = list.as_array().or_else(|| list["runs"].as_array());
        runs.unwrap_or_else(|| panic!("no list of runs in {list}")).len()
    }
}

/// What the program said.
#[derive(Debug)]
pub struct Answer {
    /// Its exit status; none when a signal ended it.
    pub status: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Answer {
    /// From the output of a finished program.
    pub fn of(output: Output) -> Self {
        Answer {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Whether standard output has these words, wherever its lines end.
    pub fn says(&self, words: &str) -> bool {
        let output: Vec<&str> = self.stdout.split_whitespace().collect();
        output.join(" ").contains(words)
    }

    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("standard output is not JSON: {error}\n{self}"))
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "exit status {:?}", self.status)?;
        writeln!(f, "--- standard output\n{}", self.stdout)?;
        write!(f, "--- standard error\n{}", self.stderr)
    }
}
