//! Cards with files that were not written to their end, or that are gone.

use super::*;

#[test]
fn a_table_of_mounts_that_is_no_plain_text_is_named() {
    let line = "PARTUUID=1a2b3c4d-02 / ext4 noatime 0 1\n";
    let wide: Vec<u8> = line.bytes().flat_map(|byte| [byte, 0]).collect();
    let unsure = Outcome::NotCertainAfter(Stage::Init);
    for (bytes, ends) in [
        (line.as_bytes().to_vec(), Outcome::Starts),
        (format!("# \u{e4}\n{line}").into_bytes(), Outcome::Starts),
        ([b"\xff\xfe", wide.as_slice()].concat(), unsure),
        (wide, unsure),
        (vec![0; 512], unsure),
        (format!("\u{feff}{line}").into_bytes(), unsure),
    ] {
        let mut card = Card::new("pi4", true, true, "PARTUUID=1a2b3c4d-02");
        card.install("/etc/fstab", &bytes);
        assert_eq!(answer(&card).0, ends, "{bytes:?}");
    }
}

/// A power cut while the file was written: the kernel finds its root without, or does not.
#[test]
fn an_initramfs_that_is_none_matters_where_the_root_needs_one() {
    let stops = Outcome::StopsAt(Stage::Initramfs);
    let half = initramfs_of(RELEASE)[..60].to_vec();
    for (is_built_in, bytes, ends) in [
        (true, vec![0; 4096], Outcome::Starts),
        (true, b"no archive".to_vec(), Outcome::Starts),
        (true, half, Outcome::NotCertainAfter(Stage::Kernel)),
        (false, vec![0; 4096], stops),
        (false, b"no archive".to_vec(), stops),
    ] {
        let mut card = Card::new("pi4", is_built_in, true, "PARTUUID=1a2b3c4d-02");
        card.put("initramfs8", &bytes);
        assert_eq!(answer(&card).0, ends, "{is_built_in}, {} bytes", bytes.len());
    }
    let mut card = Card::new("pi4", true, true, "UUID=uuid-2");
    card.put("initramfs8", [0_u8; 4096]);
    assert_eq!(answer(&card).0, stops);
}

#[test]
fn a_file_that_is_mounted_has_to_be_there() {
    let image = "/srv/data.img /srv/data ext4 loop 0 0";
    let stops = Outcome::StopsAt(Stage::Mounts);
    for (line, ends) in [
        (image, stops),
        ("/srv/data.img /srv/data ext4 loop,nofail 0 0", Outcome::Starts),
        ("/srv/gone /srv/data none bind 0 0", Outcome::Starts),
        ("/srv/a:/srv/b /srv/pool fuse.mergerfs defaults 0 0", Outcome::Starts),
        ("/run/data.img /srv/data ext4 loop 0 0", Outcome::Starts),
    ] {
        let mut card = Card::new("pi4", true, true, "PARTUUID=1a2b3c4d-02");
        card.install("/etc/fstab", format!("{line}\n"));
        assert_eq!(answer(&card).0, ends, "{line}");
    }
    let mut card = Card::new("pi4", true, true, "PARTUUID=1a2b3c4d-02");
    card.install("/etc/fstab", format!("{image}\n"));
    card.install("/srv/data.img", "files");
    assert_eq!(answer(&card).0, Outcome::Starts);
}
