//! What is on a device, and the confirmation that it may be lost.

use super::yard::{MIB, Yard};
use super::{Case, Power, Step, Stop};

pub const CASES: &[Case] = &[
    ("zeros", Power::Loop, zeros),
    (
        "zeros, but another device was named",
        Power::Loop,
        zeros_misnamed,
    ),
    ("a device smaller than what is looked at", Power::Loop, tiny),
    ("ext4 without confirmation", Power::Loop, ext4),
    ("ext4 with the wrong confirmation", Power::Loop, ext4_wrong),
    (
        "ext4 with the confirmation of another device",
        Power::Loop,
        ext4_other,
    ),
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
    (
        "a partition whose table is gone",
        Power::Loop,
        partition_without_table,
    ),
    (
        "copies of superblocks behind a blank start",
        Power::Loop,
        superblock_copies,
    ),
    ("content of partitions", Power::Loop, partitions),
    (
        "blank partitions that the kernel knows",
        Power::Loop,
        blank_partitions,
    ),
    (
        "a partition, confirmed by its own path",
        Power::Loop,
        one_partition,
    ),
];

const TWO_PARTITIONS: &str = "label: gpt\nsize=10MiB\nsize=10MiB\n";

fn zeros(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(8)?;
    let claimed = yard.allowed(&device, None)?;
    if claimed.size_bytes() != 8 * MIB || claimed.logical_block_bytes() != 512 {
        return Err(Stop::Fail(format!("{claimed:?}")));
    }
    Ok("allowed".into())
}

fn zeros_misnamed(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(8)?;
    yard.asks(
        &device,
        Some("4C530001"),
        &device,
        &["'4C530001' does not name it"],
    )
}

fn tiny(yard: &mut Yard) -> Step<String> {
    for bytes in [512, 4096, MIB + 512] {
        let image = yard.image(&format!("{bytes}.img"), bytes)?;
        let device = yard.attach(&image, &[])?;
        let claimed = yard.allowed(&device, None)?;
        if claimed.size_bytes() != bytes {
            return Err(Stop::Fail(format!("{claimed:?}")));
        }
        drop(claimed);
        yard.write(&device, bytes - 1, &[1])?;
        yard.asks(&device, None, &device, &["data of an unknown kind"])?;
    }
    Ok("allowed when blank, asks when not".into())
}

fn ext4(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    yard.ext4(&device, "rootfs")?;
    yard.asks(
        &device,
        None,
        &device,
        &["an ext4 filesystem \"rootfs\"", "32.0 MiB", "disk0.img"],
    )
}

fn ext4_wrong(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    yard.ext4(&device, "rootfs")?;
    for wrong in ["yes", "", "loop", "/dev/sda", &device[1..]] {
        yard.asks(&device, Some(wrong), &device, &["does not name it"])?;
    }
    Ok("asks again".into())
}

fn ext4_other(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    let other = yard.blank(32)?;
    yard.ext4(&device, "one")?;
    yard.ext4(&other, "two")?;
    yard.asks(&device, Some(&other), &device, &["does not name it"])
}

fn ext4_right(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    yard.ext4(&device, "rootfs")?;
    let consent = device.clone();
    yard.allowed(&device, Some(&consent))?;
    let link = yard.link(&device, "link")?;
    yard.allowed(link, Some(&consent))?;
    Ok("allowed".into())
}

fn gpt(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    yard.table(&device, TWO_PARTITIONS)?;
    yard.asks(&device, None, &device, &["a GPT partition table"])
}

fn gpt_4096(yard: &mut Yard) -> Step<String> {
    let image = yard.image("big-blocks.img", 32 * MIB)?;
    let device = yard.attach(&image, &["-b", "4096"])?;
    let claimed = yard.allowed(&device, None)?;
    if claimed.logical_block_bytes() != 4096 {
        return Err(Stop::Fail(format!("{claimed:?}")));
    }
    drop(claimed);
    yard.table(&device, TWO_PARTITIONS)?;
    yard.asks(&device, None, &device, &["a GPT partition table"])
}

fn gpt_backup(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    yard.table(&device, TWO_PARTITIONS)?;
    yard.write(&device, 0, &[0; 1 << 20])?;
    yard.asks(&device, None, &device, &["a GPT partition table"])
}

fn mbr(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    yard.table(&device, "label: dos\nsize=10MiB, type=c\nsize=10MiB\n")?;
    yard.asks(&device, None, &device, &["an MBR partition table"])
}

fn swap(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(8)?;
    yard.run("mkswap", &["-q", "-L", "spare", &device])?;
    yard.asks(&device, None, &device, &["a swap area \"spare\""])
}

fn fat(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(40)?;
    yard.run("mkfs.vfat", &["-n", "BOOTFS", &device])?;
    yard.asks(&device, None, &device, &["a vfat filesystem \"BOOTFS\""])
}

fn luks(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(8)?;
    yard.write(&device, 0, b"LUKS\xba\xbe\0\x02")?;
    yard.asks(&device, None, &device, &["a LUKS2 encrypted container"])
}

fn array(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(8)?;
    yard.write(&device, 4096, &[0xFC, 0x4E, 0x2B, 0xA9, 1, 0, 0, 0])?;
    yard.asks(&device, None, &device, &["an md 1.2 member"])
}

fn unknown_start(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(8)?;
    yard.write(&device, 700_001, b"x")?;
    yard.asks(&device, None, &device, &["data of an unknown kind"])
}

fn unknown_end(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(8)?;
    yard.write(&device, 8 * MIB - 1, b"x")?;
    yard.asks(&device, None, &device, &["data of an unknown kind"])
}

fn unknown_middle(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(64)?;
    yard.write(&device, 20 * MIB, &vec![0x5A; 4 << 20])?;
    yard.asks(&device, None, &device, &["behind a blank start"])
}

fn partition_without_table(yard: &mut Yard) -> Step<String> {
    for (start, bytes) in [
        (4, 60_000_000_000),
        (8, 120_000_000_000),
        (516, 2_000_000_000_000),
    ] {
        let image = yard.sparse(&format!("card{start}.img"), bytes)?;
        let device = yard.attach(&image, &[])?;
        let offset = (start * MIB).to_string();
        let part = yard.attach(&image, &["-o", &offset, "--sizelimit", "67108864"])?;
        yard.ext4(&part, "rootfs")?;
        yard.run("losetup", &["-d", &part])?;
        let shown = "an ext4 filesystem \"rootfs\" behind a blank start";
        yard.asks(&device, None, &device, &[shown])?;
    }
    Ok("asks, on disks of 60 GB to 2 TB".into())
}

fn superblock_copies(yard: &mut Yard) -> Step<String> {
    const MAGIC: [&[u8]; 2] = [b"_BHRfS_M", &[0x53, 0xEF]];
    let copies = [
        (64 * MIB + 0x40, MAGIC[0]),
        (262_144 * MIB + 0x40, MAGIC[0]),
    ];
    let groups = [8 * MIB + 1024, 32 * MIB, 128 * MIB].map(|at| (at + 0x38, MAGIC[1]));
    for (number, (at, magic)) in copies.into_iter().chain(groups).enumerate() {
        let image = yard.sparse(&format!("copy{number}.img"), 500_000_000_000)?;
        let device = yard.attach(&image, &[])?;
        yard.write(&device, at, magic)?;
        yard.asks(&device, None, &device, &["behind a blank start"])?;
    }
    Ok("asks".into())
}

fn partitions(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    let nodes = yard.partition(&device, TWO_PARTITIONS, 2)?;
    yard.ext4(&nodes[0], "my root")?;
    yard.run("mkswap", &["-q", &nodes[1]])?;
    let name = device.trim_start_matches("/dev/");
    let first = format!("{name}p1: an ext4 filesystem \"my root\" (10.0 MiB)");
    let second = format!("{name}p2: a swap area (10.0 MiB)");
    yard.asks(
        &device,
        None,
        &device,
        &["a GPT partition table", &first, &second],
    )?;
    // The same from the table alone, on a kernel that does not know the partitions.
    yard.run("partx", &["-d", &device])?;
    yard.asks(
        &device,
        None,
        &device,
        &["partition 1: an ext4 filesystem \"my root\""],
    )
}

fn blank_partitions(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    let nodes = yard.partition(&device, TWO_PARTITIONS, 2)?;
    // Below the device, so that no device manager notices and reads the table again.
    let image = yard.path("disk0.img");
    yard.write(&image, 0, &[0; 1 << 20])?;
    yard.write(&image, 31 * MIB, &[0; 1 << 20])?;
    yard.run("blockdev", &["--flushbufs", &device])?;
    let answer = yard.asks(&device, None, &device, &["nothing but zeros at both ends"])?;
    yard.allowed(&nodes[0], None)?;
    Ok(answer)
}

fn one_partition(yard: &mut Yard) -> Step<String> {
    let device = yard.blank(32)?;
    let nodes = yard.partition(&device, TWO_PARTITIONS, 2)?;
    yard.ext4(&nodes[0], "one")?;
    let disk = device.clone();
    yard.asks(
        &nodes[0],
        Some(&disk),
        &nodes[0],
        &["a partition of", "ext4"],
    )?;
    let consent = nodes[0].clone();
    yard.allowed(&nodes[0], Some(&consent))?;
    Ok("asks for its own path, not its disk's".into())
}
