//! The reasons for which a program, or a function that follows its rules, ends without a result.

use crate::error::Error;
use std::fmt::{Display, Formatter};
use std::io;

/// A result of a program or of a part of it.
pub type Outcome<T = ()> = Result<T, Failure>;

/// The reason for exit code 1.
#[derive(Debug)]
pub enum Failure {
    /// The arguments are wrong; a program prints its usage too.
    Usage(String),
    /// The input is wrong.
    Input(String),
    /// The output stream refuses the output.
    Output(io::Error),
    /// An error of the library.
    Library(Error),
}

impl Failure {
    /// Returns the failure of wrong arguments.
    pub fn usage(text: impl Display) -> Self {
        Self::Usage(text.to_string())
    }

    /// Returns the failure of wrong input.
    pub fn input(text: impl Display) -> Self {
        Self::Input(text.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let text = match self {
            Self::Usage(text) | Self::Input(text) => text.clone(),
            Self::Output(error) => error.to_string(),
            Self::Library(error) => error.to_string(),
        };
        // The number of a system error is of no use to a reader.
        let text = text.split(" (os error").next().unwrap_or_default();
        let mut words = text.split_whitespace();
        f.write_str(words.next().unwrap_or_default())?;
        words.try_for_each(|word| write!(f, " {word}"))
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::Failure;
    use crate::error::Error;

    #[test]
    fn a_system_error_is_its_reason() {
        let source = std::io::Error::from_raw_os_error(2);
        let text = Failure::from(Error::Io { path: "a".into(), source }).to_string();
        assert!(text.starts_with("a: ") && !text.contains("os error"), "{text}");
        assert_eq!(Failure::usage("a\n  b").to_string(), "a b");
    }
}
