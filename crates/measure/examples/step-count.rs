//! Counts the instructions that a program executes in user space, by stepping through it:
//! `step-count PROGRAM [ARGUMENT...]` prints the number on standard error.
//!
//! Slower than callgrind by far, but it counts what the processor really executes, including the
//! kernel's vDSO, which valgrind hides. `benches/engine_cost.sh` uses it as a second opinion.

use std::os::unix::process::CommandExt;
use std::process::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or("usage: step-count PROGRAM [ARGUMENT...]")?;
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: between fork and exec only one system call is made, which touches no memory.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let child = command.spawn()?;
    let pid = libc::pid_t::try_from(child.id())?;
    let mut steps = 0_u64;
    loop {
        let mut status = 0;
        // SAFETY: the child is ours and `status` a place for its status.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } != pid {
            return Err(std::io::Error::last_os_error().into());
        }
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            break;
        }
        steps += 1;
        // Signals other than the trap of each step are passed on.
        let signal = match libc::WSTOPSIG(status) {
            libc::SIGTRAP => 0,
            signal => signal,
        };
        // SAFETY: the child is stopped; neither address nor data point anywhere.
        if unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, pid, 0, signal) } != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
    }
    eprintln!("{steps}");
    Ok(())
}
