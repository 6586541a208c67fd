//! Numbers beyond the range of doubles.

/// Number of explicit bits of a mantissa.
const MANTISSA_BITS: u32 = 52;
/// The exponent of the smallest normal number.
const MIN_NORMAL: i64 = -1022;
/// Exponents below give zero.
const MIN_EXPONENT: i64 = -1100;

/// Zero, or a positive number m 2^e with 1 <= m < 2.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaled {
    mantissa: f64,
    exponent: i64,
}

impl Scaled {
    pub(super) const ZERO: Self = Self { mantissa: 0.0, exponent: 0 };

    /// Returns value 2^exponent; the value must be finite and not negative.
    pub(super) fn new(value: f64, exponent: i64) -> Self {
        debug_assert!(value.is_finite() && value >= 0.0);
        if value == 0.0 {
            return Self::ZERO;
        }
        if value < f64::MIN_POSITIVE {
            return Self::new(value * power(100), exponent - 100);
        }
        let bits = value.to_bits();
        let shift = (bits >> MANTISSA_BITS) as i64 - 1023;
        let mantissa = f64::from_bits(bits & ((1 << MANTISSA_BITS) - 1) | 1023 << MANTISSA_BITS);
        Self { mantissa, exponent: exponent + shift }
    }

    pub(super) fn is_zero(self) -> bool {
        self.mantissa == 0.0
    }

    /// Returns self / sqrt(x y), at most 1; zero if x or y is zero. The square root of a square is exact, so the value
    /// is exactly 1 if the three numbers are equal.
    pub(super) fn normalized(self, x: Self, y: Self) -> f64 {
        if self.is_zero() || x.is_zero() || y.is_zero() {
            return 0.0;
        }
        let twice = 2 * self.exponent - x.exponent - y.exponent;
        let square = x.mantissa * y.mantissa;
        let root = if twice % 2 == 0 { square } else { 0.5 * square }.sqrt();
        let exponent = twice.div_euclid(2);
        if exponent < MIN_EXPONENT {
            return 0.0;
        }
        let value = self.mantissa / root;
        // Two factors, so that a result below the normal numbers is rounded once.
        let first = exponent.clamp(MIN_NORMAL / 2, 1);
        (value * power(first) * power((exponent - first).clamp(MIN_NORMAL, 1))).min(1.0)
    }
}

/// Returns 2^n for a normal result.
fn power(n: i64) -> f64 {
    f64::from_bits(((n + 1023) as u64) << MANTISSA_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_give_one() {
        for (value, exponent) in [(1.0, 0), (3.7, 5001), (1e-310, -3), (0.1, -20_001), (f64::MAX, 7)] {
            let number = Scaled::new(value, exponent);
            assert_eq!(number.normalized(number, number), 1.0);
        }
    }

    #[test]
    fn quotients_are_those_of_doubles() {
        for (value, x, y) in [(0.3, 0.7, 0.9), (1e-200, 3.0, 1e-10), (2.0, 4.0, 8.0), (1e-5, 0.1, 0.02)] {
            let expected: f64 = value / f64::sqrt(x * y);
            let [value, x, y] = [value, x, y].map(|number| Scaled::new(number, 0));
            assert!((value.normalized(x, y) / expected - 1.0).abs() < 4.0 * f64::EPSILON);
        }
        let [value, x, y] = [(1.5, 9000), (1.0, 10_001), (1.0, 10_000)].map(|(m, e)| Scaled::new(m, e));
        assert!((value.normalized(x, y) / (1.5 * f64::exp2(-1000.5)) - 1.0).abs() < 1e-15);
        assert_eq!(Scaled::new(1.0, -2000).normalized(x, y), 0.0);
        assert_eq!(Scaled::new(1.0, 0).normalized(Scaled::ZERO, y), 0.0);
        let unit = Scaled::new(1.0, 0);
        assert_eq!(Scaled::new(1.0, -1074).normalized(unit, unit), 5e-324);
    }
}
