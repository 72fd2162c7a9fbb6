//! The texts of comparisons, as they are read.

use super::*;
use crate::compare::{Subject, compare};
use crate::reference;
use rubus_draw::text::width;
use rubus_fixtures as fixture;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::result::Figures;

fn two_runs() -> Comparison {
    compare(&[
        Subject::of_run("run 3", &fixture::slow_sd_card_run()),
        Subject::of_run("run 7", &fixture::slow_sd_card_run_a_day_later()),
    ])
}

fn with_reference() -> Comparison {
    let reference = reference::by_id("pi3-card-f2fs").expect("it is there");
    compare(&[
        reference::subject(reference),
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
    let same = compare(&[Subject::of_run("run 3", &run), Subject::of_run("run 3", &run)]);
    let text = render(&same, Style::PLAIN, 80);
    assert!(text.contains("are the same, as far as known"), "{text}");
    assert!(!text.contains("faster") && !text.contains("slower"), "{text}");
}

#[test]
fn two_machines() {
    let machine = fixture::slow_sd_card_run().machine;
    let other = fixture::failed_run().machine;
    let comparison =
        compare(&[Subject::of_machine("desk", &machine), Subject::of_machine("attic", &other)]);
    insta::assert_snapshot!(render(&comparison, Style::PLAIN, 80));
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    let mut wild = fixture::slow_sd_card_run_a_day_later();
    wild.machine.board.model =
        rubus_vocabulary::fact::Fact::known("a board of many words\x1b[31m ".repeat(9), "");
    let name = "a/very/long/path/to/a/result/of/some/run.json";
    let three = compare(&[
        Subject::of_run(name, &fixture::slow_sd_card_run()),
        Subject::of_run("run 7", &wild),
        Subject::of_run("run 12", &fixture::slow_sd_card_run_a_day_later()),
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
    use rubus_vocabulary::processor::ciphers::{Algorithm, Place, Row, Work};
    use rubus_vocabulary::processor::compression::Cut;
    let mut run = fixture::processor_run();
    let Figures::Processor(processor) = &mut run.figures else {
        panic!("it is of a processor");
    };
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
    let sums = [Algorithm::Sha256, Algorithm::Xxh3, Algorithm::Xxh64, Algorithm::Crc32c];
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
            .map(|(cut, method)| rubus_vocabulary::processor::compression::Row {
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
                if title == line {
                    heading = line
                } else if line.starts_with("  ") {
                    read.push((heading, title))
                } else {
                    read.push(("", title))
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
    let Figures::Processor(processor) = &mut other.figures else {
        panic!("it is of a processor");
    };
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
