//! Sums of Gaussians in one to three columns by a fast Gauss transform, without all pairs.
//!
//! ```text
//! f(x) = sum_j weight_j exp(-gamma |x - y_j|^2)   for n points x and m points y
//! ```
//!
//! A Gaussian is smooth: in a box with a side of at most 1.5 / sqrt(gamma) it is a polynomial of few terms to ten digits, and
//! a product of one Gaussian per axis. The weights of the points y of a box therefore enter f through their moments, sums of
//! products of Chebyshev polynomials. One small matrix per axis, which depends on the distance of two boxes alone, turns
//! these into the coefficients of f in every box, and f(x) is the value of the polynomial of x's box. (The idea is that of
//! the fast Gauss transform, Greengard and Strain, 1991; the polynomials interpolate in Chebyshev nodes, as in Fong and
//! Darve, The black-box fast multipole method, 2009.)
//!
//! Derivatives of e^(-t^2) are at most 1.09 sqrt(2^P P!) (Cramer), so interpolation by P polynomials in a box of half side
//! h / sqrt(gamma) has an error of at most 2.2 (h / sqrt 2)^P / sqrt(P!) of the weights nearby: [`boxes::KINDS`]. If 5e-11 of
//! all weights is more than 1e-6, the error of single precision in sums of a few ordinary weights, boxes are so small that
//! the error is that of double precision.
//!
//! Cost: P^d multiply-adds for each x and each y, and B^(d + 1) for B coefficients along an axis, which is negligible
//! compared with n m for many points and few boxes; `BoundingBox::plan` decides. Results do not depend on the number of
//! threads.
//!
//! | file | holds |
//! |---|---|
//! | `bounding_box` | the region in which samples lie, in units of the kernel's width |
//! | `boxes` | a division of the region into boxes, its cost, and the polynomials of a sum |
//! | `targets` | sums at fixed samples for weights that change, as a solver needs them |
//! | `transform` | the outputs of a model for blocks of samples |

mod bounding_box;
mod boxes;
mod targets;
mod transform;

pub(crate) use targets::{GaussSum, GaussTargets};
pub(crate) use transform::FastGaussTransform;

use crate::kernel::Kernel;
use crate::simd::chebyshev::MAX_AXES;

/// Context reported when an allocation of this module fails.
const SUM: &str = "a sum of Gaussians";

/// Returns whether sums of the kernel's values may be computed by this module.
pub(crate) fn is_applicable(kernel: &Kernel, n_features: usize) -> bool {
    matches!(kernel, Kernel::Rbf { .. }) && (1..=MAX_AXES).contains(&n_features)
}

#[cfg(test)]
mod tests {
    use crate::random::Random;

    /// Returns n rows in a box of such sides, the first two at its corners.
    pub(super) fn rows(n: usize, sides: &[f64], random: &mut Random) -> Vec<f64> {
        let mut value = |i: usize, side: f64| match i {
            0 => 0.0,
            1 => side,
            _ => side * random.uniform(),
        };
        (0..n).flat_map(|i| sides.iter().map(|&side| value(i, side) - 0.3).collect::<Vec<_>>()).collect()
    }
}
