//! From a user's recipe and the facts to a plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::UserRecipe;
use super::choice::Chosen;
use super::entries::{Entry, Filesystem, Need, Pledge, Work};
use super::table::Fault;
use crate::edits::{Edits, with_assignment};
use crate::units::UNITS;
use crate::{
    Answer, Facts, PathState, PlanBuilder, PlanInput, Queries, Wishes, disks, distribution, format,
    lasting, mounting, programs,
};
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::plan::{Action, FORMAT, Plan, TextFile};
use rubus_change::steps::{MakeSwapFile, RemoveFile, SetLink, SwapOff, SwapOn, WriteFile};
use rubus_vocabulary::machine::{Machine, Mount, SwapArea};
use rubus_vocabulary::units::parse_size;

const MODULES: &str = "/lib/modules";
const FILESYSTEMS: &str = "/proc/filesystems";

pub(super) fn look_at(
    recipe: &UserRecipe,
    machine: &Machine,
    wishes: &Wishes,
) -> Result<Queries, Fault> {
    let chosen = Chosen::of(&recipe.name, &recipe.options, wishes)?;
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut lost: Vec<PathBuf> = Vec::new();
    for check in &recipe.checks {
        match &check.what {
            Need::Program { program, .. } => {
                let program = chosen.fill(program);
                paths.extend(programs::paths([program.as_str()]));
            }
            Need::File { path } | Need::Knob { path } => paths.push(chosen.fill(path).into()),
            Need::Module { module } => paths.extend(module_paths(&chosen.fill(module), machine)),
        }
    }
    for step in &recipe.steps {
        match &step.what {
            Work::WriteFile { path, .. }
            | Work::RemoveFile { path }
            | Work::SetLine { path, .. }
            | Work::MakeDirectory { path }
            | Work::SetLink { path, .. }
            | Work::SetKnob { path, .. }
            | Work::MakeSwapFile { path, .. } => {
                paths.extend(mounting::directories(Path::new(&chosen.fill(path))));
            }
            Work::Mask { unit } => paths.push(Path::new(UNITS).join(chosen.fill(unit))),
            Work::Mount { at, .. } => paths.extend(mounting::look_at(&chosen.fill(at))),
            Work::Format(Filesystem { device, at, .. }) => {
                lost.push(disks::whole(machine, &chosen.fill(device)));
                if let Some(at) = at {
                    paths.extend(mounting::look_at(&chosen.fill(at)));
                }
            }
            Work::SwapOn { .. } | Work::SwapOff { .. } => {}
        }
    }
    paths.extend(programs::paths(["swapon", "swapoff"]));
    paths.extend(programs::paths(format::PROGRAMS));
    Ok(Queries { disks: lost, ..Queries::paths(paths) })
}

/// What tells whether the running kernel has a module.
fn module_paths(module: &str, machine: &Machine) -> Vec<PathBuf> {
    let mut paths = vec![loaded(module), FILESYSTEMS.into()];
    if let Some(release) = machine.system.kernel_release.text() {
        let directory = Path::new(MODULES).join(release);
        paths.extend(["modules.dep", "modules.builtin"].map(|name| directory.join(name)));
    }
    paths
}

fn loaded(module: &str) -> PathBuf {
    Path::new("/sys/module").join(module.replace('-', "_"))
}

pub(super) fn draw_up(
    recipe: &UserRecipe,
    machine: &Machine,
    facts: &Facts,
    wishes: &Wishes,
    made: &str,
) -> Result<Plan, Fault> {
    let chosen = Chosen::of(&recipe.name, &recipe.options, wishes)?;
    let situation = PlanInput { machine, facts, options: &chosen.written };
    let mut draft = PlanBuilder::default();
    for (name, what) in &chosen.missing {
        let remedy = format!("add {name}=...: {what}");
        draft.check(&format!("{name} is chosen"), false, "no", &remedy);
    }
    for check in &recipe.checks {
        self::check(check, &chosen, &situation, &mut draft);
    }
    if chosen.missing.is_empty() {
        let mut texts = Texts::default();
        for (number, step) in recipe.steps.iter().enumerate() {
            let line = step.line;
            self::step(step, number, &chosen, &situation, &mut texts, &mut draft)
                .map_err(|reason| Fault { line, reason })?;
        }
        programs::check(&situation, &mut draft);
        lasting::check(&situation, &mut draft);
        lasting::after_the_start(&situation, recipe.needs_boot, &mut draft);
        let promises = recipe.promises.iter().map(|entry| promise(entry, &chosen));
        let promises = promises.collect::<Result<Vec<_>, Fault>>()?;
        draft.promises.extend(promises);
    }
    let fill =
        |texts: &[String]| -> Vec<String> { texts.iter().map(|text| chosen.fill(text)).collect() };
    Ok(Plan {
        format: FORMAT,
        recipe: recipe.name.clone(),
        options: chosen.written.clone(),
        title: recipe.title.clone(),
        made: made.into(),
        checks: draft.checks,
        needs_boot: recipe.needs_boot && !draft.steps.is_empty(),
        trial: None,
        steps: draft.steps,
        notes: [fill(&recipe.notes), draft.notes].concat(),
        risks: [fill(&recipe.risks), draft.risks].concat(),
        gains: Vec::new(),
        gains_unknown: None,
        effort: draft.effort,
        promises: draft.promises,
    })
}

fn check(entry: &Entry<Need>, chosen: &Chosen, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let own =
        |usual: String| if entry.words.is_empty() { usual } else { chosen.fill(&entry.words) };
    let remedy = |usual: String| entry.extra.as_ref().map_or(usual, |text| chosen.fill(text));
    match &entry.what {
        Need::Program { program, package } => {
            let program = chosen.fill(program);
            programs::check_one(&program, situation, draft);
            if let Some(check) = draft.checks.last_mut() {
                check.what = own(check.what.clone());
                if !check.is_met {
                    let package = package.as_ref().map(|name| {
                        distribution::install(situation.machine, &[chosen.fill(name).as_str()])
                    });
                    let usual = package.or(check.remedy.clone());
                    check.remedy = Some(remedy(usual.unwrap_or_default()));
                }
            }
        }
        Need::File { path } | Need::Knob { path } => {
            let path = PathBuf::from(chosen.fill(path));
            let answer = match situation.facts.seen.get(&path) {
                Some(PathState::Hidden(_)) => Answer::Unknown,
                _ => Answer::from(situation.is_there(&path)),
            };
            let usual = match entry.what {
                Need::Knob { .. } => "use a kernel that has it",
                _ => "install what brings it",
            };
            draft.check(
                &own(format!("{} is there", path.display())),
                answer,
                situation.presence(&path),
                &remedy(usual.into()),
            );
        }
        Need::Module { module } => {
            let module = chosen.fill(module);
            let (answer, found) = has_module(&module, situation);
            let usual = format!("install a kernel that has the module {module}");
            draft.check(&own(format!("the kernel has {module}")), answer, found, &remedy(usual));
        }
    }
}

/// Whether the running kernel has a module, and where that was seen.
fn has_module(module: &str, situation: &PlanInput<'_>) -> (Answer, String) {
    let mut paths = module_paths(module, situation.machine).into_iter();
    let loaded = paths.next().unwrap_or_default();
    if situation.is_there(&loaded) {
        return (Answer::Holds, loaded.display().to_string());
    }
    let same = |name: &str| name.replace('-', "_") == module.replace('-', "_");
    // A filesystem may be built in without a list that says so.
    let filesystems = situation.text(Path::new(FILESYSTEMS));
    let mut kinds = filesystems.lines().filter_map(|line| line.split_whitespace().last());
    if kinds.any(same) {
        return (Answer::Holds, FILESYSTEMS.into());
    }
    for list in paths.filter(|path| path != Path::new(FILESYSTEMS)) {
        match situation.facts.seen.get(&list) {
            Some(PathState::Text(file)) => {
                let lines = file.text.lines();
                let mut names = lines.filter_map(|line| {
                    let path = line.split(':').next()?;
                    path.rsplit('/').next()?.split('.').next()
                });
                if names.any(same) {
                    return (Answer::Holds, list.display().to_string());
                }
            }
            // Too large for a sight, or not captured: modprobe says when the step needs it.
            Some(PathState::Something | PathState::Hidden(_)) => {
                let found = format!("not known: {} was not read", list.display());
                return (Answer::Unknown, found);
            }
            _ => {}
        }
    }
    (Answer::Fails, "neither loaded, nor in the lists of its modules".into())
}

/// What files will hold after the steps so far: several steps may be about one file, which is written once.
#[derive(Default)]
struct Texts(BTreeMap<PathBuf, usize>);

fn step(
    entry: &Entry<Work>,
    number: usize,
    chosen: &Chosen,
    situation: &PlanInput<'_>,
    texts: &mut Texts,
    draft: &mut PlanBuilder,
) -> Result<(), String> {
    let id = entry.extra.clone().unwrap_or_else(|| format!("step-{}", number + 1));
    let why = chosen.fill(&entry.words);
    let fill = |text: &str| chosen.fill(text);
    let path_of = |text: &str| {
        let text = fill(text);
        mounting::place(&text).map_err(|reason| format!("'{text}': {reason}"))?;
        Ok::<PathBuf, String>(text.into())
    };
    match &entry.what {
        Work::WriteFile { path, text, mode } => {
            let path = path_of(path)?;
            let mode = mode.as_ref().map(|mode| parse_mode(&fill(mode))).transpose()?;
            write(&id, &why, &path, fill(text), mode, situation, texts, draft);
        }
        Work::SetLine { path, key, value, separator } => {
            let path = path_of(path)?;
            let (key, value) = (fill(key), fill(value));
            if key.is_empty() || format!("{key}{value}").contains(['\n', '\r']) {
                return Err(format!("'{key}' and '{value}' have to be a line together"));
            }
            let now = texts.now(&path, situation, draft);
            let text = with_assignment(&now, &key, separator, &value);
            write(&id, &why, &path, text, None, situation, texts, draft);
        }
        Work::RemoveFile { path } => {
            let path = path_of(path)?;
            if let Some(was) = situation.file(&path).cloned() {
                draft.step(&id, &why, Action::RemoveFile(RemoveFile { path, was }));
            }
        }
        Work::MakeDirectory { path } => draft.directory(&id, &why, &path_of(path)?, situation),
        Work::SetLink { path, to } => link(&id, &why, path_of(path)?, fill(to), situation, draft)?,
        Work::Mask { unit } => {
            let unit = fill(unit);
            if unit.contains('/') || !unit.contains('.') {
                return Err(format!("'{unit}' is no unit: write it like cron.service"));
            }
            let steps = std::mem::take(&mut draft.steps);
            let mut edits = Edits::after(&situation.facts.seen, steps);
            edits.mask(&id, &why, &unit);
            draft.steps = edits.into_steps();
        }
        Work::SetKnob { path, value } => {
            let path = path_of(path)?;
            if !path.starts_with("/sys") && !path.starts_with("/proc/sys") {
                return Err(format!(
                    "{} is no knob: they are in /sys and /proc/sys",
                    path.display()
                ));
            }
            let was = situation.text(&path).trim().to_string();
            let is_seen = situation.file(&path).is_some();
            let shown = path.display().to_string();
            let remedy = "use a kernel that has it";
            draft.check(&format!("{shown} can be set"), is_seen, situation.presence(&path), remedy);
            draft.set_knob(&id, &why, &shown, &was, &fill(value));
        }
        Work::MakeSwapFile { path, size } => {
            let path = fill(path);
            mounting::place(&path)?;
            make_swap_file(&id, &why, &path, &fill(size), situation, draft)?;
        }
        Work::SwapOn { what, priority } => {
            let what = fill(what);
            let priority = priority.as_ref().map(|text| parse_priority(&fill(text))).transpose()?;
            if swap_area(&what, situation).is_none() {
                draft.step(&id, &why, Action::SwapOn(SwapOn { what, priority }));
            }
        }
        Work::SwapOff { what } => {
            let what = fill(what);
            if let Some(area) = swap_area(&what, situation) {
                let priority = (area.priority >= 0).then_some(area.priority);
                draft.step(&id, &why, Action::SwapOff(SwapOff { what, priority }));
            }
        }
        Work::Mount { what, at, kind, options, at_boot } => {
            let (at, what, kind, options) = (fill(at), fill(what), fill(kind), fill(options));
            mounting::place(&at)?;
            let at = Path::new(&at);
            let (what, kind, options) = (&what, &kind, &options);
            let wanted = mounting::MountRequest { at, what, kind, options, pass: 0 };
            mount(&wanted, *at_boot, &why, situation, draft);
        }
        Work::Format(wanted) => {
            new_filesystem(wanted, (&id, number), &why, chosen, situation, draft)?;
        }
    }
    Ok(())
}

fn swap_area<'a>(what: &str, situation: &PlanInput<'a>) -> Option<&'a SwapArea> {
    situation.machine.swap.areas.iter().find(|area| area.path == what)
}

fn make_swap_file(
    id: &str,
    why: &str,
    path: &str,
    size: &str,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) -> Result<(), String> {
    let size_bytes = parse_size(size)?.next_multiple_of(4096);
    let is_there = situation.is_there(Path::new(path));
    let is_used = swap_area(path, situation).is_some();
    draft.check(
        "nothing is at the path of the swap file",
        !is_there || is_used,
        situation.presence(Path::new(path)),
        "take another path",
    );
    if !is_there && !is_used {
        draft.effort.written_bytes += size_bytes;
        let path = path.into();
        draft.step(id, why, Action::MakeSwapFile(MakeSwapFile { path, size_bytes }));
    }
    Ok(())
}

fn mount(
    wanted: &mounting::MountRequest<'_>,
    at_boot: bool,
    why: &str,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) {
    let is_wanted =
        |mount: &Mount| Path::new(&mount.point) == wanted.at && mount.filesystem == wanted.kind;
    if !situation.machine.mounts.iter().any(is_wanted) {
        mounting::check_place(wanted.at, situation, draft);
    }
    if at_boot {
        mounting::put(wanted, why, situation, draft);
    } else {
        mounting::now(wanted, why, situation, draft);
    }
}

/// The steps of the recipe `format`, under this step's name. To apply the plan, a user confirms the disk by its serial
/// number, as for any recipe.
fn new_filesystem(
    wanted: &Filesystem,
    (id, number): (&str, usize),
    why: &str,
    chosen: &Chosen,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) -> Result<(), String> {
    let Filesystem { device, kind, label, at, has_partition } = wanted;
    let mut options = Wishes::new();
    let mut choose = |name: &str, text: &str, check: fn(&str) -> Result<(), String>| {
        let value = chosen.fill(text);
        check(&value).map_err(|reason| format!("'{value}': {reason}"))?;
        options.insert(name.into(), value);
        Ok::<(), String>(())
    };
    choose("device", device, disks::node)?;
    choose("filesystem", kind, |kind| format::kind(kind).map(drop))?;
    if let Some(label) = label {
        choose("label", label, format::label)?;
    }
    if let Some(at) = at {
        choose("at", at, mounting::place)?;
    }
    options.insert("partition".into(), if *has_partition { "yes" } else { "no" }.into());
    let mut facts = situation.facts.clone();
    // Each such step of a recipe makes other identifiers.
    for (random, byte) in facts.random.iter_mut().zip((number as u64).to_le_bytes()) {
        *random ^= byte;
    }
    let before = draft.steps.len();
    let own = PlanInput { facts: &facts, options: &options, ..*situation };
    format::draw(&own, draft);
    for step in draft.steps.iter_mut().skip(before) {
        step.id = format!("{id}-{}", step.id);
        if matches!(step.action, Action::Format(_)) {
            step.why = why.into();
        }
    }
    Ok(())
}

fn parse_priority(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| format!("'{text}' is no priority"))
}

fn parse_mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o7777 && mode > 0 => Ok(mode),
        _ => Err(format!("'{text}' is no mode: write it in octal, such as 0644")),
    }
}

impl Texts {
    /// What a file will hold after the steps so far.
    fn now(&self, path: &Path, situation: &PlanInput<'_>, draft: &PlanBuilder) -> String {
        let written = self.0.get(path).and_then(|index| draft.steps.get(*index));
        match written.map(|step| &step.action) {
            Some(Action::WriteFile(WriteFile { becomes, .. })) => becomes.text.clone(),
            _ => situation.text(path).to_string(),
        }
    }
}

#[allow(clippy::too_many_arguments)] // One step with all that it is made from.
fn write(
    id: &str,
    why: &str,
    path: &Path,
    text: String,
    mode: Option<u32>,
    situation: &PlanInput<'_>,
    texts: &mut Texts,
    draft: &mut PlanBuilder,
) {
    let can_be = matches!(
        situation.facts.seen.get(path),
        None | Some(PathState::Absent | PathState::Text(_) | PathState::Hidden(_))
    );
    if !can_be {
        let remedy = "take another path: only small text files are edited";
        let what = format!("{} can be written", path.display());
        return draft.check(&what, false, situation.presence(path), remedy);
    }
    if let Some(index) = texts.0.get(path) {
        // A later step about the same file: the file is written once, with both.
        if let Some(Action::WriteFile(WriteFile { becomes, .. })) =
            draft.steps.get_mut(*index).map(|step| &mut step.action)
        {
            becomes.text = text;
            becomes.mode = mode.unwrap_or(becomes.mode);
        }
        return;
    }
    let was = situation.file(path).cloned();
    let usual = was.as_ref().map_or(0o644, |was| was.mode);
    let becomes = TextFile { text, mode: mode.unwrap_or(usual) };
    if was.as_ref() == Some(&becomes) {
        return;
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    let why_directory = "The file below needs it.";
    draft.directory(&format!("{id}-directory"), why_directory, directory, situation);
    texts.0.insert(path.into(), draft.steps.len());
    let path = path.into();
    draft.step(id, why, Action::WriteFile(WriteFile { path, was, becomes }));
}

fn link(
    id: &str,
    why: &str,
    path: PathBuf,
    to: String,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) -> Result<(), String> {
    if to.is_empty() || to.contains(char::is_control) {
        return Err("'to' has to be where the link points to".into());
    }
    let was = match situation.facts.seen.get(&path) {
        Some(PathState::Dangling(target)) => Some(target.clone()),
        Some(PathState::Absent | PathState::Hidden(_)) | None => None,
        // What is at the end of the link is seen, and not the link.
        Some(PathState::Text(file)) if to == "/dev/null" && file.text.is_empty() => return Ok(()),
        Some(_) => {
            let remedy = "remove what is there by hand, or take another path";
            let what = format!("{} is free for a link", path.display());
            draft.check(&what, false, situation.presence(&path), remedy);
            return Ok(());
        }
    };
    let becomes = Some(PathBuf::from(to));
    if was != becomes {
        draft.step(id, why, Action::SetLink(SetLink { path, was, becomes }));
    }
    Ok(())
}

fn promise(entry: &Entry<Pledge>, chosen: &Chosen) -> Result<Promise, Fault> {
    let fill = |text: &String| chosen.fill(text);
    let look = match &entry.what {
        Pledge::Knob { path, value } => Look::Knob { path: fill(path).into(), value: fill(value) },
        Pledge::SwapOn { what, priority } => Look::SwapOn {
            what: fill(what).trim_start_matches("UUID=").into(),
            priority: match priority.as_ref().map(fill) {
                None => None,
                Some(text) => Some(text.parse().map_err(|_| Fault {
                    line: entry.line,
                    reason: format!("'{text}' is no priority"),
                })?),
            },
        },
        Pledge::NoSwapOnDisk { disk } => Look::NoSwapOnDisk { disk: fill(disk), partuuid: None },
    };
    Ok(Promise { what: chosen.fill(&entry.words), look, needs_boot: entry.extra.is_some() })
}
