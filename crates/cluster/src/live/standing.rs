//! What has to be known of a cluster before an image or a pool in it is opened, asked of Ceph's own programs.

use std::time::Duration;

use rubus_host::process::child::answer;
use rubus_vocabulary::cluster_facts::ClusterFacts;

use crate::watch::client::Client;
use crate::watch::image::{self, ImageName, Pool};
use crate::watch::pool_name::PoolName;
use crate::watch::state::State;

/// How long the monitors may take to let a program in, in seconds.
const CONNECTING: &str = "--connect-timeout=10";
/// How long an answer may take in all.
const PATIENCE: Duration = Duration::from_secs(20);

/// The cluster, the pool and the image, as they stand.
pub struct Standing {
    /// What a run keeps.
    pub facts: ClusterFacts,
    /// Clients that have the image open; none, if it is a pool.
    pub watchers: Vec<String>,
    /// Some placement groups are inactive: they serve no requests.
    pub is_inactive: bool,
    /// What says that room is short.
    pub full: Vec<String>,
}

/// Asks for all of it about a pool.
///
/// # Errors
/// In words, with what to look at.
pub fn standing_of_pool(name: &PoolName) -> Result<Standing, String> {
    let client = &name.client;
    let state = State::parse(&ceph(client, &["status"])?)?;
    let pools = ceph(client, &["osd", "pool", "ls", "detail"])?;
    let pool = image::pool(&pools, &name.to_string())?;
    told(client, name.to_string(), &pool, state, Vec::new())
}

/// Bytes that a pool still takes.
///
/// # Errors
/// In words.
pub fn available(name: &PoolName) -> Result<u64, String> {
    image::available(&ceph(&name.client, &["df"])?, &name.to_string())
}

/// Asks for all of it about an image.
///
/// # Errors
/// In words, with what to look at.
pub fn standing(name: &ImageName) -> Result<Standing, String> {
    let client = &name.client;
    let state = State::parse(&ceph(client, &["status"])?)?;
    let pools = ceph(client, &["osd", "pool", "ls", "detail"])?;
    let own = image::pool(&pools, name.pool())?;
    let pool = match image::data_pool(&rbd(name, "info", &state)?) {
        Some(other) => image::pool(&pools, &other)?,
        None => own,
    };
    let watchers = image::watchers(&rbd(name, "status", &state)?)?;
    told(client, name.to_string(), &pool, state, watchers)
}

fn told(
    client: &Client,
    name: String,
    pool: &Pool,
    state: State,
    watchers: Vec<String>,
) -> Result<Standing, String> {
    Ok(Standing {
        facts: ClusterFacts {
            image: name,
            release: release(client),
            layout: layout(client, pool)?,
            osds: state.osds,
            osds_up: state.osds_up,
            changes: Vec::new(),
            dips: Vec::new(),
            nodes: Vec::new(),
            not_watched: None,
        },
        watchers,
        is_inactive: state.is_inactive,
        full: state.full,
    })
}

/// How the pool that holds the data keeps them.
fn layout(client: &Client, pool: &Pool) -> Result<String, String> {
    let profile = match &pool.profile {
        Some(profile) => Some(ceph(client, &["osd", "erasure-code-profile", "get", profile])?),
        None => None,
    };
    Ok(pool.layout(profile.as_deref()))
}

/// The release of the installed client: the daemons' may differ during an upgrade.
fn release(client: &Client) -> Option<String> {
    let printed = ceph(client, &["version"]).ok()?;
    let found: serde_json::Value = serde_json::from_str(printed.trim()).ok()?;
    // "ceph version 18.2.7 (6b0e98…) reef (stable)"
    let words: Vec<&str> = found["version"].as_str()?.split(' ').collect();
    Some(format!("{} {}", words.get(2)?, words.get(4)?))
}

fn ceph(client: &Client, words: &[&str]) -> Result<String, String> {
    let options = client.options();
    let mut all: Vec<&str> = options.iter().map(String::as_str).collect();
    all.extend([CONNECTING, "--format=json"]);
    all.extend(words);
    answer("ceph", &all, PATIENCE).map_err(|why| match why.as_str() {
        "ceph is not installed" => {
            "the program `ceph` is not installed (on Debian: apt install ceph-common)".into()
        }
        _ => format!(
            "the cluster does not answer `ceph {}`: {why}; look at the addresses in {}, the key of the user \
             (:id=USER), and whether the monitors run",
            words.join(" "),
            client.conf_in_words()
        ),
    })
}

/// `rbd` reads the image's own objects, which it waits for as long as it takes.
fn rbd(name: &ImageName, verb: &str, state: &State) -> Result<String, String> {
    let options = name.client.options();
    let mut words: Vec<&str> = options.iter().map(String::as_str).collect();
    let image = name.to_string();
    words.extend([verb, "--format=json", &image]);
    answer("rbd", &words, PATIENCE).map_err(|why| {
        let hint = match () {
            () if why.contains("No such file") => {
                format!("; `rbd ls {}` lists the images there are", name.pool())
            }
            () if why.contains("no answer") && state.is_inactive => format!(
                "; some placement groups are inactive, since too few of the {} OSDs are up ({}): see `ceph health detail`",
                state.osds, state.osds_up
            ),
            () => String::new(),
        };
        format!("`rbd {verb} {image}` says: {why}{hint}")
    })
}
