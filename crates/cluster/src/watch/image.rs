//! An RBD image by its name, and what Ceph's own tools say of it.

use std::fmt;

use serde_json::Value;

/// The scheme of an image's address.
pub const SCHEME: &str = "rbd:";

/// The name of an image: pool, perhaps a namespace, image, perhaps a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName {
    pool: String,
    rest: String,
}

impl ImageName {
    /// Reads `rbd:POOL/[NAMESPACE/]IMAGE[@SNAPSHOT]`, with the scheme or without.
    ///
    /// # Errors
    /// In words, when it is none.
    pub fn parse(typed: &str) -> Result<ImageName, String> {
        let name = typed.strip_prefix(SCHEME).unwrap_or(typed);
        let parts: Vec<&str> = name.split(['/', '@']).collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_name = |part: &&str| !part.is_empty() && part.chars().all(plain);
        let images = name.matches('/').count();
        let is_snapshot_last = name.rfind('@') > name.rfind('/') || !name.contains('@');
        if !(1..=2).contains(&images)
            || name.matches('@').count() > 1
            || !is_snapshot_last
            || !parts.iter().all(is_name)
        {
            return Err(format!(
                "'{typed}' names no RBD image: write rbd:POOL/IMAGE, such as rbd:rbd/disk (`rbd ls POOL` lists them; a \
                 directory of that name is ./{typed})"
            ));
        }
        let (pool, rest) = name.split_once('/').unwrap_or((name, ""));
        Ok(ImageName {
            pool: pool.into(),
            rest: rest.into(),
        })
    }

    /// Its pool.
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
    /// "3 copies", "erasure code 2+1".
    pub layout: String,
    /// Domains that have to be there for data to be written.
    pub min_size: u32,
}

/// A pool by its name, from `ceph osd dump --format json`.
///
/// # Errors
/// In words, when there is none, with the names of those that there are.
pub fn pool(dump: &str, name: &str) -> Result<Pool, String> {
    let found: Value = serde_json::from_str(dump.trim())
        .map_err(|error| format!("`ceph osd dump` printed no JSON: {error}"))?;
    let pools = found["pools"].as_array().cloned().unwrap_or_default();
    let names = || {
        let names = pools.iter().filter_map(|pool| pool["pool_name"].as_str());
        names
            .filter(|name| !name.starts_with('.'))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let pool = pools
        .iter()
        .find(|pool| pool["pool_name"] == name)
        .ok_or_else(|| {
            format!(
                "there is no pool '{name}' in this cluster; it has: {}",
                names()
            )
        })?;
    let number = |name: &str| {
        let number = pool[name].as_u64();
        number
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(0)
    };
    let (size, profile) = (number("size"), pool["erasure_code_profile"].as_str());
    let profile = &found["erasure_code_profiles"][profile.unwrap_or_default()];
    let layout = match (profile["k"].as_str(), profile["m"].as_str()) {
        (Some(data), Some(parity)) => format!("erasure code {data}+{parity}"),
        _ => match size {
            1 => "1 copy".into(),
            size => format!("{size} copies"),
        },
    };
    Ok(Pool {
        layout,
        min_size: number("min_size"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_pool_and_an_image() {
        for (typed, pool, snapshot) in [
            ("rbd:rbd/disk", "rbd", false),
            ("rbd:fast/tenant/disk", "fast", false),
            ("rbd/disk@monday", "rbd", true),
        ] {
            let name = ImageName::parse(typed).expect("it is one");
            assert_eq!(
                (name.pool(), name.is_snapshot()),
                (pool, snapshot),
                "{typed}"
            );
            assert_eq!(name.to_string(), typed.trim_start_matches(SCHEME));
        }
        for typed in [
            "rbd:",
            "rbd:disk",
            "rbd:/disk",
            "rbd:a/b/c/d",
            "rbd:a/b:conf=x",
            "rbd:a/b@",
            "rbd:a@b/c",
            "rbd:a/b c",
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
        let dump = r#"{"pools":[{"pool_name":".mgr","size":3,"min_size":2},{"pool_name":"rbd","size":3,"min_size":2,
            "erasure_code_profile":""},{"pool_name":"ec","size":3,"min_size":2,"erasure_code_profile":"ec21"}],
            "erasure_code_profiles":{"ec21":{"k":"2","m":"1","plugin":"jerasure"}}}"#;
        assert_eq!(pool(dump, "rbd").expect("it is there").layout, "3 copies");
        let coded = pool(dump, "ec").expect("it is there");
        assert_eq!(coded.layout, "erasure code 2+1");
        assert_eq!(coded.min_size, 2);
        let error = pool(dump, "rdb").unwrap_err();
        assert_eq!(
            error,
            "there is no pool 'rdb' in this cluster; it has: rbd, ec"
        );
    }

    #[test]
    fn data_may_be_in_another_pool() {
        assert_eq!(
            data_pool(r#"{"name":"d","data_pool":"ec"}"#).as_deref(),
            Some("ec")
        );
        assert_eq!(data_pool(r#"{"name":"d"}"#), None);
    }
}
