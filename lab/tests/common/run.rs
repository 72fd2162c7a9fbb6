//! Reading the JSON of a run with nothing but its documentation.

use std::time::Duration;

use serde_json::Value;

use super::pressure::Pressure;

/// A job's result.
#[derive(Clone, Copy, Debug)]
pub struct JobResult<'a>(pub &'a Value);

impl JobResult<'_> {
    /// The job's name.
    pub fn name(&self) -> &str {
        self.0["job"].as_str().expect("a job has a name")
    }

    /// A number of the result.
    pub fn number(&self, field: &str) -> f64 {
        self.0[field].as_f64().unwrap_or_else(|| panic!("{field} is no number in {}", self.0))
    }

    /// An estimate: value, lower and upper bound.
    pub fn estimate(&self, field: &str) -> (f64, f64, f64) {
        let estimate = &self.0[field];
        let number = |key: &str| estimate[key].as_f64();
        (
            number("value").unwrap_or_else(|| panic!("no value in {estimate}")),
            number("low").unwrap_or_else(|| panic!("no lower bound in {estimate}")),
            number("high").unwrap_or(f64::INFINITY),
        )
    }

    /// `read` or `write`.
    pub fn direction(&self) -> &str {
        self.0["direction"].as_str().expect("a job has a direction")
    }

    /// True for commits.
    pub fn is_commit(&self) -> bool {
        self.0["commit"].as_bool().unwrap_or(false)
    }

    /// The pattern as fio calls it.
    pub fn fio_pattern(&self) -> &'static str {
        match (self.0["pattern"].as_str(), self.direction()) {
            (Some("sequential"), "read") => "read",
            (Some("sequential"), _) => "write",
            (_, "read") => "randread",
            _ => "randwrite",
        }
    }

    /// All stalls that the job reports.
    pub fn stalls(&self) -> Vec<Stall> {
        let list = self.0["stalls"].as_array().expect("a job has a list of stalls");
        let stall = |stall: &Value| Stall {
            start_s: stall["start_s"].as_f64().expect("a stall has a start"),
            length_s: stall["length_ms"].as_f64().expect("a stall has a length") / 1e3,
            cause: stall["cause"].as_str().expect("a stall has a cause").to_string(),
        };
        list.iter().map(stall).collect()
    }

    /// Its doubts by their kinds.
    pub fn doubts(&self) -> Vec<String> {
        kinds(&self.0["doubts"])
    }
}

/// A stall; its start counts from the start of the job.
#[derive(Clone, Debug)]
pub struct Stall {
    /// Seconds from the start of the job.
    pub start_s: f64,
    /// Duration in seconds.
    pub length_s: f64,
    /// The cause as JSON has it, such as `device`.
    pub cause: String,
}

/// The kinds of a list of doubts.
pub fn kinds(doubts: &Value) -> Vec<String> {
    let list = doubts.as_array().expect("doubts are a list");
    list.iter()
        .map(|doubt| doubt["kind"].as_str().expect("a doubt has a kind").to_string())
        .collect()
}

/// The results of a run.
pub fn results(run: &Value) -> Vec<JobResult<'_>> {
    let list = run["results"].as_array().unwrap_or_else(|| panic!("no results in {run}"));
    list.iter().map(JobResult).collect()
}

/// All doubts, those of the run and those of its jobs.
pub fn all_doubts(run: &Value) -> Vec<String> {
    let mut all = kinds(&run["doubts"]);
    all.extend(results(run).iter().flat_map(JobResult::doubts));
    all.sort();
    all.dedup();
    all
}

/// When the first job began, in seconds since 1970.
pub fn started_unix_s(run: &Value) -> f64 {
    let text = run["started"].as_str().expect("a run says when it started");
    unix_s(text).unwrap_or_else(|| panic!("'{text}' is no UTC time as in RFC 3339"))
}

/// Seconds since 1970 of `2026-11-20T17:04:05.123456Z`.
fn unix_s(text: &str) -> Option<f64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = time.splitn(3, ':').map(|part| part.parse::<f64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    // Days of the civil calendar, with the year beginning in March.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 1
        - 719_468;
    Some(days as f64 * 86_400.0 + hour * 3_600.0 + minute * 60.0 + second)
}

/// How often a measurement that something else on the machine disturbed is repeated.
const REPETITIONS: u32 = 2;

/// Measures, and again up to two times when something is wrong with the run and something else on
/// the machine disturbed it: it has a doubt of one of these kinds, or programs waited for the processors.
/// The bounds of the test stay as they are.
pub fn measure_undisturbed(
    disturbances: &[&str],
    is_good: impl Fn(&Value) -> bool,
    mut measure: impl FnMut() -> Value,
) -> Value {
    for _ in 0..REPETITIONS {
        let since = Pressure::now();
        let run = measure();
        let busy = since.trouble();
        if is_good(&run) {
            return run;
        }
        let doubts = all_doubts(&run);
        let doubt = doubts.into_iter().find(|doubt| disturbances.contains(&doubt.as_str()));
        let Some(reason) = doubt.or(busy) else {
            return run;
        };
        super::report(&format!("disturbed: {reason}; measuring again"));
        std::thread::sleep(Duration::from_secs(2));
    }
    measure()
}

#[test]
fn times_of_rfc_3339_are_read() {
    assert_eq!(unix_s("1970-01-01T00:00:00Z"), Some(0.0));
    assert_eq!(unix_s("2000-02-29T12:00:00.5Z"), Some(951_825_600.5));
    assert_eq!(unix_s("2026-11-20T17:04:05Z"), Some(1_795_194_245.0));
    assert_eq!(unix_s("yesterday"), None);
}
