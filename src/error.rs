//! The one error table of the crate.
//!
//! Not reaching a tolerance is *not* an error: a solver that stops early returns its model together with a
//! [`Stop`](crate::context::Stop) that says why and how far it was.
//!
//! An error names the parameter, its value and the rule:
//!
//! ```
//! use svmarrow::{Error, Svc};
//!
//! let error = Svc::builder().c(-1.0).build().unwrap_err();
//! assert!(matches!(error, Error::Param { name: "c", .. }));
//! assert_eq!(error.to_string(), "c=-1 is not allowed: it must be positive and finite");
//! ```

use std::path::PathBuf;

/// Result with the crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong, each with what is needed to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter has a value outside its rule.
    #[error("{name}={value} is not allowed: it must be {rule}")]
    Param {
        /// Name as the caller knows it.
        name: &'static str,
        /// The value as text.
        value: String,
        /// The accepted values, as the end of the sentence "it must be ...".
        rule: String,
    },
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, found {actual}")]
    Shape {
        /// Which size of which array.
        what: &'static str,
        /// The size that was needed.
        expected: usize,
        /// The size that was given.
        actual: usize,
    },
    /// A dense matrix whose rows cannot be read as slices one after the other.
    #[error(
        "a dense matrix with strides {strides:?} (in elements): the elements of a row must be side by side and rows \
         must not overlap or run backwards; make it row-major first (numpy.ascontiguousarray, or ndarray's \
         as_standard_layout)"
    )]
    Layout {
        /// Elements from a row to the next, and from a column to the next.
        strides: [isize; 2],
    },
    /// An array holds NaN or an infinity.
    #[error("{what} holds a value that is not finite, first at row {row}")]
    NotFinite {
        /// Which array.
        what: &'static str,
        /// First row with such a value.
        row: usize,
    },
    /// A compressed sparse row structure contradicts itself.
    #[error("sparse matrix: {0}")]
    Sparse(String),
    /// A matrix that must be positive definite is not.
    #[error("matrix is not positive definite: pivot {index} is {pivot:e}{}", cause(*pivot, *largest))]
    NotPositiveDefinite {
        /// Index of the failing pivot.
        index: usize,
        /// Its value.
        pivot: f64,
        /// The largest entry on the diagonal.
        largest: f64,
    },
    /// A kernel whose values between some vectors are no inner products, where distances are needed.
    #[error(
        "kernel={kernel} is not allowed: it must be positive semidefinite on the vectors for a distance in feature \
         space, but a squared length is {evidence:.3e}; compare predictions on rows instead \
         (criterion=\"predictions\")"
    )]
    Indefinite {
        /// Name of the kernel.
        kernel: &'static str,
        /// The squared length.
        evidence: f64,
    },
    /// A file does not follow its format.
    #[error("{}{}: {message}", path.display(), if *line > 0 { format!(":{line}") } else { String::new() })]
    Format {
        /// The path as the caller gave it.
        path: PathBuf,
        /// Line number counted from 1; 0 when the format has no lines.
        line: usize,
        /// The fault found and the content expected.
        message: String,
    },
    /// The operating system refused to read or write a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path as the caller gave it.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The system has too little memory.
    #[error("not enough memory for {what}, which takes {:.2} GB{}{remedy}", *bytes as f64 / 1e9, if remedy.is_empty() { "" } else { ": " })]
    Memory {
        /// The purpose of the memory.
        what: &'static str,
        /// The number of bytes requested.
        bytes: usize,
        /// A remedy, or an empty text.
        remedy: &'static str,
    },
    /// The caller's [`Monitor`](crate::context::Monitor) stopped work whose partial result is not usable.
    #[error("stopped early: {}", crate::context::StopReason::from(*.0).name())]
    Stopped(crate::context::Interruption),
}

/// Why a pivot is not positive, as far as it shows.
fn cause(pivot: f64, largest: f64) -> String {
    if pivot.is_nan() || !largest.is_finite() {
        return ", its entries leave double precision: scale the rows".to_owned();
    }
    if pivot.abs() > 1e-10 * largest {
        return ": the kernel is not positive definite on these rows; raise the penalty (alpha)".to_owned();
    }
    format!(
        ", where its entries, as large as {largest:e}, are rounded: scale the rows and subtract their mean (for example \
         by StandardScaler), or raise the penalty (alpha)"
    )
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl Error {
    /// A [`Error::Param`] from any displayable value.
    pub fn param(name: &'static str, value: impl ToString, rule: impl Into<String>) -> Self {
        Self::Param { name, value: value.to_string(), rule: rule.into() }
    }

    /// A failure at a file: the system's, or one of this crate's that came through a stream.
    pub(crate) fn io(path: &std::path::Path, source: std::io::Error) -> Self {
        match source.downcast::<Self>() {
            Ok(error) => error,
            Err(source) => Self::Io { path: path.into(), source },
        }
    }

    /// Returns the reason of [`Error::Stopped`], for a caller that keeps the partial result.
    ///
    /// # Errors
    /// Every other error, unchanged.
    pub(crate) fn into_stop_reason(self) -> Result<crate::context::StopReason> {
        match self {
            Self::Stopped(interruption) => Ok(interruption.into()),
            error => Err(error),
        }
    }

    /// Adds to [`Error::Memory`] what to do about it, where nothing is said yet; other errors stay as they are.
    #[must_use]
    pub fn with_remedy(mut self, advice: &'static str) -> Self {
        if let Self::Memory { remedy, .. } = &mut self
            && remedy.is_empty()
        {
            *remedy = advice;
        }
        self
    }

    /// A check of a parameter, [`Error::Param`] where its rule does not hold.
    pub fn check_param(
        holds: bool,
        name: &'static str,
        value: impl ToString,
        rule: impl ToString,
    ) -> Result<()> {
        if holds { Ok(()) } else { Err(Self::param(name, value, rule.to_string())) }
    }

    /// A check of a number that may be 0.
    pub fn check_not_negative(name: &'static str, value: f64) -> Result<()> {
        Self::check_param(value.is_finite() && value >= 0.0, name, value, "finite and not negative")
    }

    /// A check of numbers, `width` of them a row, [`Error::NotFinite`] where one is not.
    pub fn check_finite(
        what: &'static str,
        numbers: impl IntoIterator<Item = f64>,
        width: usize,
    ) -> Result<()> {
        let first = numbers.into_iter().position(|number| !number.is_finite());
        first.map_or(Ok(()), |at| Err(Self::NotFinite { what, row: at / width }))
    }

    /// A check that indices stay below `limit`, which is `what`.
    pub fn check_below(name: &'static str, indices: &[usize], limit: usize, what: &str) -> Result<()> {
        let beyond = indices.iter().find(|&&index| index >= limit);
        beyond.map_or(Ok(()), |index| Err(Self::param(name, index, format!("below {limit}, {what}"))))
    }

    /// A check of two sizes, [`Error::Shape`] where they differ.
    pub fn check_len(what: &'static str, expected: usize, actual: usize) -> Result<()> {
        if expected == actual { Ok(()) } else { Err(Self::Shape { what, expected, actual }) }
    }

    /// A check of rows and columns.
    pub fn check_shape(what: &'static str, expected: (usize, usize), actual: (usize, usize)) -> Result<()> {
        Self::check_len(what, expected.0, actual.0)?;
        Self::check_len(what, expected.1, actual.1)
    }
}
