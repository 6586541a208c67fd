//! Builders of the dual problem, and its state.

/// One machine's problem and how far it is solved: see the module for the notation.
pub(super) struct DualProblem {
    /// s
    pub(super) linear: Vec<f64>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    /// b
    pub(super) beta: Vec<f64>,
    /// f = Kb + s
    pub(super) gradient: Vec<f64>,
    /// K_ii
    pub(super) diagonal: Vec<f64>,
}

impl DualProblem {
    /// C-SVC with hinge loss and bias: minimise 1/2 ||w||^2 + sum C_i max(0, 1 - y_i (w'phi_i + b)), from b = 0.
    pub(super) fn classification(positive: &[bool], bound: &[f64], diagonal: Vec<f64>) -> Self {
        let linear: Vec<f64> = positive.iter().map(|&p| if p { -1.0 } else { 1.0 }).collect();
        let side = |wanted: bool, sign: f64| {
            positive.iter().zip(bound).map(|(&p, &c)| if p == wanted { sign * c } else { 0.0 }).collect()
        };
        Self {
            lower: side(false, -1.0),
            upper: side(true, 1.0),
            beta: vec![0.0; positive.len()],
            gradient: linear.clone(),
            linear,
            diagonal,
        }
    }

    /// The problem of some of the variables, the others held fixed: their part stays in the gradients.
    pub(super) fn select(&self, variables: &[usize]) -> Self {
        let of = |values: &[f64]| variables.iter().map(|&v| values[v]).collect();
        Self {
            linear: of(&self.linear),
            lower: of(&self.lower),
            upper: of(&self.upper),
            beta: of(&self.beta),
            gradient: of(&self.gradient),
            diagonal: of(&self.diagonal),
        }
    }

    /// Largest violation of the optimality conditions: by how much the pair at the extremes is the wrong way round.
    pub(super) fn violation(&self) -> f64 {
        let (up, low) = self.extremes();
        low - up
    }

    /// Number of variables.
    pub(super) fn len(&self) -> usize {
        self.beta.len()
    }

    pub(super) fn can_rise(&self, i: usize) -> bool {
        self.beta[i] < self.upper[i]
    }

    pub(super) fn can_fall(&self, i: usize) -> bool {
        self.beta[i] > self.lower[i]
    }

    /// Neither at its lower nor at its upper bound.
    pub(super) fn is_unbounded(&self, i: usize) -> bool {
        self.can_rise(i) && self.can_fall(i)
    }

    /// Smallest gradient among those that can rise, largest among those that can fall: their difference is the
    /// violation.
    pub(super) fn extremes(&self) -> (f64, f64) {
        let (mut up, mut low) = (f64::INFINITY, f64::NEG_INFINITY);
        for i in 0..self.len() {
            let f = self.gradient[i];
            if self.can_rise(i) {
                up = up.min(f);
            }
            if self.can_fall(i) {
                low = low.max(f);
            }
        }
        (up, low)
    }
}
