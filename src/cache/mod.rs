//! A bounded store of kernel rows, and the memory it lives in.

mod arena;
mod rows;

pub(crate) use arena::{Arena, Arenas};
pub(crate) use rows::RowCache;
