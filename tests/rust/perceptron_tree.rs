//! Trees have the same bits for any number of threads and any pieces of the stream, and fail with the same error.

use ndarray::{Array2, s};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use svmarrow::Error;
use svmarrow::context::{Context, Interruption, Monitor, Progress};
use svmarrow::data::{OwnedRows, Rows};
use svmarrow::kernels::Kernel;
use svmarrow::perceptron::tree::{Strategy, TreeParams, TreeState, partial_fit};
use svmarrow::random::Random;

const THREADS: [usize; 4] = [1, 2, 3, 8];

/// Noisy classes of clusters, in which some rows occur again; `entries` of `columns` features are not zero.
fn stream(n: usize, columns: usize, entries: usize, classes: usize, seed: u64) -> (Array2<f64>, Vec<usize>) {
    let mut random = Random::new(seed);
    let centers: Vec<Vec<(usize, f64)>> = (0..4 * classes)
        .map(|_| (0..entries).map(|_| (random.below(columns as u64) as usize, random.normal())).collect())
        .collect();
    let mut x = Array2::zeros((n, columns));
    let mut labels = Vec::with_capacity(n);
    for i in 0..n {
        if i > 20 && random.uniform() < 0.15 {
            let earlier = random.below(i as u64) as usize;
            let row = x.row(earlier).to_owned();
            x.row_mut(i).assign(&row);
            labels.push(labels[earlier]);
            continue;
        }
        let cluster = random.below(centers.len() as u64) as usize;
        for &(k, value) in &centers[cluster] {
            x[[i, k]] = value + 0.8 * random.normal();
        }
        let noise = random.uniform() < 0.1;
        labels.push(if noise { random.below(classes as u64) as usize } else { cluster % classes });
    }
    (x, labels)
}

fn csr(x: &Array2<f64>) -> OwnedRows {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in x.rows() {
        for (k, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            indices.push(k as i64);
            values.push(value as f32);
        }
        indptr.push(indices.len() as i64);
    }
    OwnedRows::from_csr(indptr, indices, values, x.ncols()).unwrap()
}

/// Returns the tree and the mistakes of a stream in pieces, on a number of threads.
fn grown(
    params: &TreeParams,
    rows: Rows<'_>,
    labels: &[usize],
    pieces: &[usize],
    threads: usize,
) -> (TreeState, Vec<u64>) {
    let outputs = if params.classes == 2 { 1 } else { params.classes };
    let mut state = TreeState::new(rows.reborrow(), outputs, 17);
    let (mut mistakes, mut first) = (Vec::new(), 0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    for &end in pieces.iter().chain([&labels.len()]) {
        let piece = rows.reborrow().slice(first..end);
        let (next, wrong) = pool
            .install(|| partial_fit(params, &state, piece, &labels[first..end], Context::default()))
            .unwrap();
        mistakes.extend(wrong.iter().map(|row| row + first as u64));
        (state, first) = (next, end);
    }
    (state, mistakes)
}

/// Compares trees on all numbers of threads with that of one thread; returns it.
fn check(params: &TreeParams, rows: Rows<'_>, labels: &[usize], pieces: &[usize]) -> TreeState {
    assert!(params.uses_threads(&rows.reborrow().slice(0..pieces.first().copied().unwrap_or(labels.len()))));
    let (expected, mistakes) = grown(params, rows.reborrow(), labels, &[], 1);
    for threads in THREADS {
        for pieces in [&[], pieces] {
            let (actual, wrong) = grown(params, rows.reborrow(), labels, pieces, threads);
            assert!(actual == expected, "{threads} threads, pieces {pieces:?}, {params:?}");
            assert_eq!(wrong, mistakes, "{threads} threads, pieces {pieces:?}, {params:?}");
            assert_eq!(actual.random, expected.random);
        }
    }
    expected
}

fn settings(strategy: &str, classes: usize, budget: usize, sample: usize) -> TreeParams {
    let strategy = Strategy::from_name(strategy).unwrap();
    let mut params = TreeParams::new(Kernel::Rbf { gamma: 0.02 }, classes, strategy);
    (params.budget, params.child_budget, params.sample, params.draws) = (budget, budget / 2, sample, 5);
    params
}

#[test]
fn trees_of_dense_rows_do_not_depend_on_the_threads() {
    for (i, strategy) in
        ["wpq", "pls-opts", "rndw-rnds", "zpq", "bal-inds", "ent-opts"].into_iter().enumerate()
    {
        let classes = 2 + i % 3;
        let (x, labels) = stream(3000, 160, 12, classes, i as u64);
        let params = settings(strategy, classes, 25, [40, 60, 300][i % 3]);
        let leaves = if i % 2 == 0 {
            check(&params, Rows::try_from(&x).unwrap(), &labels, &[2700])
        } else {
            check(&params, Rows::try_from(&x.mapv(|v| v as f32)).unwrap(), &labels, &[2800])
        };
        assert!(leaves.kinds.len() > 15, "{strategy} {}", leaves.kinds.len());
    }
}

#[test]
fn trees_of_sparse_rows_do_not_depend_on_the_threads() {
    // The many columns are counted as work, so that short pieces use threads.
    let (x, labels) = stream(3000, 3000, 8, 3, 5);
    let rows = csr(&x);
    for (strategy, budget) in [("wpq", 12), ("bal-rnds", 12), ("zpq", 20)] {
        let state = check(&settings(strategy, 3, budget, 50), rows.view(), &labels, &[400, 1700]);
        assert!(state.kinds.len() > 15, "{strategy} {}", state.kinds.len());
    }
}

#[test]
fn full_trees_and_leaves_that_cannot_be_split_do_not_depend_on_the_threads() {
    let (x, labels) = stream(3000, 160, 12, 3, 8);
    let rows = Rows::try_from(&x).unwrap();
    for max_leaves in [1, 2, 5, 12] {
        let mut params = settings("wpq", 3, 25, 40);
        params.max_leaves = max_leaves;
        let state = check(&params, rows.reborrow(), &labels, &[2700]);
        assert_eq!(state.kinds.len(), 2 * max_leaves - 1);
    }
    // A sample of two rows, which are often equal.
    let (mut x, labels) = (x, labels);
    for i in (0..3000).filter(|i| i % 5 != 0) {
        let row = x.slice(s![0, ..]).to_owned();
        x.row_mut(i).assign(&row);
    }
    let params = settings("ent-opts", 3, 25, 2);
    check(&params, Rows::try_from(&x).unwrap(), &labels, &[2700]);
}

#[test]
fn errors_are_those_of_the_first_row() {
    let (mut x, labels) = stream(3000, 160, 12, 2, 9);
    let mut params = settings("wpq", 2, 25, 40);
    params.kernel = Kernel::Polynomial { degree: 8, gamma: 1.0, coef0: 1.0 };
    for row in [2900, 1777, 2111] {
        x.row_mut(row).fill(1e60);
        let rows = Rows::try_from(&x).unwrap();
        let messages = THREADS.map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let state = TreeState::new(rows.reborrow(), 1, 0);
            let result =
                pool.install(|| partial_fit(&params, &state, rows.reborrow(), &labels, Context::default()));
            result.err().map(|error| error.to_string())
        });
        assert!(messages.iter().all(|message| message.is_some() && *message == messages[0]), "{messages:?}");
    }
}

/// Asks for a stop after some looks.
struct StopAt(AtomicU64);

impl Monitor for StopAt {
    fn tick(&self, _: &Progress) -> ControlFlow<Interruption> {
        if self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err() {
            return ControlFlow::Break(Interruption::Interrupted);
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn a_stop_on_any_thread_ends_the_stream() {
    let (x, labels) = stream(3000, 160, 12, 2, 10);
    let params = settings("wpq", 2, 25, 40);
    let rows = Rows::try_from(&x).unwrap();
    for looks in [0, 1, 2, 4] {
        for threads in [2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let monitor = StopAt(AtomicU64::new(looks));
            let state = TreeState::new(rows.reborrow(), 1, 0);
            let ctx = Context::default().with_monitor(&monitor);
            let result = pool.install(|| partial_fit(&params, &state, rows.reborrow(), &labels, ctx));
            assert!(matches!(result, Err(Error::Stopped(Interruption::Interrupted))), "{looks} {threads}");
        }
    }
}
