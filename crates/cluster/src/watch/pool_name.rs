//! A pool by its address.

use std::fmt;

use super::client::{Client, is_name};

/// The scheme of a pool's address.
pub const SCHEME: &str = "rados:";

/// The address of a pool: its name; then perhaps which configuration to use, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolName {
    name: String,
    /// As whom, and with which configuration.
    pub client: Client,
}

impl PoolName {
    /// Reads `rados:POOL[:conf=FILE][:id=USER]`.
    ///
    /// # Errors
    /// In words, when it is none.
    pub fn parse(typed: &str) -> Result<PoolName, String> {
        let mut parts = typed.strip_prefix(SCHEME).unwrap_or(typed).split(':');
        let name = parts.next().filter(|name| is_name(name));
        let pool = name
            .and_then(|name| Some(PoolName { name: name.into(), client: Client::parse(parts)? }));
        pool.ok_or_else(|| {
            format!(
                "'{typed}' names no pool: write rados:POOL[:conf=FILE][:id=USER], such as rados:rbd \
                 (`ceph osd pool ls` lists them; a directory of that name is ./{typed})"
            )
        })
    }

    /// The whole address.
    pub fn address(&self) -> String {
        format!("{SCHEME}{self}{}", self.client.suffix())
    }
}

/// As `rados -p` takes it.
impl fmt::Display for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_one_name_and_perhaps_how_to_reach_it() {
        for typed in ["rados:rbd", "rados:default.rgw.buckets:conf=/c:id=bench"] {
            assert_eq!(PoolName::parse(typed).map(|name| name.address()), Ok(typed.into()));
        }
        let name = PoolName::parse("rados:p:id=a:conf=/c").expect("it is one");
        assert_eq!(name.client.options(), ["--conf=/c", "--id=a"]);
        assert_eq!(name.to_string(), "p");
        for typed in
            ["rados:", "rados:a/b", "rados:a b", "rados:a:key=x", "rados::id=a", "rados:a:id"]
        {
            let error = PoolName::parse(typed).unwrap_err();
            assert!(error.contains("rados:POOL"), "{typed}: {error}");
        }
    }
}
