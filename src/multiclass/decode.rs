//! From the outputs of all machines to a score for each class; the largest wins, the first of equals.
//!
//! | decoder | score of class r | source |
//! |---|---|---|
//! | loss | -sum_i L(M_ri f_i), where a zero counts L(0) | Rifkin 2002, (4.43) |
//! | mean loss | -sum_i L(M_ri f_i) / n_r over the n_r machines that know r | Escalera, Pujol, Radeva 2010 |
//! | Hamming | -sum_i (1 - sign(M_ri f_i)) / 2, where a zero (of M or f) counts 1/2 | (4.42) |
//! | votes | machines that took the side of r; an output of 0 is on the negative side | Friedman 1996, LIBSVM |
//! | confidence | votes and the sum of M_ri f_i squeezed into (-1/3, 1/3) to break ties; 0 is on the positive side | scikit-learn |
//! | dag | the round in which r left the list of classes | Platt, Cristianini, Shawe-Taylor 2000 |
//!
//! A class that more machines know gains more of them when they are right: with the total loss it wins too often where
//! rows of the code differ in their zeros. The mean is free of that; where they do not differ both order alike.
//!
//! All but the last are sums over the machines of one of two numbers of the machine's output, by the sign of M_ri. Both
//! numbers are put in a table for eight rows side by side, and every class adds up its entries of the table: exact in
//! the sense that the terms are summed in the order of the machines. Cost: n times the entries of M that are not zero.

use super::code::CodeMatrix;
use crate::argmax::argmax;
use crate::context::Context;
use crate::data::copy_flat;
use crate::error::{Error, Result};
use crate::memory::try_zero_matrix;
use ndarray::{Array2, ArrayView2};
use std::borrow::Cow;

/// Number of rows that are summed together.
const LANES: usize = 8;
/// Number of rows of a task, and of tasks between two checks of the monitor.
const ROWS_PER_TASK: usize = 1024;
const TASKS_PER_CHECK: usize = 64;

/// A loss of the margin z = y f.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarginLoss {
    /// max(0, 1 - z): support vector machines.
    Hinge,
    /// max(0, 1 - z)^2.
    SquaredHinge,
    /// (1 - z)^2: regularized least squares.
    Square,
    /// ln(1 + exp(-z)).
    Logistic,
    /// exp(-z): AdaBoost.
    Exponential,
    /// max(0, -z): the perceptron.
    Perceptron,
}

impl MarginLoss {
    /// The loss of a name, as Python has it.
    ///
    /// # Errors
    /// [`Error::Param`] for another name.
    pub fn from_name(name: &str) -> Result<Self> {
        Ok(match name {
            "hinge" => Self::Hinge,
            "squared_hinge" => Self::SquaredHinge,
            "square" => Self::Square,
            "logistic" => Self::Logistic,
            "exponential" => Self::Exponential,
            "perceptron" => Self::Perceptron,
            _ => {
                let rule = "one of hinge, squared_hinge, square, logistic, exponential, perceptron";
                return Err(Error::param("loss", name, rule));
            }
        })
    }

    /// Returns L(z) for the margin z, the product of an output and an entry of the code.
    pub fn at(self, z: f64) -> f64 {
        match self {
            Self::Hinge => (1.0 - z).max(0.0),
            Self::SquaredHinge => (1.0 - z).max(0.0).powi(2),
            Self::Square => (1.0 - z).powi(2),
            Self::Logistic => (-z).max(0.0) + (-z.abs()).exp().ln_1p(),
            Self::Exponential => (-z).exp(),
            Self::Perceptron => (-z).max(0.0),
        }
    }
}

/// The rule that turns outputs into scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoder {
    /// The class of least total loss.
    Loss(MarginLoss),
    /// The class of least loss for each machine that knows it.
    MeanLoss(MarginLoss),
    /// The class nearest to the signs.
    Hamming,
    /// The class that most machines vote for.
    Votes,
    /// Votes, ties broken by the sums of the outputs.
    Confidence,
    /// A knock-out of the classes by the machines of their pairs; for the code of all pairs.
    Dag,
}

impl Decoder {
    /// The decoder of a name: one of its own, or that of a loss.
    ///
    /// # Errors
    /// [`Error::Param`] for another name.
    pub fn from_name(name: &str) -> Result<Self> {
        Ok(match name {
            "hamming" => Self::Hamming,
            "votes" => Self::Votes,
            "confidence" => Self::Confidence,
            "dag" => Self::Dag,
            _ => {
                let mean = name.strip_prefix("mean_");
                let loss = MarginLoss::from_name(mean.unwrap_or(name)).map_err(|_| {
                    let rule =
                        "one of hamming, votes, confidence, dag or the name of a loss, with mean_ or without";
                    Error::param("decoder", name, rule)
                })?;
                if mean.is_some() { Self::MeanLoss(loss) } else { Self::Loss(loss) }
            }
        })
    }

    /// Returns what an output f adds to the score of classes on the machine's positive and on its negative side.
    pub(super) fn gains(self, f: f64) -> (f64, f64) {
        match self {
            // Less L(0), so that zeros add nothing.
            Self::Loss(loss) | Self::MeanLoss(loss) => {
                let zero = loss.at(0.0);
                (zero - loss.at(f), zero - loss.at(-f))
            }
            // Less the half that a zero counts.
            Self::Hamming => {
                let side = if f > 0.0 {
                    0.5
                } else if f < 0.0 {
                    -0.5
                } else {
                    0.0
                };
                (side, -side)
            }
            Self::Votes | Self::Dag => (f64::from(u8::from(f > 0.0)), f64::from(u8::from(f <= 0.0))),
            Self::Confidence => (f64::from(u8::from(f >= 0.0)), f64::from(u8::from(f < 0.0))),
        }
    }

    /// Returns the number that is subtracted from the score of every class.
    fn offset(self, columns: usize) -> f64 {
        match self {
            Self::Loss(loss) => columns as f64 * loss.at(0.0),
            Self::MeanLoss(loss) => loss.at(0.0),
            Self::Hamming => 0.5 * columns as f64,
            _ => 0.0,
        }
    }
}

/// The rule that scores must fulfil.
const FINITE_SCORES: &str = "such that sums of the machines' outputs and losses stay within double precision: scale the rows, or \
                      train with a smaller C or a larger alpha";
/// The largest sum of outputs whose triple is finite.
const MAX_SUM: f64 = 1e300;

/// Scores (n, N) of outputs (n, F).
///
/// # Errors
/// [`Error::Shape`] where outputs and code disagree, [`Error::Param`] for the dag of a code that is not that of all
/// pairs and for sums that leave double precision, [`Error::Stopped`] where the monitor says so.
pub fn scores(
    outputs: ArrayView2<'_, f64>,
    code: &CodeMatrix,
    decoder: Decoder,
    ctx: Context<'_>,
) -> Result<Array2<f64>> {
    let classes = code.classes();
    let mut all = try_zero_matrix("the scores", (outputs.nrows(), classes))?;
    let decoding = Decoding::new(outputs, code, decoder)?;
    let values = all.as_slice_mut().expect("made row-major");
    decoding.in_blocks(values, classes, ctx, |outputs, scores| decoding.table.fill(outputs, scores))?;
    match values.iter().position(|score| !score.is_finite()) {
        Some(at) => Err(Error::param("X", format!("row {}", at / classes), FINITE_SCORES)),
        None => Ok(all),
    }
}

/// The class of each row of outputs (n, F).
///
/// # Errors
/// The errors of [`scores`].
pub fn winners(
    outputs: ArrayView2<'_, f64>,
    code: &CodeMatrix,
    decoder: Decoder,
    ctx: Context<'_>,
) -> Result<Vec<usize>> {
    let classes = code.classes();
    let mut all = vec![0; outputs.nrows()];
    let decoding = Decoding::new(outputs, code, decoder)?;
    decoding.in_blocks(&mut all, 1, ctx, |outputs, winners| {
        // small: a block of rows
        let mut scores = vec![0.0; winners.len() * classes];
        decoding.table.fill(outputs, &mut scores);
        for (winner, scores) in winners.iter_mut().zip(scores.chunks_exact(classes)) {
            *winner = argmax(scores.iter().copied());
            // Losses that overflow may lose; where the best of them does, nothing is known.
            if !scores[*winner].is_finite() {
                *winner = usize::MAX;
            }
        }
    })?;
    match all.iter().position(|&winner| winner == usize::MAX) {
        Some(row) => Err(Error::param("X", format!("row {row}"), FINITE_SCORES)),
        None => Ok(all),
    }
}

/// Outputs that fit their code, and the table they are put in.
struct Decoding<'a> {
    /// Row-major.
    outputs: Cow<'a, [f64]>,
    table: Table<'a>,
}

impl<'a> Decoding<'a> {
    fn new(outputs: ArrayView2<'a, f64>, code: &'a CodeMatrix, decoder: Decoder) -> Result<Self> {
        Error::check_len("outputs of a row, one a column of the code", code.columns(), outputs.ncols())?;
        if decoder == Decoder::Dag && CodeMatrix::one_vs_one(code.classes()).ok().as_ref() != Some(code) {
            return Err(Error::param("decoder", "dag", "another one for a code that is not ovo"));
        }
        let outputs = match outputs.to_slice() {
            Some(outputs) => outputs.into(),
            None => copy_flat(outputs)?.into(),
        };
        Ok(Self { outputs, table: Table::new(code, decoder) })
    }

    /// Calls `work(outputs of some rows, their part of all)` for blocks of rows with `width` numbers each in `all`, with
    /// a check of the monitor now and then.
    fn in_blocks<T: Send>(
        &self,
        all: &mut [T],
        width: usize,
        ctx: Context<'_>,
        work: impl Fn(&[f64], &mut [T]) + Sync + Send,
    ) -> Result<()> {
        let (columns, all_rows) = (self.table.code.columns(), all.len() / width);
        for (batch, part) in all.chunks_mut(TASKS_PER_CHECK * ROWS_PER_TASK * width).enumerate() {
            let done = batch * TASKS_PER_CHECK * ROWS_PER_TASK;
            ctx.check("decode", done, all_rows)?;
            ctx.for_each_chunk(part, ROWS_PER_TASK * width, |task, part| {
                let first = (done + task * ROWS_PER_TASK) * columns;
                work(&self.outputs[first..first + part.len() / width * columns], part);
            });
        }
        Ok(())
    }
}

/// Which entries of the table each class adds up.
struct Table<'a> {
    code: &'a CodeMatrix,
    decoder: Decoder,
    /// Entries of all classes, one class after the other: the machine for +1, F more for -1.
    entries: Vec<usize>,
    /// The start of each class, and the end of the last.
    starts: Vec<usize>,
}

impl<'a> Table<'a> {
    fn new(code: &'a CodeMatrix, decoder: Decoder) -> Self {
        let (mut entries, mut starts) = (Vec::new(), vec![0]);
        for class in 0..code.classes() {
            let used = code.row(class).iter().enumerate().filter(|(_, sign)| **sign != 0);
            entries.extend(used.map(|(i, &sign)| if sign > 0 { i } else { code.columns() + i }));
            starts.push(entries.len());
        }
        Self { code, decoder, entries, starts }
    }

    /// Returns the factor of the sum over the machines of a class.
    fn scale(&self, class: usize) -> f64 {
        match self.decoder {
            Decoder::MeanLoss(_) => 1.0 / (self.starts[class + 1] - self.starts[class]) as f64,
            _ => 1.0,
        }
    }

    /// Scores of some rows of outputs.
    fn fill(&self, outputs: &[f64], scores: &mut [f64]) {
        let (classes, columns) = (self.code.classes(), self.code.columns());
        if self.decoder == Decoder::Dag {
            for (outputs, scores) in outputs.chunks_exact(columns).zip(scores.chunks_exact_mut(classes)) {
                knock_out(outputs, scores);
            }
            return;
        }
        let offset = self.decoder.offset(columns);
        let mut table = vec![[0.0; LANES]; 2 * columns];
        for (outputs, scores) in outputs.chunks(LANES * columns).zip(scores.chunks_mut(LANES * classes)) {
            let gains = |f| self.decoder.gains(f);
            self.sums(outputs, &mut table, gains, |lane, class, sum| {
                scores[lane * classes + class] = sum * self.scale(class) - offset;
            });
            if self.decoder == Decoder::Confidence {
                let itself = |f: f64| (f, -f);
                self.sums(outputs, &mut table, itself, |lane, class, sum| {
                    scores[lane * classes + class] += match sum.abs() {
                        size if size <= MAX_SUM => sum / (3.0 * (size + 1.0)),
                        f64::INFINITY => f64::NAN,
                        _ => sum.signum() / 3.0,
                    };
                });
            }
        }
    }

    fn sums(
        &self,
        outputs: &[f64],
        table: &mut [[f64; LANES]],
        gains: impl Fn(f64) -> (f64, f64),
        mut give: impl FnMut(usize, usize, f64),
    ) {
        let columns = self.code.columns();
        let rows = outputs.len() / columns;
        for (lane, outputs) in outputs.chunks_exact(columns).enumerate() {
            for (i, &f) in outputs.iter().enumerate() {
                (table[i][lane], table[columns + i][lane]) = gains(f);
            }
        }
        for class in 0..self.code.classes() {
            let mut sums = [0.0; LANES];
            for &entry in &self.entries[self.starts[class]..self.starts[class + 1]] {
                for (sum, value) in sums.iter_mut().zip(&table[entry]) {
                    *sum += value;
                }
            }
            for (lane, &sum) in sums.iter().enumerate().take(rows) {
                give(lane, class, sum);
            }
        }
    }
}

/// The first and the last class of the list meet, the loser leaves; the round in which a class leaves is its score.
fn knock_out(outputs: &[f64], scores: &mut [f64]) {
    let classes = scores.len();
    if classes == 2 {
        // The one machine is positive for the second class.
        let second = outputs[0] > 0.0;
        scores.copy_from_slice(if second { &[0.0, 1.0] } else { &[1.0, 0.0] });
        return;
    }
    let (mut first, mut last) = (0, classes - 1);
    for round in 0..classes - 1 {
        // Pair (a, b) follows those of the classes before a.
        let pair = first * (2 * classes - first - 1) / 2 + last - first - 1;
        if outputs[pair] > 0.0 {
            scores[last] = round as f64;
            last -= 1;
        } else {
            scores[first] = round as f64;
            first += 1;
        }
    }
    scores[first] = (classes - 1) as f64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use ndarray::arr2;

    const LOSSES: [MarginLoss; 6] = [
        MarginLoss::Hinge,
        MarginLoss::SquaredHinge,
        MarginLoss::Square,
        MarginLoss::Logistic,
        MarginLoss::Exponential,
        MarginLoss::Perceptron,
    ];

    #[test]
    fn sums_of_losses_and_distances() {
        let mut random = Random::new(2);
        let n = 2100;
        for code in [
            CodeMatrix::one_vs_rest(4).unwrap(),
            CodeMatrix::one_vs_one(5).unwrap(),
            CodeMatrix::complete(5).unwrap(),
            CodeMatrix::one_vs_rest(2).unwrap(),
        ] {
            let number = |_| (4.0 * random.normal()).round() / 4.0;
            let outputs = Array2::from_shape_fn((n, code.columns()), number);
            for ctx in [Context::SEQUENTIAL, Context::default()] {
                for decoder in LOSSES.map(Decoder::Loss).into_iter().chain([Decoder::Hamming]) {
                    let actual = scores(outputs.view(), &code, decoder, ctx).unwrap();
                    let winners = winners(outputs.view(), &code, decoder, ctx).unwrap();
                    for (row, (outputs, of_row)) in outputs.rows().into_iter().zip(actual.rows()).enumerate()
                    {
                        for (class, score) in of_row.iter().enumerate() {
                            let cost: f64 = (0..code.columns())
                                .map(|i| {
                                    let z = f64::from(code.entry(class, i)) * outputs[i];
                                    match decoder {
                                        Decoder::Loss(loss) => loss.at(z),
                                        _ if z == 0.0 => 0.5,
                                        _ => (1.0 - z.signum()) / 2.0,
                                    }
                                })
                                .sum();
                            assert!(
                                (score + cost).abs() < 1e-10 * (1.0 + cost),
                                "{decoder:?} {score} {cost}"
                            );
                        }
                        assert_eq!(winners[row], argmax(of_row.iter().copied()));
                    }
                }
            }
        }
    }

    #[test]
    fn the_dag_keeps_the_winner_of_all_its_pairs() {
        let code = CodeMatrix::one_vs_one(4).unwrap();
        // Class 2 beats everyone: pairs (0,1) (0,2) (0,3) (1,2) (1,3) (2,3).
        let outputs = arr2(&[[1.0, -1.0, 1.0, -1.0, 1.0, 1.0]]);
        assert_eq!(winners(outputs.view(), &code, Decoder::Dag, Context::SEQUENTIAL).unwrap(), [2]);
        let actual = scores(outputs.view(), &code, Decoder::Dag, Context::SEQUENTIAL).unwrap();
        assert_eq!(actual, arr2(&[[1.0, 2.0, 3.0, 0.0]]));
        let other = CodeMatrix::one_vs_rest(4).unwrap();
        assert!(scores(Array2::zeros((1, 4)).view(), &other, Decoder::Dag, Context::SEQUENTIAL).is_err());
    }
}
