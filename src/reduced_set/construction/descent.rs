//! Steps of Adam (Kingma and Ba, 2015) on the vectors, coefficients, intercepts and column scales of an expansion, and the
//! samples of its batches.
//!
//! Invariant: the panels of the expansion are those of its vectors and scales. Samples depend on the seed alone.
//!
//! Cost: a few operations for each number; the samples of a pass are shuffled once.

use super::params::GradientParams;
use super::scales::ColumnScales;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::{Batch, TrainableExpansion, Workspace, panel_zeros};
use crate::random::Random;
use crate::simd::adam;

/// Rates of the first step.
pub(super) struct Rates {
    pub(super) vectors: f64,
    pub(super) coefficients: f64,
    /// 0 without scales.
    pub(super) scales: f64,
}

/// An expansion with the running means of its gradients.
pub(super) struct Descent {
    pub(super) expansion: TrainableExpansion,
    pub(super) scales: ColumnScales,
    rates: Rates,
    /// For each panel the means and squares of vectors and coefficients.
    panels: Vec<[Vec<f32>; 4]>,
    intercepts: [Vec<f32>; 2],
    /// Gradients of the last batch.
    work: Workspace,
}

impl Descent {
    /// Returns an expansion before its first step.
    pub(super) fn new(mut expansion: TrainableExpansion, scales: ColumnScales, rates: Rates) -> Result<Self> {
        let (d, q) = (expansion.features(), expansion.intercepts.len());
        let panels = expansion.panels.iter().map(|_| -> Result<_> {
            let (means, squares) = (panel_zeros(d, q)?, panel_zeros(d, q)?);
            Ok([means.0, squares.0, means.1, squares.1])
        });
        let panels = panels.collect::<Result<_>>()?;
        let intercepts = [vec![0.0; q], vec![0.0; q]];
        expansion.has_scales = rates.scales > 0.0;
        Ok(Self { expansion, scales, rates, panels, intercepts, work: Workspace::default() })
    }

    /// Computes the gradients of a batch; returns the sum of its losses.
    pub(super) fn gradient(
        &mut self,
        batch: &Batch,
        loss: impl Fn(usize, &mut [f32]) -> f32 + Sync,
        ctx: Context<'_>,
    ) -> Result<f64> {
        self.expansion.gradient(batch, &mut self.work, loss, ctx)
    }

    /// Takes a step against the gradients of the last batch, with `decay` times the rates; `number` is 1 for the first step.
    pub(super) fn step(&mut self, decay: f64, number: usize, ctx: Context<'_>) {
        let Self { expansion, scales, rates, panels, intercepts: [means, squares], work } = self;
        let for_vectors = adam::corrected(rates.vectors * decay, number);
        let for_coefficients = adam::corrected(rates.coefficients * decay, number);
        if expansion.has_scales {
            scales.step(adam::corrected(rates.scales * decay, number), &work.scales);
        }
        let factors = expansion.has_scales.then_some(&*scales.factors);
        let kernel = expansion.kernel();
        let mut parts: Vec<_> = expansion.panels.iter_mut().zip(panels).zip(&work.panels).collect();
        ctx.for_each_chunk(&mut parts, 1, |_, part| {
            let ((panel, [v1, v2, c1, c2]), slopes) = &mut part[0];
            adam::step(for_vectors, &slopes.vectors, v1, v2, &mut panel.vectors);
            adam::step(for_coefficients, &slopes.coefficients, c1, c2, &mut panel.coefficients);
            if let Some(factors) = factors {
                panel.multiply_columns(factors);
            }
            panel.refresh(kernel);
        });
        adam::step(for_coefficients, &work.intercepts, means, squares, &mut expansion.intercepts);
    }
}

/// Rows and places of the batches: the rows in random order, again and again.
pub(super) struct Samples {
    random: Random,
    order: Vec<usize>,
    pub(super) batch_size: usize,
    next: usize,
    picked: Vec<(usize, usize)>,
}

impl Samples {
    /// Returns the samples of the first `n` rows.
    pub(super) fn new(params: &GradientParams, n: usize) -> Self {
        Self {
            random: Random::stream(params.seed, 0),
            order: (0..n).collect(),
            batch_size: params.batch.min(n),
            next: n,
            picked: Vec::new(),
        }
    }

    /// Draws the next batch: rows, and a place of each.
    pub(super) fn draw(&mut self, places: usize) -> &[(usize, usize)] {
        let Self { random, order, batch_size, next, picked } = self;
        if *next + *batch_size > order.len() {
            random.shuffle(order);
            *next = 0;
        }
        picked.clear();
        let rows = &order[*next..*next + *batch_size];
        picked.extend(rows.iter().map(|&row| (row, random.below(places as u64) as usize)));
        *next += *batch_size;
        picked
    }
}
