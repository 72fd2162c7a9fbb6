//! `rubus --version --verbose`: how this program was built, for reports of what is wrong with it.

use std::ffi::OsString;

/// How a program was built, as its build recorded it.
struct Build {
    /// The commit's hash; `scripts/package` records it.
    commit: Option<&'static str>,
    /// The commit's time, in seconds since 1970; `scripts/package` records it.
    epoch: Option<&'static str>,
    target: &'static str,
    optimization: &'static str,
    /// Instructions and ways of linking that the compiler took for granted, separated by commas.
    features: &'static str,
}

const OWN: Build = Build {
    commit: option_env!("RUBUS_COMMIT"),
    epoch: option_env!("SOURCE_DATE_EPOCH"),
    target: env!("RUBUS_TARGET"),
    optimization: env!("RUBUS_OPT_LEVEL"),
    features: env!("RUBUS_TARGET_FEATURES"),
};

/// What to print for `--version` with `--verbose`, in whatever order; `None` for any other arguments.
pub fn asked_for(arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let arguments: Vec<String> =
        arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    let has = |names: [&str; 2]| names.iter().any(|name| arguments.iter().any(|it| it == name));
    let is_asked = arguments.len() == 2 && has(["--version", "-V"]) && has(["--verbose", "-v"]);
    is_asked.then(|| text(&OWN, is_static()))
}

/// Whether this program runs without a dynamic linker. The compiler does not know: with zig, it is told that a program
/// will be dynamic, and zig links it statically.
fn is_static() -> bool {
    match std::fs::read("/proc/self/auxv") {
        Ok(auxv) => has_no_interpreter(&auxv),
        Err(_) => OWN.features.split(',').any(|word| word == "crt-static"),
    }
}

/// Whether the kernel's auxiliary vector names no address of an interpreter; see `getauxval(3)`.
fn has_no_interpreter(auxv: &[u8]) -> bool {
    const AT_BASE: usize = 7;
    const WORD: usize = size_of::<usize>();
    let word = |bytes: &[u8]| bytes.try_into().ok().map(usize::from_ne_bytes);
    let is_base = |pair: &&[u8]| word(&pair[..WORD]) == Some(AT_BASE);
    let base = auxv.chunks_exact(2 * WORD).find(is_base);
    base.is_none_or(|pair| word(&pair[WORD..]) == Some(0))
}

fn text(build: &Build, is_static: bool) -> String {
    const NOT_RECORDED: &str = "not recorded (scripts/package records it)";
    let linking = if is_static { "static" } else { "dynamic" };
    format!(
        "rubus {version}\n\
         commit:       {commit}\n\
         date:         {date}\n\
         target:       {target}, {linking}\n\
         optimization: {optimization}\n\
         features:     {features}\n",
        version = env!("CARGO_PKG_VERSION"),
        commit = build.commit.unwrap_or(NOT_RECORDED),
        date = date(build.epoch).unwrap_or_else(|| NOT_RECORDED.into()),
        target = build.target,
        optimization = build.optimization,
        features = build.features.replace(',', ", "),
    )
}

fn date(epoch: Option<&str>) -> Option<String> {
    let seconds = epoch?.parse().ok()?;
    let time = jiff::Timestamp::from_second(seconds).ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> impl Iterator<Item = OsString> {
        line.split_whitespace().map(OsString::from)
    }

    #[test]
    fn a_recorded_build_is_said_in_full() {
        let build = Build {
            commit: Some("0123abcd"),
            epoch: Some("1763942400"),
            target: "aarch64-unknown-linux-musl",
            optimization: "3",
            features: "crt-static,neon",
        };
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "rubus {version}\n\
             commit:       0123abcd\n\
             date:         2025-11-24 00:00 UTC\n\
             target:       aarch64-unknown-linux-musl, static\n\
             optimization: 3\n\
             features:     crt-static, neon\n"
        );
        assert_eq!(text(&build, true), expected);
    }

    #[test]
    fn what_a_build_did_not_record_is_said_to_be_missing() {
        let build = Build { commit: None, epoch: None, features: "neon", ..OWN };
        let said = text(&build, false);
        assert_eq!(said.matches("not recorded").count(), 2, "{said}");
        assert!(said.contains(", dynamic\n"), "{said}");
    }

    #[test]
    fn a_program_with_an_interpreter_is_dynamic() {
        let auxv = |pairs: &[[usize; 2]]| {
            let words = pairs.iter().flatten();
            words.flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>()
        };
        assert!(!has_no_interpreter(&auxv(&[[6, 4096], [7, 0x7f00], [0, 0]])));
        assert!(has_no_interpreter(&auxv(&[[6, 4096], [7, 0], [0, 0]])));
        assert!(has_no_interpreter(&auxv(&[[6, 7], [0, 0]])));
    }

    #[test]
    fn both_options_are_needed_and_nothing_else() {
        for line in ["--version --verbose", "--verbose --version", "-V -v"] {
            assert!(asked_for(words(line)).is_some(), "{line}");
        }
        for line in [
            "",
            "--version",
            "--verbose",
            "survey --verbose",
            "survey --verbose --version",
            "--version --version",
        ] {
            assert_eq!(asked_for(words(line)), None, "{line}");
        }
    }
}
