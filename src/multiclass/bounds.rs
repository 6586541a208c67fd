//! Bounds that show whether a row keeps its class when it is left out (Rifkin 2002, 4.4.1).
//!
//! For machines without intercept of any convex loss, with signed coefficient c of row j in machine i, the output at
//! x_j of the machine trained without row j lies between f_i(x_j) and f_i(x_j) - c_ij K(x_j, x_j) (4.56); where the
//! machine never saw row j (M = 0, c = 0) that is f_i(x_j) itself. The class of row j holds if no choice of outputs
//! within these intervals gives another class r a smaller total loss:
//!
//! ```text
//! D_r = sum_i min over the interval of  L(M_ri f) - L(M_yi f)  > 0   for every r other than y      (4.59), (4.60)
//! ```
//!
//! Terms are taken one by one, for each r alone. In every loss here L(-z) - L(z) rises with z and L(z) is convex or
//! falls, so that a term is least at an end of its interval. A difference of exactly 0 counts for the class that the
//! decoder would take, the first. Intervals are widened by `slack` on both sides, which stands for what a solution
//! within its tolerance may be off.
//!
//! Cost: n N F.

use super::code::CodeMatrix;
use super::decode::Decoder;
use crate::context::Context;
use crate::error::{Error, Result};
use ndarray::ArrayView2;

/// The quantities of the training rows.
#[derive(Debug, Clone, Copy)]
pub struct LeaveOneOutRows<'a> {
    /// f (n, F), outputs at the training rows.
    pub outputs: ArrayView2<'a, f64>,
    /// c (n, F), the signed coefficient of each row in each machine.
    pub coefficients: ArrayView2<'a, f64>,
    /// K(x_j, x_j).
    pub diagonal: &'a [f64],
    /// The class of each row, (n,), below k.
    pub labels: &'a [usize],
    /// Bound on the error of each machine's outputs, (F,).
    pub slack: &'a [f64],
}

/// Returns the smallest D_r of each row, and whether the row could be an error when it is left out.
///
/// # Errors
/// [`Error::Shape`] where sizes disagree, [`Error::Param`] for labels beyond the code, for the dag, whose decisions
/// are no sums, and for mean losses; [`Error::Stopped`].
pub fn leave_one_out_margins(
    rows: &LeaveOneOutRows<'_>,
    code: &CodeMatrix,
    decoder: Decoder,
    ctx: Context<'_>,
) -> Result<(Vec<f64>, Vec<bool>)> {
    let &LeaveOneOutRows { outputs, coefficients, diagonal, labels, slack } = rows;
    let (classes, columns, n) = (code.classes(), code.columns(), labels.len());
    for (what, values) in [("outputs", outputs), ("coefficients", coefficients)] {
        if values.dim() != (n, columns) {
            let rule = format!("({n}, {columns}), rows by columns of the code");
            return Err(Error::param(what, format!("of shape {:?}", values.dim()), rule));
        }
    }
    Error::check_len("diagonal of the kernel matrix", n, diagonal.len())?;
    Error::check_len("slack of the machines", columns, slack.len())?;
    if let Some(label) = labels.iter().find(|label| **label >= classes) {
        return Err(Error::param("labels", label, format!("below {classes}")));
    }
    if matches!(decoder, Decoder::Dag | Decoder::Confidence) {
        let rule = "a loss, hamming or votes: this bound is for sums over machines";
        return Err(Error::param("decoder", "dag", rule));
    }
    if matches!(decoder, Decoder::MeanLoss(_)) {
        let rule = "the total loss, hamming or votes: terms of mean losses need not be smallest at an end";
        return Err(Error::param("decoder", "mean loss", rule));
    }
    let gain = |sign: i8, f: f64| match sign {
        1 => decoder.gains(f).0,
        -1 => decoder.gains(f).1,
        _ => 0.0,
    };
    let of_row = |j: usize| {
        let label = labels[j];
        let mut smallest = vec![0.0; classes];
        for i in 0..columns {
            let (f, moved) = (outputs[[j, i]], coefficients[[j, i]] * diagonal[j]);
            let ends = [f.min(f - moved) - slack[i], f.max(f - moved) + slack[i]];
            let mine = code.entry(label, i);
            let of_sign = |sign: i8| {
                if sign == mine {
                    return 0.0;
                }
                // A gain is minus a loss: L(M_ri f) - L(M_yi f).
                ends.map(|f| gain(mine, f) - gain(sign, f)).into_iter().fold(f64::INFINITY, f64::min)
            };
            let terms = [of_sign(-1), of_sign(0), of_sign(1)];
            for (class, smallest) in smallest.iter_mut().enumerate() {
                *smallest += terms[(code.entry(class, i) + 1) as usize];
            }
        }
        let others = || (0..classes).filter(|&r| r != label);
        let suspect = others().any(|r| smallest[r] < 0.0 || (smallest[r] <= 0.0 && r < label));
        (others().map(|r| smallest[r]).fold(f64::INFINITY, f64::min), suspect)
    };
    let mut results = Vec::with_capacity(n);
    ctx.counter("bounds", n).for_each_batch(n, (columns * (classes + 32)) as u64, |part, _| {
        results.extend(ctx.map(part.len(), |j| of_row(part.start + j)));
        Ok(())
    })?;
    let bounds = results.iter().map(|&(bound, _)| bound).collect::<Vec<_>>();
    Ok((bounds, results.into_iter().map(|(_, suspect)| suspect).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multiclass::decode::MarginLoss;
    use crate::random::Random;
    use ndarray::Array2;

    #[test]
    fn no_choice_within_the_intervals_is_below() {
        let mut random = Random::new(4);
        let losses = [MarginLoss::Hinge, MarginLoss::SquaredHinge, MarginLoss::Square, MarginLoss::Logistic];
        let decoders = losses.map(Decoder::Loss).into_iter().chain([Decoder::Hamming, Decoder::Votes]);
        let codes = [CodeMatrix::one_vs_rest(4).unwrap(), CodeMatrix::one_vs_one(4).unwrap()];
        for decoder in decoders {
            for code in &codes {
                let (n, columns) = (40, code.columns());
                let mut numbers = || Array2::from_shape_fn((n, columns), |_| random.normal());
                let (outputs, mut coefficients) = (numbers(), numbers());
                let labels: Vec<usize> = (0..n).map(|j| j % 4).collect();
                for ((j, i), c) in coefficients.indexed_iter_mut() {
                    if code.entry(labels[j], i) == 0 {
                        *c = 0.0;
                    }
                }
                let rows = LeaveOneOutRows {
                    outputs: outputs.view(),
                    coefficients: coefficients.view(),
                    diagonal: &vec![0.7; n],
                    labels: &labels,
                    slack: &vec![0.0; columns],
                };
                let (margins, suspects) =
                    leave_one_out_margins(&rows, code, decoder, Context::default()).unwrap();
                for j in 0..n {
                    for _ in 0..200 {
                        let f: Vec<f64> = (0..columns)
                            .map(|i| outputs[[j, i]] - random.uniform() * 0.7 * coefficients[[j, i]])
                            .collect();
                        let score = |r: usize| -> f64 {
                            (0..columns)
                                .map(|i| match code.entry(r, i) {
                                    1 => decoder.gains(f[i]).0,
                                    -1 => decoder.gains(f[i]).1,
                                    _ => 0.0,
                                })
                                .sum()
                        };
                        for r in (0..4).filter(|&r| r != labels[j]) {
                            let margin = score(labels[j]) - score(r);
                            assert!(margin >= margins[j] - 1e-12, "{decoder:?} {margin} {}", margins[j]);
                            assert!(margin > -1e-12 || suspects[j]);
                        }
                    }
                }
            }
        }
    }
}
