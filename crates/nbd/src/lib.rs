//! The network block device (NBD) protocol, with a client and a server.
//!
//! [`wire`] has the messages, which both ends read and write. [`client`] has the client's two state
//! machines, which take bytes and give bytes and know no socket: the handshake, in which both ends
//! agree on an export, and the flight of requests after it. [`client::Client`] drives them over a
//! [`transport::Transport`]. [`tls`]
//! puts encryption around one, and [`certificates`] makes what it needs. [`identity`] says whether an export is still the disk that it was.
//! [`uri`] reads the addresses that people type. [`server`] is the other end. What the program does with network
//! disks is in `rubus_nbd_tools`.
//!
//! The protocol is the NBD project's `doc/proto.md`, the addresses its `doc/uri.md`. Whatever a
//! server sends, nothing here panics or takes more memory than the limits in [`wire`].

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod callers;
pub mod certificates;
pub mod client;
pub mod connect;
pub mod identity;
pub mod names;
pub mod peer;
pub mod server;
pub mod tls;
pub mod transport;
pub mod uri;
pub mod wire;
