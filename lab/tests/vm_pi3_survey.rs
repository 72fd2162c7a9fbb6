//! The survey of an emulated Raspberry Pi 3: what only a real boot of a real kernel shows.

use std::time::Duration;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);
const TEST: &str = "vm_pi3_survey";

#[test]
fn survey_of_a_raspberry_pi_3() {
    if !can_boot(TEST, Board::Pi3) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pi3) else {
        return;
    };
    let options = Options { push: vec![rubus], ..Options::default() };
    let mut board = Session::boot(&Cache::of_this_machine(), Board::Pi3, &options).unwrap();

    let live = survey(&mut board, "rubus survey --json", "root");
    board_is_a_pi_3(&live);
    card_has_its_partitions_and_the_root(&live);
    usb_disk_is_at_high_speed(&live);

    let unprivileged = survey(&mut board, "rubus survey --json", "pi");
    board_is_a_pi_3(&unprivileged);
    usb_disk_is_at_high_speed(&unprivileged);

    let save = "rubus survey --save /run/lab/capture.tar.gz >&2";
    board.must(save, "root", LIMIT).unwrap();
    let again = "rubus --machine /run/lab/capture.tar.gz survey --json";
    let captured = survey(&mut board, again, "root");
    board_is_a_pi_3(&captured);
    usb_disk_is_at_high_speed(&captured);
    assert_eq!(disk_names(&captured), disk_names(&live));

    board.switch_off().unwrap();
}

fn survey(board: &mut Session, command: &str, user: &str) -> Value {
    let text = board.must(command, user, LIMIT).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn board_is_a_pi_3(survey: &Value) {
    assert_eq!(survey["board"]["model"]["value"], "Raspberry Pi 3 Model B");
    assert_eq!(survey["board"]["revision"]["value"]["board_type"], "3B");
    assert_eq!(survey["system"]["kernel_arch"]["value"], "aarch64");
    assert_eq!(survey["system"]["virtualization"]["value"], "qemu");
    assert_eq!(survey["cpu"]["cores"]["value"], 4);
}

fn card_has_its_partitions_and_the_root(survey: &Value) {
    let card = disk(survey, "mmcblk0");
    assert_eq!(card["kind"], "disk");
    assert_eq!(card["size_bytes"]["value"], rubus_lab::image::SD_BYTES);
    for (name, label, content) in [("mmcblk0p1", "bootfs", "vfat"), ("mmcblk0p2", "rootfs", "ext4")]
    {
        let partition = disk(survey, name);
        assert_eq!(partition["parent"], "mmcblk0");
        assert_eq!(partition["identity"]["label"], label);
        assert_eq!(partition["content"]["value"], content);
    }
    let partuuid = format!("{:08x}-02", Board::Pi3.disk_id());
    assert_eq!(disk(survey, "mmcblk0p2")["identity"]["partuuid"], *partuuid);
    let command_line = survey["system"]["command_line"]["value"].as_str().unwrap();
    assert!(command_line.contains(&format!("root=PARTUUID={partuuid}")), "{command_line}");
    assert_eq!(mounted_at(survey, "/")["device"], "mmcblk0p2");
    assert_eq!(mounted_at(survey, "/boot/firmware")["device"], "mmcblk0p1");
    let swap = &survey["swap"]["areas"][0];
    assert_eq!(swap["path"], "/var/swap");
    assert_eq!(swap["device"]["value"], "mmcblk0p2");
}

fn usb_disk_is_at_high_speed(survey: &Value) {
    let path = disk(survey, "sda")["path"].as_array().unwrap().clone();
    let kinds: Vec<&str> = path.iter().filter_map(|hop| hop["kind"].as_str()).collect();
    assert_eq!(kinds, ["soc", "usb-controller", "usb-device"]);
    assert_eq!(path[1]["driver"]["value"], "dwc2");
    assert_eq!(path[2]["driver"]["value"], "usb-storage");
    assert_eq!(path[2]["line_bits_per_second"]["value"], 480_000_000);
}

fn disk<'a>(survey: &'a Value, name: &str) -> &'a Value {
    find(&survey["block_devices"], "name", name)
}

fn mounted_at<'a>(survey: &'a Value, point: &str) -> &'a Value {
    find(&survey["mounts"], "point", point)
}

fn find<'a>(list: &'a Value, field: &str, value: &str) -> &'a Value {
    let list = list.as_array().unwrap();
    let found = list.iter().find(|item| item[field] == value);
    found.unwrap_or_else(|| panic!("nothing has the {field} {value} in {list:#?}"))
}

fn disk_names(survey: &Value) -> Vec<&str> {
    let disks = survey["block_devices"].as_array().unwrap();
    disks.iter().filter_map(|disk| disk["name"].as_str()).collect()
}
