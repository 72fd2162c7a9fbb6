//! Every option of fio, sorted into done, without effect here, and not done.
//!
//! The names are those of fio 3.42 ("Job parameters" of its manual and the options of its engines).
//! Where only some values of an option are done, the option stands under "done" and the value
//! decides (`settings.rs`).

use rubus_vocabulary::spelling::edits;

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    Done(&'static str),
    /// It is accepted and changes nothing that is measured here; why.
    NoEffect(&'static str),
    /// It is not done; what it would do.
    NotDone(&'static str),
    /// It is not done; what it would do. A value of 0 or none asks for nothing.
    NotDoneUnlessOff(&'static str),
}

/// An option by its main name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FioOption {
    /// Its main name.
    pub name: &'static str,
    /// What becomes of it.
    pub support: Support,
}

impl Support {
    /// In one word or two, for a table.
    pub fn name(self) -> &'static str {
        match self {
            Support::Done(_) => "done",
            Support::NoEffect(_) => "no effect here",
            Support::NotDone(_) | Support::NotDoneUnlessOff(_) => "not done",
        }
    }

    /// Whether it belongs to an engine that is not here.
    pub fn is_of_an_engine(self) -> bool {
        matches!(self, Support::NotDone(text) if text.starts_with("is an option of"))
    }

    /// How it is done, why it has no effect, or what it would do.
    pub fn text(self) -> &'static str {
        match self {
            Support::Done(text)
            | Support::NoEffect(text)
            | Support::NotDone(text)
            | Support::NotDoneUnlessOff(text) => text,
        }
    }
}

/// The option with that name or alias.
pub fn find(name: &str) -> Option<FioOption> {
    all().find_map(|(names, option)| names.split(' ').any(|n| n == name).then_some(option))
}

/// The option whose name has the fewest edits from what was typed, where there is a near one. On fio's command line its name has
/// dashes before it.
pub fn nearest(typed: &str) -> Option<&'static str> {
    let typed = typed.trim_start_matches('-');
    let names = all().flat_map(|(names, _)| names.split(' '));
    let near = names.map(|name| (edits(typed, name), name)).min()?;
    (near.0 <= 2 && near.0 * 3 <= typed.len()).then_some(near.1)
}

/// Makes the support of an option from what its list says about it.
type Sort = fn(&'static str) -> Support;

/// All options with their names, separated by spaces, the main one first.
pub fn all() -> impl Iterator<Item = (&'static str, FioOption)> {
    let lists: [(&'static str, Sort); 4] = [
        (DONE, Support::Done),
        (NO_EFFECT, Support::NoEffect),
        (NOT_DONE, Support::NotDone),
        (SWITCHED_OFF, Support::NotDoneUnlessOff),
    ];
    lists.into_iter().flat_map(|(list, support)| {
        let lines = list.lines().filter_map(|line| line.split_once(": "));
        lines.map(move |(names, text)| {
            let name = names.split(' ').next().unwrap_or(names);
            let support = support(text);
            (names, FioOption { name, support })
        })
    })
}

const DONE: &str = "\
name: the name of the job in results
description: stored with the result
wait_for: the job begins after the other job's stage
filename: a list separated by colons, each line adds to it; a missing file becomes a nameless one
directory: where files are; of a list, each copy takes the next
filename_format: says which copies share a file; files of that name that exist are read
rw readwrite: read, write, randread, randwrite, rw, randrw, with an offset or a count after a colon; no trims
ioengine: synchronous ones and mmap work one at a time, libaio, io_uring and posixaio become io_uring or threads; others are not done
iodepth: as in fio; synchronous engines have 1
size: bytes or percent
io_size io_limit: bytes or percent
filesize: one size; a range is not done
offset fileoffset: bytes or percent
offset_increment: bytes or percent
number_ios: as in fio
bs blocksize: for reads and writes
ba blockalign: for reads and writes
bsrange blocksize_range: for reads and writes
bssplit: for reads and writes
bs_unaligned blocksize_unaligned: as in fio
randseed: the seed of the whole run
randrepeat allrandrepeat: 0 takes a new seed for the whole run, which is kept with the result; --seed gives one
norandommap: as in fio
random_distribution: random, zipf, pareto, normal, zoned in percent; no zoned_abs, no sequence
percentage_random: for reads and writes; 0 past the page cache is called sequential
nrfiles nr_files: equal parts of one file
file_service_type: roundrobin, random, sequential
fallocate: none and native, for files that Rubus makes
fsync: a flush after each N writes
fdatasync: a data flush after each N writes
direct: 0 goes through the page cache
buffered: the opposite of direct
overwrite: the file is written once before
loops: covers the region N times
numjobs: copies, on files of their own unless one is named
startdelay: a time; a range is not done
runtime timeout: as in fio
time_based: as in fio
ramp_time: as in fio
verify: crc32c and xxhash; other checksums are replaced by crc32c; no patterns
do_verify: as in fio
rwmixread: as in fio
rwmixwrite: as in fio
thinktime: as in fio
thinktime_spin: as in fio
thinktime_blocks: as in fio
rate: for reads and writes
rate_iops: for reads and writes
rate_process: linear and poisson
invalidate: 1, before the job and each time its region begins again; 0 is not done where the page cache is used
end_fsync: a flush at the end, whose time counts
exitall: the jobs of the stage end when one of them ends
exit_what: group and stonewall; all is not done
stonewall wait_for_previous: a new stage
new_group: a new group in fio's JSON
group_reporting: copies are one result
sync: sync and dsync: each write is followed by fdatasync, both are one operation
zero_buffers: as in fio
buffer_pattern: one number or text of at most 16 bytes; no file, no several parts
buffer_compress_percentage: as in fio
kb_base: 1024 or 1000
";

const NO_EFFECT: &str = "\
unique_filename: it concerns fio's network mode
lockfile: no other process works on the files
iodepth_batch iodepth_batch_submit: an operation is submitted as soon as there is room for it
iodepth_batch_complete_min iodepth_batch_complete: operations are reaped as soon as they complete
iodepth_batch_complete_max: operations are reaped as soon as they complete
iodepth_low: the queue is kept full
io_submit_mode: the thread that submits also completes; rates are kept either way
softrandommap: the map of visited blocks always fits
random_generator: the generator is fixed
openfiles: all files are open at all times
fadvise_hint: the kernel's own read-ahead decides
write_barrier: obsolete in fio as well
clocksource: the monotonic clock of the kernel is used
mem iomem: buffers are anonymous pages
iomem_align mem_align: buffers begin on a page
verifysort: obsolete in fio as well
verifysort_nr: obsolete in fio as well
verify_interval: each 4 KiB at most have a header with a checksum
verify_offset: the headers are at the start
verify_fatal: the first wrong block ends the run
verify_dump: wrong blocks are not saved
verify_async: the job's own threads check
verify_async_cpus: the job's own threads check
verify_write_sequence: the number of the writing is compared where it is known which was the last
verify_header_seed: the seed is compared when a job reads back what it has written
verify_policy: completed writes are checked
verify_state_save: no state is saved
comm: it names a process in fio
thinktime_blocks_type: operations are counted when they are complete
rate_cycle ratecycle: a rate is kept from operation to operation
rate_ignore_thinktime: a rate is kept from operation to operation
thinkcycles: obsolete in fio as well
percentage_sequential: obsolete in fio as well
rwmixcycle: obsolete in fio as well
create_serialize: files are made one after the other
create_fsync: files are flushed before the first job
create_on_open: files are made before the first job
allow_file_create: a missing file becomes a nameless one
fsync_on_close: the file is closed after the job and is then gone
unlink: Rubus's own files have no name
unlink_each_loop: Rubus's own files have no name
thread: jobs are threads
threads: jobs are threads
exitall_on_error: a failing job ends the run
per_job_logs: no logs are written; the series is in the result
write_bw_log: no log is written; the series is in the result
write_lat_log: no log is written; the distribution is in the result
write_iops_log: no log is written; the series is in the result
write_hist_log: no log is written; the distribution is in the result
log_entries: no log is written
log_avg_msec: no log is written
log_hist_msec: no log is written
log_hist_coarseness: no log is written
log_max_value: no log is written
log_window_value: no log is written
log_offset: no log is written
log_prio: no log is written
log_issue_time: no log is written
log_compression: no log is written
log_compression_cpus: no log is written
log_store_compressed: no log is written
log_unix_epoch: no log is written
log_alternate_epoch: no log is written
log_alternate_epoch_clock_id: no log is written
job_start_clock_id: no log is written
bwavgtime: the series has its own bins
iopsavgtime: the series has its own bins
stats: results are always reported
refill_buffers: every written block is different
scramble_buffers: every written block is different
buffer_compress_chunk: the share holds in each 4 KiB
clat_percentiles: percentiles are always reported
lat_percentiles: percentiles are always reported
slat_percentiles: submission is not timed separately
percentile_list: percentiles are always the same
significant_figures: the text has its own precision
disk_util: other traffic on the device is watched and doubted
gtod_reduce: every operation is timed; that costs little
disable_lat: every operation is timed; that costs little
disable_clat: every operation is timed; that costs little
disable_slat: submission is not timed separately
disable_bw_measurement disable_bw: the series is always kept
gtod_cpu: every thread reads the clock itself
unified_rw_reporting: reads and writes are always reported separately
block_error_percentiles: a failing job ends the run
continue_on_error: a failing job ends the run
ignore_error: a failing job ends the run
error_dump: a failing job says why
cgroup_nodelete: has no effect without cgroup
unit_base: rates are printed in bytes
hugepage-size: has no effect without huge pages
flow_id: has no effect without flow
flow_sleep: has no effect without flow
flow_watermark: obsolete in fio as well
cpus_allowed_policy: has no effect without cpus_allowed
dedupe_mode: has no effect without dedupe_percentage
dedupe_working_set_percentage: has no effect without dedupe_percentage
dedupe_global: has no effect without dedupe_percentage
latency_window: has no effect without latency_target
latency_percentile: has no effect without latency_target
latency_run: has no effect without latency_target
steadystate_duration ss_dur: has no effect without steadystate
steadystate_ramp_time ss_ramp: has no effect without steadystate
steadystate_check_interval ss_interval: has no effect without steadystate
random_sequence_stride: has no effect without a sequence
zonesize: has no effect without zonemode
zonecapacity: has no effect without zonemode
zonerange: has no effect without zonemode
zoneskip: has no effect without zonemode
read_beyond_wp: has no effect without zonemode
max_open_zones: has no effect without zonemode
job_max_open_zones: has no effect without zonemode
ignore_zone_limits: has no effect without zonemode
zone_reset_threshold: has no effect without zonemode
zone_reset_frequency: has no effect without zonemode
recover_zbd_write_error: has no effect without zonemode
write_zone_remainder: has no effect without zonemode
spr_num_regions: has no effect without sprandom
spr_op: has no effect without sprandom
spr_cs: has no effect without sprandom
num_range: it concerns trims
trim_verify_zero: it concerns trims
trim_backlog_batch: it concerns trims
verify_backlog_batch: has no effect without verify_backlog
cmdprio_class: has no effect without cmdprio_percentage
cmdprio_hint: has no effect without cmdprio_percentage
cmdprio: has no effect without cmdprio_percentage
plids fdp_pli: has no effect without dataplacement
plid_select fdp_pli_select: has no effect without dataplacement
dp_scheme: has no effect without dataplacement
replay_no_stall: has no effect without read_iolog
replay_redirect: has no effect without read_iolog
replay_scale: has no effect without read_iolog
replay_align: has no effect without read_iolog
replay_time_scale: has no effect without read_iolog
replay_skip: has no effect without read_iolog
read_iolog_chunked: has no effect without read_iolog
merge_blktrace_scalars: has no effect without read_iolog
merge_blktrace_iters: has no effect without read_iolog
userspace_reap: completions are always reaped without a call where that is possible
registerfiles: the ring always registers its files
fixedbufs: the ring always registers its buffers
nonvectored: operations have one buffer each
libaio_vectored: operations have one buffer each
sqthread_poll_cpu: has no effect without sqthread_poll
hipri_percentage: has no effect without hipri
nowait: an operation may wait
thp: it concerns mapped files
";

const NOT_DONE: &str = "\
opendir: would use every file below a directory
bs_is_seq_rand: would give sequential and random operations different sizes
cpumask: would bind the job to processors
cpus_allowed: would bind the job to processors
numa_cpu_nodes: would bind the job to the processors of a node
numa_mem_policy: would bind the job's memory to a node
uid: would change the user of the job
gid: would change the group of the job
profile: would run a built-in profile of fio
exec_prerun: would run a command before the job
exec_postrun: would run a command after the job
ioscheduler: would change the I/O scheduler of the device
write_iolog: would record every operation in a file
read_iolog: would replay recorded operations
merge_blktrace_file: would merge recorded operations
rate_min ratemin: would end the job when it is slower than this
rate_iops_min: would end the job when it is slower than this
max_latency: would end the job at the first operation that takes longer
latency_target: would search the queue depth that keeps this latency
steadystate ss: would end the job when its rate is steady
cgroup: would move the job into a control group
cgroup_weight: would weigh the control group of the job
verify_pattern: would write and check a pattern
verify_pattern_interval: would write and check a pattern
cmdprio_percentage: would give a part of the operations a higher priority
cmdprio_bssplit: would give operations priorities by their sizes
prio: would set the I/O priority of the job
prioclass: would set the I/O priority of the job
priohint: would set the I/O priority of the job
ramp_size: would leave the first bytes out of the result
rw_sequencer: would give the same offset several times
flow: would keep jobs in a ratio
sprandom: would precondition an SSD in one pass
gpu_dev_id: would use the memory of a graphics card
cpuload cpumode cpuchunks exit_on_io_done: is an option of the cpuio engine, which keeps processors busy
pool cont chunk_size object_class svcl: is an option of the dfs, rados and rbd engines, which use a cluster
donorname inplace: is an option of the e4defrag engine, which moves the blocks of files
program arguments grace_time std_redirect: is an option of the exec engine, which runs programs
stat_type: is an option of the filestat engine
volume brick single-instance single_instance: is an option of the gfapi engine, which uses a Gluster volume
https http_host http_user http_pass http_s3_key http_s3_keyid http_s3_security_token http_swift_auth_token http_s3_region http_s3_sse_customer_key http_s3_sse_customer_algorithm http_s3_storage_class http_mode http_verbose http_object_mode: is an option of the http engine, which uses an object store
readfua writefua write_mode verify_mode cmd_type cdb_len verify_bytchk read_mode md_per_io_size pi_act pi_chk apptag apptag_mask deac: is an option of the io_uring_cmd engine, which sends commands of the device's own protocol
sg_write_mode stream_id: is an option of the sg engine, which sends SCSI commands
libblkio_driver libblkio_path libblkio_pre_connect_props libblkio_num_entries libblkio_queue_size libblkio_pre_start_props libblkio_vectored libblkio_write_zeroes_on_trim libblkio_wait_mode libblkio_force_enable_completion_eventfd: is an option of the libblkio engine
gpu_dev_ids cuda_io rocm_io: is an option of the libcufile and libhipfile engines, which use the memory of graphics cards
namenode hdfsdirectory chunck_size hdfs_use_direct: is an option of the libhdfs engine
initiator: is an option of the libiscsi engine
skip_bad: is an option of the mtd engine, which uses raw flash
uri: is an option of the nbd engine; rubus bench nbd://HOST measures such an export
hostname port protocol proto nodelay listen pingpong interface ttl window_size mss netsplice: is an option of the net engine, which sends data between machines
nfs_url: is an option of the nfs engine, which speaks NFS itself
clustername clientname conf busy_poll touch_objects rbdname rbd_encryption_format rbd_encryption_passphrase: is an option of the rados and rbd engines, which use a Ceph cluster
bindname verb: is an option of the rdma engine, which sends data between machines
no_completion_thread: is an option of the windowsaio engine
xnvme_be xnvme_mem xnvme_async xnvme_sync xnvme_admin xnvme_dev_nsid xnvme_dev_subnqn xnvme_iovec: is an option of the xnvme engine
";

const SWITCHED_OFF: &str = "\
serialize_overlap: would keep overlapping operations from being in flight together
fill_device fill_fs: would write until there is no space left
file_append: would begin at the end of the file
offset_align: would align the start of the region
atomic: would write with the atomicity of the device
sync_file_range: would start write-back after each N writes
verify_only: would check what an earlier run has written
verify_backlog: would check blocks soon after they were written
experimental_verify: would check with the sequence of the writes
verify_state_load: would check where an earlier run was killed
trim_percentage: would discard a part of the verified blocks
trim_backlog: would discard a part of the verified blocks
zonemode: would treat the device as zones
lockmem: would lock memory, so that less is left for caches
nice: would change the priority of the job's threads
thinktime_iotime: would count the time between pauses instead of operations
write_hint: would tell the device how long data will live
create_only: would make the files and measure nothing
allow_mounted_write: would write to a mounted device, which rubus refuses
pre_read: would read the files into the cache before
end_syncfs: would flush the whole filesystem at the end
dedupe_percentage: would repeat blocks, so that a target that stores equal blocks once gains
dataplacement data_placement fdp: would use the device's placement of data
hipri: would poll for completions
sqthread_poll: would let the kernel poll for submissions
uncached: would drop what was cached after each operation
force_async: would hand every operation to a kernel thread
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once() {
        let mut seen = std::collections::BTreeSet::new();
        for name in all().flat_map(|(names, _)| names.split(' ')) {
            assert!(seen.insert(name), "{name} is there twice");
        }
        assert!(seen.len() > 350, "{}", seen.len());
    }

    #[test]
    fn aliases_lead_to_the_option_and_typos_near_it() {
        assert_eq!(find("blocksize").map(|option| option.name), Some("bs"));
        assert_eq!(find("timeout").map(|option| option.name), Some("runtime"));
        assert!(matches!(find("cpuload").unwrap().support, Support::NotDone(_)));
        assert_eq!(find("nonsense"), None);
        assert_eq!(nearest("iodepht"), Some("iodepth"));
        assert_eq!(nearest("--rw"), Some("rw"));
        assert_eq!(nearest("--"), None);
        assert_eq!(nearest("completely-other"), None);
        assert_eq!(nearest("foo"), None);
    }
}
