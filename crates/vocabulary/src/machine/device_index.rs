//! The block devices of a machine by their names, for callers that ask about many of them.

use std::collections::{BTreeSet, HashMap};

use super::{BlockDevice, Machine};

/// Finds devices, and what lies below them, without a look at each of the others.
#[derive(Clone, Debug)]
pub struct DeviceIndex<'a> {
    devices: &'a [BlockDevice],
    by_name: HashMap<&'a str, usize>,
}

impl<'a> DeviceIndex<'a> {
    /// Of all devices of a machine; of two with one name the first counts.
    pub fn of(machine: &'a Machine) -> Self {
        let devices = machine.block_devices.as_slice();
        let mut by_name = HashMap::with_capacity(devices.len());
        for (at, device) in devices.iter().enumerate() {
            by_name.entry(device.name.as_str()).or_insert(at);
        }
        DeviceIndex { devices, by_name }
    }

    /// The device of this name.
    pub fn device(&self, name: &str) -> Option<&'a BlockDevice> {
        self.by_name.get(name).and_then(|at| self.devices.get(*at))
    }

    /// As [`Machine::disks_below`].
    pub fn disks_below(&self, name: &str) -> Vec<&'a BlockDevice> {
        let mut todo: Vec<usize> = self.by_name.get(name).copied().into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(at) = todo.pop() {
            let Some(device) = self.devices.get(at).filter(|_| seen.insert(at)) else {
                continue;
            };
            let next = device.parent.iter().chain(&device.below);
            todo.extend(next.filter_map(|name| self.by_name.get(name.as_str())));
        }
        let found = seen.into_iter().filter_map(|at| self.devices.get(at));
        found.filter(|device| device.parent.is_none() && device.below.is_empty()).collect()
    }
}
