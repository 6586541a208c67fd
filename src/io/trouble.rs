//! What can go wrong inside a file, before it is known where.

use std::path::Path;

use crate::error::Error;

/// A sentence about the file, or an error that is not about its contents.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// What is wrong in the file.
    Broken(String),
    /// Memory, the system, the monitor.
    Other(Error),
}

impl Trouble {
    /// The error, at a line of a file; 0 for none.
    pub(crate) fn at(self, path: &Path, line: usize) -> Error {
        match self {
            Self::Broken(message) => Error::Format { path: path.into(), line, message },
            Self::Other(error) => error,
        }
    }

    /// The same trouble, in a part of the file that has a name.
    pub(crate) fn within(self, part: impl std::fmt::Display) -> Self {
        match self {
            Self::Broken(message) => Self::Broken(format!("{part}: {message}")),
            other @ Self::Other(_) => other,
        }
    }
}

impl From<String> for Trouble {
    fn from(message: String) -> Self {
        Self::Broken(message)
    }
}

impl From<&str> for Trouble {
    fn from(message: &str) -> Self {
        Self::Broken(message.to_owned())
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::Memory { .. } | Error::Stopped(_) | Error::Io { .. } => Self::Other(error),
            error => Self::Broken(error.to_string()),
        }
    }
}
