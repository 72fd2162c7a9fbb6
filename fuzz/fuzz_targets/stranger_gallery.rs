#![no_main]
#![allow(dead_code)]

#[path = "../../crates/page/tests/strangers/mod.rs"]
mod strangers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| strangers::gallery(data));
