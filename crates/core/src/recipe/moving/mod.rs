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
