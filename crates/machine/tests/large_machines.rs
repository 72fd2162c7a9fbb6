//! A machine with thousands of disks, mounts, links and swap areas costs in proportion to them.

use rubus_draw::style::Style;
use rubus_host::simulated::fake::FakeFiles;
use rubus_host::ticks::thread_cpu_ns;
use rubus_machine::text::{self, Extent};
use rubus_machine::{probe, rules};
use rubus_vocabulary::machine::Origin;

/// How many there are at first, and how many times as many then.
const FEW: usize = 150;
const TIMES: usize = 4;
/// What is linear costs four times as much, what is quadratic sixteen times.
const MAX_RATIO: u64 = 9;

/// Each disk has a partition that is mounted, each mount a line of fstab.
fn disks(count: usize) -> FakeFiles {
    let mut files = FakeFiles::new();
    let mut table = "24 1 179:2 / / rw,noatime shared:1 - ext4 /dev/mmcblk0p2 rw\n".to_string();
    let mut fstab = String::new();
    for at in 0..count {
        let (disk, part) = (format!("nvme{at}n1"), format!("nvme{at}n1p1"));
        let place = format!("/sys/block/{disk}");
        files = files
            .file(format!("{place}/size"), "2000000\n")
            .file(format!("{place}/dev"), format!("259:{}\n", 2 * at))
            .file(format!("{place}/{part}/partition"), "1\n")
            .file(format!("{place}/{part}/size"), "1900000\n")
            .file(format!("{place}/{part}/dev"), format!("259:{}\n", 2 * at + 1));
        table.push_str(&format!(
            "{} 24 259:{} / /mnt/{at} rw,discard shared:2 - ext4 /dev/{part} rw\n",
            100 + at,
            2 * at + 1
        ));
        fstab.push_str(&format!("/dev/{part} /mnt/{at} ext4 defaults,discard 0 2\n"));
    }
    files.file("/proc/self/mountinfo", table).file("/etc/fstab", fstab)
}

fn mounts(count: usize) -> FakeFiles {
    let line = |at: usize| {
        format!("{} 1 0:{at} / /mnt/{at} rw shared:2 - nfs4 nas{at}:/x rw,sync\n", 100 + at)
    };
    FakeFiles::new().file("/proc/self/mountinfo", (0..count).map(line).collect::<String>())
}

fn swaps(count: usize) -> FakeFiles {
    let line = |at: usize| format!("/swap{at} file 1024 0 -{}\n", at + 2);
    let head = "Filename Type Size Used Priority\n".to_string();
    FakeFiles::new().file("/proc/swaps", head + &(0..count).map(line).collect::<String>())
}

fn links(count: usize) -> FakeFiles {
    (0..count).fold(FakeFiles::new(), |files, at| {
        let place = format!("/sys/class/net/veth{at}");
        files.file(format!("{place}/speed"), "1000\n").file(format!("{place}/operstate"), "up\n")
    })
}

/// What a survey of it costs a processor, with its rules and its whole text: a busy machine adds nothing.
fn cost(files: &FakeFiles) -> u64 {
    let origin = Origin::Capture { path: "a test".into(), label: String::new() };
    let before = thread_cpu_ns();
    let machine = probe::survey(files, "2026-11-21T00:58:12Z", origin);
    let found = rules::of_machine(&machine);
    let texts = [false, true].map(|everything| {
        text::render(&machine, Extent { everything, serials: true }, Style::PLAIN)
    });
    let cost = thread_cpu_ns() - before;
    assert!(texts.iter().all(|text| text.len() > found.len()));
    cost
}

/// What there is many of, and a machine with that number of them.
type Maker = (&'static str, fn(usize) -> FakeFiles);

#[test]
fn four_times_as_many_cost_about_four_times_as_much() {
    let makers: [Maker; 4] =
        [("disks", disks), ("mounts", mounts), ("swaps", swaps), ("links", links)];
    for (what, make) in makers {
        let [few, many] = [FEW, FEW * TIMES].map(|count| {
            let files = make(count);
            // The least of three: caches are cold at first.
            (0..3).map(|_| cost(&files)).min().expect("three")
        });
        assert!(many < MAX_RATIO * few, "{what}: {} times as much", many / few);
    }
}
