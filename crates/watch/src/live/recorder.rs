//! Writing a recording, a line at a time and each line at once: what was seen before the plug is pulled is in the file.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rubus_host::files::own_files;

use crate::{Header, LetThrough, Sample, header_line, sample_line};

/// A recording that is being made.
pub struct Recorder {
    path: PathBuf,
    file: Box<dyn Write>,
    rules: LetThrough,
}

impl Recorder {
    /// Begins a recording in a new file, or on standard output (`-`).
    ///
    /// # Errors
    /// When there is something already, or it cannot be written.
    pub fn begin(path: &Path, header: &Header) -> anyhow::Result<Recorder> {
        let file: Box<dyn Write> = if path == Path::new("-") {
            Box::new(std::io::stdout())
        } else {
            match own_files::create_new(path, 0o666) {
                Ok(file) => Box::new(file),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => anyhow::bail!(
                    "{} exists already, and a recording goes into a file of its own; give another name, or remove it",
                    path.display()
                ),
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot make the recording {}", path.display()));
                }
            }
        };
        let mut recorder = Recorder { path: path.into(), file, rules: LetThrough::default() };
        let header = recorder.rules.header(header.clone());
        recorder.write(&header_line(&header))?;
        Ok(recorder)
    }

    /// Adds what others may see of a sample.
    ///
    /// # Errors
    /// When it cannot be written: the disk is full, for instance.
    pub fn add(&mut self, sample: &Sample) -> anyhow::Result<()> {
        let sample = self.rules.sample(sample.clone());
        self.write(&sample_line(&sample))
    }

    /// Where it goes, for people.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn write(&mut self, line: &str) -> anyhow::Result<()> {
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.flush()).with_context(|| {
            format!("the recording {} ends here: it cannot be written", self.path.display())
        })
    }
}
