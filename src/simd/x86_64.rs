//! AVX2 + FMA and AVX-512 for x86-64.
//!
//! Register tiles are two vectors wide. With 12 rows in 32 registers of AVX-512, and 6 in 16 of AVX2, the sums, two loads and a
//! broadcast fill the registers, so that no sum leaves them within a tile.

use super::Operation;
use super::vector::{Isa, Vector, vector};
// A list would repeat every intrinsic.
#[allow(clippy::wildcard_imports)]
use std::arch::x86_64::*;

/// AVX-512 F, DQ, VL.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// AVX2 and FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

impl Isa for Avx512 {
    type F32 = __m512;
    type F64 = __m512d;
    const TILE_ROWS: usize = 12;
    const REGISTERS: usize = 32;
}

impl Isa for Avx2 {
    type F32 = __m256;
    type F64 = __m256d;
    const TILE_ROWS: usize = 6;
    const REGISTERS: usize = 16;
}

/// # Safety
/// The machine must have AVX-512 F, DQ and VL.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
pub(super) unsafe fn run_avx512<O: Operation>(operation: O) -> O::Output {
    // SAFETY: this function is compiled for the set, and the caller promises the machine.
    unsafe { operation.run::<Avx512>() }
}

/// # Safety
/// The machine must have AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run_avx2<O: Operation>(operation: O) -> O::Output {
    // SAFETY: this function is compiled for the set, and the caller promises the machine.
    unsafe { operation.run::<Avx2>() }
}

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

vector! { __m512, f32, 16, {
    fn splat(x: f32) -> Self = _mm512_set1_ps(x);
    fn load(p: *const f32) -> Self = _mm512_loadu_ps(p);
    fn store(self, p: *mut f32) = _mm512_storeu_ps(p, self);
    fn add(self, o: Self) -> Self = _mm512_add_ps(self, o);
    fn sub(self, o: Self) -> Self = _mm512_sub_ps(self, o);
    fn mul(self, o: Self) -> Self = _mm512_mul_ps(self, o);
    fn div(self, o: Self) -> Self = _mm512_div_ps(self, o);
    fn mul_add(self, a: Self, b: Self) -> Self = _mm512_fmadd_ps(self, a, b);
    fn min(self, o: Self) -> Self = _mm512_min_ps(self, o);
    fn max(self, o: Self) -> Self = _mm512_max_ps(self, o);
    fn load_f32(p: *const f32) -> Self = _mm512_loadu_ps(p);
    fn load_f64(p: *const f64) -> Self = {
        let (low, high) = (_mm512_cvtpd_ps(_mm512_loadu_pd(p)), _mm512_cvtpd_ps(_mm512_loadu_pd(p.add(8))));
        _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high)
    };
    fn abs(self) -> Self = _mm512_abs_ps(self);
    fn sqrt(self) -> Self = _mm512_sqrt_ps(self);
    fn round(self) -> Self = _mm512_roundscale_ps::<NEAREST>(self);
    fn scale_pow2(self, n: Self) -> Self = _mm512_scalef_ps(self, n);
    fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self =
        _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), y, x);
    fn sum(self) -> f32 = _mm512_reduce_add_ps(self);
    fn least(self) -> f32 = _mm512_reduce_min_ps(self);
} }

vector! { __m512d, f64, 8, {
    fn splat(x: f64) -> Self = _mm512_set1_pd(x);
    fn load(p: *const f64) -> Self = _mm512_loadu_pd(p);
    fn store(self, p: *mut f64) = _mm512_storeu_pd(p, self);
    fn add(self, o: Self) -> Self = _mm512_add_pd(self, o);
    fn sub(self, o: Self) -> Self = _mm512_sub_pd(self, o);
    fn mul(self, o: Self) -> Self = _mm512_mul_pd(self, o);
    fn div(self, o: Self) -> Self = _mm512_div_pd(self, o);
    fn mul_add(self, a: Self, b: Self) -> Self = _mm512_fmadd_pd(self, a, b);
    fn min(self, o: Self) -> Self = _mm512_min_pd(self, o);
    fn max(self, o: Self) -> Self = _mm512_max_pd(self, o);
    fn load_f32(p: *const f32) -> Self = _mm512_cvtps_pd(_mm256_loadu_ps(p));
    fn load_f64(p: *const f64) -> Self = _mm512_loadu_pd(p);
    fn abs(self) -> Self = _mm512_abs_pd(self);
    fn sqrt(self) -> Self = _mm512_sqrt_pd(self);
    fn round(self) -> Self = _mm512_roundscale_pd::<NEAREST>(self);
    fn scale_pow2(self, n: Self) -> Self = _mm512_scalef_pd(self, n);
    fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self =
        _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b), y, x);
    fn sum(self) -> f64 = _mm512_reduce_add_pd(self);
    fn least(self) -> f64 = _mm512_reduce_min_pd(self);
} }

vector! { __m256, f32, 8, {
    fn splat(x: f32) -> Self = _mm256_set1_ps(x);
    fn load(p: *const f32) -> Self = _mm256_loadu_ps(p);
    fn store(self, p: *mut f32) = _mm256_storeu_ps(p, self);
    fn add(self, o: Self) -> Self = _mm256_add_ps(self, o);
    fn sub(self, o: Self) -> Self = _mm256_sub_ps(self, o);
    fn mul(self, o: Self) -> Self = _mm256_mul_ps(self, o);
    fn div(self, o: Self) -> Self = _mm256_div_ps(self, o);
    fn mul_add(self, a: Self, b: Self) -> Self = _mm256_fmadd_ps(self, a, b);
    fn min(self, o: Self) -> Self = _mm256_min_ps(self, o);
    fn max(self, o: Self) -> Self = _mm256_max_ps(self, o);
    fn load_f32(p: *const f32) -> Self = _mm256_loadu_ps(p);
    fn load_f64(p: *const f64) -> Self =
        _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(p.add(4))), _mm256_cvtpd_ps(_mm256_loadu_pd(p)));
    fn abs(self) -> Self = _mm256_andnot_ps(_mm256_set1_ps(-0.0), self);
    fn sqrt(self) -> Self = _mm256_sqrt_ps(self);
    fn round(self) -> Self = _mm256_round_ps::<NEAREST>(self);
    fn scale_pow2(self, n: Self) -> Self = {
        let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
        _mm256_mul_ps(self, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent)))
    };
    fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self =
        _mm256_blendv_ps(y, x, _mm256_cmp_ps::<_CMP_LT_OQ>(a, b));
    fn sum(self) -> f32 = {
        let half = _mm_add_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self));
        let quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
        _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)))
    };
    fn least(self) -> f32 = {
        let half = _mm_min_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self));
        let quarter = _mm_min_ps(half, _mm_movehl_ps(half, half));
        _mm_cvtss_f32(_mm_min_ss(quarter, _mm_movehdup_ps(quarter)))
    };
} }

vector! { __m256d, f64, 4, {
    fn splat(x: f64) -> Self = _mm256_set1_pd(x);
    fn load(p: *const f64) -> Self = _mm256_loadu_pd(p);
    fn store(self, p: *mut f64) = _mm256_storeu_pd(p, self);
    fn add(self, o: Self) -> Self = _mm256_add_pd(self, o);
    fn sub(self, o: Self) -> Self = _mm256_sub_pd(self, o);
    fn mul(self, o: Self) -> Self = _mm256_mul_pd(self, o);
    fn div(self, o: Self) -> Self = _mm256_div_pd(self, o);
    fn mul_add(self, a: Self, b: Self) -> Self = _mm256_fmadd_pd(self, a, b);
    fn min(self, o: Self) -> Self = _mm256_min_pd(self, o);
    fn max(self, o: Self) -> Self = _mm256_max_pd(self, o);
    fn load_f32(p: *const f32) -> Self = _mm256_cvtps_pd(_mm_loadu_ps(p));
    fn load_f64(p: *const f64) -> Self = _mm256_loadu_pd(p);
    fn abs(self) -> Self = _mm256_andnot_pd(_mm256_set1_pd(-0.0), self);
    fn sqrt(self) -> Self = _mm256_sqrt_pd(self);
    fn round(self) -> Self = _mm256_round_pd::<NEAREST>(self);
    fn scale_pow2(self, n: Self) -> Self = {
        let exponent = _mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(n));
        let biased = _mm256_add_epi64(exponent, _mm256_set1_epi64x(1023));
        _mm256_mul_pd(self, _mm256_castsi256_pd(_mm256_slli_epi64::<52>(biased)))
    };
    fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self =
        _mm256_blendv_pd(y, x, _mm256_cmp_pd::<_CMP_LT_OQ>(a, b));
    fn sum(self) -> f64 = {
        let half = _mm_add_pd(_mm256_castpd256_pd128(self), _mm256_extractf128_pd::<1>(self));
        _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)))
    };
    fn least(self) -> f64 = {
        let half = _mm_min_pd(_mm256_castpd256_pd128(self), _mm256_extractf128_pd::<1>(self));
        _mm_cvtsd_f64(_mm_min_sd(half, _mm_unpackhi_pd(half, half)))
    };
} }
