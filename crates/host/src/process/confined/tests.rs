//! A program that tries what a hostile image would, in a root of its own.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, symlink};

use super::*;

/// A root in memory with this test program in it, and the libraries that it has loaded.
fn root_with_this_program(top: &Path) {
    rustix::mount::mount("tmpfs", top, "tmpfs", MountFlags::empty(), None::<&CStr>).unwrap();
    for directory in ["proc", "dev", "run", "tmp", "var/tmp", "usr/bin", "usr/lib64", "usr/lib"] {
        fs::create_dir_all(top.join(directory)).unwrap();
    }
    for (link, to) in [("lib", "usr/lib"), ("lib64", "usr/lib64"), ("bin", "usr/bin")] {
        symlink(to, top.join(link)).unwrap();
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mapped = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    for library in mapped.filter(|path| path.contains(".so")).collect::<BTreeSet<_>>() {
        let real = fs::canonicalize(library).unwrap();
        let name = real.file_name().unwrap();
        let beside = top.join(real.strip_prefix("/").unwrap());
        fs::create_dir_all(beside.parent().unwrap()).unwrap();
        fs::copy(&real, beside).unwrap();
        let _ = fs::copy(&real, top.join("usr/lib64").join(name));
    }
    fs::copy(std::env::current_exe().unwrap(), top.join("usr/bin/hostile")).unwrap();
}

/// Not a test: what the one below runs where it is shut in.
#[test]
#[ignore = "it is run by another test"]
fn hostile() {
    let say = |what: &str, said: String| println!("{what}: {said};");
    let is_done = |done: bool| if done { "done" } else { "refused" }.to_string();
    let listed = |path: &str| {
        let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        let names: BTreeSet<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.into_iter().collect::<Vec<_>>().join(" ")
    };
    say("user", rustix::process::geteuid().as_raw().to_string());
    say("process", std::process::id().to_string());
    say("devices", listed("/dev"));
    say("root", listed("/"));
    let numbers = listed("/proc");
    let is_number = |name: &&str| name.bytes().all(|b| b.is_ascii_digit());
    say("processes", numbers.split(' ').filter(is_number).count().to_string());
    let disk = rustix::fs::makedev(8, 0);
    let node = rustix::fs::mknodat(CWD, "/tmp/x", FileType::BlockDevice, Mode::RWXU, disk);
    say("node", is_done(node.is_ok()));
    let mounted =
        rustix::mount::mount("tmpfs", "/tmp", "tmpfs", MountFlags::empty(), None::<&CStr>);
    say("mount", is_done(mounted.is_ok()));
    let trigger = fs::OpenOptions::new().write(true).open("/proc/sysrq-trigger");
    say("trigger", is_done(trigger.is_ok()));
    say("setting", is_done(fs::write("/proc/sys/kernel/core_pattern", "|/x").is_ok()));
    say(
        "network",
        is_done(
            TcpStream::connect("127.0.0.1:9")
                .err()
                .is_none_or(|error| error.kind() == io::ErrorKind::ConnectionRefused),
        ),
    );
    let mut up = 0;
    for _ in 0..40 {
        up += usize::from(rustix::process::chdir("..").is_ok());
    }
    say("up", format!("{up} {}", listed(".") == listed("/")));
    fs::write("/var/tmp/made", "x").unwrap();
    let threads = (0..2000).map(|_| {
        std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(|| std::thread::sleep(Duration::from_secs(1)))
    });
    say("threads", threads.take_while(Result::is_ok).count().to_string());
}

#[test]
fn a_hostile_program_reaches_nothing_of_this_machine() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can shut programs in");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().to_path_buf();
    let said = std::thread::spawn(move || {
        // SAFETY: no memory and no descriptors are split off.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }.unwrap();
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change("/", private).unwrap();
        root_with_this_program(&top);
        let is_possible = user_namespace().and_then(|users| tree_of(&top, &users));
        if let Err(why) = is_possible {
            eprintln!("skipped: this kernel maps no users of filesystems in memory: {why}");
            return None;
        }
        let name = "process::confined::tests::hostile";
        let arguments = ["--exact", name, "--ignored", "--nocapture", "--test-threads=1"];
        let said = run(&top, "hostile", &arguments, &AtomicBool::new(false)).unwrap();
        let made = fs::metadata(top.join("var/tmp/made")).unwrap();
        Some((said, made.uid()))
    });
    let Some((said, owner)) = said.join().unwrap() else {
        return;
    };
    let found = |what: &str| {
        let at = said.find(&format!("{what}: ")).unwrap_or_else(|| panic!("no {what}: {said}"));
        said[at + what.len() + 2..].split(';').next().unwrap().to_string()
    };
    assert_eq!(found("user"), "0");
    assert_eq!(found("process"), "1");
    assert_eq!(found("processes"), "1");
    assert_eq!(found("devices"), "fd full null random stderr stdin stdout urandom zero");
    assert_eq!(found("root"), "bin dev lib lib64 proc run tmp usr var");
    for attack in ["node", "mount", "trigger", "setting", "network"] {
        assert_eq!(found(attack), "refused", "{attack}: {said}");
    }
    assert_eq!(found("up"), "40 true");
    let threads: usize = found("threads").parse().unwrap();
    assert!(threads < 256, "{threads} threads");
    assert_eq!(owner, 0, "what it makes belongs to the image's root");
}

#[test]
fn a_program_that_is_not_there_and_one_that_fails_are_named() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can shut programs in");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let error = run(directory.path(), "mkinitramfs", &["-o", "/x"], &stop).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("`mkinitramfs -o /x` cannot be run: cannot "), "{text}");
}
