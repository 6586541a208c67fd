//! The intercept of a reduced machine, re-optimized on training error (TR-132, footnote 4).
//!
//! A reduced normal vector differs from the full one, so the intercept of the full machine is not the best one. The training
//! error as a function of the intercept is a step function, which is minimized by sorting and a sweep.
//!
//! Invariant: a shift never increases the training error, and does not lie between scores that differ by the rounding of single
//! precision: samples that are evaluated again would fall on either side. Cost: O(n log n) for two classes, O(q n) for a sweep over q.
//!
//! ```
//! use svmarrow::reduced_set::threshold;
//!
//! // A shift of the scores by which all four have the right sign.
//! let shift = threshold::binary(&[0.5, 1.0, 2.0, 3.0], &[false, false, true, true], None)?;
//! assert!(1.0 + shift < 0.0 && 2.0 + shift > 0.0);
//! # Ok::<(), svmarrow::Error>(())
//! ```

use ndarray::ArrayView2;

use crate::context::Context;
use crate::error::Result;
use crate::memory::TryCollect;

/// Returns the shift of binary scores, positive for the positive class, that minimizes the weighted training error: the
/// smallest absolute one among equals, 0 if none is better. Cost O(n log n).
pub fn binary(scores: &[f64], positive: &[bool], weights: Option<&[f64]>) -> Result<f64> {
    let rows: Vec<(f64, f64)> = scores
        .iter()
        .zip(positive)
        .enumerate()
        .map(|(i, (&score, &positive))| {
            let weight = weights.map_or(1.0, |w| w[i]);
            (-score, if positive { weight } else { -weight })
        })
        .collect::<Vec<_>>();
    best_shift(rows)
}

/// Difference of two scores that rounding may have made, relative to the largest score.
const RESOLUTION: f64 = 4.0 * f32::EPSILON as f64;

/// Returns the best shift for rows, each with the shift above which it is accepted and the gain of accepting it.
fn best_shift(mut rows: Vec<(f64, f64)>) -> Result<f64> {
    rows.retain(|row| row.0.is_finite());
    let (lowest, highest) = rows
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), row| (low.min(row.0), high.max(row.0)));
    best_among(rows, 0.0, lowest, highest)
}

/// Returns the same from the relevant rows, the sum of the gains of those below, and the range of all.
fn best_among(mut rows: Vec<(f64, f64)>, below: f64, lowest: f64, highest: f64) -> Result<f64> {
    if rows.is_empty() {
        return Ok(0.0);
    }
    let unchanged = below + rows.iter().filter(|row| row.0 < 0.0).map(|row| row.1).sum::<f64>();
    let resolution = RESOLUTION * highest.abs().max(lowest.abs());
    let below = below + keep_near(&mut rows, resolution)?;
    rows.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut best, mut best_shift) = (unchanged, 0.0_f64);
    let mut consider = |gain: f64, shift: f64| {
        // A tiny gain is a rounding error of the weights.
        let clear = 1e-12 * (1.0 + best.abs());
        if gain > best + clear
            || (gain > best - clear && gain > unchanged + clear && shift.abs() < best_shift.abs())
        {
            (best, best_shift) = (gain, shift);
        }
    };
    let margin = (1e-3 * (highest - lowest).max(1e-6)).max(resolution);
    if rows[0].0 == lowest {
        consider(below, lowest - margin);
    }
    let mut gain = below;
    for k in 0..rows.len() {
        gain += rows[k].1;
        match rows.get(k + 1) {
            Some(next) if next.0 - rows[k].0 > resolution => consider(gain, f64::midpoint(rows[k].0, next.0)),
            None if rows[k].0 == highest => consider(gain, highest + margin),
            Some(_) | None => {}
        }
    }
    Ok(best_shift)
}

/// Keeps the rows near the best shift; returns the sum of the gains of those below them.
///
/// Upwards from 0, rows with a gain must compensate those with a cost. The search ends where the costs exceed the sum of all
/// gains, and at the last row with a gain; those that the resolution does not part from it and the next one are kept too, so
/// that midpoints between neighbors do not change. The same holds downwards with the signs changed. Errors are few, so few
/// rows remain to sort.
fn keep_near(rows: &mut Vec<(f64, f64)>, resolution: f64) -> Result<f64> {
    let above = rows.iter().filter(|row| row.0 >= 0.0).map(|row| (row.0, row.1));
    let below = rows.iter().filter(|row| row.0 < 0.0).map(|row| (-row.0, -row.1));
    let (highest, lowest) = (max_distance(above, resolution)?, -max_distance(below, resolution)?);
    let mut below = 0.0;
    rows.retain(|row| {
        if row.0 < lowest {
            below += row.1;
        }
        (lowest..=highest).contains(&row.0)
    });
    Ok(below)
}

/// Returns the maximum distance to search among rows at a distance from 0, each with its gain.
fn max_distance(rows: impl Iterator<Item = (f64, f64)> + Clone, resolution: f64) -> Result<f64> {
    let (mut last, mut total, mut count) = (0.0_f64, 0.0, 0_usize);
    for (at, gain) in rows.clone().filter(|row| row.1 > 0.0) {
        last = last.max(at);
        total += gain;
        count += 1;
    }
    // The row that is clearly after the last one with a gain; without gains, the rows next to 0.
    let end = if count == 0 { last } else { last + resolution };
    let after = rows.clone().filter(|row| row.0 > end).fold(f64::INFINITY, |next, row| next.min(row.0));
    let mut costs: Vec<(f64, f64)> = rows.filter(|row| row.1 < 0.0 && row.0 <= after).collect();
    if count == 0 || costs.is_empty() {
        return if after.is_finite() { Ok(after) } else { Ok(last) };
    }
    // The nearest rows with a cost, doubled in number until their costs exceed the gains.
    let mut take = (count + 2).min(costs.len());
    loop {
        if take < costs.len() {
            costs.select_nth_unstable_by(take - 1, |a, b| a.0.total_cmp(&b.0));
        }
        let spent: f64 = costs[..take].iter().map(|row| -row.1).sum();
        if spent > total {
            return Ok(costs[..take].iter().fold(0.0, |far: f64, row| far.max(row.0)));
        }
        if take == costs.len() {
            return if after.is_finite() {
                Ok(after)
            } else {
                Ok(last.max(costs.iter().fold(0.0, |a, r| f64::max(a, r.0))))
            };
        }
        take = (2 * take).min(costs.len());
    }
}

/// Returns shifts (q,) of scores (n, q) that reduce the weighted training error of the largest score: coordinate descent with
/// exact minimization over each coordinate, until none improves; zeros if none does.
///
/// The two largest scores of every row are stored, so that the rival of output j is known without the others; rows are in the
/// order of their labels and scores column by column, so that a coordinate is one pass over two arrays. Cost O(q n) for a
/// sweep, one subtraction and comparison for each score.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped).
///
/// # Panics
/// If a label is not below q, the lengths disagree, a weight is not positive or the scores are not row-major.
pub fn joint(
    scores: ArrayView2<'_, f64>,
    labels: &[usize],
    weights: Option<&[f64]>,
    ctx: Context<'_>,
) -> Result<Vec<f64>> {
    const MAX_SWEEPS: usize = 10;
    let q = scores.ncols();
    assert!(scores.nrows() == labels.len() && labels.iter().all(|&l| l < q));
    assert!(weights.is_none_or(|weights| weights.len() == labels.len() && weights.iter().all(|&w| w > 0.0)));
    if q < 2 {
        return Ok(vec![0.0; q]);
    }
    let scores = scores.to_slice().expect("the scores must be row-major");
    let mut descent = CoordinateDescent::new(scores, labels, weights, q)?;
    let mut counter = ctx.counter("thresholds", MAX_SWEEPS);
    for _ in 0..MAX_SWEEPS {
        let mut moved = false;
        for j in 0..q {
            counter.charge(16 * labels.len() as u64)?;
            let shift = descent.best_shift(j)?;
            if shift != 0.0 {
                descent.shift(j, shift);
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    Ok(descent.shifts)
}

/// State of the coordinate descent.
struct CoordinateDescent<'a> {
    /// Scores (n, q) in the given order of rows.
    scores: &'a [f64],
    /// Index in `scores` of each row, in the order of the labels.
    rows: Vec<usize>,
    /// Rows of class j are starts[j]..starts[j + 1].
    starts: Vec<usize>,
    /// Weight of each row, positive.
    weights: Vec<f64>,
    /// Scores (q, n) in the order of the labels.
    columns: Vec<f64>,
    /// The largest absolute score.
    largest_score: f64,
    shifts: Vec<f64>,
    top_two: Vec<[usize; 2]>,
    /// The shifted score of the label for correct rows, infinity for the others.
    correct_score: Vec<f64>,
    /// The misclassified rows, with their labels.
    wrong: Vec<(usize, usize)>,
}

impl<'a> CoordinateDescent<'a> {
    /// Sorts the rows by label.
    fn new(scores: &'a [f64], labels: &[usize], weights: Option<&[f64]>, q: usize) -> Result<Self> {
        let mut rows: Vec<usize> = (0..labels.len()).collect();
        rows.sort_unstable_by_key(|&i| (labels[i], i));
        let starts = (0..=q).map(|j| rows.partition_point(|&i| labels[i] < j)).collect::<Vec<_>>();
        let weights = rows.iter().map(|&i| weights.map_or(1.0, |weights| weights[i])).collect::<Vec<_>>();
        let columns = (0..q).flat_map(|j| rows.iter().map(move |&i| scores[i * q + j])).try_collect_vec()?;
        let shifts = vec![0.0; q];
        let top_two =
            rows.iter().map(|&i| two_largest(&scores[i * q..(i + 1) * q], &shifts)).collect::<Vec<_>>();
        let correct_score = vec![0.0; rows.len()];
        let mut descent = Self {
            scores,
            rows,
            starts,
            weights,
            columns,
            largest_score: scores.iter().fold(0.0, |largest, score| largest.max(score.abs())),
            shifts,
            top_two,
            correct_score,
            wrong: Vec::new(),
        };
        descent.update_correct_scores();
        Ok(descent)
    }

    /// Returns a shifted score.
    fn value(&self, row: usize, output: usize) -> f64 {
        self.columns[output * self.rows.len() + row] + self.shifts[output]
    }

    /// Returns a bound of the resolution of needed shifts, which are differences of two shifted scores.
    fn resolution(&self) -> f64 {
        let shift = self.shifts.iter().fold(0.0_f64, |largest, shift| largest.max(shift.abs()));
        RESOLUTION * 2.0 * (self.largest_score + shift)
    }

    /// Finds the correct and the misclassified rows.
    fn update_correct_scores(&mut self) {
        self.wrong.clear();
        for label in 0..self.shifts.len() {
            for row in self.starts[label]..self.starts[label + 1] {
                if self.top_two[row][0] == label {
                    self.correct_score[row] = self.value(row, label);
                } else {
                    self.correct_score[row] = f64::INFINITY;
                    self.wrong.push((row, label));
                }
            }
        }
    }

    /// Adds to the shift of an output.
    fn shift(&mut self, j: usize, shift: f64) {
        let q = self.shifts.len();
        self.shifts[j] += shift;
        for row in 0..self.rows.len() {
            // The two largest outputs of a row change only if j was or is one of them.
            let top_two = self.top_two[row];
            if top_two.contains(&j) || self.value(row, j) >= self.value(row, top_two[1]) {
                let at = self.rows[row];
                self.top_two[row] = two_largest(&self.scores[at * q..(at + 1) * q], &self.shifts);
            }
        }
        self.update_correct_scores();
    }

    /// Returns the shift of output j with the fewest errors. Above `needed` a row is assigned to j, which matters if j is its
    /// label or if it is correct without j.
    fn best_shift(&self, j: usize) -> Result<f64> {
        let n = self.rows.len();
        let (column, class_rows) = (&self.columns[j * n..(j + 1) * n], self.starts[j]..self.starts[j + 1]);
        let needed = |row: usize, rival: usize| self.value(row, rival) - column[row] - self.shifts[j];
        // Misclassified rows that may become correct; at a tie a row is not assigned to j.
        let mut near = Vec::new();
        for row in class_rows.clone() {
            let [first, second] = self.top_two[row];
            let at = needed(row, if first == j { second } else { first });
            if at >= 0.0 {
                near.push((at, self.weights[row]));
            }
        }
        for &(row, label) in &self.wrong {
            if self.top_two[row] == [j, label] {
                near.push((needed(row, label), -self.weights[row]));
            }
        }
        if near.is_empty() {
            return Ok(0.0);
        }
        let (low, high) =
            near.iter().fold((0.0_f64, 0.0_f64), |(low, high), row| (low.min(row.0), high.max(row.0)));
        let (low, high) = (low - self.resolution(), high + self.resolution());
        let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
        // Correct rows: those between the misclassified ones, and the next one on either side.
        let (mut above, mut below) = ((f64::INFINITY, 0.0), (f64::NEG_INFINITY, 0.0));
        for part in [0..class_rows.start, class_rows.end..n] {
            let rows =
                self.correct_score[part.clone()].iter().zip(&column[part.clone()]).zip(&self.weights[part]);
            for ((&top, &score), &weight) in rows {
                let at = top - score - self.shifts[j];
                if at <= high {
                    near.push((at, -weight));
                } else if at < f64::INFINITY {
                    above = match above {
                        (first, gain) if first == at => (first, gain - weight),
                        (first, _) if first > at => (at, -weight),
                        other => other,
                    };
                    highest = highest.max(at);
                }
            }
        }
        let mut under = 0.0;
        for row in class_rows {
            let [first, second] = self.top_two[row];
            let at = needed(row, if first == j { second } else { first });
            if at < 0.0 {
                lowest = lowest.min(at);
                highest = highest.max(at);
                let weight = self.weights[row];
                if at >= low {
                    near.push((at, weight));
                } else {
                    under += weight;
                    below = match below {
                        (last, gain) if last == at => (last, gain + weight),
                        (last, _) if last < at => (at, weight),
                        other => other,
                    };
                }
            }
        }
        near.extend([above, below].into_iter().filter(|row| row.1 != 0.0));
        under -= below.1;
        for row in &near {
            (lowest, highest) = (lowest.min(row.0), highest.max(row.0));
        }
        best_among(near, under, lowest, highest)
    }
}

/// Returns the outputs with the largest and the second largest shifted score, the later among equals.
fn two_largest(line: &[f64], shifts: &[f64]) -> [usize; 2] {
    let value = |k: usize| line[k] + shifts[k];
    let (mut first, mut second) = if value(1) >= value(0) { (1, 0) } else { (0, 1) };
    for k in 2..line.len() {
        if value(k) >= value(first) {
            (first, second) = (k, first);
        } else if value(k) >= value(second) {
            second = k;
        }
    }
    [first, second]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::matrix;
    use proptest::prelude::*;

    fn errors(scores: &[f64], positive: &[bool], shift: f64) -> usize {
        scores.iter().zip(positive).filter(|&(&s, &p)| (s + shift > 0.0) != p).count()
    }

    /// Sorts every row.
    fn plain_shift(mut rows: Vec<(f64, f64)>) -> f64 {
        rows.retain(|row| row.0.is_finite());
        if rows.is_empty() {
            return 0.0;
        }
        rows.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let unchanged: f64 = rows.iter().filter(|row| row.0 < 0.0).map(|row| row.1).sum();
        let (mut best, mut best_shift) = (unchanged, 0.0_f64);
        let mut consider = |gain: f64, shift: f64| {
            // A tiny gain is a rounding error of the weights.
            let clear = 1e-12 * (1.0 + best.abs());
            if gain > best + clear
                || (gain > best - clear && gain > unchanged + clear && shift.abs() < best_shift.abs())
            {
                (best, best_shift) = (gain, shift);
            }
        };
        let (lowest, highest) = (rows[0].0, rows[rows.len() - 1].0);
        let resolution = RESOLUTION * highest.abs().max(lowest.abs());
        let margin = (1e-3 * (highest - lowest).max(1e-6)).max(resolution);
        consider(0.0, lowest - margin);
        let mut gain = 0.0;
        for k in 0..rows.len() {
            gain += rows[k].1;
            match rows.get(k + 1) {
                Some(next) if next.0 - rows[k].0 > resolution => {
                    consider(gain, f64::midpoint(rows[k].0, next.0));
                }
                Some(_) => {}
                None => consider(gain, rows[k].0 + margin),
            }
        }
        best_shift
    }

    #[test]
    fn no_threshold_lies_between_scores_that_rounding_parts() {
        // Of three samples at the same place two are negative; rounding in single precision has moved one of them.
        let scores = [1.0, 1.0 - 6e-8, 1.0 - 6e-8, 0.5, 0.2];
        let positive = [true, false, false, false, false];
        let shift = binary(&scores, &positive, None).unwrap();
        assert!(scores.iter().all(|score| (score + shift).abs() > 1e-7), "{shift}");
        assert_eq!(errors(&scores, &positive, shift), 1);
    }

    #[test]
    fn rows_that_rounding_parts_do_not_hide_the_next_one() {
        // After a shift of the first output the last sample needs .125625, at which rounding places a sample that it costs.
        let rows: [([f64; 4], usize, f64); 5] = [
            ([-0.5, -0.125, 0.0, 0.0], 0, 1.0),
            ([1.0, 0.0, 0.875, 0.0], 0, 1.0),
            ([0.125, 0.0, 0.5, 0.0], 0, 1.0),
            ([-0.75, -0.5, -0.25, -0.25], 0, 1.0),
            ([0.875, 1.25, 0.0, 0.0], 1, 1.5),
        ];
        let scores: Vec<f64> = rows.iter().flat_map(|row| row.0).collect();
        let labels: Vec<usize> = rows.iter().map(|row| row.1).collect();
        let weights: Vec<f64> = rows.iter().map(|row| row.2).collect();
        let shifts = joint(matrix((5, 4), &scores).unwrap(), &labels, Some(&weights), Context::default());
        assert_eq!(shifts.unwrap(), [0.500625, 0.188125, 0.0, 0.0]);
        // The same in one coordinate, on either side of 0.
        for sign in [1.0, -1.0] {
            let rows = vec![
                (0.5 * sign, 1.5 * sign),
                ((0.5 + 1e-12) * sign, -sign),
                (sign, -sign),
                (2.0 * sign, -sign),
            ];
            assert_eq!(best_shift(rows.clone()).unwrap(), plain_shift(rows));
        }
    }

    /// Searches every rival.
    fn plain_joint(scores: &[f64], labels: &[usize], weights: &[f64], q: usize) -> Vec<f64> {
        const MAX_SWEEPS: usize = 10;
        assert!(scores.len() == labels.len() * q && labels.iter().all(|&l| l < q));
        let mut shifts = vec![0.0; q];
        for _ in 0..MAX_SWEEPS {
            let mut moved = false;
            for j in 0..q {
                let rows = scores
                    .chunks_exact(q)
                    .zip(labels)
                    .zip(weights)
                    .filter_map(|((line, &label), &weight)| {
                        let rival = (0..q)
                            .filter(|&k| k != j)
                            .max_by(|&a, &b| (line[a] + shifts[a]).total_cmp(&(line[b] + shifts[b])))?;
                        // Above this further shift the row is given to j; that matters where the row is j's or the rival's.
                        let needed = line[rival] + shifts[rival] - line[j] - shifts[j];
                        let gain = f64::from(label == j) - f64::from(label == rival);
                        (gain != 0.0).then_some((needed, weight * gain))
                    })
                    .collect();
                let shift = plain_shift(rows);
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

    proptest! {
        #[test]
        fn the_search_near_zero_finds_what_the_whole_search_finds(
            rows in prop::collection::vec((-30..30_i32, 0..4_usize), 1..60),
            weighted in any::<bool>(),
        ) {
            let gains = if weighted { [1.0, -1.0, 2.5, -0.3] } else { [1.0, -1.0, -1.0, -1.0] };
            let rows: Vec<(f64, f64)> = rows.iter().map(|r| (f64::from(r.0) / 4.0, gains[r.1])).collect();
            prop_assert_eq!(best_shift(rows.clone()).unwrap(), plain_shift(rows));
        }

        #[test]
        fn joint_shifts_are_those_of_the_plain_search(
            rows in prop::collection::vec((prop::array::uniform4(-12..12_i32), 0..4_usize), 1..60),
            of_class in prop::array::uniform4(1..5_u8),
            weighted in any::<bool>(),
        ) {
            let scores: Vec<f64> = rows.iter().flat_map(|r| r.0.map(|v| f64::from(v) / 8.0)).collect();
            let labels: Vec<usize> = rows.iter().map(|r| r.1).collect();
            let weights: Vec<f64> =
                labels.iter().map(|&l| if weighted { f64::from(of_class[l]) / 2.0 } else { 1.0 }).collect();
            let shifts = joint(
                matrix((labels.len(), 4), &scores).unwrap(),
                &labels,
                weighted.then_some(weights.as_slice()),
                Context::default(),
            );
            prop_assert_eq!(shifts.unwrap(), plain_joint(&scores, &labels, &weights, 4));
        }

        #[test]
        fn no_shift_makes_fewer_errors(rows in prop::collection::vec((-8..8_i32, any::<bool>()), 1..40)) {
            let scores: Vec<f64> = rows.iter().map(|r| f64::from(r.0) / 4.0 + 0.01).collect();
            let positive: Vec<bool> = rows.iter().map(|r| r.1).collect();
            let n_errors = errors(&scores, &positive, binary(&scores, &positive, None).unwrap());
            for k in -30..30 {
                prop_assert!(n_errors <= errors(&scores, &positive, f64::from(k) / 8.0));
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
            prop_assert!(wrong(&joint(matrix((labels.len(), 3), &scores).unwrap(), &labels, None, Context::default()).unwrap()) <= wrong(&[0.0; 3]));
        }
    }

    #[test]
    fn nothing_to_gain_means_no_shift() {
        assert_eq!(binary(&[-1.0, 2.0], &[false, true], None).unwrap(), 0.0);
        assert_eq!(binary(&[], &[], None).unwrap(), 0.0);
        assert!(binary(&[-3.0, -2.0, -1.0], &[false, true, true], None).unwrap() > 2.0);
    }
}
