//! `/proc/PID/cgroup`: to which unit a process belongs.

use super::numbers::lines;

/// Ends of names that systemd gives to what runs something (systemd.unit(5)).
const KINDS: [&str; 6] = [".service", ".scope", ".socket", ".mount", ".swap", ".slice"];
/// Digits of a container's number that people are shown; docker and podman show as many.
const SHORT_ID: usize = 12;

/// The innermost unit in the text (cgroups(7)): that of the unified hierarchy, or of systemd's own where there is an older
/// one. Empty outside all units.
pub fn parse_unit(text: &[u8]) -> String {
    let path_of = |is_meant: fn(&str) -> bool| {
        let mut lines = lines(text).filter_map(|line| std::str::from_utf8(line).ok());
        let path = lines.find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            is_meant(controllers).then_some(path)
        });
        path.filter(|path| path.len() > 1)
    };
    let unified = path_of(str::is_empty);
    let path = unified.or_else(|| path_of(|controllers| controllers == "name=systemd"));
    let Some(path) = path else {
        return String::new();
    };
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let unit = parts.clone().rfind(|part| {
        let is_unit = KINDS.iter().any(|kind| part.ends_with(kind));
        is_unit && !part.ends_with(".slice")
    });
    let unit = unit.or_else(|| parts.next()).unwrap_or_default();
    shortened(unit)
}

/// "docker-0123456789ab.scope" of one with 64 digits.
fn shortened(unit: &str) -> String {
    let digits = |part: &str| part.len() == 64 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let (name, kind) = unit.rsplit_once('.').unwrap_or((unit, ""));
    let (before, id) = name.rsplit_once('-').unwrap_or(("", name));
    if !digits(id) {
        return unit.to_string();
    }
    let mut short = String::new();
    for part in [before, "-"] {
        if !before.is_empty() {
            short += part;
        }
    }
    short += &id[..SHORT_ID];
    if !kind.is_empty() {
        short = short + "." + kind;
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_unit_names_a_process() {
        let unit = |text: &str| parse_unit(text.as_bytes());
        assert_eq!(unit("0::/system.slice/ssh.service\n"), "ssh.service");
        assert_eq!(unit("0::/init.scope\n"), "init.scope");
        let app = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-foot@1.service\n";
        assert_eq!(unit(app), "app-foot@1.service");
        assert_eq!(unit("0::/user.slice/user-1000.slice/session-3.scope\n"), "session-3.scope");
        assert_eq!(unit("0::/lxc.payload.web/init\n"), "lxc.payload.web");
        assert_eq!(unit("0::/user.slice\n"), "user.slice");
    }

    #[test]
    fn an_older_hierarchy_has_its_unit_beside_the_empty_new_one() {
        let text = "4:memory:/limited\n1:name=systemd:/system.slice/cron.service\n0::/\n";
        assert_eq!(parse_unit(text.as_bytes()), "cron.service");
        assert_eq!(parse_unit(b"4:memory:/limited\n0::/\n"), "");
        assert_eq!(parse_unit(b""), "");
        assert_eq!(parse_unit(b"\xff\n::\n"), "");
    }

    #[test]
    fn a_container_s_number_is_cut_as_its_tools_do() {
        let id = "ab".repeat(32);
        let text = format!("0::/system.slice/docker-{id}.scope\n");
        assert_eq!(parse_unit(text.as_bytes()), "docker-abababababab.scope");
        let text = format!("0::/docker/{id}\n");
        assert_eq!(parse_unit(text.as_bytes()), "docker");
        assert_eq!(shortened(&id), "abababababab");
    }
}
