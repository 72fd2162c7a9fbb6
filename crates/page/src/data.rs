//! The run itself inside its page, so that a page can be read back and compared.

use maud::{Markup, PreEscaped, html};
use rubus_verdict::verdict::Verdict;
use rubus_vocabulary::checked_json;
use rubus_vocabulary::result::{JobResult, Run, Series};
use serde::Serialize;
use serde_json::Value;

/// The id of the element that holds the JSON.
pub const ID: &str = "data";

/// Series of more than this many bins are made coarser in the page; `rubus bench --json` has all.
const MAX_BINS: usize = 1200;

/// The run and its verdict as JSON, in an element that no browser runs or shows.
pub fn embed(run: &Run, verdict: &Verdict) -> Markup {
    let mut run = run.clone();
    run.results.iter_mut().for_each(coarsen);
    let Ok(mut value) = run.to_json() else {
        return html! {};
    };
    if let Ok(verdict) = serde_json::to_value(verdict) {
        value["verdict"] = verdict;
    }
    element(&value)
}

/// What another page was made of as JSON, in the same kind of element.
pub fn embed_json(value: &(impl Serialize + ?Sized)) -> Markup {
    match serde_json::to_value(value) {
        Ok(value) => element(&value),
        Err(_) => html! {},
    }
}

fn element(value: &Value) -> Markup {
    let json = value.to_string();
    let json = escaped(&checked_json::escaped(&json));
    html! { script type="application/json" id=(ID) { (PreEscaped(json)) } }
}

/// JSON in which nothing can end the element that it stands in.
fn escaped(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            // These stand in JSON only within strings, where an escape means the same.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                safe.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            other => safe.push(other),
        }
    }
    safe
}

/// Puts neighbouring bins together until there are few enough. No byte is lost.
fn coarsen(result: &mut JobResult) {
    let Some(series) = result.series.as_mut().filter(|s| s.bytes.len() > MAX_BINS) else {
        return;
    };
    let together = series.bytes.len().div_ceil(MAX_BINS);
    *series = Series {
        bin_s: series.bin_s * together as f64,
        bytes: series.bytes.chunks(together).map(|bins| bins.iter().sum()).collect(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_verdict::verdict::verdict;

    fn json_in(page: &str) -> &str {
        let start = page.find('>').expect("the tag ends") + 1;
        page[start..].strip_suffix("</script>").expect("and is closed")
    }

    #[test]
    fn the_run_can_be_read_back_from_the_page() {
        let mut run = fixture::failed_run();
        run.target.named = "</script><script>alert(1)</script>&amp; ]]> \u{2028}".into();
        let text = embed(&run, &verdict(&run)).into_string();
        let json = json_in(&text);
        assert!(!json.contains(['<', '>', '&']));
        let back: Run = serde_json::from_str(json).expect("a run");
        assert!(back == run);
    }

    #[test]
    fn an_hour_is_kept_coarsely_with_all_its_bytes() {
        let mut run = fixture::slow_sd_card_run();
        run.results[0].series = Some(Series { bin_s: 0.1, bytes: (0..36_000).collect() });
        let text = embed(&run, &verdict(&run)).into_string();
        let back: Run = serde_json::from_str(json_in(&text)).expect("a run");
        let series = back.results[0].series.as_ref().expect("a series");
        assert_eq!(series.bytes.len(), 1200);
        assert!((series.bin_s - 3.0).abs() < 1e-9);
        assert_eq!(series.bytes.iter().sum::<u64>(), (0..36_000_u64).sum::<u64>());
        assert_eq!(back.results[1].series, run.results[1].series);
    }
}
