//! Machine facts, read through the host: one file per subject.
//!
//! Every fact says where it was read; what could not be read is unknown with the reason. Nothing
//! here judges what a fact means for storage; that is the business of the rules.

pub mod blocks;
mod board;
pub mod buses;
pub mod compression;
mod container;
pub mod core_kinds;
mod cpu;
mod cpuinfo;
mod device_tree;
mod fstab;
mod hop;
mod identity;
pub mod image;
mod kernel_config;
mod kernel_log;
mod links;
pub mod memory;
mod mmc;
pub mod mounts;
mod pcie;
mod power;
pub mod read;
mod swap;
mod swap_managers;
mod sysfs;
mod system;
mod udev;
mod usb;
mod vm;

use rubus_host::Files;
use rubus_vocabulary::machine::{Machine, Origin};

use crate::probe::cpuinfo::CpuInfo;
pub use crate::probe::power::power;

/// Reads everything that is known about a machine. Never fails: what cannot be read is unknown.
///
/// `now_rfc3339` is the time of the reading: now on a live machine, that of the recording for a
/// capture.
pub fn survey(files: &dyn Files, now_rfc3339: &str, origin: Origin) -> Machine {
    let cpuinfo = CpuInfo::read(files);
    let system = system::system(files, &cpuinfo);
    let block_devices = blocks::block_devices(files);
    let links = links::links(files);
    Machine {
        schema: 1,
        read_at: now_rfc3339.to_string(),
        origin,
        board: board::board(files, &cpuinfo),
        cpu: cpu::cpu(files, &cpuinfo),
        power: power::power(files),
        memory: memory::memory(files),
        swap: swap::swap(files),
        vm: vm::vm(files),
        kernel_config: kernel_config::kernel_config(files, &system.kernel_release),
        shared_buses: buses::shared_buses(&block_devices, &links),
        mounts: mounts::mounts(files, &block_devices),
        fstab: fstab::fstab(files),
        block_devices,
        links,
        kernel_log: kernel_log::kernel_log(files),
        system,
    }
}
