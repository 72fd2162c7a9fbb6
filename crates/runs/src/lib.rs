//! Runs as they are kept and compared: history, comparison, published figures, tables and exports.

#![forbid(unsafe_code)]

pub mod aged_disks;
pub mod ageing;
pub mod cli;
pub mod compare;
pub mod gallery;
pub mod history;
pub mod json_text;
mod json_weight;
pub mod loose_json;
pub mod named;
pub mod recent;
pub mod record;
pub mod reference;
pub mod run_document;
pub mod share;
pub mod shown;
pub mod store;
pub mod text;
pub mod together;
