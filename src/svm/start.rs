//! Warm starts: coefficients of an earlier fit, projected onto the bounds and sums of the present problem.
//!
//! Cost: a few passes over the variables. Gradients follow from the outputs of the start if the caller knows them; otherwise
//! the machine computes them.

use super::columns::KernelColumns;
use super::precision::KernelValue;
use super::problem::{DualProblem, MAX_GROUPS};
use crate::error::{Error, Result};
use ndarray::{ArrayView2, Axis};

/// Minimum best multiple, relative to the ratio of two C, that is rounded up to this ratio, so that bounded coefficients stay
/// bounded.
const MIN_FULL_MULTIPLE: f64 = 0.5;

/// Coefficients to start from, of a machine or of all machines of a classifier.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// Training rows with a coefficient.
    pub support: &'a [usize],
    /// Coefficients (support, q), as in the model.
    pub coefficients: ArrayView2<'a, f64>,
    /// Their outputs for all training rows without intercepts (n, q); computed if `None`.
    pub products: Option<ArrayView2<'a, f64>>,
}

impl<'a> Start<'a> {
    /// Returns the same start with a shorter lifetime, as [`Rows::reborrow`](crate::data::Rows::reborrow).
    pub fn reborrow<'b>(self) -> Start<'b>
    where
        'a: 'b,
    {
        Start {
            support: self.support,
            coefficients: self.coefficients.reborrow(),
            products: self.products.map(ArrayView2::reborrow),
        }
    }

    /// Returns the coefficients of one of `q` machines for the training rows named by `order`.
    pub(super) fn of_machine(
        &self,
        rows: usize,
        machine: usize,
        q: usize,
        order: &[usize],
    ) -> Result<Vec<f64>> {
        Error::check_len(
            "rows of the coefficients to start from",
            self.support.len(),
            self.coefficients.nrows(),
        )?;
        Error::check_len("columns of the coefficients to start from", q, self.coefficients.ncols())?;
        let mut beta = vec![0.0; rows];
        for (&row, &coefficient) in self.support.iter().zip(self.coefficients.column(machine)) {
            if row >= rows || !coefficient.is_finite() {
                let value = format!("row {row}: {coefficient}");
                return Err(Error::param("start", value, format!("finite, for rows below {rows}")));
            }
            beta[row] = coefficient;
        }
        Ok(order.iter().map(|&row| beta[row]).collect())
    }

    /// Returns the known outputs of the rows named by `order`, as the kernel values of `columns` give them.
    pub(super) fn products_of_machine<K: KernelValue>(
        &self,
        rows: usize,
        machine: usize,
        q: usize,
        order: &[usize],
        columns: &KernelColumns<'_, K>,
    ) -> Result<Option<Vec<f64>>> {
        let Some(products) = &self.products else { return Ok(None) };
        Error::check_len("rows of the outputs to start from", rows, products.nrows())?;
        Error::check_len("columns of the outputs to start from", q, products.ncols())?;
        let coefficients = self.coefficients.select(Axis(1), &[machine]);
        let correction = columns.intercept_correction(self.support, coefficients.view())[0];
        let outputs = products.column(machine);
        if let Some(row) = outputs.iter().position(|output| !output.is_finite()) {
            return Err(Error::param("start", format!("the output {} of row {row}", outputs[row]), "finite"));
        }
        Ok(Some(order.iter().map(|&row| outputs[row] - correction).collect()))
    }
}

impl DualProblem {
    /// Sets the gradient of the present coefficients from their outputs, K b.
    pub(super) fn set_outputs(&mut self, outputs: &[f64]) {
        for (v, output) in outputs.iter().enumerate() {
            self.gradient[v] = output + self.linear[v] + self.ridge[v] * self.beta[v];
        }
    }

    /// Sets coefficients, clipped to the bounds, with the sums of the present ones, and leaves the gradient as it is: the
    /// projection may change the coefficients, so only outputs of the coefficients that it sets give their gradient.
    pub(super) fn project(&mut self, beta: &[f64]) {
        let sums = self.sums();
        if sums.iter().any(|sum| *sum != 0.0) {
            self.project_one_sided(beta, sums);
            return;
        }
        for (v, &start) in beta.iter().enumerate() {
            self.beta[v] = start.clamp(self.lower[v], self.upper[v]);
        }
        if !self.has_equality {
            return;
        }
        // The larger of the positive and the negative sum is scaled down, which keeps the bounds.
        let side = |positive: bool| self.beta.iter().filter(|b| (**b > 0.0) == positive).sum::<f64>().abs();
        let (up, down) = (side(true), side(false));
        if (up - down).abs() <= 1e-12 * (up + down) {
            // Rounding: scaling would only lift coefficients off their bounds.
            return;
        }
        let (heavy, scale) =
            if up > down { (true, down / up) } else { (false, up / down.max(f64::MIN_POSITIVE)) };
        for b in self.beta.iter_mut().filter(|b| (**b > 0.0) == heavy) {
            *b *= scale;
        }
    }

    /// Starts from the solution of the same machine for a smaller C; the present C is `ratio` times as large. Its coefficients
    /// are multiplied by the factor between 1 and the ratio with the best objective. Gradients follow without a kernel value.
    pub(super) fn start_from_smaller_c(&mut self, solved: &Self, ratio: f64) {
        let products: Vec<f64> = (0..self.len())
            .map(|v| solved.gradient[v] - solved.linear[v] - solved.ridge[v] * solved.beta[v])
            .collect();
        let (mut slope, mut curvature) = (0.0, 0.0);
        for (v, &b) in solved.beta.iter().enumerate() {
            slope += b * self.linear[v] + self.epsilon * b.abs();
            curvature += b * (products[v] + self.ridge[v] * b);
        }
        let best = if curvature > 0.0 { -slope / curvature } else { ratio };
        let times = if best >= MIN_FULL_MULTIPLE * ratio { ratio } else { best.max(1.0) };
        for (v, &b) in solved.beta.iter().enumerate() {
            // Coefficients at a bound stay exactly at the bound.
            self.beta[v] = match b {
                _ if times == ratio && b == solved.upper[v] => self.upper[v],
                _ if times == ratio && b == solved.lower[v] => self.lower[v],
                _ => (times * b).clamp(self.lower[v], self.upper[v]),
            };
            self.gradient[v] = times * products[v] + self.linear[v] + self.ridge[v] * self.beta[v];
        }
    }

    /// Sets coefficients in groups of one sign with nonzero sums: scaled to the sum (which undoes the division by rho in a
    /// model of nu-SVC), clipped, and increased up to the sum, nonzero ones first.
    fn project_one_sided(&mut self, beta: &[f64], sums: [f64; MAX_GROUPS]) {
        for (v, &start) in beta.iter().enumerate() {
            let sign = if self.lower[v] < 0.0 { -1.0 } else { 1.0 };
            self.beta[v] = if start * sign > 0.0 { start } else { 0.0 };
        }
        let scales = self.sums();
        for v in 0..self.len() {
            let g = usize::from(self.group[v]);
            if scales[g] != 0.0 {
                self.beta[v] *= sums[g] / scales[g];
            }
            self.beta[v] = self.beta[v].clamp(self.lower[v], self.upper[v]);
            let bound = if self.lower[v] < 0.0 { self.lower[v] } else { self.upper[v] };
            if (self.beta[v] - bound).abs() <= 1e-12 * bound.abs() {
                // Rounding must not move a coefficient away from its bound.
                self.beta[v] = bound;
            }
        }
        let mut missing = self.sums();
        for g in 0..MAX_GROUPS {
            missing[g] = sums[g] - missing[g];
            if missing[g].abs() <= 1e-12 * sums[g].abs() {
                missing[g] = 0.0;
            }
        }
        for is_nonzero in [true, false] {
            for v in 0..self.len() {
                let share = &mut missing[usize::from(self.group[v])];
                if (self.beta[v] != 0.0) == is_nonzero && share.abs() > 0.0 {
                    let to = (self.beta[v] + *share).clamp(self.lower[v], self.upper[v]);
                    *share -= to - self.beta[v];
                    self.beta[v] = to;
                }
            }
        }
    }

    /// Returns the sum of the coefficients of each group.
    fn sums(&self) -> [f64; MAX_GROUPS] {
        let mut sums = [0.0; MAX_GROUPS];
        for (&b, &group) in self.beta.iter().zip(&self.group) {
            sums[usize::from(group)] += b;
        }
        sums
    }
}
