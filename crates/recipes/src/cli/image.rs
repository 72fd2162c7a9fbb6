//! `rubus plan RECIPE --image FILE` and `rubus apply RECIPE --image FILE --to OUT`: a card's image is prepared on another
//! machine. FILE is only read; OUT has its name only when it is whole and proven.

use std::path::{Path, PathBuf};

use anyhow::Context;
use rubus_command::messages::agreed;
use rubus_command::places::say;
use rubus_command::{Exit, General, Terminal, message, signals};
use rubus_host::block::loop_device::{LoopDevice, Part};
use rubus_host::files::filling;
use rubus_host::files::new_file::{NewFile, directory_of};
use rubus_host::live::hands::LiveHands;
use rubus_host::process::programs;
use rubus_host::{Files, Live, clock};
use rubus_machine::probe::image::{ImageParts, survey_image};
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::refused::Refused;
use rubus_vocabulary::units::bytes_iec;

use super::facts::random;
use super::planning::find;
use super::teller::Teller;
use crate::sight;
use crate::{Facts, ImageFacts, Recipe, TreeSize, Wishes};
use rubus_change::apply::{
    ApplyContext, Change, ChangeError, ChangeStore, Ending, Event, StepRunner, go,
};
use rubus_change::plan::volume::DiskIdentity;
use rubus_change::plan::{Action, Plan, Step};
use rubus_change::steps::image::{ImageSite, OpenImage, Partition};
use rubus_change::steps::{LiveStepRunner, boot_id, identity};
use rubus_change::text::render;

/// What a recipe would make of an image.
pub(super) fn plan(
    general: &General,
    recipe: &str,
    wishes: &[(String, String)],
    file: &Path,
) -> anyhow::Result<Plan> {
    let recipe = recipe_for(general, recipe)?;
    recipe.check_wishes(&wishes.iter().cloned().collect())?;
    let out = file.with_extension("new.img");
    let image = open(file)?;
    let scene = Scene::of(&image, recipe, wishes, &out)?;
    scene.plan(recipe, None)
}

/// The image that is to be made.
pub(super) struct Wanted<'a> {
    /// The recipe's name.
    pub(super) recipe: &'a str,
    /// Its options.
    pub(super) wishes: &'a [(String, String)],
    /// The new image.
    pub(super) out: &'a Path,
    /// The user has agreed beforehand.
    pub(super) is_agreed: bool,
}

/// Makes a new image from one.
pub(super) fn apply(general: &General, wanted: &Wanted<'_>, file: &Path) -> anyhow::Result<Exit> {
    let recipe = recipe_for(general, wanted.recipe)?;
    recipe.check_wishes(&wanted.wishes.iter().cloned().collect())?;
    let out = absolute(wanted.out)?;
    if Live::new().mode(&out).is_ok() {
        return Err(Refused(format!(
            "{} is there already; choose another name, or remove it",
            out.display()
        ))
        .into());
    }
    let cancel = signals::cancel_flag()?;
    let image = open(file)?;
    // From here on the name is ours; given up, what is there is removed.
    let mut made = NewFile::begin(&out)?
        .with_context(|| format!("another rubus makes {} just now", out.display()))?;
    let scene = Scene::of(&image, recipe, wanted.wishes, &out)?;
    let plan = scene.plan(recipe, None)?;
    if !general.quiet {
        say(&render(&plan, Terminal::of(general).style()))?;
    }
    if plan.obstacles().next().is_some() {
        message!("rubus: nothing was made, since a check failed");
        return Ok(Exit::AnswerIsNo);
    }
    if !agreed(wanted.is_agreed, question(&plan))? {
        return Ok(Exit::AnswerIsNo);
    }
    let size = plan.image_bytes();
    made.resize(size.context("the plan does not say how large the image becomes")?)?;
    let device = LoopDevice::attach(made.unfinished(), Part::Whole)?;
    let plan = scene.plan(recipe, Some(&device))?;
    let site =
        ImageSite { root: image.root_top(), boot: image.boot_top(), node: device.path().into() };
    let mut step_runner = LiveStepRunner::on_image(cancel, site);
    let store = ChangeStore::at(image.changes());
    // Nothing is given away: what is written to is a new file.
    let mut change = store.begin(plan, Vec::new(), &clock::now_rfc3339(), &mut LiveHands::new())?;
    let (ended, teller) = run(general, &mut change, &mut step_runner);
    // Nothing of the new image is used any more, and all of it is in the file.
    let unmounted = step_runner.unmount_all(&change.name);
    drop(device);
    match ended? {
        Ending::Applied => {}
        Ending::Undone | Ending::OnTrial => anyhow::bail!("{} was given up", out.display()),
        Ending::RolledBack { why } => {
            let mut now = format!("{} was not made, and nothing of it is left", out.display());
            now += &no_room(&directory_of(&out), size);
            message!("{}", teller.went_back(&why, &now));
            return Ok(Exit::RolledBack);
        }
    }
    unmounted?;
    made.finish()?;
    say(&format!(
        "{} is ready to be written to a card or disk; {} is as it was.\n",
        out.display(),
        file.display()
    ))?;
    Ok(Exit::Fine)
}

/// What the user agrees to: that the image's own programs run here is more than making a file.
fn question(plan: &Plan) -> &'static str {
    let runs_programs = |step: &Step| match &step.action {
        Action::BuildInitramfs(_) => true,
        Action::On(on) => matches!(*on.action, Action::BuildInitramfs(_)),
        _ => false,
    };
    if plan.steps.iter().any(runs_programs) {
        "This runs programs of the image on this machine, shut in. Make this image?"
    } else {
        "Make this image?"
    }
}

/// Advice where the filesystem of the new image is full; to be asked while that is still there.
fn no_room(directory: &Path, size_bytes: Option<u64>) -> String {
    const ALMOST_NONE_BYTES: u64 = 64 << 20;
    let space = Live::new().space(directory);
    if space.is_ok_and(|space| space.available_bytes < ALMOST_NONE_BYTES) {
        format!(
            "; {} is full, and the image takes up to {} there: make room, or name another place with --to",
            directory.display(),
            bytes_iec(size_bytes.unwrap_or(0))
        )
    } else {
        String::new()
    }
}

fn run(
    general: &General,
    change: &mut Change,
    step_runner: &mut LiveStepRunner,
) -> (Result<Ending, ChangeError>, Teller) {
    let mut teller = Teller::new(Terminal::of(general), general.quiet);
    let mut is_given_up = false;
    let mut tell = |event: Event<'_>| match event {
        Event::TurningBack { why } => {
            is_given_up = true;
            teller.turning_back(why, "giving the new image up");
        }
        // Nothing in it is put back: it is removed.
        _ if is_given_up => {}
        event => teller.tell(event),
    };
    let ended = go(
        change,
        &mut LiveHands::new(),
        &mut ApplyContext { now: &clock::now_rfc3339, tell: &mut tell, step_runner },
    );
    teller.close();
    (ended, teller)
}

/// What is planned from.
struct Scene<'a> {
    machine: Machine,
    facts: Facts,
    wishes: Wishes,
    out: &'a Path,
}

impl<'a> Scene<'a> {
    fn of(
        image: &OpenImage,
        recipe: &Recipe,
        wishes: &[(String, String)],
        out: &'a Path,
    ) -> anyhow::Result<Scene<'a>> {
        let mut wishes: Wishes = wishes.iter().cloned().collect();
        // Behind a swap partition the root could not grow on a larger disk.
        wishes.entry("swap".into()).or_insert("file".into());
        let files = image.files();
        let machine = survey_image(&files, &clock::now_rfc3339(), &parts(image));
        let look_at = (recipe.look_at)(&machine, &wishes);
        let mut facts = Facts {
            seen: sight::look(&files, &look_at.paths),
            random: random(&Live::new())?,
            image: Some(image_facts(image, out)),
            next_start: sight::next_start_of_image(&image.file, image.boot.entry.number)
                .map_err(anyhow::Error::msg)?,
            ..Facts::default()
        };
        facts.kernels = sight::kernel_releases(&files, &machine, &facts.seen);
        if let Ok(used) = filling::usage(&image.root_top()) {
            let size = TreeSize { bytes: used.bytes, entries: used.entries };
            facts.trees.insert("/".into(), size);
        }
        Ok(Scene { machine, facts, wishes, out })
    }

    /// The plan; on the device that the new image is, once it is one.
    fn plan(&self, recipe: &Recipe, device: Option<&LoopDevice>) -> anyhow::Result<Plan> {
        let mut facts = self.facts.clone();
        if let (Some(image), Some(device)) = (&mut facts.image, device) {
            let files = Live::new();
            let found = identity(&files, device.path()).map_err(|why| Refused(why.to_string()))?;
            image.out = DiskIdentity { path: self.out.into(), ..found };
        }
        Ok(recipe.plan(&self.machine, &facts, &self.wishes, &clock::now_rfc3339())?)
    }
}

fn image_facts(image: &OpenImage, out: &Path) -> ImageFacts {
    let missing = crate::image_programs().filter(|program| programs::find(program).is_none());
    let room = Live::new().space(&directory_of(out));
    ImageFacts {
        file: image.file.clone(),
        out: DiskIdentity {
            path: out.into(),
            size_bytes: 0,
            model: None,
            serial: None,
            wwn: None,
            diskseq: None,
            boot_id: boot_id(&Live::new()),
            contents: Vec::new(),
            confirmation: out.display().to_string(),
        },
        room_bytes: room.ok().map(|space| space.available_bytes),
        boot_bytes: image.boot_bytes(),
        initramfs: image.initramfs(),
        runs_here: image.runs_here(),
        missing: missing.map(str::to_string).collect(),
    }
}

fn parts(image: &OpenImage) -> ImageParts {
    let part = |one: &Partition| rubus_machine::probe::image::Part {
        number: one.entry.number,
        start_bytes: one.entry.start_bytes,
        size_bytes: one.entry.size_bytes,
        filesystem: one.filesystem.kind.clone(),
        partuuid: one.entry.partuuid.clone(),
        uuid: one.filesystem.uuid.clone(),
        label: one.filesystem.label.clone(),
    };
    ImageParts {
        file: image.file.clone(),
        size_bytes: image.size_bytes,
        boot: part(&image.boot),
        root: part(&image.root),
        boot_point: image.boot_point.clone(),
    }
}

fn open(file: &Path) -> anyhow::Result<OpenImage> {
    OpenImage::open(&absolute(file)?).map_err(anyhow::Error::msg)
}

/// The path from the top, so that a plan says the same from everywhere; the file itself need not be there.
fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    let directory = directory_of(path);
    let directory = Live::new()
        .real_path(&directory)
        .with_context(|| format!("cannot use the directory {}", directory.display()))?;
    let name = path.file_name();
    let name = name.with_context(|| format!("{} is no name of a file", path.display()))?;
    Ok(directory.join(name))
}

/// The recipe, if it can be applied to an image.
fn recipe_for(general: &General, name: &str) -> anyhow::Result<&'static Recipe> {
    anyhow::ensure!(
        general.machine.is_none(),
        "--image is a machine of its own; leave --machine out"
    );
    let recipe = find(name)?;
    let for_images: Vec<&str> = crate::ALL
        .iter()
        .filter(|recipe| recipe.is_for_images())
        .map(|recipe| recipe.name)
        .collect();
    anyhow::ensure!(
        recipe.is_for_images(),
        "the recipe {name} is for a machine that runs; for an image there is: {}",
        for_images.join(", ")
    );
    Ok(recipe)
}
