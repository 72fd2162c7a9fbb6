//! Addresses of network disks that the kernel attaches by itself.

/// Whether an address is one that the kernel can be attached to.
///
/// # Errors
/// What is wrong with it, as a sentence without a full stop.
pub fn check(value: &str) -> Result<(), String> {
    if value.starts_with("nbds") {
        return Err(
            "the kernel speaks to the server itself and knows no TLS; use a tunnel (WireGuard, ssh -L)".into(),
        );
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!&()*+,;=%".contains(c);
    let is_sound = value.chars().all(is_plain) && value.len() <= 500;
    let (server, socket) = (value.strip_prefix("nbd://"), value.strip_prefix("nbd+unix://"));
    match (server, socket) {
        (Some(server), _) if is_sound && !server.is_empty() => {
            if server.starts_with(['/', '?']) {
                Err("no host in the address; write it like nbd://192.168.1.2/disk".into())
            } else {
                Ok(())
            }
        }
        (_, Some(socket)) if is_sound => {
            if socket.contains("socket=") {
                Ok(())
            } else {
                Err("which socket? Write it like nbd+unix:///disk?socket=/path".into())
            }
        }
        _ => Err("write an address such as nbd://192.168.1.2/disk".into()),
    }
}
