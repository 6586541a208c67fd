//! The input of the methods, an expansion with its kernel matrix, and their result: vectors in an order.
//!
//! Invariant: kernel matrices are exactly symmetric with an exact diagonal. Cost: m^2 / 2 kernel values, m^2 numbers.

use crate::context::{Context, StopReason};
use crate::data::Rows;
use crate::error::Result;
use crate::expansion::ExpansionView;
use crate::kernels::{Kernel, PackedVectors, diagonal};
use crate::memory::{TryCollect, TryGrow, try_zeros};
use crate::simd::blas::axpy;

/// The norm of the coefficients of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Norm {
    /// |b|_1: each output chooses its own vectors.
    Each,
    /// max |b|: all outputs share their vectors.
    #[default]
    Joint,
}

/// An expansion with its kernel matrix.
pub(super) struct Problem<'a, 'e> {
    pub(super) target: &'a ExpansionView<'e>,
    /// K of its vectors, (m, m).
    pub(super) gram: &'a [f64],
    /// Maximum number of vectors of the order.
    pub(super) max_vectors: usize,
    pub(super) ctx: Context<'a>,
}

impl Problem<'_, '_> {
    /// Returns k(z, z) of every vector.
    pub(super) fn diagonal(&self) -> impl Iterator<Item = f64> + Clone {
        self.gram.iter().step_by(self.target.len() + 1).copied()
    }

    /// Returns the largest k(z, z).
    pub(super) fn max_diagonal(&self) -> f64 {
        self.diagonal().fold(0.0, f64::max)
    }

    /// Returns K A for A (m, q).
    pub(super) fn times(&self, a: &[f64]) -> Result<Vec<f64>> {
        let (m, q) = (self.target.len(), self.target.outputs());
        let mut out = try_zeros("the outputs at the vectors", m * q)?;
        self.ctx.counter("product", m).for_each_batch(m, (m * q) as u64, |lines, _| {
            self.ctx.for_each_chunk(&mut out[lines.start * q..lines.end * q], q, |i, out| {
                let i = lines.start + i;
                for (&k, a) in self.gram[i * m..(i + 1) * m].iter().zip(a.chunks_exact(q)) {
                    if k != 0.0 {
                        axpy(k, a, out);
                    }
                }
            });
            Ok(())
        })?;
        Ok(out)
    }
}

/// Vectors in the order in which they are chosen.
#[derive(Debug, PartialEq)]
pub(super) struct Order {
    pub(super) vectors: Vec<usize>,
    /// The lambda at which each vector entered, for penalised paths.
    pub(super) penalties: Vec<f64>,
    /// The penalised coefficients of every size, if they are kept.
    pub(super) coefficients: Option<Coefficients>,
    pub(super) reason: StopReason,
}

impl Order {
    /// Returns an order without penalties and coefficients.
    pub(super) fn new(vectors: Vec<usize>, reason: StopReason) -> Self {
        Self { vectors, penalties: Vec::new(), coefficients: None, reason }
    }
}

/// Coefficients of sizes 1, 2, ..., each stored as its difference from the one before, as basic steps are (`path`).
#[derive(Debug, PartialEq)]
pub(super) struct Coefficients {
    outputs: usize,
    /// (steps, q).
    pub(super) changes: Vec<f64>,
    /// Place of the vector of each step in the order.
    pub(super) vector_of_step: Vec<usize>,
    /// Number of steps of each size.
    pub(super) steps_of_size: Vec<usize>,
    /// Coefficients of the last size.
    last: Vec<f64>,
}

impl Coefficients {
    /// Returns coefficients of no size.
    pub(super) fn new(outputs: usize) -> Self {
        let (changes, last) = (Vec::new(), Vec::new());
        Self { outputs, changes, vector_of_step: Vec::new(), steps_of_size: Vec::new(), last }
    }

    /// Returns q.
    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Sets the coefficients (size, q) of the last size, or appends those of the next. Size 0 is ignored.
    pub(super) fn set(&mut self, rows: &[f64]) -> Result<()> {
        let (q, size) = (self.outputs, rows.len() / self.outputs);
        if size == 0 {
            return Ok(());
        }
        if self.steps_of_size.len() == size {
            self.remove_last();
        }
        self.last.try_resize(rows.len(), 0.0)?;
        for (place, (old, new)) in self.last.chunks_exact_mut(q).zip(rows.chunks_exact(q)).enumerate() {
            if old != new {
                self.changes.try_extend(new.iter().zip(&*old).map(|(new, old)| new - old))?;
                self.vector_of_step.push(place);
                old.copy_from_slice(new);
            }
        }
        self.steps_of_size.push(self.vector_of_step.len());
        Ok(())
    }

    /// Removes the last size.
    fn remove_last(&mut self) {
        self.steps_of_size.pop();
        let steps = self.steps_of_size.last().copied().unwrap_or(0);
        let q = self.outputs;
        for (change, place) in self.changes[steps * q..].chunks_exact(q).zip(&self.vector_of_step[steps..]) {
            axpy(-1.0, change, &mut self.last[place * q..(place + 1) * q]);
        }
        self.changes.truncate(steps * q);
        self.vector_of_step.truncate(steps);
        self.last.truncate(self.steps_of_size.len() * q);
    }
}

/// Returns K of some vectors, (m, m), with an exact diagonal and exact symmetry.
pub(in crate::reduced_set) fn kernel_matrix(
    kernel: &Kernel,
    vectors: Rows<'_>,
    ctx: Context<'_>,
) -> Result<Vec<f64>> {
    const WORK_PER_CHECK: usize = 400_000_000;
    let m = vectors.rows();
    let packed = PackedVectors::new(*kernel, vectors, ctx)?;
    let mut k = try_zeros("a kernel matrix", m * m)?;
    let lines = (WORK_PER_CHECK / (m * vectors.cols().max(1)).max(1)).max(16 * ctx.threads());
    for (part, out) in k.chunks_mut((lines * m).max(1)).enumerate() {
        ctx.check("kernel matrix", part * lines, m)?;
        let list: Vec<usize> = (part * lines..part * lines + out.len() / m).try_collect_vec()?;
        packed.values_by(vectors, &list, out, ctx)?;
    }
    for (i, own) in diagonal(kernel, vectors)?.into_iter().enumerate() {
        k[i * m + i] = own;
    }
    mirror(&mut k, m);
    Ok(k)
}

/// Copies the upper triangle of a matrix (m, m) to the lower one, in tiles that stay in the first cache.
pub(super) fn mirror(a: &mut [f64], m: usize) {
    const TILE: usize = 32;
    for i in (0..m).step_by(TILE) {
        for j in (0..=i).step_by(TILE) {
            for row in i..m.min(i + TILE) {
                for column in j..row.min(j + TILE) {
                    a[row * m + column] = a[column * m + row];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::flat;
    use crate::kernels::gram_symmetric;

    #[test]
    fn the_matrix_is_that_of_all_pairs_bit_for_bit() {
        for (m, d) in [(1, 3), (33, 5), (300, 17)] {
            let x: Vec<f64> = (0..m * d).map(|i| ((i * i) as f64 * 0.37).sin().abs() + 3.0).collect();
            let x32: Vec<f32> = x.iter().map(|&v| v as f32).collect();
            let (double, single): (Rows<'_>, Rows<'_>) =
                (Rows::from_shape((m, d), &x).unwrap(), Rows::from_shape((m, d), &x32).unwrap());
            for rows in [double, single] {
                for kernel in [
                    Kernel::Linear,
                    Kernel::Polynomial { degree: 3, gamma: 0.3, coef0: 0.5 },
                    Kernel::Rbf { gamma: 0.4 },
                    Kernel::Sigmoid { gamma: 0.2, coef0: -0.1 },
                    Kernel::Laplacian { gamma: 0.3 },
                    Kernel::ChiSquared { gamma: 0.5 },
                    Kernel::Matern { smoothness: crate::kernels::Smoothness::Half, gamma: 0.5 },
                ] {
                    let plain = flat(gram_symmetric(&kernel, rows, Context::SEQUENTIAL).unwrap());
                    assert_eq!(
                        plain,
                        kernel_matrix(&kernel, rows, Context::default()).unwrap(),
                        "{kernel:?}"
                    );
                }
            }
        }
    }
}
