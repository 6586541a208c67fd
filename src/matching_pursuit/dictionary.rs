//! The values of all functions on the training rows, function after function, times the square roots of the weights.
//!
//! Kept in double or single precision where they fit in the budget; else only columns that are asked for are computed,
//! and a step looks at a sample of the candidates: the best of 59 is among the best twentieth of all with a probability
//! of .95 (Smola and Schoelkopf, 2000; TR-132, 3.2).
//!
//! Products with the values are taken in blocks of rows, so that a block of one side stays in the cache while the other
//! passes: memory is read once for all right-hand sides.

use super::Task;
use super::source::{Functions, RowSet};
use crate::control::{Monitor, Par, Progress, Stop};
use crate::data::{DenseView, Rows};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, gram};
use crate::linalg::greedy::GramColumns;
use crate::random::Random;
use crate::simd::blas::{axpy, dot};
use std::ops::ControlFlow;
use std::sync::Mutex;

/// Candidates drawn at a step of a dictionary that is too large to be kept.
const DRAWN: usize = 59;
/// Rows of a block of a product: 64 kB a panel of the other side.
const DEPTH: usize = 512;
/// Values computed together while the dictionary is filled: 32 MB.
const FILL: usize = 1 << 22;
/// Functions a task multiplies by few right-hand sides.
const CHUNK: usize = 32;
/// So many right-hand sides are multiplied one by one.
const FEW: usize = 3;

/// How values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storage {
    /// Single instead of double precision: half the memory. Chosen columns are computed again in double.
    pub single: bool,
    /// Bytes that the values may take.
    pub budget: usize,
}

enum Values {
    Double(Vec<f64>),
    Single(Vec<f32>),
    /// Candidates are drawn, so many at a step.
    Drawn(usize),
}

/// A dictionary.
pub(super) struct Dictionary<'a> {
    parts: &'a [&'a dyn Functions],
    starts: Vec<usize>,
    rows: usize,
    scale: Option<Vec<f64>>,
    values: Values,
    /// Squared norms of the kept functions.
    pub(super) own: Vec<f64>,
    /// What went wrong while columns were computed for a caller that takes no errors.
    failure: Mutex<Option<Error>>,
}

impl<'a> Dictionary<'a> {
    /// Computes the values if they are to be kept; a stop where the monitor asks for one.
    pub(super) fn new(
        task: &Task<'a>,
        storage: Storage,
        sample: Option<usize>,
        monitor: &dyn Monitor,
        par: Par,
    ) -> Result<std::result::Result<Self, Stop>> {
        let parts = task.functions;
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
            scale: task.weights.map(|w| w.iter().map(|w| w.sqrt()).collect()),
            values: Values::Drawn(sample.unwrap_or(DRAWN)),
            own: Vec::new(),
            failure: Mutex::default(),
        };
        if sample.is_some() || !fits {
            return Ok(Ok(dictionary));
        }
        let mut values = if storage.single {
            Values::Single(Vec::with_capacity(count * rows))
        } else {
            Values::Double(Vec::with_capacity(count * rows))
        };
        let step = (FILL / rows).max(1);
        for from in (0..count).step_by(step) {
            let progress = Progress {
                phase: "dictionary",
                done: from as u64,
                total: Some(count as u64),
                gap: f64::NAN,
                steps: 0,
            };
            if let ControlFlow::Break(reason) = monitor.tick(&progress) {
                return Ok(Err(Stop { reason, iterations: 0, gap: f64::NAN }));
            }
            let list: Vec<usize> = (from..count.min(from + step)).collect();
            let block = dictionary.columns(&list, par)?;
            dictionary.own.extend(block.chunks_exact(rows).map(|d| dot(d, d)));
            match &mut values {
                Values::Double(kept) => kept.extend(block),
                Values::Single(kept) => kept.extend(block.iter().map(|&v| v as f32)),
                Values::Drawn(_) => {}
            }
        }
        dictionary.values = values;
        Ok(Ok(dictionary))
    }

    /// Number of candidates M.
    pub(super) fn count(&self) -> usize {
        self.starts[self.parts.len()]
    }

    /// How many candidates are drawn at a step, `None` where all are looked at.
    pub(super) fn drawn(&self) -> Option<usize> {
        match self.values {
            Values::Drawn(count) => Some(count),
            _ => None,
        }
    }

    /// sqrt(w), 1 without weights.
    pub(super) fn scale(&self, v: &mut [f64]) {
        if let Some(scale) = &self.scale {
            v.iter_mut().zip(scale).for_each(|(v, s)| *v *= s);
        }
    }

    fn values_of(&self, list: &[usize], set: RowSet, rows: usize, par: Par) -> Result<Vec<f64>> {
        let mut out = vec![0.0; list.len() * rows];
        let part_of = |p: usize| self.starts.partition_point(|&start| start <= p) - 1;
        let mut from = 0;
        while from < list.len() {
            let part = part_of(list[from]);
            let more = list[from..].iter().take_while(|&&p| part_of(p) == part).count();
            let which: Vec<usize> = list[from..from + more].iter().map(|p| p - self.starts[part]).collect();
            let out = &mut out[from * rows..(from + more) * rows];
            self.parts[part].fill(&which, set, out, par)?;
            from += more;
        }
        if let Some(at) = out.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { what: "a function of the dictionary", row: at % rows.max(1) });
        }
        Ok(out)
    }

    /// Weighted values of some functions on the training rows, in double precision.
    pub(super) fn columns(&self, list: &[usize], par: Par) -> Result<Vec<f64>> {
        if let Values::Double(values) = &self.values {
            return Ok(list
                .iter()
                .flat_map(|p| &values[p * self.rows..(p + 1) * self.rows])
                .copied()
                .collect());
        }
        let mut out = self.values_of(list, RowSet::Training, self.rows, par)?;
        out.chunks_exact_mut(self.rows).for_each(|column| self.scale(column));
        Ok(out)
    }

    /// Values of a function on the validation rows.
    pub(super) fn watched(&self, p: usize, rows: usize, par: Par) -> Result<Vec<f64>> {
        self.values_of(&[p], RowSet::Validation, rows, par)
    }

    /// <d_k, v_j> for all kept functions and right-hand sides v (b, l), as (M, b).
    pub(super) fn products(&self, v: &[f64], par: Par) -> Vec<f64> {
        let (l, b) = (self.rows, v.len() / self.rows);
        if b <= FEW {
            let mut out = vec![0.0; self.count() * b];
            par.for_each_chunk(&mut out, CHUNK * b, |chunk, out| {
                for (i, out) in out.chunks_exact_mut(b).enumerate() {
                    let at = (chunk * CHUNK + i) * l..(chunk * CHUNK + i + 1) * l;
                    for (out, v) in out.iter_mut().zip(v.chunks_exact(l)) {
                        *out = match &self.values {
                            Values::Double(d) => dot(&d[at.clone()], v),
                            Values::Single(d) => mixed_dot(&d[at.clone()], v),
                            Values::Drawn(_) => 0.0,
                        };
                    }
                }
            });
            return out;
        }
        match &self.values {
            Values::Double(d) => inner_products(d, v, l, par),
            Values::Single(d) => inner_products(d, v, l, par),
            Values::Drawn(_) => Vec::new(),
        }
    }

    /// Draws candidates that `open` allows: all of them where there are no more than to be drawn.
    pub(super) fn draw(&self, open: &[bool], random: &mut Random) -> Vec<usize> {
        let Values::Drawn(wanted) = self.values else { return Vec::new() };
        let available: Vec<usize> = (0..open.len()).filter(|&p| open[p]).collect();
        let count = wanted.min(available.len());
        random.sample(available.len(), count).into_iter().map(|i| available[i]).collect()
    }

    /// The first failure of a column that was asked for through [`GramColumns`].
    pub(super) fn failure(&self) -> Result<()> {
        let mut failure = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        failure.take().map_or(Ok(()), Err)
    }
}

impl GramColumns for Dictionary<'_> {
    fn fill(&self, list: &[usize], out: &mut [&mut [f64]], par: Par) {
        match self.columns(list, par) {
            Ok(columns) => {
                let b = list.len();
                let products = self.products(&columns, par);
                for (j, out) in out.iter_mut().enumerate() {
                    for (to, from) in out.iter_mut().zip(products.iter().skip(j).step_by(b)) {
                        *to = *from;
                    }
                }
            }
            Err(error) => {
                let mut failure = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                failure.get_or_insert(error);
            }
        }
    }
}

fn mixed_dot(a: &[f32], b: &[f64]) -> f64 {
    let mut wide = [0.0; 1024];
    a.chunks(wide.len())
        .zip(b.chunks(wide.len()))
        .map(|(a, b)| {
            wide.iter_mut().zip(a).for_each(|(to, &from)| *to = f64::from(from));
            dot(&wide[..b.len()], b)
        })
        .sum()
}

/// A B' for A (m, l) and B (b, l), in double precision.
pub(super) fn inner_products<T: crate::data::Element>(a: &[T], b: &[f64], l: usize, par: Par) -> Vec<f64>
where
    for<'x> Rows<'x>: From<DenseView<'x, T>>,
{
    let (m, count) = (a.len() / l.max(1), b.len() / l.max(1));
    let mut out = vec![0.0; m * count];
    for from in (0..l).step_by(DEPTH) {
        let depth = DEPTH.min(l - from);
        let (Ok(left), Ok(right)) = (
            DenseView::with_stride(&a[from..], m, depth, l),
            DenseView::with_stride(&b[from..], count, depth, l),
        ) else {
            return out;
        };
        if let Ok(part) = gram(&Kernel::Linear, left.into(), right.into(), par) {
            axpy(1.0, &part, &mut out);
        }
    }
    out
}
