//! The list of recipes, and the page that names them.

use super::{ALL, Facts, ImageFacts, PlanInput, Wishes, image_programs, testing::disk};
use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;

const DOCUMENT: &str = include_str!("../../../docs/reference/commands.md");

/// The names in backquotes in a text.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn recipes_stand_in_the_order_of_their_names() {
    assert!(ALL.is_sorted_by_key(|recipe| recipe.name), "{:?}", ALL.map(|recipe| recipe.name));
}

#[test]
fn the_page_of_commands_names_every_recipe_and_no_other() {
    let row = DOCUMENT.lines().find(|line| line.starts_with("| `rubus recipes`"));
    let named = row.and_then(|row| row.split("example): ").nth(1));
    let mut named =
        quoted(named.expect("docs/reference/commands.md has a row that names the recipes"));
    named.sort_unstable();
    let missing: Vec<&str> =
        ALL.iter().map(|recipe| recipe.name).filter(|name| !named.contains(name)).collect();
    assert_eq!(missing, [""; 0], "not in docs/reference/commands.md");
    assert_eq!(named, ALL.map(|recipe| recipe.name));
}

fn image() -> ImageFacts {
    ImageFacts {
        file: "card.img".into(),
        out: disk("new.img", ""),
        room_bytes: None,
        boot_bytes: 0,
        initramfs: Default::default(),
        runs_here: Ok(()),
        missing: Vec::new(),
    }
}

#[test]
fn the_shorter_command_line_is_that_of_32_bit_arm() {
    let is_short = |arch: &str, bits, image| {
        let mut machine = fixture::pi3_with_usb_ssd();
        machine.system.kernel_arch = Fact::known(arch.into(), "a test");
        machine.system.user_space_bits = Fact::known(bits, "a test");
        let facts = Facts { image, ..Facts::default() };
        let situation = PlanInput { machine: &machine, facts: &facts, options: &Wishes::new() };
        situation.has_32_bit_arm_kernel()
    };
    assert!(is_short("armv7l", 32, None) && is_short("armv6l", 32, None));
    assert!(!is_short("aarch64", 64, None));
    // The kernel of a machine is known, that of an image's board is not.
    assert!(!is_short("aarch64", 32, None) && is_short("aarch64", 32, Some(image())));
    assert!(!is_short("aarch64", 64, Some(image())));
}

#[test]
fn an_image_can_be_made_with_the_programs_of_every_filesystem() {
    let programs: Vec<&str> = image_programs().collect();
    for program in ["mkfs.btrfs", "btrfs", "mkfs.ext4", "mkfs.f2fs", "mcopy"] {
        assert!(programs.contains(&program), "{program}: {programs:?}");
    }
}
