//! Disks behind an emulated USB bridge, with and without UAS, and behind an NVMe controller.

use anyhow::{Context, Result};
use rubus_advise::{Cost, Kind as Pipe, Resource, Stage, Step};

use super::Subject;
use super::case::Whole;
use super::ledger::Ledger;
use super::parts::{beside, by_size, longer};
use super::rig::Rig;
use super::stacked::{Alone, LONG, PROCESSOR, SetUp, StackBoard, Target, script, stripe};
use crate::board::Board;
use crate::devices::needs::Need;
use crate::session::Options;

pub(super) const ABOUT: &str = "Disks of the emulator that hold nothing and answer at once, or after 2 ms however many are asked: behind a USB bridge with one command at \
     a time (usb-storage), behind one with UAS, and as NVMe. Alone, one at a time and 64: each of the three with a disk that answers at once, with how many commands \
     the kernel gives it at a time; the slow disk, as what NVMe takes longer with it; and dm-crypt and RAID-0 above a null_blk that answers at once. Predicted: the bridges \
     with the slow disk, and the layers on all three, 1, 8 and 64 in flight.";
pub(super) const NEEDS: &[Need] = &[Need::Root, Need::Board(Board::Pc)];

/// The board's controllers, each with a disk that answers at once and a slow one.
const KINDS: [&str; 3] = ["bot", "uas", "nvme"];
const DISK_BYTES: u64 = 1 << 30;
const SPEEDS: [(&str, u32); 2] = [("instant", 0), ("slow", 2_000_000)];

const SET_UPS: [SetUp<Stages>; 6] = [
    SetUp::new("usb-storage", Target::read("disk slow-bot"), |of| of.bot()),
    SetUp::new("UAS", Target::read("disk slow-uas"), |of| of.uas()),
    SetUp::new("dm-crypt on usb-storage", Target::read("disk slow-bot; encrypt $stacked"), |of| {
        [of.encrypting(), of.bot()].concat()
    }),
    SetUp::new("dm-crypt on UAS", Target::read("disk slow-uas; encrypt $stacked"), |of| {
        [of.encrypting(), of.uas()].concat()
    }),
    SetUp::new("dm-crypt on NVMe", Target::read("disk slow-nvme; encrypt $stacked"), |of| {
        [of.encrypting(), of.nvme()].concat()
    }),
    SetUp::new(
        "RAID-0 of UAS and NVMe",
        Target::read("disk slow-uas; first=$stacked; disk slow-nvme; raid 0 $first $stacked"),
        |of| [of.striping(), stripe([of.uas(), of.nvme()])].concat(),
    ),
];

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let options = Options { own_devices: devices(), ..Options::default() };
    let mut board = StackBoard::boot(rig, options)?;
    let stages = Stages::measure(rig, &mut board)?;
    let wholes = board.wholes(rig, ledger, Subject::Buses, &SET_UPS, &stages)?;
    board.session.switch_off()?;
    Ok(wholes)
}

/// The emulator's arguments for all disks; each has its name for a serial number.
fn devices() -> Vec<String> {
    let mut arguments = Vec::new();
    let mut push = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
    let mut port = 1;
    for (speed, latency_ns) in SPEEDS {
        for kind in KINDS {
            let name = format!("{speed}-{kind}");
            let node = format!(
                "driver=null-co,node-name={name},size={DISK_BYTES},read-zeroes=on,latency-ns={latency_ns}"
            );
            push("-blockdev", node);
            let plug = format!("bus=xhci1.0,port={port}");
            let disk = format!("drive={name},serial={name}");
            match kind {
                "bot" => push("-device", format!("usb-storage,{plug},{disk}")),
                "uas" => {
                    push("-device", format!("usb-uas,id={speed}-bridge,{plug},serial={name}"));
                    push("-device", format!("scsi-hd,bus={speed}-bridge.0,lun=0,{disk}"));
                }
                _ => push("-device", format!("nvme,{disk}")),
            }
            port += u32::from(kind != "nvme");
        }
    }
    arguments
}

/// A controller: what it does with a disk that answers at once, and how many commands it is given at a time.
struct Controller {
    alone: Alone,
    commands: u32,
}

struct Stages {
    bot: Controller,
    uas: Controller,
    nvme: Controller,
    slow_nvme: Alone,
    instant: Alone,
    encrypted: Alone,
    striped: Alone,
}

impl Stages {
    fn measure(rig: &Rig, board: &mut StackBoard) -> Result<Stages> {
        let [bot, uas, nvme] = [
            ("bot", Target::read("disk instant-bot")),
            ("uas", Target::read("disk instant-uas")),
            ("nvme", Target::read("disk instant-nvme")),
        ]
        .map(|(kind, target)| Controller::measure(rig, board, kind, target));
        Ok(Stages {
            bot: bot?,
            uas: uas?,
            nvme: nvme?,
            slow_nvme: board.alone(rig, Target::read("disk slow-nvme"))?,
            instant: board.alone(rig, Target::read("stacked=/dev/instant0"))?,
            encrypted: board.alone(rig, Target::read("encrypt /dev/instant0"))?,
            striped: board.alone(rig, Target::read("raid 0 /dev/instant0 /dev/instant1"))?,
        })
    }

    fn bot(&self) -> Vec<Step> {
        self.slow("usb-storage", &self.bot)
    }

    fn uas(&self) -> Vec<Step> {
        self.slow("UAS", &self.uas)
    }

    fn nvme(&self) -> Vec<Step> {
        self.slow("NVMe", &self.nvme)
    }

    /// The slow disk behind a controller: each of its commands is held until the disk has answered.
    fn slow(&self, name: &str, controller: &Controller) -> Vec<Step> {
        let held = |cost: Cost| {
            Step::Stage(Stage {
                kind: Pipe::Bus,
                resource: Some(Resource::many(name, controller.commands)),
                cost,
            })
        };
        let own = Step::Stage(Stage {
            kind: Pipe::Processor,
            resource: Some(Resource::one(PROCESSOR)),
            cost: Cost::measured(&by_size(&controller.alone.many)),
        });
        vec![
            held(Cost::measured(&by_size(&controller.alone.lone))),
            held(longer(&self.slow_nvme.lone, &self.nvme.alone.lone)),
            beside(own),
        ]
    }

    fn encrypting(&self) -> Vec<Step> {
        self.encrypted.beyond(&self.instant, Pipe::Cipher)
    }

    fn striping(&self) -> Vec<Step> {
        self.striped.beyond(&self.instant, Pipe::Processor)
    }
}

impl Controller {
    fn measure(
        rig: &Rig,
        board: &mut StackBoard,
        kind: &str,
        target: Target,
    ) -> Result<Controller> {
        let queue = script(&format!("set -e\n{}\ncommands_of $stacked", target.make));
        let commands = board.session.must(&queue, "root", LONG)?;
        let commands = commands.trim();
        Ok(Controller {
            alone: board.alone(rig, target)?,
            commands: commands
                .parse()
                .with_context(|| format!("{kind} takes {commands:?} commands"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::operation;
    use super::super::stacked::{SIZES, of_rates};
    use super::*;
    use rubus_advise::predict;

    #[test]
    fn a_bridge_holds_its_commands_until_the_disk_has_answered() {
        let controller = |commands: u32| Controller { alone: of_rates(2000.0, 4000.0), commands };
        let stages = Stages {
            bot: controller(1),
            uas: controller(4),
            nvme: controller(1023),
            // 2 ms longer.
            slow_nvme: of_rates(400.0, 4000.0),
            instant: of_rates(50_000.0, 100_000.0),
            encrypted: of_rates(10_000.0, 10_000.0),
            striped: of_rates(50_000.0, 100_000.0),
        };
        let iops = |path: &[Step], depth| predict(path, &operation(SIZES[0], depth)).iops.value;
        let paths = [(stages.bot(), 400.0), (stages.uas(), 1600.0), (stages.nvme(), 4000.0)];
        for (path, most) in paths {
            let (lone, deep) = (iops(&path, 1), iops(&path, 4096));
            assert!((lone / 400.0 - 1.0).abs() < 0.01, "{lone}");
            assert!((deep / most - 1.0).abs() < 0.01, "{deep}, {most}");
        }
    }

    #[test]
    fn each_disk_has_a_plug_of_its_own() {
        let all = devices();
        let plugs: std::collections::BTreeSet<&str> = all
            .iter()
            .filter_map(|argument| argument.split_once("port="))
            .map(|(_, rest)| &rest[..1])
            .collect();
        assert_eq!(plugs.len(), 4, "{all:?}");
    }
}
