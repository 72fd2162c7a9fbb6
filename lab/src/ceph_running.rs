//! The cluster that `rubus-lab ceph up` keeps running, as other commands find it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::ceph::{Cluster, enter};

/// Where it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    holder: u32,
    init: u32,
    root: PathBuf,
}

impl Running {
    /// Makes a cluster known to other commands.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn announce(cache: &Cache, cluster: &Cluster) -> Result<Self> {
        let running = Self {
            holder: cluster.holder(),
            init: cluster.init(),
            root: cluster.root().to_owned(),
        };
        fs::write(file(cache), serde_json::to_vec(&running)?)
            .context("could not write to the cache")?;
        Ok(running)
    }

    /// The cluster that is running.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(cache: &Cache) -> Result<Self> {
        let found = fs::read(file(cache))
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        match found.filter(Self::lives) {
            Some(running) => Ok(running),
            None => bail!("no cluster is running; start one with `rubus-lab ceph up`"),
        }
    }

    /// Whether its holder still is what it was; the number may have been given to another process.
    fn lives(&self) -> bool {
        let line = fs::read(format!("/proc/{}/cmdline", self.holder)).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.starts_with("unshare\0") && line.contains(&*self.root.to_string_lossy())
    }

    /// A command inside the cluster.
    #[must_use]
    pub fn command(&self, words: &[String]) -> Command {
        let mut command = enter(self.init, &self.root, None);
        command.args(words);
        command
    }

    /// Ends it. `up` notices and removes the files.
    ///
    /// # Errors
    /// When the holder cannot be reached.
    pub fn end(&self, cache: &Cache) -> Result<()> {
        let pid = i32::try_from(self.holder).ok().and_then(rustix::process::Pid::from_raw);
        let pid = pid.context("no number of a process")?;
        rustix::process::kill_process(pid, rustix::process::Signal::KILL)
            .context("could not end the cluster")?;
        Self::forget(cache);
        Ok(())
    }

    /// Other commands do not find it any more.
    pub fn forget(cache: &Cache) {
        let _ = fs::remove_file(file(cache));
    }
}

fn file(cache: &Cache) -> PathBuf {
    Path::new(cache.root()).join("ceph-running.json")
}
