//! What `/etc/fstab` has mounted at each start.

use rubus_boot::fstab::{Entry, Fstab};
use rubus_boot::volume::Name;
use rubus_host::Files;
use rubus_vocabulary::fact::Fact;

use crate::probe::read;

const FSTAB: &str = "/etc/fstab";

/// The lines that name a volume. A line of a network filesystem may hold a password, and facts are shown to others.
pub(crate) fn fstab(files: &dyn Files) -> Fact<Vec<Entry>> {
    read::text(files, FSTAB).map(|text| {
        let mut entries = Fstab::parse(text).entries();
        entries.retain(|entry| Name::of(entry).is_volume());
        entries
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    #[test]
    fn lines_of_volumes_are_facts_and_passwords_are_not() {
        let table = "# disks\n\
                     UUID=5DF9-E225  /boot/firmware  vfat  defaults  0  2\n\
                     /dev/nbd0  /mnt/network  ext4  noatime,_netdev  0  0\n\
                     //nas/music  /mnt/nas  cifs  password=secret  0  0\n\
                     tmpfs  /tmp  tmpfs  size=64m  0  0\n";
        let files = FakeFiles::new().file(FSTAB, table);
        let fact = fstab(&files);
        let entries = fact.value().expect("it is there");
        let places: Vec<&str> = entries.iter().map(|entry| entry.target.as_str()).collect();
        assert_eq!(places, ["/boot/firmware", "/mnt/network"]);
        assert!(entries[1].has_option("_netdev"));
        let unknown = fstab(&FakeFiles::new());
        assert_eq!(unknown.reason(), Some("no such file"));
        assert_eq!(unknown.source(), FSTAB);
    }
}
