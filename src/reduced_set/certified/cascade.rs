//! A small machine that answers where its answer is certain to be the large one's.
//!
//! The stages of a path are nested: a stage adds vectors to the kernel values and directions to the projection that the
//! one before has left. A row leaves at the first stage whose bounds (see `certified`) decide it:
//!
//! | coding | decided for class a when |
//! |---|---|
//! | sign | \|f^\| is above its bound |
//! | largest | f^_a - f^_c is above the bound of the difference for every other c |
//! | pairs | the certain votes for a exceed all votes that c may get (equal ones suffice where a comes first) |
//!
//! Invariant: a decided row has the class that the machine itself gives, evaluated as `kernels::product` does it.
//!
//! Cost a row and stage: the new vectors' kernel values, p^2 / 2 for the new directions, t q for the outputs.

use ndarray::Array2;

use super::bounds::{Projection, Stage, StageSize, feature_space, stages};
use super::decision::{Decision, certain_winner};
use crate::argmax::argmax;
use crate::context::{Context, Progress, StopReason};
use crate::data::{Rows, row};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, PackedVectors, RelativeRounding, diagonal};
use crate::memory::{
    TryCollect, TryToVec, try_filled, try_matrix, try_vec, try_with_capacity, try_zero_matrix,
};
use crate::reduced_set::coding::Coding;
use crate::simd::blas::dot;

/// Rows that pass through the stages together.
const BLOCK: usize = 48;
/// Blocks a thread gets between two checks of the monitor, at most, and multiplications of them.
const TURN: usize = 8;
const WORK_OF_A_TURN: usize = 1 << 28;
/// Where the answer is left to the machine itself.
pub const UNDECIDED: usize = usize::MAX;

/// CertainAnswers of a cascade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertainAnswers {
    /// The class, or [`UNDECIDED`].
    pub classes: Vec<usize>,
    /// The stage that decided; the number of stages where none did.
    pub stages: Vec<usize>,
}

/// A path made ready to answer.
pub struct Cascade {
    kernel: Kernel,
    decision: Decision,
    classes: usize,
    intercepts: Vec<f64>,
    stages: Vec<Stage>,
    /// The new vectors of each stage.
    columns: Vec<PackedVectors<f64>>,
    /// The lines of L that are needed.
    lines: Vec<Vec<f64>>,
    machine: Machine,
}

/// How well the machine itself is evaluated.
struct Machine {
    /// The errors of its kernel values in double and in single precision.
    deltas: (f64, f64),
    relative: Option<RelativeRounding>,
    sums: Vec<f64>,
    masses: Vec<f64>,
}

/// A row on its way.
struct Traveller {
    /// Its number in the block.
    row: usize,
    /// Its line among the kernel values.
    slot: usize,
    covered: f64,
    at: Place,
}

/// Sees (number in the block, stage, outputs, place) of a row; whether the row leaves.
type Visit<'a> = dyn FnMut(usize, usize, &[f64], Place) -> bool + 'a;

/// What a bound needs to know of a row.
#[derive(Clone, Copy)]
struct Place {
    /// k(x, x).
    own: f64,
    /// Its distance from the span of the directions so far.
    distance: f64,
    /// The relative error of a kernel value where the machine is evaluated in single precision.
    relative: f64,
    /// Whether it is evaluated in double precision.
    double: bool,
}

impl Cascade {
    /// Makes the stages of a path.
    ///
    /// # Errors
    /// [`Error::Param`] for stages that do not increase and kernels without a feature space, [`Error::Shape`] where the
    /// arrays disagree, [`Error::Stopped`].
    pub fn new(
        projection: &Projection<'_>,
        sizes: &[StageSize],
        decision: Decision,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let Projection { target, kept, factor, moments, .. } = projection;
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
        let mut columns = try_with_capacity("the stages of a cascade", stages.len())?;
        let mut from = 0;
        for stage in &stages {
            let fresh: Vec<usize> = (from..stage.size.vectors).try_collect_vec()?;
            columns.push(PackedVectors::new(target.kernel, kept.gather(&fresh)?.view(), ctx)?);
            from = stage.size.vectors;
        }
        let p = stages.last().map_or(0, |stage| stage.size.directions);
        let lines = (0..p).map(|i| row(factor, i)[..=i].try_to_vec()).try_collect_results()?;
        let intercepts = target.intercepts.try_to_vec()?;
        let machine = Machine {
            deltas: feature_space(target)?,
            relative: RelativeRounding::new(&target.kernel, target.vectors, true)?,
            sums: moments.sums.clone(),     // small: one number per output
            masses: moments.masses.clone(), // small: one number per output
        };
        Ok(Self { kernel: target.kernel, decision, classes, intercepts, stages, columns, lines, machine })
    }

    /// Number of outputs q.
    pub fn outputs(&self) -> usize {
        self.intercepts.len()
    }

    /// The stages.
    pub fn sizes(&self) -> Result<Vec<StageSize>> {
        self.stages.iter().map(|stage| stage.size).try_collect_vec()
    }

    /// Multiply-adds of a row that passes all stages, of vectors with d columns.
    pub fn cost(&self, columns: usize) -> usize {
        self.stages.last().map_or(0, |stage| {
            let StageSize { vectors, directions } = stage.size;
            vectors * (columns + 2 * self.outputs()) + directions * directions / 2
        })
    }

    /// Rows between two checks of the monitor.
    fn turn(&self, columns: usize, ctx: Context<'_>) -> usize {
        let blocks = WORK_OF_A_TURN / (BLOCK * self.cost(columns)).max(1);
        BLOCK * blocks.clamp(1, TURN) * ctx.threads()
    }

    fn check(&self, x: Rows<'_>) -> Result<()> {
        self.columns.first().map_or(Ok(()), |columns| columns.check(x))
    }

    /// The certain answers. Interrupted, it leaves the rest undecided.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns, [`Error::Param`] for rows outside the kernel's domain.
    pub fn answer(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<CertainAnswers> {
        self.check(x)?;
        let n = x.rows();
        let mut found = try_vec![(UNDECIDED, self.stages.len()); n]?;
        let turn = self.turn(x.cols(), ctx);
        for (round, found) in found.chunks_mut(turn).enumerate() {
            let done = round * turn;
            let progress = Progress { steps: done as u64, ..Progress::new("cascade", done, n) };
            if StopReason::from_result(ctx.tick(&progress))?.is_some() {
                break;
            }
            ctx.try_for_each_chunk(found, BLOCK, |chunk, found| {
                let first = round * turn + chunk * BLOCK;
                self.pass(x, first, found.len(), &mut |at, stage, outputs, place| {
                    let class = self.decide(stage, outputs, place);
                    if let Some(class) = class {
                        found[at] = (class, stage);
                    }
                    class.is_some()
                })
            })?;
        }
        let classes = found.iter().map(|&(class, _)| class).try_collect_vec()?;
        let stages = found.into_iter().map(|(_, stage)| stage).try_collect_vec()?;
        Ok(CertainAnswers { classes, stages })
    }

    /// The outputs of a stage, (n, q), and how far each can be from the machine's.
    ///
    /// # Errors
    /// As [`Cascade::answer`]; [`Error::Param`] where there is no such stage.
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
        let mut found = try_filled("outputs and bounds", x.rows() * q, (0.0, 0.0))?;
        let turn = self.turn(x.cols(), ctx);
        for (round, found) in found.chunks_mut(turn * q).enumerate() {
            ctx.check("cascade", round * turn, x.rows())?;
            ctx.try_for_each_chunk(found, BLOCK * q, |chunk, found| {
                let first = round * turn + chunk * BLOCK;
                self.pass(x, first, found.len() / q, &mut |at, s, outputs, place| {
                    if s == stage {
                        let mine = &mut found[at * q..(at + 1) * q];
                        for (j, (out, &f)) in mine.iter_mut().zip(outputs).enumerate() {
                            *out = (f, self.bound(s, j, place));
                        }
                    }
                    s == stage
                })
            })?;
        }
        let shape = (x.rows(), q);
        Ok((try_matrix(shape, |(i, j)| found[i * q + j].0)?, try_matrix(shape, |(i, j)| found[i * q + j].1)?))
    }

    /// How many of the rows the outputs of stage i decide with the distances of stage j <= i, (stages, stages).
    ///
    /// # Errors
    /// As [`Cascade::answer`].
    pub fn survey(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<usize>> {
        self.check(x)?;
        let count = self.stages.len();
        let mut sums = try_zero_matrix("a matrix of results", (count, count))?;
        let of_block = |block: usize| -> Result<Array2<usize>> {
            let first = block * BLOCK;
            let rows = BLOCK.min(x.rows() - first);
            let mut distances = try_vec![f64::INFINITY; rows * count]?;
            let mut decided = try_zero_matrix("a matrix of results", (count, count))?;
            self.pass(x, first, rows, &mut |at, stage, outputs, place| {
                distances[at * count + stage] = place.distance;
                for earlier in 0..=stage {
                    let distance = distances[at * count + earlier];
                    let class = self.decide(stage, outputs, Place { distance, ..place });
                    decided[[stage, earlier]] += usize::from(class.is_some());
                }
                false
            })?;
            Ok(decided)
        };
        let (blocks, at_once) = (x.rows().div_ceil(BLOCK), self.turn(x.cols(), ctx) / BLOCK);
        for from in (0..blocks).step_by(at_once) {
            ctx.check("cascade", from * BLOCK, x.rows())?;
            for decided in ctx.try_map(at_once.min(blocks - from), |block| of_block(from + block))? {
                sums += &decided;
            }
        }
        Ok(sums)
    }

    /// Takes rows through the stages; `visit(number in the block, stage, outputs, place)` says whether the row leaves.
    fn pass(&self, x: Rows<'_>, first: usize, count: usize, visit: &mut Visit<'_>) -> Result<()> {
        let Some(last) = self.stages.last() else { return Ok(()) };
        let depth = last.size.directions;
        let own = match self.kernel.constant_diagonal() {
            Some(value) => try_vec![value; count]?,
            None => diagonal(&self.kernel, x.slice(first..first + count))?,
        };
        let double = x.is_f64();
        let relative = |row: usize| match &self.machine.relative {
            Some(relative) if !double => relative.of(x, first + row),
            _ => f64::INFINITY,
        };
        let mut alive: Vec<Traveller> = own
            .iter()
            .enumerate()
            .map(|(row, &own)| {
                let at = Place { own, distance: own.sqrt(), relative: relative(row), double };
                Traveller { row, slot: row, covered: 0.0, at }
            })
            .try_collect_vec()?;
        // Kernel values of the rows that are left, one line of the stage's vectors each.
        let mut values: Vec<f64> = Vec::new();
        let mut phi = try_vec![0.0; count * depth]?;
        let mut outputs = try_vec![0.0; self.outputs()]?;
        let (mut from, mut covered) = (0, 0);
        for (s, (stage, columns)) in self.stages.iter().zip(&self.columns).enumerate() {
            let StageSize { vectors: t, directions: p } = stage.size;
            let rows: Vec<usize> = alive.iter().map(|traveller| first + traveller.row).try_collect_vec()?;
            let mut wider = try_vec![0.0; rows.len() * t]?;
            for (slot, (traveller, line)) in alive.iter_mut().zip(wider.chunks_exact_mut(t)).enumerate() {
                line[..from].copy_from_slice(&values[traveller.slot * from..(traveller.slot + 1) * from]);
                traveller.slot = slot;
            }
            values = wider;
            columns.values(x, &rows, &mut values[from..], t)?;
            // Lines of L outside, rows inside: a line is read from memory once a block.
            for (i, line) in self.lines.iter().enumerate().take(p).skip(covered) {
                for traveller in &mut alive {
                    let phi = &mut phi[traveller.row * depth..(traveller.row + 1) * depth];
                    let value = (values[traveller.slot * t + i] - dot(&phi[..i], &line[..i])) / line[i];
                    phi[i] = value;
                    traveller.covered += value * value;
                }
            }
            (from, covered) = (t, p);
            alive.retain(|traveller| {
                let line = &values[traveller.slot * t..(traveller.slot + 1) * t];
                for (j, (out, b)) in outputs.iter_mut().zip(&self.intercepts).enumerate() {
                    *out = b + dot(line, &stage.coefficients[j * t..(j + 1) * t]);
                }
                let own = traveller.at.own;
                let outside = (own - traveller.covered).max(0.0) + stage.tau * own;
                !visit(traveller.row, s, &outputs, Place { distance: outside.sqrt(), ..traveller.at })
            });
            if alive.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// What rounding may add to the error of output j.
    fn rounding(&self, stage: usize, j: usize, place: Place) -> f64 {
        let (stage, machine) = (&self.stages[stage], &self.machine);
        let which = usize::from(!place.double);
        let delta = if place.double { machine.deltas.0 } else { machine.deltas.1 };
        let values = (delta * machine.sums[j]).min(place.relative * machine.masses[j]);
        place.own.sqrt() * (stage.slack[which][j] + values) + stage.fixed[which][j]
    }

    fn bound(&self, stage: usize, j: usize, place: Place) -> f64 {
        self.stages[stage].radius[j] * place.distance + self.rounding(stage, j, place)
    }

    /// The class that the machine is certain to give.
    fn decide(&self, stage: usize, f: &[f64], place: Place) -> Option<usize> {
        let bound = |j: usize| self.bound(stage, j, place);
        match self.decision.coding {
            Coding::Values => None,
            // Written so that a bound which is not a number decides nothing.
            Coding::Sign => (f[0].abs() > bound(0)).then(|| usize::from(f[0] > 0.0)),
            Coding::Largest => {
                let best = argmax(f.iter().copied());
                let radius = &self.stages[stage].pair_radius[best * f.len()..(best + 1) * f.len()];
                let of_best = self.rounding(stage, best, place);
                (0..f.len())
                    .all(|c| {
                        let room = radius[c] * place.distance + of_best + self.rounding(stage, c, place);
                        c == best || f[best] - f[c] > room
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
                let kept = rows.gather(&path.order).unwrap();
                let known = moments(&target, kept.view(), Context::SEQUENTIAL).unwrap();
                let m = path.order.len();
                let sizes: Vec<StageSize> = [1, 3, 10, 30, 60, 90, 120]
                    .iter()
                    .filter(|t| **t <= m)
                    .map(|&t| StageSize { vectors: t, directions: t.div_ceil(2) })
                    .collect();
                let decision = Decision { coding, break_ties: false };
                let projection = Projection {
                    target: target.reborrow(),
                    kept: kept.view(),
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
                    let survey = cascade.survey(x, Context::SEQUENTIAL).unwrap();
                    let last = sizes.len() - 1;
                    assert!(survey[[last, last]] <= decided);
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
