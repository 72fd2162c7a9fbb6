//! Parameters of the board's own device tree (`dtparam=`).
//!
//! Source: Raspberry Pi documentation, "Device Trees, overlays and parameters": a line has one parameter or several with
//! commas between them, and the last that counts wins. Behind `dtoverlay=` a parameter is first looked for in that overlay,
//! so a new line stands before all others.

use super::{ConfigTxt, Counts, Line, Reader, Setting, line_of};

const DTPARAM: &str = "dtparam";
const BYTE_ORDER_MARK: char = '\u{feff}';

/// What a parameter says that is switched off. Source: raspberrypi/utils, dtmerge/dtoverlay.c.
const OFF: [&str; 5] = ["off", "no", "n", "false", "0"];

/// A parameter that switches a part of the board on or off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// As a line of its own ("dtparam=sd=off").
    pub written: String,
    pub is_on: bool,
    /// Whether no line that sets it depends on what only the board knows.
    pub is_certain: bool,
}

/// Why a parameter cannot be given a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSet {
    #[error("line {line} includes a file that sets {name}")]
    Included { name: String, line: usize },
    #[error("line {line} sets {name} under a filter that only the board can judge")]
    Doubtful { name: String, line: usize },
    #[error("the file begins with a byte order mark, which hides its first line from the firmware")]
    Marked,
}

impl ConfigTxt {
    /// The value of a parameter that counts on a board; absent: the board's own.
    pub fn parameter(&self, name: &str, reader: &Reader<'_>) -> Option<String> {
        let settings = self.settings(reader).into_iter();
        let mut values = settings
            .filter(|setting| setting.name == DTPARAM && setting.counts == Counts::Yes)
            .filter_map(|setting| value_in(&setting.value, name).map(str::to_string));
        values.next_back()
    }

    /// A parameter that switches something, under any of these names, by the last of them that counts or may count.
    pub fn switch(&self, names: &[&str], reader: &Reader<'_>) -> Option<Switch> {
        let settings = self.settings(reader).into_iter();
        let lines =
            settings.filter(|setting| setting.name == DTPARAM && setting.counts != Counts::No);
        let mut last: Option<Switch> = None;
        for line in lines {
            for written in line.value.split(',').map(str::trim) {
                let (name, value) = written.split_once('=').unwrap_or((written, "on"));
                if !names.contains(&name.trim()) {
                    continue;
                }
                let one = Switch {
                    written: format!("{DTPARAM}={written}"),
                    is_on: !OFF.contains(&value.trim()),
                    is_certain: line.counts == Counts::Yes,
                };
                last = match last {
                    // Whether this one counts is not known: it may well be off.
                    Some(before) if one.is_on && !one.is_certain && !before.is_on => {
                        Some(Switch { is_certain: false, ..before })
                    }
                    Some(_) | None => Some(one),
                };
            }
        }
        last
    }

    /// Gives a parameter a value: in the lines that set it on this board, else in a new first line, which counts on every
    /// board that knows the parameter.
    ///
    /// # Errors
    /// [`NotSet`] where what counts stands in another file or depends on the start, or a first line would not be read.
    pub fn set_parameter(
        &mut self,
        name: &str,
        value: &str,
        reader: &Reader<'_>,
    ) -> Result<(), NotSet> {
        let settings = self.settings(reader);
        let sets = |setting: &&Setting| {
            setting.name == DTPARAM
                && setting.counts != Counts::No
                && value_in(&setting.value, name).is_some()
        };
        let lines: Vec<(usize, Counts)> = settings
            .iter()
            .filter(sets)
            .map(|setting| (setting.line, setting.counts.clone()))
            .collect();
        for (line, counts) in &lines {
            let (name, line) = (name.to_string(), *line);
            if !self.is_own_setting(line) {
                return Err(NotSet::Included { name, line });
            }
            if matches!(counts, Counts::If(_)) {
                return Err(NotSet::Doubtful { name, line });
            }
        }
        if lines.is_empty() {
            return self.insert_first(&format!("{DTPARAM}={name}={value}"));
        }
        let text = self.text.split_inclusive('\n').enumerate().map(|(index, line)| {
            let is_meant = lines.iter().any(|(number, _)| *number == index + 1);
            if is_meant { with_value(line, name, value) } else { line.to_string() }
        });
        self.text = text.collect();
        Ok(())
    }

    fn is_own_setting(&self, number: usize) -> bool {
        let line = self.text.lines().nth(number - 1).map(line_of);
        matches!(line, Some(Line::Setting(DTPARAM, _)))
    }

    fn insert_first(&mut self, line: &str) -> Result<(), NotSet> {
        if self.text.starts_with(BYTE_ORDER_MARK) {
            return Err(NotSet::Marked);
        }
        let end = if self.text.lines().next().is_some() && self.text.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        self.text.insert_str(0, &format!("{line}{end}"));
        Ok(())
    }
}

fn value_in<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    let each = parameters.split(',').filter_map(|one| one.split_once('='));
    let mut its = each.filter(|(own, _)| own.trim() == name).map(|(_, value)| value.trim());
    its.next_back()
}

/// A line with another value of one parameter; all else stays as it is written.
fn with_value(line: &str, name: &str, value: &str) -> String {
    let end = line.len() - line.trim_end().len();
    let (written, end) = line.split_at(line.len() - end);
    let (head, parameters) = written.split_once('=').unwrap_or((written, ""));
    let parameters = parameters.split(',').map(|one| match one.split_once('=') {
        Some((own, _)) if own.trim() == name => format!("{own}={value}"),
        Some(_) | None => one.to_string(),
    });
    let parameters: Vec<String> = parameters.collect();
    format!("{head}={}{end}", parameters.join(","))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::Model;
    use crate::revision;

    const NAME: &str = "pciex1_gen";

    fn on_pi5<T>(includes: &[(&str, &str)], act: impl FnOnce(&Reader<'_>) -> T) -> T {
        let includes: BTreeMap<String, String> =
            includes.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        let model = Model::of_revision(&revision::decode(0xc04170));
        act(&Reader {
            model: &model,
            serial: None,
            tryboot: false,
            partition: None,
            includes: &includes,
        })
    }

    #[test]
    fn the_value_changes_where_it_stands_or_comes_first() {
        for (before, after) in [
            ("", "dtparam=pciex1_gen=3\n"),
            (
                "# mine\n[pi4]\ndtparam=pciex1_gen=1\n[all]\ndtoverlay=x\n",
                "dtparam=pciex1_gen=3\n# mine\n[pi4]\ndtparam=pciex1_gen=1\n[all]\ndtoverlay=x\n",
            ),
            ("dtparam=audio=on\r\n", "dtparam=pciex1_gen=3\r\ndtparam=audio=on\r\n"),
            ("dtparam=pciex1_gen=2", "dtparam=pciex1_gen=3"),
            (
                "  dtparam=pciex1, pciex1_gen=2 ,i2c=on \r\n[pi5]\ndtparam=pciex1_gen=1\n",
                "  dtparam=pciex1, pciex1_gen=3,i2c=on \r\n[pi5]\ndtparam=pciex1_gen=3\n",
            ),
            ("#dtparam=pciex1_gen=3\n", "dtparam=pciex1_gen=3\n#dtparam=pciex1_gen=3\n"),
        ] {
            let mut config = ConfigTxt::parse(before);
            on_pi5(&[], |reader| {
                config.set_parameter(NAME, "3", reader).expect("it can be set");
                assert_eq!(config.parameter(NAME, reader).as_deref(), Some("3"), "{before:?}");
            });
            assert_eq!(config.text(), after, "{before:?}");
        }
    }

    #[test]
    fn a_switch_is_as_the_last_of_its_names_says() {
        for (text, expected) in [
            ("dtparam=audio=on\n", None),
            ("dtparam=pciex1\n", Some(("dtparam=pciex1", true, true))),
            ("dtparam=pciex1=off\ndtparam=nvme\n", Some(("dtparam=nvme", true, true))),
            ("dtparam=nvme, pciex1=off\n", Some(("dtparam=pciex1=off", false, true))),
            ("[gpio4=1]\ndtparam=nvme=no\n", Some(("dtparam=nvme=no", false, false))),
            ("dtparam=nvme=0\n[gpio4=1]\ndtparam=nvme\n", Some(("dtparam=nvme=0", false, false))),
            ("[pi4]\ndtparam=nvme=off\n", None),
        ] {
            let found =
                on_pi5(&[], |reader| ConfigTxt::parse(text).switch(&["pciex1", "nvme"], reader));
            let found = found.as_ref().map(|it| (it.written.as_str(), it.is_on, it.is_certain));
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_set_is_said_and_nothing_changes() {
        let name = || NAME.to_string();
        for (text, why) in [
            ("include more.txt\n", NotSet::Included { name: name(), line: 1 }),
            ("[gpio4=1]\ndtparam=pciex1_gen=2\n", NotSet::Doubtful { name: name(), line: 2 }),
            ("\u{feff}# mine\n", NotSet::Marked),
        ] {
            let mut config = ConfigTxt::parse(text);
            let includes = [("more.txt", "dtparam=pciex1_gen=2\n")];
            let found = on_pi5(&includes, |reader| config.set_parameter(NAME, "3", reader));
            assert_eq!(found, Err(why), "{text:?}");
            assert_eq!(config.text(), text);
        }
    }
}
