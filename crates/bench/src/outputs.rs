//! Where finished runs go: the history, the page, the terminal, files. One way for all verbs that
//! measure, here or elsewhere.

use std::path::{Path, PathBuf};

use anyhow::Context;
use rubus_command::{Exit, General, Keeping, Terminal, message, places};
use rubus_runs::record::{self, Record};
use rubus_runs::run_document::run_json;
use rubus_runs::shown::shown_run;
use rubus_verdict::text::checkup::Detail;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::result::Run;

use crate::measuring::{self, Kept, Measured};

/// Where the user wants the results besides the terminal.
#[derive(Clone, Copy, Debug)]
pub struct ResultOutputs<'a> {
    /// The runs as JSON, to this file or (`-`) to standard output.
    pub json: Option<&'a Path>,
    /// The same in fio's format.
    pub fio_json: Option<&'a Path>,
    /// History and page.
    pub keeping: &'a Keeping,
}

impl ResultOutputs<'_> {
    /// The files that results go to, `-` for standard output.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let tables = [&self.keeping.kept.csv, &self.keeping.kept.markdown].map(Option::as_deref);
        [self.json, self.fio_json].into_iter().chain(tables).flatten()
    }

    /// Whether standard output carries machine-readable results and so no text.
    pub fn to_stdout(self) -> bool {
        self.files().any(|path| path == Path::new("-"))
    }
}

/// Minutes of measuring must not end at an output that was never possible.
///
/// # Errors
/// When a file's directory does not exist, or two results would go to standard output.
pub fn check(wanted: &ResultOutputs<'_>) -> anyhow::Result<()> {
    if let Some(path) = wanted.fio_json.filter(|path| is_directory(path)) {
        std::fs::create_dir_all(path)
            .with_context(|| format!("cannot make the directory {}", path.display()))?;
    }
    let is_file = |path: &&Path| Some(*path) != wanted.fio_json || !is_directory(path);
    for path in wanted.files().chain(wanted.keeping.html.as_deref()).filter(is_file) {
        places::must_be_writable(path)?;
    }
    anyhow::ensure!(
        wanted.files().filter(|path| *path == Path::new("-")).count() < 2,
        "only one of --json, --fio-json, --csv and --markdown can go to standard output; \
         give the others a file"
    );
    Ok(())
}

/// Takes finished runs, one after the other, and brings each to all its places at once, so that a
/// later failure loses nothing.
pub struct Outputs<'a> {
    general: &'a General,
    wanted: ResultOutputs<'a>,
    /// How many runs there will be if all goes well: JSON is one object for one and a list for several.
    expected: usize,
    /// All runs so far, by machine.
    all: Vec<Taken>,
    exit: Exit,
    /// Whether each run is shown on the terminal.
    has_text: bool,
    /// Whether the runs are shown and written together at the end: after each of them, it would
    /// take the square of their number.
    is_collecting: bool,
}

/// A run that was kept.
pub struct Taken {
    /// Number of the machine.
    pub machine: usize,
    pub measured: Measured,
    /// In the history.
    pub number: Option<i64>,
}

impl<'a> Outputs<'a> {
    /// Outputs for `expected` runs.
    pub fn new(general: &'a General, wanted: ResultOutputs<'a>, expected: usize) -> Self {
        Outputs {
            general,
            wanted,
            expected,
            all: Vec::new(),
            exit: Exit::Fine,
            has_text: true,
            is_collecting: false,
        }
    }

    /// Keeps each run, and shows and writes them together at the end.
    pub fn collecting(mut self) -> Self {
        self.is_collecting = true;
        self.without_text()
    }

    /// Keeps the runs without showing them.
    pub fn without_text(mut self) -> Self {
        self.has_text = false;
        self
    }

    /// Keeps and shows one run.
    ///
    /// # Errors
    /// When standard output or a file cannot be written.
    pub fn take(&mut self, measured: Measured) -> anyhow::Result<()> {
        self.take_from(0, measured)
    }

    /// The same with a run of the machine of this number; files have the runs in this order.
    ///
    /// # Errors
    /// When standard output or a file cannot be written.
    pub fn take_from(&mut self, machine: usize, measured: Measured) -> anyhow::Result<()> {
        if self.general.records {
            return self.hand_over(measured);
        }
        // The page that was asked for is that of all together.
        let mut keeping = self.wanted.keeping.clone();
        if self.is_collecting {
            keeping.html = None;
        }
        let kept = measuring::keep(&measured, &keeping);
        if self.has_text && !self.wanted.to_stdout() {
            let style = Terminal::of(self.general).style();
            let detail = if self.wanted.keeping.verbose { Detail::All } else { Detail::Answer };
            let (run, verdict) = (&measured.run, &measured.verdict);
            places::say(&rubus_runs::text::run::render(run, verdict, detail, style))?;
        }
        let is_quiet = self.general.quiet || self.is_collecting;
        if tell(is_quiet, &measured, &kept) != Exit::Fine {
            self.exit = Exit::AnswerIsNo;
        }
        let number = kept.number;
        let taken = Taken { machine, measured, number };
        if self.is_collecting {
            self.all.push(taken);
            return Ok(());
        }
        let place = self.all.partition_point(|before| before.machine <= machine);
        self.all.insert(place, taken);
        self.write(|path| path != Path::new("-"))
    }

    /// Puts collected runs in the order of the machines.
    pub fn sort(&mut self) {
        self.all.sort_by_key(|taken| taken.machine);
    }

    /// The runs, by machine.
    pub fn all(&self) -> &[Taken] {
        &self.all
    }

    /// Shows the runs of several machines beside one another.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn compare(&self) -> anyhow::Result<()> {
        let runs: Vec<_> = self.all.iter().map(|taken| &taken.measured.run).collect();
        if self.wanted.to_stdout() || runs.len() < 2 {
            return Ok(());
        }
        let style = Terminal::of(self.general).style();
        places::say(&rubus_runs::text::side_by_side::render(&runs, style))
    }

    /// The runs of one machine, as they came.
    pub fn runs_of(&self, machine: usize) -> Vec<&Run> {
        let own = self.all.iter().filter(|taken| taken.machine == machine);
        own.map(|taken| &taken.measured.run).collect()
    }

    /// Gives a run to the rubus that asked for it, whose business all the rest is.
    fn hand_over(&mut self, measured: Measured) -> anyhow::Result<()> {
        if tell(self.general.quiet, &measured, &Kept::default()) != Exit::Fine {
            self.exit = Exit::AnswerIsNo;
        }
        record::send(&Record::Run(Box::new(measured.run)));
        Ok(())
    }

    /// Writes what goes to standard output as a whole, also when fewer runs came than were expected,
    /// and tells how it all ended.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn finish(self) -> anyhow::Result<Exit> {
        if !self.all.is_empty() {
            self.write(|path| self.is_collecting || path == Path::new("-"))?;
        }
        Ok(self.exit)
    }

    fn write(&self, due: impl Fn(&Path) -> bool) -> anyhow::Result<()> {
        // Runs that were collected are in a document of their own.
        let json = self.wanted.json.filter(|path| due(path) && !self.is_collecting);
        if let Some(path) = json {
            places::write_whole(path, &self.json()?)?;
        }
        if let Some(path) = self.wanted.fio_json.filter(|path| due(path)) {
            let runs: Vec<_> = self.all.iter().map(|taken| &taken.measured.run).collect();
            if is_directory(path) {
                for (name, text) in rubus_fio::json::render_each(&runs) {
                    places::write_whole(&path.join(name), &(text + "\n"))?;
                }
            } else {
                places::write_whole(path, &(rubus_fio::json::render(&runs) + "\n"))?;
            }
        }
        let due = |path: &Option<PathBuf>| path.clone().filter(|path| due(path));
        if let Some(path) = due(&self.wanted.keeping.kept.csv) {
            let runs: Vec<_> = self.all.iter().map(|taken| &taken.measured.run).collect();
            places::write_whole(&path, &rubus_runs::text::run::csv::render(&runs))?;
        }
        if let Some(path) = due(&self.wanted.keeping.kept.markdown) {
            let mut texts = Vec::new();
            for Taken { measured, .. } in &self.all {
                let (run, verdict) = shown_run(&measured.run, self.wanted.keeping.with_serials)?;
                texts.push(rubus_runs::text::run::markdown::render(&run, &verdict));
            }
            places::write_whole(&path, &texts.join("\n"))?;
        }
        Ok(())
    }

    /// One object for one target, a list for several.
    fn json(&self) -> anyhow::Result<String> {
        let mut objects = Vec::new();
        for Taken { measured, .. } in &self.all {
            objects.push(run_json(&measured.run, &measured.verdict)?);
        }
        Ok(match (&objects[..], self.expected) {
            ([only], 1) => format!("{only}\n"),
            _ => format!("[{}]\n", objects.join(",\n")),
        })
    }
}

/// A directory that exists, or a name that says that it is to be one.
fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.to_string_lossy().ends_with('/')
}

/// Tells where the run was kept and how it ended; gives the exit status.
fn tell(is_quiet: bool, measured: &Measured, kept: &Kept) -> Exit {
    if !is_quiet {
        if let Some(page) = &kept.page {
            message!("page: {}", page.display());
        }
        if let Some(number) = kept.number {
            message!("history: run {number} (`rubus history show {number}` shows it again)");
        }
    }
    for trouble in &kept.troubles {
        message!("rubus: {trouble}");
    }
    match &measured.ended_by {
        Some(error) => {
            message!("rubus: {error}");
            Exit::AnswerIsNo
        }
        // Bytes that are not there are an answer, too.
        None if measured.run.findings.iter().any(Finding::is_bad_news) => Exit::AnswerIsNo,
        None => Exit::Fine,
    }
}
