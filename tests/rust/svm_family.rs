//! Kernels that the caller computes, starts of the nu machines, leave-one-out bounds, memory told beforehand.

use crate::reference::{Numbers, blobs, changed, rows};
use std::sync::atomic::{AtomicUsize, Ordering};
use svmarrow::context::{Context, StopReason};
use svmarrow::data::Rows;
use svmarrow::kernels::{Kernel, KernelBlocks, KernelFunction, pair};
use svmarrow::svm::{
    Classification, ClassifierLoss, Coding, OneClass, Regression, RegressionLoss, Start, SvcModel, SvmParams,
    Tuning, estimate_memory, fit_classifier, fit_one_class, fit_regression,
};

const KERNEL: Kernel = Kernel::Rbf { gamma: 0.6 };

/// A kernel of the crate as if it were the caller's, with the largest block that was asked for.
struct Called<'a> {
    rows: Rows<'a>,
    largest: AtomicUsize,
}

impl KernelBlocks for Called<'_> {
    fn fill(&self, rows: &[usize], columns: &[usize], out: &mut [f64]) {
        assert_eq!(out.len(), rows.len() * columns.len());
        self.largest.fetch_max(out.len(), Ordering::Relaxed);
        for (line, &i) in out.chunks_exact_mut(columns.len()).zip(rows) {
            for (value, &t) in line.iter_mut().zip(columns) {
                *value = pair(&KERNEL, self.rows, i, self.rows, t);
            }
        }
    }
}

fn params(cached: bool, cache_bytes: usize, shrinking: bool) -> SvmParams {
    let tuning = Tuning {
        block: 16,
        max_block: 64,
        nested_block: 48,
        max_whole: 0,
        cheap_kernel: if cached { 0 } else { usize::MAX },
        ..Tuning::default()
    };
    changed(SvmParams::default(), |p| {
        p.tolerance = 1e-5;
        p.cache_bytes = cache_bytes;
        p.shrinking = shrinking;
        p.set_tuning(tuning);
    })
}

fn task<'a>(labels: &'a [usize], upper: &'a [f64]) -> Classification<'a> {
    Classification::new(labels, labels.iter().max().unwrap() + 1, upper)
}

#[test]
fn a_kernel_of_the_callers_finds_the_same_optimum() {
    let n = 150;
    let (x, labels) = blobs(n, 3, 3, 2);
    let x = rows(&x, n);
    let upper = vec![1.5; n];
    let built =
        fit_classifier(KERNEL, x, &task(&labels, &upper), &params(false, 0, true), Context::default());
    let built = built.unwrap();
    for (cached, bytes) in [(false, 0), (true, 1 << 20), (true, 0)] {
        for coding in [Coding::OneVsOne, Coding::OneVsRest] {
            let called = Called { rows: x, largest: AtomicUsize::new(0) };
            let kernel = KernelFunction::Blocks(&called);
            let task = Classification { coding, ..task(&labels, &upper) };
            let model =
                fit_classifier(kernel, x, &task, &params(cached, bytes, true), Context::default()).unwrap();
            assert!(model.certificates.iter().all(|c| c.stop == StopReason::Converged));
            if coding == Coding::OneVsOne {
                for (ours, theirs) in model.certificates.iter().zip(&built.certificates) {
                    assert!((ours.dual / theirs.dual - 1.0).abs() < 1e-5);
                }
            }
            assert!(called.largest.into_inner() >= 64, "called for single pairs");
        }
    }
}

#[test]
fn nu_machines_go_on_from_their_solution() {
    let n = 300;
    let (x, labels) = blobs(n, 3, 2, 4);
    let x = rows(&x, n);
    let mut noise = Numbers::new(1);
    let weights: Vec<f64> = (0..n).map(|i| if i % 5 == 0 { 2.0 } else { 1.0 }).collect();
    let targets: Vec<f64> = labels.iter().map(|&c| c as f64 + noise.next()).collect();
    let params = params(false, 0, true);
    let nu_svc = |nu: f64, start: Option<&SvcModel>| {
        let start =
            start.map(|m| Start { support: &m.support, coefficients: m.coefficients.view(), products: None });
        let task = Classification { loss: ClassifierLoss::Nu(nu), start, ..task(&labels, &weights) };
        fit_classifier(KERNEL, x, &task, &params, Context::default()).unwrap()
    };
    let first = nu_svc(0.3, None);
    let second = nu_svc(0.3, Some(&first));
    assert!(10 * second.certificates[0].iterations <= first.certificates[0].iterations);
    assert!((second.intercepts[0] - first.intercepts[0]).abs() < 1e-3);
    let (warm, cold) = (nu_svc(0.35, Some(&first)), nu_svc(0.35, None));
    assert!((warm.certificates[0].dual / cold.certificates[0].dual - 1.0).abs() < 1e-5);

    let one_class = |nu: f64, start: Option<Start<'_>>| {
        let task = OneClass { weights: &weights, nu, start: start.map(Start::reborrow) };
        fit_one_class(KERNEL, x, &task, &params, Context::default()).unwrap()
    };
    let first = one_class(0.3, None);
    let start =
        Some(Start { support: &first.support, coefficients: first.coefficients.view(), products: None });
    assert!(10 * one_class(0.3, start).certificate.iterations <= first.certificate.iterations);
    for nu in [0.1, 0.6] {
        let warm = one_class(nu, start);
        let total: f64 = weights.iter().sum();
        assert!((warm.coefficients.iter().sum::<f64>() - nu * total).abs() < 1e-9 * total);
        assert!((warm.certificate.dual / one_class(nu, None).certificate.dual - 1.0).abs() < 1e-5);
    }

    let nu_svr = |nu: f64, start: Option<Start<'_>>| {
        let (loss, start) = (RegressionLoss::Nu(nu), start.map(Start::reborrow));
        let task = Regression { targets: &targets, sample_c: &weights, loss, start };
        fit_regression(KERNEL, x, &task, &params, Context::default()).unwrap()
    };
    let first = nu_svr(0.4, None);
    let start =
        Some(Start { support: &first.support, coefficients: first.coefficients.view(), products: None });
    for nu in [0.4, 0.2] {
        let (warm, cold) = (nu_svr(nu, start), nu_svr(nu, None));
        assert!((warm.certificate.dual / cold.certificate.dual - 1.0).abs() < 1e-5);
        assert!((warm.rho - cold.rho).abs() < 1e-3);
    }
}

#[test]
fn leave_one_out_bounds_are_never_below_real_refits() {
    let n = 40;
    for seed in 0..4 {
        let (x, mut labels) = blobs(n, 3, 2, seed);
        labels[1] = 1 - labels[1];
        let x = rows(&x, n);
        for (loss, fit_intercept) in [ClassifierLoss::Hinge, ClassifierLoss::SquaredHinge]
            .into_iter()
            .flat_map(|l| [(l, true), (l, false)])
        {
            for c in [0.1, 1.0, 10.0] {
                let upper = vec![c; n];
                let fit = |x: Rows<'_>, labels: &[usize]| {
                    let upper = &upper[..labels.len()];
                    let task = Classification { loss, fit_intercept, classes: 2, ..task(labels, upper) };
                    fit_classifier(KERNEL, x, &task, &params(false, 0, false), Context::SEQUENTIAL).unwrap()
                };
                let estimate = fit(x, &labels).leave_one_out[0];
                let mut wrong = 0;
                for left in 0..n {
                    let rest: Vec<usize> = (0..n).filter(|&i| i != left).collect();
                    let others: Vec<usize> = rest.iter().map(|&i| labels[i]).collect();
                    let part = x.gather(&rest).unwrap();
                    let model = fit(part.view(), &others);
                    let f: f64 = model.intercepts[0]
                        + model
                            .support
                            .iter()
                            .zip(&model.coefficients)
                            .map(|(&i, b)| b * pair(&KERNEL, part.view(), i, x, left))
                            .sum::<f64>();
                    wrong += usize::from((f > 0.0) != (labels[left] == 1));
                }
                assert_eq!(estimate.positive + estimate.negative, n);
                assert_eq!(estimate.bound.is_some(), !fit_intercept);
                if let Some(bound) = estimate.bound {
                    assert!(bound >= wrong, "{loss:?} C {c}: bound {bound}, {wrong} wrong");
                }
                if estimate.stable {
                    assert!(estimate.missed + estimate.false_alarms >= wrong, "{loss:?} C {c} {estimate:?}");
                }
            }
        }
    }
}

#[test]
fn memory_is_that_of_the_parts() {
    let n = 2000;
    let (x, _) = blobs(n, 100, 2, 1);
    let x = rows(&x, n);
    let tuning = Tuning { max_whole: 100, ..Tuning::default() };
    let params = changed(SvmParams::default(), |p| {
        p.cache_bytes = 4 << 20;
        p.set_tuning(tuning);
    });
    let estimate = estimate_memory(KERNEL, x, n, &[n], &params, 2).unwrap();
    assert!(estimate.packed >= 4 * 100 * n && estimate.packed < 5 * 100 * n);
    assert!(estimate.packed + estimate.cache <= params.cache_bytes);
    assert!(estimate.least < estimate.packed + estimate.cache + estimate.blocks + estimate.variables);
    let ample =
        estimate_memory(KERNEL, x, n, &[n], &changed(params.clone(), |p| p.cache_bytes = usize::MAX), 2)
            .unwrap();
    assert_eq!(ample.cache, 4 * n * n);
    assert_eq!(estimate_memory(Kernel::Precomputed, x, n, &[n], &params, 2).unwrap().cache, 0);
}
