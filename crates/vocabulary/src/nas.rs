//! A filesystem of a server (NFS, SMB): how it is mounted, how it is reached, and what was seen of it around a run.
//!
//! Neither the server's name nor its address is kept, nor a user's.

use serde::{Deserialize, Serialize};

use crate::fact::Fact;

/// The protocol of a file server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FileProtocol {
    /// Network File System, versions 3 and 4.
    Nfs,
    /// Server Message Block, as Samba and Windows speak it.
    Smb,
}

impl FileProtocol {
    /// "NFS", "SMB".
    pub fn name(self) -> &'static str {
        match self {
            FileProtocol::Nfs => "NFS",
            FileProtocol::Smb => "SMB",
        }
    }
}

/// The mount options that decide its speed, as the kernel lists them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkMount {
    /// What is spoken.
    pub protocol: FileProtocol,
    /// Version of the protocol: "3", "4.2", "3.1.1".
    pub version: Option<String>,
    /// "tcp", "udp", "rdma".
    pub transport: Option<String>,
    /// TCP port of the server: 2049 for NFS and 445 for SMB, where the mount says nothing else.
    pub port: u16,
    /// Largest read request (`rsize`), in bytes.
    pub read_request_bytes: Option<u64>,
    /// Largest write request (`wsize`), in bytes.
    pub write_request_bytes: Option<u64>,
    /// TCP connections (`nconnect`, `max_channels`); absent: one.
    pub connections: Option<u32>,
    /// Each write waits for the server's disk (`sync`).
    pub is_sync: bool,
    /// Nothing is cached here (`noac`, `actimeo=0`, `cache=none`).
    pub is_uncached: bool,
    /// A server that is away gives errors (`soft`); else programs wait.
    pub is_soft: bool,
    /// Encrypted (`seal`, `sec=krb5p`).
    pub is_encrypted: bool,
    /// Signed (`sign`, `sec=krb5i`).
    pub is_signed: bool,
}

/// The interface over which a server is reached, with what limits it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NasLink {
    /// Name of the interface ("eth0").
    pub interface: String,
    /// "ethernet", "wifi", "virtual", "other".
    pub kind: String,
    /// Negotiated line rate.
    pub bits_per_second: Option<u64>,
    /// "full" or "half".
    pub duplex: Option<String>,
    /// Received level of a radio link, in dBm: -50 is strong, below -70 is weak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal_dbm: Option<i32>,
    /// The slowest bus before the network chip, in words ("USB 2, 480 Mbit/s").
    pub bus: Option<String>,
    /// What that bus carries in practice, in bytes per second.
    pub bus_bytes_per_second: Option<f64>,
}

/// How long TCP connections to the server took: one round trip, which the server's kernel answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConnectTimes {
    /// Number of connections.
    pub samples: u32,
    /// The shortest, in nanoseconds.
    pub least_ns: u64,
    /// The median, in nanoseconds.
    pub median_ns: u64,
}

/// The same while a job ran: a queue before the narrowest link makes it longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedConnect {
    /// Name of the job.
    pub job: String,
    /// What was seen.
    pub times: ConnectTimes,
}

/// What the NFS client counted for one kind of operation during the run. Source: `/proc/self/mountstats`,
/// `rpc_clnt_show_stats()` in the kernel's net/sunrpc/stats.c. The times are sums, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RpcTimes {
    /// "READ", "WRITE", "COMMIT", "GETATTR".
    pub operation: String,
    /// Operations.
    pub operations: u64,
    /// Requests that were sent again.
    pub retransmissions: u64,
    /// Requests without an answer within the time limit.
    pub timeouts: u64,
    /// Waiting here for a slot or the socket, in milliseconds.
    pub queue_ms: u64,
    /// From sending to the answer: network and server together, in milliseconds.
    pub round_trip_ms: u64,
    /// From the request's start to its end, in milliseconds.
    pub execute_ms: u64,
}

/// An existing file, read twice: the second time the server has it in memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColdRead {
    /// Bytes of each pass.
    pub bytes: u64,
    /// The first pass.
    pub first_bytes_per_second: f64,
    /// The second.
    pub again_bytes_per_second: f64,
}

/// All that is known of the way to the server of a target, and of what it did during a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NasFacts {
    /// How it is mounted.
    pub mount: NetworkMount,
    /// The link here.
    pub link: Fact<NasLink>,
    /// The round trip before the run, when nothing else was under way.
    pub connect: Fact<ConnectTimes>,
    /// The same during jobs, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loaded: Vec<LoadedConnect>,
    /// What the NFS client counted; empty for SMB, which counts no times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rpc: Vec<RpcTimes>,
    /// What the server's disk costs.
    pub cold: Fact<ColdRead>,
}
