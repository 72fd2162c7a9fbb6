//! A plan reads back as it was written, and the schema describes every kind of step and of promise.

use std::collections::BTreeSet;

use rubus_change::plan::promise::{Look, Promise};
use rubus_change::plan::{Action, Plan, Step, When};
use rubus_change::steps::{
    AttachDisk, FillBoot, Format, InstallInitramfs, KeepJournal, MakeDirectory, MakeImage, On,
    ProveBoot, ReadUnits, RestartService, StartServer,
};
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../docs/reference/schemas/plan.schema.json");

/// Demands that these values have all forms of a type, that each form has words, and that it has each of their fields.
fn must_be_described<'a>(name: &str, tag: &str, values: impl Iterator<Item = &'a Value>) {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let forms = schema["$defs"][name]["oneOf"].as_array().expect("the type has forms");
    let kind_of = |form: &Value| form["properties"][tag]["const"].as_str().map(str::to_string);
    let mut seen = BTreeSet::new();
    for value in values {
        let kind = value[tag].as_str().expect("a tag is a text");
        let form = forms.iter().find(|form| kind_of(form).as_deref() == Some(kind));
        let form = form.unwrap_or_else(|| panic!("{name} {kind} is not in the schema"));
        let words = form["description"].as_str().unwrap_or_default();
        assert!(!words.is_empty(), "{name} {kind} has no words");
        for field in value.as_object().expect("an object").keys() {
            assert!(form["properties"].get(field).is_some(), "{name} {kind} lacks {field}");
        }
        seen.insert(kind.to_string());
    }
    let all: BTreeSet<String> = forms.iter().filter_map(kind_of).collect();
    assert_eq!(all, seen, "{name}: an example of each kind");
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
fn every_kind_of_step_and_of_promise_reads_back_and_is_described() {
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
        what: "the link is as fast as it was set".into(),
        look: Look::PcieLink { disk: "nvme0n1".into(), line_bits_per_second: 7_876_923_008 },
        needs_boot: true,
    });
    plan.promises.push(Promise {
        what: "it is served".into(),
        look: Look::Served { address: "nbd://127.0.0.1/".into(), export: Some("disk".into()) },
        needs_boot: false,
    });
    let value = serde_json::to_value(&plan).expect("a plan serialises");
    let actions = value["steps"].as_array().expect("steps").iter().map(|step| &step["action"]);
    must_be_described("Action", "do", actions);
    let looks = value["promises"].as_array().expect("promises").iter().map(|it| &it["look"]);
    must_be_described("Look", "look", looks);
    let back: Plan = serde_json::from_value(value).expect("and reads back");
    assert!(back == plan, "the plan changed on its way through JSON");
}

#[test]
fn a_plan_reads_back_as_it_was_written() {
    let plan = rubus_change::fixture::big_plan();
    let text = serde_json::to_string(&plan).expect("a plan serialises");
    let back: Plan = serde_json::from_str(&text).expect("and reads back");
    assert!(back == plan, "the plan changed on its way through JSON");
}
