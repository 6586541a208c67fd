//! Squared distances of rows and panels, accurate also where rows are nearly equal: the root of a squared distance turns an error
//! of u ||x||^2 near zero into one of sqrt(u) ||x||.
//!
//! Differences, sum (x - z)^2, do not cancel, but take an operation more than products, and sparse rows would have to visit the
//! features of the other side. So long and sparse rows use ||x||^2 + ||z||^2 - 2 x'z, and distances below a sixteenth of
//! ||x||^2 + ||z||^2 are summed again from differences. Such pairs are few: rows with themselves, and rows of clusters that are
//! small compared with their distance from the center.
//!
//! Invariant: a distance depends on x and z alone, not on the panel. Equal rows have distance 0.
//!
//! Cost: one pass over the tile; for each row with a near vector one over the features of the panel.

use crate::simd::Real;
use crate::simd::epilogue::{Epilogue, near_rows};
use crate::simd::micro::{Block, Measure, PanelView, SlotMap, SparseBlock, panel_tile};

/// Minimum number of features of dense rows at which products are faster.
pub(super) const MIN_FEATURES: usize = 24;
/// Distances below this part of the squared lengths are summed from differences.
pub(super) const MIN_RELATIVE_DISTANCE: f64 = 1.0 / 16.0;

/// Memory for distances that are summed again, reused for the next tile.
#[derive(Default)]
pub(super) struct DistanceWorkspace<T> {
    near: Vec<usize>,
    line: Vec<T>,
    absent_terms: Vec<T>,
    /// True if the row has the feature of a line of the panel.
    present: Vec<bool>,
    /// The lines of a sparse panel in the order of their features.
    order: Vec<usize>,
}

/// Writes the squared distances of the rows from `first` of a block and the columns of one panel to the lines of `out`, which
/// have the panel's width. `features` are those of a sparse panel, in any order.
pub(super) fn squared_distances<T: Real>(
    (block, norms): (Block<'_, T>, &[T]),
    first: usize,
    panel: PanelView<'_, T>,
    features: &[u32],
    out: &mut [T],
    workspace: &mut DistanceWorkspace<T>,
) {
    panel_tile((Measure::Inner, Epilogue::Distance), (block, norms), first, panel, out);
    let (width, part) = (panel.norms.len(), T::from_f64(MIN_RELATIVE_DISTANCE));
    let DistanceWorkspace { near, line, absent_terms, present, order } = workspace;
    near.clear();
    near_rows(out, &norms[first..], panel.norms, part, near);
    for &i in &*near {
        line.clear();
        line.resize(width, T::ZERO);
        match block {
            Block::Dense { .. } => {
                let differences = (Measure::SquaredL2, Epilogue::Identity);
                panel_tile(differences, (block, norms), first + i, panel, line);
            }
            Block::Sparse { entries, slots } => {
                order.clear();
                order.extend(1..=features.len());
                if !features.is_sorted() {
                    order.sort_unstable_by_key(|&at| features[at - 1]);
                }
                absent_terms.clear();
                absent_terms.resize(width, T::ZERO);
                present.clear();
                present.resize(features.len() + 1, false);
                sparse_distances(
                    (entries, first + i),
                    slots,
                    (panel.values, order),
                    present,
                    line,
                    absent_terms,
                );
            }
        }
        for ((out, &exact), &m) in out[i * width..].iter_mut().zip(&*line).zip(panel.norms) {
            if *out < part * (norms[first + i] + m) {
                *out = exact;
            }
        }
    }
}

/// Sums differences of a sparse row and the columns of a panel: first the entries of the row, then the lines that it lacks.
fn sparse_distances<T: Real>(
    (entries, row): (&SparseBlock<T>, usize),
    slots: &SlotMap,
    (values, order): (&[T], &[usize]),
    present: &mut [bool],
    sums: &mut [T],
    absent_terms: &mut [T],
) {
    let width = sums.len();
    let (features, numbers) = entries.row(row);
    for (&feature, &a) in features.iter().zip(numbers) {
        let at = slots.slot(feature);
        present[at] = true;
        for (sum, &b) in sums.iter_mut().zip(&values[at * width..]) {
            let difference = a - b;
            *sum += difference * difference;
        }
    }
    for &at in order.iter().filter(|at| !present[**at]) {
        for (sum, &b) in absent_terms.iter_mut().zip(&values[at * width..]) {
            *sum += b * b;
        }
    }
    for (sum, &absent_terms) in sums.iter_mut().zip(&*absent_terms) {
        *sum += absent_terms;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Evaluator, Formula, Kernel, KernelRows, PoolWorkspace, Precision, Smoothness, VectorPool, gram, pair,
    };
    use crate::context::Context;
    use crate::data::{Rows, to_csr};
    use crate::expansion::ExpansionView;
    use crate::random::Random;
    use ndarray::Array2;

    const N: usize = 90;
    const SMOOTHNESS: [Smoothness; 3] = [Smoothness::Half, Smoothness::ThreeHalves, Smoothness::FiveHalves];

    /// Clusters of rows 2^-k apart; each ninth row equals the one before. A third of the numbers are zeros.
    fn clusters(d: usize) -> Vec<f64> {
        let mut random = Random::new(d as u64);
        let mut rows = vec![0.0; N * d];
        for i in 0..N {
            for k in 0..d {
                rows[i * d + k] = if i % 9 == 0 {
                    if random.uniform() < 0.34 { 0.0 } else { f64::from((4.0 * random.uniform()) as f32) }
                } else if i % 9 == 8 {
                    rows[(i - 1) * d + k]
                } else {
                    let first = rows[(i - i % 9) * d + k];
                    let step = f64::from(-3 * (i % 9) as i32 + 1).exp2();
                    if random.uniform() < 0.3 { f64::from((first + step) as f32) } else { first }
                };
            }
        }
        rows
    }

    /// Calls `check(kernel, i, j, value, expected, tolerance)` for values in both precisions and layouts, and of a pool.
    fn for_all_values(
        d: usize,
        spread: usize,
        mut check: impl FnMut(&str, Kernel, (usize, usize), f64, f64),
    ) {
        let dense = clusters(d);
        let dense = Rows::from_shape((N, d), &dense).unwrap();
        let sparse = to_csr(dense, spread * (d - 1) + 1, |k| k * spread);
        let all: Vec<usize> = (0..N).collect();
        for smoothness in SMOOTHNESS {
            let kernel = Kernel::Matern { smoothness, gamma: 0.3 };
            for (layout, rows) in [("dense", dense), ("sparse", sparse.view())] {
                let double = gram(&kernel, rows, rows, Context::SEQUENTIAL).unwrap();
                let source =
                    KernelRows::new(kernel, rows, &all, Precision::Single, Context::SEQUENTIAL).unwrap();
                let mut single = vec![0.0_f32; N * N];
                let mut lines: Vec<&mut [f32]> = single.chunks_exact_mut(N).collect();
                source.compute(&all, &mut lines, Context::SEQUENTIAL).unwrap();
                let formula = Formula::<f64>::of(&kernel, rows.is_sparse()).unwrap();
                let mut pool = VectorPool::new(rows.cols(), rows.is_sparse());
                let (mut buffer, mut workspace) = (formula.row(rows.cols()), PoolWorkspace::new());
                for i in 0..N {
                    buffer.load(&rows, N - 1 - i);
                    pool.push(&buffer).unwrap();
                }
                for i in 0..N {
                    buffer.load(&rows, i);
                    let values = pool.values(&formula, &buffer, &mut workspace);
                    for j in 0..N {
                        let expected = pair(&kernel, dense, i, dense, j);
                        let name = |precision| format!("{layout} {precision}");
                        check(&name("double"), kernel, (i, j), double[[i, j]], expected);
                        check(&name("single"), kernel, (i, j), f64::from(single[i * N + j]), expected);
                        check(&name("double pool"), kernel, (i, j), values[N - 1 - j], expected);
                    }
                }
            }
        }
    }

    #[test]
    fn near_rows_keep_their_distance() {
        for (d, spread) in [(1, 1), (5, 1), (40, 1), (40, 1_000_003)] {
            for_all_values(d, spread, |what, kernel, (i, j), value, expected| {
                // Single precision rounds the rows: the error of a is that of their lengths about the center, about 10.
                let tolerance = if what.contains("double") { 2e-15 } else { 2e-6 };
                assert!(
                    (value - expected).abs() < tolerance,
                    "{what} {kernel:?} d={d} {i} {j}: {value} {expected}"
                );
                // A row and its copy.
                if i == j || (i.min(j) % 9 == 7 && i.abs_diff(j) == 1) {
                    assert!(value == 1.0, "{what} {kernel:?} d={d} {i} {j}: {value}");
                }
            });
        }
    }

    /// The rows of a panel, and with them its features, do not matter.
    #[test]
    fn values_depend_on_their_rows_alone() {
        let (d, kernel) = (40, Kernel::Matern { smoothness: Smoothness::Half, gamma: 0.3 });
        let dense = clusters(d);
        let dense = Rows::from_shape((N, d), &dense).unwrap();
        let sparse = to_csr(dense, d, |k| k);
        let formula = Formula::<f32>::of(&kernel, true).unwrap();
        let of_pool = |order: &[usize]| {
            let mut pool = VectorPool::new(d, true);
            let (mut buffer, mut workspace) = (formula.row(d), PoolWorkspace::new());
            for &i in order {
                buffer.load(&sparse.view(), i);
                pool.push(&buffer).unwrap();
            }
            buffer.load(&sparse.view(), 3);
            let values = pool.values(&formula, &buffer, &mut workspace);
            let mut sorted = vec![0.0_f32; N];
            order.iter().zip(values).for_each(|(&i, &value)| sorted[i] = value);
            sorted
        };
        let of_rows = |rows: Rows<'_>, order: &[usize]| {
            let source =
                KernelRows::new(kernel, rows, order, Precision::Single, Context::SEQUENTIAL).unwrap();
            let mut values = vec![0.0_f32; order.len()];
            source.compute(&[3], &mut [&mut values], Context::SEQUENTIAL).unwrap();
            let mut sorted = vec![0.0_f32; N];
            order.iter().zip(values).for_each(|(&i, value)| sorted[i] = value);
            sorted
        };
        let order: Vec<usize> = (0..N).collect();
        let mixed: Vec<usize> = (0..N).map(|i| i * 37 % N).collect();
        assert_eq!(of_pool(&order), of_pool(&mixed));
        for rows in [dense, sparse.view()] {
            assert_eq!(of_rows(rows, &order), of_rows(rows, &mixed));
        }
    }

    /// Products of rows 1e9 apart are rounded by hundreds.
    #[test]
    fn near_rows_of_data_that_reach_far_keep_their_distance_under_the_rbf_kernel() {
        let kernel = Kernel::Rbf { gamma: 0.5 };
        for d in [2, 30] {
            let x: Vec<f64> = (0..N * d)
                .map(|at| {
                    let (i, k) = (at / d, at % d);
                    let far = if k == 0 { 30_f64.exp2() * (i / 9) as f64 } else { 0.0 };
                    far + if k == i % d { 0.25 * (i % 9) as f64 } else { 0.0 }
                })
                .collect();
            let dense = Rows::from_shape((N, d), &x).unwrap();
            let sparse = to_csr(dense, d, |k| k);
            for rows in [dense, sparse.view()] {
                let actual = gram(&kernel, rows, rows, Context::SEQUENTIAL).unwrap();
                let ones = Array2::from_elem((N, 1), 1.0);
                let sums = Evaluator::new(&ExpansionView::new(kernel, rows, ones.view(), &[0.0]).unwrap());
                let sums = sums.unwrap().evaluate(rows, Context::SEQUENTIAL).unwrap();
                for i in 0..N {
                    let expected = |j| pair(&kernel, dense, i, dense, j);
                    assert!((0..N).all(|j| (actual[[i, j]] - expected(j)).abs() < 1e-15), "d={d} {i}");
                    assert!((sums[[i, 0]] - (0..N).map(expected).sum::<f64>()).abs() < 1e-13, "d={d} {i}");
                }
            }
        }
    }

    #[test]
    fn rows_far_from_all_vectors_have_the_value_zero() {
        for d in [2, 30] {
            for smoothness in SMOOTHNESS {
                let kernel = Kernel::Matern { smoothness, gamma: 1.0 };
                let (z, b) = (vec![0.0_f32; 2 * d], Array2::from_elem((2, 1), 1.0));
                let z = Rows::from_shape((2, d), &z).unwrap();
                let f = Evaluator::new(&ExpansionView::new(kernel, z, b.view(), &[0.5]).unwrap()).unwrap();
                for distance in [300.0_f32, 1e5, 1e15, 1e30] {
                    let x = vec![distance; d];
                    let x = Rows::from_shape((1, d), &x).unwrap();
                    let actual = f.evaluate(x, Context::SEQUENTIAL).unwrap()[[0, 0]];
                    assert!((actual - 0.5).abs() < 1e-30, "{kernel:?} {distance}: {actual}");
                }
            }
        }
    }
}
