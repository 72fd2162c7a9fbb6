//! Cards that a generator made: each is a sound card with one file or entry changed, and the generator knows what that does.

use proptest::prelude::*;
use rubus_boot::chain::{Outcome, Stage, TableKind};
use rubus_boot::medium::Certainty;
use rubus_boot::volume::NamedVolume;
use rubus_host::ReadError;
use rubus_host::simulated::fake::FakeFiles;

use super::super::text::first_line;
use super::super::{CardPart, CardParts, in_its_boards, of_card};

mod interrupted_writes;

const RELEASE: &str = "6.12.47+rpt-rpi-v8";
const OTHER_RELEASE: &str = "6.6.31+rpt-rpi-v8";

/// A card before it is one: its files by name.
#[derive(Clone, Debug)]
struct Card {
    board: &'static str,
    type_id: &'static str,
    boot: Vec<(String, Vec<u8>)>,
    root: Vec<(String, Vec<u8>)>,
    /// Of further FAT partitions, from the third on.
    further: Vec<Vec<(String, Vec<u8>)>>,
    /// Whether the kernel has ext4 in it.
    is_built_in: bool,
    has_initramfs: bool,
    /// What `root=` says.
    named: &'static str,
}

impl Card {
    fn new(
        board: &'static str,
        is_built_in: bool,
        has_initramfs: bool,
        named: &'static str,
    ) -> Card {
        let mut card = Card {
            board,
            type_id: "0x0c",
            boot: Vec::new(),
            root: Vec::new(),
            further: Vec::new(),
            is_built_in,
            has_initramfs,
            named,
        };
        let initramfs = if has_initramfs { "initramfs initramfs8 followkernel\n" } else { "" };
        card.put("config.txt", format!("arm_64bit=1\nkernel=kernel8.img\n{initramfs}"));
        card.put("cmdline.txt", format!("console=tty1 root={named} rootfstype=ext4 rootwait\n"));
        card.put("kernel8.img", kernel(RELEASE));
        card.put("initramfs8", initramfs_of(RELEASE));
        for name in ["bootcode.bin", "start.elf", "fixup.dat", "start4.elf", "fixup4.dat"] {
            card.put(name, "firmware");
        }
        for name in [
            "bcm2710-rpi-3-b.dtb",
            "bcm2710-rpi-zero-2-w.dtb",
            "bcm2711-rpi-4-b.dtb",
            "bcm2712-rpi-5-b.dtb",
            "bcm2712d0-rpi-5-b.dtb",
        ] {
            card.put(name, "tree");
        }
        let ext4 = "kernel/fs/ext4/ext4.ko";
        let (built_in, dep) =
            if is_built_in { (ext4, "") } else { ("", "kernel/fs/ext4/ext4.ko:\n") };
        let modules = format!("/lib/modules/{RELEASE}");
        card.install(&format!("{modules}/modules.builtin"), format!("{built_in}\nkernel/x/y.ko\n"));
        card.install(&format!("{modules}/modules.dep"), format!("{dep}kernel/z.ko:\n"));
        card.install("/sbin/init", b"\x7fELF\x02");
        card.install("/lib/systemd/systemd", b"\x7fELF\x02");
        card.install(
            "/etc/fstab",
            "PARTUUID=1a2b3c4d-01 /boot/firmware vfat defaults 0 2\nPARTUUID=1a2b3c4d-02 / ext4 noatime 0 1\n",
        );
        card
    }

    fn put(&mut self, name: &str, bytes: impl AsRef<[u8]>) {
        self.boot.retain(|(own, _)| own != name);
        self.boot.push((name.into(), bytes.as_ref().to_vec()));
    }

    fn install(&mut self, path: &str, bytes: impl AsRef<[u8]>) {
        self.root.retain(|(own, _)| own != path);
        self.root.push((path.into(), bytes.as_ref().to_vec()));
    }

    fn drop_boot(&mut self, name: &str) {
        self.boot.retain(|(own, _)| own != name);
    }

    fn text(&self, name: &str) -> String {
        let found = self.boot.iter().find(|(own, _)| own == name).expect("a file of the card");
        String::from_utf8(found.1.clone()).expect("a text")
    }

    fn edit(&mut self, name: &str, edit: impl Fn(&str) -> String) {
        let text = edit(&self.text(name));
        self.put(name, text);
    }

    fn files(list: &[(String, Vec<u8>)]) -> FakeFiles {
        let files = list.iter();
        files.fold(FakeFiles::new(), |files, (path, bytes)| {
            files.file(format!("/{}", path.trim_start_matches('/')), bytes)
        })
    }

    fn parts(&self) -> CardParts<'static> {
        let part = |number: u32, type_id: &str, kind: &str, list: &[(String, Vec<u8>)]| CardPart {
            number,
            type_id: type_id.into(),
            volume: NamedVolume {
                partuuid: Some(format!("1a2b3c4d-{number:02x}")),
                uuid: Some(format!("uuid-{number}")),
                label: Some(format!("label{number}")),
                filesystem: Some(kind.into()),
                ..CardPart::volume(number)
            },
            files: Ok(Box::new(Card::files(list))),
            btrfs: None,
        };
        let mut parts =
            vec![part(1, self.type_id, "vfat", &self.boot), part(2, "0x83", "ext4", &self.root)];
        for (number, files) in (3..).zip(&self.further) {
            parts.push(part(number, "0x0c", "vfat", files));
        }
        CardParts { name: "card.img".into(), kind: TableKind::Mbr, parts }
    }

    /// Whether the kernel gets to its root without an initial RAM filesystem.
    fn starts_alone(&self) -> bool {
        self.is_built_in && self.named.starts_with("PARTUUID")
    }
}

fn kernel(release: &str) -> Vec<u8> {
    let mut bytes = vec![b'A'; 2000];
    bytes.extend(format!("Linux version {release} (builder@host) #1 SMP\n").bytes());
    bytes.resize(4000, b'B');
    bytes
}

/// An archive with one module. Source: Linux, Documentation/driver-api/early-userspace/buffer-format.rst.
fn initramfs_of(release: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let module = format!("lib/modules/{release}/kernel/fs/ext4/ext4.ko");
    for (name, mode, contents) in
        [(module.as_str(), 0o100_644, "module\0\0"), ("TRAILER!!!", 0, "")]
    {
        let (size, name_bytes) = (contents.len(), name.len() + 1);
        bytes.extend(
            format!("07070100000001{mode:08x}{:08x}{:08x}00000001{:08x}{size:08x}{:08x}{:08x}{:08x}{:08x}{name_bytes:08x}{:08x}", 0, 0, 0, 0, 0, 0, 0, 0).bytes(),
        );
        bytes.extend(name.bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(contents.bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

/// What the generator knows of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Truth {
    Starts,
    StopsAt(Stage),
}

use Truth::{Starts, StopsAt};

type Mutation = fn(&mut Card) -> Truth;

fn if_alone(card: &Card, otherwise: Truth) -> Truth {
    if card.starts_alone() { Starts } else { otherwise }
}

const MUTATIONS: [(&str, Mutation); 43] = [
    ("nothing", |_| Starts),
    ("a comment in config.txt", |c| {
        c.edit("config.txt", |text| format!("# kernel=none.img\n{text}"));
        Starts
    }),
    ("Latin-1 in config.txt", |c| {
        let text = c.text("config.txt");
        c.put("config.txt", [b"# caf\xe9\n", text.as_bytes()].concat());
        Starts
    }),
    ("config.txt with CRLF", |c| {
        c.edit("config.txt", |text| text.replace('\n', "\r\n"));
        Starts
    }),
    ("cmdline.txt with CRLF", |c| {
        c.edit("cmdline.txt", |text| text.replace('\n', "\r\n"));
        Starts
    }),
    ("no line feed at the end", |c| {
        c.edit("cmdline.txt", |text| text.trim_end().to_string());
        Starts
    }),
    ("a first root that does not count", |c| {
        c.edit("cmdline.txt", |text| format!("root=/dev/sdz9 {text}"));
        Starts
    }),
    ("a kernel for another board", |c| {
        c.edit("config.txt", |text| format!("{text}[pi2]\nkernel=none.img\n[all]\n"));
        Starts
    }),
    ("a kernel for no board", |c| {
        c.edit("config.txt", |text| format!("{text}[none]\nkernel=none.img\n[all]\n"));
        Starts
    }),
    ("a missing disk with nofail", |c| {
        c.install(
            "/etc/fstab",
            "UUID=none /media ext4 nofail 0 2\nPARTUUID=1a2b3c4d-02 / ext4 noatime 0 1\n",
        );
        Starts
    }),
    ("the root in capital letters", |c| {
        let is_named_so = c.named == "PARTUUID=1a2b3c4d-02";
        c.edit("cmdline.txt", |text| text.replace("PARTUUID=1a2b3c4d-02", "PARTUUID=1A2B3C4D-02"));
        if is_named_so && c.has_initramfs { StopsAt(Stage::Root) } else { Starts }
    }),
    ("the root by a link of udev's", |c| {
        let named = c.named;
        c.edit("cmdline.txt", |text| text.replace(named, "/dev/disk/by-partuuid/1a2b3c4d-02"));
        if c.has_initramfs { Starts } else { StopsAt(Stage::Initramfs) }
    }),
    ("a clone's old identifier", |c| {
        let named = c.named;
        c.edit("cmdline.txt", |text| text.replace(named, "PARTUUID=99999999-02"));
        StopsAt(Stage::Root)
    }),
    ("a root partition that is not there", |c| {
        let named = c.named;
        c.edit("cmdline.txt", |text| text.replace(named, "PARTUUID=1a2b3c4d-07"));
        StopsAt(Stage::Root)
    }),
    ("another root filesystem", |c| {
        c.edit("cmdline.txt", |text| text.replace("rootfstype=ext4", "rootfstype=btrfs"));
        StopsAt(Stage::Root)
    }),
    ("an empty first line", |c| {
        c.edit("cmdline.txt", |text| format!("\n{text}"));
        StopsAt(Stage::CommandLine)
    }),
    ("no root=", |c| {
        c.edit("cmdline.txt", |text| text.replace("root=", "toor="));
        StopsAt(Stage::CommandLine)
    }),
    ("no cmdline.txt", |c| {
        c.drop_boot("cmdline.txt");
        StopsAt(Stage::CommandLine)
    }),
    ("an empty cmdline.txt", |c| {
        c.put("cmdline.txt", "");
        StopsAt(Stage::CommandLine)
    }),
    ("cmdline.txt in UTF-16", |c| {
        c.put("cmdline.txt", b"\xff\xfer\0o\0o\0t\0");
        StopsAt(Stage::CommandLine)
    }),
    ("a line of another name that is not there", |c| {
        c.edit("config.txt", |text| format!("{text}cmdline=mine.txt\n"));
        StopsAt(Stage::CommandLine)
    }),
    ("no kernel", |c| {
        c.drop_boot("kernel8.img");
        StopsAt(Stage::Kernel)
    }),
    ("an empty kernel", |c| {
        c.put("kernel8.img", "");
        StopsAt(Stage::Kernel)
    }),
    ("a packed kernel that was copied in part", |c| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, &kernel(RELEASE)).expect("a vector");
        let packed = packed.finish().expect("a vector");
        c.put("kernel8.img", &packed[..packed.len() - 8]);
        StopsAt(Stage::Kernel)
    }),
    ("a kernel's name that is wrong", |c| {
        c.edit("config.txt", |text| text.replace("kernel8.img", "kernel9.img"));
        StopsAt(Stage::Kernel)
    }),
    ("a kernel for this board that is not there", |c| {
        let board = c.board;
        c.edit("config.txt", |text| format!("{text}[{board}]\nkernel=none.img\n"));
        StopsAt(Stage::Kernel)
    }),
    ("no device trees", |c| {
        c.boot.retain(|(name, _)| !name.ends_with(".dtb"));
        StopsAt(Stage::Kernel)
    }),
    ("an empty device_tree=", |c| {
        c.edit("config.txt", |text| format!("{text}device_tree=\n"));
        StopsAt(Stage::Kernel)
    }),
    ("the small firmware, which is not there", |c| {
        c.edit("config.txt", |text| format!("{text}gpu_mem=16\n"));
        if c.board == "pi5" { Starts } else { StopsAt(Stage::Partition) }
    }),
    ("a firmware's program of another name, for another board", |c| {
        c.edit("config.txt", |text| format!("{text}[pi2]\nstart_x=1\n[all]\n"));
        Starts
    }),
    ("the root in quotes", |c| {
        let named = c.named;
        c.edit("cmdline.txt", |text| text.replace(named, &format!("\"{named}\"")));
        if c.has_initramfs { StopsAt(Stage::Root) } else { Starts }
    }),
    ("a program of the first start that is not there", |c| {
        c.edit("cmdline.txt", |text| {
            format!("{} systemd.run=/boot/firmware/firstrun.sh\n", text.trim_end())
        });
        StopsAt(Stage::Init)
    }),
    ("a kernel without its modules", |c| {
        c.put("kernel8.img", kernel(OTHER_RELEASE));
        StopsAt(Stage::Kernel)
    }),
    ("an initramfs of another kernel", |c| {
        c.put("initramfs8", initramfs_of(OTHER_RELEASE));
        if c.has_initramfs && !c.is_built_in { StopsAt(Stage::Initramfs) } else { Starts }
    }),
    ("no initramfs", |c| {
        c.drop_boot("initramfs8");
        if_alone(c, StopsAt(Stage::Initramfs))
    }),
    ("no rootwait", |c| {
        c.edit("cmdline.txt", |text| text.replace(" rootwait", ""));
        if c.has_initramfs { Starts } else { StopsAt(Stage::Initramfs) }
    }),
    ("no firmware", |c| {
        c.boot.retain(|(name, _)| !name.ends_with(".elf"));
        if c.board == "pi5" { Starts } else { StopsAt(Stage::Partition) }
    }),
    ("a wrong type in the table", |c| {
        c.type_id = "0x83";
        StopsAt(Stage::Partition)
    }),
    ("no first program", |c| {
        c.root.retain(|(path, _)| path != "/sbin/init");
        StopsAt(Stage::Init)
    }),
    ("an empty first program", |c| {
        c.install("/sbin/init", "");
        StopsAt(Stage::Init)
    }),
    ("zeros for a first program", |c| {
        c.install("/sbin/init", b"\0\0\0\0");
        StopsAt(Stage::Init)
    }),
    ("an option of another filesystem", |c| {
        c.install("/etc/fstab", "PARTUUID=1a2b3c4d-01 /boot/firmware vfat subvol=@ 0 2\n");
        StopsAt(Stage::Mounts)
    }),
    ("a boot partition that fstab does not find", |c| {
        c.install("/etc/fstab", "PARTUUID=99999999-01 /boot/firmware vfat defaults 0 2\n");
        StopsAt(Stage::Mounts)
    }),
];

/// raspberrypi/firmware, issue 1685: a name that the firmware does not know says nothing of the mode.
#[test]
fn a_kernel_of_another_name_needs_its_mode() {
    let wide = |release: &str| {
        let mut bytes = kernel(release);
        bytes[0x38..0x3C].copy_from_slice(b"ARM\x64");
        bytes
    };
    let mut narrow = kernel(RELEASE);
    narrow[0x24..0x28].copy_from_slice(&[0x18, 0x28, 0x6F, 0x01]);
    for (board, bytes, setting, ends) in [
        ("pi3", wide(RELEASE), "", Outcome::StopsAt(Stage::Kernel)),
        ("pi3", wide(RELEASE), "arm_64bit=1\n", Outcome::Starts),
        ("pi3", narrow.clone(), "", Outcome::Starts),
        ("pi4", wide(RELEASE), "", Outcome::Starts),
        ("pi4", wide(RELEASE), "arm_64bit=0\n", Outcome::StopsAt(Stage::Kernel)),
        ("pi4", narrow, "arm_64bit=1\n", Outcome::StopsAt(Stage::Kernel)),
        ("pi5", wide(RELEASE), "", Outcome::Starts),
    ] {
        let mut card = Card::new(board, true, false, "PARTUUID=1a2b3c4d-02");
        card.put("config.txt", format!("{setting}kernel=vmlinuz\n"));
        card.put("vmlinuz", bytes);
        let is_narrow = ends == Outcome::Starts && setting.is_empty() && board == "pi3";
        if is_narrow {
            card.install("/sbin/init", b"\x7fELF\x01");
        }
        assert_eq!(answer(&card).0, ends, "{board}, {setting}");
    }
}

/// procount/pinn, issue 918; raspberrypi/rpi-eeprom, issue 682.
#[test]
fn later_boards_of_a_raspberry_pi_5_need_their_own_trees() {
    let mut card = Card::new("pi5", true, false, "PARTUUID=1a2b3c4d-02");
    assert_eq!(answer(&card), (Outcome::Starts, Certainty::Certain));
    card.drop_boot("bcm2712d0-rpi-5-b.dtb");
    assert_eq!(answer(&card), (Outcome::Starts, Certainty::Likely));
    card.put("overlays/bcm2712d0.dtbo", "tree");
    assert_eq!(answer(&card), (Outcome::Starts, Certainty::Certain));
    for (board, tree) in [("cm5", "bcm2712-rpi-cm5-cm5io.dtb"), ("pi500", "bcm2712-rpi-500.dtb")] {
        card.board = board;
        assert_eq!(answer(&card).0, Outcome::StopsAt(Stage::Kernel), "{board}");
        card.put(tree, "tree");
        assert_eq!(answer(&card), (Outcome::Starts, Certainty::Certain), "{board}");
    }
    card.board = "cm5";
    card.drop_boot("bcm2712-rpi-5-b.dtb");
    assert_eq!(answer(&card), (Outcome::Starts, Certainty::Likely));
}

#[test]
fn of_several_fat_partitions_the_first_may_be_none_to_start_from() {
    let mut card = Card::new("pi4", true, false, "PARTUUID=1a2b3c4d-02");
    card.boot.retain(|(name, _)| name != "start4.elf");
    let with_data = |first: &str, is_read: bool| {
        let mut parts = card.parts();
        let mut data = card.parts().parts.remove(0);
        data.number = 3;
        data.volume = NamedVolume { filesystem: Some(first.into()), ..CardPart::volume(3) };
        if !is_read {
            data.files = Err(ReadError::Other("damaged".into()));
        }
        parts.parts.push(data);
        of_card(&parts, Some("pi4")).chain.outcome()
    };
    // Neither has the firmware.
    assert_eq!(with_data("vfat", true), Outcome::StopsAt(Stage::Partition));
    assert_eq!(with_data("vfat", false), Outcome::NotCertainAfter(Stage::Medium));
    assert_eq!(with_data("ext4", true), Outcome::StopsAt(Stage::Partition));
}

fn any_card() -> impl Strategy<Value = Card> {
    let named =
        prop_oneof![Just("PARTUUID=1a2b3c4d-02"), Just("UUID=uuid-2"), Just("LABEL=label2")];
    let board = prop_oneof![Just("pi3"), Just("pi4"), Just("pi5")];
    (board, any::<bool>(), any::<bool>(), named).prop_map(|(board, is_built_in, has, named)| {
        // A sound card has an initial RAM filesystem where it needs one.
        let needs = !is_built_in || !named.starts_with("PARTUUID");
        Card::new(board, is_built_in, has || needs, named)
    })
}

fn answer(card: &Card) -> (Outcome, Certainty) {
    let start = of_card(&card.parts(), Some(card.board));
    (start.chain.outcome(), start.chain.certainty())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn the_answer_for_a_changed_card_is_the_generators(mut card in any_card(), at in 0..MUTATIONS.len()) {
        let (name, mutate) = MUTATIONS[at];
        let truth = mutate(&mut card);
        let (outcome, certainty) = answer(&card);
        let expected = match truth {
            Starts => Outcome::Starts,
            StopsAt(stage) => Outcome::StopsAt(stage),
        };
        prop_assert_eq!(outcome, expected, "{} on {} ({:?})", name, card.board, certainty);
    }

    #[test]
    fn no_bytes_in_a_file_make_it_panic(mut card in any_card(), at in 0..9_usize, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let name = card.boot[at].0.clone();
        card.put(&name, bytes);
        answer(&card);
    }
}

#[test]
fn each_mutation_is_right_on_each_board() {
    for board in ["pi3", "pi4", "pi5"] {
        for (name, mutate) in MUTATIONS {
            let mut card = Card::new(board, false, true, "PARTUUID=1a2b3c4d-02");
            let truth = mutate(&mut card);
            let (outcome, _) = answer(&card);
            let is_right = match truth {
                Starts => outcome == Outcome::Starts,
                StopsAt(stage) => outcome == Outcome::StopsAt(stage),
            };
            assert!(is_right, "{name} on {board}: {outcome:?}, not {truth:?}");
        }
    }
}

#[test]
fn a_card_without_a_named_board_is_followed_in_each() {
    let mut card = Card::new("pi4", false, true, "PARTUUID=1a2b3c4d-02");
    card.boot.retain(|(name, _)| !name.starts_with("bcm2712"));
    let start = of_card(&card.parts(), None);
    assert_eq!(start.chain.outcome(), Outcome::Starts);
    let followed = start.rungs.iter().find(|rung| rung.is_followed).map(|rung| rung.name.as_str());
    assert_eq!(followed, Some("pi4"));
    assert_eq!(start.rungs.len(), 7);
}

#[test]
fn pages_of_16_kib_and_programs_of_32_bits_do_not_go_together() {
    let mut card = Card::new("pi5", false, true, "PARTUUID=1a2b3c4d-02");
    card.edit("config.txt", |text| text.replace("kernel8.img", "kernel_2712.img"));
    card.put("kernel_2712.img", kernel("6.12.47+rpt-rpi-2712"));
    card.install("/lib/modules/6.12.47+rpt-rpi-2712/modules.builtin", "kernel/fs/ext4/ext4.ko\n");
    assert_eq!(answer(&card).0, Outcome::Starts);
    card.install("/sbin/init", b"\x7fELF\x01");
    assert_eq!(answer(&card).0, Outcome::StopsAt(Stage::Init));
}

/// A sound card whose boot files are in a further FAT partition, and these in the first.
fn moved(board: &'static str, first: &[(&str, &str)]) -> Card {
    let mut card = Card::new(board, true, true, "PARTUUID=1a2b3c4d-02");
    card.further.push(std::mem::take(&mut card.boot));
    for (name, text) in first {
        card.put(name, text);
    }
    card
}

fn partition_and_outcome(card: &Card) -> (Option<u32>, Outcome) {
    let start = of_card(&card.parts(), Some(card.board));
    (start.boot_partition(), start.chain.outcome())
}

#[test]
fn a_first_partition_without_boot_files_is_passed_over_by_newer_bootloaders() {
    let unsure = Outcome::NotCertainAfter(Stage::Medium);
    for board in ["pi4", "pi5"] {
        let card = moved(board, &[("readme.txt", "data")]);
        assert_eq!(partition_and_outcome(&card), (Some(3), unsure), "{board}");
        let start = of_card(&card.parts(), Some(board));
        assert_eq!(start.chain.links().len(), 10, "the links behind it are followed");
    }
    // Settings are not enough: a Raspberry Pi 4 wants its firmware, a Raspberry Pi 5 its device tree.
    for board in ["pi4", "pi5"] {
        let card = moved(board, &[("config.txt", "")]);
        assert_eq!(partition_and_outcome(&card), (Some(3), unsure), "{board}");
    }
    let old = moved("pi3", &[("readme.txt", "data")]);
    assert_eq!(partition_and_outcome(&old), (Some(1), Outcome::StopsAt(Stage::Partition)));
}

#[test]
fn a_card_none_of_whose_partitions_has_boot_files_does_not_start() {
    let mut card = moved("pi4", &[("readme.txt", "data")]);
    card.further[0].retain(|(name, _)| name != "start4.elf");
    assert_eq!(partition_and_outcome(&card), (Some(1), Outcome::StopsAt(Stage::Partition)));
}

#[test]
fn autoboot_of_the_first_partition_alone_counts() {
    let mut card = moved("pi4", &[("autoboot.txt", "boot_partition=3\n")]);
    card.further[0].push(("autoboot.txt".into(), b"boot_partition=1\n".to_vec()));
    assert_eq!(partition_and_outcome(&card), (Some(3), Outcome::Starts));
    let mut old = moved("pi3", &[("autoboot.txt", "boot_partition=3\n")]);
    assert_eq!(partition_and_outcome(&old), (Some(1), Outcome::StopsAt(Stage::Partition)));
    old.put("bootcode.bin", "firmware");
    assert_eq!(partition_and_outcome(&old), (Some(3), Outcome::Starts));
    // It names one that the firmware cannot start from.
    card.put("autoboot.txt", "boot_partition=2\n");
    let unsure = Outcome::NotCertainAfter(Stage::Medium);
    assert_eq!(partition_and_outcome(&card), (Some(3), unsure));
}

/// The boards that a card is for, and how it ends in each.
fn in_boards_of(card: &Card) -> Vec<(String, Outcome)> {
    let starts = in_its_boards(&card.parts());
    starts.iter().map(|start| (start.rungs[0].name.clone(), start.chain.outcome())).collect()
}

#[test]
fn a_card_is_followed_in_the_boards_that_it_has_device_trees_of() {
    let card = || Card::new("pi4", true, true, "PARTUUID=1a2b3c4d-02");
    let all = in_boards_of(&card());
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["pi5", "pi4", "pi3", "pi02"]);
    assert!(all.iter().all(|(_, outcome)| *outcome == Outcome::Starts), "{all:?}");
    let mut without_pi5 = card();
    without_pi5.boot.retain(|(name, _)| !name.starts_with("bcm2712"));
    assert!(in_boards_of(&without_pi5).iter().all(|(name, _)| name != "pi5"));
    // An older system has the tree of the Raspberry Pi 3 alone, which a Zero 2 W does not take.
    let mut older = card();
    older.drop_boot("bcm2710-rpi-zero-2-w.dtb");
    assert!(in_boards_of(&older).iter().all(|(name, _)| name != "pi02"));
    // Bad for one of them.
    let mut bad = card();
    bad.edit("config.txt", |text| format!("{text}[pi4]\nkernel=none.img\n"));
    for (name, outcome) in in_boards_of(&bad) {
        let stops = Outcome::StopsAt(Stage::Kernel);
        assert_eq!(outcome, if name == "pi4" { stops } else { Outcome::Starts }, "{name}");
    }
    // An image for a Compute Module has its tree alone.
    let for_no_board = || {
        let mut card = card();
        card.boot.retain(|(name, _)| !name.ends_with(".dtb"));
        card
    };
    let mut of_module = for_no_board();
    of_module.put("bcm2711-rpi-cm4.dtb", "tree");
    assert_eq!(in_boards_of(&of_module), [("cm4".to_string(), Outcome::Starts)]);
    for (tree, board) in [("bcm2711-rpi-cm4s.dtb", "cm4s"), ("bcm2710-rpi-cm0.dtb", "cm0")] {
        let mut of_other = for_no_board();
        of_other.put(tree, "tree");
        assert_eq!(in_boards_of(&of_other), [(board.to_string(), Outcome::Starts)]);
    }
    assert_eq!(of_card(&of_module.parts(), None).chain.outcome(), Outcome::Starts);
    assert!(in_boards_of(&for_no_board()).is_empty());
}

#[test]
fn a_disk_of_fstab_that_is_not_on_the_card_is_named_first() {
    let mut card = Card::new("pi4", true, true, "PARTUUID=1a2b3c4d-02");
    let root = "PARTUUID=1a2b3c4d-02 / ext4 noatime 0 1";
    card.install("/etc/fstab", format!("{root}\nUUID=5a /srv ext4 defaults 0 2\n"));
    assert_eq!(
        first_line(&of_card(&card.parts(), Some("pi4"))),
        "It probably starts if UUID=5a for /srv is plugged in, too; without it the start ends in the emergency shell"
    );
}

#[test]
fn a_root_named_as_a_usb_disk_starts_only_as_that_disk() {
    for (root, said) in [
        (
            "/dev/sda2",
            "It probably starts if the board has this disk as that of /dev/sda2; else its root is not there",
        ),
        ("/dev/mmcblk0p2", "It probably starts; check the boot partition (partition 1)"),
    ] {
        let card = Card::new("pi4", true, true, root);
        assert_eq!(first_line(&of_card(&card.parts(), Some("pi4"))), said, "{root}");
    }
}

#[test]
fn a_first_program_for_another_processor_is_none() {
    let program = |machine: u8| {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64, 0);
        bytes[18] = machine;
        bytes
    };
    // ARM, AArch64, x86, x86-64.
    for (machine, starts) in [(40, true), (183, true), (3, false), (62, false)] {
        let mut card = Card::new("pi4", true, true, "PARTUUID=1a2b3c4d-02");
        card.install("/sbin/init", program(machine));
        let ends = if starts { Outcome::Starts } else { Outcome::StopsAt(Stage::Init) };
        assert_eq!(answer(&card).0, ends, "{machine}");
    }
}
