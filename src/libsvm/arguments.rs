//! The option grammar: leading options, each with the values that follow it.
//!
//! Arguments are the system's strings: names of files need not be valid UTF-8.

use super::failure::{Failure, Outcome};
use std::ffi::{OsStr, OsString};

/// Processes the leading options and returns the other arguments. `handle(option, following)` processes one option and returns
/// the number of values that it takes.
///
/// # Errors
/// [`Failure::Usage`] with the text of `handle`.
pub fn leading(
    arguments: &[OsString],
    mut handle: impl FnMut(&str, &[OsString]) -> Result<usize, String>,
) -> Outcome<&[OsString]> {
    let mut position = 0;
    while position < arguments.len() && arguments[position].as_encoded_bytes().starts_with(b"-") {
        let (option, following) = (&arguments[position].to_string_lossy(), &arguments[position + 1..]);
        position += 1 + handle(option, following).map_err(Failure::Usage)?;
    }
    Ok(&arguments[position.min(arguments.len())..])
}

/// Processes options without other arguments.
pub(super) fn only_options(
    program: &str,
    words: &[OsString],
    handle: impl FnMut(&str, &[OsString]) -> Result<usize, String>,
) -> Outcome {
    match leading(words, handle)? {
        [] => Ok(()),
        [word, ..] => {
            let word = word.to_string_lossy();
            Err(Failure::Usage(format!("{word} is no option of {program}: an option begins with '-'")))
        }
    }
}

/// Returns the value of an option.
///
/// # Errors
/// The text of the error if it is missing.
pub fn value<'a>(option: &str, following: &'a [OsString]) -> Result<&'a OsStr, String> {
    following.first().map(OsString::as_os_str).ok_or_else(|| format!("{option} needs a value"))
}

/// Converts the value of an option to an integer.
///
/// # Errors
/// The text of the error.
pub fn integer(option: &str, value: &OsStr) -> Result<i64, String> {
    let value = value.to_string_lossy();
    value.trim().parse().map_err(|_| format!("{option} {value}: the value must be an integer"))
}

/// Converts the value of an option to a finite number.
pub(super) fn number(option: &str, value: &OsStr) -> Result<f64, String> {
    let value = value.to_string_lossy();
    let number = value.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("{option} {value}: the value must be a finite number"))
}

/// Converts the value of a switch.
pub(super) fn flag(option: &str, value: &OsStr) -> Result<bool, String> {
    match integer(option, value)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(format!("{option} {other}: the value must be 0 or 1")),
    }
}
