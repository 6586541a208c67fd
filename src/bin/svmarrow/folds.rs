//! The random folds of LIBSVM's programs: `rand` of the GNU C library after `srand(1)`.

/// The generator.
pub(crate) struct GlibcRandom {
    state: [u32; 31],
    next: usize,
}

impl GlibcRandom {
    pub(crate) fn new() -> Self {
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
        let (at, before) = (self.next % 31, (self.next + 28) % 31);
        self.state[at] = self.state[at].wrapping_add(self.state[before]);
        self.next += 1;
        self.state[at]
    }

    fn shuffle(&mut self, values: &mut [usize]) {
        let n = values.len();
        for i in 0..n {
            values.swap(i, i + (self.draw() >> 1) as usize % (n - i));
        }
    }
}

/// Labels in LIBSVM's order, and the class of each sample: the order of first occurrence, but 1 before -1.
pub(crate) fn group_classes(y: &[f64]) -> Result<(Vec<i32>, Vec<usize>), String> {
    let mut labels: Vec<i32> = Vec::new();
    let mut classes = Vec::with_capacity(y.len());
    for &target in y {
        let label = target.trunc();
        if label < f64::from(i32::MIN) || label > f64::from(i32::MAX) {
            return Err(format!("the label {target} is not allowed: it must be an integer of 32 bits"));
        }
        let label = label as i32;
        let class = labels.iter().position(|known| *known == label).unwrap_or_else(|| {
            labels.push(label);
            labels.len() - 1
        });
        classes.push(class);
    }
    if labels == [-1, 1] {
        labels.reverse();
        for class in &mut classes {
            *class = 1 - *class;
        }
    }
    Ok((labels, classes))
}

fn pieces(members: &[usize], n_folds: usize) -> impl Iterator<Item = &[usize]> {
    let n = members.len();
    (0..n_folds).map(move |i| &members[i * n / n_folds..(i + 1) * n / n_folds])
}

/// Samples of each fold, without regard to classes.
pub(crate) fn plain_folds(n: usize, n_folds: usize, random: &mut GlibcRandom) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..n).collect();
    random.shuffle(&mut order);
    pieces(&order, n_folds).map(<[usize]>::to_vec).collect()
}

/// Samples of each fold, with the same share of every class in each.
pub(crate) fn stratified_folds(
    classes: &[usize],
    n_classes: usize,
    n_folds: usize,
    random: &mut GlibcRandom,
) -> Vec<Vec<usize>> {
    let mut folds = vec![Vec::new(); n_folds];
    for class in 0..n_classes {
        let mut members: Vec<usize> = (0..classes.len()).filter(|&i| classes[i] == class).collect();
        random.shuffle(&mut members);
        for (fold, piece) in folds.iter_mut().zip(pieces(&members, n_folds)) {
            fold.extend(piece);
        }
    }
    folds
}

#[cfg(test)]
mod tests {
    use super::{GlibcRandom, group_classes};

    #[test]
    fn numbers_are_those_of_the_c_library() {
        let mut random = GlibcRandom::new();
        let drawn: Vec<u32> = (0..3).map(|_| random.draw() >> 1).collect();
        assert_eq!(drawn, [1_804_289_383, 846_930_886, 1_681_692_777]);
    }

    #[test]
    fn classes_are_in_the_order_of_libsvm() {
        let grouped = |y: &[f64]| group_classes(y).unwrap();
        assert_eq!(grouped(&[-1.0, 1.0, -1.0]), (vec![1, -1], vec![1, 0, 1]));
        assert_eq!(grouped(&[3.0, 1.0, 3.0]), (vec![3, 1], vec![0, 1, 0]));
    }
}
