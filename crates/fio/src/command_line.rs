//! Options of fio's command line beside `--fio-job`: `--runtime=10` is `--fio-option runtime=10`.

use std::ffi::OsString;

use crate::job_file::options;

/// Options whose value, if any, is behind an equals sign.
const SWITCHES: [&str; 13] = [
    "direct",
    "buffered",
    "time_based",
    "group_reporting",
    "norandommap",
    "randrepeat",
    "overwrite",
    "end_fsync",
    "invalidate",
    "stonewall",
    "zero_buffers",
    "do_verify",
    "exitall",
];

/// The line with fio's options spelled out. An option that `own` knows stays as it is.
pub fn spelled_out(line: Vec<OsString>, own: impl Fn(&str) -> bool) -> Vec<OsString> {
    let is_job = |word: &OsString| {
        word.to_str().is_some_and(|text| text == "--fio-job" || text.starts_with("--fio-job="))
    };
    if !line.iter().any(is_job) {
        return line;
    }
    let mut words = line.into_iter().peekable();
    let mut out = Vec::new();
    while let Some(word) = words.next() {
        let Some((name, value)) = word.to_str().and_then(|text| fio_option(text, &own)) else {
            out.push(word);
            continue;
        };
        let value = match value {
            Some(value) => value,
            None if SWITCHES.contains(&name.as_str()) => "1".into(),
            None => match words.next_if(|next| !next.to_string_lossy().starts_with("--")) {
                Some(next) => next.to_string_lossy().into_owned(),
                None => "1".into(),
            },
        };
        out.push(format!("--fio-option={name}={value}").into());
    }
    out
}

/// Name and value, if it is an option of fio's and none of our own.
fn fio_option(text: &str, own: impl Fn(&str) -> bool) -> Option<(String, Option<String>)> {
    let text = text.strip_prefix("--")?;
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_string())),
        None => (text, None),
    };
    // A size may be a percentage there.
    let is_fio = options::find(name).is_some() && (name == "size" || !own(name));
    is_fio.then(|| (name.to_string(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let own = |name: &str| matches!(name, "seed" | "size" | "fio-job");
        let out = spelled_out(words, own);
        out.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_of_fio_are_told_from_our_own() {
        assert_eq!(
            spelled("rubus bench --fio-job x.fio --runtime=10 --size 20% --seed 3 --direct DIR"),
            "rubus bench --fio-job x.fio --fio-option=runtime=10 --fio-option=size=20% --seed 3 \
             --fio-option=direct=1 DIR"
        );
        // Without a job file nothing changes.
        let line = "rubus bench DIR --size 4m --runtime=3";
        assert_eq!(spelled(line), line);
    }
}
