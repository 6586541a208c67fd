//! `svm-predict`.

use crate::arguments::{Failure, Outcome, flag, general, leading, value};
use crate::evaluation::prediction_lines;
use crate::problem::{Samples, kernel_values, read_samples};
use crate::training::pairs;
use ndarray::{Array2, ArrayView2};
use std::path::Path;
use std::sync::Arc;
use svmarrow::Kernel;
use svmarrow::context::Context;
use svmarrow::data::OwnedRows;
use svmarrow::expansion::KernelExpansion;
use svmarrow::io::atomic;
use svmarrow::io::libsvm_model::{LibsvmModel, SvmType, read};
use svmarrow::io::svmlight::IndexBase;
use svmarrow::kernels::Evaluator;
use svmarrow::probability::couple_pairs;

pub(crate) const USAGE: &str = "\
Usage: svm-predict [options] test_file model_file output_file
-b 0|1        probability estimates, of a model trained with -b 1 (default 0)
-q            no output
";

/// Runs the program.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let (mut is_quiet, mut probability) = (false, false);
    let paths = leading(arguments, |option, following| match option {
        "-q" => {
            is_quiet = true;
            Ok(0)
        }
        "-b" => {
            probability = flag(option, value(option, following)?)?;
            Ok(1)
        }
        _ => Err(format!("unknown option: {option}")),
    })?;
    let [data, model, output] = paths else {
        return Err(Failure::usage("give test_file, model_file and output_file"));
    };
    let model = read(Path::new(model), None, IndexBase::One, Context::default())?;
    if probability && !is_probability_model(&model) {
        return Err(Failure::input(
            "-b 1 is not allowed: the model does not support probability estimates; train it with -b 1",
        ));
    }
    let (y, samples) = read_samples(data, model.expansion.kernel == Kernel::Precomputed)?;
    let found = match samples {
        Samples::Features(rows) => outputs(&model.expansion, rows)?,
        Samples::Kernel(values, _) => kernel_outputs(&model.expansion, &values, None)?,
    };
    let is_regression = matches!(model.svm_type, SvmType::EpsilonSvr | SvmType::NuSvr);
    let shares =
        if probability && !is_regression { Some(probabilities(&model, found.view())?) } else { None };
    let predictions = match &shares {
        Some(shares) => most_probable(&model, shares.view()),
        None => labels_of(&model, found.view()),
    };
    atomic::save(Path::new(output), Context::default(), |out| {
        let Some(shares) = &shares else {
            return predictions.iter().try_for_each(|value| writeln!(out, "{}", general(*value, 17)));
        };
        let labels: Vec<String> = model.labels.iter().map(ToString::to_string).collect();
        writeln!(out, "labels {}", labels.join(" "))?;
        predictions.iter().zip(shares.rows()).try_for_each(|(label, row)| {
            let row: Vec<String> = row.iter().map(|share| general(*share, 6)).collect();
            writeln!(out, "{} {}", general(*label, 6), row.join(" "))
        })
    })?;
    if !is_quiet {
        if probability && is_regression {
            println!(
                "Prob. model for test data: target value = predicted value + z,\n\
                 z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={}",
                general(model.probability.prob_a[0], 6)
            );
        } else if !probability && is_probability_model(&model) {
            println!("Model supports probability estimates, but disabled in prediction.");
        }
        println!("{}", prediction_lines(is_regression, &y, &predictions));
    }
    Ok(())
}

/// Returns the outputs (n_samples, n_outputs) for samples with any number of columns: absent ones are zeros.
pub(crate) fn outputs(expansion: &KernelExpansion, mut rows: OwnedRows) -> Outcome<Array2<f64>> {
    let (n, q) = (rows.view().rows(), expansion.intercepts.len());
    let KernelExpansion { kernel, vectors, coefficients, intercepts } = expansion;
    if vectors.view().rows() == 0 {
        return Ok(Array2::from_shape_fn((n, q), |(_, j)| intercepts[j]));
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
    Ok(Evaluator::sharing(&expansion)?.evaluate(rows.view(), Context::default())?)
}

/// Returns the outputs (n_samples, n_outputs) for some rows of precomputed kernel values with the index 0, or for all.
pub(crate) fn kernel_outputs(
    expansion: &KernelExpansion,
    values: &OwnedRows,
    list: Option<&[usize]>,
) -> Outcome<Array2<f64>> {
    let vectors = expansion.vectors.view();
    let mut columns = vec![0; vectors.rows()];
    for (i, column) in columns.iter_mut().enumerate() {
        vectors.for_each_in_row(i, |_, v| *column = v as usize + 1);
    }
    let (held, needed) = (values.view().cols().saturating_sub(1), columns.iter().max().copied().unwrap_or(0));
    if needed > held {
        return Err(Failure::input(format!(
            "the rows hold {held} kernel values and the model needs the one of index {needed}"
        )));
    }
    let places = Array2::from_shape_fn((columns.len(), 1), |(i, _)| i as f64);
    let expansion = KernelExpansion { vectors: Arc::new(places.into()), ..expansion.clone() };
    outputs(&expansion, kernel_values(values, list, &columns)?.into())
}

/// Returns the predictions for some outputs; equal votes go to the first class of the model.
pub(crate) fn labels_of(model: &LibsvmModel, outputs: ArrayView2<'_, f64>) -> Vec<f64> {
    let label = |outputs: ndarray::ArrayView1<'_, f64>| {
        if model.svm_type == SvmType::OneClass {
            return if outputs[0] > 0.0 { 1.0 } else { -1.0 };
        }
        if model.labels.is_empty() {
            return outputs[0];
        }
        let mut votes = vec![0_usize; model.labels.len()];
        for (output, (a, b)) in outputs.iter().zip(pairs(votes.len())) {
            votes[if *output > 0.0 { a } else { b }] += 1;
        }
        let most = votes.iter().max().copied().unwrap_or(0);
        let winner = votes.iter().position(|count| *count == most).unwrap_or(0);
        f64::from(model.labels[winner])
    };
    outputs.rows().into_iter().map(label).collect()
}

/// Returns true if the model was trained with `-b 1`.
fn is_probability_model(model: &LibsvmModel) -> bool {
    !model.probability.is_empty() && model.svm_type != SvmType::OneClass
}

/// Returns the probabilities (n, k) of the classes for some outputs.
pub(crate) fn probabilities(model: &LibsvmModel, outputs: ArrayView2<'_, f64>) -> Outcome<Array2<f64>> {
    let sigmoids = model.probability.sigmoids()?;
    Ok(couple_pairs(outputs, &sigmoids, model.labels.len(), Context::default())?)
}

/// Returns the label of the largest probability of each row, the first of equals.
pub(crate) fn most_probable(model: &LibsvmModel, shares: ArrayView2<'_, f64>) -> Vec<f64> {
    let label = |row: ndarray::ArrayView1<'_, f64>| {
        let best = (1..row.len()).fold(0, |best, class| if row[class] > row[best] { class } else { best });
        f64::from(model.labels[best])
    };
    shares.rows().into_iter().map(label).collect()
}
