//! NaN and infinities in rows are refused by every function that computes kernel values: `min` and `max` in the formulas of
//! kernels would turn them into valid values.

use crate::reference::changed;
use ndarray::Array2;
use svmarrow::Error;
use svmarrow::context::Context;
use svmarrow::data::{CsrView, IndexSlice, Rows};
use svmarrow::expansion::ExpansionView;
use svmarrow::kernels::{Evaluator, Kernel, Smoothness, gram, gram_symmetric};
use svmarrow::least_squares::{self, Problem, low_rank};
use svmarrow::matching_pursuit::KernelFunctions;
use svmarrow::svm::{
    Classification, OneClass, Regression, RegressionLoss, SvmParams, fit_classifier, fit_one_class,
    fit_regression,
};

const N: usize = 24;
const D: usize = 5;
const BAD_ROW: usize = 17;
const NOT_FINITE: [f64; 2] = [f64::NAN, f64::INFINITY];

fn kernels() -> Vec<Kernel> {
    let matern = |smoothness| Kernel::Matern { smoothness, gamma: 0.5 };
    vec![
        Kernel::Linear,
        Kernel::Polynomial { degree: 3, gamma: 0.3, coef0: 1.0 },
        Kernel::Rbf { gamma: 0.5 },
        Kernel::Sigmoid { gamma: 0.2, coef0: 0.1 },
        Kernel::Laplacian { gamma: 0.5 },
        Kernel::ChiSquared { gamma: 0.5 },
        matern(Smoothness::Half),
        matern(Smoothness::ThreeHalves),
        matern(Smoothness::FiveHalves),
    ]
}

fn numbers() -> Vec<f64> {
    (0..N * D).map(|i| 0.1 + ((i * 37) % 23) as f64 / 10.0).collect()
}

/// Calls `check` for rows with one of some numbers that are not finite, dense in both precisions and sparse.
fn for_each_rows(numbers_of_rows: &[f64], check: impl Fn(Rows<'_>, &str)) {
    for &bad in numbers_of_rows {
        let mut values = numbers();
        values[BAD_ROW * D + 2] = bad;
        let single: Vec<f32> = values.iter().map(|v| *v as f32).collect();
        let indptr: Vec<i32> = (0..=N).map(|i| (i * D) as i32).collect();
        let indices: Vec<i32> = (0..N * D).map(|i| (i % D) as i32).collect();
        let csr = CsrView::new(IndexSlice::I32(&indptr), IndexSlice::I32(&indices), &values, D).unwrap();
        check(Rows::from_shape((N, D), &values).unwrap(), &format!("dense {bad}"));
        check(Rows::from_shape((N, D), &single).unwrap(), &format!("single {bad}"));
        check(csr.into(), &format!("sparse {bad}"));
    }
}

fn assert_refused<T>(result: Result<T, Error>, what: &str) {
    match result {
        Err(Error::NotFinite { row: BAD_ROW, .. }) => {}
        // A kernel's domain excludes them by name.
        Err(Error::Param { .. }) if what.contains("ChiSquared") => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what}: accepted"),
    }
}

#[test]
fn kernel_matrices_refuse_them() {
    let good = numbers();
    let good = Rows::from_shape((N, D), &good).unwrap();
    for kernel in kernels() {
        for_each_rows(&NOT_FINITE, |x, form| {
            assert_refused(gram(&kernel, x, good, Context::SEQUENTIAL), &format!("X {form} {kernel:?}"));
            assert_refused(gram(&kernel, good, x, Context::SEQUENTIAL), &format!("Z {form} {kernel:?}"));
            assert_refused(gram_symmetric(&kernel, x, Context::SEQUENTIAL), &format!("{form} {kernel:?}"));
        });
    }
}

#[test]
fn fits_refuse_them() {
    let labels: Vec<usize> = (0..N).map(|i| i % 2).collect();
    let targets: Vec<f64> = (0..N).map(|i| (i % 7) as f64).collect();
    let columns = Array2::from_shape_fn((N, 1), |(i, _)| targets[i]);
    let weights = vec![1.0; N];
    let params = changed(SvmParams::default(), |p| p.max_iterations = Some(1000));
    let good = numbers();
    let good = Rows::from_shape((N, D), &good).unwrap();
    let ctx = Context::SEQUENTIAL;
    for kernel in kernels() {
        for_each_rows(&NOT_FINITE, |x, form| {
            let what = |name: &str| format!("{name} {form} {kernel:?}");
            let task = Classification::new(&labels, 2, &weights);
            assert_refused(fit_classifier(kernel, x, &task, &params, ctx), &what("classifier"));
            let task = Regression {
                targets: &targets,
                sample_c: &weights,
                loss: RegressionLoss::Epsilon(0.1),
                start: None,
            };
            assert_refused(fit_regression(kernel, x, &task, &params, ctx), &what("regression"));
            let task = OneClass { weights: &weights, nu: 0.5, start: None };
            assert_refused(fit_one_class(kernel, x, &task, &params, ctx), &what("one-class"));
            let problem = Problem {
                kernel: kernel.into(),
                rows: x.reborrow(),
                targets: columns.view(),
                weights: None,
                groups: None,
                fit_intercept: true,
            };
            assert_refused(least_squares::solve(&problem, 1.0, false, ctx), &what("least squares"));
            let mut sums = low_rank::Sums::new(N, 1).unwrap();
            let (fine, wrong) = (good.reborrow(), x.reborrow());
            for (vectors, rows, name) in [(fine, wrong, "low rank"), (wrong, fine, "vectors of low rank")] {
                let piece = low_rank::Piece { rows: rows.reborrow(), targets: columns.view(), weights: None };
                assert_refused(sums.add(kernel, vectors, piece, ctx), &what(name));
            }
            assert_refused(
                KernelFunctions::new(kernel, good.reborrow(), x.reborrow(), None),
                &what("matching pursuit"),
            );
            assert_refused(
                KernelFunctions::new(kernel, x.reborrow(), good.reborrow(), None),
                &what("functions"),
            );
            assert_refused(
                KernelFunctions::new(kernel, good.reborrow(), good.reborrow(), Some(x.reborrow())),
                &what("validation"),
            );
        });
    }
}

#[test]
fn predictions_refuse_them() {
    let good = numbers();
    let good = Rows::from_shape((N, D), &good).unwrap();
    let coefficients = Array2::from_shape_fn((N, 1), |(i, _)| if i % 2 == 0 { 1.0 } else { -0.5 });
    let intercepts = [0.25];
    for kernel in kernels() {
        let expansion = ExpansionView::new(kernel, good, coefficients.view(), &intercepts).unwrap();
        let evaluator = Evaluator::new(&expansion).unwrap();
        for_each_rows(&[f64::NAN, f64::INFINITY], |x, form| {
            assert_refused(evaluator.evaluate(x, Context::SEQUENTIAL), &format!("{form} {kernel:?}"));
        });
    }
}
