//! A trial as text: the answer, what to do, the table, what was not tried.

use rubus_draw::Style;
use rubus_draw::layout::joined;
use rubus_draw::next_step;
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{hang, wrap};
use rubus_vocabulary::units::bytes_iec;

use crate::decide::Word;
use crate::report::{CandidateDocument, EffectDocument, TuneDocument, percent};
use crate::setting::Risk;

/// The text of a trial or of a list.
pub fn render(document: &TuneDocument, style: Style) -> String {
    let columns = style.columns;
    let mut answer = wrap(&document.answer, columns);
    answer.extend(next_step::lines(&document.next, style));
    let mut remarks: Vec<String> = Vec::new();
    if let Some(why) = &document.ended {
        remarks.push(format!("The trial did not come to its end: {why}."));
    }
    remarks.extend(document.unrestored.iter().map(|words| format!("Attention: {words}.")));
    remarks.extend(document.candidates.iter().filter(|one| one.is_winner).filter_map(cost));
    remarks.extend(document.candidates.iter().filter_map(owner));
    remarks.sort();
    remarks.dedup();
    let remarks = remarks.iter().flat_map(|words| wrap(words, columns)).collect();
    let foot = if document.candidates.iter().any(|one| !one.effects.is_empty()) {
        format!(
            "Intervals hold together, at 95 %. Took {}, wrote {}. All settings were put back.",
            rubus_draw::words::span(document.seconds),
            bytes_iec(document.bytes_written)
        )
    } else {
        format!(
            "Takes at most {}, writes at most {} to a nameless file that is gone at the end.",
            rubus_draw::words::span(document.seconds),
            bytes_iec(document.bytes_written)
        )
    };
    let foot = if document.unrestored.is_empty() {
        foot
    } else {
        foot.replace(" All settings were put back.", "")
    };
    let foot = if document.candidates.is_empty() { Vec::new() } else { wrap(&foot, columns) };
    joined([
        answer,
        remarks,
        table(document, style),
        not_judged(document, columns),
        foot,
        not_tried(document, columns),
    ])
}

fn table(document: &TuneDocument, style: Style) -> Vec<String> {
    let is_list = document.candidates.iter().all(|one| one.effects.is_empty());
    if is_list {
        return document
            .candidates
            .iter()
            .flat_map(|one| {
                let works: Vec<&str> = one.works.iter().map(|work| work.title()).collect();
                let words = format!("{}; seen by: {}", one.does, works.join(", "));
                let mut lines = vec![title(one)];
                lines.extend(hang("  ", &words, style.columns));
                lines
            })
            .collect();
    }
    let mut table = Table::new(&[
        ("", Align::Left),
        ("speed", Align::Left),
        ("", Align::Left),
        ("rounds", Align::Right),
    ])
    .indented(2);
    for one in &document.candidates {
        table.heading(&title(one));
        for effect in &one.effects {
            table.row(vec![
                Cell::from(effect.work.title()),
                Cell::from(change(effect)),
                Cell::from(word(effect)),
                Cell::from(effect.rounds.to_string()),
            ]);
        }
    }
    table.lines(style)
}

/// "read-ahead from 128 KiB to 2048 KiB".
fn title(one: &CandidateDocument) -> String {
    let unit = one.setting.unit();
    format!("{} from {}{unit} to {}{unit}", one.setting.title(), one.from, one.to)
}

fn change(one: &EffectDocument) -> String {
    let Some(effect) = one.effect.filter(|_| one.trouble.is_none()) else {
        return "-".into();
    };
    if one.word == Word::NoDifference {
        return format!("less than {} %", percent(effect.largest_difference()));
    }
    /// An interval whose ends differ by more than this factor says nothing.
    const WIDE: f64 = 4.0;
    if effect.high / effect.low > WIDE {
        return "not known".into();
    }
    let signed = |share: f64| {
        let text = percent(share);
        if share > 0.0 { format!("+{text}") } else { text }
    };
    format!(
        "{} % ({} to {} %)",
        signed(effect.ratio - 1.0),
        signed(effect.low - 1.0),
        signed(effect.high - 1.0)
    )
}

fn word(one: &EffectDocument) -> &'static str {
    if one.trouble.is_some() {
        return "not judged";
    }
    match one.word {
        Word::Helps => "helps",
        Word::Hurts => "hurts",
        Word::NoDifference => "no difference",
        Word::NotSettled => "not settled",
    }
}

fn cost(one: &CandidateDocument) -> Option<String> {
    let cost = match one.risk {
        Risk::None => return None,
        Risk::Latency => "other requests may wait longer",
        Risk::Heat => "more heat and power",
    };
    Some(format!("What {} {} may cost: {cost}.", one.setting.title(), one.to))
}

fn owner(one: &CandidateDocument) -> Option<String> {
    let files = one.set_by.join(", ");
    (!files.is_empty())
        .then(|| format!("{} is set by {files}: change it there.", one.setting.title()))
}

fn not_judged(document: &TuneDocument, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for one in &document.candidates {
        let troubles = one.effects.iter().filter_map(|effect| {
            Some(format!("{}: {}", effect.work.title(), effect.trouble.as_ref()?))
        });
        for words in troubles {
            let line = format!("not judged: {} {}, {words}", one.setting.title(), one.to);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines.iter().flat_map(|line| hang("", line, columns)).collect()
}

fn not_tried(document: &TuneDocument, columns: usize) -> Vec<String> {
    if document.not_tried.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["Not tried:".to_string()];
    for one in &document.not_tried {
        lines.extend(hang("  ", &format!("{}: {}", one.setting, one.why), columns));
    }
    lines
}
