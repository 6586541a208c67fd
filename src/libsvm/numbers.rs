//! Numbers as C prints them.

/// Returns a number as C's `%.{digits}g` prints it.
pub(super) fn general(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return not_finite(value);
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

/// Returns a number as C's `%f` prints it.
pub(super) fn fixed(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { not_finite(value) }
}

fn not_finite(value: f64) -> String {
    let sign = if value.is_sign_negative() && !value.is_nan() { "-" } else { "" };
    format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" })
}

#[cfg(test)]
mod tests {
    use super::{fixed, general};

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
        for (value, text) in [(0.5, "0.500000"), (-1e7, "-10000000.000000"), (f64::NAN, "nan")] {
            assert_eq!(fixed(value), text);
        }
    }
}
