//! Full back-fitting for any loss (Vincent and Bengio, eq. 11): the coefficients of all chosen functions that make
//! sum_i w_i L(y_i, f_i) least, one output at a time.
//!
//! In the orthonormal basis f = Q b / sqrt(w) the Hessian is Q' diag(L'') Q, as well conditioned as the second derivatives
//! are alike, whatever the dictionary. Newton steps by conjugate gradients, damped as Levenberg and Marquardt do: a step
//! that does not lower the loss is tried again shorter, and where L'' is negative 0 is taken. Ends when the slope is
//! [`GRADIENT_TOLERANCE`] of the slope at f = 0, or no step lowers the loss.
//!
//! Cost 2 n l multiply-adds and one pass over Q for each step of the conjugate gradients.

use super::basis::Basis;
use super::loss::{Derivative, Objective};
use crate::context::{Context, Progress};
use crate::error::Result;
use crate::simd::blas::{axpy, dot};

/// A slope that is this share of the first one is none.
const GRADIENT_TOLERANCE: f64 = 1e-7;
/// Newton steps, steps of the conjugate gradients in each, and dampings that are tried for one.
const MAX_NEWTON_STEPS: usize = 60;
const MAX_CONJUGATE_STEPS: usize = 60;
const MAX_DAMPINGS: usize = 25;

/// v / s
pub(super) fn unscale(scale: Option<&[f64]>, v: &mut [f64]) {
    v.iter_mut().zip(scale.unwrap_or_default()).for_each(|(v, s)| *v /= s);
}

/// All that stays the same while the coefficients move.
pub(super) struct Backfit<'a> {
    pub(super) basis: &'a Basis,
    /// sqrt(w), by which Q b is divided.
    pub(super) scale: Option<&'a [f64]>,
    pub(super) progress: Progress,
    pub(super) ctx: Context<'a>,
}

impl Backfit<'_> {
    fn outputs(&self, b: &[f64], l: usize) -> Result<Vec<f64>> {
        let mut out = vec![0.0; l];
        self.basis.add(b, &mut out, self.ctx)?;
        unscale(self.scale, &mut out);
        Ok(out)
    }

    /// d/db = Q' (w L' / sqrt(w)).
    fn slope(&self, objective: &mut Objective<'_>, f: &[f64]) -> Vec<f64> {
        let mut rows = objective.rows(Derivative::First, f).to_vec();
        unscale(self.scale, &mut rows);
        self.basis.products(&rows, self.ctx)
    }

    /// Improves `b`, and f (l,) with it.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped), after which b and f are as good as they have become.
    pub(super) fn improve(
        &self,
        objective: &mut Objective<'_>,
        b: &mut [f64],
        f: &mut Vec<f64>,
    ) -> Result<()> {
        let l = f.len();
        let start = self.slope(objective, &vec![0.0; l]);
        let enough = GRADIENT_TOLERANCE * dot(&start, &start).sqrt();
        let mut value = objective.value(f);
        let mut damping = 0.0;
        for _ in 0..MAX_NEWTON_STEPS {
            let slope = self.slope(objective, f);
            let size = dot(&slope, &slope).sqrt();
            if !(size > enough) {
                return Ok(());
            }
            let mut second = vec![0.0; l];
            objective.loss.fill(Derivative::Second, objective.y, f, &mut second);
            for h in &mut second {
                *h = h.max(0.0);
            }
            let mean = second.iter().sum::<f64>() / l as f64;
            let least = if mean > 0.0 { 1e-6 * mean } else { 1.0 };
            let mut lowered = false;
            for _ in 0..MAX_DAMPINGS {
                let used = f64::max(damping, least);
                let forcing = (size / enough * GRADIENT_TOLERANCE).sqrt().clamp(1e-4, 0.1);
                let step = self.conjugate_gradients(&second, used, &slope, forcing)?;
                let mut trial = b.to_vec();
                axpy(1.0, &step, &mut trial);
                let shifted = self.outputs(&trial, l)?;
                let tried = objective.value(&shifted);
                if tried <= value + 1e-4 * dot(&slope, &step) {
                    b.copy_from_slice(&trial);
                    *f = shifted;
                    lowered = tried < value;
                    value = tried;
                    damping *= 0.1;
                    break;
                }
                damping = (10.0 * used).max(1e-3 * mean);
            }
            if !lowered {
                return Ok(());
            }
        }
        Ok(())
    }

    /// p with (Q' diag(h) Q + damping) p = -slope, to a residual of `forcing` of the slope.
    fn conjugate_gradients(&self, h: &[f64], damping: f64, slope: &[f64], forcing: f64) -> Result<Vec<f64>> {
        let mut p = vec![0.0; slope.len()];
        let mut residual: Vec<f64> = slope.iter().map(|g| -g).collect();
        let mut direction = residual.clone();
        let mut size = dot(&residual, &residual);
        let enough = forcing * forcing * size;
        for _ in 0..MAX_CONJUGATE_STEPS {
            self.ctx.tick(&self.progress)?;
            let mut rows = vec![0.0; h.len()];
            let weigh = |from: usize, rows: &mut [f64]| {
                rows.iter_mut().zip(&h[from..]).for_each(|(v, h)| *v *= h);
            };
            let mut image = self.basis.add_and_project(&direction, &mut rows, weigh, self.ctx)?;
            axpy(damping, &direction, &mut image);
            let curvature = dot(&direction, &image);
            if !(curvature > 0.0) {
                break;
            }
            let length = size / curvature;
            axpy(length, &direction, &mut p);
            axpy(-length, &image, &mut residual);
            let next = dot(&residual, &residual);
            if next <= enough {
                break;
            }
            let ratio = next / size;
            direction.iter_mut().zip(&residual).for_each(|(d, r)| *d = r + ratio * *d);
            size = next;
        }
        Ok(p)
    }
}
