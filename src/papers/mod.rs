//! Methods that only experiments of the papers need.
//!
//! | module | repeats |
//! |---|---|
//! | `reduced_set` | Weston and Bakir, TR-132, 2004, and Xu and others, 2015: selections of vectors by penalties |

pub mod reduced_set;
