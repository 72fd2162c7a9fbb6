//! Images as the distributions' tools write them: `cpio` and each of the compressors, with a plain
//! archive and zeros in front. What is listed must be what `cpio` itself lists.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rubus_boot::initramfs;
use rubus_fixtures::skipped;
use tempfile::TempDir;

const RELEASE: &str = "6.12.107+deb13-arm64";

/// A program, where it is installed; where everything is required its absence is a failure.
fn tool(name: &str) -> Option<PathBuf> {
    let places = ["/usr/bin", "/bin", "/usr/sbin"];
    let mut paths = places.iter().map(|place| Path::new(place).join(name));
    let found = paths.find(|path| path.exists());
    if found.is_none() {
        skipped("an image of this tool", &format!("{name} is not installed"));
    }
    found
}

/// Runs a program with `input` on its standard input; its standard output.
fn filter(program: &Path, arguments: &[&str], directory: &Path, input: &[u8]) -> Vec<u8> {
    let mut scratch = tempfile::tempfile_in(directory).unwrap();
    scratch.write_all(input).unwrap();
    std::io::Seek::rewind(&mut scratch).unwrap();
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::from(scratch))
        .stderr(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{program:?} {arguments:?}");
    output.stdout
}

/// A tree with modules and a file that is larger than any decompressor's window.
fn tree(directory: &Path) {
    let modules = directory.join(format!("usr/lib/modules/{RELEASE}/kernel"));
    for path in
        ["fs/btrfs/btrfs.ko.xz", "drivers/usb/storage/usb-storage.ko", "lib/raid6/raid6_pq.ko.zst"]
    {
        let path = modules.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let noise: Vec<u8> =
            (0..70_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        fs::write(path, noise).unwrap();
    }
    fs::create_dir_all(directory.join("conf")).unwrap();
    fs::write(directory.join("conf/modules"), "btrfs\n").unwrap();
    let mut large = File::create(directory.join("large")).unwrap();
    for index in 0..24_u32 {
        let block: Vec<u8> = (0..(1 << 19)).map(|i| (i / 97 + index) as u8).collect();
        large.write_all(&block).unwrap();
    }
    std::os::unix::fs::symlink("usr/lib", directory.join("lib")).unwrap();
}

fn packed_by_cpio(cpio: &Path, directory: &Path) -> (Vec<u8>, Vec<String>) {
    let find = Command::new("find").arg(".").current_dir(directory).output().unwrap();
    let archive = filter(cpio, &["--quiet", "-o", "-H", "newc"], directory, &find.stdout);
    let listed = filter(cpio, &["--quiet", "-t"], directory, &archive);
    let listed = String::from_utf8(listed).unwrap();
    (archive, listed.lines().map(str::to_owned).collect())
}

#[test]
fn images_of_every_compressor_are_listed_as_cpio_lists_them() {
    let Some(cpio) = tool("cpio") else { return };
    let (scratch, aside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    tree(scratch.path());
    let (archive, names) = packed_by_cpio(&cpio, scratch.path());
    fs::write(aside.path().join("microcode"), "x").unwrap();
    let (early, _) = packed_by_cpio(&cpio, aside.path());
    // The commands of Debian's mkinitramfs.
    let ways: [(&str, &str, &[&str]); 6] = [
        ("gzip", "gzip", &["-n", "-6"]),
        ("zstd", "zstd", &["-q", "-9", "-T0"]),
        ("zstd", "zstd", &["-q", "-1", "--no-check"]),
        ("xz", "xz", &["--check=crc32"]),
        ("lz4", "lz4", &["-9", "-l"]),
        ("lzma", "lzma", &[]),
    ];
    for (name, program, arguments) in ways {
        let Some(program) = tool(program) else {
            continue;
        };
        let packed = filter(&program, arguments, aside.path(), &archive);
        assert!(packed.len() < archive.len());
        let mut image = early.clone();
        image.extend(&packed);
        // The firmware joins several files; each may be padded.
        image.extend([0; 512]);
        image.extend(&early);
        check(name, &image, &names);
        let error = initramfs::list(&image[..early.len() + packed.len() / 2]).expect_err(name);
        assert!(error.to_string().contains("damaged"), "{name}: {error}");
    }
}

fn check(name: &str, image: &[u8], names: &[String]) {
    let listing = initramfs::list(image).unwrap_or_else(|error| panic!("{name}: {error}"));
    let compressions: Vec<&str> = listing.parts.iter().map(|part| part.compression).collect();
    assert_eq!(compressions, ["none", name, "none"]);
    // `cpio -t` does not list the early archive; it holds "." and one file.
    let inner = &listing.members[2..listing.members.len() - 2];
    let paths: Vec<&str> = inner.iter().map(|member| member.path.as_str()).collect();
    assert_eq!(paths, names, "{name}");
    for module in ["btrfs", "usb_storage", "raid6-pq"] {
        assert!(listing.module(RELEASE, module).is_some(), "{name}: {module}");
    }
    assert!(listing.module(RELEASE, "nvme").is_none());
    assert_eq!(listing.texts["conf/modules"], "btrfs\n");
}
