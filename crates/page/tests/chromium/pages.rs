//! The pages that are looked at: of every example run, and of runs that strain the layout.

use rubus_cluster::compare::compare as compare_clusters;
use rubus_cluster::report::Report;
use rubus_cluster::wishes::Wishes;
use rubus_fixtures as fixture;
use rubus_fleet::figures::{self, OfBoard};
use rubus_fleet::settings;
use rubus_fleet::text::Board;
use rubus_runs::compare::{Subject, compare, facts};
use rubus_stats::estimate::Estimate;
use rubus_verdict::verdict::verdict;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::result::{Outcome, Run, Stall, StallCause};

/// A name and the page.
pub fn all() -> Vec<(String, String)> {
    let mut runs: Vec<(String, Run)> =
        fixture::suite_runs().into_iter().map(|run| (run.suite.clone(), run)).collect();
    runs.push(("checkup".into(), rubus_verdict::fixture::slow_sd_card_run_with_rules()));
    runs.push(("failed".into(), fixture::failed_run()));
    runs.push(("every-finding".into(), every_finding()));
    runs.push(("uncertain".into(), uncertain()));
    runs.push(("long-names".into(), long_names()));
    runs.push(("many-stalls".into(), many_stalls()));
    runs.push(("six-targets".into(), six_targets()));
    let pages = runs.into_iter().map(|(name, run)| {
        let page = rubus_page::render(&run, &verdict(&run));
        (name, page)
    });
    let mut pages: Vec<(String, String)> = pages.collect();
    pages.push(("comparison".into(), comparison()));
    pages.push(("gallery".into(), gallery()));
    pages.push(("fleet".into(), fleet()));
    pages.extend(clusters());
    let advices = [
        ("advice", rubus_advise::fixture::advice()),
        ("advice-swap", rubus_advise::fixture::swap_advice()),
    ];
    for (name, advice) in advices {
        pages.push((name.into(), rubus_page::advice::render(&advice, "")));
    }
    pages
}

/// A cluster that was sized, and layouts side by side.
fn clusters() -> [(String, String); 2] {
    let file = "nodes = 4\nboard = \"pi4-4gb\"\ndisk = \"1TB\"\nobjects = \"4KiB:60%,4MiB:40%\"\n";
    let wishes = Wishes::parse(file).expect("a cluster");
    let design = wishes.design(None).expect("a design");
    let report = Report::of(design).expect("it can be sized");
    let comparison = compare_clusters(&wishes, None).expect("it can be compared");
    [
        ("cluster".into(), rubus_page::cluster::size::render(&report, "")),
        ("clusters".into(), rubus_page::cluster::comparison::render(&comparison, "")),
    ]
}

/// Runs of a few boards, with long names, without some figures, and far apart.
fn gallery() -> String {
    let runs = [0.3, 1.0, 1.1, 40.0].map(|factor: f64| {
        let mut run = fixture::slow_sd_card_run();
        run.seed = factor.to_bits();
        for result in &mut run.results {
            result.bytes_per_second = result.bytes_per_second.scaled(factor);
            result.iops = result.iops.scaled(factor);
        }
        run
    });
    let mut runs = runs.map(|run| (None, run));
    runs[1].0 = Some("the card of the attic".into());
    runs[3].1.machine = long_names().machine;
    runs[3].1.results.truncate(4);
    rubus_page::gallery::render(&rubus_runs::gallery::entries(&runs), "")
}

/// Twenty boards: one is slow, one has a long name and another kernel, one failed at length.
fn fleet() -> String {
    let mut names: Vec<String> = (1..=20).map(|at| format!("pi{at:02}")).collect();
    names[4] = "a-board-with-a-rather-long-name.cellar.example".into();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let runs: Vec<Run> = (0..20)
        .map(|at| {
            let factor = if at == 12 { 0.4 } else { 1.0 + f64::from(at % 5) * 0.02 };
            let mut run = fixture::slow_sd_card_run();
            for result in &mut run.results {
                result.bytes_per_second = result.bytes_per_second.scaled(factor);
                result.iops = result.iops.scaled(factor);
            }
            if at % 4 == 0 {
                run.target.filesystem = Some("f2fs".into());
            }
            run
        })
        .collect();
    let failure = "no answer within 60 s; is its shell waiting for something, or its disk stuck, or \
                   its network gone?";
    let boards: Vec<Board<'_>> = names
        .iter()
        .enumerate()
        .map(|(at, name)| Board { name, failure: (at == 7).then_some(failure) })
        .collect();
    let measured = || runs.iter().enumerate().filter(|(at, _)| *at != 7);
    let rows: Vec<OfBoard<'_>> =
        measured().map(|(board, run)| OfBoard { board, number: Some(board as i64), run }).collect();
    let facts: Vec<_> = measured().map(|(board, run)| (names[board], facts::of_run(run))).collect();
    let table = figures::table(&rows);
    let next = NextStep::command(&["rubus", "survey", "--on", "pi02"], "why it is slower");
    let fleet = rubus_page::fleet::Fleet {
        next: &next,
        title: "Checkup",
        boards: &boards,
        differences: &settings::differences(&facts),
        outliers: &figures::outliers(&table, &names),
        table: &table,
    };
    rubus_page::fleet::render(&fleet, "")
}

/// Three runs side by side.
fn comparison() -> String {
    let mut warm = fixture::slow_sd_card_run();
    for (i, result) in warm.results.iter_mut().enumerate() {
        let factor = [0.5, 1.02, 3.0][i % 3];
        result.bytes_per_second = result.bytes_per_second.scaled(factor);
        result.iops = result.iops.scaled(factor);
    }
    warm.target.filesystem = Some("btrfs".into());
    let mut other = fixture::slow_sd_card_run();
    other.results.truncate(4);
    let subjects = [
        Subject::of_run("run 3", &fixture::slow_sd_card_run()),
        Subject::of_run("a name that is rather long for a run.json", &warm),
        Subject::of_run("run 7", &other),
    ];
    rubus_page::compare::render(&compare(&subjects))
}

/// All findings that there are, in all their states, on one page.
fn every_finding() -> Run {
    let mut run = fixture::queue_depth_run();
    run.suite = "class".into();
    for other in fixture::suite_runs().into_iter().skip(1) {
        run.results.extend(other.results);
    }
    run.findings = rubus_verdict::fixture::every_finding();
    run
}

/// Nothing is known: every interval reaches from zero to infinity.
fn uncertain() -> Run {
    let mut run = fixture::queue_depth_run();
    for result in &mut run.results {
        result.iops = Estimate::new(result.iops.value, 0.0, f64::INFINITY);
        result.bytes_per_second = Estimate::new(result.bytes_per_second.value, 0.0, f64::INFINITY);
        result.outcome = Outcome::Inconclusive;
    }
    for finding in &mut run.findings {
        if let Finding::Knee(knee) = finding {
            knee.depth = Estimate::new(knee.depth.value, 1.0, f64::INFINITY);
            knee.ceiling_iops = Estimate::new(knee.ceiling_iops.value, 0.0, f64::INFINITY);
            knee.is_reached = false;
            knee.is_one_at_a_time = false;
        }
    }
    run
}

/// Names and facts as long as they come.
fn long_names() -> Run {
    let mut run = fixture::block_size_run();
    run.target.path = "/media/somebody/a-directory-with-a-very-long-name".repeat(3);
    run.machine.board.model =
        rubus_vocabulary::fact::Fact::known("Board of many words ".repeat(6), "");
    for result in &mut run.results {
        result.on = Some(run.target.path.clone());
    }
    run
}

/// More stalls than can be told one by one, close together.
fn many_stalls() -> Run {
    let mut run = fixture::sustained_run();
    let stall = |i: u32| Stall {
        start_s: 2.0 + f64::from(i) * 0.9,
        length_ms: 150.0,
        cause: [
            StallCause::Device,
            StallCause::Throttling,
            StallCause::OtherWriters,
            StallCause::CpuStarvation,
        ][i as usize % 4],
    };
    run.results[0].stalls = (0..40).map(stall).collect();
    run.results[1].stalls = (0..30).map(stall).collect();
    run.findings.clear();
    run
}

/// Six targets, of which one does nearly nothing.
fn six_targets() -> Run {
    let mut run = fixture::together_run();
    if let Some(Finding::SharedPipe(pipe)) = run.findings.first_mut() {
        pipe.targets = (1..=6).map(|i| format!("/media/usb-stick-{i}")).collect();
        let rate = |i: u32| if i == 5 { 1e4 } else { 8e6 };
        pipe.alone = (1..=6).map(|i| Estimate::exact(rate(i))).collect();
        pipe.together = (1..=6).map(|i| Estimate::exact(rate(i) * 0.6)).collect();
        pipe.suspect = None;
    }
    run
}
