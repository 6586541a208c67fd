//! Errors in the contents of a file before their path and line are known.

use std::path::Path;

use crate::error::Error;

/// A fault in the contents of a file, or another error.
#[derive(Debug)]
pub(crate) enum ContentError {
    /// A fault in the contents, as a sentence.
    Malformed(String),
    /// An error of memory, the system or the monitor.
    Other(Error),
}

impl ContentError {
    /// Returns the error with the path and the line, 0 for none.
    pub(crate) fn at(self, path: &Path, line: usize) -> Error {
        match self {
            Self::Malformed(message) => Error::Format { path: path.into(), line, message },
            Self::Other(error) => error,
        }
    }

    /// Names the part of the file that has the fault.
    pub(crate) fn within(self, part: impl std::fmt::Display) -> Self {
        match self {
            Self::Malformed(message) => Self::Malformed(format!("{part}: {message}")),
            other @ Self::Other(_) => other,
        }
    }
}

impl From<String> for ContentError {
    fn from(message: String) -> Self {
        Self::Malformed(message)
    }
}

impl From<&str> for ContentError {
    fn from(message: &str) -> Self {
        Self::Malformed(message.to_owned())
    }
}

impl From<Error> for ContentError {
    fn from(error: Error) -> Self {
        match error {
            Error::Memory { .. } | Error::Stopped(_) | Error::Io { .. } => Self::Other(error),
            error => Self::Malformed(error.to_string()),
        }
    }
}
