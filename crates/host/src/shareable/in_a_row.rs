//! Numbers and letters in a row that spell an address, a telephone number or a word, whatever stands between them.
//!
//! A sentence has numbers with units, one or two numbers that stand alone, dates, times, and lists that grow. Where more
//! of them follow each other ("1 9 2 . 1 6 8", "192_168_1_5", "x71 x7a x61", "0171 5551234"), they are one text.

use std::ops::Range;

use super::kernel_names::is_kernel_name;
use super::list::is_product_word;

/// A piece of a text: what stands between its punctuation and white space.
struct Piece<'a> {
    text: &'a str,
    bytes: Range<usize>,
}

/// The stretches of a text, in bytes, in which pieces spell something.
pub(super) fn stretches(text: &str) -> Vec<Range<usize>> {
    let pieces = pieces(text);
    let mut found = Vec::new();
    let mut row: Vec<Piece<'_>> = Vec::new();
    let mut rest = pieces.as_slice();
    let end = |row: &mut Vec<Piece<'_>>, found: &mut Vec<Range<usize>>| {
        if let (Some(first), Some(last), true) = (row.first(), row.last(), spells(text, row)) {
            found.push(first.bytes.start..last.bytes.end);
        }
        row.clear();
    };
    while let Some((first, behind)) = rest.split_first() {
        if let Some(count) = known_form(text, rest) {
            end(&mut row, &mut found);
            rest = &rest[count..];
            continue;
        }
        let decimals = decimals(text, first, behind);
        let bytes = first.bytes.start..decimals.map_or(first.bytes.end, |one| one.bytes.end);
        let piece = Piece { text: &text[bytes.clone()], bytes };
        rest = &behind[usize::from(decimals.is_some())..];
        let follows_letter = row.last().is_some_and(|last| !last.text.contains(is_digit));
        let is_digit_of_hex =
            piece.text.len() == 2 && piece.text.ends_with('B') && row.iter().any(is_mixed);
        match unit_of(&piece, rest.first(), text) {
            Unit::Apart if !follows_letter => {
                end(&mut row, &mut found);
                rest = &rest[1..];
            }
            Unit::Within if !is_digit_of_hex => end(&mut row, &mut found),
            Unit::Apart | Unit::Within | Unit::None if is_loose(piece.text) => row.push(piece),
            Unit::Apart | Unit::Within | Unit::None if has_meaning(piece.text) => {
                end(&mut row, &mut found)
            }
            // "192 dot 168 dot 1 dot 5"
            Unit::Apart | Unit::Within | Unit::None => {}
        }
    }
    end(&mut row, &mut found);
    found
}

/// Whether a text has such a stretch.
pub(super) fn is_spelt(text: &str) -> bool {
    !stretches(text).is_empty()
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut at = 0;
    let mut all = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        if !run.is_empty() {
            all.push(Piece { text: run, bytes: at..at + run.len() });
        }
        at += run.len();
        at += text[at..].chars().next().map_or(0, char::len_utf8);
    }
    all
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Digits, one letter, or digits with one or two: what means nothing alone.
fn is_loose(piece: &str) -> bool {
    let letters = piece.chars().filter(|c| c.is_alphabetic()).count();
    let has_digit = piece.contains(is_digit);
    let is_short = letters <= 1 || letters == 2 && has_digit;
    piece.starts_with("0x") || is_short && !has_meaning(piece)
}

fn has_meaning(piece: &str) -> bool {
    piece.len() > 1
        && piece.contains(char::is_alphabetic)
        && (is_product_word(piece) || is_kernel_name(piece))
}

/// The digits behind a point: "12.3". More than two numbers with points between them are a version or an address.
fn decimals<'a, 'b>(
    text: &str,
    piece: &Piece<'a>,
    behind: &'b [Piece<'a>],
) -> Option<&'b Piece<'a>> {
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let next = behind.first()?;
    let is_point = &text[piece.bytes.end..next.bytes.start] == ".";
    let has_more = text[next.bytes.end..].starts_with('.')
        && text[next.bytes.end + 1..].starts_with(|c: char| c.is_ascii_digit());
    let is_behind_one = text[..piece.bytes.start].ends_with('.');
    let is_decimal = is_point && is_number(piece.text) && is_number(next.text);
    (is_decimal && next.text.len() <= 3 && !has_more && !is_behind_one).then_some(next)
}

/// Where a number has its unit.
enum Unit {
    None,
    /// In the same piece ("16k"), or as a mark behind it ("12 %").
    Within,
    /// The next piece ("12 ms").
    Apart,
}

fn unit_of(piece: &Piece<'_>, next: Option<&Piece<'_>>, text: &str) -> Unit {
    let unit = piece.text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if unit.len() == piece.text.len() {
        return Unit::None;
    }
    if !unit.is_empty() {
        return if is_unit(unit) { Unit::Within } else { Unit::None };
    }
    let rest = text[piece.bytes.end..].trim_start();
    if rest.starts_with(['%', '°', 'µ', '×']) || rest.starts_with("/s") {
        return Unit::Within;
    }
    let is_apart = next.is_some_and(|next| {
        let gap = &text[piece.bytes.end..next.bytes.start];
        (gap == " " || gap == "-") && next.text != "x" && is_unit(next.text)
    });
    if is_apart { Unit::Apart } else { Unit::None }
}

/// Whether a word is a unit.
pub(super) fn is_unit(text: &str) -> bool {
    const UNITS: &str = "s|k|K|M|G|T|B|W|V|h|m|n|p|x|µs|us|ms|ns|min|KiB|MiB|GiB|TiB|kB|KB|MB|GB|TB|kbit|Kbit|Mbit|Gbit|\
         Hz|kHz|MHz|GHz|mV|mA|dBm|IOPS|iops|bytes|bits|bit|sectors|blocks|seconds|minutes|hours|days|weeks|months|years|times";
    UNITS.split('|').any(|unit| unit == text)
}

/// How many pieces make a date, a time, or what the kernel calls a device.
fn known_form(text: &str, pieces: &[Piece<'_>]) -> Option<usize> {
    FORMS.iter().find_map(|(marks, is_one)| {
        let parts = pieces.get(..marks.len() + 1)?;
        let are_marks = parts
            .windows(2)
            .zip(marks.chars())
            .all(|(pair, mark)| text[pair[0].bytes.end..pair[1].bytes.start].chars().eq([mark]));
        let texts: Vec<&str> = parts.iter().map(|part| part.text).collect();
        // The next pair of a hardware address would follow.
        let is_mark = |c: char| ":-._'\"\\|+~".contains(c);
        let behind = &text[parts.last()?.bytes.end..];
        let before = &text[..parts[0].bytes.start];
        let is_dashed = behind.starts_with('-') || before.ends_with('-');
        let goes_on = behind.starts_with(is_mark)
            && behind.trim_start_matches(is_mark).starts_with(char::is_alphanumeric);
        let is_begun = before.ends_with(is_mark)
            && before.trim_end_matches(is_mark).ends_with(char::is_alphanumeric);
        (are_marks && !is_dashed && !goes_on && !is_begun && is_one(&texts)).then_some(parts.len())
    })
}

/// What stands between the parts, and whether the parts are of this form.
type Form = (&'static str, fn(&[&str]) -> bool);

/// The longer ones come first.
const FORMS: [Form; 16] = [
    ("::.", is_pci),
    (":::", is_scsi),
    ("-....", is_usb_path),
    ("-...", is_usb_path),
    ("-..:.", is_usb_path),
    ("-.:.", is_usb_path),
    ("-:.", is_usb_path),
    ("-..", is_usb_path),
    ("-.", is_usb_path),
    ("--", is_date),
    ("::", is_time),
    ("::", is_quirk),
    (":", is_usb_id),
    ("-", is_usb_path),
    (":", is_time),
    (".", is_since_start),
];

/// "0000:01:00.0".
fn is_pci(parts: &[&str]) -> bool {
    let is_hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
    parts.iter().map(|part| part.len()).eq([4, 2, 2, 1])
        && parts[0].starts_with("000")
        && parts.iter().all(|part| is_hex(part))
}

/// "2:0:0:0": host, channel, target and unit.
fn is_scsi(parts: &[&str]) -> bool {
    let numbers = numbers(parts);
    numbers.is_some_and(|all| all[0] < 100 && all[1] < 2 && all[2..].iter().all(|one| *one < 16))
}

/// "1-1.3", with an interface "1-1.3:1.0".
fn is_usb_path(parts: &[&str]) -> bool {
    numbers(parts)
        .is_some_and(|all| all[0] > 0 && all[1] > 0 && all.iter().all(|number| *number < 16))
}

/// "152d:0578".
fn is_usb_id(parts: &[&str]) -> bool {
    parts.iter().all(|part| part.len() == 4 && part.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// "152d:0578:u".
fn is_quirk(parts: &[&str]) -> bool {
    let is_flags = parts[2].len() <= 2 && parts[2].bytes().all(|b| b.is_ascii_lowercase());
    is_flags && is_usb_id(&parts[..2])
}

/// "2026-11-29", from the year in which the oldest firmware was made, or the first day of a clock that was not set (Unix, FAT).
/// An earlier day may be a birthday.
fn is_date(parts: &[&str]) -> bool {
    const YEARS: std::ops::RangeInclusive<u64> = 2010..=2199;
    const UNSET: [&[u64]; 3] = [&[1970, 1, 1], &[1980, 1, 1], &[2000, 1, 1]];
    let has_form = parts.iter().map(|part| part.len()).eq([4, 2, 2]);
    let is_one = |all: Vec<u64>| {
        UNSET.contains(&all.as_slice())
            || YEARS.contains(&all[0]) && (1..=12).contains(&all[1]) && (1..=31).contains(&all[2])
    };
    has_form && numbers(parts).is_some_and(is_one)
}

/// "23:07:38", "12:30".
fn is_time(parts: &[&str]) -> bool {
    parts[1..].iter().all(|part| part.len() == 2)
        && numbers(parts).is_some_and(|all| all[0] < 24 && all[1..].iter().all(|part| *part < 60))
}

/// "5432.123456": seconds since the start, as the kernel's log has them.
fn is_since_start(parts: &[&str]) -> bool {
    parts[0].len() <= 7 && parts[1].len() == 6 && numbers(parts).is_some()
}

fn numbers(parts: &[&str]) -> Option<Vec<u64>> {
    let is_number = |part: &&str| part.bytes().all(|b| b.is_ascii_digit());
    parts.iter().all(is_number).then(|| parts.iter().map_while(|part| part.parse().ok()).collect())
}

fn is_mixed(piece: &Piece<'_>) -> bool {
    piece.text.contains(is_digit) && piece.text.contains(char::is_alphabetic)
}

/// Whether pieces in a row are more than a few numbers or a list that grows.
fn spells(text: &str, row: &[Piece<'_>]) -> bool {
    const MAX_PIECES: usize = 3;
    const MAX_DIGITS: usize = 7;
    let numbers: Option<Vec<u64>> = row.iter().map(|piece| piece.text.parse().ok()).collect();
    let is_octal = |piece: &&Piece<'_>| piece.text.len() > 3 && piece.text.starts_with('0');
    let has_octal = row.iter().filter(is_octal).count() > 1;
    if numbers.is_some_and(|numbers| is_list(&numbers)) {
        return false;
    }
    let digits: usize =
        row.iter().map(|piece| piece.text.bytes().filter(u8::is_ascii_digit).count()).sum();
    let chars: usize = row.iter().map(|piece| piece.text.chars().count()).sum();
    let has_letters = row.len() > 1 && chars > MAX_DIGITS && row.iter().any(is_mixed);
    row.len() > MAX_PIECES
        || digits > MAX_DIGITS
        || has_octal
        || has_letters
        || row.windows(2).any(|pair| is_local_number(text, pair))
}

/// "555-1234", "555.1234": a telephone number without its area code. Pairs of sizes and depths have round numbers.
fn is_local_number(text: &str, pair: &[Piece<'_>]) -> bool {
    let [first, second] = pair else {
        return false;
    };
    let between = &text[first.bytes.end..second.bytes.start];
    let numbers = numbers(&[first.text, second.text]);
    let has_lengths = (first.text.len(), second.text.len()) == (3, 4);
    has_lengths
        && ["-", ".", "/", " "].contains(&between)
        && numbers.is_some_and(|numbers| !is_list(&numbers))
}

/// Sizes, depths or counts that grow or fall: powers of two and multiples of ten.
fn is_list(numbers: &[u64]) -> bool {
    let is_round = |number: &u64| number.is_power_of_two() || number % 10 == 0 && *number > 0;
    let grows = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    let falls = numbers.windows(2).all(|pair| pair[0] > pair[1]);
    numbers.len() > 1 && numbers.iter().all(is_round) && (grows || falls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_words_are_seen_whatever_stands_between_their_pieces() {
        for spelt in [
            "1 9 2 . 1 6 8 . 1 . 5",
            "192_168_1_5",
            "192 168 1 5",
            "192, 168, 1, 5",
            "192 [.] 168 [.] 1 [.] 5",
            "c0 a8 b2 2a",
            "x71 x7a x61 x6c",
            "b 8 2 7 e b",
            "q 1 z 2 k 3 s 4 m",
            "fd12, 3456, , 7",
            "10:11:12:13",
            "192 dot 168 dot 1 dot 5",
            "q z a l i c e",
            "0171 5551234",
            "0300 0250 0262",
            "at 49 30 1234567 now",
            "555-1234",
            "call 555 1824",
            "a 972.5621",
            "disk-387/8482",
            "born 1971-05-24",
            "2004-02-29",
        ] {
            assert!(is_spelt(spelt), "{spelt}");
        }
        for plain in [
            "7.2 min to 8.8 min, ±12 %, 16k 32k 64k 128k",
            "1.5 s, 2.5 s, 3.5 s and 4 s",
            "10 20 30 40 50 60",
            "queue depths 1, 2, 4, 8, 16, 32",
            "read-1024-2048-4096",
            "2026-11-29 23:07:38",
            "1970-01-01 00:00:12",
            "1980-01-01",
            "from 12:30 to 14:30, 3 of 4",
            "6.12.47",
            "USB 3, 5 Gbit/s",
            "256 4096",
            "read-100-2000",
            "259:1234",
            "2794.748",
            "1 of 2 in 3 of 4",
            "[ 5432.123456] sd 2:0:0:0: [sda] usb 1-1.3.4: 1-1.3:1.0 at 0000:01:00.0",
        ] {
            assert!(!is_spelt(plain), "{plain}");
        }
    }
}
