//! Vectors of 128 bits for WebAssembly.
//!
//! Unlike other sets this one is chosen when the crate is compiled (`-C target-feature=+simd128`): a browser refuses a module with
//! instructions that it does not have. Every operation has the bits of the portable one, in as many lanes, so that this set is
//! the scalar level and its results are the same.

use super::vector::{Isa, Vector, vector};
// A list would repeat every intrinsic.
#[allow(clippy::wildcard_imports)]
use std::arch::wasm32::*;

/// 128-bit vectors.
#[derive(Clone, Copy)]
pub(crate) struct Simd128;

impl Isa for Simd128 {
    type F32 = F32x4;
    type F64 = F64x2;
    const TILE_ROWS: usize = super::Scalar::TILE_ROWS;
    const REGISTERS: usize = super::Scalar::REGISTERS;
}

/// Four numbers in single precision.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F32x4(v128);

/// Two numbers in double precision.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F64x2(v128);

// `pmin(a, b)` is b < a ? b : a, `pmax(a, b)` is a < b ? b : a.
vector! { F32x4, f32, 4, {
    fn splat(x: f32) -> Self = Self(f32x4_splat(x));
    fn load(p: *const f32) -> Self = Self(v128_load(p.cast()));
    fn load_f32(p: *const f32) -> Self = Self(v128_load(p.cast()));
    fn load_f64(p: *const f64) -> Self = {
        let low = f32x4_demote_f64x2_zero(v128_load(p.cast()));
        let high = f32x4_demote_f64x2_zero(v128_load(p.add(2).cast()));
        Self(i64x2_shuffle::<0, 2>(low, high))
    };
    fn store(self, p: *mut f32) = v128_store(p.cast(), self.0);
    fn add(self, o: Self) -> Self = Self(f32x4_add(self.0, o.0));
    fn sub(self, o: Self) -> Self = Self(f32x4_sub(self.0, o.0));
    fn mul(self, o: Self) -> Self = Self(f32x4_mul(self.0, o.0));
    fn div(self, o: Self) -> Self = Self(f32x4_div(self.0, o.0));
    fn mul_add(self, a: Self, b: Self) -> Self = Self(f32x4_add(f32x4_mul(self.0, a.0), b.0));
    fn min(self, o: Self) -> Self = Self(f32x4_pmin(o.0, self.0));
    fn max(self, o: Self) -> Self = Self(f32x4_pmax(o.0, self.0));
    fn abs(self) -> Self = Self(f32x4_abs(self.0));
    fn sqrt(self) -> Self = Self(f32x4_sqrt(self.0));
    fn round(self) -> Self = Self(f32x4_nearest(self.0));
    fn scale_pow2(self, n: Self) -> Self = {
        let exponent = i32x4_add(i32x4_trunc_sat_f32x4(n.0), i32x4_splat(127));
        Self(f32x4_mul(self.0, i32x4_shl(exponent, 23)))
    };
    fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self =
        Self(v128_bitselect(x.0, y.0, f32x4_lt(a.0, b.0)));
    fn sum(self) -> f32 = {
        let v = self.0;
        f32x4_extract_lane::<0>(v) + f32x4_extract_lane::<1>(v) + f32x4_extract_lane::<2>(v) + f32x4_extract_lane::<3>(v)
    };
    fn least(self) -> f32 = {
        let v = self.0;
        let half = f32x4_pmin(v, i64x2_shuffle::<1, 0>(v, v));
        f32x4_extract_lane::<0>(half).min(f32x4_extract_lane::<1>(half))
    };
} }

vector! { F64x2, f64, 2, {
    fn splat(x: f64) -> Self = Self(f64x2_splat(x));
    fn load(p: *const f64) -> Self = Self(v128_load(p.cast()));
    fn load_f32(p: *const f32) -> Self = Self(f64x2_promote_low_f32x4(v128_load64_zero(p.cast())));
    fn load_f64(p: *const f64) -> Self = Self(v128_load(p.cast()));
    fn store(self, p: *mut f64) = v128_store(p.cast(), self.0);
    fn add(self, o: Self) -> Self = Self(f64x2_add(self.0, o.0));
    fn sub(self, o: Self) -> Self = Self(f64x2_sub(self.0, o.0));
    fn mul(self, o: Self) -> Self = Self(f64x2_mul(self.0, o.0));
    fn div(self, o: Self) -> Self = Self(f64x2_div(self.0, o.0));
    fn mul_add(self, a: Self, b: Self) -> Self = Self(f64x2_add(f64x2_mul(self.0, a.0), b.0));
    fn min(self, o: Self) -> Self = Self(f64x2_pmin(o.0, self.0));
    fn max(self, o: Self) -> Self = Self(f64x2_pmax(o.0, self.0));
    fn abs(self) -> Self = Self(f64x2_abs(self.0));
    fn sqrt(self) -> Self = Self(f64x2_sqrt(self.0));
    fn round(self) -> Self = Self(f64x2_nearest(self.0));
    fn scale_pow2(self, n: Self) -> Self = {
        let exponent = i64x2_extend_low_i32x4(i32x4_trunc_sat_f64x2_zero(n.0));
        Self(f64x2_mul(self.0, i64x2_shl(i64x2_add(exponent, i64x2_splat(1023)), 52)))
    };
    fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self =
        Self(v128_bitselect(x.0, y.0, f64x2_lt(a.0, b.0)));
    fn sum(self) -> f64 = f64x2_extract_lane::<0>(self.0) + f64x2_extract_lane::<1>(self.0);
    fn least(self) -> f64 = f64x2_extract_lane::<0>(self.0).min(f64x2_extract_lane::<1>(self.0));
} }
