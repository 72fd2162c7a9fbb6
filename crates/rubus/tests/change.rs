//! The verbs that change a machine, from outside: everything up to the point where something would
//! be changed. The changing itself is proved in `rubus-change` on a made-up machine.

use std::path::PathBuf;

use assert_cmd::Command;

fn rubus(changes: &std::path::Path) -> Command {
    let mut command = Command::cargo_bin("rubus").expect("cargo builds the program");
    command.env("RUBUS_CHANGES", changes);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn capture(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures")).join(name)
}

#[test]
fn the_recipes_are_listed() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = rubus(directory.path()).arg("recipes").output().expect("it runs");
    assert!(output.status.success());
    // Golden are only the last lines, so that a new recipe needs no edit here.
    let listed = text(&output.stdout);
    let (recipes, after) = listed.split_once("\n\n").expect("two paragraphs");
    let names: Vec<&str> = recipes.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(names, rubus_recipes::ALL.map(|recipe| recipe.name));
    insta::assert_snapshot!(after);
    let json = rubus(directory.path()).args(["recipes", "--json"]).output().expect("it runs");
    let list: serde_json::Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    let names: Vec<&str> = (0..).map_while(|i| list[i]["name"].as_str()).collect();
    assert_eq!(names, rubus_recipes::ALL.map(|recipe| recipe.name));
}

#[test]
fn a_plan_on_a_captured_board_says_what_is_in_its_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = rubus(directory.path())
        .arg("--machine")
        .arg(capture("pi4b-usb3-ssd"))
        .args(["plan", "zswap"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn where_nothing_was_changed_nothing_is_made() {
    let directory = tempfile::tempdir().expect("a directory");
    let changes = directory.path().join("changes");
    for (arguments, status, words) in [
        (&["undo"][..], 0, "There is nothing to undo."),
        (&["undo", "nope"], 2, "there is no change 'nope'"),
        (&["resume"], 0, "Nothing was interrupted."),
    ] {
        let output = rubus(&changes).args(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(!changes.exists(), "{arguments:?}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let saved = directory.path().join("plan.json");
    std::fs::write(&saved, "{}").expect("a file");
    let saved = saved.display().to_string();
    let capture = capture("pi4b-usb3-ssd").display().to_string();
    for (arguments, words) in [
        (&["plan", "zswp"][..], "did you mean 'zswap'"),
        (&["plan", "zram"], "there is no recipe 'zram'; about it: "),
        (&["plan", "quux"], "there is no recipe 'quux' (there are: commit-interval, "),
        (&["plan", "zswap", "colour=red"], "(it has: max-pool-percent, compressor"),
        (&["plan", "zswap", "compresor=lz4"], "; did you mean 'compressor'? (it has:"),
        // Said before the machine is looked at, which takes long on a real one.
        (&["--machine", "/none", "plan", "desktop", "disk=/dev/sda"], "has no option 'disk'"),
        (&["--machine", "/none", "plan", "desktop", "device=sda"], "write the path of a disk"),
        (&["plan", "zswap", "max-pool-percent=0"], "from 1 to 50"),
        (&["plan", "zswap", "max-pool-percent"], "OPTION=VALUE"),
        (&["apply", &saved, "--yes"], "is not a plan"),
        (&["apply", "no-such.json", "--yes"], "cannot read the plan"),
        (&["--machine", &capture, "apply", "zswap"], "captured one"),
        (&["undo", "0009-zswap", "--yes"], "no change '0009-zswap'"),
    ] {
        let output = rubus(directory.path()).args(arguments).output().expect("it runs");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}

/// A card image's first block: an MBR with one FAT partition from 1 MiB on.
fn master_boot_record(partition_bytes: u64) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[446 + 4] = 0x0c;
    block[454..458].copy_from_slice(&2048_u32.to_le_bytes());
    block[458..462].copy_from_slice(&((partition_bytes / 512) as u32).to_le_bytes());
    block[510..].copy_from_slice(&[0x55, 0xaa]);
    block
}

#[test]
fn what_is_no_image_is_refused_before_anything_is_made() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(at("zeros.img"), vec![0; 4 << 20]).expect("a file");
    std::fs::write(at("packed.img.xz"), b"\xfd7zXZ\0").expect("a file");
    let mut cut = master_boot_record(64 << 20);
    cut.resize(4 << 20, 0);
    std::fs::write(at("cut.img"), &cut).expect("a file");
    std::fs::write(at("there.img"), "mine").expect("a file");
    let (missing, zeros, packed) = (at("none.img"), at("zeros.img"), at("packed.img.xz"));
    let (cut, there, new) = (at("cut.img"), at("there.img"), at("new.img"));
    let nowhere = at("no/such/new.img");
    let capture = capture("pi4b-usb3-ssd").display().to_string();
    for (arguments, status, words) in [
        (&["plan", "desktop", "--image", &missing][..], 2, "none.img"),
        (&["plan", "desktop", "--image", &zeros], 2, "no partition table"),
        (&["plan", "desktop", "--image", &packed], 2, "unpacked first"),
        (&["plan", "desktop", "--image", &cut], 2, "it is not whole"),
        (&["plan", "desktop", "--image", directory.path().to_str().unwrap()], 2, "it is no file"),
        (&["plan", "swap", "--image", &zeros], 2, "for an image there is: desktop"),
        (&["--machine", &capture, "plan", "desktop", "--image", &zeros], 2, "leave --machine out"),
        (&["apply", "desktop", "--image", &zeros, "--yes"], 2, "--to"),
        (&["apply", "desktop", "--to", &new, "--yes"], 2, "--image"),
        (&["apply", "desktop", "--image", &zeros, "--to", &there, "--yes"], 3, "is there already"),
        (&["apply", "desktop", "--image", &zeros, "--to", &new, "--yes"], 2, "no partition table"),
        (
            &["apply", "desktop", "--image", &zeros, "--to", &nowhere, "--yes"],
            2,
            "cannot use the directory",
        ),
    ] {
        let output = rubus(directory.path()).args(arguments).output().expect("it runs");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
    assert_eq!(std::fs::read(&there).expect("it is there"), b"mine");
    let names = std::fs::read_dir(directory.path()).expect("a directory");
    assert_eq!(names.count(), 4, "something was made");
}

#[test]
fn a_machine_without_changes_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = rubus(directory.path()).arg("status").output().expect("it runs");
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("No recipe has been applied"));
    let output = rubus(directory.path()).arg("resume").output().expect("it runs");
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("Nothing was interrupted"));
}

/// A recipe of each kind of step on files, below a directory.
fn own_recipe(top: &std::path::Path) -> String {
    let link = format!("to = \"{}\"", top.join("b.conf").display());
    let steps = [
        ("make_directory", "e", ""),
        ("write_file", "a.conf", "text = \"new a\\n\""),
        ("set_line", "b.conf", "key = \"k\"\nvalue = \"2\""),
        ("remove_file", "c.conf", ""),
        ("set_link", "l", link.as_str()),
        ("write_file", "e/new", "text = \"new\\n\""),
    ];
    let step = |(action, name, rest): &(&str, &str, &str)| {
        let path = top.join(name);
        let path = path.display();
        format!("[[step]]\ndo = \"{action}\"\nwhy = \"A test.\"\npath = \"{path}\"\n{rest}\n")
    };
    let steps: Vec<String> = steps.iter().map(step).collect();
    format!("name = \"own\"\ntitle = \"A test recipe.\"\n{}", steps.join(""))
}

/// Every name below a directory with its contents, or where it leads.
fn all_below(top: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(top).expect("a directory") {
        let path = entry.expect("an entry").path();
        let contents = match std::fs::read_link(&path) {
            Ok(target) => format!("-> {}", target.display()),
            Err(_) if path.is_dir() => all_below(&path).join("; "),
            Err(_) => std::fs::read_to_string(&path).expect("a text"),
        };
        found.push(format!("{}: {contents}", path.display()));
    }
    found.sort();
    found
}

#[test]
fn undo_of_a_journal_that_was_cut_leaves_everything_as_it_was_and_says_so() {
    for (kept, is_whole_line) in [(0, true), (1, true), (6, true), (7, false), (9, true)] {
        let directory = tempfile::tempdir().expect("a directory");
        let (top, changes) = (directory.path().join("system"), directory.path().join("changes"));
        std::fs::create_dir(&top).expect("a directory");
        for (name, contents) in [("a.conf", "old a\n"), ("b.conf", "k=1\n"), ("c.conf", "c\n")] {
            std::fs::write(top.join(name), contents).expect("a file");
        }
        let recipe = directory.path().join("own.toml");
        std::fs::write(&recipe, own_recipe(&top)).expect("a file");
        let before = all_below(&top);
        let applied = rubus(&changes).arg("apply").arg(&recipe).arg("--yes").output();
        let applied = applied.expect("it runs");
        assert!(applied.status.success(), "{}", text(&applied.stderr));
        assert_ne!(all_below(&top), before);

        let journal = changes.join("0001-own/journal");
        let whole = std::fs::read_to_string(&journal).expect("a journal");
        let mut cut: String = whole.split_inclusive('\n').take(kept).collect();
        if !is_whole_line {
            cut.truncate(cut.len() - 5);
        }
        std::fs::write(&journal, cut).expect("it is cut");
        let status = rubus(&changes).arg("status").output().expect("it runs");
        assert!(
            text(&status.stdout).contains("the journal on this root ends early"),
            "{kept} lines"
        );

        let undone = rubus(&changes).args(["undo", "--yes"]).output().expect("it runs");
        let (out, error) = (text(&undone.stdout), text(&undone.stderr));
        assert_eq!(undone.status.code(), Some(0), "{kept} lines: {out}{error}");
        assert!(error.contains("ends early"), "{kept} lines: {error}");
        assert!(out.contains("everything is as it was"), "{kept} lines: {out}");
        assert_eq!(all_below(&top), before, "{kept} lines");
    }
}

#[test]
fn a_standard_error_that_is_full_ends_no_change() {
    let directory = tempfile::tempdir().expect("a directory");
    let (top, changes) = (directory.path().join("system"), directory.path().join("changes"));
    std::fs::create_dir(&top).expect("a directory");
    for (name, contents) in [("a.conf", "old a\n"), ("b.conf", "k=1\n"), ("c.conf", "c\n")] {
        std::fs::write(top.join(name), contents).expect("a file");
    }
    let recipe = directory.path().join("own.toml");
    std::fs::write(&recipe, own_recipe(&top)).expect("a file");
    let before = all_below(&top);
    let program = env!("CARGO_BIN_EXE_rubus");
    for arguments in [format!("apply {} --yes", recipe.display()), "undo --yes".into()] {
        for standard_error in [">/dev/full", ">&-"] {
            let shell = std::process::Command::new("sh")
                .args(["-c", &format!("{program} {arguments} >/dev/null 2{standard_error}")])
                .env("RUBUS_CHANGES", &changes)
                .status()
                .expect("a shell");
            let second = standard_error == ">&-";
            // The second time there is nothing to do.
            assert!(
                matches!(shell.code(), Some(0)) || second && shell.code() != Some(101),
                "{arguments} 2{standard_error}: {shell}"
            );
        }
    }
    assert_eq!(all_below(&top), before);
}
