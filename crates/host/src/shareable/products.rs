//! Names of products: what words and numbers they may be made of.

use super::identities;
use super::list::is_product_word;
use super::words::{is_public_piece, spelt_words};

/// Whether a text may be the name of a product, of its maker or its version: words of such names, numbers, and numbers of
/// parts beside them, without an address or a long number in hexadecimal. A word that none of the lists has could be a name
/// that an owner gave: targets of iSCSI and gadgets of USB have such.
pub fn is_product(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || " ._-+()/&,:#!*×™®".contains(c);
    let is_private = |word: &str| {
        let is_hex = word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
        identities::is_address(word) || is_hex && word.bytes().any(|b| b.is_ascii_digit())
    };
    let is_identity = |word: &str| {
        let word = word.to_lowercase();
        ["eui.", "naa.", "wwn-", "iqn.", "nqn."].iter().any(|kind| word.starts_with(kind))
            || word.strip_prefix("0x").is_some_and(|digits| digits.len() >= 8)
            || has_western_digital_serial(&word)
    };
    text.len() <= 80
        && !text.starts_with('/')
        && text.chars().all(is_allowed)
        && !text.split(' ').any(|word| is_private(word) || is_identity(word))
        && spelt_words(text).is_empty()
        && !has_domain(text)
        && has_public_pieces(text)
}

/// "usb-WD-WX41A1234567", in small letters: serial numbers as disks of Western Digital give them (`smartctl -i`).
fn has_western_digital_serial(word: &str) -> bool {
    word.match_indices("wd-w").any(|(at, start)| {
        let rest = &word[at + start.len()..];
        let serial = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        !word[..at].ends_with(char::is_alphanumeric) && serial.len() >= 8
    })
}

/// "nas.local": a word behind a point.
fn has_domain(text: &str) -> bool {
    let mut behind = text.split('.').skip(1);
    behind.any(|part| {
        let word = part.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        word.len() > 1 && word.bytes().all(|b| b.is_ascii_alphabetic())
    })
}

/// The longest number of a part that may stand alone: the registers of SD cards have room for five, those of eMMC for six.
const MAX_ALONE: usize = 6;

fn has_public_pieces(text: &str) -> bool {
    let pieces =
        || text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|piece| !piece.is_empty());
    let is_known = |piece: &str| {
        is_public_piece(piece) || is_product_word(piece) || is_joined(piece) || is_chip(piece)
    };
    let has_name = || pieces().any(|piece| piece.len() > 2 && is_product_word(piece));
    let may_have_parts =
        || text.trim().len() <= MAX_ALONE || pieces().any(is_part_of_maker) || has_name();
    // "RTL9210B-CG"
    let is_ending = |piece: &str| {
        piece.len() <= 2 && piece.bytes().all(|b| b.is_ascii_uppercase()) && !is_known(piece)
    };
    let is_numbered = |piece: &str| is_known(piece) || is_part(piece) || is_model_number(piece);
    pieces().all(is_known)
        || pieces().all(|piece| is_numbered(piece) || is_ending(piece))
            && pieces().filter(|piece| is_ending(piece)).count() <= 1
            && may_have_parts()
}

/// "Vi550", "sn570": a few letters and a few digits.
fn is_model_number(piece: &str) -> bool {
    let digits = piece.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    (1..=4).contains(&(piece.len() - digits.len()))
        && (2..=4).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit())
}

/// "DataTraveler", "SanDisk3", "Gen1": words that capitals and numbers separate.
fn is_joined(piece: &str) -> bool {
    let starts = |(at, c): (usize, char)| {
        let before = piece[..at].chars().next_back();
        let is_new = c.is_ascii_uppercase() && before.is_some_and(|b| b.is_ascii_lowercase())
            || before.is_some_and(|b| b.is_ascii_digit() != c.is_ascii_digit());
        is_new.then_some(at)
    };
    let mut ends: Vec<usize> = piece.char_indices().filter_map(starts).collect();
    ends.push(piece.len());
    let mut from = 0;
    let words = ends.into_iter().map(|end| &piece[std::mem::replace(&mut from, end)..end]);
    words.into_iter().all(|word| {
        let is_number = word.len() <= 4 && word.bytes().all(|b| b.is_ascii_digit());
        let is_unit = ["G", "T", "GB", "TB", "MB"].contains(&word);
        is_number || is_unit || word.len() > 1 && is_product_word(word)
    })
}

/// The number of a part: capital letters and digits ("WD40EFRX", "CT240BX500SSD1"). A row of many digits is a serial number.
fn is_part(piece: &str) -> bool {
    const MAX_LETTERS: usize = 4;
    let max_groups = if is_part_of_maker(piece) { 8 } else { 6 };
    let max_digits = if is_part_of_maker(piece) { 6 } else { 5 };
    let longest = |is: fn(char) -> bool| piece.split(|c| !is(c)).map(str::len).max().unwrap_or(0);
    let is_one = piece.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    let letters = longest(|c| c.is_ascii_alphabetic());
    let digits = longest(|c| c.is_ascii_digit());
    let kinds: Vec<bool> = piece.chars().map(|c| c.is_ascii_digit()).collect();
    let groups = 1 + kinds.windows(2).filter(|pair| pair[0] != pair[1]).count();
    is_one
        && groups <= max_groups
        && (2..=15).contains(&piece.len())
        && (1..=max_digits).contains(&digits)
        && (letters <= MAX_LETTERS || is_part_of_maker(piece))
}

/// How numbers of parts begin, by their makers.
const MAKERS: [&str; 31] = [
    "GSTFS", "WD", "ST", "CT", "MZ", "HTS", "HUS", "HDS", "HFS", "HDW", "MQ", "DT", "SA", "SSDSC",
    "SDSSD", "SSDPE", "TS", "THNS", "KBG", "KXG", "MK", "MTFD", "PSSD", "SDLF", "SDAPN", "IM",
    "AP", "SP", "SU", "WUS", "HGST",
];

/// How names of eMMC chips begin, which have six characters.
const CHIPS_OF_SIX: [&str; 22] = [
    "DF4", "DG4", "DV4", "DA4", "AJ", "BJ", "CJ", "8GT", "8GN", "HAG", "HBG", "HCG", "MMC", "M32",
    "M52", "TA29", "AT2S", "G1M", "BGND", "BGSD", "S0J", "Q2J",
];

fn is_part_of_maker(piece: &str) -> bool {
    if piece.len() == 6 && CHIPS_OF_SIX.iter().any(|chip| piece.starts_with(chip)) {
        return true;
    }
    piece.len() >= 6
        && piece.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        && MAKERS.iter().any(|maker| piece.starts_with(maker))
}

/// "rk3588", "h618", "sun50i", "meson8b": a chip by its number.
fn is_chip(piece: &str) -> bool {
    const SYSTEMS: [&str; 36] = [
        "rk", "rv", "px", "sun", "h", "a", "r", "t", "v", "s", "g", "gx", "sm", "axg", "imx",
        "exynos", "mt", "msm", "sdm", "sm", "apq", "qcs", "tegra", "jh", "th", "bcm", "am", "omap",
        "zynq", "stm", "k", "meson", "jms", "asm", "rtl", "ls",
    ];
    let small = piece.to_lowercase();
    let name = small.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let end = small.len() - name.len();
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = name.len() - stem.len();
    end <= 2 && (1..=5).contains(&digits) && SYSTEMS.contains(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_products_hold_no_identity() {
        for product in [
            "Raspberry Pi 4 Model B Rev 1.5",
            "WDC WD40EFRX-68N32N0",
            "CT240BX500SSD1",
            "CT240BX5",
            "SanDisk 3.2Gen1",
            "Samsung SSD 980 500GB",
            "SAMSUNG MZVLB512HAJQ-00000",
            "HGST HTS721010A9E630",
            "KINGSTON SA400S37240G",
            "Cruzer Blade",
            "DataTraveler 3.0",
            "QEMU USB HARDDRIVE",
            "USB to ATA/ATAPI Bridge",
            "ASMT1051",
            "EB1QT",
            "USD00",
            "SC64G",
            "raspberrypi,4-model-b",
            "brcm,bcm2711",
            "friendlyarm,nanopi-r5s",
            "rockchip,rk3588",
            "Cortex-A72",
            "Intel Xeon Gold 6230",
            "WD Blue SN570 500GB",
            "WDC WDS500G2B0A-00SM50",
            "Intenso SSD Sata III",
            "WD_BLACK SN770 1TB",
            "PNY CS900 240GB SSD",
            "Verbatim Vi550 S3",
            "Patriot P300 128GB",
            "ZHITAI TiPlus5000 1TB",
            "Silicon-Power32G",
            "RTL9210B-CG",
            "Y2P128",
            "Corsair MP600 Micro",
            "HP SSD S700 250GB",
        ] {
            assert!(is_product(product), "{product}");
        }
        for other in [
            "/srv/x",
            "eui.0025385b21404321",
            "NAA.600a098038303634",
            "wwn-0x5000c500a1b2c3d4",
            "iqn.2024-01.org.x:lun7",
            "0x0a0b0c0d",
            "b8 27 eb 3a 2b 1c",
            "alicevol",
            "ALICEVOL",
            "Anna's disk",
            "cXphbGljZQ",
            "717A616C",
            "S4EVNX0R123456",
            "WD My Passport WD-WX4B347F306",
            "usb-WD-WXB174BA947",
            "Raspberry Pi B8-27-EB-44-B7-67x",
            "1 9 2 . 1 6 8",
            "HUNTER2HUNTER",
        ] {
            assert!(!is_product(other), "{other}");
        }
    }
}
