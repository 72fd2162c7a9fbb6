//! What ssh and everything below it have used of the processors.
//!
//! Sources: proc(5), `/proc/PID/stat`; kernel documentation, "Scheduler Statistics", for `/proc/PID/schedstat`.

use std::collections::BTreeMap;

/// Processor time so far, by process.
#[derive(Debug, Default)]
pub(super) struct Account(BTreeMap<u32, Process>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    name: String,
    cpu_ns: u64,
    /// Ready to run, and without a processor.
    waited_ns: u64,
}

/// What was spent between two accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// By ssh itself.
    pub(super) client_ns: u64,
    /// By the server's processes. What it runs for its user is neither end's.
    pub(super) server_ns: u64,
    /// That one of them was ready to run and had no processor: of the one that waited longest.
    pub(super) waited_ns: u64,
}

impl Account {
    /// Of the process and all below it.
    pub(super) fn of(root: u32) -> Account {
        let mut all = BTreeMap::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let read = |file: &str| std::fs::read_to_string(entry.path().join(file)).ok();
            let process = read("stat").and_then(|stat| parse(&stat));
            if let Some(mut process) = process {
                // In nanoseconds where the kernel counts them; the ticks of the other file are too coarse for seconds.
                let exact = read("schedstat").and_then(|text| {
                    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
                    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
                });
                if let Some((cpu_ns, waited_ns)) = exact.filter(|(cpu_ns, _)| *cpu_ns > 0) {
                    (process.cpu_ns, process.waited_ns) = (cpu_ns, waited_ns);
                }
                all.insert(id, process);
            }
        }
        Account(below(root, all))
    }

    /// What was spent since an earlier account; nothing when the root is in neither.
    pub(super) fn since(&self, before: &Account) -> Option<Spent> {
        let mut spent = Spent::default();
        let (root, _) = self.0.iter().find(|(_, process)| !self.0.contains_key(&process.parent))?;
        for (id, process) in &self.0 {
            let earlier = before.0.get(id);
            let earlier = earlier.map_or((0, 0), |process| (process.cpu_ns, process.waited_ns));
            let used_ns = process.cpu_ns.saturating_sub(earlier.0);
            if id == root {
                spent.client_ns += used_ns;
            } else if process.name.starts_with("sshd") {
                spent.server_ns += used_ns;
            } else {
                continue;
            }
            let waited_ns = process.waited_ns.saturating_sub(earlier.1);
            spent.waited_ns = spent.waited_ns.max(waited_ns);
        }
        Some(spent)
    }
}

fn below(root: u32, mut all: BTreeMap<u32, Process>) -> BTreeMap<u32, Process> {
    let mut found = BTreeMap::new();
    let mut wanted = vec![root];
    while let Some(id) = wanted.pop() {
        if let Some(process) = all.remove(&id) {
            found.insert(id, process);
        }
        let children = all.iter().filter(|(_, process)| process.parent == id);
        wanted.extend(children.map(|(id, _)| *id));
    }
    found
}

/// Name, parent, and processor time from ticks.
fn parse(stat: &str) -> Option<Process> {
    // The name is in parentheses and can hold everything, closing parentheses too.
    let (name, rest) = (stat.find('(')?, stat.rfind(')')?);
    let fields: Vec<&str> = stat.get(rest + 1..)?.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let ns_per_tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        name: stat.get(name + 1..rest)?.to_string(),
        cpu_ns: (ticks(11)? + ticks(12)?) * ns_per_tick,
        waited_ns: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(parent: u32, name: &str, cpu_ns: u64) -> Process {
        Process { parent, name: name.into(), cpu_ns, waited_ns: cpu_ns / 10 }
    }

    #[test]
    fn a_name_may_hold_spaces_and_parentheses() {
        let text = "42 (sshd: a) b (x) S 7 42 42 0 -1 0 0 0 0 0 3 2 0 0 20 0 1 0 9 0 0";
        let found = parse(text).expect("a process");
        assert_eq!((found.parent, found.name.as_str()), (7, "sshd: a) b (x"));
        assert_eq!(found.cpu_ns, 5 * 1_000_000_000 / rustix::param::clock_ticks_per_second());
        assert_eq!(parse("42 (x"), None);
    }

    #[test]
    fn ends_are_told_apart_and_what_the_server_runs_is_neither() {
        let tree = |client, server| {
            let all = [
                (10, process(1, "ssh", client)),
                (11, process(10, "sshd", server)),
                (12, process(11, "sshd-session", server)),
                (13, process(12, "cat", 900)),
                (99, process(1, "sshd", 7000)),
            ];
            Account(below(10, all.into()))
        };
        let spent = tree(150, 80).since(&tree(100, 50)).expect("a root");
        assert_eq!((spent.client_ns, spent.server_ns), (50, 60));
        assert_eq!(spent.waited_ns, 5);
        assert_eq!(Account::default().since(&Account::default()), None);
    }
}
