//! What a power cut can leave on the boot partition: a file that a change was preparing, on the same clusters as the file whose
//! place it took. It is not removed, since the other one would lose its contents, and the way out that is told is one.

use std::time::Duration;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_fat";
/// For what takes seconds on a free machine.
const SOON: Duration = Duration::from_secs(240);

const RECIPE: &str = "name = \"tidy\"
title = \"Less memory for graphics.\"
[[step]]
do = \"set_line\"
why = \"Nobody looks at a screen here.\"
path = \"/boot/firmware/config.txt\"
key = \"gpu_mem\"
value = \"16\"
";

/// The name under which the first step of the first change prepares its file.
const LEFT: &str = "/boot/firmware/.rubus-0001-tidy-0.new";

/// Lets the leftover begin where config.txt begins, and frees its own cluster.
const CROSS_LINK: &str = r#"
open $disk, "+<", $ARGV[0] or die;
sub at { my ($place, $length) = @_; seek $disk, $place, 0; read $disk, my $bytes, $length; $bytes }
sub put { my ($place, $bytes) = @_; seek $disk, $place, 0; print $disk $bytes }
my ($sector, $per_cluster, $reserved, $tables) = unpack "x11 v C v C", at(0, 64);
my ($table_sectors, $root) = (unpack("V", at(36, 4)), unpack("V", at(44, 4)));
my $data = ($reserved + $tables * $table_sectors) * $sector;
my $cluster = $per_cluster * $sector;
my %places;
for (my $number = $root; $number < 0x0ffffff8; $number = unpack("V", at($reserved * $sector + 4 * $number, 4)) & 0x0fffffff) {
  for my $place (map { $data + ($number - 2) * $cluster + 32 * $_ } 0 .. $cluster / 32 - 1) {
    my $entry = at($place, 32);
    $places{left} = $place if $entry =~ /^RUBUS-/;
    $places{config} = $place if $entry =~ /^CONFIG  TXT/;
  }
}
my ($left, $config) = map { at($_, 32) } @places{"left", "config"};
my $own = unpack("x26 v", $left) | unpack("x20 v", $left) << 16;
put($reserved * $sector + $_ * $table_sectors * $sector + 4 * $own, pack "V", 0) for 0 .. $tables - 1;
put($places{left} + 20, substr $config, 20, 2);
put($places{left} + 26, substr $config, 26, 2);
close $disk or die;
"#;

#[test]
fn a_leftover_on_the_clusters_of_a_boot_file_is_not_removed_and_the_change_ends_after_fsck() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let options = Options { push: vec![rubus], ..Options::default() };
    let mut board = Session::boot(&Cache::of_this_machine(), Board::Pc, &options).unwrap();
    let mut must = |script: &str| board.must(script, "root", SOON).unwrap();
    let before = must("cat /boot/firmware/config.txt");
    must(&format!("cat >tidy.toml <<'E'\n{RECIPE}E\n"));
    must("rubus apply tidy.toml --yes");
    let changed = must("cat /boot/firmware/config.txt");
    assert!(changed.contains("gpu_mem=16"), "{changed}");

    must(&format!("cp /boot/firmware/config.txt {LEFT}"));
    must("umount /boot/firmware");
    must(&format!("cat >cross-link.pl <<'E'\n{CROSS_LINK}E\nperl cross-link.pl /dev/mmcblk0p1"));
    must("mount /boot/firmware");
    let undone = board.run("rubus undo --yes", "root", SOON).unwrap();
    let said = format!("{} {}", undone.text(), undone.complaint_text());
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    println!("{said}");
    assert_eq!(undone.status, 5, "{said}");
    for words in ["config.txt would lose its contents", "fsck.vfat -a /dev/mmcblk0p1"] {
        assert!(said.contains(words), "{said}");
    }
    let mut must = |script: &str| board.must(script, "root", SOON).unwrap();
    must(&format!("[ -e {LEFT} ]"));
    assert_eq!(must("cat /boot/firmware/config.txt"), changed);

    // As told. It is 1 that says that something was mended.
    let mended = must(
        "umount /boot/firmware; fsck.vfat -a /dev/mmcblk0p1; [ $? = 1 ] && mount /boot/firmware",
    );
    assert!(mended.contains("share clusters"), "{mended}");
    must("rubus resume");
    assert_eq!(must("cat /boot/firmware/config.txt"), before);
    must(&format!("[ ! -e {LEFT} ]"));
    must("umount /boot/firmware && fsck.vfat -n /dev/mmcblk0p1 && mount /boot/firmware");
    board.switch_off().unwrap();
}
