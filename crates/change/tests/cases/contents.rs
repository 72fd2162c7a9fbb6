//! What is on a device, and the confirmation that it may be lost.

use super::fixtures::{Fixtures, MIB};
use super::{Case, Power, Step, Stop};

pub const CASES: &[Case] = &[
    ("zeros", Power::Loop, zeros),
    ("zeros, but another device was named", Power::Loop, zeros_misnamed),
    ("a device smaller than what is looked at", Power::Loop, tiny),
    ("ext4 without confirmation", Power::Loop, ext4),
    ("ext4 with the wrong confirmation", Power::Loop, ext4_wrong),
    ("ext4 with the confirmation of another device", Power::Loop, ext4_other),
    ("ext4 with the right confirmation", Power::Loop, ext4_right),
    ("a GPT", Power::Loop, gpt),
    ("a GPT of 4096-byte blocks", Power::Loop, gpt_4096),
    ("only the backup of a GPT", Power::Loop, gpt_backup),
    ("an MBR", Power::Loop, mbr),
    ("an inactive swap area", Power::Loop, swap),
    ("FAT", Power::Loop, fat),
    ("a LUKS header", Power::Loop, luks),
    ("the metadata of an array", Power::Loop, array),
    ("unknown data at the start", Power::Loop, unknown_start),
    ("unknown data at the end", Power::Loop, unknown_end),
    ("unknown data in the middle", Power::Loop, unknown_middle),
    ("a partition whose table is gone", Power::Loop, partition_without_table),
    ("copies of superblocks behind a blank start", Power::Loop, superblock_copies),
    ("content of partitions", Power::Loop, partitions),
    ("blank partitions that the kernel knows", Power::Loop, blank_partitions),
    ("a partition, confirmed by its own path", Power::Loop, one_partition),
];

const TWO_PARTITIONS: &str = "label: gpt\nsize=10MiB\nsize=10MiB\n";

fn zeros(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    let claimed = fixtures.allowed(&device, None)?;
    if claimed.size_bytes() != 8 * MIB || claimed.logical_block_bytes() != 512 {
        return Err(Stop::Fail(format!("{claimed:?}")));
    }
    Ok("allowed".into())
}

fn zeros_misnamed(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    fixtures.asks(&device, Some("4C530001"), &device, &["'4C530001' does not name it"])
}

fn tiny(fixtures: &mut Fixtures) -> Step<String> {
    for bytes in [512, 4096, MIB + 512] {
        let image = fixtures.image(&format!("{bytes}.img"), bytes)?;
        let device = fixtures.attach(&image, &[])?;
        let claimed = fixtures.allowed(&device, None)?;
        if claimed.size_bytes() != bytes {
            return Err(Stop::Fail(format!("{claimed:?}")));
        }
        drop(claimed);
        fixtures.write(&device, bytes - 1, &[1])?;
        fixtures.asks(&device, None, &device, &["data of an unknown kind"])?;
    }
    Ok("allowed when blank, asks when not".into())
}

fn ext4(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "rootfs")?;
    fixtures.asks(
        &device,
        None,
        &device,
        &["an ext4 filesystem \"rootfs\"", "32.0 MiB", "disk0.img"],
    )
}

fn ext4_wrong(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "rootfs")?;
    for wrong in ["yes", "", "loop", "/dev/sda", &device[1..]] {
        fixtures.asks(&device, Some(wrong), &device, &["does not name it"])?;
    }
    Ok("asks again".into())
}

fn ext4_other(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let other = fixtures.blank(32)?;
    fixtures.ext4(&device, "one")?;
    fixtures.ext4(&other, "two")?;
    fixtures.asks(&device, Some(&other), &device, &["does not name it"])
}

fn ext4_right(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.ext4(&device, "rootfs")?;
    let consent = device.clone();
    fixtures.allowed(&device, Some(&consent))?;
    let link = fixtures.link(&device, "link")?;
    fixtures.allowed(link, Some(&consent))?;
    Ok("allowed".into())
}

fn gpt(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.table(&device, TWO_PARTITIONS)?;
    fixtures.asks(&device, None, &device, &["a GPT partition table"])
}

fn gpt_4096(fixtures: &mut Fixtures) -> Step<String> {
    let image = fixtures.image("big-blocks.img", 32 * MIB)?;
    let device = fixtures.attach(&image, &["-b", "4096"])?;
    let claimed = fixtures.allowed(&device, None)?;
    if claimed.logical_block_bytes() != 4096 {
        return Err(Stop::Fail(format!("{claimed:?}")));
    }
    drop(claimed);
    fixtures.table(&device, TWO_PARTITIONS)?;
    fixtures.asks(&device, None, &device, &["a GPT partition table"])
}

fn gpt_backup(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.table(&device, TWO_PARTITIONS)?;
    fixtures.write(&device, 0, &[0; 1 << 20])?;
    fixtures.asks(&device, None, &device, &["a GPT partition table"])
}

fn mbr(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    fixtures.table(&device, "label: dos\nsize=10MiB, type=c\nsize=10MiB\n")?;
    fixtures.asks(&device, None, &device, &["an MBR partition table"])
}

fn swap(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    fixtures.run("mkswap", &["-q", "-L", "spare", &device])?;
    fixtures.asks(&device, None, &device, &["a swap area \"spare\""])
}

fn fat(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(40)?;
    fixtures.run("mkfs.vfat", &["-n", "BOOTFS", &device])?;
    fixtures.asks(&device, None, &device, &["a vfat filesystem \"BOOTFS\""])
}

fn luks(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    fixtures.write(&device, 0, b"LUKS\xba\xbe\0\x02")?;
    fixtures.asks(&device, None, &device, &["a LUKS2 encrypted container"])
}

fn array(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    fixtures.write(&device, 4096, &[0xFC, 0x4E, 0x2B, 0xA9, 1, 0, 0, 0])?;
    fixtures.asks(&device, None, &device, &["an md 1.2 member"])
}

fn unknown_start(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    fixtures.write(&device, 700_001, b"x")?;
    fixtures.asks(&device, None, &device, &["data of an unknown kind"])
}

fn unknown_end(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(8)?;
    fixtures.write(&device, 8 * MIB - 1, b"x")?;
    fixtures.asks(&device, None, &device, &["data of an unknown kind"])
}

fn unknown_middle(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(64)?;
    fixtures.write(&device, 20 * MIB, &vec![0x5A; 4 << 20])?;
    fixtures.asks(&device, None, &device, &["behind a blank start"])
}

fn partition_without_table(fixtures: &mut Fixtures) -> Step<String> {
    for (start, bytes) in [(4, 60_000_000_000), (8, 120_000_000_000), (516, 2_000_000_000_000)] {
        let image = fixtures.sparse(&format!("card{start}.img"), bytes)?;
        let device = fixtures.attach(&image, &[])?;
        let offset = (start * MIB).to_string();
        let part = fixtures.attach(&image, &["-o", &offset, "--sizelimit", "67108864"])?;
        fixtures.ext4(&part, "rootfs")?;
        fixtures.run("losetup", &["-d", &part])?;
        let shown = "an ext4 filesystem \"rootfs\" behind a blank start";
        fixtures.asks(&device, None, &device, &[shown])?;
    }
    Ok("asks, on disks of 60 GB to 2 TB".into())
}

fn superblock_copies(fixtures: &mut Fixtures) -> Step<String> {
    const MAGIC: [&[u8]; 2] = [b"_BHRfS_M", &[0x53, 0xEF]];
    let copies = [(64 * MIB + 0x40, MAGIC[0]), (262_144 * MIB + 0x40, MAGIC[0])];
    let groups = [8 * MIB + 1024, 32 * MIB, 128 * MIB].map(|at| (at + 0x38, MAGIC[1]));
    for (number, (at, magic)) in copies.into_iter().chain(groups).enumerate() {
        let image = fixtures.sparse(&format!("copy{number}.img"), 500_000_000_000)?;
        let device = fixtures.attach(&image, &[])?;
        fixtures.write(&device, at, magic)?;
        fixtures.asks(&device, None, &device, &["behind a blank start"])?;
    }
    Ok("asks".into())
}

fn partitions(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, TWO_PARTITIONS, 2)?;
    fixtures.ext4(&nodes[0], "my root")?;
    fixtures.run("mkswap", &["-q", &nodes[1]])?;
    let name = device.trim_start_matches("/dev/");
    let first = format!("{name}p1: an ext4 filesystem \"my root\" (10.0 MiB)");
    let second = format!("{name}p2: a swap area (10.0 MiB)");
    fixtures.asks(&device, None, &device, &["a GPT partition table", &first, &second])?;
    // The same from the table alone, on a kernel that does not know the partitions.
    fixtures.run("partx", &["-d", &device])?;
    fixtures.asks(&device, None, &device, &["partition 1: an ext4 filesystem \"my root\""])
}

fn blank_partitions(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, TWO_PARTITIONS, 2)?;
    // Below the device, so that no device manager notices and reads the table again.
    let image = fixtures.path("disk0.img");
    fixtures.write(&image, 0, &[0; 1 << 20])?;
    fixtures.write(&image, 31 * MIB, &[0; 1 << 20])?;
    fixtures.run("blockdev", &["--flushbufs", &device])?;
    let answer = fixtures.asks(&device, None, &device, &["nothing but zeros at both ends"])?;
    fixtures.allowed(&nodes[0], None)?;
    Ok(answer)
}

fn one_partition(fixtures: &mut Fixtures) -> Step<String> {
    let device = fixtures.blank(32)?;
    let nodes = fixtures.partition(&device, TWO_PARTITIONS, 2)?;
    fixtures.ext4(&nodes[0], "one")?;
    let disk = device.clone();
    fixtures.asks(&nodes[0], Some(&disk), &nodes[0], &["a partition of", "ext4"])?;
    let consent = nodes[0].clone();
    fixtures.allowed(&nodes[0], Some(&consent))?;
    Ok("asks for its own path, not its disk's".into())
}
