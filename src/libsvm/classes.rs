//! Classes in the order of LIBSVM's models, and their pairs.
//!
//! The order decides the signs of decision values, ties of votes and the lines of a model file, so it is LIBSVM's
//! (`svm_group_classes`): that of the first samples, but 1 before -1. Cost: a look-up in a hash table for each sample.

use super::failure::{Failure, Outcome};
use std::collections::HashMap;

/// Labels of the model and the class of each sample.
pub(super) struct Classes {
    /// Labels in the order of their first sample, but 1 before -1.
    pub(super) labels: Vec<i32>,
    /// The index of the label of each sample.
    pub(super) of_samples: Vec<usize>,
}

impl Classes {
    /// Groups targets by their integer part, as LIBSVM does.
    pub(super) fn new(y: &[f64]) -> Outcome<Self> {
        let mut labels: Vec<i32> = Vec::new();
        let mut of_samples = Vec::with_capacity(y.len());
        let mut index_of = HashMap::new();
        for &target in y {
            let label = target.trunc();
            if !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&label) {
                return Err(Failure::input(format!(
                    "the label {target} is not allowed: it must be an integer of 32 bits"
                )));
            }
            let label = label as i32;
            of_samples.push(*index_of.entry(label).or_insert_with(|| {
                labels.push(label);
                labels.len() - 1
            }));
        }
        if labels == [-1, 1] {
            labels.reverse();
            for class in &mut of_samples {
                *class = 1 - *class;
            }
        }
        Ok(Self { labels, of_samples })
    }

    /// Returns the number of samples of each class.
    pub(super) fn counts(&self) -> Vec<usize> {
        counts(&self.of_samples, self.labels.len())
    }
}

/// Returns the number of samples of each of k classes.
pub(super) fn counts(of_samples: &[usize], k: usize) -> Vec<usize> {
    let mut counts = vec![0; k];
    for &class in of_samples {
        counts[class] += 1;
    }
    counts
}

/// Returns the pairs a < b of k classes, in the order of LIBSVM's machines.
pub fn pairs(k: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..k).flat_map(move |a| (a + 1..k).map(move |b| (a, b)))
}

#[cfg(test)]
mod tests {
    use super::Classes;

    #[test]
    fn classes_are_in_the_order_of_libsvm() {
        for (y, labels, of_samples) in [
            ([-1.0, 1.0, -1.0], vec![1, -1], vec![1, 0, 1]),
            ([3.0, 1.0, 3.0], vec![3, 1], vec![0, 1, 0]),
            ([1.5, 1.0, -1.0], vec![1, -1], vec![0, 0, 1]),
        ] {
            let classes = Classes::new(&y).unwrap();
            assert_eq!((classes.labels, classes.of_samples), (labels, of_samples));
        }
        assert!(Classes::new(&[3e9]).is_err());
    }
}
