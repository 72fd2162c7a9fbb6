//! Other programs that `rubus bench cpu` runs.

pub mod openssl;
pub mod ssh;
