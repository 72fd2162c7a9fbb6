//! How the files of a btrfs filesystem are compressed in fact: a walk through its trees.
//!
//! A whole subvolume is read in the order of its tree, which is the fastest way; below another directory, the tree is
//! searched for what the directory names. No file is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::parse::btrfs::{
    Child, Compression, Counts, DIRECTORY_INDEX, EXTENT_DATA, INODE_ITEM, Key, ROOT_REF, Tally,
    child, extent, inode, items,
};
use roaring::RoaringTreemap;
use rubus_host::clock;
use rubus_host::files::btrfs::{SearchError, Spot, Trees};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// A tree cannot be looked into.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// What is shared between filesystems cannot be told.
    #[error("{one} and {other} are on different filesystems; look at one at a time")]
    TwoFilesystems {
        /// The first path.
        one: PathBuf,
        other: PathBuf,
    },
}

/// Looks through the subvolume that a directory is in, from its top, and not at subvolumes below it. Ends early after
/// `most`, and says so. The memory that it takes is bounded by the disk ([`Tally`]).
///
/// # Errors
/// [`LookError`] where it is not btrfs, or without root.
pub fn subvolume(directory: &Path, most: Duration) -> Result<Compression, LookError> {
    let trees = Trees::of(directory)?;
    let tree = trees.spot()?.tree;
    let mut walk = Walk::new(trees, false);
    walk.end_ns = Some(clock::monotonic_ns() + u64::try_from(most.as_nanos()).unwrap_or(u64::MAX));
    walk.whole(tree, &mut |_| {})?;
    Ok(walk.finish())
}

/// Looks through everything below some paths of one filesystem; what several of them lead to counts once. With
/// `stays`, not through subvolumes below them. `told` hears from time to time how far it is.
///
/// # Errors
/// [`LookError`] where a path is not on btrfs, when they are on different filesystems, or without root.
pub fn below(
    paths: &[PathBuf],
    stays: bool,
    told: &mut dyn FnMut(Counts),
) -> Result<Compression, LookError> {
    let mut spots = Vec::new();
    let mut trees = None;
    for path in paths {
        let opened = Trees::of(path)?;
        spots.push((opened.spot()?, path));
        trees = Some(opened);
    }
    let Some(trees) = trees else {
        return Ok(Tally::new().finish(true));
    };
    for (spot, path) in &spots[1..] {
        let (first, one) = &spots[0];
        if spot.filesystem != first.filesystem {
            return Err(LookError::TwoFilesystems {
                one: one.to_path_buf(),
                other: path.to_path_buf(),
            });
        }
    }
    let mut walk = Walk::new(trees, !stays);
    // In this order, what was seen as a part can be left out of the whole.
    let is_top = |spot: &Spot| spot.is_directory && spot.inode == Spot::TOP;
    for (spot, _) in spots.iter().filter(|(spot, _)| is_top(spot)) {
        walk.subvolumes(spot.tree, told)?;
    }
    for (spot, _) in spots.iter().filter(|(spot, _)| !spot.is_directory) {
        if !walk.whole.contains(&spot.tree) && !walk.has_met(spot.tree, spot.inode) {
            walk.files(spot.tree, &[spot.inode])?;
            walk.meet(spot.tree, spot.inode);
        }
    }
    for (spot, _) in spots.iter().filter(|(spot, _)| spot.is_directory && !is_top(spot)) {
        walk.directory(spot.tree, spot.inode, told)?;
    }
    Ok(walk.finish())
}

/// Files whose numbers differ by no more are read at once; what lies between them is read in vain.
const NEAR: u64 = 4;

struct Walk {
    trees: Trees,
    tally: Tally,
    /// Goes on into subvolumes below.
    goes_below: bool,
    /// Subvolumes of which everything was seen.
    whole: BTreeSet<u64>,
    /// Inodes that could be met again, by tree: directories, files with several names, and files that were asked for.
    met: BTreeMap<u64, RoaringTreemap>,
    /// When to end, by the monotonic clock.
    end_ns: Option<u64>,
    is_whole: bool,
}

impl Walk {
    fn new(trees: Trees, goes_below: bool) -> Walk {
        Walk {
            trees,
            tally: Tally::new(),
            goes_below,
            whole: BTreeSet::new(),
            met: BTreeMap::new(),
            end_ns: None,
            is_whole: true,
        }
    }

    fn finish(self) -> Compression {
        self.tally.finish(self.is_whole)
    }

    /// A subvolume, and those below it.
    fn subvolumes(&mut self, tree: u64, told: &mut dyn FnMut(Counts)) -> Result<(), SearchError> {
        let mut due = vec![tree];
        while let Some(tree) = due.pop() {
            if !self.whole.insert(tree) {
                continue;
            }
            self.whole(tree, told)?;
            if self.goes_below {
                due.extend(self.subvolumes_below(tree)?);
            }
        }
        Ok(())
    }

    fn subvolumes_below(&mut self, tree: u64) -> Result<Vec<u64>, SearchError> {
        let range = [(tree, ROOT_REF, 0), (tree, ROOT_REF, u64::MAX)];
        let mut below = Vec::new();
        each(&mut self.trees, Trees::ROOTS, range, |key, _| {
            below.push(key.offset);
        })?;
        Ok(below)
    }

    /// Everything in a subvolume, in the order of its tree.
    fn whole(&mut self, tree: u64, told: &mut dyn FnMut(Counts)) -> Result<(), SearchError> {
        let mut counted = None;
        let mut from = Some(Key::default());
        while let Some(key) = from {
            if self.end_ns.is_some_and(|end| clock::monotonic_ns() > end) {
                self.is_whole = false;
                return Ok(());
            }
            let to = (u64::MAX, u32::MAX, u64::MAX);
            let (buffer, count) = self.trees.items(tree, (key.object, key.kind, key.offset), to)?;
            from = None;
            for item in items(buffer, count) {
                match item.key.kind {
                    INODE_ITEM => {
                        // A file without a name is one that was deleted while it is open.
                        let is_counted = inode(item.bytes)
                            .is_some_and(|inode| inode.is_regular && inode.names > 0);
                        counted = is_counted.then_some(item.key.object);
                        if is_counted {
                            self.tally.file();
                        }
                    }
                    EXTENT_DATA if counted == Some(item.key.object) => {
                        self.tally.take(extent(item.bytes));
                    }
                    _ => {}
                }
                from = item.key.next();
            }
            told(self.tally.counts());
        }
        Ok(())
    }

    /// Everything below a directory.
    fn directory(
        &mut self,
        tree: u64,
        inode: u64,
        told: &mut dyn FnMut(Counts),
    ) -> Result<(), SearchError> {
        let mut due = vec![inode];
        while let Some(directory) = due.pop() {
            if self.whole.contains(&tree) || !self.meet(tree, directory) {
                continue;
            }
            let mut children = Vec::new();
            let range = [(directory, DIRECTORY_INDEX, 0), (directory, DIRECTORY_INDEX, u64::MAX)];
            each(&mut self.trees, tree, range, |_, bytes| {
                children.extend(child(bytes));
            })?;
            let mut files = Vec::new();
            let mut below = None;
            for child in children {
                match child {
                    Child::File(inode) => files.push(inode),
                    Child::Directory(inode) => due.push(inode),
                    Child::Subvolume(id) if self.goes_below => {
                        // In a snapshot the entry stays where only the original has the subvolume.
                        if below.is_none() {
                            below = Some(self.subvolumes_below(tree)?);
                        }
                        if below.iter().flatten().any(|real| *real == id) {
                            self.subvolumes(id, told)?;
                        }
                    }
                    Child::Subvolume(_) => {}
                }
            }
            files.sort_unstable();
            files.dedup();
            self.files(tree, &files)?;
            told(self.tally.counts());
        }
        Ok(())
    }

    /// Files of one directory, sorted. Those with numbers near to one another, as files that were made together have,
    /// are read at once.
    fn files(&mut self, tree: u64, numbers: &[u64]) -> Result<(), SearchError> {
        for run in numbers.chunk_by(|one, next| next - one <= NEAR) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else {
                continue;
            };
            let mut wanted = run.iter().copied().peekable();
            let mut counted = None;
            let met = self.met.entry(tree).or_default();
            let range = [(*first, INODE_ITEM, 0), (*last, EXTENT_DATA, u64::MAX)];
            each(&mut self.trees, tree, range, |key, bytes| match key.kind {
                INODE_ITEM => {
                    while wanted.next_if(|number| *number < key.object).is_some() {}
                    let is_wanted = wanted.peek() == Some(&key.object);
                    let names = inode(bytes).map_or(0, |inode| inode.names);
                    let is_new = match names {
                        0 | 1 => !met.contains(key.object),
                        _ => is_wanted && met.insert(key.object),
                    };
                    counted = (is_wanted && is_new).then_some(key.object);
                    if counted.is_some() {
                        self.tally.file();
                    }
                }
                EXTENT_DATA if counted == Some(key.object) => self.tally.take(extent(bytes)),
                _ => {}
            })?;
        }
        Ok(())
    }

    fn has_met(&self, tree: u64, inode: u64) -> bool {
        self.met.get(&tree).is_some_and(|met| met.contains(inode))
    }

    /// Remembers an inode; false when it was remembered before.
    fn meet(&mut self, tree: u64, inode: u64) -> bool {
        self.met.entry(tree).or_default().insert(inode)
    }
}

/// Gives every item of a range to `take`.
fn each(
    trees: &mut Trees,
    tree: u64,
    [from, to]: [(u64, u32, u64); 2],
    mut take: impl FnMut(Key, &[u8]),
) -> Result<(), SearchError> {
    let mut from = Some(from);
    while let Some(key) = from {
        let (buffer, count) = trees.items(tree, key, to)?;
        from = None;
        for item in items(buffer, count) {
            take(item.key, item.bytes);
            let next = item.key.next();
            from = next.map(|next| (next.object, next.kind, next.offset));
        }
        from = from.filter(|from| *from <= to);
    }
    Ok(())
}
