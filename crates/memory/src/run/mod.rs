//! The measuring of memory: how fast it is in order, how long a load takes, and what touching pages is like when not
//! all of them fit.

pub mod bandwidth;
pub mod chase;
mod memory_load;
mod region;

pub use bandwidth::bandwidth;
pub use chase::chase;
pub use memory_load::{MemoryLoad, Touching, WRITE_SHARE};
