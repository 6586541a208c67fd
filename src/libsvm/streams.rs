//! The streams of a program: standard output and standard error, or what the caller gives for them.

use super::failure::{Failure, Outcome};
use std::fmt::Display;
use std::io::Write;

/// The output of a program, and its warnings and errors.
pub struct Streams<'a> {
    /// Results and reports.
    pub output: &'a mut (dyn Write + Send),
    /// Warnings and errors.
    pub messages: &'a mut (dyn Write + Send),
}

impl Streams<'_> {
    /// Prints a line.
    pub(super) fn print(&mut self, line: impl Display) -> Outcome {
        writeln!(self.output, "{line}").map_err(Failure::Output)
    }

    /// Prints a warning after the output before it.
    pub(super) fn warn(&mut self, text: impl Display) -> Outcome {
        self.flush()?;
        self.message(format_args!("WARNING: {text}"));
        Ok(())
    }

    /// Prints a line to the messages. A failure of this stream cannot be reported anywhere.
    pub(super) fn message(&mut self, line: impl Display) {
        let _ = writeln!(self.messages, "{line}");
        let _ = self.messages.flush();
    }

    /// Writes what is buffered.
    pub(super) fn flush(&mut self) -> Outcome {
        self.output.flush().map_err(Failure::Output)
    }
}
