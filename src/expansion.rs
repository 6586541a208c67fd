//! The currency between all parts: f_j(x) = sum_i B[i, j] k(x, z_i) + b_j.
//!
//! A learner makes one, a reducer turns one into a shorter one, the evaluator runs it. All q outputs share one
//! pool of m vectors, so a kernel value is computed once per (row, vector), never once per machine.
//!
//! An expansion of two vectors with one output:
//!
//! ```
//! use ndarray::arr2;
//! use svmarrow::expansion::KernelExpansion;
//! use svmarrow::kernels::Kernel;
//!
//! let (vectors, coefficients) = (arr2(&[[0.0], [1.0]]), arr2(&[[1.0], [-1.0]]));
//! let f = KernelExpansion::new(Kernel::Linear, vectors.into(), coefficients, vec![0.5])?;
//! assert_eq!((f.view().len(), f.view().outputs()), (2, 1));
//! # Ok::<(), svmarrow::Error>(())
//! ```

use ndarray::{Array2, ArrayView2};
use std::sync::Arc;

use crate::data::{OwnedRows, Rows};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// A kernel expansion that borrows its parts.
#[derive(Debug, Clone, Copy)]
pub struct ExpansionView<'a> {
    /// The kernel k, whose values are computed between the vectors and each row.
    pub kernel: Kernel,
    /// The m vectors z_i.
    pub vectors: Rows<'a>,
    /// B, (m, q), row-major.
    pub coefficients: ArrayView2<'a, f64>,
    /// b, (q,).
    pub intercepts: &'a [f64],
}

impl<'a> ExpansionView<'a> {
    /// Checks that the sizes agree and the numbers are finite.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Layout`] for coefficients that are not row-major, [`Error::NotFinite`], and
    /// [`Error::Param`] for the kernel's parameters or no output.
    pub fn new<'r: 'a, 'c: 'a>(
        kernel: Kernel,
        vectors: Rows<'r>,
        coefficients: ArrayView2<'c, f64>,
        intercepts: &'a [f64],
    ) -> Result<Self> {
        kernel.check()?;
        let (m, q) = coefficients.dim();
        Error::check_len("rows of the coefficients (one for each vector)", vectors.rows(), m)?;
        Error::check_len("columns of the coefficients (one for each intercept)", intercepts.len(), q)?;
        if intercepts.is_empty() {
            return Err(Error::param("intercepts", "[]", "at least one number, one for each output"));
        }
        let Some(flat) = coefficients.to_slice() else {
            let strides = [coefficients.strides()[0], coefficients.strides()[1]];
            return Err(Error::Layout { strides });
        };
        Error::check_finite("coefficients", flat.iter().copied(), q)?;
        Error::check_finite("intercepts", intercepts.iter().copied(), 1)?;
        Ok(Self { kernel, vectors: vectors.reborrow(), coefficients: coefficients.reborrow(), intercepts })
    }

    /// B row after row.
    ///
    /// # Panics
    /// If the coefficients are not row-major, which [`ExpansionView::new`] checks.
    pub(crate) fn flat(&self) -> &'a [f64] {
        self.coefficients.to_slice().expect("the layout was checked when the expansion was made")
    }

    /// The same expansion for a shorter time, as [`Rows::reborrow`].
    pub fn reborrow<'b>(self) -> ExpansionView<'b>
    where
        'a: 'b,
    {
        let Self { kernel, vectors, coefficients, intercepts } = self;
        ExpansionView {
            kernel,
            vectors: vectors.reborrow(),
            coefficients: coefficients.reborrow(),
            intercepts,
        }
    }

    /// Returns the number of outputs q, the columns of the coefficients.
    pub fn outputs(&self) -> usize {
        self.intercepts.len()
    }

    /// Number of vectors m.
    pub fn len(&self) -> usize {
        self.vectors.rows()
    }

    /// Returns true if there are no vectors, so that the outputs are constant.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A kernel expansion that owns its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelExpansion {
    /// The kernel k, whose values are computed between the vectors and each row.
    pub kernel: Kernel,
    /// The m vectors z_i, shared with what evaluates them.
    pub vectors: Arc<OwnedRows>,
    /// B, (m, q), row-major.
    pub coefficients: Array2<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
}

impl KernelExpansion {
    /// Checks that the sizes agree and the numbers are finite.
    pub fn new(
        kernel: Kernel,
        vectors: OwnedRows,
        coefficients: Array2<f64>,
        intercepts: Vec<f64>,
    ) -> Result<Self> {
        ExpansionView::new(kernel, vectors.view(), coefficients.view(), &intercepts)?;
        Ok(Self { kernel, vectors: Arc::new(vectors), coefficients, intercepts })
    }

    /// Returns a view, as evaluators and reducers take it.
    pub fn view(&self) -> ExpansionView<'_> {
        ExpansionView {
            kernel: self.kernel,
            vectors: self.vectors.view(),
            coefficients: self.coefficients.view(),
            intercepts: &self.intercepts,
        }
    }
}
