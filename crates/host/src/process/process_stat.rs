//! What `/proc/PID/stat` says of a process (proc_pid_stat(5)).

/// The fields behind the name of the program, which stands in parentheses and may hold anything; the state is the first.
fn fields(stat: &str) -> Option<Vec<&str>> {
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_whitespace().collect())
}

/// The number of the process that started it.
pub fn parent(stat: &str) -> Option<i32> {
    fields(stat)?.get(1)?.parse().ok()
}

/// When it began, in the kernel's ticks since the machine was started.
pub fn began(stat: &str) -> Option<u64> {
    fields(stat)?.get(19)?.parse().ok()
}

/// Processor time of its program and of the kernel for it, in the kernel's ticks.
pub fn cpu_ticks(stat: &str) -> Option<u64> {
    let fields = fields(stat)?;
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(ticks(11)? + ticks(12)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_found_behind_a_strange_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4321 8000 100 1844";
        assert_eq!(began(stat), Some(4321));
        assert_eq!(parent(stat), Some(1));
    }

    #[test]
    fn the_times_of_program_and_kernel_add_up() {
        let stat = "7 (sh) R 1 7 7 0 -1 4194560 1 0 0 0 30 12 5 6 20 0 1 0 4321 8000 100 1844";
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(cpu_ticks("7 (sh) R 1"), None);
    }
}
