//! A real Ceph cluster on this machine: one monitor, one manager and a few OSDs on sparse files, from Debian's packages.
//!
//! Everything lives in the namespaces of one process, the *holder*: processes, mounts and network. When the holder dies, by whatever
//! signal, the kernel ends the daemons and takes mounts and networks with them. Each OSD has a network namespace of its own behind a
//! bridge, as a board has its own port, and its link may be limited. No systemd, no containers, no block devices; nothing leaves the
//! machine.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::cache::{Cache, Key};
use crate::tools;
use crate::tree::{KEYRING, mirror};

/// What is in the root directory beside what it depends on.
const PACKAGES: &str = "ceph-mon,ceph-mgr,ceph-osd,ceph-common,qemu-utils,qemu-block-extra,fio";

/// Changes whenever what is built does.
const RECIPE: &str = "1";

/// Where the cluster's files are, seen from inside.
const PLACE: &str = "/ceph";

/// Address of the monitor, the manager and the client.
const MONITOR: &str = "10.77.0.100";

/// Smallest memory target that Ceph takes, as on a small board.
const MEMORY_TARGET: u64 = 896 << 20;

/// What the cluster is like.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Release of Debian whose Ceph it is: `trixie` (18.2), `forky` (20.2).
    pub suite: String,
    /// OSDs, each on a host of its own.
    pub osds: u32,
    /// Size of each OSD's file, bytes; it is sparse.
    pub osd_bytes: u64,
    /// Rate that each OSD's link is held to both ways, as `tc` writes it (`100mbit`); absent: no limit.
    pub link: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { suite: "trixie".into(), osds: 4, osd_bytes: 6 << 30, link: None }
    }
}

/// A running cluster; ends with this value, or with this process.
#[derive(Debug)]
pub struct Cluster {
    holder: Child,
    /// First process of the namespaces, by its number outside.
    init: u32,
    root: PathBuf,
    place: PathBuf,
    _work: tempfile::TempDir,
    osds: u32,
}

/// A directory with Debian of this release and its Ceph in it. About 700 MB; kept in the cache.
///
/// # Errors
/// When this is not root, or Debian's archive cannot be reached.
pub fn root(cache: &Cache, suite: &str) -> Result<PathBuf> {
    let key = Key::of([suite, PACKAGES, RECIPE]);
    let entry = cache.entry(&format!("ceph-{suite}"), &key, |place| {
        let source = format!("deb [signed-by={KEYRING}] {} {suite} main", mirror()?);
        let root = place.join("root");
        tools::run(
            tools::command("mmdebstrap")
                .args(["--quiet", "--mode=root", "--variant=minbase", "--skip=check/qemu"])
                // The index of a release in the making may have expired.
                .arg("--aptopt=Acquire::Check-Valid-Until \"false\"")
                .arg(format!("--include={PACKAGES}"))
                .arg(suite)
                .arg(&root)
                .arg(source),
        )
        .context("could not unpack Debian's Ceph (this needs root and Debian's archive)")?;
        fs::create_dir(root.join(&PLACE[1..]))
            .context("could not make the place for the cluster")?;
        Ok(())
    })?;
    Ok(entry.join("root"))
}

/// What the holder does: makes the namespaces habitable, says its number, and waits.
const HOLD: &str = r#"set -e
read pid rest < /proc/self/stat
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount --rbind /dev "$1/dev"
mount --bind "$2" "$1/ceph"
ip link set lo up
ip link add br0 type bridge
ip addr add 10.77.0.100/24 dev br0
ip link set br0 up
echo "$pid"
exec sleep infinity
"#;

impl Cluster {
    /// Starts a cluster and waits until all OSDs are up.
    ///
    /// # Errors
    /// When this is not root, a program is missing, or a daemon does not start; the message has the end of its log.
    pub fn start(cache: &Cache, settings: &Settings) -> Result<Self> {
        let root = root(cache, &settings.suite)?;
        let work = cache.work_directory()?;
        let place = work.path().to_owned();
        let mut holder = tools::command(tools::KEEPER.program)
            .args([
                "--pdeathsig",
                "KILL",
                "unshare",
                "--mount",
                "--pid",
                "--net",
                "--fork",
                "--kill-child",
                "sh",
                "-c",
            ])
            .args([HOLD, "holder"])
            .arg(&root)
            .arg(&place)
            .stdout(Stdio::piped())
            .spawn()
            .context("could not start the namespaces of the cluster")?;
        let mut line = String::new();
        if let Some(stdout) = holder.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let init = line.trim().parse();
        let cluster =
            Self { init: init.unwrap_or(0), holder, root, place, _work: work, osds: settings.osds };
        ensure!(
            cluster.init > 0,
            "the namespaces of the cluster could not be made (this needs root)"
        );
        cluster.bring_up(settings)?;
        Ok(cluster)
    }

    fn bring_up(&self, settings: &Settings) -> Result<()> {
        for directory in ["mon.a", "mgr.x", "run", "log"] {
            fs::create_dir(self.place.join(directory))?;
        }
        let fsid = uuid()?;
        fs::write(self.place.join("ceph.conf"), configuration(settings, &fsid))?;
        let keyring = format!("{PLACE}/keyring");
        let all = [
            "--cap", "mon", "allow *", "--cap", "osd", "allow *", "--cap", "mgr", "allow *",
            "--cap", "mds", "allow *",
        ];
        let mut admin = vec!["--create-keyring", &keyring, "--gen-key", "-n", "client.admin"];
        admin.extend(all);
        self.run("ceph-authtool", &admin)?;
        self.run(
            "ceph-authtool",
            &[&keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *"],
        )?;
        let address = format!("[v2:{MONITOR}:3300,v1:{MONITOR}:6789]");
        let map = format!("{PLACE}/monmap");
        self.run(
            "monmaptool",
            &["--create", "--clobber", "--fsid", &fsid, "--addv", "a", &address, &map],
        )?;
        self.run("ceph-mon", &["--mkfs", "-i", "a", "--monmap", &map, "--keyring", &keyring])?;
        self.run("ceph-mon", &["-i", "a"])?;
        self.ceph(&["config", "set", "mon", "auth_allow_insecure_global_id_reclaim", "false"])?;
        let manager = format!("{PLACE}/mgr.x/keyring");
        self.ceph(&[
            "auth",
            "get-or-create",
            "mgr.x",
            "mon",
            "allow profile mgr",
            "osd",
            "allow *",
            "mds",
            "allow *",
            "-o",
            &manager,
        ])?;
        self.run("ceph-mgr", &["-i", "x"])?;
        for osd in 0..settings.osds {
            self.wire_up(osd, settings.link.as_deref())?;
            self.start_osd(osd)?;
        }
        self.wait_up(settings.osds, Duration::from_secs(90))
    }

    /// Gives an OSD a network namespace with a link to the bridge.
    fn wire_up(&self, osd: u32, link: Option<&str>) -> Result<()> {
        let (space, port) = (format!("osd{osd}"), format!("p{osd}"));
        let address = format!("{}/24", address(osd));
        self.outside(&["ip", "netns", "add", &space])?;
        self.outside(&[
            "ip", "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &space,
        ])?;
        self.outside(&["ip", "-n", &space, "link", "set", "lo", "up"])?;
        self.outside(&["ip", "-n", &space, "addr", "add", &address, "dev", "eth0"])?;
        self.outside(&["ip", "-n", &space, "link", "set", "eth0", "up"])?;
        self.outside(&["ip", "link", "set", &port, "master", "br0"])?;
        self.outside(&["ip", "link", "set", &port, "up"])?;
        link.map_or(Ok(()), |rate| self.limit_link(osd, rate))
    }

    /// Holds an OSD's link to another rate, as `tc` writes it, both ways.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn limit_link(&self, osd: u32, rate: &str) -> Result<()> {
        let (space, port) = (format!("osd{osd}"), format!("p{osd}"));
        let limit = ["root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms"];
        // Up on the board's side, down on the switch's.
        let mut up = vec!["ip", "netns", "exec", &space, "tc", "qdisc", "replace", "dev", "eth0"];
        up.extend(limit);
        self.outside(&up)?;
        let mut down = vec!["tc", "qdisc", "replace", "dev", &port];
        down.extend(limit);
        self.outside(&down)
    }

    fn start_osd(&self, osd: u32) -> Result<()> {
        let id = osd.to_string();
        let directory = self.place.join(format!("osd.{osd}"));
        fs::create_dir(&directory)?;
        let uuid = uuid()?;
        let key = self.run("ceph-authtool", &["--gen-print-key"])?;
        let key = key.trim();
        fs::write(directory.join("new.json"), format!("{{\"cephx_secret\":\"{key}\"}}"))?;
        self.ceph(&["osd", "new", &uuid, &id, "-i", &format!("{PLACE}/osd.{osd}/new.json")])?;
        fs::write(directory.join("keyring"), format!("[osd.{osd}]\n\tkey = {key}\n"))?;
        let space = format!("osd{osd}");
        tools::run(self.inside(Some(&space), "ceph-osd").args([
            "-i",
            &id,
            "--mkfs",
            "--osd-uuid",
            &uuid,
        ]))?;
        tools::run(self.inside(Some(&space), "ceph-osd").args(["-i", &id]))?;
        Ok(())
    }

    /// A command in the holder's namespaces, outside of the changed root.
    fn entered(&self) -> Command {
        namespaces(self.init)
    }

    fn outside(&self, words: &[&str]) -> Result<()> {
        tools::run(self.entered().args(words)).map(|_| ())
    }

    /// A program of Ceph inside, in the network of an OSD or of the client.
    #[must_use]
    pub fn inside(&self, space: Option<&str>, program: &str) -> Command {
        let mut command = enter(self.init, &self.root, space);
        command.arg(program);
        command
    }

    /// First process of the namespaces, by its number outside.
    #[must_use]
    pub fn init(&self) -> u32 {
        self.init
    }

    /// The root directory with the programs.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Runs a program of Ceph to its end and gives what it printed.
    ///
    /// # Errors
    /// When it fails.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let printed = tools::run(self.inside(None, program).args(arguments))?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }

    /// Runs `ceph`.
    ///
    /// # Errors
    /// When it fails.
    pub fn ceph(&self, arguments: &[&str]) -> Result<String> {
        self.run("ceph", arguments)
    }

    /// What `ceph` answers, as JSON.
    ///
    /// # Errors
    /// When it fails or answers something else.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let printed = self.run("ceph", &[arguments, &["--format", "json"]].concat())?;
        serde_json::from_str(printed.trim())
            .with_context(|| format!("ceph {arguments:?} answered {printed:?}"))
    }

    /// Makes a pool of copies.
    ///
    /// # Errors
    /// When the monitor refuses.
    pub fn replicated_pool(&self, name: &str, groups: u32, copies: u32) -> Result<()> {
        let (groups, copies) = (groups.to_string(), copies.to_string());
        self.ceph(&["osd", "pool", "create", name, &groups, &groups, "replicated"])?;
        self.ceph(&["osd", "pool", "set", name, "size", &copies])?;
        Ok(())
    }

    /// Makes an erasure-coded pool.
    ///
    /// # Errors
    /// When the monitor refuses.
    pub fn coded_pool(
        &self,
        name: &str,
        groups: u32,
        data: u32,
        parity: u32,
        fast: bool,
    ) -> Result<()> {
        let groups = groups.to_string();
        let profile = format!("ec{data}{parity}");
        let (k, m) = (format!("k={data}"), format!("m={parity}"));
        let words = ["osd", "erasure-code-profile", "set", &profile, &k, &m];
        let mut words = [
            &words[..],
            &["plugin=jerasure", "technique=reed_sol_van"],
            &["crush-failure-domain=host"],
        ]
        .concat();
        if fast {
            // As `rubus cluster spec` does: the default stays 4 KiB.
            words.push("stripe_unit=16384");
        }
        self.ceph(&words)?;
        self.ceph(&["osd", "pool", "create", name, &groups, &groups, "erasure", &profile])?;
        self.ceph(&["osd", "pool", "set", name, "allow_ec_overwrites", "true"])?;
        if fast {
            self.ceph(&["osd", "pool", "set", name, "allow_ec_optimizations", "true"])?;
        }
        Ok(())
    }

    /// Waits until this number of OSDs is up.
    ///
    /// # Errors
    /// When they are not in time; the message has the state.
    pub fn wait_up(&self, osds: u32, limit: Duration) -> Result<()> {
        let what = format!("{osds} OSDs are up");
        self.wait(&what, limit, || {
            Ok(self.json(&["osd", "stat"])?["num_up_osds"] == u64::from(osds))
        })
    }

    /// Waits until every placement group of every pool is active and clean.
    ///
    /// # Errors
    /// When they are not in time; the message has the state.
    pub fn wait_clean(&self, limit: Duration) -> Result<()> {
        self.wait("all placement groups are active and clean", limit, || {
            let found = self.json(&["pg", "stat"])?;
            let states =
                found["pg_summary"]["num_pg_by_state"].as_array().cloned().unwrap_or_default();
            let clean = states.iter().all(|state| state["name"] == "active+clean");
            // Those of a new pool are reported some seconds after it was made.
            let reported = sum_of(&states, "num");
            let pools = self.json(&["osd", "dump"])?["pools"].take();
            let wanted = sum_of(pools.as_array().context("no pools")?, "pg_num");
            Ok(reported > 0 && reported == wanted && clean)
        })
    }

    /// Asks again and again until the answer is yes.
    ///
    /// # Errors
    /// When it is not in time, or asking fails.
    pub fn wait(
        &self,
        what: &str,
        limit: Duration,
        is_so: impl Fn() -> Result<bool>,
    ) -> Result<()> {
        let start = Instant::now();
        while !is_so()? {
            if start.elapsed() > limit {
                bail!(
                    "after {limit:?} it is not so that {what}:\n{}",
                    self.ceph(&["status"]).unwrap_or_default()
                );
            }
            sleep(Duration::from_millis(500));
        }
        Ok(())
    }

    /// Bytes that all OSDs have received from the network so far.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn received_bytes(&self) -> Result<u64> {
        let mut sum = 0;
        for osd in 0..self.osds {
            let space = format!("osd{osd}");
            let printed = tools::run(
                self.entered().args(["ip", "-n", &space, "-s", "-j", "link", "show", "eth0"]),
            )?;
            let found: Value = serde_json::from_slice(&printed)?;
            sum += found[0]["stats64"]["rx"]["bytes"]
                .as_u64()
                .context("no counter of received bytes")?;
        }
        Ok(sum)
    }

    /// The process of an OSD, by its number outside.
    ///
    /// # Errors
    /// When it does not run.
    pub fn osd_process(&self, osd: u32) -> Result<rustix::process::Pid> {
        let wanted = format!("ceph-osd\0-i\0{osd}\0");
        self.process(|line| line == wanted).with_context(|| format!("osd.{osd} does not run"))
    }

    /// Kills an OSD without a warning, and waits until `up` others are left.
    ///
    /// # Errors
    /// When it does not run, or the monitor does not miss it.
    pub fn kill_osd(&self, osd: u32, up: u32) -> Result<()> {
        kill_process(self.osd_process(osd)?, Signal::KILL).context("it cannot be killed")?;
        self.wait_up(up, Duration::from_secs(60))
    }

    /// The process of the cluster whose command line (each word ended with NUL) is meant, by its number outside.
    ///
    /// # Errors
    /// When there is none.
    pub fn process(&self, is_meant: impl Fn(&str) -> bool) -> Result<rustix::process::Pid> {
        let found = self.processes().into_iter().find(|name| {
            fs::read_to_string(format!("/proc/{name}/cmdline")).is_ok_and(|line| is_meant(&line))
        });
        found
            .and_then(|name| name.parse().ok())
            .and_then(rustix::process::Pid::from_raw)
            .context("no such process runs in the cluster")
    }

    /// All processes of the cluster, by their numbers outside.
    #[must_use]
    pub fn processes(&self) -> Vec<String> {
        let space = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
        let own = space(&self.init.to_string());
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| space(name).is_some_and(|found| Some(found) == own))
            .collect()
    }

    /// Starts an OSD again that has ended.
    ///
    /// # Errors
    /// When it does not start.
    pub fn restart_osd(&self, osd: u32) -> Result<()> {
        let space = format!("osd{osd}");
        let id = osd.to_string();
        tools::run(self.inside(Some(&space), "ceph-osd").args(["-i", &id])).map(|_| ())
    }

    /// The holder's number: when it dies, everything ends.
    #[must_use]
    pub fn holder(&self) -> u32 {
        self.holder.id()
    }

    /// Files of the cluster, seen from outside.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Waits until the holder has ended, as after a signal.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn wait_for_end(&mut self) -> Result<()> {
        self.holder.wait()?;
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nothing is worth keeping, so nothing has to be shut down in order.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
        // The kernel ends the processes of the namespace on its own; their files may be removed when they are gone.
        let start = Instant::now();
        while Path::new(&format!("/proc/{}", self.init)).exists()
            && start.elapsed() < Duration::from_secs(10)
        {
            sleep(Duration::from_millis(20));
        }
    }
}

/// A command in the namespaces of a process.
fn namespaces(init: u32) -> Command {
    let mut command = tools::command("nsenter");
    command.args(["--target", &init.to_string(), "--mount", "--pid", "--net", "--"]);
    command
}

/// A command in a cluster's namespaces and root; what it runs is still to be added.
pub(crate) fn enter(init: u32, root: &Path, space: Option<&str>) -> Command {
    let mut command = namespaces(init);
    if let Some(space) = space {
        command.args(["ip", "netns", "exec", space]);
    }
    command.arg("chroot").arg(root);
    command.args(["env", "LC_ALL=C.UTF-8"]).arg(format!("CEPH_CONF={PLACE}/ceph.conf"));
    command
}

/// Address of an OSD.
fn address(osd: u32) -> String {
    format!("10.77.0.{}", 10 + osd)
}

/// The sum of a field of objects.
fn sum_of(objects: &[Value], field: &str) -> u64 {
    objects.iter().filter_map(|one| one[field].as_u64()).sum()
}

fn uuid() -> Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/uuid")
        .context("no random number from the kernel")?;
    Ok(text.trim().to_owned())
}

/// The cluster's `ceph.conf`.
fn configuration(settings: &Settings, fsid: &str) -> String {
    let mut text = format!(
        "[global]\n\
         fsid = {fsid}\n\
         mon_host = [v2:{MONITOR}:3300,v1:{MONITOR}:6789]\n\
         auth_cluster_required = cephx\n\
         auth_service_required = cephx\n\
         auth_client_required = cephx\n\
         keyring = {PLACE}/keyring\n\
         run_dir = {PLACE}/run\n\
         log_file = {PLACE}/log/$name.log\n\
         crash_dir = {PLACE}/log\n\
         admin_socket = {PLACE}/run/$name.asok\n\
         pid_file = {PLACE}/run/$name.pid\n\
         osd_pool_default_pg_autoscale_mode = off\n\
         osd_crush_chooseleaf_type = 1\n\
         mon_allow_pool_delete = true\n\
         mon_allow_pool_size_one = true\n\
         mon_max_pg_per_osd = 1000\n\
         mon_data_avail_warn = 2\n\
         mon_data_avail_crit = 1\n\
         [mon]\n\
         mon_data = {PLACE}/mon.a\n\
         public_addr = {MONITOR}\n\
         mon_cluster_log_file = {PLACE}/log/cluster.log\n\
         [mgr]\n\
         mgr_data = {PLACE}/mgr.x\n\
         public_addr = {MONITOR}\n\
         keyring = {PLACE}/mgr.x/keyring\n\
         [osd]\n\
         osd_data = {PLACE}/osd.$id\n\
         keyring = {PLACE}/osd.$id/keyring\n\
         osd_objectstore = bluestore\n\
         bluestore_block_size = {}\n\
         osd_memory_target = {MEMORY_TARGET}\n\
         osd_mclock_skip_benchmark = true\n",
        settings.osd_bytes
    );
    for osd in 0..settings.osds {
        let address = address(osd);
        text.push_str(&format!(
            "[osd.{osd}]\npublic_addr = {address}\ncluster_addr = {address}\ncrush_location = root=default host=node{osd}\n"
        ));
    }
    text
}
