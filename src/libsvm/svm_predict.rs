//! `svm-predict`: the predictions of a model for a data file.

use super::evaluation::evaluate;
use super::failure::{Failure, Outcome};
use super::numbers::general;
use super::options::PredictOptions;
use super::prediction::{Answers, Decoder, outputs};
use super::problem::{index_base, read_data};
use super::streams::Streams;
use crate::context::Context;
use crate::io::atomic;
use crate::io::libsvm_model::read;
use crate::io::svmlight::IndexBase;
use crate::kernel::Kernel;
use std::ffi::OsString;
use std::path::Path;

pub(super) fn run(arguments: &[OsString], streams: &mut Streams<'_>, ctx: Context<'_>) -> Outcome {
    let (options, paths) = PredictOptions::leading(arguments)?;
    let [data, model, output] = paths else {
        return Err(Failure::usage("give test_file, model_file and output_file"));
    };
    let model = read(Path::new(model), None, IndexBase::One, ctx)?;
    let decoder = Decoder::from(&model);
    decoder.check(options.probability)?;
    let is_precomputed = model.expansion.kernel == Kernel::Precomputed;
    let (data, _reservation) = read_data(Path::new(data), index_base(is_precomputed), ctx)?;
    let all: Vec<usize> = (0..data.targets.len()).collect();
    let outputs = outputs(&model.expansion, data.rows.view(), &all, ctx)?;
    let Answers { predictions, probabilities, remark } =
        decoder.answers(outputs.view(), options.probability, ctx)?;
    atomic::save(Path::new(output), ctx, |out| {
        let Some(probabilities) = &probabilities else {
            return predictions.iter().try_for_each(|value| writeln!(out, "{}", general(*value, 17)));
        };
        let labels: Vec<String> = model.labels.iter().map(ToString::to_string).collect();
        writeln!(out, "labels {}", labels.join(" "))?;
        predictions.iter().zip(probabilities.rows()).try_for_each(|(label, row)| {
            let row: Vec<String> = row.iter().map(|probability| general(*probability, 6)).collect();
            writeln!(out, "{} {}", general(*label, 6), row.join(" "))
        })
    })?;
    if options.is_quiet {
        return Ok(());
    }
    if let Some(remark) = remark {
        streams.print(remark)?;
    }
    streams.print(evaluate(&data.targets, &predictions).prediction_lines(decoder.is_regression()))
}
