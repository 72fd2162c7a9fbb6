//! Job files by chance, from the options that Rubus does as fio does them.

use std::collections::BTreeSet;
use std::fmt::Write;

use rubus_stats::Rng;

/// Length of the files that are there before.
pub const FILE_BYTES: u64 = 1 << 20;
/// Names of these files.
pub const FILES: [&str; 2] = ["f1", "f2"];

/// A job file and what may be asked of it.
#[derive(Debug)]
pub struct Case {
    pub text: String,
    /// A file that it includes, beside it.
    pub included: Option<String>,
    /// Options on the command line.
    pub given: Vec<String>,
    /// Both programs read it from their standard input.
    pub is_piped: bool,
    pub sections: Vec<Section>,
    /// Every option that it uses.
    pub options: BTreeSet<&'static str>,
}

/// The name of [`Case::included`].
pub const INCLUDED: &str = "part.fio";

/// What the result of one section has to agree in.
#[derive(Debug)]
pub struct Section {
    pub name: String,
    /// Operations have one size.
    pub is_even: bool,
    pub longest: u64,
    pub reads: bool,
    pub writes: bool,
    /// Where operations go does not depend on chance.
    pub is_determined: bool,
    /// System calls show where they go in both programs.
    pub is_traceable: bool,
    /// Reads and writes have different sizes.
    pub has_two_sizes: bool,
    /// How much it does depends on chance: only the kinds of operations are the same.
    pub is_loose: bool,
    /// Rates say how many reads and writes there are, by how fast they are done.
    pub has_rate: bool,
    pub is_timed: bool,
    pub copies: u64,
    /// Its copies have one result.
    pub is_reported_together: bool,
    /// Blocks begin at less than their length, so that one more may fit.
    pub has_rest_of_align: bool,
    /// A block may be written several times.
    may_write_twice: bool,
    /// It ends by the number of its operations, and how many bytes that are depends on their sizes.
    pub ends_by_operations: bool,
    /// It is read back and checked, and fio reads of blocks that were written several times only the last.
    pub reads_back_some: bool,
    /// Its operations take turns among several files.
    is_in_turns: bool,
    /// A flush follows some writes.
    flushes: bool,
    /// How many operations may be in flight.
    depth: u64,
}

impl Section {
    /// How many operations fewer fio may do: a flush in flight counts as one of those that end the job (exceeds_number_ios of
    /// its backend.c), and whether one is in flight then is a matter of time.
    pub fn counted_flushes(&self) -> u64 {
        let counts = self.flushes && self.ends_by_operations;
        if counts { (self.depth - 1) * self.copies } else { 0 }
    }
}

struct Writer<'a> {
    random: &'a mut Rng,
    text: String,
    options: BTreeSet<&'static str>,
    /// A `k` is 1000, so that blocks are no whole pages.
    has_decimal_units: bool,
    /// It may draw what numbered cases up to [`LAST_OF_FIRST`] never do.
    is_later: bool,
}

impl Writer<'_> {
    fn set(&mut self, option: &'static str, value: impl std::fmt::Display) {
        self.options.insert(option);
        writeln!(self.text, "{option}={value}").expect("a text grows");
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len() as u64) as usize]
    }
}

/// Up to this number, cases are what they were before there was more to draw.
pub const LAST_OF_FIRST: u64 = 2060;

/// The case of that number: always the same.
pub fn case(number: u64) -> Case {
    let mut random = Rng::stream(0x0f10, number);
    let mut w = Writer {
        random: &mut random,
        text: String::new(),
        options: BTreeSet::new(),
        has_decimal_units: false,
        is_later: number > LAST_OF_FIRST,
    };
    let count = 1 + w.random.below(3);
    let mut given = Vec::new();
    if w.chance(10) {
        let option = w.one(&["--bs=8k", "--size=256k", "--runtime=60"]);
        given.push(option.to_string());
    }
    if w.chance(30) {
        global(&mut w);
    }
    // One that ends ends the others: of one copy at a time there are none.
    let has_exitall = w.chance(5);
    let mut included = None;
    let mut sections: Vec<Section> = Vec::new();
    for index in 0..count {
        let mut name = format!("job{index}");
        writeln!(w.text, "[{name}]").expect("a text grows");
        let is_renamed = w.chance(8);
        if is_renamed {
            name = format!("named{index}");
            w.set("name", &name);
        }
        let mut is_in_group_of_another = false;
        // Jobs beside each other would share what is observed.
        match sections.last() {
            Some(before) if !has_exitall && w.chance(25) && !before.is_reported_together => {
                w.set("wait_for", &before.name);
                is_in_group_of_another = true;
            }
            Some(_) => w.set("stonewall", 1),
            None => {}
        }
        if included.is_none() && w.chance(6) {
            let option = w.one(&["bs=16k", "end_fsync=1", "iodepth=4"]);
            included = Some(format!("; of several jobs\n{option}\n"));
            writeln!(w.text, "include {INCLUDED}").expect("a text grows");
        }
        if has_exitall && index == 0 {
            w.set("exitall", 1);
            let what = w.one(&["group", "stonewall"]);
            w.set("exit_what", what);
        }
        // fio calls further copies after their section.
        let may_have_copies = !has_exitall && !is_renamed;
        sections.push(section(&mut w, name, may_have_copies, is_in_group_of_another));
    }
    let is_piped = included.is_none() && w.chance(10);
    Case { text: w.text, included, given, is_piped, sections, options: w.options }
}

fn global(w: &mut Writer<'_>) {
    w.text.push_str("[global]\n");
    if w.chance(30) {
        let base = w.one(&[1024, 1000]);
        w.set("kb_base", base);
        w.has_decimal_units = base == 1000;
    }
    if w.chance(50) {
        w.set("bs", "8k");
    }
    if w.chance(30) {
        w.set("group_reporting", 0);
    }
}

fn section(
    w: &mut Writer<'_>,
    name: String,
    may_have_copies: bool,
    is_in_group_of_another: bool,
) -> Section {
    let kinds = ["read", "write", "randread", "randwrite", "rw", "randrw"];
    let kind = w.one(&kinds);
    let (reads, writes) = match kind {
        "read" | "randread" => (true, false),
        "write" | "randwrite" => (false, true),
        _ => (true, true),
    };
    let is_random = kind.starts_with("rand");
    let mut section = Section {
        name,
        is_even: true,
        longest: 4096,
        reads,
        writes,
        is_determined: true,
        is_traceable: true,
        has_two_sizes: false,
        is_loose: false,
        has_rate: false,
        is_timed: false,
        copies: 1,
        is_reported_together: false,
        has_rest_of_align: false,
        ends_by_operations: false,
        reads_back_some: false,
        is_in_turns: false,
        flushes: false,
        depth: 1,
        may_write_twice: false,
    };
    let is_mix = reads && writes;
    let unit = sizes(w, &mut section);
    let has_modifier = w.chance(15) && !is_mix;
    if has_modifier {
        let modifier = match (is_random, section.longest) {
            (true, _) => w.one(&["2", "8"]),
            (false, ..=8192) => w.one(&["4k", "16k", "64k", "-8k"]),
            // Backwards by less than a block, fio goes ahead.
            (false, _) => w.one(&["4k", "16k", "64k"]),
        };
        w.set("rw", format!("{kind}:{modifier}"));
        section.is_determined &= !is_random;
    } else {
        w.set("rw", kind);
    }
    // fio's job ends where operations that follow one another come to the end of the file, and with
    // different sizes their number depends on chance.
    section.is_loose |= has_modifier && (is_random || !section.is_even);
    // fio's map of visited blocks has the smaller of two sizes, and operations overlap.
    section.is_loose |= is_random && section.has_two_sizes;
    let engine = engine(w, &mut section);
    let is_named = place(w, &mut section, engine, may_have_copies, is_in_group_of_another);
    section.is_timed = section.is_even && w.chance(3);
    if section.is_timed {
        timed(w, &mut section);
    } else {
        amount(w, &mut section, is_random, has_modifier, is_named, unit);
    }
    if is_random {
        places(w, &mut section);
    }
    if is_mix {
        section.is_determined = false;
        if w.chance(50) {
            let percent = w.one(&[10, 50, 80]);
            let option = w.one(&["rwmixread", "rwmixwrite"]);
            w.set(option, percent);
        }
    }
    if writes {
        durability(w, &mut section, engine);
        content(w);
    }
    // fio's copies find what others of them have written.
    let is_checkable = section.is_even && !section.is_loose && !has_modifier && section.copies == 1;
    if writes && !reads && is_checkable && w.chance(8) {
        checks(w, &mut section);
    }
    if !section.is_timed {
        pace(w, &mut section);
    }
    section
}

/// Sizes of operations; all are multiples of what is returned.
fn sizes(w: &mut Writer<'_>, section: &mut Section) -> u64 {
    match w.random.below(10) {
        0 => {
            w.set("bsrange", "4k-16k");
            section.longest = 16384;
            section.is_even = false;
            if w.chance(20) {
                w.set("bs_unaligned", 0);
            }
        }
        1 => {
            let split = if w.is_later {
                w.one(&["4k/60:8k/40", "4k/30:8k/20", "8k/70:4k/5", "4k/10:8k/", "4k/1:8k/1"])
            } else {
                "4k/60:8k/40"
            };
            w.set("bssplit", split);
            section.longest = 8192;
            section.is_even = false;
        }
        2 => {
            w.set("bs", "16k,8k");
            section.longest = 16384;
            // In a mix the sizes of the two are not alike.
            section.is_even = !(section.reads && section.writes);
            section.has_two_sizes = true;
        }
        _ => {
            let bs = if w.is_later && w.chance(40) {
                w.one(&["4ki", "8Ki", "64ki", "4kib", "16KiB"])
            } else {
                w.one(&["4k", "8k", "4096", "16k", "64k"])
            };
            w.set("bs", bs);
            // Where a `k` is 1024, a `kib` is 1000.
            w.has_decimal_units |= bs.ends_with(['b', 'B']);
            section.longest = match bs.trim_end_matches(char::is_alphabetic) {
                "8" => 8192,
                "16" => 16384,
                "64" => 65536,
                _ => 4096,
            };
        }
    }
    section.is_determined &= section.is_even;
    4096
}

fn engine(w: &mut Writer<'_>, section: &mut Section) -> &'static str {
    let engine =
        w.one(&["psync", "psync", "psync", "libaio", "io_uring", "posixaio", "mmap", "sync"]);
    w.set("ioengine", engine);
    section.is_traceable = matches!(engine, "psync" | "libaio" | "posixaio");
    if engine != "mmap" && w.chance(40) {
        if w.chance(70) {
            w.set("direct", 1);
        } else {
            w.set("buffered", 0);
        }
    } else if w.chance(20) {
        w.set("direct", 0);
    }
    if !matches!(engine, "psync" | "mmap" | "sync") {
        let depth = w.one(&[1, 2, 8]);
        w.set("iodepth", depth);
        section.depth = depth;
    }
    if w.chance(10) {
        w.set("invalidate", 1);
    }
    engine
}

/// Files; whether they are there before.
fn place(
    w: &mut Writer<'_>,
    section: &mut Section,
    engine: &str,
    may_have_copies: bool,
    is_in_group_of_another: bool,
) -> bool {
    let is_named = (section.reads && section.writes) || w.chance(70);
    if is_named {
        let names = w.one(&["f1", "f2", "f1:f2"]);
        if names == "f1:f2" && w.chance(30) {
            // Each line adds files.
            w.set("filename", "f1");
            w.set("filename", "f2");
        } else {
            w.set("filename", names);
        }
        section.is_in_turns = names == "f1:f2";
        if names == "f1:f2" && w.chance(60) {
            let order = w.one(&["roundrobin", "sequential", "random"]);
            w.set("file_service_type", order);
            section.is_determined &= order != "random";
            section.is_in_turns = order == "roundrobin";
        }
    } else {
        if w.chance(20) {
            w.set("directory", ".");
        }
        if w.chance(15) {
            w.set("filename_format", "made.$jobname.$jobnum.$filenum");
        }
        if w.chance(20) {
            let parts = w.one(&[2, 4]);
            w.set("nrfiles", parts);
            // Parts of one file here, files there.
            section.is_traceable = false;
        }
        if w.chance(20) {
            let how = w.one(&["none", "native"]);
            w.set("fallocate", how);
        }
        // With a block that no part holds, fio does none or one.
        if section.writes && w.chance(10) && engine != "mmap" && section.longest < 65536 {
            w.set("overwrite", 1);
            section.is_traceable = false;
        }
    }
    if may_have_copies && w.chance(25) {
        section.copies = w.one(&[2, 3]);
        w.set("numjobs", section.copies);
        // fio's result of a group of which only some are reported together has entries without a name.
        if w.chance(50) && !is_in_group_of_another {
            w.set("group_reporting", 1);
            section.is_reported_together = true;
        }
    }
    is_named
}

fn amount(
    w: &mut Writer<'_>,
    section: &mut Section,
    is_random: bool,
    has_modifier: bool,
    is_named: bool,
    unit: u64,
) {
    let size = if w.is_later && w.chance(20) {
        w.one(&["256ki", "512KiB", "128kib"])
    } else {
        w.one(&["256k", "512k", "100k", "262144", "128k"])
    };
    match w.random.below(8) {
        0 if is_named => w.set("size", w_percent(size)),
        1 => {
            w.set("filesize", "512k");
            if w.chance(50) {
                // An amount within the file.
                section.is_determined &= !is_random;
                let more = w.one(&["256k", "512k", "1m"]);
                w.set("size", more);
            }
        }
        _ => w.set("size", size),
    }
    let has_io_size = w.chance(12);
    if has_io_size {
        section.may_write_twice = true;
        let amount = w.one(&["64k", "128k", "50%", "1m"]);
        w.set("io_size", amount);
        section.is_determined &= !is_random;
    }
    if w.chance(15) && is_named && !has_modifier {
        let offset = w.one(&["64k", "128k", "25%"]);
        w.set("offset", offset);
        if w.chance(40) && section.copies > 1 {
            w.set("offset_increment", "64k");
        }
    }
    if w.chance(10) {
        let count = w.one(&[1, 7, 16]);
        w.set("number_ios", count);
        section.ends_by_operations = true;
        section.is_determined &= !is_random;
    }
    if w.chance(8) && !has_modifier {
        w.set("loops", 2);
        section.may_write_twice = true;
        // A round of a mix ends with the first of its two kinds that comes to the end.
        section.is_loose |= section.reads && section.writes && has_io_size;
    }
    if is_random && w.chance(10) && section.is_even {
        w.set("ba", unit);
        section.is_determined = false;
        section.may_write_twice = true;
        // Blocks that begin anywhere: one more may fit, by their sequence.
        section.has_rest_of_align = section.longest > unit;
    }
}

/// A second of operations at a rate.
fn timed(w: &mut Writer<'_>, section: &mut Section) {
    w.set("size", "512k");
    w.set("time_based", 1);
    w.set("runtime", 1);
    w.set("rate_iops", 200);
    if w.chance(40) {
        w.set("ramp_time", "300ms");
    }
    // How much is done depends on how fast the machine is.
    section.is_determined = false;
    section.is_loose = true;
}

/// What is written is read back and checked.
fn checks(w: &mut Writer<'_>, section: &mut Section) {
    let sum = w.one(&["crc32c", "xxhash", "md5", "crc32"]);
    w.set("verify", sum);
    if w.chance(30) {
        w.set("do_verify", 0);
    }
    section.is_traceable = false;
    section.reads_back_some = section.may_write_twice;
}

fn w_percent(size: &str) -> &'static str {
    match size {
        "256k" | "262144" => "25%",
        "512k" => "50%",
        _ => "100%",
    }
}

/// Where random operations go.
fn places(w: &mut Writer<'_>, section: &mut Section) {
    match w.random.below(8) {
        0 => {
            w.set("norandommap", 1);
            section.is_determined = false;
            section.may_write_twice = true;
        }
        // Where the region holds no block, fio does some, beyond its end.
        1 if section.longest < 65536 => {
            let how = w.one(&["zipf:1.2", "pareto:0.3", "normal:20", "zoned:60/10:30/20:10/70"]);
            w.set("random_distribution", how);
            section.is_determined = false;
            section.may_write_twice = true;
            // fio's job ends at an operation that falls on a rest that holds none.
            section.is_loose = true;
        }
        2 => {
            w.set("percentage_random", 50);
            section.is_determined = false;
            section.is_loose = true;
        }
        3 => w.set("randseed", 7),
        4 => w.set("randrepeat", 0),
        _ => {}
    }
}

fn durability(w: &mut Writer<'_>, section: &mut Section, engine: &str) {
    let kind = w.random.below(8);
    // fio's mmap flushes whole pages only.
    let can_flush = engine != "mmap" || !w.has_decimal_units;
    // fio's flushes take their turns among the files like writes.
    section.flushes = kind <= 1 && can_flush;
    section.is_determined &= !(section.flushes && section.is_in_turns);
    section.is_determined &= section.counted_flushes() == 0;
    match kind {
        0 if can_flush => w.set("fsync", 4),
        1 if can_flush => w.set("fdatasync", 1),
        2 if engine != "mmap" => w.set("sync", "dsync"),
        3 => w.set("end_fsync", 1),
        _ => {}
    }
}

fn content(w: &mut Writer<'_>) {
    match w.random.below(8) {
        0 => w.set("zero_buffers", 1),
        1 => w.set("buffer_compress_percentage", 50),
        2 => w.set("buffer_pattern", "0xdeadbeef"),
        _ => {}
    }
}

fn pace(w: &mut Writer<'_>, section: &mut Section) {
    let pace = w.random.below(16);
    section.has_rate = matches!(pace, 0 | 1 | 3);
    match pace {
        0 => w.set("rate", "100m"),
        1 => w.set("rate_iops", "20000,10000"),
        2 => {
            w.set("thinktime", 100);
            if w.chance(50) {
                w.set("thinktime_blocks", 4);
            }
            if w.chance(30) {
                w.set("thinktime_spin", 50);
            }
        }
        3 => {
            w.set("rate_iops", 20000);
            // fio divides by the rate of flushes, zero.
            if !section.flushes {
                w.set("rate_process", "poisson");
            }
        }
        4 => w.set("startdelay", "10ms"),
        5 => w.set("runtime", 60),
        6 => w.set("description", "by chance"),
        7 => w.set("new_group", 1),
        _ => {}
    }
}
