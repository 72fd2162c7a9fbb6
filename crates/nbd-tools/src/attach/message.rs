//! What the kernel's driver of network disks is told and says, as in `include/uapi/linux/nbd-netlink.h`.

use rubus_host::net::generic_netlink::Attributes;

/// The family of the driver.
pub mod nbd {
    pub const NAME: &str = "nbd";
    /// Its group for what happens to connections.
    pub const GROUP: &str = "nbd_mc_group";
    /// A device gets its server.
    pub const CONNECT: u8 = 1;
    /// A device loses its server.
    pub const DISCONNECT: u8 = 2;
    /// A dead connection is replaced.
    pub const RECONFIGURE: u8 = 3;
    /// The driver tells that a connection is dead.
    pub const LINK_DEAD: u8 = 4;
    /// Which devices have a server.
    pub const STATUS: u8 = 5;
    /// Attribute: number of the device, 32 bits.
    pub const INDEX: u16 = 1;
    /// Attribute: size, 64 bits.
    pub const SIZE_BYTES: u16 = 2;
    /// Attribute: block size, 64 bits.
    pub const BLOCK_BYTES: u16 = 3;
    /// Attribute: how long a request may take in seconds, 64 bits; 0 is for ever.
    pub const TIMEOUT: u16 = 4;
    /// Attribute: what the server can do, 64 bits.
    pub const SERVER_FLAGS: u16 = 5;
    /// Attribute: how the driver is to behave, 64 bits.
    pub const CLIENT_FLAGS: u16 = 6;
    /// Flag in [`CLIENT_FLAGS`]: disconnect the device on its last close.
    pub const DISCONNECT_ON_CLOSE: u64 = 1 << 1;
    /// Attribute: the connections.
    pub const SOCKETS: u16 = 7;
    /// Attribute: how long a request waits for a new connection in seconds, 64 bits.
    pub const DEAD_TIMEOUT: u16 = 8;
    /// Attribute: the list of devices.
    pub const DEVICES: u16 = 9;
    /// Attribute: a name that later messages must know, text.
    pub const BACKEND: u16 = 10;
    /// In a list of connections: one.
    pub const SOCKET: u16 = 1;
    /// Attribute of a connection: its file descriptor, 32 bits.
    pub const SOCKET_FD: u16 = 1;
    /// In a list of devices: one.
    pub const DEVICE: u16 = 1;
    /// Attribute of a device in a list: its number, 32 bits.
    pub const DEVICE_INDEX: u16 = 1;
    /// Attribute of a device in a list: whether it has a server, 8 bits.
    pub const DEVICE_CONNECTED: u16 = 2;
}

/// Whether a device has a server, in the answer to [`nbd::STATUS`].
pub fn is_connected(attributes: Attributes<'_>, index: u32) -> Option<bool> {
    let devices = attributes.nested(nbd::DEVICES)?;
    let of_index = |(kind, one): (u16, _)| {
        let one = Attributes::of(one);
        let fits = kind == nbd::DEVICE && one.u32(nbd::DEVICE_INDEX)? == index;
        fits.then(|| one.u8(nbd::DEVICE_CONNECTED))?
    };
    devices.iter().find_map(of_index).map(|flag| flag != 0)
}

#[cfg(test)]
mod tests {
    use rubus_host::net::generic_netlink::{Incoming, Writer, read};

    use super::*;

    #[test]
    fn the_status_of_one_device_is_found() {
        let answer = Writer::request(0x1d, nbd::STATUS, 1)
            .nested(nbd::DEVICES, |mut list| {
                for (index, connected) in [(0, 1), (1, 0)] {
                    list = list.nested(nbd::DEVICE, |one| {
                        one.u32(nbd::DEVICE_INDEX, index)
                            .attribute(nbd::DEVICE_CONNECTED, &[connected])
                    });
                }
                list
            })
            .finish();
        let Some(Incoming::Message { attributes, .. }) = read(&answer).next() else {
            panic!("no message");
        };
        let connected: Vec<_> = (0..3).map(|i| is_connected(attributes, i)).collect();
        assert_eq!(connected, [Some(true), Some(false), None]);
    }
}
