//! What `rubus cluster spec` writes is taken by a real monitor, option by option and command by command, and Ceph's own tools say
//! how evenly the placement groups lie on 4 to 5,000 OSDs.

use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::Result;
use rubus_cluster::design::Design;
use rubus_cluster::layout::Layout;
use rubus_cluster::measured::Measured;
use rubus_cluster::spec::{Deployment, files, placement_groups};
use rubus_cluster::wishes::Wishes;
use rubus_lab::cache::Cache;
use rubus_lab::ceph::{Cluster, Settings};
use rubus_stats::estimate::Estimate;

use crate::common::cluster::NEEDS;
use crate::common::{can_run, report};

/// Debian's release whose Ceph is deployed, and its Ceph.
const SUITE: &str = "trixie";

fn design(layout: &str, nodes: u32) -> Design {
    let wishes = Wishes {
        nodes: Some(nodes),
        board: Some("pi4-8gb".into()),
        disk: Some("1TB".into()),
        release: Some(SUITE.into()),
        ..Wishes::default()
    };
    wishes.with_layout(layout).design(None).expect("a design")
}

/// A description file that says how many 4 KiB writes per second a board gives.
fn described(design: &Design, name: &str) -> String {
    let measured = Measured {
        source: "a run".into(),
        board: None,
        memory_bytes: None,
        cores: None,
        link_bits: None,
        read_bytes_per_second: None,
        write_bytes_per_second: None,
        read_iops: None,
        write_iops: Some(Estimate::exact(870.0)),
        commits_per_second: None,
    };
    let files = files(design, Some(&measured), &Deployment::default()).expect("files");
    let file = files.into_iter().find(|file| file.name == name);
    file.expect("the file").text
}

/// The commands of `ceph` and `rbd`, each a line.
fn commands(design: &Design) -> Vec<String> {
    let text = described(design, "commands.txt").replace("\\\n", " ");
    let ours = |line: &&str| line.starts_with("ceph ") || line.starts_with("rbd ");
    text.lines().filter(ours).map(str::to_owned).collect()
}

/// The options of `bootstrap.conf`: section, name, value.
fn options(design: &Design) -> Vec<(String, String, String)> {
    let text = described(design, "bootstrap.conf");
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
        } else if let Some((name, value)) = line.split_once(" = ") {
            found.push((section.clone(), name.to_owned(), value.to_owned()));
        }
    }
    found
}

/// Runs a line as a shell does.
fn run(cluster: &Cluster, line: &str) -> Result<String> {
    cluster.run("sh", &["-c", line])
}

fn is_taken(cluster: &Cluster, section: &str, name: &str, value: &str) -> Result<String> {
    cluster.ceph(&["config", "set", section, name, value])
}

#[test]
fn a_monitor_takes_every_option_and_every_command() {
    if !can_run("a_monitor_takes_every_option_and_every_command", &NEEDS) {
        return;
    }
    let cluster = Cluster::start(&Cache::of_this_machine(), &Settings::default())
        .expect("the cluster starts");
    // What this release does not know is noticed.
    for (name, value) in [("osd_memory_tarqet", "1"), ("osd_memory_target", "much")] {
        let taken = is_taken(&cluster, "osd", name, value);
        assert!(taken.is_err(), "{name} = {value} is taken");
    }
    // Files have no class of their own; cephadm sets it from the specification.
    run(&cluster, "ceph osd crush rm-device-class all && ceph osd crush set-device-class ssd all")
        .expect("a class");
    for layout in ["3x", "2+1"] {
        let design = design(layout, 4);
        let options = options(&design);
        assert!(options.len() >= 8, "{options:?}");
        for (section, name, value) in &options {
            is_taken(&cluster, section, name, value)
                .unwrap_or_else(|why| panic!("[{section}] {name} = {value}: {why:#}"));
        }
        // As cephadm does it: nothing may be left over.
        fs::write(cluster.place().join("bootstrap.conf"), described(&design, "bootstrap.conf"))
            .expect("a file");
        let left = run(
            &cluster,
            "ceph config assimilate-conf -i /ceph/bootstrap.conf -o /ceph/left.conf && grep -v '^$' /ceph/left.conf || true",
        )
        .expect("it is taken");
        // That one is for the making of the cluster, and stays in the file.
        let left: Vec<&str> = left.lines().filter(|line| line.contains('=')).collect();
        assert_eq!(left, ["\tosd_crush_chooseleaf_type = 1"], "{layout}");
        let commands = commands(&design);
        for command in &commands {
            run(&cluster, command).unwrap_or_else(|why| panic!("{command}: {why:#}"));
        }
        report(&format!(
            "{layout}: {} options and {} commands are taken",
            options.len(),
            commands.len()
        ));
        cluster.wait_clean(Duration::from_secs(120)).expect("it becomes clean");
        let image = cluster.run("rbd", &["info", "rubus/image"]).expect("the image is there");
        assert!(image.contains("size 100 GiB"), "{image}");
        remove(&cluster);
    }
}

/// Removes pools, profiles and rules.
fn remove(cluster: &Cluster) {
    let script = "ceph auth rm client.rubus\n\
                  for pool in rubus rubus-data; do ceph osd pool rm $pool $pool --yes-i-really-really-mean-it; done\n\
                  for rule in $(ceph osd crush rule ls); do [ $rule = replicated_rule ] || ceph osd crush rule rm $rule; done\n\
                  for profile in $(ceph osd erasure-code-profile ls); do\n\
                  [ $profile = default ] || ceph osd erasure-code-profile rm $profile; done";
    run(cluster, script).expect("it is removed");
}

/// A CRUSH map of `boards` boards with one OSD each, as text.
fn crush_map(boards: u32) -> String {
    let mut text = String::from(
        "tunable choose_local_tries 0\ntunable choose_local_fallback_tries 0\ntunable choose_total_tries 50\n\
         tunable chooseleaf_descend_once 1\ntunable chooseleaf_vary_r 1\ntunable chooseleaf_stable 1\n\
         tunable straw_calc_version 1\ntunable allowed_bucket_algs 54\n",
    );
    for osd in 0..boards {
        let _ = writeln!(text, "device {osd} osd.{osd} class ssd");
    }
    text.push_str("type 0 osd\ntype 1 host\ntype 11 root\n");
    for osd in 0..boards {
        let id = osd + 2;
        let _ = writeln!(
            text,
            "host board{osd} {{\n id -{id}\n alg straw2\n hash 0\n item osd.{osd} weight 0.909\n}}"
        );
    }
    text.push_str("root default {\n id -1\n alg straw2\n hash 0\n");
    for osd in 0..boards {
        let _ = writeln!(text, " item board{osd} weight 0.909");
    }
    text.push_str(
        "}\nrule replicated_rule {\n id 0\n type replicated\n step take default\n step chooseleaf firstn 0 type host\n step emit\n}\n",
    );
    text
}

/// How placement groups lie, as `osdmaptool --test-map-pgs` says.
#[derive(Debug)]
struct Spread {
    groups: u64,
    /// Placement groups by how many OSDs each has.
    sizes: Vec<(u64, u64)>,
    mean: f64,
    fewest: u64,
    most: u64,
}

impl Spread {
    fn parse(text: &str) -> Spread {
        let number = |word: &str| word.parse::<f64>().ok();
        let (mut sizes, mut mean, mut fewest, mut most) = (Vec::new(), None, None, None);
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["size", size, groups] => {
                    sizes.extend(size.parse::<u64>().ok().zip(groups.parse::<u64>().ok()));
                }
                ["avg", value, ..] => mean = number(value),
                ["min", osd, groups] if osd.starts_with("osd.") => fewest = number(groups),
                ["max", osd, groups] if osd.starts_with("osd.") => most = number(groups),
                _ => {}
            }
        }
        sizes.retain(|(_, groups)| *groups > 0);
        let all = (mean, fewest, most);
        let (Some(mean), Some(fewest), Some(most)) = all else {
            panic!("{all:?} in {text}");
        };
        Spread {
            groups: sizes.iter().map(|(_, groups)| groups).sum(),
            sizes,
            mean,
            fewest: fewest as u64,
            most: most as u64,
        }
    }
}

impl Spread {
    /// From what `crushtool --test` says of each device and of all groups.
    fn of_crushtool(text: &str) -> Spread {
        let (mut stored, mut sizes) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["device", _, "stored", ":", groups, ..] => stored.extend(groups.parse::<u64>()),
                [.., "result", "size", "==", size, share] => {
                    let groups = share.split('/').next().unwrap_or_default();
                    let size = size.trim_end_matches(':');
                    sizes.extend(size.parse::<u64>().ok().zip(groups.parse::<u64>().ok()));
                }
                _ => {}
            }
        }
        let all: u64 = stored.iter().sum();
        Spread {
            groups: sizes.iter().map(|(_, groups)| groups).sum(),
            sizes,
            mean: all as f64 / stored.len() as f64,
            fewest: stored.iter().copied().min().unwrap_or(0),
            most: stored.iter().copied().max().unwrap_or(0),
        }
    }
}

/// Up to this number of OSDs the monitor creates the pools and the balancer is computed.
const SMALL: u32 = 100;

#[test]
fn the_map_of_a_specification_is_even_from_4_to_5000_osds() {
    if !can_run("the_map_of_a_specification_is_even_from_4_to_5000_osds", &NEEDS) {
        return;
    }
    // The monitor and the manager do the work; boards are in the map alone.
    let settings = Settings { osds: 1, ..Settings::default() };
    let cluster = Cluster::start(&Cache::of_this_machine(), &settings).expect("the cluster starts");
    // It counts OSDs that run, of which there is one.
    is_taken(&cluster, "global", "mon_max_pg_per_osd", "10000000").expect("an option");
    report(
        "OSDs    layout   groups  per OSD: mean, fewest, most  seconds to place  most with the balancer",
    );
    for (boards, layout) in [(4, "2+1"), (12, "2+2"), (100, "4+2"), (1000, "3x"), (5000, "3x")] {
        of(&cluster, boards, layout);
    }
    // An option that the description of a cluster this large sets first.
    let is_told = commands(&design("3x", 5000))
        .into_iter()
        .find(|command| command.contains("mon_max_pool_pg_num"));
    let too_many = ["osd", "pool", "create", "many", "131072", "131072"];
    run(&cluster, "ceph config rm global mon_max_pool_pg_num").expect("the default");
    let refused = cluster.ceph(&too_many).unwrap_err();
    assert!(
        format!("{refused:#}").contains("mon max pool pg num") && is_told.is_some(),
        "{refused:#}"
    );
}

fn of(cluster: &Cluster, boards: u32, layout: &str) {
    fs::write(cluster.place().join("map.txt"), crush_map(boards)).expect("a file");
    run(
        cluster,
        &format!(
            "ceph osd setmaxosd {boards} && crushtool -c /ceph/map.txt -o /ceph/map && ceph osd setcrushmap -i /ceph/map"
        ),
    )
    .expect("the map is taken");
    let design = design(layout, boards);
    let is_small = boards <= SMALL;
    for command in commands(&design) {
        // Nothing can be written where no OSD runs, and a monitor beside one OSD does not get done with 131,072 placement groups.
        let is_wanted = command.starts_with("ceph ") && (is_small || !command.contains(" pool "));
        if is_wanted {
            run(cluster, &command)
                .unwrap_or_else(|why| panic!("{boards} OSDs: {command}: {why:#}"));
        }
    }
    let spreads = if is_small {
        with_its_pools(cluster, &design)
    } else {
        (by_its_rule(cluster, &design), None)
    };
    let ((spread, seconds), balanced) = spreads;
    report(&format!(
        "{boards:>5}  {layout:>6}  {:>7}  {:>6.1} {:>5} {:>5}  {seconds:>8.2} s  {}",
        spread.groups,
        spread.mean,
        spread.fewest,
        spread.most,
        balanced.as_ref().map_or("-".into(), |balanced| balanced.most.to_string())
    ));
    let width = u64::from(design.layout.width());
    for spread in [Some(&spread), balanced.as_ref()].into_iter().flatten() {
        // Each on as many boards as the layout has pieces.
        assert_eq!(spread.sizes, [(width, spread.groups)], "{boards} OSDs");
        assert_eq!(spread.groups, placement_groups(&design).0, "{boards} OSDs");
        assert!(spread.fewest > 0, "{boards} OSDs: {spread:?}");
    }
    // By chance alone the fullest of 5,000 has five standard deviations more in one map of a thousand.
    let by_chance = spread.mean + 5.0 * spread.mean.sqrt();
    assert!((spread.most as f64) < by_chance, "{boards} OSDs: {spread:?}");
    if let Some(balanced) = balanced {
        // It stops where each is within 5 of its share, which is a broken number.
        assert!(balanced.most as f64 <= balanced.mean + 8.0, "{boards} OSDs: {balanced:?}");
    }
    if is_small {
        remove(cluster);
    } else {
        run(cluster, "ceph auth rm client.rubus; ceph osd crush rule rm rubus-copies")
            .expect("it is removed");
    }
}

/// How the map of the monitor places the pool with the data, and how the balancer would leave it.
fn with_its_pools(cluster: &Cluster, design: &Design) -> ((Spread, f64), Option<Spread>) {
    let pool = match design.layout {
        Layout::Replica { .. } => "rubus",
        Layout::Erasure { .. } => "rubus-data",
    };
    let found = cluster.json(&["osd", "pool", "ls", "detail"]).expect("pools");
    let all = found.as_array().expect("pools");
    let detail = all.iter().find(|detail| detail["pool_name"] == pool);
    let id = &detail.expect("the pool")["pool_id"];
    cluster.ceph(&["osd", "getmap", "-o", "/ceph/osdmap"]).expect("the map");
    let tool = "osdmaptool /ceph/osdmap --mark-up-in";
    let placed = || {
        let start = Instant::now();
        let printed = run(cluster, &format!("{tool} --test-map-pgs --pool {id}"));
        let seconds = start.elapsed().as_secs_f64();
        (Spread::parse(&printed.expect("the map is read")), seconds)
    };
    let before = placed();
    run(
        cluster,
        &format!("{tool} --upmap /ceph/upmap --upmap-pool {pool} --upmap-deviation 5 --upmap-max 1000 --save"),
    )
    .expect("the balancer's arithmetic");
    (before, Some(placed().0))
}

/// The same of a pool that does not exist, by the rule that the monitor has.
fn by_its_rule(cluster: &Cluster, design: &Design) -> (Spread, f64) {
    let (groups, _) = placement_groups(design);
    let width = design.layout.width();
    let rules = cluster.json(&["osd", "crush", "rule", "dump", "rubus-copies"]).expect("the rule");
    let start = Instant::now();
    let printed = run(
        cluster,
        &format!(
            "ceph osd getcrushmap -o /ceph/crush && crushtool -i /ceph/crush --test --rule {} --num-rep {width} --pool-id 1 \
             --min-x 0 --max-x {} --show-utilization --show-statistics",
            rules["rule_id"],
            groups - 1
        ),
    )
    .expect("the map is read");
    let seconds = start.elapsed().as_secs_f64();
    (Spread::of_crushtool(&printed), seconds)
}
