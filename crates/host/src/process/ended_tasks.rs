//! What the kernel says of each task that ends: its name, its parent, and the bytes that it had read and written
//! (Documentation/accounting/taskstats.rst, `include/uapi/linux/taskstats.h`).
//!
//! A program that ends between two looks at `/proc` is gone with its counters; only this tells who it was. It takes root's
//! rights over the network (CAP_NET_ADMIN) and a kernel with task statistics, as all distributions' have.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::files::Files;
use crate::net::generic_netlink::{Attributes, Incoming, MAX_BYTES, Writer, control, family, read};
use crate::net::netlink::Netlink;

/// The family's name.
const NAME: &str = "TASKSTATS";
/// "Tell me from now on", with the processors to listen to.
const GET: u8 = 1;
/// Something of a task that ended.
const NEW: u8 = 2;
/// Attributes of a request: processors, as a list of numbers and ranges.
const REGISTER: u16 = 3;
/// Attributes of what the kernel says: what belongs to one task, and in it the numbers.
const OF_TASK: u16 = 4;
const NUMBERS: u16 = 3;
/// Room for what is said between two readings: some 10,000 tasks.
const ROOM_BYTES: usize = 8 << 20;
/// How long the kernel may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A task that ended: a process without further threads, or one thread of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedTask {
    /// Thread id of the task.
    pub task: u32,
    /// The number of its process: the same for the first thread.
    pub process: u32,
    /// The number of the process's parent.
    pub parent: u32,
    /// Its name, as far as the kernel keeps it.
    pub name: String,
    /// Bytes that a device read for it.
    pub read_bytes: u64,
    /// Bytes that a device wrote for it, or will.
    pub written_bytes: u64,
    /// Bytes that it deleted before they were written.
    pub cancelled_bytes: u64,
}

/// What the kernel says of tasks that end.
#[derive(Debug)]
pub struct EndedTasks {
    socket: Netlink,
    family: u16,
    memory: Box<[u8]>,
}

impl EndedTasks {
    /// Lets the kernel tell of all tasks that end from now on.
    ///
    /// # Errors
    /// When this program may not know, the kernel does not count, or it would tell of tasks by other numbers than those of
    /// `/proc`: in a container.
    pub fn listen(files: &dyn Files) -> io::Result<EndedTasks> {
        if is_in_a_container() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let socket = Netlink::generic()?;
        socket.make_room(ROOM_BYTES);
        let mut tasks = EndedTasks {
            socket,
            family: control::FAMILY,
            memory: vec![0; MAX_BYTES].into_boxed_slice(),
        };
        let question = Writer::request(control::FAMILY, control::GET_FAMILY, 1);
        let mut id = None;
        tasks.ask(question.text(control::FAMILY_NAME, NAME), 1, |attributes| {
            id = family(attributes, "").map(|(id, _)| id);
        })?;
        tasks.family = id.ok_or(io::ErrorKind::Unsupported)?;
        let processors = files.text(Path::new("/sys/devices/system/cpu/possible"));
        let processors = processors.map_err(|error| io::Error::other(error.to_string()))?;
        let request = Writer::request(tasks.family, GET, 2);
        tasks.ask(request.text(REGISTER, processors.trim()), 2, |_| {})?;
        Ok(tasks)
    }

    /// Those that ended since the last time, in their order. If there were more than there is room for, some of them are
    /// missing.
    pub fn since_last_time(&mut self) -> Vec<EndedTask> {
        let mut ended = Vec::new();
        loop {
            match self.socket.receive(&mut self.memory, Duration::ZERO) {
                Ok(Some(bytes)) => ended.extend(tasks(&self.memory[..bytes], self.family)),
                Ok(None) => return ended,
                // The room was too small once; what comes after is whole again.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(_) => return ended,
            }
        }
    }

    /// Sends a request and waits until the kernel has done it.
    fn ask(
        &mut self,
        request: Writer,
        number: u32,
        mut take: impl FnMut(Attributes<'_>),
    ) -> io::Result<()> {
        self.socket.send(&request.finish())?;
        loop {
            let bytes = self.socket.receive(&mut self.memory, PATIENCE)?;
            let bytes = bytes.ok_or(io::ErrorKind::TimedOut)?;
            for incoming in read(&self.memory[..bytes]) {
                match incoming {
                    Incoming::Done { sequence } if sequence == number => return Ok(()),
                    Incoming::Refused { sequence, errno, .. } if sequence == number => {
                        return Err(io::Error::from_raw_os_error(errno));
                    }
                    Incoming::Message { sequence, attributes, .. } if sequence == number => {
                        take(attributes)
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Whether the processes that this program sees have other numbers outside. Source: Linux, include/linux/proc_ns.h:
/// `PROC_PID_INIT_INO`, the number of the first namespace.
fn is_in_a_container() -> bool {
    const FIRST: &str = "pid:[4026531836]";
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|own| own != Path::new(FIRST))
}

/// The tasks in a datagram.
fn tasks(datagram: &[u8], wanted: u16) -> impl Iterator<Item = EndedTask> {
    read(datagram).filter_map(move |incoming| match incoming {
        Incoming::Message { family, command: NEW, attributes, .. } if family == wanted => {
            task(attributes.nested(OF_TASK)?.find(NUMBERS)?)
        }
        _ => None,
    })
}

/// Reads the kernel's `struct taskstats`. Its fields have kept their places since version 1, and new ones are added at its
/// end; but for version 15, which Linux 6.14 had.
fn task(numbers: &[u8]) -> Option<EndedTask> {
    const NAME_AT: usize = 80;
    const NAME_BYTES: usize = 32;
    const TASK_AT: usize = 128;
    const PARENT_AT: usize = 132;
    const READ_AT: usize = 248;
    const PROCESS_AT: usize = 368;
    const HAS_PROCESS: u16 = 12;
    const BROKEN: u16 = 15;
    let u32_at = |at: usize| {
        let bytes = numbers.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let u64_at = |at: usize| {
        let bytes = numbers.get(at..at + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let version = u16::from_ne_bytes(numbers.get(..2)?.try_into().ok()?);
    if version == BROKEN {
        return None;
    }
    let name = numbers.get(NAME_AT..NAME_AT + NAME_BYTES)?;
    let name = name.split(|byte| *byte == 0).next()?;
    let task = u32_at(TASK_AT)?;
    Some(EndedTask {
        task,
        // Older kernels do not report it: then a thread counts as a process of its own.
        process: if version >= HAS_PROCESS { u32_at(PROCESS_AT)? } else { task },
        parent: u32_at(PARENT_AT)?,
        name: String::from_utf8_lossy(name).into_owned(),
        read_bytes: u64_at(READ_AT)?,
        written_bytes: u64_at(READ_AT + 8)?,
        cancelled_bytes: u64_at(READ_AT + 16)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A structure of a version, with a number in each place that is of interest.
    fn numbers(version: u16, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let mut put = |at: usize, value: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + value.len()) {
                place.copy_from_slice(value);
            }
        };
        put(0, &version.to_ne_bytes());
        put(80, b"dd");
        put(128, &4711_u32.to_ne_bytes());
        put(132, &812_u32.to_ne_bytes());
        put(248, &8192_u64.to_ne_bytes());
        put(256, &1_048_576_u64.to_ne_bytes());
        put(264, &4096_u64.to_ne_bytes());
        put(368, &4700_u32.to_ne_bytes());
        bytes
    }

    fn ended(process: u32) -> EndedTask {
        EndedTask {
            task: 4711,
            process,
            parent: 812,
            name: "dd".into(),
            read_bytes: 8192,
            written_bytes: 1_048_576,
            cancelled_bytes: 4096,
        }
    }

    #[test]
    fn each_version_is_read_but_the_one_with_other_places() {
        assert_eq!(task(&numbers(8, 328)), Some(ended(4711)));
        assert_eq!(task(&numbers(12, 400)), Some(ended(4700)));
        assert_eq!(task(&numbers(17, 700)), Some(ended(4700)));
        assert_eq!(task(&numbers(15, 700)), None);
        assert_eq!(task(&numbers(12, 370)), None, "cut off");
        assert_eq!(task(&[]), None);
    }

    #[test]
    fn a_datagram_tells_of_tasks_of_its_family_only() {
        let message = |family: u16, command: u8| {
            Writer::request(family, command, 0)
                .nested(OF_TASK, |inner| inner.u32(1, 4711).attribute(NUMBERS, &numbers(13, 416)))
                .finish()
        };
        let datagram = [message(30, NEW), message(31, NEW), message(30, GET)].concat();
        assert_eq!(tasks(&datagram, 30).collect::<Vec<_>>(), [ended(4700)]);
    }

    proptest! {
        #[test]
        fn anything_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            let _ = task(&bytes);
            let _ = tasks(&bytes, 30).count();
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods)] // A program that ends is what it is about.
    fn the_kernel_tells_of_a_program_that_ended() {
        let Ok(mut tasks) = EndedTasks::listen(&crate::live::Live::new()) else {
            eprintln!("this user may not listen to what ends");
            return;
        };
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let mut seen = Vec::new();
        for _ in 0..200 {
            seen.extend(tasks.since_last_time());
            if seen.iter().any(|ended| ended.task == pid) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let ended = seen.iter().find(|ended| ended.task == pid);
        let ended = ended.unwrap_or_else(|| panic!("no word of {pid}: {seen:?}"));
        assert_eq!(ended.name, "true");
        assert_eq!(ended.parent, std::process::id());
        assert_eq!(ended.process, pid);
    }
}
