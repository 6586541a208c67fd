//! Probabilities from the outputs of machines: sigmoids, the coupling of pairs, the spread of regression errors.
//!
//! The outputs are those of samples that the machines have not seen, such as those of a cross-validation; drawing the folds and
//! training the machines is the caller's.
//!
//! | file | holds |
//! |---|---|
//! | `sigmoid` | the probability of a class from one output (Platt 2000) |
//! | `coupling` | one distribution from the probabilities of all pairs (Wu, Lin and Weng 2004), as LIBSVM computes it |
//!
//! ```
//! use ndarray::arr2;
//! use svmarrow::context::Context;
//! use svmarrow::probability::{Sigmoid, couple_pairs, fit_sigmoid};
//!
//! let outputs = [2.0, 1.0, 0.5, -0.5, -1.0, -2.0];
//! let is_first = [true, true, false, true, false, false];
//! let fitted = fit_sigmoid(&outputs, &is_first, &[1.0; 6], 0.0, Context::default())?;
//! assert!(fitted.probability(2.0) > 0.7);
//!
//! let sigmoids = [Sigmoid { a: -1.0, b: 0.0 }; 3];
//! let shares = couple_pairs(arr2(&[[2.0, 2.0, 0.0]]).view(), &sigmoids, 3, Context::default())?;
//! assert!(shares[[0, 0]] > 0.6 && (shares.sum() - 1.0).abs() < 1e-12);
//! # Ok::<(), svmarrow::Error>(())
//! ```

mod coupling;
mod sigmoid;

pub use coupling::{MIN_PAIR_PROBABILITY, couple_pairs};
pub use sigmoid::{Sigmoid, fit_sigmoid};

/// Returns the scale of a Laplace distribution of errors: the mean of their magnitudes, without those above five standard
/// deviations of the distribution that all of them give (Lin and Weng 2004). 0 without errors.
pub fn laplace_scale(errors: &[f64]) -> f64 {
    const MAX_DEVIATIONS: f64 = 5.0;
    let mean = errors.iter().map(|e| e.abs()).sum::<f64>() / errors.len().max(1) as f64;
    let limit = MAX_DEVIATIONS * (2.0 * mean * mean).sqrt();
    let (sum, count) = errors
        .iter()
        .map(|e| e.abs())
        .filter(|e| *e <= limit)
        .fold((0.0, 0_usize), |(sum, count), e| (sum + e, count + 1));
    sum / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::laplace_scale;

    #[test]
    fn far_errors_do_not_count() {
        assert_eq!(laplace_scale(&[1.0, -3.0]), 2.0);
        let mut errors = vec![1.0; 99];
        errors.push(-1000.0);
        assert_eq!(laplace_scale(&errors), 1.0);
        assert_eq!(laplace_scale(&[]), 0.0);
        assert_eq!(laplace_scale(&[0.0, 0.0]), 0.0);
    }
}
