//! The pipe picture in text: top to bottom, each stage as wide as what it lets through, all on one scale.

use crate::pipes::{Picture, Stage, WidthScale};
use rubus_vocabulary::units::{iops, rate_si};

use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{clean, pad_left, pad_right, shorten, width};

/// Letters of the drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Letters {
    /// Blocks and lines, for every terminal with UTF-8.
    Unicode,
    /// For terminals and files without.
    Ascii,
}

/// Columns of the drawing; odd, so that it has a middle.
const DRAWN: usize = 27;
/// Columns of a capacity: "about 22.5 MB/s".
const CAPACITY: usize = 15;
/// No line is wider.
const COLUMNS: usize = 80;

/// A stage in letters.
struct Marks {
    full: char,
    wanted: char,
    cut: [char; 2],
    narrowest: &'static str,
    left_out: &'static str,
}

impl Letters {
    /// Those that the reader's terminal has.
    fn of(style: Style) -> Letters {
        if style.ascii { Letters::Ascii } else { Letters::Unicode }
    }

    fn marks(self) -> Marks {
        match self {
            Letters::Unicode => Marks {
                full: '█',
                wanted: '┊',
                cut: ['◀', '▶'],
                narrowest: "← narrowest",
                left_out: "…",
            },
            Letters::Ascii => Marks {
                full: '#',
                wanted: ':',
                cut: ['<', '>'],
                narrowest: "<- narrowest",
                left_out: ".",
            },
        }
    }
}

/// The picture, one line per stage, and what it means below.
pub fn lines(picture: &Picture, scale: WidthScale, style: Style) -> Vec<String> {
    let marks = Letters::of(style).marks();
    let mut lines: Vec<String> =
        picture.stages.iter().map(|stage| line(stage, scale, &marks, style)).collect();
    lines.push(style.paint(Tone::Faint, &meaning(&[picture], scale, &marks)));
    lines
}

/// Several pictures below one another on one scale, each under its name; the meaning once.
pub fn beside(named: &[(&str, &Picture)], style: Style) -> Vec<String> {
    let pictures: Vec<&Picture> = named.iter().map(|(_, picture)| *picture).collect();
    let scale = WidthScale::of(&pictures);
    let marks = Letters::of(style).marks();
    let mut lines = Vec::new();
    for (name, picture) in named {
        lines.push(format!("  {}", shorten(&clean(name), COLUMNS - 2)));
        let stages = picture.stages.iter();
        lines.extend(stages.map(|stage| line(stage, scale, &marks, style)));
    }
    lines.push(style.paint(Tone::Faint, &meaning(&pictures, scale, &marks)));
    lines
}

fn line(stage: &Stage, scale: WidthScale, marks: &Marks, style: Style) -> String {
    let drawing: String = drawing(stage, scale, marks).into_iter().collect();
    let tone = if stage.is_narrowest { Tone::Warn } else { Tone::Plain };
    let mark = if stage.is_narrowest { format!(" {}", marks.narrowest) } else { String::new() };
    let capacity = pad_left(&capacity(stage), CAPACITY);
    let room = COLUMNS - 2 - DRAWN - 2 - CAPACITY - 2 - width(&mark);
    let name = shorten(&clean(&stage.name), room).replace('…', marks.left_out);
    format!("  {}  {capacity}  {name}{mark}", style.paint(tone, &pad_right(&drawing, DRAWN)))
}

/// "22.6 MB/s", "83.3 /s"; "about 23 MB/s" where it was not measured.
pub fn capacity(stage: &Stage) -> String {
    let value = if stage.is_in_bytes {
        rate_si(stage.capacity.value)
    } else {
        format!("{} /s", iops(stage.capacity.value))
    };
    if stage.is_measured { value } else { format!("about {value}") }
}

/// The width of a share in columns: odd and at least one, so that it keeps to the middle.
fn columns(share: f64) -> usize {
    let half = (share * (DRAWN - 1) as f64 / 2.0).round() as usize;
    2 * half + 1
}

fn drawing(stage: &Stage, scale: WidthScale, marks: &Marks) -> Vec<char> {
    let mut drawn = vec![' '; DRAWN];
    let middle = DRAWN / 2;
    let wanted = columns(scale.wanted()) / 2;
    drawn[middle - wanted] = marks.wanted;
    drawn[middle + wanted] = marks.wanted;
    let half = columns(scale.share(stage.width)) / 2;
    for letter in &mut drawn[middle - half..=middle + half] {
        *letter = marks.full;
    }
    if scale.cuts(stage.width) {
        drawn[0] = marks.cut[0];
        drawn[DRAWN - 1] = marks.cut[1];
    }
    drawn
}

fn meaning(pictures: &[&Picture], scale: WidthScale, marks: &Marks) -> String {
    let mut stages = pictures.iter().flat_map(|picture| &picture.stages);
    let cut = if stages.any(|stage| scale.cuts(stage.width)) {
        format!("; {}{} wider than drawn", marks.cut[0], marks.cut[1])
    } else {
        String::new()
    };
    format!("  Width: what it lets through; {} just enough{cut}.", marks.wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures::slow_sd_card_run;

    fn picture() -> Picture {
        Picture::of(&slow_sd_card_run()).expect("something was measured")
    }

    const ASCII: Style = Style { ascii: true, ..Style::PLAIN };

    fn shown(style: Style) -> String {
        let picture = picture();
        lines(&picture, WidthScale::of(&[&picture]), style).join("\n")
    }

    #[test]
    fn a_slow_card() {
        insta::assert_snapshot!(shown(Style::PLAIN));
    }

    #[test]
    fn a_slow_card_in_ascii() {
        let text = shown(ASCII);
        assert!(text.is_ascii(), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn before_and_after_on_one_scale() {
        let before = picture();
        let mut after = before.clone();
        for stage in &mut after.stages {
            stage.width *= 6.0;
            stage.capacity = stage.capacity.scaled(6.0);
        }
        let text = beside(&[("before", &before), ("after", &after)], Style::PLAIN);
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn no_line_is_wider_and_nothing_moves_the_cursor() {
        let mut picture = picture();
        picture.stages[0].name = "bus\x1b[2J of a vendor with many words ".repeat(9);
        let scale = WidthScale::of(&[&picture]);
        for style in [Style::PLAIN, ASCII] {
            for line in lines(&picture, scale, style) {
                assert!(width(&line) <= COLUMNS, "{line}");
                assert!(!line.contains('\x1b'));
            }
        }
    }
}
