//! Types of partitions that all machines have: UUIDs that stay in a capture, as others are identities.

/// Types of GPT partitions (UEFI specification, table "Defined GPT Partition Entry"; UAPI group, "Discoverable Partitions
/// Specification"; those of LVM, MD, dm-crypt, Ceph, ZFS and other systems).
const KNOWN: [&str; 28] = [
    // EFI system, extended boot loader, BIOS boot.
    "c12a7328-f81f-11d2-ba4b-00a0c93ec93b",
    "bc13c2ff-59e6-4262-a352-b275fd6f7172",
    "21686148-6449-6e6f-744e-656564454649",
    // Linux: data, swap, arrays, LVM, reserved, dm-crypt, LUKS.
    "0fc63daf-8483-4772-8e79-3d69d8477de4",
    "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f",
    "a19d880f-05fc-4d3b-a006-743f0f84911e",
    "e6d6d379-f507-44c2-a23c-238f2a3df928",
    "8da63339-0007-60c0-c436-083ac8230908",
    "7ffec5c9-2d00-49b7-8941-3ea10a5586b7",
    "ca7d7ccb-63ed-4c53-861c-1742536059cc",
    // /home, /srv, /var, /var/tmp.
    "933ac7e1-2eb4-4f13-b844-0e14e2aef915",
    "3b8f8425-20e0-4f3b-907f-1a25a76f98e8",
    "4d21b016-b534-45c2-a9fb-5c16e091fd2d",
    "7ec6f557-3bc5-4aca-b293-16ef5df639d1",
    // The root of x86 with 32 and 64 bits, of Arm with 32 and 64, of RISC-V with 64.
    "44479540-f297-41b2-9af7-d131d5f0458a",
    "4f68bce3-e8cd-4db1-96e7-fbcaf984b709",
    "69dad710-2ce4-4e3c-b16c-21a1d49abed3",
    "b921b045-1df0-41c3-af44-4c6f280d3fae",
    "72ec70a6-cf74-40e6-bd49-4bda08e8f224",
    // /usr of x86 with 64 bits, of Arm with 64.
    "8484680c-9521-48c6-9c11-b0720656f69e",
    "b0e01050-ee5f-4390-949a-9101b17104e9",
    // Windows: data, reserved, recovery.
    "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7",
    "e3c9e316-0b5c-4db8-817d-f92df00215ae",
    "de94bba4-06d1-4d40-a16a-bfd50179d6ac",
    // ZFS, HFS+, APFS, a Ceph daemon.
    "6a898cc3-1dd2-11b2-99a6-080020736631",
    "48465300-0000-11aa-aa11-00306543ecac",
    "7c3457ef-0000-11aa-aa11-00306543ecac",
    "4fbd7e29-9d25-41b8-afd0-062c0ceff05d",
];

/// Whether a UUID is such a type, whatever its case.
pub(super) fn is_known(uuid: &str) -> bool {
    KNOWN.iter().any(|known| known.eq_ignore_ascii_case(uuid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_in_either_case_and_each_once() {
        assert!(is_known("0FC63DAF-8483-4772-8E79-3D69D8477DE4"));
        assert!(!is_known("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"));
        let different: std::collections::BTreeSet<&str> = KNOWN.into_iter().collect();
        assert_eq!(different.len(), KNOWN.len());
    }
}
