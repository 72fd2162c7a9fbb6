//! What is written to deploy a cluster.

use super::*;
use crate::wishes::Wishes;

fn design(layout: &str, release: &str, nodes: u32) -> Design {
    let wishes = Wishes {
        nodes: Some(nodes),
        board: Some("pi4-8gb".into()),
        disk: Some("1TB".into()),
        release: Some(release.into()),
        ..Wishes::default()
    };
    wishes.with_layout(layout).design(None).unwrap()
}

fn script(design: &Design, deployment: &Deployment) -> String {
    let files = files(design, None, deployment).unwrap();
    files.last().unwrap().text.clone()
}

#[test]
fn powers_of_two_round_as_the_autoscaler_does() {
    let found: Vec<u64> = [0.0, 1.0, 3.0, 90.0, 96.0, 97.0, 128.0].map(nearest_power_of_two).into();
    assert_eq!(found, [1, 1, 2, 64, 64, 128, 128]);
}

#[test]
fn no_osd_gets_more_placement_groups_than_ceph_allows() {
    // mon_max_pg_per_osd is 250.
    for layout in ["3x", "2x", "2+1", "2+2", "3+1", "4+2", "8+3"] {
        for nodes in [11, 12, 50, 500, 5000] {
            let design = design(layout, "20.2.5", nodes);
            let (data, headers) = placement_groups(&design);
            let copies = u64::from(header_copies(&design));
            let shards = data * u64::from(design.layout.width()) + headers.unwrap_or(0) * copies;
            let each = shards as f64 / f64::from(design.osds());
            assert!((40.0..250.0).contains(&each), "{layout} on {nodes}: {each}");
        }
    }
}

#[test]
fn the_monitors_are_told_of_a_pool_larger_than_they_take_by_default() {
    let text = |nodes| script(&design("3x", "20.2.5", nodes), &Deployment::default());
    assert!(text(5000).contains("ceph config set global mon_max_pool_pg_num 131072\n"));
    assert!(!text(500).contains("mon_max_pool_pg_num"));
}

#[test]
fn fast_ec_is_only_switched_on_where_it_was_asked_for() {
    let with = script(&design("2+2 fast", "20.2.4", 5), &Deployment::default());
    assert!(with.contains("allow_ec_optimizations true"));
    let without = script(&design("2+2", "20.2.4", 5), &Deployment::default());
    assert!(!without.contains("allow_ec_optimizations"));
    assert!(without.contains("allow_ec_overwrites true"));
}

#[test]
fn the_scheduler_gets_a_capacity_only_from_a_measurement() {
    let design = design("3x", "20.2.5", 4);
    let run = rubus_fixtures::slow_sd_card_run();
    let measured = Measured::of(&run, "last").unwrap();
    let text = |measured: Option<&Measured>| {
        files(&design, measured, &Deployment::default()).unwrap()[0].text.clone()
    };
    assert!(!text(None).contains("mclock"));
    let iops = measured.write_iops.unwrap().value.round();
    assert!(
        text(Some(&measured)).contains(&format!("osd_mclock_max_capacity_iops_ssd = {iops:.0}\n"))
    );
}

#[test]
fn old_kernels_get_old_keys_only_on_request_and_only_where_keys_are_new() {
    let kernel = Deployment { clients: Clients::Kernel, ..Deployment::default() };
    assert!(script(&design("3x", "20.2.5", 4), &kernel).contains("--key-type=aes client.rubus"));
    assert!(!script(&design("3x", "20.2.5", 4), &Deployment::default()).contains("--key-type"));
    assert!(!script(&design("3x", "19.2.5", 4), &kernel).contains("--key-type"));
}

#[test]
fn names_and_devices_that_a_shell_would_obey_are_refused() {
    for bad in ["", "a b", "$(id)", "-x", "node1=300.0.0.1", "a;b", "a=", "ä"] {
        assert!(host(bad).is_err(), "{bad}");
    }
    assert!(host("node1=10.0.0.1").is_ok() && host("node1.lan=fd00::1").is_ok());
    for bad in ["", "sda", "/dev/", "/dev/../etc", "/dev/sd a", "/dev/$x", "/etc/x"] {
        assert!(device(bad).is_err(), "{bad}");
    }
    assert!(device("/dev/disk/by-id/usb-X_1:0-part").is_ok());
}

#[test]
fn hosts_and_devices_must_be_as_many_as_the_boards_and_disks() {
    let design = design("3x", "20.2.5", 4);
    let with = |hosts: &[&str], devices: &[&str]| {
        let deployment = Deployment {
            hosts: hosts.iter().map(|name| host(name).unwrap()).collect(),
            devices: devices.iter().map(|name| name.to_string()).collect(),
            ..Deployment::default()
        };
        files(&design, None, &deployment)
    };
    assert!(with(&["a", "b"], &[]).is_err());
    assert!(with(&["a", "b", "c", "a"], &[]).unwrap_err().contains("twice"));
    assert!(with(&["a", "b", "c", "d"], &["/dev/sda", "/dev/sdb"]).is_err());
    assert!(with(&["a", "b", "c", "d"], &["/dev/sda"]).is_ok());
}

#[test]
fn boards_that_are_too_small_are_not_described() {
    let mut design = design("3x", "20.2.5", 4);
    design.groups[0].board = crate::boards::find("pi3b+").unwrap();
    assert!(files(&design, None, &Deployment::default()).unwrap_err().contains("too small"));
    design.groups[0].board = crate::boards::find("pi4-2gb").unwrap();
    assert!(files(&design, None, &Deployment::default()).unwrap_err().contains("larger board"));
}
