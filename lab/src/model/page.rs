//! The page that the results make.

use std::fmt::Write as _;

use rubus_advise::seeds::{self, SeedCase};
use rubus_vocabulary::estimate::Estimate;

use super::case::{Case, Purpose, Unit};
use super::judge::{DIFFERS_BY, IN_ORDER, Judgement, MEDIAN, NINETIETH};
use super::{Kind, Report};

/// Everything as Markdown: how good it is, every case, and the published figures.
pub fn markdown(report: &Report) -> String {
    let mut page = String::from(INTRODUCTION);
    summary(&mut page, report);
    for kind in Kind::ALL {
        let cases: Vec<&Case> = report
            .cases
            .iter()
            .filter(|case| case.kind == kind)
            .collect();
        if !cases.is_empty() {
            table(&mut page, kind, &cases);
        }
    }
    published(&mut page, &seeds::cases());
    page
}

const INTRODUCTION: &str = "\
# How right the model is

Made by `rubus-lab model --write MODEL.md` (root, Linux; about eighteen minutes on a quiet machine). The model says what a storage path
gives from what its stages were measured to give alone. Here each case measures the stages alone, predicts, and then measures the
whole path with the engine of `rubus bench`. What a stage was taken from is no case. Every case is in the tables, misses included.

- *error*: predicted against measured, as a share of the measured rate; positive when predicted too fast.
- *held out*: nothing of the model was chosen by looking at the case; where *chosen* stands, something was.
- *holds*: the 95 % intervals of prediction and measurement have a number in common.
- *starved*: share of the time in which some program waited for a processor. What hardly needs a processor is measured again, up to
  twice, when that exceeds 25 %; `!` marks what was disturbed to the end. What needs the processors itself is measured more than once, and
  the fastest counts.
- *in order*: pairs of alternatives for the same purpose whose measured rates differ by more than 20 %, and the faster was predicted faster;
  *close*: those of them that differ by less than 50 %. Servers of network disks are alternatives at the same depth.

What a case is worth differs by its kind. *Identity*: compression by btrfs, whose narrowest stage was the disk in every case, so the compressor
was never what was tested; most commits and swap cases, whose inputs hold what is predicted. *Interpolation*: sizes, within one sweep. *Composition*:
stripes, md, ciphers and network disks, of stages measured apart; their limits are the lab's own throttles, except the servers'. No spinning disk, flash
translation layer, card or USB bridge was predicted. A small error over all cases says little of those; look at the servers of network disks, for
which nothing was set.

";

fn summary(page: &mut String, report: &Report) {
    let all = Judgement::of(&report.cases);
    let held_out = Judgement::of(report.cases.iter().filter(|case| is_held_out(case)));
    let undisturbed = Judgement::of(report.cases.iter().filter(|case| !case.is_disturbed));
    let _ = writeln!(
        page,
        "Machine: {}; {:.0} s.\n",
        report.machine, report.elapsed_s
    );
    page.push_str("| cases | number | median error | 90th percentile | worst | pairs in order | close pairs in order |\n|---|---:|---:|---:|---:|---:|---:|\n");
    let mut row = |name: &str, judged: &Judgement| {
        let _ = writeln!(
            page,
            "| {name} | {} | {} | {} | {} | {} of {} | {} of {} |",
            judged.cases,
            percent(judged.median),
            percent(judged.ninetieth),
            percent(judged.worst),
            judged.in_order,
            judged.pairs,
            judged.close_in_order,
            judged.close
        );
    };
    row("all", &all);
    row("held out", &held_out);
    if undisturbed.cases < all.cases {
        row("undisturbed", &undisturbed);
    }
    for kind in Kind::ALL {
        let judged = Judgement::of(report.cases.iter().filter(|case| case.kind == kind));
        if judged.cases > 0 {
            row(&kind.name(), &judged);
        }
    }
    let verdict = if all.is_good() { "met" } else { "not met" };
    let _ = writeln!(
        page,
        "\nAimed at: median ≤ {}, 90th percentile ≤ {}, ≥ {} of the pairs that differ by more than {} in order: {verdict}.",
        percent(MEDIAN),
        percent(NINETIETH),
        percent(IN_ORDER),
        percent(DIFFERS_BY)
    );
    let overlap = report.cases.iter().filter(|case| case.overlaps()).count();
    let _ = writeln!(
        page,
        "\nThe 95 % intervals of prediction and measurement overlap in {overlap} of {} cases. If both were right, more than 99 % would; the others are \
         predicted surer than the model knows.",
        report.cases.len()
    );
    for (kind, reason) in &report.left_out {
        let _ = writeln!(page, "\nNot measured: {} ({reason}).", kind.name());
    }
}

fn is_held_out(case: &Case) -> bool {
    case.purpose == Purpose::HeldOut
}

fn table(page: &mut String, kind: Kind, cases: &[&Case]) {
    let _ = writeln!(page, "\n## {}\n\n{}\n", title(kind), kind.about());
    page.push_str("| case | predicted | measured | unit | error | holds | narrowest pipe | starved | |\n|---|---:|---:|---|---:|---|---|---:|---|\n");
    let mut notes: Vec<&str> = Vec::new();
    for case in cases {
        let note = case.note.map(|note| {
            let known = notes.iter().position(|other| *other == note);
            known.unwrap_or_else(|| {
                notes.push(note);
                notes.len() - 1
            }) + 1
        });
        let mut marks = Vec::new();
        if !is_held_out(case) {
            marks.push("chosen".to_string());
        }
        if case.again > 0 {
            marks.push(format!("measured {} times", case.again + 1));
        }
        if let Some(note) = note {
            marks.push(format!("({note})"));
        }
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {:+.1} % | {} | {} | {:.0} %{} | {} |",
            case.name,
            estimate(&case.predicted, case.unit),
            estimate(&case.measured, case.unit),
            unit(case.unit),
            case.error() * 100.0,
            if case.overlaps() { "yes" } else { "no" },
            case.narrowest,
            case.starved * 100.0,
            if case.is_disturbed { " !" } else { "" },
            marks.join(", ")
        );
    }
    for (i, note) in notes.iter().enumerate() {
        let _ = writeln!(page, "\n({}) {}.", i + 1, sentence(note));
    }
}

fn published(page: &mut String, cases: &[SeedCase]) {
    let agree = cases.iter().filter(|case| case.agrees()).count();
    let _ = writeln!(
        page,
        "\n## Figures that others published\n\n\
         Nothing was measured for these: the stages come from some figures of an article and another one is predicted. {agree} of {} agree: \
         they differ by less than {}, or the interval of the prediction holds the figure. For those that do not, the last column begins \
         with \"Misses\".\n",
        cases.len(),
        percent(seeds::AGREES_WITHIN)
    );
    page.push_str("| figure | stages from | predicted | published | unit | error | why |\n|---|---|---:|---:|---|---:|---|\n");
    for case in cases {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {:+.1} % | {} |",
            case.what,
            case.stages,
            number(case.predicted.value),
            number(case.published),
            case.unit,
            case.error() * 100.0,
            case.why
        );
    }
    let mut sources: Vec<&str> = cases.iter().map(|case| case.source).collect();
    sources.sort_unstable();
    sources.dedup();
    let _ = writeln!(page, "\nFrom {}.", sources.join("; "));
}

fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Sizes => "Sizes and depths of one device",
        Kind::Stripes => "Stripes, on ports of their own and on one",
        Kind::Md => "RAID-0 by md on an emulated board",
        Kind::Commits => "Commits, by one writer and by several",
        Kind::Btrfs => "Compression by btrfs",
        Kind::Network => "Network disks",
        Kind::Cipher => "A cipher in the path",
        Kind::Swap => "Swap",
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Iops => "per s",
        Unit::BytesPerSecond => "MB/s",
        Unit::TouchesPerSecond => "touches/s",
    }
}

fn estimate(value: &Estimate, unit: Unit) -> String {
    match unit {
        Unit::BytesPerSecond => number(value.value / 1e6),
        Unit::Iops | Unit::TouchesPerSecond => number(value.value),
    }
}

/// Three digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match (percent - percent.round()).abs() < 0.05 {
        true => format!("{percent:.0} %"),
        false => format!("{percent:.1} %"),
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
