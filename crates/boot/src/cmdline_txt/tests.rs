//! The line is read as the kernel reads it, and an edit changes one word.

use proptest::prelude::*;

use super::*;

const PI_OS: &str = "console=serial0,115200 console=tty1 root=PARTUUID=8a676486-02 rootfstype=ext4 \
                     fsck.repair=yes rootwait resize\n";

#[test]
fn names_and_values_are_found() {
    let cmdline = CmdlineTxt::parse(PI_OS);
    assert_eq!(cmdline.get("root"), Some("PARTUUID=8a676486-02"));
    assert_eq!(cmdline.get("console"), Some("tty1"));
    assert_eq!(cmdline.all("console"), ["serial0,115200", "tty1"]);
    assert!(cmdline.has("rootwait"));
    assert_eq!(cmdline.get("rootwait"), None);
    assert!(!cmdline.has("rootflags"));
}

#[test]
fn quotes_are_the_kernels() {
    let cmdline = CmdlineTxt::parse(r#"a="b c" "d=e f" "g h" i=j"k l --m x"#);
    let words: Vec<(&str, Option<&str>)> =
        cmdline.words().map(|word| (word.name, word.value)).collect();
    let expected =
        [("a", Some("b c")), ("d", Some("e f")), ("g h", None), ("i", Some("j\"k l --m x"))];
    assert_eq!(words, expected);
}

#[test]
fn dashes_and_underscores_are_the_same_and_words_of_init_are_not_the_kernels() {
    let mut cmdline = CmdlineTxt::parse("usb_storage.quirks=152d:0578:u -- root=x\n");
    assert_eq!(cmdline.get("usb-storage.quirks"), Some("152d:0578:u"));
    assert_eq!(cmdline.get("root"), None);
    cmdline.set("root", "/dev/sda2").expect("a plain word");
    assert_eq!(cmdline.text(), "usb_storage.quirks=152d:0578:u root=/dev/sda2 -- root=x\n");
}

#[test]
fn an_edit_changes_its_word_only() {
    let mut cmdline = CmdlineTxt::parse(PI_OS);
    cmdline.set("root", "PARTUUID=0badcafe-02").expect("plain");
    cmdline.set("rootfstype", "btrfs").expect("plain");
    cmdline.set("rootflags", "subvol=@").expect("plain");
    cmdline.set_flag("rootwait").expect("plain");
    assert_eq!(cmdline.remove_first_start(), ["resize"]);
    assert_eq!(
        cmdline.text(),
        "console=serial0,115200 console=tty1 root=PARTUUID=0badcafe-02 rootfstype=btrfs \
         fsck.repair=yes rootwait rootflags=subvol=@\n"
    );
}

#[test]
fn every_word_of_a_name_gives_way_to_the_new_one() {
    let mut cmdline = CmdlineTxt::parse("root=a  quiet\troot=b x root=c\r\nsecond line\n");
    cmdline.set("root", "d").expect("plain");
    assert_eq!(cmdline.text(), "root=d  quiet x\r\nsecond line\n");
    assert_eq!(cmdline.ignored_lines().collect::<Vec<_>>(), ["second line"]);
    assert_eq!(cmdline.remove("root"), 1);
    assert_eq!(cmdline.text(), "quiet x\r\nsecond line\n");
}

#[test]
fn growing_at_first_start_is_known_in_all_its_forms() {
    let text = "init=/usr/lib/raspi-config/init_resize.sh root=a resize init=/sbin/init resize=1";
    let mut cmdline = CmdlineTxt::parse(text);
    assert_eq!(cmdline.first_start_words().len(), 2);
    cmdline.remove_first_start();
    assert_eq!(cmdline.text(), "root=a init=/sbin/init resize=1");
}

#[test]
fn a_value_among_several_can_be_taken_out() {
    let mut cmdline = CmdlineTxt::parse("console=tty1 console=ttyS0 quiet");
    assert_eq!(cmdline.remove_value("console", "tty1"), 1);
    assert_eq!(cmdline.text(), "console=ttyS0 quiet");
}

#[test]
fn what_the_kernel_would_not_read_back_is_refused() {
    let mut cmdline = CmdlineTxt::parse("a=b\n");
    for (name, value) in [("a", "b\"c"), ("a b", "c"), ("", "x"), ("a", "b\nc"), ("--", "c")] {
        assert!(cmdline.set(name, value).is_err(), "{name}={value}");
    }
    assert_eq!(cmdline.text(), "a=b\n");
    cmdline.set("a", "b c").expect("quotes");
    assert_eq!(cmdline.text(), "a=\"b c\"\n");
}

#[test]
fn padding_has_the_length_asked_for_and_is_not_words() {
    let padded = CmdlineTxt::parse(PI_OS).padded(SECTOR_BYTES).expect("fits");
    assert_eq!(padded.len(), SECTOR_BYTES);
    assert!(padded.ends_with(" \n"));
    let again = CmdlineTxt::parse(padded);
    assert_eq!(again.line(), PI_OS.trim());
    let error = again.padded(20).expect_err("too long");
    assert!(error.to_string().contains("20 fit"), "{error}");
}

proptest! {
    #[test]
    fn nothing_panics_and_reading_changes_nothing(text in "[ -~\\t\\r\\n\u{e4}]{0,80}") {
        let mut cmdline = CmdlineTxt::parse(text.clone());
        let _ = (cmdline.get("root"), cmdline.line(), cmdline.first_start_words().len());
        prop_assert_eq!(cmdline.text(), &text);
        cmdline.remove("nothing-of-that-name");
        prop_assert_eq!(cmdline.text(), &text);
    }

    #[test]
    fn what_is_set_is_found_and_other_words_stay(
        words in prop::collection::vec("[a-z]{1,4}(=[a-z0-9,=]{0,4})?", 0..6),
        value in "[a-z0-9=, ]{0,8}",
    ) {
        let mut cmdline = CmdlineTxt::parse(words.join(" ") + "\n");
        let others = |cmdline: &CmdlineTxt| -> Vec<String> {
            let words = cmdline.words().filter(|word| word.name != "root_x");
            words.map(|word| word.written.to_string()).collect()
        };
        let before = others(&cmdline);
        cmdline.set("root_x", &value).expect("plain");
        prop_assert_eq!(cmdline.get("root-x"), Some(value.as_str()));
        prop_assert_eq!(others(&cmdline), before);
        cmdline.remove("root_x");
        let line = words.join(" ") + "\n";
        prop_assert_eq!(cmdline.text(), line.as_str());
    }
}

#[test]
fn a_root_that_keeps_nothing_is_asked_for_by_the_last_word_of_its_name() {
    for (line, word) in [
        ("root=/dev/mmcblk0p2 overlayroot=tmpfs:recurse=0", Some("overlayroot=tmpfs:recurse=0")),
        ("boot=overlay root=/dev/mmcblk0p2", Some("boot=overlay")),
        ("root=/dev/mmcblk0p2 systemd.volatile=state", Some("systemd.volatile=state")),
        ("root=/dev/mmcblk0p2 systemd.volatile", Some("systemd.volatile")),
        ("root=/dev/mmcblk0p2 systemd.volatile=no", None),
        ("root=/dev/mmcblk0p2 overlayroot=disabled", None),
        ("overlayroot=tmpfs root=/dev/mmcblk0p2 overlayroot=disabled", None),
        // The upper layer is on a disk.
        ("root=/dev/mmcblk0p2 overlayroot=device:dev=/dev/sda1", None),
        ("boot=live", None),
        ("root=/dev/mmcblk0p2\noverlayroot=tmpfs", None),
    ] {
        let line = CmdlineTxt::parse(line);
        assert_eq!(line.volatile_root().map(|word| word.written), word, "{}", line.text());
    }
}
