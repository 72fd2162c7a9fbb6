//! The texts of comparisons, as they are read.

use super::*;
use crate::text::width;
use rubus_core::compare::{Subject, compare};
use rubus_core::estimate::Estimate;
use rubus_core::fixture;
use rubus_core::reference::Reference;
use rubus_core::result::{Access, Run};
use rubus_core::verdict::job;

/// The same card on another board a day later: sequential reads nearly twice as fast, commits
/// slower.
fn other() -> Run {
    let mut run = fixture::slow_sd_card_run();
    run.started = "2026-11-22T09:00:00Z".into();
    run.target.filesystem = Some("btrfs".into());
    run.target.access = Access::Buffered;
    run.doubts.pop();
    for result in &mut run.results {
        let factor = match result.job.as_str() {
            job::SEQUENTIAL_READ => 1.94,
            job::COMMIT => 0.48,
            job::RANDOM_READ => 1.05,
            _ => 1.01,
        };
        let scale = |e: &Estimate| Estimate::new(e.value * factor, e.low * factor, e.high * factor);
        result.bytes_per_second = scale(&result.bytes_per_second);
        result.iops = scale(&result.iops);
        let ns = |ns: Option<u64>| ns.map(|ns| (ns as f64 / factor) as u64);
        result.latency_ns.p50 = ns(result.latency_ns.p50);
        result.latency_ns.p99 = ns(result.latency_ns.p99);
    }
    run
}

fn two_runs() -> Comparison {
    compare(&[
        Subject::of_run("run 3", &fixture::slow_sd_card_run()),
        Subject::of_run("run 7", &other()),
    ])
}

fn with_reference() -> Comparison {
    let reference = Reference::by_id("pi3-card-f2fs").expect("it is there");
    compare(&[
        reference.subject(),
        Subject::of_run("run 3", &fixture::slow_sd_card_run()),
    ])
}

#[test]
fn two_runs_side_by_side() {
    insta::assert_snapshot!(render(&two_runs(), Style::PLAIN, 80));
}

#[test]
fn a_run_against_published_figures() {
    insta::assert_snapshot!(render(&with_reference(), Style::PLAIN, 80));
}

#[test]
fn a_run_against_itself() {
    let run = fixture::slow_sd_card_run();
    let same = compare(&[
        Subject::of_run("run 3", &run),
        Subject::of_run("run 3", &run),
    ]);
    let text = render(&same, Style::PLAIN, 80);
    assert!(text.contains("are the same, as far as known"), "{text}");
    assert!(
        !text.contains("faster") && !text.contains("slower"),
        "{text}"
    );
}

#[test]
fn two_machines() {
    let machine = fixture::slow_sd_card_run().machine;
    let other = fixture::failed_run().machine;
    let comparison = compare(&[
        Subject::of_machine("desk", &machine),
        Subject::of_machine("attic", &other),
    ]);
    insta::assert_snapshot!(render(&comparison, Style::PLAIN, 80));
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    let mut wild = other();
    wild.machine.board.model =
        rubus_core::fact::Fact::known("a board of many words\x1b[31m ".repeat(9), "");
    let name = "a/very/long/path/to/a/result/of/some/run.json";
    let three = compare(&[
        Subject::of_run(name, &fixture::slow_sd_card_run()),
        Subject::of_run("run 7", &wild),
        Subject::of_run("run 12", &other()),
    ]);
    for comparison in [two_runs(), with_reference(), three] {
        for line in render(&comparison, Style::PLAIN, 80).lines() {
            assert!(width(line) <= 80, "{}: {line}", width(line));
            assert!(!line.contains('\x1b'));
        }
    }
    for line in references(Style::PLAIN).lines() {
        assert!(width(line) <= 80, "{line}");
    }
}

/// Two measurements of a processor that have every row there can be: each algorithm, each method, on one core and on all.
fn two_processors() -> Comparison {
    use rubus_core::processor::ciphers::{Algorithm, Place, Row, Work};
    use rubus_core::processor::compression::Cut;
    let mut run = fixture::processor_run();
    let processor = run.processor.as_mut().expect("it is of a processor");
    let ciphers = processor.ciphers.as_mut().expect("they were measured");
    let example = ciphers.rows[0].clone();
    ciphers.rows.clear();
    let enciphering = [
        Algorithm::AesXts256,
        Algorithm::AesXts512,
        Algorithm::Aes256Gcm,
        Algorithm::ChaCha20Poly1305,
        Algorithm::Adiantum,
    ];
    let sums = [
        Algorithm::Sha256,
        Algorithm::Xxh3,
        Algorithm::Xxh64,
        Algorithm::Crc32c,
    ];
    for place in [Place::Program, Place::Kernel] {
        for (algorithms, work) in [
            (&enciphering[..], Work::Encrypt),
            (&enciphering, Work::Decrypt),
            (&sums, Work::Digest),
        ] {
            for block_bytes in [65536, 16384, 4096] {
                ciphers.rows.extend(algorithms.iter().map(|algorithm| Row {
                    algorithm: *algorithm,
                    work,
                    place,
                    block_bytes,
                    ..example.clone()
                }));
            }
        }
    }
    let compression = processor.compression.as_mut().expect("it was measured");
    for sample in &mut compression.samples {
        let example = sample.rows[0].clone();
        let cuts = [Cut::Extents, Cut::Pages { bytes: 4096 }];
        let all = cuts.into_iter().flat_map(|cut| {
            let methods = cut.all_methods().into_iter();
            methods.map(move |method| (cut, method))
        });
        sample.rows = all
            .map(|(cut, method)| rubus_core::processor::compression::Row {
                cut,
                method,
                ..example.clone()
            })
            .collect();
    }
    compare(&[
        Subject::of_run("rubus-armv7 (32 bits, arm)", &run),
        Subject::of_run("rubus (64 bits, aarch64)", &run),
    ])
}

/// The lines below one that begins so, up to the next empty one.
fn part<'a>(text: &'a str, begin: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| !line.starts_with(begin));
    lines.skip(1).take_while(|line| !line.is_empty()).collect()
}

#[test]
fn no_two_rows_of_a_processor_read_the_same() {
    let comparison = two_processors();
    assert!(comparison.rows.len() > 200, "{}", comparison.rows.len());
    for columns in [80, 100, 120, 200] {
        let text = render(&comparison, Style::PLAIN, columns);
        assert!(text.lines().all(|line| width(line) <= columns), "{text}");
        assert!(!text.contains('…'), "something is cut:\n{text}");
        for begin in ["Throughput", "Ratio of the throughput"] {
            let mut heading = "";
            let mut read = Vec::new();
            for line in part(&text, begin) {
                // A row has a figure or a mark behind two spaces; a heading has words alone.
                let title = line.trim_start().split("  ").next().unwrap_or_default();
                match title == line {
                    true => heading = line,
                    false if line.starts_with("  ") => read.push((heading, title)),
                    false => read.push(("", title)),
                }
            }
            assert_eq!(read.len(), comparison.rows.len(), "{begin} at {columns}");
            read.sort_unstable();
            let twins: Vec<_> = read.windows(2).filter(|two| two[0] == two[1]).collect();
            assert!(twins.is_empty(), "{begin} at {columns}: {twins:?}");
        }
    }
}

#[test]
fn two_processors_on_a_narrow_terminal_and_on_a_wide_one() {
    let run = fixture::processor_run();
    let mut other = run.clone();
    let processor = other.processor.as_mut().expect("it is of a processor");
    processor.pointer_bits = 32;
    processor.architecture = "arm".into();
    processor.linpack = None;
    let ssh = &mut processor.ssh.as_mut().expect("it was measured").rows;
    for row in ssh {
        let Estimate { value, low, high } = row.rate.per_second;
        row.rate.per_second = Estimate::new(0.8 * value, 0.8 * low, 0.8 * high);
    }
    let comparison = compare(&[
        Subject::of_run("rubus-armv7 (32 bits, arm)", &other),
        Subject::of_run("rubus (64 bits, aarch64)", &run),
    ]);
    insta::assert_snapshot!(render(&comparison, Style::PLAIN, 80));
    insta::assert_snapshot!(
        "two_processors_at_120_columns",
        render(&comparison, Style::PLAIN, 120)
    );
}

#[test]
fn the_list_of_references() {
    insta::assert_snapshot!(references(Style::PLAIN));
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(markdown(&two_runs()));
}

#[test]
fn as_csv() {
    let text = csv(&two_runs());
    let columns = text.lines().next().expect("a head").split(',').count();
    assert_eq!(columns, 24);
    insta::assert_snapshot!(text.replace('\r', ""));
}

#[test]
fn as_a_page() {
    let page = crate::page::compare::render(&two_runs());
    // The data comes last, in an element that no browser runs.
    let (page, data) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .expect("the page has its data");
    assert!(data.ends_with("</script></body></html>"));
    for forbidden in ["<script", "http://", "https://", "src="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let body = page.split("</style>").last().expect("a body");
    insta::assert_snapshot!(body.replace("><", ">\n<"));
}

#[test]
fn names_are_escaped_on_the_page() {
    let run = fixture::failed_run();
    let comparison = compare(&[
        Subject::of_run("<b>one</b>", &run),
        Subject::of_run("two", &fixture::slow_sd_card_run()),
    ]);
    let page = crate::page::compare::render(&comparison);
    assert!(!page.contains("<b>"), "{page}");
}
