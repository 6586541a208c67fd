//! The exponential e^x of vectors, to about one unit in the last place on [-87, 88] (f32) and [-708, 709] (f64).
//!
//! x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts (Cody and Waite), e^r = 1 + r + r^2 p(r) with p a
//! polynomial through Chebyshev nodes (relative error 1.0e-8 and 2.3e-19 before rounding), then times 2^n.
//! Arguments outside are clamped: the result underflows to about the smallest normal number, never to zero.

use super::{Real, Vector};

/// Computes e^x.
///
/// # Safety
/// See [`Vector`].
#[inline(always)]
pub(super) unsafe fn exp<V: Vector>(x: V) -> V {
    // SAFETY: the contract is the caller's.
    unsafe {
        let x = x.max(V::splat(V::Elem::EXP_MIN)).min(V::splat(V::Elem::EXP_MAX));
        let n = x.mul(V::splat(V::Elem::LOG2_E)).round();
        let minus_n = V::zero().sub(n);
        let r = minus_n.mul_add(V::splat(V::Elem::LN2_HIGH), x);
        let r = minus_n.mul_add(V::splat(V::Elem::LN2_LOW), r);
        let p = polynomial(V::Elem::EXP_POLYNOMIAL, r);
        let value = p.mul_add(r.mul(r), r).add(V::splat(V::Elem::ONE));
        value.scale_pow2(n)
    }
}

/// Computes 2^t for t <= 0, with p a polynomial for (2^r - 1) / r (relative error 5.1e-9 and 1.1e-19), in half the operations
/// of [`exp`]. Arguments that are products anyway include the factor of the change of base.
///
/// # Safety
/// See [`Vector`].
#[inline(always)]
pub(super) unsafe fn exp2_of_negative<V: Vector>(t: V) -> V {
    // SAFETY: the contract is the caller's.
    unsafe {
        let t = t.max(V::splat(V::Elem::EXP2_MIN));
        if V::ADDS_IN_PLACE {
            let (n, power) = t.nearest_power();
            let r = t.sub(n);
            return polynomial(V::Elem::EXP2_POLYNOMIAL, r).mul_add(r.mul(power), power);
        }
        let n = t.round();
        let r = t.sub(n);
        let p = polynomial(V::Elem::EXP2_POLYNOMIAL, r);
        p.mul_add(r, V::splat(V::Elem::ONE)).scale_pow2(n)
    }
}

/// Evaluates a polynomial; coefficients are given from the lowest power.
///
/// Horner's rule adds each product to a constant. If that costs a copy of the constant, the rule is applied to pairs of
/// coefficients, in powers of r^2: every second product is added to a sum.
#[inline(always)]
pub(super) unsafe fn polynomial<V: Vector>(coefficients: &[V::Elem], r: V) -> V {
    // SAFETY: the contract is the caller's.
    unsafe {
        if V::ADDS_IN_PLACE {
            let square = r.mul(r);
            let mut first = (coefficients.len() - 1) / 2 * 2;
            let mut p = V::splat(coefficients[first]);
            if first + 1 < coefficients.len() {
                p = V::splat(coefficients[first + 1]).mul_add(r, p);
            }
            while first > 0 {
                first -= 2;
                let line = V::splat(coefficients[first + 1]).mul_add(r, V::splat(coefficients[first]));
                p = p.mul_add(square, line);
            }
            return p;
        }
        let mut p = V::splat(coefficients[coefficients.len() - 1]);
        for &c in coefficients[..coefficients.len() - 1].iter().rev() {
            p = p.mul_add(r, V::splat(c));
        }
        p
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Isa, Operation, lanes, run};

    struct Exp<'a, T, const BASE_TWO: bool>(&'a mut [T]);

    impl<T: Real, const BASE_TWO: bool> Operation for Exp<'_, T, BASE_TWO> {
        type Output = ();
        #[inline(always)]
        unsafe fn run<I: Isa>(self) {
            for chunk in self.0.chunks_exact_mut(<T::Of<I> as Vector>::LANES) {
                // SAFETY: the chunk has LANES elements; the caller guarantees the set.
                unsafe {
                    let x = T::Of::<I>::load(chunk.as_ptr());
                    let y = if BASE_TWO { exp2_of_negative(x) } else { exp(x) };
                    y.store(chunk.as_mut_ptr());
                }
            }
        }
    }

    fn values<T: Real, const BASE_TWO: bool>(x: &[T]) -> Vec<f64> {
        let mut y = x.to_vec();
        // SAFETY: any slice is allowed.
        unsafe { run(Exp::<_, BASE_TWO>(&mut y)) };
        y.into_iter().map(T::to_f64).collect()
    }

    fn largest_error<T: Real, const BASE_TWO: bool>(from: f64, to: f64) -> f64 {
        let n = 100_000 * lanes::<T>();
        let x: Vec<T> = (0..n).map(|i| T::from_f64(from + (to - from) * i as f64 / n as f64)).collect();
        let exact = |x: f64| if BASE_TWO { x.exp2() } else { x.exp() };
        let y = values::<T, BASE_TWO>(&x);
        x.iter().zip(y).map(|(x, y)| (y / exact(x.to_f64()) - 1.0).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn close_to_libm() {
        assert!(largest_error::<f32, false>(-86.9, 87.9) < 1.5 * f64::from(f32::EPSILON));
        assert!(largest_error::<f64, false>(-707.0, 708.0) < 2.0 * f64::EPSILON);
        assert!(largest_error::<f32, true>(-125.9, 0.0) < 1.5 * f64::from(f32::EPSILON));
        assert!(largest_error::<f64, true>(-1021.0, 0.0) < 1.5 * f64::EPSILON);
    }

    #[test]
    fn one_at_zero_and_clamped_outside() {
        assert!(values::<_, true>(&vec![0.0_f64; lanes::<f64>()]).iter().all(|&v| v == 1.0));
        assert!(values::<_, false>(&vec![0.0_f32; lanes::<f32>()]).iter().all(|&v| v == 1.0));
        let below = values::<_, false>(&vec![-1e30_f32; lanes::<f32>()]);
        assert!(below.iter().all(|&v| v > 0.0 && v < 1e-37));
        let below = values::<_, false>(&vec![-1e300_f64; lanes::<f64>()]);
        assert!(below.iter().all(|&v| v > 0.0 && v < 1e-300));
    }
}
