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
//! draw in which a class takes part in less than two fifths of the machines is thrown away: the thesis asks for one
//! machine, but a class that few machines know is decoded badly.
//!
//! Of draws with equal distance the one is kept whose least used class takes part in the most machines, then the first. Draw number t has its own stream of random numbers: the code
//! follows from the seed whatever the number of threads. Cost: draws times pairs of rows times words of 64 columns; a
//! draw is left as soon as two of its rows are nearer than those of the best so far.

use std::collections::HashSet;

use super::code::{CodeMatrix, Signs};
use crate::control::{Monitor, Par};
use crate::error::{Error, Result};
use crate::random::Random;

/// Draws between two looks at the monitor.
const BATCH: usize = 256;

/// Which random code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// Every machine sees all classes.
    Dense,
    /// A machine sees about half of the classes.
    Sparse,
}

impl Drawn {
    fn columns(self, classes: usize) -> usize {
        let factor = if self == Self::Dense { 10.0 } else { 15.0 };
        (factor * (classes as f64).log2()).ceil() as usize
    }
}

/// The best of `draws` random codes; for two classes the one column that there is.
///
/// # Errors
/// [`Error::Param`] for fewer than two classes, no draws, or where no draw gave a code; [`Error::Cancelled`] where the
/// monitor says so.
pub fn draw(
    kind: Drawn,
    classes: usize,
    seed: u64,
    draws: usize,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<CodeMatrix> {
    if draws == 0 {
        return Err(Error::param("n_draws", draws, "at least 1"));
    }
    if classes <= 2 {
        return CodeMatrix::one_vs_rest(classes);
    }
    let columns = kind.columns(classes);
    if kind == Drawn::Dense && classes < 63 && columns as u64 >= (1_u64 << (classes - 1)) - 1 {
        return CodeMatrix::complete(classes);
    }
    // Twice the distance with the machines of the least used class, and the draw they came from.
    let mut best: ((usize, usize), Option<usize>) = ((0, 0), None);
    for first in (0..draws).step_by(BATCH) {
        monitor.go_on("code", first, draws)?;
        let found =
            par.map(BATCH.min(draws - first), |t| quality(kind, classes, columns, seed, first + t, best.0.0));
        for (t, quality) in found.into_iter().enumerate() {
            if quality.0 > 0 && quality > best.0 {
                best = (quality, Some(first + t));
            }
        }
    }
    let Some(number) = best.1 else {
        return Err(Error::param(
            "n_draws",
            draws,
            format!("more: no draw gave a code of {classes} distinct rows"),
        ));
    };
    let drawn = entries(kind, classes, columns, seed, number);
    let transposed = (0..classes * columns).map(|e| drawn[e % columns * classes + e / columns]).collect();
    CodeMatrix::new(classes, transposed)
}

/// Twice the row distance of a draw and the machines of its least used class; a distance below `least` may be too large.
fn quality(
    kind: Drawn,
    classes: usize,
    columns: usize,
    seed: u64,
    number: usize,
    least: usize,
) -> (usize, usize) {
    let drawn = entries(kind, classes, columns, seed, number);
    let uses = |class: usize| drawn.iter().skip(class).step_by(classes).filter(|entry| **entry != 0).count();
    let used = (0..classes).map(uses).min().unwrap_or(0);
    if kind == Drawn::Sparse && 5 * used < 2 * columns {
        return (0, 0);
    }
    let rows = Signs::new(classes, columns, |class, c| drawn[c * classes + class]);
    let nearest = rows.nearest(least.saturating_sub(1), |inner| columns.saturating_add_signed(-inner));
    if kind == Drawn::Sparse && nearest >= least && has_equal_rows(&drawn, classes) {
        // Zeros keep even equal rows apart by this measure.
        return (0, 0);
    }
    (nearest, used)
}

fn has_equal_rows(drawn: &[i8], classes: usize) -> bool {
    let row = |class: usize| drawn.iter().skip(class).step_by(classes).copied().collect::<Vec<i8>>();
    let mut seen = HashSet::new();
    (0..classes).any(|class| !seen.insert(row(class)))
}

/// The columns of a draw, one after the other.
fn entries(kind: Drawn, classes: usize, columns: usize, seed: u64, number: usize) -> Vec<i8> {
    let mut random = Random::stream(seed, number as u64);
    let mut all = Vec::with_capacity(classes * columns);
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
        let wanted = column.contains(&1) && column.contains(&-1);
        let fresh = || {
            let sign = column[0];
            kind == Drawn::Sparse || seen.insert(column.iter().map(|e| e * sign).collect::<Vec<i8>>())
        };
        if !(wanted && { fresh }()) {
            all.truncate(start);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Silent;

    #[test]
    fn the_best_draw_whatever_the_threads() {
        for kind in [Drawn::Dense, Drawn::Sparse] {
            for classes in [3, 4, 6, 10, 26, 70] {
                let make = |draws, par| draw(kind, classes, 7, draws, &Silent, par).unwrap();
                let code = make(300, Par::Sequential);
                assert_eq!(code, make(300, Par::Threads));
                assert!(code.twice_row_distance() >= make(20, Par::Sequential).twice_row_distance());
                if kind == Drawn::Dense {
                    assert!(!code.entries().contains(&0));
                    assert!(code.twice_column_distance(Par::Sequential).unwrap() > 0, "duplicates");
                }
            }
        }
        assert_eq!(draw(Drawn::Dense, 6, 0, 10, &Silent, Par::Sequential).unwrap().columns(), 26);
        assert_eq!(draw(Drawn::Sparse, 10, 0, 10, &Silent, Par::Sequential).unwrap().columns(), 50);
    }
}
