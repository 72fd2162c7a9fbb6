//! The lower half of the page: what was measured on, all numbers, and how to repeat it.

use maud::{Markup, html};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{BlockDevice, Hop, Origin};
use rubus_vocabulary::result::{JobResult, Run, TargetKind};
use rubus_vocabulary::spec::Direction;
use rubus_vocabulary::units::{bytes_iec, bytes_si, duration_ns, rate_si};

use super::jobs::Named;
use super::share;
use rubus_draw::ends;
use rubus_draw::network;
use rubus_draw::words;

/// A term and what is said of it; a fact that is not known says why.
fn row(term: &str, value: String) -> Markup {
    html! { dt { (term) } dd { (value) } }
}

fn known<T>(term: &str, fact: &Fact<T>, words: impl FnOnce(&T) -> String) -> Markup {
    row(term, words::fact(fact, words))
}

/// The machine, as far as it matters for storage.
pub fn machine(run: &Run) -> Markup {
    let m = &run.machine;
    let target = &run.target;
    html! {
        section aria-labelledby="machine" {
            h2 id="machine" { "The machine" }
            @if let Origin::Capture { path, label } = &m.origin {
                p class="note" { "Read from the capture " (path) " (" (label) ")." }
            }
            dl {
                (known("board", &m.board.model, String::clone))
                (known("processor", &m.cpu.model, |model| match m.cpu.cores.get() {
                    Some(cores) => format!("{cores} × {model}"),
                    None => model.clone(),
                }))
                (known("memory", &m.memory.total_bytes, |b| bytes_iec(*b)))
                (known("system", &m.system.os, String::clone))
                (known("kernel", &m.system.kernel_release, |release| {
                    let arch = m.system.kernel_arch.text().unwrap_or("");
                    format!("Linux {release} {arch}").trim_end().to_string()
                }))
                (known("power and heat", &m.power.throttling, |t| {
                    format!("now {}; since boot: {}", words::throttling(t, false), words::throttling(t, true))
                }))
                @for t in &m.power.temperatures {
                    (known(&t.zone, &t.millicelsius, |m| format!("{:.1} °C before the run", *m as f64 / 1000.0)))
                }
                (row("measured", network::measured(target)))
                @if let Some(facts) = &target.network {
                    (row("reached", network::network(facts)))
                    (row("its server offers", network::offer(facts)))
                }
                @if let Some(facts) = &target.cluster {
                    (row("cluster", network::cluster(facts)))
                    @for what in network::happened(facts) { (row("meanwhile", what)) }
                }
                @if let Some(on) = &run.on { (row("from elsewhere", words::elsewhere(on))) }
                @if let Some(queues) = words::queues(run) { (row("how", queues)) }
                @if let Some(filesystem) = &target.filesystem { (row("filesystem", filesystem.clone())) }
                @if let Some(name) = &target.device {
                    (row("on", name.clone()))
                    @for disk in m.disks_below(name) { (device(disk)) }
                }
            }
        }
    }
}

fn device(disk: &BlockDevice) -> Markup {
    html! {
        (known(&disk.name, &disk.size_bytes, |bytes| {
            let text = |fact: &Fact<String>| fact.text().map(|t| t.trim().to_string());
            let parts = [text(&disk.vendor), text(&disk.model), Some(bytes_si(*bytes))];
            parts.into_iter().flatten().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(", ")
        }))
        @if !disk.path.is_empty() {
            dt { "way to " (disk.name) }
            dd { @for hop in &disk.path { div { (hop_words(hop)) } } }
        }
        (known("scheduler", &disk.scheduler, String::clone))
        (known("write cache", &disk.write_cache, String::clone))
    }
}

fn hop_words(hop: &Hop) -> String {
    let mut parts = vec![format!("{} ({})", hop.name, hop.id)];
    if !hop.link.is_empty() {
        parts.push(hop.link.clone());
    }
    if let Some(rate) = hop.usable_bytes_per_second.get() {
        parts.push(format!("about {} in practice", rate_si(rate)));
    }
    if let Some(driver) = hop.driver.text() {
        parts.push(format!("driver {driver}"));
    }
    parts.join(", ")
}

/// All numbers of all jobs.
pub fn raw(jobs: &[Named]) -> Markup {
    html! {
        section aria-labelledby="all-numbers" {
            h2 id="all-numbers" { "All numbers" }
            (processor(jobs))
            (both_ends(jobs))
            (intervals(jobs))
        }
    }
}

fn processor(jobs: &[Named]) -> Markup {
    let columns =
        ["user", "system", "irq", "softirq", "iowait", "steal", "busiest core", "per operation"];
    html! {
        div class="scroll" role="region" aria-label="Processor time" tabindex="0" {
            table {
                caption { span { "Processor time during each job, as shares of all cores, and per operation of the test itself" } }
                thead { tr {
                    th scope="col" { "job" }
                    @for title in columns { th scope="col" class="n" { (title) } }
                } }
                tbody {
                    @for Named { title, result } in jobs {
                        @let cpu = &result.cpu;
                        @let busiest = cpu.per_core_busy.iter().copied().reduce(f64::max);
                        tr {
                            th scope="row" { (title) }
                            @for value in [cpu.user, cpu.system, cpu.irq, cpu.softirq, cpu.iowait, cpu.steal] {
                                td class="n" { (share(value)) }
                            }
                            td class="n" { (busiest.map_or("–".into(), share)) }
                            td class="n" { (duration_ns(result.cpu_ns_per_io.max(0.0) as u64)) }
                        }
                    }
                }
            }
        }
    }
}

/// Processor time at both ends of a network disk, for the jobs that have it.
fn both_ends(jobs: &[Named]) -> Markup {
    let results: Vec<JobResult> = jobs.iter().map(|job| job.result.clone()).collect();
    let Some(legend) = ends::legend(&results) else {
        return html! {};
    };
    let columns = ["here, per GiB", "server, per GiB", "here, per request", "server, per request"];
    html! {
        div class="scroll" role="region" aria-label="Processor time at both ends" tabindex="0" {
            table {
                caption { span { "Processor time at both ends of the network; " (legend.join(" ")) } }
                thead { tr {
                    th scope="col" { "job" }
                    @for title in columns { th scope="col" class="n" { (title) } }
                } }
                tbody {
                    @for Named { title, result } in jobs {
                        @if let Some(ends) = &result.both_ends {
                            tr {
                                th scope="row" { (title) }
                                @for price in ends::prices(ends) { td class="n" { (price) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn intervals(jobs: &[Named]) -> Markup {
    let columns =
        ["operations", "seconds", "from", "bytes per second", "to", "from", "per second", "to"];
    html! {
        div class="scroll" role="region" aria-label="Intervals" tabindex="0" {
            table {
                caption { span { "Estimates with the ends of their 95\u{a0}% intervals" } }
                thead { tr {
                    th scope="col" { "job" }
                    th scope="col" { "engine" }
                    @for title in columns { th scope="col" class="n" { (title) } }
                } }
                tbody { @for named in jobs { (interval_row(named.result)) } }
            }
        }
    }
}

fn interval_row(result: &JobResult) -> Markup {
    let whole = |value: f64| {
        if value.is_finite() { format!("{value:.0}") } else { "∞".into() }
    };
    let fine = |value: f64| {
        if value.is_finite() { format!("{value:.1}") } else { "∞".into() }
    };
    let (rate, iops) = (&result.bytes_per_second, &result.iops);
    html! {
        tr {
            th scope="row" { (result.job) }
            td { (result.engine) }
            td class="n" { (result.operations) }
            td class="n" { (format!("{:.2}", result.elapsed_s)) }
            @for value in [rate.low, rate.value, rate.high] { td class="n" { (whole(value)) } }
            @for value in [iops.low, iops.value, iops.high] { td class="n" { (fine(value)) } }
        }
    }
}

/// How to measure the same again.
pub fn repeat(run: &Run) -> Markup {
    html! {
        section aria-labelledby="repeat" {
            h2 id="repeat" { "To repeat it" }
            pre { code { (command(run)) } }
            p {
                "rubus " (run.rubus_version) ", suite " (run.suite) ", seed " (run.seed)
                @if run.target.region_bytes > 0 {
                    ", " (bytes_iec(run.target.region_bytes)) " of " (run.target.content) " data"
                }
                ", " (words::accesses(run)) "."
            }
            @if let Some(own) = &run.calibration {
                p class="note" {
                    "What the measuring itself costs on this machine: "
                    (duration_ns(own.cpu_ns_per_io_depth_1.max(0.0) as u64)) " of processor time per operation at depth 1, "
                    (duration_ns(own.cpu_ns_per_io_depth_32.max(0.0) as u64)) " at depth 32; reading the clock takes "
                    (duration_ns(own.clock_ns.max(0.0) as u64)) "."
                }
            }
        }
    }
}

/// The command line that measures the same. Writing to a device or a user's file needs a
/// confirmation that only its owner can give, so that part is left to be filled in.
fn command(run: &Run) -> String {
    let mut words = vec!["rubus".to_string(), "bench".into(), shell_word(&run.target.path)];
    if let Some(on) = &run.on {
        words.push(format!("--on {}", shell_word(&on.destination)));
    }
    words.push(format!("--suite {} --seed {}", shell_word(&run.suite), run.seed));
    if run.target.region_bytes > 0 {
        words.push(format!("--size {}", run.target.region_bytes));
    }
    let wrote = run.results.iter().any(|result| result.direction == Direction::Write);
    if wrote && run.target.kind != TargetKind::Directory {
        words.push("--i-will-lose-everything-on SERIAL".into());
    }
    let cut_short =
        |doubt: &Doubt| matches!(doubt, Doubt::Interrupted | Doubt::TargetFailed { .. });
    if !wrote && !run.results.is_empty() && !run.doubts.iter().any(cut_short) {
        words.push("--read-only".into());
    }
    words.join(" ")
}

/// A word as a shell takes it back, quoted where it has to be.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::result::Access;

    #[test]
    fn buffered_jobs_are_said_to_be_buffered() {
        let mut run = fixture::slow_sd_card_run();
        run.results.iter_mut().for_each(|result| result.access = Some(Access::Buffered));
        let page = repeat(&run).into_string();
        assert!(page.contains("through the page cache") && !page.contains("direct I/O"), "{page}");
    }

    #[test]
    fn the_command_quotes_what_a_shell_would_take_apart() {
        assert_eq!(shell_word("/home/pi"), "/home/pi");
        assert_eq!(shell_word("it's here"), r"'it'\''s here'");
        assert_eq!(shell_word(""), "''");
        let mut run = fixture::slow_sd_card_run();
        assert_eq!(
            command(&run),
            "rubus bench /home/pi --suite quick --seed 1592590337 --size 268435456"
        );
        run.target.kind = TargetKind::Device;
        assert!(command(&run).ends_with("--i-will-lose-everything-on SERIAL"));
        run.results.retain(|result| result.direction == Direction::Read);
        assert!(command(&run).ends_with("--read-only"));
        run.doubts.push(Doubt::Interrupted);
        assert!(!command(&run).contains("--read-only"), "it would have written later");
    }
}
