//! Hands the compiler's target to the program, for `rubus --version --verbose`.

use std::env::var;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for (name, from) in [
        ("RUBUS_TARGET", "TARGET"),
        ("RUBUS_OPT_LEVEL", "OPT_LEVEL"),
        ("RUBUS_TARGET_FEATURES", "CARGO_CFG_TARGET_FEATURE"),
    ] {
        println!("cargo:rustc-env={name}={}", var(from).unwrap_or_default());
    }
}
