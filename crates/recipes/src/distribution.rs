//! Remedies in the words of the system that they are for: how it installs packages, and which tools of its own it has.

use rubus_vocabulary::machine::Machine;

/// Systems that install packages in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Debian,
    Arch,
    Fedora,
    Alpine,
    Suse,
    /// Another one, or one that does not say what it is.
    Other,
}

/// Words of `ID` and `ID_LIKE` in os-release(5).
const FAMILIES: [(&str, Family); 14] = [
    ("debian", Family::Debian),
    ("raspbian", Family::Debian),
    ("ubuntu", Family::Debian),
    ("kali", Family::Debian),
    ("devuan", Family::Debian),
    ("arch", Family::Arch),
    ("archarm", Family::Arch),
    ("manjaro", Family::Arch),
    ("fedora", Family::Fedora),
    ("rhel", Family::Fedora),
    ("centos", Family::Fedora),
    ("alpine", Family::Alpine),
    ("suse", Family::Suse),
    ("opensuse", Family::Suse),
];
/// Names for people of systems that are Debian or made from it, where a machine says no more.
const DEBIAN_NAMES: [&str; 6] =
    ["Debian", "Raspbian", "Raspberry Pi OS", "Ubuntu", "Kali", "DietPi"];

fn family(machine: &Machine) -> Family {
    let system = &machine.system;
    if system.os_ids.is_empty() {
        let name = system.os.text().unwrap_or_default();
        return if DEBIAN_NAMES.iter().any(|known| name.contains(known)) {
            Family::Debian
        } else {
            Family::Other
        };
    }
    let mut families = system
        .os_ids
        .iter()
        .filter_map(|id| FAMILIES.iter().find(|(known, _)| known == id).map(|(_, family)| *family));
    families.next().unwrap_or(Family::Other)
}

/// Whether the system is Debian or made from it.
pub(super) fn is_debian(machine: &Machine) -> bool {
    family(machine) == Family::Debian
}

/// How to install packages, which are given by their Debian names.
pub(super) fn install(machine: &Machine, packages: &[&str]) -> String {
    let family = family(machine);
    let names: Vec<&str> = packages.iter().map(|package| name_in(family, package)).collect();
    let names = names.join(" ");
    match family {
        Family::Debian => format!("sudo apt install {names}"),
        Family::Arch => format!("sudo pacman -S {names}"),
        Family::Fedora => format!("sudo dnf install {names}"),
        Family::Alpine => format!("sudo apk add {names}"),
        Family::Suse => format!("sudo zypper install {names}"),
        Family::Other => format!("install what brings them; Debian's packages are {names}"),
    }
}

fn name_in(family: Family, package: &str) -> &str {
    match (family, package) {
        (Family::Suse, "btrfs-progs") => "btrfsprogs",
        (Family::Debian | Family::Other, name) => name,
        (_, "mount") => "util-linux",
        (_, "systemd-zram-generator") => "zram-generator",
        (_, name) => name,
    }
}

/// Where raspi-config has the setting, in brackets; nothing on systems that do not have it.
pub(super) fn raspi_config(machine: &Machine, setting: &str) -> String {
    let is_raspberry_pi = machine.board.revision.value().is_some();
    if is_raspberry_pi && is_debian(machine) {
        format!(" (where there is raspi-config: {setting})")
    } else {
        String::new()
    }
}

/// What gets a kernel with the parts that are missing. The package is Raspberry Pi OS's, whose 64-bit edition calls itself Debian.
pub(super) fn kernel(machine: &Machine, remedy: &str) -> String {
    let system = &machine.system;
    let is_armbian = system.os.text().is_some_and(|name| name.contains("Armbian"));
    let is_debians = match system.os_ids.first() {
        Some(id) => matches!(id.as_str(), "debian" | "raspbian"),
        None => is_debian(machine),
    };
    if is_debians && !is_armbian {
        remedy.to_string()
    } else {
        remedy.replace(" (sudo apt install linux-image-rpi-v8)", "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::fact::Fact;

    fn of(ids: &[&str]) -> Machine {
        let mut machine = fixture::pi3_with_usb_ssd();
        machine.system.os_ids = ids.iter().map(|id| id.to_string()).collect();
        machine
    }

    #[test]
    fn every_family_installs_with_its_own_program() {
        for (ids, words) in [
            (&["raspbian", "debian"][..], "sudo apt install btrfs-progs dosfstools"),
            (&["linuxmint", "ubuntu", "debian"], "sudo apt install btrfs-progs dosfstools"),
            (&["archarm", "arch"], "sudo pacman -S btrfs-progs dosfstools"),
            (&["rocky", "rhel", "centos", "fedora"], "sudo dnf install btrfs-progs dosfstools"),
            (&["alpine"], "sudo apk add btrfs-progs dosfstools"),
            (
                &["opensuse-tumbleweed", "opensuse", "suse"],
                "sudo zypper install btrfsprogs dosfstools",
            ),
            (&["nixos"], "install what brings them; Debian's packages are btrfs-progs dosfstools"),
        ] {
            assert_eq!(install(&of(ids), &["btrfs-progs", "dosfstools"]), words, "{ids:?}");
        }
    }

    #[test]
    fn raspi_config_is_named_where_it_may_be() {
        assert!(!raspi_config(&of(&["debian"]), "Performance").is_empty());
        assert_eq!(raspi_config(&of(&["alpine"]), "Performance"), "");
    }

    #[test]
    fn the_package_of_a_kernel_is_named_where_it_is_one() {
        let remedy = "use that of Raspberry Pi OS (sudo apt install linux-image-rpi-v8)";
        let bare = "use that of Raspberry Pi OS";
        for (ids, words) in [
            (&["debian"][..], remedy),
            (&["raspbian", "debian"], remedy),
            (&["ubuntu", "debian"], bare),
            (&["kali", "debian"], bare),
            (&["archarm", "arch"], bare),
        ] {
            assert_eq!(kernel(&of(ids), remedy), words, "{ids:?}");
        }
        let mut armbian = of(&["debian"]);
        armbian.system.os = Fact::known("Armbian 25.8 trixie".into(), "test");
        assert_eq!(kernel(&armbian, remedy), bare);
    }

    #[test]
    fn a_machine_that_says_no_identifier_is_known_by_its_name() {
        let mut machine = of(&[]);
        machine.system.os = Fact::known("Raspbian GNU/Linux 11 (bullseye)".into(), "test");
        assert!(is_debian(&machine));
        machine.system.os = Fact::known("LibreELEC 12".into(), "test");
        assert!(!is_debian(&machine));
    }
}
