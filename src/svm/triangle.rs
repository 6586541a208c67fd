//! The factor of the kernel matrix of the free variables, kept as they come and go one at a time.
//!
//! A variable that comes is one more line, by a substitution; where one goes, rotations make the rest a triangle again
//! (Golub and Van Loan 2013, 6.5.4).
//!
//! Invariant: L L' is the matrix of those that are there. Cost: m^2 multiply-adds a change or a solution, for m of them.
//!
//! All allocations are small: at most 48 lines.

/// L of m free variables, its lines `most` apart.
pub(super) struct Triangle {
    lines: Vec<f64>,
    most: usize,
    len: usize,
}

impl Triangle {
    /// Of no variables; at most so many come.
    pub(super) fn new(most: usize) -> Self {
        Self { lines: vec![0.0; most * most], most, len: 0 }
    }

    fn line(&self, k: usize) -> &[f64] {
        &self.lines[k * self.most..][..=k]
    }

    /// One more variable with these kernel values against the present ones, its own with the ridge last. Whether there is
    /// room for it and the matrix stays positive definite; else nothing changes.
    pub(super) fn push(&mut self, values: impl Iterator<Item = f64>) -> bool {
        let m = self.len;
        if m == self.most {
            return false;
        }
        let (above, rest) = self.lines.split_at_mut(m * self.most);
        let line = &mut rest[..=m];
        line.iter_mut().zip(values).for_each(|(to, value)| *to = value);
        for k in 0..m {
            let of = &above[k * self.most..][..=k];
            let known: f64 = dot(&of[..k], &line[..k]);
            line[k] = (line[k] - known) / of[k];
        }
        let square = line[m] - dot(&line[..m], &line[..m]);
        if !(square > 0.0) {
            return false;
        }
        line[m] = square.sqrt();
        self.len = m + 1;
        true
    }

    /// Without the k-th variable; those behind it come one forward.
    pub(super) fn remove(&mut self, k: usize) {
        let most = self.most;
        for i in k + 1..self.len {
            self.lines.copy_within(i * most..=i * most + i, (i - 1) * most);
        }
        self.len -= 1;
        // Line i now has an entry to the right of its diagonal.
        for i in k..self.len {
            let (a, b) = (self.lines[i * most + i], self.lines[i * most + i + 1]);
            let length = a.hypot(b);
            let (cos, sin) = (a / length, b / length);
            for line in self.lines.chunks_exact_mut(most).take(self.len).skip(i) {
                let (x, y) = (line[i], line[i + 1]);
                line[i] = cos * x + sin * y;
                line[i + 1] = cos * y - sin * x;
            }
        }
    }

    /// Solves L L' x = b in place.
    pub(super) fn solve(&self, b: &mut [f64]) {
        for k in 0..self.len {
            let line = self.line(k);
            b[k] = (b[k] - dot(&line[..k], &b[..k])) / line[k];
        }
        for k in (0..self.len).rev() {
            let line = self.line(k);
            let x = b[k] / line[k];
            b[k] = x;
            b[..k].iter_mut().zip(line).for_each(|(to, l)| *to -= x * l);
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; 8];
    for (x, y) in a8.zip(b8) {
        for l in 0..8 {
            sums[l] += x[l] * y[l];
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_comes_and_goes_leaves_the_factor_of_what_is_there(n in 1..40_usize, seed in 0..1000_u64) {
            let mut random = Random::new(seed);
            let x: Vec<[f64; 3]> = (0..n).map(|_| std::array::from_fn(|_| random.normal())).collect();
            let value = |i: usize, j: usize| {
                let squared: f64 = x[i].iter().zip(&x[j]).map(|(a, b)| (a - b).powi(2)).sum();
                (-squared).exp() + if i == j { 1e-3 } else { 0.0 }
            };
            let (mut triangle, mut there) = (Triangle::new(n), Vec::new());
            for i in 0..n {
                prop_assert!(triangle.push(there.iter().chain([&i]).map(|&j| value(i, j))));
                there.push(i);
                if random.uniform() < 0.4 {
                    let k = (random.uniform() * there.len() as f64) as usize;
                    triangle.remove(k);
                    there.remove(k);
                }
            }
            let wanted: Vec<f64> = there.iter().map(|_| random.normal()).collect();
            let mut b: Vec<f64> =
                there.iter().map(|&i| there.iter().zip(&wanted).map(|(&j, w)| value(i, j) * w).sum()).collect();
            triangle.solve(&mut b);
            prop_assert!(b.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-8), "{b:?} {wanted:?}");
        }
    }

    #[test]
    fn what_has_no_room_or_no_factor_stays_out() {
        let mut triangle = Triangle::new(2);
        assert!(triangle.push([4.0].into_iter()));
        // Twice the same variable.
        assert!(!triangle.push([4.0, 4.0].into_iter()));
        assert!(triangle.push([2.0, 4.0].into_iter()));
        assert!(!triangle.push([0.0, 0.0, 1.0].into_iter()));
        let mut b = [8.0, 10.0];
        triangle.solve(&mut b);
        assert!((b[0] - 1.0).abs() < 1e-12 && (b[1] - 2.0).abs() < 1e-12);
    }
}
