//! LIBSVM's programs without Python, and the compression and conversion of their models.
//!
//! ```text
//! svmarrow svm-train data model      svmarrow svm-predict data model output      svmarrow svm-scale data
//! svmarrow compress model small -n 100                svmarrow convert model model.safetensors
//! ```
//!
//! Options, output, files and exit codes are those of `svmarrow svm-train` and its siblings in the Python package, whose tests
//! run on both. A process starts in milliseconds.
//! Installed by `cargo install svmarrow --features cli`.

mod arguments;
mod evaluation;
mod folds;
mod models;
mod options;
mod prediction;
mod problem;
mod scaling;
mod training;

use arguments::Failure;
use std::io::Write;
use std::process::ExitCode;

/// The programs with their usage.
const USAGE: [(&str, &str); 5] = [
    ("svm-train", options::USAGE),
    ("svm-predict", prediction::USAGE),
    ("svm-scale", scaling::USAGE),
    ("compress", models::COMPRESS_USAGE),
    ("convert", models::CONVERT_USAGE),
];

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().collect();
    // A link with the name of a program is that program, as LIBSVM's tools expect.
    let called = arguments.first().and_then(|path| path.rsplit(['/', '\\']).next()).unwrap_or("");
    let called = called.strip_suffix(".exe").unwrap_or(called);
    let first = usize::from(!USAGE.iter().any(|(name, _)| *name == called));
    let name = if first == 0 { called.to_owned() } else { arguments.get(1).cloned().unwrap_or_default() };
    let rest = arguments.split_off((first + 1).min(arguments.len()));
    let Some((_, usage)) = USAGE.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = USAGE.iter().map(|(name, _)| *name).collect();
        print!("Usage: svmarrow PROGRAM [options]\nPrograms: {}\n", names.join(", "));
        return ExitCode::from(u8::from(!matches!(name.as_str(), "--help" | "-h")));
    };
    if rest.is_empty() || rest[0] == "--help" {
        print!("{usage}");
        return ExitCode::from(u8::from(rest.is_empty()));
    }
    let ended = match name.as_str() {
        "svm-train" => training::run(&rest),
        "svm-predict" => prediction::run(&rest),
        "svm-scale" => scaling::run(&rest),
        "compress" => models::compress(&rest),
        _ => models::convert(&rest),
    };
    let ended = ended.and_then(|()| std::io::stdout().flush().map_err(Failure::output));
    let Err(failure) = ended else { return ExitCode::SUCCESS };
    if !failure.text.is_empty() {
        eprintln!("{name}: {}", failure.text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if failure.is_usage {
        eprint!("{usage}");
    }
    ExitCode::FAILURE
}
