//! What workers do with small files: one operation is one file.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rubus_vocabulary::spec::{Content, Operation};
use rustix::fs::{AtFlags, Mode, OFlags, fsync, mkdirat, openat, statat, unlinkat};
use rustix::io::{Errno, read, write};

use crate::error::advice;
use crate::mailbox::WorkerEnd;
use crate::tree::{FILES_PER_DIRECTORY, Group, Name, open_directory};
use crate::worker::Tally;
use crate::workers::{WorkerShare, WorkerStart, Workers};
use rubus_host::block::buffers::{Buffers, stamp};
use rubus_host::ticks::now_ns;

/// One phase on one group of files.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    /// What is done with each file.
    pub(crate) operation: Operation,
    /// To which files: making and removing works on the first group only.
    pub(crate) groups: Vec<Arc<Group>>,
    /// In which order, where files are looked at: group, directory and file by their numbers.
    pub(crate) order: Arc<Vec<(u32, u32, u32)>>,
    /// Size of a file.
    pub(crate) file_bytes: u32,
    /// What files contain.
    pub(crate) content: Content,
    /// Seed of the contents.
    pub(crate) seed: u64,
    /// Whether files are looked at again when all have been.
    pub(crate) goes_round: bool,
    /// How many workers.
    pub(crate) workers: u32,
    /// Files to work on at most, all workers together.
    pub(crate) max_files: u64,
    /// The warm-up is over after this time ...
    pub(crate) warm_up_ns: u64,
    /// ... or after this many files.
    pub(crate) warm_up_files: u64,
}

impl Phase {
    /// Starts the workers.
    ///
    /// # Errors
    /// In words, when a thread cannot be made.
    pub(crate) fn start(&self) -> Result<Workers, String> {
        self.groups.iter().for_each(|group| group.rewind());
        let next = Arc::new(AtomicUsize::new(0));
        let workers = u64::from(self.workers).min(self.max_files).max(1) as u32;
        Workers::start_each(workers, |worker, start| {
            let (phase, next) = (self.clone(), Arc::clone(&next));
            Box::new(move || phase.run(worker, workers, &next, &start))
        })
    }

    fn run(&self, worker: u32, workers: u32, next: &AtomicUsize, start: &WorkerStart) {
        let bytes = (self.file_bytes as usize).max(1);
        let seed = self.seed.wrapping_add(u64::from(worker) << 40);
        let memory = Buffers::new(1, bytes, self.content, seed);
        let mut memory = match memory {
            Ok(memory) => memory,
            Err(error) => {
                return start.fail(format!("cannot get {bytes} bytes of memory: {error}"));
            }
        };
        let share = |files: u64| {
            let workers = u64::from(workers);
            files / workers + u64::from(u64::from(worker) < files % workers)
        };
        // The workers take from one list and may take more than their even part of it.
        let tally = start.begin(WorkerShare {
            max_operations: self.max_files.max(1),
            block_bytes: match self.operation {
                Operation::StatFile | Operation::DeleteFile => 0,
                _ => self.file_bytes,
            },
            warm_up_ns: self.warm_up_ns,
            warm_up_operations: share(self.warm_up_files),
        });
        let mut hand = Hand {
            phase: self,
            memory: &mut memory.first_mut()[..self.file_bytes as usize],
            stamps: seed,
            tally,
        };
        let end = match self.operation {
            Operation::CreateFile | Operation::CreateFileDurably => hand.create(),
            Operation::DeleteFile => hand.delete(),
            _ => hand.look(next),
        };
        let end = match end {
            Ok(end) => end,
            Err(error) => WorkerEnd::Failed(error),
        };
        hand.tally.finish(end);
    }
}

/// One worker at work.
struct Hand<'a> {
    phase: &'a Phase,
    memory: &'a mut [u8],
    stamps: u64,
    tally: Tally,
}

impl Hand<'_> {
    /// Counts a file; gives why the worker ends, if it does.
    fn count(&mut self) -> Option<WorkerEnd> {
        let is_over = self.tally.one(now_ns()) && !self.tally.turn_one();
        is_over.then(|| self.tally.why_over())
    }

    /// Fills directory after directory. The making of a directory counts with its first file.
    fn create(&mut self) -> Result<WorkerEnd, String> {
        let group = Arc::clone(&self.phase.groups[0]);
        let durable = self.phase.operation == Operation::CreateFileDurably;
        while let Some(number) = group.take() {
            let name = group.directory_name(number);
            let directory = make_directory(&group, &name, durable)
                .map_err(|errno| trouble("make a directory", errno))?;
            for file in 0..FILES_PER_DIRECTORY {
                let name = Name::of_file(file);
                self.create_one(directory.as_fd(), &name, durable)
                    .map_err(|errno| trouble("make a file", errno))?;
                let made = &group.directory(number).made;
                made.store(file + 1, Ordering::Relaxed);
                if let Some(end) = self.count() {
                    return Ok(end);
                }
            }
        }
        Ok(WorkerEnd::Spent)
    }

    fn create_one(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &Name,
        durable: bool,
    ) -> Result<(), Errno> {
        if self.phase.content.differs() {
            stamp(self.memory, &mut self.stamps);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(directory, name.as_c_str(), flags, Mode::RUSR | Mode::WUSR)?;
        let mut rest: &[u8] = self.memory;
        while !rest.is_empty() {
            match write(&file, rest)? {
                0 => return Err(Errno::NOSPC),
                written => rest = &rest[written..],
            }
        }
        if durable {
            fsync(&file)?;
            drop(file);
            fsync(directory)?;
        }
        Ok(())
    }

    /// Empties directory after directory, and removes each with its last file.
    fn delete(&mut self) -> Result<WorkerEnd, String> {
        let group = Arc::clone(&self.phase.groups[0]);
        let failed = |errno| trouble("remove a file", errno);
        while let Some(number) = group.take() {
            let state = group.directory(number);
            let made = state.made.load(Ordering::Relaxed);
            if made == state.gone.load(Ordering::Relaxed) {
                continue;
            }
            let name = group.directory_name(number);
            let directory = open_directory(group.root.as_fd(), name.as_c_str()).map_err(failed)?;
            for file in state.gone.load(Ordering::Relaxed)..made {
                let of_file = Name::of_file(file);
                unlinkat(&directory, of_file.as_c_str(), AtFlags::empty()).map_err(failed)?;
                if file + 1 == made {
                    unlinkat(&group.root, name.as_c_str(), AtFlags::REMOVEDIR).map_err(failed)?;
                }
                state.gone.store(file + 1, Ordering::Relaxed);
                if let Some(end) = self.count() {
                    return Ok(end);
                }
            }
        }
        Ok(WorkerEnd::Spent)
    }

    /// Looks at file after file of the list: each once, or, where once is as good as often, again and
    /// again.
    fn look(&mut self, next: &AtomicUsize) -> Result<WorkerEnd, String> {
        let phase = self.phase;
        let root = phase.groups[0].root.as_fd();
        let reads = phase.operation == Operation::ReadFile;
        let files = phase.order.len();
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            let index = if phase.goes_round { turn % files.max(1) } else { turn };
            let Some(&(group, directory, file)) = phase.order.get(index) else {
                return Ok(WorkerEnd::Spent);
            };
            let path = phase.groups[group as usize].path(directory, file);
            if reads {
                self.read_one(root, &path).map_err(|errno| trouble("read a file", errno))?;
            } else {
                statat(root, path.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(|errno| trouble("look at a file", errno))?;
            }
            if let Some(end) = self.count() {
                return Ok(end);
            }
        }
    }

    fn read_one(&mut self, root: BorrowedFd<'_>, path: &Name) -> Result<(), Errno> {
        // Without noting the access: a first reading would otherwise write to the disk.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOATIME;
        let file = openat(root, path.as_c_str(), flags, Mode::empty())?;
        let mut done = 0;
        while done < self.memory.len() {
            match read(&file, &mut self.memory[done..])? {
                0 => return Err(Errno::IO),
                length => done += length,
            }
        }
        Ok(())
    }
}

fn make_directory(group: &Group, name: &Name, durable: bool) -> Result<OwnedFd, Errno> {
    mkdirat(&group.root, name.as_c_str(), Mode::RWXU)?;
    if durable {
        fsync(&group.root)?;
    }
    open_directory(group.root.as_fd(), name.as_c_str())
}

fn trouble(tried: &str, errno: Errno) -> String {
    let (error, advice) = (std::io::Error::from(errno), advice(errno));
    format!("cannot {tried} of the test: {error}{advice}")
}
