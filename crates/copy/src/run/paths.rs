//! Parts of a tree, named by paths: what is left out, what is compared as a whole.

/// Parts of a tree. Each path begins with `/`, which is the root of what is copied; `*` stands for any characters of
/// one name. `/swapfile` is that file; `/tmp/*` is what is in `/tmp`, so leaving it out keeps the empty directory with
/// its owner and mode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    rules: Vec<Vec<Vec<u8>>>,
}

impl Paths {
    /// Takes the paths as they are written.
    ///
    /// # Errors
    /// When one does not begin with `/`, is nothing but that, or has `.` or `..` in it.
    pub fn new<T: AsRef<[u8]>>(paths: &[T]) -> Result<Self, String> {
        let rules = paths.iter().map(|path| rule(path.as_ref()));
        Ok(Paths { rules: rules.collect::<Result<_, _>>()? })
    }

    /// What a running system must not take along: what the kernel makes up, and what is mounted or gone after the next
    /// boot. Swap files are not known here; name them.
    pub fn of_a_running_system() -> Self {
        let paths = [
            "/proc/*",
            "/sys/*",
            "/dev/*",
            "/run/*",
            "/tmp/*",
            "/mnt/*",
            "/media/*",
            "/lost+found",
        ];
        let rules = paths.iter().filter_map(|path| rule(path.as_bytes()).ok());
        Paths { rules: rules.collect() }
    }

    /// These and others.
    #[must_use]
    pub fn and(mut self, mut other: Paths) -> Self {
        self.rules.append(&mut other.rules);
        self
    }

    /// Whether the entry at a relative path (without a leading `/`) is one of them or within one.
    pub fn cover(&self, path: &[u8]) -> bool {
        self.rules.iter().any(|rule| {
            let mut names = path.split(|&byte| byte == b'/');
            rule.iter().all(|part| names.next().is_some_and(|name| fits(part, name)))
        })
    }
}

fn rule(path: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let text = || String::from_utf8_lossy(path);
    let Some(rest) = path.strip_prefix(b"/") else {
        return Err(format!(
            "'{}' must begin with /, which stands for the directory that is copied",
            text()
        ));
    };
    let rest = rest.strip_suffix(b"/").unwrap_or(rest);
    let parts: Vec<Vec<u8>> = rest.split(|&byte| byte == b'/').map(<[u8]>::to_vec).collect();
    let is_odd = |part: &Vec<u8>| part.is_empty() || part == b"." || part == b"..";
    if parts.iter().any(is_odd) {
        return Err(format!("'{}' must name something, without empty names, . or ..", text()));
    }
    Ok(parts)
}

/// Whether a name fits a pattern with `*`. Goes back to the last `*` only, which is enough for one kind of wildcard.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            last_star = Some((p, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            p += 1;
            n += 1;
        } else if let Some((star, taken)) = last_star {
            p = star + 1;
            n = taken + 1;
            last_star = Some((star, n));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_characters_of_one_name() {
        let paths = Paths::new(&["/tmp/*", "/var/*/old.*.gz", "/swap"]).unwrap();
        for path in ["tmp/x", "tmp/.x", "tmp/a/b", "var/log/old.1.gz", "swap"] {
            assert!(paths.cover(path.as_bytes()), "{path}");
        }
        for path in ["tmp", "var/log/x/old.1.gz", "home/swap", "swapfile", "var/log/old.gz"] {
            assert!(!paths.cover(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn what_does_not_begin_at_the_root_is_not_taken() {
        for path in ["tmp", "", "/", "/a//b", "/a/../b", "/./a"] {
            assert!(Paths::new(&[path]).is_err(), "{path}");
        }
        assert!(Paths::new(&["/tmp/"]).unwrap().cover(b"tmp"));
    }

    #[test]
    fn a_running_system_keeps_its_mount_points() {
        let paths = Paths::of_a_running_system();
        assert!(!paths.cover(b"proc") && paths.cover(b"proc/1"));
    }
}
