//! The proof that the board will start, made from the machine: the boot partition with the texts that the plan
//! will still write, the new root, and what every disk says of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::volume::{DiskIdentity, Volume};
use rubus_boot::config_txt::{BootPath, ConfigTxt, Reader};
use rubus_boot::fstab::Fstab;
use rubus_boot::model::Model;
use rubus_boot::modules::Modules;
use rubus_boot::proof::{BootPartition, Facts, Images, Kernel, prove, prove_images, way_to};
use rubus_boot::volume::{Name, NamedVolume};
use rubus_boot::{cmdline_txt::CmdlineTxt, initramfs, kernel_file, revision, tryboot};
use rubus_host::{Files, Hands};
use rubus_vocabulary::check::Check;

use super::commands::{Command, Names};
use super::{
    Action, Behaviour, BuildInitramfs, Detail, InstallInitramfs, LiveStepRunner, MachineStep,
    Progress, Receipt, Site, Step, StepError, Touches, Trace, TraceSite, WriteFile, failed, left,
    locate, mounts, receipt,
};

/// More than any kernel or initial RAM filesystem takes.
const MAX_BYTES: usize = 512 << 20;
const MAX_TEXT_BYTES: usize = 16 << 20;

/// It is proven that the board will start with another root once the last texts of this plan are in the boot
/// partition: what the firmware may load, the command line, the volumes and the table of mounts are looked at together
/// (see [`rubus_boot::proof`]). Nothing is changed; what is not proven stops the plan. Undoing does nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct ProveBoot {
    /// The root that will be started.
    pub root: Volume,
    /// Where the boot partition is mounted.
    pub boot: PathBuf,
}

impl Behaviour for ProveBoot {
    fn title(&self) -> String {
        format!("prove that the board will start {}", self.root.title)
    }

    fn proof_title(&self) -> String {
        "kernels, initial RAM filesystems, command line, volumes and fstab are read and must agree"
            .into()
    }

    fn undo_title(&self) -> String {
        "not needed: it only looks".into()
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        Vec::new()
    }

    fn touches(&self) -> Touches<'_> {
        Touches::default()
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, _: &dyn Files) -> Option<String> {
        None
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, _: &dyn Files) -> Option<String> {
        None
    }

    fn trace(&self, _: &TraceSite<'_>, _: &dyn Files) -> Trace {
        Trace::Unseen
    }
}

impl MachineStep for ProveBoot {
    fn apply(
        &self,
        runner: &mut LiveStepRunner,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        let ProveBoot { root, boot } = self;
        let tried = format!("prove that the board will start {}", root.title);
        let top = runner.mount_volume(root, site.change)?;
        (site.tell)(Progress {
            words: "reading kernels and initial RAM filesystems".into(),
            share: None,
            left_s: None,
        });
        let files = hands.files();
        let mut volumes = locate::volumes(files).map_err(|why| failed(&tried, why))?;
        let firmware_volume = match &runner.image {
            None => mounts::node_at(boot, files),
            Some(image) => {
                // The disks of this machine are not the board's.
                let node = image.node.display().to_string();
                volumes.retain(|volume| volume.path.starts_with(&format!("{node}p")));
                let is_boot = |volume: &&NamedVolume| volume.filesystem.as_deref() == Some("vfat");
                volumes.iter().find(is_boot).map(|boot| boot.path.clone())
            }
        };
        let scene = Scene {
            files,
            boot: runner.image.as_ref().map_or(boot, |image| &image.boot),
            top: &top,
            steps: site.steps,
            before_trial: site.before_trial,
            step: site.step,
            volumes,
            firmware_volume,
            filesystem: root.kind.name(),
            is_image: runner.image.is_some(),
        };
        let checks = match runner.image {
            None => scene.all_checks(&model(files)),
            Some(_) => scene.checks_on_every_board(),
        };
        if checks.is_empty() {
            return Err(failed(tried, "no board is known that starts with these files"));
        }
        let unmet: Vec<String> =
            checks.iter().filter(|check| !check.is_met).map(in_words).collect();
        if unmet.is_empty() {
            Ok(receipt(
                "everything that the firmware may load agrees",
                format!("all {} checks hold", checks.len()),
            ))
        } else {
            Err(failed(tried, unmet.join("; ")))
        }
    }

    fn undo(
        &self,
        _: &mut LiveStepRunner,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        Ok(left())
    }
}

fn in_words(check: &Check) -> String {
    let remedy = check.remedy.as_deref().unwrap_or_default();
    format!("not so: {} ({}; {remedy})", check.what, check.found)
}

/// What the proof is made from.
struct Scene<'a> {
    files: &'a dyn Files,
    /// Where the boot partition is mounted.
    boot: &'a Path,
    /// Where the new root is mounted.
    top: &'a Path,
    steps: &'a [Step],
    /// Number of the first step that waits for the trial, where the plan has one.
    before_trial: Option<usize>,
    /// Number of the step that proves, from 0.
    step: usize,
    volumes: Vec<NamedVolume>,
    firmware_volume: Option<String>,
    filesystem: &'a str,
    /// Whether the boot partition is one of an image, which has no old root.
    is_image: bool,
}

/// Which start is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// The one of the end.
    New,
    /// The one on trial.
    Trial,
    /// The one with the command line that is in the boot partition now.
    Old,
}

impl Scene<'_> {
    /// The start as it will be in the end, the trial before that where the plan has one, and the old command line with
    /// what it will start with: that is what the board does when the power goes just before the last step.
    fn all_checks(&self, model: &Model) -> Vec<Check> {
        let mut checks = self.checks(model, Start::New);
        let mut add = |when: &str, mut more: Vec<Check>| {
            for check in &mut more {
                check.what = format!("{when}, {}", check.what);
            }
            checks.extend(more);
        };
        // What only the trial reads is gone once it has come up.
        if self.before_trial.is_some_and(|first| self.step < first) {
            add("on trial", self.checks(model, Start::Trial));
        }
        if !self.is_image {
            add("with the current command line", self.checks(model, Start::Old));
        }
        checks
    }

    /// The checks for each board that is started in another way; where none is, those that say so.
    fn checks_on_every_board(&self) -> Vec<Check> {
        let coming = self.coming();
        let config_txt = self.boot_text("config.txt", &coming).unwrap_or_default();
        let includes = self.includes(&config_txt, &coming);
        let exists = |name: &str| self.files.exists(&self.boot.join(name));
        let models = ConfigTxt::parse(config_txt.as_str()).models_started(&includes, &exists);
        if models.is_empty() {
            return self.all_checks(&Model::other());
        }
        let each = models.iter().flat_map(|model| self.all_checks(model));
        each.collect()
    }

    fn checks(&self, model: &Model, start: Start) -> Vec<Check> {
        let coming = self.coming();
        let is_trial = start == Start::Trial;
        let settings = if is_trial { tryboot::FILE } else { "config.txt" };
        let config_txt = self.boot_text(settings, &coming).unwrap_or_default();
        let includes = self.includes(&config_txt, &coming);
        let reader = Reader { tryboot: is_trial, ..Reader::usual(model, &includes) };
        let exists =
            |name: &str| coming.contains_key(name) || self.files.exists(&self.image_of(name));
        let paths = ConfigTxt::parse(config_txt.as_str()).boot_paths(&reader, &exists);
        let mut partition = BootPartition::default();
        for (name, text) in &includes {
            partition.put(name, text);
        }
        for path in &paths {
            let text = match start {
                Start::Old => self.text(&self.boot.join(&path.cmdline)),
                _ => self.boot_text(&path.cmdline, &coming),
            };
            if let Some(text) = text {
                partition.put(&path.cmdline, &text);
            }
        }
        let images = self.images(&paths, &mut partition);
        let fstab = self.text(&self.top.join("etc/fstab")).unwrap_or_default();
        let crypttab = self.text(&self.top.join("etc/crypttab")).unwrap_or_default();
        let old = (start == Start::Old).then(|| self.old_filesystem(&paths, &partition));
        let filesystem = match &old {
            Some(old) => old.as_deref(),
            None => Some(self.filesystem),
        };
        let modules = filesystem.map_or(Vec::new(), |kind| way_to(kind, "", &[]));
        let facts = Facts {
            model,
            serial: None,
            tryboot: is_trial,
            config_txt: &config_txt,
            partition: &partition,
            images: &images,
            volumes: &self.linked(&paths, &partition, &fstab),
            are_all_volumes: !self.is_image,
            firmware_volume: self.firmware_volume.as_deref(),
            fstab: &fstab,
            crypttab: &crypttab,
            root_modules: &modules,
            drivers: &self.drivers(),
        };
        match start {
            // Of the old root nothing but what it starts with is changed.
            Start::Old => prove_images(&facts),
            _ => prove(&facts),
        }
    }

    /// The filesystem of the root that the current command line names; nothing where no volume is found.
    fn old_filesystem(&self, paths: &[BootPath], partition: &BootPartition) -> Option<String> {
        let volumes = self.linked(paths, partition, "");
        let mut names = paths.iter().filter_map(|path| {
            let line = CmdlineTxt::parse(partition.text(&path.cmdline)?);
            line.get("root").map(Name::parse)
        });
        let name = names.next()?;
        let found = name.resolve(&volumes).into_iter().next()?;
        found.filesystem.clone()
    }

    /// Where a file of the boot partition is now that is read by this name in the end: an initial RAM filesystem may wait
    /// under another one.
    fn image_of(&self, name: &str) -> PathBuf {
        let path = self.boot.join(name);
        let mut actions = self.steps.iter().map(|step| &step.action);
        let from = actions.find_map(|action| match action {
            Action::InstallInitramfs(InstallInitramfs { from, path: to, .. }) if *to == path => {
                Some(from.clone())
            }
            _ => None,
        });
        from.filter(|from| self.files.exists(from)).unwrap_or(path)
    }

    /// The texts that the plan puts into the boot partition, as they will be.
    fn coming(&self) -> BTreeMap<String, String> {
        let steps = self.steps.iter();
        let texts = steps.filter_map(|step| match &step.action {
            Action::WriteFile(WriteFile { path, becomes, .. }) => {
                let name = path.strip_prefix(self.boot).ok()?.to_str()?;
                Some((name.to_string(), becomes.text.clone()))
            }
            _ => None,
        });
        texts.collect()
    }

    /// The modules that the plan wants in any initial RAM filesystem.
    fn drivers(&self) -> Vec<String> {
        let steps = self.steps.iter();
        let modules = steps.filter_map(|step| match &step.action {
            Action::BuildInitramfs(BuildInitramfs { modules, .. }) => Some(modules),
            Action::On(on) => match &*on.action {
                Action::BuildInitramfs(BuildInitramfs { modules, .. }) => Some(modules),
                _ => None,
            },
            _ => None,
        });
        let all: BTreeSet<String> = modules.flatten().cloned().collect();
        all.into_iter().collect()
    }

    fn boot_text(&self, name: &str, coming: &BTreeMap<String, String>) -> Option<String> {
        let is_it = |known: &&String| known.eq_ignore_ascii_case(name);
        match coming.keys().find(is_it) {
            Some(known) => coming.get(known).cloned(),
            None => self.text(&self.boot.join(name)),
        }
    }

    fn text(&self, path: &Path) -> Option<String> {
        let bytes = self.files.read_prefix(path, MAX_TEXT_BYTES).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The files that the settings include.
    fn includes(
        &self,
        config_txt: &str,
        coming: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        ConfigTxt::parse(config_txt).included(&|name| self.boot_text(name, coming))
    }

    /// Reads every kernel, device tree and initial RAM filesystem that may be loaded.
    fn images(&self, paths: &[BootPath], partition: &mut BootPartition) -> Images {
        let mut images = Images::default();
        for path in paths {
            if !images.kernels.contains_key(&path.kernel) {
                if let Some(kernel) = self.kernel(&path.kernel, partition) {
                    images.kernels.insert(path.kernel.clone(), kernel);
                }
            }
            for name in &path.initramfs {
                if images.initramfs.contains_key(name) {
                    continue;
                }
                if let Some(bytes) = self.boot_bytes(name, partition) {
                    let listed = initramfs::list(bytes.as_slice());
                    let listed = listed.map_err(|error| error.to_string());
                    images.initramfs.insert(name.clone(), listed);
                }
            }
            if let Some(tree) = &path.device_tree {
                let _ = self.boot_bytes(tree, partition);
            }
        }
        images
    }

    fn boot_bytes(&self, name: &str, partition: &mut BootPartition) -> Option<Vec<u8>> {
        let bytes = self.files.read_prefix(&self.image_of(name), MAX_BYTES);
        let bytes = bytes.ok()?;
        partition.add(name, bytes.len() as u64);
        Some(bytes)
    }

    fn kernel(&self, name: &str, partition: &mut BootPartition) -> Option<Kernel> {
        let bytes = self.boot_bytes(name, partition)?;
        let release = kernel_file::release(&bytes);
        let modules = release.as_deref().map_or(Modules::default(), |release| {
            let home = self.top.join("lib/modules").join(release);
            let list = |name: &str| self.text(&home.join(name)).unwrap_or_default();
            Modules::parse(&list("modules.dep"), &list("modules.builtin"))
        });
        Some(Kernel { release, is_64_bit: kernel_file::is_64_bit(&bytes), modules })
    }

    /// The volumes, with the paths by which boot files may call them.
    fn linked(
        &self,
        paths: &[BootPath],
        partition: &BootPartition,
        fstab: &str,
    ) -> Vec<NamedVolume> {
        let mut names: Vec<Name> = Fstab::parse(fstab).entries().iter().map(Name::of).collect();
        for path in paths {
            let cmdline = CmdlineTxt::parse(partition.text(&path.cmdline).unwrap_or_default());
            names.extend(cmdline.get("root").map(Name::parse));
        }
        let mut volumes = self.volumes.clone();
        for name in names {
            let Name::Path(path) = name else { continue };
            let Ok(real) = self.files.real_path(Path::new(&path)) else {
                continue;
            };
            let is_it = |volume: &&mut NamedVolume| Path::new(&volume.path) == real;
            if let Some(volume) = volumes.iter_mut().find(is_it) {
                if volume.path != path && !volume.links.contains(&path) {
                    volume.links.push(path);
                }
            }
        }
        volumes
    }
}

/// The model of this board, as its device tree says.
fn model(files: &dyn Files) -> Model {
    let revision = files.read_prefix(Path::new("/proc/device-tree/system/linux,revision"), 4);
    let revision = revision.ok().and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    if let Some(bytes) = revision {
        return Model::of_revision(&revision::decode(u32::from_be_bytes(bytes)));
    }
    let names = files.text(Path::new("/proc/device-tree/compatible"));
    let names = names.unwrap_or_default();
    let names: Vec<String> = names.split('\0').map(str::to_string).collect();
    Model::of_names(&names)
}

#[cfg(test)]
mod tests;
