//! What the other end's shell answered.

use super::script;

/// The machine at the other end, as far as must be known before anything is copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Machine hardware name, as `uname -m` prints it.
    pub machine: String,
    /// Kernel name, as `uname -s` prints it.
    pub system: String,
    /// The kernel's number for this start of the machine: two names with the same one are one machine.
    pub boot: Option<String>,
    /// The private directory in which programs may be run, if there could be one.
    pub directory: Option<String>,
    /// Directories that were no use, with why.
    pub tried: Vec<(String, Useless)>,
}

/// Why a directory could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Useless {
    /// It does not exist.
    Absent,
    /// It has too little room.
    Full,
    /// Nothing could be made in it.
    Forbidden,
    /// Programs may not be run there.
    NoExec,
}

impl Useless {
    fn parse(word: &str) -> Option<Useless> {
        Some(match word {
            "absent" => Useless::Absent,
            "full" => Useless::Full,
            "forbidden" => Useless::Forbidden,
            "noexec" => Useless::NoExec,
            _ => return None,
        })
    }

    fn phrase(self) -> &'static str {
        match self {
            Useless::Absent => "does not exist",
            Useless::Full => "has too little room",
            Useless::Forbidden => "is not writable",
            Useless::NoExec => "is mounted noexec",
        }
    }
}

/// Of what is no answer, a bounded number of lines and characters is kept.
const MAX_NOISE_LINES: usize = 50;
const MAX_NOISE_LETTERS: usize = 500;

/// Collects the keeper's answer line by line.
#[derive(Debug, Default)]
pub struct KeeperAnswer {
    place: Option<Place>,
    noise: Vec<String>,
}

impl KeeperAnswer {
    /// Takes the next line; gives the whole answer once it is complete.
    pub fn line(&mut self, line: &str) -> Option<Place> {
        let line = line.trim_end_matches('\r');
        let Some(place) = &mut self.place else {
            match line {
                script::BEGIN => self.place = Some(Place::default()),
                "" => {}
                other => {
                    // The last words say most of what went wrong.
                    if self.noise.len() == MAX_NOISE_LINES {
                        self.noise.remove(0);
                    }
                    self.noise.push(other.chars().take(MAX_NOISE_LETTERS).collect());
                }
            }
            return None;
        };
        match line.split_once('=') {
            Some(("machine", name)) => place.machine = name.into(),
            Some(("system", name)) => place.system = name.into(),
            Some(("boot", id)) => place.boot = Some(id.to_string()).filter(|id| !id.is_empty()),
            Some(("dir", path)) => {
                place.directory = Some(path.to_string()).filter(|p| !p.is_empty())
            }
            Some(("tried", tried)) => {
                let known = tried.split_once(' ');
                let known = known.and_then(|(why, path)| Some((path, Useless::parse(why)?)));
                place.tried.extend(known.map(|(path, why)| (path.to_string(), why)));
            }
            _ if line == script::READY => return self.place.take(),
            _ => {}
        }
        None
    }

    /// What was said before the answer, or instead of it.
    pub fn noise(&self) -> &[String] {
        &self.noise
    }
}

impl Place {
    /// Why there is no directory for the program, as sentences.
    pub fn no_directory(&self, destination: &str, needed: &str) -> String {
        let tried: Vec<String> =
            self.tried.iter().map(|(path, why)| format!("{path} {}", why.phrase())).collect();
        format!(
            "{destination} has no place for {needed} from which programs may be run: {}; make room, set \
             TMPDIR there to another directory, or install rubus there and give --remote-binary rubus",
            tried.join(", ")
        )
    }
}

/// What came of taking a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Its length there.
    pub bytes: Option<u64>,
    /// Its SHA-256 there, in hexadecimal; absent where nothing can compute it.
    pub sha256: Option<String>,
}

impl Taken {
    /// Reads the answer; other lines are a login script's.
    pub fn parse(answer: &str) -> Taken {
        let mut taken = Taken::default();
        for line in answer.lines() {
            match line.split_once('=') {
                Some(("bytes", number)) => taken.bytes = number.trim().parse().ok(),
                Some(("sha256", sum)) => {
                    taken.sha256 = sum.split_whitespace().next().map(str::to_lowercase);
                }
                _ => {}
            }
        }
        taken
    }

    /// Whether the file arrived whole, as far as can be told.
    ///
    /// # Errors
    /// What is wrong, as a phrase for "the copy … ".
    pub fn check(&self, bytes: u64, sha256: &str) -> Result<(), String> {
        match self.bytes {
            None => return Err("was not confirmed".into()),
            Some(there) if there != bytes => {
                return Err(format!("has {there} bytes there instead of {bytes}"));
            }
            Some(_) => {}
        }
        match &self.sha256 {
            Some(there) if there != sha256 => Err("arrived damaged (its SHA-256 differs)".into()),
            _ => Ok(()),
        }
    }
}

/// The version in the answer to `rubus --version`, whatever a login script said before.
pub fn version(answer: &str) -> Option<&str> {
    let mut lines = answer.lines().rev();
    lines.find_map(|line| line.trim().strip_prefix("rubus "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> (Option<Place>, KeeperAnswer) {
        let mut answer = KeeperAnswer::default();
        let place = text.lines().find_map(|line| answer.line(line));
        (place, answer)
    }

    #[test]
    fn what_a_login_script_says_is_no_answer() {
        let text = "Welcome!\nmachine=vax\n\nrubus-keeper 1\nmachine=aarch64\nsystem=Linux\n\
                    boot=1-2\ntried=noexec /tmp\ntried=full /var/tmp/a b\ndir=/home/pi/rubus.x1\nrubus-keeper ready\n";
        let (place, answer) = answer(text);
        let expected = Place {
            machine: "aarch64".into(),
            system: "Linux".into(),
            boot: Some("1-2".into()),
            directory: Some("/home/pi/rubus.x1".into()),
            tried: vec![("/tmp".into(), Useless::NoExec), ("/var/tmp/a b".into(), Useless::Full)],
        };
        assert_eq!(place, Some(expected));
        assert_eq!(answer.noise(), ["Welcome!", "machine=vax"]);
    }

    #[test]
    fn of_noise_without_end_the_last_words_are_kept() {
        let mut answer = KeeperAnswer::default();
        for number in 0..100_000 {
            answer.line(&format!("{number}{}", "x".repeat(600)));
        }
        assert_eq!(answer.noise().len(), 50);
        assert!(answer.noise()[49].starts_with("99999x"));
        assert!(answer.noise().iter().all(|line| line.len() == 500));
    }

    #[test]
    fn no_answer_is_none() {
        let (place, answer) = answer("This account is not available.\n");
        assert_eq!(place, None);
        assert_eq!(answer.noise(), ["This account is not available."]);
    }

    #[test]
    fn no_directory_says_which_were_tried() {
        let text = "rubus-keeper 1\nmachine=aarch64\nsystem=Linux\ntried=noexec /tmp\n\
                    tried=forbidden /home/pi\ndir=\nrubus-keeper ready\n";
        let place = answer(text).0.unwrap();
        assert_eq!(place.directory, None);
        insta::assert_snapshot!(
            place.no_directory("pi", "5.2 MiB"),
            @"pi has no place for 5.2 MiB from which programs may be run: /tmp is mounted noexec, /home/pi is not writable; make room, set TMPDIR there to another directory, or install rubus there and give --remote-binary rubus"
        );
    }

    #[test]
    fn a_copy_is_believed_by_length_and_sum() {
        let taken = Taken::parse("hello\nbytes=  5 \nsha256=ABC0  -\n");
        assert_eq!(taken.check(5, "abc0"), Ok(()));
        assert!(taken.check(6, "abc0").unwrap_err().contains("5 bytes"));
        assert!(taken.check(5, "abc1").unwrap_err().contains("SHA-256"));
        assert_eq!(Taken::parse("bytes=5\n").check(5, "abc0"), Ok(()));
        assert!(Taken::parse("").check(5, "abc0").is_err());
    }

    #[test]
    fn a_version_is_found_behind_a_greeting() {
        assert_eq!(version("Welcome!\nrubus 0.1.0\n"), Some("0.1.0"));
        assert_eq!(version("bash: rubus: not found\n"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(lines in proptest::collection::vec("(tried=)?.{0,20}", 0..8)) {
            let mut answer = KeeperAnswer::default();
            answer.line(script::BEGIN);
            for line in &lines {
                answer.line(line);
            }
            Taken::parse(&lines.join("\n"));
        }
    }
}
