//! Functions of a dictionary (Vincent and Bengio, 4.1): k(., z) around points z, columns of given values, or whatever the
//! caller computes. A function is known by its values on the training rows and, where there are some, on the validation
//! rows; values are asked for in blocks of functions.

use crate::control::Par;
use crate::data::{Element, Rows};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, PackedVectors};
use crate::simd::Real;
use crate::with_rows;
use std::sync::OnceLock;

/// Columns of a precomputed kernel that a task reads: two cache lines of a row.
const GROUP: usize = 16;

/// Which rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSet {
    /// Those that the loss is about.
    Training,
    /// Those that are watched.
    Validation,
}

/// A part of a dictionary.
pub trait Functions: Sync {
    /// Number of functions.
    fn count(&self) -> usize;

    /// Number of rows of a set.
    fn rows(&self, set: RowSet) -> usize;

    /// Writes the values of some functions on all rows of a set, function after function.
    ///
    /// # Errors
    /// Whatever keeps the values from being known.
    fn fill(&self, which: &[usize], set: RowSet, out: &mut [f64], par: Par) -> Result<()>;

    /// As [`Functions::fill`], in single precision.
    ///
    /// # Errors
    /// As [`Functions::fill`].
    fn fill_single(&self, which: &[usize], set: RowSet, out: &mut [f32], par: Par) -> Result<()> {
        let mut values = vec![0.0; out.len()];
        self.fill(which, set, &mut values, par)?;
        narrow(&values, out);
        Ok(())
    }
}

/// k(., z) for some points z and one kernel.
pub struct KernelFunctions<'a> {
    kernel: Kernel,
    points: Rows<'a>,
    training: Rows<'a>,
    validation: Option<Rows<'a>>,
    /// The sets as kernel values want them, made when they are first asked for: a pursuit asks for one function a step.
    packed: Packed,
}

#[derive(Default)]
struct Packed {
    training: OnceLock<PackedVectors<f64>>,
    training_single: OnceLock<PackedVectors<f32>>,
    validation: OnceLock<PackedVectors<f64>>,
    validation_single: OnceLock<PackedVectors<f32>>,
}

/// Picks the place of a precision.
trait Place: Real {
    fn of(packed: &Packed, set: RowSet) -> &OnceLock<PackedVectors<Self>>;
}

impl Place for f64 {
    fn of(packed: &Packed, set: RowSet) -> &OnceLock<PackedVectors<Self>> {
        match set {
            RowSet::Training => &packed.training,
            RowSet::Validation => &packed.validation,
        }
    }
}

impl Place for f32 {
    fn of(packed: &Packed, set: RowSet) -> &OnceLock<PackedVectors<Self>> {
        match set {
            RowSet::Training => &packed.training_single,
            RowSet::Validation => &packed.validation_single,
        }
    }
}

impl<'a> KernelFunctions<'a> {
    /// For the precomputed kernel a point is a row of one number, the index of a column of the rows.
    ///
    /// # Errors
    /// [`Error::Shape`] where the columns disagree, [`Error::Param`] for points outside the kernel's domain.
    pub fn new(
        kernel: Kernel,
        points: Rows<'a>,
        training: Rows<'a>,
        validation: Option<Rows<'a>>,
    ) -> Result<Self> {
        kernel.check()?;
        if kernel == Kernel::Precomputed {
            for j in indices(points) {
                if j >= training.cols() {
                    return Err(Error::Shape {
                        what: "columns of precomputed X",
                        expected: j + 1,
                        found: training.cols(),
                    });
                }
            }
        } else {
            Error::check_len("columns of the points", training.cols(), points.cols())?;
            kernel.check_rows("points", points)?;
            kernel.check_rows("rows", training)?;
        }
        if let Some(rows) = validation {
            Error::check_len("columns of the validation rows", training.cols(), rows.cols())?;
            kernel.check_rows("validation rows", rows)?;
        }
        Ok(Self { kernel, points, training, validation, packed: Packed::default() })
    }

    fn set(&self, set: RowSet) -> Option<Rows<'a>> {
        match set {
            RowSet::Training => Some(self.training),
            RowSet::Validation => self.validation,
        }
    }

    fn values<T: Place>(&self, which: &[usize], set: RowSet, out: &mut [T], par: Par) {
        let Some(rows) = self.set(set) else { return };
        let columns = T::of(&self.packed, set)
            .get_or_init(|| PackedVectors::between(self.kernel, self.points, rows, par));
        columns.values_by(self.points, which, out, par);
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

    fn fill(&self, which: &[usize], set: RowSet, out: &mut [f64], par: Par) -> Result<()> {
        if self.kernel != Kernel::Precomputed {
            self.values(which, set, out, par);
            return Ok(());
        }
        let Some(rows) = self.set(set) else { return Ok(()) };
        let (n, columns) = (rows.rows(), indices(self.points.gather(which).view()));
        par.for_each_chunk(out, GROUP * n.max(1), |task, out| {
            let columns = &columns[task * GROUP..][..out.len() / n];
            with_rows!(
                rows,
                dense(d) => for i in 0..n {
                    let row = d.row(i);
                    for (c, &column) in columns.iter().enumerate() {
                        out[c * n + i] = Element::to_f64(row[column]);
                    }
                },
                csr(s) => {
                    let mut values = vec![0.0; s.cols()];
                    for i in 0..n {
                        s.for_each_in_row(i, |j, v| values[j] = Element::to_f64(v));
                        for (c, &column) in columns.iter().enumerate() {
                            out[c * n + i] = values[column];
                        }
                        s.for_each_in_row(i, |j, _| values[j] = 0.0);
                    }
                }
            );
        });
        Ok(())
    }

    fn fill_single(&self, which: &[usize], set: RowSet, out: &mut [f32], par: Par) -> Result<()> {
        if self.kernel != Kernel::Precomputed {
            self.values(which, set, out, par);
            return Ok(());
        }
        let mut values = vec![0.0; out.len()];
        self.fill(which, set, &mut values, par)?;
        narrow(&values, out);
        Ok(())
    }
}

/// Rounds to single precision.
fn narrow(values: &[f64], out: &mut [f32]) {
    out.iter_mut().zip(values).for_each(|(out, &v)| *out = v as f32);
}

/// Functions that are given by their values, (rows, functions) row-major.
pub struct Columns<'a> {
    count: usize,
    training: &'a [f64],
    validation: &'a [f64],
}

impl<'a> Columns<'a> {
    /// # Errors
    /// [`Error::Shape`] where the sizes are no multiples of `count`, [`Error::NotFinite`].
    pub fn new(count: usize, training: &'a [f64], validation: &'a [f64]) -> Result<Self> {
        for values in [training, validation] {
            let rows = values.len() / count.max(1);
            Error::check_len("values of functions (rows times functions)", rows * count, values.len())?;
            if let Some(at) = values.iter().position(|v| !v.is_finite()) {
                return Err(Error::NotFinite { what: "values of functions", row: at / count });
            }
        }
        Ok(Self { count, training, validation })
    }

    fn set(&self, set: RowSet) -> &'a [f64] {
        match set {
            RowSet::Training => self.training,
            RowSet::Validation => self.validation,
        }
    }
}

impl Functions for Columns<'_> {
    fn count(&self) -> usize {
        self.count
    }

    fn rows(&self, set: RowSet) -> usize {
        self.set(set).len() / self.count.max(1)
    }

    fn fill(&self, which: &[usize], set: RowSet, out: &mut [f64], _: Par) -> Result<()> {
        let n = self.rows(set);
        for (i, line) in self.set(set).chunks_exact(self.count.max(1)).enumerate() {
            for (c, &column) in which.iter().enumerate() {
                out[c * n + i] = line[column];
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::kernels::pair;

    #[test]
    fn parts_give_the_values_of_their_functions() {
        let x: Vec<f64> = (0..21).map(|i| f64::from(i).sin()).collect();
        let rows: Rows<'_> = Rows::from_shape((7, 3), &x).unwrap();
        let validation: Rows<'_> = Rows::from_shape((2, 3), &x[3..9]).unwrap();
        let kernel = Kernel::Rbf { gamma: 0.3 };
        let part = KernelFunctions::new(kernel, rows, rows, Some(validation)).unwrap();
        assert_eq!((part.count(), part.rows(RowSet::Training), part.rows(RowSet::Validation)), (7, 7, 2));
        for (set, rows_of, n) in [(RowSet::Training, rows, 7), (RowSet::Validation, validation, 2)] {
            let mut out = vec![0.0; 2 * n];
            part.fill(&[5, 1], set, &mut out, Par::Sequential).unwrap();
            for (c, j) in [5, 1].into_iter().enumerate() {
                for i in 0..n {
                    assert!((out[c * n + i] - pair(&kernel, rows_of, i, rows, j)).abs() < 1e-14);
                }
            }
        }
        // The matrix of `rows` as given values, and as a precomputed kernel.
        let index = [2.0, 0.0];
        let points: Rows<'_> = Rows::from_shape((2, 1), &index).unwrap();
        let precomputed = KernelFunctions::new(Kernel::Precomputed, points, rows, None).unwrap();
        let given = Columns::new(3, &x, &[]).unwrap();
        let (mut one, mut two) = (vec![0.0; 14], vec![0.0; 14]);
        precomputed.fill(&[0, 1], RowSet::Training, &mut one, Par::Sequential).unwrap();
        given.fill(&[2, 0], RowSet::Training, &mut two, Par::Sequential).unwrap();
        assert_eq!(one, two);
        assert_eq!(one[7..], (0..7).map(|i| x[3 * i]).collect::<Vec<_>>());
        let beyond = [3.0];
        let points: Rows<'_> = Rows::from_shape((1, 1), &beyond).unwrap();
        assert!(KernelFunctions::new(Kernel::Precomputed, points, rows, None).is_err());
        assert!(Columns::new(4, &x, &[]).is_err());
    }
}
