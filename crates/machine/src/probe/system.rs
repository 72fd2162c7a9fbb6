//! Kernel and user space: release, architecture, page size, command line, virtualization.

use std::path::Path;

use rubus_host::{Files, ReadError};
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::System;

use crate::probe::container;
use crate::probe::cpuinfo::{self, CpuInfo};
use crate::probe::device_tree;
use crate::probe::read::{self, filled_text, first_known};

const SHELL: &str = "/bin/sh";
const AUXV: &str = "/proc/self/auxv";
const SMAPS: &str = "/proc/self/smaps";
const DMI: &str = "/sys/class/dmi/id";
/// Entry of the auxiliary vector with the page size; see getauxval(3).
const AT_PAGESZ: u64 = 6;

pub(crate) fn system(files: &dyn Files, cpuinfo: &CpuInfo) -> System {
    System {
        os: os(files),
        os_ids: os_ids(files),
        kernel_release: filled_text(files, "/proc/sys/kernel/osrelease"),
        kernel_arch: kernel_arch(files),
        user_space_bits: user_space_bits(files),
        page_bytes: page_bytes(files),
        command_line: read::text(files, "/proc/cmdline"),
        virtualization: virtualization(files, cpuinfo),
        container: container::container(files),
    }
}

/// The name for people in os-release(5).
fn os(files: &dyn Files) -> Fact<String> {
    let named = |path: &str| {
        read::text(files, path).and_then(|text| {
            text.lines()
                .find_map(|line| line.strip_prefix("PRETTY_NAME="))
                .map(|name| name.trim_matches(['"', '\'']).to_string())
                .ok_or_else(|| "it has no line PRETTY_NAME".to_string())
        })
    };
    first_known(&[&|| named("/etc/os-release"), &|| named("/usr/lib/os-release")])
}

/// What the system is and what it is made from.
fn os_ids(files: &dyn Files) -> Vec<String> {
    let mut texts = ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .filter_map(|path| read::text(files, path).value().cloned());
    let text = texts.next().unwrap_or_default();
    let words = |name: &str| -> Vec<String> {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let value = lines.next().unwrap_or_default().trim().trim_matches(['"', '\'']);
        value.split_whitespace().map(str::to_string).collect()
    };
    let mut ids = words("ID");
    ids.extend(words("ID_LIKE"));
    ids
}

/// The kernel's own word (since Linux 6.1), else that of `uname`.
fn kernel_arch(files: &dyn Files) -> Fact<String> {
    const CALL: &str = "uname -m";
    first_known(&[&|| filled_text(files, "/proc/sys/kernel/arch"), &|| match files
        .ask("uname", &["-m"])
    {
        Ok(output) => Fact::known(output.trim().to_string(), CALL),
        Err(ReadError::Absent) => Fact::unknown("not installed", CALL),
        Err(error) => Fact::unknown(error.to_string(), CALL),
    }])
}

/// The class byte of the shell's ELF header: 1 is 32 bits, 2 is 64 (elf(5)).
fn user_space_bits(files: &dyn Files) -> Fact<u32> {
    let header = match files.read_prefix(Path::new(SHELL), 5) {
        Ok(header) => header,
        Err(error) => return Fact::unknown(error.to_string(), SHELL),
    };
    match header[..] {
        [0x7f, b'E', b'L', b'F', 1] => Fact::known(32, SHELL),
        [0x7f, b'E', b'L', b'F', 2] => Fact::known(64, SHELL),
        _ => Fact::unknown("it is not an ELF program", SHELL),
    }
}

/// What the kernel told this process at its start; in a hand-built capture the readable file.
fn page_bytes(files: &dyn Files) -> Fact<u64> {
    first_known(&[&|| page_bytes_from_auxv(files), &|| page_bytes_from_smaps(files)])
}

fn page_bytes_from_auxv(files: &dyn Files) -> Fact<u64> {
    match files.read_prefix(Path::new(AUXV), 4096) {
        Ok(bytes) => match page_size_in_vector(&bytes) {
            Some(size) => Fact::known(size, AUXV),
            None => Fact::unknown("it has no entry with a page size", AUXV),
        },
        Err(error) => Fact::unknown(error.to_string(), AUXV),
    }
}

/// Pairs of words (type, value), as wide as those of the process that the kernel wrote it for. A
/// capture may come from a machine with the other width: the reading in which a page size comes
/// out is right. All machines that this runs on are little-endian.
fn page_size_in_vector(bytes: &[u8]) -> Option<u64> {
    let wide = bytes.chunks_exact(16).map(|pair| {
        let (kind, value) = pair.split_at(8);
        let word = |part: &[u8]| part.try_into().map(u64::from_le_bytes).unwrap_or(0);
        (word(kind), word(value))
    });
    let narrow = bytes.chunks_exact(8).map(|pair| {
        let (kind, value) = pair.split_at(4);
        let word = |part: &[u8]| part.try_into().map(u32::from_le_bytes).unwrap_or(0);
        (u64::from(word(kind)), u64::from(word(value)))
    });
    page_size_in_pairs(wide).or_else(|| page_size_in_pairs(narrow))
}

fn page_size_in_pairs(mut pairs: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
    pairs
        .find(|(kind, _)| *kind == AT_PAGESZ)
        .map(|(_, size)| size)
        .filter(|size| size.is_power_of_two() && (4096..=1 << 20).contains(size))
}

fn page_bytes_from_smaps(files: &dyn Files) -> Fact<u64> {
    let beginning = match files.read_prefix(Path::new(SMAPS), 1024) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return Fact::unknown(error.to_string(), SMAPS),
    };
    let kib = beginning
        .lines()
        .find_map(|line| line.strip_prefix("KernelPageSize:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok());
    match kib {
        Some(kib) => Fact::known(kib.saturating_mul(1024), SMAPS),
        None => Fact::unknown("it begins without a line KernelPageSize", SMAPS),
    }
}

/// Which hypervisor or emulator this runs on; "none" when nothing of what was read shows one.
fn virtualization(files: &dyn Files, cpuinfo: &CpuInfo) -> Fact<String> {
    let flagged = cpuinfo
        .all("flags")
        .first()
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let named = by_name(files);
    if named.value().is_some() {
        return named;
    }
    if flagged {
        return Fact::known(
            "unnamed hypervisor".to_string(),
            format!("{}, flag hypervisor", cpuinfo::PATH),
        );
    }
    let looked_at = format!(
        "{}, {DMI}, /sys/hypervisor/type, /proc/device-tree, /sys/bus/mmc/devices",
        cpuinfo::PATH
    );
    if cpuinfo.all("processor").is_empty() {
        return Fact::unknown("the processor says nothing of itself", looked_at);
    }
    Fact::known("none".to_string(), looked_at)
}

fn by_name(files: &dyn Files) -> Fact<String> {
    first_known(&[
        &|| filled_text(files, "/sys/hypervisor/type"),
        &|| by_dmi(files),
        &|| by_device_tree(files),
        &|| by_emulated_card(files),
    ])
}

fn by_dmi(files: &dyn Files) -> Fact<String> {
    const KNOWN: [(&str, &str); 10] = [
        ("KVM", "kvm"),
        ("QEMU", "qemu"),
        ("VMware", "vmware"),
        ("VirtualBox", "virtualbox"),
        ("Xen", "xen"),
        ("Virtual Machine", "hyper-v"),
        ("Amazon EC2", "amazon"),
        ("Google Compute Engine", "google"),
        ("Parallels", "parallels"),
        ("Bochs", "bochs"),
    ];
    let product = filled_text(files, &format!("{DMI}/product_name"));
    let vendor = filled_text(files, &format!("{DMI}/sys_vendor"));
    for fact in [product, vendor.clone()] {
        let found =
            KNOWN.iter().find(|(mark, _)| fact.text().is_some_and(|text| text.contains(mark)));
        if let Some((_, name)) = found {
            return Fact::known(name.to_string(), fact.source());
        }
    }
    vendor.and_then(|vendor| Err(format!("'{vendor}' is no hypervisor")))
}

/// A hypervisor's own node (`linux,kvm`), or the board that only emulators have.
fn by_device_tree(files: &dyn Files) -> Fact<String> {
    let node = device_tree::string(files, "hypervisor/compatible");
    if node.value().is_some() {
        return node.map(|name| match name.rsplit_once(',') {
            Some((_, name)) => name.to_string(),
            None => name,
        });
    }
    device_tree::strings(files, "compatible").and_then(|list| {
        if list.iter().any(|entry| entry.contains("dummy-virt")) {
            Ok("qemu".to_string())
        } else {
            Err("it names a real board".to_string())
        }
    })
}

/// An emulated Raspberry Pi has a real board's device tree, but its card says who made it.
fn by_emulated_card(files: &dyn Files) -> Fact<String> {
    const CARDS: &str = "/sys/bus/mmc/devices";
    for card in files.list(Path::new(CARDS)).unwrap_or_default() {
        let name = filled_text(files, &format!("{CARDS}/{card}/name"));
        if name.text() == Some("QEMU!") {
            return name.map(|_| "qemu".to_string());
        }
    }
    Fact::unknown("no card of an emulator", CARDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    fn read(files: &FakeFiles) -> System {
        system(files, &CpuInfo::read(files))
    }

    #[test]
    fn names_releases_and_sizes_are_read() {
        let files = FakeFiles::new()
            .file(
                "/usr/lib/os-release",
                "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n",
            )
            .file("/proc/sys/kernel/osrelease", "6.12.47+rpt-rpi-v8\n")
            .program(&["uname", "-m"], "aarch64\n")
            .file("/bin/sh", b"\x7fELF\x01\x01\x01\0")
            .file("/proc/cmdline", "root=PARTUUID=abcd-02 rootwait\n");
        let system = read(&files);
        assert_eq!(system.os.text(), Some("Debian GNU/Linux 13 (trixie)"));
        assert_eq!(system.kernel_release.text(), Some("6.12.47+rpt-rpi-v8"));
        assert_eq!(system.kernel_arch, Fact::known("aarch64".into(), "uname -m"));
        assert_eq!(system.user_space_bits.get(), Some(32));
        assert_eq!(system.command_line.text(), Some("root=PARTUUID=abcd-02 rootwait"));
    }

    fn vector<const WIDTH: usize>(pairs: &[(u64, u64)]) -> Vec<u8> {
        pairs
            .iter()
            .flat_map(|(kind, value)| [kind, value])
            .flat_map(|word| word.to_le_bytes()[..WIDTH].to_vec())
            .collect()
    }

    #[test]
    fn page_sizes_come_from_either_width_of_word_or_from_text() {
        let pairs = [(33, 0x7fff_0000), (16, 0x1f), (6, 16_384), (17, 100), (0, 0)];
        for bytes in [vector::<8>(&pairs), vector::<4>(&pairs)] {
            let files = FakeFiles::new().file(AUXV, bytes);
            assert_eq!(read(&files).page_bytes, Fact::known(16_384, AUXV));
        }
        let text = "aaaa-bbbb r--p 00000000 b3:02 123 /usr/bin/rubus\n\
                    Size:                124 kB\nKernelPageSize:       16 kB\n";
        let files = FakeFiles::new().file(SMAPS, text);
        assert_eq!(read(&files).page_bytes, Fact::known(16_384, SMAPS));
        let odd = FakeFiles::new().file(AUXV, vector::<8>(&[(6, 5000), (0, 0)]));
        assert!(read(&odd).page_bytes.value().is_none());
    }

    #[test]
    fn hypervisors_and_emulators_are_told() {
        let x86 = |flags: &str| {
            FakeFiles::new()
                .file("/proc/cpuinfo", format!("processor\t: 0\nflags\t\t: fpu {flags}\n"))
        };
        let arm = || FakeFiles::new().file("/proc/cpuinfo", "processor\t: 0\n");
        let cases = [
            (x86("aes"), "none"),
            (x86("aes hypervisor"), "unnamed hypervisor"),
            (x86("hypervisor").file("/sys/class/dmi/id/sys_vendor", "QEMU\n"), "qemu"),
            (
                x86("hypervisor")
                    .file("/sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n")
                    .file("/sys/class/dmi/id/product_name", "Virtual Machine\n"),
                "hyper-v",
            ),
            (arm().file("/proc/device-tree/hypervisor/compatible", "linux,kvm\0"), "kvm"),
            (arm().file("/proc/device-tree/compatible", "linux,dummy-virt\0"), "qemu"),
            (
                arm()
                    .file("/proc/device-tree/compatible", "raspberrypi,3-model-b\0")
                    .file("/sys/bus/mmc/devices/mmc0:4567/name", "QEMU!\n"),
                "qemu",
            ),
            (arm().file("/proc/device-tree/compatible", "raspberrypi,3-model-b\0"), "none"),
        ];
        for (files, expected) in cases {
            let fact = read(&files).virtualization;
            assert_eq!(fact.text(), Some(expected), "{fact:?}");
        }
        assert!(read(&FakeFiles::new()).virtualization.value().is_none());
    }

    proptest::proptest! {
        #[test]
        fn no_vector_makes_it_panic(bytes in proptest::collection::vec(0_u8.., 0..200)) {
            page_size_in_vector(&bytes);
        }
    }
}
