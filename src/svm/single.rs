//! The fit of one machine of one output, which regression and the one-class machine share.

use super::certificate::Certificate;
use super::columns::{Columns, Effort};
use super::decomposition::solve;
use super::machine::Machine;
use super::problem::DualProblem;
use super::start::Start;
use super::training::Training;
use crate::error::Result;
use ndarray::Array2;

/// A fitted machine of one output as indices into its training rows.
#[derive(Debug, Clone)]
pub struct MachineModel {
    /// Training rows that are support vectors, rising.
    pub support: Vec<usize>,
    /// B, (m, 1).
    pub coefficients: Array2<f64>,
    /// b.
    pub intercept: f64,
    /// rho of the nu machines: the margin of nu-SVC, minus epsilon of nu-SVR; else 0.
    pub rho: f64,
    /// The certificate.
    pub certificate: Certificate,
    /// What it cost.
    pub effort: Effort,
}

/// Fits one machine over the rows named by `order` (each once, or twice for nu-SVR, whose halves are added), its
/// problem built from their K_ii.
pub(super) fn fit_single(
    training: &Training<'_>,
    order: Vec<usize>,
    start: Option<Start<'_>>,
    build: impl FnOnce(Vec<f64>) -> DualProblem,
) -> Result<MachineModel> {
    let n = order.len();
    let mut columns = Columns::new(training, order, &[n], n);
    let mut problem = build(columns.diagonal.clone());
    if let Some(start) = start {
        problem.start_from(&start.of_machine(training.rows.rows(), 0, 1, &columns.order)?);
    }
    let mut machines = [Machine::new(problem, &[0], &columns, training)];
    solve(&mut machines, &mut columns, training);
    let [machine] = &machines;
    let (intercept, rho, certificate) = machine.outcome();
    let mut beta = vec![0.0; training.rows.rows()];
    for (&row, b) in columns.order.iter().zip(&machine.problem().beta) {
        beta[row] += b;
    }
    let support: Vec<usize> = (0..beta.len()).filter(|&row| beta[row] != 0.0).collect();
    let coefficients = Array2::from_shape_fn((support.len(), 1), |(i, _)| beta[support[i]]);
    Ok(MachineModel { support, coefficients, intercept, rho, certificate, effort: columns.effort() })
}
