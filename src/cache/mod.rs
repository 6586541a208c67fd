//! A bounded store of kernel rows.

mod rows;

pub use rows::RowCache;
