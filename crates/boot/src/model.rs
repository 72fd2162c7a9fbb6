//! What a board's firmware reads and loads when `config.txt` does not say otherwise.
//!
//! Source: Raspberry Pi documentation, "config.txt", model filters, `kernel` and `arm_64bit`.

use rubus_vocabulary::machine::{Board, Revision};

/// A kind of board as its firmware sees itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The section filters of `config.txt` that apply ("pi4", "cm4").
    pub filters: Vec<&'static str>,
    /// Type number of the revision code, for `[board-type=...]`.
    pub type_number: Option<u32>,
    /// The kernels that are loaded by default.
    pub kernels: Kernels,
}

/// Which kernels a board's firmware loads when none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernels {
    /// `kernel.img`: BCM2835.
    Armv6,
    /// `kernel7.img`: BCM2836, which has no 64-bit mode.
    Armv7,
    /// `kernel7.img`, in 64-bit mode `kernel8.img`: BCM2837.
    Armv7Or8,
    /// `kernel8.img`, in 32-bit mode `kernel7l.img`: BCM2711.
    Armv8Or7l,
    /// `kernel_2712.img`, else `kernel8.img`: BCM2712.
    Bcm2712,
    /// Not a Raspberry Pi, or one that is not known: `config.txt` must name it.
    Named,
}

/// Short name of the type, filters, type number; the processor follows from the revision code.
const TYPES: [(&str, &[&str], u32); 24] = [
    ("A", &["pi1"], 0x00),
    ("B", &["pi1"], 0x01),
    ("A+", &["pi1"], 0x02),
    ("B+", &["pi1"], 0x03),
    ("2B", &["pi2"], 0x04),
    ("CM1", &["pi1", "cm1"], 0x06),
    ("3B", &["pi3"], 0x08),
    ("Zero", &["pi0"], 0x09),
    ("CM3", &["pi3", "cm3"], 0x0a),
    ("Zero W", &["pi0", "pi0w"], 0x0c),
    ("3B+", &["pi3", "pi3+"], 0x0d),
    ("3A+", &["pi3", "pi3+"], 0x0e),
    ("CM3+", &["pi3", "pi3+", "cm3", "cm3+"], 0x10),
    ("4B", &["pi4"], 0x11),
    ("Zero 2 W", &["pi0", "pi0w", "pi02"], 0x12),
    ("400", &["pi4", "pi400"], 0x13),
    ("CM4", &["pi4", "cm4"], 0x14),
    ("CM4S", &["pi4", "cm4s"], 0x15),
    ("5", &["pi5"], 0x17),
    ("CM5", &["pi5", "cm5"], 0x18),
    ("500", &["pi5", "pi500"], 0x19),
    ("CM5 Lite", &["pi5", "cm5"], 0x1a),
    ("CM0", &["pi0", "pi0w", "pi02", "cm0"], 0x1b),
    ("Alpha", &["pi1"], 0x05),
];

/// The device tree's names of the boards, for a machine whose revision code is not known.
const COMPATIBLE: [(&str, &str, &str); 22] = [
    ("raspberrypi,model-b", "B", "BCM2835"),
    ("raspberrypi,model-b-plus", "B+", "BCM2835"),
    ("raspberrypi,model-zero", "Zero", "BCM2835"),
    ("raspberrypi,model-zero-w", "Zero W", "BCM2835"),
    ("raspberrypi,model-zero-2-w", "Zero 2 W", "BCM2837"),
    ("raspberrypi,2-model-b", "2B", "BCM2836"),
    ("raspberrypi,2-model-b-rev2", "2B", "BCM2837"),
    ("raspberrypi,3-model-b", "3B", "BCM2837"),
    ("raspberrypi,3-model-b-plus", "3B+", "BCM2837"),
    ("raspberrypi,3-model-a-plus", "3A+", "BCM2837"),
    ("raspberrypi,3-compute-module", "CM3", "BCM2837"),
    ("raspberrypi,4-model-b", "4B", "BCM2711"),
    ("raspberrypi,400", "400", "BCM2711"),
    ("raspberrypi,4-compute-module", "CM4", "BCM2711"),
    ("raspberrypi,5-model-b", "5", "BCM2712"),
    ("raspberrypi,5-compute-module", "CM5", "BCM2712"),
    ("raspberrypi,500", "500", "BCM2712"),
    ("raspberrypi,model-a", "A", "BCM2835"),
    ("raspberrypi,model-a-plus", "A+", "BCM2835"),
    ("raspberrypi,model-b-rev2", "B", "BCM2835"),
    ("raspberrypi,compute-module", "CM1", "BCM2835"),
    ("raspberrypi,4-compute-module-s", "CM4S", "BCM2711"),
];
/// Boards with a filter of their own whose device trees have the name of a relative, and their processor.
const UNDER_OTHER_NAMES: [(&str, &str); 2] = [("CM0", "BCM2837"), ("CM3+", "BCM2837")];

impl Model {
    /// The model of a surveyed board: from its revision code, else from its device tree.
    pub fn of(board: &Board) -> Model {
        match board.revision.value() {
            Some(revision) => Model::of_revision(revision),
            None => Model::of_names(board.compatible.value().map_or(&[], Vec::as_slice)),
        }
    }

    /// The model by the device tree's `compatible` list.
    pub fn of_names(compatible: &[String]) -> Model {
        let known =
            compatible.iter().find_map(|name| COMPATIBLE.iter().find(|(known, ..)| known == name));
        match known {
            Some((_, short, processor)) => Model::of_type(short, processor),
            None => Model::other(),
        }
    }

    /// The model of a revision code.
    pub fn of_revision(revision: &Revision) -> Model {
        Model::of_type(&revision.board_type, &revision.processor)
    }

    /// A board that no filter and no default is known for.
    pub fn other() -> Model {
        Model { filters: Vec::new(), type_number: None, kernels: Kernels::Named }
    }

    /// Every kind of board that is known, and one that is not: for a card that may be put into any.
    pub fn every() -> Vec<Model> {
        let mut all = vec![Model::other()];
        for (short, processor) in each() {
            let model = Model::of_type(short, processor);
            if !all.contains(&model) {
                all.push(model);
            }
        }
        all
    }

    /// The model by the filter of `config.txt` that means it alone ("pi4", "cm4"), and its full name.
    pub fn of_filter(filter: &str) -> Option<(Model, String)> {
        let is_it = |short: &str| {
            let known = TYPES.iter().find(|(name, ..)| *name == short);
            known.and_then(|(_, filters, _)| filters.last()) == Some(&filter)
        };
        let (short, processor) = each().find(|(short, _)| is_it(short))?;
        let name = match short.strip_prefix("CM") {
            Some(number) => format!("Raspberry Pi Compute Module {number}"),
            None => format!("Raspberry Pi {short}"),
        };
        Some((Model::of_type(short, processor), name))
    }

    /// The names that [`Model::of_filter`] knows.
    pub fn filter_names() -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        for (short, _) in each() {
            let known = TYPES.iter().find(|(name, ..)| *name == short);
            let last = known.and_then(|(_, filters, _)| filters.last());
            if let Some(name) = last.filter(|name| !names.contains(name)) {
                names.push(name);
            }
        }
        names
    }

    /// Whether a board of any kind has this filter.
    pub fn is_filter(name: &str) -> bool {
        TYPES.iter().any(|(_, filters, _)| filters.contains(&name))
    }

    fn of_type(short: &str, processor: &str) -> Model {
        let kernels = match processor {
            "BCM2835" => Kernels::Armv6,
            "BCM2836" => Kernels::Armv7,
            "BCM2837" => Kernels::Armv7Or8,
            "BCM2711" => Kernels::Armv8Or7l,
            "BCM2712" => Kernels::Bcm2712,
            _ => Kernels::Named,
        };
        match TYPES.iter().find(|(name, ..)| *name == short) {
            Some((_, filters, number)) => {
                Model { filters: filters.to_vec(), type_number: Some(*number), kernels }
            }
            None => Model { kernels, ..Model::other() },
        }
    }
}

/// Short name and processor of each board that is known, some more than once.
fn each() -> impl Iterator<Item = (&'static str, &'static str)> {
    let named = COMPATIBLE.iter().map(|(_, short, processor)| (*short, *processor));
    named.chain(UNDER_OTHER_NAMES)
}

impl Kernels {
    /// The kernels that may be loaded when `config.txt` names none, the firmware's first choice
    /// first. Where the mode is not written down and versions of the firmware differ, those of both modes: whatever
    /// is there of them can be what starts.
    pub fn names(self, arm_64bit: Option<bool>) -> &'static [&'static str] {
        match (self, arm_64bit) {
            (Kernels::Armv6, _) => &["kernel.img"],
            (Kernels::Armv7, _) => &["kernel7.img"],
            (Kernels::Armv7Or8, Some(false)) => &["kernel7.img", "kernel8-32.img"],
            (Kernels::Armv7Or8 | Kernels::Armv8Or7l, Some(true)) => &["kernel8.img"],
            (Kernels::Armv7Or8, None) => &["kernel7.img", "kernel8.img", "kernel8-32.img"],
            (Kernels::Armv8Or7l, Some(false)) => &["kernel7l.img", "kernel8-32.img"],
            (Kernels::Armv8Or7l, None) => &["kernel8.img", "kernel7l.img", "kernel8-32.img"],
            (Kernels::Bcm2712, _) => &["kernel_2712.img", "kernel8.img"],
            (Kernels::Named, _) => &[],
        }
    }

    /// Whether the boards have their bootloader in an EEPROM; others load it from the boot partition.
    pub fn has_eeprom(self) -> bool {
        matches!(self, Kernels::Armv8Or7l | Kernels::Bcm2712)
    }

    /// Whether the first of [`Kernels::names`] that is there is always the one, so that the others
    /// cannot be started.
    pub fn first_wins(self) -> bool {
        self == Kernels::Bcm2712
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision;

    #[test]
    fn revision_codes_lead_to_filters_and_kernels() {
        for (code, filters, kernel) in [
            (0x0010, &["pi1"][..], "kernel.img"),
            (0xa01041, &["pi2"], "kernel7.img"),
            (0xa02082, &["pi3"], "kernel7.img"),
            (0xa020d3, &["pi3", "pi3+"], "kernel7.img"),
            (0x902120, &["pi0", "pi0w", "pi02"], "kernel7.img"),
            (0xc03114, &["pi4"], "kernel8.img"),
            (0xa04171, &["pi5"], "kernel_2712.img"),
        ] {
            let model = Model::of_revision(&revision::decode(code));
            assert_eq!(model.filters, filters, "{code:#x}");
            assert_eq!(model.kernels.names(None)[0], kernel, "{code:#x}");
        }
    }

    #[test]
    fn mode_decides_on_boards_that_have_two() {
        assert_eq!(Kernels::Armv7Or8.names(Some(true)), ["kernel8.img"]);
        assert_eq!(Kernels::Armv8Or7l.names(Some(false)), ["kernel7l.img", "kernel8-32.img"]);
        assert!(Kernels::Named.names(None).is_empty());
    }

    #[test]
    fn every_kind_is_there_once() {
        let all = Model::every();
        for kernels in [
            Kernels::Armv6,
            Kernels::Armv7,
            Kernels::Armv7Or8,
            Kernels::Armv8Or7l,
            Kernels::Bcm2712,
            Kernels::Named,
        ] {
            assert!(all.iter().any(|model| model.kernels == kernels));
        }
        for (index, model) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(model), "{model:?}");
        }
    }

    /// The filters of Raspberry Pi's documentation, "Conditional filters", each with its board of the revision codes.
    #[test]
    fn each_filter_that_is_documented_means_a_board() {
        for (filter, code, name) in [
            ("pi0", 0x900092, "Raspberry Pi Zero"),
            ("pi0w", 0x9000c1, "Raspberry Pi Zero W"),
            ("pi02", 0x902120, "Raspberry Pi Zero 2 W"),
            ("pi1", 0x0002, "Raspberry Pi B"),
            ("pi2", 0xa01041, "Raspberry Pi 2B"),
            ("pi3", 0xa02082, "Raspberry Pi 3B"),
            ("pi3+", 0xa020d3, "Raspberry Pi 3B+"),
            ("pi4", 0xc03114, "Raspberry Pi 4B"),
            ("pi400", 0xc03130, "Raspberry Pi 400"),
            ("pi5", 0xa04171, "Raspberry Pi 5"),
            ("pi500", 0xd04190, "Raspberry Pi 500"),
            ("cm0", 0x9021b0, "Raspberry Pi Compute Module 0"),
            ("cm1", 0x900061, "Raspberry Pi Compute Module 1"),
            ("cm3", 0xa020a0, "Raspberry Pi Compute Module 3"),
            ("cm3+", 0xa02100, "Raspberry Pi Compute Module 3+"),
            ("cm4", 0xd03140, "Raspberry Pi Compute Module 4"),
            ("cm4s", 0xc03150, "Raspberry Pi Compute Module 4S"),
            ("cm5", 0xd04180, "Raspberry Pi Compute Module 5"),
        ] {
            let (model, words) = Model::of_filter(filter).expect(filter);
            assert_eq!(model, Model::of_revision(&revision::decode(code)), "{filter}");
            assert_eq!(words, name);
            assert!(Model::filter_names().contains(&filter), "{filter}");
        }
    }

    #[test]
    fn every_type_of_the_table_is_there_once() {
        for (index, (name, _, number)) in TYPES.iter().enumerate() {
            let same =
                TYPES.iter().skip(index + 1).any(|(other, _, n)| other == name || n == number);
            assert!(!same, "{name}");
        }
        for (short, _) in each() {
            assert!(TYPES.iter().any(|(name, ..)| *name == short), "{short}");
        }
    }
}
