//! Settings are read as the firmware reads them, and an edit changes one line.

use proptest::prelude::*;

use super::super::model::Model;
use super::*;
use crate::revision;

/// A file as Raspberry Pi OS has it in 2026, shortened.
const PI_OS: &str = "\
# For more options and information see
# http://rptl.io/configtxt

dtparam=audio=on
auto_initramfs=1
dtoverlay=vc4-kms-v3d
arm_64bit=1

[cm4]
otg_mode=1

[cm5]
dtoverlay=dwc2,dr_mode=host

[all]
";

fn model(code: u32) -> Model {
    Model::of_revision(&revision::decode(code))
}

fn ask<T>(code: u32, tryboot: bool, question: impl FnOnce(&Reader<'_>) -> T) -> T {
    let includes = BTreeMap::from([
        ("more.txt".to_string(), "[pi4]\nkernel=included.img\n".to_string()),
        ("self.txt".to_string(), "include self.txt\nkernel=x\n".to_string()),
    ]);
    question(&Reader {
        model: &model(code),
        serial: Some(0x1000_0000_1234_5678),
        tryboot,
        partition: Some(ReadPartition { number: 2, is_filter_known: code == PI_5 }),
        includes: &includes,
    })
}

const PI_3: u32 = 0xa02082;
const PI_3_PLUS: u32 = 0xa020d3;
const PI_4: u32 = 0xc03114;
const PI_5: u32 = 0xa04171;

fn paths(text: &str, code: u32, files: &[&str]) -> Vec<BootPath> {
    let config = ConfigTxt::parse(text);
    ask(code, false, |reader| config.boot_paths(reader, &|name| files.contains(&name)))
}

fn get(text: &str, name: &str, code: u32) -> Option<String> {
    ask(code, false, |reader| ConfigTxt::parse(text).get(name, reader))
}

#[test]
fn files_that_include_themselves_a_hundred_times_are_read_in_bounded_work() {
    let text = format!("{}arm_freq=900\n", "include config.txt\n".repeat(100));
    let includes = BTreeMap::from([("config.txt".to_string(), text.clone())]);
    let reader = Reader {
        model: &model(PI_3),
        serial: None,
        tryboot: false,
        partition: None,
        includes: &includes,
    };
    assert_eq!(ConfigTxt::parse(text).get("arm_freq", &reader).as_deref(), Some("900"));
}

#[test]
fn what_else_has_to_be_read_is_named_whatever_the_section() {
    let config = ConfigTxt::parse(
        "include mine.txt\n[pi5]\nos_prefix=current/\n[cm4]\ncmdline=other.txt\nkernel=deep/Image\n",
    );
    let named: Vec<String> = config.companions().into_iter().collect();
    assert_eq!(
        named,
        [
            "cmdline.txt",
            "current/",
            "current/cmdline.txt",
            "current/deep/",
            "current/other.txt",
            "deep/",
            "mine.txt",
            "other.txt",
        ]
    );
    let files = ConfigTxt::parse("initramfs ird/initrd.img followkernel\ndevice_tree=dtbs/x.dtb\n");
    let named: Vec<String> = files.companions().into_iter().collect();
    assert_eq!(named, ["cmdline.txt", "dtbs/", "ird/"]);
}

#[test]
fn last_value_of_the_boards_own_sections_wins() {
    let text = "kernel=a\n[pi4]\nkernel=b\n[pi3]\n kernel=c \n[pi3+]\nkernel=d\n[all]\n#kernel=e\n";
    for (code, expected) in [(PI_4, "b"), (PI_3, "c"), (PI_3_PLUS, "d"), (PI_5, "a")] {
        assert_eq!(get(text, "kernel", code).as_deref(), Some(expected), "{code:#x}");
    }
}

#[test]
fn filters_of_different_kinds_must_all_apply() {
    let text = "[0x12345678]\n[pi4]\ncmdline=mine.txt\n[0xdead]\ncmdline=other.txt\n[none]\ncmdline=no.txt\n";
    assert_eq!(get(text, "cmdline", PI_4).as_deref(), Some("mine.txt"));
    assert_eq!(get(text, "cmdline", PI_3), None);
    let by_type = "[board-type=0x11]\nkernel=four\n[board-type=0x17]\nkernel=five\n";
    assert_eq!(get(by_type, "kernel", PI_5).as_deref(), Some("five"));
}

#[test]
fn a_trial_start_has_its_own_section() {
    let config = ConfigTxt::parse("cmdline=old.txt\n[tryboot]\ncmdline=new.txt\n");
    for (tryboot, expected) in [(false, "old.txt"), (true, "new.txt")] {
        let found = ask(PI_3, tryboot, |reader| config.get("cmdline", reader));
        assert_eq!(found.as_deref(), Some(expected));
    }
}

#[test]
fn included_files_stand_in_their_place() {
    let text = "kernel=a\ninclude more.txt\nkernel=b\n";
    // The filter that the included file ends with stays on.
    assert_eq!(get(text, "kernel", PI_4).as_deref(), Some("b"));
    assert_eq!(get(text, "kernel", PI_3).as_deref(), Some("a"));
    assert_eq!(ConfigTxt::parse(text).includes(), ["more.txt"]);
    assert_eq!(get("include self.txt\n", "kernel", PI_3).as_deref(), Some("x"));
}

#[test]
fn raspberry_pi_os_starts_the_kernel_of_its_board() {
    let files = ["kernel8.img", "initramfs8", "kernel_2712.img", "initramfs_2712"];
    for (code, kernel, initramfs) in [
        (PI_3, "kernel8.img", "initramfs8"),
        (PI_4, "kernel8.img", "initramfs8"),
        (PI_5, "kernel_2712.img", "initramfs_2712"),
    ] {
        let found = paths(PI_OS, code, &files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].kernel, kernel);
        assert_eq!(found[0].initramfs, [initramfs]);
        assert_eq!(found[0].cmdline, "cmdline.txt");
    }
    // Without its own kernel, a Pi 5 takes the common one.
    let found = paths(PI_OS, PI_5, &["kernel8.img", "initramfs8"]);
    assert_eq!(found[0].kernel, "kernel8.img");
}

#[test]
fn without_a_mode_every_kernel_that_is_there_may_start() {
    let files = ["kernel7.img", "kernel8.img", "kernel7l.img"];
    let kernels = |code| -> Vec<String> {
        let found = paths("auto_initramfs=1\n", code, &files);
        found.into_iter().map(|path| path.kernel).collect()
    };
    assert_eq!(kernels(PI_3), ["kernel7.img", "kernel8.img"]);
    assert_eq!(kernels(PI_4), ["kernel8.img", "kernel7l.img"]);
    assert_eq!(initramfs_of("sub/kernel7l.img").as_deref(), Some("sub/initramfs7l"));
}

#[test]
fn doubtful_filters_are_taken_both_ways() {
    let text = "kernel=a.img\n[gpio4=1]\nkernel=b.img\n[EDID=X]\ncmdline=c.txt\n";
    let found = paths(text, PI_3, &["a.img", "b.img"]);
    let cases: Vec<(&str, &str, usize)> =
        found.iter().map(|path| (&*path.kernel, &*path.cmdline, path.only_if.len())).collect();
    assert_eq!(
        cases,
        [("a.img", "cmdline.txt", 0), ("b.img", "c.txt", 2), ("b.img", "cmdline.txt", 1),]
    );
}

#[test]
fn names_of_an_initramfs_line_and_a_prefix() {
    let text =
        "os_prefix=new/\nkernel=k.img\ninitramfs a.img,/b.img followkernel\ndevice_tree=x.dtb\n";
    let found = paths(text, PI_3, &["new/k.img"]);
    assert_eq!(found[0].kernel, "new/k.img");
    assert_eq!(found[0].initramfs, ["new/a.img", "b.img"]);
    assert_eq!(found[0].cmdline, "new/cmdline.txt");
    assert_eq!(found[0].device_tree.as_deref(), Some("new/x.dtb"));
    // Nothing there: the firmware passes over the prefix.
    assert_eq!(paths(text, PI_3, &[])[0].kernel, "k.img");
}

#[test]
fn setting_changes_one_line_or_adds_one_that_wins() {
    let mut config = ConfigTxt::parse(PI_OS);
    config.set("auto_initramfs", "0");
    assert_eq!(config.text(), PI_OS.replace("auto_initramfs=1", "auto_initramfs=0"));
    config.set("cmdline", "new.txt");
    assert!(config.text().ends_with("[all]\ncmdline=new.txt\n"));
    let mut config = ConfigTxt::parse("kernel=a\r\n[pi3]\r\nkernel=b");
    config.set("kernel", "c");
    assert_eq!(config.text(), "kernel=a\r\n[pi3]\r\nkernel=b\r\n[all]\r\nkernel=c\r\n");
    config.set("initramfs", "i.img followkernel");
    assert!(config.text().ends_with("kernel=c\r\ninitramfs i.img followkernel\r\n"));
}

#[test]
fn what_is_set_under_a_filter_counts_there_alone_whatever_stands_before() {
    for text in ["", "initramfs a\n", "[pi3]\nkernel=b", "[gpio4=1]\r\nkernel=b\r\n"] {
        let mut config = ConfigTxt::parse(text);
        config.set_under("pi5", &[("initramfs", "i followkernel"), ("auto_initramfs", "0")]);
        let before = ask(PI_4, false, |reader| ConfigTxt::parse(text).get("initramfs", reader));
        let get = |board| ask(board, false, |reader| config.get("initramfs", reader));
        assert_eq!(get(PI_5).as_deref(), Some("i followkernel"), "{text:?}");
        assert_eq!(get(PI_4), before, "{text:?}");
        let end = "[pi5]\ninitramfs i followkernel\nauto_initramfs=0\n[all]\n";
        assert!(config.text().replace("\r\n", "\n").ends_with(end), "{text:?}");
    }
}

#[test]
fn removing_leaves_what_is_for_other_boards() {
    let mut config = ConfigTxt::parse("# a\ncmdline=x\n[pi3]\ncmdline=y\n[all]\ncmdline=z\n");
    assert_eq!(config.remove("cmdline"), 2);
    assert_eq!(config.text(), "# a\n[pi3]\ncmdline=y\n[all]\n");
}

#[test]
fn long_lines_are_named() {
    let text = format!("# {0}\nkernel={0}\ndtparam={0}\n", "x".repeat(100));
    assert_eq!(ConfigTxt::parse(text).long_lines(), [2]);
}

proptest! {
    #[test]
    fn nothing_panics(text in "([a-z#=\\[\\]\\t ,0-9]{0,12}\\r?\\n?){0,8}") {
        let config = ConfigTxt::parse(text.clone());
        ask(PI_4, true, |reader| {
            config.settings(reader);
            config.boot_paths(reader, &|name| name.len() % 2 == 0);
        });
        let mut edited = config.clone();
        edited.remove("no-such-setting");
        prop_assert_eq!(edited.text(), &text);
    }

    #[test]
    fn what_is_set_counts_on_every_board_and_other_lines_stay(
        lines in prop::collection::vec(
            prop::sample::select(vec![
                "kernel=a", "[pi3]", "[pi4]", "[all]", "[gpio4=1]", "# note", "", "dtparam=x",
                "initramfs i", "include more.txt", "  kernel = b ",
            ]),
            0..10,
        ),
        ends_with_newline: bool,
    ) {
        let mut text = lines.join("\n");
        if ends_with_newline {
            text.push('\n');
        }
        let mut config = ConfigTxt::parse(text.clone());
        config.set("kernel", "new.img");
        for code in [PI_3, PI_4, PI_5] {
            let value = ask(code, false, |reader| config.get("kernel", reader));
            prop_assert_eq!(value.as_deref(), Some("new.img"));
        }
        let others = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("kernel"));
            lines.map(str::to_string).collect()
        };
        let (before, after) = (others(&text), others(config.text()));
        prop_assert_eq!(&after[..before.len()], &before[..]);
        prop_assert!(after[before.len()..].iter().all(|line| line == "[all]"));
    }
}

/// What is loaded in the usual case, and with each doubt.
fn ways(text: &str, code: u32) -> Vec<(String, Vec<String>)> {
    let files = ["kernel8.img", "own.img"];
    let found = paths(&format!("arm_64bit=1\n{text}"), code, &files).into_iter();
    found.map(|path| (path.kernel, path.only_if.into_iter().collect())).collect()
}

#[test]
fn a_comment_behind_a_value_is_read_both_ways() {
    let both = |with: &str, without: &str| {
        vec![(with.to_string(), vec![]), (without.to_string(), vec![COMMENTED.to_string()])]
    };
    assert_eq!(ways("kernel=own.img # mine\n", PI_4), both("own.img # mine", "own.img"));
    // A # within a name is a part of it, and other settings do not matter.
    let usual = vec![("kernel8.img".to_string(), vec![])];
    assert_eq!(ways("dtparam=audio=on # sound\ncmdline=a#b.txt\n", PI_4).len(), 1);
    assert_eq!(ways("gpu_mem=64 # enough\n", PI_4), usual);
    let config = ConfigTxt::parse("os_prefix=old/ # mine\n");
    assert!(config.companions().contains("old/cmdline.txt"));
}

#[test]
fn settings_and_filters_as_picore_writes_them_are_read_both_ways() {
    let doubts = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let own = |names: &[&str]| ("own.img".to_string(), doubts(names));
    let usual = ("kernel8.img".to_string(), Vec::new());
    assert_eq!(ways("kernel own.img\n", PI_4), [usual.clone(), own(&[BARE])]);
    assert_eq!(ways("[PI4]\nkernel=own.img\n", PI_4), [usual.clone(), own(&[CAPITALS])]);
    assert_eq!(ways("[PI3]\nkernel=own.img\n", PI_4), std::slice::from_ref(&usual));
    // A filter of the usual kind ends the doubt, and so does [all].
    assert_eq!(ways("[PI3]\n[pi4]\nkernel=own.img\n", PI_4), [own(&[])]);
    assert_eq!(ways("[pi3]\n[ALL]\nkernel=own.img\n", PI_4), [usual, own(&[CAPITALS])]);
    assert_eq!(ways("[PI3]\n[all]\nkernel=own.img\n", PI_4), [own(&[])]);
    let mut config = ConfigTxt::parse("kernel own.img\n");
    config.set("kernel", "new.img");
    assert_eq!(config.text(), "kernel=new.img\n");
}

#[test]
fn a_filter_for_another_partition_keeps_its_settings_out() {
    let text = "[boot_partition=2]\nkernel=own.img\n[boot_partition=3]\nkernel=other.img\n";
    let own = ("own.img".to_string(), Vec::new());
    assert_eq!(ways(text, PI_5), [own]);
    // Of firmware whose date is not known it is not certain that it knows the filter.
    let of_pi4 = ways(text, PI_4);
    assert_eq!(of_pi4.len(), 2, "{of_pi4:?}");
    assert_eq!(of_pi4[1], ("own.img".to_string(), vec!["[boot_partition=2]".to_string()]));
}

/// Guides write it so; the firmware does not read it.
#[test]
fn initramfs_has_no_equals_sign() {
    let files = ["kernel8.img", "initramfs8"];
    let with = |line: &str| {
        let found = paths(&format!("arm_64bit=1\n{line}\n"), 0xc0_3114, &files);
        found[0].initramfs.clone()
    };
    assert_eq!(with("initramfs initramfs8 followkernel"), ["initramfs8"]);
    assert!(with("initramfs=initramfs8 followkernel").is_empty());
}
