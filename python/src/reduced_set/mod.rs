//! `svmarrow::reduced_set`.

pub(crate) mod cascade;
pub(crate) mod construction;
pub(crate) mod pursuit;
pub(crate) mod selection;
pub(crate) mod threshold;
