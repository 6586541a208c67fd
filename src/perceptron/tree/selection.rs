//! Rounding of a fractional selection, and SMO steps towards the solution of its program for many vectors.
//!
//! A slack variable s in [0, C] without cost turns the budget into sum p + s = C. Each SMO step moves the steepest variable
//! that can rise and the partner with the largest decrease of the objective. Invariant between two steps: p is feasible
//! and `gradient` = Qp - w. Cost: O(m) for a step and m^2 initially, compared with m^3 for an exact solution.

use super::program::Program;
use crate::context::WorkCounter;
use crate::error::Result;
use crate::random::Random;
use crate::simd::blas::axpy;

/// Minimum curvature along a step; a smaller one is replaced by it.
const MIN_CURVATURE: f64 = 1e-14;

/// Improves a feasible `p` of the relaxed program by at most `steps` SMO steps for each variable; `tolerance` is relative
/// to the largest entry of w.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) if the monitor stops the work.
pub(super) fn improve(
    program: &Program<'_>,
    tolerance: f64,
    steps: usize,
    p: &mut [f64],
    counter: &mut WorkCounter<'_>,
) -> Result<()> {
    let (m, max_vectors) = (p.len(), program.max_vectors);
    let mut gradient = program.gradient(p);
    let mut slack = max_vectors - p.iter().sum::<f64>();
    let scale = program.scale();
    let entry = |i: usize, j: usize| program.q[[i, j]];
    // Index m is the slack: gradient 0, no curvature.
    for _ in 0..steps * m.max(1) {
        counter.charge(4 * m as u64)?;
        let (mut up, mut steepest) = if slack < max_vectors { (m, 0.0) } else { (usize::MAX, f64::INFINITY) };
        for (i, (&g, &p)) in gradient.iter().zip(p.iter()).enumerate() {
            if g < steepest && p < 1.0 {
                (up, steepest) = (i, g);
            }
        }
        if up == usize::MAX {
            break;
        }
        let diagonal = if up == m { 0.0 } else { entry(up, up) };
        let (mut down, mut gain, mut slope) = (usize::MAX, 0.0, tolerance * scale);
        let mut steep = 0.0;
        if slack > 0.0 && up != m && -steepest > slope {
            (down, gain, steep) = (m, steepest * steepest / diagonal.max(MIN_CURVATURE), -steepest);
        }
        for (j, (&g, &p)) in gradient.iter().zip(p.iter()).enumerate() {
            let difference = g - steepest;
            if p > 0.0 && difference > slope && j != up {
                let cross = if up == m { 0.0 } else { entry(up, j) };
                let decrease =
                    difference * difference / (diagonal + entry(j, j) - 2.0 * cross).max(MIN_CURVATURE);
                if decrease > gain {
                    (down, gain, steep) = (j, decrease, difference);
                }
            }
        }
        slope = steep;
        if down == usize::MAX {
            break;
        }
        let max_rise = if up == m { max_vectors - slack } else { 1.0 - p[up] };
        let max_fall = if down == m { slack } else { p[down] };
        let step = (gain / slope).min(max_rise).min(max_fall);
        for (index, sign, bound) in [(up, 1.0, step == max_rise), (down, -1.0, step == max_fall)] {
            let limit = if sign < 0.0 {
                0.0
            } else if index == m {
                max_vectors
            } else {
                1.0
            };
            let value = if index == m { &mut slack } else { &mut p[index] };
            *value = if bound { limit } else { *value + sign * step };
            if index < m {
                axpy(sign * step, program.row(index), &mut gradient);
            }
        }
    }
    Ok(())
}

/// Returns at most C members: the best of repeated draws with the fractional solution as probabilities (section 3.2). The
/// largest fractions are tried first, so the result is never worse than theirs.
pub(super) fn rounded(
    program: &Program<'_>,
    draws: usize,
    p: &[f64],
    random: &mut Random,
    counter: &mut WorkCounter<'_>,
) -> Result<Vec<bool>> {
    let max_vectors = program.max_vectors as usize;
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|&a, &b| p[b].total_cmp(&p[a]).then(a.cmp(&b)));
    let mut best = vec![0.0; p.len()];
    for &i in order.iter().take(max_vectors).filter(|&&i| p[i] > 0.0) {
        best[i] = 1.0;
    }
    let mut value = program.objective(&best);
    let mut draw = vec![0.0; p.len()];
    for _ in 0..draws {
        counter.charge((max_vectors.min(p.len()) * p.len()) as u64)?;
        let mut left = max_vectors;
        // In the order of the fractions, so that a draw of too many loses the least likely.
        for &i in &order {
            draw[i] = f64::from(u8::from(random.uniform() < p[i] && left > 0));
            left -= draw[i] as usize;
        }
        let cost = program.objective(&draw);
        if cost < value {
            value = cost;
            best.copy_from_slice(&draw);
        }
    }
    Ok(best.into_iter().map(|chosen| chosen == 1.0).collect())
}

#[cfg(test)]
mod tests {
    use super::super::program::box_budget_program;
    use super::*;
    use crate::context::Context;
    use crate::simd::blas::dot;
    use ndarray::Array2;

    fn program(m: usize, rank: usize, seed: u64) -> (Array2<f64>, Vec<f64>) {
        let mut random = Random::new(seed);
        let g: Vec<f64> = (0..m * rank).map(|_| random.normal()).collect();
        let q = Array2::from_shape_fn((m, m), |(i, j)| dot(&g[i * rank..][..rank], &g[j * rank..][..rank]));
        let w = q.rows().into_iter().map(|row| row.sum()).collect();
        (q, w)
    }

    #[test]
    fn smo_steps_reach_the_exact_solution() {
        for (m, rank, max_vectors) in
            [(30, 40, 12.0), (30, 7, 12.0), (25, 25, 40.0), (1, 1, 1.0), (40, 60, 1.0)]
        {
            let (q, w) = program(m, rank, 5);
            let (mut p, mut exact) = (vec![0.0; m], vec![0.0; m]);
            let program = Program { q: q.view(), w: &w, max_vectors };
            improve(&program, 1e-10, 10_000, &mut p, &mut Context::default().counter("", 0)).unwrap();
            let least = box_budget_program(&program, 1e-11, &mut exact).unwrap();
            assert!(p.iter().sum::<f64>() <= max_vectors + 1e-9 && p.iter().all(|p| (0.0..=1.0).contains(p)));
            assert!((program.objective(&p) - least).abs() <= 1e-7 * least.abs(), "{m} {rank} {max_vectors}");
        }
    }

    #[test]
    fn rounding_keeps_the_budget_and_finds_integer_solutions() {
        let (q, w) = program(12, 20, 9);
        let mut p = vec![0.0; 12];
        let program = Program { q: q.view(), w: &w, max_vectors: 4.0 };
        let relaxed = box_budget_program(&program, 1e-10, &mut p).unwrap();
        let chosen =
            rounded(&program, 200, &p, &mut Random::new(1), &mut Context::default().counter("", 0)).unwrap();
        assert!(chosen.iter().filter(|c| **c).count() <= 4);
        let value = |mask: u32| {
            let p: Vec<f64> = (0..12).map(|i| f64::from(mask >> i & 1)).collect();
            program.objective(&p)
        };
        let best = (0..1_u32 << 12).filter(|mask| mask.count_ones() <= 4).map(value).fold(f64::MAX, f64::min);
        let mask = chosen.iter().enumerate().map(|(i, c)| u32::from(*c) << i).sum();
        assert!(relaxed <= best + 1e-9 && value(mask) <= 0.8 * best, "{relaxed} {best} {}", value(mask));
    }
}
