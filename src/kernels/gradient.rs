//! F = K(X, Z) B + 1 b' and the gradient of a loss of F in Z, B and b for a batch of rows, by which vectors are constructed
//! (compressed SVM, eq. 10).
//!
//! With G = dL/dF (n, q) and k' the kernel's derivative in its argument s:
//!
//! ```text
//! dL/dB = K' G        dL/db = G' 1        D = G B'
//! x'z kernels         dL/dZ = (D o k'(s))' X                         linear, polynomial, sigmoid
//! rbf                 dL/dZ = W' X - diag(W' 1) Z,                    W = 2 gamma D o K
//! matern, nu = 3/2                                                   W = c^2 D o exp(-a), a = c ||x - z||, c = sqrt(2 nu) gamma
//! matern, nu = 5/2                                                   W = c^2 / 3 D o (1 + a) exp(-a)
//! matern, nu = 1/2    dL/dz_jf = sum_i W_ij (x_if - z_jf),            W = c D o K / ||x - z||, 0 for x = z
//! laplacian           dL/dz_jf = sum_i W_ij sign(x_if - z_jf),        W = gamma D o K
//! chi-squared         dL/dz_jf = sum_i W_ij (x - z) (3 x + z) / (x + z)^2
//! ```
//!
//! Rows and vectors may have been multiplied by a scale s_f for each column. Then, with the unscaled vectors fixed,
//!
//! ```text
//! rbf                 dL/d log s_f = -sum_ij W_ij (x_if - z_jf)^2
//!                                  = sum_j z_jf (2 (W' X)_jf - z_jf (W' 1)_j) - sum_i (W 1)_i x_if^2
//! laplacian           dL/d log s_f = -sum_ij W_ij |x_if - z_jf|
//! ```
//!
//! Z is in column panels, feature after feature, so K, D, K'G and W'X are computed by the same register tile with other
//! operands, and a gradient has the layout of its variables. The first pass (K, F, G, W) takes rows in blocks, the second
//! (sums over all rows of the batch) takes panels. Every sum has one fixed order, so results do not depend on the number of
//! threads. All numbers are in single precision, which is exact compared with the sampling error of a batch.
//!
//! Cost of a batch of n rows: 2 n m d + 3 n m q multiply-adds and n m kernel values; memory 2 n m numbers.

use super::batch::Batch;
use super::pack::method;
use super::trainable_panel::{TrainablePanel, panel_zeros};
use super::{Kernel, Smoothness};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::memory::{TryGrow, try_vec, try_with_capacity};
use crate::simd::coefficients::ApplyCoefficients;
use crate::simd::epilogue::Epilogue;
use crate::simd::lanes;
use crate::simd::micro::{Block, Measure, panel_tile, panel_width};

/// Number of rows of a task: a multiple of the height of every register tile.
const BLOCK_ROWS: usize = 24;
/// Number of multiplications between two checks of the monitor.
const WORK_PER_CHECK: usize = 1 << 28;
/// A tile of plain products.
const PRODUCT: (Measure, Epilogue<f32>) = (Measure::Inner, Epilogue::Identity);

/// A gradient in the layout of a [`TrainablePanel`].
#[derive(Debug, Clone)]
pub(crate) struct PanelGradient {
    pub(crate) vectors: Vec<f32>,
    pub(crate) coefficients: Vec<f32>,
    /// The panel's part of the gradient in the logarithms of the column scales, (d,).
    scales: Vec<f32>,
}

/// An expansion in single precision whose vectors and coefficients are variables.
#[derive(Debug, Clone)]
pub(crate) struct TrainableExpansion {
    kernel: Kernel,
    features: usize,
    vectors: usize,
    pub(crate) panels: Vec<TrainablePanel>,
    /// (q,)
    pub(crate) intercepts: Vec<f32>,
    /// True if gradients include those in the column scales, for the RBF and the Laplacian kernel.
    pub(crate) has_scales: bool,
}

/// Memory of a pass, reused for all batches, and the gradient.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    blocks: Vec<BlockWork>,
    /// dL/dF, output after output.
    output_gradient: Vec<f32>,
    /// The gradient in vectors and coefficients, one for each panel.
    pub(crate) panels: Vec<PanelGradient>,
    /// The gradient in the intercepts, (q,).
    pub(crate) intercepts: Vec<f32>,
    /// The gradient in the logarithms of the column scales, (d,); empty without them.
    pub(crate) scales: Vec<f32>,
}

/// Results of the first pass for a block of rows: K and then W panel after panel, G row after row.
#[derive(Debug, Default, Clone)]
struct BlockWork {
    first: usize,
    rows: usize,
    kernel_and_weights: Vec<f32>,
    sums: Vec<f32>,
    outputs: Vec<f32>,
    loss: f64,
}

impl BlockWork {
    /// Returns K and W.
    fn halves(&self) -> (&[f32], &[f32]) {
        self.kernel_and_weights.split_at(self.kernel_and_weights.len() / 2)
    }
}

impl TrainableExpansion {
    /// Packs Z (m, d) and B (m, q), both row-major.
    pub(crate) fn new(
        kernel: Kernel,
        vectors: &[f32],
        features: usize,
        coefficients: &[f32],
        intercepts: &[f32],
    ) -> Result<Self> {
        let (q, width) = (intercepts.len(), panel_width::<f32>());
        let m = coefficients.len() / q;
        let panels = (0..m.div_ceil(width))
            .map(|p| -> Result<TrainablePanel> {
                let used = width.min(m - p * width);
                let mut panel = TrainablePanel::zeros(features, q, used)?;
                for j in 0..used {
                    let row = p * width + j;
                    for f in 0..features {
                        panel.vectors[f * width + j] = vectors[row * features + f];
                    }
                    for k in 0..q {
                        panel.coefficients[k * width + j] = coefficients[row * q + k];
                    }
                }
                Ok(panel)
            })
            .collect::<Result<Vec<_>>>()?;
        let intercepts = intercepts.to_vec();
        let mut expansion = Self { kernel, features, vectors: m, panels, intercepts, has_scales: false };
        for panel in &mut expansion.panels {
            panel.refresh(kernel);
        }
        Ok(expansion)
    }

    pub(crate) fn copied(&self) -> Result<Self> {
        let panels = self
            .panels
            .iter()
            .map(|panel| -> Result<TrainablePanel> {
                let mut copy = TrainablePanel::zeros(self.features, self.intercepts.len(), panel.used)?;
                copy.vectors.copy_from_slice(&panel.vectors);
                copy.coefficients.copy_from_slice(&panel.coefficients);
                copy.refresh(self.kernel);
                Ok(copy)
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { panels, intercepts: self.intercepts.clone(), ..*self })
    }

    /// Returns Z (m, d) and B (m, q), row-major.
    pub(crate) fn unpack(&self) -> Result<(Vec<f32>, Vec<f32>)> {
        let (width, q) = (panel_width::<f32>(), self.intercepts.len());
        let zeros = |columns: usize| try_vec![0.0; self.vectors * columns];
        let (mut z, mut b) = (zeros(self.features)?, zeros(q)?);
        for (p, panel) in self.panels.iter().enumerate() {
            for j in 0..panel.used {
                let row = p * width + j;
                for f in 0..self.features {
                    z[row * self.features + f] = panel.vectors[f * width + j];
                }
                for k in 0..q {
                    b[row * q + k] = panel.coefficients[k * width + j];
                }
            }
        }
        Ok((z, b))
    }

    /// Returns the loss summed over a batch, and writes its gradient to `work`.
    ///
    /// `loss(row, outputs)` returns the loss of a row and replaces its outputs by the gradient. After an error the contents of
    /// `work` are unspecified.
    pub(crate) fn gradient(
        &self,
        batch: &Batch,
        work: &mut Workspace,
        loss: impl Fn(usize, &mut [f32]) -> f32 + Sync,
        ctx: Context<'_>,
    ) -> Result<f64> {
        let (n, q, width) = (batch.rows, self.intercepts.len(), panel_width::<f32>());
        work.blocks.resize_with(n.div_ceil(BLOCK_ROWS), BlockWork::default);
        for (b, block) in work.blocks.iter_mut().enumerate() {
            (block.first, block.rows) = (b * BLOCK_ROWS, BLOCK_ROWS.min(n - b * BLOCK_ROWS));
        }
        let of_block = BLOCK_ROWS * self.panels.len() * width * (self.features + q);
        let at_once = WORK_PER_CHECK.div_ceil(of_block).max(ctx.threads());
        for (group, blocks) in work.blocks.chunks_mut(at_once).enumerate() {
            if group > 0 {
                ctx.check("gradient", group * at_once * BLOCK_ROWS, n)?;
            }
            ctx.try_for_each_chunk(blocks, 1, |_, block| self.first_pass(batch, &mut block[0], &loss))?;
        }

        work.output_gradient.try_resize(q * n, 0.0)?;
        work.intercepts.clear();
        work.intercepts.resize(q, 0.0);
        for block in &work.blocks {
            for (i, row) in block.outputs.chunks_exact(q).enumerate() {
                for (k, &g) in row.iter().enumerate() {
                    work.output_gradient[k * n + block.first + i] = g;
                    work.intercepts[k] += g;
                }
            }
        }
        while work.panels.len() < self.panels.len() {
            let (vectors, coefficients) = panel_zeros(self.features, q)?;
            work.panels.push(PanelGradient { vectors, coefficients, scales: vec![0.0; self.features] });
        }
        let (blocks, by_output) = (&work.blocks, &work.output_gradient);
        let at_once = WORK_PER_CHECK.div_ceil(n * width * (self.features + q)).max(ctx.threads());
        for (group, gradient) in work.panels.chunks_mut(at_once).enumerate() {
            if group > 0 {
                ctx.check("gradient", group * at_once, self.panels.len())?;
            }
            ctx.try_for_each_chunk(gradient, 1, |p, gradient| {
                self.second_pass(batch, blocks, by_output, group * at_once + p, &mut gradient[0])
            })?;
        }
        if self.has_scales {
            self.add_scale_gradients(batch, work);
        }
        Ok(work.blocks.iter().map(|block| block.loss).sum())
    }

    /// Adds the parts of the gradient in the column scales.
    fn add_scale_gradients(&self, batch: &Batch, work: &mut Workspace) {
        let (n, width) = (batch.rows, panel_width::<f32>());
        work.scales.clear();
        work.scales.resize(self.features, 0.0);
        for panel in &work.panels[..self.panels.len()] {
            work.scales.iter_mut().zip(&panel.scales).for_each(|(sum, part)| *sum += part);
        }
        if !matches!(self.kernel, Kernel::Rbf { .. }) {
            return;
        }
        let mut totals = Vec::with_capacity(n);
        let mut lanes = vec![0.0_f32; width];
        for block in &work.blocks {
            for i in 0..block.rows {
                lanes.fill(0.0);
                for panel in block.halves().1.chunks_exact(block.rows * width) {
                    let line = &panel[i * width..(i + 1) * width];
                    lanes.iter_mut().zip(line).for_each(|(sum, w)| *sum += w);
                }
                totals.push(lanes.iter().sum::<f32>());
            }
        }
        for (scale, x) in work.scales.iter_mut().zip(batch.by_feature.chunks_exact(n)) {
            *scale -= x.iter().zip(&totals).map(|(x, total)| total * x * x).sum::<f32>();
        }
    }

    fn first_pass(
        &self,
        batch: &Batch,
        work: &mut BlockWork,
        loss: &(impl Fn(usize, &mut [f32]) -> f32 + Sync),
    ) -> Result<()> {
        let Some(method) = method::<f32>(&self.kernel) else { return Ok(()) };
        let (q, width, lanes) = (self.intercepts.len(), panel_width::<f32>(), lanes::<f32>());
        let (rows, tile) = (work.rows, work.rows * width);
        let groups = q.div_ceil(lanes);
        work.kernel_and_weights.try_resize(2 * self.panels.len() * tile, 0.0)?;
        let (kernel_tiles, weight_tiles) = work.kernel_and_weights.split_at_mut(self.panels.len() * tile);
        work.sums.clear();
        work.sums.try_resize(rows * groups * lanes, 0.0)?;
        let inputs = Block::Dense { data: &batch.by_row, stride: self.features, depth: self.features };
        let inputs = (inputs, &*batch.norms);
        for (panel, kernel) in self.panels.iter().zip(kernel_tiles.chunks_exact_mut(tile)) {
            panel_tile(method, inputs, work.first, panel.view(&panel.vectors), kernel);
            let (coefficients, out) = (&*panel.packed, &mut *work.sums);
            ApplyCoefficients { tile: kernel, rows, coefficients, groups, out }.compute();
        }
        work.outputs.clear();
        for sums in work.sums.chunks_exact(groups * lanes) {
            work.outputs.extend(sums.iter().zip(&self.intercepts).map(|(sum, b)| sum + b));
        }
        work.loss = 0.0;
        for (i, outputs) in work.outputs.chunks_exact_mut(q).enumerate() {
            work.loss += f64::from(loss(work.first + i, outputs));
        }
        let gradient = (Block::Dense { data: &work.outputs, stride: q, depth: q }, &batch.norms[..rows]);
        let has_derivative = matches!(self.kernel, Kernel::Polynomial { .. } | Kernel::Matern { .. });
        let mut derivative = vec![0.0; if has_derivative { tile } else { 0 }];
        let parts = kernel_tiles.chunks_exact(tile).zip(weight_tiles.chunks_exact_mut(tile));
        for (panel, (kernel, weights)) in self.panels.iter().zip(parts) {
            panel_tile(PRODUCT, gradient, 0, panel.view(&panel.coefficients), weights);
            let values = weights.iter_mut().zip(kernel);
            match self.kernel {
                Kernel::Linear | Kernel::Precomputed => {}
                Kernel::Rbf { gamma } => scale(weights, kernel, 2.0 * gamma as f32),
                Kernel::Laplacian { gamma } | Kernel::ChiSquared { gamma } => {
                    scale(weights, kernel, gamma as f32);
                }
                Kernel::Matern { smoothness, gamma } => {
                    let rate = smoothness.rate(gamma);
                    // The derivative of a kernel is the kernel one degree less smooth.
                    let (epilogue, constant) = match smoothness {
                        Smoothness::Half => (Epilogue::Identity, rate),
                        Smoothness::ThreeHalves => (matern(rate, Smoothness::Half), rate * rate),
                        Smoothness::FiveHalves => (matern(rate, Smoothness::ThreeHalves), rate * rate / 3.0),
                    };
                    let vectors = panel.view(&panel.vectors);
                    panel_tile((Measure::SquaredL2, epilogue), inputs, work.first, vectors, &mut derivative);
                    if smoothness == Smoothness::Half {
                        for (h, k) in derivative.iter_mut().zip(kernel) {
                            *h = if *h > 0.0 { k / h.sqrt() } else { 0.0 };
                        }
                    }
                    scale(weights, &derivative, constant as f32);
                }
                Kernel::Sigmoid { gamma, .. } => {
                    values.for_each(|(w, k)| *w *= gamma as f32 * (1.0 - k * k));
                }
                Kernel::Polynomial { degree: 0, .. } => weights.fill(0.0),
                Kernel::Polynomial { degree, gamma, coef0 } => {
                    let (gamma, coef0) = (gamma as f32, coef0 as f32);
                    let power = Epilogue::Power { gamma, coef0, degree: degree - 1 };
                    let vectors = panel.view(&panel.vectors);
                    panel_tile((Measure::Inner, power), inputs, work.first, vectors, &mut derivative);
                    scale(weights, &derivative, gamma * degree as f32);
                }
            }
        }
        Ok(())
    }

    fn second_pass(
        &self,
        batch: &Batch,
        blocks: &[BlockWork],
        output_gradient: &[f32],
        p: usize,
        gradient: &mut PanelGradient,
    ) -> Result<()> {
        let (n, q, width) = (batch.rows, self.intercepts.len(), panel_width::<f32>());
        let panel = &self.panels[p];
        let gather = |part: fn(&BlockWork) -> &[f32]| {
            let mut all = try_with_capacity("the gradient of a batch", n * width)?;
            for block in blocks {
                all.extend_from_slice(&part(block)[p * block.rows * width..(p + 1) * block.rows * width]);
            }
            Ok::<Vec<f32>, Error>(all)
        };
        let zeros = vec![0.0; self.features.max(q)];
        let sum_over_rows = |by_feature: &[f32], weights: &[f32], out: &mut [f32]| {
            if !out.is_empty() {
                let block = (Block::Dense { data: by_feature, stride: n, depth: n }, &*zeros);
                panel_tile(PRODUCT, block, 0, panel.view(weights), out);
            }
        };
        sum_over_rows(output_gradient, &gather(|block| block.halves().0)?, &mut gradient.coefficients);
        // The zero vectors behind the last vector must keep zero coefficients.
        for line in gradient.coefficients.chunks_exact_mut(width) {
            line[panel.used..].fill(0.0);
        }
        let weights = gather(|block| block.halves().1)?;
        let term: Option<fn(f32, f32) -> f32> = match self.kernel {
            Kernel::Laplacian { .. } => Some(|x, z| sign(x - z)),
            Kernel::ChiSquared { .. } => Some(chi_squared_derivative),
            // Weights of near vectors are large, and products would cancel.
            Kernel::Matern { smoothness: Smoothness::Half, .. } => Some(|x, z| x - z),
            _ => None,
        };
        match term {
            Some(term) => {
                let mut distances = vec![0.0_f32; width];
                let mut scales = gradient.scales.iter_mut();
                for ((x, z), out) in batch
                    .by_feature
                    .chunks_exact(n)
                    .zip(panel.vectors.chunks_exact(width))
                    .zip(gradient.vectors.chunks_exact_mut(width))
                {
                    out.fill(0.0);
                    for (&x, weights) in x.iter().zip(weights.chunks_exact(width)) {
                        for ((out, &z), &w) in out.iter_mut().zip(z).zip(weights) {
                            *out += w * term(x, z);
                        }
                    }
                    let Some(scale) = scales.next().filter(|_| self.has_scales) else { continue };
                    distances.fill(0.0);
                    for (&x, weights) in x.iter().zip(weights.chunks_exact(width)) {
                        for ((sum, &z), &w) in distances.iter_mut().zip(z).zip(weights) {
                            *sum += w * (x - z).abs();
                        }
                    }
                    *scale = -distances.iter().sum::<f32>();
                }
            }
            None => sum_over_rows(&batch.by_feature, &weights, &mut gradient.vectors),
        }
        if term.is_none() && matches!(self.kernel, Kernel::Rbf { .. } | Kernel::Matern { .. }) {
            let mut totals = vec![0.0_f32; width];
            for line in weights.chunks_exact(width) {
                for (total, w) in totals.iter_mut().zip(line) {
                    *total += w;
                }
            }
            let scales = gradient.scales.iter_mut();
            let vectors = gradient.vectors.chunks_exact_mut(width).zip(panel.vectors.chunks_exact(width));
            for ((out, z), scale) in vectors.zip(scales) {
                if self.has_scales {
                    let terms = out.iter().zip(z).zip(&totals);
                    *scale = terms.map(|((sum, z), total)| z * (2.0 * sum - total * z)).sum();
                }
                for ((out, &z), &total) in out.iter_mut().zip(z).zip(&totals) {
                    *out -= total * z;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn vectors(&self) -> usize {
        self.vectors
    }

    pub(crate) fn features(&self) -> usize {
        self.features
    }

    pub(crate) fn kernel(&self) -> Kernel {
        self.kernel
    }
}

fn matern(rate: f64, smoothness: Smoothness) -> Epilogue<f32> {
    Epilogue::Matern { rate: rate as f32, smoothness }
}

fn scale(weights: &mut [f32], factors: &[f32], constant: f32) {
    for (w, f) in weights.iter_mut().zip(factors) {
        *w *= constant * f;
    }
}

/// Returns the sign of a number. The gradient of |x| at 0 is taken as 0.
fn sign(x: f32) -> f32 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// Returns -d/dz (x - z)^2 / (x + z) = (x - z) (3 x + z) / (x + z)^2, or 0 if both are 0.
fn chi_squared_derivative(x: f32, z: f32) -> f32 {
    let total = x + z;
    if total > 0.0 { (x - z) * (3.0 * x + z) / (total * total) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::kernels::pair;

    fn fill(batch: &mut Batch, x: &[f32], d: usize) {
        let write = |first: usize, lines: &mut [f32]| lines.copy_from_slice(&x[first * d..][..lines.len()]);
        batch.fill((x.len() / d, d), write, Context::SEQUENTIAL).unwrap();
    }

    /// Gradients are compared with differences of the loss sum_i c_i' F_i in double precision.
    #[test]
    #[expect(
        clippy::too_many_lines,
        reason = "one data set, whose gradients are compared in every kernel and number"
    )]
    fn gradients_equal_differences_for_every_kernel() {
        for kernel in [
            Kernel::Linear,
            Kernel::Polynomial { degree: 3, gamma: 0.3, coef0: 0.5 },
            Kernel::Polynomial { degree: 1, gamma: 0.3, coef0: 0.5 },
            Kernel::Rbf { gamma: 0.4 },
            Kernel::Sigmoid { gamma: 0.2, coef0: -0.1 },
            Kernel::Laplacian { gamma: 0.3 },
            Kernel::ChiSquared { gamma: 0.5 },
            Kernel::Matern { smoothness: Smoothness::Half, gamma: 0.4 },
            Kernel::Matern { smoothness: Smoothness::ThreeHalves, gamma: 0.4 },
            Kernel::Matern { smoothness: Smoothness::FiveHalves, gamma: 0.4 },
        ] {
            for (n, m, d, q) in [(61, 5, 3, 1), (100, 40, 7, 18)] {
                let x: Vec<f32> = (0..n * d).map(|i| 0.1 + (i as f32 * 0.37).sin().abs()).collect();
                let z: Vec<f32> = (0..m * d).map(|i| 0.1 + (i as f32 * 0.71).cos().abs()).collect();
                let b: Vec<f32> = (0..m * q).map(|i| (i as f32 * 0.13).sin()).collect();
                let intercepts = vec![0.25; q];
                let c = |i: usize, k: usize| ((i * q + k) as f32 * 0.31).cos();
                let mut expansion = TrainableExpansion::new(kernel, &z, d, &b, &intercepts).unwrap();
                expansion.has_scales = matches!(kernel, Kernel::Rbf { .. } | Kernel::Laplacian { .. });
                let expansion = expansion;
                assert_eq!(expansion.unpack().unwrap(), (z.clone(), b.clone()));
                let (mut batch, mut work) = (Batch::default(), Workspace::default());
                fill(&mut batch, &x, d);
                let linear = |i: usize, outputs: &mut [f32]| {
                    let mut total = 0.0;
                    for (k, f) in outputs.iter_mut().enumerate() {
                        total += *f * c(i, k);
                        *f = c(i, k);
                    }
                    total
                };
                let x64: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
                let value_at = |x: &[f64], z: &[f64], b: &[f64]| -> f64 {
                    let rows = Rows::from_shape((n, d), x).unwrap();
                    let vectors = Rows::from_shape((m, d), z).unwrap();
                    let mut total = 0.0;
                    for i in 0..n {
                        let values: Vec<f64> = (0..m).map(|j| pair(&kernel, rows, i, vectors, j)).collect();
                        for k in 0..q {
                            let f: f64 = (0..m).map(|j| values[j] * b[j * q + k]).sum();
                            total += (f + 0.25) * f64::from(c(i, k));
                        }
                    }
                    total
                };
                let value = |z: &[f64], b: &[f64]| value_at(&x64, z, b);
                let wide = |v: &[f32]| -> Vec<f64> { v.iter().map(|&v| f64::from(v)).collect() };
                let (z64, b64) = (wide(&z), wide(&b));
                let loss = expansion.gradient(&batch, &mut work, linear, Context::default()).unwrap();
                let expected = value(&z64, &b64);
                assert!(
                    (loss - expected).abs() < 2e-3 * (1.0 + expected.abs()),
                    "{kernel:?} {loss} {expected}"
                );
                let width = panel_width::<f32>();
                let check = |what: &str, at: usize, actual: f32, value: &dyn Fn(f64) -> f64| {
                    let expected = (value(1e-5) - value(-1e-5)) / 2e-5;
                    let error = (f64::from(actual) - expected).abs();
                    assert!(
                        error < 1e-3 * (1.0 + expected.abs()),
                        "{kernel:?} {what}{at}: {actual} {expected}"
                    );
                };
                let moved = |values: &[f64], at: usize, by: f64| {
                    let mut values = values.to_vec();
                    values[at] += by;
                    values
                };
                for at in [0, d + 1, m * d - 1] {
                    let actual = work.panels[at / d / width].vectors[at % d * width + at / d % width];
                    check("z", at, actual, &|by| value(&moved(&z64, at, by), &b64));
                }
                for at in [0, m * q - 1] {
                    let actual = work.panels[at / q / width].coefficients[at % q * width + at / q % width];
                    check("b", at, actual, &|by| value(&z64, &moved(&b64, at, by)));
                }
                if expansion.has_scales {
                    let scaled = |values: &[f64], f: usize, by: f64| -> Vec<f64> {
                        let factor = |at: usize| if at % d == f { by.exp() } else { 1.0 };
                        values.iter().enumerate().map(|(at, v)| v * factor(at)).collect()
                    };
                    for f in [0, d - 1] {
                        let value = |by: f64| value_at(&scaled(&x64, f, by), &scaled(&z64, f, by), &b64);
                        check("s", f, work.scales[f], &value);
                    }
                }
                let alone = work.panels[0].clone();
                expansion.gradient(&batch, &mut work, linear, Context::SEQUENTIAL).unwrap();
                assert!(alone.vectors == work.panels[0].vectors, "threads must not change the sums");
                assert!(alone.scales == work.panels[0].scales, "threads must not change the sums");
            }
        }
    }

    /// exp(-gamma ||x - z||) has a kink at z = x, where the gradient is taken as 0; near it, it keeps its length.
    #[test]
    fn a_matern_kernel_has_a_bounded_gradient_near_its_kink() {
        let (d, gamma) = (3, 0.5);
        let kernel = Kernel::Matern { smoothness: Smoothness::Half, gamma };
        let z = [0.25_f32, 4.0, -2.0];
        let expansion = TrainableExpansion::new(kernel, &z, d, &[2.0], &[0.0]).unwrap();
        let gradient_at = |step: f32| -> Vec<f32> {
            let (mut batch, mut work) = (Batch::default(), Workspace::default());
            fill(&mut batch, &[z[0] + step, z[1], z[2]], d);
            let linear = |_: usize, outputs: &mut [f32]| std::mem::replace(&mut outputs[0], 1.0);
            expansion.gradient(&batch, &mut work, linear, Context::SEQUENTIAL).unwrap();
            (0..d).map(|k| work.panels[0].vectors[k * panel_width::<f32>()]).collect()
        };
        assert_eq!(gradient_at(0.0), [0.0; 3]);
        for exponent in [-20, -10, -1] {
            let step = (exponent as f32).exp2();
            let expected = 2.0 * gamma * (-gamma * f64::from(step)).exp();
            for sign in [1.0, -1.0] {
                let actual = gradient_at(sign * step);
                assert!((f64::from(sign * actual[0]) - expected).abs() < 1e-5, "{exponent} {actual:?}");
                assert_eq!(actual[1..], [0.0; 2]);
            }
        }
    }
}
