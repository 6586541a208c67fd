//! The place of the largest value: what decodes scores into a class, and what pivots and greedy choices ask for.

/// The first place of the largest value, 0 where there are none. A NaN is larger than nothing, and nothing is larger.
pub(crate) fn argmax(values: impl IntoIterator<Item = f64>) -> usize {
    let mut values = values.into_iter().enumerate();
    let first = values.next().unwrap_or((0, f64::NAN));
    values.fold(first, |best, new| if new.1 > best.1 { new } else { best }).0
}

#[cfg(test)]
mod tests {
    use super::argmax;

    #[test]
    fn the_first_of_equals_wins_and_nan_does_not() {
        assert_eq!(argmax([1.0, 3.0, f64::NAN, 3.0]), 1);
        assert_eq!(argmax([f64::NAN, 1.0]), 0);
        assert_eq!(argmax([-0.0, 0.0]), 0);
        assert_eq!(argmax([]), 0);
    }
}
