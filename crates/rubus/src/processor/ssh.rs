//! The machine's own ssh, measured from this machine to itself.

use anyhow::{Context, anyhow};
use rubus_bench::processor::Programs;
use rubus_core::processor::{LeftOut, Part, ProcessorRun, Ssh};
use rubus_host::programs;

use crate::commands::cpu::Course;

/// A cipher takes so many times as long as another figure: ssh has more to settle than a loop.
const TIMES: f64 = 5.0;

/// Every cipher that both ends offer. One that fails is left out.
pub fn ssh(course: &Course<'_>, processor: &mut ProcessorRun) -> anyhow::Result<Ssh> {
    let installed = |program: &str, package: &str| {
        programs::find(program).with_context(|| {
            format!("{program} is not installed (the package {package} on Debian)")
        })
    };
    let programs = Programs {
        ssh: installed("ssh", "openssh-client")?,
        sshd: installed("sshd", "openssh-server")?,
        user: user(course)?,
    };
    let seconds = course.args.seconds * TIMES;
    let measured = rubus_bench::processor::ssh(&programs, seconds, course.cancel, &mut |what| {
        course.line.says(what);
    });
    let (ssh, failed) = measured.map_err(|why| anyhow!(why))?;
    let part = Part::Ssh;
    let failed = failed.into_iter().map(|what| LeftOut { part, what });
    processor.left_out.extend(failed);
    Ok(ssh)
}

/// The name that the server knows this process's user by.
fn user(course: &Course<'_>) -> anyhow::Result<String> {
    let printed = programs::run("id", &["-un"], course.cancel);
    let printed = printed.context("the user that runs this has no name, and so cannot log in")?;
    Ok(printed.trim().to_string())
}
