//! Register tiles of inner products between bytes, exact in integers: pixels, counts, one-hot columns.
//!
//! One instruction (AVX-512 VNNI) multiplies 64 pairs of bytes, a fused multiply-add in single precision 16; NEON's (`udot`)
//! multiplies 16 instead of 4. Panels therefore hold features in groups of four: in each group the four bytes of one column,
//! then of the next. One factor of AVX-512's instruction is signed: rows of the block hold a - 128, and 128 times the sum of a
//! column is added at the end. NEON's has two unsigned factors, for which the bit that was flipped is flipped again.
//!
//! Sums are exact, so the portable loop gives the same bits. It is slower than single precision, and used by tests and on
//! machines without the instruction.

use super::micro::panel_width;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
use super::{Level, level};

/// Maximum number of features at which squared distances are below 2^31.
pub(crate) const MAX_FEATURES: usize = 16_384;
/// The number that is subtracted from the bytes of a row.
pub(crate) const OFFSET: i32 = 128;
/// Number of features of a group.
pub(crate) const GROUP_SIZE: usize = 4;

/// Returns whether the machine has the instruction that makes bytes faster than single precision.
pub(crate) fn are_fast() -> bool {
    #[cfg(target_arch = "x86_64")]
    return level() == Level::Avx512 && is_x86_feature_detected!("avx512vnni");
    #[cfg(target_arch = "aarch64")]
    return level() == Level::Neon && std::arch::is_aarch64_feature_detected!("dotprod");
    #[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
    return false;
}

/// Rows of bytes minus [`OFFSET`], `stride` apart, a multiple of [`GROUP_SIZE`]; zeros behind the features.
#[derive(Clone, Copy)]
pub(crate) struct ByteRows<'a> {
    pub(crate) values: &'a [i8],
    pub(crate) stride: usize,
    /// Sums of the squared bytes of the rows.
    pub(crate) squares: &'a [i32],
}

/// The columns of a panel.
#[derive(Clone, Copy)]
pub(crate) struct BytePanel<'a> {
    /// `stride` x the panel's width.
    pub(crate) values: &'a [u8],
    /// [`OFFSET`] times the sums of the columns.
    pub(crate) sums: &'a [i32],
    /// Sums of the squared bytes of the columns.
    pub(crate) squares: &'a [i32],
}

/// The number that is computed from an inner product.
#[derive(Clone, Copy)]
pub(crate) enum ByteMeasure {
    /// The factor times the inner product.
    Inner(f32),
    /// The factor times the squared distance.
    SquaredDistance(f32),
}

/// Writes the measure of the rows from `first` of a block and the columns of one panel to the lines of `out`, which have the
/// panel's width.
pub(crate) fn byte_tile(
    rows: ByteRows<'_>,
    first: usize,
    panel: BytePanel<'_>,
    measure: ByteMeasure,
    out: &mut [f32],
) {
    let width = panel_width::<f32>();
    let count = out.len() / width;
    assert!(rows.stride.is_multiple_of(GROUP_SIZE) && panel.values.len() >= rows.stride * width);
    assert!(rows.values.len() >= (first + count) * rows.stride && rows.squares.len() >= first + count);
    assert!(panel.sums.len() == width && panel.squares.len() == width);
    let tile = ByteTile { rows, first, panel, measure, width };
    #[cfg(target_arch = "x86_64")]
    if are_fast() {
        // SAFETY: the machine has the instructions, and the assertions above are what the loop relies on.
        return unsafe { vnni::run(&tile, out) };
    }
    #[cfg(target_arch = "aarch64")]
    if are_fast() {
        // SAFETY: as above.
        return unsafe { dotprod::run(&tile, out) };
    }
    tile.run_portably(out);
}

struct ByteTile<'a> {
    rows: ByteRows<'a>,
    first: usize,
    panel: BytePanel<'a>,
    measure: ByteMeasure,
    width: usize,
}

impl ByteTile<'_> {
    fn run_portably(&self, out: &mut [f32]) {
        let Self { rows: ByteRows { values, stride, squares }, panel, width, .. } = *self;
        for (row, line) in (self.first..).zip(out.chunks_exact_mut(width)) {
            let values = &values[row * stride..(row + 1) * stride];
            for (j, out) in line.iter_mut().enumerate() {
                let mut inner = panel.sums[j];
                for (group, values) in values.chunks_exact(GROUP_SIZE).enumerate() {
                    let column = &panel.values[(group * width + j) * GROUP_SIZE..][..GROUP_SIZE];
                    inner +=
                        values.iter().zip(column).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum::<i32>();
                }
                *out = match self.measure {
                    ByteMeasure::Inner(factor) => factor * inner as f32,
                    ByteMeasure::SquaredDistance(factor) => {
                        factor * (squares[row] + panel.squares[j] - 2 * inner) as f32
                    }
                };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod vnni {
    use super::{ByteMeasure, BytePanel, ByteRows, ByteTile};
    // A list would repeat every intrinsic.
    #[allow(clippy::wildcard_imports)]
    use std::arch::x86_64::*;

    /// # Safety
    /// The machine must have AVX-512 F and VNNI; sizes are as `byte_tile` has checked them.
    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) unsafe fn run(tile: &ByteTile<'_>, out: &mut [f32]) {
        let (count, mut done) = (out.len() / tile.width, 0);
        while done < count {
            let out = out[done * tile.width..].as_mut_ptr();
            // SAFETY: the caller's promise; the rows end at or before the last one.
            done += unsafe {
                match count - done {
                    12.. => rows::<12>(tile, done, out),
                    6.. => rows::<6>(tile, done, out),
                    2.. => rows::<2>(tile, done, out),
                    _ => rows::<1>(tile, done, out),
                }
            };
        }
    }

    /// Computes R rows at once, and returns R.
    ///
    /// # Safety
    /// See [`run`].
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn rows<const R: usize>(tile: &ByteTile<'_>, done: usize, out: *mut f32) -> usize {
        let ByteTile { rows: ByteRows { values, stride, squares }, panel, .. } = *tile;
        let BytePanel { values: columns, sums: offsets, squares: column_squares } = panel;
        let first = tile.first + done;
        // SAFETY: `byte_tile` has checked that rows, panel and output are long enough.
        unsafe {
            let load = |from: &[i32]| {
                let from = from.as_ptr();
                [_mm512_loadu_epi32(from), _mm512_loadu_epi32(from.add(16))]
            };
            let mut sums = [load(offsets); R];
            let a = values.as_ptr().add(first * stride);
            let mut b = columns.as_ptr();
            for k in (0..stride).step_by(super::GROUP_SIZE) {
                let columns = [_mm512_loadu_si512(b.cast()), _mm512_loadu_si512(b.add(64).cast())];
                b = b.add(128);
                for (i, sum) in sums.iter_mut().enumerate() {
                    let four = _mm512_set1_epi32(a.add(i * stride + k).cast::<i32>().read_unaligned());
                    sum[0] = _mm512_dpbusd_epi32(sum[0], columns[0], four);
                    sum[1] = _mm512_dpbusd_epi32(sum[1], columns[1], four);
                }
            }
            let column_squares = load(column_squares);
            for (i, sum) in sums.into_iter().enumerate() {
                for (half, inner) in sum.into_iter().enumerate() {
                    let (pair_sum, factor) = match tile.measure {
                        ByteMeasure::Inner(factor) => (inner, factor),
                        ByteMeasure::SquaredDistance(factor) => {
                            let square = _mm512_set1_epi32(*squares.get_unchecked(first + i));
                            let both = _mm512_add_epi32(square, column_squares[half]);
                            (_mm512_sub_epi32(both, _mm512_add_epi32(inner, inner)), factor)
                        }
                    };
                    let value = _mm512_mul_ps(_mm512_set1_ps(factor), _mm512_cvtepi32_ps(pair_sum));
                    _mm512_storeu_ps(out.add((2 * i + half) * 16), value);
                }
            }
        }
        R
    }
}

#[cfg(target_arch = "aarch64")]
mod dotprod {
    use super::{ByteMeasure, ByteRows, ByteTile, GROUP_SIZE};
    // A list would repeat every intrinsic.
    #[allow(clippy::wildcard_imports)]
    use std::arch::aarch64::*;

    /// Number of bytes of a vector, which holds four groups.
    const BYTES: usize = 16;

    /// Adds the products of four columns' groups with one group of a row. The intrinsic is not stable.
    macro_rules! add_products {
        ($sum:expr, $columns:expr, $row:expr, $group:literal) => {
            std::arch::asm!(
                concat!("udot {sum:v}.4s, {columns:v}.16b, {row:v}.4b[", $group, "]"),
                sum = inout(vreg) $sum,
                columns = in(vreg) $columns,
                row = in(vreg) $row,
                options(pure, nomem, nostack, preserves_flags),
            )
        };
    }

    /// # Safety
    /// The machine must have NEON and its dot products; sizes are as `byte_tile` has checked them.
    #[target_feature(enable = "neon,dotprod")]
    pub(super) unsafe fn run(tile: &ByteTile<'_>, out: &mut [f32]) {
        let (count, mut done) = (out.len() / tile.width, 0);
        while done < count {
            let out = out[done * tile.width..].as_mut_ptr();
            // SAFETY: the caller's promise; the rows end at or before the last one.
            done += unsafe {
                match count - done {
                    8.. => rows::<8>(tile, done, out),
                    2.. => rows::<2>(tile, done, out),
                    _ => rows::<1>(tile, done, out),
                }
            };
        }
    }

    /// Computes R rows at once, and returns R.
    ///
    /// # Safety
    /// See [`run`].
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn rows<const R: usize>(tile: &ByteTile<'_>, done: usize, out: *mut f32) -> usize {
        let ByteTile { rows: ByteRows { values, stride, squares }, panel, .. } = *tile;
        let first = tile.first + done;
        // SAFETY: `byte_tile` has checked that rows, panel and output are long enough; the panel has 8 columns, and a row
        // whole groups.
        unsafe {
            let mut sums = [[vdupq_n_u32(0); 2]; R];
            let a = values.as_ptr().cast::<u8>().add(first * stride);
            let mut b = panel.values.as_ptr();
            let mut k = 0;
            while k + BYTES <= stride {
                let mut row = [vdupq_n_u8(0); R];
                for i in 0..R {
                    row[i] = veorq_u8(vld1q_u8(a.add(i * stride + k)), vdupq_n_u8(0x80));
                }
                macro_rules! group {
                    ($group:literal) => {
                        let columns = [vld1q_u8(b), vld1q_u8(b.add(BYTES))];
                        b = b.add(2 * BYTES);
                        for i in 0..R {
                            add_products!(sums[i][0], columns[0], row[i], $group);
                            add_products!(sums[i][1], columns[1], row[i], $group);
                        }
                    };
                }
                group!(0);
                group!(1);
                group!(2);
                group!(3);
                k += BYTES;
            }
            while k < stride {
                let columns = [vld1q_u8(b), vld1q_u8(b.add(BYTES))];
                b = b.add(2 * BYTES);
                for i in 0..R {
                    let four = a.add(i * stride + k).cast::<u32>().read_unaligned();
                    let row = vreinterpretq_u8_u32(vdupq_n_u32(four ^ 0x8080_8080));
                    add_products!(sums[i][0], columns[0], row, 0);
                    add_products!(sums[i][1], columns[1], row, 0);
                }
                k += GROUP_SIZE;
            }
            for i in 0..R {
                for half in 0..2 {
                    let inner = vreinterpretq_s32_u32(sums[i][half]);
                    let (pair_sum, factor) = match tile.measure {
                        ByteMeasure::Inner(factor) => (inner, factor),
                        ByteMeasure::SquaredDistance(factor) => {
                            let column_squares = vld1q_s32(panel.squares.as_ptr().add(4 * half));
                            let both =
                                vaddq_s32(vdupq_n_s32(*squares.get_unchecked(first + i)), column_squares);
                            (vsubq_s32(both, vaddq_s32(inner, inner)), factor)
                        }
                    };
                    let value = vmulq_n_f32(vcvtq_f32_s32(pair_sum), factor);
                    vst1q_f32(out.add((2 * i + half) * 4), value);
                }
            }
        }
        R
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Both loops give exactly the products and distances of integers.
        #[test]
        fn integers_stay_integers(
            (rows, features, seed) in (1_usize..30, 1_usize..90, 0_u64..1000)
        ) {
            let width = panel_width::<f32>();
            let stride = features.next_multiple_of(GROUP_SIZE);
            let mut random = crate::random::Random::new(seed);
            let mut byte = || (random.below(256)) as u8;
            let a: Vec<Vec<u8>> = (0..rows).map(|_| (0..features).map(|_| byte()).collect()).collect();
            let b: Vec<Vec<u8>> = (0..width).map(|_| (0..features).map(|_| byte()).collect()).collect();
            let mut values = vec![0_i8; rows * stride];
            for (row, a) in a.iter().enumerate() {
                for (k, &v) in a.iter().enumerate() {
                    values[row * stride + k] = (i32::from(v) - OFFSET) as i8;
                }
            }
            let mut panel = vec![0_u8; stride * width];
            for (j, b) in b.iter().enumerate() {
                for (k, &v) in b.iter().enumerate() {
                    panel[(k / GROUP_SIZE * width + j) * GROUP_SIZE + k % GROUP_SIZE] = v;
                }
            }
            let square = |v: &Vec<u8>| v.iter().map(|&v| i32::from(v) * i32::from(v)).sum::<i32>();
            let squares: Vec<i32> = a.iter().map(square).collect();
            let of_columns: Vec<i32> = b.iter().map(square).collect();
            let sums: Vec<i32> = b.iter().map(|b| OFFSET * b.iter().map(|&v| i32::from(v)).sum::<i32>()).collect();
            let rows_of = ByteRows { values: &values, stride, squares: &squares };
            let panel = BytePanel { values: &panel, sums: &sums, squares: &of_columns };
            for first in [0, rows / 2] {
                for measure in [ByteMeasure::Inner(0.5), ByteMeasure::SquaredDistance(-0.25)] {
                    let mut out = vec![0.0_f32; (rows - first) * width];
                    let mut portable = out.clone();
                    byte_tile(rows_of, first, panel, measure, &mut out);
                    ByteTile { rows: rows_of, first, panel, measure, width }.run_portably(&mut portable);
                    prop_assert_eq!(&out, &portable);
                    for (i, line) in out.chunks_exact(width).enumerate() {
                        for (j, &value) in line.iter().enumerate() {
                            let pairs = || a[first + i].iter().zip(&b[j]).map(|(&a, &b)| (i32::from(a), i32::from(b)));
                            let exact = match measure {
                                ByteMeasure::Inner(f) => f * pairs().map(|(a, b)| a * b).sum::<i32>() as f32,
                                ByteMeasure::SquaredDistance(f) => f * pairs().map(|(a, b)| (a - b) * (a - b)).sum::<i32>() as f32,
                            };
                            prop_assert_eq!(value, exact);
                        }
                    }
                }
            }
        }
    }
}
