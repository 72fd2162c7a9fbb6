//! The clocks of the measuring: readings in nanoseconds, as cheap as the kernel allows.
//!
//! Only the engines and the session read them; everything that decides gets times as arguments.

use std::mem::MaybeUninit;

/// Nanoseconds of the monotonic clock. It has no meaning of its own; differences have.
#[inline(always)]
pub fn now_ns() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// Processor time that the calling thread has used so far, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Processor time that all threads of this process have used so far, the kernel's own workers on
/// our behalf (io_uring) included, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Bytes that disks have read for the calling thread so far; 0 where the kernel does not count them.
pub fn thread_disk_bytes() -> u64 {
    const BLOCK_BYTES: u64 = 512;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a place of the right type, which is initialised whether or not the call succeeds.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    (usage.ru_inblock.max(0) as u64) * BLOCK_BYTES
}

#[inline(always)]
fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to a place of the right type. The call cannot fail, and so always
    // writes the place: these clocks exist on every kernel. The C library's function is used because it calls into the vDSO
    // without entering the kernel, and knows how to do without one under an instruction counter.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    // Both parts are never negative: these clocks count from the start of something.
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
