//! A stop at every look: what is left is a model whose certificate holds, or nothing at all. And kernels that give no numbers.

use crate::reference::{blobs, changed, rows};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use svmarrow::Error;
use svmarrow::context::{Context, Interruption, Monitor, Progress, StopReason};
use svmarrow::data::Rows;
use svmarrow::kernels::{Kernel, KernelBlocks, KernelFunction, pair};
use svmarrow::svm::{
    Certificate, Classification, OneClass, Regression, RegressionLoss, SvmParams, Tuning, fit_classifier,
    fit_one_class, fit_regression,
};

const KERNEL: Kernel = Kernel::Rbf { gamma: 1.0 };
const N: usize = 700;
const C: f64 = 2.0;
const EPSILON: f64 = 0.1;

/// Stops from one look on.
struct At(AtomicU64, Interruption);

impl Monitor for At {
    fn tick(&self, _: &Progress) -> ControlFlow<Interruption> {
        if self.0.load(Ordering::Relaxed) == 1 {
            return ControlFlow::Break(self.1);
        }
        self.0.fetch_sub(1, Ordering::Relaxed);
        ControlFlow::Continue(())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Classifier,
    Regression,
    OneClass,
}

/// Training rows with coefficients, and the certificate.
type Fitted = (Vec<(usize, f64)>, Certificate);

fn fit(
    kind: Kind,
    (x, labels): (Rows<'_>, &[usize]),
    (cached, sampled): (bool, usize),
    ctx: Context<'_>,
) -> Result<Fitted, Error> {
    let cheap = if cached { 0 } else { usize::MAX };
    let sizes = Tuning { block: 32, max_block: 64, nested_block: 48, max_whole: 0, ..Tuning::default() };
    let tuning = Tuning {
        cheap_kernel: cheap,
        min_subsampled: sampled,
        work_per_check: 0,
        min_rows_per_check: 4,
        ..sizes
    };
    let params = changed(SvmParams::default(), |p| {
        p.tolerance = 1e-4;
        p.cache_bytes = 1 << 21;
        p.set_tuning(tuning);
    });
    let (upper, ctx) = (vec![C; N], ctx.sequential());
    let (support, coefficients, certificate) = match kind {
        Kind::Classifier => {
            let model = fit_classifier(KERNEL, x, &Classification::new(labels, 2, &upper), &params, ctx)?;
            (model.support, model.coefficients, model.certificates[0])
        }
        Kind::Regression => {
            let targets: Vec<f64> = labels.iter().map(|&label| label as f64).collect();
            let loss = RegressionLoss::Epsilon(EPSILON);
            let task = Regression { targets: &targets, sample_c: &upper, loss, start: None };
            let model = fit_regression(KERNEL, x, &task, &params, ctx)?;
            (model.support, model.coefficients, model.certificate)
        }
        Kind::OneClass => {
            let task = OneClass { weights: &vec![1.0; N], nu: 0.6, start: None };
            let model = fit_one_class(KERNEL, x, &task, &params, ctx)?;
            (model.support, model.coefficients, model.certificate)
        }
    };
    let betas = support.into_iter().zip(coefficients.iter().copied()).collect();
    Ok((betas, certificate))
}

/// The dual objective by its definition.
fn dual(kind: Kind, x: Rows<'_>, labels: &[usize], betas: &[(usize, f64)]) -> f64 {
    let mut dual = 0.0;
    for &(i, b) in betas {
        dual += match kind {
            Kind::Classifier => b.abs(),
            Kind::Regression => labels[i] as f64 * b - EPSILON * b.abs(),
            Kind::OneClass => 0.0,
        };
        dual -= 0.5 * betas.iter().map(|&(j, c)| b * c * pair(&KERNEL, x, i, x, j)).sum::<f64>();
    }
    dual
}

#[test]
fn a_stop_at_any_look_leaves_what_its_certificate_says() {
    let (x, mut labels) = blobs(N, 2, 2, 3);
    // Noise, so that many coefficients end at their bounds.
    labels.iter_mut().step_by(5).for_each(|label| *label = 1 - *label);
    let x = rows(&x, N);
    let data = (x, &labels[..]);
    for (kind, cached, sampled) in [
        (Kind::Classifier, false, N + 1),
        (Kind::Classifier, true, N + 1),
        (Kind::Regression, false, N + 1),
        (Kind::OneClass, false, N + 1),
        (Kind::Classifier, false, 100),
        (Kind::Regression, false, 100),
    ] {
        let how = (cached, sampled);
        let (_, Certificate { dual: best, stop: reason, .. }) =
            fit(kind, data, how, Context::default()).unwrap();
        assert_eq!(reason, StopReason::Converged);
        let (mut stops, mut look) = (0, 1);
        loop {
            let stop = if stops % 2 == 0 { Interruption::Interrupted } else { Interruption::MaxTime };
            match fit(kind, data, how, Context::default().with_monitor(&At(look.into(), stop))) {
                Ok((_, Certificate { stop: StopReason::Converged, .. })) => break,
                Ok((betas, certificate)) => {
                    let Certificate { dual: told, primal, rounding, .. } = certificate;
                    assert_eq!(certificate.stop, stop.into());
                    let sum: f64 = betas.iter().map(|(_, b)| b).sum();
                    let expected = if kind == Kind::OneClass { 0.6 * N as f64 } else { 0.0 };
                    assert!((sum - expected).abs() < 1e-9 * N as f64, "{sum}");
                    assert!(betas.iter().all(|(_, b)| b.abs() <= C));
                    let exact = dual(kind, x, &labels, &betas);
                    let scale = 1e-5 * exact.abs().max(1.0);
                    // The certified objective is less by what rounding may have added to it.
                    let size: f64 = betas.iter().map(|(_, b)| b.abs()).sum();
                    let below = scale + 3.0 * rounding * size;
                    assert!(told < exact + scale && told > exact - below, "look {look}: {told} but {exact}");
                    assert!(told <= best + scale && primal >= best - scale, "{told} {best} {primal}");
                }
                // Before there are gradients, which only a start that is not zero has to wait for.
                Err(Error::Stopped(reason)) => {
                    assert_eq!(
                        (kind == Kind::OneClass, stop, reason),
                        (true, Interruption::Interrupted, stop)
                    );
                }
                Err(error) => {
                    assert!(kind == Kind::OneClass && stop == Interruption::MaxTime);
                    assert!(error.to_string().contains("max_time"), "{error}");
                }
            }
            stops += 1;
            look += 1 + look / 16;
        }
        assert!(stops > 5, "{stops}");
    }
}

/// Kernel values of which some are no numbers.
struct Holes;

impl KernelBlocks for Holes {
    fn fill(&self, rows: &[usize], columns: &[usize], out: &mut [f64]) {
        for (line, &i) in out.chunks_exact_mut(columns.len()).zip(rows) {
            for (value, &t) in line.iter_mut().zip(columns) {
                *value = if i + t == 40 { f64::NAN } else { f64::from(u8::from(i == t)) };
            }
        }
    }
}

#[test]
fn what_is_no_number_is_never_converged() {
    let (x, labels) = blobs(60, 2, 2, 3);
    let upper = vec![C; 60];
    for whole in [0, 256] {
        let tuning = Tuning { max_whole: whole, ..Tuning::default() };
        let params = changed(SvmParams::default(), |p| p.set_tuning(tuning));
        let task = Classification::new(&labels, 2, &upper);
        let kernel = KernelFunction::Blocks(&Holes);
        let fitted = fit_classifier(kernel, rows(&x, 60), &task, &params, Context::SEQUENTIAL);
        assert!(matches!(fitted, Err(Error::Param { .. })));
    }
}
