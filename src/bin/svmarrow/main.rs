//! LIBSVM's programs without Python, and the compression and conversion of their models.
//!
//! ```text
//! svmarrow svm-train data model      svmarrow svm-predict data model output      svmarrow svm-scale data
//! svmarrow compress model small -n 100                svmarrow convert model model.safetensors
//! ```
//!
//! LIBSVM's programs are those of the library's module `libsvm`, which the commands of the Python package call too. A process
//! starts in milliseconds.
//! Installed by `cargo install svmarrow --features cli`.

mod models;

use std::ffi::OsString;
use std::io::{BufWriter, Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;
use svmarrow::context::Context;
use svmarrow::libsvm::{Failure, PROGRAMS, Program, Streams};

/// Number of bytes of output that are written together.
const OUTPUT_BYTES: usize = 1 << 16;

/// The programs that LIBSVM does not have.
const MODEL_PROGRAMS: [Program; 2] = [
    Program { name: "compress", usage: models::COMPRESS_USAGE, run: models::compress },
    Program { name: "convert", usage: models::CONVERT_USAGE, run: models::convert },
];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    // A link with the name of a program is that program, as LIBSVM's tools expect.
    let called = arguments.next().unwrap_or_default();
    let called = Path::new(&called).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let called = called.strip_suffix(".exe").unwrap_or(&called);
    let program_of = |name: &str| PROGRAMS.iter().chain(&MODEL_PROGRAMS).find(|program| program.name == name);
    let mut name = OsString::from(called);
    let mut program = program_of(called);
    if program.is_none() {
        name = arguments.next().unwrap_or_default();
        program = program_of(&name.to_string_lossy());
    }
    let (mut output, mut messages) = (BufWriter::with_capacity(OUTPUT_BYTES, stdout()), stderr());
    let Some(program) = program else {
        let names: Vec<&str> = PROGRAMS.iter().chain(&MODEL_PROGRAMS).map(|program| program.name).collect();
        let usage = format!("Usage: svmarrow PROGRAM [options]\nPrograms: {}\n", names.join(", "));
        let is_help = name == "--help" || name == "-h";
        return match output.write_all(usage.as_bytes()).and_then(|()| output.flush()) {
            Ok(()) => ExitCode::from(u8::from(!is_help)),
            Err(error) => {
                let _ = writeln!(messages, "svmarrow: {}", Failure::Output(error));
                ExitCode::FAILURE
            }
        };
    };
    let arguments: Vec<OsString> = arguments.collect();
    let mut streams = Streams { output: &mut output, messages: &mut messages };
    ExitCode::from(program.execute(&arguments, &mut streams, Context::default()))
}
