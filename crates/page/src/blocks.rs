//! Block-size sweeps: bytes per second against the size of an operation, with the bend.

use maud::{Markup, html};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::finding::{Bend, Finding};
use rubus_vocabulary::result::{Access, JobResult, Run};
use rubus_vocabulary::spec::Direction;
use rubus_vocabulary::units::{bytes_iec, rate_si};

use super::axis::{Axis, short_rate};
use super::jobs::{folded, section};
use super::plot::{Labels, Look, Plot, Shape, key, key_of_marks, sureness};
use super::{glued, unless_on_top};
use rubus_draw::words;
use rubus_verdict::text::findings::sentence;

/// Minimum number of sizes for results that differ only in their block size to count as a sweep.
const A_SWEEP: usize = 4;

/// Results of one kind of operation with ascending block sizes.
pub struct Sweep<'a> {
    /// At least two.
    pub results: Vec<&'a JobResult>,
    bend: Option<&'a Bend>,
    is_direct: bool,
}

impl Sweep<'_> {
    /// "direct reads", "commits through the page cache".
    fn title(&self) -> String {
        let first = self.results[0];
        let what = match (first.commit, first.direction) {
            (true, _) => "commits",
            (false, Direction::Read) => "reads",
            (false, Direction::Write) => "writes",
        };
        let title = if self.is_direct {
            format!("direct {what}")
        } else {
            format!("{what} through the page cache")
        };
        match &first.on {
            Some(on) => format!("{title} on {on}"),
            None => title,
        }
    }

    /// Reads are circles, writes squares, commits triangles; what goes through the cache is hollow and
    /// dashed.
    fn look(&self) -> Look {
        let first = self.results[0];
        Look {
            shape: match (first.commit, first.direction) {
                (true, _) => Shape::Triangle,
                (false, Direction::Read) => Shape::Circle,
                (false, Direction::Write) => Shape::Square,
            },
            hollow: !self.is_direct,
        }
    }
}

/// The sweeps of a run: those of which a bend was told, and those that were only measured.
pub fn sweeps(run: &Run) -> Vec<Sweep<'_>> {
    let bends = run.findings.iter().filter_map(|finding| match finding {
        Finding::Bend(bend) => Some(bend),
        _ => None,
    });
    let mut sweeps: Vec<Sweep> = bends
        .map(|bend| Sweep {
            results: bend.jobs.iter().filter_map(|name| run.job(name)).collect(),
            bend: Some(bend),
            is_direct: bend.is_direct,
        })
        .collect();
    let mut others: Vec<Sweep> = Vec::new();
    for result in &run.results {
        let told = |sweep: &Sweep| sweep.results.iter().any(|known| std::ptr::eq(*known, result));
        if !moves(result) || sweeps.iter().any(told) {
            continue;
        }
        match others.iter_mut().find(|s| alike(s.results[0], result)) {
            Some(sweep) => sweep.results.push(result),
            None => others.push(Sweep {
                results: vec![result],
                bend: None,
                is_direct: run.access_of(result) == Access::Direct,
            }),
        }
    }
    for sweep in &mut others {
        sweep.results.sort_by_key(|result| result.block_bytes);
        sweep.results.dedup_by_key(|result| result.block_bytes);
    }
    others.retain(|sweep| sweep.results.len() >= A_SWEEP);
    sweeps.extend(others);
    sweeps.retain_mut(|sweep| {
        sweep.results.retain(|result| moves(result));
        sweep.results.len() >= 2
    });
    sweeps
}

fn moves(result: &JobResult) -> bool {
    result.bytes_per_second.value > 0.0 && result.block_bytes > 0
}

/// Whether two results differ at most in their block size.
fn alike(a: &JobResult, b: &JobResult) -> bool {
    (a.operation, a.direction, a.pattern, a.queue_depth, a.commit)
        == (b.operation, b.direction, b.pattern, b.queue_depth, b.commit)
        && (&a.access, &a.content, &a.on, a.copies) == (&b.access, &b.content, &b.on, b.copies)
}

/// The section; nothing where there is no sweep.
pub fn draw(sweeps: &[Sweep]) -> Markup {
    let all = || sweeps.iter().flat_map(|sweep| sweep.results.iter().copied());
    let rates = all().flat_map(|r| {
        let rate = &r.bytes_per_second;
        [rate.low, rate.value, rate.high]
    });
    let sizes = all().map(|r| f64::from(r.block_bytes));
    let (Some(x), Some(y)) = (
        Axis::powers_of_two("block size, logarithmic", sizes, size),
        Axis::log("bytes per second, logarithmic", rates, short_rate),
    ) else {
        return html! {};
    };
    let plot = Plot { x, y, size: "tall wide" };
    let looks: Vec<(Look, String)> = sweeps.iter().map(|s| (s.look(), s.title())).collect();
    let keys = looks.iter().map(|(look, title)| (*look, title.as_str()));
    let has_bend = sweeps.iter().any(|sweep| sweep.bend.is_some());
    section(
        "block-size",
        "Block size",
        html! {
            p class="note" {
                "Small operations cost their set-up, large ones their bytes. The bend is the size at which "
                "both cost the same: at a fourth of it the rate is a fifth, at four times it is four fifths "
                "of what it can be."
            }
            @for bend in sweeps.iter().filter_map(|sweep| sweep.bend) {
                (unless_on_top(&sentence(&Finding::Bend(bend.clone()))))
            }
            figure {
                figcaption { "Bytes per second against block size" }
                (curves(sweeps, &plot))
                (key(keys))
                (key_of_marks(all(), has_bend.then_some("bend, with its interval")))
            }
            (folded("Numbers of these curves", table(sweeps)))
        },
    )
}

/// A block size for an axis: "64 B", "16 MiB".
fn size(bytes: f64) -> String {
    words::block(bytes as u32)
}

fn curves(sweeps: &[Sweep], plot: &Plot) -> Markup {
    let mut labels = Labels::default();
    // At the bend half of the time is set-up, so half of the rate is left.
    let bends: Vec<(&Sweep, &Estimate, f64)> = sweeps
        .iter()
        .filter_map(|sweep| {
            let bend = sweep.bend.filter(|bend| plot.x.holds(bend.block_bytes.value))?;
            Some((sweep, &bend.block_bytes, bend.bytes_per_second.value / 2.0))
        })
        .collect();
    for (_, at, rate) in &bends {
        labels.keep_off(plot, at.value, *rate);
    }
    let content = html! {
        @for sweep in sweeps {
            @let points = sweep.results.iter().map(|r| (f64::from(r.block_bytes), r.bytes_per_second.value));
            (plot.line(points, if sweep.look().hollow { "joined dashed" } else { "joined" }))
            @for r in &sweep.results {
                @let (x, rate) = (f64::from(r.block_bytes), &r.bytes_per_second);
                (plot.whisker_y(x, rate.low, rate.high, sureness(r)))
                (plot.point(x, rate.value, sweep.look(), &format!(
                    "{}, {}: {} {}", sweep.title(), words::block(r.block_bytes), rate_si(rate.value), words::plus_minus(rate)
                )))
            }
        }
        @for (sweep, at, rate) in &bends {
            @let words = bytes_iec(at.value as u64);
            (plot.whisker_x(at.low, at.high, *rate, "whisker"))
            (plot.found(at.value, *rate, &format!("{} bend at {words} {}", sweep.title(), words::plus_minus(at))))
            (labels.place(plot, at.value, *rate, (9.0, 16.0), &words))
        }
    };
    let label = format!(
        "Bytes per second against block size: {}. The numbers are in the table below.",
        sweeps.iter().map(described).collect::<Vec<_>>().join("; ")
    );
    plot.draw(&label, content)
}

/// One curve for a screen reader.
fn described(sweep: &Sweep) -> String {
    let at = |r: &JobResult| {
        format!("{} at {}", rate_si(r.bytes_per_second.value), words::block(r.block_bytes))
    };
    let bend = sweep.bend.map_or(String::new(), |bend| {
        format!(", bend at {}", bytes_iec(bend.block_bytes.value as u64))
    });
    match (sweep.results.first(), sweep.results.last()) {
        (Some(first), Some(last)) => {
            format!("{} from {} to {}{bend}", sweep.title(), at(first), at(last))
        }
        _ => sweep.title(),
    }
}

/// Sizes down, curves across.
fn table(sweeps: &[Sweep]) -> Markup {
    let mut sizes: Vec<u32> =
        sweeps.iter().flat_map(|s| s.results.iter().map(|r| r.block_bytes)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let titles: Vec<String> = sweeps.iter().map(Sweep::title).collect();
    let columns: Vec<&str> = titles.iter().map(String::as_str).collect();
    let rows = sizes.iter().map(|size| {
        let cells = sweeps.iter().map(|sweep| {
            let result = sweep.results.iter().find(|r| r.block_bytes == *size);
            result.map_or("–".to_string(), |r| {
                format!(
                    "{} {}",
                    glued(&rate_si(r.bytes_per_second.value)),
                    glued(&words::plus_minus(&r.bytes_per_second))
                )
            })
        });
        (words::block(*size), cells.collect())
    });
    super::jobs::numbers("Bytes per second at each block size", "block size", &columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn curves_are_told_apart_by_symbol_and_line() {
        let run = fixture::block_size_run();
        let sweeps = sweeps(&run);
        let looks: Vec<Look> = sweeps.iter().map(Sweep::look).collect();
        assert_eq!(looks.len(), 3);
        assert!(looks[0] != looks[1] && looks[1] != looks[2] && looks[0] != looks[2]);
        assert!(looks[2].hollow, "through the cache");
        assert_eq!(sweeps[2].title(), "commits through the page cache");
    }

    #[test]
    fn no_label_covers_the_mark_of_another_bend() {
        let page = super::draw(&sweeps(&fixture::block_size_run())).0;
        let labels: Vec<&str> = page.split("class=\"label").skip(1).collect();
        let has = |words: &str| {
            let mut labels = labels.iter();
            labels.any(|label| label.split("</text>").next().unwrap_or("").contains(words))
        };
        // The bend of writes is just beside that of reads; their numbers stand in the sentences.
        assert!(!has("11.0 KiB"), "{labels:?}");
        assert!(has("72.1 KiB"), "{labels:?}");
    }

    #[test]
    fn a_curve_is_found_without_its_bend_and_a_table_of_three_sizes_is_none() {
        let mut run = fixture::block_size_run();
        run.findings.clear();
        assert_eq!(sweeps(&run).len(), 3);
        assert!(sweeps(&fixture::record_run()).is_empty());
        assert!(sweeps(&fixture::queue_depth_run()).is_empty());
    }
}
