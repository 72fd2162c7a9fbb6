//! `docs/reference/plan-json.md` and a plan's own JSON name the same fields: none undocumented, none invented.

use std::collections::{BTreeMap, BTreeSet};

use rubus_change::plan::promise::{Look, Promise};
use rubus_change::plan::volume::{PartitionTable, TableKind};
use rubus_change::plan::{Action, Plan, Step, When};
use rubus_change::steps::{
    AttachDisk, FillBoot, Format, InstallInitramfs, KeepJournal, MakeDirectory, MakeImage, On,
    ProveBoot, ReadUnits, RestartService, StartServer,
};
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../../docs/reference/plan-json.md");

/// The names in backquotes that open the rows of the table under a heading.
fn documented(heading: &str) -> BTreeSet<String> {
    let start = DOCUMENT
        .find(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("the heading {heading} is there"));
    let rest = &DOCUMENT[start + 4..];
    let end = rest.find("\n## ").unwrap_or(rest.len());
    rest[..end]
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split('`').next())
        .map(str::to_string)
        .collect()
}

/// The sections that describe what stands in a field of such a name, wherever it stands.
fn section_of(field: &str, value: &Value) -> Option<&'static str> {
    let has = |name: &str| value.get(name).is_some();
    Some(match field {
        "was" | "becomes" if has("text") => "A text file",
        "disk" | "gives_away[]" if has("confirmation") => "A disk",
        "place" | "members[]" => "A place",
        "table" if has("kind") => "A partition table",
        "filesystem" if has("subvolumes") => "A new filesystem",
        "volume" | "to" | "root" | "on" if has("mount_options") => "A volume",
        "action" => "Actions",
        "look" if has("look") => "Looks",
        _ => return None,
    })
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, BTreeSet<String>>);

impl Fields {
    /// Takes all fields below `value`, which is described in `section` under `prefix`.
    fn take(&mut self, section: &'static str, prefix: &str, value: &Value) {
        let Value::Object(fields) = value else {
            return;
        };
        for (name, field) in fields {
            let path = match prefix {
                "" => name.clone(),
                prefix => format!("{prefix}.{name}"),
            };
            self.0.entry(section).or_default().insert(path.clone());
            // The names of options are the recipe's.
            if name == "options" && section == "The plan" {
                continue;
            }
            self.enter(section, &path, name, field);
        }
    }

    fn enter(&mut self, section: &'static str, path: &str, name: &str, field: &Value) {
        if let Value::Array(elements) = field {
            for element in elements {
                self.enter(section, &format!("{path}[]"), &format!("{name}[]"), element);
            }
            return;
        }
        match section_of(name, field) {
            Some("Actions") => self.tagged("Actions", "do", field),
            Some("Looks") => self.tagged("Looks", "look", field),
            Some("A place") => self.tagged("A place", "on", field),
            Some(known) => self.take(known, "", field),
            None => self.take(section, path, field),
        }
    }

    /// What differs by a tag: its fields are named `TAG.FIELD`.
    fn tagged(&mut self, section: &'static str, tag: &str, value: &Value) {
        let mut value = value.clone();
        let fields = value.as_object_mut().expect("it is an object");
        let kind = fields.remove(tag).expect("it has its tag");
        let kind = kind.as_str().expect("a tag is a text");
        self.0.entry(section).or_default().insert(kind.into());
        self.take(section, kind, &value);
    }
}

/// Steps of the kinds that the example does not have: a proof, network disks and their servers, and what only the plan of an image has.
fn further_steps(plan: &Plan) -> Vec<Step> {
    let actions = plan.steps.iter().map(|step| &step.action);
    let place = actions.clone().find_map(|action| match action {
        Action::Format(Format { place, .. }) => Some(place.clone()),
        _ => None,
    });
    let root = actions.clone().find_map(|action| match action {
        Action::KeepJournal(KeepJournal { on }) => Some(on.clone()),
        _ => None,
    });
    let place = place.expect("the example makes a filesystem");
    let disks = place.disks().into_iter().cloned().collect();
    let root = root.expect("the example keeps its journal on another root");
    let boot = "/boot/firmware".into();
    let further = [
        Action::InstallInitramfs(InstallInitramfs {
            root: root.clone(),
            release: "6.12.47+rpt-rpi-v8".into(),
            from: "/boot/firmware/initramfs-rubus".into(),
            path: "/boot/firmware/initramfs8".into(),
            kept: Some("/boot/firmware/initramfs8.before-rubus".into()),
            modules: vec!["btrfs".into()],
            files: vec!["/usr/bin/btrfs".into()],
        }),
        Action::On(On {
            volume: root.clone(),
            action: Box::new(Action::MakeDirectory(MakeDirectory { path: "/swap".into() })),
            is_undone: true,
        }),
        Action::ProveBoot(ProveBoot { root, boot }),
        Action::FillBoot(FillBoot { place }),
        Action::AttachDisk(AttachDisk {
            address: "nbd://192.168.1.2/disk".into(),
            device: "/dev/nbd0".into(),
            arguments: vec!["nbd://192.168.1.2/disk".into(), "/dev/nbd0".into()],
        }),
        Action::MakeImage(MakeImage { path: "/srv/disk.img".into(), size_bytes: 1 << 30 }),
        Action::ReadUnits(ReadUnits {}),
        Action::RestartService(RestartService {
            unit: "systemd-journald.service".into(),
            when: When::Applied,
        }),
        Action::StartServer(StartServer {
            unit: "rubus-serve-disk".into(),
            socket: "/run/rubus-serve-disk.socket".into(),
            question: vec!["info".into(), "nbd://127.0.0.1/disk".into()],
            gives_away: disks,
        }),
    ];
    let step =
        |action| Step { id: "further".into(), why: "It belongs to the format.".into(), action };
    further.map(step).into()
}

#[test]
fn every_field_of_a_plan_is_documented_and_every_documented_field_exists() {
    let mut plan = rubus_change::fixture::big_plan();
    plan.checks[0].remedy = Some("this".into());
    plan.checks[0].is_unknown = true;
    plan.gains_unknown = Some("sdb was not measured.".into());
    plan.steps.extend(further_steps(&plan));
    plan.promises.push(Promise {
        what: "it is mounted".into(),
        look: Look::MountedFrom { at: "/mnt/network".into(), device: "nbd0".into() },
        needs_boot: false,
    });
    plan.promises.push(Promise {
        what: "logs are in memory".into(),
        look: Look::InMemory { at: "/var/log".into() },
        needs_boot: true,
    });
    plan.promises.push(Promise {
        what: "usb-storage serves the bridge".into(),
        look: Look::UsbDriver { chip: "152d:0578".into(), driver: "usb-storage".into() },
        needs_boot: true,
    });
    plan.promises.push(Promise {
        what: "it is served".into(),
        look: Look::Served { address: "nbd://127.0.0.1/".into(), export: Some("disk".into()) },
        needs_boot: false,
    });
    let mut fields = Fields::default();
    fields.take("The plan", "", &serde_json::to_value(&plan).expect("a plan serialises"));
    let gpt = PartitionTable {
        kind: TableKind::Gpt { disk_guid: "5c2d".into() },
        partitions: Vec::new(),
    };
    let gpt = serde_json::to_value(gpt).expect("a table serialises");
    fields.take("A partition table", "", &gpt);
    for (section, real) in &fields.0 {
        assert_eq!(&documented(section), real, "{section}");
    }
    assert_eq!(fields.0.len(), 9);
}

#[test]
fn a_plan_reads_back_as_it_was_written() {
    let plan = rubus_change::fixture::big_plan();
    let text = serde_json::to_string(&plan).expect("a plan serialises");
    let back: Plan = serde_json::from_str(&text).expect("and reads back");
    assert!(back == plan, "the plan changed on its way through JSON");
}
