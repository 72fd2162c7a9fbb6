//! What the user called a target, before anything of it is looked at.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use rubus_cluster::watch::image::{ImageName, SCHEME as RBD_SCHEME};
use rubus_cluster::watch::pool_name::{PoolName, SCHEME as RADOS_SCHEME};
use rubus_command::places;
use rubus_vocabulary::units::parse_size;

/// A target as it was typed.
///
/// What begins with `ram:`, `rbd:`, `rados:` or the scheme of an NBD address is that; everything else is a path. A
/// directory that is called like one of them can be named with its place in front: `./ram:1MiB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetName {
    /// A directory, a file or a block device.
    Path(PathBuf),
    /// Memory, with its size in bytes.
    Ram(u64),
    /// An export of a network block device: an address as in the NBD project's `uri.md`.
    Nbd(String),
    /// An image of a Ceph cluster.
    Rbd(ImageName),
    /// Objects of a Ceph cluster.
    Rados(PoolName),
}

/// The schemes of NBD addresses.
const NBD_SCHEMES: [&str; 4] = ["nbd://", "nbds://", "nbd+unix://", "nbds+unix://"];

/// What Ceph's own programs go by, too; ours are started without the environment.
fn ceph_conf() -> Option<String> {
    places::variable("CEPH_CONF")
}

impl TargetName {
    /// Reads what was typed.
    ///
    /// # Errors
    /// A sentence, when it begins with `ram:`, `rbd:` or `rados:` and the rest is no size, image or pool.
    pub fn parse(typed: OsString) -> Result<Self, String> {
        // Only paths may be something else than text.
        let Some(text) = typed.to_str() else {
            return Ok(TargetName::Path(typed.into()));
        };
        if let Some(size) = text.strip_prefix("ram:") {
            let bytes = parse_size(size).map_err(|error| {
                format!(
                    "{error}; memory is named with the size to use, such as ram:256MiB (a directory \
                     of that name is ./{text})"
                )
            })?;
            return Ok(TargetName::Ram(bytes));
        }
        if text.starts_with(RBD_SCHEME) {
            return ImageName::parse(text).map(|mut name| {
                name.client = name.client.or_conf(ceph_conf());
                TargetName::Rbd(name)
            });
        }
        if text.starts_with(RADOS_SCHEME) {
            return PoolName::parse(text).map(|mut name| {
                name.client = name.client.or_conf(ceph_conf());
                TargetName::Rados(name)
            });
        }
        let begins_with = |scheme: &str| {
            let start = text.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        if NBD_SCHEMES.into_iter().any(begins_with) {
            return Ok(TargetName::Nbd(text.into()));
        }
        Ok(TargetName::Path(typed.into()))
    }
}

impl From<PathBuf> for TargetName {
    fn from(path: PathBuf) -> Self {
        TargetName::Path(path)
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetName::Path(path) => path.display().fmt(f),
            TargetName::Ram(bytes) if bytes % (1 << 20) == 0 => {
                write!(f, "ram:{}MiB", bytes >> 20)
            }
            TargetName::Ram(bytes) => write!(f, "ram:{bytes}"),
            TargetName::Nbd(address) => f.write_str(address),
            TargetName::Rbd(name) => f.write_str(&name.address()),
            TargetName::Rados(name) => f.write_str(&name.address()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn parse(text: &str) -> Result<TargetName, String> {
        TargetName::parse(text.into())
    }

    #[test]
    fn memory_is_named_with_its_size() {
        assert_eq!(parse("ram:256MiB"), Ok(TargetName::Ram(256 << 20)));
        assert_eq!(parse("ram:1M"), Ok(TargetName::Ram(1 << 20)));
        for bad in ["ram:", "ram:x", "ram:1MiB/x", "ram:-1"] {
            let error = parse(bad).unwrap_err();
            assert!(error.contains("ram:256MiB"), "{error}");
            assert!(error.contains(&format!("./{bad}")), "{error}");
        }
    }

    #[test]
    fn an_address_is_told_from_a_path_by_its_scheme() {
        for address in [
            "nbd://host/export",
            "nbds://host",
            "nbd+unix:///e?socket=/run/s",
            "nbds+unix:///?socket=s",
            "NBD://HOST",
        ] {
            assert_eq!(parse(address), Ok(TargetName::Nbd(address.into())));
        }
        for path in ["./ram:1M", "/dev/nbd0", "nbd:/x", "nbd", "ramdisk", "./nbd://x", "é", ""] {
            assert_eq!(parse(path), Ok(TargetName::Path(path.into())), "{path}");
        }
    }

    #[test]
    fn an_image_of_a_cluster_is_named_as_qemu_names_it() {
        assert!(matches!(parse("rbd:rbd/disk"), Ok(TargetName::Rbd(_))));
        assert!(parse("rbd:disk").unwrap_err().contains("./rbd:disk"));
        assert_eq!(parse("./rbd:a/b"), Ok(TargetName::Path("./rbd:a/b".into())));
    }

    #[test]
    fn a_pool_of_a_cluster_is_told_from_an_image() {
        assert!(matches!(parse("rados:rbd"), Ok(TargetName::Rados(_))));
        assert!(parse("rados:a/b").unwrap_err().contains("./rados:a/b"));
    }

    #[test]
    fn a_path_need_not_be_text() {
        let typed = OsString::from_vec(vec![b'/', 0xff]);
        assert_eq!(TargetName::parse(typed.clone()), Ok(TargetName::Path(typed.into())));
    }

    #[test]
    fn what_is_shown_can_be_typed_again() {
        for name in
            ["ram:256MiB", "ram:1048577", "nbd://h/e", "/tmp", "rbd:p/i:id=u", "rados:p:id=u"]
        {
            assert_eq!(parse(name).unwrap().to_string(), name);
        }
    }
}
