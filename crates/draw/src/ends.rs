//! Processor time at both ends of a network disk.

use rubus_vocabulary::result::{BothEnds, ClientEnd, EndCost, JobResult, Run, ServerEnd};
use rubus_vocabulary::units::duration_ns;

use crate::layout::heading;
use crate::style::{Style, Tone};
use crate::table::{Align, Table};
use crate::words;

/// Both ends of each job that has them; nothing without any. At most 80 columns.
pub fn table(run: &Run, style: Style) -> Vec<String> {
    let Some(legend) = legend(&run.results) else {
        return Vec::new();
    };
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("", Left),
        ("here/GiB", Right),
        ("server/GiB", Right),
        ("here/request", Right),
        ("server/request", Right),
    ])
    .indented(2);
    for result in &run.results {
        if let Some(ends) = &result.both_ends {
            let mut row = vec![words::job_title(result).into()];
            row.extend(prices(ends).map(Into::into));
            table.row(row);
        }
    }
    let mut lines = vec![heading("Processor time at both ends", style)];
    lines.extend(table.lines(style));
    let faint = |line: &String| style.paint(Tone::Faint, &format!("  {line}"));
    lines.extend(legend.iter().map(faint));
    lines
}

/// What a GiB and a request cost here and at the server, in words.
pub fn prices(ends: &BothEnds) -> [String; 4] {
    let told = |ns: Option<f64>| match ns {
        Some(ns) => duration_ns(ns.max(0.0).round() as u64),
        None => "–".into(),
    };
    let gib = |end: &EndCost| told(end.cpu_s_per_gib.map(|s| s * 1e9));
    // Seconds per million are microseconds each.
    let request = |end: &EndCost| told(end.cpu_s_per_million.map(|s| s * 1e3));
    let (here, server) = (&ends.client, &ends.server);
    [gib(here), gib(server), request(here), request(server)]
}

/// What "here" and "server" mean, in lines; nothing when no job has both ends.
pub fn legend(results: &[JobResult]) -> Option<[String; 2]> {
    let ends = results.iter().find_map(|result| result.both_ends.as_ref())?;
    let here = match ends.client_is {
        ClientEnd::Process => "here: this process, which speaks to the server itself.",
        ClientEnd::Machine => "here: all of this machine, whose kernel speaks to the server.",
    };
    let server = match &ends.server_is {
        ServerEnd::Process => "server: the process of `rubus serve`, as it says itself.".into(),
        ServerEnd::Program(name) => {
            format!("server: all processes called {name} on its machine, as ssh tells.")
        }
        ServerEnd::Machine => "server: all of its machine, as ssh tells.".into(),
    };
    Some([here.into(), server])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn both_ends_of_a_network_disk() {
        let run = fixture::network_run();
        insta::assert_snapshot!(table(&run, Style::PLAIN).join("\n"));
        let kernel =
            BothEnds::new(1.0, (0, 0), (ClientEnd::Machine, ServerEnd::Machine), [1.0, 2.0]);
        assert_eq!(prices(&kernel), ["–"; 4]);
        assert_eq!(table(&fixture::slow_sd_card_run(), Style::PLAIN), [""; 0]);
    }
}
