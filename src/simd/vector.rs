//! The vector trait, the instruction-set trait, and the portable vectors.
//!
//! A hot loop is written once over [`Vector`] and [`Isa`], so that one text is tested with the portable vectors and with those of
//! every instruction set. Each function is inlined into a caller that is compiled for the instruction set; else it would be a
//! call for every operation.

/// A vector of numbers that are computed together.
///
/// # Safety
/// Every function may be called only in code compiled for, and run on, a machine with the vector's instruction
/// set; pointers must be valid for `LANES` elements, with any alignment.
pub(crate) trait Vector: Copy {
    type Elem: Real;
    const LANES: usize;
    /// True if a multiplication takes one lane of a register as its factor, so that a tile loads `LANES` factors at once.
    const MULTIPLIES_BY_LANE: bool = false;
    /// True if `mul_add` overwrites its addend, so that a constant addend costs a copy.
    const ADDS_IN_PLACE: bool = false;
    unsafe fn splat(x: Self::Elem) -> Self;
    unsafe fn load(p: *const Self::Elem) -> Self;
    /// Loads `LANES` single-precision numbers, converted if the vector is double.
    unsafe fn load_f32(p: *const f32) -> Self;
    /// Loads `LANES` double-precision numbers, rounded if the vector is single.
    unsafe fn load_f64(p: *const f64) -> Self;
    unsafe fn store(self, p: *mut Self::Elem);
    unsafe fn add(self, o: Self) -> Self;
    unsafe fn sub(self, o: Self) -> Self;
    unsafe fn mul(self, o: Self) -> Self;
    unsafe fn div(self, o: Self) -> Self;
    /// Computes self * a + b, rounded once.
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    unsafe fn min(self, o: Self) -> Self;
    unsafe fn max(self, o: Self) -> Self;
    unsafe fn abs(self) -> Self;
    unsafe fn sqrt(self) -> Self;
    /// Rounds to the nearest integer.
    unsafe fn round(self) -> Self;
    /// Copies a lane to all lanes; the lane must be below `LANES`.
    #[inline(always)]
    unsafe fn broadcast(self, lane: usize) -> Self {
        let mut values = [Self::Elem::ZERO; MAX_LANES];
        // SAFETY: the array is as long as the widest vector; the contract is the caller's.
        unsafe {
            self.store(values.as_mut_ptr());
            Self::splat(values[lane])
        }
    }
    /// Computes self * 2^n for self in [1/2, 2] and integral n, if the result is a normal number.
    unsafe fn scale_pow2(self, n: Self) -> Self;
    /// Returns an integer n at most 1/2 from self, and 2^n, for self from [`EXP2_MIN`](Real::EXP2_MIN) to 0.
    #[inline(always)]
    unsafe fn nearest_power(self) -> (Self, Self) {
        // SAFETY: the contract is the caller's.
        unsafe {
            let n = self.round();
            (n, Self::splat(Self::Elem::ONE).scale_pow2(n))
        }
    }
    /// Selects x in lanes with a < b, else y.
    unsafe fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self;
    /// Returns the sum of the lanes.
    unsafe fn sum(self) -> Self::Elem;
    /// Returns the smallest of the lanes, none of which is NaN.
    unsafe fn least(self) -> Self::Elem;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the contract is the caller's.
        unsafe { Self::splat(Self::Elem::ZERO) }
    }
}

/// The number of lanes of the widest vector.
const MAX_LANES: usize = 16;

/// An instruction set: its vectors and the height of its register tiles.
pub(crate) trait Isa: Copy + 'static {
    type F32: Vector<Elem = f32>;
    type F64: Vector<Elem = f64>;
    /// Number of rows of a register tile two vectors wide, so that the tile, two loads and a broadcast fill the registers.
    const TILE_ROWS: usize;
    /// Number of vector registers.
    const REGISTERS: usize;
}

/// `f32` or `f64`, with its vector in each instruction set.
pub(crate) trait Real:
    Copy
    + Send
    + Sync
    + 'static
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::AddAssign
    + std::ops::Mul<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::fmt::Debug
    + Default
    + bytemuck::Pod
    + super::blas::Stored
{
    type Of<I: Isa>: Vector<Elem = Self>;
    const ZERO: Self;
    const ONE: Self;
    /// Smallest positive normal number.
    const TINY: Self;
    /// Arguments of exp are clamped to +- these, where its result is still a normal number.
    const EXP_MAX: Self;
    const EXP_MIN: Self;
    /// 1/ln 2, and ln 2 in two parts, the first with trailing zeros.
    const LOG2_E: Self;
    const LN2_HIGH: Self;
    const LN2_LOW: Self;
    /// Smallest argument of exp2 that gives a normal number.
    const EXP2_MIN: Self;
    /// (2^r - 1) / r on |r| <= 1/2, lowest power first.
    const EXP2_POLYNOMIAL: &'static [Self];
    /// (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2, lowest power first.
    const EXP_POLYNOMIAL: &'static [Self];
    fn from_f64(x: f64) -> Self;
    /// Returns the values in single precision, in `space` if they have to be rounded.
    fn singles<'a>(values: &'a [Self], space: &'a mut Vec<f32>) -> &'a [f32];
    fn to_f64(self) -> f64;
}

impl Real for f32 {
    type Of<I: Isa> = I::F32;
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const TINY: Self = f32::MIN_POSITIVE;
    const EXP_MAX: Self = 88.0;
    const EXP_MIN: Self = -87.0;
    const LOG2_E: Self = std::f32::consts::LOG2_E;
    const EXP2_MIN: Self = -126.0;
    const EXP2_POLYNOMIAL: &'static [Self] = &[
        0.69314718803071341,
        0.240226507606069574,
        0.0555035709268903002,
        0.00961808253863696085,
        0.00133908748478105284,
        0.000154531728870401589,
    ];
    const LN2_HIGH: Self = 0.693_359_4;
    const LN2_LOW: Self = -2.121_944_4e-4;
    const EXP_POLYNOMIAL: &'static [Self] =
        &[0.5, 0.166_665_77, 0.041_666_555, 0.008_363_179, 0.001_392_618_4];
    fn singles<'a>(values: &'a [Self], _: &'a mut Vec<f32>) -> &'a [f32] {
        values
    }
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x as Self
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    type Of<I: Isa> = I::F64;
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const TINY: Self = f64::MIN_POSITIVE;
    const EXP_MAX: Self = 709.0;
    const EXP_MIN: Self = -708.0;
    const LOG2_E: Self = std::f64::consts::LOG2_E;
    const EXP2_MIN: Self = -1022.0;
    const EXP2_POLYNOMIAL: &'static [Self] = &[
        std::f64::consts::LN_2,
        0.240226506959100712,
        0.0555041086648216271,
        0.0096181291076284795,
        0.00133335581464064531,
        0.000154035303933707247,
        0.0000152527338415792882,
        1.32154868087167075e-6,
        1.01780570761553893e-7,
        7.05489729842442407e-9,
        4.45581996657214167e-10,
        2.57293343650632574e-11,
    ];
    const LN2_HIGH: Self = 0.693_147_180_369_123_8;
    const LN2_LOW: Self = 1.908_214_929_270_587_7e-10;
    const EXP_POLYNOMIAL: &'static [Self] = &[
        0.5,
        0.166_666_666_666_666_71,
        0.041_666_666_666_666_67,
        0.008_333_333_333_326_135,
        0.001_388_888_888_888_374_8,
        0.000_198_412_698_748_206_25,
        2.480_158_732_554_774e-5,
        2.755_725_540_020_642_4e-6,
        2.755_727_364_311_029_5e-7,
        2.510_521_700_472_074_5e-8,
        2.091_468_696_808_687_8e-9,
    ];
    fn singles<'a>(values: &'a [Self], space: &'a mut Vec<f32>) -> &'a [f32] {
        space.clear();
        space.extend(values.iter().map(|value| *value as f32));
        space
    }
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
}

/// The portable instruction set: arrays, which the compiler vectorizes where it can.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Isa for Scalar {
    type F32 = Portable<f32, 4>;
    type F64 = Portable<f64, 2>;
    const TILE_ROWS: usize = 6;
    const REGISTERS: usize = 16;
}

/// An array as a vector.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Portable<T, const N: usize>([T; N]);

/// Implements a vector from a table of its operations, one expression each, under the trait's contract.
macro_rules! vector {
    ($v:ty, $t:ty, $lanes:literal, { $(fn $name:ident($($argument:tt)*) $(-> $out:ty)? = $value:expr;)* } $($constant:item)*) => {
        impl Vector for $v {
            type Elem = $t;
            const LANES: usize = $lanes;
            $($constant)*
            $(
                #[inline(always)]
                #[allow(unused_unsafe)] // Some operations of the portable vectors are safe.
                unsafe fn $name($($argument)*) $(-> $out)? {
                    // SAFETY: the trait's contract puts the instruction set and the pointers on the caller.
                    unsafe { $value }
                }
            )*
        }
    };
}
#[cfg(any(
    target_arch = "aarch64",
    target_arch = "x86_64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
pub(super) use vector;

macro_rules! portable {
    ($t:ident, $n:literal, $bits:ident, $bias:literal, $mantissa:literal) => {
        impl Portable<$t, $n> {
            #[inline(always)]
            fn zip(self, o: Self, f: impl Fn($t, $t) -> $t) -> Self {
                Self(std::array::from_fn(|i| f(self.0[i], o.0[i])))
            }
        }

        vector! { Portable<$t, $n>, $t, $n, {
            fn splat(x: $t) -> Self = Self([x; $n]);
            fn load(p: *const $t) -> Self = Self(p.cast::<[$t; $n]>().read_unaligned());
            fn load_f32(p: *const f32) -> Self = Self(p.cast::<[f32; $n]>().read_unaligned().map($t::from));
            fn load_f64(p: *const f64) -> Self = Self(p.cast::<[f64; $n]>().read_unaligned().map(|v| v as $t));
            fn store(self, p: *mut $t) = p.cast::<[$t; $n]>().write_unaligned(self.0);
            fn add(self, o: Self) -> Self = self.zip(o, |a, b| a + b);
            fn sub(self, o: Self) -> Self = self.zip(o, |a, b| a - b);
            fn mul(self, o: Self) -> Self = self.zip(o, |a, b| a * b);
            fn div(self, o: Self) -> Self = self.zip(o, |a, b| a / b);
            // Rounded twice on machines without a fused instruction, whose library function would be slow.
            fn mul_add(self, a: Self, b: Self) -> Self = Self(std::array::from_fn(|i| {
                if cfg!(target_arch = "aarch64") {
                    self.0[i].mul_add(a.0[i], b.0[i])
                } else {
                    self.0[i] * a.0[i] + b.0[i]
                }
            }));
            fn min(self, o: Self) -> Self = self.zip(o, |a, b| if a < b { a } else { b });
            fn max(self, o: Self) -> Self = self.zip(o, |a, b| if a > b { a } else { b });
            fn abs(self) -> Self = Self(self.0.map($t::abs));
            fn sqrt(self) -> Self = Self(self.0.map($t::sqrt));
            fn round(self) -> Self = Self(self.0.map($t::round_ties_even));
            fn scale_pow2(self, n: Self) -> Self =
                self.zip(n, |a, n| a * $t::from_bits(((n as i64 + $bias) as $bits) << $mantissa));
            fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self =
                Self(std::array::from_fn(|i| if a.0[i] < b.0[i] { x.0[i] } else { y.0[i] }));
            fn sum(self) -> $t = self.0.iter().sum();
            fn least(self) -> $t = self.0.into_iter().fold($t::INFINITY, $t::min);
        } }
    };
}

portable!(f32, 4, u32, 127, 23);
portable!(f64, 2, u64, 1023, 52);
