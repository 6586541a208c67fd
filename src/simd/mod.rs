//! The only module with `unsafe`: hot loops written once over a small `Vector` trait, and run at the widest instruction set
//! that the machine has.
//!
//! The set is detected once, at the first use. `SVMARROW_SIMD=scalar`, `neon`, `avx2` or `avx512` forces a narrower one (never
//! a wider one than the machine has), so that tests can run the same code at every level and compare
//! it with the scalar level. A hot loop is an `Operation`, which `run` compiles for each set; `vectorized!` makes one of a
//! loop in a function.
//!
//! | file | holds |
//! |---|---|
//! | `vector` | the trait and the portable implementation |
//! | `x86_64` | AVX-512 and AVX2 + FMA |
//! | `neon` | NEON of 64-bit ARM |
//! | `wasm` | 128-bit vectors of WebAssembly, which are the scalar level there |
//! | `exp` | the exponential |
//! | `micro` | register tiles of pairwise sums: inner product, l1 distance, chi-squared |
//! | `coefficients` | tiles of kernel values times coefficients |
//! | `epilogue` | kernel values from pairwise sums |
//! | `alignment` | sums over all alignments of two series |
//! | `subsequences` | common subsequences of two strings |
//! | `adam` | a step of the stochastic optimizer |
//! | `blas` | dot, axpy and the mixed-precision products of the solvers |
//! | `bytes` | register tiles of exact inner products of bytes |
//! | `chebyshev` | piecewise polynomials at points, and their moments |
//! | `gather` | entries of rows at given indices |
//! | `inner` | many long rows times a few vectors |
//! | `panel` | register tiles and triangles of the dense factorizations |
//! | `standardize` | translation, scale and squared lengths of dense rows |
//! | `scan` | gradient update and selection of the pair of an SMO step |
//! | `shapley` | factors of product kernels, and their Shapley integrals |

#![allow(unsafe_code)]

pub(crate) mod adam;
pub(crate) mod alignment;
pub(crate) mod blas;
pub(crate) mod bytes;
pub(crate) mod chebyshev;
pub(crate) mod coefficients;
pub(crate) mod epilogue;
mod exp;
pub(crate) mod gather;
pub(crate) mod inner;
pub(crate) mod micro;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod panel;
pub(crate) mod scan;
pub(crate) mod shapley;
pub(crate) mod standardize;
pub(crate) mod subsequences;
mod vector;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::sync::OnceLock;

pub(crate) use vector::{Isa, Real, Scalar, Vector};

/// The instruction set of the scalar level.
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
type Baseline = Scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
type Baseline = wasm::Simd128;

/// An instruction set level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Portable code, left to the compiler.
    Scalar,
    /// NEON of 64-bit ARM, also called Advanced SIMD.
    Neon,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, DQ, VL.
    Avx512,
}

impl Level {
    /// Returns the name of the level in `SVMARROW_SIMD`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

fn detect() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                return Level::Avx512;
            }
            return Level::Avx2;
        }
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("neon") {
        return Level::Neon;
    }
    Level::Scalar
}

/// Returns the level in use.
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let best = detect();
        let requested = match std::env::var("SVMARROW_SIMD").as_deref() {
            Ok("scalar") => Level::Scalar,
            Ok("neon") if cfg!(target_arch = "aarch64") => Level::Neon,
            Ok("avx2") => Level::Avx2,
            _ => best,
        };
        requested.min(best)
    })
}

/// A hot loop over vectors of any instruction set.
pub(crate) trait Operation {
    /// The result of the loop.
    type Output;

    /// Runs the loop.
    ///
    /// # Safety
    /// The machine must have the instruction set `I`, and the implementation must be inlined into a function that
    /// is compiled for it: mark it `#[inline(always)]`. The operation's own fields must satisfy its invariants.
    unsafe fn run<I: Isa>(self) -> Self::Output;
}

/// Runs an operation at the level in use.
///
/// # Safety
/// The operation's fields must satisfy its invariants: it reads and writes without a check.
#[inline]
pub(crate) unsafe fn run<O: Operation>(operation: O) -> O::Output {
    match level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `level` returns a level only where the machine has it; the caller guarantees the fields.
        Level::Avx512 => unsafe { x86_64::run_avx512(operation) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { x86_64::run_avx2(operation) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Level::Neon => unsafe { neon::run(operation) },
        // SAFETY: the scalar level needs nothing of the machine beyond what the crate is compiled for; the caller guarantees the
        // fields.
        _ => unsafe { operation.run::<Baseline>() },
    }
}

/// Runs a loop over its arguments at the level in use, with the instruction set `I` as a type parameter. The loop is compiled for
/// each instruction set, which a closure would not be. Its unsafe operations may rely on what the enclosing function checked.
macro_rules! vectorized {
    ([$($generics:tt)*] ($($argument:ident: $type:ty),*) $body:block) => {
        $crate::simd::vectorized!([$($generics)*] ($($argument: $type),*) -> () $body)
    };
    ([$($generics:tt)*] ($($argument:ident: $type:ty),*) -> $output:ty $body:block) => {{
        struct Loop<A>(A);

        impl<$($generics)*> $crate::simd::Operation for Loop<($($type,)*)> {
            type Output = $output;

            #[inline(always)]
            unsafe fn run<I: $crate::simd::Isa>(self) -> $output {
                let ($($argument,)*) = self.0;
                $body
            }
        }

        // SAFETY: the loop has no invariants beyond those that this function checked.
        unsafe { $crate::simd::run(Loop(($($argument,)*))) }
    }};
}
pub(crate) use vectorized;

/// Returns the number of lanes of a vector of `T` at the level in use.
pub(crate) fn lanes<T: Real>() -> usize {
    match level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => <T::Of<x86_64::Avx512> as Vector>::LANES,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => <T::Of<x86_64::Avx2> as Vector>::LANES,
        #[cfg(target_arch = "aarch64")]
        Level::Neon => <T::Of<neon::Neon> as Vector>::LANES,
        _ => <T::Of<Baseline> as Vector>::LANES,
    }
}
