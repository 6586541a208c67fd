//! The program of a selection (section 3.2), relaxed: min 1/2 p'Qp - w'p, 0 <= p <= 1, sum p <= C, Q positive
//! semidefinite, solved to the tolerance by a primal-dual interior-point method (Wright, Primal-dual interior-point
//! methods, SIAM 1997, chapter 1).
//!
//! With multipliers a of p >= 0, b of p <= 1, v of the slack s = C - sum p: Qp - w - a + b + v = 0 and a p = b (1 - p) =
//! v s = mu are solved by Newton steps for a falling mu. Eliminating the multipliers leaves
//! (Q + diag(a / p + b / (1 - p)) + (v / s) 11') dp = -(Qp - w - mu / p + mu / (1 - p) + mu / s).
//!
//! Between two steps 0 < p < 1, s > 0 and all multipliers are positive. Cost: m^3 / 6 a step, some 20 steps whatever Q
//! is. Tried and dropped: pair steps as in a decomposition solver, 100 ms where this takes 2 (m = 101, condition 1e9).

use crate::linalg::cholesky;
use crate::simd::blas::{axpy, dot};

/// Steps after which the program ends where it is.
const STEPS: usize = 100;
/// Part of the way to the boundary that a step may go.
const SHORT_OF: f64 = 0.995;
/// How much mu falls in a step.
const CENTRE: f64 = 0.1;

/// Solves the relaxed program; `q` is (m, m) row-major and symmetric, `most` positive; what `p` (m,) holds is
/// overwritten. `tolerance` bounds slopes and complementarity relative to the largest entry of w. Returns the objective.
pub fn box_budget_program(q: &[f64], w: &[f64], most: f64, tolerance: f64, p: &mut [f64]) -> f64 {
    let m = p.len();
    assert!(q.len() == m * m && w.len() == m, "the sizes of a program agree");
    let scale = w.iter().fold(0.0_f64, |largest, w| largest.max(w.abs()));
    if scale == 0.0 {
        p.fill(0.0);
        return 0.0;
    }
    p.fill((0.5 * most / m as f64).min(0.5));
    let (mut low, mut high, mut budget) = (vec![scale; m], vec![scale; m], scale);
    let mut system = vec![0.0; m * m];
    for _ in 0..STEPS {
        let slack = most - p.iter().sum::<f64>();
        let slopes: Vec<f64> = (0..m).map(|i| dot(&q[i * m..(i + 1) * m], p) - w[i]).collect();
        let residual = (0..m).map(|i| (slopes[i] - low[i] + high[i] + budget).abs()).fold(0.0, f64::max);
        let products = (0..m).map(|i| low[i] * p[i] + high[i] * (1.0 - p[i])).sum::<f64>() + budget * slack;
        let mu = products / (2 * m + 1) as f64;
        if residual <= tolerance * scale && products <= tolerance * scale {
            break;
        }
        let target = CENTRE * mu;
        let weight = budget / slack;
        for (i, line) in system.chunks_exact_mut(m).enumerate() {
            for (to, from) in line[..=i].iter_mut().zip(&q[i * m..]) {
                *to = from + weight;
            }
            line[i] += low[i] / p[i] + high[i] / (1.0 - p[i]);
        }
        if cholesky::factor(&mut system, m).is_err() {
            break;
        }
        let mut step: Vec<f64> =
            (0..m).map(|i| -(slopes[i] - target / p[i] + target / (1.0 - p[i]) + target / slack)).collect();
        cholesky::solve(&system, m, &mut step, 1);
        let total: f64 = step.iter().sum();
        let low_step: Vec<f64> = (0..m).map(|i| (target - low[i] * step[i]) / p[i] - low[i]).collect();
        let high_step: Vec<f64> =
            (0..m).map(|i| (target + high[i] * step[i]) / (1.0 - p[i]) - high[i]).collect();
        let budget_step = (target + budget * total) / slack - budget;
        let room = |value: f64, step: f64| if step < 0.0 { -value / step } else { f64::INFINITY };
        let mut primal = room(slack, -total);
        let mut dual = room(budget, budget_step);
        for i in 0..m {
            primal = primal.min(room(p[i], step[i])).min(room(1.0 - p[i], -step[i]));
            dual = dual.min(room(low[i], low_step[i])).min(room(high[i], high_step[i]));
        }
        // One length for both: Q couples the residual of the multipliers to p.
        let length = (SHORT_OF * primal.min(dual)).min(1.0);
        axpy(length, &step, p);
        axpy(length, &low_step, &mut low);
        axpy(length, &high_step, &mut high);
        budget += length * budget_step;
    }
    super::selection::objective(q, w, p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// How far the objective may be above its minimum: g'p - min g'x over the feasible x (Frank and Wolfe's gap).
    fn gap(q: &[f64], w: &[f64], most: f64, p: &[f64]) -> f64 {
        let m = p.len();
        let g: Vec<f64> = (0..m).map(|i| dot(&q[i * m..(i + 1) * m], p) - w[i]).collect();
        let mut sorted = g.clone();
        sorted.sort_by(f64::total_cmp);
        let (mut left, mut least) = (most, 0.0);
        for slope in sorted.into_iter().filter(|g| *g < 0.0) {
            least += slope * left.clamp(0.0, 1.0);
            left -= 1.0;
        }
        dot(&g, p) - least
    }

    #[test]
    fn the_gap_closes() {
        let mut random = Random::new(5);
        for (m, rank, most, size) in [
            (30, 40, 12.0, 1.0),
            (30, 7, 12.0, 1e4),
            (25, 25, 40.0, 1e-4),
            (1, 1, 1.0, 1.0),
            (60, 90, 1.0, 1.0),
        ] {
            let g: Vec<f64> = (0..m * rank).map(|_| size * random.normal()).collect();
            let q: Vec<f64> =
                (0..m * m).map(|t| dot(&g[t / m * rank..][..rank], &g[t % m * rank..][..rank])).collect();
            let w: Vec<f64> = (0..m).map(|i| q[i * m..(i + 1) * m].iter().sum()).collect();
            let mut p = vec![0.0; m];
            let value = box_budget_program(&q, &w, most, 1e-10, &mut p);
            assert!(p.iter().sum::<f64>() <= most && p.iter().all(|p| (0.0..=1.0).contains(p)));
            assert!(gap(&q, &w, most, &p) <= 1e-7 * value.abs(), "{m} {rank} {most}");
        }
    }

    #[test]
    fn nothing_to_explain_selects_nothing() {
        let mut p = vec![0.5; 3];
        assert_eq!(box_budget_program(&[0.0; 9], &[0.0; 3], 2.0, 1e-9, &mut p), 0.0);
        assert_eq!(p, [0.0; 3]);
    }
}
