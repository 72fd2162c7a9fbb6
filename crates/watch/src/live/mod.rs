//! What `rubus watch` needs of the machine besides samples: the terminal, keys, files, network disks.

pub mod context;
pub mod keys;
pub mod network_disks;
pub mod recorder;
pub mod replay;
pub mod terminal;
pub mod view;
pub mod writers;
