//! The measuring of memory: how fast it is in order, how long a load takes, and what touching pages is like when not
//! all of them fit.

mod bandwidth;
mod chase;
mod eater;
mod region;

pub use bandwidth::bandwidth;
pub use chase::chase;
pub use eater::{Eater, Touching, WRITE_SHARE};
