//! An RBD image by its name, and what Ceph's own tools say of it.

use std::fmt;

use serde_json::Value;

use super::client::{Client, is_name};

/// The scheme of an image's address.
pub const SCHEME: &str = "rbd:";

/// The address of an image, as QEMU writes it: pool, perhaps a namespace, image, perhaps a snapshot; then perhaps which
/// configuration to use, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName {
    pool: String,
    rest: String,
    /// As whom, and with which configuration.
    pub client: Client,
}

impl ImageName {
    /// Reads `rbd:POOL/[NAMESPACE/]IMAGE[@SNAPSHOT][:conf=FILE][:id=USER]`.
    ///
    /// # Errors
    /// In words, when it is none.
    pub fn parse(typed: &str) -> Result<ImageName, String> {
        let no_image = || {
            format!(
                "'{typed}' names no RBD image: write rbd:POOL/IMAGE[:conf=FILE][:id=USER], such as rbd:rbd/disk \
                 (`rbd ls POOL` lists them; a directory of that name is ./{typed})"
            )
        };
        let mut parts = typed.strip_prefix(SCHEME).unwrap_or(typed).split(':');
        let name = parts.next().unwrap_or_default();
        let (path, snapshot) =
            name.split_once('@').map_or((name, None), |(path, s)| (path, Some(s)));
        let depth = path.split('/').count();
        if !(2..=3).contains(&depth) || !path.split('/').chain(snapshot).all(is_name) {
            return Err(no_image());
        }
        let (pool, _) = path.split_once('/').unwrap_or((path, ""));
        Ok(ImageName {
            pool: pool.into(),
            rest: name[pool.len() + 1..].into(),
            client: Client::parse(parts).ok_or_else(no_image)?,
        })
    }

    /// The whole address, as QEMU takes it.
    pub fn address(&self) -> String {
        format!("{SCHEME}{self}{}", self.client.suffix())
    }

    /// The pool of the image.
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// Whether it is a snapshot, which can only be read.
    pub fn is_snapshot(&self) -> bool {
        self.rest.contains('@')
    }
}

/// As `rbd` takes it, and QEMU behind `rbd:`.
impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.pool, self.rest)
    }
}

/// Who has an image open, from `rbd status --format json`: addresses of its watchers.
///
/// # Errors
/// In words, when it is something else.
pub fn watchers(printed: &str) -> Result<Vec<String>, String> {
    let found: Value = serde_json::from_str(printed.trim())
        .map_err(|error| format!("`rbd status` printed no JSON: {error}"))?;
    let watchers = match &found["watchers"] {
        Value::Array(watchers) => watchers.clone(),
        // Older releases number them.
        Value::Object(watchers) => watchers.values().cloned().collect(),
        _ => Vec::new(),
    };
    let address = |watcher: &Value| watcher["address"].as_str().unwrap_or("somebody").to_owned();
    Ok(watchers.iter().map(address).collect())
}

/// The pool in which the data of an image are, from `rbd info --format json`: it may have one beside its own.
pub fn data_pool(printed: &str) -> Option<String> {
    let found: Value = serde_json::from_str(printed.trim()).ok()?;
    found["data_pool"].as_str().map(str::to_owned)
}

/// A pool, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Copies, or pieces of an erasure code.
    pub size: u32,
    /// The profile of its erasure code, if it has one.
    pub profile: Option<String>,
}

impl Pool {
    /// "3 copies", "erasure code 2+1". `profile` is what `ceph osd erasure-code-profile get NAME --format json` prints.
    pub fn layout(&self, profile: Option<&str>) -> String {
        let profile: Value = profile
            .and_then(|printed| serde_json::from_str(printed.trim()).ok())
            .unwrap_or_default();
        match (profile["k"].as_str(), profile["m"].as_str(), self.size) {
            (Some(data), Some(parity), _) => format!("erasure code {data}+{parity}"),
            (_, _, 1) => "1 copy".into(),
            (_, _, size) => format!("{size} copies"),
        }
    }
}

/// A pool by its name, from `ceph osd pool ls detail --format json`.
///
/// # Errors
/// In words, when there is none, with the names of those that there are.
pub fn pool(printed: &str, name: &str) -> Result<Pool, String> {
    let pools: Vec<Value> = serde_json::from_str(printed.trim())
        .map_err(|error| format!("`ceph osd pool ls` printed no JSON: {error}"))?;
    let names = || {
        let names = pools.iter().filter_map(|pool| pool["pool_name"].as_str());
        let names: Vec<&str> = names.filter(|name| !name.starts_with('.')).collect();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    };
    let pool = pools
        .iter()
        .find(|pool| pool["pool_name"] == name)
        .ok_or_else(|| format!("there is no pool '{name}' in this cluster; it has: {}", names()))?;
    let size = pool["size"].as_u64();
    let profile = pool["erasure_code_profile"].as_str();
    Ok(Pool {
        size: size.and_then(|size| u32::try_from(size).ok()).unwrap_or(0),
        profile: profile.filter(|name| !name.is_empty()).map(str::to_owned),
    })
}

/// Bytes that a pool still takes, from `ceph df --format json`.
///
/// # Errors
/// In words, when it does not say that.
pub fn available(printed: &str, name: &str) -> Result<u64, String> {
    let found: Value = serde_json::from_str(printed.trim())
        .map_err(|error| format!("`ceph df` printed no JSON: {error}"))?;
    let pools = found["pools"].as_array();
    let pool = pools.into_iter().flatten().find(|pool| pool["name"] == name);
    pool.and_then(|pool| pool["stats"]["max_avail"].as_u64())
        .ok_or_else(|| format!("`ceph df` does not say what the pool '{name}' still takes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_pool_and_an_image() {
        for (typed, pool, snapshot) in [
            ("rbd:rbd/disk", "rbd", false),
            ("rbd:fast/tenant/disk", "fast", false),
            ("rbd:rbd/disk@monday", "rbd", true),
            ("rbd:rbd/disk:conf=/etc/ceph/b.conf:id=bench", "rbd", false),
        ] {
            let name = ImageName::parse(typed).expect("it is one");
            assert_eq!((name.pool(), name.is_snapshot()), (pool, snapshot), "{typed}");
            assert_eq!(name.address(), typed);
        }
        let name = ImageName::parse("rbd:rbd/disk:id=a:conf=/c").expect("it is one");
        assert_eq!(name.client.options(), ["--conf=/c", "--id=a"]);
        assert_eq!(name.to_string(), "rbd/disk");
        for typed in [
            "rbd:",
            "rbd:disk",
            "rbd:/disk",
            "rbd:a/b/c/d",
            "rbd:a/b:key=x",
            "rbd:a/b:conf=",
            "rbd:a/b@",
            "rbd:a@b/c",
            "rbd:a/b c",
            "rbd:a/b:id=x/y",
        ] {
            let error = ImageName::parse(typed).unwrap_err();
            assert!(error.contains("rbd:POOL/IMAGE"), "{typed}: {error}");
        }
    }

    #[test]
    fn who_has_it_open_is_read_from_old_and_new_releases() {
        let new = r#"{"watchers":[{"address":"10.0.0.2:0/77","client":4,"cookie":1}]}"#;
        let old = r#"{"watchers":{"watcher":{"address":"10.0.0.2:0/77"}}}"#;
        for printed in [new, old] {
            assert_eq!(watchers(printed), Ok(vec!["10.0.0.2:0/77".to_owned()]));
        }
        assert_eq!(watchers(r#"{"watchers":[]}"#), Ok(Vec::new()));
    }

    #[test]
    fn a_pool_says_how_it_keeps_data_and_a_missing_one_which_there_are() {
        let pools = r#"[{"pool_name":".mgr","size":3},{"pool_name":"rbd","size":3,"erasure_code_profile":""},
            {"pool_name":"ec","size":3,"erasure_code_profile":"ec21"}]"#;
        let copies = pool(pools, "rbd").expect("it is there");
        assert_eq!(copies.layout(None), "3 copies");
        let coded = pool(pools, "ec").expect("it is there");
        assert_eq!(coded.profile.as_deref(), Some("ec21"));
        let profile = r#"{"k":"2","m":"1","plugin":"jerasure"}"#;
        assert_eq!(coded.layout(Some(profile)), "erasure code 2+1");
        let error = pool(pools, "rdb").unwrap_err();
        assert_eq!(error, "there is no pool 'rdb' in this cluster; it has: rbd, ec");
        assert!(pool("[]", "rbd").unwrap_err().ends_with("it has: none"));
    }

    #[test]
    fn a_pool_says_what_it_still_takes() {
        let df = r#"{"stats":{},"pools":[{"name":"rbd","id":1,"stats":{"stored":289407008,"max_avail":7435669504}}]}"#;
        assert_eq!(available(df, "rbd"), Ok(7_435_669_504));
        assert!(available(df, "ec").unwrap_err().contains("'ec'"));
    }

    #[test]
    fn data_may_be_in_another_pool() {
        assert_eq!(data_pool(r#"{"name":"d","data_pool":"ec"}"#).as_deref(), Some("ec"));
        assert_eq!(data_pool(r#"{"name":"d"}"#), None);
    }
}
