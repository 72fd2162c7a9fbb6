//! What is printed as JSON of servers, exports and clones. `docs/reference/json.md` names the schema of each.

use std::collections::BTreeMap;

use serde::Serialize;

/// What a server offers for an export.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NbdInfoDocument<'a> {
    /// Address of the export.
    pub uri: String,
    /// Style of the handshake.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["fixed newstyle", "newstyle", "oldstyle"])))]
    pub style: &'static str,
    /// The encryption; null: none.
    pub tls: Option<&'a str>,
    /// The server offers TLS; null: it was not asked.
    pub offers_tls: Option<bool>,
    /// The server answers reads with structured replies.
    pub structured_replies: bool,
    /// The server takes extended headers.
    pub extended_headers: bool,
    /// The name that the server uses itself.
    pub name: Option<&'a str>,
    /// The server's description of the export.
    pub description: Option<&'a str>,
    /// Who the server says that it is; only `rubus serve` does.
    pub identity: Option<NbdIdentityDocument>,
    /// Size of the export.
    pub size_bytes: Option<u64>,
    /// The transmission flags, by name.
    pub flags: Option<BTreeMap<&'static str, bool>>,
    /// The request sizes that the server accepts; null: it names none.
    pub block_sizes: Option<NbdBlockSizesDocument>,
    /// The metadata contexts of the export.
    pub contexts: &'a [String],
}

/// Who a server says that it is.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NbdIdentityDocument {
    /// UUID that changes when acknowledged writes may have been lost.
    pub boot: String,
    /// UUID of the image.
    pub export: String,
    /// How many times the content was replaced.
    pub generation: u64,
    /// A write is on stable storage before it is acknowledged.
    pub sync: bool,
}

/// The request sizes that a server accepts.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NbdBlockSizesDocument {
    /// Offsets and lengths are multiples of this.
    pub least_bytes: u32,
    /// Requests of this size or more are efficient.
    pub preferred_bytes: u32,
    /// Maximum size of a request.
    pub most_bytes: u32,
}

/// The exports of a server.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NbdListDocument<'a> {
    /// The exports.
    pub exports: Vec<NbdExportDocument<'a>>,
    /// The server has no others.
    pub is_all: bool,
}

/// An export of a server. What the server does not tell is null.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NbdExportDocument<'a> {
    /// Name of the export.
    pub name: &'a str,
    /// The server's description.
    pub description: Option<&'a str>,
    /// Size of the export.
    pub size_bytes: Option<u64>,
    /// It cannot be written.
    pub read_only: Option<bool>,
}

/// The clones of a golden image.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NbdClonesDocument<'a> {
    /// The clones.
    pub clones: Vec<NbdCloneDocument<'a>>,
}

/// A clone of a golden image. What cannot be read is null.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NbdCloneDocument<'a> {
    /// Name of the client.
    pub name: String,
    /// How it stands; "left": its server was killed.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["closed", "in-use", "left", "unusable"])))]
    pub standing: &'static str,
    /// Why it is unusable.
    pub why: Option<&'a str>,
    /// Bytes allocated on its filesystem.
    pub taken_bytes: u64,
    /// How many times it was reset.
    pub generation: Option<u64>,
    /// Size of its disk.
    pub size_bytes: Option<u64>,
    /// Bytes that the client wrote, in whole blocks; null where the filesystem shares blocks.
    pub own_bytes: Option<u64>,
    /// It is a copy that shares its blocks with the golden image on the filesystem.
    pub is_shared: Option<bool>,
    /// The golden image.
    pub golden: Option<String>,
}
