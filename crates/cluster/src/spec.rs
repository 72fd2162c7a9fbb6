//! The cluster as a person deploys it: files and commands for cephadm or MicroCeph.

mod script;

use std::fmt::Write;

use clap::ValueEnum;
use serde::Serialize;

use crate::boards::DiskBus;
use crate::design::{Design, Group};
use crate::disks::Media;
use crate::layout::{FAST_STRIPE_UNIT, FailureDomain, Layout};
use crate::measured::Measured;
use crate::memory::{self, Fit};
use crate::release::Release;
use script::Script;

/// What deploys the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Deployer {
    /// cephadm: containers, driven over ssh
    #[default]
    Cephadm,
    /// MicroCeph: a snap
    Microceph,
}

/// How clients reach images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Clients {
    /// librbd: rbd-nbd, QEMU
    #[default]
    Librbd,
    /// The kernel's rbd module
    Kernel,
}

/// A board's name, and its address where the name does not resolve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Name, as `hostname` prints it there.
    pub name: String,
    /// IPv4 or IPv6 address.
    pub address: Option<String>,
}

/// What is deployed beside the design.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deployment {
    /// With what.
    pub deployer: Deployer,
    /// The clients.
    pub clients: Clients,
    /// The boards; as many as the design has, or none: node1, node2 and so on.
    pub hosts: Vec<Host>,
    /// The disks of each board; as many as the design has, or none: by the kind of bus.
    pub devices: Vec<String>,
}

/// A file of the description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Placement groups per OSD, `mon_target_pg_per_osd`: 100 before Umbrella, which doubles them.
pub(crate) const GROUPS_PER_OSD: f64 = 100.0;
/// Placement groups that a pool may have by default, `mon_max_pool_pg_num`.
const MAX_GROUPS_PER_POOL: u64 = 65_536;
/// Share of the placement groups that the pool of image headers gets beside an EC pool. Assumed.
const HEADERS_SHARE: f64 = 0.1;

/// Reads `node1=10.0.0.1` or `node1`.
///
/// # Errors
/// What is no host name or address.
pub fn host(text: &str) -> Result<Host, String> {
    let (name, address) = match text.split_once('=') {
        Some((name, address)) => (name, Some(address)),
        None => (text, None),
    };
    let is_name = !name.is_empty()
        && name.len() <= 253
        && !name.starts_with(['-', '.'])
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.');
    if !is_name {
        return Err(format!("'{name}' is not a host name; write NAME or NAME=ADDRESS"));
    }
    if let Some(address) = address {
        if address.parse::<std::net::IpAddr>().is_err() {
            return Err(format!("'{address}' is not an IP address; write {name}=10.0.0.1"));
        }
    }
    Ok(Host { name: name.into(), address: address.map(str::to_string) })
}

/// Reads `/dev/sda`.
///
/// # Errors
/// What is not the path of a device.
pub fn device(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.:+".contains(c);
    match text.strip_prefix("/dev/") {
        Some(rest) if !rest.is_empty() && !text.contains("..") && text.chars().all(is_plain) => {
            Ok(text.into())
        }
        _ => Err(format!("'{text}' is not a device; write /dev/sda or /dev/disk/by-id/NAME")),
    }
}

/// The nearest power of two, the lower one half-way: as Ceph's autoscaler rounds (`nearest_power_of_two`), 1 at least.
pub fn nearest_power_of_two(value: f64) -> u64 {
    let value = value.clamp(1.0, 1e9) as u64;
    let low = 1u64 << value.ilog2();
    let high = low * 2;
    if high - value < value - low { high } else { low }
}

/// Placement groups of the pool with the data, and of the pool with image headers beside an EC pool.
pub fn placement_groups(design: &Design) -> (u64, Option<u64>) {
    let shards = f64::from(design.osds()) * GROUPS_PER_OSD;
    let data_share = match design.layout {
        Layout::Replica { .. } => 1.0,
        Layout::Erasure { .. } => 1.0 - HEADERS_SHARE,
    };
    let data = nearest_power_of_two(shards * data_share / f64::from(design.layout.width()));
    let headers = match design.layout {
        Layout::Replica { .. } => None,
        Layout::Erasure { .. } => {
            Some(nearest_power_of_two(shards * HEADERS_SHARE / f64::from(header_copies(design))))
        }
    };
    (data, headers)
}

/// Copies of the pool that an EC pool needs for image headers: no fewer losses than the data survives, 3 where there is room.
fn header_copies(design: &Design) -> u32 {
    let wanted = (design.layout.survives() + 1).max(3);
    wanted.min(design.domains().len() as u32)
}

/// The files that describe a design that was checked.
///
/// # Errors
/// When the boards are too small, or hosts and devices are not as many as the design has.
pub fn files(
    design: &Design,
    measured: Option<&Measured>,
    deployment: &Deployment,
) -> Result<Vec<File>, String> {
    let plan = Plan::of(design, measured, deployment)?;
    Ok(match deployment.deployer {
        Deployer::Cephadm => vec![
            file("bootstrap.conf", plan.bootstrap_conf()),
            file("cluster.yaml", plan.service_specification()),
            file("commands.txt", plan.cephadm_commands()),
        ],
        Deployer::Microceph => vec![file("commands.txt", plan.microceph_commands())],
    })
}

fn file(name: &str, text: String) -> File {
    File { name: name.into(), text }
}

/// Everything that was decided.
struct Plan<'d> {
    design: &'d Design,
    clients: Clients,
    hosts: Vec<Placed<'d>>,
    /// `osd_memory_target` for all OSDs, bytes.
    target_bytes: u64,
    /// Operations per second of a 4 KiB write, measured.
    measured_iops: Option<f64>,
    /// Whether the monitors keep a majority when a board is lost.
    keeps_majority_after_loss: bool,
}

/// A board with what runs on it.
struct Placed<'d> {
    host: Host,
    group: &'d Group,
    devices: Vec<String>,
    has_monitor: bool,
    has_manager: bool,
    /// Its own memory target, where it differs.
    own_target_bytes: Option<u64>,
}

impl<'d> Plan<'d> {
    fn of(
        design: &'d Design,
        measured: Option<&Measured>,
        deployment: &Deployment,
    ) -> Result<Plan<'d>, String> {
        let boards = design.boards() as usize;
        if !deployment.hosts.is_empty() && deployment.hosts.len() != boards {
            return Err(format!(
                "{} hosts are named, and the cluster has {boards} boards: name each with --host",
                deployment.hosts.len()
            ));
        }
        let mut names: Vec<&str> = deployment.hosts.iter().map(|host| host.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("the host {} is named twice", pair[0]));
        }
        let memory = memory::memory(design);
        if let Some(small) = memory.iter().find(|memory| memory.fit == Fit::TooSmall) {
            return Err(format!("cannot describe the cluster: {}: {}", small.board, small.words));
        }
        let roomy = memory.iter().any(|memory| memory.fit > Fit::OnlyWithoutMonitor);
        if !roomy {
            return Err(format!(
                "cannot describe the cluster: {}: {}\nAdd a larger board as a [[group]] of its own",
                memory[0].board, memory[0].words
            ));
        }
        // The lowest of those that have a monitor; others get their own.
        let target_bytes = memory
            .iter()
            .filter_map(|memory| memory.target_bytes)
            .min()
            .unwrap_or(memory::MIN_TARGET);
        let monitors = monitors(design.boards());
        let (mut left, mut managers, mut at) = (monitors, 2, 0);
        let mut hosts = Vec::new();
        for (group, memory) in design.groups.iter().zip(&memory) {
            for _ in 0..group.count {
                let is_able = memory.target_bytes.is_some();
                let has_monitor = is_able && left > 0;
                let has_manager = is_able && managers > 0;
                left -= u32::from(has_monitor);
                managers -= u32::from(has_manager);
                let named = deployment.hosts.get(at).cloned();
                at += 1;
                let own = if has_monitor || has_manager {
                    memory.target_bytes
                } else {
                    memory.target_without_monitor_bytes
                };
                hosts.push(Placed {
                    host: named
                        .unwrap_or_else(|| Host { name: format!("node{at}"), address: None }),
                    group,
                    devices: devices(group, &deployment.devices)?,
                    has_monitor,
                    has_manager,
                    own_target_bytes: own.filter(|own| *own != target_bytes),
                });
            }
        }
        Ok(Plan {
            design,
            clients: deployment.clients,
            hosts,
            target_bytes,
            measured_iops: measured
                .and_then(|measured| measured.write_iops)
                .map(|iops| iops.value.round()),
            keeps_majority_after_loss: design.boards() >= 3,
        })
    }

    fn class(&self) -> &'static str {
        self.hosts[0].group.disk.media.class()
    }

    fn bootstrap_conf(&self) -> String {
        let design = self.design;
        let copies = header_copies(design).max(2);
        let mut text = String::from(
            "# Read by `cephadm bootstrap --config`; cephadm takes it into the monitors' own store.\n[global]\n",
        );
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(text, "{name} = {value}");
        };
        line("osd_pool_default_size", &copies);
        line("osd_pool_default_min_size", &(copies - copies / 2));
        line(
            "osd_crush_chooseleaf_type",
            &match design.domain {
                FailureDomain::Host => 1,
                FailureDomain::Osd => 0,
            },
        );
        line("mon_target_pg_per_osd", &GROUPS_PER_OSD);
        text.push_str("\n[osd]\n");
        for (name, value) in self.osd_options() {
            let _ = writeln!(text, "{name} = {value}");
        }
        text
    }

    /// Options of OSDs with their values.
    fn osd_options(&self) -> Vec<(String, String)> {
        let mut options = vec![
            ("osd_memory_target_autotune".to_string(), "false".to_string()),
            ("osd_memory_target".into(), self.target_bytes.to_string()),
        ];
        if let Some(iops) = self.measured_iops {
            options.push(("osd_mclock_skip_benchmark".into(), "true".into()));
            options.push((
                format!("osd_mclock_max_capacity_iops_{}", self.class()),
                format!("{iops:.0}"),
            ));
        }
        options
    }

    fn service_specification(&self) -> String {
        let mut text = String::from(
            "# For `ceph orch apply -i`. Disks that hold anything are refused by cephadm; nothing is wiped.\n",
        );
        for placed in &self.hosts {
            let _ = writeln!(text, "service_type: host\nhostname: {}", placed.host.name);
            if let Some(address) = &placed.host.address {
                let _ = writeln!(text, "addr: {address}");
            }
            text.push_str("labels:\n");
            for (label, is) in [
                ("_admin", placed.has_manager),
                ("mon", placed.has_monitor),
                ("mgr", placed.has_manager),
                ("osd", true),
            ] {
                if is {
                    let _ = writeln!(text, "  - {label}");
                }
            }
            text.push_str("---\n");
        }
        for daemon in ["mon", "mgr"] {
            let _ = write!(
                text,
                "service_type: {daemon}\nplacement:\n  label: {daemon}\n{}---\n",
                self.container_arguments()
            );
        }
        // One specification per set of devices: boards of several kinds have others.
        let mut groups: Vec<(&Vec<String>, Vec<&str>)> = Vec::new();
        for placed in &self.hosts {
            match groups.iter_mut().find(|(devices, _)| **devices == placed.devices) {
                Some((_, names)) => names.push(&placed.host.name),
                None => groups.push((&placed.devices, vec![&placed.host.name])),
            }
        }
        let parts: Vec<String> = groups
            .iter()
            .enumerate()
            .map(|(i, (devices, names))| {
                let mut part = format!(
                    "service_type: osd\nservice_id: disks{}\nplacement:\n  hosts:\n",
                    i + 1
                );
                for name in names {
                    let _ = writeln!(part, "    - {name}");
                }
                part.push_str("spec:\n  data_devices:\n    paths:\n");
                for device in *devices {
                    let _ = writeln!(part, "      - {device}");
                }
                // USB bridges say that an SSD spins, which would put it into the class hdd.
                let _ = writeln!(part, "  crush_device_class: {}", self.class());
                part + self.container_arguments()
            })
            .collect();
        text + &parts.join("---\n")
    }

    /// The setting without which daemons crashed on arm64 (rook#14502, gperftools#1644).
    fn container_arguments(&self) -> &'static str {
        if self.design.has_arm() {
            "extra_container_args:\n  - \"--env=TCMALLOC_STACKTRACE_METHOD=generic_fp\"\n"
        } else {
            ""
        }
    }

    fn cephadm_commands(&self) -> String {
        let first = &self.hosts[0].host;
        let release = self.design.release;
        let mut script = Script::new(
            "Commands for cephadm. Run them as root on the first board, one step after the other.",
        );
        script.comment(
            "Before: give every board this root's ssh access, a container runtime, chrony and LVM.",
        );
        script.comment("The monitoring stack (Prometheus, Grafana, Alertmanager) takes memory that small boards do not have.");
        let address =
            first.address.clone().unwrap_or_else(|| "\"$(hostname -I | cut -d' ' -f1)\"".into());
        script.run(&format!(
            "cephadm --image quay.io/ceph/ceph:v{release} bootstrap --mon-ip {address} \\\n    --config bootstrap.conf --skip-monitoring-stack"
        ));
        for placed in &self.hosts[1..] {
            let to = placed.host.address.as_deref().unwrap_or(&placed.host.name);
            script.run(&format!("ssh-copy-id -f -i /etc/ceph/ceph.pub root@{to}"));
        }
        script.run("cephadm shell --mount cluster.yaml:/mnt/cluster.yaml -- ceph orch apply -i /mnt/cluster.yaml");
        script.comment(&format!(
            "Wait until `ceph osd stat` says {} up, {} in.",
            self.design.osds(),
            self.design.osds()
        ));
        script.comment("The rest needs `ceph` on this board: cephadm install ceph-common");
        self.settings(&mut script, "ceph");
        self.pools(&mut script, "ceph", "rbd");
        self.keys(&mut script, "ceph");
        script.text
    }

    fn microceph_commands(&self) -> String {
        let mut script = Script::new(
            "Commands for MicroCeph, one step after the other. The comments say on which board.",
        );
        let channel = match self.design.release.major {
            ..=18 => "reef/stable",
            19 => "squid/stable",
            20 => "tentacle/stable",
            _ => "latest/edge",
        };
        script.comment("MicroCeph's tracks lag behind Ceph: check `snap info microceph` for the version you want.");
        if self.design.layout.is_fast() {
            script.comment("Fast EC needs 20.2.4 at least: check `microceph.ceph versions` before its command below.");
        }
        let first = &self.hosts[0].host.name;
        script.comment("On every board:");
        script.run(&format!(
            "snap install microceph --channel={channel} && snap refresh --hold microceph"
        ));
        if self.design.has_arm() {
            script.comment(
                "On every arm64 board, against crashes in tcmalloc (rook#14502, microceph#640):",
            );
            script.run(
                "for unit in mon mgr osd; do\n  mkdir -p /etc/systemd/system/snap.microceph.$unit.service.d\n  printf '[Service]\\nEnvironment=TCMALLOC_STACKTRACE_METHOD=generic_fp\\n' \\\n    > /etc/systemd/system/snap.microceph.$unit.service.d/tcmalloc.conf\ndone; systemctl daemon-reload",
            );
        }
        script.comment(&format!("On {first}:"));
        script.run("microceph cluster bootstrap");
        for placed in &self.hosts[1..] {
            let name = &placed.host.name;
            script.comment(&format!(
                "On {first}, then with the token it prints on {name}: microceph cluster join TOKEN"
            ));
            script.run(&format!("microceph cluster add {name}"));
        }
        for placed in &self.hosts {
            script.comment(&format!("On {}; the disks must be empty:", placed.host.name));
            for device in &placed.devices {
                script.run(&format!("microceph disk add {device}"));
            }
        }
        script.comment(&format!("On {first}:"));
        if self.hosts.iter().any(|placed| placed.group.board.bus.is_usb()) {
            script.comment(
                "USB bridges say that an SSD spins, which would put it into the class hdd:",
            );
            script.run("microceph.ceph osd crush rm-device-class all");
            script.run(&format!("microceph.ceph osd crush set-device-class {} all", self.class()));
        }
        for (name, value) in self.osd_options() {
            script.run(&format!("microceph.ceph config set osd {name} {value}"));
        }
        self.settings(&mut script, "microceph.ceph");
        self.pools(&mut script, "microceph.ceph", "microceph.rbd");
        self.keys(&mut script, "microceph.ceph");
        script.text
    }

    /// Memory of boards that differ, and notes on the scheduler.
    fn settings(&self, script: &mut Script, ceph: &str) {
        script.comment(&format!(
            "Memory: {} MiB per OSD. cephadm's own autotuning would leave nothing on a small board.",
            self.target_bytes >> 20
        ));
        for placed in &self.hosts {
            if let Some(own) = placed.own_target_bytes {
                script.run(&format!(
                    "{ceph} config set osd/host:{} osd_memory_target {own}",
                    placed.host.name
                ));
            }
        }
        if self.design.release.major >= 21 {
            script.comment("Umbrella would double the placement groups per OSD.");
            script.run(&format!("{ceph} config set global mon_target_pg_per_osd {GROUPS_PER_OSD}"));
        }
        let (data, _) = placement_groups(self.design);
        if data > MAX_GROUPS_PER_POOL {
            script
                .comment("By default, the monitors refuse a pool with that many placement groups.");
            script.run(&format!("{ceph} config set global mon_max_pool_pg_num {data}"));
        }
        match self.measured_iops {
            Some(iops) => script.comment(&format!(
                "mClock's capacity is {iops:.0} IOPS of 4 KiB writes, as Rubus measured; Ceph assumes 21500 for any SSD."
            )),
            None => {
                script.comment("mClock's capacity is not set, because nothing was measured: Ceph measures each OSD when it starts, and");
                script.comment("falls back to 21500 IOPS for an SSD. Measure with `rubus bench` and give the run with --node-from.");
            }
        }
        if matches!(self.design.layout, Layout::Erasure { .. })
            && self.design.release >= Release::new(20, 2, 3)
        {
            script.comment("If an EC pool shows slow operations, Ceph's documentation recommends the older scheduler (restart OSDs after):");
            script.comment(&format!("  {ceph} config set osd osd_op_queue wpq"));
        }
        if !self.keeps_majority_after_loss {
            script.comment("2 boards: run a third monitor on any other machine, or the loss of one board stops the cluster.");
        }
    }

    fn pools(&self, script: &mut Script, ceph: &str, rbd: &str) {
        let design = self.design;
        let class = self.class();
        let domain = match design.domain {
            FailureDomain::Host => "host",
            FailureDomain::Osd => "osd",
        };
        let (data, headers) = placement_groups(design);
        script.run(&format!(
            "{ceph} osd crush rule create-replicated rubus-copies default {domain} {class}"
        ));
        let replicated = |script: &mut Script, groups: u64, copies: u32| {
            script.run(&format!(
                "{ceph} osd pool create rubus {groups} {groups} replicated rubus-copies --autoscale-mode=warn"
            ));
            script.run(&format!("{ceph} osd pool set rubus size {copies}"));
            script.run(&format!("{ceph} osd pool set rubus min_size {}", copies - copies / 2));
        };
        match design.layout {
            Layout::Replica { copies } => replicated(script, data, copies),
            Layout::Erasure { data: k, parity: m, fast } => {
                script
                    .comment("An EC pool cannot hold image headers: a small pool of copies does.");
                replicated(script, headers.unwrap_or(16), header_copies(design));
                // Tentacle's default; before it jerasure was.
                let plugin = if design.release.major >= 20 { "isa" } else { "jerasure" };
                // A pool keeps the unit of its profile when it becomes fast, and the default is 4 KiB.
                let unit = fast.then(|| format!(" stripe_unit={FAST_STRIPE_UNIT}"));
                let unit = unit.unwrap_or_default();
                script.run(&format!(
                    "{ceph} osd erasure-code-profile set rubus-{k}-{m} k={k} m={m} plugin={plugin} technique=reed_sol_van{unit} \\\n    crush-failure-domain={domain} crush-device-class={class}"
                ));
                script.run(&format!(
                    "{ceph} osd pool create rubus-data {data} {data} erasure rubus-{k}-{m} --autoscale-mode=warn"
                ));
                script.run(&format!("{ceph} osd pool set rubus-data allow_ec_overwrites true"));
                if fast {
                    script.comment("Fast EC: cannot be switched off again.");
                    script.run(&format!(
                        "{ceph} osd pool set rubus-data allow_ec_optimizations true"
                    ));
                }
                script.run(&format!("{ceph} osd pool application enable rubus-data rbd"));
            }
        }
        script.run(&format!("{ceph} osd pool application enable rubus rbd"));
        script.run(&format!("{rbd} pool init rubus"));
        let pool = match design.layout {
            Layout::Replica { .. } => "",
            Layout::Erasure { .. } => " --data-pool rubus-data",
        };
        script.run(&format!("{rbd} create --size 100G{pool} rubus/image"));
    }

    fn keys(&self, script: &mut Script, ceph: &str) {
        let data = match self.design.layout {
            Layout::Replica { .. } => "",
            Layout::Erasure { .. } => ", profile rbd pool=rubus-data",
        };
        script.run(&format!(
            "{ceph} auth get-or-create client.rubus mon 'profile rbd' osd 'profile rbd pool=rubus{data}' mgr 'profile rbd pool=rubus'"
        ));
        if !self.design.release.has_new_keys() {
            return;
        }
        match self.clients {
            Clients::Librbd => script.comment(
                "The key is aes256k: librbd (rbd-nbd, QEMU) takes it; the kernel's rbd does from 7.0 on (Raspberry Pi OS: 6.18).",
            ),
            Clients::Kernel => {
                script.comment("Kernels before 7.0 cannot use aes256k keys (Raspberry Pi OS: 6.18). This one is of the older type, which");
                script.comment("CVE-2025-30156 is about; on kernel 7.0 or newer leave these two lines out.");
                script.run(&format!("{ceph} auth rotate --key-type=aes client.rubus"));
                script.run(&format!("{ceph} health mute AUTH_INSECURE_CLIENT_KEY_TYPE 8w"));
            }
        }
    }
}

/// 1 of fewer than 3 boards, 3 of fewer than 7, else 5: an odd number, and a majority outlives any single loss.
fn monitors(boards: u32) -> u32 {
    match boards {
        ..=2 => 1,
        3..=6 => 3,
        _ => 5,
    }
}

/// The disks of a board: as named, or by the kind of bus.
fn devices(group: &Group, named: &[String]) -> Result<Vec<String>, String> {
    let wanted = group.disks as usize;
    if !named.is_empty() {
        return if named.len() == wanted {
            Ok(named.to_vec())
        } else {
            Err(format!(
                "{} devices are named, and each board has {wanted} disks: name each with --device",
                named.len()
            ))
        };
    }
    let usual = |i: usize| match (group.board.bus, group.disk.media) {
        (DiskBus::Pcie { .. }, Media::Nvme | Media::Ssd | Media::SsdPlp) => {
            format!("/dev/nvme{i}n1")
        }
        _ => match u8::try_from(i) {
            Ok(i @ 0..26) => format!("/dev/sd{}", char::from(b'a' + i)),
            _ => format!("/dev/sda{}", char::from(b'a' + (i % 26) as u8)),
        },
    };
    Ok((0..wanted).map(usual).collect())
}

#[cfg(test)]
mod tests;
