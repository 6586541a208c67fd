//! The dual problem of a machine, how far it is solved, and a builder for every member of the family.
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
//! The kink e |b| makes alpha - alpha* of epsilon-SVR one variable instead of two. A machine without intercept has no
//! sum to keep: it is *anchored*, as if it had one more variable whose kernel values are all zero.
//! (Chang and Lin 2011 for the nu problems; Rifkin 2002, 2.2; Xu et al. 2015, (1) for the squared hinge.)

use crate::error::{Error, Result};
use crate::memory::{TryCollect, TryToVec, try_vec};

/// Most groups of a problem.
pub(super) const GROUPS: usize = 2;

/// One machine's problem and its state.
#[derive(Clone)]
pub(super) struct DualProblem {
    /// s
    pub(super) linear: Vec<f64>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    /// b
    pub(super) beta: Vec<f64>,
    /// (K + diag r) b + s: the gradient but for the kink.
    pub(super) gradient: Vec<f64>,
    /// K_ii + r_i
    pub(super) diagonal: Vec<f64>,
    /// r
    pub(super) ridge: Vec<f64>,
    /// e
    pub(super) kink: f64,
    /// Group of each variable, below [`GROUPS`].
    pub(super) group: Vec<u8>,
    /// No sum is kept.
    pub(super) anchored: bool,
}

/// Smallest derivative upwards and largest derivative downwards of each group.
pub(super) type Extremes = [(f64, f64); GROUPS];

/// What a round needs to know of all variables.
#[derive(Clone, Copy)]
pub(super) struct Survey {
    /// The extremes of each group; a group without variables has infinite ones.
    pub(super) extremes: Extremes,
    /// Variables free to move both ways.
    pub(super) unbounded: usize,
    /// Whether all gradients are numbers.
    pub(super) finite: bool,
}

impl Survey {
    /// Largest violation of the optimality conditions: by how much a group's extremes are the wrong way round. Not a
    /// number where a gradient is none: nothing is known then, least of all that all is well.
    pub(super) fn violation(&self) -> f64 {
        if !self.finite {
            return f64::NAN;
        }
        self.extremes.iter().map(|(up, low)| low - up).fold(f64::NEG_INFINITY, f64::max)
    }
}

impl DualProblem {
    fn new(linear: Vec<f64>, lower: Vec<f64>, upper: Vec<f64>, diagonal: Vec<f64>) -> Result<Self> {
        let n = linear.len();
        Ok(Self {
            lower,
            upper,
            beta: try_vec![0.0; n]?,
            gradient: linear.try_to_vec()?,
            linear,
            diagonal,
            ridge: try_vec![0.0; n]?,
            kink: 0.0,
            group: try_vec![0; n]?,
            anchored: false,
        })
    }

    /// C-SVC with hinge loss: 1/2 ||w||^2 + sum C_i max(0, 1 - y_i f(x_i)).
    pub(super) fn hinge(positive: &[bool], c: &[f64], diagonal: Vec<f64>) -> Result<Self> {
        let (lower, upper) = sides(positive, c)?;
        Self::new(
            positive.iter().map(|&p| if p { -1.0 } else { 1.0 }).try_collect_vec()?,
            lower,
            upper,
            diagonal,
        )
    }

    /// C-SVC with squared hinge loss: 1/2 ||w||^2 + sum C_i max(0, 1 - y_i f(x_i))^2.
    pub(super) fn squared_hinge(positive: &[bool], c: &[f64], diagonal: Vec<f64>) -> Result<Self> {
        let mut problem = Self::hinge(positive, &try_vec![f64::INFINITY; c.len()]?, diagonal)?;
        problem.ridge = c.iter().map(|c| 0.5 / c).try_collect_vec()?;
        for (diagonal, ridge) in problem.diagonal.iter_mut().zip(&problem.ridge) {
            *diagonal += ridge;
        }
        Ok(problem)
    }

    /// nu-SVC with row weights w, from a feasible point.
    ///
    /// # Errors
    /// Where a class is too small for nu.
    pub(super) fn nu_classification(
        positive: &[bool],
        weights: &[f64],
        nu: f64,
        diagonal: Vec<f64>,
    ) -> Result<Self> {
        let (lower, upper) = sides(positive, weights)?;
        let total = 0.5 * nu * weights.iter().sum::<f64>();
        let mut problem = Self::new(try_vec![0.0; positive.len()]?, lower, upper, diagonal)?;
        for wanted in [true, false] {
            let of_class = || positive.iter().enumerate().filter(move |&(_, &p)| p == wanted).map(|(i, _)| i);
            let room: f64 = of_class().map(|i| weights[i]).sum();
            if room < total * (1.0 - 1e-12) {
                return Err(Error::param(
                    "nu",
                    nu,
                    format!(
                        "at most {:.6}, twice the share of the smaller class",
                        2.0 * room / weights.iter().sum::<f64>()
                    ),
                ));
            }
            let sign = if wanted { 1.0 } else { -1.0 };
            problem.fill(of_class(), total, weights, sign);
        }
        problem.group = positive.iter().map(|&p| u8::from(!p)).try_collect_vec()?;
        Ok(problem)
    }

    /// One-class machine with row weights w, from a feasible point: 1/2 ||w||^2 - rho nu W + sum w_i max(0, rho - f(x_i)).
    pub(super) fn one_class(weights: &[f64], nu: f64, diagonal: Vec<f64>) -> Result<Self> {
        let n = weights.len();
        let mut problem = Self::new(try_vec![0.0; n]?, try_vec![0.0; n]?, weights.try_to_vec()?, diagonal)?;
        problem.fill(0..n, nu * weights.iter().sum::<f64>(), weights, 1.0);
        Ok(problem)
    }

    /// epsilon-SVR: 1/2 ||w||^2 + sum C_i max(0, |y_i - f(x_i)| - epsilon).
    pub(super) fn regression(targets: &[f64], c: &[f64], epsilon: f64, diagonal: Vec<f64>) -> Result<Self> {
        let mut problem = Self::new(
            targets.iter().map(|y| -y).try_collect_vec()?,
            c.iter().map(|c| -c).try_collect_vec()?,
            c.try_to_vec()?,
            diagonal,
        )?;
        problem.kink = epsilon;
        Ok(problem)
    }

    /// Quantile regression: 1/2 ||w||^2 + sum C_i (q max(0, y_i - f(x_i)) + (1 - q) max(0, f(x_i) - y_i)).
    pub(super) fn quantile(targets: &[f64], c: &[f64], q: f64, diagonal: Vec<f64>) -> Result<Self> {
        Self::new(
            targets.iter().map(|y| -y).try_collect_vec()?,
            c.iter().map(|c| -(1.0 - q) * c).try_collect_vec()?,
            c.iter().map(|c| q * c).try_collect_vec()?,
            diagonal,
        )
    }

    /// nu-SVR, from a feasible point: variables are the rows twice, alpha and then -alpha*, as in `diagonal`.
    pub(super) fn nu_regression(targets: &[f64], c: &[f64], nu: f64, diagonal: Vec<f64>) -> Result<Self> {
        let n = targets.len();
        let twice = |first: &dyn Fn(usize) -> f64, second: &dyn Fn(usize) -> f64| {
            (0..n).map(first).chain((0..n).map(second)).try_collect_vec()
        };
        let (zero, c_of, minus_c, minus_y) =
            (|_| 0.0, |i: usize| c[i], |i: usize| -c[i], |i: usize| -targets[i]);
        let bounds = twice(&c_of, &c_of)?;
        let mut problem =
            Self::new(twice(&minus_y, &minus_y)?, twice(&zero, &minus_c)?, twice(&c_of, &zero)?, diagonal)?;
        let total = 0.5 * nu * c.iter().sum::<f64>();
        problem.fill(0..n, total, &bounds, 1.0);
        problem.fill(n..2 * n, total, &bounds, -1.0);
        problem.group = (0..2 * n).map(|v| u8::from(v >= n)).try_collect_vec()?;
        Ok(problem)
    }

    /// Raises |b| of the variables, in order, to their bounds until `total` is spent.
    fn fill(&mut self, variables: impl Iterator<Item = usize>, mut total: f64, bounds: &[f64], sign: f64) {
        for v in variables {
            let share = total.min(bounds[v]);
            self.beta[v] = sign * share;
            total -= share;
        }
    }

    /// The problem of some of the variables, the others held fixed: their part stays in the gradients.
    pub(super) fn select(&self, variables: &[usize]) -> Result<Self> {
        let of = |values: &[f64]| variables.iter().map(|&v| values[v]).try_collect_vec();
        Ok(Self {
            linear: of(&self.linear)?,
            lower: of(&self.lower)?,
            upper: of(&self.upper)?,
            beta: of(&self.beta)?,
            gradient: of(&self.gradient)?,
            diagonal: of(&self.diagonal)?,
            ridge: of(&self.ridge)?,
            kink: self.kink,
            group: variables.iter().map(|&v| self.group[v]).try_collect_vec()?,
            anchored: self.anchored,
        })
    }

    /// Whether the problem is at zero and means the same with fewer variables within wider bounds.
    pub(super) fn is_scalable(&self) -> bool {
        (0..self.len()).all(|v| {
            let width = self.upper[v] - self.lower[v];
            self.beta[v] == 0.0 && self.ridge[v] == 0.0 && self.group[v] == 0 && width.is_finite()
        })
    }

    /// The problem of some of the variables of one at zero, with bounds `times` as far away.
    pub(super) fn sample(&self, variables: &[usize], times: f64) -> Result<Self> {
        let mut part = self.select(variables)?;
        part.lower.iter_mut().chain(&mut part.upper).for_each(|bound| *bound *= times);
        Ok(part)
    }

    /// The same problem amid variables that cannot move, `len` in all with these K_ii; `variables` are where its own stand.
    /// The gradients of the others are what the machine's outputs without intercept are for them.
    pub(super) fn spread(&self, variables: &[usize], diagonal: Vec<f64>) -> Result<Self> {
        let len = diagonal.len();
        let of = |values: &[f64]| {
            let mut all: Vec<f64> = try_vec![0.0; len]?;
            variables.iter().zip(values).for_each(|(&v, &value)| all[v] = value);
            Ok::<_, Error>(all)
        };
        let mut group = try_vec![0; len]?;
        variables.iter().zip(&self.group).for_each(|(&v, &of)| group[v] = of);
        let mut diagonal = diagonal;
        variables.iter().zip(&self.diagonal).for_each(|(&v, &value)| diagonal[v] = value);
        Ok(Self {
            linear: of(&self.linear)?,
            lower: of(&self.lower)?,
            upper: of(&self.upper)?,
            beta: of(&self.beta)?,
            gradient: of(&self.gradient)?,
            diagonal,
            ridge: of(&self.ridge)?,
            kink: self.kink,
            group,
            anchored: self.anchored,
        })
    }

    /// Whether a larger C has the same solution: no coefficient is at a bound that moves with it.
    pub(super) fn is_settled(&self) -> bool {
        (0..self.len()).all(|v| {
            let b = self.beta[v];
            self.ridge[v] == 0.0 && (b == 0.0 || (b < self.upper[v] && b > self.lower[v]))
        })
    }

    /// Gives the members their new coefficients; which of them changed, and by how much. Gradients are left as they are,
    /// but for the ridge.
    pub(super) fn move_to(&mut self, members: &[usize], beta: &[f64]) -> (Vec<usize>, Vec<f64>) {
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

    /// Number of variables.
    pub(super) fn len(&self) -> usize {
        self.beta.len()
    }

    /// The derivative of the objective when variable i rises, infinite where it cannot.
    #[inline]
    pub(super) fn rise(&self, i: usize) -> f64 {
        if self.beta[i] < self.upper[i] {
            self.gradient[i] + if self.beta[i] >= 0.0 { self.kink } else { -self.kink }
        } else {
            f64::INFINITY
        }
    }

    /// The derivative of the objective against the fall of variable i, minus infinity where it cannot fall.
    #[inline]
    pub(super) fn fall(&self, i: usize) -> f64 {
        if self.beta[i] > self.lower[i] {
            self.gradient[i] + if self.beta[i] > 0.0 { self.kink } else { -self.kink }
        } else {
            f64::NEG_INFINITY
        }
    }

    /// Free to move both ways at one rate: neither at a bound nor on the kink.
    pub(super) fn is_unbounded(&self, i: usize) -> bool {
        let b = self.beta[i];
        b > self.lower[i] && b < self.upper[i] && (self.kink == 0.0 || b != 0.0)
    }

    /// Where the present piece of variable i's cost ends, below and above.
    pub(super) fn ends(&self, i: usize) -> (f64, f64) {
        let (b, cut) = (self.beta[i], self.kink > 0.0);
        let below = if cut && b > 0.0 { self.lower[i].max(0.0) } else { self.lower[i] };
        let above = if cut && b < 0.0 { self.upper[i].min(0.0) } else { self.upper[i] };
        (below, above)
    }

    /// One look at all variables.
    pub(super) fn survey(&self) -> Survey {
        let anchor = if self.anchored { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
        let mut extremes = [anchor, (f64::INFINITY, f64::NEG_INFINITY)];
        let (mut unbounded, mut finite) = (0, true);
        for i in 0..self.len() {
            finite &= self.gradient[i].is_finite();
            let (up, low) = &mut extremes[usize::from(self.group[i])];
            *up = up.min(self.rise(i));
            *low = low.max(self.fall(i));
            unbounded += usize::from(self.is_unbounded(i));
        }
        Survey { extremes, unbounded, finite }
    }
}

/// Bounds [0, c] for positive rows, [-c, 0] for negative ones.
fn sides(positive: &[bool], c: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
    let of = |side: bool, sign: f64| {
        positive.iter().zip(c).map(|(&p, &c)| if p == side { sign * c } else { 0.0 }).try_collect_vec()
    };
    Ok((of(false, -1.0)?, of(true, 1.0)?))
}
