//! Estimators against the solvers they call, against reference values, and through files.

use std::path::Path;

use ndarray::{Array2, arr2, s};
use svmarrow::context::Context;
use svmarrow::data::Rows;
use svmarrow::estimators::{Classifier, Detector, Model, Regressor, Strategy};
use svmarrow::kernels::{Evaluator, Kernel, pair};
use svmarrow::svm::{Classification, SvmParams, fit_classifier};
use svmarrow::{Error, LeastSquares, MatchingPursuit, OneClassSvm, Reduction, Svc, Svr};

use crate::io::{Scratch, iris};

/// Iris, with its labels as text.
fn flowers() -> (Array2<f64>, Vec<&'static str>) {
    let rows = iris();
    let x = Array2::from_shape_fn((rows.len(), 4), |(i, k)| rows[i][k]);
    let names = (0..rows.len()).map(|i| ["setosa", "versicolor", "virginica"][i / 50]).collect();
    (x, names)
}

fn share_correct<L: PartialEq>(predicted: &[L], labels: &[L]) -> f64 {
    predicted.iter().zip(labels).filter(|(a, b)| a == b).count() as f64 / labels.len() as f64
}

#[test]
fn a_classifier_is_that_of_the_solver() -> svmarrow::Result<()> {
    let (x, names) = flowers();
    let numbers: Vec<usize> = (0..150).map(|i| i / 50).collect();
    let kernel = Kernel::Rbf { gamma: 0.25 };
    let rows = Rows::try_from(&x)?;
    let task = Classification::new(&numbers, 3, &[2.0; 150]);
    let fit = fit_classifier(kernel, rows, &task, &SvmParams::default(), Context::default())?;
    for model in [
        Svc::builder().c(2.0).gamma(0.25).build()?.fit(&x, &names)?,
        Svc::builder().c(2.0).kernel(kernel).build()?.fit_in(x.view(), &names, Context::SEQUENTIAL)?,
    ] {
        assert_eq!(model.classes(), ["setosa", "versicolor", "virginica"]);
        assert_eq!(model.expansion().coefficients, fit.coefficients);
        assert_eq!(model.expansion().intercepts, fit.intercepts);
        assert_eq!(model.certificates().len(), 3);
        let outputs = Evaluator::new(&model.expansion().view())?.evaluate(rows, Context::default())?;
        assert_eq!(model.decision_function(&x)?, outputs);
        assert!(share_correct(&model.predict(&x)?, &names) > 0.95);
    }
    Ok(())
}

#[test]
fn every_estimator_learns_iris() -> svmarrow::Result<()> {
    let (x, names) = flowers();
    let rest = Svc::builder().c(10.0).strategy(Strategy::OneVsRest).build()?.fit(&x, &names)?;
    assert_eq!(rest.decision_function(&x)?.dim(), (150, 3));
    let squares = LeastSquares::builder().alpha(0.1).gamma(0.5).build()?.fit_classifier(&x, &names)?;
    let few = MatchingPursuit::builder(15).gamma(0.5).build()?.fit_classifier(&x, &names)?;
    assert_eq!(few.expansion().view().len(), 15);
    for model in [rest, squares, few] {
        assert!(share_correct(&model.predict(&x)?, &names) > 0.95);
    }
    // Two classes share one output.
    let (two, labels) = (x.slice(s![50.., ..]), &names[50..]);
    let squares = LeastSquares::builder().alpha(0.1).gamma(0.5).build()?.fit_classifier(two, labels)?;
    assert_eq!(squares.decision_function(two)?.ncols(), 1);
    assert!(share_correct(&squares.predict(two)?, labels) > 0.95);
    Ok(())
}

#[test]
fn regressions_agree_with_their_definitions() -> svmarrow::Result<()> {
    let (x, _) = flowers();
    let (inputs, targets) = (x.slice(s![.., ..3]), x.column(3).to_vec());
    let (kernel, alpha) = (Kernel::Rbf { gamma: 0.3 }, 0.2);
    let squares = LeastSquares::builder().alpha(alpha).kernel(kernel).build()?.fit(inputs, &targets)?;
    // (K + alpha I) c = y, row by row.
    let rows = Rows::try_from(inputs)?;
    let c = &squares.expansion().coefficients;
    for i in 0..150 {
        let own = |j: usize| pair(&kernel, rows, i, rows, j) * c[[j, 0]];
        let sum: f64 = (0..150).map(own).sum();
        assert!((sum + alpha * c[[i, 0]] - targets[i]).abs() < 1e-6);
    }
    let epsilon = 0.15;
    let machine = Svr::builder().c(100.0).epsilon(epsilon).gamma(0.3).build()?.fit(inputs, &targets)?;
    let predicted = machine.predict(inputs)?;
    let within = predicted.iter().zip(&targets).filter(|(f, y)| (*f - *y).abs() < epsilon + 0.01).count();
    assert!(within > 75, "{within}");
    assert!(machine.certificate().is_some_and(|found| found.gap <= 1e-2 * found.primal));
    let few = MatchingPursuit::builder(150).gamma(0.3).fit_intercept(false).tolerance(1e-3).build()?;
    let few = few.fit(inputs, &targets)?;
    let missing: f64 = few.predict(inputs)?.iter().zip(&targets).map(|(f, y)| (f - y) * (f - y)).sum();
    let norm: f64 = targets.iter().map(|y| y * y).sum();
    assert!(few.expansion().intercepts == [0.0] && missing.sqrt() < 0.1 * norm.sqrt());
    Ok(())
}

#[test]
fn a_reduced_model_answers_like_the_full_one() -> svmarrow::Result<()> {
    let (x, names) = flowers();
    let full = Svc::builder().c(10.0).gamma(0.5).build()?.fit(&x, &names)?;
    let small = Reduction::builder(12).build()?.apply(&full)?;
    assert_eq!(small.expansion().view().len(), 12);
    assert!(small.certificates().is_empty());
    assert!(share_correct(&small.predict(&x)?, &full.predict(&x)?) > 0.9);
    let all = Reduction::builder(10_000).build()?.apply(&full)?;
    let difference = all.decision_function(&x)? - full.decision_function(&x)?;
    assert!(difference.iter().all(|v| v.abs() < 1e-4));
    let detector = OneClassSvm::builder().nu(0.2).build()?.fit(&x)?;
    let shorter = Reduction::builder(5).build()?.apply(&detector)?;
    assert_eq!(shorter.decision_function(&x)?.len(), 150);
    Ok(())
}

/// Replaces the first occurrence of a text in a file by another of its length.
fn replaced(file: &[u8], old: &str, new: &str) -> Vec<u8> {
    let start = file.windows(old.len()).position(|bytes| bytes == old.as_bytes()).unwrap();
    [&file[..start], new.as_bytes(), &file[start + old.len()..]].concat()
}

#[test]
fn models_come_back_from_files() -> svmarrow::Result<()> {
    let (x, _) = flowers();
    let scratch = Scratch::new();
    let path = scratch.path("model.safetensors");
    for strategy in [Strategy::OneVsOne, Strategy::OneVsRest] {
        let labels: Vec<i32> = (0..150).map(|i| [7, -3, 40][i / 50]).collect();
        let model = Svc::builder().strategy(strategy).build()?.fit(&x, &labels)?;
        model.save(&path)?;
        let back = Classifier::load(&path)?;
        assert_eq!((back.classes(), back.strategy()), (&[-3, 7, 40][..], strategy));
        assert_eq!(back.decision_function(&x)?, model.decision_function(&x)?);
        assert!(back.predict(&x)?.into_iter().eq(model.predict(&x)?.into_iter().map(i64::from)));
    }
    let message = Regressor::load(&path).unwrap_err().to_string();
    assert!(message.contains("\"classifier/1\", expected \"regressor/1\""), "{message}");
    let sound = std::fs::read(&path).unwrap();
    for (old, new) in
        [("classifier/1", "classifier/2"), ("decoding", "decodinx"), ("expansion/1", "expansion/2")]
    {
        std::fs::write(&path, replaced(&sound, old, new)).unwrap();
        let message = Classifier::load(&path).unwrap_err().to_string();
        assert!(message.contains(new), "{message}");
    }
    let targets = x.column(0).to_vec();
    let machine = Svr::builder().build()?.fit(&x, &targets)?;
    machine.save(&path)?;
    assert_eq!(Regressor::load(&path)?.predict(&x)?, machine.predict(&x)?);
    let detector = OneClassSvm::builder().nu(0.1).build()?.fit(&x)?;
    detector.save(&path)?;
    assert_eq!(Detector::load(&path)?.predict(&x)?, detector.predict(&x)?);
    assert!(matches!(Detector::load(Path::new("/nowhere")), Err(Error::Io { .. })));
    Ok(())
}

#[test]
fn bad_input_is_refused_by_name() {
    let x = arr2(&[[0.0, 1.0], [1.0, 0.0], [f64::NAN, 2.0]]);
    let refused = [
        Svc::builder().c(0.0).build().unwrap_err(),
        Svc::builder().gamma(1.0).kernel(Kernel::Linear).build().unwrap_err(),
        Svr::builder().epsilon(-1.0).build().unwrap_err(),
        OneClassSvm::builder().nu(1.5).build().unwrap_err(),
        LeastSquares::builder().alpha(0.0).build().unwrap_err(),
        MatchingPursuit::builder(0).build().unwrap_err(),
        Reduction::builder(5).tolerance(1.0).build().unwrap_err(),
    ];
    for (error, name) in refused.iter().zip([
        "c=0",
        "gamma=1",
        "epsilon=-1",
        "nu=1.5",
        "alpha=0",
        "n_vectors=0",
        "tolerance=1",
    ]) {
        assert!(error.to_string().starts_with(name), "{error}");
    }
    let svc = Svc::builder().build().unwrap();
    assert!(matches!(svc.fit(&x, &[0, 1, 1]), Err(Error::NotFinite { row: 2, .. })));
    let sound = x.slice(s![..2, ..]);
    assert!(matches!(svc.fit(sound, &[0, 1, 1]), Err(Error::Shape { .. })));
    assert!(svc.fit(sound, &[4, 4]).unwrap_err().to_string().contains("at least 2 classes"));
    let model = svc.fit(sound, &[0, 1]).unwrap();
    assert!(matches!(model.predict(&arr2(&[[1.0]])), Err(Error::Shape { .. })));
}
