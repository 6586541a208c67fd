//! The global alignment kernel of series (Cuturi 2011): [`GlobalAlignment`].
//!
//! The kernel is the sum over all alignments of two series of the products of a local kernel along the alignment. The
//! dynamic program is `simd::alignment`; here are the parameters, the packing of series and the weights of the band.
//!
//! A packed series has its steps feature after feature. The padding behind each feature begins with the minimum and the
//! maximum of the feature, from which a pair knows how small its factors are.

use super::block::{Block, Interrupts, Object, SequenceKernel, WORK_PER_CELL};
use super::scaled::Scaled;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::memory::try_with_capacity;
use crate::simd::alignment::{Grid, PADDING, Table, Weights};
use ndarray::ArrayView2;
use std::f64::consts::LOG2_E;

/// The range of sigma, so that its square is a normal number.
const MIN_SIGMA: f64 = 1e-150;
const MAX_SIGMA: f64 = 1e150;

/// The global alignment kernel of series of vectors.
///
/// The sum over all alignments of two series of the product of kappa = g / (2 - g) over the aligned pairs, with
/// g = exp(-|x - y|^2 / (2 sigma^2)), normalized to 1 for equal series. With a band, g is multiplied by
/// max(0, 1 - |i - j| / band) for the steps i and j, and only steps with |i - j| < band are visited; two series whose lengths
/// differ by the band or more have the value 0.
///
/// ```
/// use ndarray::array;
/// use svmarrow::context::Context;
/// use svmarrow::sequences::GlobalAlignment;
///
/// let (x, y) = (array![[0.0], [1.0]], array![[0.0], [1.0], [1.0]]);
/// let kernel = GlobalAlignment::builder().sigma(0.5).build()?;
/// let block = kernel.prepare(&[x.view(), y.view()], Context::SEQUENTIAL)?;
/// let values = block.gram_symmetric(Context::SEQUENTIAL)?;
/// assert!(0.5 < values[(0, 1)] && values[(0, 1)] < 1.0);
/// # Ok::<(), svmarrow::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GlobalAlignment {
    sigma: f64,
    band: Option<f64>,
}

/// Builds a [`GlobalAlignment`].
#[derive(Debug, Clone, Copy)]
pub struct GlobalAlignmentBuilder(GlobalAlignment);

impl GlobalAlignment {
    /// Returns a builder with the defaults sigma = 1 and no band.
    pub fn builder() -> GlobalAlignmentBuilder {
        GlobalAlignmentBuilder(Self { sigma: 1.0, band: None })
    }

    /// Packs series, (steps, features) each, and computes the value of each series with itself.
    ///
    /// # Errors
    /// [`Error::Param`] if a series is empty or has another number of features than the first, or has a value that is not finite;
    /// [`Error::Memory`], [`Error::Stopped`].
    pub fn prepare(self, series: &[ArrayView2<'_, f64>], ctx: Context<'_>) -> Result<Block<Self>> {
        let features = series.first().map_or(1, ArrayView2::ncols);
        for (index, view) in series.iter().enumerate() {
            let refused = |rule: String| Error::param("series", format!("the item at index {index}"), rule);
            if view.is_empty() {
                return Err(refused("not empty".to_owned()));
            }
            if view.ncols() != features {
                let rule = format!("of {features} features as the first, not of {}", view.ncols());
                return Err(refused(rule));
            }
            if view.iter().any(|value| !value.is_finite()) {
                return Err(refused("free of NaN and infinity".to_owned()));
            }
        }
        let lengths: Vec<usize> = series.iter().map(ArrayView2::nrows).collect();
        let size = lengths.iter().map(|length| (length + PADDING).saturating_mul(features)).sum();
        let mut items = try_with_capacity("series", size)?;
        let mut ends = Vec::with_capacity(lengths.len());
        for view in series {
            for column in view.columns() {
                items.extend(column.iter());
                let min = column.iter().copied().fold(f64::INFINITY, f64::min);
                let max = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let mut padding = [min; PADDING];
                padding[1] = max;
                items.extend(padding);
            }
            ends.push(items.len());
        }
        Block::new(self, items, ends, lengths, features, ctx)
    }

    /// Returns the approximate number of multiplications of [`prepare`](Self::prepare).
    pub fn preparation_work(&self, series: &[ArrayView2<'_, f64>]) -> u64 {
        let cells = series.iter().map(|view| {
            let object = Object { items: &[], length: view.nrows(), features: view.ncols() };
            self.work(object, object)
        });
        cells.fold(0_u64, u64::saturating_add).saturating_mul(WORK_PER_CELL)
    }

    /// Returns the weights of the band for series of up to a number of steps.
    fn weights(self, max_steps: usize) -> Option<Weights> {
        let band = self.band?;
        let weight = |difference: usize| 1.0 - difference as f64 / band;
        // The largest difference below the band, whose weight is not rounded to zero.
        let mut reach = (band.ceil() - 1.0).min(max_steps as f64) as usize;
        while weight(reach) <= 0.0 {
            reach -= 1;
        }
        Some(Weights::new(reach, |difference| weight(difference).log2()))
    }
}

impl GlobalAlignmentBuilder {
    /// Sets sigma, the bandwidth of the local kernel; the default is 1.
    #[must_use]
    pub fn sigma(mut self, sigma: f64) -> Self {
        self.0.sigma = sigma;
        self
    }

    /// Sets the number of steps at which the weight of a pair of steps becomes 0; the default is no band.
    #[must_use]
    pub fn band(mut self, band: Option<f64>) -> Self {
        self.0.band = band;
        self
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Param`].
    pub fn build(self) -> Result<GlobalAlignment> {
        let GlobalAlignment { sigma, band } = self.0;
        Error::check_param(
            (MIN_SIGMA..=MAX_SIGMA).contains(&sigma),
            "sigma",
            sigma,
            "a number from 1e-150 to 1e150",
        )?;
        let band_holds = band.is_none_or(|band| band.is_finite() && band > 0.0);
        Error::check_param(band_holds, "band", band.unwrap_or_default(), "None, or finite and above 0")?;
        Ok(self.0)
    }
}

impl Block<GlobalAlignment> {
    /// Copies the series, (steps of all series, features) in row-major order, with the number of steps of each.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn to_series(&self) -> Result<(Vec<f64>, Vec<usize>)> {
        let lengths: Vec<usize> = self.objects().map(|object| object.length).collect();
        let size = lengths.iter().sum::<usize>().saturating_mul(self.features());
        let mut values = try_with_capacity("series", size)?;
        for object in self.objects() {
            for step in 0..object.length {
                values.extend(object.items[step..].iter().step_by(object.length + PADDING));
            }
        }
        Ok((values, lengths))
    }
}

/// The buffers that a task of [`GlobalAlignment`] reuses.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct AlignmentSpace {
    table: Table,
    /// A series in reversed order.
    reversed: Vec<f64>,
    /// The weights of the band for series of up to `weighted_steps` steps.
    weights: Option<Weights>,
    weighted_steps: usize,
}

impl SequenceKernel for GlobalAlignment {
    type Item = f64;
    type Space = AlignmentSpace;

    fn work(&self, x: Object<'_, f64>, y: Object<'_, f64>) -> u64 {
        let width = self.band.map_or(f64::INFINITY, |band| 2.0 * band).min(x.length.min(y.length) as f64);
        (x.length.max(y.length) as u64).saturating_mul(width as u64 + 1) * (1 + x.features as u64 / 8)
    }

    fn space(&self, length: usize, features: usize) -> usize {
        length.saturating_mul(8 + features)
    }

    fn value(
        &self,
        x: Object<'_, f64>,
        y: Object<'_, f64>,
        space: &mut AlignmentSpace,
        interrupts: Interrupts<'_>,
    ) -> Result<Scaled> {
        let max_steps = x.length.max(y.length);
        if self.band.is_some() && max_steps > space.weighted_steps {
            space.weights = self.weights(max_steps);
            space.weighted_steps = max_steps;
        }
        if space.weights.as_ref().is_some_and(|weights| x.length.abs_diff(y.length) > weights.reach) {
            return Ok(Scaled::ZERO);
        }
        reverse(x, &mut space.reversed);
        let grid = Grid {
            ascending: y.items,
            descending: &space.reversed,
            steps: (y.length, x.length),
            features: x.features,
            scale: LOG2_E / (2.0 * self.sigma * self.sigma),
            weights: space.weights.as_ref(),
        };
        // The smallest weight that this pair may have: the table may be that of longer series.
        let min_weight =
            space.weights.as_ref().map_or(0.0, |weights| weights.logarithm(weights.reach.min(max_steps)));
        space.table.start(&grid, min_weight - grid.scale * max_distance(x, y));
        let width = space.weights.as_ref().map_or(usize::MAX, |weights| weights.reach + 1);
        let cells = width.min(x.length).min(y.length);
        let cost = 1 + x.features / 8;
        interrupts.in_parts(grid.last() + 1, cells, cost, |part| space.table.advance(&grid, part))?;
        let (value, exponent) = space.table.last(&grid);
        Ok(Scaled::new(value, exponent))
    }
}

/// Returns a bound for the squared distances of the steps of two packed series, the same for both orders.
fn max_distance(x: Object<'_, f64>, y: Object<'_, f64>) -> f64 {
    let features = x.items.chunks_exact(x.length + PADDING).zip(y.items.chunks_exact(y.length + PADDING));
    let squares = features.map(|(x_steps, y_steps)| {
        let difference =
            (x_steps[x.length + 1] - y_steps[y.length]).max(y_steps[y.length + 1] - x_steps[x.length]);
        difference * difference
    });
    squares.sum()
}

/// Writes the steps of a packed series in reversed order, padded as before.
fn reverse(series: Object<'_, f64>, reversed: &mut Vec<f64>) {
    reversed.clear();
    for feature in series.items.chunks_exact(series.length + PADDING) {
        reversed.extend(feature[..series.length].iter().rev());
        reversed.extend(&feature[series.length..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;
    use proptest::prelude::*;

    fn block(sigma: f64, band: Option<f64>, series: &[Array2<f64>]) -> Block<GlobalAlignment> {
        let views: Vec<_> = series.iter().map(|series| series.view()).collect();
        let kernel = GlobalAlignment::builder().sigma(sigma).band(band).build().unwrap();
        kernel.prepare(&views, Context::SEQUENTIAL).unwrap()
    }

    fn log_sum(values: [f64; 3]) -> f64 {
        let top = values.into_iter().fold(f64::NEG_INFINITY, f64::max);
        if top.is_finite() { top + values.iter().map(|x| (x - top).exp()).sum::<f64>().ln() } else { top }
    }

    /// The logarithm of the kernel before the normalization, cell by cell.
    fn naive(x: &Array2<f64>, y: &Array2<f64>, sigma: f64, band: Option<f64>) -> f64 {
        let mut table = vec![vec![f64::NEG_INFINITY; y.nrows() + 1]; x.nrows() + 1];
        table[0][0] = 0.0;
        for i in 1..=x.nrows() {
            for j in 1..=y.nrows() {
                let distance: f64 = x.row(i - 1).iter().zip(y.row(j - 1)).map(|(a, b)| (a - b).powi(2)).sum();
                let weight = band.map_or(1.0, |band| (1.0 - i.abs_diff(j) as f64 / band).max(0.0));
                let log_g = weight.ln() - distance / (2.0 * sigma * sigma);
                let log_kappa = log_g - (2.0 - log_g.exp()).ln();
                table[i][j] = log_kappa + log_sum([table[i - 1][j], table[i][j - 1], table[i - 1][j - 1]]);
            }
        }
        table[x.nrows()][y.nrows()]
    }

    fn series(steps: usize, features: usize, seed: usize) -> Array2<f64> {
        Array2::from_shape_fn((steps, features), |(i, k)| {
            let noise = ((i * 7919 + k * 104_729 + seed * 31_337) % 1009) as f64 / 1009.0;
            (0.1 * i as f64 + seed as f64).sin() + noise
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn values_are_those_of_sums_of_logarithms(
            steps in prop::collection::vec(1..50_usize, 2..5),
            features in 1..4_usize,
            log_sigma in -3.0..2.0_f64,
            band in prop::option::of(0.5..40.0_f64),
        ) {
            let all: Vec<_> = steps.iter().enumerate().map(|(seed, &n)| series(n, features, seed)).collect();
            let sigma = log_sigma.exp();
            let values = block(sigma, band, &all).gram_symmetric(Context::SEQUENTIAL).unwrap();
            let raw = |i: usize, j: usize| naive(&all[i], &all[j], sigma, band);
            for i in 0..all.len() {
                for j in 0..all.len() {
                    let expected = (raw(i, j) - 0.5 * (raw(i, i) + raw(j, j))).exp();
                    prop_assert!((values[(i, j)] - expected).abs() < 1e-12);
                    prop_assert_eq!(values[(i, j)], values[(j, i)]);
                }
                prop_assert_eq!(values[(i, i)], 1.0);
            }
        }
    }

    #[test]
    fn long_series_keep_their_digits() {
        let all = [series(600, 1, 1), series(600, 1, 2)];
        for (sigma, band) in [(0.05, None), (0.5, None), (30.0, None), (0.6, Some(300.0)), (0.3, Some(1.0))] {
            let value = block(sigma, band, &all).gram_symmetric(Context::SEQUENTIAL).unwrap()[(0, 1)];
            let raw = |i: usize, j: usize| naive(&all[i], &all[j], sigma, band);
            let expected = (raw(0, 1) - 0.5 * (raw(0, 0) + raw(1, 1))).exp();
            // The logarithms are sums of thousands, whose rounding is the error of the comparison.
            assert!((value - expected).abs() <= 1e-9 * expected, "{sigma}: {value} {expected}");
        }
    }

    #[test]
    fn series_far_from_zero_have_the_values_of_their_differences() {
        let near = [series(90, 1, 1), series(77, 1, 2)];
        let far = near.clone().map(|series| series + 1e12);
        let values = |all: &[Array2<f64>]| block(0.5, None, all).gram_symmetric(Context::SEQUENTIAL).unwrap();
        assert!((values(&near)[(0, 1)] / values(&far)[(0, 1)] - 1.0).abs() < 0.1);
    }

    #[test]
    fn shifted_series_need_cells_far_from_the_diagonal() {
        let pulse =
            |place: usize| Array2::from_shape_fn((400, 1), |(i, _)| if i == place { 9.0 } else { 0.0 });
        let all = [pulse(20), pulse(380)];
        let value = block(0.1, None, &all).gram_symmetric(Context::SEQUENTIAL).unwrap()[(0, 1)];
        let raw = |i: usize, j: usize| naive(&all[i], &all[j], 0.1, None);
        let expected = (raw(0, 1) - 0.5 * (raw(0, 0) + raw(1, 1))).exp();
        assert!(value > 0.0 && (value / expected - 1.0).abs() < 1e-10, "{value} {expected}");
    }

    #[test]
    fn values_depend_on_the_pair_alone() {
        let all: Vec<_> = (0..20).map(|i| series(5 + 3 * i, 2, i)).collect();
        let block = block(0.7, Some(31.5), &all);
        let values = block.gram_symmetric(Context::SEQUENTIAL).unwrap();
        assert_eq!(values, values.t());
        assert_eq!(block.gram(&block, Context::default()).unwrap(), values);
        // The lengths of the first and of the last series differ by more than the band.
        assert_eq!(values[(0, 19)], 0.0);
        for (i, j) in [(0, 9), (7, 3), (11, 11)] {
            let pair = block.select(&[i]).unwrap().gram(&block.select(&[j]).unwrap(), Context::SEQUENTIAL);
            assert_eq!(pair.unwrap()[(0, 0)], values[(i, j)]);
        }
    }

    #[test]
    fn extreme_values_are_finite() {
        let all = [[1e300, -1e300], [0.0, 1.0], [1e300, -1e300], [5e-324, 1.0]];
        let all = all.map(|steps| Array2::from_shape_fn((2, 1), |(i, _)| steps[i]));
        for sigma in [1e-150, 1.0, 1e150] {
            let values = block(sigma, None, &all).gram_symmetric(Context::SEQUENTIAL).unwrap();
            assert!(values.iter().all(|value| (0.0..=1.0).contains(value)));
            assert_eq!((values[(0, 0)], values[(0, 2)], values[(0, 1)]), (1.0, 1.0, 0.0));
        }
    }

    #[test]
    fn faults_are_named() {
        let kernel = GlobalAlignment::builder().build().unwrap();
        let prepared = |series: &[Array2<f64>]| {
            let views: Vec<_> = series.iter().map(|series| series.view()).collect();
            kernel.prepare(&views, Context::SEQUENTIAL).map(|block| block.len())
        };
        assert_eq!(prepared(&[]).unwrap(), 0);
        let good = Array2::zeros((3, 2));
        for (bad, word) in [
            (Array2::zeros((0, 2)), "not empty"),
            (Array2::zeros((3, 1)), "2 features"),
            (Array2::from_elem((3, 2), f64::NAN), "NaN"),
        ] {
            let message = prepared(&[good.clone(), bad]).unwrap_err().to_string();
            assert!(message.contains("index 1") && message.contains(word), "{message}");
        }
        let first = block(1.0, None, std::slice::from_ref(&good));
        assert!(first.gram(&block(2.0, None, std::slice::from_ref(&good)), Context::SEQUENTIAL).is_err());
        assert!(first.gram(&block(1.0, None, &[Array2::zeros((3, 1))]), Context::SEQUENTIAL).is_err());
        for (sigma, band) in [(0.0, None), (f64::NAN, None), (1.0, Some(0.0)), (1.0, Some(f64::INFINITY))] {
            assert!(GlobalAlignment::builder().sigma(sigma).band(band).build().is_err());
        }
    }
}
