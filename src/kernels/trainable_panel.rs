//! A panel of vectors that a gradient moves, with their coefficients.

use super::Kernel;
use crate::error::Result;
use crate::memory::try_vec;
use crate::simd::lanes;
use crate::simd::micro::{PanelView, panel_width};

/// The vectors of one panel and their coefficients, in lines of the panel's width.
#[derive(Debug, Clone)]
pub(crate) struct TrainablePanel {
    /// Feature after feature, (d, width).
    pub(crate) vectors: Vec<f32>,
    /// Output after output, (q, width).
    pub(crate) coefficients: Vec<f32>,
    pub(super) norms: Vec<f32>,
    /// The coefficients of a fused product: lanes of outputs, (groups, width, lanes).
    pub(super) packed: Vec<f32>,
    pub(super) used: usize,
}

/// Allocates a number for each entry of the vectors and of the coefficients of a panel, zero at first.
pub(crate) fn panel_zeros(features: usize, outputs: usize) -> Result<(Vec<f32>, Vec<f32>)> {
    let zeros = |lines: usize| try_vec![0.0; lines * panel_width::<f32>()];
    Ok((zeros(features)?, zeros(outputs)?))
}

impl TrainablePanel {
    /// Returns a panel of `used` zero vectors without coefficients.
    pub(super) fn zeros(features: usize, outputs: usize, used: usize) -> Result<Self> {
        let (vectors, coefficients) = panel_zeros(features, outputs)?;
        Ok(Self { vectors, coefficients, norms: vec![0.0; panel_width::<f32>()], packed: Vec::new(), used })
    }

    /// Returns lines of the panel's width as the micro-kernel reads them.
    pub(super) fn view<'a>(&'a self, values: &'a [f32]) -> PanelView<'a, f32> {
        PanelView { values, norms: &self.norms, baseline: None }
    }

    /// Multiplies each column of the vectors by its factor.
    pub(crate) fn multiply_columns(&mut self, factors: &[f32]) {
        for (line, factor) in self.vectors.chunks_exact_mut(self.norms.len()).zip(factors) {
            for v in line {
                *v *= factor;
            }
        }
    }

    /// Updates norms and packed coefficients after vectors and coefficients have changed. Vectors outside the kernel's domain
    /// are moved to its boundary.
    pub(crate) fn refresh(&mut self, kernel: Kernel) {
        let (width, lanes) = (self.norms.len(), lanes::<f32>());
        if matches!(kernel, Kernel::ChiSquared { .. }) {
            for v in &mut self.vectors {
                *v = v.max(0.0);
            }
        }
        self.norms.fill(0.0);
        for line in self.vectors.chunks_exact(width) {
            for (norm, v) in self.norms.iter_mut().zip(line) {
                *norm += v * v;
            }
        }
        let q = self.coefficients.len() / width;
        // small: a panel
        self.packed.resize(q.div_ceil(lanes) * width * lanes, 0.0);
        for (k, line) in self.coefficients.chunks_exact(width).enumerate() {
            let group = &mut self.packed[k / lanes * width * lanes..];
            for (j, &b) in line.iter().enumerate() {
                group[j * lanes + k % lanes] = b;
            }
        }
    }
}
