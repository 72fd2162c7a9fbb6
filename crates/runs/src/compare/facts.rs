//! The facts by which two runs or machines are told apart: board, device, settings, versions.

use rubus_vocabulary::figure::Named;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine, Setting};
use rubus_vocabulary::result::{Access, Accesses, Figures, Run};
use rubus_vocabulary::units::{bytes_iec, bytes_si};

/// Of a run: what it was measured on and with, then the machine's settings.
pub fn of_run(run: &Run) -> Vec<Named> {
    let target = &run.target;
    let machine = &run.machine;
    let of_no_disk = match &run.figures {
        Figures::Disk => None,
        Figures::Memory(memory) => Some(memory.facts()),
        Figures::Processor(processor) => Some(processor.facts()),
    };
    if let Some(of_no_disk) = of_no_disk {
        let mut facts = board(machine);
        facts.extend(of_no_disk);
        facts.push(named("version", Some(format!("rubus {}", run.rubus_version))));
        facts.extend(settings(machine));
        return facts;
    }
    let disks = match target.device.as_deref() {
        Some(device) => machine.disks_below(device),
        None => Vec::new(),
    };
    let each = |words: fn(&BlockDevice) -> String| {
        let all: Vec<String> = disks.iter().map(|disk| words(disk)).collect();
        Some(all.join(" + ")).filter(|text| !text.is_empty())
    };
    let mut engines: Vec<&str> = run.results.iter().map(|r| r.engine.as_str()).collect();
    engines.sort_unstable();
    engines.dedup();
    let access = match run.accesses() {
        Accesses::All(Access::Direct) => "past the page cache",
        Accesses::All(Access::Buffered) => "through the page cache",
        Accesses::Both => "some jobs past the page cache, some through it",
    };
    let mut facts = board(machine);
    facts.extend([
        named("device", each(device_words)),
        named("target", Some(run.place())),
        named("filesystem", target.filesystem.clone()),
        named("access", Some(access.into())),
        named("content", Some(target.content.clone())),
        named("suite", Some(run.suite.clone())),
        named("region", Some(bytes_iec(target.region_bytes))),
        named("seed", Some(run.seed.to_string())),
        named("engine", Some(engines.join(", ")).filter(|e| !e.is_empty())),
        named("lanes", lanes(run)),
        named("completions", completions(run)),
        named("version", Some(format!("rubus {}", run.rubus_version))),
        named("I/O scheduler", each(|disk| text(disk.scheduler.text()))),
        named("write cache", each(|disk| text(disk.write_cache.text()))),
    ]);
    facts.extend(settings(machine));
    facts
}

/// How many io_uring rings shared the queues of a run; nothing where none did.
fn lanes(run: &Run) -> Option<String> {
    let queued = run.results.iter().filter(|result| result.engine == "ring");
    let lanes = queued.map(|result| result.lanes.unwrap_or(1)).max()?;
    Some(lanes.to_string())
}

/// Whether completions were polled for or came by interrupt.
fn completions(run: &Run) -> Option<String> {
    let words =
        if run.results.iter().any(|result| result.polled) { "polled" } else { "by interrupt" };
    (!run.results.is_empty()).then(|| words.into())
}

/// Of a machine: everything that may make its storage faster or slower.
pub fn of_machine(machine: &Machine) -> Vec<Named> {
    let mut facts = board(machine);
    facts.extend(settings(machine));
    for setting in &machine.kernel_config {
        facts.push(named_setting("CONFIG_", setting));
    }
    let kept = |disk: &&BlockDevice| disk.kind == BlockKind::Disk;
    for disk in machine.block_devices.iter().filter(kept) {
        facts.push(named(&disk.name, Some(device_words(disk))));
        facts.push(named(
            &format!("{} scheduler", disk.name),
            disk.scheduler.text().map(str::to_string),
        ));
        let way: Vec<&str> = disk.path.iter().map(|hop| hop.name.as_str()).collect();
        facts.push(named(
            &format!("{} way", disk.name),
            Some(way.join(" → ")).filter(|way| !way.is_empty()),
        ));
    }
    for mount in &machine.mounts {
        facts.push(named(&format!("mount {}", mount.point), Some(mount.filesystem.clone())));
    }
    facts
}

fn board(machine: &Machine) -> Vec<Named> {
    let owned = |text: Option<&str>| text.map(str::to_string);
    vec![
        named("board", owned(machine.board.model.text())),
        named("firmware", owned(machine.board.firmware.text())),
        named("system", owned(machine.system.os.text())),
        named("kernel", owned(machine.system.kernel_release.text())),
        named("architecture", owned(machine.system.kernel_arch.text())),
        named("user space", machine.system.user_space_bits.get().map(|bits| format!("{bits} bit"))),
        named("processor", owned(machine.cpu.model.text())),
        named("cores", machine.cpu.cores.get().map(|n| n.to_string())),
        named("memory", machine.memory.total_bytes.get().map(bytes_iec)),
    ]
}

fn settings(machine: &Machine) -> Vec<Named> {
    let mut facts = Vec::new();
    for clock in &machine.cpu.clocks {
        facts.push(named(
            &format!("governor of cores {}", clock.cores),
            clock.governor.text().map(str::to_string),
        ));
        facts.push(named(
            &format!("highest clock of cores {}", clock.cores),
            clock.max_hz.get().map(|hz| format!("{} MHz", hz / 1_000_000)),
        ));
    }
    let areas: Vec<&str> = machine.swap.areas.iter().map(|area| area.path.as_str()).collect();
    facts.push(named("swap", Some(areas.join(", ")).filter(|areas| !areas.is_empty())));
    for setting in &machine.vm {
        facts.push(named_setting("vm.", setting));
    }
    facts
}

fn named(name: &str, value: Option<String>) -> Named {
    Named { name: name.into(), value }
}

fn named_setting(prefix: &str, setting: &Setting) -> Named {
    named(&format!("{prefix}{}", setting.name), setting.value.text().map(str::to_string))
}

/// "mmcblk0 (SC64G, 63.9 GB)".
fn device_words(disk: &BlockDevice) -> String {
    let model = disk.model.text().map(|model| model.trim().to_string());
    let size = disk.size_bytes.get().map(bytes_si);
    let about: Vec<String> = [model, size].into_iter().flatten().collect();
    if about.is_empty() {
        disk.name.clone()
    } else {
        format!("{} ({})", disk.name, about.join(", "))
    }
}

fn text(fact: Option<&str>) -> String {
    fact.unwrap_or("unknown").to_string()
}
