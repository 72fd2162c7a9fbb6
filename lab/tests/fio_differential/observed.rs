//! What a program did to files, by its system calls.

use std::collections::BTreeMap;
use std::path::Path;

/// A read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    pub is_write: bool,
    pub offset: u64,
    pub bytes: u64,
}

/// The calls to trace.
pub const CALLS: &str = "pread64,pwrite64,io_submit";

/// Reads and writes by file name, from the output of `strace -ff -y -s 0` in a directory. Files
/// without a name are called by their inode number.
pub fn accesses(directory: &Path, below: &Path) -> BTreeMap<String, Vec<Access>> {
    let mut found: BTreeMap<String, Vec<Access>> = BTreeMap::new();
    let below = below.display().to_string();
    let traces = std::fs::read_dir(directory).expect("the traces");
    let mut traces: Vec<_> = traces.map(|entry| entry.expect("a trace").path()).collect();
    traces.sort_by_key(|path| {
        let number = path.extension().and_then(|extension| extension.to_str()?.parse::<u32>().ok());
        number.expect("traces are called by their processes")
    });
    // The first thread prepares files and looks at them; others do the jobs.
    for trace in traces.iter().skip(1) {
        let text = std::fs::read_to_string(trace).expect("a text");
        for line in text.lines() {
            for (path, access) in of_line(line) {
                if let Some(name) = path.strip_prefix(&format!("{below}/")) {
                    found.entry(name.to_string()).or_default().push(access);
                }
            }
        }
    }
    found
}

fn of_line(line: &str) -> Vec<(&str, Access)> {
    if line.starts_with("io_submit(") {
        return line.split("aio_lio_opcode=").skip(1).filter_map(of_control_block).collect();
    }
    let is_write = line.starts_with("pwrite64(");
    if !is_write && !line.starts_with("pread64(") {
        return Vec::new();
    }
    let of_call = || {
        let (call, result) = line.rsplit_once(") = ")?;
        let bytes = result.split(' ').next()?.parse().ok().filter(|bytes| *bytes > 0)?;
        let (path, rest) = path_in(call)?;
        let offset = rest.rsplit(", ").next()?.parse().ok()?;
        Some((path, Access { is_write, offset, bytes }))
    };
    of_call().into_iter().collect()
}

fn of_control_block(text: &str) -> Option<(&str, Access)> {
    let is_write = text.starts_with("IOCB_CMD_PWRITE");
    let (path, rest) = path_in(text)?;
    let number = |key: &str| {
        let digits = rest.split_once(key)?.1;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    };
    let (offset, bytes) = (number("aio_offset=")?, number("aio_nbytes=")?);
    Some((path, Access { is_write, offset, bytes }))
}

/// The path of a descriptor, `7</tmp/f1>`, and what follows.
fn path_in(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once('<')?;
    rest.split_once('>')
}
