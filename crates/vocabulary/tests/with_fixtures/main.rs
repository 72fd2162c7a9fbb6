//! What needs whole runs and machines to be tested.

mod checked_json;
mod figures;
mod merge;
mod platters;
mod processor;
