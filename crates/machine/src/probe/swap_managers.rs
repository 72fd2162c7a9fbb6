//! Programs that configure swap, and their settings.
//!
//! Each has one main file and perhaps drop-ins in the order of systemd.syntax(7): directories
//! /usr/lib, /usr/local/lib, /run, /etc, where a file hides those of its name in the ones before
//! and all are read in the order of their names, the main file first.

use std::collections::BTreeMap;
use std::path::Path;

use rubus_host::{Files, ReadError};
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::SwapManager;

use crate::probe::read;

struct Manager {
    name: &'static str,
    /// Main file below the configuration directories, or its full path.
    file: &'static str,
    /// Whether it is read the systemd way, with sections and drop-ins.
    is_systemd_style: bool,
    /// Programs that show that it is installed without a configuration.
    programs: &'static [&'static str],
}

const MANAGERS: [Manager; 4] = [
    Manager {
        name: "dphys-swapfile",
        file: "/etc/dphys-swapfile",
        is_systemd_style: false,
        programs: &["/usr/sbin/dphys-swapfile", "/sbin/dphys-swapfile"],
    },
    Manager {
        name: "rpi-swap",
        file: "rpi/swap.conf",
        is_systemd_style: true,
        programs: &["/usr/lib/systemd/system-generators/rpi-swap-generator"],
    },
    Manager {
        name: "zram-generator",
        file: "systemd/zram-generator.conf",
        is_systemd_style: true,
        programs: &["/usr/lib/systemd/system-generators/zram-generator"],
    },
    Manager {
        name: "zram-tools",
        file: "/etc/default/zramswap",
        is_systemd_style: false,
        programs: &["/usr/sbin/zramswap"],
    },
];

/// From the weakest to the strongest.
const DIRECTORIES: [&str; 4] = ["/usr/lib", "/usr/local/lib", "/run", "/etc"];

/// The managers that are installed or configured.
pub(crate) fn swap_managers(files: &dyn Files) -> Vec<SwapManager> {
    MANAGERS
        .iter()
        .filter_map(|manager| {
            let paths = if manager.is_systemd_style {
                systemd_files(files, manager.file)
            } else {
                existing(files, manager.file)
            };
            let installed = || {
                let is_there = |program: &&str| files.exists(Path::new(program));
                manager.programs.iter().any(is_there)
            };
            if paths.is_empty() && !installed() {
                return None;
            }
            Some(SwapManager {
                name: manager.name.to_string(),
                settings: settings(files, manager, &paths),
            })
        })
        .collect()
}

fn existing(files: &dyn Files, path: &str) -> Vec<String> {
    match files.read_prefix(Path::new(path), 1) {
        Err(ReadError::Absent | ReadError::NotCaptured) => Vec::new(),
        // One that may not be read is there all the same.
        _ => vec![path.to_string()],
    }
}

/// The strongest main file and the drop-ins, in the order in which they are read.
fn systemd_files(files: &dyn Files, main: &str) -> Vec<String> {
    let strongest = DIRECTORIES
        .iter()
        .rev()
        .find_map(|directory| existing(files, &format!("{directory}/{main}")).pop());
    let mut drop_ins: BTreeMap<String, String> = BTreeMap::new();
    for directory in DIRECTORIES {
        let directory = format!("{directory}/{main}.d");
        for name in files.list(Path::new(&directory)).unwrap_or_default() {
            if name.ends_with(".conf") {
                drop_ins.insert(name.clone(), format!("{directory}/{name}"));
            }
        }
    }
    strongest.into_iter().chain(drop_ins.into_values()).collect()
}

/// Lines `name = value`, with the section before the name where there are sections. A setting
/// that is made twice shows its last value.
fn settings(files: &dyn Files, manager: &Manager, paths: &[String]) -> Fact<Vec<String>> {
    let mut merged: Vec<(String, String)> = Vec::new();
    for path in paths {
        let text = match read::text(files, path) {
            Fact::Known { value, .. } => value,
            Fact::Unknown { unknown, source } => return Fact::Unknown { unknown, source },
        };
        for (name, value) in assignments(&text, !manager.is_systemd_style) {
            match merged.iter_mut().find(|(known, _)| *known == name) {
                Some((_, old)) => *old = value,
                None => merged.push((name, value)),
            }
        }
    }
    let lines = merged.into_iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if paths.is_empty() {
        let file = Path::new("/etc").join(manager.file);
        return Fact::known(lines, format!("{} (absent: defaults)", file.display()));
    }
    Fact::known(lines, paths.join(", "))
}

/// Assignments of a shell or INI file; comments, blank lines and quotes left out.
fn assignments(text: &str, is_shell: bool) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = format!("[{name}] ");
        } else if let Some((name, value)) = line.split_once('=') {
            let (name, value) = if is_shell {
                (exported(name), shell_word(value))
            } else {
                (name.trim(), value.trim().trim_matches(['"', '\'']).to_string())
            };
            found.push((format!("{section}{name}"), value));
        }
    }
    found
}

fn exported(name: &str) -> &str {
    let name = name.trim();
    name.strip_prefix("export ").map_or(name, str::trim)
}

/// The first word as a shell reads it: quotes are taken off, and what follows a blank is a comment or another command.
fn shell_word(text: &str) -> String {
    let mut word = String::new();
    let mut quote = None;
    for c in text.trim_end().chars() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() || c == ';' => break,
            (c, _) => word.push(c),
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    fn one(files: &FakeFiles) -> SwapManager {
        let mut managers = swap_managers(files);
        assert_eq!(managers.len(), 1, "{managers:?}");
        managers.remove(0)
    }

    #[test]
    fn drop_ins_win_and_sections_stay_apart() {
        let files = FakeFiles::new()
            .file(
                "/etc/rpi/swap.conf",
                "# comment\n[Main]\n#Mechanism=auto\n[File]\nMaxSizeMiB=2048\n[Zram]\nMaxSizeMiB=1024\n",
            )
            .file("/usr/lib/rpi/swap.conf", "[Main]\nMechanism=swapfile\n")
            .file("/etc/rpi/swap.conf.d/20-mine.conf", "[Zram]\nMaxSizeMiB = 512\n")
            .file("/usr/lib/rpi/swap.conf.d/20-mine.conf", "[Zram]\nMaxSizeMiB=1\n")
            .file("/run/rpi/swap.conf.d/30.conf", "[Main]\nMechanism=zram\n")
            .file("/etc/rpi/swap.conf.d/README", "Mechanism=none\n");
        let manager = one(&files);
        assert_eq!(manager.name, "rpi-swap");
        assert_eq!(
            manager.settings.value().unwrap(),
            &["[File] MaxSizeMiB = 2048", "[Zram] MaxSizeMiB = 512", "[Main] Mechanism = zram"]
        );
        assert_eq!(
            manager.settings.source(),
            "/etc/rpi/swap.conf, /etc/rpi/swap.conf.d/20-mine.conf, /run/rpi/swap.conf.d/30.conf"
        );
    }

    #[test]
    fn shell_style_files_are_read() {
        let files = FakeFiles::new().file(
            "/etc/dphys-swapfile",
            "# CONF_SWAPFILE=/var/swap\nCONF_SWAPSIZE=100\nCONF_MAXSWAP=\"2048\"\n",
        );
        let manager = one(&files);
        assert_eq!(manager.name, "dphys-swapfile");
        assert_eq!(
            manager.settings.value().unwrap(),
            &["CONF_SWAPSIZE = 100", "CONF_MAXSWAP = 2048"]
        );
    }

    #[test]
    fn a_comment_behind_a_value_is_none_of_it() {
        let text = "CONF_SWAPFILE=/media/usb/swap # on the stick\n  export CONF_SWAPSIZE=1024\t# MB\n\
                    A=\"/a b\" # c\nB=x#y\nC='it'\\n";
        let found = assignments(text, true);
        let shown: Vec<String> =
            found.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            shown[..4],
            ["CONF_SWAPFILE=/media/usb/swap", "CONF_SWAPSIZE=1024", "A=/a b", "B=x#y"]
        );
        // systemd knows no comment behind a value.
        assert_eq!(assignments("a=b # c\n", false), [("a".to_string(), "b # c".to_string())]);
    }

    #[test]
    fn installed_without_configuration_and_unreadable_are_different() {
        let installed = FakeFiles::new().file("/usr/sbin/zramswap", "");
        assert_eq!(one(&installed).settings.value().unwrap().len(), 0);
        let unreadable = FakeFiles::new().denied("/etc/default/zramswap");
        assert!(one(&unreadable).settings.reason().is_some());
        assert!(swap_managers(&FakeFiles::new()).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ -~\\n]{0,200}") {
            assignments(&text, true);
            assignments(&text, false);
        }
    }
}
