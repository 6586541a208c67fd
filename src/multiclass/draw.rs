//! Random codes: of many draws the one whose nearest rows are farthest apart (Allwein, Schapire, Singer 2000, as in
//! Rifkin 2002, 4.2.2 and 4.3).
//!
//! | code | columns | entries |
//! |---|---|---|
//! | dense | ceil(10 log2 N) | -1 or 1 |
//! | sparse | ceil(15 log2 N) | 0 with probability 1/2, else -1 or 1 |
//!
//! A column without both signs is drawn again at once. A dense column equal to an earlier one or its opposite is drawn
//! again too; where fewer distinct columns exist than are asked for, the dense code is the complete code. A sparse
//! draw in which a class takes part in less than a share of the machines is discarded. Rifkin (2002) requires one
//! machine, a share of 0; but the class of few machines is decoded badly.
//!
//! Among draws with equal distance, the one whose least used class takes part in the most machines is kept, then the first;
//! with a share of 0 it is the first.
//! Cost: draws times pairs of rows times words of 64 columns; a draw is left as soon as two of its rows are nearer than
//! those of the best so far.

use std::collections::HashSet;

use super::code::{CodeMatrix, Signs};
use super::draws::Draws;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::memory::try_with_capacity;
use crate::random::Random;

/// Which random code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drawn {
    /// Every machine sees all classes.
    Dense,
    /// A machine sees about half of the classes.
    Sparse {
        /// Share of the machines that every class takes part in at least; 0: in one machine, and more don't count.
        min_use: f64,
    },
}

impl Drawn {
    fn columns(self, classes: usize) -> usize {
        let factor = if self == Self::Dense { 10.0 } else { 15.0 };
        (factor * (classes as f64).log2()).ceil() as usize
    }

    /// Machines that every class must take part in.
    fn min_used(self, columns: usize) -> usize {
        match self {
            Self::Dense => columns,
            // A share such as 0.4 is no number of the machine: what it falls short of does not count.
            Self::Sparse { min_use } => ((min_use * columns as f64 - 1e-9).ceil() as usize).max(1),
        }
    }

    fn check(self) -> Result<()> {
        match self {
            Self::Sparse { min_use } if !(0.0..=1.0).contains(&min_use) => {
                Err(Error::param("min_use", min_use, "between 0 and 1"))
            }
            _ => Ok(()),
        }
    }
}

/// The best of many random codes; for two classes the one column that there is.
///
/// # Errors
/// [`Error::Param`] for fewer than two classes, no draws, or where no draw gave a code; [`Error::Stopped`] where the
/// monitor says so.
pub fn draw(kind: Drawn, classes: usize, draws: Draws, ctx: Context<'_>) -> Result<CodeMatrix> {
    draws.check()?;
    kind.check()?;
    if classes <= 2 {
        return CodeMatrix::one_vs_rest(classes);
    }
    let columns = kind.columns(classes);
    if kind == Drawn::Dense && classes < 63 && columns as u64 >= (1_u64 << (classes - 1)) - 1 {
        return CodeMatrix::complete(classes);
    }
    let random = RandomCode { kind, classes, columns, seed: draws.seed };
    let work = classes * (8 * columns + classes * columns.div_ceil(64));
    let Some(number) = draws.best(|number, best| random.quality(number, best), work, ctx)? else {
        let used = kind.min_used(columns);
        let rule = format!(
            "more: no draw gave a code of {classes} distinct rows, each used by {used} of {columns} machines"
        );
        return Err(Error::param("n_draws", draws.count, rule));
    };
    let drawn = random.entries(number)?;
    CodeMatrix::from_fn(classes, columns, |(class, column)| drawn[column * classes + class])
}

/// The parameters of all draws of a code.
struct RandomCode {
    kind: Drawn,
    classes: usize,
    columns: usize,
    seed: u64,
}

impl RandomCode {
    /// Twice the row distance of a draw and the machines of its least used class, zeros where it is no code; a distance
    /// below that of the best so far may be too large.
    fn quality(&self, number: u64, best: (usize, usize)) -> Result<(usize, usize)> {
        let &Self { kind, classes, columns, .. } = self;
        let drawn = self.entries(number)?;
        let of_class = |class: usize| drawn.iter().skip(class).step_by(classes);
        let uses = |class: usize| of_class(class).filter(|entry| **entry != 0).count();
        let used = (0..classes).map(uses).min().unwrap_or(0);
        if used < kind.min_used(columns) {
            return Ok((0, 0));
        }
        let rows = Signs::new(classes, columns, |class, c| drawn[c * classes + class])?;
        let enough = best.0.saturating_sub(1);
        let nearest = rows
            .nearest(
                enough,
                |inner| columns.saturating_add_signed(-inner),
                &mut Context::default().counter("", 0),
            )
            .unwrap_or(0);
        // Zeros keep even equal rows apart by this measure.
        let has_equal_rows = || {
            let mut seen = HashSet::new();
            (0..classes).any(|class| !seen.insert(of_class(class).copied().collect::<Vec<i8>>()))
        };
        if nearest == 0 || kind != Drawn::Dense && nearest >= best.0 && has_equal_rows() {
            return Ok((0, 0));
        }
        let is_as_printed = kind == Drawn::Sparse { min_use: 0.0 };
        Ok((nearest, if is_as_printed { 1 } else { used }))
    }

    /// The columns of a draw, one after the other.
    fn entries(&self, number: u64) -> Result<Vec<i8>> {
        let &Self { kind, classes, columns, seed } = self;
        let mut random = Random::stream(seed, number);
        let mut all = try_with_capacity("a code", classes * columns)?;
        let mut seen = HashSet::new();
        while all.len() < classes * columns {
            let start = all.len();
            for first in (0..classes).step_by(64) {
                let used = if kind == Drawn::Dense { u64::MAX } else { random.bits() };
                let positive = random.bits();
                all.extend((0..64.min(classes - first)).map(|bit| {
                    match (used >> bit & 1, positive >> bit & 1) {
                        (0, _) => 0,
                        (_, 0) => -1,
                        _ => 1_i8,
                    }
                }));
            }
            let column = &all[start..];
            let has_both_signs = column.contains(&1) && column.contains(&-1);
            let mut is_new = || {
                let sign = column[0];
                kind != Drawn::Dense || seen.insert(column.iter().map(|e| e * sign).collect::<Vec<i8>>())
            };
            if !(has_both_signs && is_new()) {
                all.truncate(start);
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_draw_whatever_the_threads() {
        for kind in [Drawn::Dense, Drawn::Sparse { min_use: 0.4 }, Drawn::Sparse { min_use: 0.0 }] {
            for classes in [3, 4, 6, 10, 26, 70] {
                let make = |draws, ctx| draw(kind, classes, Draws { count: draws, seed: 7 }, ctx).unwrap();
                let code = make(300, Context::SEQUENTIAL);
                assert_eq!(code, make(300, Context::default()));
                assert!(
                    code.twice_row_distance(Context::default()).unwrap()
                        >= make(20, Context::SEQUENTIAL).twice_row_distance(Context::default()).unwrap()
                );
                if kind == Drawn::Dense {
                    assert!(code.entries().iter().all(|entry| *entry != 0));
                    assert!(
                        code.twice_column_distance(Context::SEQUENTIAL).unwrap().unwrap() > 0,
                        "duplicates"
                    );
                }
            }
        }
        let ten = Draws { count: 10, seed: 0 };
        assert_eq!(draw(Drawn::Dense, 6, ten, Context::SEQUENTIAL).unwrap().columns(), 26);
        assert_eq!(draw(Drawn::Sparse { min_use: 0.4 }, 10, ten, Context::SEQUENTIAL).unwrap().columns(), 50);
    }
}
