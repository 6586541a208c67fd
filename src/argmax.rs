//! The index of the largest value, for decoding scores into classes, pivots and greedy choices.

/// Returns the first index of the largest value, or 0 if there are no values. NaN is never the largest, unless all values are
/// NaN.
pub(crate) fn argmax(values: impl IntoIterator<Item = f64>) -> usize {
    let mut values = values.into_iter().enumerate();
    let first = values.next().unwrap_or((0, f64::NAN));
    values.fold(first, |best, new| if new.1 > best.1 { new } else { best }).0
}

#[cfg(test)]
mod tests {
    use super::argmax;

    #[test]
    fn the_first_of_equal_values_is_returned_and_nan_is_ignored() {
        assert_eq!(argmax([1.0, 3.0, f64::NAN, 3.0]), 1);
        assert_eq!(argmax([f64::NAN, 1.0]), 0);
        assert_eq!(argmax([-0.0, 0.0]), 0);
        assert_eq!(argmax([]), 0);
    }
}
