//! What a job file asks for: stages of jobs that run at the same time, and the files they need.

use std::collections::{BTreeMap, BTreeSet};

use super::options::{self, Support};
use super::problem::{At, JobFileError, Problem};
use super::settings::{Settings, Submission, Taken};
use super::text::{Section, Setting, Surroundings, sections};
use super::value::KbBase;

/// More jobs than this are a mistake, not a measurement.
const MAX_JOBS: usize = 4096;

/// A job file that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The job file, as the caller named it.
    pub file: String,
    /// What is done in another way than the file says, has no effect, or is ignored on request.
    pub notes: Vec<Note>,
    /// The files that the jobs work on; a job's settings name them by their number.
    pub files: Vec<WantedFile>,
    /// The options of the last `[global]` section that any job saw, as they stand in the file.
    pub global: BTreeMap<String, String>,
    pub(super) jobs: Vec<PlannedJob>,
}

/// Something that the reader of a result must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What became of the option.
    pub kind: NoteKind,
    /// Where it stands.
    pub at: At,
    /// `iodepth=16`, or the section where no option is meant.
    pub option: String,
    /// How it is done, why it has no effect, or what it would have done.
    pub text: String,
}

/// What became of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// It is done in another way.
    Otherwise,
    /// It has no effect on what is measured here.
    NoEffect,
    /// It is not supported, and ignored because the user said so.
    Ignored,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}: {}", self.at, self.option, self.text)
    }
}

/// A file that jobs work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedFile {
    /// As `filename` says, or made from the names of jobs.
    pub name: String,
    /// As `directory` says.
    pub directory: Option<String>,
    /// Whether `filename` says it: only then it may be a file or a device that exists.
    pub is_named: bool,
    /// Whether `filename_format` says it: one that exists may be read.
    pub is_formatted: bool,
    /// Whether a job writes to it.
    pub is_written: bool,
    /// Whether a job reads from it.
    pub is_read: bool,
    /// The job that names it first.
    pub at: At,
}

/// One section of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlannedJob {
    /// Unique within the plan.
    pub(super) name: String,
    /// As fio calls it.
    pub(super) section: String,
    pub(super) at: At,
    /// Jobs of one stage run at the same time.
    pub(super) stage: u32,
    /// fio's number of the reporting group.
    pub(super) group: u32,
    /// The section's own options as they stand in the file.
    pub(super) options: BTreeMap<String, String>,
    pub(super) settings: Settings,
    /// Files of each copy, by number in [`Plan::files`].
    pub(super) files: Vec<Vec<usize>>,
}

impl Plan {
    /// Reads a job file called `file`.
    ///
    /// With `ignores_unsupported`, options that are not done become notes, and jobs that cannot run
    /// at all are left out.
    ///
    /// # Errors
    /// Everything that is wrong with the file or that is not done, all at once.
    pub fn read(
        file: &str,
        text: &str,
        surroundings: &Surroundings<'_>,
        ignores_unsupported: bool,
    ) -> Result<Plan, JobFileError> {
        let sections = sections(file, text, surroundings)?;
        let mut reader = Reader {
            ignores_unsupported,
            notes: Vec::new(),
            problems: Vec::new(),
            told: BTreeSet::new(),
        };
        let mut jobs = Vec::new();
        for section in &sections {
            let settings = reader.settings(section);
            jobs.extend(settings.map(|settings| (section, settings)));
        }
        reader.must_have_jobs(file, &sections, jobs.len());
        if !reader.problems.is_empty() {
            return Err(JobFileError { problems: reader.problems });
        }
        let global = sections.iter().map(|section| shown(section, true)).next_back();
        let mut plan = Plan {
            file: file.into(),
            notes: reader.notes,
            files: Vec::new(),
            global: global.unwrap_or_default(),
            jobs: Vec::new(),
        };
        for (section, settings) in jobs {
            plan.add(section, settings)?;
        }
        Ok(plan)
    }

    fn add(&mut self, section: &Section, settings: Settings) -> Result<(), JobFileError> {
        let (stage, group) = match self.jobs.last() {
            None => (0, 0),
            Some(last) if settings.stonewall => {
                let latest = self.jobs.iter().map(|job| job.stage).max();
                (latest.unwrap_or(0) + 1, last.group + 1)
            }
            Some(last) => (self.base_stage(), last.group + u32::from(settings.new_group)),
        };
        let stage = match &settings.wait_for {
            None => stage,
            Some(other) => stage.max(self.stage_of(other, section)? + 1),
        };
        let own_name =
            section.settings.iter().any(|setting| setting.name == "name" && !setting.is_global);
        let fio_name = settings.name.clone().filter(|_| own_name);
        let fio_name = fio_name.unwrap_or_else(|| section.name.clone());
        let files = self.files_of(&fio_name, section, &settings);
        self.jobs.push(PlannedJob {
            name: self.unique(&fio_name),
            section: fio_name,
            at: section.at.clone(),
            stage,
            group,
            options: shown(section, false),
            settings,
            files,
        });
        let jobs: usize = self.jobs.iter().map(|job| job.files.len()).sum();
        if jobs > MAX_JOBS {
            let what = format!("the file asks for more than {MAX_JOBS} jobs");
            return Err(problem(section, what, "lower numjobs"));
        }
        Ok(())
    }

    /// The stage of the last stonewall; a job that waits for another does not move those after it.
    fn base_stage(&self) -> u32 {
        let walls = self.jobs.iter().enumerate();
        let wall = walls
            .filter(|(index, job)| *index == 0 || job.settings.stonewall)
            .map(|(_, job)| job.stage);
        wall.fold(0, |_, stage| stage)
    }

    fn stage_of(&self, other: &str, section: &Section) -> Result<u32, JobFileError> {
        let found = self.jobs.iter().rev().find(|job| job.section == other);
        found.map(|job| job.stage).ok_or_else(|| {
            let what = format!("wait_for: there is no job '{other}' above this one");
            problem(section, what, "name a job that stands above")
        })
    }

    /// `a`, and `a (2)` for the second job of that name.
    fn unique(&self, name: &str) -> String {
        let is_free = |name: &str| self.jobs.iter().all(|job| job.name != name);
        if is_free(name) {
            return name.into();
        }
        let mut number = 2;
        while !is_free(&format!("{name} ({number})")) {
            number += 1;
        }
        format!("{name} ({number})")
    }

    /// The files of each copy, entered in the plan where they are not yet.
    fn files_of(&mut self, name: &str, section: &Section, settings: &Settings) -> Vec<Vec<usize>> {
        let directories = settings.directory.as_deref().map(list).unwrap_or_default();
        let mut all = Vec::new();
        for copy in 0..settings.copies {
            let directory = match directories.len() {
                0 => None,
                count => Some(directories[copy as usize % count].clone()),
            };
            let names = match &settings.filename {
                Some(names) => list(names),
                None => vec![made_name(&settings.filename_format, name, copy)],
            };
            let numbers = names.into_iter().map(|name| {
                let wanted = WantedFile {
                    name,
                    directory: directory.clone(),
                    is_named: settings.filename.is_some(),
                    is_formatted: settings.filename.is_none() && settings.has_format,
                    is_written: settings.writes,
                    is_read: settings.reads,
                    at: section.at.clone(),
                };
                self.number_of(wanted)
            });
            all.push(numbers.collect());
        }
        all
    }

    fn number_of(&mut self, wanted: WantedFile) -> usize {
        let same = |file: &WantedFile| {
            (&file.name, &file.directory, file.is_named)
                == (&wanted.name, &wanted.directory, wanted.is_named)
        };
        match self.files.iter().position(same) {
            Some(number) => {
                let file = &mut self.files[number];
                file.is_written |= wanted.is_written;
                file.is_read |= wanted.is_read;
                number
            }
            None => {
                self.files.push(wanted);
                self.files.len() - 1
            }
        }
    }
}

struct Reader {
    ignores_unsupported: bool,
    notes: Vec<Note>,
    problems: Vec<Problem>,
    /// What was told already: a line of `[global]` concerns every section but is told once.
    told: BTreeSet<(String, String)>,
}

impl Reader {
    /// What the section asks for; nothing where a job is left out or cannot be understood.
    fn settings(&mut self, section: &Section) -> Option<Settings> {
        let mut settings = Settings::default();
        let mut is_complete = true;
        let base = self.base(section);
        let engine = in_force(section).into_iter().find(|s| s.name == "ioengine");
        let engine = engine.and_then(|setting| setting.value.as_deref());
        let taken = engine.map(|engine| Settings::default().take("ioengine", Some(engine), base));
        let has_engine = !matches!(taken, Some(Ok(Taken::CannotRun(_))));
        for setting in in_force(section) {
            let Some(option) = options::find(&setting.name) else {
                is_complete &= self.unknown(section, setting);
                continue;
            };
            let value = setting.value.as_deref();
            let taken = match option.support {
                // `of_mapped_memory` notes its effect, since the order of the two options is free.
                Support::Done(_) if option.name == "sync" && engine == Some("mmap") => {
                    settings.take(option.name, value, base).map(|_| Taken::Done)
                }
                Support::Done(_) => settings.take(option.name, value, base),
                Support::NoEffect(why) => {
                    self.note(NoteKind::NoEffect, setting, why.into());
                    continue;
                }
                Support::NotDoneUnlessOff(_) if is_off(value) => continue,
                // The engine itself is named already.
                support if support.is_of_an_engine() && !has_engine => continue,
                Support::NotDone(what) | Support::NotDoneUnlessOff(what) => {
                    Ok(Taken::NotDone(what.into()))
                }
            };
            is_complete &= self.took(section, setting, taken);
        }
        self.together(section, &mut settings);
        is_complete.then_some(settings)
    }

    fn base(&mut self, section: &Section) -> KbBase {
        let given = section.settings.iter().rev().find(|s| s.name == "kb_base");
        match given.and_then(|setting| setting.value.as_deref()) {
            None | Some("1024") => KbBase(1024),
            Some("1000") => KbBase(1000),
            Some(other) => {
                let what = format!("kb_base={other} is neither 1000 nor 1024");
                self.problems.extend(problem(section, what, "write one of them").problems);
                KbBase(1024)
            }
        }
    }

    /// Tells what became of a value; false where nothing is left of the job.
    fn took(&mut self, section: &Section, setting: &Setting, taken: Result<Taken, String>) -> bool {
        match taken {
            Ok(Taken::Done) => {}
            Ok(Taken::Otherwise(how)) => self.note(NoteKind::Otherwise, setting, how),
            Ok(Taken::NotDone(what)) if self.ignores_unsupported => {
                self.note(NoteKind::Ignored, setting, what);
            }
            Ok(Taken::CannotRun(what)) if self.ignores_unsupported => {
                let text = format!("[{}] is left out: {what}", section.name);
                self.note(NoteKind::Ignored, setting, text);
                return false;
            }
            Ok(Taken::NotDone(what) | Taken::CannotRun(what)) => {
                let remedy = "remove it, or add --ignore-unsupported to run without it";
                self.problem(section, setting, format!("not supported: it {what}"), remedy, true);
            }
            Err(what) => {
                self.problem(section, setting, what, "correct the value", false);
            }
        }
        true
    }

    fn unknown(&mut self, section: &Section, setting: &Setting) -> bool {
        if self.ignores_unsupported {
            self.note(NoteKind::Ignored, setting, "no option of fio that is known here".into());
            return true;
        }
        let remedy = match options::nearest(&setting.name) {
            Some(name) => format!("did you mean {name}?"),
            None => "remove it, or add --ignore-unsupported to run without it".into(),
        };
        let what = "no option of fio that is known here";
        self.problem(section, setting, what.into(), &remedy, true);
        true
    }

    /// What options mean together.
    fn together(&mut self, section: &Section, settings: &mut Settings) {
        if settings.is_one_at_a_time() && settings.depth > 1 {
            if let Some(setting) = last(section, "iodepth") {
                let engine = &settings.engine;
                let why = match settings.submission {
                    Submission::Synchronous => {
                        format!("the engine {engine} works one at a time, in fio as well")
                    }
                    _ => format!(
                        "{engine} works one at a time through the page cache, in fio as well"
                    ),
                };
                self.note(NoteKind::NoEffect, setting, why);
            }
            settings.depth = 1;
        }
        if settings.is_mapped() {
            self.of_mapped_memory(section, settings);
        }
        if settings.keeps_cache && settings.is_buffered {
            if let Some(setting) = last(section, "invalidate") {
                let what = "would leave in the page cache what is there";
                self.took(section, setting, Ok(Taken::NotDone(what.into())));
            }
        }
        if settings.is_random_in_name() && settings.is_random_in_effect() {
            if let Some(setting) = last(section, "percentage_random") {
                let how = "each block follows the one before; the kernel is told that they are random, as by fio, and reads none ahead";
                self.note(NoteKind::Otherwise, setting, how.into());
            }
        }
        if settings.time_based && settings.runtime_us == 0 {
            if let Some(setting) = last(section, "time_based") {
                let how = "without a runtime the job ends when its size is covered, as in fio";
                self.note(NoteKind::Otherwise, setting, how.into());
            }
            settings.time_based = false;
        }
    }

    /// What options mean where files are mapped into memory, which is the page cache.
    fn of_mapped_memory(&mut self, section: &Section, settings: &mut Settings) {
        if let Some(setting) = last(section, "sync").filter(|_| settings.each_durable) {
            let why = "the kernel writes mapped memory back when it likes, in fio as well";
            self.note(NoteKind::NoEffect, setting, why.into());
            settings.each_durable = false;
        }
        if settings.is_buffered {
            return;
        }
        settings.is_buffered = true;
        settings.each_durable = settings.writes;
        let given = ["direct", "buffered"].into_iter().find_map(|name| last(section, name));
        let given = given.filter(|_| settings.writes);
        if let Some(setting) = given {
            let how = "mapped memory is the page cache; each write is followed by msync, as in fio";
            self.note(NoteKind::Otherwise, setting, how.into());
        }
    }

    fn must_have_jobs(&mut self, file: &str, sections: &[Section], jobs: usize) {
        if jobs > 0 || !self.problems.is_empty() {
            return;
        }
        let what = match sections.len() {
            0 => "there is no job in the file",
            _ => "no job of the file can be run here",
        };
        self.problems.push(Problem {
            at: At { file: file.into(), line: 0 },
            section: None,
            option: None,
            what: what.into(),
            remedy: match sections.len() {
                0 => "begin one with [its name]".into(),
                _ => self.notes_of_left_out(),
            },
            is_unsupported: !sections.is_empty(),
        });
    }

    fn notes_of_left_out(&self) -> String {
        let left_out = self.notes.iter().filter(|note| note.text.contains("is left out"));
        let texts: Vec<String> = left_out.map(|note| note.text.clone()).collect();
        texts.join("; ")
    }

    fn note(&mut self, kind: NoteKind, setting: &Setting, text: String) {
        let at = setting.at.clone();
        if !self.told.insert((at.to_string(), text.clone())) {
            return;
        }
        let option = match &setting.value {
            Some(value) => format!("{}={value}", setting.name),
            None => setting.name.clone(),
        };
        self.notes.push(Note { kind, at, option, text });
    }

    fn problem(
        &mut self,
        section: &Section,
        setting: &Setting,
        what: String,
        remedy: &str,
        is_unsupported: bool,
    ) {
        if !self.told.insert((setting.at.to_string(), what.clone())) {
            return;
        }
        let name = if setting.is_global { "global" } else { &section.name };
        let value = setting.value.as_deref().unwrap_or("");
        self.problems.push(Problem {
            at: setting.at.clone(),
            section: Some(name.into()),
            option: Some(match value {
                "" => setting.name.clone(),
                value => format!("{}={value}", setting.name),
            }),
            what,
            remedy: remedy.into(),
            is_unsupported,
        });
    }
}

/// The settings that hold: of each option the last one, in the order of the file, and every
/// `filename`, since each adds files.
fn in_force(section: &Section) -> Vec<&Setting> {
    let main = |setting: &Setting| match options::find(&setting.name) {
        Some(option) => option.name.to_string(),
        None => setting.name.clone(),
    };
    let mut seen = BTreeSet::new();
    let mut settings: Vec<&Setting> = section
        .settings
        .iter()
        .rev()
        .filter(|setting| seen.insert(main(setting)) || setting.name == "filename")
        .collect();
    settings.reverse();
    settings
}

fn last<'a>(section: &'a Section, name: &str) -> Option<&'a Setting> {
    let mut found = section.settings.iter().rev();
    found.find(|setting| setting.name == name)
}

fn is_off(value: Option<&str>) -> bool {
    matches!(value, Some("0" | "none" | "off" | "false" | "no" | ""))
}

/// A section's options as fio's JSON shows them.
fn shown(section: &Section, global: bool) -> BTreeMap<String, String> {
    let settings = section.settings.iter().filter(|s| s.is_global == global);
    let pairs = settings.map(|setting| {
        let name = options::find(&setting.name).map_or(setting.name.as_str(), |o| o.name);
        let value = setting.value.clone().unwrap_or_else(|| "1".into());
        (name.to_string(), value)
    });
    pairs.collect()
}

/// The parts of a list separated by colons; `\:` is a colon.
fn list(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match (escaped, c) {
            (false, '\\') => {
                escaped = true;
                continue;
            }
            (false, ':') => parts.push(String::new()),
            _ => {
                if let Some(part) = parts.last_mut() {
                    part.push(c);
                }
            }
        }
        escaped = false;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The name of a copy's file; what fio divides into several files is one here.
fn made_name(format: &str, job: &str, copy: u32) -> String {
    let name = format
        .replace("$jobname", job)
        .replace("$jobnum", &copy.to_string())
        .replace("$filenum", "0");
    name.replace('/', "_")
}

fn problem(section: &Section, what: String, remedy: &str) -> JobFileError {
    JobFileError::of(Problem {
        at: section.at.clone(),
        section: Some(section.name.clone()),
        option: None,
        what,
        remedy: remedy.into(),
        is_unsupported: false,
    })
}
