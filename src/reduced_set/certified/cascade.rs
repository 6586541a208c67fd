//! A small machine that answers only if its answer is certain to be the large one's.
//!
//! The stages of a path are nested: a stage adds vectors to the kernel values and directions to the projection of the one
//! before. A row is answered at the first stage whose bounds (see `certified`) decide it:
//!
//! | coding | decided for class a if |
//! |---|---|
//! | sign | \|f^\| is above its bound |
//! | largest | f^_a - f^_c is above the bound of the difference for every other c |
//! | pairs | the certain votes for a exceed all possible votes for c (equal ones suffice if a comes first) |
//!
//! Invariant: a decided row has the class of the machine itself, evaluated as in `kernels::product`.
//!
//! Cost of a row and stage: the new vectors' kernel values, p^2 / 2 for the new directions, t q for the outputs.

use ndarray::Array2;

use super::bounds::{Projection, Stage, StageSize, feature_space, stages};
use super::decision::{Decision, certain_winner};
use crate::argmax::argmax;
use crate::context::{Context, Progress, StopReason};
use crate::data::{Rows, row};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, PackedVectors, RelativeRounding, diagonal};
use crate::linalg::copy_triangle;
use crate::memory::{try_filled, try_matrix, try_vec, try_zero_matrix};
use crate::reduced_set::coding::Coding;
use crate::simd::blas::dot;

/// Number of rows that pass through the stages together.
const ROWS_PER_BLOCK: usize = 48;
/// Maximum number of blocks of a thread between two checks of the monitor.
const MAX_BLOCKS_PER_CHECK: usize = 8;
/// Maximum number of multiplications of a thread between two checks of the monitor.
const WORK_PER_CHECK: usize = 1 << 28;
/// The class of a row that is left to the machine itself.
pub const UNDECIDED: usize = usize::MAX;

/// Answers of a cascade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertainAnswers {
    /// The class, or [`UNDECIDED`].
    pub classes: Vec<usize>,
    /// The stage that decided, or the number of stages if none did.
    pub stages: Vec<usize>,
}

/// The stages of a path, ready for prediction.
pub struct Cascade {
    kernel: Kernel,
    decision: Decision,
    classes: usize,
    intercepts: Vec<f64>,
    stages: Vec<Stage>,
    /// The new vectors of each stage.
    columns: Vec<PackedVectors<f64>>,
    /// The lines of L of the last stage.
    lines: Vec<Vec<f64>>,
    machine: Machine,
}

/// Errors in the evaluation of the machine itself.
struct Machine {
    /// The errors of its kernel values in double and in single precision.
    deltas: (f64, f64),
    relative: Option<RelativeRounding>,
    sums: Vec<f64>,
    masses: Vec<f64>,
}

/// A row that is not decided.
struct ActiveRow {
    /// Its index in the block.
    row: usize,
    /// Index of its line of kernel values.
    slot: usize,
    covered: f64,
    at: RowPrecision,
}

/// Receives (index in the block, stage, outputs, precision) of a row; returns whether the row is finished.
type Visit<'a> = dyn FnMut(usize, usize, &[f64], RowPrecision) -> bool + 'a;

/// The properties of a row that its bounds depend on.
#[derive(Clone, Copy)]
struct RowPrecision {
    /// k(x, x).
    squared_norm: f64,
    /// Its distance from the span of the directions so far.
    distance: f64,
    /// The relative error of a kernel value if the machine is evaluated in single precision.
    relative: f64,
    /// True if the machine is evaluated in double precision.
    double: bool,
}

impl Cascade {
    /// Computes the stages of a path.
    ///
    /// # Errors
    /// [`Error::Param`] for stages that do not increase and kernels without a feature space, [`Error::Shape`] if the
    /// arrays disagree, [`Error::Stopped`].
    pub fn new(
        projection: &Projection<'_>,
        sizes: &[StageSize],
        decision: Decision,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let Projection { target, selected, factor, moments, .. } = projection;
        let q = target.outputs();
        let classes = decision.coding.classes(q).unwrap_or(0);
        let fits = match decision.coding {
            Coding::Values | Coding::Largest => true,
            Coding::Sign => q == 1,
            Coding::Pairs => classes * (classes - 1) / 2 == q,
        };
        let (coding, rule) = (format!("{:?}", decision.coding), format!("one for {q} outputs"));
        Error::check_param(fits, "coding", coding, rule)?;
        let stages = stages(projection, sizes, decision.coding, ctx)?;
        let mut columns = Vec::with_capacity(stages.len());
        let mut from = 0;
        for stage in &stages {
            let fresh: Vec<usize> = (from..stage.size.vectors).collect();
            columns.push(PackedVectors::new(target.kernel, selected.gather(&fresh)?.view(), ctx)?);
            from = stage.size.vectors;
        }
        let p = stages.last().map_or(0, |stage| stage.size.directions);
        let lines = copy_triangle(p, |i| row(factor, i).iter().copied())?;
        let intercepts = target.intercepts.to_vec();
        let machine = Machine {
            deltas: feature_space(target)?,
            relative: RelativeRounding::new(&target.kernel, target.vectors, true)?,
            sums: moments.sums.clone(),
            masses: moments.masses.clone(),
        };
        Ok(Self { kernel: target.kernel, decision, classes, intercepts, stages, columns, lines, machine })
    }

    /// Returns the number of outputs q of the machine.
    pub fn outputs(&self) -> usize {
        self.intercepts.len()
    }

    /// Returns the number of vectors and directions of each stage, the smallest first.
    pub fn sizes(&self) -> Vec<StageSize> {
        self.stages.iter().map(|stage| stage.size).collect()
    }

    /// Returns the number of multiply-adds of a row that passes all stages, of vectors with d columns.
    pub fn cost(&self, columns: usize) -> usize {
        self.stages.last().map_or(0, |stage| {
            let StageSize { vectors, directions } = stage.size;
            vectors * (columns + 2 * self.outputs()) + directions * directions / 2
        })
    }

    /// Returns the number of rows between two checks of the monitor.
    fn rows_per_check(&self, columns: usize, ctx: Context<'_>) -> usize {
        let blocks = WORK_PER_CHECK / (ROWS_PER_BLOCK * self.cost(columns)).max(1);
        ROWS_PER_BLOCK * blocks.clamp(1, MAX_BLOCKS_PER_CHECK) * ctx.threads()
    }

    /// Checks the columns and values of rows.
    fn check(&self, x: Rows<'_>) -> Result<()> {
        self.columns.first().map_or(Ok(()), |columns| columns.check(x))
    }

    /// Returns the certain answers. If interrupted, the remaining rows are undecided.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns, [`Error::Param`] for rows outside the kernel's domain.
    pub fn answer(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<CertainAnswers> {
        self.check(x)?;
        let n = x.rows();
        let mut decisions = vec![(UNDECIDED, self.stages.len()); n];
        let rows_per_check = self.rows_per_check(x.cols(), ctx);
        for (round, decisions) in decisions.chunks_mut(rows_per_check).enumerate() {
            let done = round * rows_per_check;
            let progress = Progress { steps: done as u64, ..Progress::new("cascade", done, n) };
            if StopReason::from_result(ctx.tick(&progress))?.is_some() {
                break;
            }
            ctx.try_for_each_chunk(decisions, ROWS_PER_BLOCK, |chunk, decisions| {
                let first = round * rows_per_check + chunk * ROWS_PER_BLOCK;
                self.pass(x, first, decisions.len(), &mut |at, stage, outputs, precision| {
                    let class = self.decide(stage, outputs, precision);
                    if let Some(class) = class {
                        decisions[at] = (class, stage);
                    }
                    class.is_some()
                })
            })?;
        }
        let classes = decisions.iter().map(|&(class, _)| class).collect::<Vec<_>>();
        let stages = decisions.into_iter().map(|(_, stage)| stage).collect::<Vec<_>>();
        Ok(CertainAnswers { classes, stages })
    }

    /// Returns the outputs of a stage, (n, q), and bounds on their distances from the machine's.
    ///
    /// # Errors
    /// See [`Cascade::answer`]; [`Error::Param`] if the stage does not exist.
    pub fn outputs_with_bounds(
        &self,
        x: Rows<'_>,
        stage: usize,
        ctx: Context<'_>,
    ) -> Result<(Array2<f64>, Array2<f64>)> {
        self.check(x)?;
        let count = self.stages.len();
        Error::check_param(stage < count, "stage", stage, format_args!("below {count}"))?;
        let q = self.outputs();
        let mut answers = try_filled("outputs and bounds", x.rows() * q, (0.0, 0.0))?;
        let rows_per_check = self.rows_per_check(x.cols(), ctx);
        for (round, answers) in answers.chunks_mut(rows_per_check * q).enumerate() {
            ctx.check("cascade", round * rows_per_check, x.rows())?;
            ctx.try_for_each_chunk(answers, ROWS_PER_BLOCK * q, |chunk, answers| {
                let first = round * rows_per_check + chunk * ROWS_PER_BLOCK;
                self.pass(x, first, answers.len() / q, &mut |at, s, outputs, precision| {
                    if s == stage {
                        let mine = &mut answers[at * q..(at + 1) * q];
                        for (j, (out, &f)) in mine.iter_mut().zip(outputs).enumerate() {
                            *out = (f, self.bound(s, j, precision));
                        }
                    }
                    s == stage
                })
            })?;
        }
        let shape = (x.rows(), q);
        let part = |of: fn(&(f64, f64)) -> f64| try_matrix(shape, |(i, j)| of(&answers[i * q + j]));
        Ok((part(|pair| pair.0)?, part(|pair| pair.1)?))
    }

    /// Returns the number of rows that the outputs of stage i decide with the distances of stage j <= i, (stages, stages).
    ///
    /// # Errors
    /// See [`Cascade::answer`].
    pub fn count_decided(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<usize>> {
        self.check(x)?;
        let count = self.stages.len();
        let zeros = || try_zero_matrix("a matrix of results", (count, count));
        let mut sums = zeros()?;
        let of_block = |block: usize| -> Result<Array2<usize>> {
            let first = block * ROWS_PER_BLOCK;
            let rows = ROWS_PER_BLOCK.min(x.rows() - first);
            let mut distances = try_vec![f64::INFINITY; rows * count]?;
            let mut decided = zeros()?;
            self.pass(x, first, rows, &mut |at, stage, outputs, precision| {
                distances[at * count + stage] = precision.distance;
                for earlier in 0..=stage {
                    let distance = distances[at * count + earlier];
                    let class = self.decide(stage, outputs, RowPrecision { distance, ..precision });
                    decided[[stage, earlier]] += usize::from(class.is_some());
                }
                false
            })?;
            Ok(decided)
        };
        let (blocks, at_once) =
            (x.rows().div_ceil(ROWS_PER_BLOCK), self.rows_per_check(x.cols(), ctx) / ROWS_PER_BLOCK);
        for from in (0..blocks).step_by(at_once) {
            ctx.check("cascade", from * ROWS_PER_BLOCK, x.rows())?;
            for decided in ctx.try_map(at_once.min(blocks - from), |block| of_block(from + block))? {
                sums += &decided;
            }
        }
        Ok(sums)
    }

    /// Takes rows through the stages; `visit` returns whether a row is finished.
    fn pass(&self, x: Rows<'_>, first: usize, count: usize, visit: &mut Visit<'_>) -> Result<()> {
        let Some(last) = self.stages.last() else { return Ok(()) };
        let depth = last.size.directions;
        let squared_norms = match self.kernel.constant_diagonal() {
            Some(value) => vec![value; count],
            None => diagonal(&self.kernel, x.slice(first..first + count)),
        };
        let double = x.is_f64();
        let relative = |row: usize| match &self.machine.relative {
            Some(relative) if !double => relative.of(x, first + row),
            _ => f64::INFINITY,
        };
        let mut active: Vec<ActiveRow> = squared_norms
            .iter()
            .enumerate()
            .map(|(row, &squared_norm)| {
                let at = RowPrecision {
                    squared_norm,
                    distance: squared_norm.sqrt(),
                    relative: relative(row),
                    double,
                };
                ActiveRow { row, slot: row, covered: 0.0, at }
            })
            .collect::<Vec<_>>();
        // Kernel values of the active rows, one line of the stage's vectors each.
        let mut values: Vec<f64> = Vec::new();
        let mut phi = try_vec![0.0; count * depth]?;
        let mut outputs = vec![0.0; self.outputs()];
        let (mut from, mut covered) = (0, 0);
        for (s, (stage, columns)) in self.stages.iter().zip(&self.columns).enumerate() {
            let StageSize { vectors: t, directions: p } = stage.size;
            let rows: Vec<usize> = active.iter().map(|row_state| first + row_state.row).collect();
            let mut wider = try_vec![0.0; rows.len() * t]?;
            for (slot, (row_state, line)) in active.iter_mut().zip(wider.chunks_exact_mut(t)).enumerate() {
                line[..from].copy_from_slice(&values[row_state.slot * from..(row_state.slot + 1) * from]);
                row_state.slot = slot;
            }
            values = wider;
            columns.values(x, &rows, &mut values[from..], t)?;
            // Lines of L outside, rows inside: a line is read from memory once a block.
            for (i, line) in self.lines.iter().enumerate().take(p).skip(covered) {
                for row_state in &mut active {
                    let phi = &mut phi[row_state.row * depth..(row_state.row + 1) * depth];
                    let value = (values[row_state.slot * t + i] - dot(&phi[..i], &line[..i])) / line[i];
                    phi[i] = value;
                    row_state.covered += value * value;
                }
            }
            (from, covered) = (t, p);
            active.retain(|row_state| {
                let line = &values[row_state.slot * t..(row_state.slot + 1) * t];
                for (j, (out, b)) in outputs.iter_mut().zip(&self.intercepts).enumerate() {
                    *out = b + dot(line, &stage.coefficients[j * t..(j + 1) * t]);
                }
                let squared_norm = row_state.at.squared_norm;
                let outside = (squared_norm - row_state.covered).max(0.0) + stage.tau * squared_norm;
                !visit(row_state.row, s, &outputs, RowPrecision { distance: outside.sqrt(), ..row_state.at })
            });
            if active.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Returns a bound on the rounding error of output j.
    fn rounding(&self, stage: usize, j: usize, precision: RowPrecision) -> f64 {
        let (stage, machine) = (&self.stages[stage], &self.machine);
        let which = usize::from(!precision.double);
        let delta = if precision.double { machine.deltas.0 } else { machine.deltas.1 };
        let values = (delta * machine.sums[j]).min(precision.relative * machine.masses[j]);
        precision.squared_norm.sqrt() * (stage.slack[which][j] + values) + stage.fixed[which][j]
    }

    /// Returns a bound on the error of output j.
    fn bound(&self, stage: usize, j: usize, precision: RowPrecision) -> f64 {
        self.stages[stage].radius[j] * precision.distance + self.rounding(stage, j, precision)
    }

    /// Returns the class of the machine if it is certain.
    fn decide(&self, stage: usize, f: &[f64], precision: RowPrecision) -> Option<usize> {
        let bound = |j: usize| self.bound(stage, j, precision);
        match self.decision.coding {
            Coding::Values => None,
            // The comparison is false for a bound that is not a number.
            Coding::Sign => (f[0].abs() > bound(0)).then(|| usize::from(f[0] > 0.0)),
            Coding::Largest => {
                let best = argmax(f.iter().copied());
                let radius = &self.stages[stage].pair_radius[best * f.len()..(best + 1) * f.len()];
                let of_best = self.rounding(stage, best, precision);
                (0..f.len())
                    .all(|c| {
                        let min_difference =
                            radius[c] * precision.distance + of_best + self.rounding(stage, c, precision);
                        c == best || f[best] - f[c] > min_difference
                    })
                    .then_some(best)
            }
            Coding::Pairs => certain_winner(self.classes, self.decision.break_ties, f, bound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::flat;
    use crate::data::matrix;
    use crate::expansion::ExpansionView;
    use crate::kernels::Evaluator;
    use crate::reduced_set::certified::bounds::moments;
    use crate::reduced_set::pursuit::{PursuitParams, pursuit};

    /// A machine whose norm is mostly in few of its vectors, so that small stages decide something.
    fn machine(q: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let (m, d) = (120, 3);
        let z = (0..m * d).map(|i| ((i * i) as f64 * 0.71).sin() * 2.0).collect();
        let b = (0..m * q).map(|i| ((i * 7) as f64 * 0.37).cos() * 0.97_f64.powi((i / q) as i32)).collect();
        (z, b, (0..q).map(|j| 0.1 * j as f64).collect())
    }

    fn classes(f: &[f64], q: usize, coding: Coding) -> Vec<usize> {
        f.chunks_exact(q)
            .map(|f| match coding {
                Coding::Sign => usize::from(f[0] >= 0.0),
                Coding::Largest => argmax(f.iter().copied()),
                _ => {
                    let k = (1 + 8 * q).isqrt().div_ceil(2);
                    let (mut votes, mut pair) = (vec![0.0; k], 0);
                    for a in 0..k {
                        for c in a + 1..k {
                            votes[if f[pair] > 0.0 { a } else { c }] += 1.0;
                            pair += 1;
                        }
                    }
                    argmax(votes)
                }
            })
            .collect()
    }

    #[test]
    fn bounds_hold_and_decided_rows_have_the_machines_class() {
        for kernel in [
            Kernel::Rbf { gamma: 0.6 },
            Kernel::Laplacian { gamma: 0.4 },
            Kernel::Matern { smoothness: crate::kernels::Smoothness::Half, gamma: 0.4 },
            Kernel::Polynomial { degree: 3, gamma: 0.5, coef0: 1.0 },
            Kernel::Linear,
        ] {
            for (q, coding) in [(1, Coding::Sign), (4, Coding::Largest), (6, Coding::Pairs)] {
                let (z, b, intercepts) = machine(q);
                let rows: Rows<'_> = Rows::from_shape((120, 3), &z).unwrap();
                let target =
                    ExpansionView::new(kernel, rows, matrix((120, q), &b).unwrap(), &intercepts).unwrap();
                let params = PursuitParams::new(120);
                let path = pursuit(&target, None, &params, Context::SEQUENTIAL).unwrap();
                let selected = rows.gather(&path.order).unwrap();
                let known = moments(&target, selected.view(), Context::SEQUENTIAL).unwrap();
                let m = path.order.len();
                let sizes: Vec<StageSize> = [1, 3, 10, 30, 60, 90, 120]
                    .iter()
                    .filter(|t| **t <= m)
                    .map(|&t| StageSize { vectors: t, directions: t.div_ceil(2) })
                    .collect();
                let decision = Decision { coding, break_ties: false };
                let projection = Projection {
                    target: target.reborrow(),
                    selected: selected.view(),
                    factor: path.factor.as_ref().unwrap().view(),
                    projections: path.projections.view(),
                    moments: &known,
                };
                let cascade = Cascade::new(&projection, &sizes, decision, Context::SEQUENTIAL).unwrap();
                let evaluator = Evaluator::new(&target).unwrap();
                let x: Vec<f64> = (0..900).map(|i| (f64::from(i * i) * 0.13).cos() * 2.5).collect();
                let x32: Vec<f32> = x.iter().map(|&v| v as f32).collect();
                let double: Rows<'_> = Rows::from_shape((300, 3), &x).unwrap();
                let single: Rows<'_> = Rows::from_shape((300, 3), &x32).unwrap();
                for x in [double, single] {
                    let f = flat(evaluator.evaluate(x, Context::SEQUENTIAL).unwrap());
                    for stage in 0..sizes.len() {
                        let (small, bounds) =
                            cascade.outputs_with_bounds(x, stage, Context::default()).unwrap();
                        for ((f, small), bound) in f.iter().zip(&small).zip(&bounds) {
                            assert!(
                                (f - small).abs() <= *bound,
                                "{kernel:?} {coding:?} {stage} {f} {small} {bound}"
                            );
                        }
                    }
                    let truth = classes(&f, q, coding);
                    let answers = cascade.answer(x, Context::default()).unwrap();
                    assert_eq!(answers, cascade.answer(x, Context::SEQUENTIAL).unwrap());
                    let mut decided = 0;
                    for (class, truth) in answers.classes.iter().zip(&truth) {
                        assert!(*class == UNDECIDED || class == truth);
                        decided += usize::from(*class != UNDECIDED);
                    }
                    assert!(decided > 0, "{kernel:?} {coding:?} {}", x.is_f64());
                    let counts = cascade.count_decided(x, Context::SEQUENTIAL).unwrap();
                    let last = sizes.len() - 1;
                    assert!(counts[[last, last]] <= decided);
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_bounded_is_refused() {
        let (z, b, intercepts) = machine(1);
        let rows: Rows<'_> = Rows::from_shape((120, 3), &z).unwrap();
        let kernel = Kernel::Sigmoid { gamma: 0.1, coef0: 0.0 };
        let target = ExpansionView::new(kernel, rows, matrix((120, 1), &b).unwrap(), &intercepts).unwrap();
        assert!(matches!(
            moments(&target, rows, Context::SEQUENTIAL),
            Err(Error::Param { name: "kernel", .. })
        ));
    }
}
