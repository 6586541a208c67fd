//! Searches against single fits of the same folds.

use crate::reference::{Numbers, changed, rows};
use ndarray::Array2;
use std::sync::Mutex;
use svmarrow::context::{Context, StopReason};
use svmarrow::data::Rows;
use svmarrow::expansion::ExpansionView;
use svmarrow::kernels::{Evaluator, Kernel};
use svmarrow::svm::{
    Classification, Fold, Grid, Point, Regression, RegressionLoss, ResultCallback, SearchTask, SvmParams,
    fit_classifier, fit_regression, search,
};

const KERNEL: Kernel = Kernel::Rbf { gamma: 0.5 };
const COSTS: [f64; 5] = [1.0, 1e3, 1e6, 1e8, 1e10];
const TOLERANCE: f64 = 1e-6;

/// The outputs of every fit.
#[derive(Default)]
struct Outputs(Mutex<Vec<(Point, Array2<f64>)>>);

impl ResultCallback for Outputs {
    fn call(&self, point: Point, outputs: Array2<f64>) {
        self.0.lock().unwrap().push((point, outputs));
    }
}

fn params() -> SvmParams {
    changed(SvmParams::default(), |p| p.tolerance = TOLERANCE)
}

/// Rows in two groups, some of which occur twice with different labels: their coefficients are at their bounds for every C.
fn conflicting(n: usize) -> (Vec<f64>, Vec<usize>) {
    let mut numbers = Numbers::new(5);
    let mut x = Vec::new();
    let mut labels = Vec::new();
    for i in 0..n {
        if i % 10 == 9 {
            x.extend_from_within(2 * (i - 1)..2 * i);
            labels.push(1 - labels[i - 1]);
        } else {
            labels.push(i % 2);
            x.extend([3.0 * (i % 2) as f64 + numbers.next(), numbers.next()]);
        }
    }
    (x, labels)
}

/// Searches the held-out outputs of the first rows' fits for every C, and compares them with those of `fit`.
fn compare(
    x: Rows<'_>,
    task: &SearchTask<'_>,
    trained: usize,
    costs: &[f64],
    fit: impl Fn(&[f64]) -> (Vec<usize>, Array2<f64>, Vec<f64>, StopReason),
) {
    let order: Vec<usize> = (0..x.rows()).collect();
    let weights = vec![1.0; trained];
    let folds = [Fold { train: &order[..trained], weights: &weights, test: &order[trained..] }];
    let (kernels, wanted) = ([KERNEL.into()], Array2::from_elem((1, costs.len()), true));
    let grid = Grid { kernels: &kernels, costs, points: wanted.view(), folds: &folds };
    let found = Outputs::default();
    assert_eq!(search(x, task, &grid, &params(), &found, Context::SEQUENTIAL).unwrap(), None);
    let found = found.0.into_inner().unwrap();
    assert_eq!(found.len(), costs.len());
    for (point, outputs) in found {
        let cost = costs[point.cost];
        let (support, coefficients, intercepts, stop) = fit(&vec![cost; trained]);
        // Rounding of outputs of this size may exceed the tolerance; then a machine has stalled at it.
        let ends = [point.stop, stop];
        assert!(
            ends.iter().all(|end| matches!(end, StopReason::Converged | StopReason::Stalled)),
            "C={cost}: {ends:?}"
        );
        let vectors = x.gather(&support).unwrap();
        let expansion = ExpansionView::new(KERNEL, vectors.view(), coefficients.view(), &intercepts).unwrap();
        let test = x.slice(trained..x.rows());
        let expected = Evaluator::new(&expansion).unwrap().evaluate(test, Context::SEQUENTIAL).unwrap();
        for (f, expected) in outputs.iter().zip(&expected) {
            assert!((f - expected).abs() < 1e-3 * (1.0 + expected.abs()), "C={cost}: {f} {expected}");
        }
    }
}

/// A machine of one block, and one that is solved in rounds, which would take minutes for the larger costs.
#[test]
fn held_out_outputs_of_large_costs_are_those_of_single_fits() {
    for (n, trained, costs) in [(60, 45, &COSTS[..]), (1640, 1600, &COSTS[..1])] {
        let (x, labels) = conflicting(n);
        let (x, ones) = (rows(&x, n), vec![1.0; n]);
        let task = SearchTask::Classes(Classification::new(&labels, 2, &ones));
        compare(x, &task, trained, costs, |sample_c| {
            let task = Classification::new(&labels[..trained], 2, sample_c);
            let model =
                fit_classifier(KERNEL, x.slice(0..trained), &task, &params(), Context::SEQUENTIAL).unwrap();
            let stop = model.certificates[0].stop;
            (model.support, model.coefficients, model.intercepts, stop)
        });
    }
}

#[test]
fn held_out_outputs_of_regressions_with_large_costs_are_those_of_single_fits() {
    let (n, trained) = (60, 45);
    let (x, labels) = conflicting(n);
    let targets: Vec<f64> =
        x.chunks_exact(2).zip(&labels).map(|(x, &label)| (2.0 * x[0]).sin() + 0.3 * label as f64).collect();
    let (x, ones) = (rows(&x, n), vec![1.0; n]);
    let loss = RegressionLoss::Epsilon(0.1);
    let task = Regression { targets: &targets, sample_c: &ones, loss, start: None };
    compare(x, &SearchTask::Numbers(task), trained, &COSTS, |sample_c| {
        let task = Regression { targets: &targets[..trained], sample_c, loss, start: None };
        let model =
            fit_regression(KERNEL, x.slice(0..trained), &task, &params(), Context::SEQUENTIAL).unwrap();
        (model.support, model.coefficients, vec![model.intercept], model.certificate.stop)
    });
}
