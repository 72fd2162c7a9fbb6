# Writes to the places of one kind until /run/kills/stop is there or a write fails, and says what it was told of each:
# lab/src/server_kills/writes.rs has the words. Arguments: "raw" or "file", the first number to use, a seed, and with a
# fourth one it writes to each place once and ends.
use strict;
use warnings;
use Fcntl qw(O_RDWR O_WRONLY O_RDONLY O_CREAT O_TRUNC SEEK_SET);

use constant { FSYNC => 74, SYNC_FILE_RANGE => 277, AND_WAIT => 7 };
use constant { RAW_AT => 48 << 20, APART => 64 << 10, RAWS => 8, FILES => 6, PAGES => 3 };

my ($kind, $number, $seed, $once) = @ARGV;
srand $seed;
# A line is there as a whole or not at all, whenever this program is killed.
open my $log, '>>', "/run/kills/$kind.log" or die;

sub told { my $line = "@_\n"; syswrite($log, $line) == length $line or die }

sub must {
    my ($place, $done) = @_;
    return if $done;
    print STDERR "$place: $!\n";
    told('failed', $place, $number);
    exit 1;
}

sub content { my ($place, $pages) = @_; sprintf("%s %08d\n", $place, $number) x (256 * $pages) }

sub whole { my ($file, $text) = @_; (syswrite($file, $text) // -1) == length $text }

sub durable { my $file = shift; syscall(FSYNC, fileno($file)) == 0 }

# Places in which something was written that is not known to be durable, with its number.
my %open;

# Some of the places beyond the filesystem: acknowledged when the kernel has written them out, durable with a flush.
sub raw {
    my @places = $once ? (0 .. RAWS - 1) : map { int rand RAWS } 0 .. int rand 4;
    my %now;
    for my $at (grep { !$now{$_}++ } @places) {
        my $place = sprintf 'raw%03d', $at;
        told('begun', $place, $number);
        must($place, defined sysseek(DEVICE, RAW_AT + $at * APART, SEEK_SET));
        must($place, whole(\*DEVICE, content($place, 1)));
        $now{$at} = $place;
    }
    my $all = syscall(SYNC_FILE_RANGE, fileno(DEVICE), RAW_AT, APART * RAWS, AND_WAIT);
    must('raw', $all == 0);
    for my $place (values %now) {
        told('done', $place, $number);
        $open{$place} = $number;
    }
    return if rand() > 0.15 && !$once;
    must('raw', durable(\*DEVICE));
    told('durable', $_, $open{$_}) for keys %open;
    %open = ();
}

# A file: written over in its place, with and without fsync, or replaced under its name.
sub file {
    my $place = sprintf 'file%02d', shift;
    my $way = $once ? 2 : int rand 3;
    my $path = $way == 2 ? "new.$place" : $place;
    told('begun', $place, $number);
    must($place, sysopen(my $file, $path, O_WRONLY | O_CREAT | ($way == 2 ? O_TRUNC : 0)));
    must($place, whole($file, content($place, PAGES)));
    if ($way == 0) {
        told('done', $place, $number);
        return;
    }
    must($place, durable($file));
    if ($way == 2) {
        must($place, rename($path, $place));
        must($place, sysopen(my $directory, '.', O_RDONLY));
        must($place, durable($directory));
    }
    told('done', $place, $number);
    told('durable', $place, $number);
}

if ($kind eq 'raw') {
    must('raw', sysopen(DEVICE, '/dev/nbd0', O_RDWR));
} else {
    # When it is unmounted lazily, /mnt is a directory of the root, in which everything would be durable.
    chdir '/mnt' or die;
}
if ($once) {
    $kind eq 'raw' ? raw() : do { file($_) for 0 .. FILES - 1 };
    exit;
}
until (-e '/run/kills/stop') {
    $kind eq 'raw' ? raw() : file(int rand FILES);
    $number++;
}
