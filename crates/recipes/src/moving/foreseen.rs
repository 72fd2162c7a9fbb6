//! The questions of the final proof that can be answered before anything is written: what command lines, volumes and the
//! table of mounts will say at the next start. The proof's own code answers them, so that a plan that must fail is none.

use std::path::Path;

use super::super::tables::CRYPTTAB;
use super::super::{PlanBuilder, PlanInput};
use super::current::{self, Start};
use rubus_boot::config_txt::ConfigTxt;
use rubus_boot::fstab::Fstab;
use rubus_boot::model::Model;
use rubus_boot::proof::{BootPartition, Facts, Images, WAITED_FOR, WAITS_FOR_LITTLE, prove_texts};
use rubus_boot::volume::{Name, NamedVolume};
use rubus_change::plan::TextFile;
use rubus_vocabulary::check::Check;
use rubus_vocabulary::machine::Machine;

/// What the next start finds.
pub(crate) struct NextStart<'a> {
    pub(crate) start: &'a Start<'a>,
    /// `config.txt` as it will be.
    pub(crate) config_txt: &'a str,
    /// Name in the boot partition, the current text, the new one.
    pub(crate) cmdlines: &'a [(String, &'a TextFile, String)],
    /// The table of mounts of the root that is started.
    pub(crate) fstab: &'a str,
    /// All volumes; of an image only its own.
    pub(crate) volumes: &'a [NamedVolume],
    /// The path of the volume that the firmware reads.
    pub(crate) firmware_volume: Option<&'a str>,
}

/// One check for each question whose answer is no; one for all where there is none.
pub(crate) fn check(next: &NextStart<'_>, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let checks = questions(next, situation);
    let count = checks.len();
    if checks.is_empty() {
        draft.check(
            "the final proof has something to ask",
            false,
            "no board is known that starts with these files",
            "put the kernel that config.txt names into the boot partition, or correct config.txt",
        );
        return;
    }
    let waits = checks
        .iter()
        .find(|check| check.what == WAITED_FOR && check.is_met && check.found != WAITS_FOR_LITTLE);
    if let Some(waits) = waits {
        draft.check("what each start waits for is known", true, waits.found.as_str(), "");
    }
    let mut unmet: Vec<Check> = Vec::new();
    for check in checks.into_iter().filter(|check| !check.is_met) {
        if !unmet.contains(&check) {
            unmet.push(check);
        }
    }
    for check in &unmet {
        let what = format!("at the next start, {}", check.what);
        draft.check(
            &what,
            false,
            check.found.as_str(),
            check.remedy.as_deref().unwrap_or_default(),
        );
    }
    if unmet.is_empty() {
        let found = match count {
            1 => "one question of the final proof is answered already".to_string(),
            count => format!("{count} questions of the final proof are answered already"),
        };
        let what = "command line, volumes and /etc/fstab will agree at the next start";
        draft.check(what, true, found, "");
    }
}

fn questions(next: &NextStart<'_>, situation: &PlanInput<'_>) -> Vec<Check> {
    let config = ConfigTxt::parse(next.config_txt);
    let includes = current::included(situation, &next.start.point, &config);
    let is_image = situation.facts.image.is_some();
    let mut partition = BootPartition::default();
    for name in &next.start.names {
        partition.add(name, 1);
    }
    // Those names are of the top directory. What a prefix leads to below it was looked at when the kernels were.
    for path in &next.start.paths {
        let names = std::iter::once(&path.kernel).chain(&path.initramfs);
        names.filter(|name| name.contains('/')).for_each(|name| partition.add(name, 1));
    }
    let models = if is_image {
        let exists = |name: &str| partition.size_bytes(name).is_some();
        config.models_started(&includes, &exists)
    } else {
        vec![Model::of(&situation.machine.board)]
    };
    for (name, text) in &includes {
        partition.put(name, text);
    }
    for (name, _, text) in next.cmdlines {
        partition.put(name, text);
    }
    let prove = |model: &Model| {
        prove_texts(&Facts {
            model,
            serial: None,
            tryboot: false,
            config_txt: next.config_txt,
            partition: &partition,
            // What kernels and initial RAM filesystems hold is looked at when they are made.
            images: &Images::default(),
            volumes: next.volumes,
            are_all_volumes: !is_image,
            firmware_volume: next.firmware_volume,
            fstab: next.fstab,
            crypttab: situation.text(Path::new(CRYPTTAB)),
            root_modules: &[],
            drivers: &[],
        })
    };
    models.iter().flat_map(prove).collect()
}

/// The volumes of a machine that stay when a disk gets a new content. Where one does not say its own name, as to a user who
/// may not look at it, the table that it is mounted by says it.
pub(crate) fn staying(situation: &PlanInput<'_>, overwritten: Option<&str>) -> Vec<NamedVolume> {
    let machine = situation.machine;
    let mut volumes = NamedVolume::all_of(machine);
    volumes.retain(|volume| {
        let device = volume.path.strip_prefix("/dev/").unwrap_or_default();
        !overwritten.is_some_and(|disk| rubus_machine::in_use::is_on(machine, device, disk))
    });
    for entry in Fstab::parse(situation.text(Path::new(current::FSTAB))).entries() {
        let name = Name::of(&entry);
        if !name.resolve(&volumes).is_empty() {
            continue;
        }
        let device = if entry.is_swap() { None } else { mounted_at(machine, &entry.target) };
        let own = device.map(|device| format!("/dev/{device}"));
        if let Some(volume) = volumes.iter_mut().find(|volume| Some(&volume.path) == own.as_ref()) {
            name_by(volume, name);
        }
    }
    volumes
}

fn mounted_at<'a>(machine: &'a Machine, place: &str) -> Option<&'a str> {
    let place = match place.trim_end_matches('/') {
        "" => "/",
        place => place,
    };
    let mount = machine.mounts.iter().rfind(|mount| mount.point == place)?;
    mount.device.as_deref()
}

/// Gives a volume a name of a kind that it has none of.
fn name_by(volume: &mut NamedVolume, name: Name) {
    let (own, value) = match name {
        Name::PartUuid(value) => (&mut volume.partuuid, value),
        Name::PartLabel(value) => (&mut volume.partlabel, value),
        Name::Uuid(value) => (&mut volume.uuid, value),
        Name::Label(value) => (&mut volume.label, value),
        // Links of the device mapper and of udev, which not every capture lists.
        Name::Path(path) => {
            if path.starts_with("/dev/mapper/") || path.starts_with("/dev/disk/") {
                volume.links.push(path);
            }
            return;
        }
        Name::Other(_) => return,
    };
    own.get_or_insert(value);
}
