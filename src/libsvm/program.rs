//! The programs, their exit codes and error messages.
//!
//! An error is one line that begins with the name of the program; wrong arguments are followed by the usage. The caller owns the
//! streams and the process: [`Program::execute`] returns a code for every failure, also one of the output stream.

use super::failure::{Failure, Outcome};
use super::options::{PREDICT_USAGE, TRAIN_USAGE};
use super::streams::Streams;
use super::{svm_predict, svm_scale, svm_train};
use crate::context::{Context, Interruption};
use crate::error::Error;
use std::ffi::OsString;
use std::io::ErrorKind;

/// The exit code that shells report for a program that Ctrl-C ended: 128 + SIGINT.
const INTERRUPTED: u8 = 130;

/// A program that can be run with any streams and contexts.
pub struct Program {
    /// The name by which it is called.
    pub name: &'static str,
    /// The text that it prints without arguments, for `--help` and after wrong arguments.
    pub usage: &'static str,
    /// The work.
    pub run: fn(&[OsString], &mut Streams<'_>, Context<'_>) -> Outcome,
}

/// LIBSVM's programs.
pub const PROGRAMS: [Program; 3] = [
    Program { name: "svm-train", usage: TRAIN_USAGE, run: svm_train::run },
    Program { name: "svm-predict", usage: PREDICT_USAGE, run: svm_predict::run },
    Program { name: "svm-scale", usage: svm_scale::USAGE, run: svm_scale::run },
];

impl Program {
    /// Runs the program and returns its exit code: 0 done, 1 bad input or wrong usage, 130 interrupted by the monitor of the
    /// context. Errors are one line of the messages; a reader of the output that has ended is no error to report.
    pub fn execute(&self, arguments: &[OsString], streams: &mut Streams<'_>, ctx: Context<'_>) -> u8 {
        let is_help = arguments.first().is_none_or(|argument| argument == "--help");
        let done = if is_help {
            streams.output.write_all(self.usage.as_bytes()).map_err(Failure::Output)
        } else {
            (self.run)(arguments, streams, ctx)
        };
        let Err(failure) = done.and_then(|()| streams.flush()) else {
            return u8::from(arguments.is_empty());
        };
        // What a failed program has reported goes out before its error.
        let _ = streams.output.flush();
        match &failure {
            Failure::Library(Error::Stopped(Interruption::Interrupted)) => {
                streams.message(format_args!("{}: interrupted; the output is incomplete", self.name));
                return INTERRUPTED;
            }
            Failure::Output(error) if error.kind() == ErrorKind::BrokenPipe => {}
            failure => streams.message(format_args!("{}: {failure}", self.name)),
        }
        if matches!(failure, Failure::Usage(_)) {
            streams.message(self.usage.trim_end());
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::PROGRAMS;
    use crate::context::{Context, Interruption, Monitor, Progress};
    use crate::libsvm::Streams;
    use std::ffi::OsString;
    use std::io::{Error, ErrorKind, Write};
    use std::ops::ControlFlow;

    fn execute(
        name: &str,
        arguments: &[&str],
        output: &mut (dyn Write + Send),
        ctx: Context<'_>,
    ) -> (u8, String) {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let mut messages = Vec::new();
        let program = PROGRAMS.iter().find(|program| program.name == name).unwrap();
        let code = program.execute(&arguments, &mut Streams { output, messages: &mut messages }, ctx);
        (code, String::from_utf8(messages).unwrap())
    }

    #[test]
    fn errors_are_a_line_and_an_exit_code() {
        let ctx = Context::default();
        let mut output = Vec::new();
        assert_eq!(execute("svm-train", &["--help"], &mut output, ctx), (0, String::new()));
        assert_eq!(execute("svm-train", &[], &mut output, ctx), (1, String::new()));
        let (code, messages) = execute("svm-train", &["-c"], &mut output, ctx);
        assert_eq!(code, 1);
        assert!(messages.starts_with("svm-train: -c needs a value\nUsage: svm-train "), "{messages}");
        let (code, messages) = execute("svm-scale", &["/no/such/file"], &mut output, ctx);
        assert_eq!(code, 1);
        assert!(messages.starts_with("svm-scale: /no/such/file: "), "{messages}");
    }

    #[test]
    fn a_reader_that_has_ended_is_not_reported() {
        struct Closed(ErrorKind);
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(Error::from(self.0))
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let ctx = Context::default();
        let run = |kind| execute("svm-scale", &["--help"], &mut Closed(kind), ctx);
        assert_eq!(run(ErrorKind::BrokenPipe), (1, String::new()));
        assert!(run(ErrorKind::StorageFull).1.starts_with("svm-scale: "));
    }

    #[test]
    fn an_interruption_has_its_own_exit_code() {
        struct Interrupt;
        impl Monitor for Interrupt {
            fn tick(&self, _: &Progress) -> ControlFlow<Interruption> {
                ControlFlow::Break(Interruption::Interrupted)
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let (data, model) = (folder.path().join("data"), folder.path().join("model"));
        std::fs::write(&data, "1 1:1\n-1 1:-1\n".repeat(50_000)).unwrap();
        let ctx = Context::default().with_monitor(&Interrupt);
        let arguments = [data.to_str().unwrap(), model.to_str().unwrap()];
        for (name, count) in [("svm-train", 2), ("svm-scale", 1)] {
            let (code, messages) = execute(name, &arguments[..count], &mut Vec::new(), ctx);
            assert_eq!((code, messages), (130, format!("{name}: interrupted; the output is incomplete\n")));
        }
        assert!(!model.exists());
    }
}
