//! Outputs of a model, and what they mean: labels, numbers or probabilities.
//!
//! Source: `svm_predict_values` and `svm_predict_probability` of LIBSVM. A feature that a row or the model lacks is 0. Equal votes
//! and equal probabilities go to the first class of the model. Cost: that of the kernel values; a copy of the listed rows.

use super::classes::pairs;
use super::failure::{Failure, Outcome};
use super::numbers::general;
use super::problem::columns_of;
use crate::context::Context;
use crate::data::{OwnedRows, Rows};
use crate::error::Result;
use crate::expansion::{ExpansionView, KernelExpansion};
use crate::io::libsvm_model::{LibsvmModel, ProbabilityParams, SvmType};
use crate::kernel::Kernel;
use crate::kernels::Evaluator;
use crate::memory::{try_matrix, try_to_matrix};
use crate::probability::couple_pairs;
use ndarray::{Array2, ArrayView1, ArrayView2};

/// Returns the outputs (n_samples, n_outputs) for the listed rows, features with any number of columns or kernel values with the
/// index 0: absent ones are zeros.
pub(super) fn outputs(
    expansion: &KernelExpansion,
    rows: Rows<'_>,
    list: &[usize],
    ctx: Context<'_>,
) -> Outcome<Array2<f64>> {
    if expansion.kernel == Kernel::Precomputed {
        return kernel_outputs(&expansion.view(), rows, list, ctx);
    }
    Ok(feature_outputs(expansion, rows.gather(list)?, ctx)?)
}

/// Returns the outputs (n_samples, n_outputs) of a precomputed kernel for the listed rows of kernel values with the index 0.
///
/// # Errors
/// [`Failure::Input`] for rows without a kernel value that the model needs, and [`Failure::Library`].
pub fn kernel_outputs(
    expansion: &ExpansionView<'_>,
    rows: Rows<'_>,
    list: &[usize],
    ctx: Context<'_>,
) -> Outcome<Array2<f64>> {
    let mut columns = vec![0; expansion.vectors.rows()];
    for (i, column) in columns.iter_mut().enumerate() {
        expansion.vectors.for_each_in_row(i, |_, v| *column = v as usize + 1);
    }
    let (width, needed) = (rows.cols().saturating_sub(1), columns.iter().max().copied().unwrap_or(0));
    if needed > width {
        return Err(Failure::input(format!(
            "the rows hold {width} kernel values and the model needs the one of index {needed}"
        )));
    }
    let places = Array2::from_shape_fn((columns.len(), 1), |(i, _)| i as f64);
    let coefficients = try_to_matrix(expansion.coefficients)?;
    let intercepts = expansion.intercepts.to_vec();
    let expansion = KernelExpansion::new(Kernel::Precomputed, places.into(), coefficients, intercepts)?;
    let values = columns_of(rows, list.iter().copied(), &columns, ctx)?;
    Ok(feature_outputs(&expansion, values.into(), ctx)?)
}

fn feature_outputs(
    expansion: &KernelExpansion,
    mut rows: OwnedRows,
    ctx: Context<'_>,
) -> Result<Array2<f64>> {
    let shape = (rows.view().rows(), expansion.intercepts.len());
    let KernelExpansion { kernel, vectors, coefficients, intercepts } = expansion;
    if vectors.view().rows() == 0 {
        return try_matrix(shape, |(_, j)| intercepts[j]);
    }
    let mut vectors = OwnedRows::clone(vectors);
    if *kernel != Kernel::Precomputed {
        let width = rows.view().cols().max(vectors.view().cols()).max(1);
        for side in [&mut rows, &mut vectors] {
            if let OwnedRows::CsrF64 { cols, .. } = side {
                *cols = width;
            }
        }
    }
    let expansion = KernelExpansion::new(*kernel, vectors, coefficients.clone(), intercepts.clone())?;
    Evaluator::sharing(&expansion)?.evaluate(rows.view(), ctx)
}

/// The part of a model that turns outputs into predictions.
pub struct Decoder<'a> {
    /// The problem that the model solved.
    pub svm_type: SvmType,
    /// (k,), the label of each class; empty if the model is no classifier.
    pub labels: &'a [i32],
    /// The probability parameters; empty without.
    pub probability: &'a ProbabilityParams,
}

/// The predictions of a model.
pub struct Answers {
    /// (n_samples,), labels or numbers.
    pub predictions: Vec<f64>,
    /// (n_samples, k), the probabilities of a classifier if they were requested.
    pub probabilities: Option<Array2<f64>>,
    /// Lines that `svm-predict` prints about probabilities.
    pub remark: Option<String>,
}

impl<'a> From<&'a LibsvmModel> for Decoder<'a> {
    fn from(model: &'a LibsvmModel) -> Self {
        Self { svm_type: model.svm_type, labels: &model.labels, probability: &model.probability }
    }
}

impl Decoder<'_> {
    /// Returns true if the model is a regression.
    pub fn is_regression(&self) -> bool {
        matches!(self.svm_type, SvmType::EpsilonSvr | SvmType::NuSvr)
    }

    fn has_probabilities(&self) -> bool {
        !self.probability.is_empty() && self.svm_type != SvmType::OneClass
    }

    /// Refuses `-b 1` for a model without probabilities.
    ///
    /// # Errors
    /// [`Failure::Input`].
    pub fn check(&self, probability: bool) -> Outcome {
        if !probability || self.has_probabilities() {
            return Ok(());
        }
        Err(Failure::input(
            "-b 1 is not allowed: the model does not support probability estimates; train it with -b 1",
        ))
    }

    /// Returns the predictions for outputs (n_samples, n_outputs).
    ///
    /// # Errors
    /// The errors of [`check`](Self::check), and [`Failure::Library`] from the coupling of probabilities.
    pub fn answers(
        &self,
        outputs: ArrayView2<'_, f64>,
        probability: bool,
        ctx: Context<'_>,
    ) -> Outcome<Answers> {
        self.check(probability)?;
        let remark = match (probability, self.has_probabilities()) {
            (false, true) => {
                Some("Model supports probability estimates, but disabled in prediction.".to_owned())
            }
            (true, _) if self.is_regression() => Some(format!(
                "Prob. model for test data: target value = predicted value + z,\n\
                 z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={}",
                general(self.probability.prob_a[0], 6)
            )),
            _ => None,
        };
        if !probability || self.labels.is_empty() {
            return Ok(Answers { predictions: self.predictions(outputs), probabilities: None, remark });
        }
        let probabilities = couple_pairs(outputs, &self.probability.sigmoids()?, self.labels.len(), ctx)?;
        let label = |row: ArrayView1<'_, f64>| {
            let first_largest = |best, class| if row[class] > row[best] { class } else { best };
            f64::from(self.labels[(1..row.len()).fold(0, first_largest)])
        };
        let predictions = probabilities.rows().into_iter().map(label).collect();
        Ok(Answers { predictions, probabilities: Some(probabilities), remark })
    }

    /// Returns the predictions without probabilities; equal votes go to the first class of the model.
    pub(super) fn predictions(&self, outputs: ArrayView2<'_, f64>) -> Vec<f64> {
        let mut votes = vec![0_usize; self.labels.len()];
        let prediction = |outputs: ArrayView1<'_, f64>| {
            if self.svm_type == SvmType::OneClass {
                return if outputs[0] > 0.0 { 1.0 } else { -1.0 };
            }
            if votes.is_empty() {
                return outputs[0];
            }
            votes.fill(0);
            for (output, (a, b)) in outputs.iter().zip(pairs(votes.len())) {
                votes[if *output > 0.0 { a } else { b }] += 1;
            }
            let first_largest = |best, class| if votes[class] > votes[best] { class } else { best };
            f64::from(self.labels[(1..votes.len()).fold(0, first_largest)])
        };
        outputs.rows().into_iter().map(prediction).collect()
    }
}
