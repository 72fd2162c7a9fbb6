//! The processor time that a server's machine tells over ssh, and what its links carried, with nothing of ours there: a shell
//! reads `/proc` whenever it is asked. Formats: proc_pid_stat(5) and proc_stat(5), Linux man-pages.

use std::collections::BTreeMap;

use super::Destination;
use super::quote::run_script;
use rubus_machine::parse::stat::{self, CpuTimes};

/// What the address of such a machine begins with.
pub const SCHEME: &str = "ssh://";
/// First line of the answer; what a login script prints before it is not ours.
const BEGIN: &str = "rubus-meter 1";
/// Last line of each reading, with the number of the question behind it.
const END: &str = "rubus-meter-end ";
/// How many bytes of a program's name the kernel keeps.
const MAX_NAME_BYTES: usize = 15;
/// More than any machine says of its links.
const MAX_LINKS_BYTES: usize = 1 << 20;
/// Ticks in a second, where the machine does not say: so it is on all processors that this runs on.
const USUAL_TICKS: u64 = 100;

/// Answers each line of standard input with the machine's times, its links and, if `$1` is not empty, the times of the
/// processes in whose line of numbers it stands.
const METER: &str = concat!(
    "export LC_ALL=C; echo; echo rubus-meter 1; echo \"ticks=$(getconf CLK_TCK 2>/dev/null)\"; ",
    "while read -r number; do ",
    "read -r all < /proc/stat; echo \"$all\"; ",
    "cat /proc/net/dev; [ -z \"$1\" ] || grep -hsF -e \"$1\" /proc/[0-9]*/stat; ",
    "echo \"rubus-meter-end $number\"; done",
);

/// A machine whose processor time is read over ssh: of one program, or all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metered {
    /// The machine to read.
    pub destination: Destination,
    /// The name of the program, if not all is counted.
    pub program: Option<String>,
}

/// All of a machine.
impl From<Destination> for Metered {
    fn from(destination: Destination) -> Metered {
        Metered { destination, program: None }
    }
}

impl Metered {
    /// Takes `ssh://[USER@]HOST[:PORT][/PROGRAM]`.
    ///
    /// # Errors
    /// A sentence.
    pub fn parse(typed: &str) -> Result<Metered, String> {
        let rest = typed.strip_prefix(SCHEME);
        let rest = rest.ok_or_else(|| format!("'{typed}' does not begin with {SCHEME}"))?;
        let (host, program) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() || host.ends_with('@') {
            return Err(format!(
                "'{typed}' names no machine: give ssh://[USER@]HOST[:PORT][/PROGRAM]"
            ));
        }
        // ssh takes either; as an address only newer ones do.
        let is_plain = !host.contains(':');
        let destination = if is_plain {
            Destination::parse(host)?
        } else {
            Destination::parse(&format!("{SCHEME}{host}"))?
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._+-:@".contains(c);
        if !program.chars().all(is_name) {
            return Err(format!(
                "'{}' is no program's name: give the name alone, as `ps -e` shows it, such as {SCHEME}{host}/nbdkit",
                program.escape_debug()
            ));
        }
        Ok(Metered {
            destination,
            program: Some(program.to_string()).filter(|name| !name.is_empty()),
        })
    }

    /// The command that answers there, a line of standard input at a time.
    pub fn command(&self) -> String {
        let mark = self.name().map(|name| format!("({name}) "));
        run_script(METER, &[&mark.unwrap_or_default()])
    }

    /// What the kernel keeps of the program's name.
    fn name(&self) -> Option<&str> {
        let name = self.program.as_deref()?;
        Some(name.get(..MAX_NAME_BYTES).unwrap_or(name))
    }
}

/// What one process has spent, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    own: u64,
    /// Its children that have ended.
    children: u64,
}

/// What was read at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    ticks_per_s: u64,
    /// Where the machine's time went, in ticks.
    pub times: CpuTimes,
    /// `/proc/net/dev` as it is.
    pub links: String,
    /// Those of the program, by number and start: numbers are used again.
    processes: BTreeMap<(u32, u64), Spent>,
}

impl Reading {
    /// Processor time of the whole machine since its start, in nanoseconds.
    pub fn machine_ns(&self) -> u64 {
        let all = &self.times;
        let busy = [all.user, all.system, all.irq, all.softirq];
        self.in_ns(busy.into_iter().fold(0, u64::saturating_add))
    }

    /// Processor time of the program's processes that there are, and of their children that have ended.
    pub fn program_ns(&self) -> u64 {
        self.in_ns(self.processes.values().map(|p| p.own + p.children).sum())
    }

    /// How many processes of the program there are.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Whether processes of the program have ended since and taken with them what they spent: it is in
    /// no parent's account.
    pub fn has_lost(&self, earlier: &Reading) -> bool {
        let gone = |(id, _): &(&(u32, u64), &Spent)| !self.processes.contains_key(id);
        let ended = earlier.processes.iter().filter(gone);
        let lost: u64 = ended.map(|(_, spent)| spent.own + spent.children).sum();
        let inherited: u64 = self
            .processes
            .iter()
            .map(|(id, now)| {
                let before = earlier.processes.get(id).copied().unwrap_or_default();
                now.children.saturating_sub(before.children)
            })
            .sum();
        lost > inherited
    }

    fn in_ns(&self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_s.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// Collects the answers line by line.
#[derive(Debug)]
pub struct Answers {
    name: Option<String>,
    has_begun: bool,
    ticks_per_s: u64,
    times: Option<CpuTimes>,
    links: String,
    processes: BTreeMap<(u32, u64), Spent>,
}

impl Answers {
    /// Of that machine.
    pub fn of(metered: &Metered) -> Answers {
        Answers {
            name: metered.name().map(str::to_string),
            has_begun: false,
            ticks_per_s: USUAL_TICKS,
            times: None,
            links: String::new(),
            processes: BTreeMap::new(),
        }
    }

    /// Takes the next line; gives the number of the question and its answer once that is whole.
    pub fn line(&mut self, line: &str) -> Option<(u64, Result<Reading, String>)> {
        let line = line.trim_end_matches('\r');
        if !self.has_begun {
            self.has_begun = line == BEGIN;
            return None;
        }
        if let Some(number) = line.strip_prefix(END) {
            let times = self.times.take();
            let links = std::mem::take(&mut self.links);
            let processes = std::mem::take(&mut self.processes);
            let answer = times.ok_or("it cannot read /proc/stat there");
            let answer = answer.map(|times| Reading {
                ticks_per_s: self.ticks_per_s,
                times,
                links,
                processes,
            });
            return Some((number.trim().parse().ok()?, answer.map_err(str::to_string)));
        }
        if let Some(ticks) = line.strip_prefix("ticks=") {
            self.ticks_per_s = ticks.parse().ok().filter(|t| *t > 0).unwrap_or(USUAL_TICKS);
        } else if line.starts_with("cpu ") {
            self.times = stat::parse(line).first().copied();
        } else if let Some((id, spent)) = self.process(line) {
            self.processes.insert(id, spent);
        } else if self.links.len() < MAX_LINKS_BYTES {
            self.links.push_str(line);
            self.links.push('\n');
        }
        None
    }

    /// A line of `/proc/PID/stat`, if it is the program's. The name may have anything in it, and ends at
    /// the last bracket.
    fn process(&self, line: &str) -> Option<((u32, u64), Spent)> {
        let (pid, rest) = line.split_once(" (")?;
        let (name, numbers) = rest.rsplit_once(") ")?;
        if self.name.as_deref() != Some(name) {
            return None;
        }
        let numbers: Vec<&str> = numbers.split_ascii_whitespace().collect();
        // The first of them is the third field.
        let field = |number: usize| numbers.get(number - 3)?.parse::<u64>().ok();
        let start = field(22)?;
        let spent = Spent {
            own: field(14)?.checked_add(field(15)?)?,
            children: field(16)?.checked_add(field(17)?)?,
        };
        // The limit keeps the sums of all processes from overflowing.
        const MAX_TICKS: u64 = 1 << 40;
        (spent.own < MAX_TICKS && spent.children < MAX_TICKS)
            .then_some(((pid.parse().ok()?, start), spent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metered(typed: &str) -> Metered {
        Metered::parse(typed).unwrap()
    }

    #[test]
    fn an_address_is_a_machine_and_a_program() {
        for (typed, destination, program) in [
            ("ssh://nas", "nas", None),
            ("ssh://nas/", "nas", None),
            ("ssh://pi@nas/nbdkit", "pi@nas", Some("nbdkit")),
            ("ssh://pi@nas:2222/qemu-nbd", "ssh://pi@nas:2222", Some("qemu-nbd")),
            ("ssh://[fe80::1%eth0]:22", "ssh://[fe80::1%eth0]:22", None),
        ] {
            let metered = metered(typed);
            assert_eq!(metered.destination.as_str(), destination);
            assert_eq!(metered.program.as_deref(), program);
        }
        for (wrong, words) in [
            ("ssh://", "names no machine"),
            ("ssh:///nbdkit", "names no machine"),
            ("ssh://pi@/nbdkit", "names no machine"),
            ("ssh://-oProxyCommand=x/nbdkit", "option of ssh"),
            ("ssh://a b", "has a space"),
            ("ssh://nas/usr/bin/nbdkit", "no program's name"),
            ("ssh://nas/a b", "no program's name"),
            ("nas", "does not begin"),
        ] {
            let error = Metered::parse(wrong).unwrap_err();
            let words = words.replace("option of ssh", "take it for an option");
            assert!(error.contains(&words), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_command_looks_for_what_the_kernel_keeps_of_a_name() {
        assert!(!METER.contains('\n') && !METER.contains('\''));
        let command = metered("ssh://nas/a-name-that-is-long").command();
        assert!(command.ends_with(" rubus '(a-name-that-is-) '"), "{command}");
        assert!(metered("ssh://nas").command().ends_with(" rubus ''"));
        assert!(METER.contains(BEGIN) && METER.contains(END));
    }

    fn process(pid: u32, name: &str, own: u64, children: u64, start: u64) -> String {
        format!(
            "{pid} ({name}) S 1 2 3 0 -1 4194560 1 2 3 4 {own} 1 {children} 2 20 0 17 0 {start} 9 8 7 6\n"
        )
    }

    fn readings(metered: &Metered, text: &str) -> Vec<(u64, Result<Reading, String>)> {
        let mut answers = Answers::of(metered);
        text.lines().filter_map(|line| answers.line(line)).collect()
    }

    #[test]
    fn a_program_and_its_machine_have_their_times() {
        let text = format!(
            "Welcome!\ncpu 9 9 9\nrubus-meter 1\nticks=100\ncpu  100 10 50 1000 20 3 7 0 5 0\n  eth0: 1 2\n{}{}{}{}\
             rubus-meter-end 1\ncpu  200 10 50 1000 20 3 7 0 5 0\nrubus-meter-end 2\nrubus-meter-end 3\n",
            process(7, "nbdkit", 40, 4, 55),
            process(8, "nbdkit) x (", 40, 4, 56),
            process(9, "not nbdkit", 40, 4, 57),
            process(10, "nbdkit", 1, 0, 58),
        );
        let readings = readings(&metered("ssh://nas/nbdkit"), &text);
        let [(1, Ok(first)), (2, Ok(second)), (3, Err(why))] = &readings[..] else {
            panic!("{readings:?}");
        };
        assert_eq!(first.processes(), 2);
        assert!(first.links.starts_with("  eth0: 1 2\n"), "{}", first.links);
        assert_eq!((first.times.idle, second.links.as_str()), (1000, ""));
        // 40 and 1 in it, 1 each in the kernel, 4 and 0 of children, 2 each in the kernel.
        assert_eq!(first.program_ns(), 510_000_000);
        assert_eq!(first.machine_ns(), 1_700_000_000);
        assert_eq!((second.processes(), second.program_ns()), (0, 0));
        assert_eq!(second.machine_ns(), 2_700_000_000);
        assert!(why.contains("/proc/stat"), "{why}");
    }

    #[test]
    fn a_process_that_ended_is_in_its_parents_account_or_lost() {
        let one = |processes: &str| {
            let text = format!("{BEGIN}\nticks=\ncpu 1 1 1 1\n{processes}{END}1\n");
            let mut all = readings(&metered("ssh://nas/nbd-server"), &text);
            all.remove(0).1.unwrap()
        };
        let name = "nbd-server";
        let parent = |children| process(7, name, 10, children, 1);
        let both = one(&(parent(0) + &process(9, name, 30, 0, 2)));
        assert!(!both.has_lost(&both));
        // The child spent 31 with what it did in the kernel, and 2 for its own children.
        let inherited = one(&parent(33));
        assert!(!inherited.has_lost(&both));
        assert_eq!(inherited.program_ns(), both.program_ns());
        assert!(one(&parent(32)).has_lost(&both));
        // Another process has its number.
        assert!(one(&(parent(0) + &process(9, name, 50, 0, 3))).has_lost(&both));
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(lines in proptest::collection::vec("(cpu |1 \\(x\\) S |ticks=)?[0-9 ]{0,120}|.{0,20}", 0..8)) {
            let mut answers = Answers::of(&metered("ssh://nas/x"));
            answers.line(BEGIN);
            for line in &lines {
                answers.line(line);
            }
            if let Some((_, Ok(reading))) = answers.line("rubus-meter-end 1") {
                reading.program_ns();
                reading.machine_ns();
            }
        }
    }
}
