//! Sockets that this program is started with.

use std::ops::Range;

/// Descriptor of the first socket that a program is started with; see `sd_listen_fds(3)`.
const FIRST_SOCKET: i32 = 3;

/// Numbers of the sockets that systemd, or a program that does as it does, has started us with.
pub fn inherited_sockets() -> Range<i32> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<i32>().ok();
    let for_us = number("LISTEN_PID").is_some_and(|pid| pid == std::process::id() as i32);
    match number("LISTEN_FDS") {
        Some(count) if for_us && (1..1024).contains(&count) => FIRST_SOCKET..FIRST_SOCKET + count,
        _ => FIRST_SOCKET..FIRST_SOCKET,
    }
}
