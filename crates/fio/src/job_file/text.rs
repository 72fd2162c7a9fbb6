//! The text of a job file: sections, settings, comments, includes, variables.
//!
//! The format is that of fio's manual ("Job file format", "Environment variables", "Reserved
//! keywords"): an ini file in which `[global]` sets what holds for the sections below it, a line's
//! rest after `;` or `#` is a comment, and `include FILE` stands for the lines of another file.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::problem::{At, JobFileError, Problem};

/// Includes may be nested so deep; more is a file that includes itself.
const DEEPEST_INCLUDE: u32 = 16;

/// What a job file may refer to outside of itself.
pub struct Surroundings<'a> {
    /// The environment, for `${NAME}`.
    pub variables: &'a dyn Fn(&str) -> Option<String>,
    /// `pagesize`, `mb_memory` and `ncpus`, for `$pagesize` and so on.
    pub keywords: BTreeMap<String, String>,
    /// The text of a file that is included, and how it is called in messages and as the place of
    /// further includes: by the file that includes it and the name that this one gives it.
    ///
    /// The error says in words why it cannot be read.
    pub include: &'a dyn Fn(&str, &str) -> Result<Included, String>,
    /// Settings that hold for every job unless the file says otherwise, as options on fio's command line
    /// do: names and values.
    pub given: &'a [(String, String)],
}

/// A file that a job file includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Included {
    pub path: String,
    pub text: String,
}

/// One option as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What is before the equals sign, in lower case.
    pub name: String,
    /// What is behind it, variables replaced; absent where there is no equals sign.
    pub value: Option<String>,
    /// Where it stands.
    pub at: At,
    /// Whether it came from `[global]`.
    pub is_global: bool,
}

/// One job of the file: its own settings after those of the `[global]` sections above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What stands between the brackets.
    pub name: String,
    /// Where it begins.
    pub at: At,
    /// In the order in which they hold: a later one replaces an earlier one.
    pub settings: Vec<Setting>,
}

/// The sections of a job file called `file`, without the global ones.
///
/// # Errors
/// Every line that is no setting, no section, no comment; includes that cannot be read; variables
/// that are not set.
pub fn sections(
    file: &str,
    text: &str,
    surroundings: &Surroundings<'_>,
) -> Result<Vec<Section>, JobFileError> {
    let mut reader = Reader {
        surroundings,
        global: Vec::new(),
        sections: Vec::new(),
        in_global: false,
        problems: Vec::new(),
    };
    let command_line: Arc<str> = Arc::from("command line");
    reader.global.extend(surroundings.given.iter().map(|(name, value)| Setting {
        name: name.to_ascii_lowercase(),
        value: Some(value.clone()),
        at: At { file: Arc::clone(&command_line), line: 0 },
        is_global: true,
    }));
    reader.read(&Arc::from(file), text, 0);
    if reader.problems.is_empty() {
        Ok(reader.sections)
    } else {
        Err(JobFileError { problems: reader.problems })
    }
}

struct Reader<'a> {
    surroundings: &'a Surroundings<'a>,
    global: Vec<Setting>,
    sections: Vec<Section>,
    in_global: bool,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn read(&mut self, file: &Arc<str>, text: &str, depth: u32) {
        // An editor's byte-order mark is no text; fio itself stops at it.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (index, raw) in text.lines().enumerate() {
            let at =
                At { file: Arc::clone(file), line: u32::try_from(index + 1).unwrap_or(u32::MAX) };
            let line = without_comment(raw).trim();
            if line.is_empty() {
                continue;
            }
            if line.starts_with('[') {
                self.header(line, at, depth);
            } else if let Some(name) = included(line) {
                self.include(file, name, at, depth);
            } else {
                self.setting(line, at);
            }
        }
    }

    fn header(&mut self, line: &str, at: At, depth: u32) {
        if depth > 0 {
            let what = "an included file may not contain sections";
            return self.problem(at, what.into(), "move the section to the job file itself");
        }
        let Some(name) = line[1..].strip_suffix(']').map(str::trim) else {
            let what = format!("'{line}' is no section");
            return self.problem(at, what, "write it as [name]");
        };
        if name.is_empty() {
            return self.problem(at, "a section without a name".into(), "write it as [name]");
        }
        // fio compares the beginning only: [global-defaults] holds for all jobs as well.
        self.in_global = name.starts_with("global");
        if !self.in_global {
            self.sections.push(Section { name: name.into(), at, settings: self.global.clone() });
        }
    }

    fn include(&mut self, from: &str, name: &str, at: At, depth: u32) {
        if depth >= DEEPEST_INCLUDE {
            let what = format!("'{name}' is included more than {DEEPEST_INCLUDE} files deep");
            return self.problem(at, what, "look for a file that includes itself");
        }
        match (self.surroundings.include)(from, name) {
            Ok(found) => self.read(&Arc::from(found.path), &found.text, depth + 1),
            Err(error) => {
                let what = format!("cannot read the included file '{name}': {error}");
                self.problem(at, what, "correct its path or make it readable");
            }
        }
    }

    fn setting(&mut self, line: &str, at: At) {
        if !self.in_global && self.sections.is_empty() {
            let what = format!("'{line}' stands before the first section");
            return self.problem(at, what, "begin with [global] or with [the name of a job]");
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (line, None),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_name) {
            let what = format!("'{line}' is no option");
            return self.problem(at, what, "write it as name=value");
        }
        let value = match value.map(|value| self.expanded(value)).transpose() {
            Ok(value) => value,
            Err(variable) => {
                let what = format!("{name}: the variable {variable} is not set");
                let remedy = format!("set it in the environment: {variable}=... rubus bench ...");
                return self.problem(at, what, &remedy);
            }
        };
        let setting =
            Setting { name: name.to_ascii_lowercase(), value, at, is_global: self.in_global };
        match self.sections.last_mut() {
            Some(section) if !self.in_global => section.settings.push(setting),
            _ => self.global.push(setting),
        }
    }

    /// The text with its variables and keywords replaced; the error is the name of a variable that
    /// is not set.
    fn expanded(&self, text: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            out.push_str(&rest[..dollar]);
            rest = &rest[dollar + 1..];
            if let Some((name, after)) = rest.strip_prefix('{').and_then(|r| r.split_once('}')) {
                out.push_str(&(self.surroundings.variables)(name).ok_or(name)?);
                rest = after;
                continue;
            }
            let keywords = self.surroundings.keywords.iter();
            let found = keywords
                .filter_map(|(name, value)| Some((rest.strip_prefix(name.as_str())?, value)))
                .next();
            match found {
                Some((after, value)) => {
                    out.push_str(value);
                    rest = after;
                }
                // What is no keyword stays: $jobname and the like belong to the names of files.
                None => out.push('$'),
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn problem(&mut self, at: At, what: String, remedy: &str) {
        let section = if self.in_global {
            Some("global".to_string())
        } else {
            self.sections.last().map(|section| section.name.clone())
        };
        self.problems.push(Problem {
            at,
            section,
            option: None,
            what,
            remedy: remedy.into(),
            is_unsupported: false,
        });
    }
}

fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or(line)
}

/// The name in `include NAME`.
fn included(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("include")?;
    let name = rest.strip_prefix([' ', '\t'])?.trim();
    (!name.is_empty() && !name.starts_with('=')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Section>, JobFileError> {
        let variables = |name: &str| (name == "SIZE").then(|| "4m".to_string());
        let include = |from: &str, name: &str| {
            let text = match (from, name) {
                (_, "more.fio") => "bs=8k\n",
                (_, "sub/outer.fio") => "include inner.fio\n",
                ("sub/outer.fio", "inner.fio") => "bs=16k\n",
                (_, "loop.fio") => "include loop.fio\n",
                _ => return Err("no such file".to_string()),
            };
            Ok(Included { path: name.into(), text: text.into() })
        };
        let keywords = [("pagesize", "4096"), ("ncpus", "4")];
        let surroundings = Surroundings {
            variables: &variables,
            keywords: keywords.map(|(n, v)| (n.into(), v.into())).into(),
            include: &include,
            given: &[],
        };
        sections("x.fio", text, &surroundings)
    }

    fn settings(section: &Section) -> Vec<(&str, Option<&str>)> {
        let settings = section.settings.iter();
        settings.map(|s| (s.name.as_str(), s.value.as_deref())).collect()
    }

    #[test]
    fn a_global_section_holds_for_what_is_below_it() {
        let text = "; a comment\n[global]\nrw = read # why\n[a]\nsize=${SIZE}\n[global]\nBS=4k\n[b]\nstonewall\n";
        let sections = read(text).unwrap();
        assert_eq!(sections[0].name, "a");
        assert_eq!(settings(&sections[0]), [("rw", Some("read")), ("size", Some("4m"))]);
        assert_eq!(
            settings(&sections[1]),
            [("rw", Some("read")), ("bs", Some("4k")), ("stonewall", None)]
        );
        assert_eq!(sections[1].settings[1].at.to_string(), "x.fio:7");
    }

    #[test]
    fn includes_keywords_and_names_of_files() {
        let text = "[a]\ninclude more.fio\nnumjobs=$ncpus\nfilename_format=$jobname.$jobnum\n";
        let sections = read(text).unwrap();
        assert_eq!(
            settings(&sections[0]),
            [
                ("bs", Some("8k")),
                ("numjobs", Some("4")),
                ("filename_format", Some("$jobname.$jobnum"))
            ]
        );
    }

    #[test]
    fn an_include_is_looked_up_from_the_file_that_names_it() {
        let sections = read("[a]\ninclude sub/outer.fio\n").unwrap();
        assert_eq!(settings(&sections[0]), [("bs", Some("16k"))]);
    }

    #[test]
    fn a_section_is_global_by_the_beginning_of_its_name() {
        let sections = read("[global-defaults]\nrw=write\n[a]\n").unwrap();
        assert_eq!(sections.len(), 1);
        assert_eq!(settings(&sections[0]), [("rw", Some("write"))]);
    }

    #[test]
    fn every_broken_line_is_named() {
        let text = "size=1\n[a\n[a]\n=3\nbs=${NONE}\ninclude gone.fio\n[]\ninclude loop.fio\n";
        let error = read(text).unwrap_err();
        insta::assert_snapshot!(error, @r"
        x.fio:1: 'size=1' stands before the first section; begin with [global] or with [the name of a job]
        x.fio:2: '[a' is no section; write it as [name]
        x.fio:4: [a] '=3' is no option; write it as name=value
        x.fio:5: [a] bs: the variable NONE is not set; set it in the environment: NONE=... rubus bench ...
        x.fio:6: [a] cannot read the included file 'gone.fio': no such file; correct its path or make it readable
        x.fio:7: [a] a section without a name; write it as [name]
        loop.fio:1: [a] 'loop.fio' is included more than 16 files deep; look for a file that includes itself
        ");
    }
}
