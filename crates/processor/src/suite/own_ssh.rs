//! The machine's own ssh, measured from this machine to itself.

use anyhow::{Context, anyhow, ensure};
use rubus_host::process::programs;
use rubus_vocabulary::processor::{LeftOut, Part, ProcessorRun, Ssh, ssh};

use super::CpuSuite;
use crate::run::Programs;

/// A cipher takes this many times as long as another figure: ssh takes longer to settle than a loop.
const TIMES: f64 = 5.0;

/// Every cipher that both ends offer. One that fails is left out.
pub fn ssh(suite: &CpuSuite<'_>, processor: &mut ProcessorRun) -> anyhow::Result<Ssh> {
    let installed = |program: &str, package: &str| {
        programs::find(program).with_context(|| {
            format!("{program} is not installed (the package {package} on Debian)")
        })
    };
    let programs = Programs {
        ssh: installed("ssh", "openssh-client")?,
        sshd: installed("sshd", "openssh-server")?,
        user: user(suite)?,
    };
    must_have_a_shell(suite, &programs.user)?;
    let seconds = suite.options.seconds * TIMES;
    let measured = crate::run::ssh(&programs, seconds, suite.cancel, &mut |what| {
        (suite.says)(what);
    });
    let (ssh, failed) = measured.map_err(|why| anyhow!(why))?;
    let part = Part::Ssh;
    let failed = failed.into_iter().map(|what| LeftOut { part, what });
    processor.left_out.extend(failed);
    Ok(ssh)
}

/// A server runs what it is asked for with the user's login shell.
fn must_have_a_shell(suite: &CpuSuite<'_>, user: &str) -> anyhow::Result<()> {
    let line = programs::run("getent", &["passwd", user], suite.cancel).unwrap_or_default();
    let shell = ssh::login_shell(&line);
    ensure!(
        !ssh::lets_nobody_in(shell),
        "the login shell of {user} is {shell}, which refuses every login, and sshd runs with it what is measured; measure \
         as a user who may log in (`sudo -u USER rubus bench cpu ssh`), or give this one a shell (`chsh -s /bin/sh {user}`)"
    );
    Ok(())
}

/// The name that the server knows this process's user by.
fn user(suite: &CpuSuite<'_>) -> anyhow::Result<String> {
    let printed = programs::run("id", &["-un"], suite.cancel);
    let printed = printed.context("the user that runs this has no name, and so cannot log in")?;
    Ok(printed.trim().to_string())
}
