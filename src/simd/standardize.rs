//! Standardization of dense rows: translation, scale and rounding to the precision of the computation; squared lengths.

use super::{Real, vectorized};

/// Writes (row - center) scale, computed in double precision, for rows as long as the center to lines `stride` apart.
pub(crate) fn standardize<E: Copy + Into<f64>, T: Real>(
    rows: &[&[E]],
    centre: &[f64],
    scale: f64,
    out: &mut [T],
    stride: usize,
) {
    if stride == 0 {
        return;
    }
    // Plain loops, which compilers vectorize.
    vectorized!([E: Copy + Into<f64>, T: Real] (rows: &[&[E]], centre: &[f64], scale: f64, out: &mut [T], stride: usize) {
        let depth = centre.len();
        for (i, row) in rows.iter().enumerate() {
            let (row, out) = (&row[..depth], &mut out[i * stride..][..depth]);
            for k in 0..depth {
                out[k] = T::from_f64((row[k].into() - centre[k]) * scale);
            }
        }
    });
}

/// Number of lines that are summed together.
const LINES_TOGETHER: usize = 8;

/// Computes the squared lengths of lines of `depth` numbers, `stride` apart. Each is summed from its first number to its last in
/// double precision, several lines at a time, since the additions of one sum depend on each other.
pub(crate) fn squared_lengths<T: Real>(lines: &[T], stride: usize, depth: usize, out: &mut [T]) {
    assert!(depth <= stride && lines.len() >= out.len() * stride);
    vectorized!([T: Real] (lines: &[T], stride: usize, depth: usize, out: &mut [T]) {
        let count = out.len();
        let mut first = 0;
        while first < count {
            // If fewer are left, the last lines are summed together with earlier ones again.
            let from = if first + LINES_TOGETHER <= count { first } else { count.saturating_sub(LINES_TOGETHER) };
            let at_once = LINES_TOGETHER.min(count);
            let mut sums = [0.0; LINES_TOGETHER];
            let lines: [&[T]; LINES_TOGETHER] =
                std::array::from_fn(|r| &lines[(from + r.min(at_once - 1)) * stride..][..depth]);
            for k in 0..depth {
                for (sum, line) in sums.iter_mut().zip(&lines) {
                    let v = line[k].to_f64();
                    *sum += v * v;
                }
            }
            for (out, sum) in out[from..from + at_once].iter_mut().zip(sums) {
                *out = T::from_f64(sum);
            }
            first += LINES_TOGETHER;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_equal_those_of_plain_loops() {
        for (count, depth) in [(0, 3), (1, 0), (1, 5), (7, 33), (8, 16), (21, 70)] {
            let stride = depth + 3;
            let rows: Vec<u8> = (0..count * stride).map(|i| (i * 37 % 251) as u8).collect();
            let centre: Vec<f64> = (0..stride).map(|k| 100.0 + (k as f64).sin()).collect();
            let mut lines = vec![0.0_f32; count * stride];
            let of: Vec<&[u8]> = rows.chunks_exact(stride).collect();
            standardize(&of, &centre, 0.5, &mut lines, stride);
            let expected: Vec<f32> = rows
                .iter()
                .enumerate()
                .map(|(at, &v)| ((f64::from(v) - centre[at % stride]) * 0.5) as f32)
                .collect();
            assert_eq!(lines, expected);
            let mut lengths = vec![0.0_f32; count];
            squared_lengths(&lines, stride, depth, &mut lengths);
            for (i, &length) in lengths.iter().enumerate() {
                let line = &lines[i * stride..i * stride + depth];
                let sum: f64 = line.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
                assert_eq!(length, sum as f32);
            }
        }
    }
}
