//! What holds a share of a file server back, as a table of the stages on the way to it.

use crate::nas::{LOAD, NasVerdict, stage_name};
use crate::verdict::Verdict;
use rubus_draw::layout::paragraph;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, clean, hang};
use rubus_draw::words;

/// The stages with their seconds, the narrowest first; none for what is no share.
pub(super) fn stages(verdict: &Verdict, style: Style) -> Vec<String> {
    use Align::{Left, Right};
    let Some(nas) = &verdict.nas else {
        return Vec::new();
    };
    let mut table = Table::new(&[("on the way to the NAS", Left), ("waits", Right), ("", Left)]);
    for stage in &nas.stages {
        let is_narrow = nas.narrow == Some(stage.stage);
        let tone = if is_narrow { Tone::Warn } else { Tone::Plain };
        let arrow = if is_narrow { "←" } else { "" };
        table.row(vec![
            Cell::toned(stage_name(stage.stage), tone),
            words::roughly(stage.seconds).into(),
            Cell::toned(arrow, Tone::Warn),
        ]);
    }
    let mut lines = table.lines(style);
    lines.extend(
        hang("", &bind_units(&format!("{LOAD} ← narrowest.")), style.columns)
            .iter()
            .map(|line| style.paint(Tone::Faint, line)),
    );
    lines
}

/// What else there is to know of it, a paragraph each.
pub(super) fn notes(verdict: &Verdict, style: Style) -> Vec<String> {
    let notes = verdict.nas.iter().flat_map(|nas: &NasVerdict| &nas.notes);
    notes
        .flat_map(|note| paragraph(&clean(note), ""))
        .map(|line| style.paint(Tone::Plain, &line))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::text::checkup::{Detail, render};
    use crate::verdict::verdict;
    use rubus_draw::style::Style;
    use rubus_fixtures::{nas_run, slow_sd_card_run};
    use rubus_vocabulary::doubt::Doubt;

    #[test]
    fn a_share_behind_a_slow_link() {
        let run = nas_run();
        insta::assert_snapshot!(render(&run, &verdict(&run), Detail::Answer, Style::PLAIN));
    }

    #[test]
    fn a_share_behind_a_slow_link_in_full() {
        let run = nas_run();
        insta::assert_snapshot!(render(&run, &verdict(&run), Detail::All, Style::PLAIN));
    }

    /// The server's cache is a part of the answer, and no reservation about it.
    #[test]
    fn the_servers_cache_is_no_reservation() {
        let mut run = nas_run();
        let filesystem = "nfs is served with caches of its own".into();
        run.doubts.push(Doubt::DirectIsBuffered { filesystem });
        let found = verdict(&run);
        assert_eq!(found.reservation, None);
        assert_eq!(Some(&found.next), found.nas.as_ref().map(|nas| &nas.next));
    }

    #[test]
    fn a_disk_has_no_such_table() {
        let run = slow_sd_card_run();
        let text = render(&run, &verdict(&run), Detail::All, Style::PLAIN);
        assert!(!text.contains("NAS"), "{text}");
    }
}
