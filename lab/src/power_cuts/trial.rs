//! Judges the start on trial that a cut has left beside the usual one: what `tryboot.txt` names, and the root that it starts.
//!
//! After a cut the firmware makes a usual start: its mark for a trial is on no disk, and goes with the power. A trial begins when
//! a user asks for it, as the product says to do once its journal says that all is ready. From that record on `tryboot.txt` must
//! be there and start the new system whole. Before it, and once an undoing has begun, nothing says to use it: what it names may be
//! incomplete, or gone.

use std::path::Path;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::kit::Kit;
use crate::outside::{BOOT, Manifest};

use super::files::strange;
use super::other_root::{OtherRoots, other_root};
use super::start::{Start, start, unknown};

/// What the firmware reads for a trial.
const FILE: &str = "tryboot.txt";

/// What a start on trial begins, in a good state.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    start: Start,
    /// The new root as the change made it, and as it was later.
    roots: Vec<Manifest>,
}

/// What a cut has left of it.
#[derive(Debug)]
pub(super) struct FoundTrial {
    /// Whether there is a `tryboot.txt`, whatever is in it.
    is_there: bool,
    /// What the firmware would start, or why it would not.
    start: Result<Start, String>,
    /// The root that is named, or what is wrong with it.
    root: Result<Manifest, String>,
}

/// Whether a card with these files has a `tryboot.txt`.
pub(super) fn is_in(card: &Manifest) -> bool {
    card.contains_key(&format!("{BOOT}/{FILE}"))
}

/// The trial of a good state.
pub(super) fn whole(cache: &Cache, kit: &Kit) -> Result<Trial> {
    let place = cache.work_directory()?;
    let start = start(kit, true, &place.path().join("trial")).context("on trial")?;
    let root = other_root(cache, kit, start.root()).context("the root of the trial")?;
    Ok(Trial { start, roots: vec![root.files] })
}

impl Trial {
    /// The same trial, whose root was started, and is like this since.
    pub(super) fn started(mut self, root: Manifest) -> Self {
        self.roots.push(root);
        self
    }

    /// What names its root on the command line.
    pub(super) fn root(&self) -> &str {
        self.start.root()
    }

    /// What its root may be like.
    pub(super) fn roots(&self) -> Vec<&Manifest> {
        self.roots.iter().collect()
    }
}

/// What the firmware would start on trial; `place` is a directory that is not there yet. It reads the boot partition before anything
/// mends it. The root is not looked at yet.
pub(super) fn found(kit: &Kit, place: &Path) -> FoundTrial {
    FoundTrial {
        is_there: true,
        start: start(kit, true, place).map_err(|error| format!("{error:#}")),
        root: Err("nothing names it".to_owned()),
    }
}

impl FoundTrial {
    /// Looks at the root too, and at what of the trial is on the card, whose files these are.
    pub(super) fn look_further(&mut self, roots: &mut OtherRoots<'_>, card: &Manifest) {
        self.is_there = is_in(card);
        if let Ok(start) = &self.start {
            self.root = roots.named(start.root()).map(|root| root.files);
        }
    }

    /// What is wrong with it; nothing may be, once the trial is promised.
    pub(super) fn wrong(&self, whole: &Trial, is_promised: bool) -> Vec<String> {
        if is_promised { self.missing(whole) } else { Vec::new() }
    }

    /// For the row of a cut, behind the root that the usual start has.
    pub(super) fn words(&self, whole: &Trial, is_promised: bool) -> &'static str {
        match (self.is_there, self.missing(whole).is_empty()) {
            (false, _) => "",
            (true, true) if is_promised => ", trial promised",
            (true, true) => ", trial whole",
            (true, false) => ", trial incomplete",
        }
    }

    /// What keeps it from starting the new system whole.
    fn missing(&self, whole: &Trial) -> Vec<String> {
        let mut missing = match &self.start {
            Err(reason) => return vec![format!("on trial, does not start: {reason}")],
            Ok(start) => unknown(&[&whole.start], start),
        };
        match &self.root {
            Err(reason) => missing.push(format!("the root that is named: {reason}")),
            Ok(root) => {
                let lost = strange(&whole.roots(), root);
                missing.extend(lost.into_iter().map(|one| format!("{one} on the new root")));
            }
        }
        let missing = missing.into_iter();
        missing.map(|one| format!("on trial, {one}")).collect()
    }
}

#[cfg(test)]
impl Trial {
    pub(super) fn of(cmdline: &str, root: &[(&str, &str)]) -> Self {
        Self {
            start: super::start::with_command_line(cmdline),
            roots: vec![super::files::manifest(root)],
        }
    }
}

#[cfg(test)]
impl FoundTrial {
    pub(super) fn of(cmdline: &str, root: &[(&str, &str)]) -> Self {
        let Trial { start, mut roots } = Trial::of(cmdline, root);
        Self { is_there: true, start: Ok(start), root: Ok(roots.remove(0)) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::super::Random;
    use super::super::caches::Caches;
    use super::super::files::manifest;
    use super::super::loss::Fate;
    use super::super::write_log::of_writes;
    use super::*;
    use crate::board::Board;
    use crate::tools;

    /// What is in the new initial RAM filesystem.
    const NEW: [u8; 3000] = [7; 3000];

    /// A card with a boot partition whose files can be changed without root.
    struct Card {
        place: tempfile::TempDir,
    }

    impl Card {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let mut card = vec![0; 4 << 20];
            card[510..512].copy_from_slice(&[0x55, 0xaa]);
            card[446 + 4] = 0x0c;
            // The partition begins at sector 2048.
            card[446 + 9] = 8;
            fs::write(place.path().join("sd.img"), card).unwrap();
            fs::write(place.path().join("kit.json"), "{\"board\": \"pc\", \"usb\": []}").unwrap();
            let card = Self { place };
            card.with("mformat", &["-T", "6144", "-h", "16", "-s", "32", "::"]);
            card
        }

        fn with(&self, program: &str, arguments: &[&str]) {
            let mut with = tools::command(program);
            let partition = format!("{}@@1M", self.place.path().join("sd.img").display());
            tools::run(with.arg("-i").arg(partition).args(arguments)).unwrap();
        }

        fn put(&self, name: &str, bytes: &[u8]) {
            let file = self.place.path().join("file");
            fs::write(&file, bytes).unwrap();
            self.with("mcopy", &["-o", file.to_str().unwrap(), &format!("::{name}")]);
        }

        fn bytes(&self) -> Vec<u8> {
            fs::read(self.place.path().join("sd.img")).unwrap()
        }

        fn kit(&self) -> Kit {
            Kit::open(Board::Pc, self.place.path()).unwrap()
        }

        fn found(&self, kit: &Kit) -> FoundTrial {
            let place = tempfile::tempdir_in(self.place.path()).unwrap();
            found(kit, &place.path().join("trial"))
        }
    }

    /// The sectors that are others in `after`.
    fn writes(before: &[u8], after: &[u8]) -> Vec<Option<(u64, Vec<u8>)>> {
        let pairs = (0..).zip(before.chunks(512).zip(after.chunks(512)));
        let changed = pairs.filter(|(_, (old, new))| old != new);
        changed.map(|(sector, (_, new))| Some((sector, new.to_vec()))).collect()
    }

    /// The log of a disk that got a new `tryboot.txt` before what that names: its names, and its contents last.
    #[test]
    fn once_it_is_promised_a_trial_names_nothing_that_is_missing_or_short() {
        let card = Card::new();
        card.put("config.txt", b"kernel=k\ninitramfs i\n");
        card.put("cmdline.txt", b"root=old\n");
        card.put("k", b"kernel");
        card.put("i", b"old");
        card.put("new.txt", b"root=PARTUUID=new\n");
        let start = card.kit().temporary_copy(&Cache::at(card.place.path())).unwrap();
        let plain = card.bytes();
        card.put(FILE, b"kernel=k\ninitramfs n\ncmdline=new.txt\n");
        let named = card.bytes();
        card.put("n", &NEW);
        let good = card.found(&card.kit());
        let root = manifest(&[("/a", "f 1")]);
        let whole = Trial { start: good.start.unwrap(), roots: vec![root.clone()] };
        assert_eq!(whole.root(), "PARTUUID=new");

        let is_data = |write: &Option<(u64, Vec<u8>)>| {
            write.as_ref().is_some_and(|(_, data)| data.starts_with(&NEW[..9]))
        };
        let (data, names): (Vec<_>, Vec<_>) =
            writes(&named, &card.bytes()).into_iter().partition(is_data);
        assert!(data.len() == 6 && !names.is_empty());
        let mut log = Vec::new();
        let mut flushed = vec![0];
        for part in [writes(&plain, &named), names, data] {
            log.extend(part);
            log.push(None);
            flushed.push(log.len());
        }
        let place: PathBuf = card.place.path().join("sd.log");
        fs::write(&place, of_writes(&log)).unwrap();
        let images = Cache::at(card.place.path().join("images"));
        let mut caches = Caches::of_logs(&images, &start, &[place], Random::of(1)).unwrap();
        let mut judged = flushed.into_iter().map(|cut| {
            let cut = caches.card_cut_at(&images, cut, Fate::Lost, &mut Random::of(1));
            let mut trial = card.found(&cut.unwrap().0);
            trial.root = Ok(root.clone());
            assert!(trial.wrong(&whole, false).is_empty(), "nothing says to use it");
            trial.wrong(&whole, true).join("; ")
        });
        let [none, missing, short, all] = [(); 4].map(|()| judged.next().unwrap());
        assert!(none.contains("finds no tryboot.txt"), "{none}");
        assert!(
            missing.contains("on trial, does not start: the firmware finds no n in"),
            "{missing}"
        );
        assert_eq!(short, "on trial, starts an unknown initial RAM filesystem");
        assert_eq!(all, "");
    }

    #[test]
    fn the_root_of_a_trial_is_whole_and_a_row_tells_of_it() {
        let whole = Trial::of("root=new", &[("/a", "f 1")]);
        let mut trial = FoundTrial::of("root=new", &[]);
        assert_eq!(trial.wrong(&whole, true), ["on trial, lost /a on the new root"]);
        assert_eq!(trial.words(&whole, true), ", trial incomplete");
        trial.root = Err("no disk has it".to_owned());
        assert_eq!(trial.wrong(&whole, true).len(), 1);
        trial.root = Ok(whole.roots[0].clone());
        assert!(trial.wrong(&whole, true).is_empty());
        assert_eq!(trial.words(&whole, false), ", trial whole");
        assert_eq!(trial.words(&whole, true), ", trial promised");
        trial.is_there = false;
        assert_eq!(trial.words(&whole, false), "");
    }
}
