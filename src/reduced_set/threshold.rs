//! The intercept of a reduced machine, re-optimised on training error (TR-132, footnote 4).
//!
//! A reduced normal vector is a little short and a little turned; the intercept of the full machine is then no longer
//! the best one. Training error as a function of the intercept is a step function: sort and sweep.

/// The shift to add to binary scores (positive means positive) that minimises the weighted training error; the
/// smallest in size among equals, 0 where nothing is gained. Cost O(n log n).
pub fn binary(scores: &[f64], positive: &[bool], weights: Option<&[f64]>) -> f64 {
    let rows: Vec<(f64, f64)> = scores
        .iter()
        .zip(positive)
        .enumerate()
        .map(|(i, (&score, &positive))| {
            let weight = weights.map_or(1.0, |w| w[i]);
            (-score, if positive { weight } else { -weight })
        })
        .collect();
    best_shift(rows)
}

/// `rows`: the shift above which the row counts as accepted, and what acceptance gains (negative: costs).
fn best_shift(mut rows: Vec<(f64, f64)>) -> f64 {
    rows.retain(|row| row.0.is_finite());
    if rows.is_empty() {
        return 0.0;
    }
    rows.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let unchanged: f64 = rows.iter().filter(|row| row.0 < 0.0).map(|row| row.1).sum();
    let (mut best, mut best_shift) = (unchanged, 0.0_f64);
    let mut consider = |gain: f64, shift: f64| {
        // A hair's gain from rounding in the weights is none.
        let clear = 1e-12 * (1.0 + best.abs());
        if gain > best + clear
            || (gain > best - clear && gain > unchanged + clear && shift.abs() < best_shift.abs())
        {
            (best, best_shift) = (gain, shift);
        }
    };
    let margin = 1e-3 * (rows[rows.len() - 1].0 - rows[0].0).max(1e-6);
    consider(0.0, rows[0].0 - margin);
    let mut gain = 0.0;
    for k in 0..rows.len() {
        gain += rows[k].1;
        match rows.get(k + 1) {
            Some(next) if next.0 > rows[k].0 => consider(gain, f64::midpoint(rows[k].0, next.0)),
            Some(_) => {}
            None => consider(gain, rows[k].0 + margin),
        }
    }
    best_shift
}

/// Shifts (q,) to add to scores (n, q), row-major, that lower the training error of the largest score: coordinate
/// descent, each coordinate solved exactly, until none gains. Zeros where nothing is gained. Cost O(q n log n) a sweep.
///
/// # Panics
/// If a label is not below `q` or the lengths disagree.
pub fn joint(scores: &[f64], labels: &[usize], q: usize) -> Vec<f64> {
    const SWEEPS: usize = 10;
    assert!(scores.len() == labels.len() * q && labels.iter().all(|&l| l < q));
    let mut shifts = vec![0.0; q];
    for _ in 0..SWEEPS {
        let mut moved = false;
        for j in 0..q {
            let rows = scores
                .chunks_exact(q)
                .zip(labels)
                .filter_map(|(line, &label)| {
                    let rival = (0..q)
                        .filter(|&k| k != j)
                        .max_by(|&a, &b| (line[a] + shifts[a]).total_cmp(&(line[b] + shifts[b])))?;
                    // Above this further shift the row is given to j; that matters where the row is j's or the rival's.
                    let needed = line[rival] + shifts[rival] - line[j] - shifts[j];
                    let gain = f64::from(label == j) - f64::from(label == rival);
                    (gain != 0.0).then_some((needed, gain))
                })
                .collect();
            let shift = best_shift(rows);
            if shift != 0.0 {
                shifts[j] += shift;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    shifts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn errors(scores: &[f64], positive: &[bool], shift: f64) -> usize {
        scores.iter().zip(positive).filter(|&(&s, &p)| (s + shift > 0.0) != p).count()
    }

    proptest! {
        #[test]
        fn no_shift_makes_fewer_errors(rows in prop::collection::vec((-8..8_i32, any::<bool>()), 1..40)) {
            let scores: Vec<f64> = rows.iter().map(|r| f64::from(r.0) / 4.0 + 0.01).collect();
            let positive: Vec<bool> = rows.iter().map(|r| r.1).collect();
            let found = errors(&scores, &positive, binary(&scores, &positive, None));
            for k in -30..30 {
                prop_assert!(found <= errors(&scores, &positive, f64::from(k) / 8.0));
            }
        }

        #[test]
        fn joint_shifts_never_add_errors(rows in prop::collection::vec((prop::array::uniform3(-1.0..1.0_f64), 0..3_usize), 1..40)) {
            let scores: Vec<f64> = rows.iter().flat_map(|r| r.0).collect();
            let labels: Vec<usize> = rows.iter().map(|r| r.1).collect();
            let wrong = |shifts: &[f64]| {
                scores.chunks_exact(3).zip(&labels).filter(|(line, label)| {
                    let best = (0..3).max_by(|&a, &b| (line[a] + shifts[a]).total_cmp(&(line[b] + shifts[b])));
                    best != Some(**label)
                }).count()
            };
            prop_assert!(wrong(&joint(&scores, &labels, 3)) <= wrong(&[0.0; 3]));
        }
    }

    #[test]
    fn nothing_to_gain_means_no_shift() {
        assert_eq!(binary(&[-1.0, 2.0], &[false, true], None), 0.0);
        assert_eq!(binary(&[], &[], None), 0.0);
        assert!(binary(&[-3.0, -2.0, -1.0], &[false, true, true], None) > 2.0);
    }
}
