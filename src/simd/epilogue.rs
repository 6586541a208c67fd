//! Kernel values from pairwise sums, in place on a register tile that was just stored.
//!
//! The tile is in the first cache, so that the exponential of a Gaussian costs no memory traffic. Squared distances that rounding
//! makes negative are clamped at 0, so that no value of a Gaussian is above 1.
//!
//! Cost: one function value for each entry, about ten multiply-adds for an exponential.

use super::exp::{exp, exp2_of_negative};
use super::{Real, Vector, lanes, vectorized};
use crate::kernel::Smoothness;

/// The function of the pairwise sum s of a row with squared norm n and a column with squared norm m.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Epilogue<T> {
    /// s
    Identity,
    /// (gamma s + coef0)^degree
    Power { gamma: T, coef0: T, degree: u32 },
    /// exp(-gamma max(0, n + m - 2 s)); rounding can make the squared distance of equal rows negative.
    Gauss { gamma: T },
    /// max(0, n + m - 2 s)
    Distance,
    /// tanh(gamma s + coef0)
    Tanh { gamma: T, coef0: T },
    /// exp(-gamma max(0, s)); sums over sparse rows subtract from a baseline, and may round below zero.
    Decay { gamma: T },
    /// The Matérn kernel of a = rate sqrt(max(0, s)).
    Matern { rate: T, smoothness: Smoothness },
}

/// Replaces every vector s of a tile. It is a macro since closures are not compiled for the instruction set of the function
/// that contains them.
macro_rules! for_each_vector {
    ($tile:ident, $stride:ident, $rows:expr, |$i:ident, $half:ident, $s:ident| $value:expr) => {
        for $i in 0..$rows {
            for $half in 0..2 {
                let p = $tile.add($i * $stride + $half * V::LANES);
                let $s = V::load(p);
                $value.store(p);
            }
        }
    };
}

/// Applies the epilogue to a tile with one row per entry of `row_norms`, two vectors wide.
///
/// # Safety
/// See [`Vector`]; `tile` must have the rows, `stride` apart, and `column_norms` two vectors.
#[inline(always)]
pub(super) unsafe fn apply<V: Vector>(
    epilogue: &Epilogue<V::Elem>,
    tile: *mut V::Elem,
    stride: usize,
    row_norms: &[V::Elem],
    column_norms: &[V::Elem],
) {
    // SAFETY: the contract is the caller's.
    unsafe {
        match *epilogue {
            Epilogue::Identity => {}
            Epilogue::Power { gamma, coef0, degree } => {
                let (gamma, coef0) = (V::splat(gamma), V::splat(coef0));
                for_each_vector!(tile, stride, row_norms.len(), |i, half, s| power(
                    gamma.mul_add(s, coef0),
                    degree
                ));
            }
            Epilogue::Gauss { gamma } => {
                // In base two: t = 2 c s - c n - c m with c = gamma / ln 2.
                let c = gamma * V::Elem::LOG2_E;
                let (minus_c, two_c) = (V::zero().sub(V::splat(c)), V::splat(c + c));
                let columns = [
                    V::load(column_norms.as_ptr()).mul(minus_c),
                    V::load(column_norms.as_ptr().add(V::LANES)).mul(minus_c),
                ];
                for_each_vector!(tile, stride, row_norms.len(), |i, half, s| {
                    let norms = minus_c.mul_add(V::splat(*row_norms.get_unchecked(i)), columns[half]);
                    exp2_of_negative(two_c.mul_add(s, norms).min(V::zero()))
                });
            }
            Epilogue::Distance => {
                let two = V::splat(V::Elem::ONE).add(V::splat(V::Elem::ONE));
                let columns = [V::load(column_norms.as_ptr()), V::load(column_norms.as_ptr().add(V::LANES))];
                for_each_vector!(tile, stride, row_norms.len(), |i, half, s| {
                    let norms = V::splat(*row_norms.get_unchecked(i)).add(columns[half]);
                    norms.sub(two.mul(s)).max(V::zero())
                });
            }
            Epilogue::Tanh { gamma, coef0 } => {
                let (gamma, coef0) = (V::splat(gamma), V::splat(coef0));
                for_each_vector!(tile, stride, row_norms.len(), |i, half, s| tanh(gamma.mul_add(s, coef0)));
            }
            Epilogue::Decay { gamma } => {
                let minus_gamma = V::splat(V::Elem::ZERO).sub(V::splat(gamma));
                for_each_vector!(tile, stride, row_norms.len(), |i, half, s| exp(
                    minus_gamma.mul(s.max(V::zero()))
                ));
            }
            Epilogue::Matern { rate, smoothness } => {
                let rate = V::splat(rate);
                for_each_vector!(tile, stride, row_norms.len(), |i, half, s| matern(
                    rate.mul(s.max(V::zero()).sqrt()),
                    smoothness
                ));
            }
        }
    }
}

/// Replaces pairwise sums by kernel values in lines of two vectors, one for each of the rows' squared norms.
pub(crate) fn finish_tile<T: Real>(
    epilogue: Epilogue<T>,
    row_norms: &[T],
    column_norms: &[T],
    tile: &mut [T],
) {
    let width = 2 * lanes::<T>();
    assert!(column_norms.len() == width && tile.len() == row_norms.len() * width);
    vectorized!([T: Real] (epilogue: Epilogue<T>, row_norms: &[T], column_norms: &[T], tile: &mut [T]) {
        let width = 2 * <T::Of<I> as Vector>::LANES;
        // SAFETY: the assertion above covers all sizes.
        unsafe { apply::<T::Of<I>>(&epilogue, tile.as_mut_ptr(), width, row_norms, column_norms) };
    });
}

/// Appends the lines of a tile of squared distances in which any is below `part` of the squared norms of its row and column.
pub(crate) fn near_rows<T: Real>(
    tile: &[T],
    row_norms: &[T],
    column_norms: &[T],
    part: T,
    near: &mut Vec<usize>,
) {
    let width = 2 * lanes::<T>();
    assert!(column_norms.len() == width && tile.len() <= row_norms.len() * width);
    vectorized!([T: Real] (tile: &[T], row_norms: &[T], column_norms: &[T], part: T, near: &mut Vec<usize>) {
        let lanes = <T::Of<I> as Vector>::LANES;
        // SAFETY: the assertion above covers all sizes.
        unsafe {
            let part = T::Of::<I>::splat(part);
            let load = |from: &[T], half: usize| T::Of::<I>::load(from.as_ptr().add(half * lanes));
            for (i, (line, &norm)) in tile.chunks_exact(2 * lanes).zip(row_norms).enumerate() {
                let norm = T::Of::<I>::splat(norm);
                let gap = |half: usize| {
                    load(line, half).sub(part.mul(norm.add(load(column_norms, half))))
                };
                if gap(0).min(gap(1)).least() < T::ZERO {
                    near.push(i);
                }
            }
        }
    });
}

/// Computes the Matérn kernel of a >= 0.
#[inline(always)]
unsafe fn matern<V: Vector>(a: V, smoothness: Smoothness) -> V {
    // SAFETY: the contract is the caller's.
    unsafe {
        let one = V::splat(V::Elem::ONE);
        // Beyond, the exponential is not zero, and the polynomial would grow.
        let a = a.min(V::zero().sub(V::splat(V::Elem::EXP_MIN)));
        let decay = exp2_of_negative(a.mul(V::splat(V::Elem::ZERO).sub(V::splat(V::Elem::LOG2_E))));
        match smoothness {
            Smoothness::Half => decay,
            Smoothness::ThreeHalves => a.mul_add(decay, decay),
            Smoothness::FiveHalves => {
                let third = V::splat(V::Elem::from_f64(1.0 / 3.0));
                a.mul(third).mul_add(a, a.add(one)).mul(decay)
            }
        }
    }
}

/// Computes x^n by repeated squaring.
#[inline(always)]
unsafe fn power<V: Vector>(x: V, mut n: u32) -> V {
    // SAFETY: the contract is the caller's.
    unsafe {
        let (mut base, mut result) = (x, V::splat(V::Elem::ONE));
        while n > 0 {
            if n & 1 == 1 {
                result = result.mul(base);
            }
            base = base.mul(base);
            n >>= 1;
        }
        result
    }
}

/// Computes tanh x = 1 - 2 / (e^(2x) + 1).
#[inline(always)]
unsafe fn tanh<V: Vector>(x: V) -> V {
    // SAFETY: the contract is the caller's.
    unsafe {
        let one = V::splat(V::Elem::ONE);
        let two = one.add(one);
        // The result is +-1 to the last digit before e^(2x) overflows or vanishes.
        let limit = V::splat(V::Elem::from_f64(20.0));
        let x = x.min(limit).max(V::zero().sub(limit));
        one.sub(two.div(exp(two.mul(x)).add(one)))
    }
}
