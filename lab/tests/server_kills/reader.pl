# Prints what is in the places that writer.pl writes to: for each number of equal lines that number, place and number of
# the write.
use strict;
use warnings;
use Fcntl qw(O_RDONLY SEEK_SET);

sub show {
    my ($place, $bytes) = @_;
    my ($count, $last) = (0, '');
    for my $line (unpack('(a16)*', $bytes), undef) {
        if (defined $line && $line eq $last) { $count++; next }
        if ($count) {
            my $is_own = $last =~ /\A\Q$place\E (\d{8})\n\z/;
            print "$count $place ", ($is_own ? $1 : 'strange'), "\n";
        }
        ($count, $last) = (1, $line);
    }
}

for my $at (0 .. 5) {
    my $place = sprintf 'file%02d', $at;
    open my $file, '<', "/mnt/$place" or next;
    local $/;
    defined(my $bytes = <$file>) or die "$place: $!";
    show($place, $bytes);
}
sysopen my $device, '/dev/nbd0', O_RDONLY or die;
for my $at (0 .. 7) {
    my $place = sprintf 'raw%03d', $at;
    sysseek $device, (48 << 20) + $at * (64 << 10), SEEK_SET or die;
    (sysread($device, my $bytes, 4096) // 0) == 4096 or die "$place: $!";
    show($place, $bytes);
}
