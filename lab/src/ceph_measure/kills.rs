//! OSDs killed with SIGKILL while objects are written; every acknowledged object is read back and compared.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::{Cluster, Settings, Shape, say};
use crate::cache::Cache;

const OSDS: u32 = 4;
/// Kills with each layout.
const KILLS: u32 = 10;
const SHAPES: [Shape; 2] = [Shape::Copies(3), Shape::Code(2, 2)];
const WRITERS: u32 = 3;
const OBJECT_BYTES: usize = 384 << 10;
/// Each third write overwrites the object written before it.
const OVERWRITES: u64 = 3;

/// Which version of each object was acknowledged last.
type Acknowledged = BTreeMap<String, u64>;

/// Content of a version of an object: 32 bytes of a hash, repeated with their place.
fn content(name: &str, version: u64) -> Vec<u8> {
    let block = |index: usize| Sha256::digest(format!("{name} {version} {index}"));
    (0..OBJECT_BYTES / 32).flat_map(block).collect()
}

pub(super) fn table(cache: &Cache) -> Result<String> {
    let mut rows = Vec::new();
    for shape in SHAPES {
        let row = of_layout(cache, shape)?;
        say(&row);
        rows.push(row);
    }
    Ok(format!(
        "| layout | kills | seconds | objects acknowledged, of these overwritten | acknowledged while an OSD was down | bytes read back | bytes lost |\n\
         |---|---:|---:|---|---:|---:|---:|\n{}\n",
        rows.join("\n")
    ))
}

fn of_layout(cache: &Cache, shape: Shape) -> Result<String> {
    const POOL: &str = "kept";
    let settings = Settings { osds: OSDS, ..Settings::default() };
    let cluster = Cluster::start(cache, &settings)?;
    shape.make_pool(&cluster, POOL, OSDS)?;
    let start = Instant::now();
    let (is_over, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    let (written, while_down) = scope(|scope| -> Result<(Vec<Acknowledged>, u64)> {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (cluster, is_over, acknowledged) = (&cluster, &is_over, &acknowledged);
                scope.spawn(move || write(cluster, POOL, writer, is_over, acknowledged))
            })
            .collect();
        let while_down = kills(&cluster, &acknowledged);
        // The writers end also when a kill failed.
        is_over.store(true, Ordering::Relaxed);
        let mut written = Vec::new();
        for writer in writers {
            let done = writer.join();
            written.push(done.ok().context("a writer panicked")??);
        }
        Ok((written, while_down?))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    cluster.wait_clean(Duration::from_secs(180))?;
    let all: Vec<(String, u64)> = written.into_iter().flatten().collect();
    let lost = lost_bytes(&cluster, POOL, &all)?;
    let again = all.iter().filter(|(_, version)| *version > 0).count();
    Ok(format!(
        "| {} | {KILLS} | {seconds:.0} | {}, {again} | {while_down} | {} | {lost} |",
        shape.name(),
        all.len(),
        all.len() * OBJECT_BYTES,
    ))
}

/// Kills one OSD after the other, and starts each again. Gives the writes that were acknowledged while one was down.
fn kills(cluster: &Cluster, acknowledged: &AtomicU64) -> Result<u64> {
    let mut while_down = 0;
    for kill in 0..KILLS {
        // Not in step with anything.
        sleep(Duration::from_millis(700 + u64::from(kill) * 377 % 1300));
        let osd = kill % OSDS;
        cluster.kill_osd(osd, OSDS - 1)?;
        let before = acknowledged.load(Ordering::Relaxed);
        sleep(Duration::from_secs(3));
        while_down += acknowledged.load(Ordering::Relaxed) - before;
        cluster.restart_osd(osd)?;
        cluster.wait_up(OSDS, Duration::from_secs(90))?;
        say(&format!(
            "kill {} of {KILLS}: osd.{osd}; {} writes acknowledged so far",
            kill + 1,
            acknowledged.load(Ordering::Relaxed)
        ));
    }
    Ok(while_down)
}

/// Writes objects one after the other until it is over; a command that ends with 0 is an acknowledgement.
fn write(
    cluster: &Cluster,
    pool: &str,
    writer: u32,
    is_over: &AtomicBool,
    acknowledged: &AtomicU64,
) -> Result<Acknowledged> {
    let mut written = Acknowledged::new();
    let file = format!("writer{writer}");
    let inside = format!("/ceph/{file}");
    for turn in 0_u64.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let is_again = turn % OVERWRITES == OVERWRITES - 1;
        let name = format!("object-{writer}-{}", if is_again { turn - 1 } else { turn });
        let version = u64::from(is_again);
        fs::write(cluster.place().join(&file), content(&name, version))?;
        cluster.run("rados", &["-p", pool, "put", &name, &inside])?;
        written.insert(name, version);
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
    Ok(written)
}

/// Bytes of acknowledged objects that are missing or differ.
fn lost_bytes(cluster: &Cluster, pool: &str, all: &[(String, u64)]) -> Result<usize> {
    ensure!(!all.is_empty(), "nothing was written");
    let mut lost = 0;
    for (name, version) in all {
        let read = cluster.run("rados", &["-p", pool, "get", name, "/ceph/back"]);
        let found = match read {
            Ok(_) => fs::read(cluster.place().join("back"))?,
            Err(why) => {
                say(&format!("{name} cannot be read: {why:#}"));
                Vec::new()
            }
        };
        lost += differing(&content(name, *version), &found);
    }
    Ok(lost)
}

/// Bytes of the wanted content that are not there.
fn differing(wanted: &[u8], found: &[u8]) -> usize {
    let same = wanted.iter().zip(found).filter(|(a, b)| a == b).count();
    wanted.len() - same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_byte_a_lost_end_and_an_old_version_are_seen() {
        let wanted = content("a", 1);
        assert_eq!(wanted.len(), OBJECT_BYTES);
        let mut found = wanted.clone();
        assert_eq!(differing(&wanted, &found), 0);
        found[77] ^= 1;
        assert_eq!(differing(&wanted, &found), 1);
        assert_eq!(differing(&wanted, &wanted[..OBJECT_BYTES - 5]), 5);
        assert!(differing(&wanted, &content("a", 0)) > OBJECT_BYTES / 2);
        assert_eq!(differing(&wanted, &[]), OBJECT_BYTES);
    }
}
