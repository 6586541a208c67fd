//! `svm-train`: a model or a cross-validation of a data file.

use super::evaluation::evaluate;
use super::failure::{Failure, Outcome};
use super::options::TrainOptions;
use super::problem::{Problem, index_base, read_data};
use super::streams::Streams;
use super::training::{TrainedModel, cross_validate, train};
use crate::context::Context;
use crate::io::libsvm_model::{LibsvmModel, write};
use std::ffi::OsString;
use std::path::Path;

pub(super) fn run(arguments: &[OsString], streams: &mut Streams<'_>, ctx: Context<'_>) -> Outcome {
    let (options, paths) = TrainOptions::leading(arguments)?;
    let (data, model_path) = match paths {
        [data] => {
            let mut name = Path::new(data).file_name().unwrap_or_default().to_owned();
            name.push(".model");
            (data, name)
        }
        [data, model] => (data, model.clone()),
        _ => return Err(Failure::usage("give training_set_file and, if you like, model_file")),
    };
    let (data, _reservation) = read_data(Path::new(data), index_base(options.is_precomputed()), ctx)?;
    let problem = Problem::new(data.rows.view(), &data.targets, &options, ctx)?;
    for warning in problem.warnings()? {
        streams.warn(warning)?;
    }
    let Some(n_folds) = options.n_folds else {
        let TrainedModel { model, report, warnings, .. } = train(&problem, ctx)?;
        for warning in warnings {
            streams.warn(warning)?;
        }
        if !options.is_quiet {
            streams.print(report)?;
        }
        let LibsvmModel { svm_type, expansion, labels, class_counts, probability, .. } = &model;
        let (path, view) = (Path::new(&model_path), expansion.view());
        return Ok(write(path, *svm_type, &view, labels, class_counts, probability, ctx)?);
    };
    let (predictions, warnings) = cross_validate(&problem, n_folds, ctx)?;
    for warning in warnings {
        streams.warn(warning)?;
    }
    streams.print(evaluate(&data.targets, &predictions).cross_validation_lines(options.is_regression()))
}
