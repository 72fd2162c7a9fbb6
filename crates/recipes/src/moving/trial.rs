//! Whether a board can start on trial, and from where such a start reads.

use std::path::Path;

use super::super::{PathState, PlanBuilder, PlanInput};
use super::current::Start;
use super::steps::write;
use rubus_boot::medium::not_the_first_partition;
use rubus_boot::model::Model;
use rubus_boot::tryboot::{self, Ability};
use rubus_change::plan::{TextFile, Trial};

/// What the firmware of a board with two systems reads first; a trial is another thing there.
pub(crate) const TWO_SYSTEMS: &str = "autoboot.txt";

/// Whether the firmware can start on trial.
pub(crate) fn ability(situation: &PlanInput<'_>, start: &Start<'_>) -> Ability {
    let told = match situation.facts.seen.get(Path::new(tryboot::BOOTLOADER_NODE)) {
        Some(PathState::Directory(names)) => names.as_slice(),
        _ => &[],
    };
    let model = Model::of(&situation.machine.board);
    tryboot::ability(&model, told, &start.config.text)
}

/// A trial reads the partition that the firmware takes by itself, which need not be the one of this start.
pub(crate) fn starts_elsewhere(situation: &PlanInput<'_>, start: &Start<'_>) -> Option<String> {
    let (mounted, first) = not_the_first_partition(situation.machine)?;
    Some(format!(
        "{} is /dev/{mounted}, and `reboot '{}'` reads /dev/{first} or what autoboot.txt there names",
        start.point.display(),
        tryboot::REBOOT_ARGUMENT
    ))
}

/// A file in the boot partition with which a trial would be another thing, as a sentence without its full stop.
pub(crate) fn file_in_the_way(start: &Start<'_>, names: &[&str]) -> Option<String> {
    let name = names.iter().find(|name| start.has(name))?;
    let shown = start.point.join(name);
    Some(format!("there is a {} already, which is used for something else", shown.display()))
}

/// The settings of the one start on trial. What is planned behind it waits until that start is passed.
pub(crate) fn start_once(
    situation: &PlanInput<'_>,
    start: &Start<'_>,
    settings: TextFile,
    draft: &mut PlanBuilder,
) {
    write(
        situation,
        draft,
        "trial-config",
        "The firmware reads this in place of config.txt when it is told to, once. Whatever goes wrong then, the next start is \
         the old one.",
        &start.point.join(tryboot::FILE),
        settings,
    );
    draft.trial = Some(Trial {
        before_step: draft.steps.len(),
        start: format!("sudo reboot '{}'", tryboot::REBOOT_ARGUMENT),
    });
}
