//! Stored states of online learners, made of bytes: sizes first, then the numbers of each array.
//!
//! Most bytes are small numbers, so that states are sound by chance; the last few mean those that break things.

use ndarray::Array2;
use svmarrow::context::Context;
use svmarrow::data::{OwnedRows, Rows};
use svmarrow::kernels::{Kernel, Smoothness};
use svmarrow::perceptron::tree::{self, Strategy, TreeParams, TreePredictor, TreeState};
use svmarrow::perceptron::{self as stream, PerceptronParams, PerceptronState, Policy};

use super::{all_finite, measured};

/// Numbers taken from the front of bytes; zeros behind their end.
struct Draws<'a>(&'a [u8]);

impl Draws<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    fn count(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX,
            254 => 1 << 63,
            253 => 1 << 32,
            252 => (1 << 32) + 1,
            small => u64::from(small),
        }
    }

    fn number(&mut self) -> f64 {
        match self.byte() {
            255 => f64::NAN,
            254 => f64::INFINITY,
            253 => -f64::MAX,
            252 => 5e-324,
            251 => 1e300,
            250 => 1e30,
            small => f64::from(small as i8) / 8.0,
        }
    }

    /// The length that an array should have, or, seldom, another.
    fn length(&mut self, right: usize) -> usize {
        match self.byte() {
            255 => right + 1,
            254 => right.saturating_sub(1),
            _ => right,
        }
    }

    fn counts(&mut self, right: usize) -> Vec<u64> {
        (0..self.length(right)).map(|_| self.count()).collect()
    }

    fn numbers(&mut self, right: usize) -> Vec<f64> {
        (0..self.length(right)).map(|_| self.number()).collect()
    }

    fn matrix(&mut self, rows: usize, columns: usize) -> Array2<f64> {
        let shape = (self.length(rows), self.length(columns));
        Array2::from_shape_simple_fn(shape, || self.number())
    }

    /// Row pointers that rise, but for a wild one now and then.
    fn starts(&mut self, nodes: usize) -> Vec<u64> {
        let mut end = 0_u64;
        let mut starts = vec![0];
        for _ in 0..self.length(nodes) {
            end = end.wrapping_add(self.count());
            starts.push(end);
        }
        starts
    }

    fn rows(&mut self, n: usize, d: usize, layout: u8) -> OwnedRows {
        let sparse = layout & 1 > 0;
        if layout & 2 > 0 {
            let dense = Array2::from_shape_simple_fn((n, d), || self.number());
            if sparse { csr(&dense).0 } else { dense.into() }
        } else {
            let dense = Array2::from_shape_simple_fn((n, d), || self.number() as f32);
            if sparse { csr(&dense.mapv(f64::from)).1 } else { dense.into() }
        }
    }

    fn kernel(&mut self) -> Kernel {
        let (gamma, coef0) = (self.number(), self.number());
        match self.below(9) {
            0 => Kernel::Rbf { gamma },
            1 => Kernel::Linear,
            2 => Kernel::Polynomial { degree: u32::from(self.byte()), gamma, coef0 },
            3 => Kernel::Sigmoid { gamma, coef0 },
            4 => Kernel::Laplacian { gamma },
            5 => Kernel::ChiSquared { gamma },
            6 => Kernel::Matern { smoothness: Smoothness::Half, gamma },
            7 => Kernel::Matern { smoothness: Smoothness::FiveHalves, gamma },
            _ => Kernel::Precomputed,
        }
    }
}

/// The stored entries in both precisions.
fn csr(dense: &Array2<f64>) -> (OwnedRows, OwnedRows) {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in dense.rows() {
        for (column, &value) in row.iter().enumerate() {
            if value != 0.0 {
                indices.push(column as i64);
                values.push(value);
            }
        }
        indptr.push(indices.len() as i64);
    }
    let cols = dense.ncols();
    let single: Vec<f32> = values.iter().map(|&v| v as f32).collect();
    let valid = "the entries of dense rows";
    (
        OwnedRows::from_csr(indptr.clone(), indices.clone(), values, cols).expect(valid),
        OwnedRows::from_csr(indptr, indices, single, cols).expect(valid),
    )
}

/// Bytes of rows as they are stored.
fn bytes_of(rows: Rows<'_>) -> u64 {
    let mut stored = 0;
    (0..rows.rows()).for_each(|row| rows.for_each_in_row(row, |_, _| stored += 16));
    stored + 8 * rows.rows() as u64
}

/// A stored tree: what the core accepts is finite, answers, learns, and is stored as it was.
pub fn tree(bytes: &[u8]) {
    let mut draws = Draws(bytes);
    let (d, q, n, rows, layout) =
        (draws.below(5), draws.below(4), draws.below(9), draws.below(9), draws.byte());
    let kernel = draws.kernel();
    let rows = draws.rows(rows, d, layout);
    let kinds: Vec<u8> = (0..n).map(|_| draws.byte() % 5).collect();
    let linear = kinds.iter().map(|&kind| usize::from(kind == 1)).sum();
    let children = Array2::from_shape_simple_fn((draws.length(n), 2), || draws.count());
    let (starts, sample_starts) = (draws.starts(n), draws.starts(n));
    let ends = [&starts, &sample_starts].map(|starts| starts[starts.len() - 1].min(200) as usize);
    let (members, seen) = (draws.counts(ends[0]), draws.count());
    let state = TreeState {
        thresholds: draws.numbers(n),
        weights: draws.matrix(members.len(), q),
        accumulator: draws.matrix(members.len(), q),
        // Most are no more than the rows seen, as they must be.
        age: draws
            .counts(n)
            .into_iter()
            .map(|rows| if rows < 1 << 32 { rows.min(seen) } else { rows })
            .collect(),
        directions: draws.matrix(linear, d),
        intercepts: draws.matrix(n, q),
        sample: draws.counts(ends[1]),
        sample_labels: draws.counts(ends[1]),
        leaf_seen: draws.counts(n),
        random: draws.count(),
        seen,
        mistakes: draws.count(),
        rows,
        kinds,
        children,
        starts,
        members,
        sample_starts,
    };
    let piece = draws.rows(3, d, layout);
    let labels = [draws.below(3), draws.below(3), 0];
    let names = ["wpq", "zpq", "rndw-rnds", "bal-inds", "ent-opts"];
    let classes = [2, 2, 2, 3][q];
    let budget = 1 + draws.below(6);
    let child_budget = 1 + draws.below(6);
    let (sample, rounds) = (2 + draws.below(6), 1 + draws.below(3));
    let max_leaves = 1 + draws.below(4);
    let strategy = Strategy::from_name(names[draws.below(names.len())]).expect("the names are known");
    let mut params = TreeParams::new(kernel, classes, strategy);
    (params.budget, params.child_budget) = (budget, child_budget);
    (params.sample, params.draws, params.max_leaves) = (sample, rounds, max_leaves);
    let held = 40 * state.kinds.len()
        + 8 * (2 * state.weights.len() + state.directions.len())
        + 8 * (state.intercepts.len() + state.members.len() + 2 * state.sample.len());
    let Ok(ready) = measured(held as u64 + bytes_of(state.rows.view()), || {
        TreePredictor::new(kernel, &state, layout & 4 > 0)
    }) else {
        return;
    };
    let numbers =
        state.weights.iter().chain(&state.accumulator).chain(&state.directions).chain(&state.intercepts);
    assert!(all_finite(numbers.chain(&state.thresholds)));
    state.rows.view().check_finite("rows").expect("what is accepted is finite");
    if piece.view().check_finite("X").is_ok() {
        let _ = ready.decide(piece.view(), Context::SEQUENTIAL);
        let _ = ready.routes(piece.view(), Context::SEQUENTIAL);
    }
    let learn = |state: &TreeState, rows: Rows<'_>, labels: &[usize]| {
        tree::partial_fit(&params, state, rows, labels, Context::SEQUENTIAL).map(|(state, _)| state)
    };
    let none = piece.view().gather(&[]).unwrap();
    let Ok(same) = learn(&state, none.view(), &[]) else { return };
    let again = learn(&same, none.view(), &[]).expect("what was stored can be read");
    assert_eq!(again, same);
    if let Ok(next) = learn(&state, piece.view(), &labels) {
        TreePredictor::new(kernel, &next, true).expect("what was learnt can be stored");
    }
}

/// A stored pool of an online learner, as [`tree`].
pub fn perceptron(bytes: &[u8]) {
    let mut draws = Draws(bytes);
    let (d, m, classes, layout) = (draws.below(5), draws.below(9), 2 + draws.below(3), draws.byte());
    let kernel = draws.kernel();
    let eta = draws.number();
    let (policy, pairs, scored) = match draws.below(9) {
        0 => (Policy::Unlimited, 0, 0),
        1 => (Policy::Stop, 0, 0),
        2 => (Policy::Oldest, 0, 0),
        3 => (Policy::Forgetron, 0, 0),
        4 => (Policy::Margin, 0, m),
        5 => (Policy::Random, 0, 0),
        6 => (Policy::Tightest, m, m),
        more => (Policy::Projectron { eta, margin: more == 7 }, m, 0),
    };
    let mut params = PerceptronParams::new(kernel, classes, policy);
    params.budget = draws.below(10);
    let q = if classes == 2 { 1 } else { classes };
    let state = PerceptronState {
        rows: draws.rows(m, d, layout),
        coefficients: draws.matrix(m, q),
        born: draws.counts(m),
        matrix: draws.matrix(pairs, pairs),
        scores: draws.matrix(scored, q),
        deviation: draws.number(),
        random: draws.count(),
        seen: draws.count(),
        mistakes: draws.count(),
    };
    let piece = draws.rows(3, d, layout);
    let labels = [draws.below(classes), draws.below(classes), 0];
    let numbers = state.coefficients.len() + state.born.len() + state.matrix.len() + state.scores.len();
    let learn = |state: &PerceptronState, rows: Rows<'_>, labels: &[usize]| {
        stream::partial_fit(&params, state.clone(), rows, labels, Context::default()).map(|(state, _)| state)
    };
    let none = piece.view().gather(&[]).unwrap();
    let input = 8 * numbers as u64 + bytes_of(state.rows.view());
    let Ok(same) = measured(input, || learn(&state, none.view(), &[])) else { return };
    let numbers = state.coefficients.iter().chain(&state.matrix).chain(&state.scores);
    assert!(all_finite(numbers) && state.deviation.is_finite());
    state.rows.view().check_finite("vectors").expect("what is accepted is finite");
    assert_eq!(learn(&same, none.view(), &[]).expect("what was stored can be read"), same);
    let _ = learn(&state, piece.view(), &labels);
}
