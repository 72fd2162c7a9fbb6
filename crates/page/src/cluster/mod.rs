//! Pages of clusters: one that was sized, and layouts side by side.

pub mod comparison;
pub mod size;

#[cfg(test)]
mod tests;
