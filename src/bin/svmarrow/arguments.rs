//! Options of a command line, errors, and numbers as C prints them.

use std::fmt::Display;
use std::io;
use svmarrow::Error;

/// Why a program ends with exit code 1.
pub(crate) struct Failure {
    pub(crate) text: String,
    /// True if the usage is printed too.
    pub(crate) is_usage: bool,
}

impl Failure {
    /// Wrong arguments.
    pub(crate) fn usage(text: impl Display) -> Self {
        Self { text: text.to_string(), is_usage: true }
    }

    /// Bad input.
    pub(crate) fn input(text: impl Display) -> Self {
        Self { text: text.to_string(), is_usage: false }
    }

    /// Output that cannot be written. A reader that has ended is no news.
    pub(crate) fn output(error: io::Error) -> Self {
        let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
        Self::input(if is_closed { String::new() } else { error.to_string() })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::input(error)
    }
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Processes the leading options with `handle(option, following)`, which returns the number of values taken; returns the other
/// arguments.
pub(crate) fn leading(
    arguments: &[String],
    mut handle: impl FnMut(&str, &[String]) -> Result<usize, String>,
) -> Outcome<&[String]> {
    let mut position = 0;
    while position < arguments.len() && arguments[position].starts_with('-') {
        let (option, following) = (&arguments[position], &arguments[position + 1..]);
        position += 1 + handle(option, following).map_err(Failure::usage)?;
    }
    Ok(&arguments[position.min(arguments.len())..])
}

/// Returns the value of an option.
pub(crate) fn value<'a>(option: &str, following: &'a [String]) -> Result<&'a str, String> {
    following.first().map(String::as_str).ok_or_else(|| format!("{option} needs a value"))
}

/// Converts the value of an option to an integer.
pub(crate) fn integer(option: &str, value: &str) -> Result<i64, String> {
    value.trim().parse().map_err(|_| format!("{option} {value}: the value must be an integer"))
}

/// Converts the value of an option to a finite number.
pub(crate) fn number(option: &str, value: &str) -> Result<f64, String> {
    let number = value.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("{option} {value}: the value must be a finite number"))
}

/// Converts the value of a switch.
pub(crate) fn flag(option: &str, value: &str) -> Result<bool, String> {
    match integer(option, value)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(format!("{option} {other}: the value must be 0 or 1")),
    }
}

/// Returns a number as C's `%.{digits}g` prints it.
pub(crate) fn general(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() && !value.is_nan() { "-" } else { "" };
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is an integer");
    let trimmed = |text: &str| {
        let end = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
        end.to_owned()
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    trimmed(&format!("{value:.*}", (digits as i32 - 1 - exponent) as usize))
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_are_those_of_c() {
        for (value, digits, text) in [
            (0.1, 17, "0.10000000000000001"),
            (1.0, 17, "1"),
            (-2.5, 6, "-2.5"),
            (1e-5, 6, "1e-05"),
            (123456.0, 6, "123456"),
            (1234567.0, 6, "1.23457e+06"),
            (0.00012345678, 6, "0.000123457"),
            (0.0, 6, "0"),
            (-0.0, 6, "-0"),
            (999999.5, 6, "1e+06"),
            (f64::NAN, 6, "nan"),
            (f64::NEG_INFINITY, 6, "-inf"),
        ] {
            assert_eq!(general(value, digits), text);
        }
    }
}
