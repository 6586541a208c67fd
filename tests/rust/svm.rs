//! The solver against the naive oracle and its own invariants, crossed with every switch.

use crate::reference::{blobs, changed, gram, matrix, rows, svc_dual};
use ndarray::{Array2, Axis, s};
use std::ops::ControlFlow;
use svmarrow::context::{Budget, Context, Interruption, Monitor, Progress, Silent, StopReason};
use svmarrow::data::{CsrView, IndexSlice, Rows};
use svmarrow::expansion::ExpansionView;
use svmarrow::kernels::{Evaluator, Kernel, Smoothness};
use svmarrow::svm::{
    Classification, ClassifierLoss, Coding, OneClass, Regression, RegressionLoss, Start, SvcModel, SvmParams,
    Tuning, fit_classifier, fit_one_class, fit_regression,
};

const KERNELS: [Kernel; 6] = [
    Kernel::Linear,
    Kernel::Polynomial { degree: 2, gamma: 0.5, coef0: 1.0 },
    Kernel::Rbf { gamma: 0.5 },
    Kernel::Laplacian { gamma: 0.4 },
    Kernel::ChiSquared { gamma: 0.6 },
    Kernel::Matern { smoothness: Smoothness::ThreeHalves, gamma: 0.6 },
];

/// Small blocks, so that a small problem goes through every part of the solver.
fn params(shrinking: bool, cached: bool, cache_bytes: usize) -> SvmParams {
    let tuning = Tuning {
        block: 16,
        max_block: 64,
        nested_block: 48,
        max_whole: 0,
        cheap_kernel: if cached { 0 } else { usize::MAX },
        ..Tuning::default()
    };
    changed(SvmParams::default(), |p| {
        p.tolerance = 1e-4;
        p.shrinking = shrinking;
        p.cache_bytes = cache_bytes;
        p.set_tuning(tuning);
    })
}

fn fit(
    kernel: Kernel,
    x: Rows<'_>,
    labels: &[usize],
    upper: &[f64],
    coding: Coding,
    params: &SvmParams,
    ctx: Context<'_>,
) -> SvcModel {
    fit_classifier(kernel, x, &task(labels, upper, coding), params, ctx.silent()).unwrap()
}

fn task<'a>(labels: &'a [usize], upper: &'a [f64], coding: Coding<'a>) -> Classification<'a> {
    Classification { coding, ..Classification::new(labels, labels.iter().max().unwrap() + 1, upper) }
}

#[test]
fn the_optimum_is_the_oracles_whatever_the_switches() {
    let n = 150;
    let (x, labels) = blobs(n, 4, 2, 1);
    let upper: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { 0.5 } else { 2.0 }).collect();
    let positive: Vec<bool> = labels.iter().map(|&c| c == 1).collect();
    let single: Vec<f32> = x.iter().map(|&v| v as f32).collect();
    let dense: Rows<'_> = rows(&x, n);
    let indptr: Vec<i64> = (0..=n as i64).map(|i| i * 4).collect();
    let indices: Vec<i32> = (0..n).flat_map(|_| 0..4).collect();
    let sparse: Rows<'_> =
        CsrView::new(IndexSlice::I64(&indptr), IndexSlice::I32(&indices), &x, 4).unwrap().into();
    for kernel in KERNELS {
        let expected = svc_dual(&gram(&kernel, dense, dense), &positive, &upper);
        for rows in [dense, sparse, Rows::from_shape((n, 4), &single).unwrap()] {
            for shrinking in [false, true] {
                for (cached, bytes) in [(false, 0), (true, 1 << 20), (true, 0)] {
                    for ctx in [Context::SEQUENTIAL, Context::default()] {
                        let params = params(shrinking, cached, bytes);
                        let model = fit(kernel, rows, &labels, &upper, Coding::OneVsOne, &params, ctx);
                        let certificate = model.certificates[0];
                        let what =
                            format!("{kernel:?} shrinking {shrinking} cached {cached} {bytes} {ctx:?}");
                        assert_eq!(certificate.stop, StopReason::Converged, "{what}");
                        assert!(
                            (certificate.dual / expected - 1.0).abs() < 1e-5,
                            "{what}: {} {expected}",
                            certificate.dual
                        );
                        assert!(certificate.violation <= params.tolerance, "{what}");
                        assert!(certificate.gap >= -1e-6 * expected, "{what}");
                        assert!(certificate.gap <= 1e-2 * expected, "{what}: gap {}", certificate.gap);
                        let sum: f64 = model.coefficients.iter().sum();
                        assert!(sum.abs() < 1e-9, "{what}: {sum}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_certificate_is_that_of_the_expansion() {
    let n = 400;
    let (x, labels) = blobs(n, 3, 2, 5);
    let upper = vec![1.5; n];
    let kernel = Kernel::Rbf { gamma: 0.7 };
    let model = fit(
        kernel,
        rows(&x, n),
        &labels,
        &upper,
        Coding::OneVsOne,
        &params(true, false, 0),
        Context::default(),
    );
    let vectors = rows(&x, n).gather(&model.support).unwrap();
    let expansion =
        ExpansionView::new(kernel, vectors.view(), model.coefficients.view(), &model.intercepts).unwrap();
    let f = Evaluator::new(&expansion).unwrap().evaluate(rows(&x, n), Context::SEQUENTIAL).unwrap();
    let loss: f64 =
        f.iter().zip(&labels).map(|(f, &c)| 1.5 * (1.0 - if c == 1 { *f } else { -f }).max(0.0)).sum();
    let k = gram(&kernel, vectors.view(), vectors.view());
    let m = model.support.len();
    let norm: f64 = (0..m)
        .map(|i| {
            (0..m)
                .map(|j| model.coefficients[[i, 0]] * model.coefficients[[j, 0]] * k[i * m + j])
                .sum::<f64>()
        })
        .sum();
    let certificate = model.certificates[0];
    assert!((certificate.primal - 0.5 * norm - loss).abs() < 1e-3 * certificate.primal);
    assert_eq!(certificate.support, m);
    let at_bound = model.coefficients.iter().filter(|c| c.abs() == 1.5).count();
    assert_eq!(certificate.bounded, at_bound);
    assert!(model.effort.kernel_values > 0);
}

#[test]
fn machines_of_a_multiclass_model_are_the_binary_machines() {
    let (n, classes) = (240, 4);
    let (x, labels) = blobs(n, 5, classes, 3);
    let upper = vec![1.0; n];
    let kernel = Kernel::Rbf { gamma: 0.3 };
    for cached in [false, true] {
        let params = params(true, cached, 40 * n * 4);
        let ovo = fit(kernel, rows(&x, n), &labels, &upper, Coding::OneVsOne, &params, Context::default());
        let mut machine = 0;
        for a in 0..classes {
            for b in a + 1..classes {
                let used: Vec<usize> = (0..n).filter(|&i| labels[i] == a || labels[i] == b).collect();
                let positive: Vec<bool> = used.iter().map(|&i| labels[i] == a).collect();
                let part = rows(&x, n).gather(&used).unwrap();
                let expected =
                    svc_dual(&gram(&kernel, part.view(), part.view()), &positive, &vec![1.0; used.len()]);
                assert!((ovo.certificates[machine].dual / expected - 1.0).abs() < 1e-5);
                machine += 1;
            }
        }
        assert_eq!(ovo.intercepts.len(), machine);
        let ovr = fit(kernel, rows(&x, n), &labels, &upper, Coding::OneVsRest, &params, Context::default());
        let k = gram(&kernel, rows(&x, n), rows(&x, n));
        for j in 0..classes {
            let positive: Vec<bool> = labels.iter().map(|&c| c == j).collect();
            let expected = svc_dual(&k, &positive, &upper);
            assert!((ovr.certificates[j].dual / expected - 1.0).abs() < 1e-5);
        }
        assert!(ovo.support.windows(2).all(|w| (labels[w[0]], w[0]) < (labels[w[1]], w[1])));
        assert_eq!(ovo.class_counts.iter().sum::<usize>(), ovo.support.len());
    }
}

#[test]
fn the_model_does_not_depend_on_threads() {
    let n = 900;
    let (x, labels) = blobs(n, 6, 3, 9);
    for cached in [false, true] {
        let params = params(true, cached, 1 << 20);
        let one = |ctx| {
            fit(
                Kernel::Rbf { gamma: 0.2 },
                rows(&x, n),
                &labels,
                &vec![3.0; n],
                Coding::OneVsOne,
                &params,
                ctx,
            )
        };
        let (a, b) = (one(Context::SEQUENTIAL), one(Context::default()));
        assert_eq!(a.support, b.support);
        assert_eq!(a.coefficients, b.coefficients);
        assert_eq!(a.intercepts, b.intercepts);
    }
}

#[test]
fn precomputed_is_the_kernel_it_was_computed_with() {
    let n = 120;
    let (x, labels) = blobs(n, 3, 2, 4);
    let kernel = Kernel::Rbf { gamma: 0.5 };
    let k = gram(&kernel, rows(&x, n), rows(&x, n));
    let upper = vec![1.0; n];
    let direct = fit(
        kernel,
        rows(&x, n),
        &labels,
        &upper,
        Coding::OneVsOne,
        &params(true, false, 0),
        Context::SEQUENTIAL,
    );
    let given = fit(
        Kernel::Precomputed,
        rows(&k, n),
        &labels,
        &upper,
        Coding::OneVsOne,
        &params(true, true, 1 << 20),
        Context::SEQUENTIAL,
    );
    assert!((direct.certificates[0].dual / given.certificates[0].dual - 1.0).abs() < 1e-5);
}

#[test]
fn degenerate_data_end() {
    let same = vec![1.0; 40];
    let labels: Vec<usize> = (0..20).map(|i| i % 2).collect();
    let upper = vec![1.0; 20];
    for kernel in [Kernel::Rbf { gamma: 1.0 }, Kernel::Linear, Kernel::Sigmoid { gamma: 1.0, coef0: 0.0 }] {
        let model = fit(
            kernel,
            rows(&same, 20),
            &labels,
            &upper,
            Coding::OneVsOne,
            &params(true, false, 0),
            Context::SEQUENTIAL,
        );
        // No row can be told from any other: all are bounded, and b is the middle of its interval.
        assert_eq!(model.certificates[0].bounded, 20);
        assert!(model.intercepts[0].abs() < 1e-9);
    }
    let (x, mut labels) = blobs(60, 3, 2, 8);
    labels.iter_mut().skip(1).for_each(|c| *c = 0);
    labels[0] = 1;
    for c in [1e-9, 1.0, 1e9] {
        for kernel in [
            Kernel::Rbf { gamma: 1e-12 },
            Kernel::Sigmoid { gamma: 3.0, coef0: 1.0 },
            Kernel::Rbf { gamma: 1e6 },
        ] {
            let params = changed(params(true, false, 0), |p| p.max_iterations = Some(200_000));
            let model =
                fit(kernel, rows(&x, 60), &labels, &[c; 60], Coding::OneVsOne, &params, Context::SEQUENTIAL);
            assert!(model.coefficients.iter().chain(&model.intercepts).all(|v| v.is_finite()));
        }
    }
}

#[test]
fn budgets_and_interruptions_leave_a_usable_model() {
    struct After(std::sync::atomic::AtomicU32);
    impl Monitor for After {
        fn tick(&self, _: &Progress) -> ControlFlow<Interruption> {
            if self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) == 0 {
                return ControlFlow::Break(Interruption::Interrupted);
            }
            ControlFlow::Continue(())
        }
    }
    let n = 600;
    let (x, labels) = blobs(n, 4, 2, 2);
    let kernel = Kernel::Rbf { gamma: 0.5 };
    let upper = vec![10.0; n];
    for cached in [false, true] {
        let base = params(true, cached, 1 << 20);
        let stopped = |params: &SvmParams, ctx: Context<'_>| {
            fit_classifier(
                kernel,
                rows(&x, n),
                &task(&labels, &upper, Coding::OneVsOne),
                params,
                ctx.sequential(),
            )
            .unwrap()
        };
        for ticks in [0, 1, 5] {
            let model = stopped(&base, Context::default().with_monitor(&After(ticks.into())));
            assert_eq!(model.certificates[0].stop, StopReason::Interrupted);
            assert!(model.certificates[0].gap > 0.0);
            assert!(model.coefficients.iter().sum::<f64>().abs() < 1e-9);
        }
        let model = stopped(&changed(base.clone(), |p| p.max_iterations = Some(37)), Context::default());
        assert_eq!(
            (model.certificates[0].stop, model.certificates[0].iterations),
            (StopReason::MaxIterations, 37)
        );
        let budget = Budget::new(&Silent, None, Some(std::time::Duration::ZERO));
        let model = stopped(&base, Context::default().with_monitor(&budget));
        assert_eq!(model.certificates[0].stop, StopReason::MaxTime);
    }
}

#[test]
fn bad_input_is_named() {
    let (x, labels) = blobs(20, 2, 2, 1);
    let kernel = Kernel::Rbf { gamma: 1.0 };
    let error = |labels: &[usize], classes, upper: &[f64], kernel, params: &SvmParams| {
        fit_classifier(
            kernel,
            rows(&x, 20),
            &Classification { classes, ..task(labels, upper, Coding::OneVsOne) },
            params,
            Context::SEQUENTIAL,
        )
        .unwrap_err()
        .to_string()
    };
    let (one, base) = (vec![1.0; 20], SvmParams::default());
    assert!(error(&labels[..19], 2, &one, kernel, &base).contains("labels: expected 20, found 19"));
    assert!(error(&labels, 1, &one, kernel, &base).contains("classes=1"));
    assert!(error(&labels, 3, &one, kernel, &base).contains("class 2"));
    assert!(error(&labels, 2, &[0.0; 20], kernel, &base).contains("C=0"));
    assert!(error(&labels, 2, &[f64::NAN; 20], kernel, &base).contains("C=NaN"));
    assert!(error(&labels, 2, &one, Kernel::Rbf { gamma: -1.0 }, &base).contains("gamma=-1"));
    assert!(error(&labels, 2, &one, Kernel::Precomputed, &base).contains("columns of precomputed X"));
    assert!(error(&labels, 2, &one, kernel, &changed(base.clone(), |p| p.tolerance = 0.0)).contains("tol=0"));
    let negative: Vec<f64> = x.iter().map(|v| v - 5.0).collect();
    let refused = fit_classifier(
        Kernel::ChiSquared { gamma: 1.0 },
        rows(&negative, 20),
        &task(&labels, &one, Coding::OneVsOne),
        &base,
        Context::SEQUENTIAL,
    );
    assert!(refused.unwrap_err().to_string().contains("negative"));
}

#[test]
fn every_member_of_the_family_closes_its_gap() {
    let n = 160;
    let (x, labels) = blobs(n, 3, 2, 6);
    let x = rows(&x, n);
    let mut noise = crate::reference::Numbers::new(5);
    let targets: Vec<f64> = labels.iter().map(|&c| c as f64 + 0.5 * noise.next()).collect();
    let weights: Vec<f64> = (0..n).map(|i| if i % 4 == 0 { 2.0 } else { 1.0 }).collect();
    let kernel = Kernel::Rbf { gamma: 0.8 };
    for shrinking in [false, true] {
        for (cached, bytes) in [(false, 0), (true, 1 << 20), (true, 0)] {
            let params = changed(params(shrinking, cached, bytes), |p| p.tolerance = 1e-6);
            let what = format!("shrinking {shrinking} cached {cached} {bytes}");
            let closed = |name: &str, certificate: svmarrow::svm::Certificate| {
                assert_eq!(certificate.stop, StopReason::Converged, "{name} {what}");
                let size = certificate.primal.abs().max(1.0);
                assert!(certificate.gap.abs() < 1e-4 * size, "{name} {what}: {certificate:?}");
            };
            for loss in [ClassifierLoss::Hinge, ClassifierLoss::SquaredHinge, ClassifierLoss::Nu(0.3)] {
                for fit_intercept in [true, false] {
                    if !fit_intercept && matches!(loss, ClassifierLoss::Nu(_)) {
                        continue;
                    }
                    let task =
                        Classification { loss, fit_intercept, ..task(&labels, &weights, Coding::OneVsOne) };
                    let model = fit_classifier(kernel, x, &task, &params, Context::default()).unwrap();
                    closed(&format!("{loss:?} {fit_intercept}"), model.certificates[0]);
                    assert_eq!(fit_intercept, model.intercepts[0] != 0.0);
                }
            }
            for loss in [RegressionLoss::Epsilon(0.1), RegressionLoss::Epsilon(0.0), RegressionLoss::Nu(0.4)]
            {
                let task = Regression { targets: &targets, sample_c: &weights, loss, start: None };
                let model = fit_regression(kernel, x, &task, &params, Context::default()).unwrap();
                closed(&format!("{loss:?}"), model.certificate);
            }
            let task = OneClass { weights: &weights, nu: 0.2, start: None };
            let model = fit_one_class(kernel, x, &task, &params, Context::default()).unwrap();
            closed("one-class", model.certificate);
            let total: f64 = weights.iter().sum();
            assert!((model.coefficients.iter().sum::<f64>() - 0.2 * total).abs() < 1e-9);
        }
    }
}

#[test]
fn a_start_at_the_solution_is_the_solution() {
    let n = 500;
    let (x, labels) = blobs(n, 4, 3, 12);
    let upper = vec![2.0; n];
    let kernel = Kernel::Rbf { gamma: 0.5 };
    let params = params(true, false, 0);
    let (mut from_there, mut from_nothing) = (0, 0);
    for coding in [Coding::OneVsOne, Coding::OneVsRest] {
        let first = fit(kernel, rows(&x, n), &labels, &upper, coding, &params, Context::default());
        let start =
            Some(Start { support: &first.support, coefficients: first.coefficients.view(), products: None });
        let again = Classification { start, ..task(&labels, &upper, coding) };
        let second = fit_classifier(kernel, rows(&x, n), &again, &params, Context::default()).unwrap();
        assert!(second.certificates.iter().all(|c| c.iterations == 0));
        assert_eq!(first.coefficients, second.coefficients);
        let wider = vec![3.0; n];
        let warm = Classification { sample_c: &wider, ..again };
        let cold = Classification { start: None, ..warm };
        let steps = |task: &Classification<'_>| -> u64 {
            let model = fit_classifier(kernel, rows(&x, n), task, &params, Context::default()).unwrap();
            model.certificates.iter().map(|c| c.iterations).sum()
        };
        from_there += steps(&warm);
        from_nothing += steps(&cold);
    }
    // A larger C goes on from there with fewer steps than from nothing, over both codes: one alone may have luck.
    assert!(from_there < from_nothing);
    let targets: Vec<f64> = labels.iter().map(|&c| c as f64).collect();
    let regression =
        Regression { targets: &targets, sample_c: &upper, loss: RegressionLoss::Epsilon(0.1), start: None };
    let first = fit_regression(kernel, rows(&x, n), &regression, &params, Context::default()).unwrap();
    let start =
        Some(Start { support: &first.support, coefficients: first.coefficients.view(), products: None });
    let second =
        fit_regression(kernel, rows(&x, n), &Regression { start, ..regression }, &params, Context::default())
            .unwrap();
    assert_eq!(second.certificate.iterations, 0);
}

#[test]
fn known_outputs_of_a_start_cost_no_kernel_value() {
    let n = 300;
    let (mut x, labels) = blobs(n, 4, 3, 12);
    // Far from the origin, so that the linear kernel is trained about a centre.
    for v in &mut x {
        *v += 100.0;
    }
    let upper = vec![2.0; n];
    let params = params(true, false, 0);
    for (kernel, coding) in [
        (Kernel::Linear, Coding::OneVsRest),
        (Kernel::Rbf { gamma: 0.5 }, Coding::OneVsOne),
        (Kernel::Rbf { gamma: 0.5 }, Coding::OneVsRest),
    ] {
        // Products in double precision may be off the solver's by a part of the tolerance.
        let closer = changed(params.clone(), |p| p.tolerance = 0.5 * params.tolerance);
        let first = fit(kernel, rows(&x, n), &labels, &upper, coding, &closer, Context::default());
        let k = gram(&kernel, rows(&x, n), rows(&x, n));
        let products = matrix(&k, n).select(Axis(1), &first.support).dot(&first.coefficients);
        let plain =
            Start { support: &first.support, coefficients: first.coefficients.view(), products: None };
        let known = Start { products: Some(products.view()), ..plain };
        let again = |start, upper| {
            let task = Classification { start: Some(start), ..task(&labels, upper, coding) };
            fit_classifier(kernel, rows(&x, n), &task, &params, Context::default())
        };
        let (computed, given) = (again(plain, &upper).unwrap(), again(known, &upper).unwrap());
        assert_eq!(given.coefficients, first.coefficients);
        assert!(given.certificates.iter().all(|c| c.iterations == 0));
        for (a, b) in given.intercepts.iter().zip(&computed.intercepts) {
            assert!((a - b).abs() < 1e-3 * (1.0 + b.abs()), "{kernel:?}: {a} and {b}");
        }
        for (a, b) in given.certificates.iter().zip(&computed.certificates) {
            assert!((a.dual - b.dual).abs() < 1e-5 * b.dual, "{kernel:?}: {} and {}", a.dual, b.dual);
        }
        // Coefficients that are clipped have other outputs, which are computed.
        let less = vec![0.5; n];
        let (computed, given) = (again(plain, &less).unwrap(), again(known, &less).unwrap());
        assert_eq!(given.coefficients, computed.coefficients);
        let wrong = Array2::from_elem(products.dim(), f64::NAN);
        assert!(again(Start { products: Some(wrong.view()), ..plain }, &upper).is_err());
        assert!(again(Start { products: Some(products.slice(s![1.., ..])), ..plain }, &upper).is_err());
    }
}
