//! What a checkup can say before its end: the tightest operation so far, what it means at least, and what is not measured yet.

use super::pipes::{KINDS, mark_narrowest, operation_pipes, pipe_of};
use super::{NARROW_ABOVE_S, Pipe, verdict};
use rubus_draw::text::{capitalized, listed};
use rubus_draw::words::roughly;
use rubus_machine::purpose::What;
use rubus_machine::reference_work::{WORKS, Work};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::result::Run;
use rubus_vocabulary::spec::Suite;

/// A job that runs now, with what it has given so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Running {
    /// Its name.
    pub job: String,
    /// Bytes per second since its warm-up.
    pub bytes_per_second: Estimate,
    /// Operations per second since its warm-up.
    pub operations_per_second: Estimate,
}

/// A kind of operation of the reference work, as far as a run has come.
pub enum Row<'a> {
    /// Measured, with its result.
    Done(Pipe),
    /// Being measured.
    Running(Pipe, &'a Running),
    /// To come: the name of the pipe.
    ToCome(&'static str),
}

/// Whether a suite measures all that a provisional answer is made of.
pub fn has_answer_so_far(suite: &Suite) -> bool {
    KINDS.iter().all(|(_, name, _)| suite.jobs.iter().any(|job| job.name == *name))
}

/// The kinds of operation in the order of the answer's table.
pub fn rows<'a>(run: &Run, running: Option<&'a Running>) -> Vec<Row<'a>> {
    let done = operation_pipes(run);
    let row = |(what, job, title): &(What, &'static str, &'static str)| {
        if let Some(pipe) = done.iter().find(|pipe| pipe.name == *title) {
            return Row::Done(pipe.clone());
        }
        let own = running.filter(|running| running.job == *job);
        let pipe = own.and_then(|own| {
            let rate =
                if what.is_in_order() { own.bytes_per_second } else { own.operations_per_second };
            Some((pipe_of(*what, title, rate, String::new())?, own))
        });
        match pipe {
            Some((pipe, own)) => Row::Running(pipe, own),
            None => Row::ToCome(title),
        }
    };
    KINDS.iter().map(row).collect()
}

/// The provisional answer in at most 25 words; none before anything was measured.
pub fn so_far(run: &Run, running: Option<&Running>) -> Option<String> {
    let mut pipes = Vec::new();
    let mut to_come = Vec::new();
    let mut is_all_done = true;
    for row in rows(run, running) {
        is_all_done &= matches!(row, Row::Done(_));
        match row {
            Row::Done(pipe) | Row::Running(pipe, _) => pipes.push(pipe),
            Row::ToCome(title) => to_come.push(short(title)),
        }
    }
    if is_all_done {
        return Some(format!("So far: {}", verdict(run).headline));
    }
    mark_narrowest(&mut pipes);
    let tightest = pipes.iter().find(|pipe| pipe.narrowest)?;
    let (name, rate) = (short(&tightest.name), super::answer::rate(tightest));
    let means = match at_least(&pipes) {
        Some((work, time_s)) if time_s > NARROW_ABOVE_S => {
            let doing = capitalized(work.doing);
            format!(
                "So far {name} are slowest, {rate}. {doing} waits at least {}.",
                roughly(time_s)
            )
        }
        _ => format!("So far nothing waits long; tightest: {name}, {rate}."),
    };
    let rest = match &to_come[..] {
        [] => String::new(),
        [_] | [_, _] => format!(" Not measured yet: {}.", listed(&to_come)),
        many => format!(" {} of {} operations are not measured yet.", many.len(), KINDS.len()),
    };
    Some(format!("{means}{rest}"))
}

/// The piece of the reference work that surely waits longest for what was measured, and how long, in seconds.
fn at_least(pipes: &[Pipe]) -> Option<(&'static Work, f64)> {
    let time = |work: &Work| {
        let times = pipes.iter().filter_map(|pipe| {
            // Of nothing, even a rate of 0 takes no time.
            let amount = work.amount(pipe.what()?);
            if amount > 0.0 { pipe.time_for(amount) } else { None }
        });
        times.map(|time| time.low).sum::<f64>()
    };
    WORKS.iter().map(|work| (work, time(work))).max_by(|a, b| a.1.total_cmp(&b.1))
}

fn short(title: &str) -> &str {
    title.trim_start_matches("4 KiB ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures::slow_sd_card_run;
    use rubus_vocabulary::job_names;

    fn begun(count: usize) -> Run {
        let mut run = slow_sd_card_run();
        let kept: Vec<&str> = KINDS.iter().take(count).map(|(_, job, _)| *job).collect();
        run.results.retain(|result| kept.contains(&result.job.as_str()));
        run
    }

    #[test]
    fn each_job_that_ends_makes_the_answer_more_and_it_stays_short() {
        let said: Vec<String> = (0..=KINDS.len())
            .map(|count| so_far(&begun(count), None).unwrap_or_else(|| "(nothing)".into()))
            .collect();
        insta::assert_snapshot!(said.join("\n"));
        for answer in said {
            assert!(answer.split_whitespace().count() <= 25 + 2, "{answer}");
        }
    }

    #[test]
    fn a_job_that_runs_counts_with_what_its_interval_allows() {
        let running = Running {
            job: job_names::COMMIT.into(),
            bytes_per_second: Estimate::new(80e3, 40e3, 160e3),
            operations_per_second: Estimate::new(20.0, 10.0, 40.0),
        };
        let said = so_far(&begun(4), Some(&running)).expect("an answer");
        assert!(
            said.starts_with(
                "So far commits are slowest, 20.0 per second. Installing software waits at least "
            ),
            "{said}"
        );
        assert!(!said.contains("not measured yet") && !said.contains("Not measured"), "{said}");
        // In its first moments, nothing is known from below.
        let begun_now =
            Running { operations_per_second: Estimate::new(20.0, 0.0, f64::INFINITY), ..running };
        assert!(so_far(&begun(4), Some(&begun_now)).is_some());
    }
}
