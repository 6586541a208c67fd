//! NEON (Advanced SIMD) for 64-bit ARM.
//!
//! Its multiplications take one lane of a register as a factor. A register tile therefore loads as many features of a row as a
//! vector has lanes, and multiplies by the lanes in turn: 16 sums, 8 rows and one panel line of two vectors fill 26 of the
//! 32 registers.

use super::Operation;
use super::vector::{Isa, Vector, vector};
// A list would repeat every intrinsic.
#[allow(clippy::wildcard_imports)]
use std::arch::aarch64::*;

/// NEON with vectors of 128 bits.
#[derive(Clone, Copy)]
pub(crate) struct Neon;

impl Isa for Neon {
    type F32 = float32x4_t;
    type F64 = float64x2_t;
    const TILE_ROWS: usize = 8;
    const REGISTERS: usize = 32;
}

/// # Safety
/// The machine must have NEON.
#[target_feature(enable = "neon")]
pub(super) unsafe fn run<O: Operation>(operation: O) -> O::Output {
    // SAFETY: this function is compiled for the set, and the caller promises the machine.
    unsafe { operation.run::<Neon>() }
}

// `min` and `max` return the other number if one is NaN.
vector! { float32x4_t, f32, 4, {
    fn splat(x: f32) -> Self = vdupq_n_f32(x);
    fn load(p: *const f32) -> Self = vld1q_f32(p);
    fn store(self, p: *mut f32) = vst1q_f32(p, self);
    fn add(self, o: Self) -> Self = vaddq_f32(self, o);
    fn sub(self, o: Self) -> Self = vsubq_f32(self, o);
    fn mul(self, o: Self) -> Self = vmulq_f32(self, o);
    fn div(self, o: Self) -> Self = vdivq_f32(self, o);
    fn mul_add(self, a: Self, b: Self) -> Self = vfmaq_f32(b, self, a);
    fn min(self, o: Self) -> Self = vminnmq_f32(self, o);
    fn max(self, o: Self) -> Self = vmaxnmq_f32(self, o);
    fn load_f32(p: *const f32) -> Self = vld1q_f32(p);
    fn load_f64(p: *const f64) -> Self = vcvt_high_f32_f64(vcvt_f32_f64(vld1q_f64(p)), vld1q_f64(p.add(2)));
    fn abs(self) -> Self = vabsq_f32(self);
    fn sqrt(self) -> Self = vsqrtq_f32(self);
    fn round(self) -> Self = vrndnq_f32(self);
    fn broadcast(self, lane: usize) -> Self = match lane {
        0 => vdupq_laneq_f32::<0>(self),
        1 => vdupq_laneq_f32::<1>(self),
        2 => vdupq_laneq_f32::<2>(self),
        _ => vdupq_laneq_f32::<3>(self),
    };
    fn scale_pow2(self, n: Self) -> Self = {
        let exponent = vshlq_n_s32::<23>(vcvtq_s32_f32(n));
        vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(self), exponent))
    };
    // The sum with 3 * 2^22 and the exponent's bias has the biased n in its lowest bits.
    fn nearest_power(self) -> (Self, Self) = {
        let shift = vdupq_n_f32(12_582_912.0 + 127.0);
        let sum = vaddq_f32(self, shift);
        (vsubq_f32(sum, shift), vreinterpretq_f32_s32(vshlq_n_s32::<23>(vreinterpretq_s32_f32(sum))))
    };
    fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self = vbslq_f32(vcltq_f32(a, b), x, y);
    fn sum(self) -> f32 = vaddvq_f32(self);
    fn least(self) -> f32 = vminnmvq_f32(self);
} const MULTIPLIES_BY_LANE: bool = true; const ADDS_IN_PLACE: bool = true; }

vector! { float64x2_t, f64, 2, {
    fn splat(x: f64) -> Self = vdupq_n_f64(x);
    fn load(p: *const f64) -> Self = vld1q_f64(p);
    fn store(self, p: *mut f64) = vst1q_f64(p, self);
    fn add(self, o: Self) -> Self = vaddq_f64(self, o);
    fn sub(self, o: Self) -> Self = vsubq_f64(self, o);
    fn mul(self, o: Self) -> Self = vmulq_f64(self, o);
    fn div(self, o: Self) -> Self = vdivq_f64(self, o);
    fn mul_add(self, a: Self, b: Self) -> Self = vfmaq_f64(b, self, a);
    fn min(self, o: Self) -> Self = vminnmq_f64(self, o);
    fn max(self, o: Self) -> Self = vmaxnmq_f64(self, o);
    fn load_f32(p: *const f32) -> Self = vcvt_f64_f32(vld1_f32(p));
    fn load_f64(p: *const f64) -> Self = vld1q_f64(p);
    fn abs(self) -> Self = vabsq_f64(self);
    fn sqrt(self) -> Self = vsqrtq_f64(self);
    fn round(self) -> Self = vrndnq_f64(self);
    fn broadcast(self, lane: usize) -> Self = match lane {
        0 => vdupq_laneq_f64::<0>(self),
        _ => vdupq_laneq_f64::<1>(self),
    };
    fn scale_pow2(self, n: Self) -> Self = {
        let exponent = vshlq_n_s64::<52>(vcvtq_s64_f64(n));
        vreinterpretq_f64_s64(vaddq_s64(vreinterpretq_s64_f64(self), exponent))
    };
    // The sum with 3 * 2^51 and the exponent's bias has the biased n in its lowest bits.
    fn nearest_power(self) -> (Self, Self) = {
        let shift = vdupq_n_f64(6_755_399_441_055_744.0 + 1023.0);
        let sum = vaddq_f64(self, shift);
        (vsubq_f64(sum, shift), vreinterpretq_f64_s64(vshlq_n_s64::<52>(vreinterpretq_s64_f64(sum))))
    };
    fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self = vbslq_f64(vcltq_f64(a, b), x, y);
    fn sum(self) -> f64 = vaddvq_f64(self);
    fn least(self) -> f64 = vminnmvq_f64(self);
} const MULTIPLIES_BY_LANE: bool = true; const ADDS_IN_PLACE: bool = true; }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Real, Scalar};

    /// Bits of every operation on vectors of one instruction set.
    fn results<V: Vector>(a: &[V::Elem], b: &[V::Elem], c: &[V::Elem]) -> Vec<V::Elem> {
        let mut out = Vec::new();
        let mut keep = |v: V| {
            let mut lanes = vec![V::Elem::ZERO; V::LANES];
            // SAFETY: the array has LANES numbers.
            unsafe { v.store(lanes.as_mut_ptr()) };
            out.extend(lanes);
        };
        for at in (0..a.len()).step_by(V::LANES) {
            // SAFETY: the lengths are multiples of LANES, and every machine of this architecture has NEON.
            unsafe {
                let load = |from: &[V::Elem]| V::load(from.as_ptr().add(at));
                let (a, b, c) = (load(a), load(b), load(c));
                let difference = a.sub(b);
                for v in [a.add(b), difference, a.mul(b), a.div(b), a.mul_add(b, c)] {
                    keep(v);
                }
                for v in [a.min(b), a.max(b), difference.abs(), c.abs().sqrt(), a.round()] {
                    keep(v);
                }
                keep(V::select_lt(a, b, c, difference));
                for lane in 0..V::LANES {
                    keep(a.broadcast(lane));
                }
                let one = V::splat(V::Elem::ONE);
                keep(one.scale_pow2(a.round()));
                keep(one.add(one.div(one.add(c.abs()))).scale_pow2(b.round()));
                keep(V::splat(a.least()));
                let (wide, narrow): (Vec<f64>, Vec<f32>) =
                    (0..V::LANES).map(|i| (1.0 / (i + at + 3) as f64, 1.0 / (i + at + 3) as f32)).unzip();
                keep(V::load_f64(wide.as_ptr()));
                keep(V::load_f32(narrow.as_ptr()));
            }
        }
        out
    }

    fn agree<T: Real>() {
        let number = |i: usize, salt: f64| T::from_f64((i as f64 * 0.73 + salt).sin() * 40.0);
        let of = |salt: f64| (0..256).map(|i| number(i, salt)).collect::<Vec<T>>();
        let (mut a, b, c) = (of(0.1), of(1.3), of(2.9));
        // Halves are rounded to even numbers.
        for (i, a) in a.iter_mut().take(32).enumerate() {
            *a = T::from_f64(i as f64 - 15.5);
        }
        let (portable, neon) = (results::<T::Of<Scalar>>(&a, &b, &c), results::<T::Of<Neon>>(&a, &b, &c));
        assert!(portable.len() > 2000);
        assert_eq!(bytemuck::cast_slice::<T, u8>(&portable), bytemuck::cast_slice::<T, u8>(&neon));
    }

    #[test]
    fn every_operation_has_the_bits_of_the_portable_one() {
        agree::<f32>();
        agree::<f64>();
    }

    #[test]
    fn sums_add_all_lanes() {
        // SAFETY: the arrays are vectors, and every machine of this architecture has NEON.
        unsafe {
            assert_eq!(float32x4_t::load([1.0, 2.0, 4.0, 8.0].as_ptr()).sum(), 15.0);
            assert_eq!(float64x2_t::load([1.0, 2.0].as_ptr()).sum(), 3.0);
        }
    }

    fn check_nearest_powers<T: Real>(smallest: i32) {
        for at in 0..40_000 {
            let t = T::from_f64(f64::from(smallest) * f64::from(at) / 40_000.0);
            // SAFETY: every machine of this architecture has NEON.
            let (n, power) = unsafe {
                let (n, power) = T::Of::<Neon>::splat(t).nearest_power();
                (n.least().to_f64(), power.least().to_f64())
            };
            assert!((t.to_f64() - n).abs() <= 0.5 && power == n.exp2());
        }
    }

    #[test]
    fn powers_have_the_nearest_exponents() {
        check_nearest_powers::<f32>(-126);
        check_nearest_powers::<f64>(-1022);
    }

    #[test]
    fn powers_of_two_reach_the_smallest_and_largest_normal_numbers() {
        // SAFETY: every machine of this architecture has NEON.
        unsafe {
            let power = |n: f32| float32x4_t::splat(1.0).scale_pow2(float32x4_t::splat(n)).sum() / 4.0;
            assert_eq!([power(-124.0), power(125.0)], [2.0_f32.powi(-124), 2.0_f32.powi(125)]);
            let power = |n: f64| float64x2_t::splat(1.0).scale_pow2(float64x2_t::splat(n)).least();
            assert_eq!([power(-1022.0), power(1023.0)], [f64::MIN_POSITIVE, 2.0_f64.powi(1023)]);
        }
    }
}
