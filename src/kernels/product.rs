//! The fused product K(X, Z) B: a tile of kernel values is multiplied by its coefficients while it is in the first cache,
//! so K is never stored. All outputs share the kernel values.
//!
//! Coefficients are packed panel by panel with their zero columns left out: in a one-vs-one model a vector serves
//! only the machines of its own class. Consecutive panels with the same live outputs form a group; sums are kept in
//! the precision of the rows within a group of at most 2,048 vectors and in double precision between groups.
//!
//! Cost: n m kernel values and n times the non-zeros of B; memory one tile a thread.

use super::pack::Panels;
use super::tile::for_each_tile;
use crate::data::{RowSet, Rows};
use crate::error::Result;
use crate::memory::{self, TryGrow};
use crate::simd::coefficients::{ApplyCoefficients, apply_few_coefficients};
use crate::simd::micro::panel_width;
use crate::simd::{Real, lanes};

/// Context reported when the allocation of packed coefficients fails.
const MODEL: &str = "a packed model";
/// Maximum number of rows of a block.
pub(super) const MAX_BLOCK_ROWS: usize = 96;
/// Maximum number of live outputs that each take one dot product per tile line; more take a small matrix product.
const MAX_DOT_OUTPUTS: usize = 6;
/// Maximum number of vectors summed in the precision of the rows before the sum is moved to double precision.
const MAX_GROUP_VECTORS: usize = 2048;

/// Consecutive panels with the same live outputs.
struct Group {
    panels: std::ops::Range<usize>,
    outputs: Vec<usize>,
    /// Start of the packed coefficients of the group's first panel.
    start: usize,
}

/// Coefficients in the layout of the panels of their vectors.
pub(super) struct PackedCoefficients<T> {
    groups: Vec<Group>,
    /// In units of each output, so that no coefficient is above 2.
    values: Vec<T>,
    units: Vec<f64>,
}

impl<T: Real> PackedCoefficients<T> {
    /// Packs coefficients (m, q), row-major.
    pub(super) fn new(coefficients: &[f64], q: usize) -> Result<Self> {
        let (m, width) = (coefficients.len() / q, panel_width::<T>());
        let units = units(coefficients, q);
        let (mut groups, mut values): (Vec<Group>, Vec<T>) = (Vec::new(), Vec::new());
        for p in 0..m.div_ceil(width) {
            let rows = p * width..m.min((p + 1) * width);
            let of_panel = &coefficients[rows.start * q..rows.end * q];
            let outputs: Vec<usize> =
                (0..q).filter(|&j| of_panel.iter().skip(j).step_by(q).any(|&c| c != 0.0)).collect();
            match groups.last_mut() {
                Some(group) if group.outputs == outputs && group.panels.len() * width < MAX_GROUP_VECTORS => {
                    group.panels.end = p + 1;
                }
                _ => groups.push(Group { panels: p..p + 1, outputs: outputs.clone(), start: values.len() }),
            }
            let value =
                |c: usize, j: usize| of_panel.get(c * q + j).map_or(T::ZERO, |&v| T::from_f64(v / units[j]));
            memory::try_reserve(MODEL, &mut values, outputs.len().next_multiple_of(lanes::<T>()) * width)?;
            if outputs.len() <= MAX_DOT_OUTPUTS {
                for &j in &outputs {
                    values.extend((0..width).map(|c| value(c, j)));
                }
            } else {
                for part in outputs.chunks(lanes::<T>()) {
                    for c in 0..width {
                        values.extend(part.iter().map(|&j| value(c, j)));
                        values.extend((part.len()..lanes::<T>()).map(|_| T::ZERO));
                    }
                }
            }
        }
        Ok(Self { groups, values, units })
    }

    /// Adds K(X, Z) B to the outputs of a few rows. Rows that the precision of the panels does not suffice for are added to
    /// `uncovered`; their outputs are unspecified.
    pub(super) fn add_product(
        &self,
        panels: &Panels<T>,
        x: Rows<'_>,
        list: &[usize],
        out: &mut [f64],
        uncovered: &RowSet,
    ) -> Result<()> {
        let (q, width, lanes) = (self.units.len(), panels.width(), lanes::<T>());
        let block = panels.block(x, list)?;
        // Some kernels have values for infinities that look valid.
        let is_usable = |i: usize| {
            let is_finite = || x.check_finite_within("X", list[i]..list[i] + 1).is_ok();
            panels.suffices(&block, i) && (block.norms[i].to_f64().is_finite() || is_finite())
        };
        let mut usable = 0;
        for (i, &row) in list.iter().enumerate() {
            if is_usable(i) {
                usable += 1;
            } else {
                uncovered.insert(row);
            }
        }
        if usable == 0 {
            return Ok(());
        }
        let mut sums: Vec<T> = Vec::new();
        for group in &self.groups {
            let live = group.outputs.len();
            if live == 0 {
                continue;
            }
            let few = live <= MAX_DOT_OUTPUTS;
            // Columns of `sums`: one vector an output, or one number an output padded to whole vectors.
            let (stride, per_panel) = if few {
                (live * lanes, live * width)
            } else {
                (live.next_multiple_of(lanes), live.next_multiple_of(lanes) * width)
            };
            sums.clear();
            sums.try_resize(list.len() * stride, T::ZERO)?;
            for_each_tile(&block, panels, group.panels.clone(), MAX_BLOCK_ROWS, |row, rows, p, tile| {
                let start = group.start + (p - group.panels.start) * per_panel;
                let coefficients = &self.values[start..start + per_panel];
                let out = &mut sums[row * stride..(row + rows) * stride];
                if few {
                    apply_few_coefficients(tile, rows, coefficients, live, out);
                } else {
                    ApplyCoefficients { tile, rows, coefficients, groups: stride / lanes, out }.compute();
                }
            })?;
            for (sums, out) in sums.chunks_exact(stride).zip(out.chunks_exact_mut(q)) {
                for (k, &output) in group.outputs.iter().enumerate() {
                    let sum: f64 = if few {
                        sums[k * lanes..(k + 1) * lanes].iter().map(|v| v.to_f64()).sum()
                    } else {
                        sums[k].to_f64()
                    };
                    out[output] += self.units[output] * sum;
                }
            }
        }
        Ok(())
    }
}

/// Returns a power of two near the largest coefficient of each output: dividing by it changes no digit.
pub(super) fn units(coefficients: &[f64], q: usize) -> Vec<f64> {
    let unit = |j: usize| {
        let largest = coefficients.iter().skip(j).step_by(q).fold(0.0_f64, |largest, v| largest.max(v.abs()));
        if largest > 0.0 { largest.log2().floor().clamp(-1000.0, 1000.0).exp2() } else { 1.0 }
    };
    (0..q).map(unit).collect()
}

#[cfg(test)]
mod tests {
    use crate::context::Context;
    use crate::data::{Rows, matrix, to_csr};
    use crate::expansion::ExpansionView;
    use crate::kernels::{Evaluator, Kernel, KernelRows, Precision, gram};

    #[test]
    fn fused_equals_stored_for_every_number_of_outputs() {
        for (n, m, d, q) in [
            (1, 50, 5, 1),
            (130, 301, 7, 1),
            (97, 100, 2, 5),
            (200, 65, 11, 10),
            (50, 200, 4, 45),
            (5, 0, 3, 2),
        ] {
            let x: Vec<f64> = (0..n * d).map(|i| (i as f64 * 0.37).sin()).collect();
            let z: Vec<f64> = (0..m * d).map(|i| (i as f64 * 0.71).cos()).collect();
            // Blocks of zeros, as a one-vs-one model has.
            let b: Vec<f64> = (0..m * q)
                .map(|i| if (i / q / 40 + i % q) % 3 == 0 { 0.0 } else { (i as f64 * 0.13).sin() })
                .collect();
            let intercepts: Vec<f64> = (0..q).map(|j| j as f64 - 1.5).collect();
            let z_rows = Rows::from_shape((m, d), &z).unwrap();
            let x_rows = Rows::from_shape((n, d), &x).unwrap();
            let kernel = Kernel::Rbf { gamma: 0.8 };
            let k = gram(&kernel, x_rows, z_rows, Context::SEQUENTIAL).unwrap();
            let evaluator = Evaluator::new(
                &ExpansionView::new(kernel, z_rows, matrix((m, q), &b).unwrap(), &intercepts).unwrap(),
            )
            .unwrap();
            let x32: Vec<f32> = x.iter().map(|&v| v as f32).collect();
            let single: Rows<'_> = Rows::from_shape((n, d), &x32).unwrap();
            for (rows, tolerance) in [(x_rows, 1e-12), (single, 2e-5)] {
                let f = evaluator.evaluate(rows, Context::default()).unwrap();
                for i in 0..n {
                    for j in 0..q {
                        let expected: f64 =
                            intercepts[j] + (0..m).map(|c| k[[i, c]] * b[c * q + j]).sum::<f64>();
                        assert!((f[[i, j]] - expected).abs() < tolerance, "{} {expected}", f[[i, j]]);
                    }
                }
            }
        }
    }

    /// Exchanged coefficients give the bits of an evaluator made with them, in every pass.
    #[test]
    fn other_coefficients_leave_the_vectors_packed() {
        let (n, m, d, q) = (30, 70, 67, 2);
        let pixel = |i: usize| (i * 7919 % 256) as f32 / 255.0;
        let z: Vec<f32> = (0..m * d).map(pixel).collect();
        let mut x: Vec<f32> = (0..n * d).map(|i| pixel(i + 31)).collect();
        (x[5], x[d + 5]) = (0.001, 1e9);
        let wide: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
        let of = |seed: f64| -> Vec<f64> { (0..m * q).map(|i| (i as f64 * seed).sin()).collect() };
        let z = Rows::from_shape((m, d), &z).unwrap();
        for kernel in [Kernel::Rbf { gamma: 0.05 }, Kernel::Linear] {
            let new = |b: &[f64], intercepts: &[f64]| {
                Evaluator::new(
                    &ExpansionView::new(kernel, z, matrix((m, q), b).unwrap(), intercepts).unwrap(),
                )
                .unwrap()
            };
            let (first, second, large) =
                (of(0.13), of(0.7), of(0.3).iter().map(|b| 1e7 * b).collect::<Vec<_>>());
            let mut evaluator = new(&first, &[0.5, -1.0]);
            for b in [&first, &second, &large, &second] {
                evaluator.set_coefficients(matrix((m, q), b).unwrap(), &[2.0, 0.0]).unwrap();
                for x in [Rows::from_shape((n, d), &x).unwrap(), Rows::from_shape((n, d), &wide).unwrap()] {
                    let expected = new(b, &[2.0, 0.0]).evaluate(x, Context::default()).unwrap();
                    assert_eq!(evaluator.evaluate(x, Context::default()).unwrap(), expected, "{kernel:?}");
                }
            }
            let refused = evaluator.set_coefficients(matrix((1, q), &[0.0; 2]).unwrap(), &[0.0; 2]);
            assert!(refused.is_err());
        }
    }

    #[test]
    fn an_overflow_names_its_row_among_all_rows() {
        let (z, x) = ([1.0_f32, 2.0], [0.5_f32, 1.0, 1e6, 1.0]);
        let kernel = Kernel::Polynomial { degree: 2, gamma: 1.0, coef0: 0.0 };
        let (z, b) = (Rows::from_shape((2, 1), &z).unwrap(), [1e300, 1.0]);
        let view = ExpansionView::new(kernel, z, matrix((2, 1), &b).unwrap(), &[0.0]).unwrap();
        let x = Rows::from_shape((4, 1), &x).unwrap();
        let error = Evaluator::new(&view).unwrap().evaluate(x, Context::SEQUENTIAL).unwrap_err();
        assert!(error.to_string().contains("row 2"), "{error}");
    }

    /// Rows of pixels meet vectors of pixels in integers, on machines that have the instruction; a row among them that is
    /// none is computed as it would be alone.
    #[test]
    fn pixels_and_other_rows_go_together() {
        let (n, m, d, q) = (101, 70, 67, 3);
        let pixel = |i: usize| (i * 7919 % 256) as f32 / 255.0;
        let z: Vec<f32> = (0..m * d).map(pixel).collect();
        let mut x: Vec<f32> = (0..n * d).map(|i| pixel(i + 31)).collect();
        for row in [0, 40, 100] {
            x[row * d + 5] += 0.001;
        }
        let b: Vec<f64> = (0..m * q).map(|i| (i as f64 * 0.13).sin()).collect();
        let (z_rows, intercepts) = (Rows::from_shape((m, d), &z).unwrap(), vec![0.5; q]);
        for kernel in [
            Kernel::Rbf { gamma: 0.05 },
            Kernel::Polynomial { degree: 3, gamma: 0.02, coef0: 1.0 },
            Kernel::Sigmoid { gamma: 0.01, coef0: -0.5 },
        ] {
            let view = ExpansionView::new(kernel, z_rows, matrix((m, q), &b).unwrap(), &intercepts).unwrap();
            let evaluator = Evaluator::new(&view).unwrap();
            let f = evaluator.evaluate(Rows::from_shape((n, d), &x).unwrap(), Context::default()).unwrap();
            let exact =
                evaluator.evaluate_double(Rows::from_shape((n, d), &x).unwrap(), Context::default()).unwrap();
            let largest = exact.iter().fold(1.0_f64, |largest, v| largest.max(v.abs()));
            for i in 0..n {
                let alone = Rows::from_shape((1, d), &x[i * d..(i + 1) * d]).unwrap();
                let alone = evaluator.evaluate(alone, Context::SEQUENTIAL).unwrap();
                for j in 0..q {
                    assert!((f[[i, j]] - exact[[i, j]]).abs() < 2e-6 * largest, "{kernel:?} {i} {j}");
                    assert_eq!(f[[i, j]], alone[[0, j]]);
                }
            }
        }
    }

    /// Dense rows that are mostly zeros have the values that they have as sparse ones, to the last bit, with a column that is
    /// far from zero in all rows among them; fuller rows that meet such vectors are no exception.
    #[test]
    fn rows_of_zeros_are_the_same_in_either_layout() {
        let (n, m, d) = (45, 70, 96);
        let dense = |rows: usize, every: usize| -> Vec<f64> {
            let number = |i: usize, j: usize| match (j, (i * 31 + j * 17) % every) {
                (0, _) => 1000.0 + (i % 7) as f64,
                (_, 0) => ((i * d + j) as f64 * 0.37).sin().abs(),
                _ => 0.0,
            };
            (0..rows * d).map(|at| number(at / d, at % d)).collect()
        };
        let sparse = |dense: &[f64]| to_csr(Rows::from_shape((dense.len() / d, d), dense).unwrap(), d, |k| k);
        let z = dense(m, 11);
        let (z_rows, z_sparse) = (Rows::from_shape((m, d), &z).unwrap(), sparse(&z));
        let b: Vec<f64> = (0..m * 2).map(|i| (i as f64 * 0.13).sin()).collect();
        let order: Vec<usize> = (0..m).collect();
        for kernel in [
            Kernel::Linear,
            Kernel::Polynomial { degree: 3, gamma: 1e-4, coef0: 1.0 },
            Kernel::Rbf { gamma: 0.1 },
            Kernel::Laplacian { gamma: 0.1 },
            Kernel::ChiSquared { gamma: 0.1 },
            Kernel::Matern { smoothness: crate::kernels::Smoothness::FiveHalves, gamma: 0.1 },
        ] {
            for precision in [Precision::Single, Precision::Double] {
                let values = |rows: Rows<'_>| {
                    let source =
                        KernelRows::new(kernel, rows, &order, precision, Context::default()).unwrap();
                    let mut values = vec![0.0_f64; m * m];
                    source
                        .compute(
                            &order,
                            &mut values.chunks_exact_mut(m).collect::<Vec<_>>(),
                            Context::default(),
                        )
                        .unwrap();
                    values
                };
                assert_eq!(values(z_rows), values(z_sparse.view()), "{kernel:?}");
            }
            // Weights of the columns are summed in an order of their own.
            for every in if kernel == Kernel::Linear { vec![] } else { vec![11, 2] } {
                let x = dense(n, every);
                let (x_rows, x_sparse) = (Rows::from_shape((n, d), &x).unwrap(), sparse(&x));
                let outputs = |x: Rows<'_>, z: Rows<'_>| {
                    let view =
                        ExpansionView::new(kernel, z, matrix((m, 2), &b).unwrap(), &[0.5, 0.0]).unwrap();
                    Evaluator::new(&view).unwrap().evaluate(x, Context::default()).unwrap()
                };
                let of_dense_rows = outputs(x_rows, z_rows);
                assert_eq!(of_dense_rows, outputs(x_sparse.view(), z_rows), "{kernel:?}");
                assert_eq!(of_dense_rows, outputs(x_rows, z_sparse.view()), "{kernel:?}");
            }
        }
    }
}
