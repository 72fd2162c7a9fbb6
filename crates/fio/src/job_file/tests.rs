//! Whole job files, from their text to the suite.

use proptest::prelude::*;

use super::*;
use rubus_vocabulary::spec::{
    Content, Direction, Durability, Ends, FileStart, Job, Pattern, Shape, Sizes,
};

fn surroundings() -> Surroundings<'static> {
    Surroundings {
        variables: &|name| (name == "BS").then(|| "4k".to_string()),
        keywords: [("pagesize".to_string(), "4096".to_string())].into(),
        include: &|_, _| Err("there are no files in a test".into()),
        given: &[],
    }
}

fn plan(text: &str) -> Plan {
    Plan::read("x.fio", text, &surroundings(), false).unwrap()
}

fn problems(text: &str) -> String {
    let error = Plan::read("x.fio", text, &surroundings(), false).unwrap_err();
    error.to_string()
}

/// The suite on files of our own, or on existing ones of that size.
fn lowered(text: &str, size_bytes: Option<u64>) -> Lowered {
    let plan = plan(text);
    plan.lower(&facts(&plan, size_bytes)).unwrap()
}

fn facts(plan: &Plan, size_bytes: Option<u64>) -> Vec<FileFacts> {
    let numbers = 0..plan.files.len() as u32;
    numbers.map(|number| FileFacts { number, size_bytes }).collect()
}

fn shape(job: &Job) -> &Shape {
    job.shape.as_deref().unwrap()
}

const MIB: u64 = 1 << 20;

#[test]
fn fios_defaults_hold() {
    let lowered = lowered("[a]\nsize=8m\n", None);
    let job = &lowered.suite.jobs[0];
    assert_eq!((job.direction, job.pattern), (Direction::Read, Pattern::Sequential));
    assert_eq!((job.block_bytes, job.queue_depth, job.through_cache), (4096, 1, true));
    assert_eq!(job.stop.max_bytes, 8 * MIB);
    assert_eq!(shape(job).ramp_s, Some(0.0));
    assert!(!shape(job).time_based);
    let need = &lowered.needs[0];
    assert_eq!((need.name.as_str(), need.region_bytes), ("a.0.0", 8 * MIB));
    assert_eq!(need.start, FileStart::Filled);
    assert_eq!(lowered.max_written_bytes, Some(0));
    assert_eq!(lowered.most_s, None);
}

#[test]
fn sections_run_together_and_stonewalls_divide_them() {
    let text = "[global]\nsize=1m\n[a]\n[b]\nrw=write\n[c]\nstonewall\nnumjobs=2\n[d]\nwait_for=c\nnew_group\n[e]\n";
    let lowered = lowered(text, None);
    let names: Vec<Vec<&str>> = lowered
        .suite
        .jobs
        .iter()
        .map(|job| std::iter::once(job).chain(&job.beside).map(|j| j.name.as_str()).collect())
        .collect();
    // `e` has no wall before it, so it begins with `c` although `d` waits.
    assert_eq!(names, [vec!["a", "b"], vec!["c", "c #2", "e"], vec!["d"]]);
    assert!(lowered.suite.jobs.iter().all(|job| job.ends == Ends::EachByItself));
    let groups: Vec<u32> = lowered.job_file.jobs.iter().map(|job| job.group).collect();
    assert_eq!(groups, [0, 0, 1, 1, 2, 2]);
    assert_eq!(lowered.needs.len(), 6);
    assert_eq!(lowered.needs[1].start, FileStart::Reserved);
}

#[test]
fn copies_are_one_job_when_they_are_reported_together() {
    let text = "[a]\nrw=randwrite\nnumjobs=4\ngroup_reporting\nsize=16m\nend_fsync=1\n";
    let lowered = lowered(text, None);
    let job = &lowered.suite.jobs[0];
    assert_eq!((shape(job).copies, shape(job).file_step, shape(job).file), (4, 1, Some(0)));
    assert_eq!(job.stop.max_bytes, 64 * MIB);
    assert_eq!(job.durability, Durability::AtEnd);
    assert_eq!(lowered.max_written_bytes, Some(64 * MIB));
    assert!(job.beside.is_empty());
}

#[test]
fn copies_on_a_named_file_share_it_at_their_offsets() {
    let text = "[a]\nfilename=/dev/x\nnumjobs=3\noffset_increment=10m\noffset=1m\nsize=5m\ngroup_reporting\n";
    let one = lowered(text, Some(64 * MIB));
    let job = &one.suite.jobs[0];
    assert_eq!((shape(job).file_step, shape(job).copy_offset_bytes), (0, 10 * MIB));
    assert_eq!((shape(job).offset_bytes, shape(job).span_bytes), (MIB, Some(5 * MIB)));
    assert_eq!(one.needs[0].region_bytes, 26 * MIB);
    let apart = lowered(&text.replace("group_reporting\n", ""), Some(64 * MIB));
    let offsets = |job: &Job| shape(job).offset_bytes;
    assert_eq!(offsets(&apart.suite.jobs[0]), MIB);
    assert_eq!(offsets(&apart.suite.jobs[0].beside[1]), 21 * MIB);
}

#[test]
fn later_copies_have_less_of_the_rest_of_a_file() {
    let text = "[a]\nfilename=/dev/x\nnumjobs=2\noffset_increment=10m\noffset=1m\nfilesize=31m\n";
    for text in [text.to_string(), format!("{text}group_reporting\n")] {
        let lowered = lowered(&text, Some(64 * MIB));
        let first = &lowered.suite.jobs[0];
        let jobs = std::iter::once(first).chain(&first.beside);
        let regions = jobs.map(|job| {
            (shape(job).offset_bytes / MIB, shape(job).span_bytes, job.stop.max_bytes / MIB)
        });
        let regions: Vec<_> = regions.collect();
        assert_eq!(regions, [(1, Some(30 * MIB), 30), (11, Some(20 * MIB), 20)], "{text}");
        assert_eq!(lowered.needs[0].region_bytes, 31 * MIB);
    }
}

#[test]
fn a_region_without_a_size_is_the_file() {
    let text = "[a]\nfilename=/dev/x\noffset=25%\n";
    let lowered = lowered(text, Some(64 * MIB));
    assert_eq!(shape(&lowered.suite.jobs[0]).span_bytes, Some(48 * MIB));
    let plan = plan(text);
    let error = plan.lower(&facts(&plan, None)).unwrap_err();
    insta::assert_snapshot!(error, @"x.fio:1: [a] it says neither size= nor filesize=, and its file does not exist yet; add size=, or name a file or device that exists");
}

#[test]
fn every_filename_adds_a_file() {
    for text in ["[w]\nfilename=f1\nfilename=f2\n", "[global]\nfilename=f1\n[w]\nfilename=f2\n"] {
        let lowered = lowered(&format!("{text}rw=write\nsize=4m\n"), None);
        let names: Vec<&str> = lowered.needs.iter().map(|need| need.name.as_str()).collect();
        assert_eq!(names, ["f1", "f2"], "{text}");
        assert_eq!(shape(&lowered.suite.jobs[0]).span_bytes, Some(2 * MIB));
    }
}

/// What fio 3.33 moves, in KiB.
#[test]
fn sizes_mean_what_they_mean_in_fio() {
    let cases = [
        ("rw=read\nsize=50%\nfilesize=4m", None, 2048),
        ("rw=read\nfilesize=2m\nsize=4m", None, 2048),
        ("rw=read\nfilesize=1m\noffset=256k", None, 768),
        ("rw=read\nfilesize=1m\nsize=512k\noffset=256k", None, 512),
        ("rw=read:16k\nbs=16k\nsize=4m", None, 4096),
        ("rw=write:16k\nbs=8k\nsize=512k", None, 176),
        ("rw=write:4k\nbs=8k\nsize=500k", None, 336),
        ("rw=write:8k\nbs=16k\nsize=56k", None, 32),
        ("rw=write:16k\nbs=16k\nsize=512k\nio_size=256k", None, 256),
        ("rw=read\nbs=64k\nfilename=f\nsize=1m\nio_size=100k", Some(4), 128),
        ("rw=read\nbs=64k\nfilename=f\nsize=100%%\noffset=25%\nio_size=50%", Some(4), 1536),
        ("rw=randwrite\nbs=16k\nsize=100k\nnorandommap", None, 112),
        ("rw=read\nfilename=f:g\nfilesize=512k\nsize=256k\nio_size=50%", None, 256),
        ("rw=read\nfilename=f:g\nfilesize=512k\nsize=768k\nio_size=50%", None, 512),
        ("rw=read\nfilename=f:g\nfilesize=512k\nio_size=50%", None, 512),
        ("rw=read\nbs=96k\nfilename=f\nsize=25%", Some(1), 192),
        ("rw=read\nbs=96k\nfilename=f\nsize=90%\noffset=50%", Some(1), 384),
        ("rw=read\nbs=96k\nfilename=f\nsize=100%\noffset=50%", Some(1), 384),
        ("rw=read\nbs=96k\nfilename=f\nsize=25%\nio_size=1m", Some(1), 960),
        ("rw=read\nbs=96k\nfilename=f\nsize=25%\nloops=2", Some(1), 384),
        ("rw=randread\nbs=96k\nfilename=f\nsize=25%\nnorandommap", Some(1), 192),
    ];
    for (text, existing_mib, kib) in cases {
        let lowered = lowered(&format!("[a]\n{text}\n"), existing_mib.map(|mib: u64| mib * MIB));
        let moved = lowered.suite.jobs[0].stop.max_bytes;
        assert_eq!(moved, kib << 10, "{text}");
    }
}

#[test]
fn a_file_that_is_too_small_is_noted() {
    let lowered = lowered("[a]\nfilename=f\nsize=1g\n", Some(64 * MIB));
    assert_eq!(lowered.suite.jobs[0].stop.max_bytes, 64 * MIB);
    insta::assert_snapshot!(lowered.job_file.notes.join("\n"), @"x.fio:1: [a]: 1073741824 bytes were asked for, but the file or device holds only 67108864 there");
}

#[test]
fn what_is_written_before_is_not_filled() {
    let text = "[global]\nfilename=f\nsize=1m\n[w]\nrw=write\n[r]\nstonewall\nrw=read\n";
    assert_eq!(lowered(text, None).needs[0].start, FileStart::Reserved);
    let text = "[global]\nfilename=f\nsize=1m\nfallocate=none\n[w]\nrw=write\n[r]\nrw=read\n";
    assert_eq!(lowered(text, None).needs[0].start, FileStart::Filled);
    let text = "[w]\nrw=write\nsize=1m\nfallocate=none\n";
    assert_eq!(lowered(text, None).needs[0].start, FileStart::Hollow);
}

#[test]
fn a_mix_has_its_share_sizes_and_limits() {
    let text = "[a]\nrw=randrw\nrwmixwrite=30\nbs=4k,8k\nrate_iops=100,50\nrate=,1m\nsize=4m\ndirect=1\nioengine=libaio\niodepth=8\n";
    let lowered = lowered(text, None);
    let job = &lowered.suite.jobs[0];
    assert_eq!(shape(job).read_percent, Some(70));
    assert_eq!(shape(job).sizes, [None, Some(Sizes::Range(8192, 8192))]);
    assert_eq!(shape(job).limits[0].iops, Some(100.0));
    assert_eq!(shape(job).limits[1].bytes_per_second, Some(1_048_576.0));
    assert_eq!(shape(job).limits[0].bytes_per_second, None);
    insta::assert_snapshot!(lowered.job_file.notes.join("\n"), @"x.fio:1: [a]: latency counts from when an operation is issued, not from when its rate made it due; percentiles understate stalls, so read the stalls and the maximum");
    assert!(shape(job).visits_once);
    assert_eq!(job.queue_depth, 8);
}

#[test]
fn time_and_rounds() {
    let text = "[a]\nruntime=2m\ntime_based\nramp_time=5\nsize=1m\nstartdelay=3\n";
    let lowered_job = |text: &str| lowered(text, None).suite.jobs[0].clone();
    let job = lowered_job(text);
    assert_eq!((job.stop.max_seconds, job.stop.max_bytes), (120.0, u64::MAX));
    assert_eq!((job.stop.min_seconds, job.rest_before_s), (120.0, 3.0));
    assert_eq!((shape(&job).ramp_s, shape(&job).time_based), (Some(5.0), true));
    let job = lowered_job("[a]\nsize=1m\nloops=3\n");
    assert_eq!((job.stop.max_bytes, shape(&job).time_based), (3 * MIB, true));
    assert!(shape(&job).drops_cache, "as fio does before each loop");
    for without in ["direct=1", "ioengine=mmap"] {
        let job = lowered_job(&format!("[a]\nsize=1m\nloops=3\n{without}\n"));
        assert!(!shape(&job).drops_cache, "{without}");
    }
    let job = lowered_job("[a]\nsize=1m\nio_size=50%\nnumber_ios=10\n");
    assert_eq!((job.stop.max_bytes, shape(&job).time_based), (MIB / 2, false));
    assert_eq!(shape(&job).max_operations, Some(10));
    let job = lowered_job("[a]\nrw=write:12k\nsize=1m\n");
    // It comes to the end of its region with a stride, and begins again until all is moved.
    assert_eq!((job.stop.max_bytes, shape(&job).stride_bytes), (MIB, 12_288));
    let job = lowered_job("[a]\nrw=read:-8k\nsize=1m\n");
    assert_eq!(job.stop.max_bytes, MIB);
}

#[test]
fn a_job_without_random_operations_is_called_sequential() {
    let text =
        |direct| format!("[a]\nrw=randread\npercentage_random=0\nsize=1m\ndirect={direct}\n");
    let past_the_cache = lowered(&text(1), None);
    let job = &past_the_cache.suite.jobs[0];
    assert_eq!((job.pattern, shape(job).random_percent), (Pattern::Sequential, [Some(0); 2]));
    let cached = lowered(&text(0), None);
    assert_eq!(cached.suite.jobs[0].pattern, Pattern::Random, "nothing is read ahead");
    assert!(cached.job_file.notes[0].contains("reads none ahead"), "{:?}", cached.job_file.notes);
}

#[test]
fn rounds_and_amounts_are_fios() {
    let job = |text: &str| {
        let text = format!("[a]\nfilename=/dev/sda\nbs=4k\nsize=128k\n{text}\n");
        let lowered = lowered(&text, Some(MIB));
        lowered.suite.jobs[0].clone()
    };
    let kib = |text: &str| job(text).stop.max_bytes / 1024;
    // An amount counts for each round.
    assert_eq!([kib("io_size=64k"), kib("io_size=64k\nloops=3")], [64, 192]);
    // What is more than its round holds is moved once, in as many rounds as that takes.
    assert_eq!([kib("io_size=300k"), kib("io_size=300k\nloops=2")], [300, 384]);
    assert_eq!([kib("io_size=192k\nloops=3"), kib("io_size=1m\nloops=3")], [384, 1024]);
    // No round begins for less than a block.
    assert_eq!(kib("io_size=258k\nloops=2"), 256);
    let random = "rw=randread\nbs=16k\nsize=100k\n";
    let random = |text: &str| kib(&format!("{random}{text}")) / 16;
    assert_eq!([random("io_size=100k"), random("io_size=300k")], [6, 18]);
    let ahead = |text: &str| kib(&format!("bs=16k\nsize=100k\n{text}")) / 16;
    assert_eq!([ahead("io_size=300k"), ahead("io_size=256k\nloops=2")], [19, 21]);
    let strided = |text: &str| kib(&format!("rw=read:8k\n{text}")) / 4;
    assert_eq!([strided("io_size=64k\nloops=2"), strided("io_size=300k\nloops=2")], [22, 77]);
    // Where a block may come twice, no round ends before its amount (fio 3.33).
    let mapless = |text: &str| kib(&format!("size=1m\nloops=3\nio_size=3m\n{text}"));
    assert_eq!([mapless("rw=randread"), mapless("rw=randread\nnorandommap")], [3072, 9216]);
    assert_eq!(mapless("rw=randread\nrandom_distribution=zipf:1.2"), 9216);
    assert_eq!(mapless("rw=read\nnorandommap"), 3072);
    let backwards = "rw=read:-8k\nio_size=256k\nloops=2";
    assert_eq!(kib(backwards), 512);
    // So does a number of operations.
    assert_eq!(shape(&job("number_ios=5\nloops=3")).max_operations, Some(15));
    assert_eq!(shape(&job("number_ios=5")).max_operations, Some(5));
}

#[test]
fn contents() {
    let content = |option: &str| {
        let text = format!("[a]\nrw=write\nsize=1m\n{option}\n");
        lowered(&text, None).suite.jobs[0].content
    };
    assert_eq!(content("zero_buffers"), Some(Content::Zeros));
    assert_eq!(content("buffer_compress_percentage=30"), Some(Content::Compressible(70)));
    assert_eq!(content("refill_buffers"), None);
}

#[test]
fn lists_of_files_are_divided() {
    let text = "[a]\nfilename=/dev/x:/dev/y\\:z\nsize=2m\n";
    let lowered = lowered(text, Some(64 * MIB));
    let job = &lowered.suite.jobs[0];
    assert_eq!((shape(job).file, &shape(job).more_files[..]), (Some(0), &[1][..]));
    assert_eq!((shape(job).span_bytes, job.stop.max_bytes), (Some(MIB), 2 * MIB));
    assert_eq!(lowered.needs[1].name, "/dev/y:z");
    let text = "[a]\ndirectory=/x:/y\nnumjobs=3\nsize=1m\n";
    let directories: Vec<_> = plan(text).files.into_iter().filter_map(|f| f.directory).collect();
    assert_eq!(directories, ["/x", "/y", "/x"]);
}

#[test]
fn what_differs_is_noted_once() {
    let text = "[global]\nsize=1m\niodepth=16\nsync=1\nwrite_bw_log=x\nzonemode=none\n[a]\n[b]\nioengine=libaio\nverify=md5\n";
    let plan = plan(text);
    let notes: Vec<String> = plan.notes.iter().map(Note::to_string).collect();
    insta::assert_snapshot!(notes.join("\n"), @r"
    x.fio:4: sync=1: each write is followed by fdatasync, and both are one operation
    x.fio:5: write_bw_log=x: no log is written; the series is in the result
    x.fio:3: iodepth=16: the engine psync works one at a time, in fio as well
    x.fio:10: verify=md5: contents are checked with crc32c instead of md5
    x.fio:3: iodepth=16: libaio works one at a time through the page cache, in fio as well
    ");
}

#[test]
fn everything_unsupported_is_named_at_once() {
    let text = "[global]\nsize=1m\nioengine=splice\n[a]\ncpus_allowed=0\nrw=randtrim\niodepht=4\nbs=4x\n[b]\ninvalidate=0\nwait_for=z\n";
    insta::assert_snapshot!(problems(text), @r"
    x.fio:3: [global] ioengine=splice: not supported: it would move pages with splice; remove it, or add --ignore-unsupported to run without it
    x.fio:5: [a] cpus_allowed=0: not supported: it would bind the job to processors; remove it, or add --ignore-unsupported to run without it
    x.fio:6: [a] rw=randtrim: not supported: it would discard blocks, which rubus never does in a measurement; remove it, or add --ignore-unsupported to run without it
    x.fio:7: [a] iodepht=4: no option of fio that is known here; did you mean iodepth?
    x.fio:8: [a] bs=4x: invalid number '4x'; write it like 4096, 4k or 1g; correct the value
    x.fio:10: [b] invalidate=0: not supported: it would leave in the page cache what is there; remove it, or add --ignore-unsupported to run without it
    ");
    assert_eq!(
        problems("[b]\nsize=1m\nwait_for=z\n"),
        "x.fio:1: [b] wait_for: there is no job 'z' above this one; name a job that stands above"
    );
    assert_eq!(
        problems("# nothing\n"),
        "x.fio: there is no job in the file; begin one with [its name]"
    );
}

#[test]
fn what_is_ignored_on_request_is_listed() {
    let text = "[global]\nsize=1m\nioengine=splice\n[a]\nnew_in_fio_9=1\n[t]\nrw=trim\n";
    let plan = Plan::read("x.fio", text, &surroundings(), true).unwrap();
    let lowered = plan.lower(&facts(&plan, None)).unwrap();
    insta::assert_snapshot!(lowered.job_file.ignored.join("\n"), @r"
    x.fio:3: ioengine=splice: would move pages with splice
    x.fio:5: new_in_fio_9=1: no option of fio that is known here
    x.fio:7: rw=trim: [t] is left out: would discard blocks, which rubus never does in a measurement
    ");
    assert_eq!(lowered.suite.jobs.len(), 1);
    let error = Plan::read("x.fio", "[a]\nioengine=rbd\n", &surroundings(), true).unwrap_err();
    insta::assert_snapshot!(error, @"x.fio: no job of the file can be run here; [a] is left out: would use fio's engine 'rbd', which is not here");
}

/// What fio moves of an existing file of 1 MiB.
#[test]
fn a_stride_ends_with_a_region_that_is_a_part_of_its_file() {
    let moved = |text: &str| {
        let text = format!("[a]\nfilename=f\n{text}");
        lowered(&text, Some(MIB)).suite.jobs[0].stop.max_bytes
    };
    assert_eq!(moved("rw=read:16k\nbs=4k\nsize=256k\n"), 13 * 4096);
    assert_eq!(moved("rw=read:64k\nbs=16k\nsize=128k\n"), 2 * 16384);
    assert_eq!(moved("rw=read:64k\nbs=16k\nsize=1m\n"), MIB);
    assert_eq!(moved("rw=read:64k\nbs=16k\noffset=128k\nsize=256k\n"), 4 * 16384);
    // A share of io_size is one of filesize, else of the region.
    assert_eq!(moved("rw=read\nfilesize=512k\nsize=256k\nio_size=50%\n"), 256 << 10);
    assert_eq!(moved("rw=read\nsize=256k\nio_size=50%\n"), 128 << 10);
}

/// What fio moves of 100 KiB in blocks of 8 KiB.
#[test]
fn the_last_block_of_a_sequential_job_may_go_beyond_its_region() {
    let blocks = |text: &str, size_bytes: Option<u64>| {
        let text = format!("[a]\nfilename=f\nsize=100k\nbs=8k\n{text}");
        lowered(&text, size_bytes).suite.jobs[0].stop.max_bytes / 8192
    };
    let there = Some(MIB);
    assert_eq!([blocks("rw=write\n", there), blocks("rw=read\n", there)], [13, 13]);
    assert_eq!(
        [blocks("rw=write\nloops=2\n", there), blocks("rw=read\noffset=4k\n", there)],
        [25, 13]
    );
    assert_eq!(blocks("rw=randwrite\n", there), 12);
    // A file that ends there has no further block.
    assert_eq!(blocks("rw=read\n", Some(100 << 10)), 12);
    assert_eq!([blocks("rw=write\n", None), blocks("rw=read\n", None)], [12, 12]);
    assert_eq!(blocks("rw=write\nloops=2\n", None), 24);
}

/// What fio 3.33 does in 100 KiB: in a file of a megabyte, and in one of that size.
#[test]
fn strides_go_as_far_as_in_fio() {
    let cases = [
        (4, 4, 13, 13),
        (4, 16, 5, 25),
        (8, 4, 9, 8),
        (8, 16, 5, 4),
        (8, 64, 2, 13),
        (16, 4, 5, 7),
        (16, 16, 4, 3),
        (16, 64, 2, 7),
        (64, 4, 2, 1),
        (64, 16, 2, 1),
        (64, 64, 1, 2),
        (4, -8, 25, 25),
        (8, -8, 13, 13),
    ];
    for (block_kib, stride_kib, longer, own) in cases {
        let text = format!("[a]\nfilename=f\nsize=100k\nbs={block_kib}k\nrw=write:{stride_kib}k\n");
        let operations = |size_bytes: Option<u64>| {
            lowered(&text, size_bytes).suite.jobs[0].stop.max_bytes / (block_kib << 10)
        };
        assert_eq!((operations(Some(MIB)), operations(None)), (longer, own), "{text}");
    }
}

#[test]
fn a_byte_order_mark_is_no_text() {
    assert_eq!(lowered("\u{feff}[a]\nsize=1m\n", None).suite.jobs[0].stop.max_bytes, MIB);
}

#[test]
fn a_range_as_a_block_size_is_told_what_to_write() {
    let told = problems("[a]\nsize=1m\nbs=4k-64k\n");
    assert!(told.contains("a range is written as bsrange=4k-64k"), "{told}");
}

#[test]
fn a_stride_ends_in_each_of_several_files() {
    let text = "[a]\nrw=write:16k\nbs=4k\nsize=256k\nnrfiles=4\n";
    assert_eq!(lowered(text, None).suite.jobs[0].stop.max_bytes, 64 << 10);
}

#[test]
fn a_size_with_a_filesize_is_an_amount() {
    let text = "[a]\nfilename=f1:f2\nrw=randread\nfilesize=512k\nsize=256k\n";
    let lowered = lowered(text, Some(MIB));
    let job = &lowered.suite.jobs[0];
    assert_eq!((shape(job).span_bytes, job.stop.max_bytes), (Some(512 << 10), 256 << 10));
}

#[test]
fn one_job_that_ends_all_ends_all() {
    let text = "[global]\nsize=1m\n[a]\nnumjobs=3\ngroup_reporting\n[b]\nstonewall\nexitall\n";
    let jobs = lowered(text, None).suite.jobs;
    assert!(jobs.iter().all(|job| job.ends == Ends::WithAny));
    assert_eq!(jobs[0].beside.len(), 2, "each copy may end the others");
}

#[test]
fn mapped_memory_is_the_page_cache() {
    let text = "[global]\nioengine=mmap\nsize=1m\nrw=write\nstonewall\n[plain]\n[direct]\ndirect=1\n\
                [sync]\nsync=1\n[reads]\nrw=read\ndirect=1\n";
    let lowered = lowered(text, None);
    let jobs = &lowered.suite.jobs;
    assert!(jobs.iter().all(|job| job.through_cache && job.queue_depth == 1));
    assert!(jobs.iter().all(|job| job.shape.as_ref().is_some_and(|shape| shape.is_mapped)));
    let durabilities: Vec<Durability> = jobs.iter().map(|job| job.durability).collect();
    let (never, each) = (Durability::Never, Durability::EachInPlace);
    assert_eq!(durabilities, [never, each, never, never]);
    insta::assert_snapshot!(lowered.job_file.notes.join("\n"), @r"
    x.fio:8: direct=1: mapped memory is the page cache; each write is followed by msync, as in fio
    x.fio:10: sync=1: the kernel writes mapped memory back when it likes, in fio as well
    ");
}

#[test]
fn names_are_fios() {
    let text = "[global]\nname=all\nsize=1m\nbs=${BS}\n[a]\n[a]\nname=other\ntimeout=5\n[a]\n";
    let lowered = lowered(text, None);
    let names: Vec<(&str, &str)> =
        lowered.job_file.jobs.iter().map(|j| (j.name.as_str(), j.section.as_str())).collect();
    assert_eq!(names, [("a", "a"), ("other", "other"), ("a (2)", "a")]);
    assert_eq!(lowered.job_file.jobs[1].options["runtime"], "5");
    assert_eq!(lowered.job_file.global_options["bs"], "4k");
}

proptest! {
    #[test]
    fn no_text_panics(text in "([\\[\\]a-z=:;#,/%$ {}0-9\n-]|global|bs=4k\n|size=1m\n|\\[a\\]\n|numjobs=){0,60}") {
        for ignores in [false, true] {
            if let Ok(plan) = Plan::read("x", &text, &surroundings(), ignores) {
                let _ = (plan.lower(&facts(&plan, None)), plan.lower(&facts(&plan, Some(MIB))));
            }
        }
    }

    #[test]
    fn no_value_panics(name in 0usize..500, value in "[-a-z0-9:,/.%()*+]{0,20}", size in proptest::option::of(0u64..)) {
        let names: Vec<&str> = options::all().flat_map(|(names, _)| names.split(' ')).collect();
        let text = format!("[a]\nsize=1m\n{}={value}\n", names[name % names.len()]);
        if let Ok(plan) = Plan::read("x", &text, &surroundings(), true) {
            let _ = plan.lower(&facts(&plan, size));
        }
    }
}
