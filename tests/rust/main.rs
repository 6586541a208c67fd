//! Integration tests of the crate's public face.

mod io;
