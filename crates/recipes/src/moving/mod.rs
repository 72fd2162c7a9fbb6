//! What all recipes have in common that move the root of a running system elsewhere: what is there now, which kernels can
//! be started, what must hold before, and the steps on the boot partition.
//!
//! The running root is never changed. What is new is prepared under other names or with a kept original; the last step is
//! one small file, the kernel's command line, so that at every moment the board starts the old way or the new one.

pub(super) mod checks;
pub(super) mod current;
pub(super) mod foreseen;
pub(super) mod kernels;
pub(super) mod raspi_firmware;
pub(super) mod steps;
pub(super) mod table;
pub(super) mod time;
pub(super) mod trial;

use rubus_vocabulary::machine::Machine;

use rubus_vocabulary::processor::arm_cores;

/// Whether a processor that was not measured is taken for a small one.
pub(super) fn is_slow_processor(machine: &Machine) -> bool {
    let model = machine.cpu.model.text().unwrap_or_default();
    let is_32_bit = machine.system.user_space_bits.get() == Some(32);
    is_32_bit || arm_cores::is_small(model)
}
