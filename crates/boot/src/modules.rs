//! Kernel modules by name: which a kernel has, which of them are built in, and what each needs.
//!
//! Formats: modules.dep(5) and modules.builtin of kmod: paths below `/lib/modules/RELEASE`, which may be
//! compressed (`.ko.xz`, `.ko.zst`, `.ko.gz`). In names `-` and `_` are the same.

use std::collections::{BTreeMap, BTreeSet};

/// What a kernel release brings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modules {
    /// What each module needs, in the order of `modules.dep`, by name with `_`.
    needs: BTreeMap<String, Vec<String>>,
    built_in: BTreeSet<String>,
}

/// How a kernel has a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// In the kernel itself.
    BuiltIn,
    /// As files: the module and all it needs, the module first.
    Files(Vec<String>),
    /// Neither list names it.
    No,
}

impl Modules {
    /// From the texts of `modules.dep` and `modules.builtin`.
    pub fn parse(dep: &str, builtin: &str) -> Modules {
        let mut modules = Modules::default();
        for line in dep.lines() {
            let Some((path, needs)) = line.split_once(':') else {
                continue;
            };
            if let Some(name) = name_of(path) {
                let needs = needs.split_whitespace().filter_map(name_of);
                modules.needs.insert(name, needs.collect());
            }
        }
        modules.built_in = builtin.lines().filter_map(|line| name_of(line.trim())).collect();
        modules
    }

    /// Whether both lists are empty: nothing is known then.
    pub fn is_empty(&self) -> bool {
        self.needs.is_empty() && self.built_in.is_empty()
    }

    /// How the kernel has a module.
    pub fn find(&self, name: &str) -> Known {
        let name = normal(name);
        if self.built_in.contains(&name) {
            return Known::BuiltIn;
        }
        if !self.needs.contains_key(&name) {
            return Known::No;
        }
        // depmod lists dependencies of any depth; following them anyway costs nothing and relies on
        // nothing.
        let mut all = vec![name];
        let mut at = 0;
        while at < all.len() {
            let needs = self.needs.get(&all[at]).cloned().unwrap_or_default();
            for need in needs {
                if !all.contains(&need) && !self.built_in.contains(&need) {
                    all.push(need);
                }
            }
            at += 1;
        }
        Known::Files(all)
    }
}

/// A name with `_` for `-`.
pub fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// The name of the module that a file is, with `_`.
pub fn name_of(path: &str) -> Option<String> {
    let file = path.rsplit('/').next().unwrap_or_default();
    let packed = [".xz", ".zst", ".gz"];
    let bare = packed.iter().find_map(|end| file.strip_suffix(end)).unwrap_or(file);
    let name = bare.strip_suffix(".ko")?;
    (!name.is_empty()).then(|| normal(name))
}

/// The kernel release that a path without a slash in front belongs to: `6.12.47` in
/// `usr/lib/modules/6.12.47/kernel/fs/btrfs/btrfs.ko`.
pub fn release_of(path: &str) -> Option<&str> {
    let path = path.strip_prefix("usr/").unwrap_or(path);
    let rest = path.strip_prefix("lib/modules/")?;
    rest.split_once('/').map(|(release, _)| release)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "\
kernel/fs/btrfs/btrfs.ko.xz: kernel/crypto/xor.ko.xz kernel/lib/raid6/raid6_pq.ko.xz kernel/lib/libcrc32c.ko.xz
kernel/crypto/xor.ko.xz: kernel/arch/arm64/lib/xor-neon.ko.xz
kernel/arch/arm64/lib/xor-neon.ko.xz:
kernel/lib/raid6/raid6_pq.ko.xz:
kernel/drivers/usb/storage/usb-storage.ko.xz:
";

    #[test]
    fn a_module_brings_all_that_it_needs() {
        let modules = Modules::parse(DEP, "kernel/lib/libcrc32c.ko\nkernel/fs/ext4/ext4.ko\n");
        let Known::Files(files) = modules.find("btrfs") else {
            panic!("btrfs is a file");
        };
        assert_eq!(files, ["btrfs", "xor", "raid6_pq", "xor_neon"]);
        assert_eq!(modules.find("ext4"), Known::BuiltIn);
        assert_eq!(modules.find("usb_storage"), Known::Files(vec!["usb_storage".into()]));
        assert_eq!(modules.find("nvme"), Known::No);
    }

    #[test]
    fn names_are_those_of_files_packed_or_not() {
        for path in ["a/usb-storage.ko", "usb_storage.ko.zst", "x/usb-storage.ko.gz"] {
            assert_eq!(name_of(path).as_deref(), Some("usb_storage"), "{path}");
        }
        for path in ["", ".ko", "modules.dep", "a.ko.bz2", "ko"] {
            assert_eq!(name_of(path), None, "{path}");
        }
        let path = "usr/lib/modules/6.12.47+rpt-rpi-v8/kernel/fs/btrfs/btrfs.ko.xz";
        assert_eq!(release_of(path), Some("6.12.47+rpt-rpi-v8"));
        assert_eq!(release_of("lib/modules"), None);
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(dep in "([a-c/.:k o]{0,12}\\n){0,6}", name in "[a-c-]{0,3}") {
            Modules::parse(&dep, &dep).find(&name);
        }
    }
}
