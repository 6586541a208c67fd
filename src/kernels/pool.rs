//! k(x, z_1), ..., k(x, z_m) for one row x at a time and vectors z that are added and replaced, as online learners need them.
//!
//! The vectors are columns of the micro-kernel's panels. A new vector takes the next free column, or that of another vector.
//! The panels of sparse rows hold only the features of their columns, and a table that finds these. Lines that are no longer
//! used are removed, so the memory of a panel is a few times the entries of its columns, however many columns the rows have.
//!
//! Rows are scaled as everywhere (`standardization`): the power of two that brings gamma near 1 depends on the kernel alone.
//! They have no center, which would be the mean of future rows, or a row that every later part of the stream must know, and
//! which is not needed: dense squared distances are summed as (a - b)^2, which is accurate at any offset. Sparse ones are
//! ||x||^2 + ||z||^2 - 2 x'z (for Matérn kernels see `distances`), but rows far from zero in columns that all of them have are not sparse.
//!
//! Cost: O(d) for adding and replacing a vector, O(m d) for a row of kernel values, without an allocation.
//!
//! Invariant: a value depends on x and z alone, not on the column, the panel or the order in which vectors came.

use super::distances::{DistanceWorkspace, squared_distances};
use super::pack::method;
use super::row::RowBuffer;
use super::standardization::scaled;
use super::{Kernel, self_value};
use crate::error::{Error, Result};
use crate::memory::{TryGrow, try_vec};
use crate::simd::Real;
use crate::simd::epilogue::{Epilogue, finish_tile};
use crate::simd::micro::{Block, IdentityMap, Measure, PanelView, SparseBlock, panel_tile, panel_width};
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// Maximum number of features for which a panel of sparse rows, in the pools of online learners, has a list of all features
/// (4 bytes each) instead of a table of those that occur.
pub const MAX_LISTED_FEATURES: usize = 1 << 15;
/// Maximum number of lines of a sparse panel for each entry before unused lines are removed.
const MAX_LINES_PER_ENTRY: usize = 2;
/// An odd factor of 64 bits without a pattern (of 2^64 divided by the golden ratio).
const HASH_FACTOR: u128 = 0x9E37_79B9_7F4A_7C15;

/// A kernel as the values of a pool are computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Formula<T> {
    /// The kernel of scaled rows.
    kernel: Kernel,
    scale: f64,
    sparse: bool,
    measure: Measure,
    epilogue: Epilogue<T>,
}

impl<T: Real> Formula<T> {
    /// Prepares a kernel that is computed from rows.
    pub(crate) fn of(kernel: &Kernel, sparse: bool) -> Result<Self> {
        let (kernel, scale) = scaled(*kernel);
        let (measure, epilogue) = match kernel {
            Kernel::Rbf { gamma } if !sparse => {
                (Measure::SquaredL2, Epilogue::Decay { gamma: T::from_f64(gamma) })
            }
            _ => {
                method(&kernel).ok_or_else(|| Error::param("kernel", kernel.name(), "computed from rows"))?
            }
        };
        Ok(Self { kernel, scale, sparse, measure, epilogue })
    }

    /// Returns the formula of ||x - z||^2 of scaled rows.
    pub(crate) fn squared_distance(&self) -> Self {
        let (measure, epilogue) = if self.sparse {
            (Measure::Inner, Epilogue::Distance)
        } else {
            (Measure::SquaredL2, Epilogue::Identity)
        };
        Self { measure, epilogue, ..*self }
    }

    /// Computes k(x, x).
    pub(crate) fn self_value(&self, row: &RowBuffer<T>) -> f64 {
        self_value(&self.kernel, row.squared_norm())
    }

    /// Creates a buffer for rows of `features` features.
    pub(crate) fn row(&self, features: usize) -> RowBuffer<T> {
        RowBuffer::new(features, self.sparse, self.scale)
    }
}

/// The lines of the features of a sparse panel. Line 0 is zeros, for features that the panel lacks.
enum FeatureLines {
    /// A line for each feature.
    All(Vec<u32>),
    /// A hash table of features and lines with linear probing; its size is a power of two, and at most half of it is used.
    Table { seed: u64, places: Vec<(u32, u32)> },
}

/// Returns a seed that no data can anticipate, so that chosen features do not collide. The lines do not depend on it.
fn random_seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().hash_one(0))
}

impl FeatureLines {
    fn new(features: usize) -> Result<Self> {
        if features <= MAX_LISTED_FEATURES {
            Ok(Self::All(try_vec![0; features]?))
        } else {
            Ok(Self::Table { seed: random_seed(), places: vec![(0, 0); 64] })
        }
    }

    /// Returns the first place of a feature in a table of a power of two of places: bits of both halves of a product.
    fn first_place(seed: u64, feature: u32, places: usize) -> usize {
        let product = u128::from(seed ^ u64::from(feature)) * HASH_FACTOR;
        let hash = (product >> 64) as u64 ^ product as u64;
        (hash >> (u64::BITS - places.trailing_zeros())) as usize
    }

    /// Returns the place of a feature in a table, or the free place for it.
    fn find(seed: u64, places: &[(u32, u32)], feature: u32) -> usize {
        let last = places.len() - 1;
        let mut at = Self::first_place(seed, feature, places.len());
        while places[at].1 != 0 && places[at].0 != feature {
            at = (at + 1) & last;
        }
        at
    }

    fn line(&self, feature: u32) -> usize {
        match self {
            Self::All(lines) => lines[feature as usize] as usize,
            Self::Table { seed, places } => places[Self::find(*seed, places, feature)].1 as usize,
        }
    }

    /// Enters a new feature with the last of `line` lines.
    fn enter(&mut self, feature: u32, line: usize) -> Result<()> {
        match self {
            Self::All(lines) => lines[feature as usize] = line as u32,
            Self::Table { seed, places } => {
                if 2 * line > places.len() {
                    let mut larger = try_vec![(0, 0); 2 * places.len()]?;
                    for &(feature, line) in places.iter().filter(|(_, line)| *line != 0) {
                        let at = Self::find(*seed, &larger, feature);
                        larger[at] = (feature, line);
                    }
                    *places = larger;
                }
                let at = Self::find(*seed, places, feature);
                places[at] = (feature, line as u32);
            }
        }
        Ok(())
    }
}

/// Memory for the values of one row, reused for the next one.
pub(crate) struct PoolWorkspace<T> {
    out: Vec<T>,
    /// The entries of a sparse row, with the lines of a panel as features.
    entries: SparseBlock<T>,
    map: IdentityMap,
    distances: DistanceWorkspace<T>,
}

impl<T: Real> PoolWorkspace<T> {
    /// Creates an empty workspace.
    pub(crate) fn new() -> Self {
        Self {
            out: Vec::new(),
            entries: SparseBlock::new(0),
            map: IdentityMap::new(),
            distances: DistanceWorkspace::default(),
        }
    }
}

/// A panel of `panel_width` vectors.
struct Panel<T> {
    data: Vec<T>,
    norms: Vec<T>,
    baseline: Vec<T>,
    /// The lines of features, the features of the lines after the first, and the number of entries; for sparse rows.
    lines: FeatureLines,
    features: Vec<u32>,
    entries: usize,
}

impl<T: Real> Panel<T> {
    fn new(features: usize, sparse: bool, width: usize) -> Result<Self> {
        let (count, listed) = if sparse { (1, features) } else { (features, 0) };
        Ok(Self {
            data: try_vec![T::ZERO; count * width]?,
            norms: vec![T::ZERO; width],
            baseline: vec![T::ZERO; width],
            lines: FeatureLines::new(listed)?,
            features: Vec::new(),
            entries: 0,
        })
    }

    /// Clears a column, and removes unused lines if they are many.
    fn clear(&mut self, column: usize, features: usize, width: usize) -> Result<()> {
        for line in self.data.chunks_exact_mut(width) {
            self.entries -= usize::from(line[column] != T::ZERO);
            line[column] = T::ZERO;
        }
        if self.features.len() <= width + MAX_LINES_PER_ENTRY * self.entries {
            return Ok(());
        }
        let mut compacted = Self::new(features, true, width)?;
        for (&feature, line) in self.features.iter().zip(self.data.chunks_exact(width).skip(1)) {
            if line.iter().any(|v| *v != T::ZERO) {
                compacted.features.push(feature);
                compacted.data.try_extend(line.iter().copied())?;
                compacted.lines.enter(feature, compacted.features.len())?;
            }
        }
        (self.data, self.features, self.lines) = (compacted.data, compacted.features, compacted.lines);
        Ok(())
    }
}

/// Vectors that are added and replaced.
pub(crate) struct VectorPool<T> {
    features: usize,
    sparse: bool,
    width: usize,
    len: usize,
    panels: Vec<Panel<T>>,
}

impl<T: Real> VectorPool<T> {
    /// Creates a pool without vectors, of `features` features.
    pub(crate) fn new(features: usize, sparse: bool) -> Self {
        Self { features, sparse, width: panel_width::<T>(), len: 0, panels: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends a vector.
    pub(crate) fn push(&mut self, row: &RowBuffer<T>) -> Result<()> {
        if self.len == self.panels.len() * self.width {
            self.panels.push(Panel::new(self.features, self.sparse, self.width)?);
        }
        self.len += 1;
        self.write(self.len - 1, row)?;
        Ok(())
    }

    /// Removes the last vector.
    pub(crate) fn pop(&mut self) -> Result<()> {
        self.len -= 1;
        if self.sparse {
            let (panel, column) = (self.len / self.width, self.len % self.width);
            self.panels[panel].clear(column, self.features, self.width)?;
        }
        Ok(())
    }

    /// Replaces a vector.
    pub(crate) fn replace(&mut self, at: usize, row: &RowBuffer<T>) -> Result<()> {
        if self.sparse {
            self.panels[at / self.width].clear(at % self.width, self.features, self.width)?;
        }
        self.write(at, row)?;
        Ok(())
    }

    fn write(&mut self, at: usize, row: &RowBuffer<T>) -> Result<()> {
        debug_assert!(row.is_sparse() == self.sparse && at < self.len);
        let (width, column) = (self.width, at % self.width);
        let panel = &mut self.panels[at / width];
        let mut total = 0.0;
        if self.sparse {
            let (features, values) = row.entries();
            for (&k, &v) in features.iter().zip(values) {
                let mut line = panel.lines.line(k);
                if line == 0 {
                    panel.features.push(k);
                    panel.data.try_resize(panel.data.len() + width, T::ZERO)?;
                    line = panel.features.len();
                    panel.lines.enter(k, line)?;
                }
                panel.data[line * width + column] = v;
                panel.entries += usize::from(v != T::ZERO);
                total += v.to_f64().abs();
            }
        } else {
            row.for_each(|k, v| panel.data[k * width + column] = v);
        }
        panel.norms[column] = row.norm[0];
        panel.baseline[column] = T::from_f64(total);
        Ok(())
    }

    /// Computes the values of one row with all vectors, in their order.
    pub(crate) fn values<'a>(
        &self,
        formula: &Formula<T>,
        row: &RowBuffer<T>,
        workspace: &'a mut PoolWorkspace<T>,
    ) -> &'a [T] {
        let PoolWorkspace { out, entries, map, distances } = workspace;
        if out.len() < self.panels.len() * self.width {
            out.resize(self.panels.len() * self.width, T::ZERO);
        }
        for (panel, out) in self.panels.iter().zip(out.chunks_exact_mut(self.width)) {
            let block = if self.sparse {
                let count = panel.features.len() + 1;
                entries.restart(count);
                let (features, values) = row.entries();
                for (&k, &v) in features.iter().zip(values) {
                    entries.push(panel.lines.line(k), v);
                }
                entries.end_row();
                Block::Sparse { entries, slots: map.with_rows(count) }
            } else {
                Block::Dense { data: &row.values, stride: self.features, depth: self.features }
            };
            let baseline = self.sparse.then_some(&*panel.baseline);
            let view = PanelView { values: &panel.data, norms: &panel.norms, baseline };
            if self.sparse && formula.measure == Measure::SquaredL2 {
                squared_distances((block, &row.norm), 0, view, &panel.features, out, distances);
                finish_tile(formula.epilogue, &row.norm, &panel.norms, out);
            } else {
                panel_tile((formula.measure, formula.epilogue), (block, &row.norm), 0, view, out);
            }
        }
        &out[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{CsrView, IndexSlice, Rows, to_csr};
    use crate::kernels::{Smoothness, pair};
    use crate::random::Random;

    const KERNELS: [Kernel; 8] = [
        Kernel::Linear,
        Kernel::Polynomial { degree: 3, gamma: 0.3, coef0: 1.0 },
        Kernel::Rbf { gamma: 0.7 },
        Kernel::Sigmoid { gamma: 0.2, coef0: 0.1 },
        Kernel::Laplacian { gamma: 0.4 },
        Kernel::ChiSquared { gamma: 0.5 },
        Kernel::Matern { smoothness: Smoothness::Half, gamma: 0.4 },
        Kernel::Matern { smoothness: Smoothness::FiveHalves, gamma: 0.4 },
    ];

    fn check(rows: Rows<'_>, sparse: bool) {
        let (n, d) = (rows.rows(), rows.cols());
        for kernel in KERNELS {
            let formula = Formula::<f64>::of(&kernel, sparse).unwrap();
            let mut pool = VectorPool::new(d, sparse);
            let (mut buffer, mut workspace) = (formula.row(d), PoolWorkspace::new());
            for i in 0..n / 2 {
                buffer.load(&rows, i);
                pool.push(&buffer).unwrap();
            }
            // Some vectors make workspace for others, again and again.
            let mut members: Vec<usize> = (0..n / 2).collect();
            for (time, at) in [0, 7, n / 2 - 1, 7, 7, 7, 7, 8, 9, 10].into_iter().enumerate() {
                buffer.load(&rows, n / 2 + time);
                pool.replace(at, &buffer).unwrap();
                members[at] = n / 2 + time;
            }
            // A vector that is removed leaves nothing behind.
            for i in [n / 2 + 5, members[n / 2 - 1]] {
                pool.pop().unwrap();
                buffer.load(&rows, i);
                pool.push(&buffer).unwrap();
            }
            for i in 0..n {
                buffer.load(&rows, i);
                let values = pool.values(&formula, &buffer, &mut workspace);
                assert_eq!(values.len(), members.len());
                for (&value, &j) in values.iter().zip(&members) {
                    assert!((value - pair(&kernel, rows, i, rows, j)).abs() < 1e-12, "{kernel:?}");
                }
                let same = formula.self_value(&buffer);
                assert!((same - pair(&kernel, rows, i, rows, i)).abs() < 1e-12);
            }
            for panel in &pool.panels {
                let stored: usize = panel.data.iter().map(|v| usize::from(*v != 0.0)).sum();
                assert!(!sparse || panel.entries == stored && panel.data.len() <= 16 * (2 * stored + 64));
            }
        }
    }

    #[test]
    fn chosen_features_do_not_collide() {
        // Their products with the factor of a hash function without a seed differ in the last bits alone.
        let count = 4096;
        let inverse =
            (0..5).fold(1_u32, |x, _| x.wrapping_mul(2_u32.wrapping_sub(x.wrapping_mul(0x9E37_79B1))));
        let mut lines = FeatureLines::new(MAX_LISTED_FEATURES + 1).unwrap();
        for line in 1..=count {
            lines.enter(inverse.wrapping_mul(line), line as usize).unwrap();
        }
        let FeatureLines::Table { places, .. } = &lines else { panic!("a list of all features") };
        let runs = places.split(|(_, line)| *line == 0).map(<[_]>::len);
        assert!(runs.max().unwrap() < 512);
        for line in 1..=count {
            assert_eq!(lines.line(inverse.wrapping_mul(line)), line as usize);
        }
    }

    #[test]
    fn values_are_those_of_the_formula() {
        let mut random = Random::new(3);
        let (n, d) = (90, 11);
        let data: Vec<f64> =
            (0..n * d).map(|_| if random.uniform() < 0.5 { 0.0 } else { random.uniform() }).collect();
        let rows = Rows::from_shape((n, d), &data).unwrap();
        check(rows, false);
        check(to_csr(rows, d, |k| k).view(), true);
        // The features are far apart, so panels have tables.
        check(to_csr(rows, 7_000_001 * d, |k| k * 7_000_001).view(), true);
    }

    #[test]
    fn many_columns_take_no_memory() {
        let (n, d) = (2000_usize, 1_usize << 31);
        let indptr: Vec<i64> = (0..=n as i64).map(|i| 3 * i).collect();
        let indices: Vec<i64> = (0..n as i64).flat_map(|i| [i, 1_000_003 * (i + 1), (1 << 31) - 1]).collect();
        let values = vec![1.0_f32; 3 * n];
        let rows: Rows<'_> =
            CsrView::new(IndexSlice::I64(&indptr), IndexSlice::I64(&indices), &values, d).unwrap().into();
        let formula = Formula::<f32>::of(&Kernel::Linear, true).unwrap();
        let (mut pool, mut row, mut workspace) =
            (VectorPool::new(d, true), formula.row(d), PoolWorkspace::new());
        for i in 0..n {
            row.load(&rows, i);
            if i < 40 { pool.push(&row).unwrap() } else { pool.replace(i % 40, &row).unwrap() }
        }
        let taken: usize = pool
            .panels
            .iter()
            .map(|panel| {
                let FeatureLines::Table { places, .. } = &panel.lines else { panic!("a table of features") };
                4 * panel.data.capacity() + 8 * places.len() + 4 * panel.features.capacity()
            })
            .sum();
        assert!(taken < 200_000, "{taken}");
        assert_eq!(pool.values(&formula, &row, &mut workspace)[n % 40..(n % 40) + 2], [1.0, 1.0]);
        assert_eq!(pool.values(&formula, &row, &mut workspace)[(n - 1) % 40], 3.0);
    }

    #[test]
    fn a_power_of_two_changes_no_bit() {
        let mut random = Random::new(7);
        let (n, d) = (30, 5);
        let base: Vec<f32> = (0..n * d).map(|_| random.uniform() as f32).collect();
        let values = |kernel: &Kernel, data: &[f32]| {
            let rows: Rows<'_> = Rows::from_shape((n, d), data).unwrap();
            let mut bits = Vec::new();
            for sparse in [false, true] {
                let formula = Formula::<f32>::of(kernel, sparse).unwrap();
                let (mut pool, mut row, mut workspace) =
                    (VectorPool::new(d, sparse), formula.row(d), PoolWorkspace::new());
                for i in 0..n {
                    row.load(&rows, i);
                    assert!(data[i * d..(i + 1) * d] == *row.unscaled());
                    pool.push(&row).unwrap();
                    bits.extend(pool.values(&formula, &row, &mut workspace).iter().map(|v| v.to_bits()));
                    bits.push((formula.self_value(&row) as f32).to_bits());
                }
            }
            bits
        };
        for (kernel, times) in [
            (Kernel::Rbf { gamma: 0.7 }, 2),
            (Kernel::Laplacian { gamma: 0.7 }, 1),
            (Kernel::ChiSquared { gamma: 0.7 }, 1),
            (Kernel::Matern { smoothness: Smoothness::ThreeHalves, gamma: 0.7 }, 1),
            (Kernel::Polynomial { degree: 3, gamma: 0.7, coef0: 1.0 }, 2),
            (Kernel::Sigmoid { gamma: 0.7, coef0: 0.1 }, 2),
        ] {
            for exponent in [-110, -61, -8, 9, 62, 115] {
                let moved: Vec<f32> = base.iter().map(|v| v * (exponent as f32).exp2()).collect();
                let there = kernel.with_gamma(0.7 * f64::from(-times * exponent).exp2());
                assert!(values(&kernel, &base) == values(&there, &moved), "{kernel:?} 2^{exponent}");
            }
        }
    }

    #[test]
    fn distances_survive_a_large_offset() {
        let data: Vec<f32> = (0..40).map(|i| 10_000.0 + (i % 7) as f32 * 0.125).collect();
        let rows: Rows<'_> = Rows::from_shape((10, 4), &data).unwrap();
        let formula = Formula::<f32>::of(&Kernel::Linear, false).unwrap().squared_distance();
        let (mut pool, mut buffer, mut workspace) =
            (VectorPool::new(4, false), formula.row(4), PoolWorkspace::new());
        buffer.load(&rows, 0);
        pool.push(&buffer).unwrap();
        buffer.load(&rows, 1);
        let exact: f32 = (0..4).map(|k| (data[k] - data[4 + k]).powi(2)).sum();
        assert_eq!(pool.values(&formula, &buffer, &mut workspace), &[exact]);
    }
}
