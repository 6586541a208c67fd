//! Initial vectors: the centers of clusters of the rows, computed for each class separately (k-means, Lloyd 1982), so that
//! rare classes have their share of vectors.
//!
//! Centers are better initial vectors than rows: they represent their clusters, and outliers, which a reduction by norm
//! favors, have no weight. A sample of each class and a few rounds are enough, since the vectors are optimized afterwards.
//!
//! Invariant: no class has more centers than rows. Cost: rounds x sample x (centers of the class) x d.

use ndarray::Array2;

use crate::context::{Context, StopReason};
use crate::data::{Rows, rounded};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, gram};
use crate::memory::{TryToVec, try_vec, try_with_capacity, try_zeros};
use crate::random::Random;

/// Maximum number of rounds.
const MAX_ROUNDS: usize = 10;
/// Number of sampled rows for each center.
const ROWS_PER_CENTRE: usize = 100;

/// Number of multiplications between two checks of the monitor.
const WORK_PER_CHECK: usize = 100_000_000;

/// Returns `count` centers, (count, d), class after class; `groups` has the class of each row, or is None for one class. If
/// the monitor stops the work, the current centers are returned.
///
/// # Errors
/// [`Error::Param`] unless `count` is between 1 and the number of rows, [`Error::Shape`] unless there is one group for
/// each row.
pub fn centres(
    rows: Rows<'_>,
    groups: Option<&[usize]>,
    count: usize,
    seed: u64,
    ctx: Context<'_>,
) -> Result<Array2<f32>> {
    let (n, d) = (rows.rows(), rows.cols());
    let rule = format!("between 1 and {n}, the number of rows");
    Error::check_param((1..=n).contains(&count), "n_vectors", count, rule)?;
    if let Some(groups) = groups {
        Error::check_len("groups (one for each row)", n, groups.len())?;
    }
    let group_count = groups.map_or(1, |g| g.iter().max().map_or(1, |m| m + 1));
    let mut members = vec![Vec::new(); group_count];
    for i in 0..n {
        members[groups.map_or(0, |g| g[i])].push(i);
    }
    // The classes receive one center each in turn.
    let mut shares = vec![0; group_count];
    let mut remaining = count;
    while remaining > 0 {
        for (share, members) in shares.iter_mut().zip(&members) {
            if remaining > 0 && *share < members.len() {
                *share += 1;
                remaining -= 1;
            }
        }
    }
    let mut random = Random::new(seed);
    let mut out = try_with_capacity("cluster centers", count * d)?;
    for (members, &share) in members.iter().zip(&shares) {
        let sample: Vec<usize> = random
            .sample(members.len(), members.len().min(share * ROWS_PER_CENTRE))
            .into_iter()
            .map(|i| members[i])
            .collect();
        out.extend(lloyd(rows, &sample, share, ctx)?);
    }
    Ok(Array2::from_shape_vec((count, d), out).expect("every class gave its share"))
}

/// Clusters a sample with Lloyd's algorithm.
fn lloyd(rows: Rows<'_>, sample: &[usize], count: usize, ctx: Context<'_>) -> Result<Vec<f32>> {
    let d = rows.cols();
    let mut points = try_zeros("the rows of clusters", sample.len() * d)?;
    if d == 0 || count == 0 {
        return Ok(Vec::new());
    }
    for (point, &row) in points.chunks_exact_mut(d).zip(sample) {
        rows.for_each_in_row(row, |k, v| point[k] = v);
    }
    // The sample is in random order.
    let mut centres = points[..count * d].try_to_vec()?;
    let block = (WORK_PER_CHECK / (count * d)).clamp(16, 4096);
    'rounds: for round in 0..MAX_ROUNDS {
        let norms: Vec<f64> =
            centres.chunks_exact(d).map(|c| 0.5 * c.iter().map(|v| v * v).sum::<f64>()).collect();
        let (mut sums, mut counts) = (try_vec![0.0; count * d]?, vec![0_usize; count]);
        for points in points.chunks(block * d) {
            if StopReason::from_result(ctx.check("centres", round, MAX_ROUNDS))?.is_some() {
                break 'rounds;
            }
            let some: Rows<'_> = Rows::from_shape((points.len() / d, d), points)?;
            let inner = gram(&Kernel::Linear, some, Rows::from_shape((count, d), &centres)?, ctx.silent())?;
            for (point, inner) in points.chunks_exact(d).zip(inner.rows()) {
                let nearest = (0..count)
                    .min_by(|&a, &b| (norms[a] - inner[a]).total_cmp(&(norms[b] - inner[b])))
                    .unwrap_or(0);
                counts[nearest] += 1;
                for (sum, v) in sums[nearest * d..(nearest + 1) * d].iter_mut().zip(point) {
                    *sum += v;
                }
            }
        }
        let mut moved = false;
        // A center without rows stays.
        for ((centre, sum), &size) in
            centres.chunks_exact_mut(d).zip(sums.chunks_exact(d)).zip(&counts).filter(|(_, size)| **size > 0)
        {
            for (c, s) in centre.iter_mut().zip(sum) {
                let mean = s / size as f64;
                moved |= mean != *c;
                *c = mean;
            }
        }
        if !moved {
            break;
        }
    }
    rounded(&centres)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clouds_are_found_and_rare_classes_have_their_share() {
        let mut random = Random::new(3);
        let middles = [[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]];
        let n = 3000;
        let mut x = Vec::new();
        let groups: Vec<usize> = (0..n).map(|i| usize::from(i % 100 == 0)).collect();
        for i in 0..n {
            let middle = if groups[i] == 1 { middles[2] } else { middles[i % 2] };
            x.extend(middle.iter().map(|m| m + f64::from(random.bell())));
        }
        let rows = Rows::from_shape((n, 2), &x).unwrap();
        let actual = centres(rows, Some(&groups), 4, 0, Context::SEQUENTIAL).unwrap();
        assert_eq!(actual.dim(), (4, 2));
        // Class 0 has rows of both parities but i % 100 == 0 is even: its two centers are the first two middles.
        for middle in &middles[..2] {
            assert!(actual.rows().into_iter().take(2).any(|c| {
                (f64::from(c[0]) - middle[0]).abs() < 0.3 && (f64::from(c[1]) - middle[1]).abs() < 0.3
            }));
        }
        assert!(actual.rows().into_iter().skip(2).all(|c| f64::from(c[1]) > 6.0));
        assert!(centres(rows, None, n + 1, 0, Context::SEQUENTIAL).is_err());
        assert_eq!(centres(rows, None, 7, 0, Context::SEQUENTIAL).unwrap().dim(), (7, 2));
    }
}
