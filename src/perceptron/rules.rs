//! Rules that all online learners share.

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::Kernel;

/// Checks what is fixed along a stream.
pub(super) fn check_stream(kernel: &Kernel, classes: usize) -> Result<()> {
    if matches!(kernel, Kernel::Precomputed) {
        let rule = "computed from rows: a stream has no fixed rows to which kernel values could refer";
        return Err(Error::param("kernel", "precomputed", rule));
    }
    if classes < 2 {
        return Err(Error::param("classes", classes, "at least 2"));
    }
    Ok(())
}

/// Checks the rows and the labels of a piece of a stream.
pub(super) fn check_piece(
    kernel: &Kernel,
    classes: usize,
    features: usize,
    rows: Rows<'_>,
    labels: &[usize],
) -> Result<()> {
    Error::check_len("labels (one for each row)", rows.rows(), labels.len())?;
    Error::check_len("columns of X", features, rows.cols())?;
    if let Some(label) = labels.iter().find(|&&label| label >= classes) {
        return Err(Error::param("labels", label, format!("below {classes}, the number of classes")));
    }
    rows.check_finite("X")?;
    kernel.check_rows("X", rows)
}

/// Checks the shape of an array of a state.
pub(super) fn check_shape(what: &'static str, expected: (usize, usize), found: (usize, usize)) -> Result<()> {
    Error::check_len(what, expected.0, found.0)?;
    Error::check_len(what, expected.1, found.1)
}
