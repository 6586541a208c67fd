//! The values of all functions on the training rows, function after function, times the square roots of the weights.
//!
//! Kept in double or single precision where they fit in the budget; else only columns that are asked for are computed,
//! and a step looks at a sample of the candidates: the best of 59 is among the best twentieth of all with a probability
//! of .95 (Smola and Schoelkopf, 2000; TR-132, 3.2).

use super::basis::SPAN_TOLERANCE;
use super::source::{Functions, RowSet};
use super::task::{MatchingParams, Task};
use crate::context::Context;
use crate::data::{copy_flat, flat, gather, matrix};
use crate::error::{Error, Result};
use crate::memory::{Arena, TryCollect, try_vec, try_zeros};
use crate::random::Random;
use crate::simd::Real;
use crate::simd::blas::{Stored, squares};
use crate::simd::inner::row_products;
use ndarray::ArrayViewMut2;

/// Number of candidates drawn at a step of a dictionary that is too large to be kept, unless the caller sets it: one of 59 is among
/// the best twentieth with a probability of .95.
pub const DEFAULT_SAMPLE_SIZE: usize = 59;
/// Values computed together while the dictionary is filled: 32 MB.
const NUMBERS_PER_FILL: usize = 1 << 22;
/// Context reported when an allocation fails.
const DICTIONARY_VALUES: &str = "the values of the dictionary (take a smaller cache_size, or a sample_size)";
/// Functions a task multiplies.
const FUNCTIONS_PER_TASK: usize = 48;

/// Writes values of functions in a precision.
type Fill<T> = fn(&dyn Functions, &[usize], RowSet, ArrayViewMut2<'_, T>, Context<'_>) -> Result<()>;

const DOUBLE: Fill<f64> = |part, which, set, out, ctx| part.fill(which, set, out, ctx);
const SINGLE: Fill<f32> = |part, which, set, out, ctx| part.fill_single(which, set, out, ctx);

enum Values {
    Double(Arena<f64>),
    Single(Arena<f32>),
    /// Candidates are drawn, this many at each step.
    Drawn(usize),
}

/// Functions by their values on the training rows, stored or computed on request.
pub(super) struct Dictionary<'a> {
    parts: &'a [&'a dyn Functions],
    starts: Vec<usize>,
    rows: usize,
    validation_rows: usize,
    scale: Option<Vec<f64>>,
    values: Values,
    /// Squared norms of the kept functions.
    pub(super) squared_norms: Vec<f64>,
}

impl<'a> Dictionary<'a> {
    /// Computes the values if they are to be kept.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped).
    pub(super) fn new(task: &Task<'a>, params: &MatchingParams, ctx: Context<'_>) -> Result<Self> {
        let (parts, storage) = (task.functions, params.storage);
        let mut starts = vec![0];
        for part in parts {
            starts.push(starts[starts.len() - 1] + part.count());
        }
        let (count, rows) = (starts[parts.len()], task.rows());
        let size = if storage.single { size_of::<f32>() } else { size_of::<f64>() };
        let fits =
            count.checked_mul(rows).and_then(|n| n.checked_mul(size)).is_some_and(|n| n <= storage.budget);
        let mut dictionary = Self {
            parts,
            starts,
            rows,
            validation_rows: task.validation_rows(),
            scale: task.weights.map(|w| w.iter().map(|w| w.sqrt()).collect::<Vec<_>>()),
            values: Values::Drawn(params.sample.unwrap_or(DEFAULT_SAMPLE_SIZE)),
            squared_norms: Vec::new(),
        };
        if params.sample.is_some() || !fits {
            return Ok(dictionary);
        }
        let mut values = if storage.single {
            Values::Single(Arena::new(DICTIONARY_VALUES, count * rows)?)
        } else {
            Values::Double(Arena::new(DICTIONARY_VALUES, count * rows)?)
        };
        let step = (NUMBERS_PER_FILL / rows.max(1)).max(1);
        for from in (0..count).step_by(step) {
            ctx.check("dictionary", from, count)?;
            let list: Vec<usize> = (from..count.min(from + step)).collect();
            let range = from * rows..(from + list.len()) * rows;
            let squared_norms = match &mut values {
                Values::Double(columns) => {
                    dictionary.keep(DOUBLE, &list, &mut columns.values_mut()[range], ctx)?
                }
                Values::Single(columns) => {
                    dictionary.keep(SINGLE, &list, &mut columns.values_mut()[range], ctx)?
                }
                Values::Drawn(_) => Vec::new(),
            };
            dictionary.squared_norms.extend(squared_norms);
        }
        dictionary.values = values;
        Ok(dictionary)
    }

    /// Number of training rows l.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of candidates M.
    pub(super) fn count(&self) -> usize {
        self.starts[self.parts.len()]
    }

    /// Returns the number of candidates that are drawn at a step, `None` if all functions are candidates.
    pub(super) fn drawn(&self) -> Option<usize> {
        match self.values {
            Values::Drawn(count) => Some(count),
            _ => None,
        }
    }

    /// Returns the smallest tolerance of its functions; see [`Functions::span_tolerance`].
    pub(super) fn span_tolerance(&self) -> f64 {
        self.parts.iter().map(|part| part.span_tolerance()).fold(SPAN_TOLERANCE, f64::min)
    }

    /// Returns the relative rounding error of a score.
    pub(super) fn rounding(&self) -> f64 {
        if matches!(self.values, Values::Single(_)) { 1e-6 } else { 1e-12 }
    }

    /// v sqrt(w)
    pub(super) fn scale(&self, v: &mut [f64]) {
        if let Some(scale) = &self.scale {
            v.iter_mut().zip(scale).for_each(|(v, s)| *v *= s);
        }
    }

    /// Targets times sqrt(w), (q, l): output after output.
    pub(super) fn scaled_targets(&self, task: &Task<'_>) -> Result<Vec<f64>> {
        let mut targets = copy_flat(task.targets.t())?;
        targets.chunks_exact_mut(self.rows).for_each(|column| self.scale(column));
        Ok(targets)
    }

    fn values_of<T: Real>(
        &self,
        fill: Fill<T>,
        list: &[usize],
        set: RowSet,
        out: &mut [T],
        ctx: Context<'_>,
    ) -> Result<()> {
        let rows = if set == RowSet::Training { self.rows } else { self.validation_rows };
        let part_of = |p: usize| self.starts.partition_point(|&start| start <= p) - 1;
        let mut from = 0;
        while from < list.len() {
            let part = part_of(list[from]);
            let more = list[from..].iter().take_while(|&&p| part_of(p) == part).count();
            let which: Vec<usize> = list[from..from + more].iter().map(|p| p - self.starts[part]).collect();
            let out = &mut out[from * rows..(from + more) * rows];
            let out = ArrayViewMut2::from_shape((more, rows), out).expect("a line of values a function");
            fill(self.parts[part], &which, set, out, ctx)?;
            from += more;
        }
        Ok(())
    }

    /// Refuses values that are not finite.
    fn check<T: Real>(out: &[T], rows: usize) -> Result<()> {
        match out.iter().position(|v| !v.to_f64().is_finite()) {
            Some(at) => Err(Error::NotFinite { what: "a function of the dictionary", row: at % rows.max(1) }),
            None => Ok(()),
        }
    }

    /// Writes weighted values on the training rows; their squared norms.
    fn keep<T: Real + Stored>(
        &self,
        fill: Fill<T>,
        list: &[usize],
        out: &mut [T],
        ctx: Context<'_>,
    ) -> Result<Vec<f64>> {
        self.values_of(fill, list, RowSet::Training, out, ctx)?;
        if let Some(scale) = &self.scale {
            for column in out.chunks_exact_mut(self.rows) {
                column.iter_mut().zip(scale).for_each(|(v, s)| *v = T::from_f64(v.to_f64() * s));
            }
        }
        let squared_norms = ctx.map(list.len(), |i| squares(&out[i * self.rows..(i + 1) * self.rows]));
        // Most values are never looked at one by one.
        if squared_norms.iter().any(|squared_norm| !squared_norm.is_finite()) {
            Self::check(out, self.rows)?;
        }
        Ok(squared_norms)
    }

    /// Weighted values of some functions on the training rows, in double precision.
    pub(super) fn columns(&self, list: &[usize], ctx: Context<'_>) -> Result<Vec<f64>> {
        if let Values::Double(values) = &self.values {
            return gather(&matrix((self.count(), self.rows), values.values())?, list).map(flat);
        }
        let mut out = try_zeros("values of functions", list.len() * self.rows)?;
        self.keep(DOUBLE, list, &mut out, ctx)?;
        Ok(out)
    }

    /// Values of a function on the validation rows.
    pub(super) fn validation_column(&self, p: usize, ctx: Context<'_>) -> Result<Vec<f64>> {
        let mut out = vec![0.0; self.validation_rows];
        self.values_of(DOUBLE, &[p], RowSet::Validation, &mut out, ctx)?;
        Self::check(&out, self.validation_rows)?;
        Ok(out)
    }

    /// <d_k, v_j> for some kept functions and right-hand sides v (b, l), as (functions, b).
    pub(super) fn products(&self, list: &[usize], v: &[f64], ctx: Context<'_>) -> Result<Vec<f64>> {
        let l = self.rows;
        match &self.values {
            Values::Double(d) => {
                let d = d.values();
                let rows: Vec<&[f64]> = list.iter().map(|p| &d[p * l..(p + 1) * l]).collect();
                products(&rows, v, l, FUNCTIONS_PER_TASK, ctx)
            }
            Values::Single(d) => {
                let d = d.values();
                let rows: Vec<&[f32]> = list.iter().map(|p| &d[p * l..(p + 1) * l]).collect();
                // Numbers beyond the range of single precision are products with numbers near one.
                let units = v.chunks_exact(l).map(unit).collect::<Vec<_>>();
                let scaled = v.iter().zip(units.iter().flat_map(|unit| std::iter::repeat_n(unit, l)));
                let scaled = scaled.map(|(v, unit)| (v / unit) as f32).try_collect_vec()?;
                let mut out = products(&rows, &scaled, l, FUNCTIONS_PER_TASK, ctx)?;
                for line in out.chunks_exact_mut(units.len().max(1)) {
                    line.iter_mut().zip(&units).for_each(|(product, unit)| *product *= unit);
                }
                Ok(out)
            }
            Values::Drawn(_) => Ok(Vec::new()),
        }
    }

    /// Draws candidates that `open` allows, [`DEFAULT_SAMPLE_SIZE`] if the dictionary is kept: all of them where there are no more
    /// than to be drawn.
    pub(super) fn draw(&self, open: &[bool], random: &mut Random) -> Vec<usize> {
        let size = self.drawn().unwrap_or(DEFAULT_SAMPLE_SIZE);
        let available: Vec<usize> = (0..open.len()).filter(|&p| open[p]).collect();
        let count = size.min(available.len());
        random.sample(available.len(), count).into_iter().map(|i| available[i]).collect()
    }
}

/// Returns the power of two at or below the largest magnitude; 1 for zeros.
fn unit(v: &[f64]) -> f64 {
    let largest = v.iter().fold(0.0_f64, |largest, v| largest.max(v.abs()));
    if largest > 0.0 { largest.log2().floor().clamp(-1000.0, 1000.0).exp2() } else { 1.0 }
}

/// A B' for A (m, l) and B (b, l).
pub(super) fn inner_products(a: &[f64], b: &[f64], l: usize, ctx: Context<'_>) -> Result<Vec<f64>> {
    products(&a.chunks_exact(l).collect::<Vec<_>>(), b, l, 4, ctx)
}

/// Computes products of rows with the vectors of l numbers in `v`, `chunk` rows in each task.
fn products<T: Real>(rows: &[&[T]], v: &[T], l: usize, chunk: usize, ctx: Context<'_>) -> Result<Vec<f64>> {
    let count = v.len() / l;
    let mut out = try_vec![0.0; rows.len() * count]?;
    if count > 0 {
        ctx.for_each_chunk(&mut out, chunk * count, |task, out| {
            row_products(&rows[task * chunk..][..out.len() / count], v, l, out);
        });
    }
    Ok(out)
}
