//! The dual problem of a machine, its optimality conditions, and a constructor for every member of the family.
//!
//! ```text
//! minimise  1/2 b'(K + diag r) b + s'b + e sum |b_i|   subject to  lower <= b <= upper,  sum over each group of b fixed
//! ```
//!
//! | machine | variables | s | bounds | r | e | groups |
//! |---|---|---|---|---|---|---|
//! | C-SVC, hinge | rows | -y | y C on one side, 0 on the other | 0 | 0 | all |
//! | C-SVC, squared hinge | rows | -y | no upper bound | 1 / (2 C) | 0 | all |
//! | nu-SVC | rows | 0 | y w | 0 | 0 | each class, sums +- nu W / 2 |
//! | one-class | rows | 0 | [0, w] | 0 | 0 | all, sum nu W |
//! | epsilon-SVR | rows | -y | [-C, C] | 0 | epsilon | all |
//! | quantile q | rows | -y | [-(1 - q) C, q C] | 0 | 0 | all |
//! | nu-SVR | rows twice | -y | [0, C] and [-C, 0] | 0 | 0 | each half, sums +- nu C n / 2 |
//!
//! The term e |b| makes alpha - alpha* of epsilon-SVR one variable instead of two. A machine without intercept has no
//! equality constraint.
//! (Chang and Lin 2011 for the nu problems; Rifkin 2002, 2.2; Xu et al. 2015, (1) for the squared hinge.)

use super::stall::{largest_magnitude, rounding};
use crate::context::Context;
use std::ops::Range;

/// Maximum number of groups of a problem.
pub(super) const MAX_GROUPS: usize = 2;
/// Minimum bound that counts as infinite, relative to the largest coefficient.
const MIN_INFINITE_BOUND: f64 = 1e6;
/// Variables per task of a pass over all variables.
pub(super) const VARIABLES_PER_TASK: usize = 8192;

/// The problem of one machine, with coefficients and gradients.
#[derive(Clone)]
pub(super) struct DualProblem {
    /// s
    pub(super) linear: Vec<f64>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    /// b
    pub(super) beta: Vec<f64>,
    /// (K + diag r) b + s: the gradient without the term of epsilon.
    pub(super) gradient: Vec<f64>,
    /// K_ii + r_i
    pub(super) diagonal: Vec<f64>,
    /// r
    pub(super) ridge: Vec<f64>,
    /// e
    pub(super) epsilon: f64,
    /// Group of each variable, below [`MAX_GROUPS`]; the sum of each group is kept.
    pub(super) group: Vec<u8>,
    /// True if the sum of the first group is kept: an equality constraint.
    pub(super) has_equality: bool,
    /// True if variables below their upper bound must lie inside: the level is at most their derivatives (one-class machine).
    pub(super) keeps_margin_inside: bool,
}

/// The maximal violating pair of each group: the smallest derivative for an increase, the largest one for a decrease.
pub(super) type MaximalPairs = [(f64, f64); MAX_GROUPS];

/// Violation of the optimality conditions by all variables.
#[derive(Clone, Copy)]
pub(super) struct KktViolation {
    /// The maximal violating pair of each group; infinite for a group without variables.
    pub(super) maximal_pairs: MaximalPairs,
    /// Number of variables that can move in both directions.
    pub(super) n_unbounded: usize,
    /// True if all gradients are finite.
    pub(super) is_finite: bool,
    /// The largest |gradient|, |b| and K_ii + r_i.
    largest: [f64; 3],
    /// The sum of (b_i (K_ii + r_i))^2.
    pub(super) squared_norm: f64,
}

impl KktViolation {
    /// Returns the violation by the variables of both.
    fn and(self, other: Self) -> Self {
        let [first, second] = [0, 1].map(|g| {
            let ((up, low), (other_up, other_low)) = (self.maximal_pairs[g], other.maximal_pairs[g]);
            (up.min(other_up), low.max(other_low))
        });
        Self {
            maximal_pairs: [first, second],
            n_unbounded: self.n_unbounded + other.n_unbounded,
            is_finite: self.is_finite && other.is_finite,
            largest: [0, 1, 2].map(|k| self.largest[k].max(other.largest[k])),
            squared_norm: self.squared_norm + other.squared_norm,
        }
    }

    /// Returns the error that one rounding adds to a gradient.
    pub(super) fn rounding(&self) -> f64 {
        rounding(self.largest)
    }

    /// Returns the largest difference within a maximal violating pair; NaN if a gradient is not finite.
    pub(super) fn largest(&self) -> f64 {
        if !self.is_finite {
            return f64::NAN;
        }
        self.maximal_pairs.iter().map(|(up, low)| low - up).fold(f64::NEG_INFINITY, f64::max)
    }
}

impl DualProblem {
    fn new(linear: Vec<f64>, lower: Vec<f64>, upper: Vec<f64>, diagonal: Vec<f64>) -> Self {
        let n = linear.len();
        Self {
            lower,
            upper,
            beta: vec![0.0; n],
            gradient: linear.clone(),
            linear,
            diagonal,
            ridge: vec![0.0; n],
            epsilon: 0.0,
            group: vec![0; n],
            has_equality: true,
            keeps_margin_inside: false,
        }
    }

    /// Returns C-SVC with hinge loss: 1/2 ||w||^2 + sum C_i max(0, 1 - y_i f(x_i)).
    pub(super) fn hinge(positive: &[bool], c: &[f64], diagonal: Vec<f64>) -> Self {
        let (lower, upper) = sides(positive, c);
        Self::new(positive.iter().map(|&p| if p { -1.0 } else { 1.0 }).collect(), lower, upper, diagonal)
    }

    /// Returns C-SVC with squared hinge loss: 1/2 ||w||^2 + sum C_i max(0, 1 - y_i f(x_i))^2.
    pub(super) fn squared_hinge(positive: &[bool], c: &[f64], diagonal: Vec<f64>) -> Self {
        let mut problem = Self::hinge(positive, &vec![f64::INFINITY; c.len()], diagonal);
        problem.ridge = c.iter().map(|c| 0.5 / c).collect();
        for (diagonal, ridge) in problem.diagonal.iter_mut().zip(&problem.ridge) {
            *diagonal += ridge;
        }
        problem
    }

    /// Returns nu-SVC with row weights w that are large enough for nu in both classes, at a feasible point.
    pub(super) fn nu_classification(positive: &[bool], weights: &[f64], nu: f64, diagonal: Vec<f64>) -> Self {
        let (lower, upper) = sides(positive, weights);
        let total = 0.5 * nu * weights.iter().sum::<f64>();
        let mut problem = Self::new(vec![0.0; positive.len()], lower, upper, diagonal);
        for is_positive in [true, false] {
            let of_class =
                || positive.iter().enumerate().filter(move |&(_, &p)| p == is_positive).map(|(i, _)| i);
            let sign = if is_positive { 1.0 } else { -1.0 };
            problem.fill(of_class(), total, weights, sign);
        }
        problem.group = positive.iter().map(|&p| u8::from(!p)).collect();
        problem
    }

    /// Returns the one-class machine with row weights w and the sum `total` = nu W of the coefficients, at a feasible point:
    /// 1/2 ||w||^2 - rho nu W + sum w_i max(0, rho - f(x_i)).
    pub(super) fn one_class(weights: &[f64], total: f64, diagonal: Vec<f64>) -> Self {
        let n = weights.len();
        let mut problem = Self::new(vec![0.0; n], vec![0.0; n], weights.to_vec(), diagonal);
        problem.fill(0..n, total, weights, 1.0);
        problem.keeps_margin_inside = true;
        problem
    }

    /// Returns epsilon-SVR: 1/2 ||w||^2 + sum C_i max(0, |y_i - f(x_i)| - epsilon).
    pub(super) fn regression(targets: &[f64], c: &[f64], epsilon: f64, diagonal: Vec<f64>) -> Self {
        let mut problem = Self::new(
            targets.iter().map(|y| -y).collect(),
            c.iter().map(|c| -c).collect(),
            c.to_vec(),
            diagonal,
        );
        problem.epsilon = epsilon;
        problem
    }

    /// Returns quantile regression: 1/2 ||w||^2 + sum C_i (q max(0, y_i - f(x_i)) + (1 - q) max(0, f(x_i) - y_i)).
    pub(super) fn quantile(targets: &[f64], c: &[f64], q: f64, diagonal: Vec<f64>) -> Self {
        Self::new(
            targets.iter().map(|y| -y).collect(),
            c.iter().map(|c| -(1.0 - q) * c).collect(),
            c.iter().map(|c| q * c).collect(),
            diagonal,
        )
    }

    /// Returns nu-SVR at a feasible point: variables are the rows twice, alpha and then -alpha*, as in `diagonal`.
    pub(super) fn nu_regression(targets: &[f64], c: &[f64], nu: f64, diagonal: Vec<f64>) -> Self {
        let n = targets.len();
        let twice = |first: &dyn Fn(usize) -> f64, second: &dyn Fn(usize) -> f64| {
            (0..n).map(first).chain((0..n).map(second)).collect()
        };
        let (zero, c_of, minus_c, minus_y) =
            (|_| 0.0, |i: usize| c[i], |i: usize| -c[i], |i: usize| -targets[i]);
        let bounds = twice(&c_of, &c_of);
        let mut problem =
            Self::new(twice(&minus_y, &minus_y), twice(&zero, &minus_c), twice(&c_of, &zero), diagonal);
        let total = 0.5 * nu * c.iter().sum::<f64>();
        problem.fill(0..n, total, &bounds, 1.0);
        problem.fill(n..2 * n, total, &bounds, -1.0);
        problem.group = (0..2 * n).map(|v| u8::from(v >= n)).collect();
        problem
    }

    /// Sets |b| of the variables, in order, to their bounds until their sum is `total`.
    fn fill(&mut self, variables: impl Iterator<Item = usize>, mut total: f64, bounds: &[f64], sign: f64) {
        for v in variables {
            let share = total.min(bounds[v]);
            self.beta[v] = sign * share;
            total -= share;
        }
    }

    /// Returns the problem of some of the variables with the others fixed, whose contribution stays in the gradients.
    pub(super) fn select(&self, variables: &[usize], ctx: Context<'_>) -> Self {
        let Self { linear, lower, upper, beta, gradient, diagonal, ridge, .. } = self;
        let fields = [linear, lower, upper, beta, gradient, diagonal, ridge];
        let mut selected = [const { Vec::new() }; 7];
        let ctx = ctx.for_operations(selected.len() * variables.len());
        ctx.for_each_chunk(&mut selected, 1, |field, values| {
            values[0] = variables.iter().map(|&v| fields[field][v]).collect();
        });
        let [linear, lower, upper, beta, gradient, diagonal, ridge] = selected;
        Self {
            linear,
            lower,
            upper,
            beta,
            gradient,
            diagonal,
            ridge,
            epsilon: self.epsilon,
            group: variables.iter().map(|&v| self.group[v]).collect(),
            has_equality: self.has_equality,
            keeps_margin_inside: self.keeps_margin_inside,
        }
    }

    /// Returns the variables that meet a condition, ascending.
    pub(super) fn filter(&self, ctx: Context<'_>, meets: impl Fn(usize) -> bool + Sync) -> Vec<usize> {
        let of_range = |range: Range<usize>| range.filter(|&v| meets(v)).collect();
        let joined = |mut first: Vec<usize>, second: Vec<usize>| {
            first.extend(second);
            first
        };
        ctx.reduce(self.len(), VARIABLES_PER_TASK, of_range, joined).unwrap_or_default()
    }

    /// Returns whether the objective is a quadratic form but for a constant: the linear term is the same number for all variables
    /// of a group whose sum is kept.
    pub(super) fn is_homogeneous(&self) -> bool {
        let mut linear = [None; MAX_GROUPS];
        let is_constant = |(s, group): (&f64, &u8)| {
            *s == *linear[usize::from(*group)].get_or_insert(*s) && self.has_equality
        };
        self.epsilon == 0.0 && self.linear.iter().zip(&self.group).all(is_constant)
    }

    /// Returns whether a problem of fewer variables with wider bounds approximates this one, which must be at zero.
    pub(super) fn is_scalable(&self) -> bool {
        (0..self.len()).all(|v| {
            let width = self.upper[v] - self.lower[v];
            self.beta[v] == 0.0 && self.ridge[v] == 0.0 && self.group[v] == 0 && width.is_finite()
        })
    }

    /// Returns the problem of some of the variables of a problem at zero, with bounds `factor` times as large.
    pub(super) fn subsample(&self, variables: &[usize], factor: f64, ctx: Context<'_>) -> Self {
        let mut subsample = self.select(variables, ctx);
        subsample.lower.iter_mut().chain(&mut subsample.upper).for_each(|bound| *bound *= factor);
        subsample
    }

    /// Returns whether every larger C has the same solution: no coefficient is at a bound that depends on C.
    pub(super) fn is_solved_for_larger_c(&self) -> bool {
        (0..self.len()).all(|v| {
            let b = self.beta[v];
            self.ridge[v] == 0.0 && (b == 0.0 || (b < self.upper[v] && b > self.lower[v]))
        })
    }

    /// Returns the same problem with more variables, which cannot move: `variables` are the places of its own. `diagonal` has the
    /// K_ii of the others.
    pub(super) fn embedded(&self, variables: &[usize], mut diagonal: Vec<f64>) -> Self {
        let len = diagonal.len();
        let embed = |values: &[f64]| {
            let mut all: Vec<f64> = vec![0.0; len];
            variables.iter().zip(values).for_each(|(&v, &value)| all[v] = value);
            all
        };
        let mut group = vec![0; len];
        variables.iter().zip(&self.group).for_each(|(&v, &of)| group[v] = of);
        variables.iter().zip(&self.diagonal).for_each(|(&v, &value)| diagonal[v] = value);
        Self {
            linear: embed(&self.linear),
            lower: embed(&self.lower),
            upper: embed(&self.upper),
            beta: embed(&self.beta),
            gradient: embed(&self.gradient),
            diagonal,
            ridge: embed(&self.ridge),
            epsilon: self.epsilon,
            group,
            has_equality: self.has_equality,
            keeps_margin_inside: self.keeps_margin_inside,
        }
    }

    /// Returns whether the bounds are so large that the machine is the one without bounds.
    pub(super) fn has_infinite_bounds(&self) -> bool {
        let min_width = MIN_INFINITE_BOUND * largest_magnitude(&self.beta);
        let is_wide = |(lower, upper): (&f64, &f64)| upper.max(-lower) >= min_width;
        self.is_solved_for_larger_c() && self.lower.iter().zip(&self.upper).all(is_wide)
    }

    /// Sets the coefficients of the members; returns the members that changed, and their changes. Gradients change by the
    /// ridge only.
    pub(super) fn set_coefficients(&mut self, members: &[usize], beta: &[f64]) -> (Vec<usize>, Vec<f64>) {
        let (mut changed, mut changes) = (Vec::new(), Vec::new());
        for (&v, &beta) in members.iter().zip(beta) {
            let change = beta - self.beta[v];
            if change != 0.0 {
                changed.push(v);
                changes.push(change);
                self.beta[v] = beta;
                self.gradient[v] += self.ridge[v] * change;
            }
        }
        (changed, changes)
    }

    pub(super) fn len(&self) -> usize {
        self.beta.len()
    }

    /// Returns the objective 1/2 b'(K + diag r) b + s'b + e sum |b| of the coefficients, from their gradients.
    pub(super) fn objective(&self) -> f64 {
        let terms = self.beta.iter().zip(&self.gradient).zip(&self.linear);
        terms.map(|((b, gradient), linear)| 0.5 * b * (gradient + linear) + self.epsilon * b.abs()).sum()
    }

    /// Returns the derivative of the objective for an increase of variable i, infinite if it cannot increase.
    #[inline]
    pub(super) fn up_derivative(&self, i: usize) -> f64 {
        if self.beta[i] < self.upper[i] {
            self.gradient[i] + if self.beta[i] >= 0.0 { self.epsilon } else { -self.epsilon }
        } else {
            f64::INFINITY
        }
    }

    /// Returns the derivative of the objective on the side of a decrease of variable i, minus infinity if it cannot
    /// decrease.
    #[inline]
    pub(super) fn down_derivative(&self, i: usize) -> f64 {
        if self.beta[i] > self.lower[i] {
            self.gradient[i] + if self.beta[i] > 0.0 { self.epsilon } else { -self.epsilon }
        } else {
            f64::NEG_INFINITY
        }
    }

    /// Returns whether variable i can move in both directions: neither at a bound, nor at zero with an epsilon.
    pub(super) fn is_unbounded(&self, i: usize) -> bool {
        let b = self.beta[i];
        b > self.lower[i] && b < self.upper[i] && (self.epsilon == 0.0 || b != 0.0)
    }

    /// Returns the violation of the optimality conditions, and the magnitudes that rounding depends on.
    pub(super) fn kkt_violation<'a>(&'a self, ctx: Context<'_>) -> KktViolation {
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        let start = KktViolation {
            maximal_pairs: [if self.has_equality { none } else { (0.0, 0.0) }, none],
            n_unbounded: 0,
            is_finite: true,
            largest: [0.0; 3],
            squared_norm: 0.0,
        };
        let of_range = |range: Range<usize>| {
            let mut kkt = start;
            // Slices of one length need no check of each index.
            let within = |values: &'a [f64]| &values[range.clone()];
            let (gradient, beta, diagonal) =
                (within(&self.gradient), within(&self.beta), within(&self.diagonal));
            let (lower, upper, group) =
                (within(&self.lower), within(&self.upper), &self.group[range.clone()]);
            let larger = |a: f64, b: f64| if b > a { b } else { a };
            for i in 0..range.len() {
                let (g, b) = (gradient[i], beta[i]);
                let (can_rise, can_fall) = (b < upper[i], b > lower[i]);
                let (up, low) = &mut kkt.maximal_pairs[usize::from(group[i])];
                if can_rise {
                    *up = up.min(g + if b >= 0.0 { self.epsilon } else { -self.epsilon });
                }
                if can_fall {
                    *low = low.max(g + if b > 0.0 { self.epsilon } else { -self.epsilon });
                }
                kkt.is_finite &= g.is_finite();
                kkt.n_unbounded += usize::from(can_rise && can_fall && (self.epsilon == 0.0 || b != 0.0));
                let [of_gradient, of_coefficient, of_diagonal] = &mut kkt.largest;
                *of_gradient = larger(*of_gradient, g.abs());
                *of_coefficient = larger(*of_coefficient, b.abs());
                *of_diagonal = larger(*of_diagonal, diagonal[i].abs());
                let length = b * diagonal[i];
                kkt.squared_norm += length * length;
            }
            kkt
        };
        ctx.reduce(self.len(), VARIABLES_PER_TASK, of_range, KktViolation::and).unwrap_or(start)
    }
}

/// Returns bounds [0, c] for positive rows, [-c, 0] for negative ones.
fn sides(positive: &[bool], c: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let of = |side: bool, sign: f64| {
        positive.iter().zip(c).map(|(&p, &c)| if p == side { sign * c } else { 0.0 }).collect()
    };
    (of(false, -1.0), of(true, 1.0))
}
