//! The options of one job, read one by one: what each asks for, or why it cannot be done.

use rubus_vocabulary::spec::{
    BytePattern, Distribution, FileOrder, FlushEvery, Sizes, Verify, Zone,
};

use super::value::{self, Amount, KbBase, int, per_direction, small, switch, time_us};

/// What became of an option's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Done,
    /// It is done in another way or has no effect; how or why.
    Otherwise(String),
    /// It is not done; what it would do.
    NotDone(String),
    /// Without it nothing is left of the job; what it would do.
    CannotRun(String),
}

/// How operations are handed to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Submission {
    /// One at a time, whatever the depth says.
    #[default]
    Synchronous,
    /// As many as the depth says, if the file is opened past the page cache.
    WhenDirect,
    /// As many as the depth says.
    Asynchronous,
}

/// What a job's options ask for; the default is fio's.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) is_random: bool,
    pub(super) stride_bytes: i64,
    pub(super) run_length: u32,
    pub(super) read_percent: u8,
    pub(super) block: [Option<u32>; 2],
    pub(super) block_range: [Option<(u32, u32)>; 2],
    pub(super) block_split: [Option<Sizes>; 2],
    pub(super) block_align: [Option<u32>; 2],
    pub(super) unaligned: bool,
    pub(super) engine: String,
    pub(super) submission: Submission,
    pub(super) depth: u32,
    pub(super) copies: u32,
    pub(super) group_reporting: bool,
    pub(super) stonewall: bool,
    pub(super) new_group: bool,
    pub(super) wait_for: Option<String>,
    pub(super) exit_all: bool,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) filename: Option<String>,
    pub(super) directory: Option<String>,
    pub(super) filename_format: String,
    pub(super) has_format: bool,
    pub(super) files: u32,
    pub(super) file_order: FileOrder,
    pub(super) operations_per_file: u32,
    pub(super) size: Option<Amount>,
    pub(super) io_size: Option<Amount>,
    pub(super) file_size: Option<u64>,
    pub(super) offset: Amount,
    pub(super) offset_increment: Amount,
    pub(super) max_operations: Option<u64>,
    pub(super) loops: u32,
    pub(super) reserve: bool,
    pub(super) overwrite: bool,
    pub(super) runtime_us: u64,
    pub(super) time_based: bool,
    pub(super) ramp_us: u64,
    pub(super) start_delay_us: u64,
    pub(super) is_buffered: bool,
    pub(super) keeps_cache: bool,
    pub(super) each_durable: bool,
    pub(super) flush_every: Option<FlushEvery>,
    pub(super) end_flush: bool,
    pub(super) rate: [Option<u64>; 2],
    pub(super) rate_iops: [Option<u64>; 2],
    pub(super) poisson: bool,
    pub(super) think_us: u64,
    pub(super) think_spin_us: u64,
    pub(super) think_every: u32,
    pub(super) distribution: Distribution,
    pub(super) zones: Vec<Zone>,
    pub(super) random_percent: [Option<u8>; 2],
    pub(super) no_random_map: bool,
    pub(super) seed: Option<u64>,
    /// Another sequence of places each time.
    pub(super) has_fresh_seed: bool,
    pub(super) verify: Option<Verify>,
    pub(super) reads_back: bool,
    pub(super) zeros: bool,
    pub(super) pattern: Option<BytePattern>,
    pub(super) compress_percent: Option<u8>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            reads: true,
            writes: false,
            is_random: false,
            stride_bytes: 0,
            run_length: 1,
            read_percent: 50,
            block: [None; 2],
            block_range: [None; 2],
            block_split: [None, None],
            block_align: [None; 2],
            unaligned: false,
            engine: "psync".into(),
            submission: Submission::Synchronous,
            depth: 1,
            copies: 1,
            group_reporting: false,
            stonewall: false,
            new_group: false,
            wait_for: None,
            exit_all: false,
            name: None,
            description: None,
            filename: None,
            directory: None,
            filename_format: "$jobname.$jobnum.$filenum".into(),
            has_format: false,
            files: 1,
            file_order: FileOrder::RoundRobin,
            operations_per_file: 1,
            size: None,
            io_size: None,
            file_size: None,
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            max_operations: None,
            loops: 1,
            reserve: true,
            overwrite: false,
            runtime_us: 0,
            time_based: false,
            ramp_us: 0,
            start_delay_us: 0,
            is_buffered: true,
            keeps_cache: false,
            each_durable: false,
            flush_every: None,
            end_flush: false,
            rate: [None; 2],
            rate_iops: [None; 2],
            poisson: false,
            think_us: 0,
            think_spin_us: 0,
            think_every: 1,
            distribution: Distribution::Uniform,
            zones: Vec::new(),
            random_percent: [None; 2],
            no_random_map: false,
            seed: None,
            has_fresh_seed: false,
            verify: None,
            reads_back: true,
            zeros: false,
            pattern: None,
            compress_percent: None,
        }
    }
}

impl Settings {
    /// Operations in flight: 1 of an engine that works one at a time.
    pub(super) fn effective_depth(&self) -> u32 {
        if self.is_one_at_a_time() { 1 } else { self.depth }
    }

    pub(super) fn is_one_at_a_time(&self) -> bool {
        match self.submission {
            Submission::Synchronous => true,
            Submission::WhenDirect => self.is_buffered,
            Submission::Asynchronous => false,
        }
    }

    /// Whether random operations visit every block once before any is visited again.
    pub(super) fn visits_once(&self) -> bool {
        let is_even = self.zones.is_empty() && self.distribution == Distribution::Uniform;
        is_even && !self.no_random_map
    }

    pub(super) fn is_mapped(&self) -> bool {
        self.engine == "mmap"
    }

    /// Whether no operation of a random job is random (`percentage_random=0`).
    pub(super) fn is_random_in_name(&self) -> bool {
        let sides = [(self.reads, self.random_percent[0]), (self.writes, self.random_percent[1])];
        let mut used = sides.iter().filter(|(is_used, _)| *is_used).peekable();
        self.is_random && used.peek().is_some() && used.all(|(_, percent)| *percent == Some(0))
    }

    /// Whether its operations are random, for the disk or for the kernel: fio tells it so of a job that is random in name, and
    /// it reads nothing ahead into the page cache.
    pub(super) fn is_random_in_effect(&self) -> bool {
        self.is_random && (self.is_buffered || !self.is_random_in_name())
    }

    /// Bytes of each operation of one direction; absent where they differ.
    pub(super) fn fixed_block(&self, side: usize) -> Option<u32> {
        if self.block_split[side].is_some() {
            return None;
        }
        match self.block_range[side] {
            Some((low, high)) => (low == high).then_some(low),
            None => Some(self.block[side].unwrap_or(DEFAULT_BLOCK)),
        }
    }
}

/// fio's block size, where a job says none.
pub(super) const DEFAULT_BLOCK: u32 = 4096;

/// The most of anything that is counted: jobs, files, operations in flight.
const MAX: u32 = 65_536;

impl Settings {
    /// Takes the option of that (main) name.
    ///
    /// # Errors
    /// In words, when the value is not one of the option's.
    pub(super) fn take(
        &mut self,
        name: &str,
        value: Option<&str>,
        base: KbBase,
    ) -> Result<Taken, String> {
        let text = value.unwrap_or("");
        match name {
            "rw" | "ioengine" | "rwmixread" | "rwmixwrite" | "iodepth" | "direct" | "buffered"
            | "sync" | "invalidate" => return self.take_kind(name, value, base),
            "bs" => self.block = per_direction(text, |part| value::block(part, base))?,
            "ba" => self.block_align = per_direction(text, |part| value::block(part, base))?,
            "bsrange" => self.block_range = ranges(text, base)?,
            "bssplit" => {
                self.block_split = per_direction(text, |part| value::split(part, base))?;
            }
            "bs_unaligned" => self.unaligned = switch(value)?,
            "kb_base" => {}
            "name" => self.name = some_text(text)?,
            "description" => self.description = some_text(text)?,
            "wait_for" => self.wait_for = some_text(text)?,
            // Each filename= adds files, one in [global] as well.
            "filename" => {
                let more = some_text(text)?.unwrap_or_default();
                let all = self.filename.take().map(|before| format!("{before}:{more}"));
                self.filename = Some(all.unwrap_or(more));
            }
            "directory" => self.directory = some_text(text)?,
            "filename_format" => {
                self.filename_format = some_text(text)?.unwrap_or_default();
                self.has_format = true;
            }
            "exit_what" => return exit_what(text),
            "exitall" => self.exit_all = switch(value)?,
            "stonewall" => self.stonewall = switch(value)?,
            "new_group" => self.new_group = switch(value)?,
            "group_reporting" => self.group_reporting = switch(value)?,
            "numjobs" => self.copies = small(text, base, 4096)?.max(1),
            "verify" => return self.take_verify(text),
            "do_verify" => self.reads_back = switch(value)?,
            "zero_buffers" => self.zeros = switch(value)?,
            "buffer_pattern" => match value::pattern(text)? {
                Some(pattern) => self.pattern = Some(pattern),
                None => {
                    let what = format!(
                        "would write a pattern of several parts, of a file, or of more than {} bytes",
                        BytePattern::MAX
                    );
                    return Ok(Taken::NotDone(what));
                }
            },
            "buffer_compress_percentage" => {
                self.compress_percent = Some(small(text, base, 100)? as u8);
            }
            "end_fsync" => self.end_flush = switch(value)?,
            "fsync" | "fdatasync" => self.flush_every = flush(text, base, name == "fsync")?,
            _ => return self.take_place_or_pace(name, value, base),
        }
        Ok(Taken::Done)
    }

    /// What kind of operations, and how they are handed on.
    fn take_kind(
        &mut self,
        name: &str,
        value: Option<&str>,
        base: KbBase,
    ) -> Result<Taken, String> {
        let text = value.unwrap_or("");
        match name {
            "rw" => return self.take_rw(text, base),
            "ioengine" => return self.take_engine(text),
            "rwmixread" => self.read_percent = small(text, base, 100)? as u8,
            "rwmixwrite" => self.read_percent = 100 - small(text, base, 100)? as u8,
            "iodepth" => self.depth = small(text, base, MAX)?.max(1),
            "direct" => self.is_buffered = !switch(value)?,
            "buffered" => self.is_buffered = switch(value)?,
            "invalidate" => self.keeps_cache = !switch(value)?,
            _ => {
                self.each_durable = match text {
                    "none" | "0" => false,
                    "" | "sync" | "1" | "dsync" => true,
                    _ => return Err(format!("'{text}' is none of none, sync, dsync")),
                };
                if self.each_durable {
                    let how = "each write is followed by fdatasync, and both are one operation";
                    return Ok(Taken::Otherwise(how.into()));
                }
            }
        }
        Ok(Taken::Done)
    }

    /// Where on the files, how much, how fast, how long.
    fn take_place_or_pace(
        &mut self,
        name: &str,
        value: Option<&str>,
        base: KbBase,
    ) -> Result<Taken, String> {
        const SECOND: u64 = 1_000_000;
        let text = value.unwrap_or("");
        match name {
            "nrfiles" => self.files = small(text, base, MAX)?.max(1),
            "file_service_type" => return self.take_file_order(text, base),
            "size" => self.size = Some(value::amount(text, base)?),
            "io_size" => self.io_size = Some(value::amount(text, base)?),
            "filesize" => return self.take_file_size(text, base),
            "offset" => self.offset = value::amount(text, base)?,
            "offset_increment" => self.offset_increment = value::amount(text, base)?,
            "number_ios" => self.max_operations = Some(int(text, base)?).filter(|&n| n > 0),
            "loops" => self.loops = small(text, base, u32::MAX)?.max(1),
            "fallocate" => return self.take_fallocate(text),
            "overwrite" => self.overwrite = switch(value)?,
            "runtime" => self.runtime_us = time_us(text, SECOND)?,
            "time_based" => self.time_based = switch(value)?,
            "ramp_time" => self.ramp_us = time_us(text, SECOND)?,
            "startdelay" => self.start_delay_us = start_delay(text)?,
            "thinktime" => self.think_us = time_us(text, 1)?,
            "thinktime_spin" => self.think_spin_us = time_us(text, 1)?,
            "thinktime_blocks" => self.think_every = small(text, base, u32::MAX)?.max(1),
            "rate" => self.rate = per_direction(text, |part| int(part, base))?,
            "rate_iops" => self.rate_iops = per_direction(text, |part| int(part, base))?,
            "rate_process" => {
                self.poisson = match text {
                    "linear" => false,
                    "poisson" => true,
                    _ => return Err(format!("'{text}' is neither linear nor poisson")),
                }
            }
            "random_distribution" => return self.take_distribution(text),
            "percentage_random" => {
                self.random_percent = per_direction(text, |part| {
                    Ok(small(part.trim_end_matches('%'), base, 100)? as u8)
                })?;
            }
            "norandommap" => self.no_random_map = switch(value)?,
            "randseed" => self.seed = Some(int(text, base)?),
            "randrepeat" => self.has_fresh_seed = !switch(value)?,
            // A test walks through the list of options that are done.
            _ => return Err("this option is listed as done and is not".into()),
        }
        Ok(Taken::Done)
    }

    fn take_rw(&mut self, text: &str, base: KbBase) -> Result<Taken, String> {
        let (kind, modifier) = match text.split_once(':') {
            Some((kind, modifier)) => (kind.trim(), Some(modifier)),
            None => (text, None),
        };
        let (reads, writes, is_random) = match kind {
            "read" => (true, false, false),
            "write" => (false, true, false),
            "rw" | "readwrite" => (true, true, false),
            "randread" => (true, false, true),
            "randwrite" => (false, true, true),
            "randrw" => (true, true, true),
            "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
                let what = "would discard blocks, which rubus never does in a measurement";
                return Ok(Taken::CannotRun(what.into()));
            }
            _ => {
                return Err(format!(
                    "'{kind}' is none of read, write, randread, randwrite, rw, randrw"
                ));
            }
        };
        (self.reads, self.writes, self.is_random) = (reads, writes, is_random);
        (self.stride_bytes, self.run_length) = (0, 1);
        match modifier {
            None => {}
            Some(count) if is_random => self.run_length = small(count, base, u32::MAX)?.max(1),
            Some(stride) => {
                let stride = value::signed(stride, base)?;
                self.stride_bytes =
                    i64::try_from(stride).map_err(|_| format!("'{stride}' does not fit"))?;
            }
        }
        Ok(Taken::Done)
    }

    fn take_engine(&mut self, text: &str) -> Result<Taken, String> {
        let known = |submission| (submission, Taken::Done);
        let (submission, taken) = match text {
            "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "mmap" => {
                known(Submission::Synchronous)
            }
            "libaio" => known(Submission::WhenDirect),
            "io_uring" => known(Submission::Asynchronous),
            "posixaio" | "solarisaio" | "windowsaio" => {
                let how = "io_uring or threads keep the queue full instead";
                (Submission::Asynchronous, Taken::Otherwise(how.into()))
            }
            "splice" => {
                let what = "would move pages with splice";
                (Submission::Synchronous, Taken::NotDone(what.into()))
            }
            "" => return Err("the engine has no name".into()),
            _ => {
                return Ok(Taken::CannotRun(format!(
                    "would use fio's engine '{text}', which is not here"
                )));
            }
        };
        self.engine = text.into();
        self.submission = submission;
        Ok(taken)
    }

    fn take_verify(&mut self, text: &str) -> Result<Taken, String> {
        self.verify = match text {
            "0" | "none" | "null" => None,
            "xxhash" => Some(Verify::Xxhash),
            "pattern" | "pattern_hdr" => {
                return Ok(Taken::NotDone("would write and check a pattern".into()));
            }
            _ => Some(Verify::Crc32c),
        };
        match text {
            "0" | "none" | "null" | "xxhash" | "crc32c" | "crc32c-intel" => Ok(Taken::Done),
            "crc7" | "crc16" | "crc32" | "crc64" | "md5" | "meta" | "sha1" | "sha256"
            | "sha512" | "sha3-224" | "sha3-256" | "sha3-384" | "sha3-512" => {
                Ok(Taken::Otherwise(format!("contents are checked with crc32c instead of {text}")))
            }
            _ => Err(format!("'{text}' is no checksum of fio")),
        }
    }

    fn take_file_order(&mut self, text: &str, base: KbBase) -> Result<Taken, String> {
        let (kind, count) = match text.split_once(':') {
            Some((kind, count)) => (kind, Some(count)),
            None => (text, None),
        };
        self.file_order = match kind {
            "roundrobin" => FileOrder::RoundRobin,
            "random" => FileOrder::Random,
            "sequential" => FileOrder::Sequential,
            "zipf" | "pareto" | "normal" | "gauss" => {
                let what = format!("would choose files by a {kind} distribution");
                return Ok(Taken::NotDone(what));
            }
            _ => {
                return Err(format!("'{text}' is none of roundrobin, random, sequential"));
            }
        };
        self.operations_per_file = match count {
            Some(count) => small(count, base, u32::MAX)?.max(1),
            None => 1,
        };
        Ok(Taken::Done)
    }

    fn take_file_size(&mut self, text: &str, base: KbBase) -> Result<Taken, String> {
        let (low, high) = value::range(text, base)?;
        if low != high {
            let what = "would give files random sizes from a range";
            return Ok(Taken::NotDone(what.into()));
        }
        self.file_size = Some(low).filter(|&bytes| bytes > 0);
        Ok(Taken::Done)
    }

    fn take_fallocate(&mut self, text: &str) -> Result<Taken, String> {
        self.reserve = match text {
            "none" | "0" | "truncate" => false,
            "native" | "posix" | "1" | "keep" => true,
            _ => return Err(format!("'{text}' is none of none, native, posix, keep")),
        };
        match text {
            "keep" => Ok(Taken::Otherwise(
                "the space is reserved and the file is made as long as it will be".into(),
            )),
            _ => Ok(Taken::Done),
        }
    }

    fn take_distribution(&mut self, text: &str) -> Result<Taken, String> {
        let (kind, argument) = match text.split_once(':') {
            Some((kind, argument)) => (kind, argument),
            None => (text, ""),
        };
        let parameter = |usual: f64| match argument {
            "" => Ok(usual),
            text => value::float(text),
        };
        let centred = argument.contains(':') && matches!(kind, "zipf" | "pareto" | "normal");
        if centred || matches!(kind, "zoned_abs" | "sequence") {
            let what = match kind {
                "zoned_abs" => "would place operations in zones given in bytes",
                "sequence" => "would repeat a sequence of offsets",
                _ => "would move the centre of the distribution",
            };
            return Ok(Taken::NotDone(what.into()));
        }
        self.zones = Vec::new();
        self.distribution = match kind {
            "random" => Distribution::Uniform,
            "zipf" => match parameter(1.1)? {
                theta if theta > 0.0 && theta != 1.0 => Distribution::Zipf(theta),
                theta => return Err(format!("zipf:{theta} must be above 0 and not 1")),
            },
            "pareto" => match parameter(0.2)? {
                h if h > 0.0 && h < 1.0 => Distribution::Pareto(h),
                h => return Err(format!("pareto:{h} must be between 0 and 1")),
            },
            "normal" | "gauss" => match parameter(0.0)? {
                deviation if deviation > 0.0 && deviation <= 100.0 => {
                    Distribution::Normal(deviation)
                }
                deviation => return Err(format!("normal:{deviation} must be from 0 to 100")),
            },
            "zoned" => {
                let all = per_direction(argument, zones)?;
                let [read, write] = all;
                if read.is_some() && write.is_some() && read != write && self.reads && self.writes {
                    let what = "would give reads and writes different zones";
                    return Ok(Taken::NotDone(what.into()));
                }
                self.zones = read.or(write).unwrap_or_default();
                Distribution::Uniform
            }
            _ => {
                return Err(format!("'{kind}' is none of random, zipf, pareto, normal, zoned"));
            }
        };
        Ok(Taken::Done)
    }
}

fn exit_what(text: &str) -> Result<Taken, String> {
    match text {
        "group" | "stonewall" => Ok(Taken::Done),
        "all" => Ok(Taken::NotDone("would also end the stages that come later".into())),
        _ => Err(format!("'{text}' is none of group, stonewall, all")),
    }
}

fn some_text(text: &str) -> Result<Option<String>, String> {
    match text {
        "" => Err("nothing follows the equals sign".into()),
        text => Ok(Some(text.to_string())),
    }
}

fn start_delay(text: &str) -> Result<u64, String> {
    if text.contains('-') {
        return Err(format!("'{text}' is a range of times, which is not done; give one time"));
    }
    time_us(text, 1_000_000)
}

fn flush(text: &str, base: KbBase, metadata_too: bool) -> Result<Option<FlushEvery>, String> {
    let writes = small(text, base, u32::MAX)?;
    Ok((writes > 0).then_some(FlushEvery { writes, metadata_too }))
}

/// Ranges of sizes for reads and for writes, which may also be separated by a slash.
pub(super) fn ranges(text: &str, base: KbBase) -> Result<[Option<(u32, u32)>; 2], String> {
    per_direction(&text.replace('/', ","), |part| {
        let (low, high) = value::range(part, base)?;
        let most = 1 << 30;
        match (u32::try_from(low), u32::try_from(high)) {
            (Ok(low), Ok(high)) if low > 0 && high <= most => Ok((low, high)),
            _ => Err(format!("'{part}' is no range of sizes from 1 byte to 1g")),
        }
    })
}

/// Zones such as `50/5:30/15:20/80`: shares of the operations and of the region in percent. One
/// that is left out gets the rest.
fn zones(text: &str) -> Result<Vec<Zone>, String> {
    let mut zones = Vec::new();
    let (mut operations_left, mut region_left) = (100.0, 100.0);
    for part in text.split(':') {
        let (operations, region) = part
            .split_once('/')
            .ok_or_else(|| format!("'{part}' is no zone; write it as ACCESS/SIZE in percent"))?;
        let share = |text: &str, left: f64| match text.trim() {
            "" => Ok(left),
            text => value::float(text),
        };
        let zone = Zone {
            operations_percent: share(operations, operations_left)?,
            region_percent: share(region, region_left)?,
        };
        operations_left -= zone.operations_percent;
        region_left -= zone.region_percent;
        zones.push(zone);
    }
    let is_share = |zone: &Zone| zone.operations_percent >= 0.0 && zone.region_percent > 0.0;
    let fit = operations_left.abs() < 0.01 && region_left > -0.01 && zones.iter().all(is_share);
    if fit {
        if region_left >= 0.01 {
            // What no zone covers is never visited.
            zones.push(Zone { operations_percent: 0.0, region_percent: region_left });
        }
        Ok(zones)
    } else {
        Err(format!("the zones of '{text}' do not add up to 100 %"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_file::options::{self, Support};

    fn taken(name: &str, value: &str) -> (Settings, Result<Taken, String>) {
        let mut settings = Settings::default();
        let answer = settings.take(name, Some(value), KbBase::default());
        (settings, answer)
    }

    #[test]
    fn every_option_that_is_listed_as_done_is_known() {
        for (_, option) in options::all() {
            if matches!(option.support, Support::Done(_)) {
                let (_, answer) = taken(option.name, "1");
                let text = answer.err().unwrap_or_default();
                assert!(!text.contains("listed as done"), "{}", option.name);
            }
        }
    }

    #[test]
    fn rw_has_offsets_and_counts() {
        let (settings, _) = taken("rw", "read:-8k");
        assert_eq!((settings.stride_bytes, settings.reads), (-8192, true));
        let (settings, _) = taken("rw", "randwrite:8");
        assert_eq!((settings.run_length, settings.is_random), (8, true));
        assert!(matches!(taken("rw", "randtrim").1, Ok(Taken::CannotRun(_))));
        assert!(taken("rw", "raed").1.is_err());
    }

    #[test]
    fn zones_get_the_rest() {
        let (settings, _) = taken("random_distribution", "zoned:50/5:30/15:20/");
        let shares: Vec<f64> = settings.zones.iter().map(|z| z.region_percent).collect();
        assert_eq!(shares, [5.0, 15.0, 80.0]);
        assert!(taken("random_distribution", "zoned:50/5").1.is_err());
        assert!(taken("random_distribution", "zipf:1").1.is_err());
        assert_eq!(
            taken("random_distribution", "zipf:1.2").0.distribution,
            Distribution::Zipf(1.2)
        );
    }

    #[test]
    fn engines_are_mapped_or_named() {
        let (settings, answer) = taken("ioengine", "libaio");
        assert_eq!((settings.submission, answer), (Submission::WhenDirect, Ok(Taken::Done)));
        assert_eq!(taken("ioengine", "mmap").1, Ok(Taken::Done));
        assert!(matches!(taken("ioengine", "splice").1, Ok(Taken::NotDone(_))));
        assert!(matches!(taken("ioengine", "rbd").1, Ok(Taken::CannotRun(_))));
    }
}
