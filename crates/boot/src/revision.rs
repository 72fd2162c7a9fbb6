//! Raspberry Pi revision codes: from the number in the boot EEPROM or fuses to a board.
//!
//! Source: "Raspberry Pi revision codes", raspberrypi.com documentation. Nothing is looked up in
//! a list of whole codes, except for the first boards, whose codes were only numbered: a code
//! that is newer than this program still tells its memory, processor and revision.

use rubus_vocabulary::machine::Revision;

/// Bit 23: the code is made of fields.
const NEW_STYLE: u32 = 1 << 23;

/// Decodes a revision code. Anything is accepted; what this program does not know is named with
/// its number.
pub fn decode(code: u32) -> Revision {
    if code & NEW_STYLE != 0 { new_style(code) } else { old_style(code) }
}

fn new_style(code: u32) -> Revision {
    let field = |shift: u32, bits: u32| (code >> shift) & ((1 << bits) - 1);
    Revision {
        code,
        board_type: board_type(field(4, 8)),
        processor: processor(field(12, 4)),
        memory_mib: memory_mib(field(20, 3)),
        manufacturer: manufacturer(field(16, 4)),
        revision: format!("1.{}", field(0, 4)),
    }
}

fn board_type(number: u32) -> String {
    let known = match number {
        0x00 => "A",
        0x01 => "B",
        0x02 => "A+",
        0x03 => "B+",
        0x04 => "2B",
        0x05 => "Alpha",
        0x06 => "CM1",
        0x08 => "3B",
        0x09 => "Zero",
        0x0a => "CM3",
        0x0c => "Zero W",
        0x0d => "3B+",
        0x0e => "3A+",
        0x10 => "CM3+",
        0x11 => "4B",
        0x12 => "Zero 2 W",
        0x13 => "400",
        0x14 => "CM4",
        0x15 => "CM4S",
        0x17 => "5",
        0x18 => "CM5",
        0x19 => "500",
        0x1a => "CM5 Lite",
        0x1b => "CM0",
        _ => return format!("unknown type {number:#04x}"),
    };
    known.to_string()
}

fn processor(number: u32) -> String {
    let known = match number {
        0 => "BCM2835",
        1 => "BCM2836",
        2 => "BCM2837",
        3 => "BCM2711",
        4 => "BCM2712",
        _ => return format!("unknown processor {number:#x}"),
    };
    known.to_string()
}

/// 0 is 256 MiB, each step doubles up to 16 GiB; 7 is not given a size.
fn memory_mib(number: u32) -> Option<u32> {
    (number <= 6).then(|| 256 << number)
}

fn manufacturer(number: u32) -> String {
    let known = match number {
        0 => "Sony UK",
        1 => "Egoman",
        2 | 4 => "Embest",
        3 => "Sony Japan",
        5 => "Stadium",
        _ => return format!("unknown manufacturer {number:#x}"),
    };
    known.to_string()
}

/// The codes of 2012 to 2014. Higher bits only say that the warranty is void.
fn old_style(code: u32) -> Revision {
    let (board_type, revision, memory_mib, manufacturer) = match code & 0xff {
        0x02 | 0x03 => ("B", "1.0", Some(256), "Egoman"),
        0x04 => ("B", "2.0", Some(256), "Sony UK"),
        0x05 => ("B", "2.0", Some(256), "Qisda"),
        0x06 => ("B", "2.0", Some(256), "Egoman"),
        0x07 => ("A", "2.0", Some(256), "Egoman"),
        0x08 => ("A", "2.0", Some(256), "Sony UK"),
        0x09 => ("A", "2.0", Some(256), "Qisda"),
        0x0d => ("B", "2.0", Some(512), "Egoman"),
        0x0e => ("B", "2.0", Some(512), "Sony UK"),
        0x0f => ("B", "2.0", Some(512), "Egoman"),
        0x10 => ("B+", "1.2", Some(512), "Sony UK"),
        0x11 => ("CM1", "1.0", Some(512), "Sony UK"),
        0x12 => ("A+", "1.1", Some(256), "Sony UK"),
        0x13 => ("B+", "1.2", Some(512), "Embest"),
        0x14 => ("CM1", "1.0", Some(512), "Embest"),
        // Made with 256 and with 512 MiB under one code.
        0x15 => ("A+", "1.1", None, "Embest"),
        _ => return undocumented_old_style(code),
    };
    Revision {
        code,
        board_type: board_type.to_string(),
        processor: "BCM2835".to_string(),
        memory_mib,
        manufacturer: manufacturer.to_string(),
        revision: revision.to_string(),
    }
}

fn undocumented_old_style(code: u32) -> Revision {
    Revision {
        code,
        board_type: format!("unknown old code {code:#06x}"),
        processor: "unknown processor".to_string(),
        memory_mib: None,
        manufacturer: "unknown manufacturer".to_string(),
        revision: "unknown".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code, type, processor, MiB, manufacturer, revision: lines of the vendor's table.
    const IN_USE: [(u32, &str, &str, u32, &str, &str); 17] = [
        (0x0002, "B", "BCM2835", 256, "Egoman", "1.0"),
        (0x0010, "B+", "BCM2835", 512, "Sony UK", "1.2"),
        (0x900092, "Zero", "BCM2835", 512, "Sony UK", "1.2"),
        (0x9000c1, "Zero W", "BCM2835", 512, "Sony UK", "1.1"),
        (0xa01041, "2B", "BCM2836", 1024, "Sony UK", "1.1"),
        (0xa21041, "2B", "BCM2836", 1024, "Embest", "1.1"),
        (0xa02042, "2B", "BCM2837", 1024, "Sony UK", "1.2"),
        (0xa02082, "3B", "BCM2837", 1024, "Sony UK", "1.2"),
        (0xa32082, "3B", "BCM2837", 1024, "Sony Japan", "1.2"),
        (0xa52082, "3B", "BCM2837", 1024, "Stadium", "1.2"),
        (0xa020d3, "3B+", "BCM2837", 1024, "Sony UK", "1.3"),
        (0x902120, "Zero 2 W", "BCM2837", 512, "Sony UK", "1.0"),
        (0xc03114, "4B", "BCM2711", 4096, "Sony UK", "1.4"),
        (0xd03140, "CM4", "BCM2711", 8192, "Sony UK", "1.0"),
        (0xa04171, "5", "BCM2712", 1024, "Sony UK", "1.1"),
        (0xe04171, "5", "BCM2712", 16384, "Sony UK", "1.1"),
        (0xd041a0, "CM5 Lite", "BCM2712", 8192, "Sony UK", "1.0"),
    ];

    #[test]
    fn codes_in_use_are_decoded() {
        for (code, board_type, processor, memory_mib, manufacturer, revision) in IN_USE {
            let expected = Revision {
                code,
                board_type: board_type.to_string(),
                processor: processor.to_string(),
                memory_mib: Some(memory_mib),
                manufacturer: manufacturer.to_string(),
                revision: revision.to_string(),
            };
            assert_eq!(decode(code), expected, "{code:#x}");
        }
    }

    #[test]
    fn flags_above_the_fields_change_nothing_but_the_code() {
        // Warranty void and overvoltage bits, new and old style.
        for (flagged, plain) in [(0x82a0_2082, 0xa0_2082), (0x0100_0013, 0x13)] {
            let decoded = decode(flagged);
            assert_eq!(decoded.code, flagged);
            assert_eq!(Revision { code: plain, ..decoded }, decode(plain));
        }
    }

    #[test]
    fn one_code_for_two_memory_sizes_claims_neither() {
        assert_eq!(decode(0x15).memory_mib, None);
    }

    #[test]
    fn newer_codes_say_what_is_not_known() {
        let decoded = decode(0xf0_01f2 | (6 << 16) | (5 << 12));
        assert_eq!(decoded.board_type, "unknown type 0x1f");
        assert_eq!(decoded.processor, "unknown processor 0x5");
        assert_eq!(decoded.manufacturer, "unknown manufacturer 0x6");
        assert_eq!(decoded.memory_mib, None);
        assert_eq!(decoded.revision, "1.2");
        assert_eq!(decode(0).board_type, "unknown old code 0x0000");
    }

    proptest::proptest! {
        #[test]
        fn no_code_makes_it_panic(code: u32) {
            assert_eq!(decode(code).code, code);
        }
    }
}
