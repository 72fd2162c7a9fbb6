//! pcie-gen: the one lane of a Raspberry Pi 5's connector runs at another generation of PCI Express.
//!
//! Source: Raspberry Pi documentation, "Raspberry Pi connector for PCIe": `dtparam=pciex1_gen=3` in config.txt. The board is
//! certified for generation 2. With 3 some disks are not found at the start, so that it is first started on trial.

use super::moving;
use super::moving::current::{self, Start};
use super::moving::steps::{kept, push, write};
use super::moving::trial::{TWO_SYSTEMS, ability, file_in_the_way, start_once, starts_elsewhere};
use super::{OptionSpec, PlanBuilder, PlanInput, Queries, Recipe, Wishes};
use rubus_boot::config_txt::{ConfigTxt, Reader};
use rubus_boot::model::{Kernels, Model};
use rubus_boot::tryboot::{self, Ability};
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::plan::{Action, Gain, RESCUE, TextFile};
use rubus_change::steps::RemoveFile;
use rubus_machine::ceiling::PcieLink;
use rubus_machine::kernel_log;
use rubus_vocabulary::machine::{BlockDevice, Hop, HopKind, Machine};
use rubus_vocabulary::units::rate_si;

pub(super) static RECIPE: Recipe = Recipe {
    name: "pcie-gen",
    title: "Run the PCI Express connector of a Raspberry Pi 5 at generation 3, twice as fast as it is set.",
    guide: super::Guide {
        changes: "Sets dtparam=pciex1_gen= in config.txt, after a start on trial with tryboot.txt.",
        needs: "A Raspberry Pi 5, 500 or CM5 with a disk on its connector. Takes effect at the next start.",
        example: "sudo rubus plan pcie-gen generation=3",
    },
    options: &[
        OptionSpec {
            name: "generation",
            what: "1, 2 or 3; the board is certified for 2",
            default: Some("3"),
            check: |value| generation(value).map(drop),
        },
        OptionSpec {
            name: "trial",
            what: "yes or no: the setting is first tried in one start, and `rubus verify` then keeps it",
            default: Some("yes"),
            check: super::yes_or_no,
        },
    ],
    look_at,
    draw_up,
};

const PARAMETER: &str = "pciex1_gen";
/// The board's own bridge to its ports, which is not on the connector.
const RP1: &str = "1de4:0001";
const ELSEWHERE: &str = "mount the boot partition that the firmware reads (`rubus boot` says which): the recipe changes its config.txt";
/// A link that does less than this share of what it carries is not what holds its disk back.
const BUSY_SHARE: f64 = 0.8;

/// The link of one lane at a generation.
///
/// # Errors
/// What may be written.
fn generation(value: &str) -> Result<PcieLink, String> {
    let megatransfers = match value {
        "1" => 2_500,
        "2" => 5_000,
        "3" => 8_000,
        _ => return Err("write 1, 2 or 3".into()),
    };
    Ok(PcieLink { megatransfers, lanes: 1 })
}

fn look_at(machine: &Machine, _: &Wishes) -> Queries {
    let point = current::boot_point(machine);
    let mut paths = current::boot_paths(&point);
    paths.extend([tryboot::FILE, TWO_SYSTEMS].map(|name| point.join(name)));
    paths.push(tryboot::BOOTLOADER_NODE.into());
    Queries::paths(paths)
}

/// The disk on the connector, and the link that leads to it.
#[derive(Clone, Copy)]
struct OnConnector<'a> {
    disk: &'a BlockDevice,
    link: &'a Hop,
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let wanted = generation(situation.option("generation").unwrap_or("3"));
    let (Ok(wanted), Some(found)) = (wanted, on_connector(situation.machine, draft)) else {
        return;
    };
    if !can_run(found, wanted, draft) || !has_no_errors(situation.machine, found, wanted, draft) {
        return;
    }
    let Some(start) = moving::checks::start_is_known(
        situation,
        moving::checks::Edited::Settings,
        ELSEWHERE,
        draft,
    ) else {
        return;
    };
    promise(found, wanted, draft);
    let Some(config) = config_with(situation, &start, wanted, draft) else {
        return;
    };
    if config == start.config.text {
        return draft.notes.push(already(found, wanted));
    }
    if situation.option("trial") == Some("yes") && !begin_trial(situation, &start, &config, draft) {
        return;
    }
    set(situation, &start, &config, draft);
    draft.needs_boot = true;
    told(situation, found, wanted, &start, draft);
}

fn on_connector<'a>(machine: &'a Machine, draft: &mut PlanBuilder) -> Option<OnConnector<'a>> {
    let is_pi5 = Model::of(&machine.board).kernels == Kernels::Bcm2712;
    draft.check(
        "the board has a PCI Express connector that config.txt sets",
        is_pi5,
        machine.board.model.text().unwrap_or("the board is not known").to_string(),
        "nothing: boards other than a Raspberry Pi 5, 500 and CM5 set the link by themselves",
    );
    if !is_pi5 {
        return None;
    }
    let disks = machine.block_devices.iter().filter(|disk| disk.parent.is_none());
    let mut found = disks.filter_map(|disk| {
        let link = disk.path.iter().find(|hop| hop.kind == HopKind::Pcie)?;
        (link.chip.as_deref() != Some(RP1)).then_some(OnConnector { disk, link })
    });
    let found = found.next();
    draft.check(
        "a disk is on the connector",
        found.is_some(),
        match found {
            Some(OnConnector { disk, link }) => format!("{}, at {}", disk.name, link.link),
            None => "none is seen".into(),
        },
        "seat the flat cable at both ends, and see `dmesg | grep -i pcie`; an adapter that does not announce itself needs \
         dtparam=pciex1 in config.txt",
    );
    found
}

fn can_run(found: OnConnector<'_>, wanted: PcieLink, draft: &mut PlanBuilder) -> bool {
    let most = found.link.max_line_bits_per_second.get();
    let can = most.map(|most| most >= wanted.line_bits_per_second());
    draft.check(
        "disk and board can both run at it",
        can,
        match most {
            Some(_) => found.link.link.clone(),
            None => "what the disk can is not known".into(),
        },
        "choose a lower generation",
    );
    can != Some(false)
}

/// A link that has errors now has more of them when it runs faster.
fn has_no_errors(
    machine: &Machine,
    found: OnConnector<'_>,
    wanted: PcieLink,
    draft: &mut PlanBuilder,
) -> bool {
    let now = found.link.line_bits_per_second.get();
    let is_faster = now.is_none_or(|now| wanted.line_bits_per_second() > now);
    let errors = kernel_log::link_errors(machine, found.disk, &found.link.id);
    if !is_faster {
        return true;
    }
    let is_clean = errors.as_ref().map(|errors| *errors == 0).ok();
    draft.check(
        "the link has no errors as it is",
        is_clean,
        match errors {
            Ok(0) => "the kernel's log has none".to_string(),
            Ok(count) => format!("the kernel's log has {count} since the start"),
            Err(why) => format!("the kernel's log cannot be read: {why}"),
        },
        "seat the flat cable again or use a shorter one; faster, it would have more errors",
    );
    is_clean != Some(false)
}

fn promise(found: OnConnector<'_>, wanted: PcieLink, draft: &mut PlanBuilder) {
    draft.promises.push(Promise {
        what: format!("{} is connected with {}, without errors", found.disk.name, wanted.name()),
        look: Look::PcieLink {
            disk: found.disk.name.clone(),
            line_bits_per_second: wanted.line_bits_per_second(),
        },
        needs_boot: true,
    });
}

fn config_with(
    situation: &PlanInput<'_>,
    start: &Start<'_>,
    wanted: PcieLink,
    draft: &mut PlanBuilder,
) -> Option<String> {
    let mut config = ConfigTxt::parse(start.config.text.as_str());
    let includes = current::included(situation, &start.point, &config);
    let model = Model::of(&situation.machine.board);
    let reader = Reader::usual(&model, &includes);
    let done = config.set_parameter(PARAMETER, &wanted.generation().to_string(), &reader);
    if let Err(why) = done {
        draft.check(
            "the setting has one place in config.txt",
            false,
            why.to_string(),
            "take it out there, and plan again",
        );
        return None;
    }
    Some(config.text().to_string())
}

fn already(found: OnConnector<'_>, wanted: PcieLink) -> String {
    let says = format!("config.txt says {PARAMETER}={} already", wanted.generation());
    let link = &found.link.link;
    if found.link.line_bits_per_second.get() == Some(wanted.line_bits_per_second()) {
        format!("{says}, and the link runs so ({link}).")
    } else {
        format!(
            "{says}, and the link runs at {link}. If the board was started since, disk, adapter and cable cannot do it together."
        )
    }
}

/// The file that only a trial reads. Whether the trial can be made.
fn begin_trial(
    situation: &PlanInput<'_>,
    start: &Start<'_>,
    config: &str,
    draft: &mut PlanBuilder,
) -> bool {
    let obstacle = file_in_the_way(start, &[tryboot::FILE, TWO_SYSTEMS])
        .or_else(|| starts_elsewhere(situation, start))
        .or_else(|| match ability(situation, start) {
            Ability::Yes => None,
            Ability::No(why) | Ability::Unsure(why) => Some(why),
        });
    draft.check(
        "it can first be started on trial",
        obstacle.is_none(),
        obstacle.clone().unwrap_or_else(|| "the firmware says so".into()),
        "put that right. With trial=no it is set for every start, and a disk that is not found then is read by another machine \
         alone",
    );
    if obstacle.is_some() {
        return false;
    }
    start_once(situation, start, text_of(start, config), draft);
    true
}

fn set(situation: &PlanInput<'_>, start: &Start<'_>, config: &str, draft: &mut PlanBuilder) {
    let path = start.point.join("config.txt");
    let why = "The current file, to be renamed back on any PC.";
    write(situation, draft, "keep-config-txt", why, &kept(start, &path), start.config.clone());
    let why = "The connector runs at this generation from the next start on.";
    write(situation, draft, "config-txt", why, &path, text_of(start, config));
    if draft.trial.is_some() {
        let action = Action::RemoveFile(RemoveFile {
            path: start.point.join(tryboot::FILE),
            was: text_of(start, config),
        });
        push(draft, "trial-config-goes", "It was for the trial only.", action);
    }
}

fn text_of(start: &Start<'_>, config: &str) -> TextFile {
    TextFile { text: config.into(), mode: start.config.mode }
}

fn told(
    situation: &PlanInput<'_>,
    found: OnConnector<'_>,
    wanted: PcieLink,
    start: &Start<'_>,
    draft: &mut PlanBuilder,
) {
    gain(situation, found, wanted, draft);
    if wanted.generation() > 2 {
        draft.risks.push(
            "The board is certified for generation 2. Faster, some disks, adapters and cables have errors, or the disk is not \
             found at the start."
                .into(),
        );
    }
    draft.notes.push(
        "Measure before and after: `--measure=DIR` with a directory on that disk, then `rubus verify --measure`. Later, `rubus \
         survey` tells of errors of the link."
            .into(),
    );
    if draft.trial.is_none() {
        let kept = kept(start, &start.point.join("config.txt"));
        let kept = kept.file_name().unwrap_or_default().to_string_lossy();
        draft.notes.push(format!(
            "{RESCUE} {} and, on its FAT partition ({} here), delete config.txt and rename {kept} to config.txt.",
            current::way_to_boot_files(situation.machine),
            start.point.display(),
        ));
    }
}

/// What long transfers gain; nothing is told of small reads, which gain next to nothing.
fn gain(
    situation: &PlanInput<'_>,
    found: OnConnector<'_>,
    wanted: PcieLink,
    draft: &mut PlanBuilder,
) {
    let carries = |bits: u64| bits as f64 / wanted.line_bits_per_second() as f64;
    let then = wanted.ceiling().bytes_per_second;
    let now = found.link.line_bits_per_second.get().map(|bits| then * carries(bits));
    let measured = situation.facts.speeds.get(&found.disk.name);
    let read = measured.and_then(|speed| Some((speed.read_bytes_per_second?, &speed.source)));
    match (now, read) {
        (Some(now), Some((read, source))) if read < BUSY_SHARE * now => {
            draft.gains_unknown = Some(format!(
                "Probably nothing: the disk reads {} ({source}), and the link carries {} as it is.",
                rate_si(read),
                rate_si(now)
            ));
        }
        (Some(now), _) if then > now => draft.gains.push(Gain {
            what: "reading and writing in long transfers, at most".into(),
            now: rate_si(now),
            then: rate_si(then),
            ratio: then / now,
            source:
                "what the link carries; the disk may do less, and small reads gain next to nothing"
                    .into(),
        }),
        _ => {
            draft.gains_unknown =
                Some("None: the link becomes slower, and steadier if it had errors.".into());
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
