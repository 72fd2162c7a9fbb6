//! `rubus bench A B --together`: several targets alone and all at once, to find the pipe that they share.

use anyhow::Context;
use rubus_command::{Exit, General, Terminal, World, message, must_be_live, signals};
use rubus_measure::suites;
use rubus_runs::together;
use rubus_verdict::findings::add_rules;
use rubus_verdict::verdict::verdict;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::spec::{FileNeed, FileStart, Suite};
use rubus_vocabulary::units::bytes_iec;

use super::bench_args::Bench;
use super::bench_options::{queueing, wanted};
use crate::measuring::{self, Measured, Places};
use crate::outputs::{self, Outputs};
use crate::target::{self, Allowance, OpenTarget};

/// Measures all targets in turns and at once.
pub fn run(general: &General, bench: &Bench) -> anyhow::Result<Exit> {
    must_be_live(general, "a bench", "a disk")?;
    outputs::check(&wanted(bench))?;
    anyhow::ensure!(
        bench.targets.len() > 1,
        "--together needs at least two targets, such as: rubus bench /mnt/a /mnt/b --together"
    );
    anyhow::ensure!(bench.suite.is_none(), "--together has jobs of its own; leave --suite out");
    let queueing = queueing(bench)?;
    let cancel = signals::cancel_flag()?;
    let terminal = Terminal::of(general);
    let world = World::of(general)?;
    let machine = world.survey();
    let targets = resolved(bench, &machine, &world)?;
    let plan = plan(bench, &targets)?;
    if !general.quiet {
        message!("{}", plan.announcement);
    }
    let names: Vec<String> = targets.iter().map(|target| target.identity.named.clone()).collect();
    let suspect = shared_by(&targets, &machine);
    let mut measured = measuring::measure(
        plan.places(targets)?,
        &plan.suite,
        &world,
        machine,
        &cancel,
        queueing,
        terminal,
    )?;
    fold(&mut measured, &plan, &names, suspect);
    let mut outputs = Outputs::new(general, wanted(bench), 1);
    outputs.take(measured)?;
    outputs.finish()
}

fn resolved(bench: &Bench, machine: &Machine, world: &World) -> anyhow::Result<Vec<OpenTarget>> {
    let mut targets: Vec<OpenTarget> = Vec::new();
    for name in &bench.targets {
        let allowance = Allowance {
            read_only: bench.read_only,
            may_lose: bench.i_will_lose_everything_on.clone(),
            connections: bench.connections,
        };
        let target = target::resolve(name, machine, world.files(), &allowance)?;
        anyhow::ensure!(
            !matches!(target.target, rubus_measure::Target::Remote { .. }),
            "{} is a network export, and those are not measured together with others yet; attach it or measure it \
             alone",
            target.identity.named
        );
        let twice = targets.iter().find(|other| other.identity.path == target.identity.path);
        anyhow::ensure!(twice.is_none(), "{} is named twice", target.identity.named);
        targets.push(target);
    }
    Ok(targets)
}

/// What will be run on every target.
struct Plan {
    suite: Suite,
    kinds: Vec<rubus_vocabulary::spec::Job>,
    needs: Vec<FileNeed>,
    announcement: String,
}

fn plan(bench: &Bench, targets: &[OpenTarget]) -> anyhow::Result<Plan> {
    let wanted = measuring::SuiteLimits {
        region_bytes: bench.size,
        budget_bytes: bench.budget,
        is_whole: false,
    };
    // As much of each as the checkup would use and write; the least of them for all.
    let mut region_bytes = u64::MAX;
    let mut budget_bytes = u64::MAX;
    for target in targets {
        let usual = measuring::suite_for("quick", target, wanted)?;
        region_bytes = region_bytes.min(usual.region_bytes);
        budget_bytes = budget_bytes.min(suites::plan_writes(&usual, target.target.is_own_file()));
    }
    let may_write = !bench.read_only && targets.iter().all(|target| target.target.may_write());
    let kinds = together::kinds(may_write, budget_bytes.saturating_sub(region_bytes));
    let needs = targets.iter().map(|target| FileNeed {
        name: target.identity.named.clone(),
        region_bytes,
        start: FileStart::Filled,
    });
    let count = u32::try_from(targets.len()).context("too many targets")?;
    let jobs = together::jobs(&kinds, count);
    let announcement =
        announcement(targets, region_bytes, budget_bytes, may_write, together::seconds(&jobs));
    Ok(Plan {
        needs: needs.collect(),
        suite: Suite {
            name: together::SUITE.into(),
            region_bytes,
            content: bench.content,
            seed: bench.seed.unwrap_or(1),
            max_seconds: None,
            jobs,
        },
        kinds,
        announcement,
    })
}

fn announcement(
    targets: &[OpenTarget],
    region_bytes: u64,
    budget_bytes: u64,
    may_write: bool,
    seconds: f64,
) -> String {
    let mut text = format!("Measuring together, for about {seconds:.0} s:");
    for target in targets {
        let own_file = target.target.is_own_file();
        let writes = match (own_file, may_write) {
            (true, true) => format!(
                "writes {} at most, to a nameless file of {} that is gone at the end",
                bytes_iec(budget_bytes),
                bytes_iec(region_bytes)
            ),
            (true, false) => format!(
                "writes a nameless file of {} once, to have something to read; it is gone at the end",
                bytes_iec(region_bytes)
            ),
            (false, true) => format!(
                "writes {} at most over its first {}; WHAT IS THERE IS LOST",
                bytes_iec(budget_bytes),
                bytes_iec(region_bytes)
            ),
            (false, false) => "only reads, nothing is written".into(),
        };
        text += &format!("\n  {}: {writes}.", target.identity.named);
    }
    text
}

impl Plan {
    fn places(&self, targets: Vec<OpenTarget>) -> anyhow::Result<Places> {
        let named: Vec<&str> =
            targets.iter().map(|target| target.identity.named.as_str()).collect();
        let named = named.join(", ");
        let mut targets = targets.into_iter();
        let mut first = targets.next().context("there is no target")?;
        first.identity.named = named;
        Ok(Places {
            target: first,
            more_files: targets.map(|target| target.target).collect(),
            needs: self.needs.clone(),
        })
    }
}

/// Turns into results, results into what they say.
fn fold(measured: &mut Measured, plan: &Plan, names: &[String], suspect: Option<String>) {
    let run = &mut measured.run;
    let folded = together::fold(&plan.kinds, names, &run.results);
    run.results = folded.results;
    run.target.path = run.target.named.clone();
    // The figures are those of several disks.
    run.target.device = None;
    run.target.filesystem = None;
    run.findings = folded
        .findings
        .into_iter()
        .map(|mut found| {
            found.suspect = suspect.clone().filter(|_| found.is_shared == Some(true));
            Finding::SharedPipe(found)
        })
        .collect();
    add_rules(run);
    measured.verdict = verdict(run);
}

/// What all targets have in common, as far as the machine's facts tell: one disk, or the narrowest bus that
/// every one of their disks is on.
fn shared_by(targets: &[OpenTarget], machine: &Machine) -> Option<String> {
    let disks: Option<Vec<Vec<&str>>> = targets
        .iter()
        .map(|target| {
            let below = machine.disks_below(target.identity.device.as_deref()?);
            let names: Vec<&str> = below.iter().map(|disk| disk.name.as_str()).collect();
            (!names.is_empty()).then_some(names)
        })
        .collect();
    let disks = disks?;
    if disks.iter().all(|names| *names == disks[0]) {
        return Some(format!("the disk {}", disks[0].join(", ")));
    }
    let holds_all = |members: &[String]| {
        let mut all = disks.iter().flatten();
        all.all(|disk| members.iter().any(|member| member == disk))
    };
    let buses = machine.shared_buses.iter();
    let narrowest =
        buses.filter(|bus| holds_all(&bus.members)).min_by_key(|bus| bus.members.len())?;
    Some(narrowest.name.clone())
}
