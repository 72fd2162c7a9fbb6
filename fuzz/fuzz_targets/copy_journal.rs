#![no_main]

#[path = "../../crates/nbd-tools/tests/entries/mod.rs"]
mod entries;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entries::copy_journal(data));
