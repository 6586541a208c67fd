//! The subsequence kernel of strings (Lodhi and others 2002): [`Subsequence`].
//!
//! The dynamic program is `simd::subsequences`; here are the parameters and the order of a pair. The program is not symmetric
//! in its rounding, so the shorter string comes first, and of equal lengths the one that is first in lexicographic order.

use super::block::{Block, Interrupts, Object, SequenceKernel, WORK_PER_CELL};
use super::scaled::Scaled;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::memory::try_with_capacity;
use crate::simd::subsequences::{Strings, Tables};

/// Maximum number of symbols of a subsequence.
pub const MAX_SUBSEQUENCE_LENGTH: usize = 1 << 16;

/// The subsequence kernel of strings.
///
/// The sum over all common subsequences of `length` symbols of decay^(number of symbols in the gaps), normalized to 1
/// for equal strings. Strings of fewer than `length` symbols have the value 0 with all strings, also with themselves: the kernel
/// stays positive semidefinite.
///
/// ```
/// use svmarrow::context::Context;
/// use svmarrow::sequences::Subsequence;
///
/// let symbols = |text: &str| text.bytes().map(i64::from).collect::<Vec<_>>();
/// let (cat, car) = (symbols("cat"), symbols("car"));
/// let kernel = Subsequence::builder().length(2).decay(0.5).build()?;
/// let block = kernel.prepare(&[&cat, &car], Context::SEQUENTIAL)?;
/// // Only "ca" is common: decay^4 / (2 decay^4 + decay^6).
/// assert!((block.gram_symmetric(Context::SEQUENTIAL)?[(0, 1)] - 1.0 / 2.25).abs() < 1e-15);
/// # Ok::<(), svmarrow::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Subsequence {
    length: usize,
    decay: f64,
}

/// Builds a [`Subsequence`].
#[derive(Debug, Clone, Copy)]
pub struct SubsequenceBuilder(Subsequence);

impl Subsequence {
    /// Returns a builder with the defaults length = 3 and decay = 0.5.
    pub fn builder() -> SubsequenceBuilder {
        SubsequenceBuilder(Self { length: 3, decay: 0.5 })
    }

    /// Packs strings and computes the value of each string with itself.
    ///
    /// # Errors
    /// [`Error::Param`] if a value exceeds the range of doubles, which only long subsequences reach; [`Error::Memory`],
    /// [`Error::Stopped`].
    pub fn prepare(self, strings: &[&[i64]], ctx: Context<'_>) -> Result<Block<Self>> {
        let lengths: Vec<usize> = strings.iter().map(|string| string.len()).collect();
        let mut items = try_with_capacity("strings", lengths.iter().sum())?;
        let mut ends = Vec::with_capacity(strings.len());
        for string in strings {
            items.extend_from_slice(string);
            ends.push(items.len());
        }
        Block::new(self, items, ends, lengths, 1, ctx)
    }

    /// Returns the approximate number of multiplications of [`prepare`](Self::prepare).
    pub fn preparation_work(&self, strings: &[&[i64]]) -> u64 {
        let cells = strings.iter().map(|string| {
            let object = Object { items: string, length: string.len(), features: 1 };
            self.work(object, object)
        });
        cells.fold(0_u64, u64::saturating_add).saturating_mul(WORK_PER_CELL)
    }
}

impl SubsequenceBuilder {
    /// Sets the number of symbols of a subsequence; the default is 3.
    #[must_use]
    pub fn length(mut self, length: usize) -> Self {
        self.0.length = length;
        self
    }

    /// Sets the discount of a symbol in a gap; the default is 0.5.
    #[must_use]
    pub fn decay(mut self, decay: f64) -> Self {
        self.0.decay = decay;
        self
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Param`].
    pub fn build(self) -> Result<Subsequence> {
        let Subsequence { length, decay } = self.0;
        let rule = format!("an integer from 1 to {MAX_SUBSEQUENCE_LENGTH}");
        Error::check_param((1..=MAX_SUBSEQUENCE_LENGTH).contains(&length), "length", length, rule)?;
        Error::check_param(decay > 0.0 && decay <= 1.0, "decay", decay, "above 0 and at most 1")?;
        Ok(self.0)
    }
}

impl Block<Subsequence> {
    /// Copies the strings, one after the other, with the number of symbols of each.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn to_strings(&self) -> Result<(Vec<i64>, Vec<usize>)> {
        let lengths: Vec<usize> = self.objects().map(|object| object.length).collect();
        let mut symbols = try_with_capacity("strings", lengths.iter().sum())?;
        self.objects().for_each(|object| symbols.extend_from_slice(object.items));
        Ok((symbols, lengths))
    }
}

/// The buffers that a task of [`Subsequence`] reuses.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct SubsequenceSpace {
    tables: Tables,
    reversed: Vec<i64>,
}

impl SequenceKernel for Subsequence {
    type Item = i64;
    type Space = SubsequenceSpace;

    fn work(&self, x: Object<'_, i64>, y: Object<'_, i64>) -> u64 {
        let cells = (x.length as u64 + 1).saturating_mul(y.length as u64 + 1);
        cells.saturating_mul(self.length as u64)
    }

    fn space(&self, length: usize, _: usize) -> usize {
        length.saturating_mul(4 * self.length)
    }

    fn value(
        &self,
        x: Object<'_, i64>,
        y: Object<'_, i64>,
        space: &mut SubsequenceSpace,
        interrupts: Interrupts<'_>,
    ) -> Result<Scaled> {
        if x.length.min(y.length) < self.length {
            return Ok(Scaled::ZERO);
        }
        let is_ordered = (x.length, x.items) <= (y.length, y.items);
        let (first, second) = if is_ordered { (x.items, y.items) } else { (y.items, x.items) };
        space.reversed.clear();
        space.reversed.extend(second.iter().rev());
        let strings = Strings { ascending: first, descending: &space.reversed, decay: self.decay };
        space.tables.start(&strings, self.length);
        let end = first.len() + second.len() + 1;
        interrupts.in_parts(end, first.len(), self.length, |part| space.tables.advance(&strings, part))?;
        let sum = space.tables.sum();
        if !sum.is_finite() {
            let rule = format!(
                "smaller, or decay={} smaller: a value of strings of {} symbols exceeds the range of doubles",
                self.decay,
                second.len()
            );
            return Err(Error::param("length", self.length, rule));
        }
        Ok(Scaled::new(sum, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;
    use proptest::prelude::*;

    fn block(length: usize, decay: f64, strings: &[Vec<i64>]) -> Block<Subsequence> {
        let kernel = Subsequence::builder().length(length).decay(decay).build().unwrap();
        let strings: Vec<&[i64]> = strings.iter().map(Vec::as_slice).collect();
        kernel.prepare(&strings, Context::SEQUENTIAL).unwrap()
    }

    fn gram(length: usize, decay: f64, strings: &[Vec<i64>]) -> Array2<f64> {
        block(length, decay, strings).gram_symmetric(Context::SEQUENTIAL).unwrap()
    }

    /// Returns the subsequences of a string with their gaps.
    fn subsequences(string: &[i64], length: usize) -> Vec<(Vec<i64>, usize)> {
        let mut all = Vec::new();
        for mask in 0_u32..1 << string.len() {
            if mask.count_ones() as usize == length {
                let places: Vec<usize> = (0..string.len()).filter(|&i| mask >> i & 1 == 1).collect();
                let span = places[length - 1] - places[0] + 1;
                all.push((places.iter().map(|&i| string[i]).collect(), span - length));
            }
        }
        all
    }

    fn enumerated(s: &[i64], t: &[i64], length: usize, decay: f64) -> f64 {
        let (all_s, all_t) = (subsequences(s, length), subsequences(t, length));
        let pairs = all_s.iter().flat_map(|x| all_t.iter().map(move |y| (x, y)));
        pairs.filter(|(x, y)| x.0 == y.0).map(|(x, y)| decay.powi((x.1 + y.1) as i32)).sum()
    }

    /// The recursion of the paper, table by table.
    fn naive(s: &[i64], t: &[i64], length: usize, decay: f64) -> f64 {
        let mut below = vec![vec![1.0; t.len() + 1]; s.len() + 1];
        for _ in 1..length {
            let mut table = vec![vec![0.0; t.len() + 1]; s.len() + 1];
            for i in 1..=s.len() {
                let mut second = 0.0;
                for j in 1..=t.len() {
                    second *= decay;
                    if s[i - 1] == t[j - 1] {
                        second += decay * decay * below[i - 1][j - 1];
                    }
                    table[i][j] = decay * table[i - 1][j] + second;
                }
            }
            below = table;
        }
        let pairs = (0..s.len()).flat_map(|i| (0..t.len()).map(move |j| (i, j)));
        pairs.filter(|&(i, j)| s[i] == t[j]).map(|(i, j)| decay * decay * below[i][j]).sum()
    }

    fn random(count: usize, length: usize, symbols: i64) -> Vec<Vec<i64>> {
        let symbol = |i: usize, k: usize| ((i * 7919 + k * 104_729 + i * k * 31) % 1009) as i64 % symbols;
        (0..count).map(|i| (0..length + 5 * i).map(|k| symbol(i + 1, k + 1)).collect()).collect()
    }

    proptest! {
        #[test]
        fn values_are_those_of_all_subsequences(
            s in prop::collection::vec(0..3_i64, 0..9),
            t in prop::collection::vec(0..3_i64, 0..9),
            length in 1..5_usize,
            decay in 0.05..1.0_f64,
        ) {
            let value = gram(length, decay, &[s.clone(), t.clone()])[(0, 1)];
            let raw = |s: &[i64], t: &[i64]| enumerated(s, t, length, decay);
            let scale = (raw(&s, &s) * raw(&t, &t)).sqrt();
            let expected = if scale > 0.0 { raw(&s, &t) / scale } else { 0.0 };
            prop_assert!((value - expected).abs() < 1e-13);
        }
    }

    #[test]
    fn long_strings_have_the_values_of_the_paper() {
        for (length, decay) in [(1, 0.5), (2, 0.9), (3, 0.5), (5, 1.0), (8, 0.3)] {
            let strings = random(6, 90, 5);
            let values = gram(length, decay, &strings);
            let raw = |i: usize, j: usize| naive(&strings[i], &strings[j], length, decay);
            for i in 0..6 {
                for j in 0..6 {
                    let expected = raw(i, j) / (raw(i, i) * raw(j, j)).sqrt();
                    assert!((values[(i, j)] - expected).abs() < 1e-13, "{length} {decay}");
                }
            }
        }
    }

    #[test]
    fn values_depend_on_the_pair_alone() {
        let block = block(3, 0.7, &random(20, 40, 4));
        let values = block.gram_symmetric(Context::SEQUENTIAL).unwrap();
        assert_eq!(values, values.t());
        assert_eq!(block.gram(&block, Context::default()).unwrap(), values);
        for (i, j) in [(0, 19), (7, 3), (11, 11)] {
            let pair = block.select(&[i]).unwrap().gram(&block.select(&[j]).unwrap(), Context::SEQUENTIAL);
            assert_eq!(pair.unwrap()[(0, 0)], values[(i, j)]);
        }
    }

    #[test]
    fn short_strings_have_the_value_zero() {
        let block = block(3, 0.5, &[vec![], vec![1, 2], vec![1, 2, 3]]);
        assert_eq!(block.diagonal(), [0.0, 0.0, 1.0]);
        let values = block.gram_symmetric(Context::SEQUENTIAL).unwrap();
        assert_eq!(values.sum(), 1.0);
    }

    #[test]
    fn long_gaps_are_zero_and_large_values_are_refused() {
        let gap = |symbol| [vec![1], vec![symbol; 3000], vec![2]].concat();
        let values = gram(2, 0.5, &[gap(7), gap(8)]);
        assert_eq!((values[(0, 0)], values[(0, 1)]), (1.0, 0.0));
        let strings = [vec![1_i64; 4000]];
        let kernel = Subsequence::builder().length(400).decay(1.0).build().unwrap();
        let error = kernel.prepare(&[strings[0].as_slice()], Context::SEQUENTIAL).unwrap_err();
        assert!(error.to_string().starts_with("length=400 is not allowed: it must be smaller"));
        assert!(Subsequence::builder().length(0).build().is_err());
        assert!(Subsequence::builder().decay(0.0).build().is_err());
        assert!(Subsequence::builder().decay(f64::NAN).build().is_err());
    }
}
