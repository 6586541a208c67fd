//! Functions of a dictionary (Vincent and Bengio, 4.1): k(., z) around points z, columns of given values, or functions that
//! the caller computes. A function is known by its values on the training rows and, if there are any, on the validation
//! rows; values are requested in blocks of functions.

use super::basis::SPAN_TOLERANCE;
use crate::context::Context;
use crate::data::{Element, Rows};
use crate::error::{Error, Result};
use crate::kernels::{CoefficientSum, Kernel, PackedVectors, check_conditioning};
use crate::memory::{try_vec, try_zero_matrix};
use crate::once::OnceCell;
use crate::simd::Real;
use crate::with_rows;
use ndarray::{ArrayView2, ArrayViewMut2};

/// Columns of a precomputed kernel that a task reads: two cache lines of a row.
const COLUMNS_PER_TASK: usize = 16;

/// Maximum rounding error of the squared distances between rows, relative to them: the distance of a function from the span is
/// about their square, relative to its squared norm.
const MAX_RELATIVE_ROUNDING: f64 = 1e-6;

const ROW_MAJOR: &str = "values are written to row-major lines";

/// The rows on which functions are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSet {
    /// The rows of the loss.
    Training,
    /// The rows of early stopping.
    Validation,
}

/// A part of a dictionary.
pub trait Functions: Sync {
    /// Number of functions.
    fn count(&self) -> usize;

    /// Returns the number of rows of a set; it is 0 for the validation rows if there are none.
    fn rows(&self, set: RowSet) -> usize;

    /// Returns the share of a function's squared norm up to which its squared distance from the span of others counts as zero; 0
    /// for functions that may share a large part, as those of kernels without a bound do on rows far from the origin: then
    /// the rounding of the distance decides.
    fn span_tolerance(&self) -> f64 {
        SPAN_TOLERANCE
    }

    /// Writes the values of some functions on all rows of a set, a row-major line a function.
    ///
    /// # Errors
    /// Any error of the source.
    fn fill(&self, which: &[usize], set: RowSet, out: ArrayViewMut2<'_, f64>, ctx: Context<'_>)
    -> Result<()>;

    /// Writes the values in single precision.
    ///
    /// # Errors
    /// The errors of [`Functions::fill`].
    fn fill_single(
        &self,
        which: &[usize],
        set: RowSet,
        mut out: ArrayViewMut2<'_, f32>,
        ctx: Context<'_>,
    ) -> Result<()> {
        let mut values = try_zero_matrix("a matrix of results", out.dim())?;
        self.fill(which, set, values.view_mut(), ctx)?;
        out.zip_mut_with(&values, |out, &v| *out = v as f32);
        Ok(())
    }
}

/// k(., z) for some points z and one kernel.
pub struct KernelFunctions<'a> {
    kernel: Kernel,
    points: Rows<'a>,
    training: Rows<'a>,
    validation: Option<Rows<'a>>,
    /// The sets in the form that kernel values are computed from, made at the first request: a pursuit requests one function a step.
    double: Packed<f64>,
    single: Packed<f32>,
}

/// The sets in one precision.
type Packed<T> = [OnceCell<PackedVectors<T>>; 2];

impl<'a> KernelFunctions<'a> {
    /// For the precomputed kernel a point is a row of one number, the index of a column of the rows.
    ///
    /// # Errors
    /// [`Error::Shape`] where the columns disagree, [`Error::Param`] for points outside the kernel's domain,
    /// [`Error::NotFinite`].
    pub fn new(
        kernel: Kernel,
        points: Rows<'a>,
        training: Rows<'a>,
        validation: Option<Rows<'a>>,
    ) -> Result<Self> {
        kernel.check()?;
        if kernel == Kernel::Precomputed {
            let beyond = indices(points).into_iter().find(|&j| j >= training.cols());
            Error::check_len(
                "columns of precomputed X",
                beyond.map_or(training.cols(), |j| j + 1),
                training.cols(),
            )?;
        } else {
            Error::check_len("columns of the points", training.cols(), points.cols())?;
            kernel.check_rows("points", points)?;
            kernel.check_rows("rows", training)?;
            points.check_finite("points")?;
            training.check_finite("rows")?;
            check_conditioning("X", kernel.into(), training, CoefficientSum::Any, MAX_RELATIVE_ROUNDING)?;
        }
        if let Some(rows) = validation {
            Error::check_len("columns of the validation rows", training.cols(), rows.cols())?;
            kernel.check_rows("validation rows", rows)?;
            rows.check_finite("validation rows")?;
        }
        let (double, single) = Default::default();
        Ok(Self { kernel, points, training, validation, double, single })
    }

    fn set(&self, set: RowSet) -> Option<Rows<'a>> {
        match set {
            RowSet::Training => Some(self.training),
            RowSet::Validation => self.validation,
        }
    }

    fn values<T: Real>(
        &self,
        packed: &Packed<T>,
        which: &[usize],
        set: RowSet,
        mut out: ArrayViewMut2<'_, T>,
        ctx: Context<'_>,
    ) -> Result<()> {
        let Some(rows) = self.set(set) else { return Ok(()) };
        if self.kernel == Kernel::Precomputed {
            return self.given(which, rows, out, ctx);
        }
        let columns =
            packed[set as usize].get_or_try_init(|| PackedVectors::packed(self.kernel, rows, ctx))?;
        columns.values_by(self.points, which, out.as_slice_mut().expect(ROW_MAJOR), ctx)
    }

    /// Values of the precomputed kernel: columns of the rows.
    fn given<T: Real>(
        &self,
        which: &[usize],
        rows: Rows<'_>,
        mut out: ArrayViewMut2<'_, T>,
        ctx: Context<'_>,
    ) -> Result<()> {
        let (n, columns) = (rows.rows(), indices(self.points.gather(which)?.view()));
        ctx.try_for_each_chunk(
            out.as_slice_mut().expect(ROW_MAJOR),
            COLUMNS_PER_TASK * n.max(1),
            |task, out| {
                let columns = &columns[task * COLUMNS_PER_TASK..][..out.len() / n];
                with_rows!(
                    rows,
                    dense(d) => for i in 0..n {
                        let row = crate::data::row(&d, i);
                        for (c, &column) in columns.iter().enumerate() {
                            out[c * n + i] = T::from_f64(Element::to_f64(row[column]));
                        }
                    },
                    csr(s) => {
                        let mut values = try_vec![0.0; s.cols()]?;
                        for i in 0..n {
                            s.for_each_in_row(i, |j, v| values[j] = Element::to_f64(v));
                            for (c, &column) in columns.iter().enumerate() {
                                out[c * n + i] = T::from_f64(values[column]);
                            }
                            s.for_each_in_row(i, |j, _| values[j] = 0.0);
                        }
                    }
                );
                Ok(())
            },
        )
    }
}

/// The column numbers that points of a precomputed kernel stand for.
fn indices(points: Rows<'_>) -> Vec<usize> {
    (0..points.rows())
        .map(|i| {
            let mut index = 0;
            points.for_each_in_row(i, |_, v| index = v as usize);
            index
        })
        .collect()
}

impl Functions for KernelFunctions<'_> {
    fn count(&self) -> usize {
        self.points.rows()
    }

    fn rows(&self, set: RowSet) -> usize {
        self.set(set).map_or(0, |rows| rows.rows())
    }

    fn span_tolerance(&self) -> f64 {
        match self.kernel {
            Kernel::Linear | Kernel::Polynomial { .. } => 0.0,
            _ => SPAN_TOLERANCE,
        }
    }

    fn fill(
        &self,
        which: &[usize],
        set: RowSet,
        out: ArrayViewMut2<'_, f64>,
        ctx: Context<'_>,
    ) -> Result<()> {
        self.values(&self.double, which, set, out, ctx)
    }

    fn fill_single(
        &self,
        which: &[usize],
        set: RowSet,
        out: ArrayViewMut2<'_, f32>,
        ctx: Context<'_>,
    ) -> Result<()> {
        self.values(&self.single, which, set, out, ctx)
    }
}

/// Functions that are given by their values, (rows, functions).
pub struct Columns<'a> {
    values: [ArrayView2<'a, f64>; 2],
}

impl<'a> Columns<'a> {
    /// # Errors
    /// [`Error::Shape`] where the sets have different functions, [`Error::NotFinite`].
    pub fn new(training: ArrayView2<'a, f64>, validation: ArrayView2<'a, f64>) -> Result<Self> {
        Error::check_len("columns of the validation values", training.ncols(), validation.ncols())?;
        for values in [training, validation] {
            if let Some(row) = values.rows().into_iter().position(|row| row.iter().any(|v| !v.is_finite())) {
                return Err(Error::NotFinite { what: "values of functions", row });
            }
        }
        Ok(Self { values: [training, validation] })
    }
}

impl Functions for Columns<'_> {
    fn count(&self) -> usize {
        self.values[0].ncols()
    }

    fn rows(&self, set: RowSet) -> usize {
        self.values[set as usize].nrows()
    }

    fn fill(
        &self,
        which: &[usize],
        set: RowSet,
        mut out: ArrayViewMut2<'_, f64>,
        _: Context<'_>,
    ) -> Result<()> {
        for (i, line) in self.values[set as usize].rows().into_iter().enumerate() {
            for (c, &column) in which.iter().enumerate() {
                out[[c, i]] = line[column];
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::pair;
    use ndarray::Array2;

    #[test]
    fn parts_give_the_values_of_their_functions() {
        let x: Vec<f64> = (0..21).map(|i| f64::from(i).sin()).collect();
        let rows: Rows<'_> = Rows::from_shape((7, 3), &x).unwrap();
        let validation: Rows<'_> = Rows::from_shape((2, 3), &x[3..9]).unwrap();
        let kernel = Kernel::Rbf { gamma: 0.3 };
        let part = KernelFunctions::new(kernel, rows, rows, Some(validation)).unwrap();
        assert_eq!((part.count(), part.rows(RowSet::Training), part.rows(RowSet::Validation)), (7, 7, 2));
        for (set, rows_of, n) in [(RowSet::Training, rows, 7), (RowSet::Validation, validation, 2)] {
            let mut out = Array2::zeros((2, n));
            part.fill(&[5, 1], set, out.view_mut(), Context::SEQUENTIAL).unwrap();
            for (c, j) in [5, 1].into_iter().enumerate() {
                for i in 0..n {
                    assert!((out[[c, i]] - pair(&kernel, rows_of, i, rows, j)).abs() < 1e-14);
                }
            }
        }
        // The matrix of `rows` as given values, and as a precomputed kernel.
        let index = [2.0, 0.0];
        let points: Rows<'_> = Rows::from_shape((2, 1), &index).unwrap();
        let precomputed = KernelFunctions::new(Kernel::Precomputed, points, rows, None).unwrap();
        let (x, none) = (ArrayView2::from_shape((7, 3), &x).unwrap(), Array2::zeros((0, 3)));
        let columns = Columns::new(x, none.view()).unwrap();
        let (mut from_kernel, mut from_columns) = (Array2::zeros((2, 7)), Array2::zeros((2, 7)));
        precomputed.fill(&[0, 1], RowSet::Training, from_kernel.view_mut(), Context::SEQUENTIAL).unwrap();
        columns.fill(&[2, 0], RowSet::Training, from_columns.view_mut(), Context::SEQUENTIAL).unwrap();
        assert_eq!(from_kernel, from_columns);
        assert_eq!(from_kernel.row(1), x.column(0));
        let beyond = [3.0];
        let points: Rows<'_> = Rows::from_shape((1, 1), &beyond).unwrap();
        assert!(KernelFunctions::new(Kernel::Precomputed, points, rows, None).is_err());
        assert!(Columns::new(x, Array2::zeros((0, 4)).view()).is_err());
    }
}
