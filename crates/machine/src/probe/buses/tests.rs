//! Tests of the buses, on made-up boards.

use super::*;
use proptest::prelude::*;
use rubus_host::simulated::fake::FakeFiles;
use rubus_vocabulary::machine::BlockKind;

/// A USB device's directory with what every one has.
fn usb(
    files: FakeFiles,
    directory: &str,
    ids: &str,
    class: &str,
    version: &str,
    speed: &str,
) -> FakeFiles {
    let (vendor, product) = ids.split_once(':').unwrap();
    files.files(
        directory,
        [
            ("idVendor", vendor),
            ("idProduct", product),
            ("bDeviceClass", class),
            ("version", version),
            ("speed", speed),
        ],
    )
}

fn root_hub(files: FakeFiles, directory: &str, speed: &str, product: &str) -> FakeFiles {
    let name = base_name(directory).to_string();
    usb(files, directory, "1d6b:0002", "09", " 2.00", speed)
        .file(format!("{directory}/product"), product)
        .link(format!("/sys/bus/usb/devices/{name}"), directory)
}

fn with_driver(files: FakeFiles, directory: &str, driver: &str) -> FakeFiles {
    let place = format!("/sys/drivers/{driver}");
    files.dir(&place).link(format!("{directory}/driver"), &place)
}

/// A PCI device with a link.
fn pci(
    files: FakeFiles,
    directory: &str,
    ids: &str,
    class: &str,
    current: (&str, &str),
    max: (&str, &str),
) -> FakeFiles {
    let (vendor, device) = ids.split_once(':').unwrap();
    files.files(
        directory,
        [
            ("vendor", &format!("0x{vendor}\n")),
            ("device", &format!("0x{device}\n")),
            ("class", class),
            ("current_link_speed", current.0),
            ("current_link_width", current.1),
            ("max_link_speed", max.0),
            ("max_link_width", max.1),
        ],
    )
}

const GEN2: &str = "5.0 GT/s PCIe\n";
const GEN3: &str = "8.0 GT/s PCIe\n";

/// The kinds, ids and links of a path, one hop per line.
fn told(hops: &[Hop]) -> String {
    let mut lines: Vec<String> = hops
        .iter()
        .map(|hop| {
            let rate = match hop.usable_bytes_per_second.get() {
                Some(rate) => format!("{:.0} MB/s", rate / 1e6),
                None => "?".to_string(),
            };
            let driver = hop.driver.text().unwrap_or("-");
            format!("{} {} | {} | {driver} | {rate}", hop.id, hop.name, hop.link)
        })
        .collect();
    lines.push(String::new());
    lines.join("\n")
}

fn device(name: &str, path: Vec<Hop>) -> BlockDevice {
    let unknown = || "not looked at";
    BlockDevice {
        name: name.into(),
        major_minor: "8:0".into(),
        kind: BlockKind::Disk,
        parent: None,
        holders: Vec::new(),
        below: Vec::new(),
        backing_file: None,
        size_bytes: Fact::unknown(unknown(), ""),
        logical_block_bytes: Fact::unknown(unknown(), ""),
        physical_block_bytes: Fact::unknown(unknown(), ""),
        read_only: Fact::unknown(unknown(), ""),
        removable: Fact::unknown(unknown(), ""),
        rotational: Fact::unknown(unknown(), ""),
        scheduler: Fact::unknown(unknown(), ""),
        write_cache: Fact::unknown(unknown(), ""),
        discard_max_bytes: Fact::unknown(unknown(), ""),
        queue_requests: Fact::unknown(unknown(), ""),
        device_queue_depth: Fact::unknown(unknown(), ""),
        vendor: Fact::unknown(unknown(), ""),
        model: Fact::unknown(unknown(), ""),
        serial: Fact::unknown(unknown(), ""),
        content: Fact::unknown(unknown(), ""),
        identity: Default::default(),
        path,
        mmc: None,
    }
}

fn link(name: &str, path: Vec<Hop>) -> Link {
    Link {
        name: name.into(),
        kind: "ethernet".into(),
        state: Fact::unknown("not looked at", ""),
        bits_per_second: Fact::unknown("not looked at", ""),
        duplex: Fact::unknown("not looked at", ""),
        driver: Fact::unknown("not looked at", ""),
        path,
    }
}

/// The buses with their members and rates, one per line.
fn shared(devices: &[BlockDevice], links: &[Link]) -> Vec<String> {
    shared_buses(devices, links)
        .iter()
        .map(|bus| {
            let rate = bus.usable_bytes_per_second.get().unwrap_or_default() / 1e6;
            format!("{} {} {rate:.0}", bus.id, bus.members.join("+"))
        })
        .collect()
}

const PI3_USB: &str = "/sys/devices/platform/soc/3f980000.usb/usb1";

/// A Raspberry Pi 3: one USB 2 controller, the LAN9514 behind it with two disks and the Ethernet.
fn pi3() -> FakeFiles {
    let files = root_hub(FakeFiles::new(), PI3_USB, "480\n", "DWC OTG Controller\n");
    let files = with_driver(files, "/sys/devices/platform/soc/3f980000.usb", "dwc_otg");
    let hub = format!("{PI3_USB}/1-1");
    let files = usb(files, &hub, "0424:9514", "09", " 2.00", "480");
    let files = with_driver(files, &format!("{hub}/1-1:1.0"), "hub");
    let ethernet = format!("{hub}/1-1.1");
    // As on a Pi 3B+, whose Ethernet says 2.10 and has no USB 3.
    let files = usb(files, &ethernet, "0424:ec00", "ff", " 2.10", "480");
    let files = with_driver(files, &format!("{ethernet}/1-1.1:1.0"), "smsc95xx");
    let disk = format!("{hub}/1-1.2");
    let files = usb(files, &disk, "152d:0578", "00", " 2.10", "480");
    let files = with_driver(files, &format!("{disk}/1-1.2:1.0"), "usb-storage");
    files
        .dir(format!("{disk}/1-1.2:1.0/host0/target0:0:0/0:0:0:0/block/sda"))
        .link("/sys/block/sda", format!("{disk}/1-1.2:1.0/host0/target0:0:0/0:0:0:0/block/sda"))
        .dir(format!("{ethernet}/1-1.1:1.0/net/eth0"))
        .link("/sys/class/net/eth0", format!("{ethernet}/1-1.1:1.0/net/eth0"))
        .link(format!("{ethernet}/1-1.1:1.0/net/eth0/device"), format!("{ethernet}/1-1.1:1.0"))
}

#[test]
fn everything_on_a_pi3_hangs_on_the_lan9514() {
    let files = pi3();
    let disk = hops_of(&files, Path::new("/sys/block/sda"));
    insta::assert_snapshot!(told(&disk), @r"
    soc system on chip | on the chip | - | ?
    usb1 DWC OTG Controller | USB 2, 480 Mbit/s | dwc_otg | 35 MB/s
    1-1 Microchip LAN9514 hub | USB 2, 480 Mbit/s | hub | 35 MB/s
    1-1.2 JMicron JMS578 SATA bridge | USB 2, 480 Mbit/s (the device could do 5 Gbit/s) | usb-storage | 35 MB/s
    ");
    let bridge = &disk[3];
    assert_eq!(bridge.chip.as_deref(), Some("152d:0578"));
    // The board has no USB 3 port, so both ends together cannot do more.
    assert_eq!(bridge.max_line_bits_per_second.get(), Some(480_000_000));
    let ethernet = hops_of(&files, Path::new("/sys/class/net/eth0/device"));
    assert_eq!(ethernet[3].driver.text(), Some("smsc95xx"));
    assert_eq!(ethernet[3].link, "USB 2, 480 Mbit/s");
    assert_eq!(shared(&[device("sda", disk)], &[link("eth0", ethernet)]), ["1-1 sda+eth0 35"]);
}

const PI4_PCI: &str = "/sys/devices/platform/scb/fd500000.pcie/pci0000:00/0000:00:00.0";

/// A Raspberry Pi 4: the VL805 on one PCIe lane, a UAS disk on USB 3, a stick on USB 2.
fn pi4() -> FakeFiles {
    let files = FakeFiles::new();
    let files = pci(files, PI4_PCI, "14e4:2711", "0x060400", (GEN2, "1\n"), (GEN2, "1\n"));
    let vl805 = format!("{PI4_PCI}/0000:01:00.0");
    let files = pci(files, &vl805, "1106:3483", "0x0c0330", (GEN2, "1\n"), (GEN2, "1\n"));
    let files = with_driver(files, &vl805, "xhci_hcd");
    let files = root_hub(files, &format!("{vl805}/usb1"), "480", "xHCI Host Controller");
    let files = root_hub(files, &format!("{vl805}/usb2"), "5000", "xHCI Host Controller");
    let hub = format!("{vl805}/usb1/1-1");
    let files = usb(files, &hub, "2109:3431", "09", " 2.10", "480");
    let stick = format!("{hub}/1-1.3");
    let files = usb(files, &stick, "0781:5581", "00", " 2.10", "480")
        .file(format!("{stick}/manufacturer"), " SanDisk\n")
        .file(format!("{stick}/product"), "Ultra\n");
    let files = with_driver(files, &format!("{stick}/1-1.3:1.0"), "usb-storage");
    let disk = format!("{vl805}/usb2/2-1");
    let files = usb(files, &disk, "152d:0578", "00", " 3.10", "5000");
    let files = with_driver(files, &format!("{disk}/2-1:1.0"), "uas");
    let other = format!("{vl805}/usb2/2-2");
    let files = usb(files, &other, "174c:55aa", "00", " 3.10", "5000");
    let block = |interface: &str| format!("{interface}/host0/target0:0:0/0:0:0:0/block/disk");
    files
        .dir(block(&format!("{disk}/2-1:1.0")))
        .link("/sys/block/sda", block(&format!("{disk}/2-1:1.0")))
        .dir(block(&format!("{stick}/1-1.3:1.0")))
        .link("/sys/block/sdb", block(&format!("{stick}/1-1.3:1.0")))
        .dir(block(&format!("{other}/2-2:1.0")))
        .link("/sys/block/sdc", block(&format!("{other}/2-2:1.0")))
}

#[test]
fn a_pi4_has_two_usb_trees_behind_one_pcie_lane() {
    let files = pi4();
    let disk = hops_of(&files, Path::new("/sys/block/sda"));
    insta::assert_snapshot!(told(&disk), @r"
    soc system on chip | on the chip | - | ?
    0000:01:00.0 VIA VL805 USB 3 controller | PCIe Gen 2 ×1 | xhci_hcd | 450 MB/s
    usb2 xHCI Host Controller | USB 3, 5 Gbit/s | xhci_hcd | 440 MB/s
    2-1 JMicron JMS578 SATA bridge | USB 3, 5 Gbit/s | uas | 440 MB/s
    ");
    let stick = hops_of(&files, Path::new("/sys/block/sdb"));
    insta::assert_snapshot!(told(&stick), @r"
    soc system on chip | on the chip | - | ?
    0000:01:00.0 VIA VL805 USB 3 controller | PCIe Gen 2 ×1 | xhci_hcd | 450 MB/s
    usb1 xHCI Host Controller | USB 2, 480 Mbit/s | xhci_hcd | 35 MB/s
    1-1 VIA hub inside the VL805 | USB 2, 480 Mbit/s | - | 35 MB/s
    1-1.3 SanDisk Ultra | USB 2, 480 Mbit/s (the device could do 5 Gbit/s) | usb-storage | 35 MB/s
    ");
    // In the blue port it would be faster.
    assert_eq!(stick[4].max_line_bits_per_second.get(), Some(5_000_000_000));
}

#[test]
fn an_xhci_root_hub_is_no_shared_pipe_but_its_lane_is() {
    let files = pi4();
    let at = |name: &str| {
        let hops = hops_of(&files, Path::new(&format!("/sys/block/{name}")));
        device(name, hops)
    };
    assert_eq!(shared(&[at("sda"), at("sdc")], &[]), ["0000:01:00.0 sda+sdc 450"]);
    assert_eq!(shared(&[at("sda"), at("sdb")], &[]), ["0000:01:00.0 sda+sdb 450"]);
    assert_eq!(shared(&[at("sda")], &[]), Vec::<String>::new());
}

#[test]
fn a_narrower_bus_inside_a_wider_one_is_told_as_well() {
    let files = pi4();
    let stick = hops_of(&files, Path::new("/sys/block/sdb"));
    let devices = [
        device("sda", hops_of(&files, Path::new("/sys/block/sda"))),
        device("sdb", stick.clone()),
        device("sdd", stick),
    ];
    assert_eq!(shared(&devices, &[]), ["0000:01:00.0 sda+sdb+sdd 450", "1-1.3 sdb+sdd 35"]);
}

#[test]
fn a_hub_inside_the_only_usb2_bus_adds_nothing() {
    let files = pi3();
    let disk = hops_of(&files, Path::new("/sys/block/sda"));
    let ethernet = hops_of(&files, Path::new("/sys/class/net/eth0/device"));
    let devices = [device("sda", disk.clone()), device("sdb", disk)];
    assert_eq!(shared(&devices, &[link("eth0", ethernet)]), ["1-1 sda+sdb+eth0 35"]);
}

#[test]
fn an_nvme_drive_is_wider_than_the_lane_of_a_pi5() {
    let port = "/sys/devices/platform/axi/1000110000.pcie/pci0001:00/0001:00:00.0";
    let slot = format!("{port}/0001:01:00.0");
    let files = pci(FakeFiles::new(), port, "14e4:2712", "0x060400", (GEN2, "1"), (GEN2, "1"));
    let files = pci(files, &slot, "144d:a809", "0x010802", (GEN2, "1"), (GEN3, "4"));
    let files = with_driver(files, &slot, "nvme")
        .file(format!("{slot}/nvme/nvme0/model"), "Samsung SSD 980 500GB                   \n")
        .file(format!("{slot}/nvme/nvme0/transport"), "pcie\n")
        .dir(format!("{slot}/nvme/nvme0/nvme0n1"))
        .link("/sys/block/nvme0n1", format!("{slot}/nvme/nvme0/nvme0n1"));
    let hops = hops_of(&files, Path::new("/sys/block/nvme0n1"));
    insta::assert_snapshot!(told(&hops), @r"
    soc system on chip | on the chip | - | ?
    0001:01:00.0 PCIe slot | PCIe Gen 2 ×1 (of Gen 3 ×4) | nvme | 450 MB/s
    nvme0 Samsung SSD 980 500GB | NVMe over PCIe | nvme | ?
    ");
    // The port says what config.txt set, and can do generation 3.
    assert_eq!(hops[1].max_line_bits_per_second.get(), Some(7_876_923_008));
}

#[test]
fn a_drive_with_several_paths_is_followed_to_its_first_controller() {
    let controller = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0";
    let subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0";
    let files = pci(
        FakeFiles::new(),
        "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0",
        "144d:a80a",
        "0x010802",
        ("16.0 GT/s PCIe", "4"),
        ("16.0 GT/s PCIe", "4"),
    )
    .file(format!("{controller}/model"), "Drive")
    .dir(format!("{subsystem}/nvme0n1"))
    .link(format!("{subsystem}/nvme0"), controller)
    .link("/sys/block/nvme0n1", format!("{subsystem}/nvme0n1"));
    let hops = hops_of(&files, Path::new("/sys/block/nvme0n1"));
    insta::assert_snapshot!(told(&hops), @r"
    0000:01:00.0 PCIe slot | PCIe Gen 4 ×4 | - | 7089 MB/s
    nvme0 Drive | NVMe over PCIe | - | ?
    ");
}

#[test]
fn usb_of_a_pi5_goes_through_the_rp1() {
    let controller = "/sys/devices/platform/axi/1000120000.pcie";
    let port = format!("{controller}/pci0002:00/0002:00:00.0");
    let files = pci(FakeFiles::new(), &port, "14e4:2712", "0x060400", (GEN2, "4"), (GEN2, "4"));
    let files = pci(
        files,
        &format!("{port}/0002:01:00.0"),
        "1de4:0001",
        "0x020000",
        (GEN2, "4"),
        (GEN2, "4"),
    );
    let usb4 = format!("{controller}/1f00300000.usb/xhci-hcd.1/usb4");
    let files = root_hub(files, &usb4, "5000", "xHCI Host Controller");
    let disk = format!("{usb4}/4-1");
    let files = usb(files, &disk, "174c:235c", "00", " 3.20", "5000")
        .dir(format!("{disk}/4-1:1.0/host0/target0:0:0/0:0:0:0/block/sda"))
        .link("/sys/block/sda", format!("{disk}/4-1:1.0/host0/target0:0:0/0:0:0:0/block/sda"))
        .dir(format!("{controller}/1f00100000.ethernet"));
    let hops = hops_of(&files, Path::new("/sys/block/sda"));
    insta::assert_snapshot!(told(&hops), @r"
    soc system on chip | on the chip | - | ?
    0002:01:00.0 Raspberry Pi RP1 I/O controller | PCIe Gen 2 ×4 | - | 1800 MB/s
    usb4 xHCI Host Controller | USB 3, 5 Gbit/s | - | 440 MB/s
    4-1 ASMedia ASM235CM SATA bridge | USB 3, 5 Gbit/s | - | 440 MB/s
    ");
    let ethernet = hops_of(&files, Path::new(&format!("{controller}/1f00100000.ethernet")));
    assert_eq!(
        shared(&[device("sda", hops)], &[link("eth0", ethernet)]),
        ["0002:01:00.0 sda+eth0 1800"]
    );
}

#[test]
fn both_links_of_a_switch_are_hops_and_its_ports_are_not() {
    let up = "/sys/devices/pci0000:00/0000:00:1c.0/0000:01:00.0";
    let down = format!("{up}/0000:02:03.0");
    let slot = format!("{down}/0000:03:00.0");
    let mut files = FakeFiles::new();
    for (directory, class, current, max) in [
        ("/sys/devices/pci0000:00/0000:00:1c.0", "0x060400", (GEN2, "1"), (GEN3, "4")),
        (up, "0x060400", (GEN2, "1"), (GEN2, "4")),
        (&down, "0x060400", (GEN2, "1"), (GEN2, "1")),
        (&slot, "0x010601", (GEN2, "1"), (GEN3, "2")),
    ] {
        files = pci(files, directory, "1b21:1806", class, current, max);
    }
    let ata = format!("{slot}/ata1");
    let files = files
        .file(format!("{ata}/link1/ata_link/link1/sata_spd"), "6.0 Gbps\n")
        .file(format!("{ata}/link1/ata_link/link1/hw_sata_spd_limit"), "6.0 Gbps\n")
        .dir(format!("{ata}/host0/target0:0:0/0:0:0:0/block/sda"));
    let place = format!("{ata}/host0/target0:0:0/0:0:0:0/block/sda");
    insta::assert_snapshot!(told(&hops_of(&files, Path::new(&place))), @r"
    0000:01:00.0 ASMedia ASM1806 PCIe switch | PCIe Gen 2 ×1 (of Gen 2 ×4) | - | 450 MB/s
    0000:03:00.0 ASMedia ASM1806 PCIe switch | PCIe Gen 2 ×1 (of Gen 3 ×2) | - | 450 MB/s
    ata1 SATA port | SATA, 6.00 Gbit/s | - | 552 MB/s
    ");
}

#[test]
fn what_only_exists_in_software_has_no_path() {
    let files = FakeFiles::new()
        .dir("/sys/devices/virtual/block/loop0")
        .link("/sys/block/loop0", "../devices/virtual/block/loop0");
    assert!(hops_of(&files, Path::new("/sys/block/loop0")).is_empty());
    assert!(hops_of(&files, Path::new("/sys/block/none")).is_empty());
}

proptest! {
    /// Any directory names below /sys/devices, any contents of the files in them.
    #[test]
    fn no_place_in_sysfs_makes_it_panic(
        names in proptest::collection::vec(
            prop_oneof![
                Just("platform".to_string()), Just("usb1".to_string()), Just("1-1".to_string()),
                Just("1-1:1.0".to_string()), Just("0000:00:00.0".to_string()),
                Just("0000:01:00.0".to_string()), Just("pci0000:00".to_string()),
                Just("x.pcie".to_string()), Just("mmc_host".to_string()), Just("mmc0".to_string()),
                Just("ata1".to_string()), Just("link1".to_string()), Just("host0".to_string()),
                Just("nvme0".to_string()), Just("nvme-subsystem".to_string()),
                Just("virtio0".to_string()), Just("virtual".to_string()), "[a-z0-9:._-]{1,8}",
            ],
            1..8,
        ),
        contents in "\\PC{0,12}",
    ) {
        let mut files = FakeFiles::new();
        let mut path = "/sys/devices".to_string();
        for name in names {
            if name == "." || name == ".." {
                continue;
            }
            path = format!("{path}/{name}");
            for leaf in [
                "speed", "version", "bDeviceClass", "idVendor", "idProduct", "product", "class",
                "vendor", "device", "current_link_speed", "current_link_width", "max_link_speed",
                "max_link_width", "bos_descriptors", "model", "transport", "type",
            ] {
                files = files.file(format!("{path}/{leaf}"), &contents);
            }
        }
        let hops = hops_of(&files, Path::new(&path));
        shared_buses(&[device("a", hops.clone()), device("b", hops)], &[]);
    }
}
