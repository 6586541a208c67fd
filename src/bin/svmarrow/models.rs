//! `compress` and `convert`: model files of LIBSVM and of svmarrow.

use ndarray::{Array2, Axis};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use svmarrow::context::Context;
use svmarrow::estimators::{Classifier, Detector, Model, Regressor, Strategy};
use svmarrow::expansion::KernelExpansion;
use svmarrow::io::libsvm_model::{LibsvmModel, ProbabilityParams, SvmType, read, write};
use svmarrow::io::svmlight::IndexBase;
use svmarrow::libsvm::{Failure, Outcome, Streams, integer, leading, pairs, value};
use svmarrow::{Error, Reduction};

pub(crate) const COMPRESS_USAGE: &str = "\
Usage: compress [options] model_file small_file
-n vectors    number of vectors of the small model (default 100)
Vectors are chosen by matching pursuit in the feature space. The files are LIBSVM's, or svmarrow's (.safetensors).
";

pub(crate) const CONVERT_USAGE: &str = "\
Usage: convert model_file other_file
A file that ends in .safetensors is svmarrow's, every other one LIBSVM's.
";

/// A model of any kind.
enum AnyModel {
    Classifier(Classifier<i64>),
    Regressor(Regressor),
    Detector(Detector),
}

/// Runs `compress`.
pub(crate) fn compress(arguments: &[OsString], _: &mut Streams<'_>, ctx: Context<'_>) -> Outcome {
    let mut n_vectors = 100;
    let paths = leading(arguments, |option, following| match option {
        "-n" => {
            let text = value(option, following)?;
            let count = integer(option, text)?;
            n_vectors = usize::try_from(count).unwrap_or(0);
            if n_vectors > 0 { Ok(1) } else { Err(format!("-n {count}: the value must be at least 1")) }
        }
        _ => Err(format!("unknown option: {option}")),
    })?;
    let [from, to] = paths else { return Err(Failure::usage("give model_file and small_file")) };
    let reduction = Reduction::builder(n_vectors).build()?;
    let small = match load(from, ctx)? {
        AnyModel::Classifier(model) => AnyModel::Classifier(reduction.apply(&model)?),
        AnyModel::Regressor(model) => AnyModel::Regressor(reduction.apply(&model)?),
        AnyModel::Detector(model) => AnyModel::Detector(reduction.apply(&model)?),
    };
    save(&small, to, ctx)
}

/// Runs `convert`.
pub(crate) fn convert(arguments: &[OsString], _: &mut Streams<'_>, ctx: Context<'_>) -> Outcome {
    let paths = leading(arguments, |option, _| Err(format!("unknown option: {option}")))?;
    let [from, to] = paths else { return Err(Failure::usage("give model_file and other_file")) };
    save(&load(from, ctx)?, to, ctx)
}

fn load(path: &OsStr, ctx: Context<'_>) -> Outcome<AnyModel> {
    let path = Path::new(path);
    let failed = |source| Error::Io { path: path.to_owned(), source };
    let mut start = Vec::new();
    File::open(path).map_err(failed)?.take(9).read_to_end(&mut start).map_err(failed)?;
    if start != b"svm_type " {
        return load_safetensors(path);
    }
    let LibsvmModel { svm_type, expansion, labels, .. } = read(path, None, IndexBase::One, ctx)?;
    Ok(match svm_type {
        SvmType::OneClass => AnyModel::Detector(Detector::new(expansion, None)?),
        SvmType::EpsilonSvr | SvmType::NuSvr => AnyModel::Regressor(Regressor::new(expansion, None)?),
        SvmType::CSvc | SvmType::NuSvc => {
            let mut order: Vec<usize> = (0..labels.len()).collect();
            order.sort_by_key(|&class| labels[class]);
            let classes = order.iter().map(|&class| i64::from(labels[class])).collect();
            // In svmarrow one output of two classes is positive for the second.
            let expansion = reordered(expansion, &order, order.len() == 2)?;
            AnyModel::Classifier(Classifier::new(expansion, classes, Strategy::OneVsOne, Vec::new())?)
        }
    })
}

fn load_safetensors(path: &Path) -> Outcome<AnyModel> {
    let classifier = match Classifier::load(path) {
        Ok(model) => return Ok(AnyModel::Classifier(model)),
        Err(error) => error,
    };
    if let Ok(model) = Regressor::load(path) {
        return Ok(AnyModel::Regressor(model));
    }
    Detector::load(path).map(AnyModel::Detector).map_err(|_| classifier.into())
}

/// Returns the expansion whose outputs are those of the pairs of classes in another order.
fn reordered(expansion: KernelExpansion, order: &[usize], is_negated: bool) -> Outcome<KernelExpansion> {
    let KernelExpansion { kernel, vectors, coefficients, intercepts } = expansion;
    let k = order.len();
    let number = |a: usize, b: usize| a * (2 * k - a - 1) / 2 + b - a - 1;
    let outputs: Vec<(usize, f64)> = pairs(k)
        .map(|(a, b)| {
            let (a, b) = (order[a], order[b]);
            if a < b { (number(a, b), 1.0) } else { (number(b, a), -1.0) }
        })
        .map(|(output, sign)| (output, if is_negated { -sign } else { sign }))
        .collect();
    let old: Vec<usize> = outputs.iter().map(|(output, _)| *output).collect();
    let mut coefficients: Array2<f64> = coefficients.select(Axis(1), &old);
    for (mut column, (_, sign)) in coefficients.axis_iter_mut(Axis(1)).zip(&outputs) {
        column.mapv_inplace(|b| sign * b);
    }
    let coefficients = coefficients.as_standard_layout().into_owned();
    let intercepts = outputs.iter().map(|(output, sign)| sign * intercepts[*output]).collect();
    Ok(KernelExpansion::new(kernel, Arc::unwrap_or_clone(vectors), coefficients, intercepts)?)
}

fn save(model: &AnyModel, path: &OsStr, ctx: Context<'_>) -> Outcome {
    let path = Path::new(path);
    let is_safetensors = path.extension().is_some_and(|extension| extension == "safetensors");
    if is_safetensors {
        match model {
            AnyModel::Classifier(model) => model.save(path)?,
            AnyModel::Regressor(model) => model.save(path)?,
            AnyModel::Detector(model) => model.save(path)?,
        }
        return Ok(());
    }
    let write_as = |svm_type, expansion: &KernelExpansion, labels: &[i32]| -> Outcome {
        Ok(write(path, svm_type, &expansion.view(), labels, &[], &ProbabilityParams::default(), ctx)?)
    };
    match model {
        AnyModel::Regressor(model) => write_as(SvmType::EpsilonSvr, model.expansion(), &[]),
        AnyModel::Detector(model) => write_as(SvmType::OneClass, model.expansion(), &[]),
        AnyModel::Classifier(model) => {
            let k = model.classes().len();
            if k > 2 && model.strategy() == Strategy::OneVsRest {
                return Err(Failure::input(
                    "LIBSVM's files hold one machine for each pair of classes, not one for each class",
                ));
            }
            let narrow = |label: &i64| {
                i32::try_from(*label)
                    .map_err(|_| Failure::input(format!("the label {label} is beyond 32 bits")))
            };
            let labels: Vec<i32> = model.classes().iter().map(narrow).collect::<Outcome<_>>()?;
            let same: Vec<usize> = (0..k).collect();
            write_as(SvmType::CSvc, &reordered(model.expansion().clone(), &same, k == 2)?, &labels)
        }
    }
}
