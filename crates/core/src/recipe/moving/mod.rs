//! What all recipes have in common that move the root of a running system elsewhere: what is there now, which kernels can
//! be started, what must hold before, and the steps on the boot partition.
//!
//! The running root is never changed. What is new is prepared under other names or with a kept original; the last step is
//! one small file, the kernel's command line, so that at every moment the board starts the old way or the new one.

pub(super) mod checks;
pub(super) mod ground;
pub(super) mod kernels;
pub(super) mod not_copied;
pub(super) mod steps;
pub(super) mod time;

use crate::machine::Machine;

/// Names of small processors: those of the Raspberry Pi up to the 3.
const SLOW: [&str; 6] = [
    "ARM1176",
    "ARMv6",
    "ARMv7",
    "Cortex-A7",
    "Cortex-A53",
    "Cortex-A9",
];

/// Whether a processor that was not measured is taken for a small one.
pub(super) fn is_slow_processor(machine: &Machine) -> bool {
    let model = machine.cpu.model.text().unwrap_or_default();
    let is_32_bit = machine.system.user_space_bits.get() == Some(32);
    // "Cortex-A7" is also how the names of two fast ones begin.
    let is_fast = ["Cortex-A72", "Cortex-A76"]
        .iter()
        .any(|fast| model.contains(fast));
    is_32_bit || !is_fast && SLOW.iter().any(|slow| model.contains(slow))
}
