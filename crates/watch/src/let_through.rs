//! What of a recording others may see. Recordings and printed looks are sent to people who help, so each text in them passes a rule
//! of its field, and a new field does not compile without one. Names of programs and of what systemd's packages call their units
//! stay: they are the answer.

use std::collections::BTreeSet;

use rubus_draw::style::{Style, Tone};
use rubus_draw::text::hang;
use rubus_host::shareable::products::is_product;
use rubus_host::shareable::words::{is_phrase, phrase};
use rubus_host::shareable::{Kind, LEFT_OUT, Pseudonyms, bus_ids, identities, kernel_names, paths};
use rubus_vocabulary::heat::{Heat, Zone};

use crate::health::{DiskHealth, PossibleCause};
use crate::pipes::{Basis, PipeUse};
use crate::programs::{ProgramIo, Written};
use crate::sample::{Attached, Nbd, NbdClient, NbdServer};
use crate::wear::{Trouble, Wear};
use crate::writers::Report;
use crate::{DiskCounters, Header, Look, Pipe, Programs, Sample, UnitDisk, Zram};

/// What is said below a printed text in which names were replaced; `command` has them all.
pub(crate) fn replaced(command: &str, style: Style) -> String {
    let words = format!("Some names are pseudonyms, for pasting; all of them: {command}");
    let lines = hang("", &words, style.columns);
    let lines: Vec<String> = lines.iter().map(|line| style.paint(Tone::Faint, line)).collect();
    lines.join("\n") + "\n"
}

/// The rules of one document, with the pseudonyms that it has so far.
#[derive(Debug, Default)]
pub struct LetThrough {
    names: Pseudonyms,
}

impl LetThrough {
    /// The first line of a recording.
    #[must_use]
    pub fn header(&mut self, header: Header) -> Header {
        let Header {
            rubus_watch,
            rubus_version,
            started,
            interval_seconds,
            machine,
            page_bytes,
            disks,
            pipes,
            wear,
            health,
        } = header;
        Header {
            rubus_watch,
            rubus_version,
            started,
            interval_seconds,
            machine: self.machine(&machine),
            page_bytes,
            disks: disks.iter().map(|(name, what)| (self.device(name), self.what(what))).collect(),
            pipes: pipes.into_iter().map(|pipe| self.pipe(pipe)).collect(),
            wear: wear.into_iter().map(|wear| self.wear(wear)).collect(),
            health: self.health(health),
        }
    }

    /// A further line.
    #[must_use]
    pub fn sample(&mut self, sample: Sample) -> Sample {
        let Sample {
            at,
            monotonic_ns,
            since_boot_ns,
            cpus,
            disks,
            links,
            memory,
            events,
            pressure,
            zswap,
            zrams,
            heat,
            programs,
            nbd,
        } = sample;
        Sample {
            at,
            monotonic_ns,
            since_boot_ns,
            cpus,
            disks: disks
                .into_iter()
                .map(|disk| DiskCounters { name: self.device(&disk.name), ..disk })
                .collect(),
            links: links
                .into_iter()
                .map(|link| crate::LinkCounters { name: self.device(&link.name), ..link })
                .collect(),
            memory,
            events,
            pressure,
            zswap,
            zrams: self.zrams(zrams),
            heat: self.heat(heat),
            programs: programs.map(|programs| self.programs(programs)),
            nbd: nbd.map(|nbd| self.network_disks(nbd)),
        }
    }

    /// What two samples say, to print it.
    #[must_use]
    pub fn look(&mut self, look: Look) -> Look {
        let Look {
            at,
            seconds,
            slept_seconds,
            up_seconds,
            cpu,
            mut disks,
            vanished,
            mut links,
            memory,
            swap,
            pressure,
            zswap,
            zrams,
            heat,
            throttling,
            pipes,
            programs,
            nbd,
        } = look;
        for name in disks.iter_mut().map(|disk| &mut disk.name) {
            *name = self.device(name);
        }
        for name in links.iter_mut().map(|link| &mut link.name) {
            *name = self.device(name);
        }
        Look {
            at,
            seconds,
            slept_seconds,
            up_seconds,
            cpu,
            disks,
            vanished: vanished.iter().map(|name| self.device(name)).collect(),
            links,
            memory,
            swap,
            pressure,
            zswap,
            zrams: self.zrams(zrams),
            heat: self.heat(heat),
            throttling,
            pipes: pipes.into_iter().map(|pipe| self.pipe_use(pipe)).collect(),
            programs: programs.map(|programs| self.programs(programs)),
            nbd: nbd.map(|nbd| self.network_disks(nbd)),
        }
    }

    /// An account of who wrote, to print it.
    #[must_use]
    pub fn report(&mut self, mut report: Report) -> Report {
        report.machine = self.machine(&report.machine);
        for disk in &mut report.disks {
            disk.name = self.device(&disk.name);
            disk.what = disk.what.as_ref().map(|what| self.what(what));
        }
        for of_disk in &mut report.wear {
            of_disk.wear = self.wear(std::mem::take(&mut of_disk.wear));
        }
        for unit in &mut report.units {
            unit.unit = self.unit(&unit.unit);
            for program in &mut unit.programs {
                program.program = self.program(&program.program);
                for place in &mut program.places {
                    *place = paths::path(place, &mut self.names);
                }
            }
            for disk in &mut unit.disks {
                disk.disk = self.device(&disk.disk);
            }
        }
        for most in report.hours.iter_mut().filter_map(|hour| hour.most.as_mut()) {
            most.unit = self.unit(&most.unit);
        }
        report
    }

    /// Board and kernel.
    fn machine(&mut self, text: &str) -> String {
        let parts = text.split(", ").map(|part| self.product(part));
        parts.collect::<Vec<_>>().join(", ")
    }

    fn pipe(&mut self, pipe: Pipe) -> Pipe {
        let Pipe { name, members, read_bytes_per_second, written_bytes_per_second, basis } = pipe;
        Pipe {
            name: self.pipe_name(&name),
            members: self.devices(&members),
            read_bytes_per_second,
            written_bytes_per_second,
            basis: self.basis(basis),
        }
    }

    fn pipe_use(&mut self, pipe: PipeUse) -> PipeUse {
        let PipeUse { name, members, bytes_per_second, used, basis } = pipe;
        PipeUse {
            name: self.pipe_name(&name),
            members: self.devices(&members),
            bytes_per_second,
            used,
            basis: self.basis(basis),
        }
    }

    fn devices(&mut self, names: &[String]) -> Vec<String> {
        names.iter().map(|name| self.device(name)).collect()
    }

    /// A disk, or the name of a bus, which is a product's.
    fn pipe_name(&mut self, name: &str) -> String {
        if kernel_names::is_kernel_name(name) || bus_ids::is_bus_id(name) {
            return name.to_string();
        }
        if is_phrase(name) { self.product(name) } else { self.device(name) }
    }

    fn basis(&mut self, basis: Basis) -> Basis {
        match basis {
            Basis::Measured { run, at } => Basis::Measured { run, at },
            Basis::RuleOfThumb { why } => Basis::RuleOfThumb { why: self.own_words(why) },
        }
    }

    fn wear(&mut self, wear: Wear) -> Wear {
        let trouble = wear.trouble.clone().map(|trouble| match trouble {
            Trouble::OldSmartctl(version) => Trouble::OldSmartctl(self.product(&version)),
            Trouble::Other(words) => Trouble::Other(self.trouble(&words)),
            Trouble::NoSmartctl | Trouble::NotRoot | Trouble::Asleep => trouble,
        });
        let mut wear = Wear { disk: self.device(&wear.disk), trouble, ..wear };
        let told = wear.told_used.iter_mut().map(|told| &mut told.name);
        let listed = [&mut wear.failing_attributes, &mut wear.used_up_attributes];
        for attribute in told.chain(listed.into_iter().flatten()) {
            *attribute = self.attribute(attribute);
        }
        wear
    }

    /// What is said of a disk names it, so of one whose name was chosen nothing is.
    fn health(&mut self, all: Vec<DiskHealth>) -> Vec<DiskHealth> {
        let named = all
            .into_iter()
            .filter(|health| kernel_names::is_kernel_name(&health.disk) || is_phrase(&health.disk));
        let known = named.map(|health| {
            let DiskHealth { disk, word, cause, evidence, fix, command, suspects } = health;
            let suspects = suspects.into_iter().map(|suspect| {
                let PossibleCause { cause, evidence, fix, command } = suspect;
                PossibleCause {
                    cause,
                    evidence: self.own_words(evidence),
                    fix: self.own_words(fix),
                    command: command.map(|command| self.own_words(command)),
                }
            });
            let suspects = suspects.collect();
            DiskHealth {
                disk,
                word,
                cause,
                evidence: evidence.into_iter().map(|words| self.own_words(words)).collect(),
                fix: fix.map(|fix| self.own_words(fix)),
                command: command.map(|command| self.own_words(command)),
                suspects,
            }
        });
        known.collect()
    }

    fn zrams(&mut self, zrams: Vec<Zram>) -> Vec<Zram> {
        zrams.into_iter().map(|zram| Zram { name: self.device(&zram.name), ..zram }).collect()
    }

    fn heat(&mut self, heat: Heat) -> Heat {
        let zones = heat.zones.into_iter().map(|zone| {
            let is_kept = paths::is_public_component(&zone.name);
            let name = if is_kept { zone.name } else { self.names.name(Kind::Device, &zone.name) };
            Zone { name, ..zone }
        });
        Heat { zones: zones.collect(), ..heat }
    }

    fn programs(&mut self, programs: Programs) -> Programs {
        let Programs { seconds, seen, hidden, busiest, writers, unit_disks } = programs;
        Programs {
            seconds,
            seen,
            hidden,
            busiest: busiest
                .into_iter()
                .map(|program| ProgramIo { name: self.program(&program.name), ..program })
                .collect(),
            writers: writers.map(|all| all.into_iter().map(|one| self.written(one)).collect()),
            unit_disks: unit_disks
                .map(|all| all.into_iter().map(|one| self.unit_disk(one)).collect()),
        }
    }

    /// The kernel names a thread for a server ("10.0.0.5-manager").
    fn program(&mut self, name: &str) -> String {
        let is_kept = !name.split('-').any(identities::is_address);
        if is_kept { name.to_string() } else { self.names.name(Kind::Program, name) }
    }

    fn written(&mut self, written: Written) -> Written {
        let Written { program, unit, written_bytes, cancelled_bytes, places } = written;
        Written {
            program: self.program(&program),
            unit: self.unit(&unit),
            written_bytes,
            cancelled_bytes,
            places: places.iter().map(|place| paths::path(place, &mut self.names)).collect(),
        }
    }

    fn unit_disk(&mut self, of: UnitDisk) -> UnitDisk {
        let UnitDisk { unit, disk, written_bytes } = of;
        UnitDisk { unit: self.unit(&unit), disk: self.device(&disk), written_bytes }
    }

    /// Packages name units, but for what systemd makes of paths, for machines, and for instances, which are named for what they
    /// serve (systemd.unit(5)).
    fn unit(&mut self, unit: &str) -> String {
        let Some((name, kind)) = unit.rsplit_once('.').filter(|(_, kind)| is_unit_kind(kind))
        else {
            return self.group(unit);
        };
        if matches!(kind, "mount" | "automount" | "swap") {
            // A dash of the path itself is written as a number.
            let path = format!("/{}", name.replace('-', "/").replace("\\x2d", "-"));
            let path = paths::path(&path, &mut self.names).replace('-', "\\x2d");
            return format!("{}.{kind}", path.trim_start_matches('/').replace('/', "-"));
        }
        if let Some(machine) = name.strip_prefix("machine-").filter(|_| kind == "scope") {
            return format!("machine-{}.scope", self.names.name(Kind::Host, machine));
        }
        match name.split_once('@') {
            Some((template, instance)) if !paths::is_public_component(instance) => {
                format!("{template}@{}.{kind}", self.names.name(Kind::Name, instance))
            }
            _ => unit.to_string(),
        }
    }

    /// A control group that is no unit. LXC names its groups for the machines in them.
    fn group(&mut self, group: &str) -> String {
        const OF_MACHINES: [&str; 2] = ["lxc.payload.", "lxc.monitor."];
        const KNOWN: [&str; 3] = ["", "kubepods", "libpod_parent"];
        let machine =
            OF_MACHINES.iter().find_map(|start| Some((start, group.strip_prefix(start)?)));
        match machine {
            Some((start, machine)) => format!("{start}{}", self.names.name(Kind::Host, machine)),
            None if KNOWN.contains(&group) || paths::is_public_component(group) => group.into(),
            None => self.names.name(Kind::Name, group),
        }
    }

    fn network_disks(&mut self, nbd: Nbd) -> Nbd {
        let Nbd { attached, server } = nbd;
        let attached = attached.into_iter().map(|attached| {
            let Attached { device, address, alive, connections, replaced, trouble } = attached;
            Attached {
                device: self.device(&device),
                address: paths::target(&address, &mut self.names),
                alive,
                connections,
                replaced,
                trouble: trouble.map(|words| self.trouble(&words)),
            }
        });
        let attached = attached.collect();
        Nbd { attached, server: server.map(|server| self.server(server)) }
    }

    fn server(&mut self, server: NbdServer) -> NbdServer {
        let NbdServer { place, trouble, cpu_share, clients } = server;
        let place = paths::target(&place, &mut self.names);
        let clients = clients.into_iter().map(|client| NbdClient {
            caller: self.names.name(Kind::Host, &client.caller),
            export: self.names.name(Kind::Volume, &client.export),
            ..client
        });
        let clients = clients.collect();
        let trouble = trouble.map(|words| self.trouble(&words));
        NbdServer { place, trouble, cpu_share, clients }
    }

    /// The words of a system or a server about a failure.
    fn trouble(&self, words: &str) -> String {
        phrase(words, &BTreeSet::new(), &self.names)
    }

    /// A sentence of this program. It names nothing but devices, and stays whole or not at all, since a part of one misleads.
    fn own_words(&self, words: String) -> String {
        if self.names.reveals(&words) { LEFT_OUT.into() } else { words }
    }

    /// A disk or a link: both may be the member of a pipe.
    fn device(&mut self, name: &str) -> String {
        let is_kept = kernel_names::is_kernel_name(name);
        if is_kept { name.to_string() } else { paths::interface(name, &mut self.names) }
    }

    /// "SC64G, 64.0 GB", or the file below a loop device in place of the model.
    fn what(&mut self, words: &str) -> String {
        let (what, size) = match words.rsplit_once(", ") {
            Some((what, size)) => (what, format!(", {}", self.trouble(size))),
            None => (words, String::new()),
        };
        let is_file = what.starts_with('/');
        let what = if is_file { paths::path(what, &mut self.names) } else { self.product(what) };
        what + &size
    }

    /// A name of smartctl's database: "SSD_LifeLeft(0.01%)", "Perc_Write/Erase_Count".
    fn attribute(&mut self, name: &str) -> String {
        let stem = name.trim_end_matches("(0.01%)").trim_end_matches('%').replace('/', "-");
        let is_kept = is_product(&stem) && !self.names.reveals(name);
        if is_kept { name.to_string() } else { LEFT_OUT.into() }
    }

    fn product(&mut self, text: &str) -> String {
        let is_kept = is_product(text) && !self.names.reveals(text);
        if is_kept { text.to_string() } else { LEFT_OUT.into() }
    }
}

/// How names of units end (systemd.unit(5)).
fn is_unit_kind(kind: &str) -> bool {
    const KINDS: [&str; 11] = [
        "service",
        "scope",
        "socket",
        "mount",
        "automount",
        "swap",
        "slice",
        "timer",
        "target",
        "path",
        "device",
    ];
    KINDS.contains(&kind)
}

#[cfg(test)]
mod tests;
