//! Recipes that a user wrote: the documented example, every fault, and no text that breaks the reader.

use super::*;
use crate::testing::{after, obstacles, shown, text, wishes};
use crate::{PathState, Seen};
use rubus_change::plan::Action;
use rubus_change::steps::{Format, WriteFile};
use rubus_change::unseen::Unseen;
use rubus_fixtures as fixture;

const DOCUMENT: &str = include_str!("../../../../docs/how-to/recipes.md");

/// The example in the document.
fn example() -> UserRecipe {
    let start = DOCUMENT.find("```toml\n").expect("the document has one") + "```toml\n".len();
    let end = DOCUMENT[start..].find("```").expect("it ends") + start;
    UserRecipe::parse(&DOCUMENT[start..end]).expect("the documented example is right")
}

#[test]
fn the_document_has_a_row_for_each_kind_of_step() {
    let table = DOCUMENT.split("\n## Steps").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = table.expect("a part").lines().filter_map(|line| line.strip_prefix("| `"));
    // The first one is the head of the table.
    let documented: Vec<&str> = rows.filter_map(|row| row.split('`').next()).skip(1).collect();
    assert_eq!(documented, entries::kinds_of_work());
}

fn facts(recipe: &UserRecipe, wished: &[(&str, &str)], given: &[(&str, PathState)]) -> Facts {
    let machine = fixture::pi3_with_usb_ssd();
    let look_at = recipe.look_at(&machine, &wishes(wished)).expect("it makes sense");
    let mut seen: Seen = look_at
        .paths
        .into_iter()
        .map(|path| {
            let is_program = path.starts_with("/usr/sbin") || path.starts_with("/usr/bin");
            let sight = if is_program { PathState::Something } else { PathState::Absent };
            (path, sight)
        })
        .collect();
    for path in ["/etc", "/etc/sysctl.d", "/etc/systemd/system", "/var", "/var/tmp"] {
        seen.insert(path.into(), PathState::Directory(vec!["other".into()]));
    }
    for (path, sight) in given {
        seen.insert(path.into(), sight.clone());
    }
    Facts { seen, ..Facts::default() }
}

fn given() -> Vec<(&'static str, PathState)> {
    vec![
        ("/proc/sys/vm/dirty_expire_centisecs", text("3000\n")),
        ("/etc/logrotate.conf", text("weekly\nrotate 4\ncreate\n")),
        ("/etc/fstab", text("proc /proc proc defaults 0 0\n")),
    ]
}

fn plan_of(recipe: &UserRecipe, facts: &Facts, wished: &[(&str, &str)]) -> Plan {
    let machine = fixture::pi3_with_usb_ssd();
    recipe.plan(&machine, facts, &wishes(wished), "now").expect("it makes sense")
}

#[test]
fn the_documented_example_makes_this_plan() {
    let recipe = example();
    let wished = [("seconds", "90")];
    let plan = plan_of(&recipe, &facts(&recipe, &wished, &given()), &wished);
    assert_eq!(obstacles(&plan), [""; 0]);
    assert_eq!(plan.options["size"], "64M");
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn what_is_done_is_not_done_again() {
    let recipe = example();
    let before = facts(&recipe, &[], &given());
    let plan = plan_of(&recipe, &before, &[]);
    let later = after(&before, &plan);
    let mut machine = fixture::pi3_with_usb_ssd();
    let mut mount = machine.mounts[3].clone();
    mount.point = "/var/tmp/fast".into();
    machine.mounts.push(mount);
    let again = recipe.plan(&machine, &later, &wishes(&[]), "now").unwrap();
    assert!(again.is_empty(), "{:#?}", again.steps);
}

#[test]
fn every_fault_has_its_line_and_the_nearest_name() {
    let mut said = String::new();
    for text in [
        "",
        "name = \n",
        "name = \"x\"\ntitle = \"t\"\n",
        "name = \"X y\"\ntitle = 5.5\nstepp = 1\n[[step]]\ndo = \"make_directory\"\nwhy = \"w\"\npath = \"/x\"\n",
        "name = \"x\"\ntitle = \"t\"\n[[step]]\ndo = \"set_nob\"\nwhy = \"w\"\n[[step]]\nwhy = \"w\"\n",
        "name = \"x\"\ntitle = \"t\"\n[[step]]\ndo = \"set_knob\"\nwhy = \"w\"\npaht = \"/x\"\nvalue = true\n",
        "name = \"x\"\ntitle = \"t\"\n[options.size]\nwhat = \"w\"\nkind = \"sise\"\n[options.b]\nwhat = \"w\"\ndefault = \"q\"\none_of = [\"a\"]\n\
         [[step]]\ndo = \"make_directory\"\nwhy = \"w\"\npath = \"/{{bb}}\"\n",
        "name = \"x\"\ntitle = \"t\"\n[[check]]\nkind = \"programm\"\n[[promise]]\nkind = \"knob\"\nwhat = \"w\"\n[[step]]\ndo = \"swap_off\"\n",
        "name = \"x\"\ntitle = \"t\"\nstep = 3\noptions = [1]\ncheck = [2]\nnotes = \"n\"\nneeds_boot = 1\n",
    ] {
        let faults = UserRecipe::parse(text).expect_err(text);
        said += &format!("{text}\n");
        for fault in faults {
            said += &format!("=> {fault}\n");
        }
        said += "----\n";
    }
    insta::assert_snapshot!(said);
}

/// A recipe with one step.
fn one(step: &str) -> UserRecipe {
    let text = format!("name = \"x\"\ntitle = \"t\"\n[[step]]\nwhy = \"w\"\n{step}");
    UserRecipe::parse(&text).unwrap_or_else(|faults| panic!("{faults:?}"))
}

#[test]
fn every_step_has_its_action() {
    let mut said = String::new();
    for step in [
        "do = \"remove_file\"\npath = \"/etc/old\"",
        "do = \"remove_file\"\npath = \"/etc/none\"",
        "do = \"make_directory\"\npath = \"/etc/a/b\"",
        "do = \"set_link\"\npath = \"/etc/l\"\nto = \"/dev/null\"",
        "do = \"set_link\"\npath = \"/etc/old\"\nto = \"/dev/null\"",
        "do = \"mask\"\nunit = \"x.service\"",
        "do = \"set_knob\"\npath = \"/sys/none\"\nvalue = 1",
        "do = \"make_swap_file\"\npath = \"/swap\"\nsize = \"1G\"",
        "do = \"swap_on\"\nwhat = \"/swap\"\npriority = 5",
        "do = \"swap_off\"\nwhat = \"/dev/zram0\"",
        "do = \"swap_off\"\nwhat = \"/none\"",
        "do = \"mount\"\nwhat = \"tmpfs\"\nat = \"/m\"\ntype = \"tmpfs\"",
        "do = \"write_file\"\npath = \"/etc/old\"\ntext = \"new\"\nmode = \"0600\"",
        "do = \"write_file\"\npath = \"/etc\"\ntext = \"new\"",
    ] {
        let recipe = one(step);
        let facts = facts(&recipe, &[], &[("/etc/old", text("old\n"))]);
        let plan = plan_of(&recipe, &facts, &[]);
        let mut lines: Vec<String> = plan.steps.iter().map(|step| step.action.title()).collect();
        lines.extend(obstacles(&plan));
        said += &format!("{}\n  {}\n", step.replace('\n', ", "), lines.join("\n  "));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn two_lines_of_one_file_are_one_step() {
    let line = |key: &str| {
        format!(
            "[[step]]\ndo = \"set_line\"\nwhy = \"w\"\npath = \"/etc/f\"\nkey = \"{key}\"\nvalue = \"1\"\n"
        )
    };
    let text = format!("name = \"x\"\ntitle = \"t\"\n{}{}", line("a"), line("b"));
    let recipe = UserRecipe::parse(&text).unwrap();
    let facts = facts(&recipe, &[], &[("/etc/f", super::super::testing::text("a=0\n"))]);
    let plan = plan_of(&recipe, &facts, &[]);
    let [only] = &plan.steps[..] else {
        panic!("{:?}", plan.steps);
    };
    let Action::WriteFile(WriteFile { becomes, .. }) = &only.action else {
        panic!("{only:?}");
    };
    assert_eq!(becomes.text, "a=1\nb=1\n");
}

#[test]
fn what_makes_no_sense_with_the_wishes_names_the_line() {
    let text = "name = \"x\"\ntitle = \"t\"\n[options.place]\nwhat = \"w\"\n[options.n]\nwhat = \"w\"\nkind = \"number\"\n\
                [[step]]\ndo = \"make_directory\"\nwhy = \"{{n}}\"\npath = \"{{place}}\"\n";
    let recipe = UserRecipe::parse(text).unwrap();
    let machine = fixture::pi3_with_usb_ssd();
    let fault = |wished: &[(&str, &str)]| {
        let plan = recipe.plan(&machine, &Facts::default(), &wishes(wished), "now");
        plan.map(|plan| obstacles(&plan)).map_err(|fault| fault.to_string())
    };
    assert_eq!(
        fault(&[("place", "here"), ("n", "1")]).unwrap_err(),
        "line 8: 'here': write an absolute path, such as /mnt/data"
    );
    assert_eq!(
        fault(&[("place", "/x"), ("n", "one")]).unwrap_err(),
        "line 5: n=one: write a whole number"
    );
    assert_eq!(
        fault(&[("plac", "/x")]).unwrap_err(),
        "line 1: the recipe x has no option 'plac'; did you mean 'place'?"
    );
    let missing = fault(&[("n", "1")]).unwrap();
    assert_eq!(missing, ["place is chosen: no -> add place=...: w"]);
}

#[test]
fn checks_look_where_they_say() {
    let text = "name = \"x\"\ntitle = \"t\"\n\
                [[check]]\nkind = \"module\"\nmodule = \"zram\"\n\
                [[check]]\nkind = \"module\"\nmodule = \"uas\"\n\
                [[check]]\nkind = \"module\"\nmodule = \"none\"\n\
                [[check]]\nkind = \"file\"\npath = \"/etc/none\"\nremedy = \"make it\"\n\
                [[check]]\nkind = \"program\"\nprogram = \"none\"\npackage = \"some\"\n\
                [[step]]\ndo = \"make_directory\"\nwhy = \"w\"\npath = \"/x\"\n";
    let recipe = UserRecipe::parse(text).unwrap();
    let directory = "/lib/modules/6.12.47+rpt-rpi-v8";
    let (dep, builtin) =
        (format!("{directory}/modules.dep"), format!("{directory}/modules.builtin"));
    let mut facts = facts(
        &recipe,
        &[],
        &[
            (
                &dep,
                super::super::testing::text(
                    "kernel/drivers/block/zram/zram.ko.xz: kernel/mm/zsmalloc.ko.xz\n",
                ),
            ),
            (&builtin, super::super::testing::text("kernel/drivers/usb/storage/uas.ko\n")),
        ],
    );
    facts
        .seen
        .retain(|path, _| !(path.ends_with("none") && path.to_string_lossy().contains("bin")));
    let plan = plan_of(&recipe, &facts, &[]);
    assert_eq!(
        obstacles(&plan),
        [
            "the kernel has none: neither loaded, nor in the lists of its modules -> install a kernel that has the module none",
            "/etc/none is there: there is no /etc/none -> make it",
            "the program none is there: not in /usr/sbin, /usr/bin, /sbin, /bin -> sudo apt install some",
        ]
    );
}

/// What may not be looked at is neither there nor missing, whatever the words for it.
#[test]
fn a_file_that_cannot_be_seen_is_unknown() {
    let text = "name = \"x\"\ntitle = \"t\"\n\
                [[check]]\nkind = \"file\"\npath = \"/etc/hidden\"\nremedy = \"look\"\n\
                [[check]]\nkind = \"file\"\npath = \"/etc/not known\"\nremedy = \"look\"\n\
                [[step]]\ndo = \"make_directory\"\nwhy = \"w\"\npath = \"/x\"\n";
    let recipe = UserRecipe::parse(text).unwrap();
    let given = [
        ("/etc/hidden", PathState::Hidden(Unseen::Other("Input/output error".into()))),
        ("/etc/not known", PathState::Something),
    ];
    let checks = plan_of(&recipe, &facts(&recipe, &[], &given), &[]).checks;
    let answers: Vec<(bool, bool)> = checks.iter().map(|c| (c.is_met, c.is_unknown)).collect();
    assert_eq!(answers, [(true, true), (true, false)], "{checks:?}");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,300}") {
        let _ = UserRecipe::parse(&text);
    }

    #[test]
    fn no_change_of_the_example_makes_it_panic(at in 0_usize..3000, put in "[\\[\\]{}=\"a-z0-9\\n/. ]{0,8}", cut in 0_usize..40) {
        let start = DOCUMENT.find("```toml\n").unwrap() + 8;
        let end = DOCUMENT[start..].find("```").unwrap() + start;
        let mut text = DOCUMENT[start..end].to_string();
        let at = at.min(text.len());
        let to = (at + cut).min(text.len());
        if text.is_char_boundary(at) && text.is_char_boundary(to) {
            text.replace_range(at..to, &put);
        }
        if let Ok(recipe) = UserRecipe::parse(&text) {
            let machine = fixture::pi3_with_usb_ssd();
            let none = wishes(&[]);
            if recipe.look_at(&machine, &none).is_ok() {
                let _ = recipe.plan(&machine, &Facts::default(), &none, "now");
            }
        }
    }
}

/// Two new filesystems and a file on the first one.
const DISKS: &str = r#"
name = "two-disks"
title = "Two new disks."
risks = ["Two disks fail more often than one."]
[options.device]
what = "the first disk"
[[step]]
do = "format"
id = "data"
why = "Data has a disk of its own."
device = "{{device}}"
filesystem = "btrfs"
label = "data"
at = "/mnt/data"
[[step]]
do = "format"
why = "The copies have one too."
device = "/dev/sdc"
bare = true
at = "/mnt/copies"
[[step]]
do = "write_file"
why = "It says whose the disk is."
path = "/mnt/data/README"
text = "Mine."
"#;

fn with_two_disks(wished: &[(&str, &str)]) -> Result<Plan, Fault> {
    use crate::testing::disk;
    let recipe = UserRecipe::parse(DISKS).expect("it is a recipe");
    let mut machine = fixture::pi3_with_usb_ssd();
    for name in ["sdb", "sdc"] {
        let device = machine.device("sda").cloned();
        let mut device = device.expect("the fixture has it");
        device.name = name.into();
        machine.block_devices.push(device);
    }
    let looked = recipe.look_at(&machine, &wishes(wished))?;
    assert_eq!(looked.disks, [wished[0].1, "/dev/sdc"].map(std::path::PathBuf::from));
    let mut facts = facts(&recipe, wished, &given());
    facts.seen.insert("/mnt".into(), PathState::Directory(Vec::new()));
    for (path, serial) in [("/dev/sdb", "S-1"), ("/dev/sdc", "S-2")] {
        facts.disks.insert(path.into(), Ok(disk(path, serial)));
    }
    facts
        .disks
        .insert("/dev/sda".into(), Err(Unseen::Other("/dev/sda1 is mounted at /srv/data".into())));
    recipe.plan(&machine, &facts, &wishes(wished), "now")
}

#[test]
fn a_filesystem_is_made_as_by_the_recipe_format() {
    let plan = with_two_disks(&[("device", "/dev/sdb")]).expect("it makes sense");
    assert_eq!(obstacles(&plan), [""; 0]);
    let lost: Vec<&str> = plan.disks_lost().iter().map(|disk| disk.confirmation.as_str()).collect();
    assert_eq!(lost, ["S-1", "S-2"], "both have to be given away");
    let ids: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "data-partition",
            "data-filesystem",
            "data-place",
            "data-at-boot",
            "data-mounted",
            "step-2-filesystem",
            "step-2-place",
            "step-2-mounted",
            "step-3"
        ]
    );
    let made: Vec<(&str, &str)> = plan
        .steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::Format(Format { filesystem, .. }) => {
                Some((filesystem.uuid.as_str(), step.why.as_str()))
            }
            _ => None,
        })
        .collect();
    assert_eq!([made[0].1, made[1].1], ["Data has a disk of its own.", "The copies have one too."]);
    assert_ne!(made[0].0, made[1].0, "two filesystems with one identifier");
    let fstab = plan.steps.iter().find_map(|step| match &step.action {
        Action::WriteFile(WriteFile { path, becomes, .. }) if path.ends_with("fstab") => {
            Some(&becomes.text)
        }
        _ => None,
    });
    let fstab = fstab.expect("it is written once, with both");
    for (uuid, _) in &made {
        assert!(fstab.contains(*uuid), "{fstab}");
    }
    assert_eq!(plan.risks[0], "Two disks fail more often than one.");
    assert!(
        plan.risks.iter().any(|risk| risk.contains("/dev/sdb now is lost")),
        "{:?}",
        plan.risks
    );
    assert_eq!(plan.promises.len(), 2);
}

#[test]
fn a_filesystem_is_not_made_on_a_disk_in_use_or_on_nonsense() {
    let plan = with_two_disks(&[("device", "/dev/sda")]).expect("it makes sense");
    assert!(obstacles(&plan).iter().any(|one| one.contains("/dev/sda")), "{:?}", obstacles(&plan));
    let fault = with_two_disks(&[("device", "sdb")]).unwrap_err();
    assert!(fault.reason.contains("'sdb': write a device by its node"), "{}", fault.reason);
    let text = DISKS.replace("btrfs", "ntfs");
    let recipe = UserRecipe::parse(&text).expect("what it says is looked at later");
    let machine = fixture::pi3_with_usb_ssd();
    let wished = wishes(&[("device", "/dev/sdb")]);
    let fault = recipe.plan(&machine, &Facts::default(), &wished, "now").unwrap_err();
    assert!(fault.reason.contains("'ntfs': write ext4, btrfs"), "{}", fault.reason);
}
