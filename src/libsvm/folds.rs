//! The random folds of LIBSVM's programs: `rand` of the GNU C library after `srand(1)`.
//!
//! LIBSVM shuffles with `rand`, which is never seeded. With the same numbers a cross-validation prints the accuracy of `svm-train`
//! to the last digit. Source: the additive feedback generator of `random_r.c` (r = 31 words, 310 discarded) and
//! `svm_cross_validation`. Every call starts in the same state, so a result does not depend on earlier calls.

/// The random number generator.
pub(super) struct GlibcRandom {
    state: [u32; 31],
    next: usize,
}

impl GlibcRandom {
    /// Returns the generator in the state in which every program starts.
    pub(super) fn new() -> Self {
        let mut state = [0_u32; 31];
        state[0] = 1;
        for i in 1..31 {
            state[i] = (16807 * u64::from(state[i - 1]) % 2_147_483_647) as u32;
        }
        let mut random = Self { state, next: 3 };
        for _ in 0..310 {
            random.draw();
        }
        random
    }

    fn draw(&mut self) -> u32 {
        let (current, previous) = (self.next % 31, (self.next + 28) % 31);
        self.state[current] = self.state[current].wrapping_add(self.state[previous]);
        self.next += 1;
        self.state[current]
    }

    fn shuffle(&mut self, values: &mut [usize]) {
        let n = values.len();
        for i in 0..n {
            values.swap(i, i + (self.draw() >> 1) as usize % (n - i));
        }
    }
}

fn slices(members: &[usize], n_folds: usize) -> impl Iterator<Item = &[usize]> {
    let n = members.len();
    (0..n_folds).map(move |i| &members[i * n / n_folds..(i + 1) * n / n_folds])
}

/// Returns the samples of each fold, without regard to classes.
pub(super) fn plain_folds(n: usize, n_folds: usize, random: &mut GlibcRandom) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..n).collect();
    random.shuffle(&mut order);
    slices(&order, n_folds).map(<[usize]>::to_vec).collect()
}

/// Returns the samples of each fold, with the same share of every class in each.
pub(super) fn stratified_folds(
    of_samples: &[usize],
    n_classes: usize,
    n_folds: usize,
    random: &mut GlibcRandom,
) -> Vec<Vec<usize>> {
    let mut folds = vec![Vec::new(); n_folds];
    let mut members_of = vec![Vec::new(); n_classes];
    for (i, &class) in of_samples.iter().enumerate() {
        members_of[class].push(i);
    }
    for members in &mut members_of {
        random.shuffle(members);
        for (fold, slice) in folds.iter_mut().zip(slices(members, n_folds)) {
            fold.extend(slice);
        }
    }
    folds
}

/// Returns each fold with the members of the others, in their order.
pub(super) fn splits(folds: &[Vec<usize>]) -> impl Iterator<Item = (&[usize], Vec<usize>)> {
    folds.iter().enumerate().map(move |(i, held_out)| {
        let others = folds.iter().enumerate().filter(move |(j, _)| *j != i);
        (held_out.as_slice(), others.flat_map(|(_, fold)| fold.iter().copied()).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::GlibcRandom;

    #[test]
    fn numbers_are_those_of_the_c_library() {
        let mut random = GlibcRandom::new();
        let drawn: Vec<u32> = (0..3).map(|_| random.draw() >> 1).collect();
        assert_eq!(drawn, [1_804_289_383, 846_930_886, 1_681_692_777]);
    }
}
