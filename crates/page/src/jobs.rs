//! The results of a run with titles that tell them apart, and the tables of their numbers.

use maud::{Markup, html};
use rubus_vocabulary::result::{Access, JobResult, Run};

use rubus_draw::words;

/// A result and what it is called on this page.
#[derive(Clone, Debug)]
pub struct Named<'a> {
    /// Differs from the titles of all other results of the run.
    pub title: String,
    pub result: &'a JobResult,
}

/// All results of a run. Where plain words would be the same for two, the name of the job in its
/// suite stands behind them.
pub fn named(run: &Run) -> Vec<Named<'_>> {
    let plain: Vec<String> = run.results.iter().map(|r| plain_title(run, r)).collect();
    let same = |title: &String| plain.iter().filter(|other| *other == title).count() > 1;
    let titles = plain.iter().zip(&run.results).map(|(title, result)| {
        if same(title) { format!("{title} ({})", result.job) } else { title.clone() }
    });
    titles.zip(&run.results).map(|(title, result)| Named { title, result }).collect()
}

/// The title in plain words, with what is special about this job in its run.
fn plain_title(run: &Run, result: &JobResult) -> String {
    let mut title = words::job_title(result);
    if result.access == Some(Access::Buffered) && run.target.access == Access::Direct {
        title.push_str(" through the cache");
    }
    if let Some(content) = result.content.as_ref().filter(|c| **c != run.target.content) {
        title.push_str(", ");
        title.push_str(content);
    }
    if let Some(copies) = result.copies.filter(|copies| *copies > 1) {
        title.push_str(&format!(", {copies} copies"));
    }
    if let Some(on) = &result.on {
        title.push_str(" on ");
        title.push_str(on);
    }
    title
}

/// A section of the page with its heading.
pub fn section(id: &str, title: &str, content: Markup) -> Markup {
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (title) }
            (content)
        }
    }
}

/// A table of numbers: a title and one cell per column for each row.
pub fn numbers(
    caption: &str,
    first: &str,
    columns: &[&str],
    rows: impl IntoIterator<Item = (String, Vec<String>)>,
) -> Markup {
    html! {
        div class="scroll" role="region" aria-label=(caption) tabindex="0" {
            table {
                caption { span { (caption) } }
                thead { tr {
                    th scope="col" { (first) }
                    @for title in columns { th scope="col" class="n" { (title) } }
                } }
                tbody {
                    @for (title, cells) in rows {
                        tr {
                            th scope="row" { (title) }
                            @for cell in cells { td class="n" { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

/// Numbers that are at hand without filling the page.
pub fn folded(summary: &str, content: Markup) -> Markup {
    html! { details { summary { (summary) } (content) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_results_of_a_run_have_the_same_title() {
        let mut runs = fixture::suite_runs();
        runs.push(fixture::slow_sd_card_run());
        for run in runs {
            let titles: BTreeSet<String> = named(&run).into_iter().map(|n| n.title).collect();
            assert_eq!(titles.len(), run.results.len(), "{}: {titles:#?}", run.suite);
        }
    }
}
