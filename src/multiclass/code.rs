//! A code: which classes each binary machine puts on its positive side, which on its negative, which it leaves out.
//!
//! Distances (Rifkin 2002, (4.48), (4.49)): between two rows sum_i (1 - M_ai M_bi) / 2, so that a zero counts one half;
//! between two columns the same over the classes, to the other column or its opposite, whichever is nearer, since a
//! column and its opposite make the same machine.
//!
//! Invariants of a [`CodeMatrix`]: at least two classes and one column, every column has both signs, no row is
//! zero and no two are equal. Cost of the distances: pairs times words of 64 entries.

use crate::context::{Context, WorkCounter};
use crate::error::{Error, Result};
use crate::memory::{try_matrix, try_to_matrix, try_vec, try_zero_matrix};
use ndarray::{Array2, ArrayView2};

/// Maximum number of classes of a complete code: 16,383 columns.
const MAX_COMPLETE_CLASSES: usize = 15;
/// Multiplications that take as long as the inner product of two words.
const WORD_PRODUCT_COST: usize = 8;

/// A code over some classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeMatrix {
    /// (classes, columns), row-major.
    entries: Array2<i8>,
}

impl CodeMatrix {
    /// A code from its entries (classes, columns).
    ///
    /// # Errors
    /// [`Error::Param`] where an invariant of the type does not hold.
    pub fn new(entries: ArrayView2<'_, i8>) -> Result<Self> {
        let refused = |value: String, rule: &str| Err(Error::param("code", value, rule));
        let (classes, columns) = entries.dim();
        if classes < 2 {
            return refused(format!("{classes} rows"), "of at least 2 rows, one a class");
        }
        if columns == 0 {
            return refused("no columns".into(), "of at least one column");
        }
        let code = Self { entries: try_to_matrix(entries)? };
        if let Some(entry) = code.entries.iter().find(|e| !(-1..=1).contains(*e)) {
            return refused(format!("an entry {entry}"), "made of -1, 0 and 1");
        }
        for (column, sign) in (0..columns).flat_map(|column| [(column, -1), (column, 1)]) {
            if (0..classes).all(|class| code.entry(class, column) != sign) {
                let rule = "of columns with both signs, or the column separates nothing";
                return refused(format!("column {column} without {sign:+}"), rule);
            }
        }
        if let Some(class) = (0..classes).find(|&class| code.row(class).iter().all(|entry| *entry == 0)) {
            return refused(format!("row {class} of zeros"), "of rows that take part in a column");
        }
        let mut order: Vec<usize> = (0..classes).collect();
        order.sort_unstable_by_key(|&class| (code.row(class), class));
        if let Some(pair) = order.windows(2).find(|pair| code.row(pair[0]) == code.row(pair[1])) {
            let value = format!("equal rows {} and {}", pair[0].min(pair[1]), pair[0].max(pair[1]));
            return refused(value, "of distinct rows, or no decoder can tell the classes apart");
        }
        Ok(code)
    }

    /// A machine for each class against all others; one for two classes, positive for the second.
    pub fn one_vs_rest(classes: usize) -> Result<Self> {
        let of_two = |(class, _)| if class == 1 { 1 } else { -1 };
        let of_many = |(class, column)| if class == column { 1 } else { -1 };
        match classes {
            2 => Self::from_fn(2, 1, of_two),
            _ => Self::from_fn(classes, classes, of_many),
        }
    }

    /// A code from a function of class and column.
    pub(super) fn from_fn(
        classes: usize,
        columns: usize,
        entry: impl FnMut((usize, usize)) -> i8,
    ) -> Result<Self> {
        Self::new(try_matrix((classes, columns), entry)?.view())
    }

    /// A machine for each pair of classes a < b in the order (0, 1), (0, 2), ..., (1, 2), ..., positive for a; for two
    /// classes positive for the second.
    pub fn one_vs_one(classes: usize) -> Result<Self> {
        if classes <= 2 {
            return Self::one_vs_rest(classes);
        }
        let mut entries = try_zero_matrix("a matrix of results", (classes, classes * (classes - 1) / 2))?;
        let pairs = (0..classes).flat_map(|a| (a + 1..classes).map(move |b| (a, b)));
        for (column, (a, b)) in pairs.enumerate() {
            entries[[a, column]] = 1;
            entries[[b, column]] = -1;
        }
        Self::new(entries.view())
    }

    /// A machine for every way to part the classes in two: 2^(classes - 1) - 1 columns, all positive for class 0.
    ///
    /// # Errors
    /// [`Error::Param`] for more than 15 classes.
    pub fn complete(classes: usize) -> Result<Self> {
        if classes <= 2 {
            return Self::one_vs_rest(classes);
        }
        if classes > MAX_COMPLETE_CLASSES {
            let rule = format!(
                "another than complete for more than {MAX_COMPLETE_CLASSES} classes (2^(classes - 1) - 1 columns)"
            );
            return Err(Error::param("code", format!("complete for {classes} classes"), rule));
        }
        let columns = (1 << (classes - 1)) - 1;
        // Bit c - 1 of the column's number says whether class c is positive; all ones is left out.
        let is_positive = |(class, c): (usize, usize)| class == 0 || c >> (class - 1) & 1 == 1;
        Self::from_fn(classes, columns, |at| if is_positive(at) { 1 } else { -1 })
    }

    /// Returns the number of classes k, the rows of the matrix.
    pub fn classes(&self) -> usize {
        self.entries.nrows()
    }

    /// Returns the number of machines, the columns of the matrix.
    pub fn columns(&self) -> usize {
        self.entries.ncols()
    }

    /// Returns the matrix (k, machines) of -1, 0 and 1; 0 leaves a class out of a machine.
    pub fn entries(&self) -> ArrayView2<'_, i8> {
        self.entries.view()
    }

    /// All entries, when the code is no longer needed.
    pub fn into_entries(self) -> Array2<i8> {
        self.entries
    }

    /// Returns the entries of a class, one for each machine.
    pub fn row(&self, class: usize) -> &[i8] {
        self.entries.row(class).to_slice().expect("entries are row-major")
    }

    /// Entry of a class in a machine's column.
    pub fn entry(&self, class: usize, column: usize) -> i8 {
        self.entries[[class, column]]
    }

    /// Twice the smallest distance of two rows.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn twice_row_distance(&self, ctx: Context<'_>) -> Result<usize> {
        let rows = Signs::new(self.classes(), self.columns(), |i, k| self.entry(i, k))?;
        let mut counter = ctx.counter("code", self.classes());
        rows.nearest(0, |inner| self.columns().saturating_add_signed(-inner), &mut counter)
    }

    /// Twice the smallest distance of two columns, or of a column and the opposite of another; none for one column.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn twice_column_distance(&self, ctx: Context<'_>) -> Result<Option<usize>> {
        if self.columns() < 2 {
            return Ok(None);
        }
        let columns = Signs::new(self.columns(), self.classes(), |i, k| self.entry(k, i))?;
        let of_column = |i: usize| {
            (0..i).map(|j| self.classes() - columns.inner(i, j).unsigned_abs()).min().unwrap_or(usize::MAX)
        };
        let mut nearest = None;
        let work = (WORD_PRODUCT_COST * self.columns() * columns.words) as u64;
        ctx.counter("code", self.columns()).for_each_batch(self.columns(), work, |part, _| {
            let distances = ctx.map(part.len(), |i| of_column(part.start + i));
            nearest = distances.into_iter().chain(nearest).min();
            Ok(())
        })?;
        Ok(nearest)
    }
}

/// Rows of signs as bits: those that are +1, those that are -1.
pub(super) struct Signs {
    rows: usize,
    words: usize,
    plus: Vec<u64>,
    minus: Vec<u64>,
}

impl Signs {
    pub(super) fn new(rows: usize, len: usize, entry: impl Fn(usize, usize) -> i8) -> Result<Self> {
        let words = len.div_ceil(64);
        let mut signs =
            Self { rows, words, plus: try_vec![0; rows * words]?, minus: try_vec![0; rows * words]? };
        for i in 0..rows {
            for k in 0..len {
                let (word, bit) = (i * words + k / 64, 1 << (k % 64));
                match entry(i, k) {
                    1 => signs.plus[word] |= bit,
                    -1 => signs.minus[word] |= bit,
                    _ => {}
                }
            }
        }
        Ok(signs)
    }

    /// Inner product of two rows.
    fn inner(&self, i: usize, j: usize) -> isize {
        let (p, m) = (&self.plus, &self.minus);
        let mut product = 0;
        for (k, l) in (i * self.words..(i + 1) * self.words).zip(j * self.words..) {
            let agree = (p[k] & p[l]).count_ones() + (m[k] & m[l]).count_ones();
            let differ = (p[k] & m[l]).count_ones() + (m[k] & p[l]).count_ones();
            product += agree as isize - differ as isize;
        }
        product
    }

    /// The smallest `distance` (of an inner product) of two rows; stops early with a value that is at most `enough`.
    pub(super) fn nearest(
        &self,
        enough: usize,
        distance: impl Fn(isize) -> usize,
        counter: &mut WorkCounter<'_>,
    ) -> Result<usize> {
        let mut nearest = usize::MAX;
        for i in 1..self.rows {
            counter.charge((WORD_PRODUCT_COST * i * self.words) as u64)?;
            for j in 0..i {
                nearest = nearest.min(distance(self.inner(i, j)));
            }
            if nearest <= enough {
                break;
            }
        }
        Ok(nearest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::arr2;

    fn naive(code: &CodeMatrix) -> (usize, usize) {
        let product = |n: usize, a: &dyn Fn(usize) -> i8, b: &dyn Fn(usize) -> i8| -> isize {
            (0..n).map(|k| isize::from(a(k) * b(k))).sum()
        };
        let (mut rows, mut columns) = (usize::MAX, usize::MAX);
        for a in 0..code.classes() {
            for b in 0..a {
                let inner = product(code.columns(), &|k| code.entry(a, k), &|k| code.entry(b, k));
                rows = rows.min((code.columns() as isize - inner) as usize);
            }
        }
        for a in 0..code.columns() {
            for b in 0..a {
                let inner = product(code.classes(), &|k| code.entry(k, a), &|k| code.entry(k, b));
                columns = columns.min(code.classes() - inner.unsigned_abs());
            }
        }
        (rows, columns)
    }

    #[test]
    fn distances_equal_those_of_the_definition() {
        for classes in 3..9 {
            for code in [
                CodeMatrix::one_vs_rest(classes).unwrap(),
                CodeMatrix::one_vs_one(classes).unwrap(),
                CodeMatrix::complete(classes).unwrap(),
            ] {
                let actual = (
                    code.twice_row_distance(Context::default()).unwrap(),
                    code.twice_column_distance(Context::SEQUENTIAL).unwrap().unwrap(),
                );
                assert_eq!(actual, naive(&code), "{classes} {}", code.columns());
            }
        }
    }

    #[test]
    fn complete_codes_part_the_classes_in_every_way_once() {
        let code = CodeMatrix::complete(5).unwrap();
        assert_eq!(code.columns(), 15);
        let mut columns: Vec<Vec<i8>> =
            (0..15).map(|c| (0..5).map(|class| code.entry(class, c)).collect()).collect();
        columns.sort();
        columns.dedup();
        assert_eq!(columns.len(), 15);
        assert!(CodeMatrix::complete(16).is_err());
    }

    #[test]
    fn refuses_what_is_no_code() {
        for (entries, word) in [
            (arr2(&[[1]]), "at least 2 rows"),
            (Array2::zeros((2, 0)), "at least one column"),
            (arr2(&[[1], [2]]), "-1, 0 and 1"),
            (arr2(&[[1], [0]]), "column 0 without -1"),
            (arr2(&[[1], [1], [-1]]), "equal rows 0 and 1"),
            (arr2(&[[1], [0], [-1]]), "row 1 of zeros"),
        ] {
            let message = CodeMatrix::new(entries.view()).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
    }
}
