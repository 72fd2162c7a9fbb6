//! Taking one change of a command line back, word by word: words that others have added since stay.

use std::path::Path;

use super::{CmdlineTxt, Word, same_name};

/// Whether a file holds a command line, by its name.
pub fn is_command_line(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("cmdline") && name.ends_with(".txt")
}

/// The line as it is now (`live`) without the change from `was` to `becomes`: the words that the change wrote get their
/// former values or go, those that it removed come back, and all others stay. Taking back what is taken back already
/// changes nothing.
///
/// # Errors
/// What is in the way, as a sentence without its full stop: words of the change that something else has changed again.
pub fn taken_back(was: &str, becomes: &str, live: &str) -> Result<String, String> {
    let [was, becomes] = [was, becomes].map(CmdlineTxt::parse);
    let mut line = CmdlineTxt::parse(live);
    let mut written = only_in(&becomes, &was);
    let removed = only_in(&was, &becomes);
    let touched: Vec<&str> = written.iter().chain(&removed).map(|word| word.name).collect();
    for old in &removed {
        let same = written.iter().position(|new| same_name(new.name, old.name));
        let new = same.map(|place| written.remove(place));
        let span = new.and_then(|new| line.span_written(new.written));
        match span {
            Some(span) => line.text.replace_range(span, old.written),
            None if line.span_written(old.written).is_none() => line.append(old.written),
            None => {}
        }
    }
    for new in written {
        if let Some(span) = line.span_written(new.written) {
            line.cut(span);
        }
    }
    let wrong = touched.iter().find_map(|name| {
        let (is, wanted) = (words_of(&line, name), words_of(&was, name));
        (is != wanted).then_some((*name, wanted))
    });
    let Some((name, wanted)) = wrong else {
        return Ok(line.text);
    };
    let found = words_of(&CmdlineTxt::parse(live), name);
    let shown = |words: &[String]| {
        if words.is_empty() { format!("no word {name}") } else { words.join(" ") }
    };
    Err(format!(
        "it says {}; this change wrote {}, and before it was {}",
        shown(&found),
        shown(&words_of(&becomes, name)),
        shown(&wanted)
    ))
}

/// The words of `one` that `other` does not have.
fn only_in<'a>(one: &'a CmdlineTxt, other: &CmdlineTxt) -> Vec<Word<'a>> {
    let mut others: Vec<&str> = other.words().map(|word| word.written).collect();
    let mut words: Vec<Word<'a>> = one.words().collect();
    words.retain(|word| match others.iter().position(|other| *other == word.written) {
        Some(place) => {
            others.remove(place);
            false
        }
        None => true,
    });
    words
}

/// The words of a name, as they are written, sorted.
fn words_of(line: &CmdlineTxt, name: &str) -> Vec<String> {
    let words = line.words().filter(|word| same_name(word.name, name));
    let mut words: Vec<String> = words.map(|word| word.written.to_string()).collect();
    words.sort();
    words
}

impl CmdlineTxt {
    /// Where a word is that is written like this.
    fn span_written(&self, written: &str) -> Option<std::ops::Range<usize>> {
        let mut spans = self.kernel_spans().into_iter();
        spans.find(|span| &self.text[span.clone()] == written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAS: &str =
        "console=tty1 root=PARTUUID=a-02 rootfstype=ext4 fsck.repair=yes rootwait resize quiet\n";
    const BECOMES: &str = "console=tty1 root=PARTUUID=b-01 rootfstype=btrfs fsck.repair=yes rootwait quiet rootflags=subvol=@\n";

    #[test]
    fn words_that_another_tool_appended_stay_and_ours_go() {
        let live = BECOMES.replace("rootflags=subvol=@", "rootflags=subvol=@ quiet cma=64M");
        let back = taken_back(WAS, BECOMES, &live).unwrap();
        assert_eq!(
            back,
            "console=tty1 root=PARTUUID=a-02 rootfstype=ext4 fsck.repair=yes rootwait quiet quiet cma=64M resize\n"
        );
        // Once more after a power cut.
        assert_eq!(taken_back(WAS, BECOMES, &back), Ok(back.clone()));
    }

    #[test]
    fn a_word_that_another_tool_removed_stays_removed() {
        let live = BECOMES.replace(" fsck.repair=yes", "");
        let back = taken_back(WAS, BECOMES, &live).unwrap();
        assert!(!back.contains("fsck.repair"), "{back}");
        assert!(back.contains("root=PARTUUID=a-02"), "{back}");
    }

    #[test]
    fn a_word_of_ours_that_something_else_changed_is_shown() {
        let live = BECOMES.replace("root=PARTUUID=b-01", "root=/dev/sdb1");
        let why = taken_back(WAS, BECOMES, &live).unwrap_err();
        assert!(why.contains("it says root=/dev/sdb1;"), "{why}");
        assert!(why.contains("before it was root=PARTUUID=a-02"), "{why}");
        // The last root= counts for the kernel.
        let live = BECOMES.replace("subvol=@", "subvol=@ root=/dev/sdb1");
        assert!(taken_back(WAS, BECOMES, &live).is_err());
    }

    #[test]
    fn command_lines_are_known_by_their_names() {
        let is = |path: &str| is_command_line(Path::new(path));
        assert!(is("/boot/firmware/cmdline.txt") && is("/boot/cmdline-rubus.txt"));
        assert!(!is("/boot/firmware/config.txt") && !is("/boot/firmware/cmdline.txt.before-rubus"));
    }
}
